"""Sites with tables: the sample, a larger site made from it, and results of conversions."""

import os
from collections.abc import Sequence
from pathlib import Path

import so2docs
from support.dumps import strays_of, unpacked
from support.oracle_tables import FILES, Tables, nest
from support.places import SAMPLES

SITE = SAMPLES / "site"
COPIES = int(os.environ.get("SO2DOCS_TABLE_COPIES", "150"))


def converted(source: Path, output: Path, names: Sequence[str], **options: object) -> list[bytes]:
    """Convert, and return the result: the documents and, if any, its strays."""
    so2docs.convert(source, output, nest=names, **options)  # type: ignore[arg-type]
    return [unpacked(output), unpacked(strays_of(output))]


def expected(oracle: Tables) -> list[bytes]:
    return [b"".join(oracle.document_lines()), b"".join(oracle.stray_lines())]


def write_large_site(folder: Path, copies: int = COPIES) -> tuple[Path, list[bytes]]:
    """Write a site large enough to be interrupted: the sample repeated under other ids.

    Returns:
        Its folder, and the expected result.
    """
    for file in ("Posts.xml", *FILES.values()):
        head, *rows, end = (SITE / file).read_text(encoding="utf-8").split("  <row")
        rows.append(end.partition("/>")[0] + "/>\n")
        with (folder / file).open("w", encoding="utf-8") as out:
            out.write(head)
            for copy in range(copies):
                for row in rows:
                    out.write("  <row" + moved(row, copy))
            out.write(end.partition("/>")[2])
    return folder, expected(nest(folder, FILES))


def moved(row: str, copy: int) -> str:
    """Move the post ids and comment ids of a row, but not its user ids, to a separate range."""
    for name in ("Id", "PostId", "ParentId", "RelatedPostId", "AcceptedAnswerId"):
        before, attribute, rest = row.partition(f' {name}="')
        number, quote, after = rest.partition('"')
        if attribute and number.isdigit() and "DisplayName=" not in row[row.find("Reputation=") :]:
            row = f"{before}{attribute}{int(number) + 13_001 * copy}{quote}{after}"
    return row
