"""Pitch: as its paper defines it, as torch-yin finds it, and below a low-pass filter."""

import numpy as np
import pytest
import soundfile

from monitor.anonymisers import McAdams
from monitor.features.f0 import F0, FRAME, HOP, LOWEST_LAG, RobustF0
from monitor.types import FloatArray, IntArray


def yin_lags(samples: FloatArray) -> IntArray:
    """The period of each frame in samples, 0 where it is not periodic: frame i begins at 80 i."""
    track = F0().process(samples)
    lags = np.zeros(max(0, (len(samples) - FRAME) // HOP + 1), np.int64)
    lags[track.ticks - int(np.ceil(FRAME / HOP))] = track.values + LOWEST_LAG
    return lags


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
    ("hertz", "lag"),
    [(66, 121), (80, 100), (100, 80), (200, 40), (320, 25), (400, 20), (20, 0), (50, 0), (450, 0),
     (470, 0)],
)  # fmt: skip
def test_a_tone_has_its_period_and_outside_the_range_there_is_no_voice(hertz, lag):
    lags = yin_lags(tone(hertz))
    assert lags.size == 97
    assert np.unique(lags).tolist() == [lag]
    if 66 < hertz < 400:
        robust = lags_of(RobustF0(), tone(hertz))
        assert np.unique(robust[20:95]).tolist() == [lag]


@pytest.mark.parametrize("level", [0.0, 0.01, 0.1, 0.5, -0.7, 1.0])
def test_silence_a_constant_and_noise_are_not_voices(level):
    assert not yin_lags(np.full(8000, level)).any()
    noise = np.random.default_rng(0).normal(size=80_000)
    assert np.mean(yin_lags(level + 1e-5 * noise[:8000]) > 0) < 0.05
    assert np.mean(yin_lags(noise) > 0) < 0.01
    assert not lags_of(RobustF0(), np.zeros(8000)).any()
    assert np.mean(lags_of(RobustF0(), noise[:32_000]) > 0) < 0.1


@pytest.fixture(scope="module")
def oracle():
    """Lags of torch-yin, 0 where it calls a frame unvoiced."""
    torch = pytest.importorskip("torch", reason="needs the extra peers")
    torchyin = pytest.importorskip("torchyin", reason="needs the extra peers")

    def lags(samples):
        hertz = torchyin.estimate(
            torch.from_numpy(np.asarray(samples, np.float32)),
            sample_rate=8000,
            pitch_min=65,
            pitch_max=450,
            frame_stride=0.01,
            threshold=0.1,
        ).numpy()
        return np.where(hertz > 0, np.rint(8000 / np.maximum(hertz, 1)), 0).astype(int)

    return lags


@pytest.mark.parametrize("level", [1.0, 0.03, 0.001, 30.0])
def test_the_same_lags_on_real_readers(oracle, voices, level):
    heard = [np.clip(voice * level, -1, 1) for voice in voices]
    ours = np.concatenate([yin_lags(voice) for voice in heard])
    theirs = np.concatenate([oracle(voice) for voice in heard])
    assert ours.shape == theirs.shape
    # All but the odd frame where the two roundings fall on either side of an equality.
    assert np.mean(ours == theirs) >= 0.9995


RATE = 8000


def lags_of(feature, samples):
    track = feature.process(np.asarray(samples, np.float32))
    found = np.zeros(len(samples) // 80 + 4, int)
    found[track.ticks] = track.values + LOWEST_LAG
    return found


def test_a_harmonic_that_is_louder_is_not_taken_for_the_pitch():
    time = np.arange(RATE) / RATE
    wave = 0.2 * np.sin(2 * np.pi * 120 * time) + np.sin(2 * np.pi * 6 * 120 * time)
    assert np.median(lags_of(RobustF0(), wave)[20:95]) == pytest.approx(RATE / 120, abs=1)


@pytest.mark.slow
def test_moved_formants_hide_the_pitch_from_one_and_not_from_the_other(shared):
    path = shared / "speech" / "dev-clean" / "1272" / "128104.opus"
    clear = soundfile.read(path, frames=20 * 2 * RATE, dtype="float32")[0]
    moved = McAdams(0.8, 2 * RATE)
    safe = np.concatenate([moved.process(clear), moved.flush()])
    kept = {}
    for kind in (F0, RobustF0):
        here, there = (lags_of(kind(), each[::2]) for each in (low(clear), low(safe)))
        kept[kind] = np.mean(np.abs(there[here > 0] / here[here > 0] - 1) < 0.05)
    assert kept[F0] < 0.4 < 0.6 < kept[RobustF0]


def low(samples):
    """Below half of the lower rate."""
    from scipy.signal import butter, sosfiltfilt

    return sosfiltfilt(butter(8, 3600, fs=2 * RATE, output="sos"), samples)
