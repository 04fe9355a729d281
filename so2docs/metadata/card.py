"""`--card`: write a manifest of an output, and describe the output in README.md and croissant.json.

The front matter of README.md follows the format of dataset cards
(https://huggingface.co/docs/hub/datasets-cards and datasets-manual-configuration). A folder has one
card with a configuration for each output that has a manifest. Texts are quoted as JSON, a subset of
YAML. `croissant.json` is Croissant 1.1
(https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html). It has a file object with the
SHA-256 of each file, a record set for each output, and a field for each member of a record. Lists
are `repeated`, and members of objects are `subField`s.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from so2docs.counts import plural
from so2docs.domain import LICENSE_FILE, licenses, site_language
from so2docs.dump.storage import is_url
from so2docs.errors import OptionError, OutputError, flag
from so2docs.escape import for_html, for_terminal
from so2docs.metadata.columns import describe_columns
from so2docs.metadata.manifest import (
    DESCRIBED,
    FORMAT,
    Manifest,
    load,
    load_from_report,
    locate,
    manifest_path,
)
from so2docs.options.choices import split_compression
from so2docs.options.request import Fingerprint
from so2docs.options.split import parse_split
from so2docs.options.table import OPTIONS, Options
from so2docs.output.new_files import FOR_SMALL_FILES, NewFiles
from so2docs.output.part_files import MANIFEST, check_folder, check_replaceable
from so2docs.output.paths import OutputPaths
from so2docs.output.product import Product
from so2docs.output.provenance import UP_TO_DATE, Comparison, File, Provenance, make_record
from so2docs.progress import log
from so2docs.recipes import beir
from so2docs.recipes.finding import RECIPES
from so2docs.report import Report
from so2docs.schema import DATES

_FILE_FACTS = ("form", "bytes", "codecs", "sha256", "license")
_TABLE_FACTS = (
    *("rows", "first_date", "last_date", "is_ordered", "descents", "made_up", "columns", "lacks"),
    *("comments", "repaired", "malformed"),
)


_DAMAGE = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""Errors caused by values of unexpected types."""


def choose_inspection(
    inspections: Iterable[Mapping[str, Any]], read: Mapping[str, tuple[int, str | None]], name: str
) -> dict[str, Any]:
    """Choose the inspection of an output's dump, and return it in the form used in manifests.

    Args:
        inspections: Inspections as printed by `so2docs inspect --json`.
        read: Input files of the output: size and, if known, SHA-256, by file name.
        name: Source of the inspections, for messages.

    Raises:
        OutputError: No inspection matches these files, or the file is not an inspection.
    """
    try:
        for values in inspections:
            files = {
                os.path.basename(file["path"]): {key: file[key] for key in _FILE_FACTS}
                for file in values["files"]
            }
            if all(_is_same(files.get(file), *known) for file, known in read.items()):
                inspection = {
                    "site": values["site"],
                    "release": values["release"],
                    "files": files,
                    "tables": {
                        table: {key: facts[key] for key in _TABLE_FACTS}
                        for table, facts in values["tables"].items()
                    },
                    "remarks": [_without_folder(text, files) for text in values["remarks"]],
                }
                describe_dump(inspection)  # Raises an error for values of unexpected types.
                return inspection
    except _DAMAGE:
        raise OutputError(f"{name}: is not the JSON report of so2docs inspect") from None
    expected = ", ".join(f"{file} ({size:,} bytes)" for file, (size, _) in read.items())
    raise OutputError(
        f"{name}: does not describe the dump that this output was made from; expected {expected}"
    )


def _without_folder(text: str, files: Iterable[str]) -> str:
    """Strip the folder of the dump from a remark."""
    for name in files:
        text = re.sub(rf"\S*[/\\]({re.escape(name)})", r"\1", text)
    return text


def _is_same(file: Mapping[str, Any] | None, size: int, sha256: str | None) -> bool:
    if file is None or file["bytes"] != size:
        return False
    return None in (sha256, file["sha256"]) or sha256 == file["sha256"]


