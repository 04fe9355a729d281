"""Full disks, files that cannot be written, dumps that change: errors, and resuming."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from support.command import run, unmeasured
from support.dumps import END, dump_of, left_by, question, some_rows, write_dump
from support.places import CHECKOUT, limited_files

import so2docs
from so2docs.dump.dump import open_dump, slices
from so2docs.errors import RESUMES
from so2docs.store import disk


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """A dump whose output compresses worse than estimated."""
    return write_dump(tmp_path / "Posts.xml", *some_rows(3000, body_bytes=400, dense=True))


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write_dump(tmp_path / "small.xml", *some_rows(60))


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Two empty folders: for an undisturbed conversion, and for another."""
    names = tmp_path / "expected", tmp_path / "out"
    for folder in names:
        folder.mkdir()
    return names


def script(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process of its own."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, env=unmeasured(), timeout=120
    )


def convert(dump: Path, output: Path, jobs: int = 1, **options: object) -> so2docs.Report:
    return so2docs.convert(dump, output, jobs=jobs, chunk_bytes=100_000, **options)  # type: ignore[arg-type]


def test_a_shortage_is_found_before_the_start(
    dump: Path, tmp_path: Path, tmpfs: Callable[[int], Path]
) -> None:
    full = tmpfs(450_000)
    with pytest.raises(so2docs.DiskFullError) as caught:
        convert(dump, full / "questions.jsonl.gz")
    assert "about 1." in str(caught.value)
    assert "MB is needed for the spill and the output (dump: 1." in str(caught.value)
    assert "free some space, or put the spill elsewhere with work_dir" in str(caught.value)
    with pytest.raises(so2docs.DiskFullError, match=rf"{full}.*: about .* for the spill \(dump: "):
        convert(dump, tmp_path / "questions.jsonl.gz", work_dir=full)
    with pytest.raises(so2docs.DiskFullError, match=rf"{full}: .* for the output \(dump: "):
        convert(dump, full / "questions.jsonl.gz", work_dir=tmp_path)
    assert not list(full.rglob("*.blocks"))


def test_space_used_by_a_spill_is_not_required_again(
    tmp_path: Path, tmpfs: Callable[[int], Path]
) -> None:
    folder = tmpfs(1_000_000)
    disk.check_room(2_000_000, folder, str(tmp_path / "x"), "gzip")
    with pytest.raises(so2docs.DiskFullError):
        disk.check_room(3_000_000, folder, str(tmp_path / "x"), "gzip")
    (folder / "000000-1.blocks").write_bytes(bytes(700_000))
    disk.check_room(2_500_000, folder, str(tmp_path / "x"), "gzip")


@pytest.mark.parametrize(("where", "jobs"), [("output", 1), ("both", 2)])
def test_full_midway_and_gone_on_with(
    where: str, jobs: int, dump: Path, folders: tuple[Path, Path], tmpfs: Callable[[int], Path]
) -> None:
    expected, elsewhere = folders
    convert(dump, expected / "questions.jsonl.gz")
    size = dump.stat().st_size
    # The free space equals the estimate to the byte, but this dump needs more.
    share = {"output": 0.36, "both": 0.74}[where]
    full = tmpfs(int(size * share) + 100_000)
    output = full / "questions.jsonl.gz"
    work_dir = None if where == "both" else elsewhere
    with pytest.raises(so2docs.DiskFullError) as caught:
        convert(dump, output, jobs, work_dir=work_dir)
    assert str(caught.value).startswith(str(full))
    assert (caught.value.retry, caught.value.resumes) == ("free some space", True)
    assert not output.exists()
    tmpfs(size * 3)
    assert convert(dump, output, jobs, work_dir=work_dir).resumed
    assert left_by(output) == left_by(expected / "questions.jsonl.gz")
    assert not list(full.glob("*.spill"))


