"""`README.md`: a dataset card for Hugging Face that describes the outputs of a folder.

The front matter follows the format of dataset cards
(https://huggingface.co/docs/hub/datasets-cards and datasets-manual-configuration). A folder has one
card with a configuration for each output that has a manifest.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from so2docs.escape import to_yaml
from so2docs.extensions.cards.columns import describe_columns
from so2docs.extensions.cards.manifest import TRAIN, DescribedOutput, Manifest
from so2docs.extensions.json_schema import describe_record
from so2docs.extensions.site_facts import LICENSES, license_at, site_language
from so2docs.options.option import WHOLE
from so2docs.options.request import recorded_options
from so2docs.options.table import OPTIONS, Options
from so2docs.plugin import on_one_line, plural

START = b"---\n# Written by so2docs"
"""First bytes of a card, by which so2docs knows its own."""

_SIZES = (
    *("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B"),
    "n>1B",
)
"""Size categories by the number of digits, from three to ten."""

_TASKS = ("question-answering",)
"""Task categories of documents, from https://huggingface.co/tasks."""

_DTYPES = {"string": "string", "integer": "int64", "number": "float64", "boolean": "bool"}

_TEXT = """
# {title}

Questions and answers of a Stack Exchange data dump, nested by so2docs {version}.

{table}
{notes}{others}{columns}
## How it was made

```console
{commands}
```

{hashes}

`sha256sum -c SHA256SUMS` checks the files of the outputs.

## Licence

The content was written by the users of the site. It is licensed under {licenses}.
Anyone who passes it on must name the authors and the licence, link to the source, indicate changes,
and pass adaptations on under the same or a compatible licence.
"""


def title_of(outputs: Collection[DescribedOutput]) -> str:
    """Make a title from the sites' names (or their number, if above three) and the recipes."""
    sites = dict.fromkeys(o.manifest.site or o.folder or o.manifest.input[0].name for o in outputs)
    recipes = dict.fromkeys(o.manifest.counts["recipe"] for o in outputs)
    name = on_one_line(", ".join(sites)) if len(sites) < 4 else f"{len(sites)} Stack Exchange sites"
    kinds = ", ".join(recipe or "questions with answers" for recipe in recipes)
    return f"{name}: {kinds}" if len(recipes) < 4 else name


def readme_text(outputs: Mapping[str, DescribedOutput]) -> str:
    """Return the text of the card for these outputs, by the name of their configurations."""
    title, builder = title_of(outputs.values()), _choose_builder(outputs.values())
    # Leave out empty outputs: they have no columns, so other outputs would not load.
    full = {
        name: output
        for name, output in outputs.items()
        if output.documents and not output.is_record_set
    }
    others = [output for output in full.values() if output.builder != builder]
    full = {name: output for name, output in full.items() if output not in others}
    lines = to_yaml(_front_matter(title, outputs.values(), full))
    names = _licenses(outputs.values())
    text = _TEXT.format(
        title=title,
        version=", ".join(sorted({output.manifest.version for output in outputs.values()})),
        table="\n".join(_table(outputs.values())),
        notes="".join(_notes(outputs.values())),
        others=_load_others(others, builder),
        columns=_columns(outputs.values()),
        commands="\n".join(f"$ {command(output)}" for output in outputs.values()),
        hashes="\n".join(_hashes(outputs.values())),
        licenses=" or ".join(names) + ", depending on its date" * (len(names) > 1),
    )
    return "\n".join(["---", "# Written by so2docs --card.", *lines, "---"]) + text


def _front_matter(
    title: str, outputs: Iterable[DescribedOutput], full: Mapping[str, DescribedOutput]
) -> dict[str, Any]:
    """Return the metadata of all `outputs`, and the configurations of those that are `full`."""
    outputs = list(outputs)
    recipes = [(output.manifest.counts["recipe"], output.recipe) for output in outputs]
    recipes.sort(key=lambda recipe: str(recipe[0]))
    tasks = [_TASKS if name is None else recipe.tasks if recipe else () for name, recipe in recipes]
    is_by_site = len(full) > 1 and all(output.folder for output in full.values())
    configs = _configurations(full, is_by_site=is_by_site)
    # With one output per site, omit the types of columns, which would take megabytes for hundreds
    # of sites.
    infos = [_dataset_info(*entry, has_features=not is_by_site) for entry in full.items()]
    for output in outputs:
        if (recipe := output.recipe) and recipe.files:
            from so2docs.extensions.recipes.record_sets import describe_files

            files = output.manifest.files
            counts = {file.name: (file.bytes, output.count([file.name])) for file in files}
            configs, infos = describe_files(recipe, counts)
    digits = len(str(sum(output.documents for output in outputs)))
    return {
        "license": [name.lower().replace(" ", "-") for name in _licenses(outputs)],
        "language": sorted({site_language(output.manifest.site or "") for output in outputs}),
        "pretty_name": title,
        "task_categories": list(dict.fromkeys(task for names in tasks for task in names)),
        "tags": ["stack-exchange", "question-answering", "so2docs"],
        "size_categories": [_SIZES[min(max(digits - 3, 0), len(_SIZES) - 1)]],
        "configs": configs,
        "dataset_info": infos,
    }


