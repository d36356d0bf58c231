"""One voice as any recorder may have written it: whatever its level, features are the same."""

from __future__ import annotations

from random import Random

import numpy as np

from monitor.features.extractor import Extractor
from monitor.features.f0 import F0
from monitor.features.phones import Phones
from monitor.types import AnyArray, Block, FloatArray
from tests.contracts import voice

SECONDS = 12.0
RATES = (8000, 11_025, 16_000, 44_100, 48_000)
_SIZES = {"f0": 104, "phones": 256}
_SAME = 0.15
"""Share of frames that may move: rounding at the edge of two bins."""


def recorded(sound: FloatArray, rate: int, random: Random) -> tuple[FloatArray, str]:
    """A sound, (n,), at a drawn level, with a drawn offset and hum, or as whole numbers."""
    decibels = random.uniform(-35, 10)
    made = sound * 10 ** (decibels / 20)
    said = [f"{decibels:.1f} dB"]
    size = float(np.abs(made).max())
    if random.random() < 0.5:
        offset = random.choice((-1, 1)) * random.uniform(0, 3) * size
        made = made + offset
        said.append(f"offset {offset:.2g}")
    if random.random() < 0.5:
        hertz, hum = random.uniform(47, 60.5), random.uniform(0, 1) * size
        made = made + hum * np.sin(2 * np.pi * hertz * np.arange(made.size) / rate)
        said.append(f"hum of {hertz:.1f} Hz, {hum:.2g}")
    if random.random() < 0.3:
        made = np.round(made * 32768 / min(size, 1.0))
        said.append("whole numbers")
    return np.asarray(made, np.float32), ", ".join(said)


def moved(seed: int) -> tuple[float, float, str]:
    """How far a drawn recording is from the plain one, and what was drawn.

    Returns:
        ticks of speech that are more or fewer, as a share; the largest share of a feature's frames
        that moved.
    """
    random = Random(seed)
    rate = random.choice(RATES)
    sound = voice(SECONDS, rate, seed)
    changed, text = recorded(sound, rate, random)
    (speech, counts), (other, others) = _counts(sound, rate), _counts(changed, rate)
    shares = [np.abs(counts[name] - others[name]).sum() / counts[name].sum() for name in counts]
    return abs(other - speech) / speech, float(max(shares)), f"{rate} Hz, {text}"


def _counts(sound: FloatArray, rate: int) -> tuple[int, dict[str, AnyArray]]:
    frames = Extractor([F0(), Phones()]).process(Block(sound, rate))
    counts = {
        name: np.bincount(frames.tracks[name].values, minlength=size)
        for name, size in _SIZES.items()
    }
    return int(frames.speech.sum()), counts


def failures(count: int, first: int) -> list[str]:
    """What moved too far, of so many seeds from the first on."""
    found = []
    for seed in range(first, first + count):
        speech, frames, text = moved(seed)
        if speech > 0.02 or frames > _SAME:
            found.append(f"seed {seed}: {text}: speech {speech:.1%}, frames {frames:.1%}")
    return found
