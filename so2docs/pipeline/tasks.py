"""Tasks of the second pass, and the steps that change the records of a task before the merge."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from so2docs import merge
from so2docs.counts import ChunkTally, RowCounts
from so2docs.options.choices import Compression
from so2docs.options.table import Options
from so2docs.output.segments import Segment
from so2docs.registry import find_hook
from so2docs.store.blocks import Block

if TYPE_CHECKING:
    from so2docs.pipeline.selection import Selection
    from so2docs.processes.pool import Workers
    from so2docs.schema import Table
    from so2docs.spill import Spill


@dataclass(frozen=True, slots=True)
class BucketTask:
    """A range of question ids to nest in one task.

    Attributes:
        ids: The question ids.
        size: Size of the JSON of these questions, and of those in `following`, in bytes.
        blocks: The blocks of these questions, in the order of the dump, each with its file.
        options: Options of the conversion.
        cuts: First question ids of the output files, except the first file, that start in `ids`.
        users: Path of the users by id; empty if users are not nested.
        prepared: What `Step.prepare` returned.
        strays: Compression of the side file.
        selection: The questions to write; None for all questions.
        segment_bytes: Approximate size of a segment, in bytes; 0 for the usual size.
        following: Tasks whose documents may share a segment with the last documents of this task.
    """

    ids: range
    size: int
    blocks: list[tuple[str, Block]]
    options: Options
    cuts: tuple[int, ...] = ()
    users: str = ""
    prepared: Any = None
    strays: Compression = "none"
    selection: Selection | None = None
    segment_bytes: int = 0
    following: tuple[BucketTask, ...] = ()


@dataclass(slots=True)
class BucketResult:
    """Documents and strays of ranges of question ids, ready to be appended."""

    size: int = 0
    segments: list[Segment] = field(default_factory=list)
    strays: list[Segment] = field(default_factory=list)
    first_stray: list[bytes] = field(default_factory=list)
    counts: RowCounts = field(default_factory=RowCounts)


@dataclass(frozen=True, slots=True)
class Step:
    """A step between loading the records of a bucket and merging them.

    Attributes:
        tables: Tables that the step reads, each with what happens without it.
        optional_tables: Tables that it reads if the dump has them.
        check: Checks the options and what is installed, given the options and the site.
        choose_sink: Returns the class of the sink for the rows of a table in the first pass, such
            as a subclass that leaves rows out of the usual `RowSink`.
        prepare: Called once between the passes, with the spill, the options, the tallies of all
            tables, the path of the map of posts to their questions, and the workers. The
            result is `BucketTask.prepared`.
        apply: Called in a worker, with the task, its records, the counts to add to, and the list
            for lines of strays. Returns the changed records, in a context.
    """

    tables: Mapping[str, str]
    optional_tables: tuple[str, ...]
    check: Callable[[Options, str], None]
    choose_sink: Callable[[Table], Any]
    prepare: Callable[[Spill, Options, Collection[ChunkTally], str, Workers], Any]
    apply: Callable[
        [BucketTask, Iterable[merge.BlockData], RowCounts, list[bytes]],
        AbstractContextManager[Iterable[merge.BlockData]],
    ]


def find_step(options: Options) -> Step | None:
    """Return the step that the options request, if any."""
    return None if options.filters.as_of is None else find_hook("step as_of")
