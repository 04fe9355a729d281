"""`--card`: a manifest next to an output, and a README.md and croissant.json that tell of it.

The front matter of README.md is that of dataset cards
(https://huggingface.co/docs/hub/datasets-cards and datasets-manual-configuration). There is one
card a folder, of all outputs that have a manifest there: a configuration each. Texts in it are
quoted as JSON, which YAML contains. `croissant.json` is Croissant 1.1
(https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html): a file object for each file
with its SHA-256, a record set for each output, and a field for each member of a record; lists are
`repeated`, and what is in an object is its `subField`.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from so2docs.errors import OptionError, OutputError, flag
from so2docs.escape import for_html, for_terminal
from so2docs.metadata.manifest import (
    DESCRIBED,
    File,
    Manifest,
    load,
    load_from_report,
    manifest_path,
)
from so2docs.options.choices import split_compression
from so2docs.options.request import Fingerprint
from so2docs.options.table import OPTIONS, Options
from so2docs.output import new_files
from so2docs.output.part_files import MANIFEST, TargetKind, check_own, check_replaceable
from so2docs.output.paths import OutputPaths
from so2docs.recipes.finding import RECIPES
from so2docs.report import Report
from so2docs.schema import DATES

_FILE_FACTS = ("form", "bytes", "codecs", "sha256")
_TABLE_FACTS = (
    *("rows", "first_date", "last_date", "is_ordered", "descents", "made_up", "with_licence"),
    *("comments", "repaired", "malformed"),
)
_CHECK_FACTS = ("name", "checked", "differ", "examples")


def choose_inspection(
    inspections: Iterable[Mapping[str, Any]], read: Mapping[str, tuple[int, str | None]], name: str
) -> dict[str, Any]:
    """The inspection of the dump that an output was made of, as manifests have it.

    Args:
        inspections: What `so2docs inspect --json` prints.
        read: The files that the output was made of: bytes, and SHA-256 if it is known, by name.
        name: What the inspections are from, for messages.

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
                return {
                    "site": values["site"],
                    "release": values["release"],
                    "files": files,
                    "tables": {
                        table: {key: facts[key] for key in _TABLE_FACTS}
                        for table, facts in values["tables"].items()
                    },
                    "checks": [
                        {key: check[key] for key in _CHECK_FACTS} for check in values["checks"]
                    ],
                    "remarks": [_without_folder(text, files) for text in values["remarks"]],
                }
    except (KeyError, TypeError, AttributeError):
        raise OutputError(f"{name}: is not the JSON report of so2docs inspect") from None
    expected = ", ".join(f"{file} ({size:,} bytes)" for file, (size, _) in read.items())
    raise OutputError(f"{name}: is not the dump that the output was made of: {expected}")


def _without_folder(text: str, files: Iterable[str]) -> str:
    """A remark without the folder that a dump was in."""
    for name in files:
        text = re.sub(rf"\S*[/\\]({re.escape(name)})", r"\1", text)
    return text


def _is_same(file: Mapping[str, Any] | None, size: int, sha256: str | None) -> bool:
    if file is None or file["bytes"] != size:
        return False
    return None in (sha256, file["sha256"]) or sha256 == file["sha256"]


