"""What a format has to say, and what it may leave as it is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from so2docs.merge import Buffer, Document
from so2docs.output.compression import PIECE_BYTES, Piece, compress
from so2docs.output.journal import PieceLog

if TYPE_CHECKING:
    from so2docs.options.conversion import Options


class Format:
    """How documents stand in a file. Workers frame and compress them, the main process the rest.

    A file is `header`, the documents with `between` between any two of them, and `footer`.

    Attributes:
        extensions: Ends of a file name that ask for this format; the first is the usual one.
        compressed: Whether files are compressed as a whole (if not, the format compresses inside).
        dates: Whether dates are to be `{"$date": ...}`, which the first pass makes them.
        logs: Whether the footer tells about every piece.
        options_of: Names of options that only this format has.
        header: Bytes before the first document.
        between: Bytes between two documents.
        piece_bytes: Bytes of documents to compress together, about.
    """

    extensions: ClassVar[tuple[str, ...]] = ()
    compressed: ClassVar[bool] = True
    dates: ClassVar[bool] = False
    logs: ClassVar[bool] = False
    header: bytes = b""
    between: bytes = b""
    piece_bytes: int = PIECE_BYTES

    def __init__(self, options: Options) -> None:
        self.compression = options.form.compression
        self.level = options.level
        if options.form.split_bytes is not None:
            # So that pieces fill a file of this size well, and none is larger than it.
            self.piece_bytes = min(self.piece_bytes, options.form.split_bytes // 4)

    @staticmethod
    def check() -> None:
        """Raise `OptionError` where something must be installed first."""

    def frame(self, document: Document) -> Iterable[Buffer]:
        """The bytes of a document."""
        raise NotImplementedError

    def piece(self, raw: bytes, first_id: int = 0, documents: int = 0) -> Piece:
        """Compress some framed documents, or a header or footer."""
        return compress(raw, self.compression, self.level, first_id, documents)

    def footer(self, log: PieceLog | None) -> bytes:
        """Bytes after the last document; the log has the pieces before it, if `logs`."""
        return b""

    def footer_bytes(self, log: PieceLog | None, piece: Piece) -> int:
        """Most bytes that the footer takes when one more piece is appended."""
        return len(self.footer(None))
