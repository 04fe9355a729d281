"""`so2docs.stats` agrees with counts of the oracle's documents; its views."""

import json
import re
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.command import run
from support.oracle import nest
from support.oracle_tables import FILES
from support.oracle_tables import nest as nest_tables
from support.places import SAMPLES
from support.table_sites import SITE

import so2docs
from so2docs.extensions.statistics import stats as counting

SAMPLE_NAMES = sorted(path.name for path in SAMPLES.glob("*.xml"))


def counted(documents: list[dict[str, Any]]) -> dict[str, Any]:
    """Count the expected statistics of documents."""
    answers = [answer for document in documents for answer in document["Answers"]]
    tags = Counter(tag for document in documents for tag in document.get("Tags", []))
    ranked = sorted(tags, key=lambda tag: (-tags[tag], tag))
    posts = [
        (post, document) for document in documents for post in (document, *document["Answers"])
    ]
    dates = [
        post["CreationDate"] for post, _ in posts if post.get("CreationDate", "")[:4].isdigit()
    ]
    lengths = sorted(
        (-len(post["Body"]), post["Id"], document["Id"])
        for post, document in posts
        if "Body" in post
    )
    unanswered = sum(not document["Answers"] for document in documents) if documents else None
    # If no question has an accepted answer, the field may have been left out.
    accepted = sum("AcceptedAnswerId" in document for document in documents) or None
    return {
        "questions": len(documents),
        "answers": len(answers) if documents else None,
        "accepted": accepted,
        "unanswered": unanswered,
        "accepted_share": round(accepted / len(documents), 6) if accepted else None,
        "unanswered_share": round(unanswered / len(documents), 6) if documents else None,
        "first_date": min(dates, default=""),
        "last_date": max(dates, default=""),
        "questions_by_year": by_year(documents),
        "answers_by_year": by_year(answers),
        "answers_per_question": {
            str(number): count
            for number, count in sorted(Counter(len(d["Answers"]) for d in documents).items())
        },
        "question_scores": scores(documents),
        "answer_scores": scores(answers),
        "distinct_tags": len(tags) if any("Tags" in document for document in documents) else None,
        "tags": {tag: tags[tag] for tag in ranked[:100]},
        "longest": [
            {"id": post_id, "question_id": question_id, "characters": -length}
            for length, post_id, question_id in sorted(lengths)[:10]
        ],
    }


def counted_nested(documents: list[dict[str, Any]]) -> dict[str, Any]:
    """Count the expected comments, links and votes, if every post has them."""
    posts = [post for document in documents for post in (document, *document["Answers"])]
    comments = [len(post["Comments"]) for post in posts]
    votes: Counter[str] = Counter()
    for post in posts:
        votes.update(post["Votes"])
    links = Counter(link.get("LinkType", "") for post in posts for link in post["Links"])
    return {
        "comments": sum(comments),
        "comments_per_post": {str(n): count for n, count in sorted(Counter(comments).items())},
        "links": dict(sorted(links.items(), key=lambda item: (-item[1], item[0]))),
        "votes": dict(sorted(votes.items(), key=lambda item: (-item[1], item[0]))),
    }


def by_year(posts: list[dict[str, Any]]) -> dict[str, int]:
    years = [post.get("CreationDate", "")[:4] for post in posts]
    return dict(sorted(Counter(year for year in years if year.isdigit()).items()))


def scores(posts: list[dict[str, Any]]) -> dict[str, Any]:
    values = [post["Score"] for post in posts if isinstance(post.get("Score"), int)]
    limits = {"below 0": (-(10**20), 0), "3-4": (3, 5), "5-9": (5, 10)}
    limits |= {"10-24": (10, 25), "25-99": (25, 100), "100+": (100, 10**20)}
    names = ["below 0", "0", "1", "2", "3-4", "5-9", "10-24", "25-99", "100+"]
    ranges = {name: limits.get(name) or (int(name), int(name) + 1) for name in names}
    return {
        "min": min(values, default=None),
        "median": statistics.median_low(values) if values else None,
        "mean": round(sum(values) / len(values), 3) if values else None,
        "max": max(values, default=None),
        "histogram": {
            name: sum(low <= score < high for score in values)
            for name, (low, high) in ranges.items()
        },
    }


