"""Change one operator or constant at a time, and see whether the tests notice.

    PYTHONPATH=checks python -m mutants RESULTS COPY [COPY ...] [--seed 2] [--count 60]

The places are drawn by a seeded random choice over all statements of the package that have an
operator or a constant to change; the folder for Spark, whose tests need Spark, is left out.
Each COPY of the repository takes a place at a time: its file is changed and restored. Those test
files run first that most likely notice, then all others, until a test fails. A line of RESULTS says
what was changed and which test failed; a place that is in RESULTS already is not tried again.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import json
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

PAIRS: tuple[tuple[type[ast.AST], type[ast.AST]], ...] = (
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.Is, ast.IsNot),
    (ast.In, ast.NotIn),
    (ast.Add, ast.Sub),
    (ast.Mult, ast.FloorDiv),
    (ast.BitAnd, ast.BitOr),
    (ast.And, ast.Or),
)
OTHERS: dict[type[ast.AST], Any] = {**dict(PAIRS), **{one: other for other, one in PAIRS}}
"""Operators, each with the one that takes its place."""
WHOLE = ("commands/", "conversions/")
"""Folders of tests of whole conversions."""
NOT_LONG = "not long and not spark and not browser and not readers"
SECONDS = 60
"""A test that takes longer does not end: unmarked tests take about a second of CPU."""
TOGETHER = 12
"""Number of test files that run in one process."""


class Place(NamedTuple):
    """A changed place: file, line, its text before and after, and the changed source."""

    file: str
    line: int
    before: str
    after: str
    source: str


def find_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the nodes of a statement that can be changed.

    Statements in it have their own, and types are left out, because they are not tested.
    """
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return
    for name, field in ast.iter_fields(statement):
        for child in field if isinstance(field, list) else [field]:
            if isinstance(child, ast.expr | ast.withitem) and name != "annotation":
                yield from (node for node in ast.walk(child) if change(copy.copy(node)))


def change(node: ast.AST) -> bool:
    """Change the operator or the constant of a node in place; return whether it has one."""
    match node:
        case ast.Compare(ops=[first, *others]):
            node.ops = [OTHERS[type(first)](), *others]
        case ast.BinOp(op=operator) | ast.BoolOp(op=operator) if type(operator) in OTHERS:
            node.op = OTHERS[type(operator)]()
        case ast.UnaryOp(op=ast.Not()):
            node.operand = ast.UnaryOp(ast.Not(), node.operand)
        case ast.Constant(value=bool(value)):
            node.value = not value
        case ast.Constant(value=int(value)):
            node.value = value + 1
        case _:
            return False
    return True


def draw(checkout: Path, seed: int, count: int) -> Iterator[Place]:
    """Draw places of the package, and change each of them."""
    statements = [
        (path, number)
        for path in sorted((checkout / "so2docs").rglob("*.py"))
        if "spark" not in path.parts
        for number, node in enumerate(ast.walk(ast.parse(path.read_text("utf-8"))))
        if isinstance(node, ast.stmt) and any(find_nodes(node))
    ]
    chance = random.Random(seed)
    for path, number in chance.sample(statements, count):
        tree = ast.parse(path.read_text("utf-8"))
        statement = next(node for at, node in enumerate(ast.walk(tree)) if at == number)
        assert isinstance(statement, ast.stmt)
        node = chance.choice(list(find_nodes(statement)))
        line, before = getattr(node, "lineno", statement.lineno), ast.unparse(node)
        change(node)
        file = path.relative_to(checkout).as_posix()
        yield Place(file, line, before, ast.unparse(node), ast.unparse(tree))


def sort_tests(place: Place, checkout: Path) -> list[str]:
    """Return all test files, those first that most likely notice a change.

    They name the module or the function, are in the folder of the module's tests, or convert.
    """
    module = Path(place.file).relative_to("so2docs")
    names = [module.stem]
    for node in ast.walk(ast.parse((checkout / place.file).read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names += [node.name] * (node.lineno <= place.line <= (node.end_lineno or 0))
    named = re.compile(rf"\b({'|'.join(names)})\b")

    def rate(path: Path) -> tuple[int, int]:
        text, test = path.read_text("utf-8"), path.relative_to(checkout / "tests").as_posix()
        is_near = test.startswith(f"{module.parent.as_posix()}/") or module.stem in path.stem
        is_named = len(set(named.findall(text)))
        return -3 * is_near - 2 * is_named - test.startswith(WHOLE), len(text)

    return [str(path) for path in sorted((checkout / "tests").rglob("test_*.py"), key=rate)]


def run_tests(checkout: Path, *arguments: str) -> str | None:
    """Return the first test that fails, `time` if one does not end; None if none fails."""
    options = ["-x", "-q", "-p", "no:cacheprovider", "-m", NOT_LONG]
    options += [f"--override-ini=faulthandler_timeout={SECONDS}"]
    options += ["--override-ini=faulthandler_exit_on_timeout=true"]
    running = subprocess.Popen(
        [sys.executable, "-m", "pytest", *options, *arguments],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
    )
    output = running.communicate()[0]
    with contextlib.suppress(ProcessLookupError):
        os.killpg(running.pid, signal.SIGKILL)  # The processes of a test that did not end.
    if running.returncode in (0, 5):  # 5: there are no tests.
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)
    return failed[1] if failed else "time" if "Timeout" in output else "import"


def find_failure(place: Place, checkout: Path) -> str | None:
    """Return a test that fails with a change and passes without it; None if there is none."""
    path, tests = checkout / place.file, sort_tests(place, checkout)
    whole, deselected = path.read_bytes(), list[str]()
    while tests:
        path.write_text(place.source, encoding="utf-8")
        try:
            failed = run_tests(checkout, *tests[:TOGETHER], *deselected)
        finally:
            path.write_bytes(whole)
        if failed is None:
            del tests[:TOGETHER]
        elif failed in ("time", "import") or run_tests(checkout, failed) is None:
            return failed
        else:
            deselected.append(f"--deselect={failed}")
    return None


def try_places(places: list[Place], results: Path, checkout: Path) -> None:
    """Try places in a copy of the repository, until none are left."""
    while places:
        place = places.pop()
        record = place._asdict() | {"killed by": find_failure(place, checkout)}
        del record["source"]
        with results.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(record)}\n")
        print(*record.values())


def main() -> None:
    """Try the places, as many at a time as there are copies."""
    parser = argparse.ArgumentParser(prog="mutants")
    parser.add_argument("results", type=Path)
    parser.add_argument("copies", type=Path, nargs="+")
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--count", type=int, default=60)
    given = parser.parse_args()
    lines = given.results.read_text("utf-8").splitlines() if given.results.exists() else []
    tried = [(one["file"], one["line"], one["after"]) for one in map(json.loads, lines)]
    places = list(draw(given.copies[0], given.seed, given.count))
    places = [place for place in places if (place.file, place.line, place.after) not in tried]
    with ThreadPoolExecutor() as threads:
        work = partial(try_places, places, given.results)
        list(threads.map(work, [path.resolve() for path in given.copies]))


if __name__ == "__main__":
    main()
