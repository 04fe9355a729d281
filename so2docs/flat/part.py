"""A part of a site: the rows of all tables that belong to selected questions.

A few passes over the tables find the ids of the part before any table is written. The part has no
references to rows outside it, except references that are broken in the dump itself.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from so2docs.dump.opening import Catalog
from so2docs.dump.tables import find_dump_tables
from so2docs.flat.columns import BatchVisitor, RowSelection, TableColumns, read_ids
from so2docs.options.table import PartFilters
from so2docs.parse.filters import (
    Condition,
    Sample,
    answer_conditions,
    post_conditions,
    question_conditions,
    similar_tags,
)
from so2docs.progress import log
from so2docs.report import explain_small_sample, explain_unknown_tags
from so2docs.scan.table import TableReader
from so2docs.schema import DUMP, Table

Arrays = dict[str, Any]
"""Arrow arrays of ids or texts, by name."""

_QUESTION, _ANSWER = 1, 2
_WIKIS = (4, 5)
_USERS = ("OwnerUserId", "LastEditorUserId")


Look = Callable[[Any], Arrays]
"""A function that extracts arrays from the Arrow table of a chunk."""


class _PartVisitor(BatchVisitor):
    """Extracts Arrow arrays from the rows of a chunk."""

    def __init__(self, table: Table, look: Look, **settings: Any) -> None:
        super().__init__(table, **settings)
        self._look = look

    def result(self) -> Arrays:
        """Return the arrays extracted from the chunk, by name."""
        return {name: _joined([array]) for name, array in self._look(self.rows()).items()}


def find_part(
    source: str,
    filters: PartFilters,
    *,
    present: Collection[str],
    written: Collection[str],
    reader: TableReader,
    work: str,
    chunk_bytes: int,
    restored: str | None = None,
    **settings: Any,
) -> dict[str, RowSelection]:
    """Find the ids of the rows of a part, and make row filters from them.

    Args:
        source: The dump.
        filters: Filters of the questions and answers of the part.
        present: Names of the tables of the dump.
        written: Names of the tables to write.
        reader: Reader of the tables.
        work: Folder for temporary files and for id files, which the row filters read.
        chunk_bytes: Size of a chunk in bytes.
        restored: The `Posts.xml` of a date, in place of that of the dump.
        settings: Other arguments of `BatchVisitor`.

    Returns:
        The row filter of each table to write, by name.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    def scan(name: str, look: Look, receive: Look = dict) -> Arrays:
        """Read a table; return the arrays that `look` extracts, joined over all chunks, by name.

        `receive` may take the arrays of a chunk out, so that memory does not depend on the dump.
        """
        table = DUMP[name]
        no_rows = look(TableColumns(table).schema.empty_table())
        parts = {key: [array] for key, array in no_rows.items()}
        visit = partial(_PartVisitor, table, look, **settings)
        with Catalog() as catalog:
            path = restored if name == "posts" and restored is not None else source
            (file,) = find_dump_tables(path, (name,), catalog)
            with reader.open(file, lambda _: visit, work, chunk_bytes) as (_, results):
                for result in results:
                    for key, array in receive(result.value).items():
                        parts[key].append(array)
        return {key: _joined(arrays) for key, arrays in parts.items()}

    def save(name: str, *ids: Any) -> str:
        path = os.path.join(work, f"ids-{name}")
        rows = pa.table({"ids": pc.unique(_joined(ids).drop_null())})
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, rows.schema) as stream:
            stream.write_table(rows)
        return path

    questions, problem = _select_questions(scan, filters)
    posts = scan("posts", partial(_find_posts, filters, save("questions", questions)))
    left_out = posts.pop("LeftOut")
    is_question = pc.equal(posts["Id"], posts["QuestionId"])
    if problem or not pc.any(is_question).as_py():
        log.warning("%s: %s", source, problem or "no question passed all filters")
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
    import pyarrow as pa
    import pyarrow.compute as pc

    size = filters.sample_size
    sample = None if size is None else Sample(size)
    has_lists = (filters.keep_users, filters.keep_posts) != (None, None)

    def sample_chunk(arrays: Arrays) -> Arrays:
        if sample is not None and not has_lists:
            sample.add(arrays.pop("questions").to_pylist())
        return arrays

    seeds = scan("posts", partial(_find_questions, filters), sample_chunk)
    problem = explain_unknown_tags(filters.tags, Counter(seeds.pop("similar").to_pylist()))
    questions, *matches = seeds.values()
    for ids in matches:
        questions = questions.filter(pc.is_in(questions, value_set=ids))
    if sample is not None and size is not None:
        sample.add(questions.to_pylist())
        questions = pa.array(sample.ids(), pa.int64())
        if 0 < len(questions) < size:
            problem = problem or explain_small_sample(len(questions), size)
    return questions, problem


def _kept(name: str, paths: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Return pairs of a column that decides which rows of a table are kept, and its id file."""
    if name in paths:
        return (("Id", paths[name]),)
    references = DUMP[name].references
    target = "posts" if "posts" in references.values() else "users"
    return tuple((column, paths[to]) for column, to in references.items() if to == target)


def _joined(arrays: Iterable[Any]) -> Any:
    """Join Arrow arrays, which may be chunked, into one array."""
    import pyarrow as pa

    return pa.concat_arrays(
        array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array for array in arrays
    )


def _question_ids(posts: Any) -> Any:
    """Compute the question id of each post; null for posts that are not questions or answers."""
    import pyarrow.compute as pc

    kinds = posts["PostTypeId"]
    of_answers = pc.if_else(pc.equal(kinds, _ANSWER), posts["ParentId"], None)
    return pc.if_else(pc.equal(kinds, _QUESTION), posts["Id"], of_answers)


def _filter(posts: Any, conditions: Iterable[Condition]) -> Any:
    """Return the posts that fulfil all conditions."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for condition in conditions:
        values = posts[condition.attribute]
        if pa.types.is_timestamp(values.type):
            values = pc.cast(values, pa.int64())
        posts = posts.filter(pa.array(map(condition.passes, values.to_pylist()), pa.bool_()))
    return posts


def _find_questions(filters: PartFilters, posts: Any) -> Arrays:
    """Find the ids of the questions that pass each filter, and tags similar to those requested."""
    import pyarrow as pa
    import pyarrow.compute as pc

    question_ids = _question_ids(posts)
    questions = posts.filter(pc.equal(posts["PostTypeId"], _QUESTION))
    similar: list[str] = []
    if filters.tags:
        find_similar = similar_tags(filters.tags)
        similar = [tag for tags in questions["Tags"].to_pylist() for tag in find_similar(tags)]
    arrays = {"similar": pa.array(similar, pa.string())}
    lists = (("OwnerUserId", filters.keep_users), ("Id", filters.keep_posts))
    conditions = question_conditions(filters) + post_conditions(filters)
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
    import pyarrow as pa
    import pyarrow.compute as pc

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
    import pyarrow.compute as pc

    kept = tags.filter(pc.is_in(tags["TagName"], value_set=read_ids(path)))
    return {"Id": kept["Id"], "Wiki": _joined([kept["ExcerptPostId"], kept["WikiPostId"]])}


def _find_users(path: str, rows: Any) -> Arrays:
    """Find the ids of the users in the rows that belong to the posts in an id file."""
    import pyarrow.compute as pc

    return {"UserId": rows.filter(pc.is_in(rows["PostId"], value_set=read_ids(path)))["UserId"]}
