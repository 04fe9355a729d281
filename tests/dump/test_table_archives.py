"""Tables from archives, compressed files and pipes give the same bytes as the plain folder."""

import bz2
import gzip
import io
import lzma
import os
import random
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import py7zr
import pytest
from support.command import run_python
from support.dumps import row, strays_of, unpacked
from support.interruptions import stop_at_each_step
from support.oracle_tables import FILES
from support.packed import BZIP2, LZMA2, Counting, seven_zip, with_noise, zipped
from support.places import LONG
from support.table_sites import SITE, converted

import so2docs
from so2docs import zstd
from so2docs.dump import storage
from so2docs.dump.names import files_with, members_with, table_prefix
from so2docs.options.choices import Core
from so2docs.schema import POSTS, TABLES, Table

ALL_FILES = ["Posts.xml", *FILES.values()]
WANTED = [(SITE / f"questions{name}.jsonl").read_bytes() for name in ("", ".strays")]
COMMENTS = TABLES["comments"]
COPY = [{"id": py7zr.FILTER_COPY}]

Pack = Callable[[bytes], bytes]


def in_a_7z(path: Path, files: dict[str, bytes]) -> Path:
    """Make an archive with one solid block, in the order of names, as sites are published."""
    return seven_zip(path, {name: files[name] for name in sorted(files)}, BZIP2)


def in_a_7z_backwards(folder: Path) -> Path:
    """Make an archive in which every table precedes the posts."""
    names = ["Votes.xml", "Users.xml", "PostLinks.xml", "Badges.xml", "Comments.xml", "Posts.xml"]
    return seven_zip(folder / "tea.7z", {name: site_files()[name] for name in names}, BZIP2)


def in_a_zip(path: Path, files: dict[str, bytes]) -> Path:
    return zipped(path, {f"site/{name}": data for name, data in files.items()})


def site_files(folder: Path = SITE) -> dict[str, bytes]:
    files = {name: (folder / name).read_bytes() for name in ALL_FILES}
    return files | {"Badges.xml": b"<badges></badges>", "PostHistory.xml": b" " * 30_000}


def utf_16(data: bytes) -> bytes:
    return data.decode().replace('"utf-8"', '"utf-16"').encode("utf-16")


def in_one_7z(folder: Path) -> Path:
    return in_a_7z(folder / "tea.stackexchange.com.7z", site_files())


def in_one_7z_of_lzma(folder: Path) -> Path:
    return seven_zip(folder / "dump", dict(sorted(site_files().items())))


def in_one_zip(folder: Path) -> Path:
    return in_a_zip(folder / "tea.zip", site_files())


def in_a_folder_with_a_7z(folder: Path) -> Path:
    in_one_7z(folder)
    return folder


def in_a_7z_each(folder: Path) -> Path:
    """Make an archive for each table, as for Stack Overflow, with another site next to them."""
    for name, data in site_files().items():
        in_a_7z(folder / f"tea.com-{name.removesuffix('.xml')}.7z", {name: data})
        in_a_7z(folder / f"meta.tea.com-{name.removesuffix('.xml')}.7z", {name: b"<rows/>"})
    return folder / "tea.com-Posts.7z"


def in_a_7z_each_in_a_7z(folder: Path) -> Path:
    inner = folder / "inner"
    inner.mkdir()
    in_a_7z_each(inner)
    return seven_zip(folder / "all.7z", sorted(inner.glob("tea.com-*")), BZIP2)


def compressed(folder: Path) -> Path:
    packs: list[Pack] = [gzip.compress, bz2.compress, lzma.compress, zstd.compress, utf_16]
    for (name, data), pack in zip(site_files().items(), packs, strict=False):
        end = {zstd.compress: ".zst", utf_16: ""}.get(pack, ".gz")
        (folder / f"{name}{end}").write_bytes(pack(data))
    return folder


def mixed(folder: Path) -> Path:
    """Write plain posts, with plain and compressed tables next to them."""
    for name, data in site_files().items():
        (folder / name).write_bytes(data)
    seven_zip(folder / "Users.7z", [folder / "Users.xml"], BZIP2)
    (folder / "Users.xml").unlink()
    (folder / "votes.XML.bz2").write_bytes(bz2.compress((folder / "Votes.xml").read_bytes()))
    (folder / "Votes.xml").unlink()
    return folder / "Posts.xml"


PLACES = [
    in_one_7z,
    in_one_7z_of_lzma,
    in_a_7z_backwards,
    in_one_zip,
    in_a_folder_with_a_7z,
    in_a_7z_each,
    in_a_7z_each_in_a_7z,
    compressed,
    mixed,
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "given").mkdir()
    return tmp_path / "given"


