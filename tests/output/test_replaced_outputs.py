"""Another conversion replaces outputs while they are read."""

import os
import shutil
import threading
from pathlib import Path

import pytest
from support.dumps import some_rows, write_dump

import so2docs
from so2docs.progress import listen

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows replaces no file that is open")
NAMES = ("questions.jsonl.gz", ".questions.jsonl.gz.index")


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two folders, each with an output and its index."""
    folders = [tmp_path_factory.mktemp(name) for name in ("former", "later")]
    for seed, folder in enumerate(folders):
        dump = write_dump(folder / "Posts.xml", *some_rows(300 * (seed + 1), seed))
        so2docs.convert(dump, folder / NAMES[0])
    return folders


def replace(folder: Path, state: Path, names: tuple[str, ...]) -> None:
    for name in names:
        shutil.copyfile(state / name, folder / "copy")
        os.replace(folder / "copy", folder / name)


def test_between_the_renames_of_index_and_output(states: list[Path], tmp_path: Path) -> None:
    former, later = states
    replace(tmp_path, former, NAMES[:1])
    replace(tmp_path, later, NAMES[1:])
    renamer = threading.Timer(0.1, replace, (tmp_path, later, NAMES[:1]))
    renamer.start()
    with so2docs.open(tmp_path / NAMES[0]) as docs, so2docs.open(later / NAMES[0]) as expected:
        assert len(docs) == len(expected)
        assert list(docs) == list(expected)
    renamer.join()
    assert (tmp_path / NAMES[1]).read_bytes() == (later / NAMES[1]).read_bytes()


def test_the_index_of_a_replaced_file_is_not_saved(states: list[Path], tmp_path: Path) -> None:
    former, later = states
    replace(tmp_path, former, NAMES[:1])

    def notify(_: object, message: str) -> None:
        assert f"{NAMES[0]}: there is no index" in message
        replace(tmp_path, later, (NAMES[1], NAMES[0]))

    with listen(notify), pytest.raises(so2docs.OutputError, match="was replaced while being read"):
        so2docs.open(tmp_path / NAMES[0])
    assert (tmp_path / NAMES[1]).read_bytes() == (later / NAMES[1]).read_bytes()
