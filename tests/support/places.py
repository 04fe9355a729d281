"""Paths of the checkout, the samples and the published dumps."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
SAMPLES = CHECKOUT / "samples"
DUMPS = Path(os.environ.get("SO2DOCS_DUMPS") or CHECKOUT.parent / "shared" / "dumps")
SMALL = 300_000
"""Bytes of a published dump, packed, that every run of the tests reads; larger ones are `long`."""
LONG = bool(os.environ.get("SO2DOCS_LONG"))
"""Whether to test every combination, not only those of an ordinary run."""
NO_DUMPS = f"no published dumps in {DUMPS}: set SO2DOCS_DUMPS to a folder that has them"


def is_small(source: Path) -> bool:
    """Whether a published dump, or its folder, is small enough to be read in every run."""
    files = [source] if source.is_file() else source.iterdir()
    return sum(file.stat().st_size for file in files) < SMALL


def version(path: Path) -> tuple[int, int, int]:
    """Return the inode, size and modification time of a file: equal if nothing wrote it in between.

    The whole result of ``stat`` also has the time of the last access, which reading changes.
    """
    state = path.stat()
    return state.st_ino, state.st_size, state.st_mtime_ns


@contextmanager
def limited_files(most: int) -> Iterator[None]:
    """Let no file grow beyond a size, as on a full disk."""
    import resource

    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, unlimited[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)


def published(*tables: str) -> list[Any]:
    """Return the published dumps with some tables, each a folder or an archive, as parameters.

    Without any, the only parameter is skipped.
    """
    sources = [path.parent for path in DUMPS.glob("*/Posts.xml.gz")]
    sources = [one for one in sources if all((one / f"{name}.xml.gz").exists() for name in tables)]
    return [
        pytest.param(
            source,
            id=source.name.removesuffix(".7z"),
            marks=[pytest.mark.long] * (not is_small(source)),
        )
        for source in sorted([*sources, *DUMPS.glob("archives/*.7z")])
    ] or [pytest.param(None, id="none", marks=pytest.mark.skip(NO_DUMPS))]
