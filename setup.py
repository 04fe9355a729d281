"""The compiled core: built with a C compiler, skipped without one."""

import re
import runpy
import sys
import sysconfig
import tomllib
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel

# Free-threaded builds have no stable ABI, so they get a separate core.
HAS_STABLE_ABI = not sysconfig.get_config_var("Py_GIL_DISABLED")

NATIVE = [Path("so2docs") / at / "native" for at in ("parse", "dump", "extensions/markdown")]


PROJECT = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]


def describe() -> str:
    """Return the README with absolute links, because a package index does not follow others."""
    pages = f"{PROJECT['urls']['Repository']}/blob/main/"
    readme = Path("README.md").read_text(encoding="utf-8")
    return re.sub(r"\]\((?!https?:|#)", f"]({pages}", readme)


def write_man_pages() -> list[str]:
    """Write the man pages from the help of the commands; without their packages, there are none."""
    folder = Path("build/man")
    sys.path.insert(0, str(Path.cwd()))
    try:
        runpy.run_path("packaging/man.py")["write"](folder)
    except ImportError as error:
        print(f"the wheel has no man pages, because a package is missing: {error}", file=sys.stderr)
        return []
    return sorted(path.as_posix() for path in folder.glob("*.1"))


class StableWheel(bdist_wheel):
    """One wheel for every Python from 3.11 on; without a core, also for every system."""

    def finalize_options(self) -> None:
        """Tag the wheel with the stable ABI that the core is written for."""
        if HAS_STABLE_ABI:
            self.py_limited_api = "cp311"
        super().finalize_options()

    def run(self) -> None:
        """Build, add the man pages, and mark the wheel as pure if there is no core."""
        self.distribution.data_files = [("share/man/man1", write_man_pages())]
        self.run_command("build")
        core = self.get_finalized_command("build_ext").get_outputs()
        if not any(Path(path).exists() for path in core):
            self.distribution.ext_modules = []
            self.root_is_pure, self.py_limited_api = True, False
        super().run()


setup(
    long_description=describe(),
    long_description_content_type="text/markdown",
    cmdclass={"bdist_wheel": StableWheel},
    ext_modules=[
        Extension(
            "so2docs.parse._core",
            sources=sorted(path.as_posix() for folder in NATIVE for path in folder.glob("*.c")),
            depends=sorted(path.as_posix() for folder in NATIVE for path in folder.glob("*.h")),
            # The parts must call each other, not functions of the same name in other libraries.
            extra_compile_args=[] if sys.platform == "win32" else ["-fvisibility=hidden"],
            define_macros=[("Py_LIMITED_API", "0x030B0000")] if HAS_STABLE_ABI else [],
            py_limited_api=HAS_STABLE_ABI,
            optional=True,
        )
    ],
)
