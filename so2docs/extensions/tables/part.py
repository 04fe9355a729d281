"""The rows to write: those of a part of a site, without those of dropped users and posts.

A part has the rows of all tables that belong to selected questions. A few passes over the tables
find the ids of its rows, and the ids of dropped posts, before any table is written. The tables have
no references to rows that are left out, except references that are broken in the dump itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from so2docs.dump.source import Source
from so2docs.errors import without_secrets
from so2docs.extensions.options import TableOptions
from so2docs.extensions.tables.columns import Batch, TableColumns
from so2docs.extensions.tables.restored import RestoredPosts
from so2docs.extensions.tables.selection import RowSelection, find_existence, read_ids
from so2docs.extensions.tables.visitors import BatchVisitor
from so2docs.options.table import PartFilters
from so2docs.parse.filters import (
    Condition,
    Sample,
    answer_conditions,
    post_conditions,
    question_conditions,
)
from so2docs.parse.opt_outs import unpack_ids
from so2docs.progress import log
from so2docs.report import explain_few
from so2docs.scan.table import TableReader
from so2docs.schema import DUMP, Table

Arrays = dict[str, Any]
"""Arrow arrays of ids or texts, by name."""

_QUESTION, _ANSWER = 1, 2
_WIKIS = (4, 5)
_USERS = ("OwnerUserId", "LastEditorUserId")
_OPTIONAL_REFERENCES = ("AcceptedAnswerId", "ExcerptPostId", "WikiPostId")

Look = Callable[[Any], Arrays]
"""A function that extracts arrays from the Arrow table of a chunk."""


class _PartVisitor(BatchVisitor):
    """Extracts Arrow arrays from the rows of a chunk."""

    def __init__(self, table: Table, options: TableOptions, look: Look) -> None:
        super().__init__(table, options)
        self._look = look
        self._batches: list[Any] = []

    def add_batch(self, batch: Batch) -> None:
        """Keep the rows of a slice."""
        self._batches.append(batch.arrow())

    def result(self) -> Arrays:
        """Return the arrays extracted from the chunk, by name."""
        rows = pa.Table.from_batches(self._batches, self.columns.schema)
        return {name: _joined([array]) for name, array in self._look(rows).items()}


@dataclass(frozen=True, slots=True)
class Scanner:
    """Reads tables of a dump to find ids.

    Attributes:
        source: The dump.
        options: The options.
        reader: Reader of the tables.
        work: Folder for temporary files and for id files, which the row filters read.
        chunk_bytes: Size of a chunk in bytes.
        restored: The posts of a date, in place of those of the dump.
    """

    source: Source
    options: TableOptions
    reader: TableReader
    work: str
    chunk_bytes: int
    restored: RestoredPosts | None = None

    def scan(self, name: str, look: Look, receive: Look = dict) -> Arrays:
        """Read a table; return the arrays that `look` extracts, joined over all chunks, by name.

        `receive` may take the arrays of a chunk out, so that memory does not depend on the dump.
        """
        table = DUMP[name]
        no_rows = look(TableColumns(table).schema.empty_table())
        parts = {key: [array] for key, array in no_rows.items()}
        visit = partial(_PartVisitor, table, self.options, look)
        with ExitStack() as stack:
            if self.restored is not None and name == "posts":
                values = (value for _, value in self.restored.read(self.reader, lambda _: visit))
            else:
                (file,) = self.source.find_tables([name])
                opened = self.reader.open(file, lambda _: visit, self.work, self.chunk_bytes)
                values = (result.value for result in stack.enter_context(opened)[1])
            for value in values:
                for key, array in receive(value).items():
                    parts[key].append(array)
        return {key: _joined(arrays) for key, arrays in parts.items()}

    def save(self, name: str, *ids: Any) -> str:
        """Write arrays of ids to a file, each id once; return its path."""
        path = os.path.join(self.work, f"ids-{name}")
        rows = pa.table({"ids": pc.unique(_joined(ids).drop_null())})
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, rows.schema) as stream:
            stream.write_table(rows)
        return path


def select_rows(
    scanner: Scanner, present: Collection[str], written: Collection[str]
) -> dict[str, RowSelection]:
    """Make the row filter of each table to write, by name; some filters need ids from the dump.

    Args:
        scanner: Reader of the dump.
        present: Names of the tables of the dump.
        written: Names of the tables to write.
    """
    options = scanner.options
    dropped = _find_dropped(scanner, written) if options.has_drops else {}
    if options.has_part:
        part, existence = _find_part(scanner, present, written), find_existence(options)
        selections = {name: replace(rows, existence=existence) for name, rows in part.items()}
    else:
        selections = dict.fromkeys(written, RowSelection.of_dates(options))
    return {name: _without(selections[name], name, dropped) for name in written}


def _find_dropped(scanner: Scanner, written: Collection[str]) -> dict[str, str]:
    """Find the ids of the posts to leave out.

    Returns:
        Paths of files with ids, by table: `posts` has listed posts, posts by listed users and the
        answers to both; `history` has posts that are not in the dump and that listed users edited.
        Other events of these posts may repeat their text.
    """
    options = scanner.options
    no_drops = replace(options, drop_users=None, drop_posts=None)
    everything = replace(scanner, options=no_drops, restored=None)
    users, ids = (
        pa.array(sorted(unpack_ids(listed)), pa.int64())
        for listed in (options.drop_users, options.drop_posts)
    )
    edited = pa.array([], pa.int64())
    if "history" in written and not options.has_part and len(users):
        edited = pc.unique(everything.scan("history", partial(_find_edited, users))["PostId"])
    edited_path = scanner.save("edited", edited)
    for _ in range(2):  # The second pass finds the answers to the questions of listed users.
        look = partial(_find_posts_by, users, scanner.save("dropped", ids), edited_path)
        found = everything.scan("posts", look)
        ids = _joined([ids, found["Id"]])
    missing = edited.filter(pc.invert(pc.is_in(edited, value_set=found["Edited"])))
    return {"posts": scanner.save("dropped", ids), "history": scanner.save("missing", missing)}


def _find_edited(users: Any, events: Any) -> Arrays:
    """Find the ids of the posts that users edited."""
    return {"PostId": events["PostId"].filter(pc.is_in(events["UserId"], value_set=users))}


def _find_posts_by(users: Any, path: str, edited: str, posts: Any) -> Arrays:
    """Find the ids of posts by users, of the posts in an id file, and of the answers to these.

    `Edited` contains the ids of all posts in another file.
    """
    found = pc.is_in(posts["OwnerUserId"], value_set=users)
    for column in ("Id", "ParentId"):
        found = pc.or_(found, pc.is_in(posts[column], value_set=read_ids(path)))
    is_edited = pc.is_in(posts["Id"], value_set=read_ids(edited))
    return {"Id": posts["Id"].filter(found), "Edited": posts["Id"].filter(is_edited)}


def _without(selection: RowSelection, name: str, dropped: dict[str, str]) -> RowSelection:
    """Leave the dropped posts and their rows out of a table, and clear other references to them."""
    if not dropped:
        return selection
    references = [column for column, to in DUMP[name].references.items() if to == "posts"]
    keys = [column for column in references if column not in _OPTIONAL_REFERENCES]
    keys += ["Id"] if name == "posts" else []
    left_out = tuple((column, dropped["posts"]) for column in keys)
    if name == "history":
        left_out += (("PostId", dropped["history"]),)
    cleared = tuple((column, dropped["posts"]) for column in references if column not in keys)
    return replace(selection, left_out=left_out, cleared=selection.cleared + cleared)


def _find_part(
    scanner: Scanner, present: Collection[str], written: Collection[str]
) -> dict[str, RowSelection]:
    """Find the ids of the rows of a part, and make row filters from them; see `select_rows`."""
    scan, save, filters = scanner.scan, scanner.save, scanner.options
    questions, problem = _select_questions(scan, filters)
    posts = scan("posts", partial(_find_posts, filters, save("questions", questions)))
    left_out = posts.pop("LeftOut")
    is_question = pc.equal(posts["Id"], posts["QuestionId"])
    if problem or not pc.any(is_question).as_py():
        said = problem or "no question passed all filters"
        log.warning("%s: %s", without_secrets(scanner.source.path), said)
    has_question = pc.is_in(posts["QuestionId"], value_set=posts["Id"].filter(is_question))
    posts_of_part = [posts["Id"].filter(has_question)]
    users = [posts[name].filter(has_question) for name in _USERS]
    paths = {}
    if "tags" in present:
        tags = scan("tags", partial(_find_tags, save("tag-names", posts["Tags"])))
        is_used = pc.is_in(posts["Wiki"], value_set=tags["Wiki"])
        posts_of_part.append(posts["Wiki"].filter(is_used))
        users += [posts[f"Wiki{name}"].filter(is_used) for name in _USERS]
        paths["tags"] = save("tags", tags["Id"])
    paths["posts"] = save("posts", *posts_of_part)
    if not {"users", "badges"}.isdisjoint(written):
        for name in present:
            if name not in paths and {*DUMP[name].references.values()} == {"posts", "users"}:
                users.append(scan(name, partial(_find_users, paths["posts"]))["UserId"])
    paths["users"] = save("users", *users)
    selections = {name: RowSelection(kept=_kept(name, paths)) for name in written}
    if "posts" in selections and len(left_out):
        cleared = (("AcceptedAnswerId", save("left-out", left_out)),)
        selections["posts"] = replace(selections["posts"], cleared=cleared)
    return selections


def _select_questions(scan: Callable[..., Arrays], filters: PartFilters) -> tuple[Any, str]:
    """Return the ids of the questions that pass the filters, and a warning if there are too few."""
    size = filters.sample_size
    sample = None if size is None else Sample(size)
    has_lists = (filters.keep_users, filters.keep_posts) != (None, None)

    def sample_chunk(arrays: Arrays) -> Arrays:
        if sample is not None and not has_lists:
            sample.add(arrays.pop("questions").to_pylist())
        return arrays

    seeds = scan("posts", partial(_find_questions, filters), sample_chunk)
    questions, *matches = seeds.values()
    for ids in matches:
        questions = questions.filter(pc.is_in(questions, value_set=ids))
    if sample is not None and size is not None:
        sample.add(questions.to_pylist())
        questions = pa.array(sample.ids(), pa.int64())
    return questions, explain_few(len(questions), size)


def _kept(name: str, paths: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Return pairs of a column that decides which rows of a table are kept, and its id file."""
    if name in paths:
        return (("Id", paths[name]),)
    references = DUMP[name].references
    target = "posts" if "posts" in references.values() else "users"
    return tuple((column, paths[to]) for column, to in references.items() if to == target)


