"""Look-ups agree with a full scan, whatever happened to the index."""

import gzip
import json
import os
import pickle
import random
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
from support.command import run, run_python
from support.dumps import answer, question, unpacked, write_dump
from support.messages import heard
from support.places import SAMPLES

import so2docs
from so2docs import zstd
from so2docs.output.compression import compress
from so2docs.output.file import Output
from so2docs.output.formats import Format
from so2docs.output.index import Index, find_answer_ids, pack_answer_ids
from so2docs.output.new_files import NewFiles, output_lock
from so2docs.reader.missing_index import find_flushes

NAMES = ("questions.jsonl.gz", "questions.jsonl", "questions.jsonl.zst")


def index_of(output: Path) -> Path:
    return output.with_name(f".{output.name}.index")


def scanned(output: Path) -> dict[int, dict[str, object]]:
    """Return the documents, read without the package."""
    lines = unpacked(output).splitlines()
    return {document["Id"]: document for document in map(json.loads, lines)}


def assert_same(output: Path) -> None:
    """Look up every id, ids between them, and ids far away, in random order."""
    expected = scanned(output)
    near = {other for question_id in expected for other in (question_id - 1, question_id + 1)}
    questions = {
        answer["Id"]: question_id
        for question_id, document in expected.items()
        for answer in document["Answers"]  # type: ignore[attr-defined]
    }
    missing = (near | set(questions) | {0, -1, 2**31, 10**10, 2**70, -(2**70)}) - set(expected)
    with so2docs.open(output) as docs:
        assert len(docs) == len(expected)
        assert list(docs) == list(docs.keys()) == list(expected)
        assert list(docs.values()) == list(expected.values())
        assert dict(docs.items()) == expected
        for question_id in random.Random(1).sample(sorted(expected), len(expected)):
            assert docs[question_id] == expected[question_id]
        for question_id in random.Random(2).sample(sorted(expected), min(len(expected), 50)):
            assert question_id in docs
            assert docs.get(question_id) == expected[question_id]
            assert json.loads(docs.line(question_id)) == expected[question_id]
        for answer_id in random.Random(3).sample(sorted(questions), min(len(questions), 50)):
            assert docs.find_question_id(answer_id) == questions[answer_id]
            assert docs.find_question_id(answer_id + 2**32) is None
        for question_id in random.Random(1).sample(sorted(missing), min(len(missing), 25)):
            if question_id not in questions:
                assert docs.find_question_id(question_id) is None
            assert question_id not in docs
            assert docs.get(question_id, "none") == "none"
            with pytest.raises(KeyError):
                docs[question_id]


