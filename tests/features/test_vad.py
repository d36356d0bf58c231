from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import webrtcvad
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import monitor
from monitor.features.extractor import VoiceActivity


def test_decides_as_webrtc_does_on_30_ms_at_a_time(voices):
    voice = voices[0][:80_100]
    detector = webrtcvad.Vad(2)
    scaled = np.rint(np.clip(voice * 32768, -32768, 32767)).astype("<i2")
    heard = scaled[:79_920].reshape(-1, 240)
    expected = [detector.is_speech(some.tobytes(), 8000) for some in heard]
    decisions = VoiceActivity().process(voice)
    assert decisions.tolist() == np.repeat(expected, 3).tolist()
    assert 0.5 < decisions.mean() < 1.0


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(0, 700), min_size=1, max_size=40))
def test_any_cutting_gives_the_same_decisions(voices, sizes):
    voice = voices[1][: sum(sizes)]
    detector = VoiceActivity()
    parts = [detector.process(part) for part in np.split(voice, np.cumsum(sizes)[:-1])]
    whole = VoiceActivity().process(voice)
    assert whole.size == voice.size // 240 * 3
    assert np.array_equal(np.concatenate(parts), whole)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(0, 700), min_size=2, max_size=40), st.integers(1, 2000))
def test_two_who_share_a_detector_hear_as_each_alone(voices, sizes, later):
    voice = voices[1][: sum(sizes)]
    one, other, alone = VoiceActivity(), VoiceActivity(), VoiceActivity()
    assert other.share(one)
    found: dict[VoiceActivity, list[bool]] = {one: [], other: []}
    taken = 0  # of the other, who is behind or ahead of the first
    for part in np.split(np.arange(voice.size), np.cumsum(sizes)[:-1]):
        found[one] += one.process(voice[part]).tolist()
        until = min(voice.size, taken + later)
        found[other] += other.process(voice[taken:until]).tolist()
        taken = until
    found[other] += other.process(voice[taken:]).tolist()
    assert found[one] == found[other] == alone.process(voice).tolist()


def test_only_those_who_decide_alike_share():
    assert not VoiceActivity(16_000, ticks=1).share(VoiceActivity())


def test_reset_is_a_fresh_start(voices):
    detector = VoiceActivity()
    first = detector.process(voices[2][:16_000])
    detector.process(voices[3][:1234])
    detector.reset()
    assert np.array_equal(detector.process(voices[2][:16_000]), first)


@pytest.mark.parametrize("level", [1.5, 40.0, 1e12])
def test_too_loud_is_clipped_and_does_not_wrap(voices, level):
    loud = np.sign(voices[0][:16_000]) * np.float32(level)
    limit = VoiceActivity().process(np.clip(loud, -1, 1))
    assert limit.any()
    assert np.array_equal(VoiceActivity().process(loud), limit)


def test_silence_is_no_speech():
    assert not VoiceActivity().process(np.zeros(8000)).any()


def test_no_other_module_knows_the_library():
    root = Path(monitor.__file__).parent
    files = [path for path in root.rglob("*.py") if "import _webrtcvad" in path.read_text()]
    assert [path.name for path in files] == ["extractor.py"]
