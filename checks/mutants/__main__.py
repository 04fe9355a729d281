"""Change one operator or constant at a time, and see whether the tests notice.

    PYTHONPATH=checks python -m mutants CHECKOUT RESULTS [--seed 1] [--count 60]

The places are drawn by a seeded random choice over all statements of the package that have an
operator or a constant to change; the folder for Spark, whose tests need Spark, is left out.
CHECKOUT is a copy of the repository whose files are changed and restored. For each place, the tests
of the module's folder run first, then those that name the module, then tests of whole conversions,
until one fails. A line of RESULTS says what was changed and which test failed; a place that is in
RESULTS already is not tried again.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
WHOLE = ("commands", "conversions/test_samples.py", "conversions/test_tables.py", "output")
"""Tests of whole conversions, tried last."""
NOT_LONG = "not long and not spark and not browser and not readers"
SECONDS = 300


def find_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the nodes of a statement that can be changed.

    Statements in it have their own, and types are left out, because they are not tested.
    """
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return
    for name, field in ast.iter_fields(statement):
        for child in field if isinstance(field, list) else [field]:
            if isinstance(child, ast.expr | ast.withitem) and name != "annotation":
                yield from filter(is_changeable, ast.walk(child))


def is_changeable(node: ast.AST) -> bool:
    """Whether `change` knows how to change a node."""
    if isinstance(node, ast.Compare):
        return type(node.ops[0]) in COMPARED
    if isinstance(node, ast.BinOp):
        return type(node.op) in COMPUTED
    is_number = isinstance(node, ast.Constant) and isinstance(node.value, int)
    return (
        is_number
        or isinstance(node, ast.BoolOp)
        or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))
    )


def change(node: ast.AST) -> None:
    """Change an operator or a constant in place."""
    if isinstance(node, ast.Compare):
        node.ops[0] = COMPARED[type(node.ops[0])]()
    elif isinstance(node, ast.BinOp):
        node.op = COMPUTED[type(node.op)]()
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.UnaryOp):
        node.op, node.operand = ast.Not(), ast.UnaryOp(ast.Not(), node.operand)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1


def draw(package: Path, seed: int, count: int) -> Iterator[tuple[Path, int, str, str, str]]:
    """Yield places: the file, the line, its text before and after, and the changed source."""
    statements = [
        (path, number)
        for path in sorted(package.rglob("*.py"))
        if "spark" not in path.parts
        for number, node in enumerate(ast.walk(ast.parse(path.read_text("utf-8"))))
        if isinstance(node, ast.stmt) and next(find_nodes(node), None) is not None
    ]
    chance = random.Random(seed)
    for path, number in chance.sample(statements, count):
        tree = ast.parse(path.read_text("utf-8"))
        statement = next(node for at, node in enumerate(ast.walk(tree)) if at == number)
        assert isinstance(statement, ast.stmt)
        node = chance.choice(list(find_nodes(statement)))
        line, before = getattr(node, "lineno", statement.lineno), ast.unparse(node)
        change(node)
        yield path, line, before, ast.unparse(node), ast.unparse(tree)


def list_tests(module: Path, checkout: Path) -> Iterator[list[str]]:
    """Yield groups of test files for a module, relative to the checkout."""
    tests = checkout / "tests"
    folder = module.relative_to(checkout / "so2docs").parent
    own = tests / folder if folder.parts else tests / f"test_{module.stem}.py"
    if own.exists():
        yield [str(own)]
    name = re.compile(rf"\b{module.stem}\b")
    yield [str(path) for path in sorted(tests.rglob("test_*.py")) if name.search(path.read_text())]
    yield [str(tests / path) for path in WHOLE]


def run_tests(checkout: Path, *arguments: str) -> str | None:
    """Return the first test that fails, or `time`; None if none fails."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    settings: dict[str, Any] = {"cwd": checkout, "env": environment, "timeout": SECONDS}
    try:
        done = subprocess.run(
            [*command, "-m", NOT_LONG, *arguments],
            capture_output=True,
            text=True,
            check=False,
            **settings,
        )
    except subprocess.TimeoutExpired:
        return "time"
    if done.returncode in (0, 5):  # 5: there are no tests.
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    return failed[1] if failed else "import"


def find_failure(path: Path, source: str, checkout: Path) -> str | None:
    """Return a test that fails with a changed module and passes without; None if there is none."""
    whole = path.read_bytes()
    for files in list_tests(path, checkout):
        deselected: list[str] = []
        while True:
            path.write_text(source, encoding="utf-8")
            try:
                failed = run_tests(checkout, *files, *deselected)
            finally:
                path.write_bytes(whole)
            if failed is None:
                break
            if failed in ("time", "import") or run_tests(checkout, failed) is None:
                return failed
            deselected.append(f"--deselect={failed}")
    return None


def main() -> None:
    """Try the places one after the other."""
    parser = argparse.ArgumentParser(prog="mutants")
    parser.add_argument("checkout", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    given = parser.parse_args()
    lines = given.results.read_text("utf-8").splitlines() if given.results.exists() else []
    tried = {(one["file"], one["line"], one["after"]) for one in map(json.loads, lines)}
    places = draw(given.checkout / "so2docs", given.seed, given.count)
    for path, line, before, after, source in list(places):
        file = str(path.relative_to(given.checkout))
        if (file, line, after) in tried:
            continue
        failed = find_failure(path, source, given.checkout)
        place = {"file": file, "line": line, "before": before, "after": after, "killed by": failed}
        with given.results.open("a", encoding="utf-8") as results:
            results.write(f"{json.dumps(place)}\n")
        print("survived" if failed is None else "killed", file, line, before, "->", after)


if __name__ == "__main__":
    main()
