"""Errors before Spark is started."""

import re
from pathlib import Path
from typing import Any

import pytest
from support.command import run
from support.places import SAMPLES

import so2docs


@pytest.mark.parametrize("form", ["elasticsearch", "mongodb", "ravendb"])
def test_colliding_document_ids_of_several_sites(form: Any, tmp_path: Path) -> None:
    from so2docs.extensions.spark import convert

    session: Any = None
    with pytest.raises(so2docs.OptionError, match=f"format='{form}' of several sites needs"):
        convert(
            session,
            [SAMPLES / "posts.xml", SAMPLES / "votes.xml"],
            tmp_path,
            format=form,
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--errors", "ignore"], "--errors is 'ignore'"),
        (["--site", "beer"], "--site is 'beer'; it must be a host"),
        (["--format", "parquet", "--level", "99", "--force"], "--level is 99"),
    ],
)
def test_disallowed_options(options: list[str], message: str, tmp_path: Path) -> None:
    # Without Java, Spark does not start.
    environment = {"JAVA_HOME": str(tmp_path)}
    result = run("spark", SAMPLES / "posts.xml", tmp_path / "out", *options, env=environment)
    assert result.returncode != 0
    assert message in result.stderr
    assert "Java" not in result.stderr


def test_a_report_in_the_place_of_something_else(tmp_path: Path) -> None:
    precious = tmp_path / "thesis.txt"
    precious.write_text("precious")
    result = run("spark", SAMPLES / "posts.xml", tmp_path / "out", "--report", precious, code=1)
    assert re.search(r"thesis\.txt: .* not a report; .* --report", result.stderr)
    assert precious.read_text() == "precious"
