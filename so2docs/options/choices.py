"""The named choices of options, and the properties of formats and compressions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AnswersBy = Literal["id", "votes"]
BodyAs = Literal["html", "text", "markdown"]
Compression = Literal["gzip", "zstd", "none"]
Core = Literal["auto", "python", "compiled"]
SplitBy = Literal["year", "month"]
Errors = Literal["repair", "skip", "strict"]
TableErrors = Literal["repair", "skip"]
TableFormat = Literal["parquet", "csv", "jsonl", "sqlite", "arrow"]
SqlSystem = Literal["postgres", "mysql"]


@dataclass(frozen=True, slots=True)
class FormatTraits:
    """Properties of a format, known without importing its writer.

    Attributes:
        extensions: File name extensions that select the format; the first is the default.
        compressed: Whether files are compressed as a whole. If not, the format has a compression of
            its own.
        ids: Whether documents get an id for the target database.
        magic: First bytes of the files, if they contain their record.
        needs: Package that must be installed; None if no package is needed.
        work: Approximate cost of writing a byte, relative to reading one from a plain file.
    """

    extensions: tuple[str, ...]
    compressed: bool = True
    ids: bool = False
    magic: bytes = b""
    needs: str | None = None
    work: float = 1.0


_LINES = (".jsonl", ".ndjson")


FORMATS = {
    "jsonl": FormatTraits(_LINES),
    "json": FormatTraits((".json",)),
    "elasticsearch": FormatTraits(_LINES, ids=True),
    "mongodb": FormatTraits(_LINES, ids=True),
    "ravendb": FormatTraits((".ravendbdump", ".json"), ids=True),
    "parquet": FormatTraits(
        (".parquet",), compressed=False, magic=b"PAR1", work=8.0, needs="pyarrow"
    ),
}
"""The properties of each format."""

COMPRESSIONS: dict[str, Compression] = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
"""The compression for each file name extension."""

EXTENSIONS: dict[Compression, str] = {"gzip": ".gz", "zstd": ".zst", "none": ""}
"""The default file name extension of each compression."""

DATABASE_ENDINGS = (".db", ".sqlite", ".sqlite3")
"""Extensions of SQLite databases."""

UNCOMPRESSED = (".jsonl", ".ndjson", ".json")
"""Extensions of uncompressed outputs."""

GZIPPED = (".ravendbdump",)
"""Extensions of files that are gzip streams without `.gz`; RavenDB 4.1 imports nothing else."""


def split_compression(path: str) -> tuple[str, Compression | None]:
    """Split the compression extension off a path; without one, the compression is None."""
    for extension, compression in COMPRESSIONS.items():
        if path.endswith(extension):
            return path.removesuffix(extension), compression
    return path, None


def formats_from_name(path: str) -> list[str]:
    """List the formats with the extension of a path."""
    plain, _ = split_compression(path)
    return [name for name, traits in FORMATS.items() if plain.endswith(traits.extensions)]


def compression_from_name(path: str) -> Compression:
    """Return the compression selected by the name of an output.

    Names without a compression extension select `gzip`, except `-` and the extensions in
    `UNCOMPRESSED`.
    """
    is_plain = path == "-" or path.endswith(UNCOMPRESSED)
    return split_compression(path)[1] or ("none" if is_plain else "gzip")
