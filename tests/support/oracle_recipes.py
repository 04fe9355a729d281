"""Independent makers of the sets that people know, for complete documents, in plain Python.

They share no code with the package; the documents come from ``oracle``. They leave out the columns
that so2docs adds to these sets for attribution. Each function takes the documents and a function
that converts a body. The samples in ``samples/threads/records`` show the remaining recipes.
"""

import random
from collections.abc import Callable
from math import floor, log
from typing import Any

Row = dict[str, Any]
Body = Callable[[str], str]


def liked(answer: Row, question: Row) -> int:
    """Compute `pm_score` by counting instead of rounding."""
    if answer.get("Score", 0) < 0:
        return -1
    exact = log(1 + answer.get("Score", 0)) / log(2)
    return floor(exact + 0.5) + int(answer["Id"] == question.get("AcceptedAnswerId"))


def preferences(questions: list[Row], host: str, body: Body) -> list[Row]:
    """Make HuggingFaceH4/stack-exchange-preferences."""
    records = []
    for question in questions:
        answers = question["Answers"]
        if len(answers) >= 2 and len({answer["Score"] for answer in answers}) >= 2:
            rows = [
                {
                    "answer_id": answer["Id"],
                    "text": body(answer["Body"]),
                    "pm_score": liked(answer, question),
                    "selected": answer["Id"] == question.get("AcceptedAnswerId"),
                    "author": author(answer),
                    "author_id": answer.get("OwnerUserId", -1),
                    "author_profile": f"https://{host}/users/{answer.get('OwnerUserId', -1)}",
                }
                for answer in answers
            ]
            row = {"qid": question["Id"], "question": body(question["Body"]), "answers": rows}
            records.append(row | origin(question, host))
    return records


def author(answer: Row) -> str:
    if "Owner" in answer:
        return str(answer["Owner"]["DisplayName"])
    return "Community" if answer.get("OwnerUserId", -1) == -1 else "(user-not-found)"


def origin(question: Row, host: str) -> Row:
    """Make the two columns about the source of a question."""
    site, user = f"https://{host}", question.get("OwnerUserId", -1)
    return {
        "date": "/".join(question["CreationDate"][:10].split("-")),
        "metadata": [f"{site}/questions/{question['Id']}", site, f"{site}/users/{user}/"],
    }


def unmarked(html: str) -> str:
    """Remove the note of a possible duplicate from the start of a question."""
    note, end, rest = html.partition("</blockquote>")
    is_note = note.startswith("<blockquote>") and "<strong>Possible Duplicate" in note[:60]
    return rest.lstrip() if end and is_note else html


def pairs(questions: list[Row], host: str, body: Body) -> list[Row]:
    """Make lvwerra/stack-exchange-paired: at most ten pairs of answers to a question."""
    records = []
    for question in questions:
        answers = sorted(question["Answers"], key=lambda answer: (-answer["Score"], answer["Id"]))
        accepted = question.get("AcceptedAnswerId")
        answers.sort(key=lambda answer: (-liked(answer, question), answer["Id"] != accepted))
        every = [
            (better, worse)
            for better in answers
            for worse in answers
            if liked(better, question) > liked(worse, question)
        ]
        if len(every) > 10:
            drawn, dice = set[int](), random.Random(question["Id"])
            while len(drawn) < 10:
                drawn.add(int(dice.random() * len(every)))
            every = [pair for number, pair in enumerate(every) if number in drawn]
        records += [
            {
                "qid": question["Id"],
                "question": body(unmarked(question["Body"])),
                "response_j": body(better["Body"]),
                "response_k": body(worse["Body"]),
                **origin(question, host),
            }
            for better, worse in every
        ]
    return records


def texts(questions: list[Row], host: str, body: Body) -> list[Row]:
    """Make flax-sentence-embeddings/stackexchange_titlebody_best_voted_answer_jsonl."""
    records = []
    for question in questions:
        title, text = question["Title"], body(unmarked(question["Body"]))
        if len(title) < 20 or not 20 <= len(text) <= 4096 or question["Score"] < 0:
            continue
        if question["Answers"]:
            best = max(question["Answers"], key=lambda answer: answer["Score"])
            row = {"title_body": f"{title} {text}", "upvoted_answer": body(best["Body"])}
            records.append(row | {"tags": question["Tags"]})
    return records


def duplicates(questions: list[Row], body: Body) -> dict[str, list[Row]]:
    """Make sentence-transformers/stackexchange-duplicates, by the names of its subsets."""
    by_id = {question["Id"]: question for question in questions}
    files: dict[str, list[Row]] = {f"{name}-{name}-pair": [] for name in ("post", "title", "body")}
    for numbers in sorted(linked(by_id)):
        pair = [by_id[number] for number in numbers]
        texts = {
            "title": [question["Title"] for question in pair],
            "body": [body(unmarked(question["Body"])) for question in pair],
            "post": [
                f"{question['Title']}\n\n{body(unmarked(question['Body']))}".removesuffix("\n\n")
                for question in pair
            ],
        }
        for name, (first, second) in texts.items():
            files[f"{name}-{name}-pair"].append({f"{name}1": first, f"{name}2": second})
    return files


def linked(questions: dict[int, Row]) -> set[tuple[int, int]]:
    """Return the links from duplicates to their originals among the questions."""
    return {
        (number, link["RelatedPostId"])
        for number, question in questions.items()
        for link in question["Links"]
        if link["LinkTypeId"] == 3 and link["RelatedPostId"] in questions.keys() - {number}
    }


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


def beir(questions: list[Row], body: Body) -> tuple[list[Row], list[Row], list[str]]:
    """Make the corpus, the queries, and the lines of relevant documents."""
    by_id = {question["Id"]: question for question in questions}
    corpus = [
        {"_id": str(number), "title": question["Title"], "text": body(unmarked(question["Body"]))}
        for number, question in by_id.items()
    ]
    judged = sorted(linked(by_id))
    queries = [
        {"_id": str(number), "text": by_id[number]["Title"]}
        for number in sorted({source for source, _ in judged})
    ]
    return corpus, queries, [f"{source}\t{target}\t1" for source, target in judged]
