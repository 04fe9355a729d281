"""The tables of types, such as PostTypes, to which dumps refer but which they do not contain.

Names are those of the Stack Exchange Data Explorer, as documented for its schema
(https://meta.stackexchange.com/q/2677) and in the schema of the benchmark SQLStorm.
"""

from __future__ import annotations

import os
import re

from so2docs.dump.opening import SourceFile, TableFile
from so2docs.schema import (
    CLOSE_REASONS,
    HISTORY_TYPES,
    INTEGER,
    LINK_TYPES,
    TEXT,
    TYPE_NAMES,
    VOTE_TYPES,
    Table,
)

_WORD = re.compile("(?<=[a-z])(?=[A-Z])")
_NAMES = {
    "PostTypes": {1: "Question", 2: "Answer", **TYPE_NAMES},
    "VoteTypes": VOTE_TYPES,
    "LinkTypes": {number: name.capitalize() for number, name in LINK_TYPES.items()},
    "PostHistoryTypes": {
        **{number: _WORD.sub(" ", name) for number, name in HISTORY_TYPES.items()},
        31: "Discussion moved to chat",
        50: "CommunityBump",
        52: "SelectedHotQuestion",
        53: "RemovedHotQuestion",
        66: "CreatedFromWizard",
    },
    "CloseReasonTypes": {**CLOSE_REASONS, 1: "Exact Duplicate"},
}
TYPES = {stem: Table(stem, f"{stem}.xml", "type", {"Id": INTEGER, "Name": TEXT}) for stem in _NAMES}
"""The tables by name, which is also the name of their files."""


def write_types(folder: str) -> list[TableFile]:
    """Write the tables of types as XML, in the form of a dump, and describe the files."""
    files = []
    for name, table in TYPES.items():
        path = os.path.join(folder, table.file)
        rows = (f'  <row Id="{number}" Name="{text}" />\n' for number, text in _NAMES[name].items())
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"<{table.root}>\n{''.join(rows)}</{table.root}>\n")
        files.append(TableFile.of(table, SourceFile(path), table.file))
    return files
