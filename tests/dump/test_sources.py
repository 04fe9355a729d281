"""Every form of a dump gives the same bytes as the plain file."""

import bz2
import gzip
import io
import lzma
import os
import random
import signal
import subprocess
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import py7zr
import pytest
from support.command import run_process, run_python, start
from support.places import SAMPLES

import so2docs
from so2docs import zstd
from so2docs.output.index import Index
from so2docs.zstd import CompressionParameter, frame_compressor

PLAIN = (SAMPLES / "posts.xml").read_bytes()
OTHERS = {"PostHistory.xml": b"<posthistory>" + b" " * 50_000, "Votes.xml": b"<votes/>"}

Pack = Callable[[bytes], bytes]


def in_two(compress: Pack, padding: bytes = b"") -> Pack:
    """Make two consecutive streams; the first ends within a row of the dump."""
    return lambda data: compress(data[:5000]) + padding + compress(data[5000:])


def zipped(method: int, name: str = "Posts.xml") -> Pack:
    def pack(data: bytes) -> bytes:
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", method) as members:
            members.writestr("PostHistory.xml", OTHERS["PostHistory.xml"])
            members.writestr(name, data)
        return archive.getvalue()

    return pack


def seven_zip(*filters: int, name: str = "Posts.xml", password: str | None = None) -> Pack:
    """Make an archive as published: the posts between other tables, in one solid block."""

    def pack(data: bytes) -> bytes:
        archive = io.BytesIO()
        chain = [{"id": number} for number in filters]
        with py7zr.SevenZipFile(archive, "w", filters=chain, password=password) as members:
            members.writestr(OTHERS["PostHistory.xml"], "PostHistory.xml")
            members.writestr(data, name)
            members.writestr(OTHERS["Votes.xml"], "Votes.xml")
        return archive.getvalue()

    return pack


def both(outer: Pack, inner: Pack) -> Pack:
    return lambda data: outer(inner(data))


FORMS: dict[str, Pack] = {
    "gzip": gzip.compress,
    "gzip-members": in_two(gzip.compress),
    "bzip2": bz2.compress,
    "bzip2-streams": in_two(bz2.compress),
    "xz": lzma.compress,
    "xz-streams": in_two(lzma.compress, bytes(8)),
    "zstd": zstd.compress,
    "zstd-frames": in_two(zstd.compress),
    "zstd-checksum": frame_compressor(3, {CompressionParameter.checksum_flag: 1}),
    "zip-deflate": zipped(zipfile.ZIP_DEFLATED),
    "zip-stored": zipped(zipfile.ZIP_STORED),
    "zip-folder-lower-case": zipped(zipfile.ZIP_DEFLATED, "beer/posts.xml"),
    "7z-bzip2": seven_zip(py7zr.FILTER_BZIP2),
    "7z-lzma": seven_zip(py7zr.FILTER_LZMA),
    "7z-lzma2": seven_zip(py7zr.FILTER_LZMA2),
    "7z-copy": seven_zip(py7zr.FILTER_COPY),
    "7z-folder-upper-case": seven_zip(py7zr.FILTER_LZMA2, name="Beer/POSTS.XML"),
    "7z-in-7z": both(
        seven_zip(py7zr.FILTER_LZMA2, name="beer-Posts.7z"), seven_zip(py7zr.FILTER_BZIP2)
    ),
}
DAMAGED = ["gzip", "bzip2", "xz", "zstd-checksum", "zip-deflate", "7z-bzip2", "7z-lzma2"]


def everything(folder: Path) -> dict[str, bytes]:
    """Return the files of a conversion by name; the index lacks the name of the dump."""
    return {
        path.name: segments_of(path.read_bytes())
        if path.name.endswith(".index")
        else path.read_bytes()
        for path in folder.iterdir()
    }


