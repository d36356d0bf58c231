"""The pitch below a low-pass filter: that of a tone, and of a voice whose formants were moved."""

from __future__ import annotations

import numpy as np
import pytest
import soundfile

from monitor.anonymisers import McAdams
from monitor.features.f0 import F0, LOWEST_LAG, RobustF0
from monitor.features.registry import defaults, make

RATE = 8000


def lags(feature, samples):
    track = feature.process(np.asarray(samples, np.float32))
    found = np.zeros(len(samples) // 80 + 4, int)
    found[track.ticks] = track.values + LOWEST_LAG
    return found


@pytest.mark.parametrize(("hertz", "lag"), [(80, 100), (100, 80), (200, 40), (320, 25), (400, 20)])
def test_a_tone_has_its_period(hertz, lag):
    found = lags(RobustF0(), np.sin(2 * np.pi * hertz * np.arange(RATE) / RATE))
    assert np.unique(found[20:95]).tolist() == [lag]


def test_a_harmonic_that_is_louder_is_not_taken_for_the_pitch():
    time = np.arange(RATE) / RATE
    wave = 0.2 * np.sin(2 * np.pi * 120 * time) + np.sin(2 * np.pi * 6 * 120 * time)
    assert np.median(lags(RobustF0(), wave)[20:95]) == pytest.approx(RATE / 120, abs=1)


def test_silence_and_noise_are_not_voiced():
    assert not lags(RobustF0(), np.zeros(RATE)).any()
    noise = np.random.default_rng(0).standard_normal(4 * RATE)
    assert np.mean(lags(RobustF0(), noise) > 0) < 0.1


def test_it_is_heard_only_when_asked_for():
    assert "f0_robust" not in defaults()
    assert defaults(["f0_robust"]) == ("f0_robust",)
    assert make(["f0_robust"])[0].spec.size == F0.spec.size


@pytest.mark.slow
def test_moved_formants_hide_the_pitch_from_one_and_not_from_the_other(shared):
    path = shared / "speech" / "dev-clean" / "1272" / "128104.opus"
    clear = soundfile.read(path, frames=20 * 2 * RATE, dtype="float32")[0]
    moved = McAdams(0.8, 2 * RATE)
    safe = np.concatenate([moved.process(clear), moved.flush()])
    kept = {}
    for kind in (F0, RobustF0):
        here, there = (lags(kind(), each[::2]) for each in (low(clear), low(safe)))
        kept[kind] = np.mean(np.abs(there[here > 0] / here[here > 0] - 1) < 0.05)
    assert kept[F0] < 0.4 < 0.6 < kept[RobustF0]


def low(samples):
    """Below half of the lower rate."""
    from scipy.signal import butter, sosfiltfilt

    return sosfiltfilt(butter(8, 3600, fs=2 * RATE, output="sos"), samples)
