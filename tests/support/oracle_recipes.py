"""Independent recipes and attribution for complete documents, in plain Python.

It shares no code with the package, except for cutting passages and the names of languages; the
documents come from ``oracle``. The function of a recipe takes the documents, the host of the site,
and a function that converts a body.
"""

import random
from collections.abc import Callable
from datetime import date, datetime
from html.parser import HTMLParser
from math import floor, log
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from blocks import BY_TAG, NAMES

from so2docs.extensions.recipes.passages import Splitter
from support import oracle_history

Row = dict[str, Any]
Body = Callable[[str], str]


def license_of(post: Row) -> str:
    day = date.fromisoformat(post["CreationDate"][:10])
    version = "2.5" if day < date(2011, 4, 8) else "3.0" if day < date(2018, 5, 2) else "4.0"
    return str(post.get("ContentLicense", f"CC BY-SA {version}"))


def author_of(post: Row, host: str) -> tuple[str | None, str | None]:
    if "SuggestedEditApplied" in post.get("Events", []):
        number = post.get("ProposedBy")
        if number is None:
            return (None if "UserId" in post else post.get("UserDisplayName")), None
        if number != post.get("UserId", number):
            return f"user{number}", f"https://{host}/users/{number}"
        post = {"UserId": number, **post}
    kind = "Owner" if "PostTypeId" in post else "User"
    user_id = post.get("OwnerUserId" if kind == "Owner" else "UserId")
    name = post.get(kind, {}).get("DisplayName") or post.get(f"{kind}DisplayName")
    if user_id is None:
        return name, None
    return name or f"user{user_id}", f"https://{host}/users/{user_id}"


def credited(question: Row, host: str) -> tuple[list[str], list[tuple[str, str | None]]]:
    posts = [question, *question["Answers"]]
    parts = [part for post in posts for part in (post, *post.get("Comments", []))]
    authors = [author_of(part, host) for part in parts]
    people = [(name, url) for name, url in authors if name]
    return sorted({license_of(part) for part in parts}), list(dict.fromkeys(people))


def attributed(question: Row, host: str) -> Row:
    """Make the expected document with ``attribution``, except for the order of its keys."""
    licenses, authors = credited(question, host)
    posts = [
        {
            **post,
            "Url": url_of(post, host),
            "ContentLicense": license_of(post),
            **{key: with_url(post[key], host) for key in ("Owner", "LastEditor") if key in post},
        }
        for post in (question, *question["Answers"])
    ]
    for post in posts:
        if "Comments" in post:
            post["Comments"] = [
                {**comment, "ContentLicense": license_of(comment)}
                | ({"User": with_url(comment["User"], host)} if "User" in comment else {})
                for comment in post["Comments"]
            ]
    people = [{"DisplayName": name} | ({"Url": url} if url else {}) for name, url in authors]
    return posts[0] | {"Answers": posts[1:], "Licenses": licenses, "Authors": people}


def url_of(post: Row, host: str) -> str:
    return f"https://{host}/{'a' if 'ParentId' in post else 'questions'}/{post['Id']}"


def with_url(user: Row, host: str) -> Row:
    return {**user, "Url": f"https://{host}/users/{user['Id']}"}


def liked(answer: Row, question: Row) -> int:
    """Compute `pm_score` by counting instead of rounding."""
    if answer.get("Score", 0) < 0:
        return -1
    exact = log(1 + answer.get("Score", 0)) / log(2)
    return floor(exact + 0.5) + int(answer["Id"] == question.get("AcceptedAnswerId"))


def preferences(questions: list[Row], host: str, body: Body) -> list[Row]:
    records = []
    for question in questions:
        answers = question["Answers"]
        if len(answers) >= 2 and len({answer["Score"] for answer in answers}) >= 2:
            user = question.get("OwnerUserId", -1)
            site = f"https://{host}"
            urls = [f"{site}/questions/{question['Id']}", site, f"{site}/users/{user}/"]
            rows = [
                {
                    "answer_id": answer["Id"],
                    "text": body(answer["Body"]),
                    "pm_score": liked(answer, question),
                    "selected": answer["Id"] == question.get("AcceptedAnswerId"),
                    "author": named(answer),
                    "author_id": answer.get("OwnerUserId", -1),
                    "author_profile": f"{site}/users/{answer.get('OwnerUserId', -1)}",
                }
                for answer in answers
            ]
            row = {"qid": question["Id"], "question": body(question["Body"]), "answers": rows}
            day = "/".join(question["CreationDate"][:10].split("-"))
            records.append(row | {"date": day, "metadata": urls})
    return records


