"""Facts about the package are the same in all files that repeat them."""

from __future__ import annotations

import re
import shutil
import tomllib
import zipfile
from pathlib import Path

import pytest
from support.command import run_python
from support.places import CHECKOUT

import so2docs

PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
RECIPE = re.sub(
    r'- if: match\(python, "<(\S+)"\)\n +then: (.*)',
    r"- \2; python_version < '\1'",  # As in `pyproject.toml`.
    (CHECKOUT / "packaging/conda/recipe.yaml").read_text(encoding="utf-8"),
)
CONDA_NAMES = {"isal": "python-isal"}
EXTRAS = ("as-of", "chunks", "http", "mcp", "parquet", "serve")


def split(requirements: list[str]) -> dict[str, str]:
    matches = [re.match(r"([\w.-]+) ?(.*)", line) for line in requirements]
    return {CONDA_NAMES.get(match[1], match[1]): match[2] for match in matches if match}


def test_the_conda_recipe_has_the_same_requirements() -> None:
    run, constraints = (
        split(re.findall(r"^    - (\S.*)$", part.partition("\ntests:")[0], re.MULTILINE))
        for part in RECIPE.partition("\n  run:")[2].split("\n  run_constraints:")
    )
    project = PROJECT["project"]
    assert run == {"python": "", **split(project["dependencies"])}
    extras = project["optional-dependencies"]
    assert constraints == split([line for extra in EXTRAS for line in extras[extra]])
    oldest = project["requires-python"].removeprefix(">=")
    assert f'skip: match(python, "<{oldest}")' in RECIPE


def test_every_version_is_the_version() -> None:
    citation = (CHECKOUT / "CITATION.cff").read_text(encoding="utf-8")
    assert f'  version: "{so2docs.__version__}"' in RECIPE
    assert f"\nversion: {so2docs.__version__}\n" in citation


@pytest.mark.long
def test_a_wheel_without_a_core_is_for_every_system(tmp_path: Path) -> None:
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns("_core*.so", "_core*.pyd", "__pycache__")
    for name in ("so2docs", "packaging"):
        shutil.copytree(CHECKOUT / name, source / name, ignore=ignored)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(CHECKOUT / name, source)
    command = ["setup.py", "-q", "bdist_wheel", "-d", tmp_path / "dist"]
    run_python(*command, cwd=source, env={"CC": "false"}, encoding=None)
    (wheel,) = (tmp_path / "dist").iterdir()
    assert wheel.name == f"so2docs-{so2docs.__version__}-py3-none-any.whl"
    archive = zipfile.ZipFile(wheel)
    names = archive.namelist()
    assert any(name.endswith("data/share/man/man1/so2docs-convert.1") for name in names)
    assert {"so2docs/sample/Posts.xml", "so2docs/py.typed"} <= {*names}
    (metadata,) = (name for name in names if name.endswith("/METADATA"))
    headers, _, description = archive.read(metadata).decode().partition("\n\n")
    assert description.startswith("# so2docs")
    links = re.findall(r"\]\(([^)]+)\)", description)
    assert links
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    urls = PROJECT["project"]["urls"]
    assert all(f"Project-URL: {name}, {url}" in headers for name, url in urls.items())


def test_the_readme_lists_the_extras() -> None:
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    listed = re.search(r"# extras: (.*)", readme)
    assert listed is not None
    assert {*listed[1].split(", ")} == {*EXTRAS, "spark"}
    tasks = re.findall(r"^\| .*?`\[([a-z-]+)\]`", readme, re.MULTILINE)
    assert {*tasks} <= {*EXTRAS, "spark"}
    page = (CHECKOUT / "docs" / "installation.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)
    assert {*table} == {*EXTRAS, "spark", "examples"}


def test_what_is_not_released_has_no_release_date() -> None:
    is_released = "not released yet" not in (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8")
    citation = (CHECKOUT / "CITATION.cff").read_text(encoding="utf-8")
    assert is_released == ("date-released" in citation)


def test_the_site_has_no_widget_of_the_repository() -> None:
    """With `repo_url`, each page asks api.github.com for the number of stars."""
    assert not re.search(r"^repo_url", (CHECKOUT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
