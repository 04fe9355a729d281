"""`--card`: write a manifest of an output, and describe its folder in a dataset card.

The card comes with the checksums of all files, in the form of `sha256sum`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from so2docs.dump.storage import is_url
from so2docs.escape import printable
from so2docs.extensions.cards.manifest import (
    DESCRIBED,
    FORMAT,
    Manifest,
    load,
    locate,
    manifest_path,
    recipe_of,
)
from so2docs.extensions.cards.outputs import (
    DescribedOutput,
    find_outputs,
    folder_of_card,
)
from so2docs.extensions.cards.readme import START, readme_text, title_of
from so2docs.options.table import Options
from so2docs.output.new_files import FOR_SMALL_FILES
from so2docs.output.part_files import CARD, check_folder, check_replaceable
from so2docs.output.paths import OutputPaths
from so2docs.output.provenance import Comparison
from so2docs.plugin import (
    UP_TO_DATE,
    NewFiles,
    OptionError,
    OutputError,
    Product,
    Provenance,
    flag,
    log,
    make_record,
)


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
    Card(folder).check(filter(None, read), force=force)
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
    card = Card(folder)
    try:
        card.check(force=force)
        card.build(force=force, update=True)
    except NothingToDescribeError as error:  # Only warn, since the outputs are complete.
        log.warning(error)


SUMS = "SHA256SUMS"
"""Name of the file with the checksums of all outputs of a folder."""


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


class NothingToDescribeError(OutputError):
    """All outputs that the card would describe are empty."""


class Card(Product[str]):
    """The card and checksums of a folder, compared by bytes, which the manifests determine."""

    is_updated = False
    patience = FOR_SMALL_FILES

    def __init__(self, folder: str) -> None:
        super().__init__(os.path.join(folder, CARD), make_record("card", FORMAT, {}, ()))
        self._folder = folder
        self._sums = os.path.join(folder, SUMS)

    @property
    def paths(self) -> list[str]:
        """The card and the checksums."""
        return [self.path, self._sums]

    def check(self, read: Iterable[str] = (), *, force: bool) -> None:
        """Refuse to replace an input, or a file that so2docs did not write."""
        if not os.path.exists(self._folder or "."):  # The conversion will make the folder.
            return
        check_folder(self.path)
        for path in self.paths:
            check_replaceable(path, read)
        if not force and not self._is_card():
            self.refuse(self.compare())

    def _is_card(self) -> bool:
        """Whether so2docs wrote the card; also true for an empty file."""
        if not os.path.isfile(self.path):
            return False
        with open(self.path, "rb") as file:
            return file.read(len(START)) in (START, b"")

    def compare(self) -> Comparison:
        """Compare the existing card with the one that the manifests in the folder would give."""
        if not os.path.exists(self.path):
            # Checksums without a card are of a run that was killed between both.
            is_own = not os.path.exists(self._sums) or self._has_same_sums()
            return Comparison("missing" if is_own else "unknown", " and is of no card of so2docs")
        if not self._is_card():
            return Comparison("unknown", " and is not a card of so2docs")
        if Path(self.path).read_bytes() == self._text() and self._has_same_sums():
            return Comparison(UP_TO_DATE)
        return Comparison("another input", ", made from other manifests")

    def _has_same_sums(self) -> bool:
        with suppress(FileNotFoundError):
            return Path(self._sums).read_bytes() == checksums(find_outputs(self._folder))
        return False

    def read_record(self) -> Provenance:
        """Return the requested record, since a card has none of its own."""
        return self.provenance

    def load(self, record: Provenance) -> str:
        """Return the path of the card."""
        return self.path

    def make(self, files: NewFiles) -> str:
        """Write the card and the checksums, and return the path of the card.

        Manifests are read under the lock on the card. The last of several processes that end at
        the same time therefore describes all outputs.
        """
        files.write(self.path, self._text())
        files.write(self._sums, checksums(find_outputs(self._folder)))
        return self.path

    def _text(self) -> bytes:
        outputs = find_outputs(self._folder)
        if not any(output.documents for output in outputs):
            raise NothingToDescribeError(
                f"{self._folder or '.'}: no card is written, since no output in it has a document"
            )
        return printable(readme_text(title_of(outputs), _by_configuration(outputs))).encode()


def _by_configuration(outputs: list[DescribedOutput]) -> dict[str, DescribedOutput]:
    """Name the configuration of each output: its site or stem, or its path if two are the same."""
    names = [output.folder or OutputPaths(output.manifest.output, None).stem for output in outputs]
    if len(set(names)) < len(names):
        names = [output.name for output in outputs]
    return dict(zip(names, outputs, strict=True))


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
    output = locate(output)
    manifest = _find_manifest(output)
    recipe = recipe_of(manifest)
    is_by_site = recipe is not None and recipe.is_by_site
    card = Card(folder_of_card(OutputPaths(output, None, is_by_site=is_by_site)))
    card.check(force=force)
    complete_manifest(output)
    # Update an existing card, which describes all outputs of the folder.
    return card.build(force=force, update=True)


def complete_manifest(output: str) -> None:
    """Write the manifest of an existing output if it is missing; check it otherwise."""
    output = locate(output)
    manifest = _find_manifest(output)
    if not os.path.exists(manifest_path(output)):
        manifest.save(output)


def _find_manifest(output: str) -> Manifest:
    """Load the manifest of an output, or make it; check the format and the files."""
    path = manifest_path(output)
    manifest = load(path) if os.path.exists(path) else Manifest.of_output(output)
    _check_format(str(manifest.options.get("format")))
    if not manifest.is_in_place(os.path.dirname(output)):
        raise OutputError(
            f"{output}: its files do not match its manifest; convert the dump again with "
            f"{flag('card', True)} and {flag('force', True)}"
        )
    return manifest


def _check_format(name: str) -> None:
    if name not in DESCRIBED:
        raise OptionError(
            f"{flag('card', True)} supports the formats {', '.join(DESCRIBED)}, not {name}; "
            "leave it out"
        )
