"""The records of recipe `beir` -> the folder of a retrieval set.

What is relevant to a query may come later in the dump, or be left out by a filter: so the records
go to one temporary file first, and are read back once all ids of the corpus are known. Memory: a
bit for each id between the lowest and the highest of a page of 32,768.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from so2docs.errors import OptionError, OutputExistsError, flag
from so2docs.options.request import recipe_of
from so2docs.recipes.beir import CORPUS, FILES, QRELS, QUERIES
from so2docs.report import Report

RECORDS = "records.jsonl"
_HEADER = b"query-id\tcorpus-id\tscore\n"
_CORPUS = b'{"%b":' % CORPUS.encode()
_ID = b'{"_id":"'
_PAGE_BITS = 15


def records_path(output: str | os.PathLike[str] | None, given: Mapping[str, Any]) -> str | None:
    """The temporary file of a retrieval set, in its folder, which is made.

    Returns:
        None if no retrieval set is asked for.

    Raises:
        OptionError: An option asks for another form.
        OutputError: There are such files, and they may not be overwritten.
    """
    choice = recipe_of(given)
    if choice is None or not choice.recipe.files:
        return None
    for name in ("format", "compression", "split_size", "split_files", "split_by", "split_share"):
        if given.get(name) is not None:
            raise OptionError(
                f"{flag('recipe', 'beir')} is a folder of plain files; leave {flag(name)} out"
            )
    folder = Path("beir" if output is None else os.fspath(output))
    if str(folder) == "-" or (folder.exists() and not folder.is_dir()):
        raise OptionError(
            f"{flag('recipe', 'beir')} writes a folder of files; {folder} is not a folder"
        )
    for name in FILES:
        if (folder / name).exists() and not given.get("force"):
            raise OutputExistsError(
                f"{folder / name}: exists; choose another output, or overwrite with "
                f"{flag('force', True)}"
            )
    (folder / QRELS).parent.mkdir(parents=True, exist_ok=True)
    return str(folder / RECORDS)


def finish(records: str, report: Report) -> None:
    """Make the files of a retrieval set from the records, which are then removed.

    Args:
        records: The temporary file, whole.
        report: What is said of the conversion; its output is the folder.
    """
    folder = Path(records).parent
    counts = dict.fromkeys(FILES, 0)
    corpus = _Ids()
    rest = folder / f"{RECORDS}.rest"
    with (
        open(records, "rb") as lines,
        open(folder / f"{CORPUS}.part", "wb") as file,
        open(rest, "wb") as others,
    ):
        for line in lines:
            if line.startswith(_CORPUS):
                entry = line[len(_CORPUS) : -2]
                corpus.add(int(entry[len(_ID) : entry.index(b'"', len(_ID))]))
                file.write(entry + b"\n")
                counts[CORPUS] += 1
            else:
                others.write(line)
    with (
        open(rest, "rb") as lines,
        open(folder / f"{QUERIES}.part", "wb") as queries,
        open(folder / f"{QRELS}.part", "wb") as qrels,
    ):
        qrels.write(_HEADER)
        for query, relevant in _queries(lines):
            known = [found for found in relevant if int(found) in corpus]
            if known:
                queries.write(orjson.dumps(query) + b"\n")
                qrels.writelines(f"{query['_id']}\t{found}\t1\n".encode() for found in known)
                counts[QUERIES] += 1
                counts[QRELS] += len(known)
    for name in reversed(FILES):
        os.replace(folder / f"{name}.part", folder / name)
    rest.unlink()
    os.unlink(records)
    report.output, report.files, report.records = str(folder), len(FILES), sum(counts.values())
    report.output_bytes = sum((folder / name).stat().st_size for name in FILES)


def _queries(lines: BinaryIO) -> Iterator[tuple[dict[str, str], list[str]]]:
    """Each query, with the ids of what is relevant to it."""
    query: dict[str, str] = {}
    relevant: list[str] = []
    for line in lines:
        ((file, record),) = orjson.loads(line).items()
        if file == QUERIES:
            if query:
                yield query, relevant
            query, relevant = record, []
        else:
            relevant.append(record["corpus-id"])
    if query:
        yield query, relevant


class _Ids:
    """A set of ids, a bit each."""

    def __init__(self) -> None:
        self._pages: dict[int, bytearray] = defaultdict(lambda: bytearray(1 << _PAGE_BITS - 3))

    def add(self, number: int) -> None:
        page = self._pages[number >> _PAGE_BITS]
        page[(number >> 3) % len(page)] |= 1 << (number & 7)

    def __contains__(self, number: int) -> bool:
        page = self._pages.get(number >> _PAGE_BITS)
        return page is not None and bool(page[(number >> 3) % len(page)] >> (number & 7) & 1)
