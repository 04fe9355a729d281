"""The command line: its messages, where they go, and its exit codes."""

from __future__ import annotations

import gzip
import json
import os
import sys
from pathlib import Path

import pytest
from support.command import run, run_process, run_python, start


@pytest.fixture
def folder(tmp_path: Path, samples: Path) -> Path:
    (tmp_path / "Posts.xml").write_bytes((samples / "posts.xml").read_bytes())
    return tmp_path


def test_writes_questions_jsonl_gz_into_the_current_folder_by_default(
    folder: Path, samples: Path
) -> None:
    result = run_process("convert", "Posts.xml", cwd=folder, code=0)
    data = (folder / "questions.jsonl.gz").read_bytes()
    assert data[:10] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"  # No time, no name.
    assert gzip.decompress(data) == (samples / "posts.jsonl").read_bytes()
    assert result.stdout == ""


def test_summary_goes_to_stderr(folder: Path) -> None:
    summary = run("convert", "Posts.xml", cwd=folder).stderr
    assert "questions            8\n" in summary
    assert "answers nested       11\n" in summary
    assert "other types          3 (ModeratorNomination 1, TagWiki 1, TagWikiExcerpt 1)" in summary


def test_a_truncated_dump_gives_the_location_and_no_output(folder: Path) -> None:
    data = (folder / "Posts.xml").read_bytes()[:9000]
    (folder / "Posts.xml").write_bytes(data)
    result = run("convert", "Posts.xml", cwd=folder, code=1)
    assert "</posts> at byte 9,000, after post 15" in result.stderr
    assert "questions.error.xml" in result.stderr
    assert "Traceback" not in result.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["Posts.xml", "questions.error.xml"]


def test_a_traceback_is_shown_only_for_debugging(folder: Path) -> None:
    assert "Traceback" in run("convert", "Nope.xml", "--debug", cwd=folder).stderr


def test_without_a_command_the_help_goes_to_stderr() -> None:
    result = run(code=2)
    assert result.stderr.startswith("Usage: so2docs [OPTIONS] [COMMAND]")
    assert result.stdout == ""


def test_short_help(folder: Path) -> None:
    help_text = run("convert", "-h", cwd=folder).stdout
    assert "Example:" in help_text
    assert "--answers-by [id|votes]" in help_text


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_progress_bars_only_on_a_terminal(folder: Path) -> None:
    import pty
    import termios

    assert "reading" not in run("convert", "Posts.xml", "a.jsonl", cwd=folder).stderr
    outside, inside = pty.openpty()
    termios.tcsetwinsize(inside, (24, 100))
    assert start("convert", "Posts.xml", "b.jsonl", cwd=folder, stderr=inside).wait(60) == 0
    os.close(inside)
    terminal_text = os.read(outside, 65536).decode()
    os.close(outside)
    assert "reading: " in terminal_text
    assert "writing:" in terminal_text


COMMAND_IN_PYTHON = """
import sys
sys.argv = {words!r}.split()
from so2docs.__main__ import main
try: main()
except SystemExit: pass
"""
HEAVY = {"tqdm.auto", "pandas", "IPython", "pyarrow", "sqlite_utils", "difflib"}
HEAVY |= {"importlib.metadata", "urllib.request", "so2docs.extensions.markdown.conversion"}


def imported_by(script: str, folder: Path) -> set[str]:
    """Return the names of the modules that a script imports."""
    names = run_python("-c", f"{script}\nimport sys; print(*sys.modules)", cwd=folder).stdout
    return {*names.splitlines()[-1].split()}


def test_imports_for_a_small_dump(folder: Path) -> None:
    command = "so2docs convert Posts.xml --quiet --format jsonl"
    assert not imported_by(COMMAND_IN_PYTHON.format(words=command), folder) & HEAVY


def test_imports_of_a_worker(folder: Path) -> None:
    script = "import so2docs.pipeline.filing, so2docs.pipeline.bucket"
    assert not imported_by(script, folder) & (HEAVY | {"sqlite3", "subprocess", "tqdm"})


def test_the_version_imports_no_command_and_no_options(folder: Path) -> None:
    names = imported_by(COMMAND_IN_PYTHON.format(words="so2docs --version"), folder)
    allowed = (
        "_version __main__ cli commands commands.signals commands.terminal domain errors escape"
    )
    allowed += " standard_streams"
    allowed += " options options.choices parse parse._core parse.core parse.keys parse.posts"
    allowed += " progress registry schema"
    imported = {name.removeprefix("so2docs.") for name in names if name.startswith("so2docs.")}
    assert imported <= {*allowed.split()}


def test_the_list_of_commands_is_not_cut_off() -> None:
    result = run("--help", code=0)
    assert "..." not in result.stdout.partition("Commands:")[2].partition("Example:")[0]
    assert all(len(line) <= 80 for line in result.stdout.splitlines())


def test_the_report_of_an_output_that_is_up_to_date(folder: Path) -> None:
    command = ["convert", "Posts.xml", "q.jsonl", "--report", "report.json"]
    run(*command, cwd=folder, code=0)
    report = (folder / "report.json").read_bytes()
    values = json.loads(report)
    assert (values["rows"], values["questions"], values["answers"]) == (22, 8, 11)
    assert values["output_bytes"] == (folder / "q.jsonl").stat().st_size
    assert values["dump_bytes"] == (folder / "Posts.xml").stat().st_size
    run(*command, cwd=folder, code=0)
    assert (folder / "report.json").read_bytes() == report
    (folder / "report.json").unlink()
    run(*command, "-q", cwd=folder, code=0)
    values = json.loads((folder / "report.json").read_text())
    assert (values["rows"], values["questions"], values["is_new"]) == (22, 8, False)
