"""Restore the posts of a bucket as they were on a date. Pure functions on bytes and lists.

This is the first step of the second pass, before filters and nesting. The texts in force come from
the history, scores and accepted answers from the votes, and counts from the rows that existed. Rows
of other tables that were created later are already left out by the first pass.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from html import escape

import orjson

from so2docs.counts import RowCounts, TableCounts
from so2docs.domain import site_host
from so2docs.extensions.as_of.existence import existed, find_moments
from so2docs.extensions.as_of.records import LATER, LATER_VOTE, MERGE, REJECTED, REVISION
from so2docs.extensions.as_of.rendering import Renderer
from so2docs.extensions.formulas import formula_sign
from so2docs.extensions.site_facts import license_at
from so2docs.merge import BlockData
from so2docs.options.table import Options
from so2docs.parse import bodies, table_rows
from so2docs.parse.keys import ANSWER, KEY, QUESTION, walk
from so2docs.parse.posts import stray_line, tags
from so2docs.parse.row_filter import RowFilter, make_projection
from so2docs.plugin import POSTS
from so2docs.report import UNKNOWN_ON_DATE
from so2docs.schema import (
    ASKED_LATER,
    BODIES,
    BODY_FROM,
    BOUNTY,
    COMMENT,
    CONTENT,
    OF_KIND,
    TAGS,
    TITLES,
    VOTE,
    Row,
)

GetTitle = Callable[[int], bytes | None]

FROM_DUMP, FROM_HISTORY = "dump", "history"
"""Values of `BodyFrom`: the HTML of the dump, or the text of a revision."""

_ACCEPTED, _UP, _DOWN, _FAVORITE = 1, 2, 3, 5
_CLOSED, _REOPENED, _DELETED, _UNDELETED, _WIKI, _MIGRATED_HERE = 10, 11, 12, 13, 16, 36
_EDITS = CONTENT - {1, 2, 3}
_SYSTEM = -1
"""Id of the system account."""

_BLOCK_BYTES = 1 << 20
"""Size of the JSON of a restored block; memory holds the records of a part only once."""

_TEXTS = (("Title", TITLES), ("Tags", TAGS), ("Body", BODIES))
_ORDER = tuple(POSTS.attributes)
_COMMENT_SCORE = re.compile(rb',"Score":(?:-?\d+|"(?:[^"\\]|\\.)*")(?=[,}])')
"""The score in the JSON of a comment; a string cannot match, since its quotes have backslashes."""


@dataclass(slots=True)
class _Post:
    """A post in the spill: the fields of its key, and the row once it is restored.

    Attributes:
        date: Date of the revision with the body, if the body is not that of the dump.
    """

    post_id: int
    rank: int
    kind: int
    json: bytes
    row: Row = field(default_factory=dict)
    date: str = ""


@dataclass(slots=True)
class _Events:
    """The rows of other tables that a post is restored from.

    Attributes:
        revisions: Types and JSON of history rows before the date.
        later: Types of history rows after the date, as bits.
        votes: Number of votes by type.
        later_votes: The same for votes after the date that count for later questions.
        comments: Number of comments.
    """

    revisions: list[tuple[int, bytes]] = field(default_factory=list)
    later: int = 0
    votes: Counter[int] = field(default_factory=Counter)
    later_votes: Counter[int] = field(default_factory=Counter)
    comments: int = 0

    def count_votes(self, kind: int, rank: int) -> None:
        """Count the votes of a record."""
        vote_type, count = table_rows.unpack_votes(rank)
        votes = self.votes if kind == VOTE else self.later_votes
        votes[vote_type] += count

    def leave_out_later(self, date: str) -> None:
        """Leave out the history rows after a date, but note their types."""
        revisions, self.revisions = self.revisions, []
        for kind, json in revisions:
            if existed(orjson.loads(json)["CreationDate"], date):
                self.revisions.append((kind, json))
            else:
                self.later |= 1 << kind

    def parse(self, types: Iterable[int]) -> list[Row]:
        """Parse the history rows of some types, in chronological order."""
        if not self.revisions:
            return []
        rows = [orjson.loads(json) for kind, json in self.revisions if kind in types]
        return sorted(rows, key=lambda row: (row["CreationDate"], row["Id"]))


class _Group:
    """The records of a question id; of rows to nest, post id, rank, kind and JSON."""

    def __init__(self) -> None:
        self.posts: list[_Post] = []
        self.rows: list[tuple[int, int, int, bytes]] = []
        self.events: defaultdict[int, _Events] = defaultdict(_Events)

    def drop_moved(self, question_id: int) -> None:
        """Drop the answers that came to this question later, which their former question has."""
        moved = {id_ for id_, events in self.events.items() if events.later >> MERGE & 1}
        moved.discard(question_id)
        if moved:
            self.posts = [post for post in self.posts if post.post_id not in moved]
            self.rows = [row for row in self.rows if row[0] not in moved]
            for post_id in moved:
                del self.events[post_id]


class Restoration:
    """Restores the posts of a bucket.

    Args:
        options: Options of the conversion, with a date.
        get_title: Returns the title of a question, or of the question of an answer, as JSON.
        first_formula: Date and delimiter of the first formula that a body of the dump marks; empty
            texts if no body marks formulas.
        counts: Counts to which restored posts, and posts and rows left out, are added.
        strays: Gets lines for posts whose text on the date is unknown.
    """

    def __init__(
        self,
        options: Options,
        counts: RowCounts,
        strays: list[bytes],
        get_title: GetTitle,
        first_formula: tuple[str, str],
    ) -> None:
        self._get_title = get_title
        self._host = options.site
        since, marked = first_formula
        sign = formula_sign(options.site or "")
        self._renderer = Renderer(
            options.site,
            sign or marked,
            self._find_title,
            marks_formulas=bool(marked),
            formulas_since="" if sign else since,
        )
        self._counts, self._strays = counts, strays
        filters = options.filters
        self._date, later = find_moments(options)
        self._moment = self._date
        self._later = None if later == self._date else later
        self._filter = RowFilter(filters.of_state, None)
        self._project = make_projection(options)
        # The first pass stores bounties only if votes are nested.
        tables = options.nest
        self._nested = {BOUNTY, *(kind for kind in OF_KIND if OF_KIND[kind].name in tables)}
        self._has_votes = "votes" in options.tables
        self._has_comments = "comments" in options.tables
        self._keeps_markdown = options.restores_markdown
        self._needs_html = not self._keeps_markdown or filters.max_body is not None
        self._convert = bodies.converter(
            options.body if self._keeps_markdown else "html", options.core, options.site
        )

    def restore(self, blocks: Iterable[BlockData], ids: range) -> Iterable[BlockData]:
        """Yield blocks with the posts as they were, and with the rows to nest.

        Args:
            blocks: Blocks in the order of the dump.
            ids: The question ids to restore.

        Raises:
            ValueError, struct.error: Keys and JSON of a block do not match.
        """
        groups = self._gather(blocks, ids)
        keys, json = bytearray(), bytearray()
        for question_id in sorted(groups):
            group = groups.pop(question_id)
            if self._later is not None:
                self._choose_date(group, self._later)
            posts = self._restore_group(group)
            records = [(post.post_id, post.rank, post.kind, post.json) for post in posts]
            for post_id, rank, kind, record in (*records, *group.rows):
                keys += KEY.pack(question_id, post_id, rank, len(record) << 4 | kind)
                json += record
            if len(json) >= _BLOCK_BYTES:
                yield bytes(keys), bytes(json)
                keys, json = bytearray(), bytearray()
        yield bytes(keys), bytes(json)

    def _gather(self, blocks: Iterable[BlockData], ids: range) -> dict[int, _Group]:
        """Group the records by question; note the rows from which posts are restored."""
        groups: defaultdict[int, _Group] = defaultdict(_Group)
        for keys, json in blocks:
            end = 0
            for question_id, post_id, rank, kind, start, end in walk(keys):
                if question_id not in ids:
                    continue
                group = groups[question_id]
                if kind < COMMENT:
                    # Titles of rejected questions have served their purpose.
                    json_of_post = json[start:end] if kind in REJECTED else b""
                    group.posts.append(_Post(post_id, rank, kind, json_of_post))
                elif kind == REVISION:
                    group.events[post_id].revisions.append((rank, json[start:end]))
                elif kind == LATER:
                    group.events[post_id].later |= 1 << rank
                elif kind in (VOTE, LATER_VOTE):
                    group.events[post_id].count_votes(kind, rank)
                else:
                    group.events[post_id].comments += kind == COMMENT
                if kind in self._nested:
                    row = json[start:end]
                    if kind == COMMENT:
                        row = _COMMENT_SCORE.sub(b"", row)
                    group.rows.append((post_id, rank, kind, row))
            if end != len(json):
                raise ValueError("keys and JSON do not match")
        for question_id, group in groups.items():
            group.drop_moved(question_id)
        self._count_left_out([e for group in groups.values() for e in group.events.values()])
        return groups

    def _count_left_out(self, events: list[_Events]) -> None:
        """Count the rows that are read only to restore posts."""
        if COMMENT not in self._nested:
            self._leave_out_row(COMMENT, sum(of_post.comments for of_post in events))
        votes = [of_post.later_votes for of_post in events]
        if VOTE not in self._nested:
            votes += [of_post.votes for of_post in events]
        self._leave_out_row(VOTE, sum(counts.total() for counts in votes))

    def _choose_date(self, group: _Group, later: str) -> None:
        """Restore a question as of the later date if it was asked after the first one."""
        questions = (orjson.loads(post.json) for post in group.posts if post.kind == QUESTION)
        asked = next((question["CreationDate"] for question in questions), "")
        if not existed(asked, self._date):
            self._moment = later
            for events in group.events.values():
                events.votes += events.later_votes
            return
        self._moment = self._date
        for events in group.events.values():
            events.leave_out_later(self._date)
        rows, group.rows = group.rows, []
        for row in rows:
            _, _, kind, json = row
            if not json or existed(orjson.loads(json).get("CreationDate"), self._date):
                group.rows.append(row)
            else:
                self._leave_out_row(kind)

    def _leave_out_row(self, kind: int, count: int = 1) -> None:
        if count:
            tables = self._counts.tables
            tables.setdefault(OF_KIND[kind].name, TableCounts()).filtered += count

    def _restore_group(self, group: _Group) -> list[_Post]:
        """Restore the posts of a question id; posts with unknown texts are added to the strays."""
        unknown, restored = list[_Post](), list[_Post]()
        for post in group.posts:
            if post.kind not in REJECTED:
                continue
            events = group.events[post.post_id]
            post.row = orjson.loads(post.json)
            if not (existed(post.row["CreationDate"], self._moment) and self._existed(events)):
                self._reject(post)
            elif self._restore(post, events):
                restored.append(post)
            else:
                unknown.append(post)
        if any(post.kind == QUESTION for post in unknown):
            return self._leave_out(group.posts, unknown, restored)
        answers = {post.post_id: post.row for post in restored if post.kind == ANSWER}
        questions = [post for post in restored if post.kind == QUESTION]
        for post in questions:
            self._complete_question(post.row, answers, group.events)
            self._finish(post)
        if all(post.kind != QUESTION for post in questions):
            return group.posts  # The merge counts the answers as it does without a date.
        for post in restored:
            if post.kind == ANSWER:
                self._restore_activity(post.row)
                self._finish(post)
        return self._leave_out(group.posts, unknown, [])

    def _existed(self, events: _Events) -> bool:
        """Whether a post was on the site: not deleted, and not yet to be migrated here.

        A post of the dump was undeleted, so a deletion without an undeletion after the date is one
        whose undeletion the history lacks.
        """
        if events.later >> _MIGRATED_HERE & 1:
            return False
        if not events.later >> _UNDELETED & 1:
            return True
        deletions = events.parse((_DELETED, _UNDELETED))
        return not deletions or deletions[-1]["PostHistoryTypeId"] == _UNDELETED

    def _restore(self, post: _Post, events: _Events) -> bool:
        """Restore the attributes of a post that depend on its own rows; False if unknown."""
        row = post.row
        for name in ("ViewCount", "Score", "FavoriteCount"):
            row.pop(name, None)
        if not self._restore_texts(post, events):
            return False
        if self._has_votes:
            row["Score"] = events.votes[_UP] - events.votes[_DOWN]
            if _FAVORITE in events.votes:
                row["FavoriteCount"] = events.votes[_FAVORITE]
        if self._has_comments and self._moment == self._date:
            row["CommentCount"] = events.comments
        else:
            row.pop("CommentCount", None)
        closings = events.parse((_CLOSED, _REOPENED))
        is_closed = closings and closings[-1]["PostHistoryTypeId"] == _CLOSED
        self._keep_date(row, "ClosedDate", closings[-1]["CreationDate"] if is_closed else None)
        wiki = events.parse((_WIKI,))
        self._keep_date(row, "CommunityOwnedDate", wiki[-1]["CreationDate"] if wiki else None)
        return True

    def _restore_texts(self, post: _Post, events: _Events) -> bool:
        row = post.row
        row[BODY_FROM.key] = FROM_DUMP
        later = {kind for kind in CONTENT if events.later >> kind & 1}
        if not existed(row.get("LastEditDate", ""), self._moment) and not later:
            later = set(CONTENT)  # The history lacks the edit, so any text may have changed.
        if not later:
            return True
        revisions = events.parse(CONTENT)
        for name, types in _TEXTS:
            if types.isdisjoint(later) or (post.kind == ANSWER and name != "Body"):
                continue
            of_text = [r for r in revisions if r["PostHistoryTypeId"] in types]
            if not of_text or "Text" not in of_text[-1]:
                return False
            text = of_text[-1]["Text"]
            row[name] = tags(text) if name == "Tags" else text
            if name == "Body":
                row[BODY_FROM.key], post.date = FROM_HISTORY, of_text[-1]["CreationDate"]
        for name in ("LastEditDate", "LastEditorUserId", "LastEditorDisplayName"):
            row.pop(name, None)
        if edits := _list_edits(revisions):
            names = {"UserId": "LastEditorUserId", "UserDisplayName": "LastEditorDisplayName"}
            row["LastEditDate"] = edits[-1]["CreationDate"]
            row |= {names[name]: edits[-1][name] for name in names if name in edits[-1]}
        if "ContentLicense" in row and revisions:
            row["ContentLicense"] = license_at(revisions[-1]["CreationDate"])
        return True

    def _keep_date(self, row: Row, name: str, date: str | None) -> None:
        """Keep the date of a state that has lasted since then; otherwise set or remove it."""
        if not existed(row.get(name), self._moment):
            row.pop(name, None)
            if date is not None:
                row[name] = date

    def _complete_question(
        self, row: Row, answers: Mapping[int, Row], events: Mapping[int, _Events]
    ) -> None:
        """Restore the attributes of a question that depend on its answers."""
        dumped = row.pop("AcceptedAnswerId", None)
        row["AnswerCount"] = len(answers)
        accepted = sorted(id_ for id_ in answers if _ACCEPTED in events[id_].votes)
        if accepted:
            row["AcceptedAnswerId"] = dumped if dumped in accepted else accepted[-1]
        self._restore_activity(row, answers.values())

    def _restore_activity(self, row: Row, answers: Iterable[Row] = ()) -> None:
        """Set the date of the last known activity on a post, if the dump has a later date."""
        if not existed(row.get("LastActivityDate", ""), self._moment):
            names = ("CreationDate", "LastEditDate")
            dates = [post.get(name, "") for post in (row, *answers) for name in names]
            row["LastActivityDate"] = max(dates)

    def _finish(self, post: _Post) -> None:
        """Apply the filters, and make the key and the JSON of a restored post."""
        row = post.row
        is_markdown = row[BODY_FROM.key] == FROM_HISTORY and "Body" in row
        source = row.get("Body", "")
        if is_markdown and self._needs_html:
            row["Body"] = self._renderer.render(source, post.date, self._moment)
        if not self._filter.passes(post.kind, row):
            self._reject(post)
            return
        if is_markdown and self._keeps_markdown:
            row["Body"] = source
        elif self._convert is not None and "Body" in row:
            row["Body"] = self._convert(row["Body"])
        if row[BODY_FROM.key] == FROM_HISTORY:
            self._counts.restored = (self._counts.restored or 0) + 1
        else:
            self._counts.unchanged = (self._counts.unchanged or 0) + 1
        post.rank = row.get("Score", 0)
        if post.kind == QUESTION:
            post.rank = row.get("AcceptedAnswerId", post.post_id)
        # Attributes are in the order of the dump, and those unknown in dumps follow.
        row = {name: row[name] for name in _ORDER if name in row} | row
        row[BODY_FROM.key] = row.pop(BODY_FROM.key)
        row = row if self._project is None else self._project(row)
        if self._moment == self._later and post.kind == QUESTION:
            row[ASKED_LATER] = True
        post.json = orjson.dumps(row)

    def _find_title(self, host: str, post_id: int) -> str | None:
        """Return the title of a post of this site as HTML text; None if unknown."""
        if self._host is None or site_host(host) != self._host:
            return None
        title = self._get_title(post_id)
        return None if title is None else escape(orjson.loads(title), quote=False)

    def _reject(self, post: _Post) -> None:
        post.kind, post.rank, post.json = REJECTED[post.kind], 0, b""
        self._counts.filtered += 1

    def _leave_out(
        self, posts: list[_Post], unknown: list[_Post], answers: list[_Post]
    ) -> list[_Post]:
        """Make strays of posts with unknown texts, and of answers to them; return other posts."""
        for strays, reason in zip((unknown, answers), UNKNOWN_ON_DATE, strict=True):
            for post in strays:
                self._counts.strays[reason] += 1
                self._strays.append(stray_line(reason, orjson.loads(post.json)))
        return [post for post in posts if post not in unknown and post not in answers]


def _list_edits(revisions: list[Row]) -> list[Row]:
    """Return the revisions after the first ones that count as edits of a post.

    The system account removes tags such as `featured` after their time; this is no edit.
    """
    edits, tagged = list[Row](), set[str]()
    for row in revisions:
        former = tagged
        if row["PostHistoryTypeId"] in TAGS:
            tagged = {*tags(row.get("Text", ""))}
        is_removal = row.get("UserId") == _SYSTEM and row["PostHistoryTypeId"] in TAGS
        if row["PostHistoryTypeId"] in _EDITS and not (is_removal and tagged < former):
            edits.append(row)
    return edits


def find_titles(
    blocks: Iterable[BlockData], question_ids: Collection[int], date: str
) -> dict[int, str]:
    """Find the titles that questions had on a date.

    Args:
        blocks: All blocks of a bucket.
        question_ids: The questions.
        date: The date; the blocks may have rows of later questions.

    Returns:
        Titles by question id, without those of questions that did not exist or have no known title.
    """
    titles: dict[int, str] = {}
    events: defaultdict[int, _Events] = defaultdict(_Events)
    for keys, json in blocks:
        for _, post_id, rank, kind, start, end in walk(keys):
            if post_id in question_ids:
                is_rejected = kind == REJECTED[QUESTION]
                if kind == QUESTION or (is_rejected and start < end):
                    row = orjson.loads(json[start:end])
                    is_known = is_rejected or existed(row["CreationDate"], date)
                    if is_known and isinstance(row.get("Title"), str):
                        titles.setdefault(post_id, row["Title"])
                elif kind == LATER and rank in TITLES:
                    events[post_id].later |= 1 << rank
                elif kind == REVISION and rank in TITLES:
                    events[post_id].revisions.append((rank, json[start:end]))
    for post_id in titles.keys() & events.keys():
        events[post_id].leave_out_later(date)
        if events[post_id].later:
            revisions = events[post_id].parse(TITLES)
            text = revisions[-1].get("Text") if revisions else None
            if text is None:
                del titles[post_id]
            else:
                titles[post_id] = text
    return titles
