"""Hostile dumps give a clear error or the right documents, in bounded memory and time.

`SO2DOCS_LONG=1` also runs tests that take gigabytes or minutes.
"""

import lzma
import os
import random
from pathlib import Path

import pytest
from support.command import run, run_python
from support.dumps import END, START, answer, dump_of, left_by, question, row, write_dump
from support.oracle import nest
from support.places import LONG

import so2docs

ENTITIES = (f"<!ENTITY a{n} '{f'&a{n - 1};' * 10}'>" for n in range(1, 12))
BOMB = f"<!DOCTYPE posts [<!ENTITY a0 'lol'>{''.join(ENTITIES)}]>"


def convert(dump: Path, **options: object) -> tuple[so2docs.Report, list[dict[str, object]]]:
    output = dump.with_name("questions.jsonl.gz")
    report = so2docs.convert(dump, output, jobs=1, force=True, **options)  # type: ignore[arg-type]
    return report, list(so2docs.read(output))


def with_prolog(prolog: str, row: bytes = question(1, Title="t")) -> bytes:
    return b'<?xml version="1.0"?>\n' + prolog.encode() + b"\n<posts>\n" + row + END


@pytest.fixture
def pipe(tmp_path: Path) -> str:
    """A named pipe that must never be opened, because opening it hangs."""
    if not hasattr(os, "mkfifo"):
        pytest.skip("no named pipes here")
    os.mkfifo(tmp_path / "pipe")
    return str(tmp_path / "pipe")


@pytest.mark.parametrize(
    "prolog",
    [
        BOMB,
        "<!DOCTYPE posts SYSTEM 'file://PIPE'>",
        "<!DOCTYPE posts SYSTEM 'http://127.0.0.1:9/posts.dtd'>",
        "<!DOCTYPE posts PUBLIC '-//none' 'PIPE'>",
        "<!DOCTYPE posts [<!ENTITY outside SYSTEM 'file://PIPE'>]>",
        "<!DOCTYPE posts [<!ENTITY % outside SYSTEM 'file://PIPE'> %outside;]>",
        "<!DOCTYPE posts [<!ATTLIST row Title CDATA 'made up' Extra CDATA 'made up'>]>",
        "<?xml-stylesheet href='PIPE'?>",
    ],
    ids=["bomb", "system", "url", "public", "entity", "parameter-entity", "default", "stylesheet"],
)
def test_nothing_is_fetched_expanded_or_made_up(prolog: str, tmp_path: Path, pipe: str) -> None:
    dump = tmp_path / "Posts.xml"
    dump.write_bytes(with_prolog(prolog.replace("PIPE", pipe)))
    _, documents = convert(dump)
    assert documents == [{"Id": 1, "PostTypeId": 1, "Title": "t", "Answers": []}]
    for entity in ("a11", "outside"):
        bad = b'<row Id="1" PostTypeId="1" Body="&%b;" />' % entity.encode()
        dump.write_bytes(with_prolog(prolog.replace("PIPE", pipe), bad))
        with pytest.raises(so2docs.MalformedDumpError, match="undefined entity"):
            convert(dump, restart=True)


