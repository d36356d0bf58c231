"""The two lengths of a law's grid between which a length lies.

Source: docs/method.md section 4.
"""

from __future__ import annotations

import numpy as np

from monitor.types import BoolArray, FloatArray

__all__ = ["neighbours"]


def neighbours(lengths: FloatArray, reached: BoolArray, seconds: float) -> tuple[int, int, float]:
    """The neighbours of a length among those that were reached, in its logarithm.

    Args:
        lengths: of the grid, seconds, increasing, shape (n,).
        reached: which of them, at least one, shape (n,).
        seconds: the length; outside those that were reached the nearest holds.

    Returns:
        places of the one below and the one above, and the share of the latter, 0 to 1.

    Example:
        >>> neighbours(np.array([10.0, 30.0, 90.0]), np.array([True, False, True]), 30.0)
        (0, 2, 0.5)
    """
    logs, goal = np.log(lengths), np.log(max(seconds, 1e-9))
    columns = np.flatnonzero(reached)
    place = int(np.searchsorted(logs[columns], goal))
    left = int(columns[max(place - 1, 0)])
    right = int(columns[min(place, columns.size - 1)])
    gap = logs[right] - logs[left]
    return left, right, float(np.clip((goal - logs[left]) / gap, 0.0, 1.0)) if gap > 0 else 0.0
