"""`so2docs verify`: an output against its manifest, next to it or in its report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any

import orjson

from so2docs.dump.storage import unreadable_output
from so2docs.errors import OutputError, flag
from so2docs.metadata.manifest import File, Manifest, load, load_from_report, manifest_path
from so2docs.output.existing import read_provenance
from so2docs.progress import bar, log
from so2docs.reader.reading import read_lines

_AGAIN = (
    f"convert the dump again with {flag('card', True)} or {flag('report')}, or copy the "
    "output again"
)
_READ = ("jsonl", "json")
"""Formats whose documents are read."""

Check = Callable[[Any], object]


@dataclass(frozen=True, slots=True)
class Verified:
    """An output that is as its manifest says.

    Attributes:
        output: Its name.
        files: Files whose size and SHA-256 fit.
        documents: Documents or records that were counted; None for Parquet and formats of other
            programs, whose hash has to do.
        validated: Whether each of them was held against the JSON Schema.
        hashed: Whether the SHA-256 was known: not that of standard output.
    """

    output: str
    files: int
    documents: int | None
    validated: bool
    hashed: bool = True

    def as_dict(self) -> dict[str, Any]:
        """All fields in JSON types."""
        return asdict(self)

    def __str__(self) -> str:
        what = "SHA-256" if self.hashed else "size"
        files = f"{self.files:,} file{'s'[: self.files > 1]} with the {what} of the manifest"
        documents = "" if self.documents is None else f", {self.documents:,} documents"
        return f"{self.output}: {files}{documents}{', valid by its schema' * self.validated}"


def verify(
    output: str | os.PathLike[str],
    *,
    report: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> Verified:
    """Check an output against the manifest that `card` wrote next to it, or that of a report.

    Size and SHA-256 of each file; the number of documents and of answers; and each document against
    the JSON Schema in the manifest, which needs jsonschema-rs (the extra `verify`). Of formats
    other than `jsonl` and `json`, only the first. One document is in memory.

    Args:
        output: Name of the output, as `convert` was given it, in any folder. What went to standard
            output may have any name; of it, the SHA-256 is not known.
        report: File with the report, as `--report` writes it, or that of several conversions.
        progress: Show a progress bar.

    Returns:
        What was checked.

    Raises:
        OutputError: Something is not as the manifest says, or there is none; the first difference.
    """
    name = os.fspath(output)
    source = manifest_path(name) if report is None else os.fspath(report)
    if report is None and not os.path.exists(source):
        try:
            os.stat(name)
        except OSError as error:
            raise unreadable_output(name, error) from error
    manifest = load(source, "give its report") if report is None else load_from_report(source, name)
    is_named = manifest.output != "-"
    names = [file.name for file in manifest.files] if is_named else [os.path.basename(name)]
    paths = [os.path.join(os.path.dirname(name), of_file) for of_file in names]
    for path, file in zip(paths, manifest.files, strict=True):
        _check_file(path, file)
        _check_record(path, manifest)
    if manifest.options.get("format") not in _READ:
        return Verified(name, len(paths), None, validated=False, hashed=is_named)
    check = _validator(manifest, source)
    total = sum(file.bytes for file in manifest.files)
    documents = answers = 0
    with bar("verifying", total, shown=progress) as progress_bar:
        for path, file in zip(paths, manifest.files, strict=True):
            for where, document in _documents(path):
                _validate(check, where, document)
                documents += 1
                answers += len(document.get("Answers", ()))
            progress_bar.update(file.bytes)
    _check_counts(name, manifest, documents, answers)
    return Verified(name, len(paths), documents, check is not None, is_named)


def _check_file(path: str, recorded: File) -> None:
    try:
        actual = File.of(path)
    except OSError as error:
        raise OutputError(f"{path}: cannot be read ({error.strerror}); {_AGAIN}") from error
    for what in ("bytes", "sha256"):
        value, recorded_value = getattr(actual, what), getattr(recorded, what)
        if value != recorded_value and recorded_value is not None:
            raise OutputError(
                f"{path}: has {what} {value}, its manifest says {recorded_value}; {_AGAIN}"
            )


def _check_record(path: str, manifest: Manifest) -> None:
    """Compare how a file says that it was made with what the manifest says."""
    provenance = read_provenance(path)
    if provenance is None:
        log.info(f"{path}: no record of how it was made; this is not compared with the manifest")
        return
    names = provenance.options.keys() | manifest.options.keys()
    others = [
        flag(n) for n in sorted(names) if provenance.options.get(n) != manifest.options.get(n)
    ]
    if others or provenance.contract != manifest.contract:
        what = f"with other options ({', '.join(others)})" if others else "by another version"
        raise OutputError(f"{path}: was made {what} than its manifest says; {_AGAIN}")


def _validator(manifest: Manifest, path: str) -> Check | None:
    """What raises for a document that is not valid; None if there is nothing to check by."""
    if manifest.schema is None:
        log.warning(
            f"recipe {manifest.counts['recipe']} has no schema; only files and counts are checked"
        )
        return None
    if find_spec("jsonschema_rs") is None:
        log.warning(
            "only files and counts are checked: checking documents against their schema needs "
            "jsonschema-rs (pip install jsonschema-rs)"
        )
        return None
    import jsonschema_rs

    try:
        check: Check = jsonschema_rs.validator_for(manifest.schema).validate
        return check
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        raise OutputError(f"{path}: its schema is damaged; {_AGAIN}") from error


def _documents(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each document of JSON lines, or of an array that has one a line, and where it is."""
    for number, line in enumerate(read_lines(path), 1):
        if line in (b"[\n", b"]\n", b"\n"):
            continue
        where = f"{path}: line {number:,}"
        try:
            document = orjson.loads(line.rstrip(b",\n"))
        except orjson.JSONDecodeError as error:
            raise OutputError(f"{where} is not JSON ({error}); {_AGAIN}") from None
        if not isinstance(document, dict):
            raise OutputError(f"{where} is not a document; {_AGAIN}")
        yield where, document


def _validate(check: Check | None, where: str, document: dict[str, Any]) -> None:
    if check is None:
        return
    try:
        check(document)
    except ValueError as error:
        at = "/".join(map(str, getattr(error, "instance_path", ())))
        what = getattr(error, "message", str(error))[:200]
        raise OutputError(
            f"{where}, {at or 'the document'}: does not match the schema ({what}); {_AGAIN}"
        ) from None


def _check_counts(name: str, manifest: Manifest, documents: int, answers: int) -> None:
    counts, records = manifest.counts, manifest.counts["records"]
    checks = [("records", documents, records)]
    if records is None:
        checks = [("questions", documents, counts["questions"])]
        if "Answers" in (manifest.schema or {}).get("properties", ()):
            checks.append(("answers", answers, counts["answers"]))
    for what, actual, recorded in checks:
        if actual != recorded:
            raise OutputError(
                f"{name}: has {actual:,} {what}, its manifest says {recorded:,}; {_AGAIN}"
            )
