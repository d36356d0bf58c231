from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import butter, sosfilt

from monitor.features.channel import BANDS_HZ, Channel
from monitor.types import Block
from tests.sounds import synthetic

BANDS = len(BANDS_HZ) - 1


def levels(sound):
    return Channel().process(sound)


@pytest.fixture(scope="module")
def speech(shared):
    from monitor.features.extractor import Resampler
    from monitor.sources.file import File

    path = shared / "speech/train-clean-5/19/198.opus"
    blocks = [b for b in File(path, end_seconds=30.0) if isinstance(b, Block)]
    resampler = Resampler(blocks[0].rate, 16000)
    parts = [resampler.process(block.samples.ravel()) for block in blocks]
    return np.concatenate([*parts, resampler.flush()])


def test_every_three_seconds_of_speech_have_levels(speech):
    track = levels(speech)
    assert track.ticks.tolist() == list(range(300, 3001, 300))
    assert (track.values[:, :BANDS] < track.values[:, BANDS:]).all()


def test_gain_moves_all_levels_alike(speech):
    moved = levels(speech).values - levels(speech / 4).values
    loud = moved[:, BANDS:]  # what is quiet may lie below the last bit
    assert np.abs(loud[:, :6] - 2 * np.log10(4)).max() < 0.01


def test_a_telephone_takes_the_outer_bands(speech):
    band = butter(6, [300, 3400], "bandpass", fs=16000, output="sos")
    moved = (levels(sosfilt(band, speech)).values - levels(speech).values)[:, BANDS:].mean(axis=0)
    assert (moved[[0, 8, 9]] < -1.5).all()
    assert (np.abs(moved[2:6]) < 0.2).all()


def test_noise_fills_the_pauses(speech):
    power = np.mean(speech**2) / 100
    noise = np.sqrt(power) * np.random.default_rng(0).standard_normal(speech.size)
    moved = (levels(speech + noise).values - levels(speech).values).mean(axis=0)
    assert moved[:BANDS].mean() > 0.7
    assert moved[BANDS : BANDS + 5].mean() < 0.1


@pytest.mark.parametrize(
    "make", [np.zeros, lambda n: np.full(n, 0.1), np.random.default_rng(0).random]
)
def test_what_is_no_speech_has_no_levels(make):
    assert not len(levels(make(96000)).ticks)


def test_levels_that_are_skipped_are_not_computed():
    feature, sound = Channel(), synthetic(9.0)
    whole = levels(sound)
    feature.skip_to(300)
    assert feature.process(sound).ticks.tolist() == [t for t in whole.ticks.tolist() if t > 300]