def describe_dump(inspection: Mapping[str, Any]) -> list[str]:
    """The lines of a card about a dump, from what `choose_inspection` returned."""
    lines = []
    for name, file in inspection["files"].items():
        codecs = (f"{codec} in {n:,} block{'s'[: n > 1]}" for codec, n in file["codecs"].items())
        lines.append(f"- `{name}`: {', '.join([file['form'], *codecs])}")
    last_date = max((table["last_date"] for table in inspection["tables"].values()), default="")
    if last_date:
        lines.append(f"- last row of {last_date[:10]}, so probably the release of that month")
    lines += ["", "| table | rows | first date | last date | rows with a licence |"]
    lines.append("|---|---:|---|---|---:|")
    for name, table in inspection["tables"].items():
        dates = table["first_date"][:10], table["last_date"][:10]
        cells = (f"{table['rows']:,}", *dates, f"{table['with_licence']:,}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    checks = inspection["checks"]
    differing = [check for check in checks if check["differ"]]
    notes = [_describe_check(check) for check in differing] + inspection["remarks"]
    if checks:
        equal = f"{len(checks) - len(differing):,} of {len(checks):,}"
        notes.insert(0, f"{equal} equalities between its counts and its rows hold")
    lines += ["", *(f"- {' '.join(for_html(note).split())}" for note in notes)]
    tables = inspection["tables"].values()
    for comment in dict.fromkeys(text for table in tables for text in table["comments"]):
        # As code, in which nothing is markup.
        lines += ["", "A comment in it says:", ""]
        lines += [f"    {line}" for line in for_terminal(comment).splitlines()]
    return lines


def _describe_check(check: Mapping[str, Any]) -> str:
    examples = ", ".join(map(str, check["examples"]))
    return (
        f"{check['name']}: does not hold for {check['differ']:,} of {check['checked']:,} "
        f"({examples})"
    )


_TYPES = {
    "string": ("string", "sc:Text"),
    "integer": ("int64", "sc:Integer"),
    "number": ("float64", "sc:Float"),
    "boolean": ("bool", "sc:Boolean"),
}
"""Types of JSON Schema: what `datasets` and Croissant call them."""


def features(schema: Mapping[str, Any], indent: str = "  ") -> list[str] | None:
    """Lines of YAML for the members of an object; None if they have no types of columns.

    Args:
        schema: JSON Schema of a record, or of an object in it.
        indent: What each line starts with.
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
    if isinstance(kind, list):  # A number that is none of 64 bits stays a text.
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


def dataset_info(
    configurations: list[tuple[str, int, int, Mapping[str, Any] | None]],
) -> Iterator[str]:
    """The lines of `dataset_info`, which `datasets` ignores without the bytes.

    Args:
        configurations: Of each its name, the number of its records, the bytes of its files, and the
            JSON Schema of a record; None if Hugging Face is to tell the columns by the files.
    """
    yield "dataset_info:"
    for name, count, size, schema in configurations:
        yield f"- config_name: {json.dumps(name)}"
        columns = None if schema is None else features(schema)
        if columns is not None:
            yield "  features:"
            yield from columns
        yield "  splits:"
        yield "  - name: train"
        yield f"    num_bytes: {size}"
        yield f"    num_examples: {count}"
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
_FORMATS = {".parquet": "application/x-parquet", ".json": "application/json"}
_LINES = "application/jsonlines"


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
    """A member of a record, and what is in it."""
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


CARD = TargetKind(
    "card of so2docs",
    f"output, or overwrite with {flag('force', True)}",
    (b"---\n# Written by so2docs",),
)
_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"))
_MORE_SIZES = ((10**7, "1M<n<10M"), (10**8, "10M<n<100M"), (10**9, "100M<n<1B"))
_WHOLE = 2**64
_CARD, _CROISSANT = "README.md", "croissant.json"
_DESCRIPTION = "Questions and answers of a Stack Exchange data dump, nested by so2docs."
_BY_SITE = "train"
"""Stem of an output that has the folder of its site to itself."""
_RECIPES_BY_SITE = frozenset(name for name, one in RECIPES.own.items() if one.is_by_site)

_TEXT = """
# {title}

Questions and answers of a Stack Exchange data dump, nested by so2docs {version}.

{table}
{dump}
## How it was made

```console
{commands}
```

{hashes}

`so2docs verify OUTPUT` checks an output against `.OUTPUT.manifest`, which is next to it.

## Licence

The content is by the users of the site, under CC BY-SA: 2.5, 3.0 or 4.0, by its date. Who passes it
on names the authors and the licence, links to the source, says what was changed, and passes
adaptations on under the same licence or a compatible one.
"""


def check_card(
    names: OutputPaths, options: Options, read: Iterable[str | None], *, force: bool
) -> None:
    """Refuse a card where none can be, before anything is converted.

    Raises:
        OptionError: A card cannot describe this output or dump.
        OutputError: Something else is where the card would, or a manifest there is damaged.
    """
    if names.output == "-":
        raise OptionError(
            f"{flag('card', True)} writes a file next to the output; give the name of a file "
            "instead of -"
        )
    if not all(file and os.path.isfile(file) for file in read):
        raise OptionError(
            f"{flag('card', True)} reads the dump a second time, for its SHA-256; give the "
            "name of a file or folder"
        )
    if options.form.split_share is not None:
        raise OptionError(
            f"{flag('card', True)} describes one split; leave {flag('split_share')} out"
        )
    _check_format(options.form.format)
    if options.recipe is not None and options.recipe.recipe.files:
        raise OptionError(
            f"{flag('card', True)} does not support recipe {options.recipe.spec}, which "
            "writes a folder; leave one of them out"
        )
    folder = _folder_of_card(names)
    check_folder_of_card(folder, filter(None, read), force=force)
    own = manifest_path(names.output)
    check_replaceable(own, read)
    _described(folder, but=own)


def check_folder_of_card(folder: str, read: Iterable[str] = (), *, force: bool) -> None:
    """Refuse to replace what a card of so2docs is not; its `croissant.json` goes with the card.

    Raises:
        OutputError: Something else is where the card or its `croissant.json` would be.
    """
    card, described = (os.path.join(folder, name) for name in (_CARD, _CROISSANT))
    if not (force and os.path.isfile(card)):
        check_own(card, CARD, read)
    if os.path.exists(described) and not os.path.exists(card) and not force:
        raise OutputError(f"{described}: exists without a card of so2docs; choose another output")


def describe(
    names: OutputPaths, options: Options, report: Report, read: Iterable[str], *, with_card: bool
) -> None:
    """Describe a conversion that is done in its report, and in a card, if one is asked for.

    Its output is read once more, and for a card its input.

    Raises:
        So2docsError: Something cannot be written.
        OSError: A file is gone.
    """
    of_recipe = () if options.recipe is None else options.recipe.recipe.files
    if of_recipe:
        return
    manifest = Manifest.of(names, options, report, read, hashes_input=with_card)
    report.manifest = manifest.to_json()
    if with_card:
        manifest.save(names.output)
        write(_folder_of_card(names))


def write(folder: str) -> None:
    """Write the card of a folder, and the same as Croissant.

    The manifests are read while no other process writes the card, so that the last of several that
    end at the same time describes the outputs of all.

    Raises:
        So2docsError: A manifest there is damaged, or a file cannot be written.
    """
    card, croissant = (os.path.realpath(os.path.join(folder, name)) for name in (_CARD, _CROISSANT))
    with new_files.NewFiles() as files:
        for path in (croissant, card):  # The card gets its name first: the other needs one.
            files.claim(path, force=True, seconds=new_files.FOR_SMALL_FILES)
        outputs = _described(folder)
        files.write(card, text(outputs).encode())
        files.write(croissant, croissant_text(outputs).encode())


def describe_existing(
    output: str,
    *,
    report: str | None = None,
    force: bool = False,
    inspections: tuple[str, list[Any]] | None = None,
) -> tuple[str, str]:
    """Write the card of an output that is there, and its manifest if it has none.

    Args:
        output: Name of the output, as `convert` was given it.
        report: The report of its conversion, with a manifest; without it the manifest next to the
            output counts, or else what the output itself says of how it was made.
        force: Replace a `README.md` that is not a card of so2docs.
        inspections: What `so2docs inspect` found out about the dump, perhaps among others, after
            the name of where that is from.

    Returns:
        The names of the card and of the `croissant.json`.

    Raises:
        OutputError: There is no such output, it does not say how it was made or was changed since,
            or a file cannot be written.
        OptionError: It is in a format that a card does not describe.
    """
    folder, own = os.path.dirname(output), manifest_path(output)
    if report is not None:
        manifest = load_from_report(report, output)
    else:
        manifest = load(own) if os.path.exists(own) else Manifest.of_existing(output)
    _check_format(str(manifest.options.get("format")))
    if not manifest.is_in_place(folder):
        raise OutputError(
            f"{output}: its files are not as its manifest says; convert the dump again with "
            f"{flag('card', True)} and {flag('force', True)}"
        )
    if inspections is not None:
        name, values = inspections
        read = {file.name: (file.bytes, file.sha256) for file in manifest.input}
        manifest = replace(manifest, inspection=choose_inspection(values, read, name))
    is_by_site = manifest.counts["recipe"] in _RECIPES_BY_SITE
    place = _folder_of_card(OutputPaths(output, None, is_by_site=is_by_site))
    check_folder_of_card(place, force=force)
    if inspections is not None or not os.path.exists(own):
        manifest.save(output)
    write(place)
    return os.path.join(place, _CARD), os.path.join(place, _CROISSANT)


def _check_format(name: str) -> None:
    if name not in DESCRIBED:
        raise OptionError(
            f"{flag('card', True)} supports the formats {', '.join(DESCRIBED)}, not {name}; "
            "leave it out"
        )


@dataclass(frozen=True, slots=True)
class Described:
    """An output that a card describes.

    Attributes:
        folder: The folder of the output, from that of the card: that of the site, or nothing.
        manifest: What it was made of.
    """

    folder: str
    manifest: Manifest

    def path(self, name: str) -> str:
        """The path of a file of the output, from the folder of the card."""
        return f"{self.folder}/{name}" if self.folder else name

    @property
    def paths(self) -> list[str]:
        """The paths of its files, from the folder of the card."""
        return [self.path(file.name) for file in self.manifest.files]


def _folder_of_card(names: OutputPaths) -> str:
    """The folder of the output; of outputs by site, the one with the folders of the sites."""
    folder = os.path.dirname(names.output)
    is_by_site = names.is_by_site and os.path.basename(names.stem) == _BY_SITE and folder != ""
    return os.path.dirname(folder) if is_by_site else folder


def _described(folder: str, but: str | None = None) -> list[Described]:
    """The outputs in a folder that have a manifest, by name, but for one that is replaced."""
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
    """The card of a folder with these outputs."""
    names = _config_names(outputs)
    manifests = [output.manifest for output in outputs]
    counts = list(map(_documents, manifests))
    front = ["---", "# Written by so2docs --card.", "license: cc-by-sa-4.0"]
    front += ["size_categories:", f"- {_size_category(sum(counts))}", "configs:"]
    for name, output in zip(names, outputs, strict=True):
        front += [f"- config_name: {json.dumps(name)}", "  data_files:", "  - split: train"]
        front += ["    path:", *(f"    - {json.dumps(path)}" for path in output.paths)]
    # Parquet says itself what its columns are, and those of documents are others.
    schemas = [None if _is_plain_parquet(m) else m.schema for m in manifests]
    sizes = [sum(file.bytes for file in manifest.files) for manifest in manifests]
    front += dataset_info(list(zip(names, counts, sizes, schemas, strict=True)))
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
        title=_title(names),
        version=", ".join(sorted({manifest.so2docs for manifest in manifests})),
        table="\n".join(table),
        dump=_dumps(outputs),
        commands="\n".join(f"$ {command(output)}" for output in outputs),
        hashes="\n".join(hashes),
    )


def _dumps(outputs: list[Described]) -> str:
    """Describe the inspected dumps, each once."""
    by_input: dict[tuple[File, ...], list[Described]] = {}
    for output in outputs:
        if output.manifest.inspection is not None:
            by_input.setdefault(tuple(output.manifest.input), []).append(output)
    parts = ["\n## The dump\n"] if by_input else []
    for files, same in by_input.items():
        names = ", ".join(f"`{output.path(output.manifest.output)}`" for output in same)
        read = ", ".join(f"`{file.name}`" for file in files)
        lines = describe_dump(same[0].manifest.inspection or {})
        parts.append("\n".join([f"{names}, from {read}:", "", *lines, ""]))
    return "\n".join(parts)


def croissant_text(outputs: list[Described]) -> str:
    """The `croissant.json` of a folder with these outputs."""
    names = _config_names(outputs)
    described: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": _title(names),
        "description": _DESCRIPTION,
        "license": "https://creativecommons.org/licenses/by-sa/4.0/",
        "distribution": [
            part
            for name, output in zip(names, outputs, strict=True)
            for part in _distribution(name, output)
        ],
        "recordSet": [
            _record_set(name, output, output.manifest.schema)
            for name, output in zip(names, outputs, strict=True)
            if output.manifest.schema is not None
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
    if len(paths) > 1:
        yield {
            "@type": "cr:FileSet",
            "@id": f"{name}-files",
            "name": f"{name}-files",
            "containedIn": [{"@id": path} for path in paths],
            "encodingFormat": _encoding(paths[0]),
            "includes": "*",
        }


def _record_set(name: str, output: Described, schema: Mapping[str, Any]) -> dict[str, Any]:
    if len(output.paths) > 1:
        source = {"fileSet": {"@id": f"{name}-files"}}
    else:
        source = {"fileObject": {"@id": output.paths[0]}}
    dates = DATES if _is_plain_parquet(output.manifest) else frozenset[str]()
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "field": [
            _field(f"{name}/{member}", kind, source, (member,), dates)
            for member, kind in schema["properties"].items()
        ],
    }


def _title(names: list[str]) -> str:
    return ", ".join(names) if len(names) < 4 else f"{len(names)} outputs"


def _is_plain_parquet(manifest: Manifest) -> bool:
    is_parquet = all(file.name.endswith(".parquet") for file in manifest.files)
    return is_parquet and manifest.counts["recipe"] is None


def _config_names(outputs: list[Described]) -> list[str]:
    stems = [output.folder or OutputPaths(output.manifest.output, None).stem for output in outputs]
    paths = [output.path(output.manifest.output) for output in outputs]
    return stems if len(set(stems)) == len(stems) else paths


def _documents(manifest: Manifest) -> int:
    """Documents of an output, or records."""
    records: int | None = manifest.counts["records"]
    questions: int = manifest.counts["questions"]
    return questions if records is None else records


def _size_category(count: int) -> str:
    return next((name for most, name in (*_SIZES, *_MORE_SIZES) if count < most), "n>1B")


def command(output: Described) -> str:
    """A command that writes the same output, from its options that are not the default."""
    manifest = output.manifest
    usual = Fingerprint.of(Options()).by_option()
    if manifest.counts["recipe"] is not None:
        del usual["body"]  # Which the recipe may say.
    words = ["so2docs", "convert", manifest.input[0].name, output.path(manifest.output)]
    for name in (name for name in OPTIONS if name in manifest.options):
        value = manifest.options[name]
        if value != usual.get(name):
            words += _words(name, value, manifest)
    return shlex.join([*words, "--card"])


def _words(name: str, value: Any, manifest: Manifest) -> list[str]:
    option = f"--{name.replace('_', '-')}"
    if name == "recipe":  # With what else its fingerprint says.
        return [option, manifest.counts["recipe"]]
    if name in ("drop_users", "drop_posts"):
        return [option, "FILE"]  # Whom it names is nobody's business.
    if name == "tokenizer":
        value = re.sub(r" [0-9a-f]{12}$", "", value)  # The hash of the file.
    if name == "sample":
        value = f"{int(value) / _WHOLE:.12g}"
    if name == "site_field":
        has_site = manifest.options["site"] is not None
        return [option, value[0], *([] if has_site else ["--site", value[1]])]
    if name in ("fields", "without"):
        value = ",".join(value)
    if value is True:
        return [option]
    return [
        word
        for item in (value if isinstance(value, list) else [value])
        for word in (option, str(item))
    ]
