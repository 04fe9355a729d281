"""What errors say, and that they survive the way from a worker."""

import inspect
import pickle
from pathlib import Path
from typing import get_type_hints

import pytest
from support.command import run
from support.dumps import write_dump
from support.places import SAMPLES

import so2docs
from so2docs import errors
from so2docs.commands.convert import convert
from so2docs.errors import DumpError, OptionError, Place, naming_flags
from so2docs.options.keywords import ConvertKeywords

KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind is not Place]
KINDS = [kind for kind in KINDS if kind.__module__ == errors.__name__]


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_is_public_and_of_one_base(kind: type[Exception]) -> None:
    assert issubclass(kind, so2docs.So2docsError)
    assert getattr(so2docs, kind.__name__) is kind
    assert kind.__doc__


@pytest.mark.parametrize("kind", [kind for kind in KINDS if issubclass(kind, DumpError)])
def test_dump_errors_survive_pickling(kind: type[DumpError]) -> None:
    error = kind("Posts.xml", "is bent", Place(1, 2, 3), advice="mend it", excerpt=b"<posts>")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == str(error) == "Posts.xml: is bent at byte 1, line 2, after post 3; mend it"
    assert (again.place, again.excerpt, again.problem) == (error.place, b"<posts>", "is bent")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not issubclass(kind, DumpError)])
def test_other_errors_survive_pickling(kind: type[Exception]) -> None:
    assert str(pickle.loads(pickle.dumps(kind("what; do")))) == "what; do"


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (Place(1234567), "at byte 1,234,567, before the first post"),
        (Place(0, 1), "at byte 0, line 1, before the first post"),
        (Place(5, 1000, -1), "at byte 5, line 1,000, after post -1"),
    ],
)
def test_places(place: Place, text: str) -> None:
    assert str(place) == text


def test_an_excerpt_is_named() -> None:
    error = DumpError("a", "is bent")
    error.excerpt_path = "b.error.xml"
    assert str(error) == "a: is bent; a small dump that shows it: b.error.xml"


def test_counts_that_do_not_add_up() -> None:
    report = so2docs.Report("Posts.xml", "out", rows=3, questions=1)
    with pytest.raises(so2docs.AccountingError, match=r"3 rows were read but 1 accounted for"):
        report.check()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"jobs": 0}, "jobs is 0; it must be 1 or more"),
        ({"answers_by": "x"}, "answers_by is 'x'; it must be 'id' or 'votes'"),
        ({"level": 10}, "level is 10; it must be 0 to 9"),
        ({"chunk_bytes": 0}, "chunk_bytes is 0; it must be 1 or more"),
    ],
)
def test_options_that_are_not_allowed(options: dict[str, object], words: str) -> None:
    with pytest.raises(so2docs.OptionError, match=words):
        so2docs.convert("Posts.xml", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("flags", "keywords"),
    [
        ("give --min-score", "give min_score="),
        ("--all-tags needs --tag", "all_tags=True needs tags="),
        ("--split contradicts, as in --split 1GB", "split= contradicts, as in split='1GB'"),
        ("as in --split 100", "as in split=100"),
        ("--format parquet needs pyarrow", "format='parquet' needs pyarrow"),
        (
            "--fields Comments.Text needs --with comments",
            "fields='Comments.Text' needs nest='comments'",
        ),
        ("(--site beer.stackexchange.com)", "(site='beer.stackexchange.com')"),
        ("needs --site-field NAME: ids", "needs site_field=NAME: ids"),
        ("--since 2024-01-09T12:30 and --until", "since='2024-01-09T12:30' and until="),
        ("--recipe mine:records gave", "recipe='mine:records' gave"),
        ("choose one with --votes FILE", "choose one with tables={'votes': FILE}"),
        ("(site=True, not --no-site)", "(site=True, not site=False)"),
        ("a/--force/b --force.xml: exists", "a/--force/b --force.xml: exists"),
        ("`so2docs sqlite --force`", "`so2docs sqlite --force`"),
        ("with pip's --force-reinstall", "with pip's --force-reinstall"),
    ],
)
def test_options_have_the_names_that_the_reader_gives_them(flags: str, keywords: str) -> None:
    kinds = [OptionError(flags), pickle.loads(pickle.dumps(OptionError(flags)))]
    for error in (*kinds, DumpError("Posts.xml", "is bent", advice=flags)):
        assert str(error).removeprefix("Posts.xml: is bent; ") == keywords
        with naming_flags():
            assert str(error).removeprefix("Posts.xml: is bent; ") == flags


def test_every_option_has_its_keyword() -> None:
    known = get_type_hints(ConvertKeywords).keys() | {"output_dir", "site_field", "tables"}
    without = {"--quiet", "--debug", "--report"}  # Which no message of the library names.
    flags = {flag for option in convert.params for flag in option.opts if flag[:2] == "--"}
    assert len(flags - without) > 35
    for flag in flags - without:
        keyword, _, rest = str(OptionError(f"{flag} FILE")).partition("=")
        assert keyword in known
        assert rest


def test_an_error_names_what_its_reader_gave(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text("")
    with pytest.raises(so2docs.OutputError, match=r"or overwrite with force=True$"):
        so2docs.convert(SAMPLES / "posts.xml", tmp_path / "q.jsonl")
    done = run("convert", SAMPLES / "posts.xml", tmp_path / "q.jsonl")
    assert done.stderr.endswith("or overwrite with --force\n")
    with pytest.raises(OptionError, match="all_tags=True needs tags="):
        so2docs.documents(SAMPLES / "posts.xml", all_tags=True)


def test_what_a_worker_says_is_in_the_words_of_its_caller(tmp_path: Path) -> None:
    rows = [b'<row Id="%d" PostTypeId="1" />' % number for number in range(1, 60)]
    dump = write_dump(tmp_path / "Posts.xml", *rows, b'<row Id="60" PostTypeId="1" Body="<" />')
    output = tmp_path / "q.jsonl"
    with pytest.raises(DumpError, match="out with skip_malformed=True") as caught:
        so2docs.convert(dump, output, jobs=2, chunk_bytes=200)
    assert "InWorkerError" in repr(caught.value.__cause__)
    with naming_flags(), pytest.raises(DumpError, match="out with --skip-malformed"):
        so2docs.convert(dump, output, jobs=2, chunk_bytes=200)
