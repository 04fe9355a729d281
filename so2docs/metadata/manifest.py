"""Manifests: machine-readable records of the inputs, options and files of an output.

A manifest is a file next to the output, or a part of its report. The same conversion always writes
the same bytes, whatever the machine or date. `so2docs verify` checks an output against its
manifest.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, fields, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson

from so2docs.counts import plural
from so2docs.dump.opening import SourceFile
from so2docs.dump.unreadable import unreadable_output
from so2docs.errors import DumpError, OptionError, OutputError, flag
from so2docs.metadata.document_schema import build_schema
from so2docs.options.request import build_options
from so2docs.options.table import Options, OutputForm
from so2docs.output.new_files import write_file
from so2docs.output.part_files import MANIFEST, side_file
from so2docs.output.paths import OutputPaths
from so2docs.output.product import read_provenance
from so2docs.output.provenance import File, Provenance, parse_files
from so2docs.output.retrieval_set import RECORDS
from so2docs.progress import bar, log
from so2docs.recipes.beir import CORPUS, FILES
from so2docs.report import Report

FORMAT = 1
"""Version of manifests. Increase it with each change that breaks readers."""

DESCRIBED = ("jsonl", "json", "parquet")
"""Formats whose documents a schema can describe."""


@dataclass(frozen=True, slots=True)
class Manifest(Provenance):
    """The record of an output, with the SHA-256 of its files.

    Attributes:
        output: Name of the output; `-` for standard output, whose hash is unknown.
        schema: JSON Schema of each document; None for recipes without a schema, and for formats of
            other programs.
        license: Text of the dump's `license.txt`; None if missing, or if the input was not hashed.
        inspection: Result of `so2docs inspect` on the dump; None without an inspection.
        format: Version of the manifest.
    """

    output: str = ""
    schema: dict[str, Any] | None = None
    license: str | None = None
    inspection: dict[str, Any] | None = None
    format: int = FORMAT

    @classmethod
    def of_output(
        cls,
        names: OutputPaths,
        options: Options,
        record: Provenance,
        report: Report,
        read: Sequence[str | None],
        *,
        hashes_input: bool,
    ) -> Manifest:
        """Make the manifest of a finished conversion; this reads its output once more.

        Args:
            names: The paths of the output.
            options: The options of the conversion.
            record: The provenance of the output.
            report: The report of the conversion.
            read: The path of each input of the record; None for an input that is not a file.
            hashes_input: Whether to read the inputs for their SHA-256 and licence.
        """
        files = [File("", "-", report.output_bytes, None)]
        if names.output != "-":
            files = _describe_files(names)
        manifest = cls._of_record(record, names, _schema(options))
        if not hashes_input:
            return replace(manifest, files=tuple(files))
        paths = [path for path in dict.fromkeys(read) if path and os.path.isfile(path)]
        hashes = {path: File.of("", path, is_hashed=True).sha256 for path in paths}
        inputs = (
            file._replace(sha256=hashes.get(path or ""))
            for file, path in zip(record.input, read, strict=True)
        )
        return replace(manifest, input=tuple(inputs), files=tuple(files), license=_license(paths))

    @classmethod
    def of_existing(cls, output: str) -> Manifest:
        """Make the manifest of an unsplit output from its provenance; this reads all its files.

        Raises:
            OutputError: The output is missing or split, or has no provenance.
        """
        advice = f"give its report, or convert the dump again with {flag('card', True)}"
        is_set = os.path.basename(output) == RECORDS
        names = OutputPaths(output, None, made_of_it=FILES if is_set else ())
        paths = names.data_files()
        if not paths:
            raise OutputError(f"{output}: not found, or split into several files; {advice}")
        provenance = read_provenance(paths[0])
        if provenance is None or "questions" not in provenance.counts:
            raise OutputError(f"{output}: has no record of how it was made; {advice}")
        schema = _recorded_schema(provenance.options, provenance.counts["recipe"])
        manifest = cls._of_record(provenance, names, schema)
        return replace(manifest, files=tuple(_describe_files(names)))

    @classmethod
    def _of_record(
        cls, record: Provenance, names: OutputPaths, schema: dict[str, Any] | None
    ) -> Manifest:
        values = {field.name: getattr(record, field.name) for field in fields(record)}
        return cls(**values, output=_name(names.output), schema=schema)

    def with_checksum(self) -> dict[str, Any]:
        """Return all fields by name, and `checksum`: the SHA-256 of the other fields."""
        values = self.as_dict()
        return {**values, "checksum": _checksum(values)}

    def save(self, output: str) -> None:
        """Write the manifest next to its output."""
        text = json.dumps(self.with_checksum(), indent=2)
        write_file(manifest_path(output), text.encode() + b"\n")

    def is_in_place(self, folder: str) -> bool:
        """Whether all files of the manifest are in a folder, with the recorded sizes."""
        paths = [(os.path.join(folder, file.name), file.bytes) for file in self.files]
        return all(os.path.isfile(path) and os.path.getsize(path) == size for path, size in paths)


def _describe_files(names: OutputPaths) -> list[File]:
    """Describe the files of an output; their names are paths relative to its folder."""
    folder = os.path.dirname(names.output)
    return [
        File.of("", path, Path(os.path.relpath(path, folder or ".")).as_posix(), is_hashed=True)
        for path in names.data_files()
    ]


def _name(output: str) -> str:
    """Return the name of an output for messages; for a retrieval set, the name of its folder."""
    folder, name = os.path.split(output)
    return os.path.basename(os.path.abspath(folder)) if name == RECORDS else name


def is_retrieval_set(path: str) -> bool:
    """Whether a path is the folder of a retrieval set."""
    return os.path.isfile(os.path.join(path, CORPUS))


def locate(output: str) -> str:
    """Return the path after which side files are named: the output, or a set's records file."""
    return os.path.join(output, RECORDS) if is_retrieval_set(output) else output


