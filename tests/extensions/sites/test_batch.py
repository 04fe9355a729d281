"""Several dumps in one call: each gets an output, even if others fail."""

import gzip
import json
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from support.command import COMMAND, run
from support.dumps import question, unpacked, write_dump
from support.interruptions import stopped, wait_for
from support.places import SAMPLES

import so2docs
from so2docs.errors import RESUMES
from so2docs.extensions.sites import batch
from so2docs.extensions.sites.tasks import summary
from so2docs.options.sites import site_from_name

PLAIN = (SAMPLES / "posts.xml").read_bytes()


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    """A folder with a compressed dump, a truncated one, and a subfolder with one."""
    (tmp_path / "beer.stackexchange.com.xml.gz").write_bytes(gzip.compress(PLAIN))
    (tmp_path / "broken.gz").write_bytes(gzip.compress(PLAIN)[:2000])
    (tmp_path / "coffee").mkdir()
    (tmp_path / "coffee" / "Posts.xml").write_bytes(PLAIN)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "site"),
    [
        ("beer.stackexchange.com.7z", "beer.stackexchange.com"),
        ("stackoverflow.com-Posts.7z", "stackoverflow.com"),
        ("dumps/beer/Posts.xml", "beer"),
        ("dumps/beer/posts.XML.gz", "beer"),
        ("beer-posts.xml.bz2", "beer"),
        ("beer.xml", "beer"),
        ("beer", "beer"),
        ("beer.stackexchange.com-2024-07.7z", "beer.stackexchange.com"),
        ("beer.stackexchange.com_20240701.7z", "beer.stackexchange.com"),
        ("beer.stackexchange.com.2024-07-01.zip", "beer.stackexchange.com"),
        ("beer.stackexchange.com (2024-07).7z", "beer.stackexchange.com"),
        ("2024-07-01_beer.stackexchange.com.7z", "beer.stackexchange.com"),
        ("release-2024Q3-beer.stackexchange.com.7z", "beer.stackexchange.com"),
        ("stackoverflow.com-Posts-2024-07.7z", "stackoverflow.com"),
        ("stackoverflow.com-2024-07-Posts.7z", "stackoverflow.com"),
        ("beer.stackexchange.com-2024-07/Posts.xml", "beer.stackexchange.com"),
        ("beer.stackexchange.com (1).7z", "beer.stackexchange.com"),
        ("beer.stackexchange.com(12).7z", "beer.stackexchange.com"),
        ("beer.stackexchange.com - Copy.7z", "beer.stackexchange.com"),
        ("beer.stackexchange.com copy.7z", "beer.stackexchange.com"),
        ("beer.stackexchange.com.7z.1", "beer.stackexchange.com"),
        ("beer.stackexchange.com.tgz", "beer.stackexchange.com"),
        ("beer.stackexchange.com.tar.gz", "beer.stackexchange.com"),
        ("beer.stackexchange.com (1)/Posts.xml", "beer.stackexchange.com"),
        ("beer.stackexchange.com/Posts (1).xml", "beer.stackexchange.com"),
        ("stackoverflow.com-Posts (1).7z", "stackoverflow.com"),
        ("beer-2024-07 (1).7z", "beer-2024-07 (1)"),
        ("sample-2024.xml", "sample-2024"),
        ("2024-07.7z", "2024-07"),
    ],
)
def test_site_of(name: str, site: str) -> None:
    assert site_from_name(name) == site


def test_a_link_or_its_folder_names_the_site(tmp_path: Path) -> None:
    for folder in ("store", "beer.stackexchange.com"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "Posts.xml").touch()
    (tmp_path / "iota.stackexchange.com").symlink_to("store")
    (tmp_path / "newest").symlink_to("beer.stackexchange.com")
    for name, site in (
        ("iota.stackexchange.com", "iota.stackexchange.com"),
        ("newest", "beer.stackexchange.com"),
        ("store", "store"),
    ):
        assert site_from_name(tmp_path / name) == site
        assert site_from_name(tmp_path / name / "Posts.xml") == site


