"""`inspect`: the same report from every form of a dump, with remarks on contradictions."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest
from support.command import run
from support.dumps import question, write_dump
from support.packed import BZIP2, seven_zip, zipped
from support.places import SAMPLES

import so2docs
from so2docs.dump import storage

SITE = SAMPLES / "site"
Change = Callable[[str], str]

FILES = {
    "Posts.xml": """<?xml version="1.0" encoding="utf-8"?>
<posts>
  <row Id="1" PostTypeId="1" AcceptedAnswerId="2" CreationDate="2020-01-01T00:00:00.000"
    LastEditDate="2020-02-01T00:00:00.000" ClosedDate="2020-05-01T00:00:00.000" AnswerCount="1"
    CommentCount="1" Tags="&lt;tea&gt;&lt;green-tea&gt;" ContentLicense="CC BY-SA 4.0"
    OwnerUserId="7" Title="Hot" Body="&lt;p&gt;Is &lt;a href='https://tea.example'&gt;tea&lt;/a&gt;
    &lt;em&gt;hot&lt;/em&gt;?&lt;/p&gt;&lt;ol&gt;&lt;li&gt;Yes&lt;/li&gt;&lt;/ol&gt;" />
  <row Id="2" PostTypeId="2" ParentId="1" CreationDate="2020-01-02T00:00:00.000"
    CommentCount="0" ContentLicense="CC BY-SA 4.0"
    Body="&lt;p&gt;See &lt;a href='https://tea.example/q/5'&gt;Why tea&lt;/a&gt; &amp;amp; boil" />
</posts>""",
    "Comments.xml": """<comments>
  <row Id="5" PostId="1" CreationDate="2020-06-01T10:00:00.000" />
</comments>""",
    "Tags.xml": """<tags>
  <row Id="1" TagName="tea" Count="1" />
  <row Id="2" TagName="green-tea" Count="1" />