NOT_DUMPS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty; download it again"),
    "text": (b"hello world", "is not a Posts.xml: no root element"),
    "nul": (bytes(100_000), "is not a Posts.xml: no root element"),
    "bom": (b"\xef\xbb\xbf", "is not a Posts.xml"),
    "gzip": (b"\x1f\x8b\x08" + bytes(50), "is damaged|truncated|is empty|cannot be"),
    "html": (
        b"<!DOCTYPE html><html><body><p>404</body></html>",
        "is a web page .*download it again",
    ),
    "html-of-today": (
        b"<!doctype html>\n<html lang=en><p>404",
        "is a web page .*download it again",
    ),
    "users": (
        b"<users><row Id='1'/></users>",
        r"holds <users>, expected <posts>; give the Posts\.xml",
    ),
    "tags": (b"<tags/>", "holds <tags>, expected <posts>"),
    "another-root": (
        b"<Error><Code>NoSuchKey</Code></Error>",
        "is an error message from a server .<Error>",
    ),
    "within-rows": (
        question(1)[9:] + question(2),
        r"starts in the middle of the rows.*join the parts with cat",
    ),
    "output": (
        b'{"Id":1,"PostTypeId":1,"Answers":[]}\n',
        "is JSON that so2docs wrote.*so2docs show",
    ),
    "json": (b'[{"a": 1}]', r"is JSON, not a Posts\.xml; give the Posts\.xml of a dump"),
    "parquet": (b"PAR1" + bytes(50), r"is a Parquet file, not XML; give the Posts\.xml"),
    "lfs-pointer": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 98079082\n",
        "is a Git LFS pointer.*; fetch the file with git lfs pull",
    ),
    "sites": (b'<sites>\n  <row Id="1" Name="a" />\n</sites>', "is the list of sites of a release"),
    "elements": (START + b"<row><Id>1</Id></row>" + END, "XML of another shape .*only attributes"),
    "text-in-a-row": (
        START + b'<row Id="1">note</row>' + END,
        "XML of another shape .*only attributes",
    ),
    "rar": (b"Rar!\x1a\x07\x01\x00", "is a rar archive, not XML; unpack it first"),
    "lz4": (b"\x04\x22\x4d\x18" + bytes(9), "is an LZ4 file, not XML; unpack it first"),
    "compress": (b"\x1f\x9d\x90" + bytes(9), "is a file of compress"),
    "lzip": (b"LZIP\x01" + bytes(9), "is an lzip file"),
    "lzma": (lzma.compress(b"<posts/>", lzma.FORMAT_ALONE), "is an lzma file"),
    "macos": (b"\0\5\x16\7\0\2\0\0Mac OS X", "that macOS writes.*give the file without ._"),
    "files": (b"<files><file/></files>", "is the list of files of an item on archive.org"),
    "metadata": (b"<metadata></metadata>", "is the description of an item on archive.org"),
    "torrent": (b"d8:announce35:", "is a torrent, .*; download the files it lists"),
    "row-as-root": (question(1), "starts with <row>, expected <posts> around the rows"),
    "only-a-row": (b'<row Id="1" PostTypeId="1"/>', "starts with <row>, expected <posts>"),
    "two-roots": (b"<posts/><posts/>", "has content after its closing </posts>"),
    "after-the-end": (dump_of(question(1)) + b"x", "has content after its closing </posts>"),
    "nested": (START + b"<posts>" + question(1) + b"</posts>" + END, "is not well-formed XML"),
    "rows-in-rows": (START + b'<row Id="1">' * 3 + b"</row>" * 3 + END, "inside a row|well-formed"),
    "deep": (START + b"<row>" * 100_000 + b"</row>" * 100_000 + END, "well-formed XML"),
    "bad-declaration": (b'<?xml version="1.0" encoding="utf-8" ??><posts/>', "is not well-formed"),
    "other-encoding": (
        b'<?xml version="1.0" encoding="nope-8"?><posts/>',
        "iconv -f nope-8 -t UTF-8",
    ),
}


@pytest.mark.parametrize("kind", NOT_DUMPS)
def test_rejects_files_other_than_dumps(kind: str, tmp_path: Path) -> None:
    data, words = NOT_DUMPS[kind]
    dump = tmp_path / "Posts.xml"
    dump.write_bytes(data)
    with pytest.raises(so2docs.DumpError, match=words):
        convert(dump)
    assert not (tmp_path / "questions.jsonl.gz").exists()


@pytest.mark.parametrize("names", [["Users.xml", "Votes.xml"], ["a-Users.7z", "a-Votes.7z"], []])
def test_refuses_folders_without_posts(names: list[str], tmp_path: Path) -> None:
    for name in names:
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(so2docs.DumpError, match=r"folder without a Posts.*; give the Posts\.xml"):
        convert(tmp_path)
    with pytest.raises(so2docs.DumpError, match=r"is not a Posts\.xml"):
        so2docs.convert("/dev/zero", tmp_path / "questions.jsonl.gz")


