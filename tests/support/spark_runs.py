"""Helpers for the tests on Spark: conditions for running them, and comparisons."""

import gzip
import random
from pathlib import Path
from typing import Any

import so2docs
from so2docs.extensions.sites.tasks import SiteResult
from so2docs.output.provenance import UP_TO_DATE
from support.dumps import answer, question, write_dump
from support.places import SAMPLES

SAMPLE_NAMES = sorted(path.stem for path in SAMPLES.glob("*.xml"))


def reports(results: list[SiteResult]) -> dict[str, so2docs.Report]:
    """Return the reports of the converted sites."""
    return {one.site: one.result for one in results if one.result is not None}


def errors(results: list[SiteResult]) -> dict[str, Exception]:
    """Return the errors of the failed sites."""
    return {one.site: one.error for one in results if one.error is not None}


def up_to_date(results: list[SiteResult]) -> list[str]:
    """Return the names of the sites that were finished before."""
    return [one.site for one in results if one.state == UP_TO_DATE]


def lines_of(folder: Path, pattern: str = "part-*.jsonl.gz") -> list[bytes]:
    """Return the lines of the part files, one after the other."""
    return [line for path in sorted(folder.glob(pattern)) for line in gzip.open(path)]


def files_of(folder: Path) -> dict[str, bytes]:
    """Return all files below a folder, without the parts of `_SUCCESS` that differ between runs."""
    return {
        str(path.relative_to(folder)): b"" if path.name == "_SUCCESS" else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def sparse_dump(path: Path, ids: range, malformed: int | None = None) -> Path:
    """Write a dump with ids far apart, and answers before and long after their questions."""
    rows = []
    for number, post_id in enumerate(ids):
        body = "\n".join([f"post {post_id}"] * (number % 40))
        parent = ids[(number * 7) % len(ids) // 3 * 3]
        new = answer(post_id, parent, Body=body) if number % 3 else question(post_id, Body=body)
        rows.append(new.replace(b"/>", b"") if post_id == malformed else new)
    return write_dump(path, *rows)


def noisy_dump(path: Path, ids: range) -> Path:
    """Write a dump with an answer to each question, and bodies that hardly compress."""
    noise = random.Random(1)
    rows = []
    for post_id in ids:
        rows.append(question(post_id, Body=noise.randbytes(10_000).hex()))
        rows.append(answer(post_id + 1, post_id))
    noise.shuffle(rows)
    return write_dump(path, *rows)


COUNTED = (
    "rows",
    "questions",
    "answers",
    "strays",
    "other_types",
    "filtered",
    "repaired_characters",
    "core",
)


def assert_same_counts(actual: so2docs.Report, plain: so2docs.Report) -> None:
    """Check that both reports count the same rows of posts and of tables."""
    for name in COUNTED:
        assert getattr(actual, name) == getattr(plain, name), name
    assert list(actual.tables) == list(plain.tables)
    for name, table in plain.tables.items():
        assert actual.tables[name] == table


def assert_same_as_plain(
    dump: Path, folder: Path, plain: Path, actual: so2docs.Report | None = None, **options: Any
) -> None:
    """Check that the lines and counts of a site equal those of `so2docs.convert`."""
    plain.mkdir()
    report = so2docs.convert(dump, plain / "questions.jsonl.gz", jobs=1, **options)
    if actual is not None:
        assert_same_counts(actual, report)
    assert lines_of(folder) == lines_of(plain, "questions.jsonl.gz")
    assert lines_of(folder, ".strays-*") == lines_of(plain, ".questions.jsonl.gz.strays.gz")
    assert (folder / "_SUCCESS").exists()
    assert not list(folder.glob("_temporary*"))
