"""Streams on two real dask workers, one of which is killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from monitor import Monitor, Population, alerts
from monitor.errors import MonitorError, UsageError
from monitor.events.reading import Reading
from monitor.events.run import Alert
from monitor.types import Block, FloatArray
from tests.dask_cluster import DaskCluster
from tests.stream.streams import RATE, sounds

pytest.importorskip("distributed", reason="needs the extra cluster")
pytestmark = pytest.mark.slow

from monitor.run import FarPool  # noqa: E402

STREAMS, SECONDS, FRAME = 40, 4.0, 8_000


@pytest.fixture(scope="module")
def dask(tmp_path_factory):
    with DaskCluster(tmp_path_factory.mktemp("dask")) as cluster:
        cluster.add_worker()
        cluster.add_worker()
        yield cluster


def sound_of(number: int) -> FloatArray:
    return np.roll(sounds(SECONDS), number * 4_000)


def expected(number: int) -> list[Reading]:
    monitor = Monitor(Population.reference(), ["f0"])
    return monitor.push(Block(sound_of(number), RATE)) + monitor.finish()


def figures(events: Sequence[Any]) -> list[tuple[float, float | None, float | None]]:
    return [(each.seconds, each.speech, each.bits) for each in events if isinstance(each, Reading)]


def wait_until(done: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not done() and time.monotonic() < until:
        time.sleep(0.05)
    assert done()


def are_equal(got: list[Any], wanted: list[Any]) -> bool:
    return [each[0] for each in got] == [each[0] for each in wanted] and all(
        ours == pytest.approx(theirs, abs=1e-3)
        for pair in zip(got, wanted, strict=True)
        for ours, theirs in zip(*pair, strict=True)
    )


def test_streams_of_a_killed_worker_continue_on_another_and_count_nothing_twice(dask):
    keys = [f"call {number}" for number in range(STREAMS)]
    got: dict[str, list[Any]] = {key: [] for key in keys}
    rule = alerts.Threshold("bits", 0.1, hold_seconds=1.0)
    with FarPool(dask.address, Population.reference, ["f0"], snapshot_seconds=1.0) as pool:
        wait_until(lambda: len(pool.workers) == 2)
        for key in keys:
            pool.open(key, rules=[rule])
        for begin in range(0, round(SECONDS * RATE), FRAME):
            for number, key in enumerate(keys):
                pool.push(key, sound_of(number)[begin : begin + FRAME])
                got[key] += pool.poll(key)
            time.sleep(0.2)
            if begin == 4 * FRAME:
                wait_until(lambda: all(pool.snapshot_seconds_of(key) > 0 for key in keys))
                before = {key: pool.worker_of(key) for key in keys}
                victim = dask.workers[0]
                os.kill(victim.pid, signal.SIGKILL)
                victim.wait()
        for key in keys:
            got[key] += pool.finish(key)
        after = {pool.worker_of(key) for key in keys}
        assert pool.hop_seconds
    assert len(set(before.values())) == 2, "streams were on both workers"
    assert len(after) == 1
    for number, key in enumerate(keys):
        assert are_equal(figures(got[key]), figures(expected(number)))
        raised = [
            each for each in got[key] if isinstance(each, Alert) and each.code == "alert.raised"
        ]
        assert len(raised) <= 1


def test_another_sender_continues_from_the_schedulers_snapshot(dask):
    sound = sound_of(3)
    with FarPool(dask.address, Population.reference, ["f0"], snapshot_seconds=0.2) as pool:
        pool.open("call")
        pool.push("call", sound[: 3 * RATE])
        wait_until(lambda: pool.snapshot_seconds_of("call") == 3.0)
        first = pool.poll("call")
    with FarPool(dask.address, Population.reference, ["f0"]) as pool:
        assert pool.open("call", resume=True) == 3.0
        pool.push("call", sound[3 * RATE :])
        events = first + pool.finish("call")
        pool.forget("call")
        assert are_equal(figures(events), figures(expected(3)))
        assert pool.open("call", resume=True) == 0.0


def test_an_error_of_a_stream_ends_that_stream_alone(dask):
    with FarPool(dask.address, Population.reference, ["f0"]) as pool:
        pool.open("strange", watch="nobody")
        pool.open("call")
        with pytest.raises(UsageError):
            pool.open("call")
        pool.push("call", sound_of(1))
        assert figures(pool.finish("call")) == figures(expected(1))
        with pytest.raises(MonitorError, match="nobody"):
            pool.finish("strange")
