"""`--card`: write a manifest of an output, and describe its folder in a dataset card.

The card comes with the checksums of all files, in the form of `sha256sum`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from so2docs.dump.storage import is_url
from so2docs.escape import printable
from so2docs.extensions.cards.manifest import (
    DESCRIBED,
    DescribedOutput,
    Manifest,
    find_outputs,
    folder_of_card,
    load,
    locate,
    manifest_path,
    recipe_of,
)
from so2docs.extensions.cards.readme import START, readme_text
from so2docs.options.table import Options
from so2docs.output.new_files import FOR_SMALL_FILES
from so2docs.output.part_files import CARD, check_folder, check_replaceable
from so2docs.output.paths import OutputPaths
from so2docs.plugin import (
    ExistingOutputError,
    NewFiles,
    OptionError,
    OutputError,
    flag,
    log,
)

SUMS = "SHA256SUMS"
"""Name of the file with the checksums of all outputs of a folder."""


def check_card(names: OutputPaths, options: Options, read: Sequence[str | None]) -> None:
    """Check, before a conversion, that its inputs can be read again and a manifest be written."""
    if names.output == "-":
        raise OptionError(
            f"{flag('card', True)} writes a file next to the output; give the name of a file "
            "instead of -"
        )
    check_sources(read)
    _check_format(options.form.format)
    check_replaceable(manifest_path(names.output), read)


def check_folder_of_card(
    folder: str, outputs: Iterable[str], read: Iterable[str | None], *, force: bool
) -> None:
    """Check, before the first conversion, that the card of a folder can be written.

    The manifests of `outputs` are not read, because the conversions replace them.
    """
    if os.path.exists(folder or "."):  # Otherwise, the conversion will make the folder.
        check_folder(os.path.join(folder, CARD))
        for name in (CARD, SUMS):
            check_replaceable(os.path.join(folder, name), read)
        if not force:
            _check_own(folder)
    find_outputs(folder, but={Path(manifest_path(output)) for output in outputs})


def check_sources(paths: Iterable[str | None]) -> None:
    """Check that sources can be read again; None stands for a source that is not a file."""
    if any(path is None or is_url(path) for path in paths):
        raise OptionError(
            f"{flag('card', True)} reads the dump a second time, for its SHA-256; give the "
            "name of a file or folder"
        )


def write_manifest(names: OutputPaths, read: Sequence[str | None]) -> None:
    """Write the manifest of a finished conversion; this reads its files once more.

    `read` has the path of each input, or None for an input that is not a file.
    """
    Manifest.of_output(names.output, read).save(names.output)


def describe_folder(folder: str, *, force: bool) -> None:
    """Write the card of a folder unless it is up to date."""
    try:
        write_card(folder, force=force)
    except NothingToDescribeError as error:  # Only warn, since the outputs are complete.
        log.warning(error)


class NothingToDescribeError(OutputError):
    """All outputs that the card would describe are empty."""


def write_card(folder: str, *, force: bool) -> str:
    """Write the card and the checksums of a folder unless they are up to date.

    Args:
        folder: The folder; empty for the current one.
        force: Replace files that so2docs did not write.

    Returns:
        The path of the card.

    Raises:
        ExistingOutputError: A file that so2docs did not write would be replaced.
        NothingToDescribeError: No output in the folder has a document.
    """
    card, sums = os.path.join(folder, CARD), os.path.join(folder, SUMS)
    with NewFiles(card) as files:
        for path in (card, sums):
            files.claim(path, seconds=FOR_SMALL_FILES)
        if not force:
            _check_own(folder)
        # Read under the lock, so that the last of several processes describes all outputs.
        outputs = find_outputs(folder)
        if not any(output.documents for output in outputs):
            raise NothingToDescribeError(
                f"{folder or '.'}: no card is written, since no output in it has a document"
            )
        names = [o.folder or OutputPaths(o.manifest.output, None).stem for o in outputs]
        if len(set(names)) < len(names):  # Two configurations would have the same name.
            names = [output.name for output in outputs]
        text = readme_text(dict(zip(names, outputs, strict=True)))
        made = {card: printable(text).encode(), sums: checksums(outputs)}
        if any(_read(path) != data for path, data in made.items()):
            for path, data in made.items():
                files.write(path, data)
    return card


def _check_own(folder: str) -> None:
    """Refuse to replace a card or checksums that so2docs did not write; cards may be empty.

    Checksums without a card are of a run that was killed between both, if they are up to date.
    """
    path = os.path.join(folder, CARD)
    if os.path.exists(path):
        is_own = _read(path)[: len(START)] in (START, b"")
        reason = "is not a card"
    else:
        path = os.path.join(folder, SUMS)
        is_own = not os.path.exists(path) or _read(path) == checksums(find_outputs(folder))
        reason = "is of no card"
    if not is_own:
        raise ExistingOutputError(
            f"{path}: exists and {reason} of so2docs; choose another output, or overwrite with "
            f"{flag('force', True)}"
        )


def _read(path: str) -> bytes:
    """Read a file; empty if there is none."""
    return Path(path).read_bytes() if os.path.exists(path) else b""


def checksums(outputs: Iterable[DescribedOutput]) -> bytes:
    """Return the checksums of the files of outputs, as `sha256sum` writes and checks them."""
    lines = []
    for output in outputs:
        for file in output.manifest.files:
            name = output.path(file.name)
            escaped = name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
            mark = "" if escaped == name else "\\"
            lines.append(f"{mark}{file.sha256}  {escaped}\n")
    return os.fsencode("".join(lines))  # Names need not be UTF-8.


def describe_existing(output: str, *, force: bool = False) -> str:
    """Write the card of an existing output unless it is up to date, and its manifest if missing.

    Args:
        output: Name of the output, as passed to `convert`.
        force: Replace a `README.md` that is not a card of so2docs.

    Returns:
        The path of the card.

    Raises:
        OutputError: The output is missing, has no provenance or was changed, or a file cannot be
            written.
        OptionError: Cards do not support the format of the output.
    """
    manifest = complete_manifest(output)
    recipe = recipe_of(manifest)
    is_by_site = recipe is not None and recipe.is_by_site
    folder = folder_of_card(OutputPaths(locate(output), None, is_by_site=is_by_site))
    return write_card(folder, force=force)


def complete_manifest(output: str) -> Manifest:
    """Write the manifest of an existing output if it is missing, or else load it; check it."""
    output = locate(output)
    path = manifest_path(output)
    is_missing = not os.path.exists(path)
    manifest = Manifest.of_output(output) if is_missing else load(path)
    _check_format(str(manifest.options.get("format")))
    if not manifest.is_in_place(os.path.dirname(output)):
        raise OutputError(
            f"{output}: its files do not match its manifest; convert the dump again with "
            f"{flag('card', True)} and {flag('force', True)}"
        )
    if is_missing:
        manifest.save(output)
    return manifest


def _check_format(name: str) -> None:
    if name not in DESCRIBED:
        raise OptionError(
            f"{flag('card', True)} supports the formats {', '.join(DESCRIBED)}, not {name}; "
            "leave it out"
        )
