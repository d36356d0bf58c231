"""Log mel bands: against their definition, and frame by frame."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.errors import UsageError
from monitor.networks.layers import HOP, RATE, WIDTH, filters, log_mel

NOISE = np.random.default_rng(0).standard_normal(RATE).astype(np.float32) / 10


@given(st.integers(WIDTH, RATE))
def test_there_are_as_many_frames_as_promised(samples):
    assert log_mel(NOISE[:samples]).shape == (1 + (samples - WIDTH) // HOP, 40)


@given(st.integers(0, 50), st.integers(1, 40))
def test_a_frame_depends_on_its_own_samples(first, count):
    part = NOISE[first * HOP : (first + count - 1) * HOP + WIDTH]
    whole = log_mel(NOISE)[first : first + count]
    np.testing.assert_allclose(log_mel(part), whole, atol=1e-5)


def test_ten_times_the_sound_is_a_hundred_times_the_energy():
    difference = log_mel(10 * NOISE) - log_mel(NOISE)
    np.testing.assert_allclose(difference, np.log(100), atol=1e-3)


@pytest.mark.parametrize("hertz", [100, 440, 1000, 3000, 7000])
def test_a_tone_is_in_its_band(hertz):
    tone = np.sin(2 * np.pi * hertz * np.arange(RATE) / RATE)
    low, high = 2595 * np.log10(1 + np.array([20, 7600]) / 700)
    edges = np.linspace(low, high, 42)
    mel = 2595 * np.log10(1 + hertz / 700)
    nearest = int(np.abs(edges[1:-1] - mel).argmin())
    assert abs(int(log_mel(tone).mean(axis=0).argmax()) - nearest) <= 1


def test_silence_has_a_floor():
    np.testing.assert_allclose(log_mel(np.zeros(WIDTH)), np.log(1e-6), rtol=1e-5)


@pytest.mark.parametrize("bands", [40, 80])
def test_no_band_is_deaf_between_the_bins_of_the_spectrum(bands):
    assert log_mel(NOISE, bands).shape == (98, bands)
    assert filters(bands).max(axis=0).min() > 0.3


def test_too_short_is_said():
    with pytest.raises(UsageError, match="400 samples"):
        log_mel(NOISE[: WIDTH - 1])
