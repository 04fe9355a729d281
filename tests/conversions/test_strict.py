"""Errors of `strict` in posts and tables, and their positions."""

from pathlib import Path
from typing import Any

import pytest
from support.dumps import answer, question, row, write_dump
from support.interruptions import stopped_between_passes
from support.oracle_tables import FILES

import so2docs

SOUND = {
    "Posts.xml": '<row Id="1" PostTypeId="1" />\n  <row Id="2" PostTypeId="2" ParentId="1" />',
    "Comments.xml": '<row Id="1" PostId="1" Text="a" />\n  <row Id="2" PostId="2" UserId="8" />',
    "PostLinks.xml": '<row Id="1" PostId="1" LinkTypeId="1" />\n  <row Id="2" PostId="1" />',
    "Votes.xml": '<row Id="1" PostId="1" VoteTypeId="2" />\n  <row PostId="2" VoteTypeId="3" />',
    "Users.xml": '<row Id="7" Reputation="1" />\n  <row Id="8" DisplayName="b" />',
}
NAMES = {"Posts.xml": "post"} | {file: name.removesuffix("s") for name, file in FILES.items()}
ROWS = {
    "answer_without_parent_id": ("Posts.xml", '<row Id="9" PostTypeId="2" />'),
    "missing_post_type_id": ("Posts.xml", '<row Id="9" />'),
    "invalid_id": ("Posts.xml", '<row Id="x" PostTypeId="1" />'),
    "comment_missing_post_id": ("Comments.xml", '<row Id="3" />'),
    "comment_invalid_id": ("Comments.xml", '<row Id="x" PostId="1" />'),
    "link_invalid_post_id": ("PostLinks.xml", '<row Id="3" PostId="" />'),
    "vote_missing_vote_type_id": ("Votes.xml", '<row Id="3" PostId="1" />'),
    "user_missing_id": ("Users.xml", '<row Reputation="3" />'),
}
FORBIDDEN = '<row Id="3" PostId="1" VoteTypeId="1" PostTypeId="1" Text="&#x1;" />'
PLACES = [
    *((reason, *place) for reason, place in ROWS.items()),
    *(("forbidden characters", file, FORBIDDEN) for file in SOUND),
]
STRAYS = {
    "question_not_in_dump": ("Posts.xml", '<row Id="9" PostTypeId="2" ParentId="77" />', '"Id":9'),
    "repeated_id": ("Posts.xml", '<row Id="1" PostTypeId="1" />', '"Id":1'),
    "comment_without_post": ("Comments.xml", '<row Id="3" PostId="9" />', '{"Id":3,"PostId":9}'),
    "link_without_post": ("PostLinks.xml", '<row Id="3" PostId="9" />', '{"Id":3,"PostId":9}'),
    "vote_without_post": (
        "Votes.xml",
        '<row PostId="9" VoteTypeId="2" />' * 2,
        '{"PostId":9,"VoteTypeId":2}',
    ),
    "user_repeated_id": ("Users.xml", '<row Id="7" />', '{"Id":7}'),
    "badge_without_user": ("Badges.xml", '<row Id="1" UserId="-1" Class="2" />', '"UserId":-1'),
}


def write_site(folder: Path, file: str = "", more: str = "", encoding: str = "utf-8") -> Path:
    """Write a valid site, with additional rows in one table."""
    for name, rows in (SOUND | {"Badges.xml": ""}).items():
        added = f"\n  {more}" if name == file else ""
        root = name.removesuffix(".xml").lower()
        text = f"<{root}>\n  {rows}{added}\n</{root}>"
        (folder / name).write_text(text, encoding if name == file else "utf-8")
    return folder


def convert(folder: Path, **options: Any) -> so2docs.Report:
    options = {"nest": ["all", "badges"], "errors": "strict", **options}
    return so2docs.convert(folder, folder / "q.jsonl.gz", jobs=1, **options)


def failure(folder: Path, **options: Any) -> so2docs.StrictError:
    with pytest.raises(so2docs.StrictError) as failed:
        convert(folder, **options)
    assert not (folder / "q.jsonl.gz").exists()
    return failed.value


def test_a_sound_site(tmp_path: Path) -> None:
    report = convert(write_site(tmp_path))
    assert [counts.rows for counts in report.tables.values()] == [2, 2, 2, 2, 0]


