"""Pieces that workers write themselves: whatever order the tasks end in, the file is the same."""

from itertools import permutations
from pathlib import Path

import pytest

from so2docs.options.choices import Compression
from so2docs.output.compression import Piece, compress
from so2docs.output.file import Output
from so2docs.output.handover import Place, place_pieces, turns

TASKS = 4


def pieces_of(task: int, compression: Compression) -> list[Piece]:
    """As many pieces as the task's number, so that one task has none."""
    return [compress(b"%d-%d\n" % (task, n) * 50, compression, 2, task) for n in range(task)]


def expected_bytes(path: Path, compression: Compression) -> bytes:
    with Output(str(path), compression, indexed=True) as file:
        for task in range(TASKS):
            for piece in pieces_of(task, compression):
                file.append(piece)
        file.seal()
    return (path.parent / f"{path.name}.part").read_bytes() + index_of(path)


def index_of(path: Path) -> bytes:
    index = path.parent / f".{path.name}.index"
    return index.read_bytes() if index.exists() else b""


@pytest.mark.parametrize("order", list(permutations(range(TASKS))))
@pytest.mark.parametrize("compression", ["gzip", "none", "zstd"])
def test_same_file_whatever_order_tasks_end_in(
    order: tuple[int, ...], compression: Compression, tmp_path: Path
) -> None:
    path = tmp_path / "questions"
    handed: dict[int, list[Piece]] = {}
    (tmp_path / "turns.json.7").write_bytes(b"left by a session that was killed")
    with (
        Output(str(path), compression, indexed=True) as file,
        turns(tmp_path / "turns.json", file.begin()) as path_of_turns,
    ):
        for task in order:
            place = Place(path_of_turns, f"{path}.part", task)
            handed[task] = place_pieces(pieces_of(task, compression), place)
        for task in range(TASKS):
            for piece in handed[task]:
                file.append(piece)
        file.seal()
    # A task that ends after all those before it writes for itself; another one cannot.
    for at, task in enumerate(order):
        knows = set(range(task)) <= set(order[:at])
        assert all(piece.written and bool(piece.written.aside) != knows for piece in handed[task])
    found = Path(f"{path}.part").read_bytes() + index_of(path)
    assert found == expected_bytes(tmp_path / "expected", compression)
    assert not list(tmp_path.glob("turns*"))


def test_a_place_that_cannot_be_written_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    part = tmp_path / "missing" / "questions.part"
    with turns(tmp_path / "turns.json", 0) as path, pytest.raises(Exception, match=str(part)):
        place_pieces(pieces_of(1, "none"), Place(path, str(part), 0))


def test_without_a_place_pieces_keep_their_data() -> None:
    pieces = pieces_of(2, "gzip")
    assert place_pieces(pieces, None) == pieces
