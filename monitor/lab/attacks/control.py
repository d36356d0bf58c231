"""Control attack: what an attacker seems to learn about speakers outside the data.

An attack shows something only if it beats this, as in anonymeter (M. Giomi et al., PoPETs 2023).
"""

from __future__ import annotations

import numpy as np

from monitor.lab.report.model import Figure
from monitor.maths.rank_models import fit_many, mean_bits_of
from monitor.maths.ranks import all_rank_bounds, rank_histogram
from monitor.maths.statistics import limits
from monitor.types import FloatArray, IntArray

CONTROL = "control.model_bits"
_REPLICATES = 200


def measure_control(
    scores: FloatArray, speaker: IntArray, counts: IntArray, seed: int = 0
) -> Figure:
    """Compute MeanD of the attack on outsiders, each of whom is taken for a judged reader.

    In each of 200 replicates every judged reader gets an outsider, with replacement, and one of the
    templates at random, without. The outsider's trials weigh as many as the reader's.

    Args:
        scores: of the outsiders' trials with the judged readers' templates, shape (m, N).
        speaker: outsider of each trial, from 0, shape (m,).
        counts: number of trials of each judged reader, shape (R,) with R <= N.
        seed: of the replicates.

    Example:
        >>> draws = np.random.default_rng(0).standard_normal((20, 10))
        >>> figure = measure_control(draws, np.arange(20) // 2, np.full(10, 5))
        >>> 0.0 <= figure.low <= figure.value <= figure.high < 1.0
        True
    """
    generator = np.random.default_rng(seed)
    trials, templates = scores.shape
    better, tied = all_rank_bounds(scores)
    own = [np.flatnonzero(speaker == i) for i in range(int(speaker.max()) + 1)]
    histograms = []
    for _ in range(_REPLICATES):
        outsiders = generator.integers(len(own), size=len(counts))
        columns = generator.permutation(templates)[: len(counts)]
        rows = np.concatenate([own[outsider] for outsider in outsiders])
        sizes = np.array([own[outsider].size for outsider in outsiders])
        column, weights = (np.repeat(values, sizes) for values in (columns, counts / sizes))
        histograms.append(
            rank_histogram(
                better[rows, column], tied[rows, column], templates, weights=weights[None]
            )
        )
    bits = mean_bits_of(*fit_many(np.stack(histograms)), templates)
    low, high = limits(bits)
    note = f"The same attack on {len(own)} speakers outside the data, {trials} trials."
    return Figure(CONTROL, "MeanD of outsiders", float(bits.mean()), "bits", bits, low=low,
                  high=high, note=note)  # fmt: skip
