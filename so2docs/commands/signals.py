"""What Ctrl-C and SIGTERM do to the command: while it imports, at its work, and when all is done.

Imports only what every Python has imported already.
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
    """SIGTERM; no `except Exception` may catch it by mistake."""


def end_at_once() -> None:
    """Until `raise_in_command`, a signal ends the process: there is nothing to put in order.

    An exception would not do. Compiled modules that are being imported turn it into another one,
    or crash.
    """
    for number in _ENDS:
        # Ctrl-C is ignored in what a shell script starts in the background; so it stays.
        if signal.getsignal(number) not in (signal.SIG_IGN, None):
            signal.signal(number, _end)


def raise_in_command() -> None:
    """From here on a signal is an exception: `KeyboardInterrupt` or `Terminated`."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGTERM) is _end:
        signal.signal(signal.SIGTERM, _terminate)
        sys.unraisablehook = _raise_again


def ignore() -> None:
    """Ignore signals while the end of the command is reported.

    Python gives its own handlers up before it exits; then a signal would take the place of the exit
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
    time.sleep(0.001)  # Until the hook has returned.
    signal.raise_signal(number)


def _terminate(number: int, frame: object) -> None:
    raise Terminated