def _licenses(outputs: Iterable[DescribedOutput]) -> list[str]:
    """List the licences of the dates in the dumps, the latest first; all if dates are unknown."""
    names = [*LICENSES]
    found = set[str]()
    for counts in (output.manifest.counts for output in outputs):
        newest = license_at(counts.get("last_day")) or names[0]
        oldest = license_at(counts.get("first_day")) or names[-1]
        found.update(name for name in names if oldest <= name <= newest)
    return sorted(found, reverse=True)


def _full_splits(output: DescribedOutput) -> dict[str, list[str]]:
    """Return the splits that have a document: `datasets` cannot read an empty one."""
    return {name: files for name, files in output.splits.items() if output.count(files)}


def _configurations(
    outputs: Mapping[str, DescribedOutput], *, is_by_site: bool
) -> list[dict[str, Any]]:
    configurations: list[dict[str, Any]] = []
    if is_by_site:
        names = [file.name for output in outputs.values() for file in output.manifest.files]
        kinds = dict.fromkeys(re.sub(r"-\d+(-of-\d+)?(?=\.)", "-*", name) for name in names)
        data_files = [{"split": TRAIN, "path": [f"*/{kind}" for kind in kinds]}]
        configurations = [{"config_name": "default", "default": True, "data_files": data_files}]
    for name, output in outputs.items():
        data_files = [
            {"split": split, "path": list(map(output.path, files))}
            for split, files in _full_splits(output).items()
        ]
        configurations.append({"config_name": name, "data_files": data_files})
    return configurations


def _dataset_info(name: str, output: DescribedOutput, *, has_features: bool) -> dict[str, Any]:
    """Return an entry of `dataset_info`; `datasets` ignores entries without sizes.

    Parquet files of documents get no features, because their columns differ from the JSON Schema.
    """
    manifest = output.manifest
    sizes = {file.name: file.bytes for file in manifest.files}
    has_features = has_features and not output.has_dates
    return {
        "config_name": name,
        "features": (has_features and features(manifest.schema or {})) or [],
        "splits": [
            {
                "name": split,
                "num_bytes": sum(sizes[file] for file in files),
                "num_examples": output.count(files),
            }
            for split, files in _full_splits(output).items()
        ],
        "download_size": sum(sizes.values()),
        "dataset_size": sum(sizes.values()),
    }