def describe_dump(inspection: Mapping[str, Any]) -> list[str]:
    """Describe a dump in lines of a card, from the result of `choose_inspection`."""
    lines = []
    for name, file in inspection["files"].items():
        codecs = (f"{codec} in {plural(n, 'block')}" for codec, n in file["codecs"].items())
        lines.append(f"- `{name}`: {', '.join([file['form'], *codecs])}")
    last_date = max((table["last_date"] for table in inspection["tables"].values()), default="")
    if last_date:
        release = inspection["release"]
        lines.append(f"- last row of {last_date[:10]}, so probably the release of {release}")
    lines += [
        f"- `{name}`: no row has {', '.join(table['lacks'])}"
        for name, table in inspection["tables"].items()
        if table["lacks"]
    ]
    lines += ["", "| table | rows | first date | last date | rows with a licence |"]
    lines.append("|---|---:|---|---|---:|")
    for name, table in inspection["tables"].items():
        dates = table["first_date"][:10], table["last_date"][:10]
        cells = (f"{table['rows']:,}", *dates, f"{table['columns'].get('ContentLicense', 0):,}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", *(f"- {' '.join(for_html(note).split())}" for note in inspection["remarks"])]
    tables = inspection["tables"].values()
    for comment in dict.fromkeys(text for table in tables for text in table["comments"]):
        lines += ["", "A comment in the dump says:", "", *_as_code(comment)]
    texts = (file["license"] for file in inspection["files"].values())
    for text in dict.fromkeys(text for text in texts if text is not None):
        lines += ["", *_describe_license(text)]
    return lines


def _describe_license(text: str) -> list[str]:
    return [f"Its `{LICENSE_FILE}` says:", "", *_as_code(text)]


def _as_code(text: str) -> list[str]:
    """Return the lines of a text, indented as Markdown code, so that markup has no effect."""
    return [f"    {line}" for line in for_terminal(text).splitlines()]


_TYPES = {
    "string": ("string", "sc:Text"),
    "integer": ("int64", "sc:Integer"),
    "number": ("float64", "sc:Float"),
    "boolean": ("bool", "sc:Boolean"),
}
"""Names of the types of JSON Schema in `datasets` and in Croissant."""


def features(schema: Mapping[str, Any], indent: str = "  ") -> list[str] | None:
    """Describe the members of an object in lines of YAML; None if a member has no column type.

    Args:
        schema: JSON Schema of a record, or of an object in a record.
        indent: Indentation of each line.
    """
    lines: list[str] = []
    for name, kind in schema.get("properties", {}).items():
        lines_inside = _feature(kind, indent + "  ")
        if lines_inside is None:
            return None
        lines += [f"{indent}- name: {json.dumps(name)}", *lines_inside]
    return lines or None


def _feature(schema: Mapping[str, Any], indent: str) -> list[str] | None:
    kind = schema.get("type", "string" if "const" in schema else None)
    if isinstance(kind, list):  # The second type is a string, for numbers beyond 64 bits.
        kind = kind[0]
    if kind == "array":
        items = schema.get("items", {})
        if items.get("type") in _TYPES:
            return [f"{indent}sequence: {_TYPES[items['type']][0]}"]
        return _of_object("list", items, indent)
    if kind == "object":
        return _of_object("struct", schema, indent)
    return [f"{indent}dtype: {_TYPES[kind][0]}"] if kind in _TYPES else None


def _of_object(word: str, schema: Mapping[str, Any], indent: str) -> list[str] | None:
    members = features(schema, indent)
    return None if members is None else [f"{indent}{word}:", *members]


def _dataset_info(name: str, output: Described, *, has_features: bool = True) -> Iterator[str]:
    """Yield the lines of an entry of `dataset_info`; `datasets` ignores entries without sizes.

    Parquet files of documents get no features, because their columns differ from the JSON Schema.
    """
    manifest = output.manifest
    size = sum(file.bytes for file in manifest.files)
    columns = None if manifest.schema is None else features(manifest.schema)
    yield f"- config_name: {json.dumps(name)}"
    if has_features and columns is not None and not _is_plain_parquet(manifest):
        yield "  features:"
        yield from columns
    if list(output.splits) == [_TRAIN]:
        yield "  splits:"
        yield f"  - name: {_TRAIN}"
        yield f"    num_bytes: {size}"
        yield f"    num_examples: {_documents(manifest)}"
    yield f"  download_size: {size}"
    yield f"  dataset_size: {size}"


_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "citeAs": "cr:citeAs",
    **{
        name: f"cr:{name}"
        for name in (
            *("arrayShape", "column", "containedIn", "equivalentProperty", "excludes", "extract"),
            *("field", "fileObject", "fileProperty", "fileSet", "format", "includes", "isArray"),
            *("isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "readLines"),
            *("recordSet", "references", "regex", "repeated", "replace", "samplingRate"),
            *("sdVersion", "separator", "source", "subField", "transform", "unArchive", "value"),
        )
    },
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
}
_FORMATS = {
    ".parquet": "application/x-parquet",
    ".json": "application/json",
    ".tsv": "text/tab-separated-values",
}
_LINES = "application/jsonlines"
_READ_LINES = (".jsonl", ".jsonl.gz")


