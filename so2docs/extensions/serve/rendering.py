"""Render texts of a dump as HTML in separate processes.

The libraries that sanitize HTML, highlight code and convert formulas process untrusted text and
hold the GIL, so they run in worker processes. A text that takes too much time or memory ends its
worker and is shown as its source. Meanwhile, the server answers other requests and can be stopped.
"""

from __future__ import annotations

import queue
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from threading import Lock, Timer
from typing import BinaryIO

import orjson
from markupsafe import Markup

from so2docs.extensions.serve.bodies import Kind, Renderer
from so2docs.processes.python import start_python

_WORKERS = 2
_CPU_SECONDS = 3
"""Maximum CPU seconds for one text, after which the system ends the worker."""
_PAGE_SECONDS = 30
"""Maximum wall time in seconds for the texts of a page; the only limit on systems that cannot limit
CPU time."""
_MOST_FAILURES = 3
"""Number of failed texts of a page after which all other texts are shown as their source."""
_MOST_MEMORY = 1 << 30

Text = tuple[Kind, str]


class Renderings:
    """Renders texts in worker processes, which start when they are needed."""

    def __init__(self, work: Callable[[BinaryIO, BinaryIO], object] | None = None) -> None:
        """Prepare the renderer, without starting a worker.

        Args:
            work: Function that a worker runs; if None, `run_worker`.
        """
        self._work = work or run_worker
        self._slots: queue.LifoQueue[subprocess.Popen[bytes] | None] = queue.LifoQueue()
        for _ in range(_WORKERS):
            self._slots.put(None)
        self._lock = Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._is_closed = False

    def render(self, renderer: Renderer, texts: Sequence[Text]) -> list[Markup]:
        """Render texts as HTML; a text that fails is returned as its escaped source."""
        rendered: list[str] = []
        for _ in range(_MOST_FAILURES):
            if len(rendered) < len(texts) and not self._is_closed:
                rendered += self._render(renderer, texts[len(rendered) :])
                # The next text, if any, ended its worker.
                failed = texts[len(rendered) : len(rendered) + 1]
                rendered += [renderer.render("plain", text) for _, text in failed]
        rendered += [renderer.render("plain", text) for _, text in texts[len(rendered) :]]
        return list(map(Markup, rendered))

    def close(self) -> None:
        """Kill all workers, including those that are rendering."""
        with self._lock:
            self._is_closed = True
            while self._running:
                _end(self._running.pop())

    def _render(self, renderer: Renderer, texts: Sequence[Text]) -> list[str]:
        """Return the HTML of texts in order, up to the first text that ends its worker."""
        values = {item.name: getattr(renderer, item.name) for item in fields(renderer)}
        request = orjson.dumps([values, texts]) + b"\n"
        rendered: list[str] = []
        with suppress(OSError, ValueError), self._worker() as process:
            timer = Timer(_PAGE_SECONDS, process.kill)
            timer.start()
            try:
                stdin, stdout = process.stdin, process.stdout
                assert stdin is not None
                assert stdout is not None
                stdin.write(request)
                stdin.flush()
                for _, text in texts:
                    line = stdout.readline()
                    if not line.endswith(b"\n"):
                        raise BrokenPipeError
                    answer = orjson.loads(line)
                    rendered.append(renderer.render("plain", text) if answer is None else answer)
            finally:
                timer.cancel()
        return rendered

    @contextmanager
    def _worker(self) -> Iterator[subprocess.Popen[bytes]]:
        """Borrow or start a worker, which no other thread uses until it is returned."""
        process = self._slots.get()
        is_whole = False
        try:
            if process is not None and process.poll() is not None:
                self._forget(process)
                process = None
            if process is None:
                process = self._start()
            yield process
            is_whole = process.poll() is None
        finally:
            # Drop a worker that has ended; a new one starts when it is needed.
            if process is not None and (self._is_closed or not is_whole):
                self._forget(process)
                process = None
            self._slots.put(process)

    def _start(self) -> subprocess.Popen[bytes]:
        with self._lock:
            process = start_python(self._work, stderr=subprocess.DEVNULL)
            self._running.add(process)
            if self._is_closed:
                process.kill()
            return process

    def _forget(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            if process in self._running:
                self._running.remove(process)
                _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process, wait for it to end, and close its pipes."""
    process.kill()
    process.wait()
    with suppress(OSError), process:
        pass


def run_worker(requests: BinaryIO, rendered: BinaryIO) -> None:
    """Run a worker: read requests, and write a line of JSON for each text."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The server handles Ctrl-C.
    _limit_memory()
    for line in requests:
        values, texts = orjson.loads(line)
        renderer = Renderer(**values)
        for kind, text in texts:
            _limit_time(_CPU_SECONDS)
            rendered.write(orjson.dumps(_render(renderer, kind, text)) + b"\n")
            # Flush each result, so that the server knows which text ended this process.
            rendered.flush()
        _limit_time(0)


def _render(renderer: Renderer, kind: Kind, text: str) -> str | None:
    try:
        return renderer.render(kind, text)
    except KeyboardInterrupt:
        raise
    except BaseException:  # Compiled libraries also raise errors that do not extend `Exception`.
        return None


def _limit_time(seconds: float) -> None:
    """Limit the CPU time of this process, in seconds; 0 removes the limit."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _limit_memory() -> None:
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
