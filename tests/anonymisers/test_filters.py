"""McAdams' coefficient moves formants and nothing else; noise has the ratio that was asked for."""

import math

import numpy as np
import pytest

from monitor.anonymisers import McAdams, Noise, Utterance
from monitor.features.f0 import F0
from tests.anonymisers.vowels import FORMANTS, peaks, vowel
from tests.sounds import RATE, synthetic


def protected(sound: np.ndarray, alpha: float, rate: int = RATE) -> np.ndarray:
    anonymiser = McAdams(alpha, rate)
    return np.concatenate((anonymiser.process(sound), anonymiser.flush()))


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
    radian = 16000 / (2 * math.pi)  # a second, in hertz
    wanted = [radian * (hertz / radian) ** alpha for hertz in FORMANTS]
    assert abs(wanted[0] - FORMANTS[0]) > 60
    assert peaks(protected(sound, alpha, rate), rate) == pytest.approx(wanted, abs=110)


@pytest.mark.parametrize("alpha", [0.5, 0.8])
def test_pitch_stays_within_a_few_percent(alpha):
    sound = vowel(8000, pitch=160, seconds=2.0)
    before, after = (F0().process(each).values for each in (sound, protected(sound, alpha, 8000)))
    assert before.size > 100
    assert after.size > 0.8 * before.size
    # bins of pitch: 104 of them over a bit less than four octaves
    assert abs(np.median(after.astype(float)) - np.median(before.astype(float))) <= 1


@pytest.mark.parametrize("snr", [-5.0, 0.0, 10.0, 20.0])
def test_the_ratio_is_the_one_asked_for(snr):
    sound = np.append(synthetic(6.0), np.zeros(4 * RATE, np.float32))
    added = np.asarray(Noise(snr, Utterance(RATE)).process(sound) - sound)
    ratio = 10 * np.log10(np.sum(sound.astype(float) ** 2) / np.sum(added.astype(float) ** 2))
    assert ratio == pytest.approx(snr, abs=0.3)