SITE_ON_A_SMALL_DISK = """
import sys, so2docs
try:
    so2docs.convert(sys.argv[1], sys.argv[2], jobs=1, nest="users", work_dir=sys.argv[3])
except so2docs.So2docsError as error:
    sys.exit(f"{type(error).__name__}, {error.retry}, {error.resumes}: {error}")
"""


def test_full_while_a_map_is_made(
    tmp_path: Path, folders: tuple[Path, Path], tmpfs: Callable[[int], Path]
) -> None:
    """In a process of its own: a memory-mapped file on a full disk ends it by a signal."""
    site = tmp_path / "site"
    write_dump(site / "Posts.xml", *(question(number, OwnerUserId="1") for number in range(1, 50)))
    users = (b'<row Id="%d" DisplayName="x" />' % (n * 4096) for n in range(1, 20_000))
    (site / "Users.xml").write_bytes(b"<users>" + b"".join(users) + b"</users>")
    expected, output = (folder / "q.jsonl.gz" for folder in folders)
    so2docs.convert(site, expected, jobs=1, nest="users")
    # The lines of the users fit on the disk, but the map does not.
    full = tmpfs(1_500_000)
    result = script(SITE_ON_A_SMALL_DISK, site, output, full)
    assert result.returncode == 1
    assert "users.map" in result.stderr
    assert result.stderr.startswith("DiskFullError, free some space, True: ")
    tmpfs(8_000_000)
    assert script(SITE_ON_A_SMALL_DISK, site, output, full).returncode == 0
    assert left_by(output) == left_by(expected)


@pytest.mark.skipif(os.name != "posix", reason="needs setrlimit")
def test_a_limit_on_file_size(dump: Path, folders: tuple[Path, Path]) -> None:
    """Each limit makes another write fail, with its own message: of blocks, index or output."""
    expected, output = (folder / "questions.jsonl.gz" for folder in folders)
    convert(dump, expected)
    failed = set()
    for limit in (1, 50_000, 300_000, 900_000):
        with limited_files(limit), pytest.raises(so2docs.So2docsError) as caught:
            so2docs.convert(dump, output, jobs=1, chunk_bytes=1_000_000, spill_budget=0)
        assert "again" in str(caught.value) or "starts over" in str(caught.value)
        failed.add(str(caught.value).split(": ")[0].rpartition(".")[2])
    assert failed >= {"spill", "blocks", "gz"}
    so2docs.convert(dump, output, jobs=1, chunk_bytes=1_000_000, spill_budget=0)
    assert left_by(output) == left_by(expected)


def test_a_failed_excerpt_does_not_hide_the_error(
    tmp_path: Path, tmpfs: Callable[[int], Path]
) -> None:
    bad = write_dump(tmp_path / "bad.xml", question(1, Body="x" * 70_000), b"<row Id=2/>")
    dump = bad.read_bytes()
    bad.write_bytes(dump.replace(b'" />', b'" >'))
    full = tmpfs(4096 * 30)
    (full / "filler").write_bytes(bytes(4096 * 20))
    with pytest.raises(so2docs.MalformedDumpError) as caught:
        convert(bad, full / "questions.jsonl.gz", work_dir=tmp_path)
    assert caught.value.excerpt_path is None
    assert [path.name for path in full.iterdir()] == ["filler"]


def test_impossible_outputs(small: Path, tmp_path: Path) -> None:
    (tmp_path / "folder.jsonl.gz").mkdir()
    with pytest.raises(so2docs.OptionError, match="is a folder"):
        convert(small, tmp_path / "folder.jsonl.gz", force=True)
    with pytest.raises(so2docs.So2docsError, match=r"File name too long"):
        convert(small, tmp_path / ("q" * 252 + ".gz"))


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users reach: other runs of pytest close the parent of `tmp_path`."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