@pytest.mark.parametrize(("reason", "file", "bad"), PLACES)
def test_location_of_a_row(reason: str, file: str, bad: str, tmp_path: Path) -> None:
    folder = write_site(tmp_path, file, bad)
    error = failure(folder, chunk_bytes=30)
    assert error.path == str(folder / file)
    assert reason in error.problem
    # The last vote has no Id, so the error names the vote before it.
    last_id = {"Votes.xml": 1, "Users.xml": 8}.get(file, 2)
    place = (folder / file).read_bytes().rindex(b"<row ")
    assert str(error.location) == f"at byte {place}, line 4, after {NAMES[file]} {last_id}"
    assert "without errors='strict', the dump is converted, and the report counts" in str(error)
    assert error.excerpt_path is not None
    excerpt = Path(error.excerpt_path)
    assert bad in excerpt.read_text()
    if file == "Posts.xml":  # Converting the excerpt gives the same error.
        excerpt.replace(folder / file)
        assert failure(folder, restart=True).problem == error.problem


LEFT_OUT: list[tuple[str, str, str, dict[str, Any]]] = [
    ("Comments.xml", '<row Id="9" UserId="9" />', '<row PostId="" VoteTypeId="" />', {}),
    ("Votes.xml", '<row Id="9" PostId="9" />', '<row PostId="" VoteTypeId="" />', {}),
    ("Users.xml", '<row Id="9" Reputation="9" />', '<row PostId="" />', {}),
    ("Posts.xml", '<row Id="9" PostTypeId="2" OwnerUserId="9" />', '<row Id="x" />', {}),
    (
        "Posts.xml",
        '<row Id="1000000001" PostTypeId="2" />',
        '<row Id="x" />',
        {"drop_fabricated": True},
    ),
    ("Posts.xml", '<row Id="9" PostTypeId="1" Score="0" />', '<row Id="x" />', {"min_score": 1}),
]


@pytest.mark.parametrize(("file", "dropped", "stray", "options"), LEFT_OUT)
def test_strict_ignores_rows_that_are_left_out(
    file: str, dropped: str, stray: str, options: dict[str, Any], core: str, tmp_path: Path
) -> None:
    nines = tmp_path / "nines.txt"
    nines.write_text("9\n")
    options = {"core": core, **(options or {"drop_users": nines, "drop_posts": nines})}
    assert convert(write_site(tmp_path, file, dropped), **options).filtered >= (file == "Posts.xml")
    (tmp_path / "q.jsonl.gz").unlink()
    # A comment is a piece of the slice without a row.
    folder = write_site(tmp_path, file, f"<!-- &#1; -->{dropped}\n{stray}")
    error = failure(folder, restart=True, **options)
    data = (folder / file).read_bytes()
    place, last_id = data.index(stray.encode()), dropped.split('"')[1]
    assert str(error.location) == f"at byte {place}, line 5, after {NAMES[file]} {last_id}"
    assert "has a stray, " in error.problem


@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize("reason", STRAYS)
def test_the_name_of_a_stray(reason: str, resumed: bool, tmp_path: Path) -> None:
    file, rows, name = STRAYS[reason]
    folder = write_site(tmp_path, file, rows)
    if resumed:
        with stopped_between_passes():
            convert(folder, errors="repair")
    error = str(failure(folder))
    is_found_early = reason in ("user_repeated_id", "badge_without_user")
    problem = f"strays, 1 ({reason} 1); the first is" if is_found_early else "a stray,"
    assert f"has {problem} {reason}: " in error
    assert name in error.partition("; without errors='strict'")[0]
    with pytest.raises(so2docs.StrictError, match=reason):
        list(so2docs.documents(folder, jobs=1, nest=["all", "badges"], errors="strict"))


def test_rows_read_by_an_earlier_session(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "Posts.xml", question(1), row(Id=9), question(2))
    with stopped_between_passes():
        convert(dump.parent, nest=[], errors="repair", chunk_bytes=40)
    expected = "strays, 1 (missing_post_type_id 1); the first is missing_post_type_id: "
    assert expected in str(failure(dump.parent, nest=[], chunk_bytes=40))
    with stopped_between_passes():
        convert(write_site(tmp_path), errors="repair", restart=True)
    assert convert(tmp_path).resumed


def test_a_stray_without_ids(tmp_path: Path) -> None:
    write_dump(tmp_path / "Posts.xml", question(1), answer(2, 9))
    error = failure(tmp_path, nest=[], fields="Title,Answers.Body")
    assert "question_not_in_dump: {}" in str(error)


@pytest.mark.parametrize("file", SOUND)
def test_invalid_characters_for_an_encoding(file: str, tmp_path: Path) -> None:
    folder = write_site(tmp_path, file, "<!-- ? -->", "utf-16")
    data = (folder / file).read_bytes()
    (folder / file).write_bytes(data.replace("?".encode("utf-16-le"), b"\x00\xd8"))
    error = failure(folder)
    assert error.path == str(folder / file)
    assert "has 1 characters that its encoding does not allow;" in str(error)
    assert convert(folder, errors="repair", restart=True).repaired_characters == 1
