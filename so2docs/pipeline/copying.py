"""The data of segments, copied into the output by workers while the main process goes on.

The main process says where everything belongs. A checkpoint counts when all that comes before it
has been copied.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from so2docs.output.part_files import Copy, copy_all
from so2docs.pipeline.workers import Workers

_MOST_WAITING = 4
"""Tasks that wait besides one for each worker, whose temporary files are still there."""


class Copies:
    """Pending copies, and the checkpoints that wait for them.

    Args:
        workers: Where it is copied.
        save: Called with each checkpoint that counts, in order.
    """

    def __init__(self, workers: Workers, save: Callable[[Any], None]) -> None:
        self._workers = workers
        self._save = save
        self._gathered: list[Copy] = []
        self._waiting: deque[tuple[Future[None], Any]] = deque()

    def add(self, copies: Iterable[Copy]) -> None:
        """Copy this before the next checkpoint counts."""
        for copy in copies:
            joined = self._gathered[-1].join(copy) if self._gathered else None
            self._gathered[-1 if joined else len(self._gathered) :] = [joined or copy]

    def send(self, temporary: Collection[str], checkpoint: Any) -> None:
        """Have all that was added copied, and then these files removed, for a checkpoint.

        Raises:
            OutputError: Something could not be copied.
            DiskFullError: The disk is full.
            WorkerDiedError: A worker was killed.
        """
        task = self._gathered, temporary
        self._gathered = []
        self._waiting.append((self._workers.submit(copy_and_remove, task), checkpoint))
        most = self._workers.jobs + _MOST_WAITING
        while self._waiting and (len(self._waiting) > most or self._waiting[0][0].done()):
            self._save_first()

    def settle(self) -> None:
        """Wait until all is copied that was added; raises as `send` does."""
        while self._waiting:
            self._save_first()
        copy_all(self._gathered)
        self._gathered = []

    def _save_first(self) -> None:
        copied, checkpoint = self._waiting.popleft()
        copied.result()
        self._save(checkpoint)


def copy_and_remove(task: tuple[Iterable[Copy], Iterable[str | Path]]) -> None:
    """In a worker: copy, and remove the files that were copied from."""
    copies, temporary = task
    copy_all(copies)
    for path in temporary:
        Path(path).unlink(missing_ok=True)
