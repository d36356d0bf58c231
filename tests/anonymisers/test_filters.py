"""McAdams' coefficient moves formants and nothing else; noise has the ratio that was asked for."""

from __future__ import annotations

import math

import numpy as np
import pytest

from monitor.anonymisers import McAdams, Noise, Utterance, make
from monitor.anonymisers.filters import DRAWN, move_poles
from monitor.features.f0 import F0
from monitor.types import FloatArray
from tests.anonymisers.vowels import FORMANTS, peaks, vowel
from tests.sounds import RATE, synthetic


def protected(sound: np.ndarray, alpha: float, rate: int = RATE) -> np.ndarray:
    anonymiser = McAdams(alpha, rate)
    return np.concatenate((anonymiser.process(sound), anonymiser.flush()))


def expected(hertz: float, alpha: float) -> float:
    return float((2 * math.pi * hertz / 16000) ** alpha * 16000 / (2 * math.pi))


def test_one_changes_nothing_and_any_other_keeps_the_loudness():
    sound = synthetic(1.0)
    assert np.abs(protected(sound, 1.0) - sound).max() < 1e-4
    louder = np.sum(protected(sound, 0.8).astype(float) ** 2) / np.sum(sound.astype(float) ** 2)
    assert 0.7 < louder < 1.4


@pytest.mark.parametrize("rate", [16000, 48000])
@pytest.mark.parametrize("alpha", [0.8, 0.9, 1.1])
def test_formants_of_a_vowel_move_as_alpha_says(alpha, rate):
    sound = vowel(rate)
    assert peaks(sound, rate) == pytest.approx(FORMANTS, abs=50)
    wanted = [expected(hertz, alpha) for hertz in FORMANTS]
    assert abs(wanted[0] - FORMANTS[0]) > 60
    assert peaks(protected(sound, alpha, rate), rate) == pytest.approx(wanted, abs=110)


def test_poles_keep_their_radii_and_real_ones_stay():
    poles = 0.95 * np.exp(1j * np.array([0.3, 1.0, 2.0]))
    before = np.poly(np.concatenate((poles, poles.conj(), [0.5, -0.4]))).real
    after = np.roots(move_poles(before[None], 0.7, 16000)[0])
    turning = after[after.imag > 1e-9]
    assert np.sort(np.angle(turning)) == pytest.approx([0.3**0.7, 1.0, 2.0**0.7])
    assert np.abs(turning) == pytest.approx(0.95)
    assert np.sort(after[np.abs(after.imag) < 1e-9].real) == pytest.approx([-0.4, 0.5])


@pytest.mark.parametrize("alpha", [0.5, 0.8])
def test_pitch_stays_within_a_few_percent(alpha):
    sound = vowel(8000, pitch=160, seconds=2.0)
    before, after = (F0().process(each).values for each in (sound, protected(sound, alpha, 8000)))
    assert before.size > 100
    assert after.size > 0.8 * before.size
    # bins of pitch: 104 of them over a bit less than four octaves
    assert abs(np.median(after.astype(float)) - np.median(before.astype(float))) <= 1


def test_random_alphas_fill_their_range():
    made = [make("mcadams:random", Utterance(RATE, name=str(i))) for i in range(400)]
    drawn = np.array([each.alpha for each in made if isinstance(each, McAdams)])
    assert DRAWN[0] <= drawn.min() < 0.52
    assert 0.88 < drawn.max() <= DRAWN[1]
    assert drawn.mean() == pytest.approx(0.7, abs=0.03)


def noise(sound: np.ndarray, snr: float = 10.0) -> FloatArray:
    return np.asarray(Noise(snr, Utterance(RATE)).process(sound) - sound)


@pytest.mark.parametrize("snr", [-5.0, 0.0, 10.0, 20.0])
def test_the_ratio_is_the_one_asked_for(snr):
    sound = np.append(synthetic(6.0), np.zeros(4 * RATE, np.float32))
    added = noise(sound, snr)
    ratio = 10 * np.log10(np.sum(sound.astype(float) ** 2) / np.sum(added.astype(float) ** 2))
    assert ratio == pytest.approx(snr, abs=0.3)


def test_it_is_white():
    added = noise(np.full(8 * RATE, 0.1, np.float32))[4 * RATE :]
    bands = np.split(np.abs(np.fft.rfft(added))[1:] ** 2, 16)
    power = np.array([band.mean() for band in bands])
    assert power == pytest.approx(power.mean(), rel=0.15)
