"""Facts about the package are the same in all files that repeat them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

from support.places import CHECKOUT

import so2docs

PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
RECIPE = (CHECKOUT / "packaging/conda/recipe.yaml").read_text(encoding="utf-8")
CONDA_NAMES = {"isal": "python-isal"}


def test_the_conda_recipe_has_the_same_requirements() -> None:
    listed = re.findall(r"^    - (\S+) ?(\S*)$", RECIPE.partition("  run:")[2], re.MULTILINE)
    expected = [re.match(r"([\w.-]+)(.*)", line) for line in PROJECT["project"]["dependencies"]]
    assert dict(listed) == {
        "python": "",
        **{CONDA_NAMES.get(actual[1], actual[1]): actual[2] for actual in expected if actual},
    }
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert f'skip: match(python, "<{oldest}")' in RECIPE


def test_every_version_is_the_version() -> None:
    citation = (CHECKOUT / "CITATION.cff").read_text(encoding="utf-8")
    assert f'  version: "{so2docs.__version__}"' in RECIPE
    assert f"\nversion: {so2docs.__version__}\n" in citation


def test_a_wheel_without_a_core_is_for_every_system(tmp_path: Path) -> None:
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns("_core*.so", "_core*.pyd", "__pycache__")
    for name in ("so2docs", "pyspark_so2docs", "man"):
        shutil.copytree(CHECKOUT / name, source / name, ignore=ignored)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(CHECKOUT / name, source)
    subprocess.run(
        [sys.executable, "setup.py", "-q", "bdist_wheel", "-d", tmp_path / "dist"],
        cwd=source,
        env={**os.environ, "CC": "false"},
        check=True,
        capture_output=True,
    )
    (wheel,) = (tmp_path / "dist").iterdir()
    assert wheel.name == f"so2docs-{so2docs.__version__}-py3-none-any.whl"
    names = zipfile.ZipFile(wheel).namelist()
    assert any(name.endswith("data/share/man/man1/so2docs-convert.1") for name in names)
    assert {"so2docs/sample/Posts.xml", "so2docs/py.typed"} <= {*names}
