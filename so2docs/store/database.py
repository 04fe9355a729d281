"""An SQLite file that belongs to one process at a time, and says what is wrong in plain words.

The file is opened in exclusive mode: its lock ends with the process that
holds it, however that ends. SQLite has no checksums, so its rows bring their own.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from isal.isal_zlib import crc32

from so2docs.errors import DiskFullError, SpillError, SpillTakenError, flag

AGAIN = f"run the command again with {flag('restart', True)}"

_STATE = {"name": str, "value": str, "crc": int}

Row = tuple[Any, ...]


def checksum(*values: Any) -> int:
    """CRC-32 of values of JSON types, to be kept with them."""
    return crc32(json.dumps(values, default=repr).encode())


def _create(name: str, columns: dict[str, type], key: str | None) -> str:
    """The statement that makes a table."""
    kinds = {str: "TEXT", int: "INTEGER"}
    written = [
        f"[{column}] {kinds[kind]}{' PRIMARY KEY' if column == key else ''}"
        for column, kind in columns.items()
    ]
    return f"CREATE TABLE [{name}] ({', '.join(written)})"


class StateDatabase:
    """Tables, and a table `state` of named JSON values."""

    def __init__(
        self, path: Path, schema: dict[str, dict[str, type]], keys: dict[str, str]
    ) -> None:
        """Open the file, or make it with these tables.

        Args:
            path: The file; its folder is what messages name.
            schema: Columns and their types by table.
            keys: Primary keys by table.

        Raises:
            SpillError: Another process has it, it is damaged, or it has other tables.
        """
        self._folder = path.parent
        self._schema = {"state": _STATE, **schema}
        with self._translate_errors():
            self._connection = sqlite3.connect(
                path, timeout=0, isolation_level=None, check_same_thread=False
            )
        # A damaged text is for the checksum to find, not for the decoder.
        self._connection.text_factory = lambda text: text.decode(errors="replace")
        try:
            with self._translate_errors():
                self._prepare({"state": "name", **keys})
        except BaseException:
            self.close()
            raise

    def _prepare(self, keys: dict[str, str]) -> None:
        run = self._connection.execute
        run("PRAGMA page_size=32768")
        run("PRAGMA locking_mode=EXCLUSIVE")
        # Against a killed process the page cache is safe without syncing; a power cut is not
        # survived, and shows as a damaged index or a failing checksum.
        run("PRAGMA synchronous=OFF")
        run("PRAGMA journal_mode=PERSIST")
        run("BEGIN EXCLUSIVE")
        tables = {
            name: [column[1] for column in run(f"PRAGMA table_info([{name}])")]
            for (name,) in run("SELECT name FROM sqlite_master WHERE type='table'").fetchall()
        }
        if not tables:
            for name, columns in self._schema.items():
                run(_create(name, columns, keys.get(name)))
        elif tables != {name: list(columns) for name, columns in self._schema.items()}:
            raise SpillError(
                f"{self._folder}: the index of the spill was made by another program or "
                f"another version of so2docs; {AGAIN}"
            )
        if self._connection.in_transaction:
            run("COMMIT")

    def close(self) -> None:
        """Release the file, so that others can use it."""
        with suppress(sqlite3.Error):
            self._connection.close()

    def damage_error(self, problem: str) -> SpillError:
        """The error for something that is not what was written."""
        return SpillError(f"{self._folder}: the index of the spill is damaged ({problem}); {AGAIN}")

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Turn what SQLite says into what a user can act on."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            if "locked" in str(error):
                raise SpillTakenError(
                    f"{self._folder}: another so2docs is working on this conversion; "
                    "let it finish or stop it"
                ) from None
            if "full" in str(error):
                raise DiskFullError(
                    f"{self._folder}: the disk is full", retry="free some room"
                ) from error
            if "unable to open" in str(error):
                # Which it also says of a path of more than 512 bytes.
                raise SpillError(
                    f"{self._folder}: no index of the spill can be made there ({error}); "
                    f"choose another {flag('work_dir')}, with a shorter path if it is a long one"
                ) from error
            if isinstance(error, sqlite3.OperationalError):
                raise SpillError(
                    f"{self._folder}: the index of the spill cannot be used ({error})",
                    retry="check the disk",
                ) from error
            raise self.damage_error(str(error)) from error

    def rows(self, sql: str, values: Iterable[Any] = ()) -> Iterator[Row]:
        """The rows of a query, one at a time."""
        with self._translate_errors():
            # `yield from` would close the cursor of a generator that is left, perhaps too late.
            for row in self._connection.execute(sql, tuple(values)):  # noqa: UP028
                yield row

    def run(self, *statements: tuple[str, list[Row]]) -> None:
        """Run statements, each for a list of rows, in one transaction."""
        run = self._connection.execute
        with self._translate_errors():
            run("BEGIN")
            try:
                for sql, rows in statements:
                    self._connection.executemany(sql, rows)
                run("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    run("ROLLBACK")
                raise

    def check(self) -> None:
        """Raise `SpillError` if the file is not sound as a whole."""
        (problem,) = next(self.rows("PRAGMA integrity_check(1)"))
        if problem != "ok":
            raise self.damage_error(problem.splitlines()[-1])

    def get(self, name: str) -> Any:
        """A JSON value kept under `name`; None if there is none."""
        rows = list(self.rows("SELECT value, crc FROM state WHERE name=?", [name]))
        if not rows:
            return None
        value, crc = rows[0]
        if checksum(name, value) != crc:
            raise self.damage_error(f"the value of {name}")
        return json.loads(value)

    def put(self, values: dict[str, Any]) -> None:
        """Keep JSON values under their names, committed at once and together."""
        texts = {name: json.dumps(value) for name, value in values.items()}
        sql = "INSERT OR REPLACE INTO state (name, value, crc) VALUES (?, ?, ?)"
        self.run((sql, [(name, text, checksum(name, text)) for name, text in texts.items()]))
