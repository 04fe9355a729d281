"""Worker processes for both passes, which run tasks and return the results in order.

The number of unfinished tasks is bounded, so neither tasks nor results pile up. With one job,
everything runs in the calling process. Workers are new processes on every system (no fork), and
need no `if __name__ == "__main__"` in the caller's script. They ignore Ctrl-C, because the caller
stops them.

Each worker has a thread in the caller, which sends one task at a time and waits for the result. No
other process holds an end of a worker's pipes, so if the worker dies, the caller reads the end of
its pipe, even in the middle of a result. There are no locks, semaphores or shared memory that a
dead worker could block. When the caller closes the task pipe or dies, the worker exits immediately.
"""

from __future__ import annotations

import errno
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from typing import IO, TypeVar

from so2docs.errors import So2docsError, WorkerDiedError, flag, spelling
from so2docs.limits import available_memory, count_processors

Task = TypeVar("Task")
Result = TypeVar("Result")

_LIMITS: dict[int | None, str] = {
    errno.EMFILE: "the limit on open files (ulimit -n)",
    errno.EAGAIN: "the limit on processes (ulimit -u)",
}

_AHEAD = 2
"""Number of tasks that wait for a process, in addition to the running tasks."""

MOST_STREAMS = 3
"""Streams that are decompressed at once, each with the memory of its dictionary."""

_WORTH_A_PROCESS = 32 * 1024 * 1024
"""Bytes of input that take about as long to read as workers take to start."""

_MEMORY_OF_A_JOB = 100 * 1024 * 1024
"""Memory for which a process is started, in bytes. Conversions take 70 MiB for each."""


