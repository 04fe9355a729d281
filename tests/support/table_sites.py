"""The sample site with tables, and results of conversions."""

from collections.abc import Sequence
from pathlib import Path

import so2docs
from support.dumps import strays_of, unpacked
from support.places import SAMPLES

SITE = SAMPLES / "site"


def converted(source: Path, output: Path, names: Sequence[str], **options: object) -> list[bytes]:
    """Convert, and return the result: the documents and, if any, its strays."""
    so2docs.convert(source, output, nest=names, **options)  # type: ignore[arg-type]
    return [unpacked(output), unpacked(strays_of(output))]