def named(answer: Row) -> str:
    if "Owner" in answer:
        return str(answer["Owner"]["DisplayName"])
    return "Community" if answer.get("OwnerUserId", -1) == -1 else "(user-not-found)"


def about(question: Row, host: str) -> Row:
    return {
        "qid": question["Id"],
        "url": url_of(question, host),
        "site": host,
        "tags": question["Tags"],
        "score": question["Score"],
        **origin(question, host),
    }


def origin(post: Row, host: str) -> Row:
    """Make the licence, author and date of a post or revision."""
    return {
        "license": license_of(post),
        "authors": people([author_of(post, host)]),
        "created": post["CreationDate"],
    }


def people(authors: list[tuple[str | None, str | None]]) -> list[Row]:
    return [{"name": name} | ({"url": url} if url else {}) for name, url in authors if name]


def answer_side(answer: Row, question: Row, host: str) -> Row:
    return {
        "id": answer["Id"],
        "url": url_of(answer, host),
        "score": answer["Score"],
        "accepted": answer["Id"] == question.get("AcceptedAnswerId"),
        **origin(answer, host),
    }


def part_of(post: Row, question: Row, host: str) -> Row:
    """Make the metadata of a part of a post, except for its origin."""
    return {
        "qid": question["Id"],
        "post_id": post["Id"],
        "url": url_of(post, host),
        "site": host,
        "title": question["Title"],
        "tags": question["Tags"],
    }


def asked(question: Row, body: Body) -> str:
    return f"{question['Title']}\n\n{body(unmarked(question['Body']))}"


def unmarked(html: str) -> str:
    """Remove the note of a possible duplicate from the start of a question."""
    note, end, rest = html.partition("</blockquote>")
    is_note = note.startswith("<blockquote>") and "<strong>Possible Duplicate" in note[:60]
    return rest.lstrip() if end and is_note else html


def ranked(question: Row) -> list[Row]:
    """Sort the answers by votes."""
    rest = sorted(question["Answers"], key=lambda answer: (-answer["Score"], answer["Id"]))
    first = [answer for answer in rest if answer["Id"] == question.get("AcceptedAnswerId")]
    return first + [answer for answer in rest if answer not in first]


def pairs(
    questions: list[Row],
    host: str,
    body: Body,
    *,
    min_margin: int = 1,
    max_negative: int | None = None,
    max_days: int | None = None,
    best: bool = False,
    conversational: bool = False,
    form: str = "trl",
) -> list[Row]:
    def day(answer: Row) -> float:
        return datetime.fromisoformat(answer["CreationDate"]).timestamp() / 86_400

    def message(role: str, content: str) -> list[Row]:
        return [{"role": role, "content": content}]

    records = []
    for question in questions:
        answers = sorted(ranked(question), key=lambda answer: -liked(answer, question))
        every = [
            (better, worse)
            for better in (answers[:1] if best else answers)
            for worse in answers
            if liked(better, question) - liked(worse, question) >= min_margin
            and (max_negative is None or liked(worse, question) <= max_negative)
            and (max_days is None or abs(day(better) - day(worse)) <= max_days)
        ]
        if len(every) > 10:
            drawn, dice = set[int](), random.Random(question["Id"])
            while len(drawn) < 10:
                drawn.add(int(dice.random() * len(every)))
            every = [pair for number, pair in enumerate(every) if number in drawn]
        for better, worse in every:
            row: Row = {"prompt": f"{asked(question, body)}\n\nAnswer:"}
            row["metadata"] = about(question, host)
            for side, answer in (("chosen", better), ("rejected", worse)):
                row |= {side: f" {body(answer['Body'])}", f"score_{side}": liked(answer, question)}
                row["metadata"][side] = answer_side(answer, question, host)
            if conversational:
                row["prompt"] = message("user", asked(question, body))
                row["chosen"] = message("assistant", body(better["Body"]))
                row["rejected"] = message("assistant", body(worse["Body"]))
            records.append(row)
            if form == "paired":
                records[-1] = renamed(row, question, host, body)
    return records


