"""Resuming after an interruption prints messages, and uses no foreign or damaged files."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from support.command import run_process
from support.dumps import END, answer, left_by, question, some_rows, write_dump
from support.messages import heard
from support.places import CHECKOUT, LONG

import so2docs
from so2docs.options.request import Fingerprint
from so2docs.options.table import Filters, Options
from so2docs.output.new_files import output_lock
from so2docs.output.part_files import LostFileError
from so2docs.pipeline import bucket as bucket_side
from so2docs.pipeline.second_pass import SecondPass
from so2docs.scan import chunk as chunk_side
from so2docs.spill import FORMAT, Spill

CHUNK_BYTES = 3000
ROWS = some_rows(150)


class Stop(BaseException):
    """Ends a session like a signal."""


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    return write_dump(tmp_path / "Posts.xml", *ROWS)


@pytest.fixture
def output(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "questions.jsonl.gz"


@pytest.fixture
def expected(dump: Path, tmp_path: Path) -> dict[str, bytes]:
    (tmp_path / "expected").mkdir()
    output = tmp_path / "expected" / "questions.jsonl.gz"
    convert(dump, output)
    return left_by(output)


def convert(dump: Path, output: Path, **options: object) -> tuple[so2docs.Report, list[str]]:
    with heard() as messages:
        report = so2docs.convert(
            dump,
            output,
            jobs=1,
            **{"chunk_bytes": CHUNK_BYTES} | options,  # type: ignore[arg-type]
        )
    return report, messages


def stop_in(
    monkeypatch: pytest.MonkeyPatch,
    dump: Path,
    output: Path,
    *,
    chunk: int | None = None,
    bucket: int | None = None,
    sealing: bool = False,
) -> None:
    """End a conversion before a chunk, before a range of question ids, or before its last step."""
    calls = 0

    def ending(function: Callable[..., object], at: int | None) -> Callable[..., object]:
        def ends(*arguments: object) -> object:
            nonlocal calls
            calls += 1
            if calls > (at or 0):
                raise Stop
            return function(*arguments)

        return ends

    with monkeypatch.context() as patch:
        if chunk is not None:
            patch.setattr("so2docs.scan.table.read_chunk", ending(chunk_side.read_chunk, chunk))
        if bucket is not None:
            merge = ending(bucket_side.merge_bucket, bucket)
            patch.setattr(bucket_side, "merge_bucket", merge)
        if sealing:
            patch.setattr(SecondPass, "seal", ending(SecondPass.seal, 0))
        with pytest.raises(Stop):
            convert(dump, output)


def spill_of(output: Path) -> Path:
    return output.with_name(output.name + ".spill")


def test_undisturbed_says_nothing(dump: Path, output: Path) -> None:
    report, messages = convert(dump, output)
    assert (report.resumed, messages) == (False, [])


@pytest.mark.parametrize("chunk", [1, 3, 5])
def test_going_on_with_the_first_pass(
    chunk: int,
    monkeypatch: pytest.MonkeyPatch,
    dump: Path,
    output: Path,
    expected: dict[str, bytes],
) -> None:
    stop_in(monkeypatch, dump, output, chunk=chunk)
    percent = 100 * chunk * CHUNK_BYTES // (dump.stat().st_size - 50 - len(END))
    report, messages = convert(dump, output)
    assert messages == [f"resuming: {percent} % of the dump is already spilled"]
    assert report.resumed
    assert left_by(output) == expected


def test_going_on_with_the_second_pass(
    monkeypatch: pytest.MonkeyPatch, dump: Path, output: Path, expected: dict[str, bytes]
) -> None:
    stop_in(monkeypatch, dump, output, bucket=1)
    report, messages = convert(dump, output)
    assert messages[0] == "resuming: all of the dump is already spilled"
    assert messages[1].endswith(" % of the documents were already written")
    assert 0 < int(messages[1].split()[1]) <= 100
    assert report.resumed
    assert report.rows == len(ROWS)
    assert left_by(output) == expected


def test_resuming_at_the_last_step(
    monkeypatch: pytest.MonkeyPatch, dump: Path, output: Path, expected: dict[str, bytes]
) -> None:
    stop_in(monkeypatch, dump, output, sealing=True)
    assert convert(dump, output)[1][1].startswith("resuming: 100 % of the documents")
    assert left_by(output) == expected


@pytest.mark.parametrize(
    "name",
    [
        "questions.jsonl.gz.part",
        ".questions.jsonl.gz.strays.gz.part",
        ".questions.jsonl.gz.index.part",
    ],
)
@pytest.mark.parametrize("at", [0.5, 1])
def test_a_sealed_file_with_a_changed_byte_is_written_again(
    name: str,
    at: float,
    monkeypatch: pytest.MonkeyPatch,
    dump: Path,
    output: Path,
    expected: dict[str, bytes],
) -> None:
    seal = SecondPass.seal

    def stopping(*arguments: Any) -> Any:
        seal(*arguments)
        raise Stop

    with monkeypatch.context() as patch:
        patch.setattr(SecondPass, "seal", stopping)
        with pytest.raises(Stop):
            convert(dump, output)
    part = output.with_name(name if name.endswith(".part") else f"{name}.part")
    data = bytearray(part.read_bytes())
    data[int((len(data) - 1) * at)] ^= 1
    part.write_bytes(data)
    convert(dump, output)
    assert left_by(output) == expected


def test_the_command_says_it(monkeypatch: pytest.MonkeyPatch, dump: Path, output: Path) -> None:
    for quiet in ([], ["--quiet"]):
        stop_in(monkeypatch, dump, output, bucket=1)
        result = run_process("convert", dump, output, *quiet)
        assert result.returncode == 0
        assert ("so2docs: resuming: all of the dump" in result.stderr) == (not quiet)
        output.unlink()
        output.with_name(".questions.jsonl.gz.strays.gz").unlink()


@pytest.mark.parametrize("damage", ["shorter", "changed", "gone"])
@pytest.mark.parametrize("name", ["questions.jsonl.gz.part", ".questions.jsonl.gz.strays.gz.part"])
def test_a_changed_part_is_written_again(
    damage: str,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    dump: Path,
    output: Path,
    expected: dict[str, bytes],
) -> None:
    stop_in(monkeypatch, dump, output, bucket=1)
    part = output.with_name(name if name.endswith(".part") else f"{name}.part")
    data = bytearray(part.read_bytes())
    data[len(data) // 2] ^= 1
    part.write_bytes(data if damage == "changed" else data[:-1])
    if damage == "gone":
        part.unlink()
    _, messages = convert(dump, output)
    change = "it was changed or removed since the last session"
    assert messages[1] == f"rewriting {part} from the spill, because {change}"
    assert left_by(output) == expected


@pytest.mark.parametrize(
    ("name", "options", "lost"),
    [
        ("questions.jsonl.gz", {}, "questions.jsonl.gz"),
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
    dump: Path,
    tmp_path: Path,
) -> None:
    for folder in ("expected", "out"):
        (tmp_path / folder).mkdir()
    convert(dump, tmp_path / "expected" / name, **options)
    output = tmp_path / "out" / name
    seal = SecondPass.seal

    def losing(*arguments: Any) -> Any:
        sealed = seal(*arguments)
        output.with_name(f"{lost}.part").unlink()
        return sealed

    with monkeypatch.context() as patch:
        patch.setattr(SecondPass, "seal", losing)
        with pytest.raises(LostFileError, match=f"{lost}.part: "):
            convert(dump, output, **options)
    assert spill_of(output).exists()
    convert(dump, output, **options)
    assert left_by(output) == left_by(tmp_path / "expected" / name)


@pytest.mark.parametrize("name", ["questions.jsonl.gz", "questions.jsonl.zst", "questions.parquet"])
def test_a_byte_changed_anywhere_in_the_journal_is_noticed(
    name: str, monkeypatch: pytest.MonkeyPatch, dump: Path, tmp_path: Path
) -> None:
    expected = tmp_path / "expected"
    expected.mkdir()
    convert(dump, expected / name)
    for at in range(0, 40, 1 if LONG else 7):
        folder = tmp_path / str(at)
        folder.mkdir()
        stop_in(monkeypatch, dump, folder / name, bucket=1)
        journal = folder / f"{name}.part.journal"
        data = bytearray(journal.read_bytes())
        data[at] ^= 1
        journal.write_bytes(data)
        messages = convert(dump, folder / name)[1]
        assert messages[1].startswith("rewriting ")
        assert messages[1].endswith("because it was changed or removed since the last session")
        assert left_by(folder / name) == left_by(expected / name)


DIFFERENT: dict[str, Callable[[Path], dict[str, object]]] = {
    "answers_by": lambda dump: {"answers_by": "votes"},
    "level": lambda dump: {"level": 6},
    "modification time of the dump": lambda dump: os.utime(dump, (1, 1)) or {},  # type: ignore[func-returns-value]
    "size of the dump": lambda dump: dump.write_bytes(dump.read_bytes() + b"\n") and {},
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_another_conversion_is_refused_by_name(
    what: str, monkeypatch: pytest.MonkeyPatch, dump: Path, output: Path
) -> None:
    stop_in(monkeypatch, dump, output, chunk=2)
    options = DIFFERENT[what](dump) or {}
    with pytest.raises(so2docs.SpillError, match=rf"for another conversion \(different:.*{what}"):
        convert(dump, output, **options)
    assert not convert(dump, output, restart=True, **options)[1]


def test_refuses_a_spill_of_a_corrected_dump(tmp_path: Path, output: Path) -> None:
    wrong = b'  <row Id="5" PostTypeId="1" Body="<" />\r\n'
    dump = write_dump(tmp_path / "Posts.xml", *ROWS, wrong)
    with pytest.raises(so2docs.DumpError):
        convert(dump, output)
    write_dump(dump, *ROWS)
    advice = "before it changed: run with restart=True to convert the changed dump"
    with pytest.raises(so2docs.SpillError, match=advice):
        convert(dump, output)
    convert(dump, output, restart=True)


def test_changed_content_with_the_same_size_and_time_is_refused(
    monkeypatch: pytest.MonkeyPatch, dump: Path, output: Path
) -> None:
    stop_in(monkeypatch, dump, output, chunk=2)
    status = dump.stat()
    dump.write_bytes(dump.read_bytes().replace(b"bbb", b"ccc"))
    os.utime(dump, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(so2docs.SpillError, match=r"\(different: content of the dump\)"):
        convert(dump, output)


def test_a_spill_of_another_version_is_refused(
    monkeypatch: pytest.MonkeyPatch, dump: Path, output: Path
) -> None:
    stop_in(monkeypatch, dump, output, chunk=2)
    spill = Spill(spill_of(output))
    spill.put_all({"source": {"format": FORMAT - 1}, "options": {"--level": 2}})
    spill.close()
    with pytest.raises(so2docs.SpillError, match=r"format of the spill \(another version of"):
        convert(dump, output)
    assert not convert(dump, output, restart=True)[1]


def test_options_in_a_spill_are_read_back() -> None:
    options = Options(nest=("users",), site_field=("Site", "beer"), filters=Filters(tags=("a",)))
    fingerprint = Fingerprint.of(options)
    before = Fingerprint(**json.loads(json.dumps(asdict(fingerprint))))
    assert before == fingerprint
    assert before.differences(fingerprint, of_spill_only=False) == []
    other = Fingerprint.of(Options(level=3, body="text", errors="skip"))
    changed = {"nest", "site_field", "tags", "level", "body", "site_field_name"}
    assert set(before.differences(other, of_spill_only=False)) == changed
    changed -= {"nest", "site_field", "level", "body"}
    assert set(before.differences(other, of_spill_only=True)) == changed


def test_skip_malformed_may_be_added(tmp_path: Path, output: Path) -> None:
    dump = write_dump(tmp_path / "Posts.xml", question(1), answer(3, 1), b"<row Id=2/>\n")
    with pytest.raises(so2docs.MalformedDumpError):
        convert(dump, output, chunk_bytes=40)
    report, messages = convert(dump, output, chunk_bytes=40, errors="skip")
    assert messages
    assert report.strays == {"malformed_row": 1}
    with pytest.raises(so2docs.OutputError, match=r"exists.*; choose another output"):
        convert(dump, output)


@pytest.mark.long
def test_a_byte_changed_anywhere_in_the_spill_is_noticed(
    monkeypatch: pytest.MonkeyPatch, dump: Path, output: Path, expected: dict[str, bytes]
) -> None:
    stop_in(monkeypatch, dump, output, bucket=1)
    kept = output.parent.with_name("kept")
    shutil.copytree(output.parent, kept)
    sizes = {path: path.stat().st_size for path in sorted(spill_of(output).iterdir())}
    refused = 0
    for path, size in sizes.items():
        # Every byte of a block with LONG, or a few of each file; the index is mostly empty pages.
        step = 997 if path.suffix != ".blocks" else 1 if LONG else size // 6
        for at in [*range(0, size, step)][:: 1 if LONG or step < 997 else 5]:
            shutil.rmtree(output.parent)
            shutil.copytree(kept, output.parent)
            with path.open("r+b") as file:
                file.seek(at)
                byte = file.read(1)[0]
                file.seek(at)
                file.write(bytes([byte ^ 0x41]))
            try:
                convert(dump, output)
            except so2docs.SpillError:
                refused += 1
            else:
                # The byte is in free space, or in blocks of buckets that were already written.
                assert left_by(output) == expected
    assert refused > 5


@pytest.mark.parametrize("damage", ["gone", "shorter", "longer"])
def test_a_block_file_changed_between_sessions(
    damage: str, monkeypatch: pytest.MonkeyPatch, dump: Path, output: Path
) -> None:
    stop_in(monkeypatch, dump, output, chunk=3)
    path = min(spill_of(output).glob("*.blocks"))
    data = path.read_bytes()
    path.write_bytes(data + b"x" if damage == "longer" else data[:-1])
    problem = f"has {path.stat().st_size:,} bytes instead of {len(data):,}"
    if damage == "gone":
        path.unlink()
        problem = "is missing"
    with pytest.raises(so2docs.SpillError, match=f"this file of the spill {problem}; run the"):
        convert(dump, output)
    convert(dump, output, restart=True)


FOREIGN = {
    "text": b"not a database, but of some length" * 100,
    "empty": b"",
    "half": None,
    "another-program": None,
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_foreign_index(
    kind: str, monkeypatch: pytest.MonkeyPatch, dump: Path, output: Path, expected: dict[str, bytes]
) -> None:
    stop_in(monkeypatch, dump, output, chunk=3)
    index = spill_of(output) / "index.sqlite"
    data = FOREIGN[kind]
    if kind == "half":
        data = index.read_bytes()[: index.stat().st_size // 2]
    index.write_bytes(data or b"")
    if kind == "another-program":
        with sqlite3.connect(index) as database:
            database.execute("CREATE TABLE chunks (name TEXT)")
        database.close()
    if kind == "empty":
        convert(dump, output)
    else:
        with pytest.raises(so2docs.SpillError, match=r"\.spill: .* again with restart=True"):
            convert(dump, output)
        convert(dump, output, restart=True)
    assert left_by(output) == expected


def test_keeps_a_folder_other_than_a_spill(dump: Path, output: Path) -> None:
    spill_of(output).mkdir()
    (spill_of(output) / "thesis.txt").write_text("dear")
    for restart in (False, True):
        with pytest.raises(so2docs.SpillTakenError, match="neither a spill nor"):
            convert(dump, output, restart=restart)
    assert (spill_of(output) / "thesis.txt").read_text() == "dear"


def test_a_spill_in_use_is_not_touched(
    monkeypatch: pytest.MonkeyPatch, dump: Path, output: Path, expected: dict[str, bytes]
) -> None:
    stop_in(monkeypatch, dump, output, chunk=3)
    owner = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"from so2docs.spill import Spill; s = Spill({str(spill_of(output))!r}); "
            "print(1, flush=True); input()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert owner.stdout is not None
    owner.stdout.readline()
    for restart in (False, True):
        with pytest.raises(so2docs.SpillTakenError, match="is working on this"):
            convert(dump, output, restart=restart)
    owner.kill()
    owner.communicate()
    convert(dump, output)
    assert left_by(output) == expected


def test_a_kept_spill_serves_another_output(dump: Path, output: Path) -> None:
    convert(dump, output, keep_spill=True)
    first = output.read_bytes()
    report, messages = convert(dump, output, keep_spill=True, force=True, answers_by="votes")
    assert messages[0].startswith("resuming: all of the dump")
    assert len(messages) == 1
    assert report.resumed
    convert(dump, output, force=True)
    assert output.read_bytes() == first
    assert not spill_of(output).exists()


def test_an_existing_output_is_refused_before_anything_is_made(dump: Path, output: Path) -> None:
    output.write_bytes(b"dear")
    with pytest.raises(so2docs.OutputError, match=r"exists.*; choose another output"):
        convert(dump, output)
    assert left_by(output) == {output.name: b"dear"}
    convert(dump, output, force=True)


def test_standard_output_leaves_no_spill(tmp_path: Path, dump: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    so2docs.convert(dump, "-", jobs=1, work_dir=work)
    bad = write_dump(tmp_path / "bad.xml", question(1), b"<row Id=2/>")
    with pytest.raises(so2docs.MalformedDumpError):
        so2docs.convert(bad, "-", jobs=1, work_dir=work)
    assert not list(work.iterdir())
    os.unlink("questions.error.xml")


def test_a_foreign_folder_within_the_spill_is_kept(dump: Path, output: Path) -> None:
    foreign = spill_of(output) / "pieces"
    foreign.mkdir(parents=True)
    (foreign / "mine.txt").touch()
    for restart in (False, True):
        with pytest.raises(so2docs.SpillTakenError, match="neither a spill nor"):
            convert(dump, output, restart=restart)
        assert (foreign / "mine.txt").exists()


@pytest.mark.skipif(os.name != "posix", reason="locks files")
def test_an_output_is_written_by_one_conversion(dump: Path, output: Path, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    with output_lock(str(output)):
        with pytest.raises(so2docs.OutputError, match=r"gz: another so2docs process"):
            convert(dump, output, work_dir=tmp_path / "work")
        assert [path.name for path in output.parent.iterdir()] == [f".{output.name}.lock"]
    lock = output.with_name(f".{output.name}.lock")
    lock.touch()  # The state after a killed process.
    convert(dump, output, work_dir=tmp_path / "work")
    assert not lock.exists()


def test_restart_over_a_damaged_spill_whatever_its_name(tmp_path: Path) -> None:
    """The class of an error decides, not a name in its text."""
    folder = tmp_path / "no spill of another so2docs"
    folder.mkdir()
    output = folder / "q.jsonl"
    spill = folder / "q.jsonl.spill"
    spill.mkdir()
    (spill / "index.sqlite").write_bytes(b"not a database" * 100)
    so2docs.convert(CHECKOUT / "samples" / "posts.xml", output, jobs=1, restart=True)
    assert output.exists()
    assert not spill.exists()
