"""Fixtures for many tests: published dumps, made-up sites, both cores, a Spark session."""

import gzip
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from support.cpu_time import pytest_runtest_call  # noqa: F401
from support.places import CHECKOUT, DUMPS, LONG, NO_DUMPS, SAMPLES, published

from so2docs.parse import core as cores

# The time of an example depends on the load of the machine, not on the code. Every run tries the
# same examples; `SO2DOCS_LONG=1` tries others each time. Examples share the `tmp_path` of their
# test and overwrite its files.
settings.register_profile(
    "any-machine",
    deadline=None,
    derandomize=not LONG,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("any-machine")

# Background jobs of a shell ignore Ctrl-C, and so would all processes started by the tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Waiting for the disk takes half of the time of a small conversion, and matters after a power cut
# only. `checks/faults` lets `fsync` fail in separate processes.
os.fsync = lambda file: None

# Tests start hundreds of processes. Without bytecode on the disk, each would compile the package.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# These tests kill and freeze processes by signals that Windows lacks.
collect_ignore = (
    ["conversions/test_faults.py", "pipeline/test_closed_pipes.py"] if os.name == "nt" else []
)


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left_in_the_checkout() -> Iterator[None]:
    """Fail at the end if a test wrote into the sources; caches of tools and `build` are allowed."""

    def names() -> set[str]:
        return {path.name for path in CHECKOUT.iterdir() if not path.name.endswith("_cache")}

    before = names() | {"build", ".hypothesis", "so2docs.egg-info"}
    yield
    assert names() <= before


@pytest.fixture(autouse=True)
def folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test in a temporary folder, for files such as strays of standard output."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def samples() -> Path:
    """The folder of the sample dumps of this project."""
    return SAMPLES


@pytest.fixture(scope="session")
def dumps() -> Path:
    """The folder of the published dumps."""
    if not DUMPS.is_dir():
        pytest.skip(NO_DUMPS)
    return DUMPS


@pytest.fixture(scope="session")
def large_site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[bytes]]:
    """A folder with a dump and its tables, large enough to be interrupted; the expected result."""
    from faults.sites import site
    from support.oracle_tables import FILES, nest

    folder = site(tmp_path_factory.mktemp("large"), "large")
    return folder, nest(folder, FILES).contents


@pytest.fixture
def tmpfs(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Mount a small file system; a second call changes its size."""
    folder = tmp_path / "tmpfs"

    def mount(size: int) -> Path:
        options = f"size={size}" + (",remount" if folder.exists() else "")
        folder.mkdir(exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        result = subprocess.run(command, check=False, capture_output=True, text=True)
        if result.returncode:
            folder.rmdir()
            pytest.skip(f"cannot mount a small file system: {result.stderr.strip()}")
        return folder

    if not shutil.which("mount") or not hasattr(os, "geteuid") or os.geteuid():
        pytest.skip("only root can mount a small file system")
    yield mount
    if folder.exists():
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture(scope="module", params=["compiled", "python"])
def core(request: pytest.FixtureRequest) -> Iterator[cores.Core]:
    """Run a test with both cores, in this process and in its children."""
    name: cores.Core = request.param
    if name == "compiled" and cores.built() == "python":
        pytest.skip("the compiled core is not built: no C compiler")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(cores.VARIABLE, name)
        yield name


@pytest.fixture(scope="session")
def unpack(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """A function that unpacks a published dump once for all processes, and returns its folder."""
    folders = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folders = folders.parent

    def unpack(source: Path) -> Path:
        folder = folders / "published" / source.name.removesuffix(".7z")
        if folder.exists():
            return folder
        new = tmp_path_factory.mktemp("unpacked")
        if source.suffix == ".7z":
            py7zr = pytest.importorskip("py7zr", reason=f"py7zr is needed to unpack {source.name}")
            with py7zr.SevenZipFile(source) as archive:
                archive.extractall(new)
        for packed in source.glob("*.xml.gz"):
            (new / packed.stem).write_bytes(gzip.decompress(packed.read_bytes()))
        folder.parent.mkdir(exist_ok=True)
        with suppress(OSError):  # Another process was faster.
            new.rename(folder)
        return folder

    return unpack


@pytest.fixture(scope="session", params=published())
def real_dump(request: pytest.FixtureRequest, unpack: Callable[[Path], Path]) -> Path:
    """A published ``Posts.xml``, unpacked; a test with this fixture runs once for each dump."""
    return unpack(request.param) / "Posts.xml"


@pytest.hookimpl(tryfirst=True)  # The hook must run before xdist looks for groups.
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests on Spark where it cannot run; keep tests with one session in one process."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    available = {"PySpark": find_spec("pyspark"), "Java": java}
    missing = " and ".join(name for name, is_there in available.items() if not is_there)
    for item in items:
        if not item.get_closest_marker("spark"):
            continue
        if missing:
            item.add_marker(pytest.mark.skip(f"{missing} missing: make test-spark"))
        has_session = isinstance(item, pytest.Function) and "session" in item.fixturenames
        item.add_marker(pytest.mark.xdist_group("session" if has_session else "no session"))


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Spark session on two cores of this machine."""
    from support.spark_cluster import SHORT_LIVED

    from so2docs.extensions.spark.spark_command import start_session

    settings = (
        "spark.ui.enabled=false",
        f"spark.sql.warehouse.dir={tmp_path_factory.mktemp('warehouse')}",
        "spark.driver.memory=512m",
        f"spark.driver.extraJavaOptions={SHORT_LIVED}",
    )
    spark = start_session("local[2]", settings, quiet=True)
    yield spark
    spark.stop()


@pytest.fixture(scope="session")
def unpacked_dumps(dumps: Path, unpack: Callable[[Path], Path]) -> Path:
    """A folder with a subfolder for each published dump and its tables."""
    folders = [unpack(parameter.values[0]) for parameter in published()]
    return folders[0].parent
