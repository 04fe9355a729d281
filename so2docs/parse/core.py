"""The step from a slice of rows to posts: compiled where it can be, by lxml and Python otherwise.

The Python core (`rows.parse`, `posts.add`) is the reference. The compiled one takes a slice only if
every row in it is canonical, which those of published dumps are, and then does the same; the rest
goes the way of the reference. What comes out never depends on the choice.
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
from so2docs.parse.markdown import to_markdown as reference_to_markdown
from so2docs.parse.posts import Posts
from so2docs.schema import Table

problem: str | None = None
"""Why the compiled core, which is there, cannot be used; None if it can, or is not there."""

try:
    import so2docs.parse._core as _core  # noqa: PLR0402 - `from` would not tell the two apart.
except ModuleNotFoundError:  # No C compiler was there when the package was installed.
    _core = None  # type: ignore[assignment]
except ImportError as error:  # Damaged, or built for another system.
    _core, problem = None, str(error)  # type: ignore[assignment]

compiled = _core
"""The compiled core; None if it is not there, or cannot be used."""

VARIABLE = "SO2DOCS_CORE"
"""Environment variable that says what `auto` means."""


_USERS = 4
"""What the compiled core calls users, which have no kind."""

_KNOWN = frozenset({"comments", "links", "votes", "closings", "history", "history-text"})
"""Tables of which it knows the attributes."""


Added = tuple[int, int | None]
"""What the compiled core read of a slice: its number of rows, and the `Id` of the last one."""


def choose_core(requested: Core) -> Core:
    """Decide between the cores.

    Args:
        requested: What the user asks for; `auto` is what `SO2DOCS_CORE` says, and without it the
            compiled core where there is one.

    Returns:
        `python` or `compiled`.

    Raises:
        OptionError: There is no such core, or the compiled one was not built or does not load.
    """
    name, source = requested, "core"
    if requested == "auto" and (variable := os.environ.get(VARIABLE)):
        name, source = variable, VARIABLE  # type: ignore[assignment]
    if name not in get_args(Core):
        raise OptionError(f"{source} is {name!r}; it must be 'auto', 'python' or 'compiled'")
    if name == "compiled" and _core is None:
        lacking = (
            f"that core does not load ({problem}); install"
            if problem
            else "this installation has no compiled core; install a C compiler (such as gcc) and"
        )
        raise OptionError(
            f"{source} is 'compiled', but {lacking} so2docs again with pip's --force-reinstall "
            f"and --no-cache-dir, or use {flag('core', 'python')}"
        )
    return built() if name == "auto" else name


def built() -> Core:
    """The faster core of this installation, `python` or `compiled`."""
    return "python" if _core is None else "compiled"


def describe() -> str:
    """The faster core of this installation, and what is wrong with the compiled one, if it is."""
    broken = f"; the compiled one does not load: {problem}" if problem else ""
    return f"{built()} core{broken}"


def add_fast(data: bytes, posts: Posts) -> Added | None:
    """Turn a slice into posts by the compiled core.

    Args:
        data: Whole rows, from one row's start to another's.
        posts: Where they go.

    Returns:
        What was added; or None, with nothing changed, if the slice is not canonical.
    """
    added = _core.add_rows(data, posts.buckets, posts.pairs, BUCKET_BITS, _encoded(posts.reserved))
    if added is None:
        return None
    count, last_id, other_types = added
    posts.other_types.update(other_types)
    return count, last_id


def count_lines(data: bytes) -> int:
    """Number of line feeds in a slice, where they are far apart."""
    if _core is not None:
        return _core.count_lines(data)
    count, at = 0, -1
    while (at := data.find(b"\n", at + 1)) >= 0:  # Four times as fast as `data.count`.
        count += 1
    return count


def read_users(data: bytes) -> tuple[Added, bytes, bytes] | None:
    """Turn a slice of users into JSON by the compiled core.

    Args:
        data: Whole rows, from one row's start to another's.

    Returns:
        What was read, a key for each user with the `Id` and the size of the JSON, and the JSON; or
        None if the slice is not canonical.
    """
    return _read_table(data, _USERS)


def read_records(data: bytes, table: Table) -> tuple[Added, bytes, bytes] | None:
    """Turn a slice of comments, links or votes into records by the compiled core.

    Args:
        data: Whole rows, from one row's start to another's.
        table: The table that the slice belongs to.

    Returns:
        What was read, a key for each record, and the JSON; or None if the slice is not canonical,
        or the core does not know the table.
    """
    return _read_table(data, table.kind) if table.name in _KNOWN else None


def read_columns(
    data: bytes, names: tuple[bytes, ...], kinds: bytes
) -> tuple[int, int | None, list[tuple[int, bytes, bytes, bytes, bytes]]] | None:
    """Turn a slice of any table into columns; see `_core.read_columns`."""
    return _core.read_columns(data, names, kinds)


def to_markdown(body: str) -> str:
    """The Markdown of a body, by the compiled core unless only the reference knows it."""
    markdown = _core.to_markdown(body)
    return reference_to_markdown(body) if markdown is None else markdown


def file_records(
    slices: Iterable[tuple[bytes, bytes]],
    posts: Posts,
    find_questions: Callable[[array[int], array[int]], None],
) -> None:
    """Put what `read_records` returned of some slices into the buckets of their questions.

    Args:
        slices: Keys and JSON of each, in the order of the dump.
        posts: Where the records go.
        find_questions: Replaces, for some post ids, integers by the question ids of those that are
            in the dump.
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
        _core.file_records(keys, json, questions, posts.buckets, BUCKET_BITS)
        at = end


def find_values(
    firsts: array[int],
    keys: array[int],
    values: array[int],
    get_block: Callable[[int], array[int]],
) -> None:
    """Look ids up in a map on disk; see `_core.find_values`."""
    _core.find_values(firsts, keys, values, get_block)


def _read_table(data: bytes, kind: int) -> tuple[Added, bytes, bytes] | None:
    table = _core.read_table(data, kind)
    if table is None:
        return None
    count, last_id, keys, json = table
    return (count, last_id), keys, json


@lru_cache(maxsize=4)
def _encoded(reserved: frozenset[str]) -> tuple[bytes, ...]:
    return tuple(name.encode() for name in sorted(reserved))
