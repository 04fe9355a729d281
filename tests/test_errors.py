"""What errors say, and that they survive the way from a worker."""

import inspect
import pickle

import pytest

import so2docs
from so2docs import errors
from so2docs.errors import DumpError, Place

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
