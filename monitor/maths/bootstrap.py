"""Resampling of calibration speakers: the limits on everything that a law says."""

from __future__ import annotations

import numpy as np

from monitor.types import FloatArray

__all__ = ["DRAWS", "limits", "limits_of_each", "speaker_weights"]

DRAWS = 200
"""B of docs/method.md section 5."""


def speaker_weights(speakers: int, draws: int = DRAWS, seed: int = 0) -> FloatArray:
    """How often each speaker is drawn in each resample.

    Returns:
        shape (draws, speakers), whole numbers as float64; every row sums to ``speakers``.
    """
    generator = np.random.default_rng(seed)
    picks = generator.integers(0, speakers, size=(draws, speakers))
    weights = np.zeros((draws, speakers))
    np.add.at(weights, (np.arange(draws)[:, None], picks), 1.0)
    return weights


def limits(values: FloatArray) -> tuple[float, float]:
    """2.5 and 97.5 percentiles of a figure over the draws, shape (B,).

    The two order statistics nearest to the percentiles, without interpolation: one partition, no
    sort, since this stands in every reading.
    """
    low, high = limits_of_each(values).tolist()
    return low, high


def limits_of_each(values: FloatArray) -> FloatArray:
    """``limits`` of many figures: shape (..., B) to shape (..., 2)."""
    count = values.shape[-1]
    low = round(0.025 * (count - 1))
    both = (low, count - 1 - low)
    return np.asarray(np.partition(values, both, axis=-1)[..., both])