def renamed(row: Row, question: Row, host: str, body: Body) -> Row:
    """Give a pair the columns of lvwerra/stack-exchange-paired."""
    site, sides = f"https://{host}", row["metadata"]
    attribution = {name: sides[name] for name in sides if name not in ("chosen", "rejected")}
    return {
        "qid": question["Id"],
        "question": body(unmarked(question["Body"])),
        "date": "/".join(question["CreationDate"][:10].split("-")),
        "metadata": [
            f"{site}/questions/{question['Id']}",
            site,
            f"{site}/users/{question.get('OwnerUserId', -1)}/",
        ],
        "response_j": row["chosen"][1:],
        "response_k": row["rejected"][1:],
        "attribution": attribution
        | {"response_j": sides["chosen"], "response_k": sides["rejected"]},
    }


def texts(
    questions: list[Row],
    host: str,
    body: Body,
    *,
    form: str = "titlebody_best_voted_answer",
) -> list[Row]:
    """Make the sets of flax-sentence-embeddings, with attribution."""
    records = []
    for question in questions:
        title, text = question["Title"], body(unmarked(question["Body"]))
        if len(title) < 20 or not 20 <= len(text) <= 4096 or question["Score"] < 0:
            continue
        answers = sorted(question["Answers"], key=lambda answer: answer["Score"], reverse=True)
        named: Row = {}
        if "answer" in form and answers:
            named["upvoted_answer"] = answers[0]
        if "down" in form and answers:
            worst = next(a for a in answers if a["Score"] == answers[-1]["Score"])
            if answers[0]["Score"] - worst["Score"] < 100:
                continue
            named["downvoted_answer"] = worst
        if "answer" in form and not answers:
            continue
        row: Row = {"texts": [title, text]} if form == "title_body" else {}
        if form != "title_body":
            row["title_body"] = f"{title} {text}" if "titlebody" in form else title
        row |= {name: body(answer["Body"]) for name, answer in named.items()}
        row |= {"tags": question["Tags"], "metadata": about(question, host)}
        row["metadata"] |= {
            name: answer_side(answer, question, host) for name, answer in named.items()
        }
        records.append(row)
    return records


def qa(
    questions: list[Row], host: str, body: Body, *, accepted: bool = False, best: bool = False
) -> list[Row]:
    return [
        {
            "prompt": f"{asked(question, body)}\n\nAnswer:",
            "completion": f" {body(answer['Body'])}",
            "metadata": {**about(question, host), "answer": answer_side(answer, question, host)},
        }
        for question in (best_only(questions) if best else questions)
        for answer in ranked(question)
        if not accepted or answer["Id"] == question.get("AcceptedAnswerId")
    ]


def triplets(questions: list[Row], host: str, body: Body, max_negative: int = 0) -> list[Row]:
    records = pairs(questions, host, body, max_negative=max_negative)
    for row in records:
        row["anchor"] = row.pop("prompt").removesuffix("\n\nAnswer:")
        row |= {"positive": row.pop("chosen")[1:], "negative": row.pop("rejected")[1:]}
    return records


def duplicates(questions: list[Row], host: str, body: Body) -> dict[str, list[Row]]:
    """Make the records of each file for each question and each question that it duplicates."""
    by_id = {question["Id"]: question for question in questions}
    files: dict[str, list[Row]] = {
        name: [] for name in ("post-post-pair", "title-title-pair", "body-body-pair", "attribution")
    }
    for numbers in sorted(linked(by_id, 3)):
        pair = [by_id[number] for number in numbers]
        texts = {
            "title": [question["Title"] for question in pair],
            "body": [body(unmarked(question["Body"])) for question in pair],
            "post": [asked(question, body).removesuffix("\n\n") for question in pair],
        }
        for name, (first, second) in texts.items():
            files[f"{name}-{name}-pair"].append({f"{name}1": first, f"{name}2": second})
        first, second = (about(question, host) for question in pair)
        files["attribution"].append({"question1": first, "question2": second})
    return files


def linked(questions: dict[int, Row], kind: int) -> set[tuple[int, int]]:
    """Return the links of a type between two of the questions."""
    return {
        (number, link["RelatedPostId"])
        for number, question in questions.items()
        for link in question["Links"]
        if link["LinkTypeId"] == kind and link["RelatedPostId"] in questions.keys() - {number}
    }


