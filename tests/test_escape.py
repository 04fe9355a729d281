"""Terminals and pages show control characters and markup of a dump without interpreting them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from support.command import run
from support.packed import zipped

from so2docs.escape import for_html, for_terminal

BAD = "\x1b]0;owned\x07<script>alert(1)</script>&\u202e"


def assert_harmless(text: str) -> None:
    assert not any(ord(character) < 32 and character not in "\n\t" for character in text)
    assert "\u202e" not in text


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """An output with hostile text in every field."""
    question = {"Id": 1, "Title": BAD, "Tags": [BAD], "CreationDate": f"2024{BAD}", "Score": 1}
    question |= {"Body": "<p>question</p>", "Comments": [], "Links": [{"LinkType": BAD}]}
    question |= {"Votes": {BAD: 3}}
    answer = {"Id": 2, "ParentId": 1, "CreationDate": f"2024{BAD}", "Body": "long" * 9}
    answer |= {"OwnerDisplayName": BAD}
    path = tmp_path / "q.jsonl"
    path.write_text(json.dumps({**question, "Answers": [answer]}) + "\n", encoding="utf-8")
    return path


def test_functions() -> None:
    assert for_terminal(BAD) == "\ufffd]0;owned\ufffd<script>alert(1)</script>&\ufffd"
    assert for_terminal("a\r\nb\tc\rd") == "a\nb\tc\ufffdd"
    assert for_terminal("\ud800") == "\ufffd"
    assert for_terminal(7) == "7"
    assert for_html('<a href="x">&\'\x1b') == "&lt;a href=&quot;x&quot;&gt;&amp;&#x27;\ufffd"


def test_terminal(hostile: Path) -> None:
    for command in (["inspect", hostile], ["show", hostile, "1", "--text"]):
        result = run(*command, code=0)
        assert "<script>" in result.stdout
        assert_harmless(result.stdout)
        assert_harmless(result.stderr)


def test_names_in_archives(tmp_path: Path) -> None:
    dump = zipped(tmp_path / "dump.zip", {f"{BAD}.xml": b"<posts></posts>", "other.txt": b""})
    result = run("convert", dump, tmp_path / "q.jsonl.gz", code=1)
    assert "owned" in result.stderr
    assert_harmless(result.stderr)


def test_names_in_the_summary(tmp_path: Path, samples: Path) -> None:
    dump = tmp_path / f"{BAD.replace('/', '')}.xml.gz"
    dump.write_bytes(gzip.compress((samples / "posts.xml").read_bytes()))
    result = run("convert", dump, tmp_path / "q.jsonl.gz", code=0)
    assert "owned" in result.stderr
    assert_harmless(result.stderr)
