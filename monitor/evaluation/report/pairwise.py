"""Differences of all pairs of systems, with limits and p-values corrected for their number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from monitor.evaluation.report.differences import ERROR, Difference, between, paired
from monitor.evaluation.report.report import Report

__all__ = ["Pair", "all_pairs", "p_text", "p_value", "said_of"]

_STEPS = 24


@dataclass(frozen=True)
class Pair:
    """One system less another.

    Attributes:
        first: name of what is taken off.
        other: name of what it is taken off from.
        paired: whether both were tested on the same speakers, and resampled together.
        differences: by key; their limits hold for all pairs of a figure together in 95 % of cases.
        p: by key, times the number of pairs (Bonferroni, as the limits); None where there are none.
    """

    first: str
    other: str
    paired: bool
    differences: Mapping[str, Difference]
    p: Mapping[str, float | None]

    def to_json(self) -> dict[str, Any]:
        """Ready for ``json.dumps(..., allow_nan=False)``."""
        return {
            "first": self.first,
            "other": self.other,
            "paired": self.paired,
            "differences": {
                key: {
                    "value": _finite(each.value),
                    "low": _finite(each.low),
                    "high": _finite(each.high),
                    "p": self.p[key],
                    "significant": each.significant,
                }
                for key, each in self.differences.items()
            },
        }


def all_pairs(reports: Sequence[Report], keys: Sequence[str] | None = None) -> tuple[Pair, ...]:
    """Compare every system with every other.

    Args:
        reports: two or more, of different names, as `compare`.
        keys: of the figures, in their order; all by default.

    Returns:
        pairs in the order of the reports; nothing of fewer than two.
    """
    couples = list(combinations(reports, 2))
    if not couples:
        return ()
    have = dict.fromkeys(key for report in reports for key in report.figures)
    wanted = [key for key in (have if keys is None else keys) if key in have]
    error = ERROR / len(couples)
    found = [{key: between(a, b, key, error) for key in wanted} for a, b in couples]
    return tuple(
        Pair(
            a.name,
            b.name,
            paired(a, b),
            differences,
            {key: _times(len(couples), p_value(a, b, key)) for key in wanted},
        )
        for (a, b), differences in zip(couples, found, strict=True)
    )


def _times(count: int, p: float | None) -> float | None:
    return None if p is None else min(1.0, count * p)


def p_value(first: Report, other: Report, key: str) -> float | None:
    """The smallest error with which the limits of a difference leave zero out.

    Found by halving, so it goes with the limits, however they are made.

    Returns:
        at least one in the number of resamples: they tell no more; None where there are no limits.
    """
    least = 1 / max(min(first.replicates, other.replicates), 1)
    if between(first, other, key, least).low is None:
        return None
    if between(first, other, key, least).significant:
        return least
    low, high = least, 1.0
    for _ in range(_STEPS):
        middle = (low * high) ** 0.5
        if between(first, other, key, middle).significant:
            high = middle
        else:
            low = middle
    return high


def p_text(p: float | None, least: float) -> str:
    """A p-value to read; what resamples cannot tell from less is marked so.

    Args:
        p: of a pair.
        least: the smallest that there can be: pairs by resamples.

    Example:
        >>> p_text(0.0312, 0.015), p_text(0.015, 0.015), p_text(None, 0.015)
        ('0.031', '≤ 0.015', '')
    """
    if p is None:
        return ""
    return f"{p:.2g}" if p > least * (1 + 1e-9) else f"\N{LESS-THAN OR EQUAL TO} {p:.2g}"


def said_of(pairs: Sequence[Pair], replicates: int) -> tuple[str, ...]:
    """How differences are to be read, one sentence each."""
    many = len(pairs)
    together = (
        f"limits hold for all {many} pairs of a figure together in 95 % of cases, and p is that "
        f"of one pair times {many} (Bonferroni)"
        if many > 1
        else "limits are 95 %"
    )
    said = [
        f"Differences of pairs (of shares in points of a percent): {together}; figures are not "
        "corrected for each other."
    ]
    if replicates and many / replicates > ERROR:
        said.append(
            f"{replicates} resamples cannot tell p below {many / replicates:.2g} of so many pairs: "
            f"give {int(4 * many / ERROR)} or more replicates."
        )
    if not replicates:
        said.append("Nothing was resampled: there are no limits and no p.")
    return tuple(said)


def _finite(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)
