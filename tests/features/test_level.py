"""Loudness, noise, offset and hum, on which no figure depends."""

from copy import deepcopy

import numpy as np
import pytest
import soxr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import signal

from monitor import measure
from monitor.features import level as filters
from monitor.features.extractor import Extractor
from monitor.features.level import HELD_TICKS, LEVEL_DB, HighPass, Leveller, measure_voicing
from monitor.types import Block
from recipes.sounds import cut
from tests.sounds import synthetic

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


def coloured(seconds, slope, seed=0):
    """Noise whose power falls by ``slope`` times 3 dB an octave: 0 is white, 1 pink, 2 brown."""
    spectrum = np.fft.rfft(np.random.default_rng(seed).standard_normal(round(seconds * RATE)))
    spectrum[1:] /= np.arange(1, spectrum.size) ** (slope / 2)
    spectrum[0] = 0
    sound = np.fft.irfft(spectrum)
    return np.float32(sound / sound.std())


def fan(seconds):
    """Broad noise below 1 kHz, the harmonics of blades, and a slow beat."""
    time = np.arange(round(seconds * RATE)) / RATE
    low = signal.sosfilt(signal.butter(2, 1000, fs=RATE, output="sos"), noise(seconds, 0))
    blades = sum(np.sin(2 * np.pi * 90 * k * time + k) / k for k in (1, 2, 3, 4))
    sound = (low / low.std() + blades / 2) * (1 + 0.15 * np.sin(2 * np.pi * 1.3 * time))
    return np.float32(sound / sound.std())


NOISES = {
    "white": lambda seconds: coloured(seconds, 0),
    "pink": lambda seconds: coloured(seconds, 1),
    "brown": lambda seconds: coloured(seconds, 2),
    "fan": fan,
}


def spoken(sound):
    """Decisions on each tick."""
    extractor = Extractor([])
    parts = [extractor.process(Block(sound, RATE)), extractor.flush()]
    return np.concatenate([part.speech for part in parts])


@pytest.mark.parametrize("kind", NOISES)
@pytest.mark.parametrize("level", [-75, -60, -50, -40])
def test_noise_alone_is_no_speech(kind, level):
    assert np.count_nonzero(spoken(NOISES[kind](20) * np.float32(10 ** (level / 20)))) <= 20


def speech(seconds=4.0, seed=0):
    """Syllables of a synthetic voice, with pauses of noise 45 dB below them."""
    rng = np.random.default_rng(seed)
    parts = [np.empty(0)]
    while sum(part.size for part in parts) < seconds * RATE:
        syllable = synthetic(rng.uniform(0.15, 0.4), rng.uniform(100, 180))
        parts += [syllable / np.sqrt(np.mean(syllable**2)) / 10, np.zeros(RATE // 20)]
    sound = np.concatenate(parts)[: round(seconds * RATE)]
    return np.float32(sound + noise(seconds, -65, seed))


@settings(max_examples=15, deadline=None)
@given(st.floats(-30, 12), st.integers(0, 5))
def test_how_loud_a_recording_is_changes_no_sample(decibels, seed):
    sound = speech(seed=seed)
    louder = levelled(sound * np.float32(10 ** (decibels / 20)))
    np.testing.assert_allclose(louder, levelled(sound), rtol=1e-3, atol=1e-4)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 4000), min_size=1, max_size=60), st.floats(0, 2))
def test_any_cutting_gives_the_same_samples(sizes, lead):
    sound = np.concatenate([np.zeros(round(lead * RATE), np.float32), speech(2.0)])
    leveller = Leveller(RATE)
    parts = [leveller.process(part) for part in np.split(sound, np.cumsum(sizes))]
    made = np.concatenate([*parts, leveller.flush()])
    assert made.size == sound.size
    assert np.array_equal(made, levelled(sound))


@settings(max_examples=15, deadline=None)
@given(st.floats(0.0, 5.0), st.sampled_from(["white", "pink", "silence"]))
def test_what_comes_before_speech_changes_no_speech(lead, kind):
    before = 0 * noise(lead, 0) if kind == "silence" else NOISES[kind](lead + 0.1)
    before = before[: round(lead * RATE)] * np.float32(10**-3.25)
    alone, after = spoken(speech()), spoken(np.concatenate([before, speech()]))
    assert abs(np.count_nonzero(after) - np.count_nonzero(alone)) <= 10


def test_what_has_no_syllable_comes_out_silent():
    assert not levelled(noise(5, -30)).any()
    assert not levelled(np.zeros(RATE, np.float32)).any()


def test_nothing_waits_longer_than_it_says():
    leveller = Leveller(RATE)
    waiting = [0]
    for part in np.array_split(np.concatenate([noise(3, -60), speech(3.0)]), 600):
        waiting.append(waiting[-1] + part.size - leveller.process(part).size)
    assert max(waiting) <= (HELD_TICKS + 1) * RATE // 100
    assert waiting[-1] < RATE // 100  # once it hears speech nothing waits


def test_the_loudest_syllable_of_the_last_minute_of_speech_decides():
    sound = np.concatenate([speech(2.0), speech(8.0) / 10, 0 * noise(90, 0), speech(70.0, 1) / 10])
    made = levelled(sound)

    def loudest(first, last):
        powers = np.square(made[round(first * RATE) : round(last * RATE)]).reshape(-1, 1600)
        return 10 * np.log10(powers.mean(axis=1).max())

    assert loudest(1, 2) == pytest.approx(LEVEL_DB, abs=2)
    assert loudest(3, 10) == pytest.approx(LEVEL_DB - 20, abs=2)
    assert loudest(100, 140) == pytest.approx(LEVEL_DB - 20, abs=2)  # the pause does not count
    assert loudest(165, 170) == pytest.approx(LEVEL_DB, abs=2)


def test_a_whisper_is_speech():
    rng = np.random.default_rng(0)
    bursts = [np.r_[noise(0.25, -35, k) * rng.uniform(0.5, 1), 0 * noise(0.1, 0)] for k in range(9)]
    assert levelled(np.float32(np.concatenate(bursts))).any()


@pytest.mark.parametrize("rate", [8000, 11025, 16000, 44100, 48000])
@pytest.mark.parametrize("hertz", [100, 200, 350])
def test_a_voice_is_periodic_and_noise_is_not(rate, hertz):
    voice = soxr.resample(synthetic(0.3, float(hertz))[800:], RATE, rate)
    assert measure_voicing(voice, rate) > 0.8
    hiss = np.random.default_rng(0).standard_normal(voice.size)
    assert measure_voicing(hiss, rate) < 0.5
    assert measure_voicing(0 * hiss, rate) == 0


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


@pytest.mark.parametrize("seconds", [0.2, 0.5, 0.9])
def test_a_recording_of_one_word_is_speech(seconds):
    word = np.concatenate([noise(0.5, -65), speech(seconds)])
    assert np.count_nonzero(spoken(word)) >= 60 * seconds
    assert not np.count_nonzero(spoken(noise(0.5 + seconds, -30)))


def test_a_copy_hears_the_end_of_a_word_that_still_waits():
    extractor = Extractor([])
    heard = extractor.process(Block(np.concatenate([noise(0.5, -65), speech(0.6)]), RATE))
    copied = deepcopy(extractor).flush().speech
    end = extractor.flush().speech
    assert not heard.speech.any()
    assert np.count_nonzero(end) > 40
    assert np.array_equal(copied, end)