def _joined(arrays: Iterable[Any]) -> Any:
    """Join Arrow arrays, which may be chunked, into one array."""
    return pa.concat_arrays(
        array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array for array in arrays
    )


def _question_ids(posts: Any) -> Any:
    """Compute the question id of each post; null for posts that are not questions or answers."""
    kinds = posts["PostTypeId"]
    of_answers = pc.if_else(pc.equal(kinds, _ANSWER), posts["ParentId"], None)
    return pc.if_else(pc.equal(kinds, _QUESTION), posts["Id"], of_answers)


def _filter(posts: Any, conditions: Iterable[Condition]) -> Any:
    """Return the posts that fulfil all conditions."""
    for condition in conditions:
        values = posts[condition.attribute]
        if pa.types.is_timestamp(values.type):
            values = pc.cast(values, pa.int64())
        posts = posts.filter(pa.array(map(condition.passes, values.to_pylist()), pa.bool_()))
    return posts


def _find_questions(filters: PartFilters, posts: Any) -> Arrays:
    """Find the ids of the questions that pass each filter."""
    question_ids = _question_ids(posts)
    questions = posts.filter(pc.equal(posts["PostTypeId"], _QUESTION))
    lists = (("OwnerUserId", filters.keep_users), ("Id", filters.keep_posts))
    conditions = question_conditions(filters) + post_conditions(filters)
    arrays = {}
    has_lists = any(listed is not None for _, listed in lists)
    if conditions or not has_lists or filters.sample_size is not None:
        arrays["questions"] = _filter(questions, conditions)["Id"]
    for column, listed in lists:
        if listed is not None:
            is_listed = pc.is_in(posts[column], value_set=pa.array(listed.ids, pa.int64()))
            arrays[column] = question_ids.filter(is_listed).drop_null()
    return arrays


