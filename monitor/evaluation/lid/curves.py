"""The picture of LID: how many trials disclose at least so many bits."""

from __future__ import annotations

import numpy as np

from monitor.plots.evaluation import POINTS, Drawing, Line, paint_local
from monitor.types import FloatArray

__all__ = ["DRAWINGS", "exceeding"]

DRAWINGS = (
    Drawing(
        "local_bits",
        "How much single trials disclose",
        "Read at a number of bits how many trials disclose at least as much. The tail on the right "
        "is the worst case, left of 0 the attacker is misled.",
        paint_local,
    ),
)


def exceeding(values: FloatArray) -> Line:
    """Share of the values that are at least so large, at evenly spread places.

    Example:
        >>> line = exceeding(np.array([1.0, 2.0, 2.0, 3.0]))
        >>> line.x.tolist(), line.y.tolist()
        ([1.0, 2.0, 2.0, 3.0], [1.0, 0.75, 0.75, 0.25])
    """
    ordered = np.sort(values)
    at = np.unique(np.linspace(0, len(ordered) - 1, min(POINTS, len(ordered))).astype(np.intp))
    x = ordered[at]
    above = len(ordered) - np.searchsorted(ordered, x, side="left")
    return Line(x, above / len(ordered))