def _encoding(path: str) -> str | list[str]:
    plain, compression = split_compression(path)
    kind = next((kind for end, kind in _FORMATS.items() if plain.endswith(end)), _LINES)
    return kind if compression is None else [kind, f"application/{compression}"]


def _field(
    id_: str,
    schema: Mapping[str, Any],
    source: Mapping[str, Any],
    path: tuple[str, ...],
    dates: frozenset[str],
) -> dict[str, Any]:
    """Describe a member of a record, with its own members, as a Croissant field."""
    field: dict[str, Any] = {"@type": "cr:Field", "@id": id_, "name": id_}
    if schema.get("type") == "array":
        field["repeated"] = True
        schema = schema.get("items", {})
    kind = schema.get("type", "string")
    if kind == "object" and schema.get("properties"):
        field["subField"] = [
            _field(f"{id_}/{name}", inner, source, (*path, name), dates)
            for name, inner in schema["properties"].items()
        ]
    else:
        kinds = [kind] if isinstance(kind, str) else kind
        is_date = path[-1] in dates
        field["dataType"] = "sc:DateTime" if is_date else _TYPES.get(kinds[0], _TYPES["string"])[1]
    column, *rest = path
    field["source"] = {**source, "extract": {"column": column}}
    if rest:
        field["source"]["transform"] = [{"jsonPath": name} for name in rest]
    return field


_START = b"---\n# Written by so2docs"
_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"))
_MORE_SIZES = ((10**7, "1M<n<10M"), (10**8, "10M<n<100M"), (10**9, "100M<n<1B"))
_WHOLE = 2**64
_CARD, _CROISSANT = "README.md", "croissant.json"
_DESCRIPTION = "Questions and answers of a Stack Exchange data dump, nested by so2docs."
_TRAIN = "train"
_LICENSE_IDS = {
    "CC BY-SA 4.0": "cc-by-sa-4.0",
    "CC BY-SA 3.0": "cc-by-sa-3.0",
    "CC BY-SA 2.5": "cc-by-sa-2.5",
}
_TASKS = {
    "None": ("question-answering",),
    "qa": ("question-answering", "text-generation"),
    "messages": ("question-answering", "text-generation"),
    "pairs": ("question-answering", "text-generation"),
    "preferences": ("question-answering", "text-generation"),
    "thread": ("text-generation",),
    "chunks": ("text-retrieval",),
    "triplets": ("sentence-similarity", "text-ranking"),
    "kto": ("question-answering", "text-generation"),
    "blocks": ("text-generation",),
    "hub": ("question-answering", "text-generation"),
    "beir": ("text-retrieval",),
}
"""Task categories by recipe, from https://huggingface.co/tasks."""
_BY_SITE = "train"
"""Stem of an output in the folder of its site."""
_RECIPES_BY_SITE = frozenset(name for name, one in RECIPES.own.items() if one.is_by_site)

_TEXT = """
# {title}

Questions and answers of a Stack Exchange data dump, nested by so2docs {version}.

{table}
{others}{columns}{dump}
## How it was made

```console
{commands}
```

{hashes}

`so2docs verify OUTPUT` checks an output against `.OUTPUT.manifest`, which is next to it.

## Licence

The content was written by the users of the site. It is licensed under CC BY-SA 2.5, 3.0 or 4.0,
depending on its date. Anyone who passes it on must name the authors and the licence, link to the
source, indicate changes, and pass adaptations on under the same or a compatible licence.
"""


def check_sources(sources: Iterable[object]) -> None:
    """Check, before a dump is opened, that a card can read its files once more.

    Raises:
        OptionError: A source is a URL, a pipe or an open file.
    """
    for source in sources:
        path = os.fspath(source) if isinstance(source, str | os.PathLike) else "-"
        is_special = os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))
        if path == "-" or is_url(path) or is_special:
            raise OptionError(
                f"{flag('card', True)} reads the dump a second time, for its SHA-256; give the "
                "name of a file or folder"
            )


def check_card(
    names: OutputPaths, options: Options, read: Iterable[str | None], *, force: bool
) -> None:
    """Check, before the conversion, that the card can be written afterwards.

    Raises:
        OptionError: A card cannot describe this output.
        OutputError: The card would replace another file, or a manifest in the folder is damaged.
    """
    if names.output == "-":
        raise OptionError(
            f"{flag('card', True)} writes a file next to the output; give the name of a file "
            "instead of -"
        )
    _check_format(options.form.format)
    folder = _folder_of_card(names)
    CardFiles(folder).check(filter(None, read), force=force)
    own = manifest_path(names.output)
    check_replaceable(own, read)
    _described(folder, but=own)