@pytest.mark.parametrize(("place", "jobs"), [*((place, 1) for place in PLACES), (in_a_7z_each, 3)])
def test_same_bytes_from_anywhere(
    place: Callable[[Path], Path], jobs: int, folder: Path, tmp_path: Path
) -> None:
    source, output = place(folder), tmp_path / "questions.jsonl.gz"
    before = {path.name for path in folder.iterdir()}
    assert converted(source, output, ["all"], jobs=jobs, chunk_bytes=700) == WANTED
    assert {path.name for path in folder.iterdir()} == before
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {folder.name, output.name, strays_of(output).name, f".{output.name}.index"}


@pytest.mark.parametrize("place", [in_one_7z, in_a_7z_backwards], ids=lambda place: place.__name__)
def test_same_bytes_from_either_core(
    core: Core, place: Callable[[Path], Path], folder: Path, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"jobs": 1, "chunk_bytes": 700, "core": core}
    options["fields"] = "Id,Title,Comments.Id,Links.Id,Votes,Owner"
    expected = converted(SITE, tmp_path / "plain.jsonl.gz", ["all"], **options)
    assert converted(place(folder), tmp_path / "packed.jsonl.gz", ["all"], **options) == expected


def test_an_archive_is_read_once(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is decompressed twice, wherever the nested tables are."""
    names = ("Comments.xml", "Votes.xml", "Posts.xml", "Users.xml")
    archive = seven_zip(folder / "tea.7z", with_noise(SITE / name for name in names), BZIP2)
    monkeypatch.setattr(storage, "open_file", Counting)
    tables = ["comments", "votes", "users"]
    so2docs.convert(archive, tmp_path / "questions.jsonl", jobs=1, nest=tables)
    Counting.assert_read_once(archive)


def test_documents_from_an_archive_and_by_url(folder: Path) -> None:
    expected = list(so2docs.documents(SITE, jobs=1, nest="all"))
    for source in (in_one_7z(folder), f"file://{SITE}/Posts.xml"):
        assert list(so2docs.documents(source, nest="all")) == expected


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, utf_16])
def test_reads_tables_from_files_given_by_name(pack: Pack, folder: Path, tmp_path: Path) -> None:
    tables = {}
    for name, file in FILES.items():
        tables[name] = folder / f"{name}.packed"
        tables[name].write_bytes(pack((SITE / file).read_bytes()))
    # The file next to the posts has comments of another site, which are not an input.
    shutil.copy(SITE / "Posts.xml", folder)
    (folder / "Comments.xml").write_bytes(b"<comments></comments>")
    output = tmp_path / "questions.jsonl.gz"
    so2docs.convert(folder / "Posts.xml", output, jobs=1, tables=tables)
    assert [unpacked(output), unpacked(strays_of(output))] == WANTED


def test_reads_tables_from_an_archive_and_a_folder(folder: Path, tmp_path: Path) -> None:
    archive = in_one_7z(folder)
    output = tmp_path / "questions.jsonl"
    files = {"comments": archive, "votes": archive, "users": SITE, "links": SITE}
    so2docs.convert(SITE / "Posts.xml", output, jobs=1, tables=files)
    assert output.read_bytes() == WANTED[0]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes need POSIX")
def test_reads_a_table_from_a_pipe(folder: Path, tmp_path: Path) -> None:
    pipe, output = folder / "pipe", tmp_path / "questions.jsonl.gz"
    os.mkfifo(pipe)
    for comments in (b"<comments><row>", (SITE / "Comments.xml").read_bytes()):
        writer = threading.Thread(target=pipe.write_bytes, args=(gzip.compress(comments),))
        writer.start()
        try:
            so2docs.convert(SITE, output, jobs=1, nest="all", tables={"comments": pipe})
        except so2docs.TruncatedDumpError:
            # An input that can be read only once cannot be resumed.
            assert not output.with_name(f"{output.name}.spill").exists()
        writer.join()
    assert [unpacked(output), unpacked(strays_of(output))] == WANTED


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("pack", [in_a_7z, in_a_zip], ids=["7z", "zip"])
def test_missing_in_an_archive(
    pack: Callable[[Path, dict[str, bytes]], Path], name: str, folder: Path, tmp_path: Path
) -> None:
    files = site_files()
    del files[FILES[name]]
    archive = pack(folder / "tea.7z", files)
    # The archive of a whole site has all its tables, and files next to it may be of another site.
    shutil.copy(SITE / FILES[name], folder)
    problem = rf"has no {FILES[name]}, and none is next.*it holds .*Posts\.xml.*'{name}': FILE"
    with pytest.raises(so2docs.ArchiveError, match=problem):
        so2docs.convert(archive, tmp_path / "questions.jsonl.gz", nest="all")
    with pytest.raises(so2docs.ArchiveError, match=rf"has no {FILES[name]}; it holds"):
        so2docs.convert(SITE, tmp_path / "questions.jsonl.gz", tables={name: archive})
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]
    so2docs.convert(folder, tmp_path / "questions.jsonl.gz", nest="all", jobs=1)
    assert unpacked(tmp_path / "questions.jsonl.gz") == WANTED[0]


def with_two_votes(folder: Path) -> Path:
    shutil.copy(SITE / "Posts.xml", folder)
    for end in (".gz", ".bz2"):
        (folder / f"Votes.xml{end}").write_bytes(b"")
    return folder / "Posts.xml"


def with_no_table(folder: Path) -> Path:
    (folder / "packed.gz").write_bytes(gzip.compress(b"no table"))
    return SITE


@pytest.mark.parametrize(
    ("make", "options", "problem"),
    [
        (with_two_votes, {"nest": "votes"}, r"several files with votes; it .*'votes': FILE"),
        (
            with_no_table,
            {"tables": {"votes": "given/packed.gz"}},
            r"\(Votes\.xml\): is not a Votes\.xml",
        ),
    ],
)
def test_tables_that_cannot_be_nested(
    make: Callable[[Path], Path], options: Any, problem: str, folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(so2docs.DumpError, match=problem):
        so2docs.convert(make(folder), tmp_path / "questions.jsonl.gz", jobs=1, **options)


def test_place_in_a_table_of_an_archive(folder: Path, tmp_path: Path) -> None:
    files = site_files()
    files["Comments.xml"] = files["Comments.xml"].replace(b'<row Id="14"', b'<row Id="14" Id="1"')
    archive = in_a_7z(folder / "tea.7z", files)
    output = tmp_path / "questions.jsonl.gz"
    place = r"7z \(Comments\.xml\): is not well-formed XML .*, line 8, after comment 13;"
    for chunk_bytes in (600, None):
        with pytest.raises(so2docs.MalformedDumpError, match=place):
            so2docs.convert(archive, output, jobs=1, nest="all", chunk_bytes=chunk_bytes)
    skipped = so2docs.convert(archive, output, jobs=1, nest="all", errors="skip")
    assert skipped.resumed
    plain = tmp_path / "plain.jsonl.gz"
    for name in ALL_FILES:
        (folder / name).write_bytes(files[name])
    so2docs.convert(folder / "Posts.xml", plain, jobs=1, nest="all", errors="skip")
    assert unpacked(output) == unpacked(plain)
    assert unpacked(strays_of(output)) == unpacked(strays_of(plain))


@pytest.mark.parametrize("filters", [BZIP2, LZMA2, COPY], ids=["bzip2", "lzma2", "copy"])
def test_damaged_table(filters: list[dict[str, Any]], folder: Path, tmp_path: Path) -> None:
    files = {name: data for name, data in site_files().items() if name != "Badges.xml"}
    files["Votes.xml"] += b"<!--" + random.Random(1).randbytes(3000).hex().encode() + b"-->"
    archive = seven_zip(folder / "tea.7z", dict(sorted(files.items())), filters)
    output = tmp_path / "questions.jsonl.gz"
    data = bytearray(archive.read_bytes())
    data[-2000 if filters is COPY else -1000] ^= 0x55
    archive.write_bytes(data)
    with pytest.raises(so2docs.DumpError, match=r"tea\.7z.*(damaged|not well-formed)"):
        so2docs.convert(archive, output, jobs=1, nest="all")
    assert not output.exists()


def test_every_table_of_a_damaged_block_is_damaged(folder: Path) -> None:
    archive = in_one_7z(folder)
    data = bytearray(archive.read_bytes())
    data[len(data) // 2] ^= 0x55
    archive.write_bytes(data)
    tables = so2docs.inspect(archive, jobs=1).tables
    assert len(tables) > 4
    for table in tables.values():
        assert table.problem is not None
        assert "is a 7z archive that is damaged" in table.problem


class ChangesAtItsEnd(io.BytesIO):
    """Posts that replace another file after they were read."""

    def __init__(self, data: bytes, file: Path) -> None:
        super().__init__(data)
        self.file = file

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        if not data:
            self.file.write_bytes(gzip.compress(b"<votes></votes>"))
        return data


def test_a_changing_table(folder: Path, tmp_path: Path) -> None:
    votes = folder / "Votes.xml.gz"
    votes.write_bytes(gzip.compress((SITE / "Votes.xml").read_bytes()))
    output = tmp_path / "questions.jsonl.gz"
    # More than the read-ahead, so that the end comes after the tables were found.
    posts = (SITE / "Posts.xml").read_bytes().replace(b"</posts>", b" " * 12_000_000 + b"</posts>")
    with pytest.raises(so2docs.ChangedDumpError, match=r"Votes\.xml\.gz: changed before it was"):
        so2docs.convert(ChangesAtItsEnd(posts, votes), output, jobs=1, tables={"votes": votes})


@pytest.mark.skipif(os.name != "posix", reason="kills a process that it forks")
@pytest.mark.parametrize(
    ("place", "stride"),
    [
        (in_one_7z, 15),
        pytest.param(in_one_7z_of_lzma, 3, marks=pytest.mark.long),
        *(((in_a_7z_backwards, 1), (in_one_zip, 1)) if LONG else ()),
    ],
)
def test_killed_at_every_step_on_the_file_system(
    place: Callable[[Path], Path], stride: int, folder: Path, tmp_path: Path
) -> None:
    """The next run gives the same bytes as an undisturbed run and as the folder."""
    archive = place(folder)
    steps = stop_at_each_step(
        archive, tmp_path / "out", "kill", 1 if LONG else stride, {"nest": "all"}
    )
    assert steps > 20
    output = tmp_path / "out" / "questions.jsonl.gz"
    so2docs.convert(archive, output, jobs=1, nest="all", force=True)
    assert [unpacked(output), unpacked(strays_of(output))] == WANTED


TABLES_OF_X = ["x.com-Posts.7z", "x.com-Comments.7z", "x.com-Users.7z"]


@pytest.mark.parametrize(
    ("table", "names", "expected"),
    [
        *(
            (POSTS, ["license.txt", name], [name])
            for name in ("beer (1).7z", "beer.7z.1", "Posts (1).xml", "beer-Posts (1).xml.gz")
        ),
        (POSTS, ["Posts.xml.1", "Posts.xml"], ["Posts.xml"]),
        (POSTS, ["beer.7z.001", "Posts.xml.12345"], []),
        (COMMENTS, ["beer-Votes (1).7z", "beer-Users.7z.1"], []),
        (COMMENTS, ["a/Badges.xml", "a/COMMENTS.xml", "b/c/Comments.xml"], ["a/COMMENTS.xml"]),
        (COMMENTS, ["a/PostComments.xml"], []),
        (COMMENTS, TABLES_OF_X, ["x.com-Comments.7z"]),
        (COMMENTS, ["x.com-Posts.7z", "x.com.7z"], ["x.com.7z"]),
        (COMMENTS, TABLES_OF_X[::2], []),
    ],
)
def test_names_in_a_folder(table: Table, names: list[str], expected: list[str]) -> None:
    assert members_with(table, names) == expected


@pytest.mark.parametrize(
    ("names", "prefix", "expected"),
    [
        ([*TABLES_OF_X, "my-x.com-Comments.7z"], "x.com-", "x.com-Comments.7z"),
        (["x.com-comments.xml", "Comments.xml"], "x.com-", "x.com-comments.xml"),
        (["Comments.zip", "Comments.xml"], "", "Comments.xml"),
    ],
)
def test_names_next_to_a_dump(names: list[str], prefix: str, expected: str) -> None:
    assert files_with(COMMENTS, names, prefix) == [expected]


def test_prefixes() -> None:
    prefixes = {
        "stackoverflow.com-Posts.7z": "stackoverflow.com-",
        "beer-Posts (1).7z": "beer-",
        "posts.XML.gz": "",
        "beer.stackexchange.com.7z": None,
    }
    assert {name: table_prefix(POSTS, name) for name in prefixes} == prefixes


MEMORY = """
import sys, so2docs
report = so2docs.convert(sys.argv[1], sys.argv[2], jobs=1, nest="all", chunk_bytes=1_000_000)
print(report.peak_memory_bytes)
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="the system does not tell")
def test_memory_of_a_long_table(folder: Path) -> None:
    peaks = []
    for rows in (2_000, 80_000):
        users = (row(Id=n, DisplayName=n, AboutMe="x" * 500) for n in range(rows))
        files = site_files() | {"Users.xml": b"<users>" + b"".join(users) + b"</users>"}
        archive = in_a_zip(folder / f"{rows}.zip", files)
        result = run_python("-c", MEMORY, archive, folder / f"{rows}.jsonl", timeout=60)
        peaks.append(int(result.stdout))
    # The longer table has 43 MB.
    assert peaks[1] < peaks[0] + 20 * 2**20
