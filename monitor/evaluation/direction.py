"""Do higher scores mean more alike? Distances, passed as scores, are found out here."""

from __future__ import annotations

import numpy as np

from monitor.evaluation.matrix import ScoreMatrix

__all__ = ["points_away", "warning"]

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
    lead = 0.5 - float(below.mean())
    if lead <= _ERRORS * np.sqrt((count + 1) / (12 * (count - 1) * trials)):
        return False
    means = np.bincount(matrix.owner, below) / np.bincount(matrix.owner)
    if means.size < 2:
        return True
    error = float(means.std(ddof=1)) / np.sqrt(means.size)
    return bool(0.5 - means.mean() > _ERRORS * error)


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