def describe(
    names: OutputPaths,
    options: Options,
    record: Provenance,
    report: Report,
    read: Sequence[str | None],
    *,
    with_card: bool,
) -> None:
    """Describe a finished conversion in its report, and in a card on request.

    This reads the output once more; a card also reads the input. For the arguments, see
    `Manifest.of_output`.

    Raises:
        So2docsError: A file cannot be written.
        OSError: A file is missing.
    """
    manifest = Manifest.of_output(names, options, record, report, read, hashes_input=with_card)
    report.manifest = manifest.with_checksum()
    if with_card:
        manifest.save(names.output)
        try:
            CardFiles(_folder_of_card(names)).build(force=True)
        except NothingToDescribeError as error:  # Only warn, since the output is complete.
            log.warning(error)


class NothingToDescribeError(OutputError):
    """All outputs that the card would describe are empty."""


class CardFiles(Product[tuple[str, str]]):
    """The card and the `croissant.json` of a folder as a product.

    Both files are compared by their bytes, which the manifests in the folder determine.
    """

    is_updated = False
    patience = FOR_SMALL_FILES

    def __init__(self, folder: str) -> None:
        super().__init__(os.path.join(folder, _CARD), make_record("card", FORMAT, {}, ()))
        self._folder = folder
        self._names = self.path, os.path.join(folder, _CROISSANT)

    @property
    def paths(self) -> list[str]:
        """Both files behind links. The card is renamed first: the other is useless without it."""
        return list(map(os.path.realpath, reversed(self._names)))

    def existing_files(self) -> list[str]:
        """Return the paths of the existing files, the card first."""
        return list(filter(os.path.exists, self._names))

    def check(self, read: Iterable[str] = (), *, force: bool) -> None:
        """Refuse to replace an input, or files that so2docs did not write.

        Raises:
            OutputError: The card may not be written.
        """
        if not os.path.exists(self._folder or "."):  # The conversion will make the folder.
            return
        check_folder(self.path)
        check_replaceable(self.path, read)
        if not force and not self._is_card():
            self.refuse(self.compare())

    def _is_card(self) -> bool:
        """Whether so2docs wrote the card; also true for an empty file."""
        if not os.path.isfile(self.path):
            return False
        with open(self.path, "rb") as file:
            return file.read(len(_START)) in (_START, b"")

    def compare(self) -> Comparison:
        """Compare the existing files with those that the manifests in the folder would give."""
        existing = self.existing_files()
        if not existing:
            return Comparison("missing")
        if not self._is_card():
            has_other = os.path.exists(self.path)
            reason = " and is not a card of so2docs" if has_other else " without a so2docs card"
            return Comparison("unknown", reason)
        if [Path(path).read_bytes() for path in existing] == self._texts():
            return Comparison(UP_TO_DATE)
        return Comparison("another input", ", made from other manifests")

    def load(self, records: list[Provenance]) -> tuple[str, str]:
        """Return the paths of the card and of the `croissant.json`."""
        return self._names

    def make(self, files: NewFiles) -> tuple[str, str]:
        """Write both files, and return their paths.

        Manifests are read under the lock on the card. The last of several processes that end at
        the same time therefore describes all outputs.

        Raises:
            NothingToDescribeError: All outputs in the folder are empty.
            So2docsError: A manifest in the folder is damaged, or a file cannot be written.
        """
        for path, data in zip(reversed(self.paths), self._texts(), strict=True):
            files.write(path, data)
        return self._names

    def _texts(self) -> list[bytes]:
        """Return the contents of both files, the card first."""
        folder, outputs = self._folder, _described(self._folder)
        if not any(_documents(output.manifest) for output in outputs):
            raise NothingToDescribeError(
                f"{folder or '.'}: no card is written, since no output in it has a document"
            )
        try:
            return [text(outputs).encode(), croissant_text(outputs).encode()]
        except _DAMAGE as error:
            paths = (os.path.join(folder, one.path(one.manifest.output)) for one in outputs)
            names = " or ".join(map(manifest_path, paths))
            raise OutputError(
                f"{names}: the manifest is damaged; convert the dump again with "
                f"{flag('card', True)} and {flag('force', True)}"
            ) from error


