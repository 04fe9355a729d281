"""Comments, links, votes and users inside posts: a sample, published dumps, and errors."""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.command import run
from support.dumps import row, strays_of, unpacked, write_dump
from support.golden import compare
from support.messages import heard
from support.oracle_tables import FILES, nest
from support.table_sites import SITE, converted

import so2docs

WAYS = [(1, None), (1, 700), (2, 700)]
SETS = [("links",), ("comments", "users"), tuple(FILES)]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A copy of the sample, for changes."""
    return Path(shutil.copytree(SITE, tmp_path / "site"))


def test_expected_files_equal_the_oracle() -> None:
    oracle = nest(SITE, FILES)
    for name, lines in zip(["", ".strays"], oracle.contents, strict=True):
        compare(lines.decode(), SITE / f"questions{name}.jsonl")


@pytest.mark.usefixtures("core")
@pytest.mark.parametrize("names", SETS, ids="+".join)
def test_sample_whichever_way(names: tuple[str, ...], tmp_path: Path) -> None:
    oracle, output, files = nest(SITE, names), tmp_path / "questions.jsonl.gz", set()
    for jobs, chunk_bytes in WAYS if len(names) == len(FILES) else WAYS[:2]:
        options: dict[str, Any] = {"jobs": jobs, "chunk_bytes": chunk_bytes, "force": True}
        report = so2docs.convert(SITE, output, nest=names, **options)
        for path, lines in zip((output, strays_of(output)), oracle.contents, strict=True):
            assert unpacked(path).splitlines() == lines.splitlines()
        assert tuple(report.tables) == names
        for name, counts in report.tables.items():
            assert (counts.rows, counts.nested) == (oracle.rows[name], oracle.nested[name])
            assert counts.strays == oracle.reasons[name]
        files.add((output.read_bytes(), strays_of(output).read_bytes()))
    assert len(files) == 1
    if names == tuple(FILES):
        nested = "comments nested      7 of 14, 3 of 14 rows have no post, strays 4 (comment_inval"
        assert nested in str(report)
        assert "users read           8, strays 2 (user_missing_id 1" in str(report)


@pytest.mark.usefixtures("core")
def test_answers_by_votes(tmp_path: Path) -> None:
    actual = converted(SITE, tmp_path / "questions.jsonl.gz", ["all"], jobs=1, answers_by="votes")
    assert actual == nest(SITE, FILES, "votes").contents
    assert actual != nest(SITE, FILES).contents


def test_a_table_of_another_site(site: Path, tmp_path: Path) -> None:
    """Its rows are nested where ids coincide; in no real dump, a third of the rows lack a post."""
    rows = [row(Id=n, PostId=n + 1, Text="x") for n in range(1, 40)]
    write_dump(site / "Comments.xml", *rows)
    with heard() as messages:
        so2docs.convert(site, tmp_path / "q.jsonl.gz", jobs=1, nest="all")
    (warning,) = (text for text in messages if "have no post" in text)
    assert warning.startswith(
        "comments: 36 of 39 rows have no post; is the table from the same site"
    )
    messages.clear()
    write_dump(site / "Comments.xml", *rows[:3], rows[-1])
    with heard() as messages:
        so2docs.convert(site, tmp_path / "q.jsonl.gz", jobs=1, nest="all", force=True)
    assert messages == []


def test_without_tables_nothing_changes(tmp_path: Path) -> None:
    outputs = [tmp_path / "plain.jsonl.gz", tmp_path / "folder.jsonl.gz"]
    so2docs.convert(SITE / "Posts.xml", outputs[0], jobs=1)
    so2docs.convert(SITE, outputs[1], jobs=1)
    assert outputs[0].read_bytes() == outputs[1].read_bytes()
    oracle = nest(SITE, [])
    assert unpacked(outputs[0]) == oracle.contents[0]
    assert b'"Comments"' not in unpacked(outputs[0])


def test_tables_under_other_names(site: Path, tmp_path: Path) -> None:
    (site / "Comments.xml").rename(site / "cOMMENTS.XML")
    (site / "Votes.xml").rename(tmp_path / "elsewhere.xml")
    (site / "Posts.xml").rename(site / "posts.xml")
    output = tmp_path / "questions.jsonl"
    files = [f"--table=votes={tmp_path / 'elsewhere.xml'}", f"--table=users={SITE / 'Users.xml'}"]
    run("convert", site, output, "--nest", "comments", "--nest", "links", *files, code=0)
    assert output.read_bytes() == (SITE / output.name).read_bytes()


@pytest.mark.parametrize(("name", "file"), FILES.items())
def test_missing_table(name: str, file: str, site: Path, tmp_path: Path) -> None:
    (site / file).unlink()
    for source in (site, site / "Posts.xml"):
        with pytest.raises(so2docs.DumpError, match=f"has no {file}.*'{name}': FILE.*if_present"):
            so2docs.convert(source, tmp_path / "questions.jsonl.gz", nest=[name])
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


@pytest.mark.parametrize(
    ("table", "arguments"),
    [
        ("Tags", ["sqlite"]),
        ("Votes", ["convert", "--nest", "all", "--if-present"]),
        ("Comments", ["convert", "--as-of", "2020-01-01"]),
        ("Votes", ["convert", "--as-of", "2020-01-01"]),
        ("PostHistory", ["convert", "--as-of", "2020-01-01", "--if-present"]),
    ],
)
@pytest.mark.parametrize("damage", ["cut", "another root", "not XML", "empty"])
def test_a_table_that_cannot_be_read_is_not_missing(
    damage: str, table: str, arguments: list[str], site: Path, tmp_path: Path
) -> None:
    """Only a table without a file is missing; `--if-present` leaves out no other."""
    for name in ("Tags", "PostHistory"):
        root = name.lower()
        (site / f"{name}.xml").write_text(f"<{root}>\n</{root}>\n", encoding="utf-8")
    file = site / f"{table}.xml"
    whole = file.read_bytes()
    others = {"another root": b"<users>\n</users>\n", "not XML": b"no table", "empty": b""}
    file.write_bytes(others.get(damage, whole[:-9]))
    command, *options = arguments
    output = tmp_path / ("o.db" if command == "sqlite" else "o.jsonl")
    result = run(command, site / "Posts.xml", output, *options, "-q", code=1)
    assert f"{table}.xml: " in result.stderr
    assert "neither in the dump" not in result.stderr
    assert not output.exists()


def test_output_is_not_a_table(site: Path) -> None:
    before = (site / "Users.xml").read_bytes()
    with pytest.raises(so2docs.OptionError, match=r"the extension \.xml"):
        so2docs.convert(site, site / "Users.xml", nest=["users"], force=True)
    (site / "Users.jsonl").symlink_to(site / "Users.xml")
    with pytest.raises(so2docs.OutputError, match=r"Users\.jsonl: is also an input"):
        so2docs.convert(site, site / "Users.jsonl", nest=["users"], force=True)
    assert (site / "Users.xml").read_bytes() == before


@pytest.mark.parametrize("chunk_bytes", [None, 600])
def test_malformed_row_of_a_table(chunk_bytes: int | None, site: Path, tmp_path: Path) -> None:
    comments = site / "Comments.xml"
    text = comments.read_text(encoding="utf-8")
    comments.write_text(text.replace('<row Id="14" PostId', '<row Id="14" PostId PostId'), "utf-8")
    output = tmp_path / "questions.jsonl.gz"
    place = r"Comments\.xml: is not well-formed XML .*, line 8, after comment 13;"
    with pytest.raises(so2docs.MalformedDumpError, match=place):
        so2docs.convert(site, output, jobs=1, nest="all", chunk_bytes=chunk_bytes)
    report = so2docs.convert(
        site, output, jobs=1, nest="all", chunk_bytes=chunk_bytes, errors="skip"
    )
    assert report.resumed
    assert report.tables["comments"].strays["malformed_comment"] == 1
    assert b'{"reason":"malformed_comment","offset":' in unpacked(strays_of(output))


def test_another_table_is_refused(site: Path, tmp_path: Path) -> None:
    output = tmp_path / "questions.jsonl.gz"
    with pytest.raises(so2docs.DumpError, match=r"holds <votes>, expected <comments>; give the C"):
        so2docs.convert(site, output, tables={"comments": site / "Votes.xml"})
    packed = tmp_path / "Comments.xml.gz"
    packed.write_bytes(gzip.compress((site / "Votes.xml").read_bytes()))
    with pytest.raises(so2docs.DumpError, match=r"holds <votes>, expected <comments>; give the C"):
        so2docs.convert(site, output, tables={"comments": packed})
    for users in (site / "Users.xml", tmp_path / "Users.xml.gz"):
        if not users.exists():
            users.write_bytes(gzip.compress((site / "Users.xml").read_bytes()))
        with pytest.raises(so2docs.DumpError, match="holds <users>, expected <posts>; give the P"):
            so2docs.convert(users, output, restart=True)
    assert not output.exists()


def test_errors_in_a_table_name_its_last_row(site: Path, tmp_path: Path) -> None:
    data = (site / "Comments.xml").read_bytes()
    cut = data[: data.rindex(b"<row")]
    for path, content in (("C.xml", cut), ("C.xml.gz", gzip.compress(cut))):
        (tmp_path / path).write_bytes(content)
        with pytest.raises(so2docs.TruncatedDumpError, match=r"after comment \d+"):
            so2docs.convert(
                site,
                tmp_path / "questions.jsonl.gz",
                tables={"comments": tmp_path / path},
                restart=True,
            )


@pytest.mark.parametrize("name", FILES)
def test_rows_without_attributes(name: str, site: Path, tmp_path: Path) -> None:
    """The slice can be parsed by lxml unchanged, unlike the first slice of a published table."""
    file = site / FILES[name]
    root = FILES[name].removesuffix(".xml").lower()
    file.write_text(f"<{root}><row /><row /></{root}>", encoding="utf-8")
    actual = converted(site, tmp_path / "questions.jsonl.gz", [name], jobs=1)
    assert actual == nest(site, [name]).contents
    assert actual[1].count(b'"row":{}}') == 2


RESERVED: list[tuple[str, str, dict[str, Any]]] = [
    *(
        ("posts", key, {"nest": nest})
        for key in ("Owner", "Votes", "Answers")
        for nest in ((), "all")
    ),
    ("posts", "Site", {"site_field": "Site", "site": "x"}),
    ("comments", "User", {"nest": "all"}),
    ("links", "LinkType", {"nest": "all"}),
]


@pytest.mark.parametrize(("name", "attribute", "options"), RESERVED)
def test_no_attribute_has_the_name_of_another_member(
    name: str, attribute: str, options: dict[str, Any], core: Any, site: Path, tmp_path: Path
) -> None:
    output, file = tmp_path / "questions.jsonl.gz", site / FILES.get(name, "Posts.xml")
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("<row ", f'<row {attribute}="z" ', 1), encoding="utf-8")
    if attribute == "Site":
        assert "reserved_attribute" not in so2docs.convert(site, output, core=core).strays
    report = so2docs.convert(site, output, core=core, force=True, **options)
    kind = "" if name == "posts" else f"{name.removesuffix('s')}_"
    counts = report.strays if name == "posts" else report.tables[name].strays
    assert counts[f"{kind}reserved_attribute"] == 1
    actual = [unpacked(output), unpacked(strays_of(output))]
    assert [f'"{attribute}":"z"'.encode() in lines for lines in actual] == [False, True]
    if attribute == "Site":
        assert all(line.count(b'"Site":') == 1 for line in actual[0].splitlines())
    elif name == "posts":
        assert actual == nest(site, FILES if options["nest"] else []).contents


def test_a_link_without_a_post_has_its_own_attributes_alone(tmp_path: Path) -> None:
    """This includes attributes with the values that a nested link gets."""
    attributes = 'Id="3" PostId="999" LinkTypeId="3" Note="x,&quot;LinkType&quot;:&quot;y"'
    for name in ("Posts", "PostLinks"):
        shutil.copy(SITE / f"{name}.xml", tmp_path)
    (tmp_path / "PostLinks.xml").write_text(f"<postlinks>\n  <row {attributes} />\n</postlinks>")
    expected = {"Id": 3, "PostId": 999, "LinkTypeId": 3, "Note": 'x,"LinkType":"y'}
    for core in ("python", "auto"):
        output = tmp_path / f"{core}.jsonl"
        report = so2docs.convert(tmp_path, output, nest="links", jobs=1, core=core)
        assert report.strays_path is not None
        lines = [json.loads(line) for line in Path(report.strays_path).read_text().splitlines()]
        assert [line["row"] for line in lines if line["reason"] == "link_without_post"] == [
            expected
        ]


def test_beyond_a_limit_rows_without_a_post_are_filtered(tmp_path: Path) -> None:
    text = '<comments>\n  <row Id="3" PostId="999999" Text="x" />\n</comments>'
    shutil.copy(SITE / "Posts.xml", tmp_path)
    (tmp_path / "Comments.xml").write_text(text)
    for limit, filtered in ((None, 0), (1, 1)):
        output = tmp_path / f"{limit}.jsonl"
        report = so2docs.convert(tmp_path, output, nest="comments", jobs=1, limit=limit)
        table = report.tables["comments"]
        assert (table.filtered, sum(table.strays.values())) == (filtered, 1 - filtered)
