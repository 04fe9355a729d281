"""Folders of outputs on a disk or in a store."""

from __future__ import annotations

import os
import shutil
import uuid

from so2docs.dump.storage import is_url
from so2docs.plugin import find_hook

_OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az"}
"""Protocols of stores in which an upload appears as a whole, under its final name."""


def join(folder: str, *names: str) -> str:
    """Join a folder, given as a path or URL, and names below it."""
    return (
        "/".join([folder.rstrip("/"), *names]) if is_url(folder) else os.path.join(folder, *names)
    )


def make_folder(folder: str) -> None:
    """Create a folder and its parents, if the store has folders."""
    if is_url(folder):
        system, name = find_hook("remote files").find_system(folder)
        system.makedirs(name, exist_ok=True)
    else:
        os.makedirs(folder, exist_ok=True)


def remove(path: str) -> None:
    """Remove a file, or a folder with its content, if it exists."""
    if is_url(path):
        system, name = find_hook("remote files").find_system(path)
        if system.exists(name):
            system.rm(name, recursive=True)
    elif os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.exists(path):
        os.remove(path)


def write(path: str, data: bytes) -> None:
    """Write a small file to a path or URL, replacing an earlier file."""
    if is_url(path):
        system, name = find_hook("remote files").find_system(path)
        system.pipe_file(name, data)
        return
    draft = f"{path}.{uuid.uuid4().hex}"
    with open(draft, "wb") as file:
        file.write(data)
    os.replace(draft, path)


def publish(source: str, path: str) -> None:
    """Move a finished local file to its path or URL, replacing an earlier file.

    Readers find either the earlier or the new file, and never a part of it. Only HDFS does not
    replace files, so there the earlier file is removed first.
    """
    if not is_url(path):
        os.replace(source, path)
        return
    system, name = find_hook("remote files").find_system(path)
    protocols = {system.protocol} if isinstance(system.protocol, str) else {*system.protocol}
    if protocols & _OBJECT_STORES:
        system.put_file(source, name)
        return
    folder, _, base = name.rpartition("/")
    draft = f"{folder}/_{base}.{uuid.uuid4().hex}"
    system.put_file(source, draft)
    try:
        system.mv(draft, name)
    except OSError:
        if not system.exists(name):
            raise
        system.rm(name)
        system.mv(draft, name)
