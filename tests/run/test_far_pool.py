"""Streams on two real dask workers, one of which is killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from functools import cache
from threading import Lock
from threading import enumerate as enumerate_threads
from typing import Any

import numpy as np
import pytest

from monitor import Monitor, Population, alerts
from monitor.errors import MonitorError, UsageError
from monitor.events.reading import Reading
from monitor.events.run import Alert
from monitor.types import Block, FloatArray
from tests.dask_cluster import DaskCluster
from tests.stream.streams import RATE, reference, sounds
from tests.waiting import until

pytest.importorskip("distributed", reason="needs the extra cluster")
pytestmark = pytest.mark.slow

from distributed import Client  # noqa: E402

from monitor.run import FarPool  # noqa: E402

STREAMS, SECONDS, FRAME = 40, 3.0, 8_000


@pytest.fixture(scope="module")
def dask(tmp_path_factory):
    with DaskCluster(tmp_path_factory.mktemp("dask")) as cluster:
        cluster.add_worker()
        cluster.add_worker()
        yield cluster


def sound_of(number: int) -> FloatArray:
    return np.roll(sounds(SECONDS), number % 4 * 4_000)


def rule() -> alerts.Threshold:
    return alerts.Threshold("bits", 0.1, hold_seconds=0.5, least_speech_seconds=0.5)


@cache
def expected(number: int) -> list[Any]:
    """Readings and alerts of one of four sounds, without a move."""
    monitor, alone = Monitor(reference()), rule()
    readings = monitor.push(Block(sound_of(number), RATE)) + monitor.finish()
    return [each for reading in readings for each in (reading, *alone.update(reading))]


def alerts_of(events: Sequence[Any]) -> list[tuple[str, float]]:
    return [(each.code, each.seconds) for each in events if isinstance(each, Alert)]


def figures(events: Sequence[Any]) -> list[tuple[float, float | None, float | None]]:
    return [(each.seconds, each.speech, each.bits) for each in events if isinstance(each, Reading)]


def are_equal(got: list[Any], wanted: list[Any]) -> bool:
    return [each[0] for each in got] == [each[0] for each in wanted] and all(
        ours == pytest.approx(theirs, abs=1e-3)
        for pair in zip(got, wanted, strict=True)
        for ours, theirs in zip(*pair, strict=True)
    )


def test_streams_of_a_killed_worker_continue_on_another_and_count_nothing_twice(dask):
    keys = [f"call {number}" for number in range(STREAMS)]
    got: dict[str, list[Any]] = {key: [] for key in keys}
    with FarPool(dask.address, Population.reference, ["f0"], snapshot_seconds=1.0) as pool:
        until(lambda: len(pool.workers) == 2)
        for key in keys:
            pool.open(key, rules=[rule()])
        for begin in range(0, round(SECONDS * RATE), FRAME):
            for number, key in enumerate(keys):
                pool.push(key, sound_of(number)[begin : begin + FRAME])
                got[key] += pool.poll(key)
            time.sleep(0.2)
            if begin == 3 * FRAME:
                until(lambda: all(pool._find(key).snapshot_seconds > 0 for key in keys))
                before = {key: pool._find(key).worker for key in keys}
                victim = dask.workers[0]
                os.kill(victim.pid, signal.SIGKILL)
                victim.wait()
        for key in keys:
            pool.end(key)
        for key in keys:
            got[key] += pool.finish(key)
        after = {pool._find(key).worker for key in keys}
        assert pool.hop_seconds
    assert len(set(before.values())) == 2, "streams were on both workers"
    assert len(after) == 1
    for number, key in enumerate(keys):
        assert are_equal(figures(got[key]), figures(expected(number % 4)))
        assert alerts_of(got[key]) == alerts_of(expected(number % 4)) != []


def test_another_sender_continues_from_the_schedulers_snapshot(dask):
    sound = sound_of(3)
    with FarPool(dask.address, Population.reference, ["f0"], snapshot_seconds=0.2) as pool:
        pool.open("call")
        pool.push("call", sound[: 2 * RATE])
        until(lambda: pool._find("call").snapshot_seconds == 2.0)
        first = pool.poll("call")
    with FarPool(dask.address, Population.reference, ["f0"]) as pool:
        assert pool.open("call", resume=True) == 2.0
        pool.push("call", sound[2 * RATE :])
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


class Unsaved(alerts.Threshold):
    """A rule that a snapshot cannot take."""

    def state(self) -> Any:
        raise ZeroDivisionError("no state")


class Unsendable(alerts.Threshold):
    """A rule that no worker can make."""

    def __setstate__(self, _: Any) -> None:
        raise ImportError("unknown here")


def test_a_stream_that_cannot_move_ends_with_an_error_and_no_other(dask):
    with FarPool(dask.address, Population.reference, ["f0"], snapshot_seconds=0.2) as pool:
        for kind in (Unsaved, Unsendable):
            pool.open(kind.__name__, rules=[kind("bits", 1.0)])
            pool.push(kind.__name__, sound_of(1))
        pool.open("call")
        pool.push("call", sound_of(1)[: 2 * RATE])
        until(lambda: pool._find("call").snapshot_seconds == 2.0)
        pool.push("call", sound_of(1)[2 * RATE :])
        with pytest.raises(MonitorError, match="unknown here"):
            pool.finish("Unsendable")
        assert figures(pool.finish("Unsaved")) == figures(expected(1))
        with pytest.raises(MonitorError, match="no state"):
            pool.poll("Unsaved")
        assert figures(pool.finish("call")) == figures(expected(1))
        with pytest.raises(UsageError, match="cannot be sent"):
            pool.open("lock", settings=Lock())


def test_a_key_that_is_forgotten_can_be_used_again_at_once(dask):
    with FarPool(dask.address, Population.reference, ["f0"], snapshot_seconds=0.1) as pool:
        for round_ in range(8):
            pool.open("call")
            pool.push("call", sound_of(1)[: 2 * RATE])
            time.sleep(0.05 * round_)
            pool.forget("call")
        pool.open("call", resume=True)
        pool.push("call", sound_of(1))
        assert figures(pool.finish("call")) == figures(expected(1))


def count_pools(dask_worker: Any) -> int:
    return sum("_work" in thread.name for thread in enumerate_threads())


def test_workers_drop_the_streams_of_a_sender_that_has_gone(dask):
    with Client(dask.address, set_as_default=False) as client:
        with FarPool(dask.address, Population.reference, ["f0"], snapshot_seconds=0.1) as pool:
            pool.open("call")
            pool.push("call", sound_of(1))
            until(lambda: pool._find("call").snapshot_seconds > 0)
            until(lambda: sum(client.run(count_pools).values()) == 1)
        until(lambda: sum(client.run(count_pools).values()) == 0)


def broken() -> Population:
    raise ValueError("no population here")


def test_a_population_that_no_worker_can_make_is_reported(dask):
    with FarPool(dask.address, broken) as pool:
        pool.open("call")
        with pytest.raises(MonitorError, match="no population here"):
            pool.finish("call")
        with pytest.raises(UsageError):
            FarPool(dask.address, Population.reference, ["f0"], snapshot_seconds=0.0)
