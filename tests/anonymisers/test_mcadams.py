from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from monitor.anonymisers import McAdams, Utterance, make
from monitor.anonymisers.filters import DRAWN, move_poles
from monitor.errors import UsageError
from monitor.features.f0 import F0
from tests.anonymisers.vowels import FORMANTS, peaks, vowel
from tests.sounds import RATE, synthetic


def protected(sound: np.ndarray, alpha: float, rate: int = RATE) -> np.ndarray:
    anonymiser = McAdams(alpha, rate)
    return np.concatenate((anonymiser.process(sound), anonymiser.flush()))


def expected(hertz: float, alpha: float) -> float:
    return float((2 * math.pi * hertz / 16000) ** alpha * 16000 / (2 * math.pi))


def test_one_changes_nothing():
    sound = synthetic(0.5)
    assert np.abs(protected(sound, 1.0) - sound).max() < 1e-4


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


def test_each_frame_keeps_its_loudness():
    sound = synthetic(1.0)
    louder = np.sum(protected(sound, 0.8).astype(float) ** 2) / np.sum(sound.astype(float) ** 2)
    assert 0.7 < louder < 1.4


@pytest.mark.parametrize("sound", [
    np.full(2000, 0.5), np.eye(1, 2000)[0], np.sin(np.arange(2000) * 0.3),
    np.arange(2000) % 2 - 0.5, np.full(2000, 1e-38), 1e12 * synthetic(0.1).astype(float),
])  # fmt: skip
def test_sounds_with_hardly_a_spectrum_come_out_finite(sound):
    made = protected(sound, 0.6).astype(float)
    assert np.isfinite(made).all()
    assert np.abs(made).max() <= 20 * np.abs(sound).max()


def alpha(method: str, **utterance: Any) -> float:
    anonymiser = make(method, Utterance(RATE, **utterance))
    assert isinstance(anonymiser, McAdams)
    return anonymiser.alpha


def test_a_random_alpha_is_the_recordings_or_the_speakers():
    ann = {"speaker": "ann", "seed": 3}
    assert alpha("mcadams:speaker", name="1", **ann) == alpha("mcadams:speaker", name="2", **ann)
    assert alpha("mcadams:random", name="1", **ann) != alpha("mcadams:random", name="2", **ann)
    bob = {"speaker": "bob", "seed": 3}
    assert alpha("mcadams:speaker", name="1", **ann) != alpha("mcadams:speaker", name="1", **bob)
    assert alpha("mcadams:random", name="1", **ann) == alpha("mcadams:random", name="1", **bob)
    again = {"speaker": "ann", "seed": 4}
    assert alpha("mcadams:speaker", **ann) != alpha("mcadams:speaker", **again)
    left, right = (alpha("mcadams:random", name="1", channel=c) for c in (0, 1))
    assert left == right


def test_random_alphas_fill_their_range():
    drawn = np.array([alpha("mcadams:random", name=str(i)) for i in range(400)])
    assert DRAWN[0] <= drawn.min() < 0.52
    assert 0.88 < drawn.max() <= DRAWN[1]
    assert drawn.mean() == pytest.approx(0.7, abs=0.03)


@pytest.mark.parametrize("setting", ["", "0", "nan", "inf", "3", "low"])
def test_a_coefficient_that_is_none_is_refused(setting):
    with pytest.raises(UsageError):
        make(f"mcadams:{setting}", Utterance(RATE))


def test_nobodys_alpha_is_refused():
    with pytest.raises(UsageError, match="--speaker NAME"):
        make("mcadams:speaker", Utterance(RATE))
