"""Progress bars with tqdm, and the logger for messages to users."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from contextvars import ContextVar
from typing import Any

from so2docs.errors import without_secrets
from so2docs.escape import on_one_line

Shown = bool | Callable[[int, int | None, str], object]
"""Whether to show progress bars, or a function that is called with the progress instead."""

log = logging.getLogger("so2docs")
"""Logger for messages to users; the command line shows them on stderr."""


class _WithoutSecrets(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = without_secrets(record.getMessage()), ()
        return True


log.addFilter(_WithoutSecrets())

subject = ContextVar("subject", default="")
"""Subject of the messages and bars of a block, followed by a colon; see `about`."""


@contextmanager
def listen(take: Callable[[int, str], object]) -> Iterator[None]:
    """Pass the level and the text of each message logged in a block to a function."""
    listener, level = logging.Handler(), log.level
    listener.emit = lambda record: take(record.levelno, record.getMessage())  # type: ignore[method-assign, assignment]
    log.addHandler(listener)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(listener)
        log.setLevel(level)


class _Reporter:
    """A display that calls a function; it has the attributes of a tqdm bar that are used here."""

    def __init__(
        self,
        show: Callable[[_Reporter], object],
        desc: str,
        total: int | None,
        unit: str = "work",
        **_: object,
    ) -> None:
        self._show = show
        self.desc, self.total, self.unit = desc, total, unit
        self.n = self.initial = self.last_print_n = 0
        self.start = time.monotonic()

    def update(self, n: int) -> None:
        self.n += n
        self._show(self)

    def set_description(self, description: str) -> None:
        self.desc = f"{description}: "

    def refresh(self) -> None:
        pass

    close = refresh


LINE_SECONDS = 60
"""Seconds between the lines that `log_progress` logs."""

_next_line: float | None = None
"""When to log the next line; None if bars are shown."""


@contextmanager
def log_progress(is_on: bool) -> Iterator[None]:
    """In a block, log progress once a minute instead of showing bars, if `is_on`."""
    global _next_line  # noqa: PLW0603 - Not a context variable: it is for all threads.
    before, _next_line = _next_line, time.monotonic() + LINE_SECONDS if is_on else None
    try:
        yield
    finally:
        _next_line = before


def _log_line(display: _Reporter) -> None:
    """Log the progress and the remaining time, or the rate if the total is unknown."""
    global _next_line  # noqa: PLW0603
    now = time.monotonic()
    if _next_line is None or now < _next_line:
        return
    _next_line = now + LINE_SECONDS
    from tqdm import tqdm

    has_total = bool(display.total)
    form = "{percentage:.0f}%, {remaining} left" if has_total else "{n_fmt}{unit}, {rate_fmt}"
    line = tqdm.format_meter(
        display.n,
        display.total or 0,
        now - display.start,
        bar_format=f"{{desc}}{form}",
        prefix=display.desc,
        unit=display.unit,
        unit_scale=True,
        initial=display.initial,
    )
    log.info("%s", line)


def _show_nothing(display: _Reporter) -> None:
    pass


@contextmanager
def about(name: str) -> Iterator[None]:
    """Prefix the descriptions of bars, for example with the name of the dump."""
    token = subject.set(f"{name}: ")
    try:
        yield
    finally:
        subject.reset(token)


_updating = threading.Lock()
"""Held while a bar is updated: several threads may read tables."""


class Bar:
    """The progress of a step, which fills a part of a display.

    Attributes:
        display: A tqdm bar or a `_Reporter`.
        end: Position of the display at the end of the step.
    """

    def __init__(self, display: Any, end: int, total: int, done: int = 0) -> None:
        self.display = display
        self.end = end
        self._start: int = display.n
        self._total = total
        self._done = 0
        before = self._advance(done)
        # Exclude work done by earlier sessions from the rate.
        display.initial += before
        display.last_print_n += before
        display.n += before

    def _advance(self, n: int) -> int:
        """Add units to those done in this step; return the amount by which to advance."""
        self._done += n
        reached = self._start + self._done
        if self._total:
            share = min(self._done / self._total, 1)
            reached = self._start + int((self.end - self._start) * share)
        return max(0, reached - int(self.display.n))

    def update(self, n: int) -> None:
        """Advance by `n` bytes or other units."""
        with _updating:
            self.display.update(self._advance(n))

    def fill(self) -> None:
        """Advance to the end of the step."""
        self.display.update(max(0, self.end - self.display.n))


@contextmanager
def bar(description: str, total: int | None, *, shown: Shown = True) -> Iterator[Bar]:
    """Show a bar with rate and remaining time; if the block succeeds, fill the bar to 100 %."""
    options = {"total": total or None, "unit": "B", "unit_scale": True}
    with closing(_open_display(description, shown, **options)) as display:
        yield Bar(display, total or 0, total or 0)
        _fill(display)


class Progress(AbstractContextManager["Progress"]):
    """One bar for all steps of a job, which shows the remaining time of the whole job.

    Each step fills a fraction of the bar: its share of the remaining work. Progress within a step
    may be counted in another unit than the work. The steps of a `Progress` that is made during a
    step share the fraction of that step.
    """

    def __init__(self, *, shown: Shown = False) -> None:
        self._shown = shown
        self._work = 0.0
        self._whole = self._outer = _outer.get()

    def plan(self, work: float) -> None:
        """Set the amount of remaining work."""
        self._work = max(0.0, work)

    @contextmanager
    def step(
        self, description: str, work: float | None, total: int | None, done: int = 0
    ) -> Iterator[Bar]:
        """Show the progress of a step; if no work was planned, show it in a separate bar.

        Args:
            description: Name of the activity.
            work: Amount of work in this step; None for all remaining work.
            total: Number of bytes or other units in this step; None or 0 if unknown.
            done: Number of units done by earlier sessions.
        """
        if not self._shown or (self._whole is None and not self._work):
            with bar(description, total, shown=self._shown) as new_bar:
                yield new_bar
            return
        self._whole = self._whole or self._open(description)
        display = self._whole.display
        display.set_description(_with_subject(description))
        fraction = 1.0 if work is None or work >= self._work else work / self._work
        self._work -= fraction * self._work
        end = display.n + int((self._whole.end - display.n) * fraction)
        step = Bar(display, end, total or 1, done)
        token = _outer.set(step)
        try:
            yield step
        finally:
            _outer.reset(token)
        step.fill()

    def _open(self, description: str) -> Bar:
        """Open a display for the whole job."""
        # This work is not measured in bytes, so show no rate.
        form = "{desc}{percentage:3.0f}%|{bar}| {elapsed}, {remaining} left"
        total = int(self._work)
        options = {"total": total, "bar_format": form, "smoothing": 0.1}
        return Bar(_open_display(description, self._shown, **options), total, 0)

    def __exit__(self, kind: object, *exception: object) -> None:
        if self._whole is not None and self._whole is not self._outer:
            if kind is None:
                _fill(self._whole.display)
            self._whole.display.close()


_outer: ContextVar[Bar | None] = ContextVar("_outer", default=None)


def _open_display(description: str, shown: Shown, **options: Any) -> Any:
    """Make a tqdm bar, which is a widget in notebooks, or an object that calls a function."""
    options["desc"] = f"{_with_subject(description)}: "
    if callable(shown):
        return _Reporter(lambda made: shown(made.n, made.total, made.unit), **options)
    if not shown or _next_line is not None:
        return _Reporter(_log_line if shown else _show_nothing, **options)
    from tqdm.auto import tqdm

    made = tqdm(mininterval=0.2, **options)
    if made.disable:  # `TQDM_DISABLE` is set; such a bar lacks most attributes.
        return _Reporter(_show_nothing, **options)
    return made


def _with_subject(description: str) -> str:
    return on_one_line(f"{subject.get()}{description}")


def _fill(display: Any) -> None:
    """Fill a bar: some bytes, such as the closing tag or rows beyond a limit, are not counted."""
    display.total = display.total or display.n
    display.update(display.total - display.n)
    display.refresh()