def describe_existing(
    output: str,
    *,
    report: str | None = None,
    force: bool = False,
    inspections: tuple[str, list[Any]] | None = None,
) -> tuple[str, str]:
    """Write the card of an existing output unless it is up to date, and its manifest if missing.

    Args:
        output: Name of the output, as passed to `convert`.
        report: Report of the conversion, with a manifest. If None, the manifest next to the output
            is used, or else the provenance in the output.
        force: Replace a `README.md` that is not a card of so2docs.
        inspections: A name for messages, and inspections made by `so2docs inspect`, of which one
            must be of the dump.

    Returns:
        The paths of the card and of the `croissant.json`.

    Raises:
        OutputError: The output is missing, has no provenance or was changed, or a file cannot be
            written.
        OptionError: Cards do not support the format of the output.
    """
    if report is not None:
        manifest = load_from_report(report, output)
    output = locate(output)
    folder, own = os.path.dirname(output), manifest_path(output)
    if report is None:
        manifest = load(own) if os.path.exists(own) else Manifest.of_existing(output)
    _check_format(str(manifest.options.get("format")))
    if not manifest.is_in_place(folder):
        raise OutputError(
            f"{output}: its files do not match its manifest; convert the dump again with "
            f"{flag('card', True)} and {flag('force', True)}"
        )
    if inspections is not None:
        name, values = inspections
        read = {file.name: (file.bytes, file.sha256) for file in manifest.input}
        manifest = replace(manifest, inspection=choose_inspection(values, read, name))
    is_by_site = manifest.counts["recipe"] in _RECIPES_BY_SITE
    card = CardFiles(_folder_of_card(OutputPaths(output, None, is_by_site=is_by_site)))
    card.check(force=force)
    if inspections is not None or not os.path.exists(own):
        manifest.save(output)
    # Update an existing card, which describes all outputs of the folder.
    return card.build(force=force, update=True)


def _check_format(name: str) -> None:
    if name not in DESCRIBED:
        raise OptionError(
            f"{flag('card', True)} supports the formats {', '.join(DESCRIBED)}, not {name}; "
            "leave it out"
        )


@dataclass(frozen=True, slots=True)
class Described:
    """An output described by a card.

    Attributes:
        folder: Folder of the output, relative to the card: the folder of the site, or empty.
        manifest: Manifest of the output.
    """

    folder: str
    manifest: Manifest

    @property
    def is_retrieval_set(self) -> bool:
        """Whether the output is a retrieval set: a whole folder with its own configurations."""
        return bool(self.manifest.counts["recipe"] == "beir")

    def path(self, name: str) -> str:
        """Return the path of a file of the output, relative to the card."""
        return f"{self.folder}/{name}" if self.folder else name

    @property
    def paths(self) -> list[str]:
        """The paths of all files of the output, relative to the card."""
        return [self.path(file.name) for file in self.manifest.files]

    @property
    def splits(self) -> dict[str, list[str]]:
        """The paths of the files by split: one split for each share, or `train` alone."""
        split = parse_split("split", self.manifest.options.get("split"))
        names = [name for name, _ in split.ends]
        splits: dict[str, list[str]] = {name: [] for name in names}
        for path in self.paths:
            ends = (name for name in names if re.search(rf"-{re.escape(name)}\.[^/]*$", path))
            splits.setdefault(next(ends, _TRAIN), []).append(path)
        return {name: paths for name, paths in splits.items() if paths}


def _folder_of_card(names: OutputPaths) -> str:
    """Return the folder for the card: the output's folder, or the parent of a site's folder."""
    folder = os.path.dirname(names.output)
    is_by_site = names.is_by_site and os.path.basename(names.stem) == _BY_SITE and folder != ""
    return os.path.dirname(folder) if is_by_site else folder


def _described(folder: str, but: str | None = None) -> list[Described]:
    """List the outputs of a folder, including outputs in a folder for each site.

    Outputs whose files do not match their manifests are left out, and so is the manifest `but`.
    """
    own = sorted(Path(folder or ".").glob(f".*.{MANIFEST}"))
    by_site = sorted(Path(folder or ".").glob(f"*/.{_BY_SITE}.*.{MANIFEST}"))
    outputs = []
    for path in [*own, *by_site]:
        if but is None or path != Path(but):
            manifest = load(str(path))
            is_by_site = path.parent != Path(folder or ".")
            if is_by_site and manifest.counts["recipe"] not in _RECIPES_BY_SITE:
                continue
            if manifest.is_in_place(str(path.parent)):
                outputs.append(Described(path.parent.name if is_by_site else "", manifest))
    return outputs


