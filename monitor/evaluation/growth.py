"""What hearing a speaker several times discloses, as figures and as a curve beside its guides."""

from __future__ import annotations

import numpy as np

from monitor.evaluation.figure import Figure
from monitor.evaluation.longitudinal import LongitudinalCurve
from monitor.figures.evaluation import Line
from monitor.maths.bootstrap import limits_of_each
from monitor.maths.composition import guides
from monitor.types import FloatArray

__all__ = ["RULE", "figures", "guide_lines", "heard_line"]

RULE = "count"
"""The rule that is drawn: calibrated after any number of trials."""

_NOTES = {
    "sum": "trials taken as independent: overconfident where they are alike",
    "average": "limits would leave out how sure its calibration is, so that it has none",
    "temperature": "one temperature for any number of trials",
    "count": "temperature grows with how alike trials of one speaker are",
    "embedding": "temperature grows with how alike these very trials are",
    "rank": "product of the rank laws: trials taken as independent",
}


def figures(curve: LongitudinalCurve, weights: FloatArray | None = None) -> tuple[Figure, ...]:
    """Bits after all trials of the curve by each rule, and what they amount to.

    Args:
        curve: of a matrix.
        weights: shape (B, S), from `resamples`.

    Returns:
        ``longitudinal.RULE_bits`` of each rule and ``longitudinal.effective_trials``.
    """
    last = int(curve.trials[-1])
    made = []
    for rule in curve.rules:
        note = "; ".join(part for part in (_NOTES.get(rule, ""), curve.note) if part)
        made.append(
            Figure(
                f"longitudinal.{rule}_bits",
                f"{last} trials: {rule}",
                float(curve.mean_bits(rule)[-1]),
                "bits",
                draws=None
                if weights is None or rule == "average"
                else curve.draws(weights, rule)[:, -1],
                ceiling=curve.ceiling_bits,
                floor=0.0,
                note=note,
            )
        )
    made.append(
        Figure(
            "longitudinal.effective_trials",
            "independent trials in them",
            float(curve.effective_trials[-1]),
            "",
            ceiling=float(last),
            note=f"{last} / (1 + {curve.rho:.2f} x {last - 1}), as fitted for the rule count",
        )
    )
    return tuple(made)


def heard_line(curve: LongitudinalCurve, weights: FloatArray | None = None) -> Line:
    """Mean bits against the number of trials heard, with limits where there are weights."""
    low = high = None
    if weights is not None:
        draws = curve.draws(weights, RULE)
        low, high = limits_of_each(draws[~np.isnan(draws[:, 0])].T).T
    return Line(curve.trials.astype(np.float64), curve.mean_bits(RULE), low, high)


def guide_lines(curve: LongitudinalCurve) -> dict[str, Line]:
    """Linear and square-root growth from the first trial, capped at the ceiling: no guarantees."""
    start = max(float(curve.mean_bits(RULE)[0]), 0.0)
    x = curve.trials.astype(np.float64)
    linear, root = guides(x, 1.0, start, curve.ceiling_bits)
    return {"linear": Line(x, linear), "square root": Line(x, root)}