def features(schema: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Describe the members of an object for `datasets`; None if a member has no column type.

    Args:
        schema: JSON Schema of a record, or of an object in a record.
    """
    columns = []
    for name, kind in schema.get("properties", {}).items():
        if (feature := _feature(kind)) is None:
            return None
        columns.append({"name": name, **feature})
    return columns or None


def _feature(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    kind = schema.get("type", "string" if "const" in schema else None)
    if isinstance(kind, list):  # The second type is a string, for numbers beyond 64 bits.
        kind = kind[0]
    if kind not in ("array", "object"):
        return {"dtype": _DTYPES[kind]} if kind in _DTYPES else None
    items = schema.get("items", {}) if kind == "array" else schema
    if items.get("type") in _DTYPES:
        return {"sequence": _DTYPES[items["type"]]}
    members = features(items)
    return None if members is None else {"list" if kind == "array" else "struct": members}


def _code(name: str) -> str:
    """Return Markdown that shows the name of a file."""
    return f"`{on_one_line(name)}`"


def _table(outputs: Iterable[DescribedOutput]) -> Iterator[str]:
    yield "| output | records | questions | answers |"
    yield "|---|---:|---:|---:|"
    for output in outputs:
        counts = output.manifest.counts
        numbers = f"{output.documents:,} | {counts['questions']:,} | {counts['answers']:,}"
        yield f"| {_code(output.name)} | {numbers} |"
        if len(output.splits) > 1:
            for split, files in output.splits.items():
                yield f"| {_code(output.name)}, split `{split}` | {output.count(files):,} | | |"


def _notes(outputs: Iterable[DescribedOutput]) -> Iterator[str]:
    for output in outputs:
        if as_of := output.manifest.options.get("as_of"):
            later = output.manifest.options.get("settings", {}).get("queries_until")
            last_row: str = output.manifest.counts.get("last_row") or ""
            end = ""
            if last_row and last_row[: len(as_of)] < as_of:
                end = f" The latest row of that dump is of {last_row[:10]}."
            queries = f" Queries come from questions asked later, until {later}." if later else ""
            yield (
                f"\n{_code(output.name)}: the site as it was on {as_of}, restored from a later "
                f"dump. Posts deleted since are missing.{end}{queries}\n"
            )
        if linked := output.manifest.counts.get("linked_elsewhere"):
            left_out = f"{plural(linked, 'question')} with a link to another share"
            yield f"\n{_code(output.name)}: {left_out} left out.\n"
        has_splits = output.documents and not output.is_record_set
        if has_splits and (empty := output.splits.keys() - _full_splits(output)):
            names = ", ".join(f"`{name}`" for name in sorted(empty))
            yield f"\n{_code(output.name)}: no configuration lists {names}, which has no record.\n"


def _choose_builder(outputs: Iterable[DescribedOutput]) -> str:
    """Choose the builder for all configurations: the most frequent, or Parquet in a tie.

    `datasets` loads a folder with the builder of its first configuration.
    """
    full = [output for output in outputs if output.documents]
    if any(output.is_record_set for output in full):
        return "json"
    return max(("parquet", "json"), key=[output.builder for output in full].count)


def _load_others(outputs: list[DescribedOutput], builder: str) -> str:
    """Return a paragraph that names the outputs that are not configurations."""
    if not outputs:
        return ""
    names = ", ".join(_code(output.name) for output in outputs)
    return (
        f"\n`datasets` reads one format in a folder, here {builder}. Load {names} with the name of "
        "the format and `data_files`.\n"
    )


def _columns(outputs: Iterable[DescribedOutput]) -> str:
    """Return Markdown that describes the columns; outputs with the same columns share a table."""
    by_columns: dict[tuple[str, ...], list[str]] = {}
    for output in outputs:
        if tables := _tables_of_columns(output):
            by_columns.setdefault(tables, []).append(output.name)
    parts = ["\n## Columns\n"] if by_columns else []
    for columns, names in by_columns.items():
        if len(by_columns) > 1:
            others = f" and {plural(len(names) - 1, 'other output')}" if len(names) > 1 else ""
            parts.append(f"{_code(names[0])}{others}:\n")
        parts += (f"{table}\n" for table in columns)
    return "\n".join(parts)


def _tables_of_columns(output: DescribedOutput) -> tuple[str, ...]:
    """Return the table of the columns, or that of each configuration of a record set."""
    manifest, recipe = output.manifest, output.recipe
    if manifest.schema is not None:
        name = manifest.counts["recipe"]
        return (describe_columns(name, manifest.schema, has_dates=output.has_dates),)
    if recipe is None or not recipe.files:
        return ()
    return tuple(
        f"Configuration `{file.configuration}`:\n\n"
        + describe_columns(recipe.name, describe_record(file.record))
        for file in recipe.files.values()
        if file is not None
    )


def _hashes(outputs: Iterable[DescribedOutput]) -> list[str]:
    lines = dict.fromkeys(
        f"| {f'`{file.sha256}`' if file.sha256 else 'not known'} | {file.bytes:,} | {_code(name)} |"
        for output in outputs
        for file, name in (
            *((file, file.name) for file in output.manifest.input),
            *((file, output.path(file.name)) for file in output.manifest.files),
        )
    )
    return ["| SHA-256 | bytes | file |", "|---|---:|---|", *lines]


def command(output: DescribedOutput) -> str:
    """Return the command that makes the output, with all options that differ from the defaults."""
    manifest = output.manifest
    usual = recorded_options(Options())
    if manifest.counts["recipe"] is not None:
        del usual["body"]  # Recipes may set the body, so always write the option.
    if output.is_record_set:
        usual["compression"] = "none"  # The files of a set are always uncompressed.
    words = ["so2docs", "convert", manifest.input[0].name, output.name]
    for name in (name for name in OPTIONS if name in manifest.options):
        value = manifest.options[name]
        if value != usual.get(name):
            words += _words(name, value, manifest)
    return shlex.join([*words, "--card"])


def _words(name: str, value: Any, manifest: Manifest) -> list[str]:
    option = OPTIONS[name].spellings[0]
    if name == "recipe":  # The value is the fingerprint of the recipe; write its name.
        return [option, manifest.counts["recipe"]]
    if OPTIONS[name].is_switch:  # The value of `if_present` lists the missing tables.
        return [option]
    if name in ("drop_users", "drop_posts", "keep_users", "keep_posts"):
        value = "FILE"  # The name of the file may hold private ids of people.
    if name == "settings":
        # Drop the hash of the file of a tokenizer.
        texts = {key: re.sub(r" [0-9a-f]{12}$", "", str(item)) for key, item in value.items()}
        return [word for key, text in texts.items() for word in ("--set", f"{key}={text}")]
    if name == "sample":
        value = f"{int(value) / WHOLE:.12g}"
    if name == "site_field":
        has_site = manifest.options["site"] is not None
        return [option, value[0], *([] if has_site else ["--site", value[1]])]
    if name in ("fields", "drop_fields"):
        value = ",".join(value)
    values = value if isinstance(value, list) else [value]
    return [word for item in values for word in (option, str(item))]
