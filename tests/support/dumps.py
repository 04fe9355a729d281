"""Small dumps made row by row, and the files that a conversion leaves."""

import gzip
import random
from base64 import b64encode
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from so2docs import zstd

START = b'\xef\xbb\xbf<?xml version="1.0" encoding="utf-8"?>\r\n<posts>\r\n'
END = b"</posts>"

TABLES = {"Comments", "PostHistory", "PostLinks", "Votes", "Users", "Badges", "Tags"}


def row(**attributes: Any) -> bytes:
    """Format a row as in published dumps, with its line end."""
    written = "".join(f' {name}="{_escaped(str(value))}"' for name, value in attributes.items())
    return f"  <row{written} />\r\n".encode()


def _escaped(text: str) -> str:
    return escape(text, {'"': "&quot;", "\t": "&#x9;", "\n": "&#xA;", "\r": "&#xD;"})


def question(post_id: int, **attributes: Any) -> bytes:
    return row(Id=post_id, PostTypeId=1, **attributes)


def answer(post_id: int, parent_id: int, **attributes: Any) -> bytes:
    return row(Id=post_id, PostTypeId=2, ParentId=parent_id, **attributes)


def dump_of(*rows: bytes) -> bytes:
    return START + b"".join(rows) + END


def write_dump(path: Path, *rows: bytes) -> Path:
    """Write a dump, and make its folder; the file name determines the root element."""
    path.parent.mkdir(parents=True, exist_ok=True)
    root = path.stem.lower().encode() if path.stem in TABLES else b"posts"
    path.write_bytes(dump_of(*rows).replace(b"posts>", root + b">"))
    return path


def some_rows(
    count: int, seed: int = 1, body_bytes: int = 100, *, dense: bool = False
) -> list[bytes]:
    """Make questions and answers far apart over several buckets, with strays.

    Args:
        count: Number of questions and answers.
        seed: Seed of the random values.
        body_bytes: Bytes of each body.
        dense: Whether bodies compress worse than text does.
    """
    rng = random.Random(seed)
    ids = rng.sample(range(1, 40 * count), count)
    questions = ids[: count // 3]
    rows = [question(i, Body=rng.randbytes(body_bytes // 2).hex()) for i in questions]
    for post_id in ids[count // 3 :]:
        parent = rng.choice(questions) if rng.random() < 0.95 else 10**7
        body = b64encode(rng.randbytes(body_bytes)).decode() if dense else "b" * body_bytes
        rows.append(answer(post_id, parent, Score=rng.randint(-3, 9), Body=body))
    rows += [row(Id=7, PostTypeId=2), row(PostTypeId=1), row(Id=8, PostTypeId=5)]
    rng.shuffle(rows)
    return rows


def left_by(output: Path) -> dict[str, bytes]:
    """Return all files that a conversion wrote into the folder of an output."""
    return {
        str(path.relative_to(output.parent)): path.read_bytes()
        for path in sorted(output.parent.rglob("*"))
        if path.is_file()
    }


def unpacked(path: Path) -> bytes:
    """Return the decompressed content of a file; empty if it does not exist."""
    data = path.read_bytes() if path.exists() else b""
    if data.startswith(b"\x1f\x8b"):
        return gzip.decompress(data)
    if data.startswith((b"\x28\xb5\x2f\xfd", b"\x5e\x2a\x4d\x18")):
        return zstd.decompress(data)
    return data


def strays_of(output: Path) -> Path:
    """Return the path of the side file with the strays of an output, compressed like the output."""
    end = {".parquet": ".gz", ".ravendbdump": ".gz", ".gz": ".gz", ".zst": ".zst"}
    return output.with_name(f".{output.name}.strays{end.get(output.suffix, '')}")