def test_converts_the_other_dumps_after_an_error_and_prints_totals(dumps: Path) -> None:
    sources = [dumps / "beer.stackexchange.com.xml.gz", dumps / "broken.gz", dumps / "coffee"]
    out = dumps / "out"
    report = dumps / "report.json"
    result = run(
        "convert", *sources, "--output-dir", out, "--report", report, "--jobs", "1", code=3
    )
    assert "broken.gz: is a gzip file that is truncated" in result.stderr
    *_, total, last = result.stderr.splitlines()
    assert total.split()[:4] == ["total", "16", "22", "0"]  # Twice the questions and answers.
    assert last == "3 sites: 2 converted, 1 failed"
    assert sorted(path.name for path in out.glob("*.jsonl.gz")) == [
        "beer.stackexchange.com.jsonl.gz",
        "coffee.jsonl.gz",
    ]
    for path in out.glob("*.jsonl.gz"):
        assert gzip.decompress(path.read_bytes()) == (SAMPLES / "posts.jsonl").read_bytes()
    reports = json.loads(report.read_text(encoding="utf-8"))
    assert [bool(of_one["error"]) for of_one in reports] == [False, True, False]


def test_the_report_of_an_interrupted_run(dumps: Path) -> None:
    sources = dumps / "beer.stackexchange.com.xml.gz", dumps / "coffee"
    report = dumps / "report.json"
    words = ("-q", "--output-dir", dumps / "out", "--jobs", "1", "--report", report)
    with stopped(batch, "convert_validated", lambda source, *_, **__: source.endswith("coffee")):
        run("convert", *sources, *words)
    [entry] = json.loads(report.read_text(encoding="utf-8"))
    assert (entry["site"], entry["state"]) == ("beer.stackexchange.com", "converted")


@pytest.fixture
def sites(tmp_path: Path) -> list[Path]:
    """Small dumps, some compressed; one is damaged, and the output of one exists."""
    folders = []
    for number in range(6):
        folder = tmp_path / f"site{number}.stackexchange.com"
        folder.mkdir()
        (folder / "Posts.xml").write_bytes(PLAIN)
        folders.append(folder)
    (folders[2] / "Posts.xml").write_bytes(PLAIN[:3000])
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "site4.stackexchange.com.jsonl.gz").write_bytes(b"there")
    return folders


