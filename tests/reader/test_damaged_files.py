"""Damaged files give a `So2docsError`, whichever library decompresses them."""

import bz2
import gzip
import io
import lzma
import random
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from isal import igzip, igzip_lib, isal_zlib
from support.command import run
from support.dumps import some_rows, write_dump

import so2docs
from so2docs import zstd
from so2docs.dump.compressed import is_damage
from so2docs.errors import So2docsError
from so2docs.zstd import CompressionParameter, frame_compressor

KINDS = ("jsonl", "jsonl.gz", "jsonl.zst")
COMMANDS = {
    "inspect": ["inspect", "{damaged}"],
    "show": ["show", "{damaged}", "{id}"],
    "show an answer": ["show", "{damaged}", "1000000007"],
    "diff from": ["diff", "{damaged}", "{whole}", "{folder}/c.jsonl", "--force"],
    "diff to": ["diff", "{whole}", "{damaged}", "{folder}/c.jsonl", "--force"],
}
EXIT_CODES = {0, 1, 2, 3, 4, 5}


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the pause before an invalid index is read again, which would take most of the time."""
    monkeypatch.setattr("so2docs.reader.collection._PAUSE", 0)


def flipped(data: bytes, rng: random.Random) -> bytes:
    """Flip a bit, or replace eight bytes."""
    at = rng.randrange(4, len(data))
    if rng.random() < 0.5:
        return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
    return data[:at] + rng.randbytes(8) + data[at + 8 :]


@pytest.fixture(scope="module", params=KINDS)
def output(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outputs")
    dump = write_dump(folder / "Posts.xml", *some_rows(400, body_bytes=600))
    path = folder / f"q.{request.param}"
    so2docs.convert(dump, path, jobs=1, card=True)
    return path


def opened(path: Path) -> Iterator[dict[str, Any]]:
    with so2docs.open(path) as documents:
        yield from documents.values()


def test_read_and_open(output: Path, tmp_path: Path) -> None:
    whole, rng, damaged = output.read_bytes(), random.Random(11), tmp_path / output.name
    messages = []
    for _ in range(60):
        damaged.write_bytes(flipped(whole, rng))
        for reading in (so2docs.read, opened):
            try:
                list(reading(damaged))
            except So2docsError as error:
                messages.append(str(error))
    assert all(str(damaged) in message for message in messages)
    assert len(messages) > (0 if output.suffix == ".jsonl" else 100)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands(command: str, output: Path, tmp_path: Path) -> None:
    """Any exception other than a So2docsError fails the test."""
    with so2docs.open(output) as documents:
        number = next(iter(documents))
    whole, rng, damaged = output.read_bytes(), random.Random(12), tmp_path / output.name
    for name in (f".{output.name}.index", f"{output.name}.manifest.json"):
        if (output.parent / name).exists():
            (tmp_path / name).write_bytes((output.parent / name).read_bytes())
    words = {"damaged": damaged, "whole": output, "folder": tmp_path, "id": number}
    codes = set()
    for _ in range(6):
        damaged.write_bytes(flipped(whole, rng))
        result = run(*(word.format_map(words) for word in COMMANDS[command]))
        codes.add(result.returncode)
        assert result.returncode == 0 or str(tmp_path) in result.stderr
    assert codes <= EXIT_CODES
    if output.suffix != ".jsonl" and not command.startswith("show"):
        assert codes != {0}


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": frame_compressor(3, {CompressionParameter.checksum_flag: 1}),
}


DECOMPRESSORS: dict[str, tuple[str, Callable[[bytes], object]]] = {
    "gzip": ("gz", gzip.decompress),
    "zlib": ("gz", lambda data: zlib.decompress(data, 31)),
    "igzip": ("gz", lambda data: getattr(igzip, "open")(io.BytesIO(data)).read()),  # noqa: B009
    "igzip_lib": ("gz", lambda data: igzip_lib.decompress(data, igzip_lib.DECOMP_GZIP)),
    "isal_zlib": ("gz", lambda data: isal_zlib.decompress(data, 31)),
    "bz2": ("bz2", bz2.decompress),
    "lzma": ("xz", lzma.decompress),
    "zstd": ("zst", zstd.decompress),
}


@pytest.mark.parametrize("library", DECOMPRESSORS)
def test_errors_of_libraries_are_damage(library: str) -> None:
    kind, decompress = DECOMPRESSORS[library]
    whole, rng = PACKERS[kind](b"".join(some_rows(100))), random.Random(14)
    errors = []
    for number in range(200):
        data = whole[: number * len(whole) // 200] if number % 3 == 0 else flipped(whole, rng)
        try:
            decompress(data)
        except Exception as error:
            errors.append(error)
    assert errors
    assert all(map(is_damage, errors))


def test_other_errors_are_not_damage(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        (tmp_path / "none").open("rb")
    assert not is_damage(missing.value)
    assert not is_damage(So2docsError("said already"))
    assert not is_damage(MemoryError())


def test_an_error_of_the_disk_is_not_called_damage() -> None:
    class Failing(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell() > 100:
                raise OSError(5, "Input/output error")
            return super().read(50)

    file = Failing(b'{"Id":1}\n' * 100)
    with pytest.raises(so2docs.OutputError, match="Input/output error") as failed:
        list(so2docs.read(file))
    assert "damaged" not in str(failed.value)
