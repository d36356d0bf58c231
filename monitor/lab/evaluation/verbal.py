"""Likelihood ratios in words: the verbal scale of ENFSI's guideline of 2015.

Source: ENFSI, Guideline for evaluative reporting in forensic science (2015). Its ranges are 2-10,
10-100, 100-1000, 1000-10,000, 10,000-1,000,000 and above. Inverse ratios support the alternative.
The ranges share their ends and omit 1 to 2. Here an end has the weaker word, and below 2 there is
no support. Ratios beyond those that the data support (ELUB) have the word of the bound.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from monitor.arrays import real_numbers
from monitor.errors import UsageError
from monitor.types import FloatArray, IntArray

TERMS = ("no", "weak", "moderate", "moderately strong", "strong", "very strong", "extremely strong")
"""Degrees of support, the weakest first."""
EDGES = (2.0, 10.0, 1e2, 1e3, 1e4, 1e6)
"""Likelihood ratios above which the next degree begins; the first edge itself has degree 1."""
SOURCE = (
    "Verbal scale: ENFSI, Guideline for evaluative reporting in forensic science (2015). Its "
    "ranges share their ends. Here, an end gets the weaker term, and below 2 there is no support."
)
_EDGE_BITS = np.log2(EDGES)
_SLACK_BITS = 1e-9  # tolerance of rounded logarithms, so that 1000 is exactly 1000


class VerbalRow(NamedTuple):
    """A degree of support, and the comparisons that have it."""

    degree: int  # index in `TERMS`, negative for different speakers
    # same, different: share of same-speaker and of different-speaker comparisons
    same: float
    different: float
    within: bool  # whether calibration supports ratios of this degree at all


def degrees_of_support(
    bits: ArrayLike, bounds_bits: tuple[float, float] = (-math.inf, math.inf)
) -> IntArray:
    """Grade evidence: indices in `TERMS`, negative if it supports different speakers.

    Args:
        bits: log2 likelihood ratios, any shape; infinite ones are cut to the bounds.
        bounds_bits: lower and upper bound supported by the data (ELUB), to which bits are clipped.

    Raises:
        UsageError: a ratio or a bound is NaN.

    Example:
        >>> degrees_of_support(np.log2([1, 2, 10, 11, 1e6, 1e7, 1 / 50])).tolist()
        [0, 1, 1, 2, 5, 6, -2]
        >>> degrees_of_support([np.inf, -np.inf], (-5.0, 9.0)).tolist()
        [3, -2]
    """
    values = real_numbers(bits, "bits", np.float64)
    low, high = bounds_bits
    if np.isnan(values).any() or math.isnan(low) or math.isnan(high):
        raise UsageError("a likelihood ratio of NaN has no verbal term: leave it out")
    values = np.clip(values, min(low, 0.0), max(high, 0.0))
    size = np.abs(values)
    degree = (size >= _EDGE_BITS[0] - _SLACK_BITS).astype(np.intp)
    for edge in _EDGE_BITS[1:]:
        degree += size > edge + _SLACK_BITS
    return np.asarray(np.where(values < 0, -degree, degree))


def describe_degree(degree: int) -> str:
    """Format a degree with what it supports.

    Example:
        >>> describe_degree(2), describe_degree(-1), describe_degree(0)
        ('moderate support for one speaker', 'weak support for two speakers', 'no support')
    """
    if not degree:
        return "no support"
    return f"{TERMS[abs(degree)]} support for {'one speaker' if degree > 0 else 'two speakers'}"


def verbal_rows(
    same_bits: FloatArray, different_bits: FloatArray, bounds_bits: tuple[float, float]
) -> list[VerbalRow]:
    """Count comparisons by degree of support, the strongest for one speaker first.

    Log2 likelihood ratios are of same-speaker comparisons, shape (n,), and of different-speaker
    comparisons, shape (m,).
    """
    lowest, highest = degrees_of_support(bounds_bits, bounds_bits).tolist()
    same = degrees_of_support(same_bits, bounds_bits)
    different = degrees_of_support(different_bits, bounds_bits)
    return [
        VerbalRow(
            degree,
            float((same == degree).mean()),
            float((different == degree).mean()),
            lowest <= degree <= highest,
        )
        for degree in range(len(EDGES), -len(EDGES) - 1, -1)
    ]


def ratio_range(degree: int) -> str:
    """Format the likelihood ratios of a degree.

    Example:
        >>> ratio_range(1), ratio_range(-2), ratio_range(6), ratio_range(0)
        ('2 to 10', '1/100 to 1/10', 'over 1,000,000', '1/2 to 2')
    """
    if degree == 0:
        return f"1/{EDGES[0]:g} to {EDGES[0]:g}"
    low = EDGES[abs(degree) - 1]
    if abs(degree) == len(EDGES):
        return f"over {low:,.0f}" if degree > 0 else f"below 1/{low:,.0f}"
    high = EDGES[abs(degree)]
    return f"{low:,.0f} to {high:,.0f}" if degree > 0 else f"1/{high:,.0f} to 1/{low:,.0f}"