def _find_posts(filters: PartFilters, path: str, posts: Any) -> Arrays:
    """Find posts, users and tags of the questions in an id file; also all tag wikis and users.

    `LeftOut` contains the answers to these questions that do not pass the filters.
    """
    of_questions = posts.filter(pc.is_in(_question_ids(posts), value_set=read_ids(path)))
    is_answer = pc.equal(of_questions["PostTypeId"], _ANSWER)
    answers = of_questions.filter(is_answer)
    passed = _filter(answers, answer_conditions(filters) + post_conditions(filters))
    left_out = answers["Id"].filter(pc.invert(pc.is_in(answers["Id"], value_set=passed["Id"])))
    kept = pa.concat_tables([of_questions.filter(pc.invert(is_answer)), passed])
    wikis = posts.filter(pc.is_in(posts["PostTypeId"], value_set=pa.array(_WIKIS, pa.int64())))
    return {
        "Id": kept["Id"],
        "QuestionId": _question_ids(kept),
        "LeftOut": left_out,
        "Tags": pc.list_flatten(kept["Tags"]),
        "Wiki": wikis["Id"],
        **{name: kept[name] for name in _USERS},
        **{f"Wiki{name}": wikis[name] for name in _USERS},
    }


def _find_tags(path: str, tags: Any) -> Arrays:
    """Find the ids of the tags whose names are in a file, and of the posts that describe them."""
    kept = tags.filter(pc.is_in(tags["TagName"], value_set=read_ids(path)))
    return {"Id": kept["Id"], "Wiki": _joined([kept["ExcerptPostId"], kept["WikiPostId"]])}


def _find_users(path: str, rows: Any) -> Arrays:
    """Find the ids of the users in the rows that belong to the posts in an id file."""
    return {"UserId": rows.filter(pc.is_in(rows["PostId"], value_set=read_ids(path)))["UserId"]}
