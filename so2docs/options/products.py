"""The options of products other than the outputs of a conversion.

Flags, keyword arguments, checks, docstrings and the options in provenance are derived from these
classes, as those of a conversion are from `table.py`. An option that a conversion has too is
declared there, and is declared here only as `like` it, with the words of this product.
"""

from __future__ import annotations

from dataclasses import dataclass

from so2docs.options.option import IdList
from so2docs.options.table import like


@dataclass(frozen=True, slots=True)
class ReplaceOptions:
    """Whether to replace existing files."""

    update: bool = like("update", "Replace files made from another input or with other options.")
    force: bool = like("force", "Overwrite existing files.")


@dataclass(frozen=True, slots=True)
class TagsOptions:
    """Options for reading the tags of a dump."""

    drop_users: IdList | None = like(
        "drop_users",
        "Leave out the excerpts and wikis by the users whose ids are in FILE, one per line.",
        more="Other excerpts and wikis do not name these users as editors.",
    )
    drop_posts: IdList | None = like(
        "drop_posts", "Leave out the excerpts and wikis whose ids are in FILE, one per line."
    )
    jobs: int | None = like("jobs")
    work_dir: str | None = like(
        "work_dir", "Folder for temporary files.", usually="the system's temporary folder"
    )
    progress: bool = like("progress")
