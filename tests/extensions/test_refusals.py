"""What commands of the extensions refuse: the whole message, and nothing is written.

`refusals.txt` has the commands as in a terminal, each with its message and its exit code; `…`
stands for any text. All run in one folder.
"""

from __future__ import annotations

import gzip
import re
import shlex
import shutil
from pathlib import Path

import pytest
from support.command import run
from support.dumps import answer, question, row, write_dump
from support.places import SAMPLES

import so2docs

TRANSCRIPT = Path(__file__).with_name("refusals.txt").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ so2docs (.+)\n((?:(?![$#\[]).*\n)+)\[(\d)\]$", TRANSCRIPT, re.MULTILINE)
OWN_TITLES = """
A_TEXT = "no function"

def titles(question):
    yield {"title": question["Title"]}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Inputs of all kinds: dumps, whole and damaged, outputs of several formats, databases."""
    pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp("refusals")
    write_dump(folder / "dump" / "Posts.xml", question(1, Title="t", Tags="|a|"), answer(2, 1))
    write_dump(folder / "users" / "Users.xml", row(Id=1))
    for site in ("page", "lines", "packed"):
        write_dump(folder / site / "Tags.xml", row(Id=1, TagName="tea", Count=1))
    (folder / "page" / "tea.7z").write_bytes(b"<!DOCTYPE html><html><body>404</body></html>")
    (folder / "lines" / "tea.7z").write_bytes(b'{"Id":1,"PostTypeId":1,"Answers":[]}\n')
    (folder / "packed" / "tea.7z").write_bytes(gzip.compress(b"<posts></posts>"))
    (folder / "rows.xml").write_text("<rows></rows>")
    (folder / "truncated.xml").write_bytes((SAMPLES / "posts.xml").read_bytes()[:5000])
    shutil.copy(SAMPLES / "posts.xml", folder)
    for name in ("q.jsonl", "q.jsonl.gz", "q.parquet", "OLD/beer.jsonl.gz", "NEW/beer.jsonl.gz"):
        (folder / name).parent.mkdir(exist_ok=True)
        so2docs.convert(folder / "dump", folder / name, jobs=1)
    so2docs.convert(folder / "dump", folder / "bulk.ndjson", format="elasticsearch", jobs=1)
    so2docs.tables(folder / "dump", folder / "flat", format="jsonl", jobs=1)
    (folder / "EMPTY").mkdir()
    (folder / "2024-04").mkdir()
    for site in ("beer", "coffee"):
        packed = gzip.compress((SAMPLES / "posts.xml").read_bytes())
        dump = folder / "2024-04" / f"{site}.stackexchange.com-Posts.xml.gz"
        dump.write_bytes(packed)
        so2docs.convert(dump, folder / f"{site}.jsonl", jobs=1)
    so2docs.convert(folder / "dump", folder / "fields.jsonl", fields="Id", jobs=1)
    (folder / "plain.jsonl").write_text("{}\n")
    (folder / "short.db").write_bytes(b"SQLite format 3\x00")
    (folder / "json.db").write_text('[{"Id": 1}]')
    (folder / "file").write_text("precious")
    (folder / "own_titles.py").write_text(OWN_TITLES)
    return folder


@pytest.mark.parametrize(("command", "message", "code"), COMMANDS, ids=[one[0] for one in COMMANDS])
def test_refusals(
    command: str,
    message: str,
    code: str,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    if command.startswith(("serve", "mcp")):
        pytest.importorskip("starlette")
        pytest.importorskip("mcp")
    before = sorted(folder.rglob("*"))
    environment = {"JAVA_HOME": str(folder), "XDG_CACHE_HOME": str(tmp_path)}
    done = run(*shlex.split(command), cwd=folder, env=environment, code=int(code))
    assert re.fullmatch(re.escape(message).replace("…", ".*"), done.stderr, re.DOTALL), done.stderr
    assert done.stdout == ""
    assert sorted(folder.rglob("*")) == before


def test_every_command_is_tested() -> None:
    assert len(COMMANDS) == TRANSCRIPT.count("\n$ ")