def manifest_path(output: str) -> str:
    """Return the path of the manifest of an output."""
    return side_file(locate(output), MANIFEST)


def _license(paths: Iterable[str]) -> str | None:
    """Read the first `license.txt` found with the files of a dump; None if not found."""
    for path in paths:
        try:
            with closing(SourceFile(path)) as source:
                if (text := source.license()) is not None:
                    return text
        except DumpError as error:  # Only warn, since the output is complete.
            log.warning(error)
    return None


def _checksum(values: dict[str, Any]) -> str:
    """Return the SHA-256 of a manifest's fields, which is the same in a file and in a report."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _schema(options: Options) -> dict[str, Any] | None:
    try:
        return build_schema(options) if options.form.format in DESCRIBED else None
    except OptionError:  # A recipe that is a user's function has no schema.
        return None


_OF_SCHEMA = (
    *("fields", "drop_fields", "nest", "attribution"),
    *("conversational", "implicit_prompt", "metadata"),
)
"""Options that change the schema."""


def _recorded_schema(options: Mapping[str, Any], recipe: str | None) -> dict[str, Any] | None:
    """Build the JSON Schema of an earlier conversion from its recorded options; None if unknown."""
    kwargs = {name: options[name] for name in _OF_SCHEMA if options[name]}
    if recipe is not None:
        kwargs["recipe"] = recipe
    form = OutputForm(options["format"], options["compression"])
    field = options["site_field"]
    try:
        return _schema(build_options(kwargs, form, field and tuple(field), core="python"))
    except OptionError:  # The recipe is a user's, and not installed here.
        return None


def load(path: str, otherwise: str = "remove it") -> Manifest:
    """Read and check the manifest at `path`.

    Args:
        path: Path of the manifest.
        otherwise: Alternative to a new conversion, for the advice in errors.

    Raises:
        OutputError: The manifest cannot be read, is damaged or is from another version of so2docs.
    """
    again = f"convert the dump again with {flag('card', True)} and {flag('force', True)}"
    advice = f"{again}, or {otherwise}"
    return _parse_manifest(read_json(path, "manifest", advice), path, "manifest", advice)


def load_from_report(path: str, output: str) -> Manifest:
    """Read the manifest of an output from a report of one or more conversions.

    Raises:
        OutputError: The report cannot be read, is damaged or lacks the manifest.
    """
    advice, name = _report_advice(), os.path.basename(output)
    manifests = _in_report(path)
    for manifest in manifests:
        if manifest["output"] in (name, "-"):
            return _parse_manifest(manifest, path, "report", advice)
    if len(manifests) == 1:
        only = manifests[0]["output"]
        raise OutputError(f"{path}: is the report of {only}; give the report of {name}")
    raise OutputError(f"{path}: the report has no manifest of {name}; {advice}")


def manifests_of_report(path: str) -> dict[str, list[str]]:
    """Return the file names of each output that has a manifest in a report, by output name."""
    manifests = [
        _parse_manifest(values, path, "report", _report_advice()) for values in _in_report(path)
    ]
    return {manifest.output: [file.name for file in manifest.files] for manifest in manifests}


def _report_advice() -> str:
    return f"convert the dump again with {flag('report')}"


def share_schemas(entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Replace each repeated JSON Schema in a report of several conversions with a reference.

    Returns:
        The entries, with `{"$ref": "#/0/result/manifest/schema"}` for the schema of an earlier
        entry.
    """
    places: dict[bytes, str] = {}
    shared = []
    for number, entry in enumerate(entries):
        report = entry["result"] or {}
        manifest = report.get("manifest")
        if manifest is not None and manifest["schema"] is not None:
            place = f"#/{number}/result/manifest/schema"
            first = places.setdefault(orjson.dumps(manifest["schema"]), place)
            if first != place:
                manifest = {**manifest, "schema": {"$ref": first}}
        shared.append({**entry, "result": {**report, "manifest": manifest} if report else None})
    return shared


