"""The last line of a command, which suggests the next command on a terminal; and `recipes`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import run
from support.places import SAMPLES

from so2docs.recipes.finding import ALIASES, RECIPES

POSTS = str(SAMPLES / "posts.xml")


def on_a_terminal(*arguments: str, folder: Path) -> str:
    """Run a command whose standard error is a terminal, and return its messages."""
    import pty

    terminal, of_command = pty.openpty()
    command = [sys.executable, "-m", "so2docs", *arguments]
    with subprocess.Popen(
        command, cwd=folder, stderr=of_command, stdout=subprocess.PIPE
    ) as process:
        os.close(of_command)
        said = b""
        try:
            while part := os.read(terminal, 1 << 16):
                said += part
        except OSError:  # The error of Linux when the other end is closed.
            pass
        assert process.wait() == 0
    os.close(terminal)
    return said.decode()


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are of Unix")
@pytest.mark.parametrize(
    ("arguments", "commands"),
    [
        (
            ["convert", POSTS, "my q.jsonl.gz"],
            "so2docs show 'my q.jsonl.gz' ID | so2docs serve 'my q.jsonl.gz' | "
            "so2docs stats 'my q.jsonl.gz'",
        ),
        (
            ["convert", POSTS, "r.jsonl", "--recipe", "qa", "--site", "a.org"],
            "so2docs stats r.jsonl",
        ),
        (["convert", POSTS, "--output-dir", "out"], "so2docs stats out"),
        (["sqlite", POSTS, "q.db"], "so2docs serve q.db | datasette q.db"),
        (
            ["tables", POSTS, "t", "--only", "posts"],
            "duckdb -c \"SUMMARIZE FROM 't/Posts.parquet'\"",
        ),
        (["convert", POSTS, "-"], None),
        (["convert", POSTS, "q.jsonl", "-q"], None),
    ],
)
def test_names_the_next_step(arguments: list[str], commands: str | None, tmp_path: Path) -> None:
    said = on_a_terminal(*arguments, folder=tmp_path)
    lines = [line for line in said.splitlines() if line.startswith("next: ")]
    assert lines == ([] if commands is None else [f"next: {commands}"])


def test_names_no_next_step_for_other_programs(tmp_path: Path) -> None:
    result = run("convert", POSTS, tmp_path / "q.jsonl")
    assert "next: " not in result.stderr
    assert result.returncode == 0


def test_lists_every_recipe() -> None:
    result = run("recipes")
    assert (result.returncode, result.stderr) == (0, "")
    heads = [line.partition(": ") for line in result.stdout.splitlines()]
    assert [names.split(" or ")[0] for names, _, _ in heads] == list(RECIPES)
    assert all(summary for _, _, summary in heads)
    assert all(alias in result.stdout for alias in ALIASES)


@pytest.mark.parametrize("name", ["dpo", "chunks", "beir"])
def test_describes_a_recipe(name: str) -> None:
    result = run("recipes", name)
    assert (result.returncode, result.stderr) == (0, "")
    recipe = RECIPES[ALIASES.get(name, name)]
    settings = [f"\n  {setting} [" for setting in recipe.all_settings]
    assert [setting for setting in settings if setting in result.stdout] == settings
    assert ("settings:" in result.stdout) == bool(settings)
    *_, last = result.stdout.splitlines()
    assert json.loads(last)
    assert result.stdout.count("\n  {") == 1
    if name == "dpo":
        assert "\n  min_margin [1]: Minimum difference" in result.stdout
        assert "\n  chosen: better answer" in result.stdout
