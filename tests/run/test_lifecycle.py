"""A run in the wrong state says so, and leaves what was heard as it was."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from monitor import Monitor, Population, Run
from monitor.errors import UsageError
from monitor.events.reading import Reading
from monitor.population import demo_frames


def test_it_is_entered_once():
    run = Run(demo_frames(), Monitor(Population.reference(), ["f0"], step_seconds=100))
    with run:
        run.to_end()
        with pytest.raises(UsageError, match="once"):
            run.__enter__()
        assert list(run) == []  # iterated again it counts nothing twice
    with pytest.raises(UsageError, match="once"), run:
        pass
    assert run.totals.readings == 6


def fresh(**options):
    return Monitor(Population.reference(), ["f0"], step_seconds=100, **options)


def test_its_phases():
    run = Run(demo_frames(), fresh())
    phases = [run.phase]
    for wrong in (lambda: next(iter(run)), run.to_end, run.stop):
        with pytest.raises(UsageError, match="opened by a with statement"):
            wrong()
    with run:
        phases.append(run.phase)
        next(iter(run))
        phases.append(run.phase)
        run.to_end()
        phases.append(run.phase)
    assert [*phases, run.phase] == ["made", "opened", "running", "ended", "closed"]
    for wrong in (lambda: next(iter(run)), run.to_end):
        with pytest.raises(UsageError, match="closed: make another"):
            wrong()
    run.stop()  # there is nothing left to stop
    run.close()


def test_records_after_a_close_are_an_error():
    with Run(demo_frames(), fresh()) as run:
        records = iter(run)
        next(records)
    with pytest.raises(UsageError, match="closed"):
        next(records)


def test_a_run_needs_a_monitor_that_has_heard_nothing():
    used = fresh()
    list(used.stream(demo_frames()))
    with pytest.raises(UsageError, match="another stream"), Run(demo_frames(), used):
        pass
    used.reset()
    with Run(demo_frames(), used) as run:
        assert run.to_end().readings == 6


class Slow:
    """A sink that lets others go on in the middle of a record."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()

    def write(self, _record) -> None:
        self.begun.set()
        self.go_on.wait(10)

    def close(self) -> None:
        pass


def test_two_threads_do_not_iterate_one_run():
    slow = Slow()
    with Run(demo_frames(), fresh(), sinks=[slow]) as run:
        thread = threading.Thread(target=run.to_end)
        thread.start()
        slow.begun.wait(10)
        with pytest.raises(UsageError, match="another thread"):
            next(iter(run))
        slow.go_on.set()
        thread.join()
        assert run.phase == "ended"
    assert run.totals.readings == 6


def test_a_run_is_stopped_by_another_thread():
    slow = Slow()
    slow.go_on.set()
    with Run(demo_frames(), Monitor(Population.reference(), ["f0"]), sinks=[slow]) as run:
        for event in run:
            if isinstance(event, Reading) and event.seconds == 5.0:
                thread = threading.Thread(target=run.stop)
                thread.start()
                thread.join()
    assert run.totals.readings == 5


def test_runs_in_many_threads_say_what_one_says_alone():
    def heard(found: list[Any]) -> None:
        with Run(demo_frames(), fresh()) as run:
            found.append([each.record() for each in run if isinstance(each, Reading)])

    alone: list[Any] = []
    heard(alone)
    together: list[Any] = []
    threads = [threading.Thread(target=heard, args=(together,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == 4 * alone
