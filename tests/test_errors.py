"""Messages of errors, and their transfer from a worker."""

import ast
import errno
import inspect
import pickle
import re
from pathlib import Path

import pytest
from support.command import run
from support.dumps import write_dump
from support.places import SAMPLES

import so2docs
from so2docs import errors
from so2docs.errors import DumpError, Location, OptionError, flag, is_full, naming_flags, resumable

KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind is not Location]
KINDS = [kind for kind in KINDS if kind.__module__ == errors.__name__]


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_is_public_and_of_one_base(kind: type[Exception]) -> None:
    assert issubclass(kind, so2docs.So2docsError)
    assert getattr(so2docs, kind.__name__) is kind
    assert kind.__doc__


@pytest.mark.parametrize("kind", [kind for kind in KINDS if issubclass(kind, DumpError)])
def test_dump_errors_survive_pickling(kind: type[DumpError]) -> None:
    error = kind("Posts.xml", "is bent", Location(1, 2, 3), excerpt=b"<posts>")
    error.advice = "mend it"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == str(error) == "Posts.xml: is bent at byte 1, line 2, after post 3; mend it"
    assert (again.location, again.excerpt, again.problem) == (error.location, b"<posts>", "is bent")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not issubclass(kind, DumpError)])
def test_other_errors_survive_pickling(kind: type[Exception]) -> None:
    assert str(pickle.loads(pickle.dumps(kind("what; do")))) == "what; do"


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (Location(1234567), "at byte 1,234,567, before the first post"),
        (Location(0, 1), "at byte 0, line 1, before the first post"),
        (Location(5, 1000, -1), "at byte 5, line 1,000, after post -1"),
    ],
)
def test_places(place: Location, text: str) -> None:
    assert str(place) == text


@pytest.mark.parametrize(
    ("name", "value", "typed", "keyword"),
    [
        ("tags", None, "--tags", "tags"),
        ("force", True, "--force", "force=True"),
        ("split", "year", "--split year", "split='year'"),
        ("site_field", "NAME", "--site-field NAME", "site_field=NAME"),
        ("limit", 5, "--limit 5", "limit=5"),
        ("limit", 0, "--limit 0", "limit=0"),
    ],
)
def test_options_are_spelled_for_the_caller(
    name: str, value: object, typed: str, keyword: str
) -> None:
    assert flag(name, value) == keyword
    with naming_flags({}):
        assert flag(name, value) == typed
    with naming_flags({"--" + name.replace("_", "-"): "--other"}):
        assert flag(name, value) == f"--other{typed.removeprefix('--' + name.replace('_', '-'))}"
    assert flag(name, value) == keyword


def test_every_field_of_an_error_names_options_as_the_reader_does(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "Posts.xml", b'<row Id="1" PostTypeId="1" Body="<" />')
    with pytest.raises(DumpError) as caught:
        so2docs.convert(dump, tmp_path / "q.jsonl")
    error = caught.value
    assert "errors='skip'" in error.advice
    for text in (error.advice, error.problem, *map(str, error.args), repr(error)):
        assert text.isprintable()


def test_messages_name_options_by_flag() -> None:
    """A flag in a message would be wrong for callers of the library."""
    for path in sorted(Path(so2docs.__file__).parent.rglob("*.py")):
        if "commands" in path.parts or path.name.endswith(("cli.py", "errors.py", "_command.py")):
            continue  # Readers of these messages use flags.
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            function = call.func if isinstance(call, ast.Call) else None
            if getattr(function, "attr", getattr(function, "id", "")).endswith("Error"):
                texts = [
                    str(node.value) for node in ast.walk(call) if isinstance(node, ast.Constant)
                ]
                flags = [text for text in texts if re.search(r"(?<![\w`])--[a-z]", text)]
                assert all("pip" in text for text in flags), (path, flags)


