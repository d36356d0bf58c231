"""Levels of the channel, and how each second sounds: of real speech, in any cutting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import butter, sosfilt

from monitor.features.channel import BANDS_HZ, CONDITION, Channel
from monitor.features.extractor import Extractor
from monitor.features.f0 import F0
from monitor.features.framing import join_runs
from monitor.features.level import HighPass
from monitor.maths.condition import ROW, describe_seconds
from monitor.types import Block

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


RATE = 8000
SOUND = np.random.default_rng(0).standard_normal((5 * RATE + 99, 2)).astype(np.float32) / 9


def heard(cuts, skip=0, channel=None):
    extractor = Extractor([F0()], channel, conditions=True)
    extractor.skip_to(skip)
    runs = [extractor.process(Block(part, RATE)) for part in np.split(SOUND, cuts)]
    return join_runs([*runs, extractor.flush()])


@given(st.lists(st.integers(0, len(SOUND)), max_size=6).map(sorted), st.sampled_from([0, 250]))
def test_any_cutting_gives_the_same_rows_of_seconds_that_are_not_skipped(cuts, skip):
    whole, parts = heard([]).tracks[CONDITION], heard(cuts, skip).tracks[CONDITION]
    assert whole.ticks.tolist() == [100, 200, 300, 400, 500]
    assert parts.ticks.tolist() == [tick for tick in whole.ticks.tolist() if tick > skip]
    assert np.array_equal(whole.values[whole.ticks > skip], parts.values)


@pytest.mark.parametrize("channel", [None, 1])
def test_a_row_is_of_the_samples_as_they_were_decoded(channel):
    rows = heard([], channel=channel).tracks[CONDITION].values
    columns = SOUND[:RATE] if channel is None else SOUND[:RATE, 1:]
    mean = HighPass(RATE).process(columns.mean(axis=1))
    assert np.array_equal(rows[0], describe_seconds(columns[None], mean[None], RATE)[0])
    assert rows.shape == (5, ROW)
