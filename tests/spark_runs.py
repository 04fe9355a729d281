"""What the tests on Spark share: when they can run, and what must be the same."""

import gzip
import os
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import so2docs

SAMPLES = Path(__file__).resolve().parents[1] / "samples"
SAMPLE_NAMES = sorted(path.stem for path in SAMPLES.glob("*.xml"))

JAVA = shutil.which(
    "java", path=f"{os.environ['JAVA_HOME']}/bin" if "JAVA_HOME" in os.environ else None
)
MISSING = [
    name for name, is_there in (("PySpark", find_spec("pyspark")), ("Java", JAVA)) if not is_there
]
needs_spark = pytest.mark.skipif(
    bool(MISSING), reason=f"{' and '.join(MISSING)} missing: make test-spark installs PySpark"
)
slow = pytest.mark.skipif(
    "SO2DOCS_SPARK_SLOW" not in os.environ,
    reason="starts a cluster of its own, which takes half a minute: make test-spark",
)


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


def present(post: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in post.items() if value is not None}
