"""Blocks of posts on disk between the two passes, and how far a conversion has come.

A chunk's blocks go, one after the other, into a file of its own: every byte is written in sequence
by the worker that made it and none travels to another process. An SQLite index says where the
blocks of a bucket stand and which chunks are committed; its rows are only ever appended. Nothing of
a chunk counts before its row is committed, so a killed process leaves bytes that nobody refers to.

The only user of SQLite. The index is opened in exclusive mode: its lock ends with the process that
holds it, however that ends.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import sqlite_utils
import zstandard
from isal.isal_zlib import crc32

from so2docs.errors import SpillError

FORMAT = 1
"""Version of what stands in the index and in the block files."""

SEQUENCE_BITS = 32
"""Chunks of the posts count from 0, those of the table of sequence n from n << 32."""

_IS_OF = f"chunk >> {SEQUENCE_BITS} = ?"
_ZSTD_LEVEL = 1

_SCHEMA: dict[str, dict[str, type]] = {
    "state": {"name": str, "value": str},
    "chunks": {"chunk": int, "file": str, "tally": str},
    "blocks": {
        "bucket": int,
        "chunk": int,
        "offset": int,
        "keys_size": int,
        "json_size": int,
        "raw_size": int,
        "crc": int,
    },
}


class Block(NamedTuple):
    """Where a block stands in its chunk's file.

    Attributes:
        bucket: The bucket; None for a block of stray lines.
        offset: Bytes from the start of the file.
        keys_size: Compressed bytes of its keys.
        json_size: Compressed bytes of its JSON, which follow.
        raw_size: Bytes of the JSON.
        crc: CRC-32 of the compressed bytes.
    """

    bucket: int | None
    offset: int
    keys_size: int
    json_size: int
    raw_size: int
    crc: int


class BlockWriter:
    """Appends compressed blocks to the file of a chunk."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "wb", buffering=0)  # noqa: SIM115
        self._compress = zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compress
        self._offset = 0
        self.blocks: list[Block] = []

    def __enter__(self) -> BlockWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def write(self, bucket: int | None, keys: bytearray, json: bytearray) -> None:
        """Compress the posts of a bucket and append them."""
        packed_keys, packed_json = self._compress(keys), self._compress(json)
        crc = crc32(packed_json, crc32(packed_keys))
        self.blocks.append(
            Block(bucket, self._offset, len(packed_keys), len(packed_json), len(json), crc)
        )
        for data in (packed_keys, packed_json):
            self.append(data)

    def append(self, data: bytes | bytearray) -> int:
        """Append bytes as they are, which belong to no block.

        Returns:
            Where they start in the file.
        """
        start = self._offset
        view = memoryview(data)
        while view:  # A raw file may take less than it is given, such as when the disk is full.
            view = view[self._file.write(view) :]
        self._offset += len(data)
        return start


class BlockReader:
    """Reads blocks back, in the worker that merges them; keeps the files open."""

    _MOST_FILES = 200

    def __init__(self) -> None:
        self._files: dict[str, int] = {}
        self._decompress = zstandard.ZstdDecompressor().decompress

    def __enter__(self) -> BlockReader:
        return self

    def __exit__(self, *exception: object) -> None:
        for file in self._files.values():
            os.close(file)
        self._files.clear()

    def read(self, path: str, block: Block) -> tuple[bytes, bytes]:
        """Keys and JSON of a block.

        Raises:
            SpillError: The bytes are not those that were written.
        """
        data = self.bytes_at(path, block.offset, block.keys_size + block.json_size)
        if crc32(data) != block.crc:
            raise SpillError(
                f"{path}: the spill is damaged at byte {block.offset:,}; "
                "run the command again with --restart"
            )
        return (
            self._decompress(data[: block.keys_size]),
            self._decompress(data[block.keys_size :]) if block.raw_size else b"",
        )

    def read_keys(self, path: str, block: Block) -> bytes:
        """Keys of a block only, without a check."""
        return self._decompress(self.bytes_at(path, block.offset, block.keys_size))

    def bytes_at(self, path: str, offset: int, size: int) -> bytes:
        """Bytes of a chunk's file, fewer where it ends."""
        try:
            file = self._files.get(path)
            if file is None:
                if len(self._files) >= self._MOST_FILES:
                    os.close(self._files.pop(next(iter(self._files))))
                file = self._files[path] = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            if hasattr(os, "pread"):
                return os.pread(file, size, offset)
            os.lseek(file, offset, os.SEEK_SET)
            return os.read(file, size)
        except OSError as error:
            raise SpillError(
                f"{path}: the spill cannot be read ({error.strerror}); run again with --restart"
            ) from error


