"""Start Python in another process; the only place in this package that does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import BinaryIO

from so2docs.errors import So2docsError, flag

_START = """\
import os, sys
for number in range(3):
    try:
        os.fstat(number)
    except OSError:
        os.open(os.devnull, os.O_RDWR)
tasks, results = os.fdopen(os.dup(0), 'rb'), os.fdopen(os.dup(1), 'wb')
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.dup2(2, 1)
if {has_site}:
    import site
    site.main()
sys.path[:] = {path}
from {module} import {name}
{name}(tasks, results)
"""
"""Python code of the process.

The pipes move to descriptors of their own before the modules that an installation runs at startup
(`sitecustomize`, `.pth` files) can print into them. What these and libraries print goes to standard
error.
"""


def start_python(
    function: Callable[[BinaryIO, BinaryIO], object], stderr: int | None = None
) -> subprocess.Popen[bytes]:
    """Run a function in a new Python process, which finds modules where this process does.

    The process does not search the current folder, unless this process does: a file there could
    have the name of any module.

    Args:
        function: A function of a module. It gets one pipe to read and one to write; the other ends
            are `stdin` and `stdout` of the returned process.
        stderr: Standard error, as for `subprocess.Popen`.

    Raises:
        So2docsError: No Python interpreter is known.
        OSError: The process cannot be started.
    """
    code = _START.format(
        has_site=not sys.flags.no_site,
        path=[path for path in sys.path if isinstance(path, str)],
        module=function.__module__,
        name=function.__name__,
    )
    # -S delays site, and -P leaves out the current folder; -I, -E, -X utf8 and others stay as here.
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return subprocess.Popen(
        [find_python(), *flags, "-P", "-S", "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
    )


def find_python() -> str:
    """Return the path of the Python interpreter that runs this process, or of its installation.

    In a program that contains Python, `sys.executable` can be empty or that program, which must not
    be started a second time.

    Raises:
        So2docsError: There is no such interpreter.
    """
    name = os.path.basename(sys.executable or "").lower()
    is_program = getattr(sys, "frozen", False) or not any(
        part in name for part in ("python", "pypy", "graalpy")
    )
    if not is_program:
        return sys.executable
    file = "python.exe" if os.name == "nt" else "bin/python{}.{}".format(*sys.version_info)
    for prefix in (sys.prefix, sys.base_prefix):
        path = os.path.join(prefix, file)
        if os.access(path, os.X_OK):
            return path
    raise So2docsError(
        f"worker processes cannot be started: {sys.executable or 'this program'} is not a Python "
        "interpreter",
        retry=f"use {flag('jobs', 1)}, or set sys.executable to a Python interpreter",
    )
