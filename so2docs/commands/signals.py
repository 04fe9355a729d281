"""Handle Ctrl-C and SIGTERM: during imports, during the work, and at the end of the command.

This module imports only modules that Python itself imports at startup.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import time

EXIT_INTERRUPTED, EXIT_TERMINATED = 130, 143

_ENDS = {
    signal.SIGINT: (b"so2docs: interrupted before anything was done\n", EXIT_INTERRUPTED),
    signal.SIGTERM: (b"so2docs: terminated before anything was done\n", EXIT_TERMINATED),
}


class Terminated(BaseException):
    """SIGTERM as an exception outside `Exception`, so that no handler catches it by mistake."""


def end_at_once() -> None:
    """Let signals end the process at once, until `raise_in_command` is called.

    There is nothing to clean up yet. An exception would not work here: compiled modules that are
    being imported turn it into a different exception, or crash.
    """
    for number in _ENDS:
        # Shell scripts start background jobs with Ctrl-C ignored; leave it ignored.
        if signal.getsignal(number) not in (signal.SIG_IGN, None):
            signal.signal(number, _end)


def raise_in_command() -> None:
    """Raise signals as exceptions from here on: `KeyboardInterrupt` or `Terminated`."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGTERM) is _end:
        signal.signal(signal.SIGTERM, _terminate)
        sys.unraisablehook = _raise_again


def ignore() -> None:
    """Ignore signals while the result of the command is reported.

    Python resets its signal handlers before it exits; after that, a signal would change the exit
    code.
    """
    for number in _ENDS:
        signal.signal(number, signal.SIG_IGN)


def _end(number: int, frame: object) -> None:
    message, code = _ENDS[signal.Signals(number)]
    try:
        os.write(2, message)
    finally:
        os._exit(code)


def _raise_again(unraisable: sys.UnraisableHookArgs) -> None:
    """Raise a signal again if Python drops its exception, as at the end of a generator."""
    if unraisable.exc_type is KeyboardInterrupt:
        _thread.start_new_thread(_send_soon, (signal.SIGINT,))
    elif unraisable.exc_type is Terminated:
        _thread.start_new_thread(_send_soon, (signal.SIGTERM,))
    else:
        sys.__unraisablehook__(unraisable)


def _send_soon(number: signal.Signals) -> None:
    time.sleep(0.001)  # Wait until the hook has returned.
    signal.raise_signal(number)


def _terminate(number: int, frame: object) -> None:
    raise Terminated
