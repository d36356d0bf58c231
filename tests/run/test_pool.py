"""A pool of streams: figures as of single monitors, threads, asyncio, limits and faults."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.readers import read
from monitor import Monitor, Pool, Population, alerts
from monitor.errors import SourceError, UsageError
from monitor.events.reading import Reading
from monitor.events.run import Alert
from monitor.run import pace
from monitor.run.pool import PoolLimits
from monitor.stream.stream import Event
from monitor.types import Block, FloatArray, Gap
from tests.contracts import voice
from tests.stream.streams import RATE, Listed, reference, sounds, told

KEYS: dict[str, dict[str, Any]] = {
    "ann": {},
    "bob": {"watch": "19"},
    "eve": {"watch": "32", "step_seconds": 0.5},
}


def records(events: Iterable[Event | Alert]) -> list[dict[str, Any]]:
    """Records without the lag, which a monitor that is pushed to does not know."""
    found = told(event for event in events if not isinstance(event, Alert))
    return [{key: value for key, value in record.items() if key != "lag"} for record in found]


def alone(sound: FloatArray, population: Population, **options: Any) -> list[dict[str, Any]]:
    return records(Monitor(population, **options).events(Listed([Block(sound, RATE)])))


@pytest.mark.slow
@settings(max_examples=4)
@given(st.integers(0, 1000))
def test_streams_of_a_pool_read_what_single_monitors_read(seed):
    generator = np.random.default_rng(seed)
    sound = {key: voice(5.0, seed=seed) for seed, key in enumerate(KEYS)}
    places = dict.fromkeys(KEYS, 0)
    got: dict[str, list[Event | Alert]] = {key: [] for key in KEYS}
    with Pool(reference()) as pool:
        for key, options in KEYS.items():
            pool.open(key, **options)
        while unfinished := [key for key in KEYS if places[key] < sound[key].size]:
            key = generator.choice(unfinished)
            size = generator.choice([160, 320, 4001, 16_000, 60_000])
            pool.push(key, sound[key][places[key] : places[key] + size])
            places[key] += size
            got[key] += pool.poll(key)
            if generator.integers(6) == 0:
                pool.drain()
        for key in KEYS:
            got[key] += pool.finish(key)
    for key, options in KEYS.items():
        assert records(got[key]) == alone(sound[key], reference(), **options)
        assert all(event.lag is not None for event in got[key] if isinstance(event, Reading))


@pytest.mark.slow
def test_windows_of_all_streams_embedded_together_read_the_same(shared):
    population = Population.reference()
    paths = sorted((shared / "speech/dev-clean").glob("*/*.opus"))[:3]
    sound = {path.stem: read(path, 8.0) for path in paths}
    with Pool(population) as pool:
        watched = dict(zip(sound, ("19", "32", None), strict=True))
        for key, watch in watched.items():
            pool.open(key, watch=watch, on_change="note")
        for begin in range(0, 8 * RATE, 320):
            for key, samples in sound.items():
                pool.push(key, samples[begin : begin + 320])
        for key, samples in sound.items():
            expected = alone(samples, population, watch=watched[key], on_change="note")
            events = pool.finish(key)
            assert records(events) == expected
            last = [event for event in events if isinstance(event, Reading)][-1]
            assert last.features["voice"].usable > 3


def test_threads_push_and_asyncio_polls():
    sound = sounds(4.0)
    with Pool(reference()) as pool:

        def push(key: int) -> None:
            for begin in range(0, sound.size, 800):
                pool.push(key, sound[begin : begin + 800])
            pool.end(key)

        async def collect(key: int) -> list[Event | Alert]:
            return [event async for event in pool.events(key)]

        async def collect_all() -> list[list[Event | Alert]]:
            return await asyncio.gather(*map(collect, range(4)))

        for key in range(4):
            pool.open(key)
        threads = [Thread(target=push, args=(key,)) for key in range(4)]
        for thread in threads:
            thread.start()
        for events in asyncio.run(collect_all()):
            assert records(events) == alone(sound, reference())
        for thread in threads:
            thread.join()


def push_often(pool: Pool, key: str, samples: FloatArray) -> None:
    for _ in range(400):
        pool.push(key, samples)


def poll_until_it_raises(pool: Pool, key: str) -> None:
    while True:
        pool.poll(key)
        time.sleep(0.01)


def test_a_pool_refuses_beyond_its_limits():
    silence = np.zeros(RATE, np.float32)
    with Pool(reference(), limits=PoolLimits(streams=1, backlog_seconds=2.0)) as pool:
        pool.open("ann")
        with pytest.raises(UsageError, match="1 streams are open"):
            pool.open("bob")
        with pytest.raises(UsageError, match="no open stream 'bob'"):
            pool.push("bob", silence)
        with pytest.raises(SourceError, match="wait to be processed"):
            push_often(pool, "ann", silence)
        pool.push("ann", Gap("dropped", 1.0))  # the stream states what its caller left out
        gaps = [event for event in pool.finish("ann") if event.type == "gap"]
        assert [gap.lost_seconds for gap in gaps] == [1.0]
        with pytest.raises(UsageError, match="has ended"):
            pool.push("ann", silence)
        pool.forget("ann")
        pool.open("bob")
    with pytest.raises(UsageError, match="closed"):
        pool.open("eve")
    with (
        Pool(reference(), limits=PoolLimits(memory_mb=1.0)) as small,
        pytest.raises(UsageError, match="memory_mb=1"),
    ):
        small.open("ann")
    for wrong in ({"streams": 0}, {"backlog_seconds": 0.0}):
        with pytest.raises(UsageError, match="invalid"):
            PoolLimits(**wrong)


class BrokenRule(alerts.Threshold):
    """A rule with a fault."""

    def update(self, _: Any) -> list[Alert]:
        raise ZeroDivisionError("a fault of the rule")


def test_a_fault_ends_one_stream_and_no_other():
    sound = sounds(3.0)
    with Pool(reference()) as pool:
        pool.open("ann", rules=[BrokenRule("bits", 1.0)])
        pool.open("bob")
        for key in ("ann", "bob"):
            pool.push(key, sound)
        with pytest.raises(SourceError, match="int16"):
            pool.push("bob", np.zeros(100, np.int16))
        assert records(pool.finish("bob")) == alone(sound, reference())
        with pytest.raises(ZeroDivisionError, match="a fault of the rule"):
            poll_until_it_raises(pool, "ann")


def test_an_assessment_that_fails_ends_one_stream_and_no_other(monkeypatch):
    def fail(_: Any) -> None:
        raise ZeroDivisionError("a fault of the attacker")

    sound = sounds(3.0)
    with Pool(reference()) as pool:
        pool.open("ann", watch="19")
        pool.open("bob", watch="32")
        attacker = pool._streams["ann"].monitor.attacker
        monkeypatch.setattr(attacker, "assess_moments", fail)
        for key in ("ann", "bob"):
            pool.push(key, sound)
        assert records(pool.finish("bob")) == alone(sound, reference(), watch="32")
        with pytest.raises(ZeroDivisionError, match="a fault of the attacker"):
            poll_until_it_raises(pool, "ann")


def test_rules_are_asked_about_their_own_stream():
    sound = sounds(6.0)
    with Pool(reference()) as pool:
        pool.open("ann", rules=[alerts.Threshold("gain_bits", 0.05, hold_seconds=0.0)])
        pool.open("bob")
        for key in ("ann", "bob"):
            pool.push(key, sound)
        raised = {key: [e for e in pool.finish(key) if isinstance(e, Alert)] for key in pool.keys}
        assert [alert.state for alert in raised["ann"]][:1] == ["raised"]
        assert not raised["bob"]
        state = pool.measure()
        assert (state.streams, state.alerts, state.backlog_seconds) == (2, 1, 0.0)
        assert state.readings == 12
        assert state.skipped_seconds == 0.0
        assert state.lag_seconds is not None
        parser = pytest.importorskip("prometheus_client.parser")
        families = parser.text_string_to_metric_families(pool.exposition())
        found = {sample.name: sample.value for family in families for sample in family.samples}
        assert found["monitor_pool_streams"] == 2.0
        assert found["monitor_pool_readings_total"] == 12.0
        assert found["monitor_pool_alerts_total"] == 1.0


class SlowRule(alerts.Threshold):
    """A rule that takes longer than the audio of a reading."""

    def update(self, _: Any) -> list[Alert]:
        time.sleep(1.2)
        return []


@pytest.mark.slow
def test_late_streams_skip_audio_and_those_with_rules_last():
    sound = sounds(1.0)
    with Pool(reference(), limits=PoolLimits(backlog_seconds=60.0)) as pool:
        pool.open("ruled", rules=[SlowRule("bits", 1.0)])
        pool.open("other")
        until = time.monotonic() + 60.0
        while not pool.measure().skipped_seconds:
            assert time.monotonic() < until
            for key in pool.keys:
                pool.push(key, sound)
            time.sleep(0.5)
        pool.drain()
        kinds = {key: {e.reason for e in pool.poll(key) if e.type == "gap"} for key in pool.keys}
        assert kinds["other"] == {"thinned"}
        assert not kinds["ruled"]


def test_two_bursts_with_a_pause_between_skip_nothing(monkeypatch):
    monkeypatch.setattr(pace, "PATIENCE_SECONDS", 0.2)
    with Pool(reference()) as pool:
        pool.open("ann")
        for _ in range(2):
            pool.push("ann", sounds(3.0))
            pool.drain()
            time.sleep(0.3)
        assert pool.measure().skipped_seconds == 0.0


def test_what_waits_for_a_stream_ends_when_it_is_forgotten_or_the_pool_is_closed():
    async def listen(pool: Pool) -> None:
        async for _ in pool.events("ann"):
            pass

    async def listen_for_long(pool: Pool) -> None:
        await asyncio.wait_for(listen(pool), 10.0)

    with ThreadPoolExecutor(1) as thread, Pool(reference()) as pool:
        pool.open("slow", rules=[SlowRule("bits", 1.0)])
        pool.push("slow", sounds(1.0))
        pool.end("slow")
        time.sleep(0.3)  # the round of the slow one has begun
        for waits, end in (
            (partial(pool.snapshot, "ann"), partial(pool.forget, "ann")),
            (partial(pool.finish, "ann"), partial(pool.forget, "ann")),
            (partial(asyncio.run, listen_for_long(pool)), partial(pool.forget, "ann")),
            (partial(asyncio.run, listen_for_long(pool)), pool.close),
        ):
            pool.open("ann")
            waiting = thread.submit(waits)
            time.sleep(0.1)
            end()
            with pytest.raises(UsageError):
                waiting.result(timeout=10.0)
