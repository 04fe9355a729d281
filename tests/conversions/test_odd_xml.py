"""XML that never occurs in published dumps: each `<row` is a row, a counted stray, or an error."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.dumps import END, START, dump_of, question, row, write_dump
from support.judge import check

import so2docs

# After a namespace error, libxml2 ignores everything after the root.
WARTS = {
    "prefix": b'  <row Id="1" PostTypeId="1" a:x="" />\r\n',
    "empty-namespace": b'  <row Id="1" PostTypeId="1" xmlns:a="" />\r\n',
    "wrong-namespace": b'  <row Id="1" PostTypeId="1" xmlns="http://www.w3.org/2000/xmlns/" />\r\n',
    "two-prefixes": b'  <row Id="1" PostTypeId="1" xmlns:a="u" xmlns:b="u" a:x="" b:x="" />\r\n',
    "name-of-a-colon": b'  <row Id="1" PostTypeId="1" :="" />\r\n',
    "instruction": question(1) + b"<?a:b c?>",
}
SECTIONS = {
    "comment": (b"<!-- ", b" -->"),
    "cdata": (b"<![CDATA[", b"]]>"),
    "instruction": (b"<?x ", b"?>"),
}


def refused(dump: Path, **options: Any) -> so2docs.MalformedDumpError:
    output = dump.with_name("q.jsonl")
    with pytest.raises(so2docs.MalformedDumpError) as caught:
        so2docs.convert(dump, output, jobs=1, restart=True, **options)
    assert not output.exists()
    return caught.value


def documents(dump: Path, **options: Any) -> tuple[list[dict[str, Any]], so2docs.Report]:
    output = dump.with_name("q.jsonl")
    report = so2docs.convert(dump, output, jobs=1, force=True, **options)
    return list(so2docs.read(output)), report


@pytest.mark.parametrize("wart", WARTS)
def test_nothing_after_an_error_of_namespaces_is_lost(core: str, wart: str, tmp_path: Path) -> None:
    between = END + b"\r\n" + START
    more = [question(number) for number in range(2, 30)]
    dump = write_dump(tmp_path / "Posts.xml", WARTS[wart], between, *more)
    for options in ({}, {"errors": "strict"}):
        assert "content after" in refused(dump, core=core, **options).problem
    questions, report = documents(dump, core=core, errors="skip")
    assert (report.rows, report.strays) == (29, {"malformed_row": 1})
    assert [document["Id"] for document in questions] == list(range(2, 30))


@pytest.mark.parametrize("table", ["Comments", "PostLinks", "Votes", "Users"])
def test_nothing_of_a_table_is_lost(core: str, table: str, tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "Posts.xml", question(1))
    bad = b'<row Id="1" PostId="1" VoteTypeId="2" a:x="" />'
    more = [row(Id=number, PostId=1, VoteTypeId=2) for number in range(2, 30)]
    root = table.lower().encode()
    write_dump(tmp_path / f"{table}.xml", bad, b"</%b><%b>" % (root, root), *more)
    nest = {"PostLinks": "links"}.get(table, table.lower())
    error = refused(dump, core=core, nest=nest)
    assert error.path.endswith(f"{table}.xml")
    assert "content after" in error.problem
    _, report = documents(dump, core=core, nest=nest, errors="skip")
    name = {"PostLinks": "link"}.get(table, table.lower().removesuffix("s"))
    assert report.tables[nest].strays == {f"malformed_{name}": 1}
    assert report.tables[nest].rows == 29


def test_attributes_have_the_names_of_the_dump(core: str, tmp_path: Path) -> None:
    """A prefix is part of the name, declared or not, and `xmlns` is an ordinary name."""
    dump = tmp_path / "Posts.xml"
    names = 'a:Id="9" xml:space="preserve" xmlns="u" xmlns:b="v" b:Title="x" Title="t" c:Title="y"'
    dump.write_bytes(dump_of(question(2), f'<row Id="1" PostTypeId="1" {names} />'.encode()))
    write_dump(
        tmp_path / "Comments.xml",
        b'<row Id="3" PostId="1" a:PostId="2" Text="t" xml:lang="en" b:Text="x" xmlns:b="v" />',
    )
    questions, report = documents(dump, core=core, nest="comments")
    assert report.strays == {}
    comment = (
        '{"Id": 3, "PostId": 1, "a:PostId": "2", "Text": "t", "xml:lang": "en", "b:Text": "x",'
        ' "xmlns:b": "v"}'
    )
    assert json.dumps(questions[0]) == (
        '{"Id": 1, "PostTypeId": 1, "a:Id": "9", "xml:space": "preserve", "xmlns": "u",'
        ' "xmlns:b": "v", "b:Title": "x", "Title": "t", "c:Title": "y",'
        f' "Comments": [{comment}], "Answers": []}}'
    )


def test_attributes_of_the_root_are_ignored(core: str, tmp_path: Path) -> None:
    """The root may declare namespaces, and use entities from the prolog."""
    dump = tmp_path / "Posts.xml"
    root = b'<posts xmlns="u" xmlns:a="v" a:b="&e;" c="&e;">'
    prolog = b'<!DOCTYPE posts [<!ENTITY e "x">]>'
    dump.write_bytes(prolog + root + b'<row Id="1" PostTypeId="1" a:x="y" />' + END)
    questions, _ = documents(dump, core=core)
    assert questions == [{"Id": 1, "PostTypeId": 1, "a:x": "y", "Answers": []}]


@pytest.mark.parametrize(("chunk_bytes", "errors"), [(None, "repair"), (40, "skip")])
@pytest.mark.parametrize("inside", [question(5) * 9, b"<row "])
@pytest.mark.parametrize("kind", SECTIONS)
def test_a_section_with_a_row_is_refused(
    kind: str, inside: bytes, errors: str, chunk_bytes: int | None, tmp_path: Path
) -> None:
    """Rows inside a section are not rows, wherever the dump is cut, even with `errors="skip"`."""
    opening, closing = SECTIONS[kind]
    bad = b"  <row Id=3/>\r\n" if errors == "skip" else b""
    before, after = START + question(1) + bad + question(2), question(3)
    dump = tmp_path / "Posts.xml"
    dump.write_bytes(before + opening + inside + closing + after + END)
    error = refused(dump, errors=errors, chunk_bytes=chunk_bytes)
    what = {"cdata": "a CDATA section", "instruction": "a processing instruction"}
    assert error.problem == f"has {what.get(kind, 'a comment')} that contains <row or has no end"
    assert error.location == so2docs.Location(len(before), before.count(b"\n") + 1, 2)
    assert error.advice == "remove it from the dump"
    assert "skip" not in str(error)
    assert error.excerpt_path is not None
    excerpt = Path(error.excerpt_path).rename(tmp_path / "excerpt.xml")
    assert refused(excerpt).problem == error.problem


@pytest.mark.parametrize("chunk_bytes", [None, 40])
def test_other_comments_and_instructions_are_ignored(
    chunk_bytes: int | None, tmp_path: Path
) -> None:
    dump = write_dump(
        tmp_path / "Posts.xml",
        b"<!-- \" <rows> ' -->",
        question(1),
        b"<!-- <b --><?a:b <row?><?x?>",
        question(2),
        b"<!---->",
    )
    questions, report = documents(dump, chunk_bytes=chunk_bytes)
    assert ([document["Id"] for document in questions], report.rows) == ([1, 2], 2)


def test_skips_a_broken_row_with_the_start_of_a_comment(tmp_path: Path) -> None:
    bad = b'  <row Id="3" PostTypeId="1" Body="<p>a <!-- b</p> <?php " />\r\n'
    dump = write_dump(tmp_path / "Posts.xml", question(1), bad, question(2))
    questions, report = documents(dump, errors="skip")
    assert ([document["Id"] for document in questions], report.strays) == (
        [1, 2],
        {"malformed_row": 1},
    )


ODD = [
    *WARTS.values(),
    *(part for section in SECTIONS.values() for part in section),
    question(1),
    question(2, Title="x"),
    question(3)[:-6],
    b'<a:row Id="4" PostTypeId="1" />',
    b'<row Id="5" PostTypeId="1" xmlns="u" xml:space="x" />',
    b'<row Id="6" PostTypeId="1" Id="6" />',
    b'<row Id="7" PostTypeId="1" Title="&#0;\x00&lol;" />',
    b"<row Id='8' PostTypeId='1' Title='&#0;&#x1;\"' />",
    b'<row Id="9" PostTypeId="2" ParentId="1" Body=">" ></row>',
    END,
    b"<posts>",
    b"<root>",
    b"</root>",
    b"<!-- x -->",
    b"<?x?>",
    b"&#0;",
    b"\x00",
    b"\xff",
    b"text",
    b"<!ENTITY a 'b'>",
    b"]>",
]


@pytest.mark.long
@given(st.lists(st.sampled_from(ODD), max_size=7))
@example([WARTS["prefix"], b"</posts>", b"<posts>", question(2)])
@example([WARTS["prefix"], b"\x00", question(2)])
@example([question(1), b"<!-- ", question(2), b" -->", question(2)])
@example([question(1), b"<!-- &#0; -->", b"\x00", question(2)])
def test_odd_xml_is_read_as_by_another_parser_or_refused(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]
) -> None:
    """Documents, strays and numbers of rows are the same, wherever the dump is cut."""
    check(dump_of(*parts), tmp_path_factory.mktemp("odd"))
