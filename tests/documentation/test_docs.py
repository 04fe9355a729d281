"""The documentation agrees with the program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from reference.keywords import CLASSES
from support.command import run_python
from support.places import CHECKOUT

import so2docs


def test_help_in_the_docs_is_current() -> None:
    pages = ["docs/cli.md", "docs/api.md", "docs/options.md"]
    sources = [
        f"so2docs/{name}.py" for name in ("__init__", "options/keywords", "extensions/keywords")
    ]
    command = ["-m", "cogapp", "--check", "-I", "packaging", *sources, *pages]
    result = run_python(*command, cwd=CHECKOUT, code=None)
    assert result.returncode == 0, f"{result.stdout}{result.stderr}\nrun `make docs`"


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "CONTRIBUTING.md",
        "so2docs/extensions/README.md",
        *(str(page.relative_to(CHECKOUT)) for page in (CHECKOUT / "checks").glob("*/README.md")),
        "samples/README.md",
        "tests/promises.md",
        *(f"docs/{page.name}" for page in (CHECKOUT / "docs").glob("*.md")),
    ],
)
def test_links_to_files_lead_somewhere(name: str) -> None:
    text = (CHECKOUT / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert ((CHECKOUT / name).parent / target).exists(), target


@pytest.mark.parametrize(
    "name", ["README.md", "CONTRIBUTING.md", "docs/internals.md", "samples/README.md"]
)
def test_programs_named_on_pages_exist(name: str) -> None:
    text = (CHECKOUT / name).read_text(encoding="utf-8")
    paths = re.findall(r"python3? ([\w/.]+\.py)", text)
    paths += [f"tests/{m.replace('.', '/')}.py" for m in re.findall(r"-m (support\.\w+)", text)]
    for path in paths:
        assert (CHECKOUT / path).exists(), path


def test_every_extension_is_described() -> None:
    extensions = CHECKOUT / "so2docs" / "extensions"
    text = (extensions / "README.md").read_text(encoding="utf-8")
    folders = {path.parent.name for path in extensions.glob("*/__init__.py")}
    assert set(re.findall(r"^\| `(\w+)/`", text, re.MULTILINE)) == folders


def test_every_page_is_listed() -> None:
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    for page in (CHECKOUT / "docs").glob("*.md"):
        assert f"](docs/{page.name})" in readme, page


def test_every_public_name_is_in_the_reference() -> None:
    page = (CHECKOUT / "docs/api.md").read_text(encoding="utf-8")
    listed = re.findall(r"^### (?:class )?`(.+)`$", page, re.MULTILINE)
    listed += re.findall(r"^\| <a id=.*?></a>`(\w+)`", page, re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == {*so2docs.__all__, "open", *CLASSES} - {"__version__"}


def test_links_to_options_lead_to_the_table() -> None:
    table = (CHECKOUT / "docs/options.md").read_text(encoding="utf-8")
    described = re.findall(r'<a id="(\w+)"></a>', table)
    assert len(described) == len(set(described))
    for name in ("cli", "api"):
        page = (CHECKOUT / f"docs/{name}.md").read_text(encoding="utf-8")
        assert set(re.findall(r"options\.md#(\w+)", page)) <= set(described)


@pytest.mark.long
def test_python_of_the_readme_is_typed_for_its_users(tmp_path: Path) -> None:
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    assert blocks
    script = tmp_path / "script.py"
    script.write_text("\n".join(blocks), encoding="utf-8")
    run_python("-m", "mypy", "--strict", script, cwd=CHECKOUT)


def test_every_test_named_in_the_promises_exists() -> None:
    sources: dict[str, str] = {}
    for path in (CHECKOUT / "tests").rglob("test_*.py"):
        sources[path.name] = sources.get(path.name, "") + path.read_text(encoding="utf-8")
    text = (CHECKOUT / "tests" / "promises.md").read_text(encoding="utf-8")
    missing, file = [], ""
    for name, test in re.findall(r"`(?:(test_\w+\.py))?(?:::(test_\w+…?))?`", text):
        file = name or file
        if not (name or test):
            continue
        source = sources.get(file, "")
        start = f"def {test.removesuffix('…')}" + ("" if test.endswith("…") else "(")
        if not source or (test and start not in source):
            missing.append(f"{file}::{test}")
    assert missing == []
