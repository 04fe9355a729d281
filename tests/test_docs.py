"""The documentation is what the program does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
README = (CHECKOUT / "README.md").read_text(encoding="utf-8")
PYTHON_BLOCKS = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def test_help_in_the_readme_is_current() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cogapp", "--check", "-I", "tests", "README.md"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\nrun `make docs`"


@pytest.mark.parametrize("number", range(len(PYTHON_BLOCKS)))
def test_python_in_the_readme_runs(number: int, samples: Path, tmp_path: Path) -> None:
    (tmp_path / "Posts.xml").write_bytes((samples / "posts.xml").read_bytes())
    # The blocks build on one another, as a reader would type them.
    script = "\n".join(PYTHON_BLOCKS[: number + 1]).replace("11227809", "1")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "sourdough" in done.stdout


def test_the_readme_has_python_to_run() -> None:
    assert len(PYTHON_BLOCKS) >= 2


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "samples/README.md"])
def test_links_to_files_lead_somewhere(name: str) -> None:
    text = (CHECKOUT / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert ((CHECKOUT / name).parent / target).exists(), target


def test_every_sample_is_described() -> None:
    described = (CHECKOUT / "samples" / "README.md").read_text(encoding="utf-8")
    for sample in (CHECKOUT / "samples").glob("*.xml"):
        assert sample.stem in described
