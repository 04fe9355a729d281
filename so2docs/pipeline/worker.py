"""A worker process: tasks come by its standard input, results go by its standard output.

Both pipes are its own: nothing that happens to this process, at whatever moment, leaves another one
waiting. When the caller closes the pipe of the tasks, or dies, the worker ends at once.

A module of its own, so that a worker imports nothing that only its caller needs.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO

COMMAND = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from so2docs.pipeline.worker import serve; serve()"
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
