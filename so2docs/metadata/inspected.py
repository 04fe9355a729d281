"""What a dump is, as `so2docs inspect` found out, in the manifest of an output and in its card."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from so2docs.errors import OutputError
from so2docs.escape import for_html, for_terminal

_FILE = ("form", "bytes", "codecs", "sha256")
_TABLE = (
    *("rows", "first_date", "last_date", "is_ordered", "descents", "made_up", "with_licence"),
    *("comments", "repaired", "malformed"),
)
_CHECK = ("name", "checked", "differ", "examples")


def choose(
    inspections: Iterable[Mapping[str, Any]], read: Mapping[str, tuple[int, str | None]], name: str
) -> dict[str, Any]:
    """The inspection of the dump that an output was made of, as manifests have it.

    Args:
        inspections: What `so2docs inspect --json` prints.
        read: The files that the output was made of: bytes, and SHA-256 if it is known, by name.
        name: What the inspections are from, for messages.

    Raises:
        OutputError: No inspection matches these files, or the file is not an inspection.
    """
    try:
        for values in inspections:
            files = {
                os.path.basename(file["path"]): {key: file[key] for key in _FILE}
                for file in values["files"]
            }
            if all(_is_same(files.get(file), *known) for file, known in read.items()):
                return {
                    "site": values["site"],
                    "release": values["release"],
                    "files": files,
                    "tables": {
                        table: {key: facts[key] for key in _TABLE}
                        for table, facts in values["tables"].items()
                    },
                    "checks": [{key: check[key] for key in _CHECK} for check in values["checks"]],
                    "remarks": [_without_folder(text, files) for text in values["remarks"]],
                }
    except (KeyError, TypeError, AttributeError):
        raise OutputError(f"{name}: is not the JSON report of so2docs inspect") from None
    expected = ", ".join(f"{file} ({size:,} bytes)" for file, (size, _) in read.items())
    raise OutputError(f"{name}: is not the dump that the output was made of: {expected}")


def _without_folder(text: str, files: Iterable[str]) -> str:
    """A remark without the folder that a dump was in."""
    for name in files:
        text = re.sub(rf"\S*[/\\]({re.escape(name)})", r"\1", text)
    return text


def _is_same(file: Mapping[str, Any] | None, size: int, sha256: str | None) -> bool:
    if file is None or file["bytes"] != size:
        return False
    return None in (sha256, file["sha256"]) or sha256 == file["sha256"]


def section(inspection: Mapping[str, Any]) -> list[str]:
    """The lines of a card about a dump, from what `choose` returned."""
    lines = []
    for name, file in inspection["files"].items():
        codecs = (f"{codec} in {n:,} block{'s'[: n > 1]}" for codec, n in file["codecs"].items())
        lines.append(f"- `{name}`: {', '.join([file['form'], *codecs])}")
    last_date = max((table["last_date"] for table in inspection["tables"].values()), default="")
    if last_date:
        lines.append(f"- last row of {last_date[:10]}, so probably the release of that month")
    lines += ["", "| table | rows | first date | last date | rows with a licence |"]
    lines.append("|---|---:|---|---|---:|")
    for name, table in inspection["tables"].items():
        dates = table["first_date"][:10], table["last_date"][:10]
        cells = (f"{table['rows']:,}", *dates, f"{table['with_licence']:,}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    checks = inspection["checks"]
    differing = [check for check in checks if check["differ"]]
    notes = [_describe(check) for check in differing] + inspection["remarks"]
    if checks:
        equal = f"{len(checks) - len(differing):,} of {len(checks):,}"
        notes.insert(0, f"{equal} equalities between its counts and its rows hold")
    lines += ["", *(f"- {' '.join(for_html(note).split())}" for note in notes)]
    tables = inspection["tables"].values()
    for comment in dict.fromkeys(text for table in tables for text in table["comments"]):
        # As code, in which nothing is markup.
        lines += ["", "A comment in it says:", ""]
        lines += [f"    {line}" for line in for_terminal(comment).splitlines()]
    return lines


def _describe(check: Mapping[str, Any]) -> str:
    examples = ", ".join(map(str, check["examples"]))
    return (
        f"{check['name']}: does not hold for {check['differ']:,} of {check['checked']:,} "
        f"({examples})"
    )