def text(outputs: list[Described]) -> str:
    """Return the text of the card for these outputs."""
    names = _config_names(outputs)
    manifests = [output.manifest for output in outputs]
    counts = list(map(_documents, manifests))
    front = ["---", "# Written by so2docs --card.", *_yaml_list("license", _licenses(manifests))]
    front += _yaml_list(
        "language", sorted({site_language(manifest.site or "") for manifest in manifests})
    )
    front.append(f"pretty_name: {json.dumps(_title(outputs))}")
    recipes = sorted({str(manifest.counts["recipe"]) for manifest in manifests})
    tasks = dict.fromkeys(task for recipe in recipes for task in _TASKS.get(recipe, ()))
    front += _yaml_list("task_categories", tasks)
    front += _yaml_list("tags", ["stack-exchange", "question-answering", "so2docs"])
    front += ["size_categories:", f"- {_size_category(sum(counts))}"]
    front += (
        beir.FRONT_MATTER if any(output.is_retrieval_set for output in outputs) else ["configs:"]
    )
    # Leave out empty outputs: they have no columns, so other outputs would not load.
    full = [
        (name, output)
        for name, output in zip(names, outputs, strict=True)
        if _documents(output.manifest) and not output.is_retrieval_set
    ]
    builder = _choose_builder(outputs)
    others = [output for _, output in full if _builder(output.manifest) != builder]
    full = [(name, output) for name, output in full if output not in others]
    is_by_site = len(full) > 1 and all(output.folder for _, output in full)
    if is_by_site:
        front += ['- config_name: "default"', "  default: true", "  data_files:"]
        front += [f"  - split: {_TRAIN}", "    path:"]
        files = (path.rpartition("/")[2] for _, output in full for path in output.paths)
        kinds = dict.fromkeys(re.sub(r"-\d+(-of-\d+)?(?=\.)", "-*", name) for name in files)
        front += (f"    - {json.dumps(f'*/{kind}')}" for kind in kinds)
    for name, output in full:
        front += [f"- config_name: {json.dumps(name)}", "  data_files:"]
        for split, paths in output.splits.items():
            front += [f"  - split: {split}", "    path:"]
            front += (f"    - {json.dumps(path)}" for path in paths)
    if full:
        front.append("dataset_info:")
    # With one output per site, omit the types of columns, which would take megabytes for hundreds
    # of sites.
    for name, output in full:
        front += _dataset_info(name, output, has_features=not is_by_site)
    table = ["| output | records | questions | answers |", "|---|---:|---:|---:|"]
    for output, count in zip(outputs, counts, strict=True):
        output_counts = output.manifest.counts
        rows = f"{count:,} | {output_counts['questions']:,} | {output_counts['answers']:,}"
        table.append(f"| `{output.path(output.manifest.output)}` | {rows} |")
    hashes = ["| SHA-256 | bytes | file |", "|---|---:|---|"]
    hashes += dict.fromkeys(
        f"| {f'`{file.sha256}`' if file.sha256 else 'not known'} | {file.bytes:,} | `{name}` |"
        for output in outputs
        for file, name in (
            *((file, file.name) for file in output.manifest.input),
            *((file, output.path(file.name)) for file in output.manifest.files),
        )
    )
    return "\n".join([*front, "---"]) + _TEXT.format(
        title=_title(outputs),
        version=", ".join(sorted({manifest.version for manifest in manifests})),
        table="\n".join(table),
        others=_load_others(others, builder),
        columns=_columns(outputs),
        dump=_dumps(outputs),
        commands="\n".join(f"$ {command(output)}" for output in outputs),
        hashes="\n".join(hashes),
    )


def _builder(manifest: Manifest) -> str:
    """Return the name of the `datasets` builder that reads the files."""
    return "parquet" if _is_parquet(manifest) else "json"


def _choose_builder(outputs: list[Described]) -> str:
    """Choose the builder for all configurations: the most frequent, or Parquet in a tie.

    `datasets` loads a folder with the builder of its first configuration.
    """
    full = [output for output in outputs if _documents(output.manifest)]
    builders = [_builder(output.manifest) for output in full]
    if any(output.is_retrieval_set for output in full):
        return "json"
    return max(("parquet", "json"), key=builders.count)


def _load_others(outputs: list[Described], builder: str) -> str:
    """Return Markdown that shows how to load outputs that are not configurations."""
    lines = []
    for output in outputs:
        arguments = (
            f"{json.dumps(_builder(output.manifest))}, data_files={json.dumps(output.splits)}"
        )
        lines.append(f"load_dataset({arguments})")
    if not lines:
        return ""
    code = "\n".join(lines)
    return (
        f"\n`datasets` reads one format in a folder, here {builder}. In the folder, load the other "
        f"outputs with:\n\n```python\n{code}\n```\n"
    )


