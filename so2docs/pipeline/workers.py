"""The processes that both passes run in: tasks in, results in order out.

A bounded number of tasks is under way at any time, so that neither tasks nor results pile up. With
one job everything runs in the calling process. Workers are started afresh on every system, need no
`if __name__ == "__main__"` in the caller's script, ignore Ctrl-C (the caller stops them) and end
when the caller dies.

Each worker has a thread in the caller that hands it one task at a time and waits for the result, by
pipes that no other process holds an end of. So a worker that dies, even within a result, shows as
the end of its pipe; there is no lock, semaphore or shared memory that it could leave taken. When
the caller closes the pipe of the tasks, or dies, the worker ends at once.
"""

from __future__ import annotations

import errno
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any, BinaryIO, TypeVar

from so2docs.errors import So2docsError, WorkerDiedError, flag

COMMAND = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from so2docs.pipeline.workers import serve; serve()"
)
"""What Python runs as a worker; its first input is where the caller finds modules."""


class InWorkerError(Exception):
    """The traceback of an error in a worker, as its cause."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def serve() -> None:
    """Run tasks until the caller closes the pipe."""
    # Who stops a service signals all of its processes; the caller decides when a worker ends.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):  # Not on Windows.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    results = os.fdopen(os.dup(1), "wb")
    with suppress(OSError):
        os.dup2(2, 1)  # What a library prints is no result.
    tasks: SimpleQueue[tuple[Callable[[Any], Any], Any]] = SimpleQueue()
    threading.Thread(target=_receive, args=(sys.stdin.buffer, tasks), daemon=True).start()
    _keep_freed_memory()
    # The passes make millions of objects and hardly a cycle: collecting once a task saves 3 %.
    gc.freeze()
    gc.disable()
    functions: set[Callable[[Any], Any]] = set()
    while True:
        function, task = tasks.get()
        answer = _answer(function, task)
        if function not in functions:
            functions.add(function)
            gc.freeze()  # What it imported; collecting looked at that after each task: 3 % more.
        try:
            results.write(answer)
            results.flush()
        except OSError:
            os._exit(1)  # Nobody reads it any more.


def _receive(pipe: BinaryIO, tasks: SimpleQueue[Any]) -> None:
    """Take tasks as they come, so that the caller never waits, and notice when it is gone."""
    try:
        while True:
            tasks.put(pickle.load(pipe))
    except (EOFError, OSError, pickle.UnpicklingError):
        os._exit(0)
    except BaseException as error:  # What the task needs cannot be imported; the rest is lost.
        tasks.put((_fail, error))
        tasks.put((os._exit, 1))


def _fail(error: BaseException) -> None:
    raise error


def _answer(function: Callable[[Any], Any], task: Any) -> bytes:
    """The pickled answer to a task: result, error, peak resident memory."""
    result, failure = None, None
    try:
        result = function(task)
    except BaseException as error:
        failure = error
        failure.__cause__ = InWorkerError(traceback.format_exc())
    gc.collect()
    try:
        cause = None if failure is None else failure.__cause__
        return pickle.dumps((result, failure, cause, peak_memory()))
    except Exception as error:
        failed = RuntimeError(f"{failure or error!r} in a worker")
        return pickle.dumps((None, failed, None, peak_memory()))


def _keep_freed_memory() -> None:
    """Let glibc keep what is freed for the next task instead of handing it back each time.

    Three of four page faults less, 5 % off a conversion; the peak is the same.
    """
    trim_threshold, mmap_threshold = -1, -3  # From malloc.h.
    with suppress(AttributeError, ImportError, OSError, TypeError):
        import ctypes

        mallopt = ctypes.CDLL(None).mallopt
        mallopt(trim_threshold, 256 * 1024 * 1024)
        mallopt(mmap_threshold, 64 * 1024 * 1024)


def peak_memory() -> int:
    """Most resident memory of this process so far, in bytes; 0 where the system does not tell."""
    try:
        # ru_maxrss would do, but counts what the parent held when it started this process.
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024
    except (OSError, IndexError):
        pass
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


Task = TypeVar("Task")
Result = TypeVar("Result")

_LIMITS: dict[int | None, str] = {
    errno.EMFILE: "the limit of open files (ulimit -n)",
    errno.EAGAIN: "the limit of processes (ulimit -u)",
}


class _Worker:
    """A worker process, seen from the caller."""

    def __init__(self) -> None:
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-c", COMMAND], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        except OSError as error:
            raise So2docsError(
                f"a worker process cannot be started: {error.strerror or error}",
                retry=f"use fewer {flag('jobs')}, or raise {_LIMITS.get(error.errno, 'the limit')}",
            ) from error
        self.peak = 0
        with suppress(OSError):  # If it is dead already, its first task will tell.
            self._send(sys.path)

    @property
    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        return self.process.stdin, self.process.stdout

    def _send(self, value: object) -> None:
        data = pickle.dumps(value)  # Whole, or nothing is sent.
        tasks, _ = self._pipes
        tasks.write(data)
        tasks.flush()

    def run(self, function: Callable[[Task], Result], task: Task) -> Result:
        """Have a task done.

        Raises:
            WorkerDiedError: The process ended first.
            Exception: The error of the task.
        """
        try:
            self._send((function, task))
            result, error, cause, self.peak = pickle.load(self._pipes[1])
        except (EOFError, OSError, pickle.UnpicklingError):
            raise WorkerDiedError(
                "a worker process was killed, perhaps because memory ran out",
                retry=f"if it was memory, use fewer {flag('jobs')}",
            ) from None
        if error is not None:
            raise error from cause
        return result  # type: ignore[no-any-return]

    def close(self) -> None:
        """Release what is held of the process, which was killed."""
        self.process.wait()
        for pipe in self._pipes:
            with suppress(OSError):
                pipe.close()


class Workers:
    """Runs tasks in `jobs` processes, each started when there is a task that no other can take.

    Attributes:
        peaks: Most resident memory of each worker, in bytes, by process id.
    """

    def __init__(self, jobs: int, *, is_apart: bool = False) -> None:
        """Start nothing yet.

        Args:
            jobs: Processes; a single one is this process.
            is_apart: Let a single one be another process, which keeps what modules hold.
        """
        self.jobs = jobs
        self._is_inline = jobs == 1 and not is_apart
        self.peaks: dict[int, int] = {}
        self._threads: ThreadPoolExecutor | None = None
        self._workers: list[_Worker] = []
        self._own = threading.local()
        self._is_ending = False

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._threads is None:
            return
        self._is_ending = True
        for worker in self._workers:
            worker.process.kill()  # What it is doing is no longer needed.
        self._threads.shutdown(wait=True, cancel_futures=True)
        for worker in self._workers:
            worker.close()
        self._workers.clear()
        self._threads = None

    def run(
        self,
        function: Callable[[Task], Result],
        tasks: Iterable[Task],
        ahead: int = 2,
        died: Callable[[Task, WorkerDiedError], Result] | None = None,
    ) -> Generator[Result, None, None]:
        """Apply `function` to each task.

        Args:
            function: A function of a module, so that a worker can import it.
            tasks: Its arguments, taken as workers become free.
            ahead: Tasks that wait besides those that run.
            died: Makes the result of a task whose worker died; another worker takes the next task.

        Yields:
            The results, in the order of the tasks.

        Raises:
            WorkerDiedError: A worker ended without an answer, and `died` is None.
            Exception: The first error of a task, in the order of the tasks.
        """
        if self._is_inline:
            for task in tasks:
                yield function(task)
            return
        threads = self._started()
        waiting: deque[Future[Result]] = deque()
        for task in tasks:
            waiting.append(threads.submit(self._run, function, task, died))
            if len(waiting) >= self.jobs + ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def submit(self, function: Callable[[Task], Result], task: Task) -> Future[Result]:
        """Have one task done after those that wait; where all runs in this process, at once."""
        if self._is_inline:
            future: Future[Result] = Future()
            future.set_result(function(task))
            return future
        return self._started().submit(self._run, function, task, None)

    def _started(self) -> ThreadPoolExecutor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.jobs, initializer=_leave_signals)
        return self._threads

    def _run(
        self,
        function: Callable[[Task], Result],
        task: Task,
        died: Callable[[Task, WorkerDiedError], Result] | None,
    ) -> Result:
        """In a thread: have a task done by the worker of this thread."""
        worker = getattr(self._own, "worker", None)
        if worker is None:
            worker = self._own.worker = _Worker()
            self._workers.append(worker)
        if self._is_ending:
            worker.process.kill()
        try:
            return worker.run(function, task)
        except WorkerDiedError as error:
            if died is None or self._is_ending:
                raise
            del self._own.worker
            return died(task, error)
        finally:
            self.peaks[worker.process.pid] = worker.peak


def _leave_signals() -> None:
    """Signals are for the main thread; and a worker starts with those blocked that it ignores."""
    if hasattr(signal, "pthread_sigmask"):  # Not on Windows.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
