"""`tables`: typed files in every format have every row and value of a dump."""

import gzip
import hashlib
import os
import pickle
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any, get_args

import orjson
import pyarrow.parquet as pq
import pytest
from isal import isal_zlib
from make_dump import make_dump
from support.command import run_python
from support.dumps import question, row, some_rows, write_dump
from support.flat_oracle import Site, as_stored, read_back, rows_of, tables_in
from support.packed import BZIP2, Counting, seven_zip, with_noise
from support.places import CHECKOUT, LONG, published
from support.table_sites import SITE

import so2docs
from so2docs.dump import storage
from so2docs.dump.dump import Dump
from so2docs.extensions.tables import tables as flat_tables
from so2docs.extensions.tables.options import TableFormat
from so2docs.options.choices import BodyAs, Core
from so2docs.output.product import ExistingOutputError
from so2docs.scan import table as scan_table
from so2docs.scan.chunk import ChunkResult, ChunkTask, read_chunk
from so2docs.schema import DUMP

FORMATS = [form for form in get_args(TableFormat) if form != "arrow"]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """All eight tables, with values that are hard for some formats."""
    folder = tmp_path / "tea.stackexchange.com"
    shutil.copytree(SITE, folder, ignore=shutil.ignore_patterns("questions*"))
    event = {"PostHistoryTypeId": 2, "PostId": 1}
    texts = {"Comment": "", "Text": 'a,"b"\n\rc \\ \''}
    by = {"RevisionGUID": "a-b", "UserId": -1, "CreationDate": "2019-02-28T23:59:59.9"}
    other = row(Id=2, **event, CreationDate="2020-02-29T00:00:00", New="<é")
    write_dump(folder / "PostHistory.xml", row(Id=1, **event, **by, **texts), other)
    write_dump(
        folder / "Tags.xml",
        row(Id=1, TagName="tea", Count=3_000_000_000, IsRequired=True, IsModeratorOnly=False),
        row(Id=2, TagName="", Count="many", IsRequired="yes"),
    )
    write_dump(folder / "Badges.xml")
    return folder


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(".record")
    }


@pytest.mark.parametrize(
    ("form", "core"), [*((form, "auto") for form in FORMATS), ("parquet", "python")]
)
def test_every_value_in_every_format(
    form: TableFormat, core: Core, site: Path, tmp_path: Path
) -> None:
    report = so2docs.tables(site, tmp_path / "out", format=form, core=core)
    assert set(report) == set(DUMP)
    for table in DUMP.values():
        expected = rows_of(site / table.file, table)
        assert read_back(tmp_path / "out", table, form) == as_stored(expected, form)
        counts = report[table.name]
        assert counts.written + counts.repeated == len(expected)
        assert report[table.name].unaccounted == 0
    assert report["tags"].misfits == 1


def test_columns_missing_from_all_rows(site: Path, tmp_path: Path) -> None:
    so2docs.tables(site, tmp_path / "out", only="badges")
    table = pq.read_table(tmp_path / "out" / "Badges.parquet")
    assert table.num_rows == 0
    assert table.column_names == [*DUMP["badges"].attributes, "Other"]
    assert str(table.schema.field("Date").type) == "timestamp[ms, tz=UTC]"
    assert str(table.schema.field("TagBased").type) == "bool"


