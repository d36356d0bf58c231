"""Warns where higher scores mean less alike: distances passed as scores."""

from __future__ import annotations

import numpy as np

from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.protocols import ScoredComparisons
from monitor.types import FloatArray, IntArray

__all__ = ["list_points_away", "list_warning", "points_away", "warning"]

_ERRORS = 3.0
"""Standard errors below chance, over trials and again over speakers."""


def points_away(matrix: ScoreMatrix) -> bool:
    """Whether right speakers rank lower than chance allows.

    Both tests must say so: over trials, as if they were independent, and over the means of the
    speakers, whose own trials are alike.

    Args:
        matrix: the trials.

    Example:
        >>> target = np.repeat(np.arange(5), 4)
        >>> alike = np.eye(5)[target]
        >>> points_away(ScoreMatrix(alike, target)), points_away(ScoreMatrix(1 - alike, target))
        (False, True)
    """
    count, trials = matrix.population, matrix.trials
    below = 1.0 - (matrix.better + (matrix.tied - 1) / 2) / (count - 1)  # share of the others
    error = float(np.sqrt((count + 1) / (12 * (count - 1) * trials)))
    return _below_chance(below, matrix.owner, error)


def list_points_away(scores: ScoredComparisons) -> bool:
    """The same of comparisons that have no ranks: mated scores among all non-mated ones.

    Example:
        >>> matrix = ScoreMatrix(1 - np.eye(5)[np.repeat(np.arange(5), 4)], np.repeat(range(5), 4))
        >>> list_points_away(matrix)
        True
    """
    others = np.sort(np.concatenate([block.ravel() for _, block in scores.non_mated_blocks()]))
    places = sum(np.searchsorted(others, scores.mated, side) for side in ("left", "right"))
    below = np.asarray(places) / (2 * others.size)
    error = float(np.sqrt((1 / below.size + 1 / others.size) / 12))
    return _below_chance(below, scores.owner, error)


def _below_chance(below: FloatArray, owner: IntArray, error: float) -> bool:
    if 0.5 - float(below.mean()) <= _ERRORS * error:
        return False
    tests = np.bincount(owner)
    means = (np.bincount(owner, below) / np.maximum(tests, 1))[tests > 0]
    if means.size < 2:
        return True
    return bool(0.5 - means.mean() > _ERRORS * means.std(ddof=1) / np.sqrt(means.size))


def list_warning(scores: ScoredComparisons) -> str:
    """As `warning`, where there are no ranks."""
    if not list_points_away(scores):
        return ""
    return (
        f"{scores.name} looks like distances: comparisons of one speaker score lower than others. "
        "Every figure takes higher for more alike: if lower is, give the negatives of these "
        "numbers."
    )


def warning(matrix: ScoreMatrix, what: str = "") -> str:
    """What to say on top of a report; empty where scores point the right way.

    Args:
        matrix: the trials.
        what: they are, where not the scores.
    """
    if not points_away(matrix):
        return ""
    first = float((1.0 / matrix.tied * (matrix.better == 0)).mean())
    return (
        f"{what or matrix.name} looks like distances: in {100 * first:.3g} % of the trials the "
        f"right person came first, where guessing does that in {100 / matrix.population:.3g} %, "
        "and most came late. Every figure takes higher for more alike: if lower is, give the "
        "negatives of these numbers."
    )