def messages(
    questions: list[Row],
    host: str,
    body: Body,
    *,
    system: str | None = None,
    accepted: bool = False,
) -> list[Row]:
    records = []
    for question in questions:
        by_id = {answer["Id"]: answer for answer in question["Answers"]}
        for row in qa([question], host, body, accepted=accepted):
            asked = row.pop("prompt").removesuffix("\n\nAnswer:")
            turns = [["user", asked], ["assistant", row.pop("completion")[1:]]]
            comments = dialogue(question, by_id[row["metadata"]["answer"]["id"]])
            for comment in comments:
                is_asker = comment["UserId"] == question["OwnerUserId"]
                text = " ".join(comment["Text"].split())
                if (turns[-1][0] == "user") == is_asker:
                    turns[-1][1] += f"\n\n{text}"
                else:
                    turns.append(["user" if is_asker else "assistant", text])
            if comments:
                row["metadata"]["comments"] = [origin(comment, host) for comment in comments]
            if system is not None:
                turns.insert(0, ["system", system])
            rows = [{"role": role, "content": text} for role, text in turns]
            records.append({"messages": rows, **row})
    return records


def dialogue(question: Row, answer: Row) -> list[Row]:
    """List the comments of the two authors, up to the last one by the author of the answer."""
    asker, author = question.get("OwnerUserId"), answer.get("OwnerUserId")
    if asker is None or author is None or asker == author:
        return []
    comments = [c for c in answer.get("Comments", []) if c.get("UserId") in (asker, author)]
    ends = [number for number, c in enumerate(comments, 1) if c["UserId"] == author]
    return comments[: max(ends, default=0)]


def best_only(questions: list[Row]) -> list[Row]:
    """Keep only the answer with the most votes of each question."""
    kept = []
    for question in questions:
        most = max((answer["Score"] for answer in question["Answers"]), default=0)
        first = [answer for answer in ranked(question) if answer["Score"] == most][:1]
        kept.append({**question, "Answers": first})
    return kept


def with_absolute_links(html: str, host: str) -> str:
    """Complete the addresses in tags that begin with a slash."""
    tags = html.split("<")
    for number, tag in enumerate(tags):
        inside, end, text = tag.partition(">")
        for name in (' href="', ' src="'):
            inside = inside.replace(f"{name}//", f"{name}https://")
            inside = inside.replace(f"{name}/", f"{name}https://{host}/")
        tags[number] = inside + end + text
    return "<".join(tags)


def lowered(html: str) -> str:
    """Lower the headings of a body by two levels."""
    for level in range(6, 0, -1):
        for start in ("<", "</"):
            for end in (" ", ">"):
                html = html.replace(f"{start}h{level}{end}", f"{start}h{min(level + 2, 6)}{end}")
    return html


def thread(questions: list[Row], host: str, body: Body, *, best: bool = False) -> list[Row]:
    records = []
    for question in best_only(questions) if best else questions:
        asked = body(lowered(unmarked(question["Body"])))
        text = f"# {question['Title']}\n\n{asked}{remarks(question)}"
        for answer in ranked(question):
            accepted = answer["Id"] == question.get("AcceptedAnswerId")
            heading = "Accepted answer" if accepted else "Answer"
            text += f"\n\n## {heading}\n\n{body(lowered(answer['Body']))}{remarks(answer)}"
        row = {"id": f"{host}-{question['Id']}", "text": text, "source": host}
        licenses, authors = credited(question, host)
        metadata = {
            key: value
            for key, value in about(question, host).items()
            if key not in ("license", "created")
        }
        metadata |= {"licenses": licenses, "authors": people(list(authors))}
        records.append(row | {"created": question["CreationDate"], "metadata": metadata})
    return records


def remarks(post: Row) -> str:
    lines = [" ".join(comment["Text"].split()) for comment in post.get("Comments", [])]
    return "\n\n### Comments\n\n" + "\n".join(f"- {line}" for line in lines) if lines else ""


