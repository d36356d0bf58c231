"""Bootstrap replicates of speakers: how often each of them stands in each resample."""

from __future__ import annotations

import numpy as np

from monitor.types import FloatArray

__all__ = ["DRAWS", "speaker_weights"]

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
