"""A worker process, which reads tasks from a pipe and writes results to another.

No other worker shares these pipes, so the death of this process never blocks another worker. When
the caller closes the task pipe or dies, the worker exits immediately.

This is a separate module, so that a worker does not import modules that only the caller needs.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, BinaryIO

from so2docs.errors import naming_flags
from so2docs.limits import peak_memory

in_worker = threading.Event()
"""Set in worker processes."""


class InWorkerError(Exception):
    """The traceback of an error in a worker, set as the cause of that error."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def serve(tasks: BinaryIO, results: BinaryIO) -> None:
    """Run tasks until the caller closes the pipe.

    The first input is the argument of `naming_flags`, and the first output is True.
    """
    try:
        flags = pickle.load(tasks)
    except EOFError:  # The caller is gone.
        return
    with naming_flags(flags):
        _serve(tasks, results)


def _serve(pipe: BinaryIO, results: BinaryIO) -> None:
    in_worker.set()
    # Ignore signals: stopping a service signals all its processes, but the caller decides when a
    # worker ends.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):  # Windows has no signal masks.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    _write(results, pickle.dumps(True))
    tasks: SimpleQueue[tuple[Callable[[Any], Any], Any]] = SimpleQueue()
    threading.Thread(target=_receive, args=(pipe, tasks), daemon=True).start()
    _keep_freed_memory()
    # Disable automatic garbage collection, and collect once per task, which saves 3 % of the time:
    # the passes make millions of objects, but hardly any reference cycles.
    gc.freeze()
    gc.disable()
    functions: set[Callable[[Any], Any]] = set()
    while True:
        function, task = tasks.get()
        answer = _answer(function, task)
        if function not in functions:
            functions.add(function)
            gc.freeze()  # Exclude imported objects from collections: this saves 3 % of the time.
        _write(results, answer)


def _write(results: BinaryIO, answer: bytes) -> None:
    try:
        results.write(answer)
        results.flush()
    except OSError:
        os._exit(1)  # The caller is gone.


def _receive(pipe: BinaryIO, tasks: SimpleQueue[Any]) -> None:
    """Queue tasks as they arrive, so that the caller never blocks; exit when the caller is gone."""
    try:
        while True:
            tasks.put(pickle.load(pipe))
    except (EOFError, OSError, pickle.UnpicklingError):
        os._exit(0)
    except BaseException as error:  # An import failed, so the rest of the pipe cannot be read.
        tasks.put((_fail, error))
        tasks.put((os._exit, 1))


def _fail(error: BaseException) -> None:
    raise error


def _answer(function: Callable[[Any], Any], task: Any) -> bytes:
    """Run a task; pickle its result or error, the error's cause, and the peak resident memory."""
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
    """Let glibc keep freed memory for the next task instead of returning it to the system.

    This avoids three of four page faults and saves 5 % of the time of a conversion. Peak memory is
    the same.
    """
    trim_threshold, mmap_threshold = -1, -3  # Constants of malloc.h.
    with suppress(AttributeError, ImportError, OSError, TypeError):
        import ctypes

        mallopt = ctypes.CDLL(None).mallopt
        mallopt(trim_threshold, 256 * 1024 * 1024)
        mallopt(mmap_threshold, 64 * 1024 * 1024)
