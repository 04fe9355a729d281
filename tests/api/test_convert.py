"""The library: convert, documents, read, and the report."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.command import run_python
from support.dumps import question, row, write_dump

import so2docs
from so2docs.errors import So2docsError
from so2docs.output.product import read_provenance


def text_of(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes())


def test_documents_report_is_complete_at_the_end(samples: Path) -> None:
    documents = so2docs.documents(samples / "strays.xml")
    with pytest.raises(So2docsError, match="is not complete; read all documents"):
        documents.report  # noqa: B018
    assert len(list(documents)) == 3
    assert sum(documents.report.strays.values()) == 15


def test_documents_leave_no_spill_behind_when_stopped_early(samples: Path, tmp_path: Path) -> None:
    documents = so2docs.documents(samples / "posts.xml", work_dir=tmp_path)
    next(documents)
    assert list(tmp_path.iterdir())
    documents.close()
    assert list(tmp_path.iterdir()) == []


def test_report_reads_well(samples: Path, tmp_path: Path) -> None:
    report = so2docs.convert(samples / "strays.xml", tmp_path / "q.jsonl.gz")
    assert repr(report).startswith("<Report\nrows                 24\n")
    assert json.loads(json.dumps(report.as_dict()))["rows"] == 24
    assert report.strays_path == str(tmp_path / ".q.jsonl.gz.strays.gz")


def test_the_report_detects_a_lost_row() -> None:
    with pytest.raises(so2docs.InternalError, match=r"3 rows .* 2 accounted"):
        so2docs.Report(dump="Posts.xml", output="q", rows=3, questions=1, answers=1).check()


def test_read_takes_files_compressed_or_not(samples: Path, tmp_path: Path) -> None:
    so2docs.convert(samples / "posts.xml", tmp_path / "q.jsonl.gz")
    expected = [json.loads(line) for line in (samples / "posts.jsonl").read_bytes().splitlines()]
    assert list(so2docs.read(samples / "posts.jsonl")) == expected
    with open(tmp_path / "q.jsonl.gz", "rb") as file:
        assert list(so2docs.read(file)) == expected
        assert not file.closed
    assert list(so2docs.read(io.BytesIO((samples / "posts.jsonl").read_bytes()))) == expected


@pytest.mark.parametrize("call", [so2docs.convert, so2docs.documents])
@pytest.mark.parametrize(
    ("source", "words"),
    [
        (3, "the dump is 3"),
        (None, "the dump is None"),
        (["Posts.xml"], "convert_all"),
        (b"Posts.xml", "must be a path"),
        (io.StringIO("<posts/>"), "binary mode"),
    ],
)
def test_sources_other_than_dumps(call: Any, source: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(so2docs.OptionError, match=words):
        call(source, **({"output": tmp_path / "q.jsonl"} if call is so2docs.convert else {}))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("source", [3, None, ["q.jsonl"], io.StringIO("{}")])
def test_read_takes_only_files(source: Any) -> None:
    with pytest.raises(so2docs.OptionError, match="the output is"):
        so2docs.read(source)


def test_errors_of_read(samples: Path, tmp_path: Path) -> None:
    so2docs.convert(samples / "posts.xml", tmp_path / "q.jsonl.gz")
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes((tmp_path / "q.jsonl.gz").read_bytes()[:2000])
    with pytest.raises(so2docs.OutputError, match=r"cut\.jsonl\.gz: is damaged or truncated"):
        list(so2docs.read(cut))
    (tmp_path / "no.jsonl").write_text('{"Id":1}\nnonsense\n')
    with pytest.raises(so2docs.OutputError, match=r"no\.jsonl: line 2 is not JSON"):
        list(so2docs.read(tmp_path / "no.jsonl"))
    with pytest.raises(so2docs.OutputError, match="cannot be read: No such file"):
        so2docs.read(tmp_path / "nope")  # The error comes at the call, not at the first document.


def test_a_script_without_a_main_guard_may_use_many_jobs(samples: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import so2docs\n"
        "print('started')\n"
        f"so2docs.convert({str(samples / 'posts.xml')!r}, 'q.jsonl.gz', jobs=2, chunk_bytes=3000)\n"
    )
    result = run_python(script, cwd=tmp_path)
    assert (result.stdout, result.stderr) == ("started\n", "")
    assert text_of(tmp_path / "q.jsonl.gz") == (samples / "posts.jsonl").read_bytes()


def test_no_processes_for_a_small_dump(samples: Path, tmp_path: Path) -> None:
    assert so2docs.convert(samples / "posts.xml", tmp_path / "q.jsonl").jobs == 1


@pytest.fixture
def _nothing_printed(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    yield
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("_nothing_printed")
def test_the_library_never_prints(samples: Path, tmp_path: Path) -> None:
    so2docs.convert(samples / "posts.xml", tmp_path / "q.jsonl", jobs=2, chunk_bytes=2000)


def test_optional_tables(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A missing table, and a table that needs it, are left out and recorded."""
    site = tmp_path / "site"
    write_dump(site / "Posts.xml", question(1))
    write_dump(site / "Comments.xml", row(Id=1, PostId=1, Text="t"))
    write_dump(site / "Badges.xml", row(Id=1, UserId=1, Class=1))
    with pytest.raises(so2docs.DumpError):
        so2docs.convert(site, tmp_path / "q.jsonl", nest=["comments", "badges"], jobs=1)
    so2docs.convert(
        site, tmp_path / "q.jsonl", nest=["comments", "badges"], if_present=True, jobs=1
    )
    assert "has no users" in caplog.text
    [document] = so2docs.read(tmp_path / "q.jsonl")
    assert document["Comments"]
    record = read_provenance(str(tmp_path / "q.jsonl"))
    assert record is not None
    options = record.options
    assert (options["nest"], options["if_present"]) == (["comments"], ["badges", "users"])
    [line] = so2docs.documents(site, nest=["all"], if_present=True, jobs=1)
    assert line["Comments"]