def write_large(path: Path) -> None:
    """Write posts over eight ranges of question ids, including long and negative ids."""
    choice = random.Random(1)
    words = [f"{choice.randrange(16**8):x}"[: choice.randrange(1, 9)] for _ in range(4000)]
    rows: list[bytes] = []

    def body() -> str:
        return '"Id":4,' + " ".join(choice.choices(words, k=130))

    for question_id in [-70, -3, *range(4, 120_000, 240), *range(10**9 + 1, 10**9 + 200, 2)]:
        rows.append(question(question_id, Score=choice.randrange(-3, 90), Body=body()))
        for _ in range(choice.choice((0, 1, 2, 5))):
            rows.append(answer(200_000 + len(rows), question_id, Body=body()))
    write_dump(path, *rows)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The outputs of a dump with several segments."""
    folder = tmp_path_factory.mktemp("large")
    write_large(folder / "Posts.xml")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Format, "segment_bytes", 100_000)
        for name in NAMES:
            so2docs.convert(folder / "Posts.xml", folder / name, jobs=1)
    return folder


@pytest.fixture(params=NAMES)
def output(request: pytest.FixtureRequest, large: Path, tmp_path: Path) -> Path:
    """An output with its index, for changes."""
    for name in (request.param, f".{request.param}.index"):
        shutil.copyfile(large / name, tmp_path / name)
    return tmp_path / str(request.param)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sample", sorted(path.name for path in SAMPLES.glob("*.xml")))
def test_samples(sample: str, name: str, tmp_path: Path) -> None:
    so2docs.convert(SAMPLES / sample, tmp_path / name, jobs=1)
    assert_same(tmp_path / name)


def places(path: Path) -> tuple[object, ...]:
    """Return the entries of an index, without the provenance."""
    index = Index(index_of(path).read_bytes())
    entries = [index[segment] for segment in range(index.count)]
    answers = [list(index.find_answer(answer_id)) for answer_id in range(1000)]
    return entries, index.documents, index.size, index.tail, answers


def rebuild(output: Path) -> None:
    index_of(output).unlink()
    with heard():
        so2docs.open(output).close()


def test_only_one_piece_is_read(output: Path) -> None:
    expected = scanned(output)
    answered = next(document for document in expected.values() if document["Answers"])
    (answer, *_) = answered["Answers"]  # type: ignore[misc]
    with so2docs.open(output) as docs:
        entries = list(docs.index)
        spoilt = entries[2]
        with output.open("r+b") as file:
            file.seek(spoilt.offset + 5)
            file.write(b"~~~~")
        for entry in (entries[1], entries[3]):
            assert docs[entry.first_id] == expected[entry.first_id]
        assert docs.find_question_id(answer["Id"]) == answered["Id"]
        assert docs.find_question_id(12_345) is None
        for look_up in (
            lambda: docs[spoilt.first_id],
            lambda: list(docs),
            lambda: list(docs.values()),
        ):
            with pytest.raises(so2docs.OutputError, match=f"{spoilt.offset:,}, are damaged"):
                look_up()


@pytest.mark.parametrize("fields", ["Id,Answers.Id", "Id,Answers.Id,Answers.PostTypeId", "Id"])
def test_answers_with_few_fields(fields: str, tmp_path: Path) -> None:
    write_dump(tmp_path / "Posts.xml", question(4), answer(7, 4), answer(-6, 4), answer(2**40, 4))
    so2docs.convert(tmp_path / "Posts.xml", tmp_path / NAMES[0], fields=fields, jobs=1)
    written = places(tmp_path / NAMES[0])
    with so2docs.open(tmp_path / NAMES[0]) as docs:
        found = [docs.find_question_id(answer_id) for answer_id in (7, -6, 2**40, 8)]
        assert found == ([None] * 4 if fields == "Id" else [4, 4, 4, None])
    rebuild(tmp_path / NAMES[0])
    assert places(tmp_path / NAMES[0]) == written


def test_any_order_of_attributes_and_white_space(tmp_path: Path) -> None:
    documents = [
        {"Body": '"Id":7', "Answers": [{"Id": 9, "Body": "x"}], "Id": 5},
        {"Id": 7, "Answers": []},
        {"Answers": [{"Id": 5}], "Id": 70},
    ]
    for number, separators in enumerate([(",", ":"), (", ", ": "), (" , ", " : ")]):
        path = tmp_path / f"{number}.jsonl"
        lines = [json.dumps(document, separators=separators) for document in documents]
        path.write_text("\n".join(lines))
        with heard():
            so2docs.open(path).close()
        assert_same(path)


@pytest.mark.parametrize("level", [0, 1, 2, 3, 9])
def test_a_rebuilt_index_equals_the_written_one(level: int, large: Path, tmp_path: Path) -> None:
    path = tmp_path / NAMES[0]
    lines = list(map(json.dumps, scanned(large / NAMES[0]).values()))
    with NewFiles(str(path)) as files:
        output = Output(files, str(path), "gzip", indexed=True)
        for start in range(0, len(lines), 50):
            raw = "".join(line + "\n" for line in lines[start : start + 50]).encode()
            first_id = json.loads(lines[start])["Id"]
            segment = compress(raw, "gzip", level, first_id, raw.count(b"\n"))
            ids = pack_answer_ids(map(json.loads, raw.splitlines()))
            output.append(segment._replace(answer_ids=ids))
        output.seal()
    written = index_of(path).read_bytes()
    rebuild(path)
    assert index_of(path).read_bytes() == written


@pytest.mark.parametrize("level", [1, 9])
def test_a_second_flush_belongs_to_the_segment_before(level: int) -> None:
    """As ISA-L sometimes writes, also at the end of the part of a file that was read."""
    pieces = [compress(b'{"Id":%d}\n' % number, "gzip", level).data for number in (1, 2)]
    empty = b"\0\0\0\xff\xff"
    found = find_flushes("x", pieces[0] + empty + pieces[1], is_last=True)
    assert [size for size, _ in found] == [len(pieces[0]) + 5, len(pieces[1])]
    assert not list(find_flushes("x", pieces[0] + empty[:3], is_last=False))
    assert not list(find_flushes("x", pieces[0], is_last=False))


def cut(path: Path, share: float) -> None:
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


SPOILT_INDEXES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (Path.unlink, "there is no index"),
    "empty": (lambda path: path.write_bytes(b""), "not written by"),
    "no index": (lambda path: path.write_bytes(b"some notes\n" * 9), "not written by"),
    "cut": (lambda path: cut(path, 0.7), "damaged"),
    "flipped bit": (flip, "damaged"),
    "other version": (
        lambda path: path.write_bytes(path.read_bytes().replace(b"index 4", b"index 3", 1)),
        "not written by this version",
    ),
    "other file": (
        lambda path: so2docs.convert(
            SAMPLES / "votes.xml", path.with_name(path.stem[1:]), jobs=1, force=True
        ),
        "another file",
    ),
}


@pytest.mark.parametrize(
    ("way", "name"),
    [*((way, NAMES[0]) for way in SPOILT_INDEXES), ("missing", NAMES[1]), ("missing", NAMES[2])],
)
def test_unusable_index_is_made_again(way: str, name: str, large: Path, tmp_path: Path) -> None:
    for path in (large / name, index_of(large / name)):
        shutil.copy(path, tmp_path)
    output = tmp_path / name
    spoil, reason = SPOILT_INDEXES[way]
    kept, good = output.read_bytes(), places(output)
    spoil(index_of(output))
    output.write_bytes(kept)
    with heard() as messages, so2docs.open(output) as docs:
        assert len(docs) == len(scanned(output))
    assert len(messages) == 1
    assert str(output) in messages[0]
    assert reason in messages[0]
    if output.suffix != ".jsonl":
        assert places(output) == good
    assert sorted(os.listdir(output.parent)) == sorted([output.name, index_of(output).name])
    with heard() as messages:
        so2docs.open(output).close()
    assert messages == []


def test_changed_output_is_noticed(output: Path) -> None:
    with output.open("ab") as file:
        file.write(b'{"Id":3000000000,"Answers":[]}\n')
    if output.suffix != ".jsonl":
        with heard() as messages, pytest.raises(so2docs.OutputError, match="truncated"):
            so2docs.open(output)
    else:
        with heard() as messages, so2docs.open(output) as docs:
            assert docs[3_000_000_000] == {"Id": 3_000_000_000, "Answers": []}
    assert output.suffix == ".zst" or "an earlier version" in messages[0]


def test_an_index_that_cannot_be_saved_or_read(large: Path, tmp_path: Path) -> None:
    output = Path(shutil.copy(large / NAMES[0], tmp_path))
    with output_lock(str(output)), heard() as messages, so2docs.open(output) as docs:
        assert len(list(docs)) == len(docs)
    assert "kept in memory" in messages[1]
    assert os.listdir(tmp_path) == [output.name]
    index_of(output).mkdir()
    with pytest.raises(so2docs.OutputError, match=r"index: cannot be read: Is a directory"):
        so2docs.open(output)


@pytest.mark.parametrize("name", [NAMES[0], NAMES[2]])
def test_every_cut_of_a_small_output(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    so2docs.convert(SAMPLES / "votes.xml", path, jobs=1)
    data = path.read_bytes()
    index_of(path).unlink()
    for size in range(1, len(data), 7):
        path.write_bytes(data[:size])
        with pytest.raises(so2docs.OutputError):
            so2docs.open(path)


@pytest.mark.parametrize("compressed", [partial(gzip.compress, compresslevel=1), zstd.compress])
def test_output_of_another_program(
    compressed: Callable[[bytes], bytes], large: Path, tmp_path: Path
) -> None:
    path = tmp_path / "others"
    path.write_bytes(compressed((large / NAMES[1]).read_bytes() * 20))
    with pytest.raises(so2docs.OutputError, match=r"not compressed by so2docs.*gunzip"):
        so2docs.open(path)


@pytest.mark.parametrize("name", [NAMES[0], NAMES[2]])
def test_a_damaged_segment_without_an_index(name: str, large: Path, tmp_path: Path) -> None:
    path, whole = tmp_path / name, (large / name).read_bytes()
    with so2docs.open(large / name) as docs:
        pieces = list(docs.index)
    at = pieces[3].offset
    path.write_bytes(whole[: at + 9] + bytes([whole[at + 9] ^ 1]) + whole[at + 10 :])
    with pytest.raises(so2docs.OutputError, match=f"is damaged or truncated after byte {at:,}"):
        so2docs.open(path)
    for end in (at, pieces[-1].offset + pieces[-1].size):
        path.write_bytes(whole[:end])
        with pytest.raises(so2docs.OutputError, match="truncated"):
            so2docs.open(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"Id":2}\n{"Id":1}\n', "ascending"),
        ('{"Id":5}\n{"Id":4}\n', "question 4 comes after question 5"),
        ('{"Id":5}\n{"Id":5}\n', "question 5 comes after question 5"),
        ('{"Id":1}\n{"no":"id"}\n{"Id":9}\n', "a line is not a document with an Id"),
        ('{"Id":"1"}\n', "a line is not a document with an Id"),
        ("some notes\n", "a line is not a document with an Id"),
        ("[1]\n", "is a JSON array"),
    ],
)
def test_files_without_an_index(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_text(text * (1 if "Id" in text else 100_000))
    if message == "ascending":
        path.write_text(text.replace("}", f',"Body":"{"x" * 2**20}"}}'))
    with pytest.raises(so2docs.OutputError, match=message):
        so2docs.open(path)
    with pytest.raises(so2docs.OutputError, match="cannot be read"):
        so2docs.open(tmp_path / "nowhere")


def test_wrong_ids(large: Path) -> None:
    output = large / NAMES[0]
    with so2docs.open(output) as docs:
        with pytest.raises(KeyError) as caught:
            docs[-5]
        assert str(caught.value).startswith(f"{output}: has no question -5;")
        assert repr(docs) == f"<Collection of {len(docs):,} questions in {output}>"
        wrong: Any
        for wrong in ("4", 1.0, None):
            assert wrong not in docs
            for call in (docs.get, docs.__getitem__, docs.line, docs.find_question_id):
                with pytest.raises(so2docs.OptionError, match=f"the id is {wrong!r}"):
                    call(wrong)


def test_many_threads(large: Path) -> None:
    output = large / NAMES[0]
    expected = scanned(output)
    ids = random.Random(2).choices(sorted(expected), k=1000)
    with so2docs.open(output) as docs, ThreadPoolExecutor(8) as threads:
        for question_id, document in zip(ids, threads.map(docs.__getitem__, ids), strict=True):
            assert document == expected[question_id]


def test_copy_in_another_process(large: Path) -> None:
    with so2docs.open(large / NAMES[0]) as docs:
        with pickle.loads(pickle.dumps(docs)) as copy:
            assert copy.line(4) == docs.line(4)
        script = "import pickle, sys; print(len(pickle.loads(sys.stdin.buffer.read())))"
        result = run_python("-c", script, input=pickle.dumps(docs), encoding=None)
        assert int(result.stdout) == len(docs)


def test_standard_output_and_strays_have_no_index(tmp_path: Path) -> None:
    result = run("convert", SAMPLES / "strays.xml", "-", cwd=tmp_path)
    assert result.stdout.encode() == (SAMPLES / "strays.jsonl").read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == [".stdout.strays.gz"]
    so2docs.convert(SAMPLES / "strays.xml", tmp_path / NAMES[0], jobs=1, force=True)
    assert [path.name for path in tmp_path.glob("*.index*")] == [f".{NAMES[0]}.index"]


def test_names_of_the_package() -> None:
    for name in so2docs.__all__:
        assert getattr(so2docs, name) is not None
    assert "open" not in so2docs.__all__
    assert dir(so2docs) == sorted([*so2docs.__all__, "open"])
    with pytest.raises(AttributeError, match="nothing"):
        so2docs.nothing  # noqa: B018


def test_side_files_of_two_formats_keep_apart(tmp_path: Path) -> None:
    reports = [
        so2docs.convert(SAMPLES / "strays.xml", tmp_path / name, jobs=1)
        for name in ("questions.parquet", "questions.jsonl.gz")
    ]
    so2docs.convert(SAMPLES / "posts.xml", tmp_path / "questions.parquet", jobs=1, force=True)
    first, second = (Path(str(report.strays_path)) for report in reports)
    assert not first.exists()
    assert len(list(so2docs.read(second))) == sum(reports[1].strays.values())
    assert f"index                {tmp_path / '.questions.jsonl.gz.index'}" in str(reports[1])


def test_answer_ids_are_those_of_the_documents() -> None:
    answers = [5, -7, 0, 2**32 - 1, 2**32 + 5, -(2**63), 12_345_678_901]
    documents: list[dict[str, Any]] = [
        {
            "Id": 1,
            "PostTypeId": 1,
            "Title": '{"Id":9,"PostTypeId":2,',
            "Comments": [{"Id": 3, "PostId": 1}],
            "Answers": [{"Id": answer_id, "PostTypeId": 2, "Body": "x" * 300}],
        }
        for answer_id in answers
    ]
    documents += [{"Id": 2, "PostTypeId": 1, "Answers": [{"Id": 8, "PostTypeId": 2}]}]
    strange: list[dict[str, Any]] = [
        {"Id": 2, "Answers": [{"PostTypeId": 2, "Id": 8}]},
        {"Id": 2, "Answers": [{"Score": 1, "PostTypeId": 2}]},
        {"Id": 2, "Answers": [{"Id": 8, "X": "y", "PostTypeId": 2}]},
    ]
    for chosen in (documents, *([document] for document in strange), []):
        raw = b"".join(orjson.dumps(document) + b"\n" for document in chosen)
        assert find_answer_ids(raw) == pack_answer_ids(chosen)
    assert len(find_answer_ids(raw)) == 0
