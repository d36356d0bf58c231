"""Streams of a pool that move to another pool, in another process too."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest

from monitor import Monitor, Pool, alerts
from monitor.errors import SourceError, StoreError, UsageError
from monitor.events.reading import Reading
from monitor.events.run import Alert
from monitor.run import pace
from monitor.types import Block, FloatArray
from tests.stream.streams import RATE, reference, sounds

SECONDS, CUT = 6.0, 40_123


def figures(events: list[Any]) -> list[tuple[float, float | None, float | None]]:
    return [(each.seconds, each.speech, each.bits) for each in events if isinstance(each, Reading)]


def expected() -> list[tuple[float, float | None, float | None]]:
    monitor = Monitor(reference())
    return figures(monitor.push(Block(sounds(SECONDS), RATE)) + monitor.finish())


def continue_elsewhere(snapshot: bytes) -> list[Any]:
    with Pool(reference()) as pool:
        assert pool.restore("there", snapshot) == CUT / RATE
        push_slowly(pool, "there", sounds(SECONDS)[CUT:], 4_001)
        return figures(pool.finish("there"))


def push_slowly(pool: Pool, key: str, sound: FloatArray, size: int) -> None:
    """Push blocks, a second of them at a time, so that none waits for long."""
    for start in range(0, len(sound), RATE):
        for at in range(start, min(start + RATE, len(sound)), size):
            pool.push(key, sound[at : min(at + size, start + RATE)])
        pool.drain()


def begin(pool: Pool, **options: Any) -> tuple[bytes, list[Any]]:
    pool.open("here", **options)
    push_slowly(pool, "here", sounds(SECONDS)[: CUT - 5], 320)
    pool.push("here", sounds(SECONDS)[CUT - 5 : CUT])
    return pool.snapshot("here"), pool.poll("here")


def test_a_stream_moves_to_another_pool_and_goes_on_in_its_own():
    with Pool(reference()) as pool:
        snapshot, events = begin(pool)
        assert figures(events) + continue_elsewhere(snapshot) == expected()
        push_slowly(pool, "here", sounds(SECONDS)[CUT:], 4_001)
        assert figures(events + pool.finish("here")) == expected()


def test_a_late_stream_skips_the_same_audio_after_a_move(monkeypatch):
    monkeypatch.setattr(pace, "PATIENCE_SECONDS", 0.0)
    with Pool(reference()) as pool, Pool(reference()) as other:
        snapshot, _ = begin(pool)
        other.restore("there", snapshot)
        got = []
        for each, key in ((pool, "here"), (other, "there")):
            each.push(key, sounds(SECONDS)[CUT:])
            got.append(figures(each.finish(key)))
            assert each.measure().skipped_seconds == 4.0
        assert got[0] == got[1]


@pytest.mark.slow
def test_a_stream_moves_to_another_process():
    with Pool(reference()) as pool, ProcessPoolExecutor(1, get_context("spawn")) as process:
        snapshot, events = begin(pool)
        assert figures(events) + process.submit(continue_elsewhere, snapshot).result() == expected()


def test_an_alert_that_was_raised_is_not_raised_again():
    def rule() -> alerts.Threshold:
        return alerts.Threshold("bits", 1.0, hold_seconds=0.5)

    with Pool(reference()) as pool, Pool(reference()) as other:
        snapshot, events = begin(pool, rules=[rule()])
        assert any(isinstance(each, Alert) for each in events)
        other.restore("there", snapshot, rules=[rule()])
        push_slowly(other, "there", sounds(SECONDS)[CUT : 2 * CUT], 4_001)
        later = other.finish("there")
        assert max(bits for *_, bits in figures(later) if bits is not None) > 1.0
        assert not any(each.code == "alert.raised" for each in later)
        with pytest.raises(StoreError):
            other.restore("again", snapshot)
        assert other.keys == ["there"]


def test_what_cannot_be_moved_or_continued_is_refused():
    with Pool(reference()) as pool:
        snapshot, _ = begin(pool)
        with pytest.raises(UsageError, match="is open"):
            pool.restore("here", snapshot)
        with pytest.raises(StoreError, match="watch"):
            pool.restore("there", snapshot, watch="19")
        with pytest.raises(StoreError, match="damaged"):
            pool.restore("there", snapshot[:-1])
        pool.finish("here")
        with pytest.raises(UsageError, match="ended"):
            pool.snapshot("here")
        with pytest.raises(UsageError, match="no open stream"):
            pool.snapshot("there")
        pool.open("broken")
        with pytest.raises(SourceError):
            pool.push("broken", [[[1.0]]])
        assert isinstance(pool.snapshot("broken"), bytes)


def test_a_refused_restore_leaves_its_rules_unchanged():
    def rules(*bits: float) -> list[alerts.Threshold]:
        return [alerts.Threshold("bits", each, hold_seconds=0.5) for each in bits]

    with Pool(reference()) as pool:
        snapshot, _ = begin(pool, rules=rules(1.0, 1.1))
        for wrong, reason in ((rules(1.0), "2 alert rules, not 1"), (rules(1.0, 9.0), "bits>9")):
            with pytest.raises(StoreError, match=reason):
                pool.restore("there", snapshot, rules=wrong)
            assert not any(rule.raised for rule in wrong)