def segments_of(index: bytes) -> bytes:
    """Return an index without its provenance, which names the dump, and without its checksum."""
    record = Index(index).record
    assert b'"input":' in record
    # The last numbers are the length of the record and the checksum.
    return index.replace(record, b"")[:-8]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files that the plain dump gives."""
    output = tmp_path_factory.mktemp("plain") / "questions.jsonl.gz"
    so2docs.convert(SAMPLES / "posts.xml", output, jobs=1)
    return everything(output.parent)


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """The path of an output in an empty folder."""
    folder = tmp_path / "out"
    folder.mkdir()
    return folder / "questions.jsonl.gz"


def write_file(data: bytes) -> Path:
    """Write a dump to a file without an extension in the folder of the test."""
    path = Path("dump").absolute()
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_bytes(
    form: str, output: Path, expected: dict[str, bytes]
) -> None:
    report = so2docs.convert(write_file(FORMS[form](PLAIN)), output, jobs=1, chunk_bytes=3000)
    assert everything(output.parent) == expected
    assert report.dump_bytes == len(PLAIN)


@pytest.mark.parametrize("form", ["plain", "7z-bzip2"])
def test_standard_input(form: str, output: Path, expected: dict[str, bytes]) -> None:
    forms = FORMS | {"plain": bytes}
    result = run_process(
        *("convert", "-", output, "--jobs", "1", "--quiet"),
        input=forms[form](PLAIN),
        encoding=None,
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")
    assert everything(output.parent) == expected


@pytest.mark.parametrize("form", ["plain", "gzip", "7z-lzma2"])
def test_open_file_stays_open(form: str, output: Path, expected: dict[str, bytes]) -> None:
    file = io.BytesIO((FORMS | {"plain": bytes})[form](PLAIN))
    so2docs.convert(file, output, jobs=1)
    assert everything(output.parent) == expected
    assert not file.closed


def utf_16(data: bytes) -> bytes:
    return data.decode("utf-8-sig").replace('"utf-8"', '"utf-16"').encode("utf-16")


ENCODINGS: dict[str, Pack] = {
    "utf-16": utf_16,
    "utf-16-le": lambda data: utf_16(data)[2:],
    "utf-16-be": lambda data: utf_16(data).decode("utf-16").encode("utf-16-be"),
    "us-ascii": lambda data: data.replace(b'"utf-8"', b'"us-ascii"'),
    "utf-8-declared-as-utf-16": lambda data: data.replace(b'"utf-8"', b'"utf-16"'),
    "utf-16-in-gzip": lambda data: gzip.compress(utf_16(data)),
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_same_bytes_from_any_encoding(
    encoding: str, output: Path, expected: dict[str, bytes]
) -> None:
    so2docs.convert(write_file(ENCODINGS[encoding](PLAIN)), output, jobs=1, chunk_bytes=3001)
    assert everything(output.parent) == expected


class Dripping(io.BytesIO):
    """A file that returns one byte at a time, as a pipe may."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(1, 1 if size is None else size))


@pytest.mark.parametrize("form", ["gzip", "bzip2", "zstd", "7z-in-7z", "utf-16"])
def test_a_stream_of_single_bytes(form: str, output: Path, expected: dict[str, bytes]) -> None:
    so2docs.convert(Dripping((FORMS | ENCODINGS)[form](PLAIN)), output, jobs=1)
    assert everything(output.parent) == expected


def test_counts_invalid_characters_of_an_encoding(output: Path) -> None:
    text = '<posts><row Id="1" PostTypeId="1" Title="a\ufffdb?c"/></posts>'
    lone_surrogate = text.encode("utf-16-le").replace(b"?\0", b"\x00\xd8")
    report = so2docs.convert(write_file(b"\xff\xfe" + lone_surrogate), output, jobs=1)
    assert report.repaired_characters == 1
    assert next(so2docs.read(output))["Title"] == "a\ufffdb\ufffdc"


