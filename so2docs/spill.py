"""Blocks of posts on disk between the two passes, and the progress of a conversion.

Each chunk has a file for its blocks. The worker of the chunk writes them in sequence, and sends no
block to another process. An index contains the positions of the blocks of each bucket, and the
committed chunks; its rows are only appended. A chunk counts only after its row is committed, so a
killed process leaves only unused bytes.

The index is an SQLite file in exclusive mode: the system releases its lock when the process ends
for any reason. SQLite has no checksums, so the rows contain checksums.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from itertools import groupby, starmap
from operator import itemgetter
from pathlib import Path
from typing import Any

import orjson
from isal.isal_zlib import crc32

from so2docs.counts import ChunkTally
from so2docs.dump.dump import PIECE_END, PIECES
from so2docs.errors import (
    SpillError,
    SpillTakenError,
    damaged_spill_error,
    explain,
    flag,
    run_again,
)
from so2docs.store.blocks import Block, BlockReader, BlockWriter, Budget
from so2docs.store.disk import lock_file

INDEX = "index.sqlite"
TEMPORARY = "segments."
"""Prefix of temporary files with the results of second-pass tasks."""

_ENDS = (".blocks", ".map", ".map.runs")


def is_ours(path: Path) -> bool:
    """Whether a path in the folder of a spill belongs to the spill."""
    if path.name.startswith(PIECES):
        return path.is_dir() and all(piece.suffix == PIECE_END for piece in path.iterdir())
    return path.name.endswith(_ENDS) or path.name.startswith((INDEX, TEMPORARY))


def clear(folder: Path) -> None:
    """Delete a spill that is not in use, and no other files in its folder."""
    if not folder.exists():
        return
    # Delete the index first, so that an interrupted deletion leaves no spill to resume.
    for path in sorted(filter(is_ours, folder.iterdir()), key=lambda path: path.name != INDEX):
        if path.name.startswith(PIECES):
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


Values = tuple[Any, ...]


def checksum(*values: Any) -> int:
    """Return the CRC-32 of JSON values; the index stores it next to the values."""
    return crc32(orjson.dumps(values, default=list))


_TABLES = (
    "CREATE TABLE [state] ([name] TEXT PRIMARY KEY, [value] TEXT, [crc] INTEGER)",
    "CREATE TABLE [chunks] ([chunk] INTEGER PRIMARY KEY, [run] INTEGER, [size] INTEGER, "
    "[tally] TEXT, [crc] INTEGER)",
    "CREATE TABLE [blocks] ([chunk] INTEGER, [number] INTEGER, [run] INTEGER, [bucket] INTEGER, "
    "[offset] INTEGER, [keys_size] INTEGER, [json_size] INTEGER, [raw_size] INTEGER, "
    "[crc] INTEGER, [keys_crc] INTEGER, [packed] INTEGER, PRIMARY KEY ([chunk], [number])) "
    "WITHOUT ROWID",
)
_BLOCK = "bucket, offset, keys_size, json_size, raw_size, crc, keys_crc, packed"
_BLOCKS_BY_BUCKET = (
    "CREATE INDEX IF NOT EXISTS blocks_by_bucket ON blocks "
    "(bucket, chunk, number, run, offset, keys_size, json_size, raw_size, crc, keys_crc, packed)"
)
"""The index has all columns, so that the second pass reads it once, from start to end. With the
positions in the table, each block would read a page of 32 KiB: 52 GB from an index of 52 MB."""


class StateDatabase:
    """The index: an SQLite file with the tables `chunks` and `blocks`, and named JSON values."""

    def __init__(self, path: Path) -> None:
        """Open the file, or create it.

        Raises:
            SpillError: Another process uses the file, or it is damaged or has other tables.
        """
        self._folder = path.parent
        self._lock = self._open_lock(path)
        # Our lock is enough, and SQLite's own does not work on every file system.
        uri = f"{path.absolute().as_uri()}?nolock={int(os.name != 'nt')}"
        with self._translate_errors():
            self._connection = sqlite3.connect(
                uri, timeout=0, isolation_level=None, check_same_thread=False, uri=True
            )
        # Decode damaged text without an error, since the checksum detects the damage.
        self._connection.text_factory = lambda text: text.decode(errors="replace")
        try:
            with self._translate_errors():
                self._prepare()
        except BaseException:
            self.close()
            raise

    def _open_lock(self, path: Path) -> int:
        """Open and lock the file; the lock ends with the process."""
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise self._creation_error(error.strerror) from error
        try:
            lock_file(file)
        except BlockingIOError:
            os.close(file)
            raise self._taken_error() from None
        return file

    def _prepare(self) -> None:
        run = self._connection.execute
        run("PRAGMA page_size=32768")
        run("PRAGMA locking_mode=EXCLUSIVE")
        # Do not sync: the page cache survives a killed process, and checksums detect damage from a
        # power cut.
        run("PRAGMA synchronous=OFF")
        run("PRAGMA journal_mode=PERSIST")
        run("BEGIN EXCLUSIVE")
        tables = {sql for (sql,) in run("SELECT sql FROM sqlite_master WHERE type='table'")}
        if not tables:
            for statement in _TABLES:
                run(statement)
        elif tables != {*_TABLES}:
            raise SpillError(
                f"{self._folder}: the index of the spill was made by another program or "
                f"another version of so2docs; {run_again()}"
            )
        if self._connection.in_transaction:
            run("COMMIT")

    def close(self) -> None:
        """Close the file, so that other processes can use it."""
        with suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("COMMIT")
            self._connection.close()
        with suppress(OSError):
            os.close(self._lock)

    def _taken_error(self) -> SpillTakenError:
        return SpillTakenError(
            f"{self._folder}: another so2docs process is working on this conversion; wait for it, "
            "or stop it"
        )

    def _creation_error(self, problem: object) -> SpillError:
        return SpillError(
            f"{self._folder}: the index of the spill cannot be created ({problem}); choose another "
            f"{flag('work_dir')}, with a shorter path if this one is long"
        )

    def damage_error(self, problem: object) -> SpillError:
        """Make the error for a damaged index."""
        return damaged_spill_error(self._folder, problem, "the index of the spill")

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Convert SQLite errors to `SpillError` or `DiskFullError`, with advice for the user."""
        problem = "the index of the spill cannot be used"
        with explain(self._folder, problem, SpillError, "check the disk"):
            try:
                yield
            except sqlite3.DatabaseError as error:
                name = getattr(error, "sqlite_errorname", "")
                if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                    raise self._taken_error() from None
                if name.startswith("SQLITE_CANTOPEN"):
                    # SQLite also reports this for paths longer than 512 bytes.
                    raise self._creation_error(error) from error
                if not isinstance(error, sqlite3.OperationalError):
                    raise self.damage_error(error) from error
                raise

    def rows(self, sql: str, values: Iterable[Any] = ()) -> Iterator[Values]:
        """Yield the rows of a query, one at a time."""
        with self._translate_errors():
            # With `yield from`, an abandoned generator might close the cursor too late.
            for row in self._connection.execute(sql, tuple(values)):  # noqa: UP028
                yield row

    def run(self, *statements: tuple[str, list[Values]], commits: bool = True) -> None:
        """Run statements in a transaction, each once per row of its list.

        Unless `commits` is set, the transaction goes on until the next call that commits, or until
        the file is closed.
        """
        run = self._connection.execute
        with self._translate_errors():
            if not self._connection.in_transaction:
                run("BEGIN")
            try:
                for sql, rows in statements:
                    self._connection.executemany(sql, rows)
                if commits:
                    run("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    run("ROLLBACK")
                raise

    def check(self) -> None:
        """Raise `SpillError` if the file is damaged."""
        (problem,) = next(self.rows("PRAGMA integrity_check(1)"))
        if problem != "ok":
            raise self.damage_error(problem.splitlines()[-1])

    def get(self, name: str) -> Any:
        """Read the JSON value of `name`; None if it is missing."""
        rows = list(self.rows("SELECT value, crc FROM state WHERE name=?", [name]))
        if not rows:
            return None
        value, crc = rows[0]
        if checksum(name, value) != crc:
            raise self.damage_error(f"the value of {name}")
        return json.loads(value)

    def put(self, name: str, value: Any, *, commits: bool = True) -> None:
        """Store a JSON value under a name.

        Without `commits`, it is committed with the next chunk or value. A session that is killed
        before then stores nothing, and the next session repeats the work.
        """
        text = json.dumps(value)
        sql = "INSERT OR REPLACE INTO state (name, value, crc) VALUES (?, ?, ?)"
        self.run((sql, [(name, text, checksum(name, text))]), commits=commits)


FORMAT = 15
"""Version of the index and the block files."""

SEQUENCE_BITS = 32
"""Shift of a table's sequence in chunk numbers: posts count from 0, table n from n << 32."""

MADE_CHUNK = 1 << SEQUENCE_BITS - 1
"""Number of the chunk that is made after a table was read, above those of all its chunks."""

KEPT = 1 << 8
"""Added to the sequence of a table for chunks whose rows wait until the posts are known."""


def _block_file(folder: str, chunk: int, run: int) -> str:
    sequence, number = chunk >> SEQUENCE_BITS, chunk & ((1 << SEQUENCE_BITS) - 1)
    table = f"table{sequence}-" if sequence else ""
    return os.path.join(folder, f"{table}{number:06}-{run}.blocks")


class Spill:
    """The spill of one conversion, in a separate folder."""

    def __init__(self, folder: str | Path) -> None:
        """Open the spill in `folder`, or create it.

        Raises:
            SpillTakenError: Another process uses the spill, or the folder has other files.
            SpillError: The folder or the index cannot be created or used.
        """
        self.folder = Path(folder)
        self._path = cache(partial(_block_file, str(self.folder)))
        self._sequences = "0"
        self._is_leaving = False
        self.budget = Budget()
        self.lock = threading.Lock()  # For several threads that read tables.
        try:
            self.folder.mkdir(exist_ok=True)
            paths = list(self.folder.iterdir())
        except OSError as error:
            raise SpillError(
                f"{self.folder}: the folder for the spill cannot be created ({error.strerror}); "
                f"choose another {flag('work_dir')}"
            ) from error
        if not all(map(is_ours, paths)):
            raise SpillTakenError(
                f"{self.folder}: is neither a spill nor empty; choose another {flag('work_dir')}"
            )
        try:
            self._database = StateDatabase(self.folder / INDEX)
        except SpillTakenError:
            raise
        except BaseException:
            if not paths:
                clear(self.folder)
            raise
        self.get, self.put = self._database.get, self._database.put
        self._run: int = self.get("run") or 0

    def close(self) -> None:
        """Close the spill, so that another process can resume it."""
        self._database.close()

    def is_begun(self) -> bool:
        """Whether the spill has a chunk; also True if it is damaged or being removed."""
        try:
            return bool(list(self._database.rows("SELECT chunk FROM chunks LIMIT 1")))
        except SpillError:  # The spill is damaged, or is being removed.
            return True

    def is_done(self) -> bool:
        """Whether the conversion was completed, so that there is nothing to resume."""
        return self._is_leaving

    def remove(self) -> None:
        """Close and delete the spill, the index first: without it, nothing is resumed."""
        self._is_leaving = True
        self.close()
        clear(self.folder)

    def new_file(self, chunk: int) -> str:
        """Choose a path that no session has used yet, for the blocks of a chunk."""
        return self._path(chunk, self._run)

    def merge_only(self, *sequences: int) -> None:
        """Restrict `buckets` and `blocks` to the tables with these sequences."""
        self._sequences = ",".join(map(str, sequences))

    def temporary(self, number: int) -> str:
        """Choose a path for the result of a second-pass task with this number."""
        return str(self.folder / f"{TEMPORARY}{number}")

    def start_run(self) -> None:
        """Begin a session: remove the files that earlier sessions did not commit."""
        self._run += 1
        self.put("run", self._run)
        committed = {*starmap(self._path, self._database.rows("SELECT chunk, run FROM chunks"))}
        for path in list(self.folder.glob("*.blocks")):
            if str(path) not in committed:
                path.unlink(missing_ok=True)
        self.remove_temporary()

    def remove_temporary(self) -> None:
        """Remove unused results of second-pass tasks."""
        for path in self.folder.glob(f"{TEMPORARY}*"):
            path.unlink(missing_ok=True)

    def add_chunk(
        self,
        chunk: int,
        blocks: Iterable[tuple[int | None, bytes | bytearray, bytes | bytearray]],
        tally: ChunkTally,
    ) -> None:
        """Write blocks, given by bucket, keys and JSON, and commit them as a chunk.

        The tally is read after the blocks.
        """
        with BlockWriter(self.new_file(chunk), self.budget.grant(chunk, 0)) as writer:
            for block in blocks:
                writer.write(*block)
        self.commit(chunk, writer.blocks, tally)

    def commit(
        self, chunk: int, blocks: list[Block], tally: ChunkTally, *, instead_of: int | None = None
    ) -> None:
        """Add a finished chunk and its blocks to the index, in one transaction.

        Args:
            chunk: Number of the chunk.
            blocks: Positions of the blocks in the file that `new_file` chose.
            tally: Counts of the chunk.
            instead_of: Number of a chunk to replace; its file is deleted.
        """
        self.budget.settle(chunk, blocks)
        former = [] if instead_of is None else self.read_blocks(instead_of)
        size, text = os.path.getsize(self.new_file(chunk)), json.dumps(tally.as_dict())
        row = (chunk, self._run, size, text, checksum(chunk, self._run, size, text, blocks))
        self._database.run(
            ("INSERT INTO chunks VALUES (?, ?, ?, ?, ?)", [row]),
            (
                f"INSERT INTO blocks (chunk, number, run, {_BLOCK}) VALUES (?, ?, ?{', ?' * 8})",
                [(chunk, number, self._run, *block) for number, block in enumerate(blocks)],
            ),
            *(
                (f"DELETE FROM {name} WHERE chunk = ?", [(instead_of,)])
                for name in ("chunks", "blocks")
                if instead_of is not None
            ),
        )
        self.budget.give_back(block for _, block in former)
        for former_path in {path for path, _ in former}:
            Path(former_path).unlink(missing_ok=True)

    def check(self) -> None:
        """Check the index of an earlier session, and the sizes of the files.

        The blocks themselves are checked when they are read.

        Raises:
            SpillError: A file was changed, shortened or is missing.
        """
        self._database.check()
        chunks = {row[0]: row for row in self._database.rows("SELECT * FROM chunks")}
        rows = self._database.rows(f"SELECT chunk, {_BLOCK} FROM blocks ORDER BY chunk, number")
        for chunk, of_chunk in groupby(rows, itemgetter(0)):
            self._check_chunk(
                chunks.pop(chunk, (chunk, 0, 0, "", 0)), [Block(*row[1:]) for row in of_chunk]
            )
        for row in chunks.values():
            self._check_chunk(row, [])

    def _check_chunk(self, row: tuple[Any, ...], blocks: list[Block]) -> None:
        chunk, run, size, tally, crc = row
        if checksum(chunk, run, size, tally, blocks) != crc:
            raise self._database.damage_error(f"chunk {chunk}")
        path = Path(self._path(chunk, run))
        actual = path.stat().st_size if path.exists() else -1
        if actual != size:
            state = "is missing" if actual < 0 else f"has {actual:,} bytes instead of {size:,}"
            raise SpillError(f"{path}: this file of the spill {state}; {run_again()}")

    def tallies(self, *sequences: int) -> dict[int, ChunkTally]:
        """Return the tally of each committed chunk with one of these sequences, in order."""
        chosen = ",".join(map(str, sequences or (0,)))
        sql = f"SELECT chunk, tally FROM chunks WHERE chunk >> {SEQUENCE_BITS} IN ({chosen})"
        rows = self._database.rows(f"{sql} ORDER BY chunk")
        return {chunk: ChunkTally.from_dict(json.loads(tally)) for chunk, tally in rows}

    def index(self) -> None:
        """Index the blocks by bucket; called once, after the last chunk."""
        self._database.run((_BLOCKS_BY_BUCKET, [()]), commits=False)

    def buckets(self) -> list[tuple[int, int]]:
        """Return the buckets to merge in ascending order, each with the size of its JSON."""
        return [
            (bucket, size)
            for bucket, size in self._database.rows(
                "SELECT bucket, sum(raw_size) FROM blocks "
                f"WHERE bucket IS NOT NULL AND {self._is_merged()} GROUP BY bucket ORDER BY bucket"
            )
        ]

    def blocks(self, bucket: int | None) -> list[tuple[str, Block]]:
        """Return the blocks of a bucket in the order of the dump, each with its file.

        For None, these are the blocks without a bucket of all tables.
        """
        return self._blocks(f"bucket IS ? AND (bucket IS NULL OR {self._is_merged()})", bucket)

    def read_blocks(self, chunk: int) -> list[tuple[str, Block]]:
        """Return the blocks of a chunk in order, each with its file."""
        return self._blocks("chunk = ?", chunk)

    def pairs(self) -> Iterator[bytes]:
        """Yield the pairs of question id and post id of each chunk of posts."""
        with BlockReader() as reader:
            for chunk in self.files(0):
                for path, block in self._blocks("chunk = ? AND bucket IS NULL", chunk):
                    if pairs := reader.read_keys(path, block):  # Strays have none, so skip them.
                        yield pairs

    def files(self, sequence: int) -> dict[int, str]:
        """Return the path of the file of each committed chunk of a table, by chunk number."""
        sql = f"SELECT chunk, run FROM chunks WHERE chunk >> {SEQUENCE_BITS} = ? ORDER BY 1"
        rows = self._database.rows(sql, [sequence])
        return {chunk: self._path(chunk, run) for chunk, run in rows}

    def _is_merged(self) -> str:
        return f"chunk >> {SEQUENCE_BITS} IN ({self._sequences})"

    def _blocks(self, condition: str, value: int | None) -> list[tuple[str, Block]]:
        sql = f"SELECT chunk, run, {_BLOCK} FROM blocks WHERE {condition} ORDER BY chunk, number"
        rows = self._database.rows(sql, [value])
        return [(self._path(chunk, run), Block(*block)) for chunk, run, *block in rows]

    def size(self) -> int:
        """Return the size of the spill on disk, in bytes."""
        return sum(path.stat().st_size for path in self.folder.iterdir())

    def block_sizes(self) -> tuple[int, int]:
        """Return the bytes on disk in uncompressed blocks, and those in compressed blocks."""
        sql = "SELECT packed, sum(keys_size + json_size) FROM blocks GROUP BY packed"
        sizes: dict[int, int] = dict(self._database.rows(sql))
        return sizes.get(0, 0), sizes.get(1, 0)
