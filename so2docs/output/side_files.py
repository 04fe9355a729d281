"""Names of the files next to an output: index, strays, manifest and lock.

Whoever reads a folder or a glob of outputs must not come upon them. A name that starts with a dot
keeps out of what folders are read with (Spark, Arrow, Hugging Face, shells) and one that does not
end like data out of the globs of those that take names with a dot, too (DuckDB, Polars,
ClickHouse). They are named after the whole output, so that those of two formats do not meet.
"""

from __future__ import annotations

import os

INDEX, STRAYS, MANIFEST, LOCK, RECORD = "index", "strays", "manifest", "lock", "record"


def side_file(output: str, what: str) -> str:
    """The file next to an output that holds its index, its strays or its manifest."""
    folder, name = os.path.split(output)
    return os.path.join(folder, f".{name}.{what}")