class Spill:
    """The spill of one conversion, in a folder of its own."""

    def __init__(self, folder: str | Path) -> None:
        """Open the spill in `folder`, or start one there.

        Raises:
            SpillError: Another process is using it, or it is not a spill.
        """
        self.folder = Path(folder)
        self._sequences = "0"
        is_new = not (self.folder / "index.sqlite").exists()
        if is_new and self.folder.exists() and any(self.folder.iterdir()):
            raise SpillError(
                f"{self.folder}: is no spill, and not empty; choose another --work-dir"
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(
            self.folder / "index.sqlite", timeout=0, isolation_level=None
        )
        try:
            self._prepare()
        except sqlite3.OperationalError as error:
            self._database.close()
            if "locked" in str(error):
                raise SpillError(
                    f"{self.folder}: another so2docs is working on this conversion; "
                    "let it finish or stop it"
                ) from None
            raise SpillError(f"{self.folder}: the spill cannot be used ({error})") from error
        except sqlite3.DatabaseError as error:
            self._database.close()
            raise SpillError(
                f"{self.folder}: the index of the spill is damaged ({error}); "
                "run the command again with --restart"
            ) from error

    def _prepare(self) -> None:
        run = self._database.execute
        run("PRAGMA page_size=32768")
        run("PRAGMA locking_mode=EXCLUSIVE")
        # Against a killed process the page cache is safe without syncing; a power cut is not
        # survived, and shows as a damaged index or a failing checksum.
        run("PRAGMA synchronous=OFF")
        run("PRAGMA journal_mode=PERSIST")
        run("BEGIN EXCLUSIVE")
        tables = sqlite_utils.Database(self._database)
        for name, columns in _SCHEMA.items():
            pk = {"state": "name", "chunks": "chunk"}.get(name)
            tables.table(name).create(columns, pk=pk, if_not_exists=True)
        if self._database.in_transaction:
            run("COMMIT")

    def close(self) -> None:
        """Give the spill up for others to go on with."""
        self._database.close()

    def remove(self) -> None:
        """Close and delete it."""
        self.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def get(self, name: str) -> Any:
        """A JSON value kept under `name`; None if there is none."""
        found = self._database.execute("SELECT value FROM state WHERE name=?", (name,)).fetchone()
        return None if found is None else json.loads(found[0])

    def put(self, name: str, value: Any) -> None:
        """Keep a JSON value under `name`, committed at once."""
        self._database.execute(
            "INSERT OR REPLACE INTO state (name, value) VALUES (?, ?)", (name, json.dumps(value))
        )

    def new_file(self, chunk: int) -> str:
        """A path for the blocks of a chunk that no process has ever written to."""
        run = self.get("run") or 0
        sequence, number = chunk >> SEQUENCE_BITS, chunk & ((1 << SEQUENCE_BITS) - 1)
        table = f"table{sequence}-" if sequence else ""
        return str(self.folder / f"{table}{number:06}-{run}.blocks")

    def merge_only(self, sequences: Iterable[int]) -> None:
        """Choose the tables, besides the posts, whose blocks `buckets` and `blocks` return."""
        self._sequences = ",".join(map(str, (0, *sequences)))

    def start_run(self) -> None:
        """Begin a session: what an earlier one left uncommitted is removed."""
        self.put("run", (self.get("run") or 0) + 1)
        kept = {name for (name,) in self._database.execute("SELECT file FROM chunks")}
        for path in self.folder.glob("*.blocks"):
            if path.name not in kept:
                path.unlink(missing_ok=True)

    def commit(self, chunk: int, path: str, blocks: list[Block], tally: dict[str, Any]) -> None:
        """Make a finished chunk part of the spill, in one transaction."""
        run = self._database.execute
        run("BEGIN")
        run(
            "INSERT INTO chunks VALUES (?, ?, ?)",
            (chunk, os.path.basename(path), json.dumps(tally)),
        )
        self._database.executemany(
            "INSERT INTO blocks (bucket, offset, keys_size, json_size, raw_size, crc, chunk) "
            f"VALUES (?, ?, ?, ?, ?, ?, {chunk})",
            blocks,
        )
        run("COMMIT")

    def tallies(self, sequence: int = 0) -> dict[int, dict[str, Any]]:
        """The tallies of the committed chunks of the posts, or of a table."""
        rows = self._database.execute(
            f"SELECT chunk, tally FROM chunks WHERE {_IS_OF} ORDER BY chunk",
            (sequence,),
        )
        return {chunk: json.loads(tally) for chunk, tally in rows}

    def index(self) -> None:
        """Make the blocks of a bucket quick to find; called once, after the last chunk."""
        self._database.execute(
            "CREATE INDEX IF NOT EXISTS blocks_by_bucket ON blocks (bucket, chunk, offset)"
        )

    def buckets(self) -> list[tuple[int, int]]:
        """All buckets in ascending order, each with the bytes of its JSON."""
        return self._database.execute(
            "SELECT bucket, sum(raw_size) FROM blocks "
            f"WHERE bucket IS NOT NULL AND {self._is_merged()} GROUP BY bucket ORDER BY bucket"
        ).fetchall()

    def blocks(self, bucket: int | None) -> list[tuple[str, Block]]:
        """The blocks of a bucket in the order of the dump, each with its file."""
        condition = f"bucket IS ? AND {self._is_merged()}"
        return [(path, block) for _, path, block in self._blocks(condition, bucket)]

    def all_keys(self, sequence: int = 0) -> Iterator[tuple[int, bytes]]:
        """The keys of all blocks of the posts, or of a table, each with its chunk, in order."""
        with BlockReader() as reader:
            for chunk, path, block in self._blocks(_IS_OF, sequence):
                yield chunk, reader.read_keys(path, block)

    def files(self, sequence: int) -> dict[int, str]:
        """The files of the committed chunks of a table."""
        rows = self._database.execute(f"SELECT chunk, file FROM chunks WHERE {_IS_OF}", (sequence,))
        return {chunk: str(self.folder / file) for chunk, file in rows}

    def _is_merged(self) -> str:
        return f"chunk >> {SEQUENCE_BITS} IN ({self._sequences})"

    def _blocks(self, condition: str, value: int | None) -> Iterator[tuple[int, str, Block]]:
        rows = self._database.execute(
            "SELECT chunk, file, bucket, offset, keys_size, json_size, raw_size, crc "
            f"FROM blocks JOIN chunks USING (chunk) WHERE {condition} ORDER BY chunk, offset",
            (value,),
        )
        for chunk, file, *block in rows:
            yield chunk, str(self.folder / file), Block(*block)

    def size(self) -> int:
        """Bytes on disk."""
        return sum(path.stat().st_size for path in self.folder.iterdir())

    def size_of(self, sequence: int) -> int:
        """Bytes on disk of the committed chunks of a table."""
        return sum(os.path.getsize(path) for path in self.files(sequence).values())
