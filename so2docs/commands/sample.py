"""`so2docs sample`: write small dumps included in the package."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

import click

from so2docs.commands.options import command, quiet, table_option
from so2docs.commands.terminal import tell
from so2docs.errors import OutputExistsError
from so2docs.escape import on_one_line


@command(
    """
    so2docs sample
    so2docs convert Posts.xml questions.jsonl.gz
    so2docs inspect sample.stackexchange.com.7z
    """
)
@click.argument("folder", type=click.Path(), metavar="[FOLDER]", default=".")
@table_option("force", "Overwrite files of the same names.")
@quiet
def sample(folder: str, *, force: bool, quiet: bool) -> None:
    """Write a sample dump into FOLDER for trying out the other commands.

    Posts.xml has 22 rows. Like a real archive, sample.stackexchange.com.7z contains this file, the
    other seven tables and a license.txt. All content is made up. Files that are there already are
    kept.
    """
    from so2docs.output.new_files import NewFiles, open_folder

    open_folder(folder)
    written = []
    with NewFiles(os.path.join(folder, "sample")) as new_files:
        for file in sorted(files("so2docs").joinpath("sample").iterdir(), key=lambda f: f.name):
            path, data = os.path.join(folder, file.name), file.read_bytes()
            if not (os.path.isfile(path) and Path(path).read_bytes() == data):
                if os.path.lexists(path) and not force:
                    raise OutputExistsError(
                        f"{path}: exists; choose another folder, or overwrite with --force"
                    )
                new_files.claim(path)
                new_files.write(path, data)
            written.append(path)
    if not quiet:
        tell("\n".join(map(on_one_line, written)))
