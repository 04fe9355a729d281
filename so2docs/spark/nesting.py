"""The second stage, in an executor: the blocks of a partition -> part files, or documents.

`bucket.merge_bucket` and `bucket.nesting` do the work. A part file is written under a name of this
attempt's own and gets its name when it is whole: an attempt that is killed leaves nothing that
counts, and two attempts at one part write the same bytes.

Memory: what `merge_bucket` takes, and one record of the shuffle.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from so2docs import bucket, files
from so2docs.blocks import BlockReader
from so2docs.bucket import BucketTask
from so2docs.compression import Piece
from so2docs.errors import AccountingError
from so2docs.line_pieces import compress_lines
from so2docs.merge import Tally
from so2docs.output import Output
from so2docs.part_files import publish
from so2docs.posts import KEY
from so2docs.spark.gathering import GatheredBlocks, Part
from so2docs.spark.plan import Site
from so2docs.spark.spilling import Record, temporary_folder
from so2docs.workers import peak_memory

TEMPORARY = "_temporary"
STRAYS = "_strays"


@dataclass(frozen=True, slots=True)
class Work:
    """What the tasks of the second stage have to know.

    Attributes:
        sites: The sites to write, by number.
        owners: By site, which question a post keeps that stands under several.
        numbers: The number of each part's file.
    """

    sites: Mapping[int, Site]
    owners: Mapping[int, dict[int, int]]
    numbers: Mapping[Part, int]


@dataclass(slots=True)
class Written:
    """What a task made of the posts of one site in its partition.

    Attributes:
        site: Number of the site.
        tally: What became of the posts.
        size: Bytes of the part files.
        has_strays: Whether there is a side file.
        peak: Most resident memory of the process so far, in bytes.
    """

    site: int
    tally: Tally = field(default_factory=Tally)
    size: int = 0
    has_strays: bool = False
    peak: int = 0


def write_parts(work: Work, found: Iterable[Record]) -> Iterator[Written]:
    """Write the part files, and the side files, of a partition."""
    with GatheredBlocks(found, work.sites) as blocks:
        for part in blocks.parts():
            yield _write_part(work, part, blocks)
        for number in blocks.sites_with_keyless_strays():
            site = work.sites[number]
            with _draft(site, f"{STRAYS}-{0:05}.jsonl.gz") as strays:
                for piece in _compressed(blocks.keyless_strays(number), site):
                    strays.append(piece)
            yield Written(number, has_strays=True, peak=peak_memory())


def documents(work: Work, found: Iterable[Record]) -> Iterator[tuple[str, int, str]]:
    """Name of the site, id and JSON of each question of a partition."""
    with GatheredBlocks(found, work.sites) as blocks:
        for part in blocks.parts():
            site = work.sites[part[0]]
            for task in _bucket_tasks(work, part, blocks):
                with bucket.nesting(task) as nested:
                    for document in nested:
                        json = b"".join((*document.parts, b"}"))
                        yield site.name, document.question_id, json.decode()
                    _check(nested.tally, task, site)


def _write_part(work: Work, part: Part, blocks: GatheredBlocks) -> Written:
    site, number = work.sites[part[0]], work.numbers[part]
    done = Written(part[0])
    with (
        _draft(site, f"part-{number:05}.jsonl.gz") as output,
        _draft(site, f"{STRAYS}-{number + 1:05}.jsonl.gz") as strays,
    ):
        for piece in _compressed(_append(work, part, blocks, output, done.tally), site):
            strays.append(piece)
    done.size = output.progress.size
    done.has_strays = bool(strays.progress.raw_size)
    done.peak = peak_memory()
    return done


def _append(
    work: Work, part: Part, blocks: GatheredBlocks, output: Output, tally: Tally
) -> Iterator[bytes]:
    """Append the documents of a part to its file; what comes out are the lines of its strays."""
    for task in _bucket_tasks(work, part, blocks):
        result = bucket.merge_bucket(task)
        for piece in result.pieces:
            output.append(piece)
        tally.questions += result.tally.questions
        tally.answers += result.tally.answers
        tally.strays += result.tally.strays
        yield from result.strays


def _compressed(lines: Iterable[bytes], site: Site) -> Iterator[Piece]:
    return compress_lines(lines, "gzip", site.options.level)


def _bucket_tasks(work: Work, part: Part, blocks: GatheredBlocks) -> Iterator[BucketTask]:
    site = work.sites[part[0]]
    for number, places in blocks.buckets(part):
        for ids in bucket.parts(number, sum(block.raw_size for _, block in places)):
            yield BucketTask(ids, places, work.owners.get(part[0], {}), site.options)


@contextmanager
def _draft(site: Site, name: str) -> Iterator[Output]:
    """A file of a site that appears when it is whole, and not at all if nothing was written."""
    with _draft_folder(site) as folder:
        output = Output(os.path.join(folder, name), "gzip")
        try:
            yield output
            if output.progress.raw_size:
                publish(output.path, output.seal())
                files.publish(output.path, files.join(site.folder, name))
        finally:
            output.discard()


@contextmanager
def _draft_folder(site: Site) -> Iterator[str]:
    """A folder of this attempt's own, on the disk of the output where that is a disk."""
    if files.is_url(site.folder):
        with temporary_folder() as folder:
            yield folder
    else:
        common = os.path.join(site.folder, TEMPORARY)
        os.makedirs(common, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=common) as folder:
            yield folder


def _check(tally: Tally, task: BucketTask, site: Site) -> None:
    """Raise `AccountingError` unless every post of a range of question ids went somewhere."""
    placed = tally.questions + tally.answers + sum(tally.strays.values())
    posts = 0
    with BlockReader() as reader:
        for path, block in task.blocks:
            keys = KEY.iter_unpack(reader.read_keys(path, block))
            posts += sum(question_id in task.ids for question_id, _, _, _ in keys)
    if placed != posts:
        raise AccountingError(
            f"{site.dump.path}: {posts:,} posts came out of the shuffle but {placed:,} were "
            "placed; this is a defect of so2docs, please report it"
        )
