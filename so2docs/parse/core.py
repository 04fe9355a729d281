"""Turn slices of rows into posts: with the compiled core if possible, else with lxml and Python.

The Python core (`rows.parse`, `posts.add`) is the reference. The compiled core accepts a slice only
if all of its rows are canonical, as in published dumps; the reference parses other slices. Both
produce the same records.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import get_args

from so2docs.errors import OptionError, flag
from so2docs.options.choices import Core
from so2docs.parse.keys import BUCKET_BITS, KEY, as_bytes, integers
from so2docs.parse.posts import RecordBuffer
from so2docs.progress import log
from so2docs.schema import TABLES, Table

FUNCTIONS = frozenset({
    "add_rows", "add_sizes", "answer_ids", "contains", "count_lines", "count_votes", "decode_bzip2",
    "decode_lzma2", "file_records", "find_bzip2", "find_objects", "find_values", "join_records",
    "new_bzip2", "new_lzma2", "read_bzip2", "read_columns", "read_lzma2", "read_table",
    "select_records", "sort_records", "to_markdown", "to_text", "user_ids",
})  # fmt: skip
"""Functions that the compiled core must have; a core built for a different version of so2docs may
lack some of them."""

problem: str | None = None
"""The reason why the installed compiled core cannot be used; None if it can be used, or if no
compiled core is installed."""

try:
    # `from` would raise a plain ImportError for a missing module too.
    import so2docs.parse._core as _core  # noqa: PLR0402
except ModuleNotFoundError:  # The package was installed without a C compiler.
    _core = None  # type: ignore[assignment]
except ImportError as error:  # The module is damaged, or built for another system.
    _core, problem = None, str(error)  # type: ignore[assignment]
else:
    if missing := sorted(FUNCTIONS - set(dir(_core))):
        _core = None  # type: ignore[assignment]
        problem = f"it belongs to another version of so2docs and lacks {', '.join(missing)}"

compiled = _core
"""The compiled core; None if it is not installed, or cannot be used."""

VARIABLE = "SO2DOCS_CORE"
"""Environment variable that names the core to use for `auto`."""


_NOT_BUILT = "this installation has no compiled core; install a C compiler (such as gcc), then "
_REINSTALL = "reinstall so2docs with pip's --force-reinstall and --no-cache-dir"

_TABLES = ("comments", "links", "votes", "closings", "history", "history-text")
_KINDS = {"users": 4} | {name: TABLES[name].kind for name in _TABLES}
"""Numbers of the tables in `_core.read_table`; the core cannot parse other tables."""


Added = tuple[int, int | None]
"""Number of rows in a slice, and the `Id` of the last row."""


def choose_core(requested: Core) -> Core:
    """Choose the core to use.

    Args:
        requested: Core that the user requests; `auto` means the value of `SO2DOCS_CORE` or, without
            this variable, the compiled core if it is installed.

    Returns:
        `python` or `compiled`.
    """
    name, source = requested, "core"
    if requested == "auto" and (variable := os.environ.get(VARIABLE)):
        name, source = variable, VARIABLE  # type: ignore[assignment]
    if name not in get_args(Core):
        raise OptionError(f"{source} is {name!r}; it must be 'auto', 'python' or 'compiled'")
    if name == "compiled" and _core is None:
        lacking = f"that core cannot be used ({problem}); " if problem else _NOT_BUILT
        raise OptionError(
            f"{source} is 'compiled', but {lacking}{_REINSTALL}, or use {flag('core', 'python')}"
        )
    if name == "auto":
        _explain_python(_core is None, problem)
    return built() if name == "auto" else name


@lru_cache(maxsize=1)
def _explain_python(is_used: bool, problem: str | None) -> None:
    """Say once why the slower Python core is used, and how to get the compiled core."""
    from so2docs.processes.worker import in_worker  # Slow to import.

    if in_worker.is_set():
        return
    if problem is not None:
        log.warning(
            "the compiled core cannot be used (%s), so the slower Python core is used; %s",
            problem,
            _REINSTALL,
        )
    elif is_used:
        log.info("%s%s; until then, the slower Python core is used", _NOT_BUILT, _REINSTALL)


def built() -> Core:
    """Return the faster available core, `python` or `compiled`."""
    return "python" if _core is None else "compiled"


def describe() -> str:
    """Name the faster usable core, and say why an installed compiled core cannot be used."""
    broken = f"; the compiled one cannot be used: {problem}" if problem else ""
    return f"{built()} core{broken}"


def add_fast(data: bytes, buffer: RecordBuffer) -> Added | None:
    """Turn a slice into posts with the compiled core.

    Returns:
        Number of rows and last `Id`; None, with `buffer` unchanged, if the slice is not canonical.
    """
    added = _core.add_rows(
        data, buffer.buckets, buffer.pairs, BUCKET_BITS, _encoded(buffer.reserved)
    )
    if added is None:
        return None
    count, last_id, other_types, *days = added
    buffer.other_types.update(other_types)
    buffer.add_days(*days)
    return count, last_id


def count_lines(data: bytes) -> int:
    """Count the line feeds in `data`."""
    return data.count(b"\n") if _core is None else _core.count_lines(data)


def contains(data: bytes | bytearray, text: bytes, size: int | None = None) -> bool:
    """Whether a text occurs in the first `size` bytes, or in all; several times as fast as `in`."""
    size = len(data) if size is None else size
    return data.find(text, 0, size) >= 0 if _core is None else _core.contains(data, size, text)


def read_records(data: bytes, table: Table) -> tuple[Added, bytes, bytes] | None:
    """Turn a slice of a table other than posts into records with the compiled core.

    Returns:
        Number of rows and last `Id`, a key for each record (for users, `Id` and size of the JSON),
        and the JSON; None if the slice is not canonical, or the core cannot parse the table.
    """
    kind = _KINDS.get(table.name)
    records = None if kind is None else _core.read_table(data, kind)
    if records is None:
        return None
    count, last_id, keys, json = records
    return (count, last_id), keys, json


def file_records(
    slices: Iterable[tuple[bytes, bytes]],
    buffer: RecordBuffer,
    find_questions: Callable[[array[int], array[int]], None],
) -> None:
    """Add the records made by `read_records` to the buckets of their questions.

    Args:
        slices: Keys and JSON of each slice, in the order of the dump.
        buffer: The buffer to add the records to.
        find_questions: Called with an array of post ids and a copy of it; replaces each id in the
            copy by the question id if the post is in the dump.
    """
    slices = list(slices)
    post_ids = array("q")
    for keys, _ in slices:
        post_ids += integers(keys)[1 :: KEY.size // 8]
    question_ids = array("q", post_ids)
    find_questions(post_ids, question_ids)
    at = 0
    for keys, json in slices:
        end = at + len(keys) // KEY.size
        questions = as_bytes(question_ids[at:end])
        _core.file_records(keys, json, questions, buffer.buckets, BUCKET_BITS)
        at = end


@lru_cache(maxsize=4)
def _encoded(reserved: frozenset[str]) -> tuple[bytes, ...]:
    return tuple(name.encode() for name in sorted(reserved))
