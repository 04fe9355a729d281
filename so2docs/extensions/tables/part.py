"""The rows to write: those of a part of a site, without those of dropped users and posts.

A part has the rows of all tables that belong to selected questions. A few passes over the tables
find the ids of its rows, and the ids of dropped posts, before any table is written. The tables have
no references to rows that are left out, except references that are broken in the dump itself.

Ids are sets on disk (`parse/id_set.py`), which workers map. Only the tags and their descriptions,
of which a site has few, are in memory.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import chain
from operator import and_
from typing import Any

from so2docs.domain import FIRST_FABRICATED_ID
from so2docs.extensions.tables.columns import LARGE_CHUNK_BYTES, Batch
from so2docs.extensions.tables.options import RowOptions
from so2docs.extensions.tables.restored import RestoredPosts
from so2docs.extensions.tables.selection import RowSelection
from so2docs.extensions.tables.visitors import BatchVisitor
from so2docs.options.table import PartFilters
from so2docs.parse.filters import (
    Condition,
    answer_conditions,
    choose_sample,
    post_conditions,
    question_conditions,
    sampled_id,
)
from so2docs.parse.id_set import IdSet, IdSetWriter, Pages, ids_in_pages, to_pages
from so2docs.plugin import DUMP, Source, log, without_secrets
from so2docs.report import explain_few
from so2docs.scan.table import TableReader
from so2docs.schema import Table

_QUESTION, _ANSWER = 1, 2
_WIKIS = (4, 5)
_USERS = ("OwnerUserId", "LastEditorUserId")
_OPTIONAL_REFERENCES = ("AcceptedAnswerId", "ExcerptPostId", "WikiPostId")


@dataclass(slots=True)
class Found:
    """The findings in a chunk of a table.

    Attributes:
        ids: Ids by the name of their set.
        tags: Names of tags; from the table of tags, names with the ids of tag, excerpt and wiki.
        wikis: Id, owner and last editor of each description of a tag.
    """

    ids: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    tags: set[Any] = field(default_factory=set)
    wikis: set[tuple[int, int | None, int | None]] = field(default_factory=set)

    def add(self, name: str, ids: Iterable[int | None]) -> None:
        """Add ids to the set with a name; rows without an id have None."""
        self.ids[name].update(number for number in ids if number is not None)


Look = Callable[[Batch, Found], None]
"""A function that adds the findings in a batch, of which it may drop rows."""


class _PartVisitor(BatchVisitor):
    """Finds ids in the rows of a chunk."""

    def __init__(self, table: Table, options: RowOptions, look: Look) -> None:
        super().__init__(table, options)
        self._look = look
        self._found = Found()

    def add_batch(self, batch: Batch) -> None:
        """Look at the rows of a slice."""
        self._look(batch, self._found)

    def result(self) -> tuple[dict[str, Pages], Found]:
        """Return the ids as pages, by the name of their set, and the other findings."""
        pages = {name: to_pages(ids) for name, ids in self._found.ids.items()}
        self._found.ids.clear()
        return pages, self._found


@dataclass(frozen=True, slots=True)
class Scanner:
    """Reads tables of a dump to find ids.

    Attributes:
        source: The dump.
        options: The options.
        reader: Reader of the tables.
        work: Folder for temporary files and for sets of ids, which the row filters read.
        restored: The posts of a date, in place of those of the dump.
    """

    source: Source
    options: RowOptions
    reader: TableReader
    work: str
    restored: RestoredPosts | None = None

    def scan(self, name: str, look: Look, sets: Mapping[str, IdSetWriter]) -> Found:
        """Read a table; add the ids that `look` finds to sets, and return the other findings."""
        visit = partial(_PartVisitor, DUMP[name], self.options, look)
        total = Found()
        with ExitStack() as stack:
            if self.restored is not None and name == "posts":
                values = (value for _, value in self.restored.read(self.reader, lambda _: visit))
            else:
                (file,) = self.source.find_tables([name])
                opened = self.reader.open(file, lambda _: visit, self.work, LARGE_CHUNK_BYTES)
                values = (result.value for result in stack.enter_context(opened)[1])
            for pages_by_name, found in values:
                for key, pages in pages_by_name.items():
                    sets[key].add(pages)
                total.tags |= found.tags
                total.wikis |= found.wikis
        return total

    @contextmanager
    def new_set(self, name: str) -> Iterator[IdSetWriter]:
        """Write a set of ids, which is complete after the context; each name is used once."""
        with IdSetWriter(os.path.join(self.work, f"ids-{name}")) as ids:
            yield ids
            ids.finish()

    def save(self, name: str, pages: Iterable[Pages]) -> str:
        """Write a set of ids, and return its path."""
        with self.new_set(name) as ids:
            for part in pages:
                ids.add(part)
        return ids.path


def select_rows(scanner: Scanner, written: Collection[str]) -> dict[str, RowSelection]:
    """Make the row filter of each table to write, by name; some filters need ids from the dump."""
    options = scanner.options
    dropped = _find_dropped(scanner, written) if options.has_drops else {}
    if options.has_part:
        selections = _find_part(scanner, written)
    else:
        selections = dict.fromkeys(written, RowSelection.of_dates(options))
    return {name: _without(selections[name], name, dropped) for name in written}


def _find_dropped(scanner: Scanner, written: Collection[str]) -> dict[str, str]:
    """Find the ids of the posts to leave out.

    Returns:
        Paths of sets of ids, by table: `posts` has listed posts, posts by listed users, made-up
        posts and the answers to these; `history` has posts that are not in the dump and that listed
        users edited. Other events of these posts may repeat their text.
    """
    options = scanner.options
    no_drops = replace(options, drop_users=None, drop_posts=None)
    everything = replace(scanner, options=no_drops, restored=None)
    users, dropped = (
        scanner.save(f"listed-{name}", [{} if listed is None else to_pages(listed.ids)])
        for name, listed in (("users", options.drop_users), ("posts", options.drop_posts))
    )
    with scanner.new_set("edited") as edited:
        if "history" in written and not options.has_part and options.drop_users is not None:
            everything.scan("history", partial(_find_edited, users), {"edited": edited})
    for name in ("once", "twice"):  # The second pass finds answers to questions of the first.
        with scanner.new_set(f"dropped-{name}") as posts, scanner.new_set(name) as existing:
            posts.add(dict(IdSet(dropped).pages()))
            paths = {"users": users, "posts": dropped, "edited": edited.path}
            look = partial(_find_posts_to_drop, paths, options.drop_fabricated)
            everything.scan("posts", look, {"dropped": posts, "existing": existing})
        dropped = posts.path
    known = IdSet(existing.path)
    missing = ({page: bits & ~known.page(page)} for page, bits in IdSet(edited.path).pages())
    return {"posts": dropped, "history": scanner.save("missing", missing)}


def _find_edited(users: str, events: Batch, found: Found) -> None:
    """Find the ids of the posts that users edited."""
    events.keep(IdSet(users).find(events.column("UserId")))
    found.add("edited", events.column("PostId"))


def _find_posts_to_drop(
    paths: Mapping[str, str], drops_fabricated: bool, posts: Batch, found: Found
) -> None:
    """Find the posts by users, dropped posts and the answers to these; also edited posts.

    With `drops_fabricated`, the posts that the publisher made up are found, too.
    """
    ids = posts.column("Id")
    is_edited = IdSet(paths["edited"]).find(ids)
    known = (number for number, is_known in zip(ids, is_edited, strict=True) if is_known)
    found.add("existing", known)
    known_posts = IdSet(paths["posts"])
    owners = IdSet(paths["users"]).find(posts.column("OwnerUserId"))
    parents = posts.column("ParentId")
    tests = [owners, known_posts.find(ids), known_posts.find(parents)]
    if drops_fabricated:
        tests.append([number >= FIRST_FABRICATED_ID for number in ids])
    posts.keep([*map(any, zip(*tests, strict=True))])
    found.add("dropped", posts.column("Id"))


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


def _find_part(scanner: Scanner, written: Collection[str]) -> dict[str, RowSelection]:
    """Find the ids of the rows of a part, and make row filters from them; see `select_rows`."""
    present = [file.table.name for file in scanner.source.find_tables()]
    questions = _select_questions(scanner)
    with scanner.new_set("users") as users:
        with scanner.new_set("posts") as posts, scanner.new_set("left-out") as left_out:
            sets = {"posts": posts, "users": users, "left-out": left_out}
            found = scanner.scan("posts", partial(_find_posts, scanner.options, questions), sets)
            paths = {"posts": posts.path, "users": users.path}
            if "tags" in present:
                paths["tags"] = _add_tags(scanner, found, sets)
        if not {"users", "badges"}.isdisjoint(written):
            for name in present:
                if name not in paths and {*DUMP[name].references.values()} == {"posts", "users"}:
                    scanner.scan(name, partial(_find_users, paths["posts"]), {"users": users})
    as_of = RowSelection.of_dates(scanner.options).as_of
    selections = {name: RowSelection(kept=_kept(name, paths), as_of=as_of) for name in written}
    if "posts" in selections:
        cleared = (("AcceptedAnswerId", left_out.path),)
        selections["posts"] = replace(selections["posts"], cleared=cleared)
    return selections


def _select_questions(scanner: Scanner) -> str:
    """Write the set of the questions that pass the filters; warn if there are too few.

    Returns:
        Path of the set.
    """
    filters, source = scanner.options, scanner.source
    lists = (("OwnerUserId", filters.keep_users), ("Id", filters.keep_posts))
    saved = {
        column: scanner.save(f"listed-{column}", [to_pages(listed.ids)])
        for column, listed in lists
        if listed is not None
    }
    with ExitStack() as stack:
        names = ("questions", *saved)
        writers = {name: stack.enter_context(scanner.new_set(f"of-{name}")) for name in names}
        scanner.scan("posts", partial(_find_questions, filters, saved), writers)
    questions, *of_lists = (IdSet(writer.path) for writer in writers.values())
    size = filters.sample_size
    pages: Iterable[Pages] = (
        {page: reduce(and_, (ids.page(page) for ids in of_lists), of_filters)}
        for page, of_filters in questions.pages()
    )
    if size is not None:
        sample = choose_sample(chain.from_iterable(map(ids_in_pages, pages)), size)
        pages = [to_pages(map(sampled_id, sample))]
    selected = scanner.save("selected", pages)
    count = sum(bits.bit_count() for _, bits in IdSet(selected).pages())
    if problem := explain_few(count, size):
        log.warning("%s: %s", without_secrets(source.path), problem)
    return selected


def _kept(name: str, paths: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Return pairs of a column that decides which rows of a table are kept, and its set of ids."""
    if name in paths:
        return (("Id", paths[name]),)
    references = DUMP[name].references
    target = "posts" if "posts" in references.values() else "users"
    return tuple((column, paths[to]) for column, to in references.items() if to == target)