@pytest.mark.parametrize("form", DAMAGED)
def test_cut_off_anywhere_is_an_error(form: str, output: Path) -> None:
    data = FORMS[form](PLAIN)
    for size in range(8, len(data), len(data) // 5):
        with pytest.raises(
            so2docs.DumpError, match=r"truncated|is empty|not a Posts\.xml"
        ) as failed:
            so2docs.convert(write_file(data[:size]), output, jobs=1, restart=True)
        assert "download it again" in str(failed.value) or "complete" in str(failed.value)
        assert not output.exists()


@pytest.mark.parametrize("form", DAMAGED)
def test_damage_anywhere_is_noticed_or_harmless(
    form: str, output: Path, expected: dict[str, bytes]
) -> None:
    data = FORMS[form](PLAIN)
    noticed = 0
    for place in range(8, len(data), len(data) // 9):
        damaged = bytearray(data)
        damaged[place] ^= 0x55
        try:
            so2docs.convert(write_file(bytes(damaged)), output, jobs=1, restart=True, force=True)
        except so2docs.DumpError:
            noticed += 1
        else:
            assert output.read_bytes() == expected[output.name]
    assert noticed > 3


@pytest.mark.parametrize("rest", [b"garbage", b"\x1f", b"\n", b"\0" * 600 + b"x" * 300_000])
def test_bytes_after_a_gzip_file(rest: bytes, output: Path, expected: dict[str, bytes]) -> None:
    """They are ignored, as gzip does; a truncated second file is an error."""
    data = gzip.compress(PLAIN)
    so2docs.convert(write_file(data + rest), output, jobs=1)
    assert output.read_bytes() == expected[output.name]
    with pytest.raises(so2docs.TruncatedDumpError, match="is a gzip file that is truncated"):
        so2docs.convert(write_file(data + data[:30]), output, jobs=1, restart=True, force=True)


def test_place_in_a_damaged_file(bad_row: Path, output: Path) -> None:
    whole = gzip.decompress(bad_row.read_bytes())
    bad_row.write_bytes(gzip.compress(whole)[:-40_000])
    with pytest.raises(
        so2docs.TruncatedDumpError, match="is a gzip file that is truncated"
    ) as failed:
        so2docs.convert(bad_row, output, jobs=1, chunk_bytes=10_000)
    place = failed.value.location
    assert place is not None
    assert place.offset > len(whole) // 2
    assert place.last_id == whole[: place.offset].count(b"\n") - 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes need POSIX")
def test_named_pipe(tmp_path: Path, output: Path, expected: dict[str, bytes]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with start("convert", pipe, output, "--jobs", "1", "--quiet") as running:
        pipe.write_bytes(gzip.compress(PLAIN))
        assert running.wait(timeout=60) == 0
    assert everything(output.parent) == expected


def encrypted_zip(data: bytes) -> bytes:
    archive = bytearray(zipped(zipfile.ZIP_STORED)(data))
    for signature, flags in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        archive[archive.rfind(signature) + flags] |= 1
    return bytes(archive)


def doubled(data: bytes) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as members:
        members.writestr("Posts.xml", data)
        with pytest.warns(UserWarning, match="Duplicate name"):
            members.writestr("Posts.xml", b"<posts/>")
    return archive.getvalue()


ENCRYPTED_7Z = seven_zip(
    py7zr.FILTER_LZMA2, py7zr.FILTER_CRYPTO_AES256_SHA256, password="secret word"
)
UNREADABLE: list[tuple[Pack, type[so2docs.DumpError], str]] = [
    (
        zipped(zipfile.ZIP_DEFLATED, "Users.xml"),
        so2docs.ArchiveError,
        r"no Posts\.xml.*PostHistory\.xml, Users\.xml",
    ),
    (ENCRYPTED_7Z, so2docs.ArchiveError, "is encrypted"),
    (encrypted_zip, so2docs.ArchiveError, "is encrypted"),
    (lambda data: gzip.compress(b""), so2docs.DumpError, "is empty"),
    (
        zipped(zipfile.ZIP_BZIP2),
        so2docs.ArchiveError,
        "compressed with method 12, which so2docs does",
    ),
    (
        both(gzip.compress, seven_zip(py7zr.FILTER_BZIP2)),
        so2docs.DumpError,
        "holds a 7z archive that is packed again; unpack it first, such as with 7z x",
    ),
    (
        both(zipped(zipfile.ZIP_STORED, "Posts.xml.gz"), gzip.compress),
        so2docs.DumpError,
        "holds a gzip file that is packed again",
    ),
    (doubled, so2docs.ArchiveError, r"holds 2 files named Posts\.xml"),
]


@pytest.mark.parametrize(("pack", "error", "problem"), UNREADABLE)
def test_unreadable_forms(
    pack: Pack, error: type[so2docs.DumpError], problem: str, output: Path
) -> None:
    with pytest.raises(error, match=problem):
        so2docs.convert(write_file(pack(PLAIN)), output)


@pytest.fixture
def bad_row(output: Path) -> Path:
    """An archive with a malformed row near its end, so that a conversion fails there."""
    rng = random.Random(1)
    rows = [
        b'<row Id="%d" PostTypeId="1" Body="%s"/>\n' % (number, rng.randbytes(200).hex().encode())
        for number in range(1, 2000)
    ]
    rows[1900] = rows[1900].replace(b'"/>', b"/>")
    path = output.parent.parent / "dump.gz"
    path.write_bytes(gzip.compress(b"<posts>\n" + b"".join(rows) + b"</posts>"))
    return path


def test_resumes_after_an_error(bad_row: Path, output: Path) -> None:
    with pytest.raises(so2docs.MalformedDumpError) as failed:
        so2docs.convert(bad_row, output, jobs=1, chunk_bytes=10_000)
    assert failed.value.location is not None
    assert failed.value.location.last_id == 1900
    assert failed.value.location.line == 1902
    report = so2docs.convert(bad_row, output, jobs=1, errors="skip")
    assert report.resumed
    assert report.rows == 1999
    again = output.parent.parent / "again.jsonl.gz"
    so2docs.convert(bad_row, again, jobs=1, errors="skip")
    assert output.read_bytes() == again.read_bytes()


def test_interrupted_pipe_starts_over(output: Path) -> None:
    streams = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start("convert", "-", output, "--jobs", "1", **streams) as running:
        assert running.stdin is not None
        assert running.stderr is not None
        # A piece of more than 1 MiB is visible as a file.
        running.stdin.write(PLAIN[:9000].ljust(2 * 1024 * 1024))
        running.stdin.flush()
        while not list(output.parent.glob("*.spill/pieces*/*")):
            assert running.poll() is None
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=60) == 130
        assert b"starts over" in running.stderr.read()
    assert not list(output.parent.iterdir())


def unending() -> bytes:
    return b"<posts>" + b" " * 150_000_000


MEASURED = """
import resource, sys, so2docs
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    {call}
except so2docs.So2docsError as error:
    print(getattr(error, "problem", error))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def measured(call: str, *arguments: Path) -> tuple[str, int]:
    """Return the error of a call, and the MiB of memory that it takes."""
    result = run_python("-c", MEASURED.format(call=call), *arguments, timeout=120)
    problem, mebibytes = result.stdout.splitlines()
    return problem, int(mebibytes)


def four_times(pack: Pack, start: bytes) -> bytes:
    return pack(start) + pack(b" " * 50_000_000) * 4


def half_a_tag(data: bytes) -> bytes:
    return gzip.compress(data.replace(b">", b"></posts", 1), 1)


@pytest.mark.long
@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (
            partial(four_times, gzip.compress, b""),
            "is not a Posts.xml: no root element such as <posts> in its first",
        ),
        (
            partial(four_times, bz2.compress, b'<posts><row Id="1" Body="'),
            "has no <row in 128 MiB",
        ),
        (partial(four_times, gzip.compress, b"<posts></posts>"), "has content after"),
        # Decoders return at most the requested bytes.
        (lambda: zipped(zipfile.ZIP_DEFLATED)(unending()), "has no <row in 128 MiB"),
        (lambda: half_a_tag(unending()), "has content after"),
    ],
)
def test_bombs_take_no_memory(
    make: Callable[[], bytes], problem: str, tmp_path: Path, output: Path
) -> None:
    bomb = tmp_path / "bomb"
    bomb.write_bytes(make())
    found, mebibytes = measured("so2docs.convert(*sys.argv[1:], jobs=1)", bomb, output)
    assert found.startswith(problem)
    assert mebibytes < 150


BLANKS = 800_000_000


@pytest.mark.long
@pytest.mark.parametrize(
    ("pack", "call"),
    [
        (partial(gzip.compress, compresslevel=1), "list(so2docs.read(sys.argv[1]))"),
        (zstd.compress, "so2docs.open(sys.argv[1])"),
        (zstd.compress, "so2docs.inspect_output(sys.argv[1])"),
    ],
)
def test_a_bomb_as_an_output_takes_bounded_memory(pack: Pack, call: str, tmp_path: Path) -> None:
    bomb = tmp_path / "q.jsonl.x"
    bomb.write_bytes(pack(b" " * BLANKS))
    problem, mebibytes = measured(call, bomb)
    assert problem
    assert mebibytes < 700


@pytest.mark.skipif(os.name == "nt", reason="pseudo-terminals are of Unix")
def test_a_terminal_is_not_waited_for(tmp_path: Path) -> None:
    import pty

    terminal, of_command = pty.openpty()
    try:
        result = run_python(
            "-m", "so2docs", "convert", "-", "q.jsonl", stdin=of_command, cwd=tmp_path, code=None
        )
    finally:
        os.close(terminal)
        os.close(of_command)
    assert (result.returncode, list(tmp_path.iterdir())) == (1, [])
    assert "standard input: is a terminal" in result.stderr
