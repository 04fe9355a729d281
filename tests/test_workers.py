"""Tasks in, results in order out, in this process or in several; errors and deaths come through."""

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator

import pytest

from so2docs.errors import (
    ChangedDumpError,
    MalformedDumpError,
    Place,
    So2docsError,
    WorkerDiedError,
)
from so2docs.passes.workers import Workers, peak_memory


def late(task: int) -> tuple[int, int]:
    """Later tasks are done sooner."""
    time.sleep(0.002 * (10 - task))
    return task, os.getpid()


def failing(task: int) -> int:
    if task == 3:
        raise MalformedDumpError(
            "Posts.xml", "is bent", Place(5, 2, 1), advice="do", excerpt=b"<posts>"
        )
    return task


def dying(task: int) -> int:
    if task == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return task


def ignoring(number: int) -> bool:
    return signal.getsignal(number) is signal.SIG_IGN


@pytest.mark.parametrize("jobs", [1, 3])
def test_results_are_in_the_order_of_the_tasks(jobs: int) -> None:
    with Workers(jobs) as workers:
        found = list(workers.run(late, range(10)))
        again = list(workers.run(late, range(3)))
    assert [task for task, _ in found + again] == [*range(10), *range(3)]
    processes = {process for _, process in found}
    assert (os.getpid() in processes) == (jobs == 1)
    assert set(workers.peaks) >= (processes if jobs > 1 else set())
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("jobs", [1, 2])
def test_tasks_are_taken_as_they_are_needed(jobs: int) -> None:
    taken = 0

    def tasks() -> Iterator[int]:
        nonlocal taken
        for task in range(100):
            taken += 1
            yield task

    with Workers(jobs) as workers:
        results = workers.run(failing_never, tasks(), ahead=2)
        next(results)
        assert taken <= jobs + 2
        results.close()


def failing_never(task: int) -> int:
    return task


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_first_error_comes_through_whole(jobs: int) -> None:
    with pytest.raises(MalformedDumpError) as caught, Workers(jobs) as workers:
        list(zip(found := iter(range(9)), workers.run(failing, range(9)), strict=True))
    assert next(found) == 4
    error = caught.value
    assert str(error) == "Posts.xml: is bent at byte 5, line 2, after post 1; do"
    assert error.excerpt == b"<posts>"
    assert not multiprocessing.active_children()


@pytest.mark.skipif(os.name != "posix", reason="kills a process")
def test_a_death_is_told() -> None:
    with (
        pytest.raises(WorkerDiedError, match="killed, perhaps because memory ran out; run"),
        Workers(2) as workers,
    ):
        list(workers.run(dying, range(5)))
    assert not multiprocessing.active_children()


@pytest.mark.skipif(os.name != "posix", reason="asks for signals")
def test_workers_leave_signals_to_the_caller() -> None:
    with Workers(2) as workers:
        assert list(workers.run(ignoring, [signal.SIGINT, signal.SIGTERM])) == [True, True]
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_peak_memory() -> None:
    assert peak_memory() > 1_000_000
    assert issubclass(ChangedDumpError, So2docsError)
