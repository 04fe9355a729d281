"""Nest posts independently, with only the standard library and in memory.

It shares no code with the package, so a mistake would have to be made twice to stay undetected.
"""

import json
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from xml.parsers import expat

AnswersBy = Literal["id", "votes"]
Row = dict[str, Any]

RESERVED = {"Answers", "Comments", "LastEditor", "Links", "Owner", "Votes"} | {
    "History",
    "Closed",
    "Revisions",
    "Editors",
    "BodyMarkdown",
}
NUMBERS = {
    "Id",
    "PostTypeId",
    "AcceptedAnswerId",
    "ParentId",
    "Score",
    "ViewCount",
    "OwnerUserId",
    "LastEditorUserId",
    "AnswerCount",
    "CommentCount",
    "FavoriteCount",
}
TYPE_NAMES = {
    3: "Wiki",
    4: "TagWikiExcerpt",
    5: "TagWiki",
    6: "ModeratorNomination",
    7: "WikiPlaceholder",
    8: "PrivilegeWiki",
}
QUESTION, ANSWER = 1, 2

_REFERENCE = re.compile("&#(?:x([0-9a-fA-F]+)|([0-9]+));")
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(slots=True)
class Nested:
    """Expected documents and strays."""

    documents: list[Row]
    strays: list[Row]

    @property
    def contents(self) -> list[bytes]:
        """The bytes of the output, and of the file with its strays."""
        return [b"".join(map(json_line, rows)) for rows in (self.documents, self.strays)]


@dataclass(slots=True)
class Oracle(Nested):
    """The expected result for a dump: documents, strays and counts."""

    rows: int
    questions: int
    answers: int
    other_types: dict[str, int]
    repaired_characters: int

    @property
    def strays_by_reason(self) -> dict[str, int]:
        return dict(Counter(stray["reason"] for stray in self.strays))


def nest(dump: Path | bytes, answers_by: AnswersBy = "id") -> Oracle:
    """Nest a whole dump, given as a path or as its bytes."""
    parsed_rows, repaired_characters = _parse(
        dump if isinstance(dump, bytes) else dump.read_bytes()
    )
    rows = [_typed(attributes) for attributes in parsed_rows]
    other_types: Counter[str] = Counter()
    strays = []
    posts = []
    for row in rows:
        kind = row.get("PostTypeId")
        if isinstance(kind, int) and kind not in (QUESTION, ANSWER):
            other_types[TYPE_NAMES.get(kind, f"PostTypeId {kind}")] += 1
        elif reason := _reason_without_key(row):
            strays.append({"reason": reason, "row": row})
        else:
            posts.append(row)
    questions, keyed_strays = _nest_posts(posts)
    for question in questions:
        question["Answers"].sort(key=lambda answer: _rank(answer, question, answers_by))
    return Oracle(
        documents=questions,
        strays=strays + keyed_strays,
        rows=len(rows),
        questions=len(questions),
        answers=sum(len(question["Answers"]) for question in questions),
        other_types=dict(other_types),
        repaired_characters=repaired_characters,
    )


def _nest_posts(posts: list[Row]) -> tuple[list[Row], list[Row]]:
    """Nest answers in questions, in order of `Id`; return the documents and the strays."""
    reasons: dict[int, str] = {}
    seen: set[tuple[int, int]] = set()
    for place, post in enumerate(posts):
        ids = _question_id(post), post["Id"]
        if ids in seen:
            reasons[place] = "repeated_id"
        seen.add(ids)
    questions = {
        post["Id"]: post | {"Answers": []}
        for place, post in enumerate(posts)
        if post["PostTypeId"] == QUESTION and place not in reasons
    }
    for place, post in enumerate(posts):
        if post["PostTypeId"] == ANSWER and place not in reasons:
            if post["ParentId"] in questions:
                questions[post["ParentId"]]["Answers"].append(post)
            else:
                reasons[place] = "question_not_in_dump"
    places = sorted(
        reasons, key=lambda place: (_question_id(posts[place]), posts[place]["Id"], place)
    )
    strays = [{"reason": reasons[place], "row": posts[place]} for place in places]
    return [questions[question_id] for question_id in sorted(questions)], strays


