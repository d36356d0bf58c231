"""Generators in processes of their own: in order, with one thread, and none outlives its use."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from monitor.errors import SourceError
from monitor.jobs import AHEAD, GeneratorProcesses


def counted(most: int) -> Iterator[int]:
    yield from range(most)
    if most == 3:
        raise SourceError("it broke")


def told(_: None) -> Iterator[tuple[int, str | None]]:
    yield os.getpid(), os.environ.get("OPENBLAS_NUM_THREADS")


@pytest.mark.slow
def test_each_task_by_its_place_and_an_error_where_it_came():
    with GeneratorProcesses(counted, [2, 3, 4 * AHEAD, 1], jobs=2) as processes:
        assert list(processes.of(0)) == [0, 1]
        broken = processes.of(1)
        assert [next(broken) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(SourceError, match="it broke"):
            next(broken)
        assert list(processes.of(2)) == list(range(4 * AHEAD))
        assert list(processes.of(3)) == [0]


@pytest.mark.slow
def test_processes_are_others_and_have_one_thread():
    with GeneratorProcesses(told, [None] * 3, jobs=2) as processes:
        found = [next(processes.of(place)) for place in range(3)]
    assert found[0] == found[2] != found[1]
    assert {threads for _, threads in found} == {"1"}
    assert os.getpid() not in {process for process, _ in found}


def test_what_is_not_wanted_any_more_is_ended():
    with GeneratorProcesses(counted, [1 << 60], jobs=1) as processes:
        assert next(processes.of(0)) == 0
    assert not any(process.is_alive() for process in processes._processes)
