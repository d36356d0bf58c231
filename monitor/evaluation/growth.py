"""What hearing a speaker several times discloses, as figures and as a curve beside its guides."""

from __future__ import annotations

import numpy as np

from monitor.evaluation.figure import Figure
from monitor.evaluation.longitudinal import LongitudinalCurve
from monitor.figures.evaluation import Line
from monitor.types import FloatArray

__all__ = ["RULE", "figures", "lines"]

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


def lines(
    curve: LongitudinalCurve, weights: FloatArray | None = None
) -> tuple[Line, dict[str, Line]]:
    """Mean bits against the number of trials, with limits where there are weights, and its guides.

    Returns:
        the curve; linear and square-root growth from its first trial, capped at the ceiling: no
        guarantees.
    """
    found = curve.against_trials(RULE, weights)
    x = found.trials.astype(np.float64)
    guides = {"linear": Line(x, found.linear), "square root": Line(x, found.root)}
    return Line(x, found.bits, found.low, found.high), guides