@pytest.mark.skipif(os.name != "posix", reason="needs another user")
def test_read_only_folders(small: Path, open_folder: Path) -> None:
    dump = shutil.copy(small, open_folder)
    os.chmod(dump, 0o444)
    folder = open_folder / "closed"
    folder.mkdir(mode=0o555)
    output = open_folder / "q.jsonl.gz"
    calls: list[tuple[str, list[str]]] = []
    for words, arguments in {
        "is not writable; choose another output": [folder / "q.jsonl.gz"],
        "the folder for the spill cannot": [output, "--work-dir", folder],
        "closed is not writable; choose another --report": [output, "--report", folder / "r.json"],
    }.items():
        calls.append((words, ["convert", *map(str, (dump, *arguments))]))
    result = script(AS_NOBODY, json.dumps([words for _, words in calls]))
    assert (result.returncode, result.stdout) == (0, "1\n1\n1\n")
    for (words, _), line in zip(calls, result.stderr.splitlines(), strict=True):
        assert words in line
    assert not output.exists()


# The user `nobody` may be unable to read the Python installation, so import everything first.
AS_NOBODY = """
import json, os, sys
import so2docs.cli, so2docs.commands.convert, so2docs.api, traceback
if not os.geteuid():
    os.setuid(65534)
for words in json.loads(sys.argv[1]):
    print(so2docs.cli.run(words))
"""


def test_a_report_replaces_only_a_report(tmp_path: Path) -> None:
    """What the path is, is checked before the conversion."""
    folder, output = tmp_path / "site", tmp_path / "questions.jsonl.gz"
    shutil.copytree(CHECKOUT / "samples" / "site", folder)
    os.link(folder / "Posts.xml", tmp_path / "link.json")
    table = shutil.move(folder / "Votes.xml", tmp_path / "v.json")
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    for report, words in {
        tmp_path: "the report cannot be written there; choose another --report",
        tmp_path / "missing" / "r.json": "missing does not exist",
        folder / "Users.xml": "exists and is not a report; choose another --report",
        folder / "questions.jsonl": "exists and is not a report; choose another --report",
        folder / "Posts.xml": "Posts.xml; choose another --report",
        tmp_path / "link.json": "Posts.xml; choose another --report",
        table: "v.json: is ",
        output: "questions.jsonl.gz; choose another --report",
    }.items():
        source = (folder / "Posts.xml", output, f"--table=votes={table}")
        result = run("convert", *source, "--report", report)
        assert (result.returncode, output.exists()) == (1, False)
        assert words in result.stderr
    assert before == {path: path.read_bytes() for path in before}


def test_a_report_on_a_full_disk_is_shown(small: Path, tmp_path: Path) -> None:
    output, report = tmp_path / "questions.jsonl.gz", tmp_path / "r.json"
    for force in ([], ["--force"]):
        run("convert", small, output, "--report", report, *force, code=0)
    if os.path.exists("/dev/full"):
        result = run("convert", small, output, "--force", "--report", "/dev/full", code=1)
        assert result.stderr.startswith("so2docs: /dev/full: ")
        assert result.stderr.endswith(f"; free some space, then {RESUMES}\n")
        shown = result.stderr.partition("this is the report: ")[2].splitlines()[0]
        assert json.loads(shown)["rows"] == 63
        assert output.exists()
        result = run("convert", small, output, "--report", report, code=0)
        assert result.stderr.startswith(f"so2docs: {output}: is up to date\n")


