"""Every command writes its files in the same way: one writer per name, and all files or none."""

import io
import os
import sys
import threading
from pathlib import Path

import pytest

from so2docs.errors import OutputError
from so2docs.output.compression import compress
from so2docs.output.file import Output
from so2docs.output.new_files import NewFiles, clean_up, write_file
from so2docs.store.disk import write_all


def test_small_files_of_several_processes_are_whole(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    texts = [bytes([number]) * 100_000 for number in range(8)]
    writers = [threading.Thread(target=write_file, args=(str(path), text)) for text in texts]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert path.read_bytes() in texts
    assert os.listdir(tmp_path) == ["README.md"]


def test_removes_published_files_after_a_failure(tmp_path: Path) -> None:
    def make(*, fails: bool = False) -> None:
        with NewFiles(str(tmp_path / "main")) as files:
            for name in ("main", "other"):
                files.claim(str(tmp_path / name))
                files.write(str(tmp_path / name), b"new")
            files.write(str(tmp_path / ".side"), b"new")
            if fails:  # The last rename fails, and the others must be undone.
                (tmp_path / "main").mkdir()

    (tmp_path / "main" / "file").mkdir(parents=True)
    with pytest.raises(OutputError, match="main: is a folder"):
        make()
    assert os.listdir(tmp_path) == ["main"]
    (tmp_path / "main" / "file").rmdir()
    (tmp_path / "main").rmdir()

    with pytest.raises(OutputError, match="main: "):
        make(fails=True)
    assert os.listdir(tmp_path) == ["main"]
    (tmp_path / "main").rmdir()
    make()
    assert sorted(os.listdir(tmp_path)) == [".side", "main", "other"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows removes no open files")
def test_all_unfinished_files_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    for name in (".new.db.part/new.db", "set/.new.db.part/one", ".new.db.lock", ".other.part/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    clean_up(str(tmp_path / "new.db"), [str(tmp_path / "set" / "two")])
    assert sorted(os.listdir(tmp_path)) == [".other.part", "set"]
    assert os.listdir(tmp_path / "set") == []


def test_a_folder_that_a_link_leads_to_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / ".x.part").symlink_to(tmp_path / "mine")
    with pytest.raises(OutputError, match=r"/\.x\.part: cannot be written"):
        write_file(str(tmp_path / "x"), b"x")
    assert {path.name for path in tmp_path.iterdir()} == {"mine", ".x.part"}


def test_an_incomplete_file_is_removed(tmp_path: Path) -> None:
    path = str(tmp_path / "x")
    with NewFiles(path) as files:
        Output(files, path, "none").append(compress(b"x", "none", 2))
        assert os.listdir(tmp_path) == [".x.part"]
    assert not os.listdir(tmp_path)


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = str(tmp_path / "missing" / "x")
    with pytest.raises(OutputError, match=r"missing/\.x\.part: cannot be written: No such file"):
        Output(NewFiles(path), path, "none").append(compress(b"x", "none", 2))


class Slow(io.RawIOBase):
    """Writes one byte per call, as a raw file may."""

    taken = b""

    def write(self, data: memoryview) -> int:  # type: ignore[override]
        self.taken += data[:1]
        return 1


def test_a_short_write_is_repeated() -> None:
    write_all(slow := Slow(), b"documents\n")
    assert slow.taken == b"documents\n"
