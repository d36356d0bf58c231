"""The pictures of SRD: the histogram of ranks, and the laws fitted to it."""

from __future__ import annotations

import numpy as np

from monitor.maths.fitting import RankFit
from monitor.plots.evaluation import POINTS, Drawing, Line, paint_ranks, paint_speakers
from monitor.types import FloatArray

__all__ = ["DRAWINGS", "binned_ranks", "law_line"]

_SINGLE = 20
"""Ranks up to here are drawn one by one, further ones in bins."""

DRAWINGS = (
    Drawing(
        "ranks",
        "How far up the attacker's list the speaker stands",
        "Share of trials at each rank, and the fitted rank law; wide ranks are averaged. Flat at "
        "chance: nothing is disclosed.",
        paint_ranks,
    ),
    Drawing(
        "speaker_bits",
        "Not everybody discloses the same",
        "Mean disclosure of each tested speaker.",
        paint_speakers,
    ),
)


def binned_ranks(histogram: FloatArray) -> Line:
    """Share of the trials by rank; from rank 20 on the mean of widening bins.

    Args:
        histogram: shape (N,), index 0 is rank 1.

    Example:
        >>> line = binned_ranks(np.ones(1000))
        >>> line.x[:3].tolist(), len(line.x) < 80, bool(np.allclose(line.y, 1e-3))
        ([1.0, 2.0, 3.0], True, True)
    """
    count = len(histogram)
    edges = np.arange(min(_SINGLE, count) + 1.0)
    if count > _SINGLE:
        wide = np.unique(np.rint(np.geomspace(_SINGLE, count, 60)))
        edges = np.concatenate([edges, wide[1:]])
    first, last = edges[:-1].astype(np.intp), edges[1:]
    share = np.add.reduceat(histogram, first) / (last - first) / histogram.sum()
    return Line(np.sqrt((first + 1) * last), share)


def law_line(law: RankFit, speakers: int) -> Line:
    """Probability by rank, at ranks spread evenly over their logarithm."""
    ranks = np.unique(np.rint(np.geomspace(1, speakers, POINTS)))
    return Line(ranks, np.exp(law.log_pmf(speakers))[ranks.astype(np.intp) - 1])