def assert_right(output: Path, documents: list[dict[str, Any]], jobs: int = 1) -> so2docs.Stats:
    actual = so2docs.stats(output, jobs=jobs)
    fields = actual.as_dict()
    assert fields.pop("path") == str(output)
    assert fields.pop("file_bytes") == output.stat().st_size
    lines = [json.dumps(d, ensure_ascii=False, separators=(",", ":")).encode() for d in documents]
    assert fields.pop("json_bytes") == sum(map(len, lines)) + len(lines)
    expected = counted(documents)
    if documents and "Votes" in documents[0]:
        expected |= counted_nested(documents)
    assert fields == expected
    return actual


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stats") / "questions.jsonl.gz"
    so2docs.convert(SAMPLES / "posts.xml", path, jobs=1)
    return path


@pytest.mark.parametrize("name", SAMPLE_NAMES)
def test_samples(name: str, tmp_path: Path) -> None:
    output = tmp_path / "questions.jsonl.gz"
    so2docs.convert(SAMPLES / name, output, jobs=1)
    check_views(assert_right(output, nest(SAMPLES / name).documents))


def test_published_dumps(real_dump: Path, tmp_path: Path) -> None:
    output = tmp_path / "questions.jsonl.gz"
    so2docs.convert(real_dump, output, jobs=1)
    check_views(assert_right(output, nest(real_dump).documents))


def test_comments_links_and_votes(tmp_path: Path) -> None:
    output = tmp_path / "questions.jsonl.gz"
    so2docs.convert(SITE, output, jobs=1, nest="all")
    found = assert_right(output, nest_tables(SITE, FILES).documents)
    check_views(found)
    text = str(found)
    assert "comments            7, 1.17 a post" in text
    assert "  duplicate  1\n" in text
    assert "  AcceptedByOriginator   1\n" in text
    assert "votes               17, 2.83 a post" in text
    assert re.search(r"^  UpMod +5$", text, re.MULTILINE)


def test_one_table_only(tmp_path: Path) -> None:
    output = tmp_path / "questions.jsonl.gz"
    so2docs.convert(SITE, output, jobs=1, nest=["links"])
    stats = so2docs.stats(output)
    assert stats.links == counted_nested(nest_tables(SITE, FILES).documents)["links"]
    assert (stats.comments, stats.comments_per_post, stats.votes) == (None, None, None)
    assert "links" in stats.as_dict()
    assert not {"comments", "comments_per_post", "votes"} & stats.as_dict().keys()
    check_views(stats)


def test_malformed_nested_parts(tmp_path: Path) -> None:
    output = tmp_path / "questions.jsonl"
    lines: list[dict[str, Any]] = [
        {"Id": 1, "Comments": "no", "Links": {}, "Votes": []},
        {"Id": 2, "Comments": [{}] * 1500, "Links": [{}, {"LinkType": 7}], "Votes": {"a": "b"}},
        {"Id": 3, "Votes": {"UpMod": 2, "odd": True}},
    ]
    output.write_text("".join(json.dumps(line) + "\n" for line in lines))
    stats = so2docs.stats(output)
    assert (stats.comments, stats.comments_per_post) == (1500, {1500: 1})
    assert stats.links == {"": 1, "7": 1}
    assert stats.votes == {"UpMod": 2}
    check_views(stats)


def test_same_for_any_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "_TASK_BYTES", 1 << 20)
    documents: list[dict[str, Any]] = [
        {"Id": number, "Score": number % 37 - 3, "Tags": [f"t{number % 7}"], "Body": "b" * 400}
        | {"CreationDate": f"{2000 + number % 20}-01-01T00:00:00.000", "Answers": []}
        for number in range(1, 8_000)
    ]
    output = tmp_path / "questions.jsonl"
    lines = [json.dumps(document, separators=(",", ":")) + "\n" for document in documents]
    output.write_text("".join(lines))
    so2docs.open(output).close()
    one, several = (assert_right(output, documents, jobs) for jobs in (1, 2))
    assert one == several


def test_missing_and_malformed_fields(tmp_path: Path) -> None:
    output = tmp_path / "questions.jsonl"
    lines = [
        {"Id": 1},
        {"Id": 2, "Score": "many", "Tags": "|a|", "CreationDate": "long ago", "Answers": []},
        {"Id": 3, "Score": True, "Tags": [], "CreationDate": "", "Answers": [{}]},
        {"Id": 4, "Score": 10**12, "Answers": [{"Id": 5, "Score": -(10**12)}]},
    ]
    output.write_text("".join(json.dumps(line) + "\n" for line in lines))
    stats = so2docs.stats(output)
    assert (stats.questions, stats.answers, stats.unanswered) == (4, 2, 2)
    assert stats.question_scores.max == 10**12
    assert stats.question_scores.median == counting.LARGEST_SCORE
    assert stats.answer_scores.min == -(10**12)
    assert stats.questions_by_year == {}
    check_views(stats)


