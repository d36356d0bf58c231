"""The curves of a report, thinned to what an eye can tell apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from monitor.evaluation.linkage.figures import pi_link_curve
from monitor.evaluation.scores.counts import Tally
from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.evaluation.verification.error_rates import det_points
from monitor.evaluation.zebra.ece import profile_of_blocks
from monitor.maths.fitting import RankFit
from monitor.plots.evaluation import Curves, Line
from monitor.types import FloatArray

__all__ = ["binned_ranks", "exceeding", "law_line", "rank_curves", "roc_line", "score_curves"]

_POINTS = 240
_SINGLE = 20
"""Ranks up to here are drawn one by one, further ones in bins."""
_PRIORS = 61


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


def exceeding(values: FloatArray) -> Line:
    """Share of the values that are at least so large, at evenly spread places.

    Example:
        >>> line = exceeding(np.array([1.0, 2.0, 2.0, 3.0]))
        >>> line.x.tolist(), line.y.tolist()
        ([1.0, 2.0, 2.0, 3.0], [1.0, 0.75, 0.75, 0.25])
    """
    ordered = np.sort(values)
    at = np.unique(np.linspace(0, len(ordered) - 1, min(_POINTS, len(ordered))).astype(np.intp))
    x = ordered[at]
    above = len(ordered) - np.searchsorted(ordered, x, side="left")
    return Line(x, above / len(ordered))


def roc_line(tally: Tally) -> Line:
    """True against false positive rate, spread evenly over the logarithm of the latter."""
    counts = tally.counts
    hits = np.concatenate([[0.0], np.cumsum(counts.mated[::-1])]) / counts.mated_total
    alarms = np.concatenate([[0.0], np.cumsum(counts.non_mated[::-1])])
    wanted = np.geomspace(1.0, float(alarms[-1]), _POINTS)
    at = np.unique(np.searchsorted(alarms, np.concatenate([[0.0], wanted]), side="right") - 1)
    return Line(alarms[at] / alarms[-1], hits[at])


def law_line(law: RankFit, speakers: int) -> Line:
    """Probability by rank, at ranks spread evenly over their logarithm."""
    ranks = np.unique(np.rint(np.geomspace(1, speakers, _POINTS)))
    return Line(ranks, np.exp(law.log_pmf(speakers))[ranks.astype(np.intp) - 1])


def rank_curves(
    curves: Curves,
    matrix: ScoreMatrix,
    histogram: FloatArray,
    laws: Mapping[str, RankFit],
    speaker_bits: FloatArray | None,
    local_bits: FloatArray | None,
    heard: Line | None,
    guides: Mapping[str, Line],
) -> Curves:
    """What is drawn of ranks, where there are any.

    Args:
        curves: to add to.
        matrix: the trials.
        histogram: shape (N,), of ranks.
        laws: by the loss that they were fitted with.
        speaker_bits: shape (S,), MeanD of each tested speaker, where any has a second trial.
        local_bits: shape (T,), LID of each trial, where it could be calibrated.
        heard: bits against the number of trials.
        guides: beside it, by name.
    """
    candidates, linked = pi_link_curve(matrix)
    return replace(
        curves,
        ranks=binned_ranks(histogram),
        laws={loss: law_line(law, matrix.population) for loss, law in laws.items()},
        speaker_bits=speaker_bits,
        local_bits=None if local_bits is None else exceeding(local_bits),
        heard=heard,
        guides=guides,
        linkage=Line(candidates.astype(np.float64), linked),
    )


def score_curves(curves: Curves, tally: Tally) -> Curves:
    """What is drawn of pooled scores.

    Args:
        curves: to add to.
        tally: of all scores.
    """
    accepts, rejects = det_points(tally.counts, most=_POINTS)
    profile = profile_of_blocks(tally.blocks, np.linspace(-3.0, 3.0, _PRIORS) * np.log(10.0))
    priors = profile.prior_log_odds / np.log(10.0)
    return replace(
        curves,
        ece=Line(priors, profile.calibrated),
        ece_nothing=Line(priors, profile.default),
        roc=roc_line(tally),
        det=Line(accepts, rejects),
    )
