"""A call's audio passes until an alert, and leaves silent or anonymised afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from monitor import Pool, alerts
from monitor.anonymisers.recording import ProtectedBlocks
from monitor.errors import UsageError
from monitor.run import GuardedCall
from monitor.types import Block
from tests.stream.streams import RATE, reference, sounds

FRAME = 320
SPOKEN = np.round(sounds(6.0) * 20_000).astype("<i2")


def guarded(
    method: str | None, sound: Any = SPOKEN, channels: int = 1, **options: Any
) -> tuple[bytes, list[bool], list[Any]]:
    """What leaves, whether each frame was protected, and what was logged."""
    log: list[Any] = []
    left, states = b"", []
    with Pool(reference()) as pool:
        call = GuardedCall(pool, "call", method=method, log=log.append, **options)
        for begin in range(0, len(sound), FRAME):
            left += call.process(sound[begin : begin + FRAME].tobytes(), RATE, channels)
            states.append(call.is_protected)
            pool.drain()
        call.close()
        assert not pool.keys
    return left, states, log


def test_audio_passes_unchanged_until_the_budget_and_is_silent_afterwards():
    left, states, log = guarded(None, bits=1.0)
    first = states.index(True) * FRAME
    assert 0 < first < len(SPOKEN)
    out = np.frombuffer(left, "<i2")
    assert np.array_equal(out[:first], SPOKEN[:first])
    assert len(out) == len(SPOKEN)
    assert not out[first:].any()
    assert all(states[states.index(True) :])
    raised = [each for each in log if each.get("state") == "raised"]
    assert [each["rule"] for each in raised] == ["expected_bits>1 for 0 s"]
    assert sum(each["type"] == "reading" for each in log) >= 5


@pytest.mark.parametrize("channels", [1, 2])
def test_audio_after_the_budget_is_that_of_the_anonymiser_after_its_latency(channels):
    sound = np.repeat(SPOKEN[:, None], channels, axis=1)
    left, states, _ = guarded("mcadams:0.8", sound, channels, bits=1.0)
    protect = ProtectedBlocks("mcadams:0.8", ("live",))
    whole = np.concatenate([b.samples for b in protect([Block(sound / np.float32(32768), RATE)])])
    out = np.frombuffer(left, "<i2").reshape(-1, channels)
    first = states.index(True) * FRAME
    assert out.shape == sound.shape
    assert np.array_equal(out[:first], sound[:first])
    late = RATE // 100  # frames of 20 ms overlap by half
    expected = np.rint(whole[first - late : len(sound) - late] * 32768)
    assert np.abs(expected).max() > 100
    assert np.abs(out[first:] - expected).max() <= 1


def test_a_watched_callers_budget_is_on_the_bits_and_other_alerts_protect_too():
    def rules() -> list[alerts.Threshold]:
        return [alerts.Threshold("gain_bits", 0.05, hold_seconds=0.0)]

    *_, states, log = guarded(None, bits=99.0, watch="84", rules=rules())
    assert states[-1]
    assert {each["rule"] for each in log if each["type"] == "alert"} == {"gain_bits>0.05 for 0 s"}
    *_, states, log = guarded(None, bits=0.9, watch="1272")
    assert states[-1]
    assert {each["rule"] for each in log if each["type"] == "alert"} == {"bits>0.9 for 0 s"}


def test_a_method_for_whole_recordings_is_refused_and_opens_nothing():
    with Pool(reference()) as pool:
        with pytest.raises(UsageError, match="whole recordings"):
            GuardedCall(pool, "call", 1.0, "command:cat")
        assert not pool.keys


def test_a_call_whose_rate_changes_is_still_protected():
    with Pool(reference()) as pool:
        call = GuardedCall(pool, "call", 1.0, "mcadams:0.8")
        for rate in (RATE, 8000):
            for begin in range(0, RATE, FRAME):
                frame = SPOKEN[begin : begin + FRAME].tobytes()
                assert call.process(frame, rate) == frame
        call.is_protected = True
        out = [call.process(SPOKEN[b : b + FRAME].tobytes(), 8000) for b in range(0, RATE, FRAME)]
        assert {len(each) for each in out} == {2 * FRAME}
        assert any(map(any, out))