@pytest.mark.parametrize(
    ("form", "most_jobs"),
    [
        ("parquet", 1),  # Workers are slow to start.
        *(pytest.param(form, 2, marks=pytest.mark.long) for form in ("parquet", "csv", "sqlite")),
    ],
)
def test_same_bytes_for_any_jobs_core_and_source(
    form: TableFormat,
    most_jobs: int,
    site: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(flat_tables, "LARGE_CHUNK_BYTES", 4096)
    write_dump(site / "Posts.xml", *some_rows(100, body_bytes=300))
    tables = [site / table.file for table in DUMP.values()]
    archive = seven_zip(tmp_path / "tea.stackexchange.com.7z", tables)
    outputs = []
    ways: list[tuple[Path, int, Core]] = [
        (site, 1, "auto"),
        (site, 1, "python"),
        (archive, most_jobs, "auto"),
    ]
    for number, (source, jobs, core) in enumerate(ways):
        folder = tmp_path / str(number)
        so2docs.tables(source, folder, format=form, jobs=jobs, core=core)
        outputs.append(contents(folder))
    # A database has its tables in reading order, which depends on the archive.
    comparable = outputs[:-1] if form == "sqlite" else outputs
    assert all(one == outputs[0] for one in comparable)
    if form == "parquet":
        assert pq.ParquetFile(tmp_path / "0" / "Posts.parquet").metadata.num_row_groups > 3


def test_strays_and_filters_are_counted(tmp_path: Path) -> None:
    dump = write_dump(
        tmp_path / "Posts.xml",
        question(1, CreationDate="2019-01-01T00:00:00.000", Tags="|tea|milk|"),
        question(2, CreationDate="2020-01-01T00:00:00.000", Tags="|tea|"),
        question(3, Tags="|tea|"),
        row(PostTypeId=1),
        row(Id="x"),
        b'  <row Id="5" PostTypeId="1" Body="a < b" />\n',
    )
    report = so2docs.tables(dump, tmp_path / "out", until="2020", tags="milk,coffee", errors="skip")
    posts = report["posts"]
    assert (posts.rows, posts.written, posts.filtered) == (6, 1, 2)
    assert posts.strays == {"post_missing_id": 1, "post_invalid_id": 1, "malformed_post": 1}
    assert posts.unaccounted == 0
    assert not any((tmp_path / "out").glob("ids*"))
    lines = gzip.decompress((tmp_path / "out" / ".Posts.parquet.strays.gz").read_bytes())
    assert lines.count(b"\n") == 3
    assert [r["Id"] for r in read_back(tmp_path / "out", DUMP["posts"], "parquet")] == [1]
    both = so2docs.tables(dump, tmp_path / "b", tags="tea,milk", all_tags=True, errors="skip")
    assert (both["posts"].written, both["posts"].filtered) == (1, 2)


def test_strays_of_a_chunk_are_in_a_file(
    tmp_path: Path, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Strays are neither sent between processes nor collected in memory."""
    sizes = []

    def read_and_measure(task: ChunkTask) -> ChunkResult:
        result = read_chunk(task)
        sizes.append(len(pickle.dumps(result)))
        return result

    monkeypatch.setattr(scan_table, "read_chunk", read_and_measure)
    texts = [f"{n} {'tea ' * 300}" for n in range(2500)]
    write_dump(tmp_path / "Comments.xml", *(row(PostId=1, Text=text) for text in texts))
    report = so2docs.tables(tmp_path, tmp_path / "out", core=core, jobs=1)
    assert report["comments"].strays == {"comment_missing_id": len(texts)}
    with gzip.open(tmp_path / "out" / ".Comments.parquet.strays.gz") as lines:
        assert [orjson.loads(line)["row"]["Text"] for line in lines] == texts
    assert max(sizes) < 50_000


def test_duckdb_splits_a_table_as_in_the_docs(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    duckdb = pytest.importorskip("duckdb")
    page = (CHECKOUT / "docs" / "flat-tables.md").read_text("utf-8")
    [sql] = re.findall(r"`(COPY .*PARTITION_BY.*)`", page)
    so2docs.tables(site, tmp_path, only="posts")
    monkeypatch.chdir(tmp_path)
    duckdb.sql(sql)
    assert list(Path("posts").glob("year=*/*.parquet"))
    [(rows,)] = duckdb.sql("SELECT count(*) FROM 'posts/*/*.parquet'").fetchall()
    assert rows == pq.read_metadata("Posts.parquet").num_rows


def test_keeps_current_tables(site: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    so2docs.tables(site, out, only="Posts,votes")
    before = {path: path.stat().st_mtime_ns for path in out.iterdir()}
    report = so2docs.tables(site, out, only="posts,votes,tags")
    assert {name for name, table in report.items() if table.is_new} == {"tags"}
    assert report["posts"].rows == len(rows_of(site / "Posts.xml", DUMP["posts"]))
    assert {path: path.stat().st_mtime_ns for path in before} == before


def _seal(record: Path, values: object) -> None:
    data = orjson.dumps(values, option=orjson.OPT_SORT_KEYS)
    sealed = {"record": orjson.Fragment(data), "crc": isal_zlib.crc32(data)}
    record.write_bytes(orjson.dumps(sealed))


def _forged(values: Any) -> Iterator[Any]:
    """Yield copies of a value, each with one part missing or of another type."""
    yield from (None, [1], "text", {"key": []})
    for key, part in values.items() if isinstance(values, dict) else enumerate(values):
        for forged in _forged(part) if isinstance(part, dict | list) else (None, [1], "x", 5):
            copy = deepcopy(values)
            copy[key] = forged
            yield copy
        copy = deepcopy(values)
        del copy[key]
        yield copy


def test_a_forged_record_is_never_accepted(site: Path, tmp_path: Path) -> None:
    """A record with a correct checksum may still have other types than so2docs writes."""
    out = tmp_path / "out"
    write_dump(site / "Comments.xml", row(Id=1, PostId=1, Text="a"), row(Id="x", PostId=1))
    so2docs.tables(site, out, only="comments")
    record = out / ".Comments.parquet.record"
    for forged in _forged(orjson.loads(record.read_bytes())["record"]):
        _seal(record, forged)
        with suppress(ExistingOutputError):
            str(so2docs.tables(site, out, only="comments"))


def test_the_record_does_not_depend_on_the_folder(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("a", str(tmp_path / "b")):
        so2docs.tables(site, folder)
    a, b = ({p.name: p.read_bytes() for p in (tmp_path / n).glob(".*.record")} for n in "ab")
    assert a == b != {}
    assert so2docs.tables(site, "a")["tags"].path == os.path.join("a", "Tags.parquet")


def test_a_dump_changed_during_the_run(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The advice must not name an option of conversions."""

    def change(dump: Dump, *_: object) -> None:
        os.utime(dump.file, (1, 1))
        check(dump)

    check = Dump.check_unchanged
    monkeypatch.setattr(Dump, "check_unchanged", change)
    with pytest.raises(so2docs.ChangedDumpError) as caught:
        so2docs.tables(site, tmp_path / "out", jobs=1)
    assert "restart" not in str(caught.value)


def test_one_table_file_brings_those_next_to_it(site: Path, tmp_path: Path) -> None:
    for table in tables_in(site):
        packed = tmp_path / f"tea.stackexchange.com-{table.stem}.xml.gz"
        packed.write_bytes(gzip.compress((site / table.file).read_bytes()))
    votes = tmp_path / "tea.stackexchange.com-Votes.xml.gz"
    assert set(so2docs.tables(votes, tmp_path / "all")) == set(DUMP)
    assert set(so2docs.tables(votes, tmp_path / "one", only="votes")) == {"votes"}


def test_a_file_of_any_name(site: Path, tmp_path: Path) -> None:
    """The root element determines the table of a plain file."""
    other = tmp_path / "some.xml"
    shutil.copy(site / "Votes.xml", other)
    assert set(so2docs.tables(other, tmp_path / "out")) == {"votes"}


def test_finds_the_same_tables_as_a_conversion(site: Path, tmp_path: Path) -> None:
    """Next to a plain file of any name, tables are found under their usual names."""
    (site / "Posts.xml").rename(site / "beer.xml")
    nested = so2docs.convert(site / "beer.xml", tmp_path / "q.jsonl", nest="comments")
    flat = so2docs.tables(site / "beer.xml", tmp_path / "out", only="posts,comments")
    assert flat["comments"].rows == nested.tables["comments"].rows
    assert flat["posts"].rows == nested.rows


@pytest.fixture(scope="module", params=published())
def whole_dump(request: pytest.FixtureRequest, unpack: Callable[[Path], Path]) -> Path:
    """All tables of a published dump, unpacked."""
    return unpack(request.param)


@pytest.fixture(scope="module")
def whole(whole_dump: Path) -> Site:
    return {one.stem: rows_of(whole_dump / one.file, one) for one in tables_in(whole_dump)}


@pytest.mark.long
@pytest.mark.parametrize("form", FORMATS)
def test_published_dumps(
    form: TableFormat, whole_dump: Path, whole: Site, core: Core, tmp_path: Path
) -> None:
    """Compare every value of every table."""
    is_whole_site = (whole_dump / "Votes.xml").exists()
    is_large = (whole_dump / "Posts.xml").stat().st_size > 2_000_000
    is_usual = form == "parquet" or (core != "python" and is_whole_site)
    if not LONG and (not is_usual or (core == "python" and is_large)):
        pytest.skip("with SO2DOCS_LONG=1")
    report = so2docs.tables(whole_dump, tmp_path / "out", format=form)
    actual = tables_in(whole_dump)
    assert set(report) == {table.name for table in actual}
    for table in actual:
        expected = whole[table.stem]
        rows = read_back(tmp_path / "out", table, form)
        assert report[table.name].written == report[table.name].rows == len(expected)
        assert rows == as_stored(expected, form)


def test_an_archive_is_decompressed_once(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = sorted(site.glob("*.xml"))
    archive = seven_zip(tmp_path / "tea.7z", with_noise(tables), BZIP2)
    monkeypatch.setattr(storage, "open_file", Counting)
    report = so2docs.tables(archive, tmp_path / "out", jobs=1)
    assert len(report) == len(DUMP)
    Counting.assert_read_once(archive)


@pytest.mark.long
@pytest.mark.parametrize(
    ("form", "body"), [("parquet", "html"), ("csv", "html"), ("parquet", "markdown")]
)
def test_memory_of_a_long_table(form: TableFormat, body: BodyAs, tmp_path: Path) -> None:
    """Measure the memory of all processes with two jobs and chunks of a fixed size."""
    make_dump(tmp_path / "Posts.xml", 100_000_000)
    script = f"""
import so2docs
form = {{"format": {form!r}, "body": {body!r}}}
report = so2docs.tables({str(tmp_path)!r}, {str(tmp_path / "out")!r}, **form, jobs=2)
print(report["posts"].rows, report.peak_memory_bytes)
"""
    result = run_python("-c", script, encoding=None)
    rows, peak = map(int, result.stdout.split())
    assert rows > 50_000
    assert peak < 512 * 1024 * 1024


def test_rows_are_repaired_or_refused_as_in_a_conversion(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "Posts.xml", b'<row Id="1" PostTypeId="1" Title="a&#1;b" />')
    so2docs.tables(dump, tmp_path / "out", format="jsonl")
    [post] = read_back(tmp_path / "out", DUMP["posts"], "jsonl")
    assert post["Title"] == "a\N{REPLACEMENT CHARACTER}b"
    write_dump(dump, b'<row Id="1" Title="a" Title="b" />')
    with pytest.raises(so2docs.MalformedDumpError):
        so2docs.tables(dump, tmp_path / "other")
