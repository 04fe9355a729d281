"""Statistics as text: a table with small bars."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from so2docs.escape import for_terminal
from so2docs.report import as_size
from so2docs.statistics.survey import Figures, Scores

_BAR = 32
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_TAGS = 20
_LARGE_NUMBER = 10
_KINDS = 20
_SHARES = "questions with"


def as_text(stats: Figures, *, ascii_only: bool = False) -> str:
    """Statistics as lines of text, 80 columns wide at most, but for long names.

    Args:
        stats: The statistics.
        ascii_only: Draw bars with `#`, for a terminal that has nothing finer.
    """
    return "\n".join(_lines(stats, ascii_only))


def _lines(stats: Figures, ascii_only: bool) -> Iterator[str]:
    yield from _facts(
        ("file", stats.path),
        ("size", f"{as_size(stats.file_bytes)}, {as_size(stats.json_bytes)} of JSON"),
        ("questions", f"{stats.questions:,}"),
        ("answers", answers(stats)),
        ("dates", stats.first_date and f"{stats.first_date[:10]} to {stats.last_date[:10]}"),
        ("question scores", _scores(stats.question_scores)),
        ("answer scores", _scores(stats.answer_scores)),
        ("tags", "" if stats.distinct_tags is None else f"{stats.distinct_tags:,}"),
        *nested_counts(stats),
    )
    shares = [("an accepted answer", stats.accepted), ("no answer", stats.unanswered)]
    sections: list[tuple[str, Iterable[tuple[str, int]]]] = [
        (_SHARES, [(label, count) for label, count in shares if count is not None]),
        ("questions by year", stats.questions_by_year.items()),
        ("answers by year", stats.answers_by_year.items()),
        ("questions by number of answers", answers_per_question(stats)),
        ("questions by score", stats.question_scores.histogram.items()),
        ("answers by score", stats.answer_scores.histogram.items()),
        ("most frequent tags", list(stats.tags.items())[:_TAGS]),
        ("longest bodies, in characters", longest(stats)),
        ("posts by number of comments", comments_per_post(stats)),
        ("links by type", (stats.links or {}).items()),
        ("votes by type", list((stats.votes or {}).items())[:_KINDS]),
    ]
    for title, rows in sections:
        yield from _bars(title, list(rows), stats.questions, ascii_only)


def answers(stats: Figures) -> str:
    """How many answers there are; empty if that is not known."""
    if stats.answers is None:
        return ""
    per_question = stats.answers / stats.questions if stats.questions else 0.0
    return f"{stats.answers:,}, {per_question:.2f} a question"


def nested_counts(stats: Figures) -> list[tuple[str, str]]:
    """Labels and texts of the counts of comments, links and votes."""
    posts = stats.questions + (stats.answers or 0) or 1
    lines = []
    if stats.comments is not None:
        lines.append(("comments", f"{stats.comments:,}, {stats.comments / posts:.2f} a post"))
    for label, counts in (("links", stats.links), ("votes", stats.votes)):
        if counts is not None:
            total = sum(counts.values())
            lines.append((label, f"{total:,}, {total / posts:.2f} a post"))
    return lines


def answers_per_question(stats: Figures) -> list[tuple[str, int]]:
    """Questions by number of answers, the large numbers taken together."""
    return _by_number(stats.answers_per_question)


def comments_per_post(stats: Figures) -> list[tuple[str, int]]:
    """Posts by number of comments, the large numbers taken together."""
    return _by_number(stats.comments_per_post or {})


def _by_number(counts: Mapping[int, int]) -> list[tuple[str, int]]:
    rows = [(str(number), counts.get(number, 0)) for number in range(_LARGE_NUMBER)]
    more = sum(count for number, count in counts.items() if number >= _LARGE_NUMBER)
    return [*rows, (f"{_LARGE_NUMBER}+", more)]


def longest(stats: Figures) -> list[tuple[str, int]]:
    """The longest bodies under names that tell questions from answers."""
    return [
        (
            f"question {post['id']}"
            if post["id"] == post["question_id"]
            else f"answer {post['id']} to {post['question_id']}",
            post["characters"],
        )
        for post in stats.longest
    ]


def _facts(*facts: tuple[str, str]) -> Iterator[str]:
    """A line for each fact that is known."""
    for label, value in facts:
        if value:
            yield f"{label:<17} {for_terminal(value)}"


def _scores(scores: Scores) -> str:
    if scores.min is None:
        return ""
    return f"{scores.min:,} to {scores.max:,}, median {scores.median:,}, mean {scores.mean:,.2f}"


def _bars(
    title: str, rows: list[tuple[str, int]], questions: int, ascii_only: bool
) -> Iterator[str]:
    if not any(count for _, count in rows):
        return
    yield ""
    yield title
    most = questions if title == _SHARES else max(count for _, count in rows)
    width = max(len(for_terminal(label)) for label, _ in rows)
    digits = max(len(f"{count:,}") for _, count in rows)
    for label, count in rows:
        share = f" {count / questions:6.1%}" if title.startswith("questions") else ""
        bar = _bar(count / most, ascii_only)
        yield f"  {for_terminal(label):<{width}}  {count:>{digits},}{share}  {bar}".rstrip()


def _bar(share: float, ascii_only: bool) -> str:
    if ascii_only:
        return "#" * round(share * _BAR)
    eighths = round(share * _BAR * 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
