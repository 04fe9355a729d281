"""Mutation testing: make one change to a module at a time, and check whether its tests fail.

    python checks/fuzz/mutate.py --count 20 --seed 0 merge spill

The seed selects a random sample of the possible changes. Each is tested in a forked process, in
which other packages are already imported, so a change takes only as long as its tests. (mutmut
makes all changes, and cosmic-ray starts Python for each; both take hours here.) Only tests in a
single process are useful, because workers import the unchanged module.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import resource
import sys
from collections.abc import Iterator
from copy import deepcopy
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

import isal.isal_zlib
import lxml.etree
import orjson
import py7zr
import pytest
import tqdm

from so2docs import zstd

PRELOADED = (isal.isal_zlib, lxml.etree, orjson, py7zr, tqdm, zstd)
CHECKOUT = Path(__file__).resolve().parents[2]
SECONDS = 60
"""Maximum CPU seconds for the tests of a change, which may be in an endless loop."""

TESTS = {
    "merge": ("merge.py", ["tests/test_merge.py", "tests/parse/test_join.py"]),
    "spill": ("spill.py", ["tests/test_spill.py"]),
    "nest": (
        "nest.py",
        [
            "tests/options/test_nested_fields.py",
            "tests/conversions/test_tables.py",
            "-k",
            "not killed",
        ],
    ),
    "posts": ("parse/posts.py", ["tests/parse/test_posts.py", "tests/parse/test_core.py"]),
    "rows": ("parse/rows.py", ["tests/parse/test_rows.py"]),
    "cutting": (
        "dump/dump.py",
        ["tests/dump/test_dump.py", "tests/pipeline/test_disk_full.py", "-k", "dump or changed"],
    ),
}
"""The file of each module to change and the arguments that select its tests, by name."""

OPPOSITES: dict[type[ast.AST], type[ast.AST]] = {
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
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}


def changed(node: ast.AST) -> ast.AST | None:
    """Return the replacement of a node; None if the node cannot be changed."""
    match node:
        case ast.Compare(ops=[one, *rest]) if type(one) in OPPOSITES:
            node.ops = [OPPOSITES[type(one)](), *rest]  # type: ignore[list-item]
        case ast.BinOp() | ast.BoolOp() if type(node.op) in OPPOSITES:
            node.op = OPPOSITES[type(node.op)]()  # type: ignore[assignment]
        case ast.UnaryOp(op=ast.Not()):
            return node.operand
        case ast.Constant(value=bool()):
            node.value = not node.value
        case ast.Constant(value=int()):
            node.value = int(node.value) + 1
        case ast.If() | ast.While() | ast.IfExp():
            node.test = ast.UnaryOp(ast.Not(), node.test)
        case ast.Expr(value=ast.Call()):
            return ast.Pass()
        case ast.Continue():
            return ast.Break()
        case _:
            return None
    return node


def places(tree: ast.Module) -> Iterator[int]:
    """Yield the positions in `ast.walk` of the nodes in functions that can be changed.

    Messages and annotations are left out.
    """
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    inside = {id(node) for one in functions for part in one.body for node in ast.walk(part)}
    said = {
        id(node)
        for one in ast.walk(tree)
        if isinstance(one, ast.Raise | ast.JoinedStr | ast.AnnAssign | ast.arg)
        for node in ast.walk(one)
    }
    for number, node in enumerate(ast.walk(tree)):
        if id(node) in inside - said and changed(deepcopy(node)) is not None:
            yield number


class _Change(ast.NodeTransformer):
    def __init__(self, node: ast.AST) -> None:
        self.node = node

    def visit(self, node: ast.AST) -> ast.AST:
        if node is not self.node:
            return self.generic_visit(node)
        before = ast.unparse(node).partition("\n")[0]
        found = changed(node)
        assert found is not None
        self.said = f"{before}  ->  {ast.unparse(found).partition(chr(10))[0]}"
        return ast.copy_location(found, node)


def survives(path: Path, code: CodeType | None, tests: list[str]) -> bool:
    """Run tests in a forked process, with `code` as the module at `path`; return whether they pass.

    If `code` is None, the module is unchanged.
    """
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1] == 0
    os.chdir(CHECKOUT)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    real = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
        return code if code and Path(loader.path) == path else real(loader, name)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not long"]
    os._exit(int(pytest.main([*options, *tests])))


def main() -> None:
    """Test changes to each module; print those that no test noticed, and the score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", choices=[*TESTS, []], default=list(TESTS))
    parser.add_argument("--count", type=int, default=20, help="number of changes per module")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    sys.dont_write_bytecode = True
    for name in given.modules:
        file, tests = TESTS[name]
        path = CHECKOUT / "so2docs" / file
        source = path.read_text(encoding="utf-8")
        if not survives(path, None, tests):
            sys.exit(f"{name}: its tests fail without any change")
        numbers = list(places(ast.parse(source)))
        drawn = random.Random(given.seed).sample(numbers, min(given.count, len(numbers)))
        left = 0
        for number in sorted(drawn):
            tree = ast.parse(source)
            node = list(ast.walk(tree))[number]
            change = _Change(node)
            code = compile(ast.fix_missing_locations(change.visit(tree)), path, "exec")
            if survives(path, code, tests):
                left += 1
                print(f"{file}:{getattr(node, 'lineno', '?')}: {change.said}", flush=True)
        print(
            f"{name}: {len(drawn) - left} of {len(drawn)} noticed ({len(numbers)} possible)",
            flush=True,
        )


if __name__ == "__main__":
    main()
