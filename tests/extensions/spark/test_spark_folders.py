"""The folder of a site on Spark, without Spark: runs and attempts do not damage each other."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.places import SAMPLES

import so2docs
from so2docs.extensions.spark import folders, stores
from so2docs.extensions.spark.sites import Site, convert_site
from so2docs.options.split import Split
from so2docs.report import Report


def finish(folder: str, run: str, draft: str) -> None:
    """Write a part file into a draft, and finish the folder."""
    path = Path(draft, "part-00000.jsonl")
    path.write_text(run)
    folders.finish(folder, run, draft, Report("Posts.xml", str(path), questions=1))


@pytest.mark.parametrize("ends_first", ["earlier", "later"])
def test_the_later_run_keeps_the_folder(ends_first: str, tmp_path: Path) -> None:
    folder = str(tmp_path / "site")
    folders.begin(folder, "earlier")
    with folders.make_draft(folder, folder) as earlier:
        folders.begin(folder, "later")
        with folders.make_draft(folder, folder) as later:
            assert os.path.isdir(earlier)
            if ends_first == "later":
                finish(folder, "later", later)
            with pytest.raises((so2docs.OutputError, OSError)):
                finish(folder, "earlier", earlier)
            with pytest.raises(so2docs.OutputError, match="another run is writing to this folder"):
                folders.check_run(folder, "earlier")
            if ends_first == "earlier":
                finish(folder, "later", later)
    assert json.loads((tmp_path / "site" / "_SUCCESS").read_bytes())["run"] == "later"
    assert (tmp_path / "site" / "part-00000.jsonl").read_text() == "later"
    assert sorted(os.listdir(folder)) == ["_SUCCESS", "part-00000.jsonl"]


def test_the_drafts_of_killed_attempts_are_removed_at_the_end(tmp_path: Path) -> None:
    folder = str(tmp_path / "site")
    folders.begin(folder, "run")
    killed = tmp_path / "site" / "_temporaryOfAKilledAttempt"
    killed.mkdir(parents=True)
    (tmp_path / "site" / "_part-00000.jsonl.of-a-killed-attempt").touch()
    with folders.make_draft(folder, folder) as draft:
        finish(folder, "run", draft)
    assert sorted(os.listdir(folder)) == ["_SUCCESS", "part-00000.jsonl"]


@pytest.mark.parametrize("attempts", [1, 2])
def test_an_earlier_conversion_stays_until_the_new_files_are_complete(
    attempts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(tmp_path / "site")
    success = tmp_path / "site" / "_SUCCESS"
    publish, marked = stores.publish, []

    def note_and_publish(*paths: str) -> None:
        marked.append(success.exists())
        publish(*paths)

    monkeypatch.setattr(stores, "publish", note_and_publish)
    for run in ("earlier", "later"):
        folders.begin(folder, run)
        assert success.exists() == (run == "later")
        for _ in range(attempts):
            with folders.make_draft(folder, folder) as draft:
                finish(folder, run, draft)
    # The second attempt of a run does not remove the file of the first.
    assert marked == [False, True][:attempts] * 2
    assert json.loads(success.read_bytes())["run"] == "later"


def test_an_attempt_continues_without_both_marks(tmp_path: Path) -> None:
    """It may have removed the `_SUCCESS` of another attempt of its run, which removed `_run`."""
    folder = str(tmp_path / "site")
    folders.begin(folder, "run")
    with folders.make_draft(folder, folder) as draft:
        (tmp_path / "site" / "_run").unlink()
        finish(folder, "run", draft)
    assert sorted(os.listdir(folder)) == ["_SUCCESS", "part-00000.jsonl"]


@pytest.mark.spark
@pytest.mark.parametrize("ending", ["succeeds", "fails"])
def test_two_attempts_at_once(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site("posts", str(SAMPLES / "posts.xml"), str(tmp_path / "posts"))
    folders.begin(site.output, "run")
    convert: dict[str, Any] = {
        "run": "run",
        "keywords": {"split": Split(size=1_000_000)},
    }
    publish = folders.finish
    inner: list[Report] = []

    def fail(*_: object) -> None:
        raise so2docs.ClusterError("lost")

    def finish_after_another_attempt(*arguments: object) -> None:
        monkeypatch.setattr(folders, "finish", fail if ending == "fails" else publish)
        if ending == "fails":
            with pytest.raises(so2docs.ClusterError, match="lost"):
                convert_site(site, **convert)
        else:
            inner.append(convert_site(site, **convert))
        publish(*arguments)

    monkeypatch.setattr(folders, "finish", finish_after_another_attempt)
    report = convert_site(site, **convert)
    assert inner in ([], [report])
    assert sorted(os.listdir(site.output)) == ["_SUCCESS", "part-00000.jsonl.gz"]
    so2docs.convert(SAMPLES / "posts.xml", tmp_path / "plain.jsonl.gz", jobs=1)
    part = tmp_path / "posts" / "part-00000.jsonl.gz"
    assert part.read_bytes() == (tmp_path / "plain.jsonl.gz").read_bytes()
