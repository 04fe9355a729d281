"""`--card`: a manifest beside an output, and a README.md that Hugging Face reads.

The front matter is that of dataset cards (https://huggingface.co/docs/hub/datasets-cards and
datasets-manual-configuration). There is one card a folder, of all outputs that have a manifest
there: a configuration each. Texts in it are quoted as JSON, which YAML contains.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from so2docs.errors import OptionError, flag
from so2docs.metadata.features import dataset_info
from so2docs.metadata.manifest import DESCRIBED, Manifest, load, path_of
from so2docs.options.fingerprint import Fingerprint
from so2docs.options.table import Options
from so2docs.output.new_files import write_file
from so2docs.output.paths import OutputPaths
from so2docs.output.side_files import MANIFEST
from so2docs.output.targets import TargetKind, check_own, check_replaceable
from so2docs.report import Report

CARD = TargetKind(
    "card of so2docs",
    f"output, or overwrite with {flag('force', True)}",
    (b"---\n# Written by so2docs",),
)
_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"))
_MORE_SIZES = ((10**7, "1M<n<10M"), (10**8, "10M<n<100M"), (10**9, "100M<n<1B"))
_WHOLE = 2**64

_TEXT = """
# {title}

Questions and answers of a Stack Exchange data dump, nested by so2docs {version}.

{table}

## How it was made

```console
{commands}
```

{hashes}

`so2docs verify OUTPUT` checks an output against `.OUTPUT.manifest`, which stands beside it.

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
        OptionError: The output or the dump is none that a card can describe.
        OutputError: Something else stands where the card would, or a manifest there is damaged.
    """
    if names.output == "-":
        raise OptionError(
            f"{flag('card', True)} writes a file next to the output; give a name in place of -"
        )
    if not all(file and os.path.isfile(file) for file in read):
        raise OptionError(
            f"{flag('card', True)} reads the dump once more, for its SHA-256; give a file or a "
            "folder with one"
        )
    if options.form.split_share is not None:
        raise OptionError(
            f"{flag('card', True)} describes one split; leave {flag('split_share')} out"
        )
    if options.form.format not in DESCRIBED:
        raise OptionError(
            f"{flag('card', True)} is for {', '.join(DESCRIBED)}, not for {options.form.format}"
        )
    if options.recipe is not None and options.recipe.recipe.files:
        raise OptionError(
            f"{flag('card', True)} is not for recipe {options.recipe.spec}, a folder of its own"
        )
    folder = os.path.dirname(names.output)
    card = os.path.join(folder, "README.md")
    if not (force and os.path.isfile(card)):
        check_own(card, CARD, filter(None, read))
    own = path_of(names.output)
    check_replaceable(own, read)
    _manifests(folder, but=os.path.basename(own))


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
    folder = os.path.dirname(names.output)
    manifest = Manifest.of(names, options, report, read, hashes_input=with_card)
    report.manifest = manifest.to_json()
    if with_card:
        manifest.save(names.output)
        write_file(os.path.join(folder, "README.md"), text(_manifests(folder)).encode())


def _manifests(folder: str, but: str | None = None) -> list[Manifest]:
    """Those in a folder whose outputs are there, by name, but for one that is replaced."""
    paths = sorted(Path(folder or ".").glob(f".*.{MANIFEST}"))
    found = [load(str(path)) for path in paths if path.name != but]
    return [manifest for manifest in found if manifest.is_in_place(folder)]


def text(manifests: list[Manifest]) -> str:
    """The card of a folder with these outputs."""
    names = _config_names(manifests)
    counts = list(map(_documents, manifests))
    front = ["---", "# Written by so2docs --card.", "license: cc-by-sa-4.0"]
    front += ["size_categories:", f"- {_size_category(sum(counts))}", "configs:"]
    for name, manifest in zip(names, manifests, strict=True):
        front += [f"- config_name: {json.dumps(name)}", "  data_files:", "  - split: train"]
        front += ["    path:", *(f"    - {json.dumps(file.name)}" for file in manifest.files)]
    # Documents may have further attributes, and Parquet its own columns.
    schemas = [None if one.counts["recipe"] is None else one.schema for one in manifests]
    front += dataset_info(list(zip(names, counts, schemas, strict=True)))
    table = ["| output | records | questions | answers |", "|---|---:|---:|---:|"]
    for manifest, count in zip(manifests, counts, strict=True):
        found = manifest.counts
        rows = f"{count:,} | {found['questions']:,} | {found['answers']:,}"
        table.append(f"| `{manifest.output}` | {rows} |")
    hashes = ["| SHA-256 | bytes | file |", "|---|---:|---|"]
    files = [file for manifest in manifests for file in (*manifest.input, *manifest.files)]
    hashes += [f"| `{f.sha256}` | {f.bytes:,} | `{f.name}` |" for f in dict.fromkeys(files)]
    return "\n".join([*front, "---"]) + _TEXT.format(
        title=", ".join(names) if len(names) < 4 else f"{len(names)} outputs",
        version=", ".join(sorted({manifest.so2docs for manifest in manifests})),
        table="\n".join(table),
        commands="\n".join(f"$ {command(manifest)}" for manifest in manifests),
        hashes="\n".join(hashes),
    )


def _config_names(manifests: list[Manifest]) -> list[str]:
    stems = [OutputPaths(manifest.output, None).stem for manifest in manifests]
    outputs = [manifest.output for manifest in manifests]
    return stems if len(set(stems)) == len(stems) else outputs


def _documents(manifest: Manifest) -> int:
    """Documents of an output, or records."""
    records: int | None = manifest.counts["records"]
    questions: int = manifest.counts["questions"]
    return questions if records is None else records


def _size_category(count: int) -> str:
    return next((name for most, name in (*_SIZES, *_MORE_SIZES) if count < most), "n>1B")


def command(manifest: Manifest) -> str:
    """A command that writes the same output, from its options that are not the default."""
    usual = Fingerprint.of(Options()).by_option()
    if manifest.counts["recipe"] is not None:
        del usual["body"]  # Which the recipe may say.
    words = ["so2docs", "convert", manifest.input[0].name, manifest.output]
    for name, value in manifest.options.items():
        if value != usual.get(name):
            words += _words(name, value, manifest)
    return shlex.join([*words, "--card"])


def _words(name: str, value: Any, manifest: Manifest) -> list[str]:
    option = f"--{name.replace('_', '-')}"
    if name == "recipe":  # With what else its fingerprint says.
        return [option, manifest.counts["recipe"]]
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
        for one in (value if isinstance(value, list) else [value])
        for word in (option, str(one))
    ]
