"""Resident memory does not grow with the dump, measured in a process for each size."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform == "win32", reason="the system does not tell"),
]
ROW = (
    '  <row Id="{id}" PostTypeId="{kind}" {parent}Score="3" Body="&lt;p&gt;{body}&lt;/p&gt;" />\r\n'
)
BODIES = [" ".join(f"w{n * step % 9973}" for step in range(1, 20)) for n in range(1, 500)]


def write_dump(path: Path, rows: int) -> None:
    """Write rows of 0.2 kB; every third is a question, whose answers follow a little later."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write('<?xml version="1.0" encoding="utf-8"?>\r\n<posts>\r\n')
        for number in range(1, rows + 1):
            is_question = number % 3 == 1
            parent = "" if is_question else f'ParentId="{max(1, number - number % 3 - 29)}" '
            kind, body = 1 if is_question else 2, BODIES[number % len(BODIES)]
            file.write(ROW.format(id=number, kind=kind, parent=parent, body=body))
        file.write("</posts>")


def peak_memory(dump: Path, jobs: int, nest: tuple[str, ...] = ()) -> int:
    script = (
        "import sys, so2docs; print(so2docs.convert(sys.argv[1], sys.argv[1] + '.jsonl.gz', "
        f"jobs={jobs}, nest={nest}, chunk_bytes=4_000_000, force=True).peak_memory_bytes)"
    )
    return int(subprocess.check_output([sys.executable, "-c", script, dump]))


@pytest.mark.parametrize("jobs", [1, 2])
def test_six_times_the_rows_need_no_more_memory(jobs: int, tmp_path: Path) -> None:
    peaks = []
    for rows in (50_000, 300_000):  # A bucket has 2^14 ids, so the smaller dump fills four buckets.
        write_dump(tmp_path / f"{rows}.xml", rows)
        peaks.append(peak_memory(tmp_path / f"{rows}.xml", jobs))
    # A leak of 130 bytes per row, which lxml's clear() alone leaves behind, would add 27 % or more.
    assert peaks[1] < 1.2 * peaks[0]
    assert peaks[1] < (100 + 100 * jobs) * 2**20


def test_large_posts_under_neighbouring_ids_need_no_more_memory(tmp_path: Path) -> None:
    """All posts are in one bucket, whose size does not follow from its ids."""
    body = random.Random(1).randbytes(1 << 14).hex() * 64
    peaks = []
    for rows in (24, 96):
        path = tmp_path / f"{rows}.xml"
        posts = [f'<row Id="{n}" PostTypeId="1" Body="{body}" />\n' for n in range(1, rows + 1)]
        path.write_text(f"<posts>\n{''.join(posts)}</posts>")
        peaks.append(peak_memory(path, 1))
    assert peaks[1] < 1.3 * peaks[0]
    assert peaks[1] < 256 * 2**20


def test_votes_in_any_order_need_no_more_memory(tmp_path: Path) -> None:
    """Every chunk has votes of every post; only their number by type is kept."""
    rng = random.Random(1)
    row = '<row Id="{}" PostId="{}" VoteTypeId="{}" CreationDate="2019-01-01T00:00:00.000" />\n'
    peaks = []
    for votes in (200_000, 1_000_000):
        folder = tmp_path / f"{votes}"
        folder.mkdir()
        write_dump(folder / "Posts.xml", 9_000)
        rows = "".join(
            row.format(number, rng.randint(1, 9_000), rng.choice((2, 2, 3)))
            for number in range(50_000)
        )
        repeated = rows * (votes // 50_000)
        (folder / "Votes.xml").write_text(f"<votes>\n{repeated}</votes>")
        peaks.append(peak_memory(folder, 1, ("votes",)))
    assert peaks[1] < 1.3 * peaks[0]
