"""A sentence of a message is asserted in one file of tests; the others check types and names."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest
from support.places import CHECKOUT

WORDS = 5
"""Files of tests may share fewer consecutive words of a text of the package."""


def runs_of_words(path: Path) -> set[str]:
    """Return all runs of `WORDS` words in the texts of a module, apart from its docstrings."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    docstrings = {node.value for node in nodes if isinstance(node, ast.Expr)}
    runs = set()
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node in docstrings:
                continue
            # A text can be a regular expression. Each literal part of an f-string is a text.
            words = [word.strip(".,;:()'\"") for word in node.value.replace("\\", "").split()]
            runs |= {" ".join(words[i : i + WORDS]) for i in range(len(words) - WORDS + 1)}
    return runs


def repeated(package: Path, tests: Path) -> dict[str, set[str]]:
    """Return texts of the package that occur in several files of tests, with the names of these."""
    texts = set[str]().union(*map(runs_of_words, package.rglob("*.py")))
    files = defaultdict(set)
    for path in tests.rglob("test_*.py"):
        for run in runs_of_words(path) & texts:
            files[run].add(path.name)
    return {run: names for run, names in files.items() if len(names) > 1}


@pytest.mark.long
def test_each_sentence_is_asserted_in_one_file() -> None:
    assert repeated(CHECKOUT / "so2docs", CHECKOUT / "tests") == {}


def test_a_repeated_sentence_is_found(tmp_path: Path) -> None:
    for name, text in {
        "package/a.py": '"""The module that tells it."""\ntext = f"{path}: has no room left on it"',
        "tests/test_a.py": 'raises(E, match=r"has no room left on it")',
        "tests/test_b.py": 'assert "no room (left) on it; go" in b',
        "tests/test_c.py": '"""The module that tells it."""\nassert "no room left" in c',
        "tests/test_d.py": 'assert "The module that tells it." in d',
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    actual = repeated(tmp_path / "package", tmp_path / "tests")
    assert actual == {"no room left on it": {"test_a.py", "test_b.py"}}