def with_schemas(entries: list[Any]) -> list[Any]:
    """Replace the references of `share_schemas` with the schemas, in place.

    Damaged entries stay unchanged.
    """
    for entry in entries:
        with suppress(KeyError, TypeError, ValueError, IndexError, AttributeError):
            manifest = entry["result"]["manifest"]
            number = int(manifest["schema"]["$ref"].split("/")[1])
            manifest["schema"] = entries[number]["result"]["manifest"]["schema"]
    return entries


def _in_report(path: str) -> list[dict[str, Any]]:
    """List the manifests in a report, without checking them."""
    values = read_json(path, "report", _report_advice())
    try:
        reports = (
            [entry["result"] or {} for entry in with_schemas(values)]
            if isinstance(values, list)
            else [values]
        )
        manifests = [report["manifest"] for report in reports if report.get("manifest") is not None]
        if all(isinstance(manifest["output"], str) for manifest in manifests):
            return manifests
    except (KeyError, TypeError, AttributeError):
        pass
    raise OutputError(f"{path}: is damaged, or is not a report; {_report_advice()}")


def read_json(path: str, what: str, advice: str) -> Any:
    """Read a JSON file; errors name it as `what`, with advice."""
    try:
        with open(path, "rb") as file:
            return orjson.loads(file.read())
    except OSError as error:
        if what == "report":
            raise unreadable_output(path, error) from error
        raise OutputError(
            f"{path}: the {what} cannot be read ({error.strerror}); {advice}"
        ) from error
    except orjson.JSONDecodeError as error:
        raise OutputError(f"{path}: the {what} is damaged ({error}); {advice}") from None


def _parse_manifest(values: Any, path: str, what: str, advice: str) -> Manifest:
    """Check the fields of a manifest, and make a `Manifest` from them."""
    try:
        if values["format"] != FORMAT:
            raise OutputError(f"{path}: is from another version of so2docs; {advice}")
        checksum = values["checksum"]
        values = {key: values[key] for key in values if key != "checksum"}
        is_whole = _checksum(values) == checksum
        manifest = Manifest(**parse_files(values))
        counts = [manifest.counts[name] for name in ("rows", "questions", "answers")]
        is_whole = is_whole and manifest.files and all(isinstance(count, int) for count in counts)
        is_whole = is_whole and {"recipe", "records"} <= manifest.counts.keys()
        of_files = [*manifest.input, *manifest.files]
        is_whole = is_whole and all(
            isinstance(file.bytes, int)
            and (file.name == os.path.basename(file.name) or file.name in FILES)
            for file in of_files
        )
        is_whole = is_whole and isinstance(manifest.options, dict)
    except (KeyError, TypeError, AttributeError):
        is_whole = False
    if not is_whole:
        raise OutputError(f"{path}: is damaged, or is not a {what}; {advice}")
    return manifest


def _again() -> str:
    made = f"convert the dump again with {flag('card', True)} or {flag('report')}"
    return f"{made}, or copy the output again"


