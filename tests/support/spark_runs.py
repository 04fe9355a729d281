"""What the tests on Spark share: when they can run, and what must be the same."""

import gzip
import random
from pathlib import Path
from typing import Any

import so2docs
from so2docs import spark as on_spark
from support.places import SAMPLES

SAMPLE_NAMES = sorted(path.stem for path in SAMPLES.glob("*.xml"))


def lines_of(folder: Path, pattern: str = "part-*.jsonl.gz") -> list[bytes]:
    """The lines of the part files, one after the other."""
    return [line for path in sorted(folder.glob(pattern)) for line in gzip.open(path)]


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def sparse_dump(path: Path, ids: range, malformed: int | None = None) -> Path:
    """A dump whose ids lie far apart, with answers before, and long after, their questions."""
    rows = []
    for number, post_id in enumerate(ids):
        kind = "2" if number % 3 else "1"
        parent = ids[(number * 7) % len(ids) // 3 * 3]
        link = f' ParentId="{parent}"' if kind == "2" else ""
        body = "&#xA;".join([f"post {post_id}"] * (number % 40))
        end = "" if post_id == malformed else "/>"
        rows.append(f'  <row Id="{post_id}" PostTypeId="{kind}"{link} Body="{body}" {end}')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("<posts>\n" + "\n".join(rows) + "\n</posts>\n")
    return path


def noisy_dump(path: Path, ids: range) -> Path:
    """A dump with an answer to each question and bodies that compression hardly makes smaller."""
    noise = random.Random(1)
    rows = []
    for post_id in ids:
        body = noise.randbytes(10_000).hex()
        rows.append(f'  <row Id="{post_id}" PostTypeId="1" Body="{body}" />')
        rows.append(f'  <row Id="{post_id + 1}" PostTypeId="2" ParentId="{post_id}" />')
    noise.shuffle(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("<posts>\n" + "\n".join(rows) + "\n</posts>\n")
    return path


COUNTED = (
    "rows",
    "questions",
    "answers",
    "strays",
    "other_types",
    "filtered",
    "repaired_characters",
    "core",
)


def assert_same_counts(found: so2docs.Report, plain: so2docs.Report) -> None:
    """Both reports count the same rows."""
    for name in COUNTED:
        assert getattr(found, name) == getattr(plain, name), name


def assert_same_as_plain(dump: Path, folder: Path, plain: Path, **options: Any) -> None:
    """Lines and counts of a site's folder are those of `so2docs.convert`."""
    plain.mkdir()
    so2docs.convert(dump, plain / "questions.jsonl.gz", jobs=1, **options)
    assert lines_of(folder) == lines_of(plain, "questions.jsonl.gz")
    assert lines_of(folder, ".strays-*") == lines_of(plain, ".questions.jsonl.gz.strays")
    assert (folder / "_SUCCESS").exists()
    assert not (folder / "_temporary").exists()


def assert_same_as_parquet(
    session: Any, folder: Path, dump: Path, frame: Any = None, **options: Any
) -> None:
    """A data frame, or that of `documents`, has the schema and the rows of `--format parquet`."""
    if frame is None:
        frame = on_spark.documents(session, dump, schema=True, **options)
    file = folder / f"{dump.stem}.parquet"
    so2docs.convert(dump, file, jobs=1, site_field=("Site", dump.stem), **options)
    parquet = session.read.parquet(str(file))
    assert frame.schema == parquet.schema
    rows, wanted = (
        [row.asDict(recursive=True) for row in one.collect()] for one in (frame, parquet)
    )
    assert rows == wanted
    assert rows


def present(post: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in post.items() if value is not None}
