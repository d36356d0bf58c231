"""Made voices, each with a throat of its own, and a toy anonymiser that plays them at any speed."""

from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr
from scipy.signal import lfilter

from monitor.anonymisers.filters import Utterance
from monitor.corpus import Recording
from monitor.networks.layers import RATE
from monitor.types import FloatArray

TRAINING, UNSEEN = 40, 16


def voice(number: int, seconds: float = 10.0) -> FloatArray:
    """Pulses through four resonances; pitch, size and timbre are the voice's, vowels change."""
    own, said = np.random.default_rng(number), np.random.default_rng([number, 1])
    pitch, size = own.uniform(90, 240), own.uniform(0.85, 1.2)
    tilt, shape = own.uniform(0.8, 0.97), own.normal(1, 0.06, 4)
    parts, samples = [], RATE // 5
    for _ in range(round(seconds * 5)):
        vowel = np.array([said.uniform(280, 800), said.uniform(900, 2200), 2500, 3500])
        turns = np.cumsum(np.full(samples, pitch * said.uniform(0.93, 1.07) / RATE))
        sound = np.diff(np.floor(turns), prepend=0) + 0.01 * said.standard_normal(samples)
        sound = lfilter([1], [1, -tilt], sound)
        for formant in vowel * size * shape:
            r = np.exp(-np.pi * 90 / RATE)
            poles = [1, -2 * r * np.cos(2 * np.pi * formant / RATE), r * r]
            sound = lfilter([1 - r], poles, sound)
        parts.append(sound)
    made = np.concatenate(parts)
    return np.asarray(0.3 * made / np.abs(made).max(), np.float32)


def played(samples: FloatArray, rate: int, name: str, speaker: str) -> FloatArray:
    """At a speed that is drawn by the name: how pitch and formants go together stays."""
    speed = Utterance(rate, name).random(name).uniform(0.8, 1.25)
    return np.asarray(soxr.resample(samples, rate * speed, rate), np.float32)


@pytest.fixture(scope="session")
def voices(tmp_path_factory) -> list[Recording]:
    """Some to train on, then some that are not."""
    folder: Path = tmp_path_factory.mktemp("voices")
    made = []
    for number in range(TRAINING + UNSEEN):
        path = folder / f"{number:02}.wav"
        soundfile.write(path, voice(number), RATE)
        made.append(Recording(path.stem, "1", path))
    return made
