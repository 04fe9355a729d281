"""Changes of documents before they are written, such as to the records of a data set.

An extension has the transforms and their options. It adds the options to those of a conversion, and
is called where its name is in the registry; without it, documents are written as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from so2docs.options.choices import BodyAs

METADATA = "metadata"
"""Column of records with source and attribution, which may be left out."""

RECORDS = "records.jsonl"
"""Name of the temporary file from which several files are made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transform:
    """The form of records, and what the documents must contain to make them.

    Attributes:
        name: Name for reports; empty if the records are documents.
        tables: Tables that must be nested.
        optional_tables: Tables that are nested if they are in the dump.
        body: Default form of the bodies.
        attributed: Whether documents get an attribution, which needs the host of the site. With
            `posts`, they get only the URL of each post and the licence of each text.
        needs_all_questions: Whether the option `accepted` leaves no questions out.
        files: The files that are made from the output at the end, if any, by name.
        is_by_site: Whether each record is a question with its id in `Id`, and each site has a
            folder with an output named `train`.
        later_until: Date until which the documents include questions that were asked after the date
            of `as_of`, as they were on this date. They have the member `ASKED_LATER`, and no
            `CommentCount`.
    """

    name: str = ""
    tables: tuple[str, ...] = ()
    optional_tables: tuple[str, ...] = ()
    body: BodyAs = "html"
    attributed: bool | Literal["posts"] = False
    needs_all_questions: bool = False
    files: Mapping[str, Any] = field(default_factory=dict)
    is_by_site: bool = False
    later_until: str | None = None

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """JSON Schema (2020-12) of a record; None if unknown. Parquet needs it."""
        return None

    @property
    def changes_documents(self) -> bool:
        """Whether anything but documents is written."""
        return bool(self.name or self.attributed)

    @property
    def needs_html(self) -> bool:
        """Whether the HTML of the bodies is changed before it is converted to another form."""
        return False


@dataclass(frozen=True, slots=True)
class TransformOptions:
    """The options of transforms. This class has none; an extension derives from it."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> TransformOptions:
        """Take the options from the values that `read_keywords` returns.

        Raises:
            OptionError: A value is not allowed.
        """
        return cls()

    @property
    def transform(self) -> Transform:
        """The requested transform; the default one changes nothing."""
        return Transform()

    def check(self, options: Any) -> None:
        """Check these options against all other options.

        Raises:
            OptionError: Two options contradict each other.
        """

    def prepare(self, report: Any) -> None:
        """Set the counts in the report that this transform counts to zero."""

    def apply(self, documents: Iterable[Any], counts: Any, options: Any) -> Iterable[Any]:
        """Change documents (`merge.Document`), and add to the counts of rows."""
        return documents

    def finish(self, names: Any, files: Any, provenance: Any, report: Any) -> None:
        """Make `Transform.files` from the complete output, which has its temporary name.

        Args:
            names: Paths of the output.
            files: The new files, which get the files that are made.
            provenance: Provenance of the output, without counts.
            report: Report, to which the counts of the files are added.
        """

    @staticmethod
    def find_output(output: str | None, values: Mapping[str, Any]) -> str | None:
        """Return the path of the output from which `Transform.files` are made, if any."""
        return None