def _question_id(post: Row) -> int:
    question_id = post["Id"] if post["PostTypeId"] == QUESTION else post["ParentId"]
    assert isinstance(question_id, int)
    return question_id


def _reason_without_key(row: Row) -> str | None:
    """Return the reason why a row is a stray; None if it is not."""
    for name, words in (("PostTypeId", "post_type_id"), ("Id", "id")):
        if not isinstance(row.get(name), int):
            return f"invalid_{words}" if name in row else f"missing_{words}"
    if RESERVED & row.keys():
        return "reserved_attribute"
    if row["PostTypeId"] == ANSWER and not isinstance(row.get("ParentId"), int):
        return "invalid_parent_id" if "ParentId" in row else "answer_without_parent_id"
    return None


def _rank(answer: Row, question: Row, answers_by: AnswersBy) -> tuple[bool, int, int]:
    if answers_by == "id":
        return False, 0, answer["Id"]
    score = answer.get("Score")
    accepted = answer["Id"] == question.get("AcceptedAnswerId")
    return not accepted, -score if isinstance(score, int) else 0, answer["Id"]


def _typed(attributes: dict[str, str]) -> Row:
    return {name: _typed_value(name, text) for name, text in attributes.items()}


def _typed_value(name: str, text: str) -> int | str | list[str]:
    if name in NUMBERS and re.fullmatch("[+-]?[0-9]+", text) and -(2**63) <= int(text) < 2**63:
        return int(text)
    if name == "Tags":
        for first, between, last in (("<", "><", ">"), ("|", "|", "|")):
            if len(text) > 1 and text.startswith(first) and text.endswith(last):
                return text[1:-1].split(between)
        return [text] if text else []
    return text


def _parse(data: bytes) -> tuple[list[dict[str, str]], int]:
    """Return the attributes of the rows, and the number of replaced characters."""
    try:
        return rows_below_the_root(data), 0
    except expat.ExpatError:
        text, repaired_characters = _repair(data)
        return rows_below_the_root(text), repaired_characters


def rows_below_the_root(document: bytes | str) -> list[dict[str, str]]:
    """Return the attributes of each `row` below the root, with the names in the document."""
    rows: list[dict[str, str]] = []
    opened: list[str] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        if name == "row" and len(opened) == 1:
            rows.append(attributes)
        opened.append(name)

    def refuse(name: str, is_parameter: bool) -> None:
        raise expat.ExpatError(f"undefined entity: {name}")

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda name: opened.pop()
    parser.SkippedEntityHandler = refuse
    parser.Parse(document, True)
    return rows


def _repair(data: bytes) -> tuple[str, int]:
    """Replace bytes that are not UTF-8 and forbidden characters by U+FFFD, and count them.

    References to a high and a low surrogate become their character, which is counted once.
    """
    kept = data.decode("utf-8", errors="ignore").count("\ufffd")
    text = data.decode("utf-8", errors="replace")
    count = text.count("\ufffd") - kept
    text, raw = _FORBIDDEN.subn("\ufffd", text)

    def replaced(reference: re.Match[str]) -> str:
        code = int(reference[1], 16) if reference[1] else int(reference[2])
        nonlocal count
        if 0xD800 <= code <= 0xDFFF:
            return chr(code)
        if code > sys.maxunicode or _FORBIDDEN.match(chr(code)):
            count += 1
            return "\ufffd"
        return reference[0]

    text = _REFERENCE.sub(replaced, text)
    text, pairs = re.subn(
        "[\ud800-\udbff][\udc00-\udfff]",
        lambda pair: pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"),
        text,
    )
    text, lone = re.subn("[\ud800-\udfff]", "\ufffd", text)
    return text, count + raw + pairs + lone


def json_line(value: Row) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