def test_a_sparse_file_of_a_terabyte(tmp_path: Path) -> None:
    dump = tmp_path / "Posts.xml"
    with dump.open("wb") as file:
        file.truncate(2**40)
    if dump.stat().st_blocks * 512 > 2**20:
        pytest.skip("this file system has no sparse files")
    with pytest.raises(so2docs.MalformedDumpError, match="is not a Posts"):
        convert(dump)
    with dump.open("r+b") as file:
        file.write(START + question(1))
    with pytest.raises(
        so2docs.TruncatedDumpError, match=r"is truncated.* at byte 1,099,511,627,776,"
    ):
        convert(dump)


IDS = ["-5", "0", "-0", "+7", "007", str(2**63 - 1), str(-(2**63)), str(2**63), "9" * 3000]
IDS += ["1e3", "1.5", " 1", "", "\u0664\u0662", "0x1F", "1_000", "x"]


@pytest.mark.parametrize("value", IDS, ids=lambda value: ascii(value)[:12])
def test_ids_as_no_dump_has_them(value: str, tmp_path: Path) -> None:
    rows = (
        question(1),
        question(value),
        answer(3, value),
        answer(value, 1),
        answer(5, 1, Score=value),
    )  # type: ignore[arg-type]
    dump = write_dump(tmp_path / "Posts.xml", question(1), *rows)
    report, documents = convert(dump, chunk_bytes=60)
    oracle = nest(dump)
    assert documents == oracle.documents
    assert report.strays == dict(sorted(oracle.strays_by_reason.items()))


@pytest.mark.parametrize("accepted", [None, 0, 1, 4, -(2**63), "x"])
def test_only_an_accepted_answer_comes_first(accepted: object, core: str, tmp_path: Path) -> None:
    """The id may be 0, and the question may name no answer, itself, or an invalid id."""
    attributes = {} if accepted is None else {"AcceptedAnswerId": accepted}
    answers = (answer(post_id, 1, Score=post_id % 7) for post_id in (0, 4, 3, -(2**63), 2))
    dump = write_dump(tmp_path / "Posts.xml", question(1, **attributes), *answers)
    _, documents = convert(dump, core=core, answers_by="votes")
    assert documents == nest(dump, "votes").documents


@pytest.mark.long
def test_ids_scattered_over_64_bits(tmp_path: Path) -> None:
    rng = random.Random(1)
    ids = [rng.randrange(-(2**63), 2**63) for _ in range(3000)]
    rows = [question(post_id) for post_id in ids] + [answer(n, ids[n]) for n in range(1, 3000)]
    dump = write_dump(tmp_path / "Posts.xml", *rows)
    report, documents = convert(dump, chunk_bytes=20_000)
    assert (report.questions, report.answers) == (3000, 2999)
    assert [one["Id"] for one in documents] == sorted(ids)


def test_a_question_with_very_many_answers(tmp_path: Path) -> None:
    count = 1_000_000 if LONG else 30_000
    dump = write_dump(
        tmp_path / "Posts.xml", *(answer(n, 1) for n in range(2, count + 2)), question(1)
    )
    report, (document,) = convert(dump, chunk_bytes=1_000_000)
    assert report.answers == count
    answers = document["Answers"]
    assert isinstance(answers, list)
    assert [nested["Id"] for nested in answers] == list(range(2, count + 2))


def test_very_many_attributes(tmp_path: Path) -> None:
    count = 1_000_000 if LONG else 20_000
    wide = b"<row " + b"".join(b'A%d="" ' % n for n in range(count)) + b'Id="2" PostTypeId="1"/>'
    dump = write_dump(tmp_path / "Posts.xml", question(1), wide, question(3))
    _, documents = convert(dump)
    assert [len(one) for one in documents] == [3, count + 3, 3]


MEASURED = """
import sys, so2docs
report = so2docs.convert(sys.argv[1], sys.argv[2], jobs=1)
print(report.questions, report.peak_memory_bytes // 2**20)
"""


