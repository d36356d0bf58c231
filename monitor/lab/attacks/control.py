"""Control attack: what an attacker seems to learn about speakers outside the data.

An attack shows something only if it beats this, as in anonymeter (M. Giomi et al., PoPETs 2023).
"""

from __future__ import annotations

from collections.abc import Sequence

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
    """Compute MeanD of the attack on outsiders, who are taken for the judged readers.

    In each of 200 replicates every judged reader gets a random template, without replacement, and
    outsiders, with replacement. A reader gets several outsiders if each has fewer trials, so that
    the variance of mean ranks is the same. Their number depends on the correlation of one person's
    ranks (Kish's design effect). Their trials together weigh as much as the reader's.

    Args:
        scores: of the outsiders' trials with the judged readers' templates, shape (m, N).
        speaker: number of the outsider of each trial, shape (m,).
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
    groups = [np.flatnonzero(speaker == who) for who in np.unique(speaker)]
    alike, size = _correlate(better + (tied - 1) / 2, groups), trials / len(groups)
    needed = counts / size * (1 + (size - 1) * alike) / (1 + (counts - 1) * alike)
    histograms = []
    for _ in range(_REPLICATES):
        outsiders = np.floor(np.maximum(needed, 1.0) + generator.random(len(counts))).astype(int)
        reader = np.repeat(np.arange(len(counts)), outsiders)
        chosen = [groups[i] for i in generator.integers(len(groups), size=reader.size)]
        chosen = [
            rows if rows.size <= count else generator.choice(rows, count, replace=False)
            for rows, count in zip(chosen, counts[reader], strict=True)
        ]
        sizes = np.array([rows.size for rows in chosen])
        column, weights = (
            np.repeat(values, sizes)
            for values in (
                generator.permutation(templates)[reader],
                counts[reader] / (outsiders[reader] * sizes),
            )
        )
        rows = np.concatenate(chosen)
        histograms.append(
            rank_histogram(
                better[rows, column], tied[rows, column], templates, weights=weights[None]
            )
        )
    bits = mean_bits_of(*fit_many(np.stack(histograms)), templates)
    low, high = limits(bits)
    note = f"The same attack on {len(groups)} speakers outside the data, {trials} trials."
    return Figure(CONTROL, "MeanD of outsiders", float(bits.mean()), "bits", bits, low=low,
                  high=high, note=note)  # fmt: skip


def _correlate(ranks: FloatArray, groups: Sequence[IntArray]) -> float:
    """Compute the intraclass correlation of ranks, shape (m, N), by the rows of each person.

    It is at least 0. If it is unknown, with one person or one row per person, it is 1.
    """
    people, sizes = len(groups), np.array([rows.size for rows in groups])
    total = int(sizes.sum())
    if not 1 < people < total:
        return 1.0
    means = np.stack([ranks[rows].mean(axis=0) for rows in groups])
    pairs = zip(groups, means, strict=True)
    squares = sum(((ranks[rows] - m) ** 2).sum(axis=0) for rows, m in pairs)
    within = float(np.mean(squares)) / (total - people)
    between = float(np.mean(sizes @ (means - ranks.mean(axis=0)) ** 2)) / (people - 1)
    size = (total - float(sizes @ sizes) / total) / (people - 1)
    spread = between + (size - 1) * within
    return float(np.clip((between - within) / spread, 0.0, 1.0)) if spread > 0 else 1.0
