"""Progress bars with tqdm, and the logger for messages to users."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, Self

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


def listen(take: Callable[[str], object]) -> AbstractContextManager[None]:
    """Pass the text of each message logged in a block to a function."""
    return _listen(lambda record: take(record.getMessage()))


@contextmanager
def collect() -> Iterator[list[tuple[int, str]]]:
    """Collect the messages logged in a block, with their levels, to log them in another process."""
    messages: list[tuple[int, str]] = []
    with _listen(lambda record: messages.append((record.levelno, record.getMessage()))):
        yield messages


@contextmanager
def _listen(take: Callable[[logging.LogRecord], object]) -> Iterator[None]:
    listener, level = logging.Handler(), log.level
    listener.emit = take  # type: ignore[method-assign, assignment]
    log.addHandler(listener)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(listener)
        log.setLevel(level)


class Bar(Protocol):
    """A progress bar."""

    def update(self, n: int) -> object:
        """Advance by `n` bytes or other units."""


class _NoBar:
    def update(self, n: int) -> None:
        pass


class _Reporter:
    """Passes progress to a function instead of showing it; has the methods of a tqdm bar."""

    def __init__(
        self,
        report: Callable[[int, int | None, str], object],
        total: int | None,
        initial: int = 0,
        unit: str = "work",
        **_: object,
    ) -> None:
        self.report = report
        self.total, self.unit = total, unit
        self.n = self.initial = self.last_print_n = initial

    def update(self, n: int) -> None:
        self.n += n
        self.report(self.n, self.total, self.unit)

    def _pass(self, *_: object, **_options: object) -> None:
        pass

    set_postfix_str = refresh = close = __exit__ = _pass

    def set_description(self, description: str) -> None:
        pass

    def __enter__(self) -> Self:
        return self


LINE_SECONDS = 60
"""Seconds between the lines that `log_progress` logs."""

_logs_lines = False


@contextmanager
def log_progress(is_on: bool) -> Iterator[None]:
    """In a block, log progress once a minute instead of showing bars, if `is_on`."""
    global _logs_lines  # noqa: PLW0603 - Not a context variable: it is for all threads.
    before, _logs_lines = _logs_lines, is_on
    _Lines.last = time.monotonic()
    try:
        yield
    finally:
        _logs_lines = before


class _Lines(_Reporter):
    """Logs a line a minute: done, total and rate."""

    last = 0.0
    """When the block started, or any object logged a line."""

    def __init__(self, description: str, **options: Any) -> None:
        super().__init__(self._log, **options)
        self._description, self._start = description, time.monotonic()

    def set_description(self, description: str) -> None:
        self._description = description

    def _log(self, done: int, total: int | None, unit: str) -> None:
        now = time.monotonic()
        if now - _Lines.last < LINE_SECONDS:
            return
        _Lines.last = now
        rate = (done - self.initial) / max(now - self._start, 1e-6)
        if unit == "work" and total:
            state = f"{done / total:.0%}, {60 * rate / total:.1%} a minute"
        else:
            amounts = [_as_amount(amount, unit) for amount in (done, total or 0, rate)]
            of_total = f" of {amounts[1]}" if total else ""
            state = f"{amounts[0]}{of_total}, {amounts[2]}/s"
        left = f", {(total - done) / rate / 60:,.0f} min left" if total and rate else ""
        log.info("%s: %s%s", self._description.rstrip(": "), state, left)


def _as_amount(amount: float, unit: str) -> str:
    from so2docs.report import as_size

    return as_size(amount) if unit == "B" else f"{amount:,.0f}{unit}"


@contextmanager
def about(name: str) -> Iterator[None]:
    """Prefix the descriptions of bars, for example with the name of the dump."""
    token = subject.set(f"{name}: ")
    try:
        yield
    finally:
        subject.reset(token)


@contextmanager
def bar(
    description: str, total: int | None, done: int = 0, *, unit: str = "B", shown: Shown = True
) -> Iterator[Bar]:
    """Show a bar with rate and remaining time; if the block succeeds, fill the bar to 100 %."""
    if not shown:
        yield _NoBar()
        return
    options = {"total": total or None, "initial": done, "unit": unit, "unit_scale": True}
    with _tqdm(description, shown, **options) as bar_:
        remaining = (total or 0) - done
        yield _Share(bar_, remaining, remaining, 0) if remaining > 0 else bar_
        _fill(bar_)


class Progress(AbstractContextManager["Progress"]):
    """One bar for all steps of a job, which shows the remaining time of the whole job.

    The unfilled part of the bar stands for the remaining work, measured in the same unit in all
    steps; progress within a step may be counted in a different unit. The steps of a `Progress` that
    is made during a step share the part of the bar that belongs to this step.
    """

    def __init__(self, *, shown: Shown = False) -> None:
        self._shown = shown
        self._work = 0.0
        self._end = 0
        self._made: Any = None
        self._outer: _Share | None = _outer.get()

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
        if not self._shown or (self._made is None and not self._work):
            with bar(description, total, done, shown=self._shown) as new_bar:
                yield new_bar
            return
        if self._made is None:
            self._made = self._begin(description)
        bar_ = self._made
        bar_.set_description(on_one_line(f"{subject.get()}{description}"))
        work = self._work if work is None else min(work, self._work)
        part = work / self._work if self._work else 1.0
        self._work -= work
        share = _Share(bar_, (self._end - bar_.n) * part, total or 1, done)
        token = _outer.set(share)
        try:
            yield share
        finally:
            _outer.reset(token)
        share.update(share.total - share.done)

    def _begin(self, description: str) -> Any:
        """Return the bar of the outer step, or make one."""
        if self._outer is not None:
            self._end = self._outer.start + int(self._outer.share)
            return self._outer.tqdm_bar
        self._end = int(self._work)
        # This work is not measured in bytes, so show no rate.
        form = "{desc}{percentage:3.0f}%|{bar}| {elapsed}, {remaining} left{postfix}"
        options = {"total": self._end, "bar_format": form, "smoothing": 0.1}
        return _tqdm(f"{description}: ", self._shown, **options)

    def __exit__(self, kind: object, *exception: object) -> None:
        if self._made is not None and self._outer is None:
            if kind is None:
                _fill(self._made)
            self._made.close()


class _Share:
    """The share of a bar that belongs to one step."""

    def __init__(self, tqdm_bar: Any, share: float, total: int, done: int) -> None:
        self.tqdm_bar = tqdm_bar
        self.start = tqdm_bar.n
        self.share = share
        self.total = total
        self.done = 0
        before = self._to(done)
        # Exclude work done by earlier sessions from the rate.
        tqdm_bar.initial += before
        tqdm_bar.last_print_n += before
        tqdm_bar.n += before

    def _to(self, done: int) -> int:
        """Set the units done in this step; return the amount by which to advance the bar."""
        self.done = min(done, self.total)
        reached = self.start + int(self.share * self.done / self.total)
        remaining: int = min(reached, self.tqdm_bar.total) - self.tqdm_bar.n
        return max(0, remaining)

    def update(self, n: int) -> None:
        self.tqdm_bar.update(self._to(self.done + n))


_outer: ContextVar[_Share | None] = ContextVar("_outer", default=None)


def _tqdm(description: str, shown: Shown, **options: Any) -> Any:
    """Make a tqdm bar, which is a widget in notebooks, or an object that calls a function."""
    if callable(shown):
        return _Reporter(shown, **options)
    if _logs_lines:
        return _Lines(f"{subject.get()}{description}", **options)
    from tqdm.auto import tqdm

    made = tqdm(desc=on_one_line(f"{subject.get()}{description}"), mininterval=0.2, **options)
    if made.disable:  # `TQDM_DISABLE` is set; such a bar lacks most attributes.
        return _Reporter(lambda *_: None, **options)
    return made


def _fill(tqdm_bar: Any) -> None:
    """Fill a bar: some bytes, such as the closing tag or rows beyond a limit, are not counted."""
    tqdm_bar.total = tqdm_bar.total or tqdm_bar.n
    tqdm_bar.update(tqdm_bar.total - tqdm_bar.n)
    tqdm_bar.refresh()
