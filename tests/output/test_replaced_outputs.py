"""Another conversion replaces outputs while they are read."""

import os
import shutil
import threading
import time
from pathlib import Path

import pytest
from support.dumps import some_rows, write_dump

import so2docs
from so2docs.errors import OutputError
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

    with listen(notify), pytest.raises(OutputError, match="was replaced while being read"):
        so2docs.open(tmp_path / NAMES[0])
    assert (tmp_path / NAMES[1]).read_bytes() == (later / NAMES[1]).read_bytes()


@pytest.mark.long
def test_stats_while_the_output_is_replaced(states: list[Path], tmp_path: Path) -> None:
    expected = {so2docs.inspect_output(state / NAMES[0]).bytes for state in states}
    replace(tmp_path, states[0], NAMES)
    is_over = threading.Event()

    def replace_in_turn() -> None:
        turn = 0
        while not is_over.is_set():
            turn += 1
            replace(tmp_path, states[turn % 2], (NAMES[1], NAMES[0]))
            time.sleep(0.001)

    replacing = threading.Thread(target=replace_in_turn)
    replacing.start()
    actual, problems = set(), set()
    try:
        for _ in range(100):
            try:
                counted = so2docs.inspect_output(tmp_path / NAMES[0])
                actual.add((counted.bytes, counted.lines))
            except OutputError as error:
                problems.add(str(error).partition(": ")[2].partition(";")[0])
    finally:
        is_over.set()
        replacing.join()
    assert {size for size, _ in actual} <= expected
    assert len(actual) <= len(expected)
    assert problems <= {"was replaced while being read"}
