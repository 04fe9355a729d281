"""The second pass, seen from the main process: buckets of the spill -> documents in the output.

Appends what each bucket became and notes how far it has come, so that an interrupted pass goes on
from there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from so2docs import bucket
from so2docs.bucket import BucketTask
from so2docs.merge import Tally
from so2docs.options import Options
from so2docs.output import Output, Piece, compress_lines
from so2docs.paths import Names
from so2docs.progress import bar
from so2docs.report import Report
from so2docs.spill import BlockReader, Spill
from so2docs.workers import Workers


class SecondPass:
    """Writes a spill as documents."""

    def __init__(
        self, spill: Spill, options: Options, names: Names, owners: dict[int, int]
    ) -> None:
        self.spill = spill
        self.options = options
        self.names = names
        self.owners = owners

    def run(self, workers: Workers, report: Report) -> None:
        """Nest every bucket after the last checkpoint, in ascending order."""
        names = self.names
        saved = None if names.output == "-" else self.spill.get("checkpoint")
        state = _Checkpoint(**saved) if saved else _Checkpoint()
        buckets = self.spill.buckets()
        scale = report.dump_bytes / (sum(size for _, size in buckets) or 1)
        with (
            Output(names.output, names.compression, state.output) as output,
            Output(names.strays, names.strays_compression, state.strays) as strays,
            bar("writing", report.dump_bytes, shown=self.options.progress) as shown,
        ):
            if saved is None:
                for piece in self.pieces_of_lines(self.keyless_strays()):
                    strays.append(piece)
            for result in workers.run(
                bucket.merge_bucket, self.bucket_tasks(buckets, state.next_id)
            ):
                for piece in result.pieces:
                    output.append(piece)
                    shown.update(int(piece.raw_size * scale))
                for piece in self.pieces_of_lines(result.strays):
                    strays.append(piece)
                state.add(result.tally)
                state.next_id = result.ids.stop
                state.output, state.strays = output.checkpoint(), strays.checkpoint()
                self.spill.put("checkpoint", asdict(state))
            self.finish(state, report, output, strays)

    def documents(self, report: Report) -> Iterator[Iterator[bytes]]:
        """Nest every bucket in this process: the lines of one range of question ids a time."""
        state = _Checkpoint()
        for task in self.bucket_tasks(self.spill.buckets(), None):
            nested = bucket.nesting(task)
            yield (b"".join(document.parts) for document in nested)
            state.add(nested.tally)
        state.complete(report)

    def finish(self, state: _Checkpoint, report: Report, output: Output, strays: Output) -> None:
        """Check that every row went somewhere, and give the files their names."""
        state.complete(report)
        if report.strays:
            strays.finish()
            report.strays_path = strays.path
        else:
            strays.discard()
            Path(strays.path).unlink(missing_ok=True)
        report.output_bytes = output.finish()

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
        """Compress lines of the side file."""
        return compress_lines(lines, self.names.strays_compression, self.options.level)


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