def test_errors_name_the_value_of_the_caller(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text("")
    with pytest.raises(so2docs.OutputError, match=r"or overwrite with force=True$"):
        so2docs.convert(SAMPLES / "posts.xml", tmp_path / "q.jsonl")
    result = run("convert", SAMPLES / "posts.xml", tmp_path / "q.jsonl")
    assert result.stderr.endswith("or overwrite with --force\n")
    with pytest.raises(OptionError, match=r"all_tags=True needs tags$"):
        so2docs.documents(SAMPLES / "posts.xml", all_tags=True)


def test_errors_from_workers_are_worded_for_the_caller(tmp_path: Path) -> None:
    rows = [b'<row Id="%d" PostTypeId="1" />' % number for number in range(1, 60)]
    dump = write_dump(tmp_path / "Posts.xml", *rows, b'<row Id="60" PostTypeId="1" Body="<" />')
    output = tmp_path / "q.jsonl"
    with pytest.raises(DumpError, match="out with errors='skip'") as caught:
        so2docs.convert(dump, output, jobs=2, chunk_bytes=200)
    assert "InWorkerError" in repr(caught.value.__cause__)
    with naming_flags({}), pytest.raises(DumpError, match="out with --errors skip"):
        so2docs.convert(dump, output, jobs=2, chunk_bytes=200)


def test_errors_extend_builtin_errors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        so2docs.convert(tmp_path / "Posts.xml", tmp_path / "q.jsonl")
    assert isinstance(missing.value, so2docs.DumpError)
    assert missing.value.errno == errno.ENOENT
    for read in (so2docs.open, so2docs.inspect_output, lambda path: list(so2docs.read(path))):
        with pytest.raises(FileNotFoundError) as missing:
            read(tmp_path / "q.jsonl")
        assert isinstance(missing.value, so2docs.OutputError)
    (tmp_path / "q.jsonl").write_text("")
    with pytest.raises(FileExistsError) as exists:
        so2docs.convert(SAMPLES / "posts.xml", tmp_path / "q.jsonl")
    assert isinstance(exists.value, so2docs.OutputError)
    (tmp_path / "q.db").write_text("")
    with pytest.raises(FileExistsError):
        so2docs.to_sqlite(SAMPLES / "site", tmp_path / "q.db")
    with pytest.raises(ValueError, match="min_score is 'x'"):
        so2docs.documents(SAMPLES / "posts.xml", min_score="x")  # type: ignore[arg-type]
    assert issubclass(so2docs.DiskFullError, OSError)


@pytest.mark.skipif(not hasattr(errno, "EDQUOT"), reason="this system has no quotas")
def test_a_full_disk_and_an_exceeded_quota_are_told_by_code() -> None:
    for code in (errno.ENOSPC, errno.EDQUOT):
        assert is_full(OSError(code, ""))
    assert not is_full(OSError(errno.EACCES, ""))


def test_advice_to_resume_depends_on_the_state() -> None:
    error = so2docs.DiskFullError("a: the disk is full", retry="free some space")
    assert str(error) == "a: the disk is full; free some space; the same command starts over"
    with pytest.raises(so2docs.DiskFullError), resumable(True):
        raise error
    assert str(error).endswith("; free some space, then run the same command again to resume")
    with pytest.raises(so2docs.DiskFullError), resumable(False), resumable(True):
        raise error
    assert str(error).endswith("; the same command starts over")
    with pytest.raises(KeyboardInterrupt, match="run the same command again"), resumable(True):
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://u:p@h/x.7z?sig=abc: no file; check it", "https://h/x.7z: no file; check it"),
        ("(HTTPS://h/x#f), then https://a@b:c@h:8/y", "(HTTPS://h/x), then https://h:8/y"),
        ("https://u:p/w?#@h/x", "https://h/x"),
        ("zip://Posts.xml::https://u:p@h/a.zip?s=1", "zip://Posts.xml::https://h/a.zip"),
        (f"https://h/{'p' * 5000}?s=1", f"https://h/{'p' * 5000}"),
        ("s3://bucket/a?.7z", "s3://bucket/a?.7z"),
        ("http://h:8080/a@b.7z http://[::1]:80/a@b", "http://h:8080/a@b.7z http://[::1]:80/a@b"),
    ],
)
def test_urls_without_secrets(text: str, shown: str) -> None:
    error = pickle.loads(pickle.dumps(DumpError(text, "is empty")))
    assert error.path == shown
    assert str(error).startswith(shown)