def _columns(outputs: list[Described]) -> str:
    """Return Markdown that describes the columns; outputs with the same columns share a table."""
    by_columns: dict[tuple[str, ...], list[str]] = {}
    for output in outputs:
        manifest = output.manifest
        if manifest.schema is not None:
            recipe, has_dates = manifest.counts["recipe"], _is_plain_parquet(manifest)
            tables = tuple(describe_columns(recipe, manifest.schema, has_dates=has_dates))
            by_columns.setdefault(tables, []).append(output.path(manifest.output))
    parts = ["\n## Columns\n"] if by_columns else []
    for tables, paths in by_columns.items():
        if len(by_columns) > 1:
            others = f" and {plural(len(paths) - 1, 'other output')}" if len(paths) > 1 else ""
            parts.append(f"`{paths[0]}`{others}:\n")
        parts += (f"{table}\n" for table in tables)
    return "\n".join(parts)


def _dumps(outputs: list[Described]) -> str:
    """Return Markdown that describes each dump with a known inspection or licence once."""
    by_input: dict[tuple[File, ...], list[Described]] = {}
    for output in outputs:
        if output.manifest.inspection is not None or output.manifest.license is not None:
            # An archive is several inputs, one for each table that is read from it.
            read = dict.fromkeys(file._replace(role="") for file in output.manifest.input)
            by_input.setdefault(tuple(read), []).append(output)
    parts = ["\n## The dump\n"] if by_input else []
    for files, same in by_input.items():
        names = ", ".join(f"`{output.path(output.manifest.output)}`" for output in same)
        sources = ", ".join(f"`{file.name}`" for file in files)
        inspections = (output.manifest.inspection for output in same)
        inspection = next((one for one in inspections if one is not None), None)
        if inspection is not None:
            lines = describe_dump(inspection)
        else:
            lines = _describe_license(same[0].manifest.license or "")
        parts.append("\n".join([f"{names}, from {sources}:", "", *lines, ""]))
    return "\n".join(parts)


def croissant_text(outputs: list[Described]) -> str:
    """Return the text of the `croissant.json` for these outputs."""
    names = _config_names(outputs)
    described: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": _title(outputs),
        "description": _DESCRIPTION,
        "license": "https://creativecommons.org/licenses/by-sa/4.0/",
        "distribution": [
            part
            for name, output in zip(names, outputs, strict=True)
            for part in _distribution(name, output)
        ],
        "recordSet": [
            record_set
            for name, output in zip(names, outputs, strict=True)
            for record_set in _record_sets(name, output)
        ],
    }
    return json.dumps(described, indent=2, ensure_ascii=False) + "\n"


def _distribution(name: str, output: Described) -> Iterator[dict[str, Any]]:
    paths = output.paths
    for path, file in zip(paths, output.manifest.files, strict=True):
        yield {
            "@type": "cr:FileObject",
            "@id": path,
            "name": path.rpartition("/")[2],
            "contentUrl": path,
            "contentSize": f"{file.bytes} B",
            "encodingFormat": _encoding(path),
            "sha256": file.sha256,
        }
    if len(paths) > 1 and not output.is_retrieval_set:
        yield {
            "@type": "cr:FileSet",
            "@id": f"{name}-files",
            "name": f"{name}-files",
            "containedIn": [{"@id": path} for path in paths],
            "encodingFormat": _encoding(paths[0]),
            "includes": "*",
        }


def _record_sets(name: str, output: Described) -> Iterator[dict[str, Any]]:
    if output.is_retrieval_set:
        for configuration, (_, file) in beir.CONFIGURATIONS.items():
            source = {"fileObject": {"@id": output.path(file)}}
            yield _record_set(configuration, source, beir.SCHEMAS[file])
    elif output.manifest.schema is not None and _has_record_set(output.manifest):
        kind, id_ = (
            ("fileSet", f"{name}-files")
            if len(output.paths) > 1
            else ("fileObject", output.paths[0])
        )
        dates = DATES if _is_plain_parquet(output.manifest) else frozenset[str]()
        yield _record_set(name, {kind: {"@id": id_}}, output.manifest.schema, dates)


def _record_set(
    name: str,
    source: Mapping[str, Any],
    schema: Mapping[str, Any],
    dates: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "field": [
            _field(f"{name}/{member}", kind, source, (member,), dates)
            for member, kind in schema["properties"].items()
        ],
    }


