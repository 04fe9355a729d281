"""In every format, other programs read the same documents as in the JSON lines."""

import json
import re
import shutil
import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.command import run
from support.dumps import answer, question, unpacked, write_dump
from support.formats_read_back import (
    READERS,
    Document,
    jsonl,
    without_second_fractions,
)
from support.places import LONG, SAMPLES

import so2docs
from so2docs import zstd
from so2docs.extensions.parquet import footer as footers
from so2docs.extensions.parquet import format as parquet_format
from so2docs.extensions.parquet.format import Parquet
from so2docs.options.choices import FORMATS
from so2docs.options.split import Split
from so2docs.options.table import OutputForm

SAMPLE_NAMES = sorted(path.stem for path in SAMPLES.glob("*.xml"))


def expected_of(sample: str) -> list[Document]:
    lines = (SAMPLES / f"{sample}.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    return [json.loads(line) for line in lines]


def wide_dump(path: Path, questions: int = 40) -> Path:
    """Write questions with an answer, each in a separate bucket."""
    rows = []
    for number in range(1, questions + 1):
        question_id = number * 20_000
        date = "2020-01-0{}T00:00:00.000"
        texts = {"Body": f"{number} " * 3000, "Tags": f"<a><t{number % 3}>"}
        rows.append(question(question_id, CreationDate=date.format(1), Score=number, **texts))
        dated = {"Score": number, "CreationDate": date.format(2), "Body": "answer"}
        rows.append(answer(question_id + 1, question_id, **dated))
    return write_dump(path, *rows)


def test_every_format_has_a_reader() -> None:
    assert READERS.keys() == FORMATS.keys()


def test_real_dump_read_back(real_dump: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain.jsonl"
    so2docs.convert(real_dump, plain, jobs=1)
    expected = without_second_fractions(jsonl(plain))
    assert expected
    # Dumps differ only in values that typed formats convert.
    is_usual = real_dump.stat().st_size < 2_000_000
    for name in READERS if is_usual else ("mongodb", "parquet"):
        file, read = READERS[name]
        so2docs.convert(real_dump, tmp_path / file, format=name, jobs=1)
        actual = read(tmp_path / file)
        for one, other in zip(without_second_fractions(actual), expected, strict=True):
            assert one == other


@pytest.mark.parametrize("sample", SAMPLE_NAMES)
@pytest.mark.parametrize("name", READERS)
def test_sample_read_back(name: str, sample: str, tmp_path: Path) -> None:
    file, read = READERS[name]
    so2docs.convert(SAMPLES / f"{sample}.xml", tmp_path / file, format=name, jobs=1)
    actual = without_second_fractions(read(tmp_path / file))
    expected = without_second_fractions(expected_of(sample))
    assert actual == expected
    assert name == "parquet" or list(map(list, actual)) == list(map(list, expected))


@pytest.mark.parametrize(
    ("name", "split"),
    [
        *((name, None) for name in READERS if name != "parquet"),
        *[("jsonl", "100kB"), ("json", "3files"), ("parquet", "100kB"), ("parquet", "3files")],
        ("jsonl", "year"),
    ],
)
def test_same_bytes_for_any_jobs_and_chunks(name: str, split: str | None, tmp_path: Path) -> None:
    dump = wide_dump(tmp_path / "Posts.xml", 12)
    contents = set()
    # Workers are slow to start, so an ordinary run uses them for one combination.
    jobs_too = LONG or (name, split) == ("parquet", "3files")
    for number, (jobs, chunk_bytes) in enumerate([(1, None), (1, 10_007), (2, 100_003)]):
        if jobs > 1 and not jobs_too:
            continue
        output = tmp_path / str(number) / READERS[name][0]
        output.parent.mkdir()
        so2docs.convert(dump, output, format=name, split=split, jobs=jobs, chunk_bytes=chunk_bytes)
        contents.add(
            tuple((path.name, path.read_bytes()) for path in sorted(output.parent.iterdir()))
        )
    assert len(contents) == 1


@pytest.mark.parametrize(
    ("name", "split"),
    [*((name, "100kB") for name in READERS), ("parquet", "7files"), ("jsonl", "60files")],
)
def test_split_files_are_whole(name: str, split: str, tmp_path: Path) -> None:
    file, read = READERS[name]
    dump = wide_dump(tmp_path / "Posts.xml", 30)
    so2docs.convert(dump, tmp_path / "one.jsonl", jobs=1)
    report = so2docs.convert(
        dump, tmp_path / file, format=name, split=split, compression=None, jobs=1, level=0
    )
    stem, _, extensions = file.partition(".")
    paths = sorted(tmp_path.glob(f"{stem}-*"))
    assert [path.name for path in paths] == [
        f"{stem}-{number:05}.{extensions}" for number in range(len(paths))
    ]
    assert report.files == len(paths)
    sizes = [path.stat().st_size for path in paths]
    assert report.output_bytes == sum(sizes)
    assert len(paths) == 7 or split != "7files"
    assert max(sizes) <= 100_000 or split != "100kB"
    documents = [document for path in paths for document in read(path)]
    assert documents == jsonl(tmp_path / "one.jsonl")


def test_split_files_are_full_or_even(tmp_path: Path) -> None:
    dump = wide_dump(tmp_path / "Posts.xml", 60)
    so2docs.convert(dump, tmp_path / "full.jsonl", split="200kB", jobs=1)
    sizes = [path.stat().st_size for path in sorted(tmp_path.glob("full-*"))]
    assert all(100_000 < size <= 200_000 for size in sizes[:-1])
    so2docs.convert(dump, tmp_path / "even.jsonl", split="4files", jobs=1)
    counts = [len(jsonl(path)) for path in tmp_path.glob("even-*")]
    assert (len(sizes), sum(counts), max(counts) - min(counts) <= 6) == (3, 60, True)


def test_split_within_one_bucket(tmp_path: Path) -> None:
    so2docs.convert(SAMPLES / "posts.xml", tmp_path / "questions.jsonl", split="3files", jobs=1)
    files = sorted(tmp_path.glob("questions-*"))
    assert len(files) == 3
    assert all(jsonl(path) for path in files)
    assert [document for path in files for document in jsonl(path)] == expected_of("posts")


def test_split_refuses_and_replaces_earlier_files(tmp_path: Path) -> None:
    output = tmp_path / "questions.jsonl"
    so2docs.convert(SAMPLES / "posts.xml", output, split="4files", jobs=1)
    with pytest.raises(so2docs.OutputError, match=r"questions-00000\.jsonl: exists"):
        so2docs.convert(SAMPLES / "posts.xml", output, split="2files", jobs=1)
    so2docs.convert(SAMPLES / "posts.xml", output, split="2files", jobs=1, force=True)
    names = [path.name for path in sorted(tmp_path.iterdir())]
    assert names == [
        ".questions-00000.jsonl.index",
        ".questions-00001.jsonl.index",
        ".questions.jsonl.record",
        "questions-00000.jsonl",
        "questions-00001.jsonl",
    ]


def test_zstd_stream_is_seekable(tmp_path: Path) -> None:
    dump = wide_dump(tmp_path / "Posts.xml", 30)
    output = tmp_path / "questions.jsonl.zst"
    so2docs.convert(dump, output, jobs=1)
    data = output.read_bytes()
    frames, descriptor, magic = struct.unpack("<IBI", data[-9:])
    assert (magic, descriptor) == (0x8F92EAB1, 0)
    start = len(data) - 9 - 8 * frames - 8
    assert struct.unpack_from("<II", data, start) == (0x184D2A5E, 8 * frames + 9)
    at, documents = 0, []
    for number in range(frames):
        size, raw_size = struct.unpack_from("<II", data, start + 8 + 8 * number)
        raw = zstd.decompress(data[at : at + size])
        assert len(raw) == raw_size
        documents += [json.loads(line) for line in raw.splitlines()]
        at += size
    assert at == start
    assert documents == list(so2docs.read(output))
    assert len(documents) == frames == 30


@pytest.mark.parametrize("cut", [1, 300, -1, -100, -500])
def test_read_detects_a_truncated_zstd_stream(cut: int, tmp_path: Path) -> None:
    output = tmp_path / "questions.jsonl.zst"
    output.write_bytes(zstd.compress((SAMPLES / "posts.jsonl").read_bytes()))
    assert list(so2docs.read(output)) == expected_of("posts")
    output.write_bytes(output.read_bytes()[:cut])
    with pytest.raises(so2docs.OutputError, match=r"damaged or truncated|is not JSON"):
        list(so2docs.read(output))


def test_a_bucket_is_one_row_group(tmp_path: Path) -> None:
    body = "a" * 70_000
    write_dump(tmp_path / "Posts.xml", *(question(number, Body=body) for number in range(1, 51)))
    output = tmp_path / "questions.parquet"
    so2docs.convert(tmp_path / "Posts.xml", output, jobs=1)
    assert pq.read_metadata(output).num_row_groups == 1
    needed = {field.name for field in pq.read_schema(output) if not field.nullable}
    assert needed == {"Id", "Answers"}


def test_the_page_index_of_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This is tested with several row groups of documents, and with a flat table."""
    dump = wide_dump(tmp_path / "Posts.xml", 5)
    monkeypatch.setattr(parquet_format, "ROW_GROUP_BYTES", 1)
    so2docs.convert(dump, tmp_path / "q.parquet", jobs=1)
    so2docs.tables(dump, tmp_path / "flat", jobs=1)
    for name, groups in (("q.parquet", 5), ("flat/Posts.parquet", 1)):
        data = (tmp_path / name).read_bytes()
        (size,) = struct.unpack("<I", data[-8:-4])
        footer = by_id(footers.ThriftReader(data, len(data) - 8 - size).struct())
        assert len(footer[4][1]) == groups
        for group in map(by_id, footer[4][1]):
            for column in map(by_id, group[1][1]):
                check_pages(data, column, rows=group[3])


def check_pages(data: bytes, column: dict[int, Any], rows: int) -> None:
    """Compare the page indexes of a column with its metadata."""
    metadata = by_id(column[3])
    reader = footers.ThriftReader(data, column[4])
    pages = [by_id(page) for page in by_id(reader.struct())[1][1]]
    assert reader.at == column[4] + column[5]
    assert pages[0][1] == metadata[9]
    assert pages[-1][1] + pages[-1][2] == metadata.get(11, metadata[9]) + metadata[7]
    assert all(page[1] + page[2] == following[1] for page, following in pairwise(pages))
    assert 0 == pages[0][3] <= pages[-1][3] < rows
    has_order = metadata[3][1] == [b"Id"]
    assert (6 in column) >= has_order
    if has_order:
        reader = footers.ThriftReader(data, column[6])
        bounds, statistics = by_id(reader.struct()), by_id(metadata[12])
        assert reader.at == column[6] + column[7]
        assert (bounds[2][1][0], bounds[3][1][-1]) == (statistics[6], statistics[5])


def by_id(fields: footers.Struct) -> dict[int, Any]:
    return {field_id: value for field_id, (_, value) in fields.items()}


@pytest.mark.parametrize(
    ("name", "file", "end"),
    [
        ("parquet", "q.parquet", ".gz"),
        ("ravendb", "r.ravendbdump", ".gz"),
        ("json", "j.json", ""),
        ("jsonl", "z.jsonl.zst", ".zst"),
        ("elasticsearch", "e.jsonl.gz", ".gz"),
    ],
)
def test_strays_next_to_any_format(name: str, file: str, end: str, tmp_path: Path) -> None:
    output, strays = tmp_path / file, tmp_path / f".{file}.strays{end}"
    strays.write_bytes(b"of a former output")
    report = so2docs.convert(SAMPLES / "strays.xml", output, format=name, jobs=1)
    assert report.strays_path == str(strays)
    assert unpacked(strays) == unpacked(SAMPLES / "strays.strays.jsonl")
    output.unlink()
    so2docs.convert(SAMPLES / "votes.xml", output, format=name, jobs=1)
    assert not strays.exists()


def test_command_names_the_output_by_the_format(tmp_path: Path) -> None:
    command = ["convert", SAMPLES / "posts.xml", "-q"]
    for options in (
        *([], ["--compression", "none"], ["--compression", "zstd"], ["-f", "parquet"]),
        *(["-f", "json"], ["-f", "ravendb", "--split", "2files"]),
    ):
        assert run(*command, *options, cwd=tmp_path).returncode == 0
    assert sorted(path.name for path in tmp_path.glob("[!.]*")) == [
        "questions-00000.ravendbdump",
        "questions-00001.ravendbdump",
        "questions.json.gz",
        "questions.jsonl",
        "questions.jsonl.gz",
        "questions.jsonl.zst",
        "questions.parquet",
    ]
    run(*command, "q.txt", "-f", "jsonl", "--compression", "none", cwd=tmp_path, code=0)
    assert (tmp_path / "q.txt").read_bytes().startswith(b"{")
    refused = run(*command, "q.parquet", "--compression", "gzip", cwd=tmp_path, code=2)
    assert refused.stderr.startswith("so2docs: --format parquet has a compression of its own")


def test_json_array_to_standard_output() -> None:
    result = run("convert", SAMPLES / "posts.xml", "-", "-q", "-f", "json")
    assert json.loads(result.stdout) == expected_of("posts")


@pytest.mark.parametrize(
    ("name", "end", "key", "start"),
    [
        ("elasticsearch", ".jsonl.gz", "_id", ""),
        ("mongodb", ".jsonl.gz", "_id", ""),
        ("ravendb", ".ravendbdump", "@id", "questions/"),
    ],
)
def test_ids_of_several_sites_differ(
    name: str, end: str, key: str, start: str, tmp_path: Path
) -> None:
    dumps = [tmp_path / f"{site}.xml" for site in ('o"ne', "two")]
    for dump in dumps:
        shutil.copy(SAMPLES / "posts.xml", dump)
    with pytest.raises(so2docs.OptionError, match="needs site_field=NAME: post ids are only"):
        so2docs.convert_all(dumps, tmp_path / name, format=name, jobs=1)
    so2docs.convert_all(dumps, tmp_path / name, format=name, site_field="Site", jobs=1)
    for dump in dumps:
        text = unpacked(tmp_path / name / f"{dump.stem}{end}").decode()
        ids = map(json.loads, re.findall(rf'"{key}":("(?:[^"\\]|\\.)*")', text))
        expected = [one["Id"] for one in so2docs.documents(dump)]
        assert list(ids) == [f"{start}{dump.stem}/{question_id}" for question_id in expected]


def test_the_site_is_a_column_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "q.parquet"
    so2docs.convert(SAMPLES / "posts.xml", path, site_field="Site", site="beer", jobs=1)
    table = pq.ParquetFile(path).read()
    assert set(table["Site"].to_pylist()) == {"beer"}
    assert table["Other"].null_count == len(table)
    assert not table.schema.field("Id").nullable
    assert not table.schema.field("Answers").nullable
    answer = table.schema.field("Answers").type.value_type
    assert not answer.field("Id").nullable
    assert answer.field("Score").nullable


@pytest.mark.parametrize(("recipe", "order"), [(None, "Id"), ("hub", "Id"), ("qa", None)])
def test_parquet_says_its_order(recipe: str | None, order: str | None, tmp_path: Path) -> None:
    """Rows ascend by `Id` in documents and in records that are questions, not in others."""
    output = tmp_path / "q.parquet"
    site = "a.com" if recipe == "qa" else None
    report = so2docs.convert(SAMPLES / "posts.xml", output, recipe=recipe, site=site)
    file = pq.ParquetFile(report.first_file or output)
    assert file.num_row_groups
    for number in range(file.num_row_groups):
        sorting_columns = file.metadata.row_group(number).sorting_columns
        names = [file.schema.column(one.column_index).path for one in sorting_columns]
        assert names == ([order] if order else [])
        if order:
            ids = file.read_row_group(number, [order])[order].to_pylist()
            assert ids == sorted(ids)


def test_row_groups_grow_with_the_output() -> None:
    """The footer of all documents of Stack Overflow stays below 12 MB, and memory bounded."""
    form = Parquet(OutputForm("parquet"))
    assert form.bytes_of_segments(1_000_000_000) == 4 << 20
    assert 10_000_000 < form.bytes_of_segments(40_000_000_000) < 32 << 20
    assert form.bytes_of_segments(100_000_000_000) == 32 << 20
    form = Parquet(OutputForm("parquet", split=Split(size=4_000_000)))
    assert form.bytes_of_segments(100_000_000_000) == 1_000_000


@pytest.mark.parametrize("options", [{}, {"limit": 7}, {"recipe": "thread", "site": "a.com"}])
def test_a_row_group_of_several_buckets(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dump = wide_dump(tmp_path / "Posts.xml", 20)

    def converted(name: str, jobs: int) -> tuple[list[bytes], list[Any], int]:
        (tmp_path / name).mkdir()
        so2docs.convert(dump, tmp_path / name / "q.parquet", jobs=jobs, **options)
        paths = sorted((tmp_path / name).glob("*.parquet"))
        rows = [row for path in paths for row in pq.read_table(path).to_pylist()]
        groups = sum(pq.read_metadata(path).num_row_groups for path in paths)
        return [path.read_bytes() for path in paths], rows, groups

    data, rows, groups = converted("usual", 1)
    assert converted("again", 2)[0] == data
    monkeypatch.setattr(parquet_format, "ROW_GROUP_BYTES", 1)
    _, small_rows, small_groups = converted("small", 1)
    assert small_rows == rows
    assert groups == 1 < small_groups
