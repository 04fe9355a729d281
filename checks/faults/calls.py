"""Make system calls fail with a preloaded library, `calls.c`.

All processes map a file with a structure that selects the call to fail and lists all calls. The
library replaces functions of the C library, so Python must be started with it.
"""

import ctypes
import mmap
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

SOURCE = Path(__file__).with_name("calls.c")
MOST_CALLS, NAME_BYTES = 1 << 16, 128
NOTHING, FAIL, SHORT, SIGNAL_BEFORE, SIGNAL_AFTER = range(5)
"""Kinds of faults at a call, as numbered in `calls.c`."""

_VARIABLE = "SO2DOCS_CALLS"


class Control(ctypes.Structure):
    """The structure `control` of `calls.c`, which all processes share."""

    _fields_ = (
        ("session", ctypes.c_int32),
        ("what", ctypes.c_int32),
        ("number", ctypes.c_int32),
        ("is_all", ctypes.c_int32),
        ("target", ctypes.c_int64),
        ("count", ctypes.c_int64),
        ("root", ctypes.c_char * 1024),
        ("calls", (ctypes.c_char * NAME_BYTES) * MOST_CALLS),
    )


def is_supported() -> bool:
    """Whether the library can be compiled and preloaded here."""
    return sys.platform == "linux" and shutil.which("gcc") is not None


def rerun_preloaded() -> int | None:
    """Rerun this program with the library; return its exit code, or None if it is already loaded.

    The hash seed is also fixed, because hashes determine the order of sets.
    """
    if _VARIABLE in os.environ:
        return None
    with TemporaryDirectory(prefix="so2docs-calls-") as name:
        folder = Path(name)
        library = folder / "calls.so"
        compiler = ["gcc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", str(SOURCE), "-ldl"]
        subprocess.run([*compiler, "-o", str(library)], check=True)
        with (folder / "control").open("wb") as file:
            file.truncate(ctypes.sizeof(Control))
        environment = {_VARIABLE: str(folder / "control"), "PYTHONHASHSEED": "0"}
        preloaded = {**os.environ, **environment, "LD_PRELOAD": str(library)}
        return subprocess.run(
            [sys.executable, *sys.orig_argv[1:]], env=preloaded, check=False
        ).returncode


def open_control() -> Control:
    """Map the structure that this process and its children share with the library."""
    with open(os.environ[_VARIABLE], "r+b") as file:
        return Control.from_buffer(mmap.mmap(file.fileno(), 0))