def _title(outputs: list[Described]) -> str:
    """Make a title from the sites' names (or their number, if above three) and the recipes."""
    sites = dict.fromkeys(o.manifest.site or o.folder or o.manifest.input[0].name for o in outputs)
    recipes = dict.fromkeys(o.manifest.counts["recipe"] for o in outputs)
    name = ", ".join(sites) if len(sites) < 4 else f"{len(sites)} Stack Exchange sites"
    kinds = ", ".join(recipe or "questions with answers" for recipe in recipes)
    return f"{name}: {kinds}" if len(recipes) < 4 else name


def _yaml_list(name: str, values: Iterable[str]) -> list[str]:
    lines = [f"- {value}" for value in values]
    return [f"{name}:", *lines] if lines else []


def _licenses(manifests: list[Manifest]) -> list[str]:
    """List possible licences, latest first, narrowed down by the dates of inspected dumps."""
    found = set()
    for manifest in manifests:
        tables = (manifest.inspection or {}).get("tables", {}).values()
        dates = [(table["first_date"], table["last_date"]) for table in tables]
        last = max((last for _, last in dates), default="")
        first = min((first for first, _ in dates if first), default="")
        found |= {
            name
            for (name, start), (_, after) in zip(licenses(), [("", "~"), *licenses()], strict=False)
            if not last or (start <= last and first < after)
        }
    return [_LICENSE_IDS[name] for name, _ in licenses() if name in found]


def _is_plain_parquet(manifest: Manifest) -> bool:
    return _is_parquet(manifest) and manifest.counts["recipe"] is None


def _is_parquet(manifest: Manifest) -> bool:
    return all(file.name.endswith(".parquet") for file in manifest.files)


def _has_record_set(manifest: Manifest) -> bool:
    """Whether mlcroissant 1.1 can read the records.

    mlcroissant reads neither zstd nor JSON arrays, nor JSON lines with lists in lists of objects.
    """
    if manifest.counts["recipe"] == "hub":
        return False
    is_nested = manifest.counts["recipe"] in (None, "preferences")
    return _is_parquet(manifest) or (
        not is_nested and all(file.name.endswith(_READ_LINES) for file in manifest.files)
    )


def _config_names(outputs: list[Described]) -> list[str]:
    stems = [output.folder or OutputPaths(output.manifest.output, None).stem for output in outputs]
    paths = [output.path(output.manifest.output) for output in outputs]
    return stems if len(set(stems)) == len(stems) else paths


def _documents(manifest: Manifest) -> int:
    """Return the number of documents or records of an output."""
    records: int | None = manifest.counts["records"]
    questions: int = manifest.counts["questions"]
    return questions if records is None else records


def _size_category(count: int) -> str:
    return next((name for most, name in (*_SIZES, *_MORE_SIZES) if count < most), "n>1B")


def command(output: Described) -> str:
    """Return the command that makes the output, with all options that differ from the defaults."""
    manifest = output.manifest
    usual = Fingerprint.of(Options()).by_option()
    if manifest.counts["recipe"] is not None:
        del usual["body"]  # Recipes may set the body, so always write the option.
    if output.is_retrieval_set:
        usual["compression"] = "none"  # The files of a set are always uncompressed.
    words = ["so2docs", "convert", manifest.input[0].name, output.path(manifest.output)]
    for name in (name for name in OPTIONS if name in manifest.options):
        value = manifest.options[name]
        if value != usual.get(name):
            words += _words(name, value, manifest)
    return shlex.join([*words, "--card"])


def _words(name: str, value: Any, manifest: Manifest) -> list[str]:
    option = f"--{name.replace('_', '-')}"
    if name == "recipe":  # The value is the fingerprint of the recipe; write its name.
        return [option, manifest.counts["recipe"]]
    if name in ("drop_users", "drop_posts", "keep_users", "keep_posts"):
        # Do not write the name of the file, which may hold private ids of people.
        return [option, "FILE"]
    if name == "if_present":  # The value lists the missing tables; the option takes no value.
        return [option]
    if name == "tokenizer":
        value = re.sub(r" [0-9a-f]{12}$", "", value)  # Drop the hash of the file.
    if name == "sample":
        value = f"{int(value) / _WHOLE:.12g}"
    if name == "site_field":
        has_site = manifest.options["site"] is not None
        return [option, value[0], *([] if has_site else ["--site", value[1]])]
    if name in ("fields", "drop_fields"):
        value = ",".join(value)
    if value is True:
        return [option]
    return [
        word
        for item in (value if isinstance(value, list) else [value])
        for word in (option, str(item))
    ]