def test_a_vanishing_output_folder(
    dump: Path, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    work_dir, folder = folders

    def vanish(*_: object, **__: object) -> int:
        shutil.rmtree(folder)
        return 0

    monkeypatch.setattr("so2docs.pipeline.session.check_room", vanish)
    with pytest.raises(so2docs.OutputError, match=r"\.part/.*: cannot be written: No such file"):
        convert(dump, folder / "questions.jsonl.gz", work_dir=work_dir)


def replace(dump: Path) -> None:
    os.replace(shutil.copy(dump, dump.with_name("other")), dump)


def overwrite(dump: Path) -> None:
    dump.write_bytes(b"<" * 5000 + dump.read_bytes()[5000:])


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "shrinks": (lambda dump: os.truncate(dump, dump.stat().st_size // 2), "changed while being"),
    "grows": (lambda dump: os.truncate(dump, dump.stat().st_size + 1), "changed while being read"),
    "is replaced": (replace, "changed while being read"),
    "is gone": (Path.unlink, "disappeared while being read (No such file"),
    "is overwritten": (overwrite, "changed while being read"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("at", [1, -1])
def test_a_dump_changing_while_read(
    change: str, at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dump = write_dump(tmp_path / "Posts.xml", *some_rows(100))
    output = tmp_path / "questions.jsonl.gz"
    do, words = CHANGES[change]
    if at < 0:  # The change is in the last slice, after which the dump is not opened again.
        whole = open_dump(str(dump))
        chunks = whole.chunks(2000, (), tmp_path)
        at = sum(len(list(slices(whole, chunk.start, chunk.end, 100))) for chunk in chunks)
    calls = 0

    def changing(*arguments: object) -> Iterator[tuple[int, bytes]]:
        nonlocal calls
        for data in slices(*arguments[:3], 100):  # type: ignore[arg-type]
            calls += 1
            if calls == at:
                do(dump)
            yield data

    monkeypatch.setattr("so2docs.scan.chunk.slices", changing)
    with pytest.raises(so2docs.ChangedDumpError) as caught:
        so2docs.convert(dump, output, jobs=1, chunk_bytes=2000)
    assert words in str(caught.value)
    has_spill = (tmp_path / "questions.jsonl.gz.spill").exists()
    assert ("restart=True" in str(caught.value)) == has_spill
    assert has_spill or change == "is overwritten"
    assert not output.exists()


def test_a_dump_shrinking_within_a_slice(tmp_path: Path) -> None:
    path = write_dump(tmp_path / "Posts.xml", *some_rows(3000))  # Larger than a file's buffer.
    dump = open_dump(str(path))
    parts = slices(dump, dump.start, dump.end, 1000)
    next(parts)
    os.truncate(path, 1500)
    message = r"changed while being read \([\d,]+ bytes b"
    with pytest.raises(so2docs.ChangedDumpError, match=message):
        list(parts)


def test_a_dump_without_write_permission(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "Posts.xml", question(1))
    dump.chmod(0o444)
    assert convert(dump, tmp_path / "questions.jsonl.gz").questions == 1
    assert dump.read_bytes() == dump_of(question(1))
    assert dump.read_bytes().endswith(END)


SIDES = ("strays.gz", "index")


def test_other_files_are_not_overwritten(small: Path, tmp_path: Path) -> None:
    """Each name that a conversion writes may be a link to the dump, or not a file."""
    before = small.read_bytes()
    names = {
        "q.jsonl.gz": ["q.jsonl.gz", *(f".q.jsonl.gz.{end}" for end in SIDES)],
        "z.jsonl.zst": ["z.error.xml"],
        "s.jsonl": ["s-00000.jsonl"],
    }
    for output, taken in names.items():
        split = {"split": "3files"} if output == "s.jsonl" else {}
        for name in taken:
            path = tmp_path / name
            for make, problem in (
                (partial(os.symlink, small), "is also"),
                (partial(os.link, small), "is also"),
                (os.mkfifo, "is a device"),
            ):
                make(path)
                with pytest.raises(so2docs.OutputError, match=f"{re.escape(name)}: {problem}"):
                    convert(small, tmp_path / output, force=True, **split)
                path.unlink()
    assert small.read_bytes() == before
    manager, terminal = os.openpty()
    with pytest.raises(so2docs.OutputError, match="is a device or a pipe"):
        convert(small, os.ttyname(terminal), force=True)
    os.close(terminal)
    os.close(manager)
