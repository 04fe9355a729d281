"""Lines -> a file that gets its name when it is whole, in segments as an output has them."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from so2docs.errors import OptionError
from so2docs.options.choices import Compression, compression_from_name
from so2docs.output.compression import SEGMENT_BYTES, compress
from so2docs.output.file import Output
from so2docs.output.new_files import NewFiles

_LEVEL = 2
_PACKED = (".gz", ".zst", ".zstd")


class Target:
    """One of a command's new files, written from start to end; a context manager ends it.

    Args:
        files: Where it belongs: they get their names together.
        path: Its name, which says the compression; `-` is standard output.
        read: Files that must not be overwritten.
        force: Overwrite what exists.
        level: Of the compression.
        indexed: Whether it holds documents, and gets an index to look them up with.

    Attributes:
        record: How its documents were made, for the index.

    Raises:
        OptionError: The name is empty.
        OutputError: It exists, is one of the inputs, or its folder is missing or not writable.
    """

    def __init__(
        self,
        files: NewFiles,
        path: str,
        read: Sequence[str],
        *,
        force: bool,
        level: int = _LEVEL,
        indexed: bool = False,
    ) -> None:
        if not path:
            raise OptionError(
                "a name is empty, as an unset variable is; give the name of a file, or -"
            )
        self.path = path
        self.record = b""
        self.compression: Compression = (
            compression_from_name(path) if path.endswith(_PACKED) else "none"
        )
        files.claim(path, read, force=force)
        self._files = files
        self._level = level
        self._output = Output(path, self.compression, indexed=indexed)
        self._held: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        """Append some bytes, compressed with others when there are enough."""
        self._held.append(data)
        self._size += len(data)
        if self._size >= SEGMENT_BYTES:
            self.write_segment()

    def write_segment(self, first_id: int = 0, documents: int = 0) -> int:
        """Compress what is held as a segment; its CRC-32 before compression."""
        if not self._size:
            return 0
        segment = compress(b"".join(self._held), self.compression, self._level, first_id, documents)
        self._output.append(segment)
        self._held, self._size = [], 0
        return segment.crc

    def hold(self, line: bytes) -> int:
        """Keep a line for the next segment; bytes of it so far."""
        self._held.append(line)
        self._size += len(line)
        return self._size

    def __enter__(self) -> Target:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._output:
            if kind is None:
                self.write_segment()
                self._files.add(self.path, self._output.seal(self.record))


def write_empty(path: str, record: bytes) -> None:
    """Write an output without documents.

    Args:
        path: Its name, which says the compression.
        record: How it was made, for the index.
    """
    with NewFiles() as files, Target(files, path, (), force=False, indexed=True) as target:
        target.record = record
