"""Errors of `strict` in tables, and their positions."""

from pathlib import Path
from typing import Any

import pytest
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
ROWS = {
    "comment_missing_post_id": '<row Id="3" />',
    "comment_invalid_id": '<row Id="x" PostId="1" />',
    "link_invalid_post_id": '<row Id="3" PostId="" />',
    "vote_missing_vote_type_id": '<row Id="3" PostId="1" />',
    "user_missing_id": '<row Reputation="3" />',
    "forbidden characters": '<row Id="3" PostId="1" VoteTypeId="1" Text="&#x1;" />',
}
STRAYS = {
    "comment_without_post": ('<row Id="3" PostId="9" />', '{"Id":3,"PostId":9}'),
    "link_without_post": ('<row Id="3" PostId="9" />', '{"Id":3,"PostId":9}'),
    "vote_without_post": ('<row PostId="9" VoteTypeId="2" />' * 2, '{"PostId":9,"VoteTypeId":2}'),
    "user_repeated_id": ('<row Id="7" />', '{"Id":7}'),
}
ROW_OF = {file: name.removesuffix("s") for name, file in FILES.items()}
FILE_OF = {row: file for file, row in ROW_OF.items()}


def file_of(reason: str) -> str:
    return FILE_OF[reason.partition("_")[0]]


PLACES = [
    (reason, file)
    for reason in ROWS
    for file in ([file_of(reason)] if "_" in reason else FILES.values())
]


def write_site(folder: Path, file: str = "", more: str = "", encoding: str = "utf-8") -> Path:
    """Write a valid site, with additional rows in one table."""
    for name, rows in SOUND.items():
        added = f"\n  {more}" if name == file else ""
        root = name.removesuffix(".xml").lower()
        text = f"<{root}>\n  {rows}{added}\n</{root}>"
        (folder / name).write_text(text, encoding if name == file else "utf-8")
    return folder


def failure(folder: Path, **options: Any) -> so2docs.StrictError:
    with pytest.raises(so2docs.StrictError) as failed:
        so2docs.convert(
            folder, folder / "q.jsonl.gz", jobs=1, nest="all", errors="strict", **options
        )
    return failed.value


def test_a_sound_site(tmp_path: Path) -> None:
    report = so2docs.convert(
        write_site(tmp_path), tmp_path / "q.jsonl.gz", jobs=1, nest="all", errors="strict"
    )
    assert [counts.rows for counts in report.tables.values()] == [2, 2, 2, 2]


@pytest.mark.parametrize(("reason", "file"), PLACES)
def test_location_of_a_row(reason: str, file: str, tmp_path: Path) -> None:
    folder = write_site(tmp_path, file, ROWS[reason])
    error = failure(folder, chunk_bytes=30)
    assert error.path == str(folder / file)
    assert reason in error.problem
    # The last vote has no Id, so the error names the vote before it.
    last_id = {"Votes.xml": 1, "Users.xml": 8}.get(file, 2)
    place = (folder / file).read_bytes().rindex(b"<row ")
    assert str(error.location) == f"at byte {place}, line 4, after {ROW_OF[file]} {last_id}"
    assert error.excerpt is not None
    assert ROWS[reason].encode() in error.excerpt


@pytest.mark.parametrize("file", ["Comments.xml", "Votes.xml", "Users.xml"])
def test_strict_ignores_opted_out_rows(file: str, core: str, tmp_path: Path) -> None:
    dropped, stray = '<row Id="9" UserId="9" />', '<row PostId="" VoteTypeId="" />'
    if file == "Users.xml":
        dropped = dropped.replace("UserId", "Reputation")
    elif file == "Votes.xml":
        dropped = '<row Id="9" PostId="9" />'
    folder = write_site(tmp_path, file, f"{dropped}\n{stray}")
    nines = tmp_path / "nines.txt"
    nines.write_text("9\n")
    error = failure(folder, core=core, drop_users=nines, drop_posts=nines)
    place = (folder / file).read_bytes().index(stray.encode())
    assert str(error.location) == f"at byte {place}, line 5, after {ROW_OF[file]} 9"
    assert f"has a stray, {ROW_OF[file]}_" in error.problem


@pytest.mark.parametrize("reason", STRAYS)
def test_the_name_of_a_stray(reason: str, tmp_path: Path) -> None:
    rows, name = STRAYS[reason]
    file = file_of(reason)
    folder = write_site(tmp_path, file, rows)
    error = failure(folder)
    is_found_early = reason == "user_repeated_id"
    problem = f"strays, 1 ({reason} 1); the first is" if is_found_early else "a stray,"
    assert f"has {problem} {reason}: {name}; without errors='strict'" in str(error)
    with pytest.raises(so2docs.StrictError, match=reason):
        list(so2docs.documents(folder, jobs=1, nest="all", errors="strict"))
    assert not (folder / "q.jsonl.gz").exists()


@pytest.mark.parametrize("reason", STRAYS)
def test_strict_checks_the_chunks_of_an_earlier_session(reason: str, tmp_path: Path) -> None:
    rows, _ = STRAYS[reason]
    folder = write_site(tmp_path, file_of(reason), rows)
    leave_spill(folder)
    assert reason in str(failure(folder))


def leave_spill(folder: Path) -> None:
    with stopped_between_passes():
        so2docs.convert(folder, folder / "q.jsonl.gz", jobs=1, nest="all")


def test_a_valid_site_read_by_an_earlier_session(tmp_path: Path) -> None:
    folder = write_site(tmp_path)
    leave_spill(folder)
    again = so2docs.convert(folder, folder / "q.jsonl.gz", jobs=1, nest="all", errors="strict")
    assert again.resumed


@pytest.mark.parametrize("file", SOUND)
def test_invalid_characters_for_an_encoding(file: str, tmp_path: Path) -> None:
    folder = write_site(tmp_path, file, "<!-- ? -->", "utf-16")
    data = (folder / file).read_bytes()
    (folder / file).write_bytes(data.replace("?".encode("utf-16-le"), b"\x00\xd8"))
    error = failure(folder)
    assert error.path == str(folder / file)
    assert "has 1 characters that its encoding does not allow;" in str(error)
    report = so2docs.convert(folder, folder / "lenient.jsonl.gz", jobs=1, nest="all")
    assert report.repaired_characters == 1
