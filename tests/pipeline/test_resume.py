"""Resuming after an interruption prints messages, and uses no foreign or damaged files."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.command import run
from support.dumps import answer, left_by, question, some_rows, write_dump
from support.interruptions import stopped
from support.messages import heard

import so2docs
from so2docs.pipeline import bucket as bucket_side
from so2docs.pipeline.second_pass import SecondPass
from so2docs.scan import table as chunk_tables
from so2docs.spill import FORMAT, Spill

CHUNK_BYTES = 3000
ROWS = some_rows(150)


@dataclass
class Conversion:
    """A conversion of a small dump that can be stopped and resumed."""

    dump: Path
    output: Path

    @property
    def spill(self) -> Path:
        return self.output.with_name(self.output.name + ".spill")

    def run(self, **options: Any) -> tuple[so2docs.Report, list[str]]:
        options = {"chunk_bytes": CHUNK_BYTES, **options}
        with heard() as messages:
            return so2docs.convert(self.dump, self.output, jobs=1, **options), messages

    def stop(self, *, chunk: int | None = None, bucket: int | None = None, seal: int = 2) -> None:
        """End before a chunk, a range of question ids, or before (0) or after (1) the last step."""
        plain_seal = SecondPass.seal

        def sealing(*arguments: Any) -> bool:
            if seal:
                plain_seal(*arguments)
            return True

        owner, name, at = (
            (chunk_tables, "read_chunk", chunk)
            if chunk is not None
            else (bucket_side, "merge_bucket", bucket)
            if bucket is not None
            else (SecondPass, "seal", sealing)
        )
        with stopped(owner, name, at):
            self.run()


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    return write_dump(tmp_path / "Posts.xml", *ROWS)


@pytest.fixture
def conversion(dump: Path, tmp_path: Path) -> Conversion:
    folder = tmp_path / "no spill of another so2docs"  # Errors depend on no words in a name.
    folder.mkdir()
    return Conversion(dump, folder / "questions.jsonl.gz")


@pytest.fixture
def expected(dump: Path, tmp_path: Path) -> dict[str, bytes]:
    """The files of an undisturbed conversion."""
    return undisturbed(dump, tmp_path, "questions.jsonl.gz")


def undisturbed(dump: Path, folder: Path, name: str, **options: Any) -> dict[str, bytes]:
    (folder / "expected").mkdir()
    conversion = Conversion(dump, folder / "expected" / name)
    report, messages = conversion.run(**options)
    assert (report.resumed, messages) == (False, [])
    return left_by(conversion.output)


A_PART, ALL = (f"resuming: {share} of the dump is already spilled" for share in ("a part", "all"))
STOPS: dict[str, tuple[dict[str, int], str]] = {
    "after the first chunk": ({"chunk": 1}, A_PART),
    "after several chunks": ({"chunk": 5}, A_PART),
    "in the second pass": ({"bucket": 1}, ALL),
    "before the last step": ({"seal": 0}, ALL),
    "after the last step": ({"seal": 1}, ALL),
}
PARTS = ("questions.jsonl.gz", ".questions.jsonl.gz.strays.gz", ".questions.jsonl.gz.index")


@pytest.mark.parametrize("stop", STOPS)
def test_going_on(stop: str, conversion: Conversion, expected: dict[str, bytes]) -> None:
    where, message = STOPS[stop]
    conversion.stop(**where)
    assert [*conversion.output.parent.iterdir()] == [conversion.spill]
    (folder := conversion.output.with_name(".questions.jsonl.gz.part")).mkdir()
    for name in PARTS:
        (folder / name).write_bytes(b"left by a kill")
    report, messages = conversion.run()
    assert (report.resumed, report.rows, messages) == (True, len(ROWS), [message])
    assert left_by(conversion.output) == expected


def test_a_session_killed_after_the_last_rename_ends_with_the_same_files(
    conversion: Conversion, expected: dict[str, bytes]
) -> None:
    with stopped(Spill, "remove"):
        conversion.run()
    assert conversion.spill.exists()
    assert not conversion.run()[0].is_new
    assert left_by(conversion.output) == expected


def test_the_command_says_it(conversion: Conversion) -> None:
    for quiet in ([], ["--quiet"]):
        conversion.stop(bucket=1)
        result = run("convert", conversion.dump, conversion.output, *quiet, code=0)
        assert ("so2docs: resuming: all of the dump" in result.stderr) == (not quiet)
        conversion.output.unlink()
        conversion.output.with_name(".questions.jsonl.gz.strays.gz").unlink()


@pytest.mark.parametrize(
    ("name", "options", "lost"),
    [
        ("questions.json", {}, "questions.json"),
        ("questions.jsonl.gz", {"split": "3files"}, "questions-00001.jsonl.gz"),
        ("questions.jsonl.gz", {}, ".questions.jsonl.gz.strays.gz"),
    ],
)
def test_a_file_lost_before_its_rename(
    name: str,
    options: dict[str, object],
    lost: str,
    monkeypatch: pytest.MonkeyPatch,
    conversion: Conversion,
    tmp_path: Path,
) -> None:
    expected = undisturbed(conversion.dump, tmp_path, name, **options)
    conversion.output = conversion.output.with_name(name)
    seal = SecondPass.seal

    def losing(*arguments: Any) -> None:
        seal(*arguments)
        (conversion.output.with_name(f".{name}.part") / lost).unlink()

    with monkeypatch.context() as patch:
        patch.setattr(SecondPass, "seal", losing)
        with pytest.raises(so2docs.OutputError, match=f"{lost}: cannot be written: "):
            conversion.run(**options)
    assert conversion.spill.exists()
    conversion.run(**options)
    assert left_by(conversion.output) == expected


def change_within(dump: Path) -> None:
    """Change the content of a dump, but not its size and time."""
    status = dump.stat()
    dump.write_bytes(dump.read_bytes().replace(b"bbb", b"ccc"))
    os.utime(dump, ns=(status.st_atime_ns, status.st_mtime_ns))


def label_as_older(spill: Path) -> None:
    opened = Spill(spill)
    opened.put("made from", {**opened.get("made from"), "format": FORMAT - 1})
    opened.close()


def make_other_table(spill: Path) -> None:
    (spill / "index.sqlite").unlink()
    with closing(sqlite3.connect(spill / "index.sqlite")) as database, database:
        database.execute("CREATE TABLE chunks (name TEXT)")


def halve(data: bytes) -> bytes:
    return data[: len(data) // 2]


def rewrite(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    def do(spill: Path) -> object:
        path = min(spill.glob(name))
        return path.write_bytes(change(path.read_bytes()))

    return do


ANOTHER = "by another conversion, made "
UNUSABLE = r"\.spill: .* again with restart=True"
INDEX = "index.sqlite"
OF_DUMP: dict[str, Callable[[Path], object]] = {
    f"{ANOTHER}with other .*answers_by": lambda dump: {"answers_by": "votes"},
    f"{ANOTHER}with other .*level": lambda dump: {"level": 6},
    f"{ANOTHER}from another dump, or from this dump before": lambda dump: os.utime(dump, (1, 1)),
    rf"{ANOTHER}from another input .Posts\.xml.*; run with restart=True to start over": (
        lambda dump: dump.write_bytes(dump.read_bytes() + b"\n")
    ),
    f"{ANOTHER}from another input": change_within,
}
OF_SPILL: dict[str, Callable[[Path], object]] = {
    f"{ANOTHER}by another version of so2docs": label_as_older,
    "this file of the spill is missing; run the": lambda spill: min(spill.glob("*.b*")).unlink(),
    r"this file of the spill has 1,\d+ bytes instead of [\d,]+; run": rewrite("*.blocks", halve),
    "this file of the spill has .* bytes instead of": rewrite("*.blocks", lambda old: old * 2),
    f"{UNUSABLE}": rewrite(INDEX, lambda _: b"not a database, but long" * 100),
    f".*{UNUSABLE}": rewrite(INDEX, halve),
    f"^.*{UNUSABLE}": make_other_table,
}


@pytest.mark.parametrize("words", [*OF_DUMP, *OF_SPILL])
def test_a_spill_that_cannot_be_used_is_refused(words: str, conversion: Conversion) -> None:
    conversion.stop(chunk=3)
    if words in OF_DUMP:
        change = OF_DUMP[words](conversion.dump)
    else:
        change = OF_SPILL[words](conversion.spill)
    options = change if isinstance(change, dict) else {}
    with pytest.raises(so2docs.SpillError, match=words):
        conversion.run(**options)
    assert not conversion.run(restart=True, **options)[1]


def test_an_empty_index_starts_over(conversion: Conversion, expected: dict[str, bytes]) -> None:
    conversion.stop(chunk=3)
    (conversion.spill / "index.sqlite").write_bytes(b"")
    conversion.run()
    assert left_by(conversion.output) == expected


@pytest.mark.parametrize("later", [{}, {"errors": "strict"}], ids=["repair", "strict"])
def test_rows_that_were_skipped_are_not_resumed_without_skip(
    later: dict[str, Any], conversion: Conversion
) -> None:
    write_dump(conversion.dump, question(1), answer(3, 1), b"<row Id=2/>\n")
    with stopped(SecondPass, "run"):
        conversion.run(chunk_bytes=40, errors="skip")
    with pytest.raises(so2docs.SpillError, match="with other errors"):
        conversion.run(chunk_bytes=40, **later)
    assert conversion.run(chunk_bytes=40, errors="skip")[0].strays == {"malformed_row": 1}


@pytest.mark.parametrize("name", ["thesis.txt", "pieces/thesis.txt"])
def test_keeps_a_folder_other_than_a_spill(name: str, conversion: Conversion) -> None:
    foreign = conversion.spill / name
    foreign.parent.mkdir(parents=True)
    foreign.write_text("dear")
    for restart in (False, True):
        with pytest.raises(so2docs.SpillTakenError, match="neither a spill nor"):
            conversion.run(restart=restart)
    assert foreign.read_text() == "dear"


HOLD_SPILL = """
import sys
from so2docs.spill import Spill
spill = Spill(sys.argv[1])
print(1, flush=True)
input()
"""


def test_a_spill_in_use_is_not_touched(conversion: Conversion, expected: dict[str, bytes]) -> None:
    conversion.stop(chunk=3)
    command = [sys.executable, "-c", HOLD_SPILL, str(conversion.spill)]
    owner = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert owner.stdout is not None
    owner.stdout.readline()
    for restart in (False, True):
        with pytest.raises(so2docs.SpillTakenError, match="is working on this"):
            conversion.run(restart=restart)
    owner.kill()
    owner.communicate()
    conversion.run()
    assert left_by(conversion.output) == expected


def test_standard_output_leaves_no_spill(tmp_path: Path, dump: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    so2docs.convert(dump, "-", jobs=1, work_dir=work)
    bad = write_dump(tmp_path / "bad.xml", question(1), b"<row Id=2/>")
    with pytest.raises(so2docs.MalformedDumpError):
        so2docs.convert(bad, "-", jobs=1, work_dir=work)
    assert not list(work.iterdir())
