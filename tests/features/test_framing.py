"""Frames of any cutting, and loudness, offset and hum, on which nothing that is heard depends."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import signal

from monitor import measure
from monitor.features.framing import LEVEL_DB, MOST_GAIN_DB, Framer, HighPass, Leveller
from monitor.maths import filters
from recipes.sounds import cut


@given(st.integers(1, 12), st.data())
def test_any_cutting_gives_the_frames_of_the_definition(length, data):
    hop = data.draw(st.integers(1, length))
    sizes = data.draw(st.lists(st.integers(0, 30), max_size=12))
    samples = np.arange(sum(sizes), dtype=np.float32)
    framer = Framer(length, hop)
    framer.push(samples[: data.draw(st.integers(0, 30))])
    framer.reset()  # forgets that
    parts = [framer.push(part) for part in np.split(samples, np.cumsum(sizes)[:-1])]
    expected = [samples[at : at + length] for at in range(0, samples.size - length + 1, hop)]
    assert np.array_equal(np.concatenate(parts), np.reshape(expected, (-1, length)))


RATE = 16000


def noise(seconds, decibels, seed=0):
    samples = np.random.default_rng(seed).standard_normal(round(seconds * RATE))
    return np.float32(samples * 10 ** (decibels / 20))


def decibels(samples):
    return 20 * np.log10(np.sqrt(np.mean(np.square(samples, dtype=np.float64))))


def levelled(samples, rate=RATE):
    leveller = Leveller(rate)
    return np.concatenate([leveller.process(samples), leveller.flush()])


@pytest.mark.parametrize("rate", [8000, 11025, 16000, 48000, 768000])
def test_the_filter_is_the_published_one(rate):
    published = signal.cheby2(7, 40, filters.STOP_HZ, "highpass", fs=rate, output="sos")
    hertz = np.array([1, 10, 30, 50, 60, 62, 70, 80, 100, 1000, 3900.0])
    ours, theirs = (
        np.abs(signal.sosfreqz(sections, hertz, fs=rate)[1])
        for sections in (filters.high_pass(rate), published)
    )
    assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-9)
    assert (ours[3:5] < 0.01).all()  # hum
    assert ours[7:] == pytest.approx(1, abs=0.3)


@pytest.mark.parametrize("offset", [0.01, 0.1, 1.0])
def test_neither_an_offset_nor_hum_is_left(offset):
    sound = noise(1, -50)
    clean, shifted = (HighPass(RATE).process(sound + at) for at in (0.0, offset))
    assert shifted == pytest.approx(clean, abs=1e-6)  # from the first sample on
    for hertz in (50, 60):
        hum = np.sin(2 * np.pi * hertz * np.arange(2 * RATE) / RATE)
        assert decibels(HighPass(RATE).process(hum)[RATE // 2 :]) < -40


@pytest.mark.parametrize("times", [2.0**15, 3.0, 0.15])
def test_how_loud_a_recording_is_changes_no_sample(times):
    sound = np.concatenate([noise(0.3, -40), noise(0.7, -20), noise(61, -45), noise(2, -30)])
    assert levelled(sound * np.float32(times)) == pytest.approx(levelled(sound), rel=1e-4, abs=1e-6)


def test_the_loudest_half_second_of_the_last_minute_decides():
    sound = np.concatenate([noise(1, -10), noise(59, -30), noise(5, -30, 1)])
    made = levelled(sound)
    assert decibels(made[RATE // 2 : RATE]) == pytest.approx(LEVEL_DB, abs=0.3)
    assert decibels(made[30 * RATE : 59 * RATE]) == pytest.approx(LEVEL_DB - 20, abs=0.3)
    assert decibels(made[62 * RATE :]) == pytest.approx(LEVEL_DB, abs=0.3)


def test_the_noise_of_silence_is_not_made_a_voice():
    assert decibels(levelled(noise(5, -98))) == pytest.approx(MOST_GAIN_DB - 98, abs=0.1)
    assert not levelled(np.zeros(RATE, np.float32)).any()


def changed(sound, kind):
    """A voice, (n,) in -1 to 1 at -20 dBFS, as a recorder may have written it."""
    time = np.arange(sound.size) / RATE
    return {
        "-10 dBFS": lambda: sound * 10**0.5,
        "-35 dBFS": lambda: sound * 10**-0.75,
        "-50 dBFS": lambda: sound * 10**-1.5,
        "an offset": lambda: sound / 2 + 0.1,
        "whole numbers": lambda: np.round(sound * 32768),
        "hum": lambda: sound / 2 + 0.1 * np.sin(2 * np.pi * 50 * time),
    }[kind]().astype(np.float32)


KINDS = ("-10 dBFS", "-35 dBFS", "-50 dBFS", "an offset", "whole numbers", "hum")


@pytest.fixture(scope="module")
def voice(shared):
    sound = cut(shared / "speech/dev-clean/1462/170142.opus", start=2.0, seconds=15.0)
    return np.float32(sound / np.sqrt(np.mean(sound**2)) / 10)


@pytest.mark.parametrize("kind", KINDS)
def test_evidence_and_conditions_are_the_same(voice, kind):
    clear, other = (
        measure((sound, RATE), watch="1462", features=["f0", "phones", "voice"])
        for sound in (voice, changed(voice, kind))
    )
    assert other.evidence_bits == pytest.approx(clear.evidence_bits, abs=0.3)
    assert other.speech == pytest.approx(clear.speech, rel=0.02)
    figures = ("bandwidth_hz", "snr_db", "reverberation_seconds")
    tolerance = dict(zip(figures, (150, 3, 0.05), strict=True))
    for figure in figures:
        expected = pytest.approx(getattr(clear.conditions, figure), abs=tolerance[figure])
        assert getattr(other.conditions, figure) == expected
    said = [notice.kind for notice in other.notices]
    assert ("samples out of range" in said) == (kind == "whole numbers")
    assert not {"conditions differ", "poor sound"} & set(said)
