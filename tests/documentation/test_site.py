"""The documentation as a site: `make site` fails on broken links and pages."""

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.places import CHECKOUT


@pytest.mark.long
@pytest.mark.skipif(find_spec("mkdocs") is None, reason="MkDocs is installed by `make site`")
def test_a_broken_link_fails_the_build(tmp_path: Path) -> None:
    dry_run = subprocess.run(
        ["make", "--dry-run", "--always-make", "site"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    )
    (build,) = (line for line in dry_run.stdout.splitlines() if "mkdocs build" in line)
    for name in ("README.md", "mkdocs.yml"):
        shutil.copy(CHECKOUT / name, tmp_path)
    for name in ("docs", "packaging"):
        shutil.copytree(CHECKOUT / name, tmp_path / name)
    (tmp_path / "docs" / "when-not.md").write_text("# When not\n\n[x](installation.md#nowhere)\n")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    result = subprocess.run(
        build, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode != 0
    assert "nowhere" in result.stdout + result.stderr
