"""Which core runs, and how it is chosen."""

from pathlib import Path

import pytest
from support.command import run
from support.interruptions import stopped_between_passes
from support.messages import heard
from support.places import SAMPLES

import so2docs
from so2docs.options.choices import Core
from so2docs.parse import core

needs_compiled = pytest.mark.skipif(
    core.built() == "python", reason="the compiled core is not built: no C compiler"
)
either = pytest.mark.parametrize("name", ["python", pytest.param("compiled", marks=needs_compiled)])


@either
def test_the_variable_sets_auto(name: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(core.VARIABLE, name)
    assert core.choose_core("auto") == name
    monkeypatch.setenv(core.VARIABLE, "auto")
    assert core.choose_core("auto") == core.built()
    monkeypatch.delenv(core.VARIABLE)
    assert core.choose_core("auto") == core.built()


@either
def test_an_option_overrides_the_variable(name: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(core.VARIABLE, "rust")
    assert core.choose_core(name) == name
    with pytest.raises(so2docs.OptionError, match="SO2DOCS_CORE is 'rust'; it must be"):
        core.choose_core("auto")


def test_auto_is_python_without_a_compiled_core(monkeypatch: pytest.MonkeyPatch) -> None:
    core._explain_python.cache_clear()
    monkeypatch.setattr(core, "_core", None)
    monkeypatch.delenv(core.VARIABLE, raising=False)
    with heard() as messages:
        assert [core.choose_core("auto") for _ in range(2)] == ["python", "python"]
    assert len([text for text in messages if "install a C compiler" in text]) == 1
    with pytest.raises(so2docs.OptionError, match="install a C compiler"):
        core.choose_core("compiled")


@either
def test_the_report_names_the_core(name: Core, tmp_path: Path) -> None:
    output = tmp_path / "questions.jsonl.gz"
    report = so2docs.convert(SAMPLES / "posts.xml", output, jobs=1, core=name)
    assert report.core == name
    result = run("convert", SAMPLES / "posts.xml", output, "--core", name, "--force")
    assert f"{name} core)" in result.stderr


@needs_compiled
def test_one_core_resumes_the_spill_of_the_other(tmp_path: Path) -> None:
    output = tmp_path / "questions.jsonl.gz"
    so2docs.convert(SAMPLES / "posts.xml", output, jobs=1, core="compiled")
    before = output.read_bytes()
    with stopped_between_passes():
        so2docs.convert(SAMPLES / "posts.xml", output, jobs=1, force=True, core="python")
    report = so2docs.convert(SAMPLES / "posts.xml", output, jobs=1, force=True, core="compiled")
    assert report.resumed
    assert output.read_bytes() == before


@needs_compiled
def test_the_functions_of_the_core_are_known() -> None:
    assert core.compiled is not None
    functions = {name for name in dir(core.compiled) if not name.startswith("_")}
    assert functions == core.FUNCTIONS
