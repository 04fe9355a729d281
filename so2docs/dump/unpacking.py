"""Unpack a table that is not a plain file, layer by layer up to its XML."""

from __future__ import annotations

import tempfile
from typing import BinaryIO

from so2docs.dump.archives import Archive, Zip
from so2docs.dump.bzip2 import decompress_bzip2
from so2docs.dump.compressed import decompress_gzip, decompress_xz, decompress_zstd, read_blocks
from so2docs.dump.kinds import UNPACK, Kind, detect_kind, refuse
from so2docs.dump.layers import Layers
from so2docs.dump.seven_zip import SevenZip
from so2docs.errors import DumpError
from so2docs.schema import Table

_DECOMPRESS = {"gz": decompress_gzip, "xz": decompress_xz, "zst": decompress_zstd}


def unpack(
    layers: Layers, table: Table, archive: Archive | None, threads: int, work_dir: str | None
) -> None:
    """Add layers up to the XML of a table.

    Args:
        layers: The file; without layers for an archive.
        table: The table.
        archive: The archive, which stays open because it may contain other tables, or None.
        threads: Number of decompression threads.
        work_dir: Folder for temporary files; the system's temporary folder if None.
    """

    def add_member(archive: Archive) -> None:
        entry = archive.find(table)
        layers.expected = entry.size
        layers.add(archive.read(entry, threads, work_dir), archive.kind)

    above: list[bool] = []  # Whether each packed file is an archive.
    if archive is not None:
        add_member(archive)
        above.append(True)
    while (kind := detect_kind(layers.top.peek())) is not None:
        refuse(layers.name, kind)
        if above and not (above == [True] and kind.is_archive):
            problem = f"holds {kind.name} that is packed again"
            raise DumpError(layers.name, problem, advice=UNPACK)
        above.append(kind.is_archive)
        read = layers.top.read
        if kind.is_archive:
            add_member(_save_archive(layers, kind, work_dir))
        elif kind.extension == "bz2":
            layers.add(decompress_bzip2(read, threads), kind.name, kind.ratio)
        else:
            layers.add(_DECOMPRESS[kind.extension](read), kind.name, kind.ratio)
    layers.decode()


def open_archive(kind: Kind, name: str, file: BinaryIO) -> Archive:
    """Open an archive; after an error, the file is closed."""
    try:
        return Zip(name, file) if kind.extension == "zip" else SevenZip(name, file)
    except BaseException:
        file.close()
        raise


def _save_archive(layers: Layers, kind: Kind, work_dir: str | None) -> Archive:
    """Save a streamed archive to a temporary file, because it is not read in order."""
    saved = tempfile.TemporaryFile(dir=work_dir)  # noqa: SIM115
    layers.resources.callback(saved.close)
    saved.writelines(read_blocks(layers.top.read))
    archive = open_archive(kind, layers.name, saved)
    layers.resources.callback(archive.close)
    return archive