def beir(
    questions: list[Row], body: Body, links: str = "duplicate"
) -> tuple[list[Row], list[Row], list[str]]:
    """Make the corpus, the queries, and the lines of relevant documents."""
    by_id = {question["Id"]: question for question in questions}
    corpus = [
        {"_id": str(number), "title": question["Title"], "text": body(unmarked(question["Body"]))}
        for number, question in by_id.items()
    ]
    related = linked(by_id, 1) if links != "duplicate" else set()
    duplicated = linked(by_id, 3) if links != "linked" else set()
    both = sorted(related | duplicated)
    queries = [
        {"_id": str(number), "text": by_id[number]["Title"]}
        for number in sorted({source for source, _ in both})
    ]
    grades = [1 + (links == "both" and pair in duplicated) for pair in both]
    judged = zip(both, grades, strict=True)
    return corpus, queries, [f"{pair[0]}\t{pair[1]}\t{grade}" for pair, grade in judged]


def beir_accepted(questions: list[Row], body: Body) -> tuple[list[Row], list[Row], list[str]]:
    """Do the same as `beir`, with accepted answers as the relevant documents."""
    answers = [answer for question in questions for answer in question["Answers"]]
    corpus = [{"_id": str(a["Id"]), "title": "", "text": body(a["Body"])} for a in answers]
    ids = {
        question["Id"]: {answer["Id"] for answer in question["Answers"]} for question in questions
    }
    accepted = [q for q in questions if q.get("AcceptedAnswerId") in ids[q["Id"]]]
    queries = [{"_id": str(question["Id"]), "text": question["Title"]} for question in accepted]
    return corpus, queries, [f"{q['Id']}\t{q['AcceptedAnswerId']}\t1" for q in accepted]


COMMENT = [
    "ContentLicense",
    "CreationDate",
    "Id",
    "PostId",
    "Score",
    "Text",
    "UserDisplayName",
    "UserId",
]
POST = [
    "Body",
    "CommentCount",
    "Comments",
    "CommunityOwnedDate",
    "ContentLicense",
    "CreationDate",
    "Id",
    "LastActivityDate",
    "LastEditDate",
    "LastEditorDisplayName",
    "LastEditorUserId",
    "OwnerDisplayName",
    "OwnerUserId",
    "PostTypeId",
    "Score",
]
ANSWER = sorted([*POST, "IsAccepted", "ParentId"])
QUESTION = sorted(
    [
        *POST,
        "AcceptedAnswerId",
        "AnswerCount",
        "Answers",
        "ClosedDate",
        "FavoriteCount",
        "Tags",
        "Title",
        "ViewCount",
    ]
)


def hub(questions: list[Row], host: str, body: Body) -> list[Row]:
    def picked(row: Row, names: list[str], **more: Any) -> Row:
        row = {**row, **more}
        if "Body" in row:
            row["Body"] = body(row["Body"])
        if "Comments" in names:
            row["Comments"] = [picked(one, COMMENT) for one in row.get("Comments", [])]
        return {name: row[name] for name in names if name in row}

    return [
        picked(
            question,
            QUESTION,
            Tags="".join(f"|{tag}" for tag in question["Tags"]) + "|",
            Answers=[
                picked(answer, ANSWER, IsAccepted=answer["Id"] == question.get("AcceptedAnswerId"))
                for answer in question["Answers"]
            ],
        )
        for question in questions
    ]


def chunks(
    questions: list[Row],
    host: str,
    body: Body,
    max_length: int | None = None,
    overlap: int | None = None,
    tokenizer: str | None = None,
) -> list[Row]:
    """Make the metadata of each passage; another test checks where texts are cut."""
    splitter = Splitter(max_length, overlap, tokenizer)
    records = []
    for question in questions:
        for post in (question, *ranked(question)):
            is_answer = "ParentId" in post
            text = body(lowered(unmarked(post["Body"])))
            text = text if is_answer else f"# {question['Title']}\n\n{text}"
            for number, (at, passage) in enumerate(splitter.cut(text)):
                row = {
                    "id": f"{host}-{post['Id']}-{number}",
                    "text": passage,
                    "start": at,
                    "title": question["Title"],
                    "accepted": post["Id"] == question.get("AcceptedAnswerId"),
                    **about(question, host),
                    **origin(post, host),
                    "score": post["Score"],
                }
                if is_answer:
                    row |= {"answer_id": post["Id"], "url": url_of(post, host)}
                records.append(row)
    return records


