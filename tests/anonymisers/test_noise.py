from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from monitor.anonymisers import Noise, Utterance, make
from monitor.errors import UsageError
from monitor.types import FloatArray
from tests.sounds import RATE, synthetic


def noise(sound: np.ndarray, snr: float = 10.0, **utterance: Any) -> FloatArray:
    made = Noise(snr, Utterance(RATE, **utterance)).process(sound)
    return np.asarray(made - sound)


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


def test_it_is_drawn_by_seed_recording_and_channel():
    sound = synthetic(0.2)
    first = noise(sound, name="a", seed=1)
    assert np.array_equal(first, noise(sound, name="a", seed=1))
    others: tuple[dict[str, Any], ...] = (
        {"name": "b", "seed": 1},
        {"name": "a", "seed": 2},
        {"name": "a", "seed": 1, "channel": 1},
    )
    for other in others:
        assert abs(np.corrcoef(first, noise(sound, **other))[0, 1]) < 0.1


@pytest.mark.parametrize("setting", ["", "loud", "nan", "inf", "1000"])
def test_a_ratio_that_is_none_is_refused(setting):
    with pytest.raises(UsageError):
        make(f"noise:{setting}", Utterance(RATE))
