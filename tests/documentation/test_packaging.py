"""Facts about the package that several files repeat are the same in all of them."""

from __future__ import annotations

import re
import tomllib

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
