from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.features.f0 import F0, HIGHEST_LAG, LOWEST_LAG
from monitor.kinds import HISTOGRAM
from monitor.protocols import Feature
from tests.features.lags import yin_lags


def lag_by_definition(frame):
    """Equations (6) and (8) and the search, in double precision and without a transform."""
    difference = [np.sum((frame[: 246 - lag] - frame[lag:]) ** 2) for lag in range(1, 123)]
    total = np.maximum(np.cumsum(difference), 1e-5)
    normalised = dict(enumerate(difference * np.arange(1, 123) / total, start=1))
    below = [lag for lag in range(18, 123) if normalised[lag] < 0.1]
    if not below or below[0] == 18:
        return 0
    lag = below[0]
    while lag < 122 and normalised[lag + 1] < normalised[lag]:
        lag += 1
    return lag


@pytest.mark.slow
def test_real_readers_match_the_definition(voices):
    for voice in voices:
        part = voice[80_000:120_000].astype(np.float64)
        starts = range(0, part.size - 246 + 1, 80)
        expected = np.array([lag_by_definition(part[at : at + 246]) for at in starts])
        lags = yin_lags(part)
        assert lags.shape == expected.shape
        assert np.mean(lags == expected) > 0.997
        assert np.count_nonzero(lags) > 20


def tone(hertz, seconds=1.0):
    return np.sin(2 * np.pi * hertz * np.arange(int(8000 * seconds)) / 8000)


@pytest.mark.parametrize(
    ("hertz", "lag"), [(66, 121), (80, 100), (100, 80), (200, 40), (320, 25), (400, 20)]
)
def test_a_tone_has_its_period(hertz, lag):
    lags = yin_lags(tone(hertz))
    assert lags.size == 97
    assert np.unique(lags).tolist() == [lag]


@pytest.mark.parametrize("hertz", [20, 50, 450, 470])
def test_outside_the_range_there_is_no_voice(hertz):
    assert not yin_lags(tone(hertz)).any()


@pytest.mark.parametrize("level", [0.0, 0.01, 0.1, 0.5, -0.7, 1.0])
def test_silence_and_a_constant_are_not_voices(level):
    assert not yin_lags(np.full(8000, level)).any()
    hiss = 1e-5 * np.random.default_rng(0).normal(size=8000)
    assert np.mean(yin_lags(level + hiss) > 0) < 0.05


def test_noise_is_hardly_ever_voiced():
    assert np.mean(yin_lags(np.random.default_rng(0).normal(size=80_000)) > 0) < 0.01


def test_a_tone_on_a_constant_keeps_its_period():
    assert np.unique(yin_lags(0.5 + 0.01 * tone(100))).tolist() == [80]


def test_clipping_keeps_the_period():
    assert np.unique(yin_lags(np.clip(5 * tone(100), -1, 1))).tolist() == [80]


def test_level_does_not_matter(voices):
    voice = voices[0][:80_000]
    assert np.array_equal(yin_lags(voice * 4), yin_lags(voice))


@pytest.mark.parametrize(("size", "frames"), [(0, 0), (245, 0), (246, 1), (325, 1), (326, 2)])
def test_only_whole_frames_count(size, frames):
    assert yin_lags(np.zeros(size)).shape == (frames,)


def test_one_frame_does_not_depend_on_the_others(voices):
    voice = voices[2][:80_000]
    lags = yin_lags(voice)
    alone = [int(yin_lags(voice[80 * i : 80 * i + 246])[0]) for i in range(lags.size)]
    assert lags.tolist() == alone


def test_describes_itself():
    feature = F0()
    assert isinstance(feature, Feature)
    assert (feature.spec.name, feature.spec.rate, feature.spec.kind) == ("f0", 8000, HISTOGRAM)
    assert (LOWEST_LAG, HIGHEST_LAG, feature.spec.size) == (19, 122, 104)
    assert feature.spec.frame_seconds == 0.01


def test_a_frame_is_due_when_its_last_sample_is_heard(voices):
    voice = voices[0][:16_000]
    track = F0().process(voice)
    lags = yin_lags(voice)
    frames = np.flatnonzero(lags)
    assert np.array_equal(track.values, lags[frames] - 19)
    assert np.array_equal(track.ticks, np.ceil((80 * frames + 246) / 80))
    assert 0 <= track.values.min() <= track.values.max() < F0.spec.size


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 4000), min_size=1, max_size=20), st.integers(0, 400))
def test_any_cutting_and_skipping_gives_the_same_frames(voices, sizes, skip):
    voice = voices[3][: sum(sizes)]
    whole = F0().process(voice)
    feature = F0()
    feature.skip_to(skip)
    parts = [feature.process(part) for part in np.split(voice, np.cumsum(sizes)[:-1])]
    kept = whole.ticks > skip
    assert np.array_equal(np.concatenate([part.ticks for part in parts]), whole.ticks[kept])
    assert np.array_equal(np.concatenate([part.values for part in parts]), whole.values[kept])


def test_one_sample_at_a_time(voices):
    voice = voices[1][40_000:42_000]
    feature = F0()
    parts = [feature.process(voice[at : at + 1]) for at in range(voice.size)]
    whole = F0().process(voice)
    assert whole.ticks.size
    assert np.array_equal(np.concatenate([part.ticks for part in parts]), whole.ticks)
    assert np.array_equal(np.concatenate([part.values for part in parts]), whole.values)


def test_reset_is_a_fresh_start(voices):
    feature = F0()
    first = feature.process(voices[0][:8000])
    feature.process(voices[1][:1234])
    feature.skip_to(50)
    feature.reset()
    again = feature.process(voices[0][:8000])
    assert np.array_equal(again.ticks, first.ticks)
    assert np.array_equal(again.values, first.values)
    assert feature.flush().ticks.size == 0
