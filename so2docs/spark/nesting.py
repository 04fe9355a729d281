"""The second stage, in an executor: the blocks of a partition -> part files, or documents.

`bucket.merge_bucket` and `bucket.nesting` do the work, `Writer` frames what comes out. A part file
is written under a name of this attempt's own and gets its name when it is whole: an attempt that is
killed leaves nothing that counts, and two attempts at one part write the same bytes.

Memory: what `merge_bucket` takes, and one record of the shuffle.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from so2docs.errors import StrictError
from so2docs.merge import Tally
from so2docs.nest import added
from so2docs.options.output_form import ending
from so2docs.output.file import Output
from so2docs.output.line_pieces import compress_lines
from so2docs.output.part_files import publish
from so2docs.output.paths import Names
from so2docs.output.writer import Writer, publish_all
from so2docs.passes import bucket, strict
from so2docs.passes.bucket import BucketTask
from so2docs.passes.worker import peak_memory
from so2docs.sources import storage
from so2docs.spark.counting import check_posts, nested_keys
from so2docs.spark.gathering import GatheredBlocks, Part
from so2docs.spark.joining import REPEATED_USERS
from so2docs.spark.plan import Site
from so2docs.spark.records import Record, temporary_folder

TEMPORARY = "_temporary"
STRAYS = ".strays"
"""Side files: like those beside other outputs, no reader of the folder comes upon them."""


@dataclass(frozen=True, slots=True)
class Work:
    """What the tasks of the second stage have to know.

    Attributes:
        sites: The sites to write, by number.
        owners: By site, which question a post keeps that stands under several.
        numbers: The number of each part's file.
        limits: Most documents of a part, where there is a limit.
    """

    sites: Mapping[int, Site]
    owners: Mapping[int, dict[int, int]]
    numbers: Mapping[Part, int]
    limits: Mapping[Part, int] = field(default_factory=dict)


@dataclass(slots=True)
class Written:
    """What a task made of the posts of one site in its partition.

    Attributes:
        site: Number of the site.
        part: The range of question ids; None for rows that belong to none.
        tally: What became of the posts.
        size: Bytes of the part file.
        has_strays: Whether there is a side file.
        error: What `strict` refuses; nothing was written.
        peak: Most resident memory of the process so far, in bytes.
    """

    site: int
    part: int | None = None
    tally: Tally = field(default_factory=Tally)
    size: int = 0
    has_strays: bool = False
    error: StrictError | None = None
    peak: int = 0


def write_parts(work: Work, found: Iterable[Record]) -> Iterator[Written]:
    """Write the part files, and the side files, of a partition."""
    with GatheredBlocks(found, work.sites) as blocks:
        for part in blocks.parts():
            try:
                yield _write_part(work, part, blocks)
            except StrictError as error:
                yield Written(*part, error=error)
        for number in blocks.sites_with_keyless_strays():
            site = work.sites[number]
            with _draft_folder(site) as folder, _strays(site, folder, 0) as strays:
                _write_lines(blocks.keyless_strays(number), strays, site)
                _publish_strays(site, strays)
            yield Written(number, has_strays=True, peak=peak_memory())
        for tallied in blocks.tallied:
            if tallied.chunk == REPEATED_USERS:
                yield Written(tallied.site, tally=Tally(tables={"users": tallied.tally["strays"]}))


def documents(work: Work, found: Iterable[Record]) -> Iterator[tuple[str, int, str]]:
    """Name of the site, id and JSON of each question of a partition."""
    with GatheredBlocks(found, work.sites) as blocks:
        for part in blocks.parts():
            site = work.sites[part[0]]
            left = work.limits.get(part)
            for task in _bucket_tasks(work, part, blocks):
                with bucket.nesting(replace(task, limit=left)) as nested:
                    for document in nested:
                        json = b"".join((*document.parts, b"}"))
                        yield site.name, document.question_id, json.decode()
                    check_posts(nested.tally, task, site)
                    if site.options.strict:
                        strict.check_lines(site.dump.path, nested.strays)
                    left = None if left is None else left - nested.tally.questions


def count_documents(work: Work, found: Iterable[Record]) -> Iterator[tuple[Part, int]]:
    """How many documents each part of a partition would have without a limit."""
    with GatheredBlocks(found, work.sites) as blocks:
        for part in blocks.parts():
            tasks = _bucket_tasks(work, part, blocks)
            yield part, sum(nested_keys(task).questions for task in tasks)


def _write_part(work: Work, part: Part, blocks: GatheredBlocks) -> Written:
    site, number = work.sites[part[0]], work.numbers[part]
    done = Written(*part)
    with _draft_folder(site) as folder:
        names = _names(site, folder, number)
        with Writer(names, site.options) as output, _strays(site, folder, number + 1) as strays:
            _write_lines(_append(work, part, blocks, output, done.tally), strays, site)
            if done.tally.questions:
                sizes = output.seal()
                publish_all(names, sizes)
                done.size = sum(sizes)
                _place(site, names.output)
            done.has_strays = _publish_strays(site, strays)
    done.peak = peak_memory()
    return done


def _append(
    work: Work, part: Part, blocks: GatheredBlocks, output: Writer, tally: Tally
) -> Iterator[bytes]:
    """Append the documents of a part to its file; what comes out are the lines of its strays."""
    left = work.limits.get(part)
    for task in _bucket_tasks(work, part, blocks):
        if left == 0:
            add(tally, nested_keys(task, limit=0))
            continue
        result = bucket.merge_bucket(replace(task, limit=left))
        if task.options.strict:
            strict.check_lines(work.sites[part[0]].dump.path, result.strays)
        for piece in result.pieces:
            output.append(piece)
        add(tally, result.tally)
        left = None if left is None else left - result.tally.questions
        yield from result.strays


def add(total: Tally, more: Tally) -> None:
    """Add what became of some posts to what became of others."""
    total.questions += more.questions
    total.answers += more.answers
    total.strays += more.strays
    total.filtered += more.filtered
    total.tables = added(total.tables, more.tables)


def _bucket_tasks(work: Work, part: Part, blocks: GatheredBlocks) -> Iterator[BucketTask]:
    options = work.sites[part[0]].options
    users = blocks.users(part) if work.sites[part[0]].nests_users else None
    for number, places in blocks.buckets(part):
        size = sum(block.raw_size for _, block in places)
        for ids in bucket.parts(number, size, nested=bool(options.nest)):
            yield BucketTask(ids, places, work.owners.get(part[0], {}), options, users=users)


def _names(site: Site, folder: str, number: int) -> Names:
    form = site.options.form
    name = f"part-{number:05}{ending(form.format, form.compression)}"
    return Names(os.path.join(folder, name), None, form)


def _strays(site: Site, folder: str, number: int) -> Output:
    """The side file of this number, of JSON lines whatever the part files are."""
    path = os.path.join(folder, f"{STRAYS}-{number:05}")
    return Output(path, _names(site, folder, number).strays_compression)


def _write_lines(lines: Iterable[bytes], output: Output, site: Site) -> None:
    compression = _names(site, "", 0).strays_compression
    for piece in compress_lines(lines, compression, site.options.level):
        output.append(piece)


def _publish_strays(site: Site, strays: Output) -> bool:
    """Give a side file its place if there is anything in it; whether there is."""
    if not strays.progress.raw_size:
        return False
    publish(strays.path, strays.seal())
    _place(site, strays.path)
    return True


def _place(site: Site, path: str) -> None:
    storage.publish(path, storage.join(site.folder, os.path.basename(path)))


@contextmanager
def _draft_folder(site: Site) -> Iterator[str]:
    """A folder of this attempt's own, on the disk of the output where that is a disk."""
    if storage.is_url(site.folder):
        with temporary_folder() as folder:
            yield folder
    else:
        common = os.path.join(site.folder, TEMPORARY)
        os.makedirs(common, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=common) as folder:
            yield folder
