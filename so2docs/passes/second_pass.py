"""The second pass, seen from the main process: buckets of the spill -> documents in the output.

Appends what each bucket became and notes how far it has come, so that an interrupted pass goes on
from there.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from so2docs.nest import FILTERED, added
from so2docs.options.conversion import Options
from so2docs.output import handover
from so2docs.output.compression import Piece
from so2docs.output.file import Output
from so2docs.output.handover import Place
from so2docs.output.line_pieces import compress_lines
from so2docs.output.part_files import is_as_left, publish
from so2docs.output.paths import Names
from so2docs.output.writer import Writer, publish_all, written
from so2docs.passes import bucket, strict
from so2docs.passes.bucket import BucketTask
from so2docs.passes.checkpoint import Checkpoint
from so2docs.passes.splitting import cuts
from so2docs.passes.workers import Workers
from so2docs.posts.posts import ANSWER, BUCKET_BITS, KEY, QUESTION
from so2docs.posts.table_rows import votes_of
from so2docs.progress import Notify, bar, silent
from so2docs.report import Report
from so2docs.schema import OF_KIND, VOTE
from so2docs.spill import TURNS, Spill
from so2docs.store.blocks import BlockReader
from so2docs.store.users import UserTable


class SecondPass:
    """Writes a spill as documents."""

    def __init__(
        self,
        spill: Spill,
        options: Options,
        names: Names,
        owners: dict[int, int],
        *,
        users: UserTable | None = None,
        notify: Notify = silent,
    ) -> None:
        self.spill = spill
        self.options = options
        self.names = names
        self.owners = owners
        self.users = users
        self.notify = notify
        self.cuts: tuple[int, ...] = ()

    def run(self, workers: Workers, report: Report) -> None:
        """Nest every bucket after the last checkpoint, in ascending order."""
        names = self.names
        limit = self.options.filters.limit
        buckets = self.spill.buckets()
        saved, state = self.checkpoint(buckets)
        self.cuts = cuts(self.spill, buckets, self.options.form.split_files or 1)
        scale = report.dump_bytes / (sum(size for _, size in buckets) or 1)
        with (
            ExitStack() as opened,
            Writer(names, self.options, self.cuts, state.output) as output,
            Output(names.strays, names.strays_compression, state.strays) as strays,
            bar("writing", report.dump_bytes, shown=self.options.progress) as shown,
        ):
            if not saved:
                for piece in self.pieces_of_lines(self.keyless_strays()):
                    strays.append(piece)
            tasks = self.bucket_tasks(buckets, state.next_id, state.left(limit))
            if workers.jobs > 1 and limit is None:
                tasks = opened.enter_context(self.placed(tasks, output))
            for done in workers.run(bucket.merge_bucket, tasks):
                result = done
                if limit is not None and state.questions + done.tally.questions > limit:
                    # The workers do not know how many documents come before theirs.
                    again = self.bucket_tasks(buckets, done.ids.start, state.left(limit))
                    result = bucket.merge_bucket(next(again))
                if self.options.strict:
                    strict.check_lines(report.dump, result.strays)
                for piece in result.pieces:
                    output.append(piece)
                    shown.update(int(piece.raw_size * scale))
                handover.forget(result.pieces)
                for piece in self.pieces_of_lines(result.strays):
                    strays.append(piece)
                state.add(result.tally)
                state.next_id = result.ids.stop
                state.output, state.strays = output.checkpoint(), strays.checkpoint()
                self.spill.put("checkpoint", asdict(state))
                if state.left(limit) == 0:
                    break
            if limit is not None:
                self.leave_out(buckets, state)
            self.seal(state, report, output, strays)

    def checkpoint(self, buckets: list[tuple[int, int]]) -> tuple[bool, Checkpoint]:
        """Whether an earlier session wrote documents to go on from, and how far it came."""
        names = self.names
        saved = None if names.output == "-" else self.spill.get("checkpoint")
        if not saved:
            return False, Checkpoint()
        state = Checkpoint(**saved)
        for path, left in (*written(names, state.output), (names.strays, state.strays)):
            if not is_as_left(path, left):
                self.notify(f"{path}.part is not as it was left; writing again from the spill")
                return False, Checkpoint()
        size = sum(size for _, size in buckets) or 1
        first_left = (state.next_id or 0) >> BUCKET_BITS
        done = sum(size for number, size in buckets if number < first_left)
        self.notify(f"going on: {100 * done // size} % of the documents are written")
        return True, state

    def documents(self, report: Report) -> Iterator[Iterator[tuple[int, bytes]]]:
        """Nest every bucket in this process: question id and JSON of each document of a range."""
        state = Checkpoint()
        limit = self.options.filters.limit
        buckets = self.spill.buckets()
        for task in self.bucket_tasks(buckets, None, limit):
            with bucket.nesting(replace(task, limit=state.left(limit))) as nested:
                yield ((one.question_id, b"".join((*one.parts, b"}"))) for one in nested)
                state.add(nested.tally)
                if self.options.strict:
                    strict.check_lines(report.dump, nested.strays)
            state.next_id = task.ids.stop
            if state.left(limit) == 0:
                break
        if limit is not None:
            self.leave_out(buckets, state)
        state.complete(report)

    def seal(self, state: Checkpoint, report: Report, output: Writer, strays: Output) -> None:
        """Check that every row went somewhere, and end the files.

        The spill remembers it before the files get their names, so that a kill between two names
        leaves nothing that would have to be forced.
        """
        state.complete(report)
        stray_bytes = 0
        if report.has_strays():
            stray_bytes = strays.seal()
            report.strays_path = strays.path
        else:
            strays.discard()
        sizes = output.seal()
        if self.options.form.is_indexed and os.path.exists(self.names.index):
            report.index_path = self.names.index
        report.output_bytes, report.files = sum(sizes), len(sizes)
        sealed = {"report": report.as_dict(), "stray_bytes": stray_bytes, "sizes": sizes}
        self.spill.put("sealed", sealed)

    def bucket_tasks(
        self, buckets: list[tuple[int, int]], next_id: int | None, limit: int | None = None
    ) -> Iterator[BucketTask]:
        """The ranges of question ids that are left to do."""
        for number, json_bytes in buckets:
            for ids in self.parts(number, json_bytes):
                if next_id is None or ids.start >= next_id:
                    blocks = self.spill.blocks(number)
                    within = tuple(cut for cut in self.cuts if ids.start <= cut < ids.stop)
                    yield BucketTask(
                        ids, blocks, self.owners, self.options, within, limit, self.users
                    )

    @contextmanager
    def placed(self, tasks: Iterator[BucketTask], output: Writer) -> Iterator[Iterator[BucketTask]]:
        """The tasks, told where to write their pieces, if nothing but pieces is written."""
        offset = output.begin() if handover.is_possible() else None
        if offset is None:
            yield tasks
            return
        part = f"{self.names.output}.part"
        with handover.turns(self.spill.folder / TURNS, offset) as turns:
            yield (
                replace(task, place=Place(turns, part, number)) for number, task in enumerate(tasks)
            )

    def parts(self, number: int, json_bytes: int) -> list[range]:
        """Ranges of question ids to merge a bucket in."""
        return bucket.parts(number, json_bytes, nested=bool(self.options.nest))

    def leave_out(self, buckets: list[tuple[int, int]], state: Checkpoint) -> None:
        """Count as filtered what no task looked at, but for posts that the first pass rejected."""
        next_id, tables = state.next_id, Counter[str]()
        with BlockReader() as reader:
            for number, json_bytes in buckets:
                if next_id is not None and self.parts(number, json_bytes)[-1].stop <= next_id:
                    continue
                for path, block in self.spill.blocks(number):
                    for question_id, _, rank, kind in KEY.iter_unpack(
                        reader.read_keys(path, block)
                    ):
                        if next_id is not None and question_id < next_id:
                            continue
                        if kind & 15 in (QUESTION, ANSWER):
                            state.filtered += 1
                        elif kind & 15 in OF_KIND:
                            rows = votes_of(rank)[1] if kind & 15 == VOTE else 1
                            tables[OF_KIND[kind & 15].name] += rows
        state.tables = added(state.tables, {name: {FILTERED: n} for name, n in tables.items()})

    def keyless_strays(self) -> Iterator[bytes]:
        """Lines of the strays that belong to no bucket, in the order of the dump."""
        with BlockReader() as reader:
            for path, block in self.spill.blocks(None):
                yield from reader.read(path, block)[1].splitlines(keepends=True)

    def pieces_of_lines(self, lines: Iterable[bytes]) -> Iterator[Piece]:
        """Compress lines of the side file."""
        return compress_lines(lines, self.names.strays_compression, self.options.level)


def published(sealed: dict[str, Any] | None, names: Names) -> Report | None:
    """Give the files of a finished second pass their names.

    Args:
        sealed: What the spill remembers of it; None if it did not finish.
        names: Where the conversion writes.

    Returns:
        Its report; None if it did not finish, or if what it wrote is there no longer.
    """
    if not sealed:
        return None
    report = Report.from_dict(sealed["report"])
    strays = sealed["stray_bytes"]
    if strays and not publish(names.strays, strays):
        return None
    if not publish_all(names, sealed["sizes"]):
        return None
    if not strays and names.output != "-":
        # Strays of an earlier conversion, which this one replaces.
        Path(names.strays).unlink(missing_ok=True)
    return report