class Blocks(HTMLParser):
    """Reads the code blocks of a body with the parser of the standard library."""

    INLINE = frozenset(
        [
            "a",
            "b",
            "br",
            "code",
            "del",
            "em",
            "i",
            "img",
            "kbd",
            "s",
            "span",
            "strike",
            "strong",
            "sub",
            "sup",
        ]
    )

    def __init__(self, body: str) -> None:
        super().__init__()
        self.found: list[tuple[str, str | None, str]] = []
        self.text = self.last = ""
        self.language: str | None = None
        self.is_code = False
        self.feed(body)
        self.close()
        self.end_block()

    def end_block(self) -> None:
        self.last = " ".join(self.text.split()) or self.last
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = (dict(attrs).get("class") or "").split()
        language = [name.partition("-")[2] for name in names if name[:5] == "lang-"]
        if tag == "pre":
            self.end_block()
            self.is_code, self.language = True, None
        elif tag not in self.INLINE and not self.is_code:
            self.end_block()
        if tag in ("pre", "code") and self.is_code:
            self.language = self.language or "".join(language) or None
        if tag == "br":
            self.text += "\n"

    def handle_endtag(self, tag: str) -> None:
        if tag == "pre":
            self.is_code = False
            code = self.text.replace("\r\n", "\n")
            code = code[code.startswith("\n") :]
            code = code[: len(code) - code.endswith("\n")]
            if code.strip():
                language = "" if self.language == "none" else self.language
                self.found.append((self.last, language, code))
            self.text = self.last = ""
        elif tag not in self.INLINE and not self.is_code:
            self.end_block()

    def handle_data(self, data: str) -> None:
        self.text += data


def blocks(questions: list[Row], host: str, body: Body) -> list[Row]:
    records = []
    for question in questions:
        for post in (question, *ranked(question)):
            metadata = part_of(post, question, host) | {
                "score": post["Score"],
                "accepted": post["Id"] == question.get("AcceptedAnswerId"),
                **origin(post, host),
            }
            for number, (before, said, code) in enumerate(Blocks(body(post["Body"])).found):
                row = {"id": f"{host}-{post['Id']}-{number}", "text_before": before, "code": code}
                by_tags = {BY_TAG.get(tag) for tag in question["Tags"]} - {None}
                row["language_from"] = "author"
                language = NAMES.get((said or "").lower(), said or "")
                if said is None:
                    language = "".join(map(str, by_tags)) if len(by_tags) == 1 else ""
                    row["language_from"] = "tags" if language else ""
                records.append({**row, "language": language, "metadata": metadata})
    return records


def edits(folder: Path, host: str) -> list[Row]:
    """Compare each text of a post in its history with the previous one in time."""
    rows = [dict(row.attrib) for row in ElementTree.parse(folder / "PostHistory.xml").getroot()]
    rows.sort(key=lambda row: (row["CreationDate"], int(row["Id"])))
    texts: dict[tuple[int, int], str] = {}
    changes: dict[tuple[int, str], list[Row]] = {}
    for row in rows:
        post_id, kind = int(row["PostId"]), int(row["PostHistoryTypeId"]) - 1
        if kind >= 9:
            continue
        field, text = ("Title", "Body", "Tags")[kind % 3], row.get("Text", "")
        after = text[1:-1].replace("><", " ") if field == "Tags" else text
        before = texts.get((post_id, kind % 3))
        texts[post_id, kind % 3] = after
        if kind >= 3 and before not in (None, after):
            event = ("Initial", "Edit", "Rollback")[kind // 3] + field
            change = {"field": field.lower(), "before": before, "after": after, "event": event}
            changes.setdefault((post_id, row["RevisionGUID"]), []).append(change)
    records = []
    for question in oracle_history.nest(folder, "history-text", users=True).documents:
        for post in (question, *question["Answers"]):
            for entry in post["History"]:
                some = changes.get((post["Id"], entry["RevisionGUID"]), [])
                for change in sorted(
                    some, key=lambda one: ("title", "body", "tags").index(one["field"])
                ):
                    texts_of = {key: change[key] for key in ("field", "before", "after")}
                    row = {"id": f"{host}-{entry['Id']}-{change['field']}", **texts_of}
                    metadata = {"event": change["event"], **origin(entry, host)}
                    row["comment"] = entry.get("Comment", "")
                    row["metadata"] = part_of(post, question, host) | metadata
                    records.append(row)
    return records
