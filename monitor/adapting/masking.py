"""What is done to log mel bands in training, so that a network does not go by a microphone."""

from __future__ import annotations

import numpy as np

from monitor.types import FloatArray

__all__ = ["floored", "masked"]

_FLOORED, _GATED = 0.35, 0.25
_MASKED = 0.3
_MOST_BANDS, _MOST_TIME = 8, 0.15


def floored(bands: FloatArray, generator: np.random.Generator) -> FloatArray:
    """Some crops get the floor of another microphone, some what a gate does to what is quiet.

    A session is told by both as well as by its voice, and nobody in training has two sessions.

    Args:
        bands: shape (b, t, m), log energies.
        generator: draws what happens.

    Returns:
        shape (b, t, m).
    """
    made = bands.copy()
    count, _, width = bands.shape
    slope = np.linspace(-0.5, 0.5, width, dtype=np.float32)
    for row in range(count):
        if generator.random() < _GATED:
            mean = made[row].mean(axis=0)
            below = np.maximum(mean - np.float32(generator.uniform(0, 2)) - made[row], 0)
            made[row] -= below * np.float32(generator.uniform(-0.4, 0.8))
        if generator.random() < _FLOORED:
            level = made[row].max(axis=0).mean() - generator.uniform(3, 9)  # nepers of energy
            uneven = np.cumsum(generator.normal(0, 0.2, width))
            floor = level + uneven - uneven.mean() + generator.uniform(-4, 2) * slope
            made[row] = np.logaddexp(made[row], floor.astype(np.float32))
    return made


def masked(bands: FloatArray, generator: np.random.Generator) -> FloatArray:
    """Some crops lose a stripe of bands, some a stretch of time (SpecAugment; Park et al., 2019).

    Args:
        bands: shape (b, t, m), log energies; what is lost becomes the crop's mean of the band.
        generator: draws what happens.

    Returns:
        shape (b, t, m).
    """
    made = bands.copy()
    count, frames, width = bands.shape
    means = bands.mean(axis=1)
    for row in range(count):
        if generator.random() < _MASKED:
            wide = generator.integers(1, _MOST_BANDS + 1)
            low = generator.integers(width - wide + 1)
            made[row, :, low : low + wide] = means[row, low : low + wide]
        if generator.random() < _MASKED:
            long = generator.integers(1, round(_MOST_TIME * frames) + 1)
            begin = generator.integers(frames - long + 1)
            made[row, begin : begin + long] = means[row]
    return made