def choose_jobs(jobs: int | None, size: int, tasks: int | None = None) -> int:
    """Choose the number of processes: `jobs`, or else one per core, but one for a small input.

    Where memory is short, there are as many as find room.

    Args:
        jobs: Requested number of processes; None to choose it.
        size: Size of the input in bytes; 0 if unknown.
        tasks: Number of tasks, which is the maximum; None if unknown.
    """
    if jobs is None and not 0 < size < _WORTH_A_PROCESS:
        jobs = min(count_processors(), available_memory() // _MEMORY_OF_A_JOB)
    count = jobs or 1
    return count if tasks is None else max(1, min(count, tasks))


class _Worker:
    """A worker process, as seen by the caller."""

    def __init__(self) -> None:
        # Not needed in one process.
        from so2docs.processes.python import start_python
        from so2docs.processes.worker import serve

        try:
            self.process = start_python(serve)
        except OSError as error:
            raise So2docsError(
                f"a worker process cannot be started: {error.strerror or error}",
                retry=f"use fewer {flag('jobs')}, or raise {_LIMITS.get(error.errno, 'the limit')}",
            ) from error
        self.peak = 0
        self._has_started = False
        with suppress(OSError):  # Ignore a dead worker here: its first task will fail.
            self._send(spelling())

    @property
    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        return self.process.stdin, self.process.stdout

    def _send(self, value: object) -> None:
        data = pickle.dumps(value)  # Pickle before writing, so that a failure sends nothing.
        tasks, _ = self._pipes
        if tasks.closed:  # The worker died in an earlier task.
            raise BrokenPipeError
        tasks.write(data)
        tasks.flush()

    def run(self, function: Callable[[Task], Result], task: Task) -> Result:
        """Run a task in the worker.

        Raises:
            WorkerDiedError: The process died before it returned a result.
            So2docsError: The process could not start.
            Exception: The task raised this error.
        """
        try:
            self._send((function, task))
            if not self._has_started:
                self._has_started = pickle.load(self._pipes[1])
            result, error, cause, self.peak = pickle.load(self._pipes[1])
        except (EOFError, OSError, pickle.UnpicklingError):
            raise self._explain_end() from None
        if error is not None:
            raise error from cause
        return result  # type: ignore[no-any-return]

    def _explain_end(self) -> So2docsError:
        with suppress(OSError):
            self._pipes[0].close()
        code = self.process.wait()
        if not self._has_started and code >= 0:
            return So2docsError(
                f"{self.process.args[0]}: "  # type: ignore[index, str-bytes-safe]
                f"ended with exit code {code} in place of starting a worker",
                retry=f"check this interpreter, or use {flag('jobs', 1)}",
            )
        return WorkerDiedError(
            "a worker process was killed, perhaps because memory ran out "
            f"(if so, use fewer {flag('jobs')})",
            retry="",
        )

    def close(self) -> None:
        """Close the pipes and reap the process."""
        self.process.wait()
        for pipe in self._pipes:
            with suppress(OSError):
                pipe.close()


class Workers(AbstractContextManager["Workers"]):
    """Runs tasks in up to `jobs` processes; a process is started when all others are busy.

    Attributes:
        readers: Threads that may read tables and run tasks; they leave signals to the main thread.
        peaks: Peak resident memory of each worker, in bytes, by process id.
    """

    def __init__(self, jobs: int) -> None:
        """Prepare the pool; processes start with the first tasks.

        Args:
            jobs: Number of processes; 1 is the calling process.
        """
        self.jobs = jobs
        self.peaks: dict[int, int] = {}
        self._threads = ThreadPoolExecutor(jobs, initializer=_leave_signals)
        self.readers = ThreadPoolExecutor(min(jobs, MOST_STREAMS), initializer=_leave_signals)
        self._unfinished: deque[None] = deque()  # Of all runs: several threads may run tasks.
        self._workers: list[_Worker] = []
        self._local = threading.local()
        self._is_ending = False

    def __exit__(self, *exception: object) -> None:
        self._is_ending = True
        for worker in self._workers:
            worker.process.kill()  # Results of running tasks are no longer needed.
        self._threads.shutdown(wait=True, cancel_futures=True)
        self.readers.shutdown(wait=True, cancel_futures=True)
        for worker in self._workers:
            worker.close()
        self._workers.clear()

    def run(
        self,
        function: Callable[[Task], Result],
        tasks: Iterable[Task],
        died: Callable[[Task, WorkerDiedError], Result] | None = None,
    ) -> Generator[Result, None, None]:
        """Apply `function` to each task.

        Args:
            function: A function of a module, so that a worker can import it.
            tasks: Arguments of the function, taken as workers become free.
            died: Makes the result of a task whose worker died; a new worker runs the next task.

        Yields:
            The results, in the order of the tasks.

        Raises:
            WorkerDiedError: A worker died without returning a result, and `died` is None.
            Exception: The error of the first task that failed, in the order of the tasks.
        """
        if self.jobs == 1:
            for task in tasks:
                yield function(task)
            return
        waiting: deque[Future[Result]] = deque()
        try:
            for task in tasks:
                waiting.append(self._threads.submit(self._run, function, task, died))
                self._unfinished.append(None)
                while waiting and len(self._unfinished) >= self.jobs + _AHEAD:
                    self._unfinished.pop()
                    yield waiting.popleft().result()
            while waiting:
                self._unfinished.pop()
                yield waiting.popleft().result()
        finally:
            for _ in waiting:
                self._unfinished.pop()

    def _run(
        self,
        function: Callable[[Task], Result],
        task: Task,
        died: Callable[[Task, WorkerDiedError], Result] | None,
    ) -> Result:
        """Run a task in the worker of the current thread."""
        worker = getattr(self._local, "worker", None)
        if worker is None:
            worker = self._local.worker = _Worker()
            self._workers.append(worker)
        if self._is_ending:
            worker.process.kill()
        try:
            return worker.run(function, task)
        except WorkerDiedError as error:
            if died is None or self._is_ending:
                raise
            del self._local.worker
            return died(task, error)
        finally:
            self.peaks[worker.process.pid] = worker.peak


def _leave_signals() -> None:
    """Block signals in this thread: the main thread handles them, and new workers ignore them."""
    if hasattr(signal, "pthread_sigmask"):  # Windows has no signal masks.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