def test_side_by_side_is_one_after_the_other(sites: list[Path], tmp_path: Path) -> None:
    """One process or several: the same outputs, states, reports and order."""
    contents = []
    for jobs in (1, 2):
        folder = tmp_path / "out"
        ended: list[str] = []
        results = so2docs.convert_all(
            sites,
            folder,
            jobs=jobs,
            site_field="Site",
            when_done=lambda conversion, ended=ended: ended.append(conversion.site),
        )
        assert sorted(ended) == [conversion.site for conversion in results]
        assert [conversion.source for conversion in results] == list(map(str, sites))
        contents.append([(conversion.state, str(conversion)) for conversion in results])
        outputs = {path.name: path.read_bytes() for path in folder.glob("*.gz")}
        assert len(outputs) == 5
        contents.append([outputs])
        for conversion in results:
            if conversion.state == "converted":
                Path(conversion.output).unlink()
            if conversion.result is not None:
                assert conversion.result.jobs == 1
    assert contents[:2] == contents[2:]
    states = [state for state, _ in contents[0]]
    assert states == ["converted"] * 2 + ["failed", "converted", "unknown", "converted"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a small file system")
def test_a_full_disk(tmp_path: Path, tmpfs: Callable[[int], Path]) -> None:
    full = tmpfs(300_000)
    (full / "fill").write_bytes(bytes(1))
    dumps = sorted(write_dump(tmp_path / f"site{n}.xml", question(1)) for n in range(20))
    with suppress(OSError), open(full / "fill", "wb", buffering=0) as file:
        while True:
            file.write(bytes(1000))
    command = ["convert", *dumps, "--output-dir", full, "--jobs", "2", "-q"]
    result = run(*command, code=1)
    lines = result.stderr.splitlines()
    assert len(lines) == 20
    assert all("the disk is full; free some space" in line for line in lines)
    assert run(*command, "--report", full / "r.json").stderr.count('"state": "failed"') == 20


DEADLY = """
import os, signal, time

def made(document):
    if document["Site"] == "site3.stackexchange.com":
        while not os.path.exists({later!r}):  # The other worker makes that.
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    return [{{"Id": document["Id"]}}]
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_killed_process_fails_its_site_only(
    sites: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = str(tmp_path / "new" / "site5.stackexchange.com.jsonl.gz")
    (tmp_path / "deadly.py").write_text(DEADLY.format(later=later), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    results = so2docs.convert_all(
        sites, tmp_path / "new", site_field="Site", recipe="deadly:made", jobs=2
    )
    assert [conversion.state for conversion in results] == [
        *("converted", "converted", "failed", "failed", "converted", "converted")
    ]
    assert isinstance(results[2].error, so2docs.TruncatedDumpError)
    assert isinstance(results[3].error, so2docs.WorkerDiedError)


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_stopped_side_by_side(
    number: int, code: int, large_site: tuple[Path, list[bytes]], tmp_path: Path
) -> None:
    """After an interruption, the same command makes the same outputs."""
    site, expected = large_site
    sites = [tmp_path / f"site{name}.stackexchange.com" for name in "abcdef"]
    for folder in sites:
        shutil.copytree(site, folder)
    out = tmp_path / "out"
    command = [*COMMAND, "convert", *map(str, sites), "--nest", "all", "--jobs", "2"]
    process = subprocess.Popen([*command, "--output-dir", str(out)], stderr=subprocess.PIPE)
    wait_for(lambda: process.poll() is not None or list(out.glob("*.jsonl.gz")))
    process.send_signal(number)
    # Workers also hold the pipe, so its end shows that none is left.
    _, stderr = process.communicate()
    if len(list(out.glob("*.jsonl.gz"))) == len(sites):
        pytest.skip("all was done before the signal came")
    assert process.returncode == code, stderr
    assert b"Traceback" not in stderr
    if number == signal.SIGINT:
        assert stderr.splitlines()[-1].endswith(f"; {RESUMES}".encode())
    results = so2docs.convert_all(sites, out, nest="all", jobs=2)
    states = Counter(conversion.state for conversion in results)
    # A worker may have finished its output after the command was killed.
    assert states["converted"] + states["up to date"] == len(sites)
    assert states["converted"] > 0
    for conversion in results:
        assert unpacked(Path(conversion.output)) == expected[0]
    assert not list(out.glob("*.spill"))


def test_the_summary_table_has_counts(tmp_path: Path) -> None:
    site = tmp_path / "tea.stackexchange.com"
    shutil.copytree(SAMPLES / "site", site)
    results = so2docs.convert_all(
        [site, tmp_path / "no.stackexchange.com.xml"],
        tmp_path / "out",
        recipe="qa",
        min_score=1,
        jobs=1,
    )
    first = results[0].result
    assert first is not None
    header, of_site, of_missing, total, _ = summary(results).splitlines()
    names = ["questions", "answers", "strays", "filtered", "records"]
    assert header.split() == ["site", "state", *names, "seconds"]
    numbers = (first.questions, first.answers, first.strays.total(), first.filtered, first.records)
    assert of_site.split()[2:-1] == [str(number) for number in numbers]
    assert of_missing.split() == ["no.stackexchange.com", "failed"]
    assert total.split()[1:-1] == of_site.split()[2:-1]
    assert f"{first.records} records -> " in str(results[0])


def test_a_single_path_is_refused(tmp_path: Path) -> None:
    """Otherwise its letters would be taken for paths of dumps."""
    for function in (
        so2docs.convert_all,
        partial(so2docs.for_each_site, so2docs.tables),
        partial(so2docs.for_each_site, so2docs.to_sqlite),
    ):
        with pytest.raises(so2docs.OptionError, match=r"Posts\.xml: is a single path"):
            function("Posts.xml", tmp_path / "out")
