"""Bootstrap replicates of speakers: how often each of them stands in each resample."""

from __future__ import annotations

import numpy as np

from monitor.types import FloatArray

__all__ = ["REPLICATES", "speaker_weights"]

REPLICATES = 200
"""B of docs/method.md section 5."""


def speaker_weights(speakers: int, replicates: int = REPLICATES, seed: int = 0) -> FloatArray:
    """How often each speaker stands in each bootstrap replicate, drawn with replacement.

    Returns:
        shape (replicates, speakers), whole numbers as float64; every row sums to ``speakers``.
    """
    generator = np.random.default_rng(seed)
    picks = generator.integers(0, speakers, size=(replicates, speakers))
    weights = np.zeros((replicates, speakers))
    np.add.at(weights, (np.arange(replicates)[:, None], picks), 1.0)
    return weights
