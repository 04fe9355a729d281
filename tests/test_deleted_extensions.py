"""A capability is deleted with its folder and its entry in the registry; all others still work."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.command import run_python
from support.places import CHECKOUT, SAMPLES

from so2docs.registry import CAPABILITIES

COMMANDS = (
    "convert DUMP q.jsonl -q",
    "convert SITE nested.jsonl --nest all -q",
    "convert SITE history.jsonl --nest history -q",
    "convert DUMP q.parquet -q",
    "convert DUMP q.ravendbdump -q",
    "convert DUMP markdown.jsonl --body markdown -q",
    "convert DUMP pairs.jsonl --recipe pairs --site a.test -q",
    "convert DUMP carded.jsonl --card -q",
    "convert SITE was.jsonl --as-of 2024-02-01 -q",
    "convert DUMP --output-dir several -q",
    "convert http:///Posts.xml remote.jsonl -q",
    "inspect SITE",
    "inspect q.jsonl",
    "recipes",
    "tables SITE flat -q --only posts",
    "tables SITE csv -q --only posts --format csv",
    "tables SITE --output-dir each --only posts -q",
    "show q.jsonl 1 --json",
    "diff q.jsonl q.jsonl -q",
    "sqlite SITE q.db -q",
    "serve --help",
    "mcp --help",
    "card q.jsonl",
    "spark --help",
    "completion bash",
)
SITE = CHECKOUT / "so2docs" / "sample" / "sample.stackexchange.com.7z"
SCRIPT = """
import contextlib, io, json, sys
from so2docs.cli import run
results = {}
for words in json.loads(sys.argv[1]):
    out, err = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    sys.stdout, sys.stderr = out, err
    try:
        code = run(words.split())
    except SystemExit as end:
        code = end.code
    except BaseException as error:
        code = repr(error)
    finally:
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
    results[words] = code, err.getvalue()
print(json.dumps(results))
"""
MEANT: dict[str, tuple[str, ...]] = {
    "sites": ("inspect", "--output-dir", "spark", "sqlite", "serve"),
    "recipes": ("--recipe",),
    "cards": ("--card",),
    "parquet": (".parquet", "tables"),
    "formats": (".ravendbdump",),
    "markdown": ("--body markdown", "--recipe pairs"),
    "as_of": ("--as-of", "tables"),
    "history": ("--nest history",),
    "remote": ("http:", "spark"),
    "tables": ("sqlite", "card"),
    "sqlite": ("serve", "mcp"),
}
"""Parts of the commands that a deleted capability ends, beside its own commands."""


def delete(package: Path, name: str) -> None:
    """Delete a folder of extensions, and its entry in the registry."""
    shutil.rmtree(package / "extensions" / name)
    registry = package / "registry.py"
    entry = re.compile(rf'^    "{name}": Capability.*?(?=^    "|^}})', re.DOTALL | re.MULTILINE)
    text, count = entry.subn("", registry.read_text(encoding="utf-8"))
    assert count == 1
    registry.write_text(text, encoding="utf-8")


@pytest.mark.long
@pytest.mark.parametrize("name", [None, *CAPABILITIES])
def test_without(name: str | None, tmp_path: Path) -> None:
    package = tmp_path / "so2docs"
    shutil.copytree(
        CHECKOUT / "so2docs", package, ignore=shutil.ignore_patterns("__pycache__", "native")
    )
    own: set[str] = set()
    if name is not None:
        delete(package, name)
        own = {*CAPABILITIES[name].commands}
    folder = tmp_path / "work"
    folder.mkdir()
    commands = [
        words.replace("DUMP", str(SAMPLES / "posts.xml")).replace("SITE", str(SITE))
        for words in ("--help", *COMMANDS)
        if words.split()[0] not in own
    ]
    environment = {"PYTHONPATH": str(tmp_path)}
    done = run_python("-c", SCRIPT, json.dumps(commands), cwd=folder, env=environment)
    results: dict[str, tuple[Any, str]] = json.loads(done.stdout)
    assert "--help" in results
    failed = {words for words, (code, _) in results.items() if code}
    offline = {words for words in failed if "http:" in words}
    meant = MEANT.get(name or "", ())
    assert {
        words for words in failed - offline if not any(part in words for part in meant)
    } == set(), results
    for words in failed:
        code, said = results[words]
        assert code in (1, 2), (words, results[words])
        assert said.count("\n") == 1, (words, said)
        if name is not None and words not in offline:
            assert name.removesuffix("s").replace("_", "-") in said.replace("_", "-"), said
