"""Scaling of rows to a size near 1, so that their squares neither overflow nor vanish."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from monitor.types import AnyArray

__all__ = ["near_one"]

_Doubles: TypeAlias = NDArray[np.float64]


def near_one(rows: AnyArray) -> _Doubles:
    """Each row divided by a power of two, which changes no digit: its largest is below 1.

    Args:
        rows: shape (..., n), finite.

    Returns:
        shape (..., n).

    Example:
        >>> near_one(np.array([[3e300, 0.0], [-6.0, 5.0]])).round(3).tolist()
        [[0.56, 0.0], [-0.75, 0.625]]
    """
    values = np.asarray(rows, dtype=np.float64)
    _, exponent = np.frexp(np.abs(values).max(axis=-1, keepdims=True))
    return np.asarray(np.ldexp(values, -exponent))
