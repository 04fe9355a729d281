"""The compiled core: built where a C compiler is, left out without failing where there is none."""

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel


class StableWheel(bdist_wheel):
    """One wheel for every Python from 3.11 on."""

    def finalize_options(self) -> None:
        """Tag the wheel with the stable ABI that the core is written for."""
        self.py_limited_api = "cp311"
        super().finalize_options()


setup(
    cmdclass={"bdist_wheel": StableWheel},
    ext_modules=[
        Extension(
            "so2docs.posts._core",
            sources=["so2docs/posts/_core.c", "so2docs/posts/_canonical.c"],
            depends=[
                f"so2docs/posts/_{part}.h"
                for part in ("bytes", "canonical", "characters", "values")
            ],
            py_limited_api=True,
            optional=True,
        )
    ],
)