def _question_ids(posts: Batch) -> list[int | None]:
    """Compute the question id of each post; None for posts that are not questions or answers."""
    columns = (posts.column(name) for name in ("PostTypeId", "Id", "ParentId"))
    return [
        post_id if kind == _QUESTION else parent_id if kind == _ANSWER else None
        for kind, post_id, parent_id in zip(*columns, strict=True)
    ]


def _test(posts: Batch, condition: Condition) -> list[bool]:
    """Return whether each post fulfils a condition."""
    name = condition.attribute
    return [condition.holds({name: value}) for value in posts.column(name)]


def _find_questions(
    filters: PartFilters, lists: Mapping[str, str], posts: Batch, found: Found
) -> None:
    """Find the questions that pass the filters, and those with a post from each list."""
    if lists:
        question_ids = _question_ids(posts)
        for column, path in lists.items():
            pairs = zip(question_ids, IdSet(path).find(posts.column(column)), strict=True)
            found.add(column, (number for number, is_listed in pairs if is_listed))
    posts.keep([kind == _QUESTION for kind in posts.column("PostTypeId")])
    for condition in question_conditions(filters) + post_conditions(filters):
        posts.keep(_test(posts, condition))
    found.add("questions", posts.column("Id"))


def _find_posts(filters: PartFilters, questions: str, posts: Batch, found: Found) -> None:
    """Find posts, users and tags of selected questions, and all descriptions of tags.

    `left-out` gets the answers to these questions that do not pass the filters.
    """
    columns = (posts.column(name) for name in ("PostTypeId", "Id", *_USERS))
    found.wikis.update(
        (post_id, owner, editor)
        for kind, post_id, owner, editor in zip(*columns, strict=True)
        if kind in _WIKIS
    )
    posts.keep(IdSet(questions).find(_question_ids(posts)))
    kinds = posts.column("PostTypeId")
    passed = [True] * len(posts)
    for condition in answer_conditions(filters) + post_conditions(filters):
        tests = zip(passed, kinds, _test(posts, condition), strict=True)
        passed = [before and (kind != _ANSWER or passes) for before, kind, passes in tests]
    pairs = zip(posts.column("Id"), passed, strict=True)
    found.add("left-out", (number for number, is_kept in pairs if not is_kept))
    posts.keep(passed)
    found.add("posts", posts.column("Id"))
    for name in _USERS:
        found.add("users", posts.column(name))
    for tags in posts.column("Tags"):
        found.tags.update(tags or ())


def _add_tags(scanner: Scanner, found: Found, sets: Mapping[str, IdSetWriter]) -> str:
    """Add the descriptions of the tags of a part to its posts; return the path of the tags."""
    tags = scanner.scan("tags", _find_tags, {}).tags
    used = [tag for tag in tags if tag[0] in found.tags]
    wiki_ids = {number for _, _, *described in used for number in described}
    wikis = [wiki for wiki in found.wikis if wiki[0] in wiki_ids]
    users = (user_id for _, *of_wiki in wikis for user_id in of_wiki if user_id is not None)
    sets["posts"].add(to_pages(wiki[0] for wiki in wikis))
    sets["users"].add(to_pages(users))
    return scanner.save("tags", [to_pages(tag[1] for tag in used)])


def _find_tags(tags: Batch, found: Found) -> None:
    """Find the name, the id and the descriptions of each tag."""
    columns = (tags.column(name) for name in ("TagName", "Id", "ExcerptPostId", "WikiPostId"))
    found.tags.update(zip(*columns, strict=True))


def _find_users(posts: str, rows: Batch, found: Found) -> None:
    """Find the users in the rows that belong to posts."""
    rows.keep(IdSet(posts).find(rows.column("PostId")))
    found.add("users", rows.column("UserId"))
