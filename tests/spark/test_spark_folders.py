"""The folder of a site on Spark, without Spark: two runs do not damage each other."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import so2docs
from so2docs.report import Report
from so2docs.spark import folders


def publish(folder: str, run: str, draft: str) -> None:
    """Convert into a draft, and finish the folder."""
    report = Report("Posts.xml", draft, questions=1)
    Path(draft, "part-00000.jsonl").write_text(run)
    files = folders.publish(folder, run, draft, report)
    folders.finish(folder, run, files, report.as_dict(), None)


@pytest.mark.parametrize("ends_first", ["earlier", "later"])
def test_the_later_of_two_runs_has_the_folder(ends_first: str, tmp_path: Path) -> None:
    folder = str(tmp_path / "site")
    folders.begin((folder, "earlier"))
    with folders.draft(folder, "earlier") as earlier:
        folders.begin((folder, "later"))
        with folders.draft(folder, "later") as later:
            assert os.path.isdir(earlier)
            if ends_first == "later":
                publish(folder, "later", later)
            error: Exception
            with pytest.raises((so2docs.OutputError, OSError)) as raised:
                publish(folder, "earlier", earlier)
            error = so2docs.ClusterError(str(raised.value))
            with pytest.raises(so2docs.OutputError, match="another run is writing to this folder"):
                folders.clear(folder, "earlier", error)
            if ends_first == "earlier":
                publish(folder, "later", later)
    assert json.loads((tmp_path / "site" / "_SUCCESS").read_bytes())["run"] == "later"
    assert (tmp_path / "site" / "part-00000.jsonl").read_text() == "later"
    assert sorted(os.listdir(folder)) == ["_SUCCESS", "part-00000.jsonl"]


def test_a_failed_attempt_removes_the_drafts_and_the_next_one_has_the_folder(
    tmp_path: Path,
) -> None:
    folder = str(tmp_path / "site")
    folders.begin((folder, "run"))
    killed = tmp_path / "site" / "_temporary" / "run" / "of-a-killed-attempt"
    killed.mkdir(parents=True)
    folders.clear(folder, "run", so2docs.ClusterError("the executor failed"))
    assert not killed.exists()
    with folders.draft(folder, "run") as draft:
        publish(folder, "run", draft)
    assert sorted(os.listdir(folder)) == ["_SUCCESS", "part-00000.jsonl"]
