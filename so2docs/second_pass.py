"""The second pass, seen from the main process: buckets of the spill -> documents in the output.

Appends what each bucket became and notes how far it has come, so that an interrupted pass goes on
from there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from so2docs import bucket, strict
from so2docs.blocks import BlockReader
from so2docs.bucket import BucketTask
from so2docs.merge import Tally
from so2docs.options import Options
from so2docs.output import PIECE_BYTES, Output, Piece, compress, is_as_left, publish
from so2docs.paths import Names
from so2docs.posts import BUCKET_BITS
from so2docs.progress import Notify, bar, silent
from so2docs.report import Report
from so2docs.spill import Spill
from so2docs.workers import Workers


class SecondPass:
    """Writes a spill as documents."""

    def __init__(
        self,
        spill: Spill,
        options: Options,
        names: Names,
        owners: dict[int, int],
        notify: Notify = silent,
    ) -> None:
        self.spill = spill
        self.options = options
        self.names = names
        self.owners = owners
        self.notify = notify

    def run(self, workers: Workers, report: Report) -> None:
        """Nest every bucket after the last checkpoint, in ascending order."""
        names = self.names
        buckets = self.spill.buckets()
        saved, state = self.checkpoint(buckets)
        scale = report.dump_bytes / (sum(size for _, size in buckets) or 1)
        with (
            Output(names.output, names.compression, state.output, indexed=True) as output,
            Output(names.strays, names.strays_compression, state.strays) as strays,
            bar("writing", report.dump_bytes, shown=self.options.progress) as shown,
        ):
            if not saved:
                for piece in self.pieces_of_lines(self.keyless_strays()):
                    strays.append(piece)
            for result in workers.run(
                bucket.merge_bucket, self.bucket_tasks(buckets, state.next_id)
            ):
                if self.options.strict:
                    strict.check_lines(report.dump, result.strays)
                for piece in result.pieces:
                    output.append(piece)
                    shown.update(int(piece.raw_size * scale))
                for piece in self.pieces_of_lines(result.strays):
                    strays.append(piece)
                state.add(result.tally)
                state.next_id = result.ids.stop
                state.output, state.strays = output.checkpoint(), strays.checkpoint()
                self.spill.put("checkpoint", asdict(state))
            self.seal(state, report, output, strays)

    def checkpoint(self, buckets: list[tuple[int, int]]) -> tuple[bool, _Checkpoint]:
        """Whether an earlier session wrote documents to go on from, and how far it came."""
        names = self.names
        saved = None if names.output == "-" else self.spill.get("checkpoint")
        if not saved:
            return False, _Checkpoint()
        state = _Checkpoint(**saved)
        for path, written in ((names.output, state.output), (names.strays, state.strays)):
            if not is_as_left(path, written):
                self.notify(f"{path}.part is not as it was left; writing again from the spill")
                return False, _Checkpoint()
        size = sum(size for _, size in buckets) or 1
        first_left = (state.next_id or 0) >> BUCKET_BITS
        done = sum(size for number, size in buckets if number < first_left)
        self.notify(f"going on: {100 * done // size} % of the documents are written")
        return True, state

    def documents(self, report: Report) -> Iterator[Iterator[bytes]]:
        """Nest every bucket in this process: the lines of one range of question ids a time."""
        state = _Checkpoint()
        for task in self.bucket_tasks(self.spill.buckets(), None):
            nested = bucket.nesting(task)
            yield (b"".join(document.parts) for document in nested)
            state.add(nested.tally)
            if self.options.strict:
                strict.check_lines(report.dump, nested.strays)
        state.complete(report)

    def seal(self, state: _Checkpoint, report: Report, output: Output, strays: Output) -> None:
        """Check that every row went somewhere, and end the files.

        The spill remembers it before the files get their names, so that a kill between the two
        names leaves nothing that would have to be forced.
        """
        state.complete(report)
        stray_bytes = 0
        if report.strays:
            stray_bytes = strays.seal()
            report.strays_path = strays.path
        else:
            strays.discard()
        report.output_bytes = output.seal()
        self.spill.put("sealed", {"report": report.as_dict(), "stray_bytes": stray_bytes})

    def bucket_tasks(
        self, buckets: list[tuple[int, int]], next_id: int | None
    ) -> Iterator[BucketTask]:
        """The ranges of question ids that are left to do."""
        for number, json_bytes in buckets:
            for ids in bucket.parts(number, json_bytes):
                if next_id is None or ids.start >= next_id:
                    blocks = self.spill.blocks(number)
                    yield BucketTask(ids, blocks, self.owners, self.names.compression, self.options)

    def keyless_strays(self) -> Iterator[bytes]:
        """Lines of the strays that belong to no bucket, in the order of the dump."""
        with BlockReader() as reader:
            for path, block in self.spill.blocks(None):
                yield from reader.read(path, block)[1].splitlines(keepends=True)

    def pieces_of_lines(self, lines: Iterable[bytes]) -> Iterator[Piece]:
        """Compress lines in pieces of the usual size."""
        held: list[bytes] = []
        size = 0
        for line in lines:
            held.append(line)
            size += len(line)
            if size >= PIECE_BYTES:
                yield compress(b"".join(held), self.names.strays_compression, self.options.level)
                held, size = [], 0
        if held:
            yield compress(b"".join(held), self.names.strays_compression, self.options.level)


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
    report = Report(**sealed["report"])
    strays = sealed["stray_bytes"]
    if strays and not publish(names.strays, strays):
        return None
    if not publish(names.output, report.output_bytes):
        return None
    if not strays and names.output != "-":
        # Strays of an earlier conversion, which this one replaces.
        Path(names.strays).unlink(missing_ok=True)
    return report


@dataclass(slots=True)
class _Checkpoint:
    """How far the second pass has come; in JSON types only.

    Attributes:
        next_id: Question id that comes next; None at the start.
        output: State of the output.
        strays: State of the side file.
        questions: Documents written.
        answers: Answers nested in them.
        stray_reasons: Strays written, of the second pass only, by reason.
    """

    next_id: int | None = None
    output: dict[str, int] | None = None
    strays: dict[str, int] | None = None
    questions: int = 0
    answers: int = 0
    stray_reasons: dict[str, int] = field(default_factory=dict)

    def add(self, tally: Tally) -> None:
        """Add what a range of question ids became."""
        self.questions += tally.questions
        self.answers += tally.answers
        self.stray_reasons = dict(Counter(self.stray_reasons) + tally.strays)

    def complete(self, report: Report) -> None:
        """Complete the report, and check that every row went somewhere."""
        report.questions, report.answers = self.questions, self.answers
        strays = Counter(report.strays) + Counter(self.stray_reasons)
        report.strays = dict(sorted(strays.items()))
        report.check()