def test_fields_left_out_are_not_counted(tmp_path: Path) -> None:
    output = tmp_path / "questions.jsonl.gz"
    so2docs.convert(SAMPLES / "posts.xml", output, fields="Id,Title", jobs=1)
    stats = so2docs.stats(output)
    assert stats.questions == 8
    assert (stats.answers, stats.accepted, stats.unanswered) == (None, None, None)
    assert (stats.accepted_share, stats.unanswered_share, stats.distinct_tags) == (None, None, None)
    assert not re.search(r"answer|tag|score|%|0001| to |bodies", str(stats))
    check_views(stats)
    so2docs.convert(
        SAMPLES / "posts.xml", output, drop_fields="AcceptedAnswerId", jobs=1, force=True
    )
    stats = so2docs.stats(output)
    assert stats.accepted is None
    assert stats.unanswered == 1
    assert "accepted" not in str(stats)


def test_many_tags_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MOST_TAGS", 100)
    total = so2docs.Stats("")
    for number in range(50):
        total += counting.count(
            [{"Id": n, "Tags": ["often", f"tag-{n}"]} for n in range(number * 9, number * 9 + 9)]
        )
        assert len(total.tags) <= 100
    assert total.tags["often"] == 450


def test_damaged_output_is_an_error(tmp_path: Path) -> None:
    output = tmp_path / "questions.jsonl.gz"
    so2docs.convert(SAMPLES / "posts.xml", output, jobs=1)
    with output.open("r+b") as file:
        file.seek(100)
        file.write(b"~~~~")
    with pytest.raises(so2docs.OutputError, match=r"questions\.jsonl\.gz: is damaged"):
        so2docs.stats(output)
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"Id":1}\nnot JSON\n{"Id":3}\n')
    with pytest.raises(so2docs.OutputError, match=r"broken\.jsonl: .* not a document"):
        so2docs.stats(broken)


def check_views(stats: so2docs.Stats) -> None:
    """Check that the views contain the number of questions."""
    text = str(stats)
    assert repr(stats) == f"<Stats\n{text}>"
    assert f"{stats.questions:,}" in text


def test_the_text_escapes_values_from_documents(tmp_path: Path) -> None:
    output = tmp_path / "a&b<i>.jsonl"
    tag = "<script>alert('&')</script>\x1b[2J"
    output.write_text(json.dumps({"Id": 1, "Tags": [tag], "Answers": []}) + "\n")
    stats = so2docs.stats(output)
    check_views(stats)
    assert "\x1b" not in str(stats)


def test_command(output: Path) -> None:
    stats = so2docs.stats(output)
    result = run("stats", output)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == f"{stats}\n"
    result = run("stats", output, "--json")
    assert json.loads(result.stdout) == stats.as_dict()


def test_errors_of_the_command() -> None:
    result = run("stats", "nowhere.jsonl.gz")
    assert (result.returncode, result.stdout) == (1, "")
    assert "nowhere.jsonl.gz: cannot be read" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["pairs.jsonl", "messages.jsonl.gz"])
def test_records_of_a_recipe(name: str, tmp_path: Path) -> None:
    recipe, output = name.partition(".")[0], tmp_path / name
    so2docs.convert(
        SAMPLES / "posts.xml", output, recipe=recipe, site="beer.stackexchange.com", jobs=1
    )
    records = list(so2docs.read(output, dict[str, Any]))
    stats = so2docs.stats(output)
    assert (stats.recipe, stats.records) == (recipe, len(records))
    assert stats.lengths is not None
    if recipe == "pairs":
        lengths = sorted(len(record["prompt"]) for record in records)
        prompts = stats.lengths["prompt"]
        assert (prompts.min, prompts.max, prompts.sum) == (lengths[0], lengths[-1], sum(lengths))
    else:
        texts = [sum(map(len, turn.values())) for turn in records[0]["messages"]]
        assert stats.lengths["messages"].posts[sum(texts)]
    assert re.search(rf"^records .*, recipe {recipe}$", str(stats), re.MULTILINE)
    shown = json.loads(run("stats", output, "--json").stdout)
    assert shown == json.loads(json.dumps(stats.as_dict()))
    for command in (["show", output, "1"], ["diff", output, output]):
        result = run(*command, code=1)
        assert f"records of the recipe {recipe}" in result.stderr
