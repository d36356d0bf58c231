"""A monitor hears one stream: used in the wrong phase it says so, and stays as it was."""

from __future__ import annotations

import threading

import pytest

from monitor import Monitor
from monitor.errors import UsageError
from tests.stream.streams import Listed, reference, simulated


def test_its_phases():
    monitor = Monitor(reference())
    phases = [monitor.phase]
    monitor.push(simulated(2.5))
    phases.append(monitor.phase)
    monitor.finish()
    phases.append(monitor.phase)
    monitor.reset()
    assert [*phases, monitor.phase] == ["opened", "running", "ended", "opened"]


def test_a_second_stream_is_refused_until_it_is_reset():
    monitor = Monitor(reference())
    first = [reading.record() for reading in monitor.stream(Listed([simulated(3.0)]))]
    for wrong in (
        lambda: list(monitor.stream(Listed([simulated(3.0)]))),
        lambda: monitor.push(simulated(1.0)),
    ):
        with pytest.raises(UsageError, match="to the end: make another one"):
            wrong()
    assert monitor.own_totals.speech_seconds <= 3.0
    monitor.reset()
    again = [reading.record() for reading in monitor.stream(Listed([simulated(3.0)]))]
    assert again == first


def test_a_stream_in_the_middle_of_another_is_refused():
    monitor = Monitor(reference())
    readings = monitor.stream(Listed([simulated(3.0)]))
    next(readings)
    for wrong in (
        lambda: next(monitor.stream(Listed([simulated(3.0)]))),
        lambda: monitor.push(simulated(1.0)),
        monitor.finish,
    ):
        with pytest.raises(UsageError, match="in the middle of a stream"):
            wrong()
    assert [reading.seconds for reading in readings] == [2.0, 3.0]
    pushed = Monitor(reference())
    pushed.push(simulated(1.5))
    with pytest.raises(UsageError, match="in the middle of a stream"):
        list(pushed.stream(Listed([simulated(3.0)])))
    assert [reading.seconds for reading in pushed.finish()] == [1.5]


def test_two_threads_do_not_push_to_one_monitor(monkeypatch):
    monitor = Monitor(reference())
    begun, go_on = threading.Event(), threading.Event()
    take = monitor._push

    def slowly(block):
        begun.set()
        go_on.wait(10)
        yield from take(block)

    monkeypatch.setattr(monitor, "_push", slowly)
    thread = threading.Thread(target=monitor.push, args=(simulated(1.5),))
    thread.start()
    begun.wait(10)
    with pytest.raises(UsageError, match="another thread"):
        monitor.push(simulated(1.5))
    go_on.set()
    thread.join()
    assert [reading.seconds for reading in monitor.finish()] == [1.5]