_READ = ("jsonl", "json")
"""Formats whose documents are checked one by one."""

Check = Callable[[Any], object]


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of a verification: the output matches its manifest.

    Attributes:
        output: Name of the output.
        files: Number of files with the recorded size and SHA-256.
        documents: Number of documents or records; None for Parquet and formats of other programs,
            which are checked by their hash alone.
        validated: Whether each document was validated against the JSON Schema.
        hashed: Whether the SHA-256 was known; it is unknown for standard output.
    """

    output: str
    files: int
    documents: int | None
    validated: bool
    hashed: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-compatible values."""
        return asdict(self)

    def columns(self) -> dict[str, int | float]:
        """Return this output's row of a table of several sites."""
        return {"files": self.files, "documents": self.documents or 0}

    def __str__(self) -> str:
        what = "SHA-256" if self.hashed else "size"
        files = f"{plural(self.files, 'file')} with the {what} of the manifest"
        documents = "" if self.documents is None else f", {plural(self.documents, 'document')}"
        return f"{self.output}: {files}{documents}{', valid by its schema' * self.validated}"


def verify(
    output: str | os.PathLike[str],
    *,
    report: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> Verified:
    """Check an output against its manifest, which is next to it or in a report.

    The checks are: size and SHA-256 of each file; the number of documents and of answers; and each
    document against the JSON Schema in the manifest, with jsonschema-rs (the `verify` extra).
    Formats other than `jsonl` and `json` get only the first check. One document at a time is in
    memory.

    Args:
        output: Name of the output, as passed to `convert`, in any folder. A file with the standard
            output of a conversion may have any name, and its SHA-256 is not checked.
        report: File written by `--report`, for one or more conversions.
        progress: Show a progress bar.

    Returns:
        The numbers of checked files and documents.

    Raises:
        OutputError: There is no manifest, or the output differs from it. The message names the
            first difference.
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
    paths = [os.path.join(os.path.dirname(locate(name)), of_file) for of_file in names]
    for path, file in zip(paths, manifest.files, strict=True):
        _check_file(path, file)
        _check_record(path, manifest)
    if manifest.options.get("format") not in _READ or is_retrieval_set(name):
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
        actual = File.of("", path, is_hashed=True)
    except OSError as error:
        raise OutputError(f"{path}: cannot be read ({error.strerror}); {_again()}") from error
    if recorded.bytes not in (None, actual.bytes):
        raise OutputError(
            f"{path}: has {actual.bytes} bytes, but its manifest says {recorded.bytes}; {_again()}"
        )
    if recorded.sha256 not in (None, actual.sha256):
        raise OutputError(f"{path}: does not match the checksum in its manifest; {_again()}")


def _check_record(path: str, manifest: Manifest) -> None:
    """Check that the provenance of a file, if recorded, matches the manifest."""
    provenance = read_provenance(path)
    if provenance is None:
        log.info(
            f"{path}: has no record of how it was made, so its origin is not compared "
            "with the manifest"
        )
        return
    others = provenance.other_options(manifest)
    if others or provenance.contract != manifest.contract:
        what = f"with other options ({', '.join(others)})" if others else "by another version"
        raise OutputError(f"{path}: was made {what} than its manifest says; {_again()}")


def _validator(manifest: Manifest, path: str) -> Check | None:
    """Make a function that raises for an invalid document; None if documents are not checked."""
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
        raise OutputError(f"{path}: its schema is damaged; {_again()}") from error


def _documents(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read documents with their positions, from JSON lines or an array with a line per document."""
    # Imported here, because conversions do not need it.
    from so2docs.reader.reading import read_lines

    for number, line in enumerate(read_lines(path), 1):
        if line in (b"[\n", b"]\n", b"\n"):
            continue
        where = f"{path}: line {number:,}"
        try:
            document = orjson.loads(line.rstrip(b",\n"))
        except orjson.JSONDecodeError as error:
            raise OutputError(f"{where} is not JSON ({error}); {_again()}") from None
        if not isinstance(document, dict):
            raise OutputError(f"{where} is not a document; {_again()}")
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
            f"{where}, {at or 'the document'}: does not match the schema ({what}); {_again()}"
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
                f"{name}: has {actual:,} {what}, but its manifest says {recorded:,}; {_again()}"
            )
