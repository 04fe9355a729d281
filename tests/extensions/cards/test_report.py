"""The summary of a conversion, and its report."""

import gzip
import re
import shutil
from pathlib import Path

from support.places import SAMPLES

import so2docs

SITE = SAMPLES / "site"


def test_the_summary_counts_the_strays_of_tables_in_the_side_file(tmp_path: Path) -> None:
    shutil.copytree(SITE, tmp_path / "site")
    posts = (tmp_path / "site" / "Posts.xml").read_bytes()
    (tmp_path / "site" / "Posts.xml").write_bytes(re.sub(rb"<row .*/>", b"", posts))
    report = so2docs.convert(tmp_path / "site", tmp_path / "q.jsonl.gz", nest="comments")
    strays = dict(report.lines())["strays"]
    count = sum(report.tables["comments"].strays.values())
    path = tmp_path / ".q.jsonl.gz.strays.gz"
    assert strays == f"0, and {count} of other tables -> {path}"
    assert gzip.decompress(path.read_bytes()).count(b"\n") == count > 0