@pytest.mark.long
def test_a_huge_attribute(tmp_path: Path) -> None:
    size = (200 if LONG else 12) * 1_000_000
    dump, output = tmp_path / "Posts.xml", tmp_path / "questions.jsonl.gz"
    long_row = question(2, Body="word <p> " * (size // 15))
    write_dump(dump, question(1), long_row, question(3))
    result = run_python("-c", MEASURED, dump, output)
    questions, peak = map(int, result.stdout.split())
    assert questions == 3
    assert peak < 150 + 10 * size // 1_000_000
    print(f"{size // 1_000_000} MB attribute: {peak} MiB")
    dump.write_bytes(dump.read_bytes()[: size // 2])
    with pytest.raises(so2docs.TruncatedDumpError):
        convert(dump)


def test_many_malformed_rows(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "Posts.xml", b"<row " * 1_500)
    report, _ = convert(dump, errors="skip")
    assert report.strays == {"malformed_row": 1_500}


@pytest.mark.parametrize(("jobs", "chunk_bytes"), [(1, 100), (2, 1000)])
def test_one_id_under_many_questions(jobs: int, chunk_bytes: int | None, tmp_path: Path) -> None:
    """The first post in the file is used, wherever the others are."""
    rng = random.Random(3)
    rows = [question(n * 20_000) for n in range(1, 8)]
    rows += [answer(rng.randrange(2, 30), 20_000 * rng.randrange(1, 9)) for _ in range(200)]
    rows += [question(rng.randrange(2, 30)) for _ in range(10)]
    rng.shuffle(rows)
    dump = write_dump(tmp_path / "Posts.xml", *rows)
    output = tmp_path / "questions.jsonl.gz"
    so2docs.convert(dump, output, jobs=jobs, chunk_bytes=chunk_bytes)
    oracle = nest(dump)
    assert list(so2docs.read(output)) == oracle.documents
    assert list(so2docs.read(tmp_path / ".questions.jsonl.gz.strays.gz")) == oracle.strays


NAMES = {
    "non-ascii": "d\u00e9p\u00f4t \u6771\u4eac \U0001f600 'quoted' \"%s\".xml",
    "long": "p" * 220 + ".xml",
    "not-utf-8": os.fsdecode(b"caf\xe9.xml"),
    "a-space-and-a-line": " a\nb .xml",
    "like-an-option": "--force.xml",
}


@pytest.mark.parametrize("kind", NAMES)
def test_names(kind: str, tmp_path: Path) -> None:
    path = tmp_path / NAMES[kind]
    try:
        write_dump(path, question(1), row(Id=9))
    except OSError as error:
        pytest.skip(f"this file system has no such names: {error}")
    output = path.with_suffix(".jsonl.gz")
    command = ["convert", path, output, "--report", f"{output}.json"]
    assert run(*command).returncode == 0
    names = {path.name, output.name, f"{output.name}.json", f".{output.name}.strays.gz"}
    names.add(f".{output.name}.index")
    assert set(left_by(output)) == names
    path.write_bytes(b"<posts>")
    result = run(*command, "--force", code=1)
    assert result.stderr.startswith("so2docs: ")
    assert "Traceback" not in result.stderr


def test_a_path_too_long_for_the_index(tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*["f" * 200] * 4)
    dump = write_dump(folder / "Posts.xml", question(1))
    output = folder / "questions.jsonl.gz"
    with pytest.raises(so2docs.SpillError, match="choose another work_dir, with a shorter path"):
        so2docs.convert(dump, output, jobs=1)
    assert so2docs.convert(dump, output, jobs=1, work_dir=tmp_path).questions == 1


def test_a_dump_without_a_question_is_told(tmp_path: Path) -> None:
    """Also with `--quiet`, because the output is empty."""
    dump, output = tmp_path / "Posts.xml", tmp_path / "q.jsonl"
    for rows in (b'<row id="1" posttypeid="1" title="t" />', b""):
        dump.write_bytes(START + rows + END)
        result = run("convert", dump, output, "-q", "--force", code=0)
        assert "the dump has no question, so the output is empty" in result.stderr
    dump.write_bytes(dump_of(question(1)))
    assert run("convert", dump, output, "-q", "--force", code=0).stderr == ""
