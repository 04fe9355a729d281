"""The named choices of options, and the properties of formats and compressions."""

from __future__ import annotations

from typing import Literal

from so2docs.registry import CAPABILITIES, LINES, FormatTraits

AnswersBy = Literal["id", "votes"]
BodyAs = Literal["html", "text", "markdown"]
Compression = Literal["gzip", "zstd", "none"]
Core = Literal["auto", "python", "compiled"]
SplitBy = Literal["year", "month"]
Errors = Literal["repair", "skip", "strict"]


FORMATS: dict[str, FormatTraits] = {
    "jsonl": FormatTraits("one JSON object per line", LINES),
    "json": FormatTraits("one array", (".json",)),
} | {name: traits for entry in CAPABILITIES.values() for name, traits in entry.formats.items()}
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
