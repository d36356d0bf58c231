"""Formats values for sentences."""

from __future__ import annotations

import math

from monitor.evaluation.figure import Figure

__all__ = ["finite_value", "share_aloud"]


def finite_value(figure: Figure | None) -> float | None:
    """The value of a figure; None where there is none, or it is infinite.

    Example:
        >>> finite_value(Figure("a.b", "B", float("inf"), "nats")), finite_value(None)
        (None, None)
    """
    value = None if figure is None else figure.value
    return value if value is not None and math.isfinite(value) else None


def share_aloud(value: float) -> str:
    """A share for reading aloud.

    Example:
        >>> [share_aloud(value) for value in (0.279, 0.01, 0.998, 0.00012, 0.0, 1.0)]
        ['28 %', '1 %', '99.8 %', '0.012 %', '0 %', '100 %']
    """
    percent = 100 * value
    if 0 < percent < 10 or 99 < percent < 100:
        digits = 2 if percent < 10 else 3
        return f"{percent:.{digits}g} %"
    return f"{percent:.0f} %"
