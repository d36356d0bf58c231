"""The figures of several trials of one speaker, and their curve beside its guides."""

from __future__ import annotations

import numpy as np

from monitor.evaluation.figure import Figure
from monitor.evaluation.longitudinal.longitudinal_curve import LongitudinalCurve
from monitor.phrases import plural
from monitor.plots.evaluation import Line
from monitor.types import FloatArray

__all__ = ["RULE", "figures", "lines"]

RULE = "count"
"""The rule that is drawn: calibrated after any number of trials."""

_NOTES = {
    "sum": "trials taken as independent: overconfident where they are alike",
    "average": "mean of the evidence: as sure as one trial",
    "temperature": "one temperature for any number of trials",
    "count": "temperature grows with how alike trials of one speaker are",
    "embedding": "temperature grows with how alike these very trials are",
    "rank": "product of the rank laws: trials taken as independent",
}


def figures(
    curve: LongitudinalCurve, weights: FloatArray | None = None, tested: int | None = None
) -> tuple[Figure, ...]:
    """Bits after all trials of the curve by each rule.

    Args:
        curve: of a matrix.
        weights: shape (B, S), from `resamples`.
        tested: S, the speakers who have trials; those of the curve where not given.

    Returns:
        ``longitudinal.RULE_bits`` of each rule. What the trials amount to if they were independent
        is in the curve (`LongitudinalCurve.effective_trials`), and no figure: it has no limits.
    """
    last = int(curve.trials[-1])
    among = len(curve.tested)
    who = f"over {among} of {tested or among} speakers, who have {plural(last, 'trial')} or more"
    made = []
    for rule in curve.rules:
        note = "; ".join(part for part in (_NOTES.get(rule, ""), curve.note, who) if part)
        made.append(
            Figure(
                f"longitudinal.{rule}_bits",
                f"{plural(last, 'trial')}: {rule}",
                float(curve.mean_bits(rule)[-1]),
                "bits",
                replicates=None if weights is None else curve.replicates(weights, rule)[:, -1],
                ceiling=curve.ceiling_bits,
                floor=0.0,
                note=note,
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
