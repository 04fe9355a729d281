"""Choose the form of an output from its name and the options."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from so2docs.errors import OptionError, flag, require_packages
from so2docs.options.choices import (
    EXTENSIONS,
    FORMATS,
    GZIPPED,
    UNCOMPRESSED,
    Compression,
    compression_from_name,
    formats_from_name,
    split_compression,
)
from so2docs.options.split import Split
from so2docs.options.table import TRANSFORM_OPTIONS, OutputForm

HUB_FILE_BYTES = 500_000_000
"""Default size of files for the Hugging Face hub, as in `datasets.Dataset.push_to_hub`."""


def output_form(output: str, values: Mapping[str, Any]) -> OutputForm:
    """Choose the format, compression and splitting of an output from its name and the options.

    Raises:
        OptionError: The name is unsuitable, or the options contradict it or each other.
    """
    if not output:
        raise OptionError(
            "OUTPUT is empty, perhaps from an unset variable; give the name of a file, or - for "
            "standard output"
        )
    if "://" in output:
        raise OptionError(
            f"{output}: outputs are local files; copy the output afterwards, or use so2docs spark, "
            "which writes to object stores"
        )
    if output.endswith(os.sep) or os.path.isdir(output):
        raise OptionError(
            f"{output}: is a folder; did you mean {os.path.join(output, default_output(values))}, "
            f"or, for several dumps, {flag('output_dir', output)}?"
        )
    name = _format(output, values)
    if (package := FORMATS[name].needs) is not None:
        require_packages(flag("format", name), package, extra="parquet")
    split = values.get("split") or Split()
    transform = TRANSFORM_OPTIONS.of(values).transform
    is_for_hub = transform.is_by_site and output != "-"
    if is_for_hub and not split:
        split = Split(size=HUB_FILE_BYTES)
    if output == "-" and (split or not FORMATS[name].compressed):
        subject = flag("split", str(split)) if split else flag("format", name)
        raise OptionError(f"{subject} does not support standard output; give the name of a file")
    compression = _compression(output, name, values.get("compression"))
    return OutputForm(name, compression, has_total=is_for_hub, split=split)


def check_several(form: OutputForm, site_field: str | None) -> None:
    """Reject a format in which documents of several sites would replace each other.

    Raises:
        OptionError: The format uses question ids as document ids, and there is no `site_field`.
    """
    if FORMATS[form.format].ids and site_field is None:
        raise OptionError(
            f"{flag('format', form.format)} of several sites needs "
            f"{flag('site_field', 'NAME')}: post ids are only unique per site, and documents with "
            f"the same id would replace each other"
        )


def default_output(values: Mapping[str, Any]) -> str:
    """Return the default name of the output, such as `questions.jsonl.gz`."""
    return f"questions{output_suffix(values)}"


def output_suffix(values: Mapping[str, Any]) -> str:
    """Return the extensions for the format and compression in keywords, such as `.jsonl.gz`."""
    requested = values.get("format")
    name: str = requested or "jsonl"
    end = FORMATS[name].extensions[0]
    if not FORMATS[name].compressed or end in GZIPPED:
        return end
    return end + EXTENSIONS[values.get("compression") or "gzip"]


_COMMANDS = {".csv": "tables", ".db": "sqlite", ".sqlite": "sqlite"}
"""Commands for the extensions of other products."""


def _format(output: str, values: Mapping[str, Any]) -> str:
    """Choose the format of an output from its name and the options.

    Raises:
        OptionError: The name shows no format, or one that contradicts the options.
    """
    requested: str | None = values.get("format")
    by_name = formats_from_name(output)
    plain, compression = split_compression(output)
    ending = os.path.splitext(os.path.basename(plain))[1]
    is_explicit = requested is not None and (
        not FORMATS[requested].compressed or values.get("compression") is not None
    )
    if ending and not by_name and not is_explicit:
        endings = dict.fromkeys(end for kind in FORMATS.values() for end in kind.extensions)
        if ending in _COMMANDS:
            advice = f"use so2docs {_COMMANDS[ending]}, or choose another name"
            raise OptionError(f"{output}: convert writes no {ending[1:]} files; {advice}")
        raise OptionError(
            f"{output}: no output format has the extension {ending}; choose a name that ends in "
            f"one of {' '.join(endings)}, optionally followed by .gz or .zst (except .parquet)"
        )
    # False for devices and pipes, which need no extension.
    is_new = not os.path.exists(output) or os.path.isfile(output)
    if not by_name and compression is None and is_new and output != "-" and not is_explicit:
        raise OptionError(
            f"{output}: the name shows neither format nor compression; did you mean "
            f"{output}{output_suffix(values)}, or, for several dumps, a folder: "
            f"{flag('output_dir', output)}?"
        )
    if requested is None:
        return by_name[0] if by_name else "jsonl"
    if by_name and requested not in by_name:
        ends = " or ".join(FORMATS[requested].extensions)
        raise OptionError(
            f"{flag('format', requested)} contradicts the name {output}, which means {by_name[0]}; "
            f"choose a name that ends in {ends}"
        )
    return requested


def _compression(output: str, name: str, requested: Compression | None) -> Compression:
    _, by_name = split_compression(output)
    if not FORMATS[name].compressed:
        advice = f"choose a name that ends in {FORMATS[name].extensions[0]}" if by_name else ""
        if requested not in (None, "none"):
            advice = f"leave {flag('compression', requested)} out"
        if advice:
            raise OptionError(f"{flag('format', name)} has a compression of its own; {advice}")
        return "none"
    named = by_name or ("none" if output.endswith(UNCOMPRESSED) else None)
    if requested is not None and named not in (None, requested):
        raise OptionError(
            f"{flag('compression', requested)} contradicts the name {output}, which means {named}; "
            "leave the option out, or choose another name"
        )
    return requested or compression_from_name(output)