</tags>""",
    "Badges.xml": """<badges><row Id="1" Date="2020-07-01T10:00:00.000" /></badges>""",
}


def write(folder: Path, file: str = "", change: Change = str) -> Path:
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(change(text) if name == file else text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("dump", [SITE, "own"])
def test_both_cores_find_the_same(
    dump: Path | str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shorten_date(text: str) -> str:
        return text.replace("T10:00:00.000", "T10:00:00.5")

    dump = write(tmp_path / "tea", "Badges.xml", shorten_date) if dump == "own" else dump
    compiled = so2docs.inspect(dump, jobs=1)
    monkeypatch.setenv("SO2DOCS_CORE", "python")
    assert so2docs.inspect(dump, jobs=1) == compiled


def test_a_valid_site_has_no_remarks(tmp_path: Path) -> None:
    inspection = so2docs.inspect(write(tmp_path / "tea"), jobs=1)
    assert inspection.is_sound
    assert not inspection.remarks
    assert (inspection.last_date[:10], inspection.release) == ("2020-07-01", "2020-07")
    posts = inspection.tables["Posts.xml"]
    assert (posts.rows, posts.columns["ContentLicense"], posts.is_ordered) == (2, 2, True)
    assert (posts.first_date[:10], posts.last_date[:10]) == ("2020-01-01", "2020-05-01")


def archive_with(path: Path, method: int = zipfile.ZIP_DEFLATED, **texts: str) -> Path:
    return zipped(path, {name: text.encode() for name, text in (FILES | texts).items()}, method)


LICENSE = {"license.txt": "\ufeffCC BY-SA: *see* <b>there</b>\r\n", "schema.xsd": "<schema/>"}


@pytest.mark.parametrize(
    ("day", "members", "release", "remarks"),
    [
        ("2020-07-01", {}, "2020-07", 0),
        ("2024-02-29", {}, "2024-02", 0),
        ("2024-03-01", {}, "2024-03-31", 0),
        ("2024-02-29", LICENSE, "2024-06-30", 0),
        ("2024-06-30", {}, "2024-06-30", 0),
        ("2026-12-01", LICENSE, "2026-12-31", 0),
        ("2026-12-01", {}, "2026-12-31", 1),
    ],
)
def test_the_release_follows_from_dates_and_members(
    day: str, members: dict[str, str], release: str, remarks: int, tmp_path: Path
) -> None:
    badges = FILES["Badges.xml"].replace("2020-07-01", day)
    path = archive_with(tmp_path / "tea.zip", **{"Badges.xml": badges}, **members)
    inspection = so2docs.inspect(path, jobs=1)
    assert (inspection.release, len(inspection.remarks)) == (release, remarks)
    assert f"probably the release of {release}\n" in str(inspection)
    (file,) = inspection.files
    assert file.license == ("CC BY-SA: *see* <b>there</b>" if members else None)
    assert {*members} <= {*file.members}


@pytest.mark.parametrize(
    "date", ["x", "3", "", "2025-13-01T00:00:00.000", "2025-00-00T00:00:00.000", "2025-02-30",
             "99999-01-01T00:00:00.000", "2025-02-30T00:00:00.000", "\u0663025-01-01T00:00:00.000"]
)  # fmt: skip
def test_values_that_are_no_dates_do_not_count_as_dates(date: str, tmp_path: Path) -> None:
    folder = tmp_path / "2024-07"
    good = question(1, CreationDate="2024-05-01T00:00:00.000")
    write_dump(folder / "Posts.xml", good, question(2, CreationDate=date))
    inspection = so2docs.inspect(folder / "Posts.xml")
    assert inspection.tables["Posts.xml"].first_date == "2024-05-01T00:00:00.000"
    assert (inspection.last_date[:10], inspection.release) == ("2024-05-01", "2024-06-30")
    assert inspection.remarks == ["Posts.xml: 1 value in place of a date"]
    write_dump(folder / "Posts.xml", question(2, CreationDate=date))
    inspection = so2docs.inspect(folder / "Posts.xml")
    assert (inspection.last_date, inspection.release) == ("", "")
    assert "rows until" not in str(inspection)
    written = inspection.as_dict()
    assert (written["last_date"], written["release"]) == (None, None)
    table = written["tables"]["Posts.xml"]
    assert (table["first_date"], table["last_date"]) == (None, None)


def test_no_release_is_of_another_century(tmp_path: Path) -> None:
    write_dump(tmp_path / "Posts.xml", question(1, CreationDate="9999-12-31T00:00:00.000"))
    inspection = so2docs.inspect(tmp_path / "Posts.xml")
    assert (inspection.last_date[:10], inspection.release) == ("9999-12-31", "")


def test_an_unreadable_license_is_a_remark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = write(tmp_path / "tea")
    (site / "license.txt").write_text("CC BY-SA")
    opened = storage.open_file

    def open_file(path: str) -> BinaryIO:
        if path.endswith("license.txt"):
            raise PermissionError(13, "Permission denied", path)
        return opened(path)

    monkeypatch.setattr(storage, "open_file", open_file)
    inspection = so2docs.inspect(site, jobs=1)
    assert inspection.is_sound
    [remark] = {remark for remark in inspection.remarks if "license.txt" in remark}
    assert "cannot be read: Permission denied" in remark


def test_names_empty_columns(tmp_path: Path) -> None:
    inspection = so2docs.inspect(write(tmp_path / "tea"), jobs=1)
    posts, comments = (inspection.tables[name] for name in ("Posts.xml", "Comments.xml"))
    assert {"FavoriteCount", "ViewCount"} <= {*posts.lacks}
    assert not {"Title", "ContentLicense", "AnswerCount"} & {*posts.lacks}
    assert comments.lacks == ["Score", "Text", "UserDisplayName", "UserId", "ContentLicense"]
    assert f"Comments.xml: no row has {', '.join(comments.lacks)}\n" in str(inspection)
    assert inspection.as_dict()["tables"]["Comments.xml"]["lacks"] == comments.lacks


def test_a_damaged_license_is_a_remark(tmp_path: Path) -> None:
    path = tmp_path / "tea.zip"
    archive_with(path, zipfile.ZIP_STORED, **{"license.txt": "attribution"})
    path.write_bytes(path.read_bytes().replace(b"attribution", b"attributioN"))
    inspection = so2docs.inspect(path, jobs=1)
    assert len(inspection.remarks) == 1
    assert "license.txt" in inspection.remarks[0]
    assert inspection.is_sound


def test_the_same_from_an_archive(tmp_path: Path) -> None:
    site = write(tmp_path / "tea")
    folder = so2docs.inspect(site, jobs=1)
    in_folder = {f"tea/{name}": text.encode() for name, text in FILES.items()}
    archives = (
        seven_zip(tmp_path / "tea.7z", sorted(site.iterdir()), BZIP2),
        zipped(tmp_path / "tea.zip", in_folder),
    )
    for path in archives:
        inspection = so2docs.inspect(path, jobs=2)
        assert inspection.tables == folder.tables
        (file,) = inspection.files
        assert set(map(len, file.members)) <= {8, 9, 10, 12, 13, 14, 16}


@pytest.mark.parametrize("name", ["Posts.xml", "beer.xml", "posts.gz", "old.gz"])
def test_finds_the_tables_next_to_a_file(name: str, tmp_path: Path) -> None:
    site = write(tmp_path / "tea")
    expected = so2docs.inspect(site, jobs=1)
    (site / "Posts.xml").rename(site / name)
    if name.endswith(".gz"):
        (site / name).write_bytes(gzip.compress((site / name).read_bytes()))
    inspection = so2docs.inspect(site / name, jobs=1)
    assert {*inspection.tables} == {*FILES}
    assert inspection.tables == expected.tables
    files = {Path(file.path).name for file in inspection.files}
    assert files == {*FILES} - {"Posts.xml"} | {name}
    assert {*so2docs.inspect(site / "Comments.xml", jobs=1).tables} == {"Comments.xml"}


@pytest.mark.parametrize("name", ["beer.stackexchange.com.7z", "beer.xml"])
def test_a_web_page_has_no_tables_next_to_it(name: str, tmp_path: Path) -> None:
    (tmp_path / "Comments.xml").write_text(FILES["Comments.xml"], encoding="utf-8")
    (tmp_path / name).write_text("<html>404</html>", encoding="utf-8")
    inspection = so2docs.inspect(tmp_path / name, jobs=1)
    assert (*inspection.tables, inspection.last_date, inspection.release) == ("Posts.xml", "", "")
    assert "is a web page" in str(inspection.tables["Posts.xml"].problem)


def test_reads_each_table_once_if_all_files_of_a_dump_are_given(tmp_path: Path) -> None:
    for name, content in FILES.items():
        packed = tmp_path / f"tea-{name.removesuffix('.xml')}.7z"
        seven_zip(packed, {name: content.encode()})
    files = sorted(tmp_path.iterdir())
    (result,) = so2docs.for_each_site(so2docs.inspect, files, jobs=1)
    assert {*result.result.tables} == {*FILES}
    others = [path for path in files if "Posts" not in path.name]
    tables = [
        {*result.result.tables} for result in so2docs.for_each_site(so2docs.inspect, others, jobs=1)
    ]
    assert tables == [{f"{path.stem.removeprefix('tea-')}.xml"} for path in others]


def test_remarks_on_contradictions(tmp_path: Path) -> None:
    rows = "".join(
        f'<row Id="{number}" PostTypeId="1" CreationDate="2024-0{month}-01T00:00:00.000" />\n'
        for number, month in ((4, 1), (3, 2), (7, 3), (6, 3), (1_000_000_001, 9))
    )
    text = f'<?xml version="1.0" encoding="utf-16"?><posts>\n{rows}</posts>'
    (tmp_path / "20251231").mkdir()
    path = tmp_path / "20251231" / "Posts.xml"
    path.write_bytes(text.encode("utf-16"))
    inspection = so2docs.inspect(path, jobs=1)
    posts = inspection.tables["Posts.xml"]
    assert (posts.encoding, posts.made_up, posts.last_date[:10]) == ("utf-16", 1, "2024-03-01")
    assert (posts.is_ordered, posts.descents, posts.first_descent) == (False, 2, 3)
    assert [remark[:30] for remark in inspection.remarks] == [
        "the name says 2025-12, but the",
        "1 row made up by the publisher",
        "posts are not in order of id; ",
    ]


def test_a_large_site_in_chunks_is_the_same(large_site: tuple[Path, list[bytes]]) -> None:
    """Several chunks and processes give the same result as one."""
    site, _ = large_site
    one, many = (so2docs.inspect(site, jobs=jobs) for jobs in (1, 2))
    assert one == many
    assert one.tables["Posts.xml"].rows == 2503


def test_the_command(tmp_path: Path) -> None:
    site = write(tmp_path / "tea")
    result = run("inspect", site, SITE, "--json", "--jobs", "1", code=0)
    first, second = json.loads(result.stdout)
    assert first == json.loads(json.dumps(so2docs.inspect(site, jobs=1).as_dict()))
    assert second["tables"]["Votes.xml"]["rows"] > 10
    process = run("inspect", site, "--jobs", "1")
    assert "2020-07-01" in process.stdout


def test_several_dumps(tmp_path: Path) -> None:
    tea, coffee = write(tmp_path / "tea"), write(tmp_path / "coffee", "Tags.xml", lambda t: t[:9])
    results = so2docs.for_each_site(so2docs.inspect, [tea, tmp_path / "gone", coffee, SITE], jobs=1)
    assert [result.state for result in results] == ["inspected", "failed", "damaged", "inspected"]
    assert isinstance(results[1].error, so2docs.DumpError)
    for result in results[::3]:
        assert result.result == so2docs.inspect(result.source, jobs=1)
    process = run("inspect", tea, coffee, tmp_path / "gone", "--jobs", 1, code=3)
    assert process.stdout.count(f"{tea}: tea, rows until 2020-07-01") == 1
    assert "Tags.xml: is truncated" in process.stderr
    assert process.stderr.splitlines()[-1] == "3 sites: 1 inspected, 1 damaged, 1 failed"
    process = run("inspect", tea, SITE, "--jobs", 1, code=0)
    assert process.stderr.splitlines()[-1] == "2 sites: 2 inspected, 0 failed"


def test_an_unreadable_table_is_described_once_and_without_facts(tmp_path: Path) -> None:
    (tmp_path / "Posts.xml").write_bytes((SAMPLES / "posts.xml").read_bytes()[:-2000])
    result = run("inspect", "Posts.xml", cwd=tmp_path, code=1)
    assert result.stderr.count("is truncated") == 1
    assert "is truncated" not in result.stdout
    assert result.stdout.splitlines()[-1].split("  ")[1:3] == ["Posts.xml", "cannot be read"]
    printed = run("inspect", "Posts.xml", "--json", cwd=tmp_path, code=1).stdout
    assert printed.count("is truncated") == 1
    table = json.loads(printed)[0]["tables"]["Posts.xml"]
    facts = {name: table[name] for name in ("rows", "made_up", "columns", "is_ordered", "lacks")}
    assert set(facts.values()) == {None}
    assert table["bytes"] == (tmp_path / "Posts.xml").stat().st_size


@pytest.mark.long
def test_published_dumps(dumps: Path) -> None:
    for path in sorted([*(dumps / "archives").glob("*.7z"), *dumps.glob("*-20*")]):
        inspection = so2docs.inspect(path, jobs=2)
        assert inspection.is_sound
        assert len(inspection.tables) == sum(len(file.members) or 1 for file in inspection.files)
        assert "2013" <= inspection.release < "2025"
