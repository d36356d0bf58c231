"""Which limits each figure has, or why it has none: what simulation bears out.

Each family declares the rule of each of its figures (`monitor.evaluation.family.LimitRule`); the
limits themselves are those of docs/method.md section 12. Coverage of each is measured by
``python -m benchmarks.coverage`` and stands in docs/coverage.md. A figure that no rule names gets
no limits. Where ranks cannot be told from those of permuted speakers, limits reach to what no
evidence reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from monitor.evaluation.families import rule_of
from monitor.evaluation.family import LimitRule
from monitor.evaluation.figure import Figure
from monitor.evaluation.scores.speaker_bootstrap import Sample, resampled
from monitor.maths.estimate import Estimate

__all__ = ["limited"]

_GIVEN = LimitRule("given")
_UNKNOWN = LimitRule("none", why="how often they hold was not measured")


def limited(figures: Iterable[Figure], sample: Sample) -> tuple[Figure, ...]:
    """Give figures their limits, or say why they have none.

    Args:
        figures: of a family, all together; `Figure.replicates` has one for each row of the weights.
        sample: what they were resampled over; without weights nothing changes.

    Returns:
        the same; replicates are those of the bootstrap, `Figure.left_out` the others. Limits hold
        the value between them.
    """
    if sample.weights is None:
        return tuple(figures)
    whole = resampled(sample.weights)
    found = {}
    for figure in figures:
        if figure.replicates is not None:
            figure = replace(
                figure, replicates=figure.replicates[whole], left_out=figure.replicates[~whole]
            )
        found[figure.key] = _limited(figure, sample)
    return tuple(_followed(figure, found) for figure in found.values())


def _limited(figure: Figure, sample: Sample) -> Figure:
    rule = rule_of(figure.key) or (_GIVEN if figure.replicates is None else _UNKNOWN)
    why = rule.why or (rule.quiet if sample.nothing else "")
    if why and figure.value is not None:
        said = f"{figure.note.rstrip('.')}; " if figure.note else ""
        return replace(figure, low=None, high=None, note=f"{said}no limits: {why}")
    if figure.value is None or figure.replicates is None or figure.left_out is None:
        return figure
    low, high = figure.low, figure.high
    if rule.how not in ("given", "derived", "none"):
        found = Estimate(
            figure.value, figure.replicates, figure.left_out, sample.units, sample.trials
        )
        if not found.exists:
            return figure
        if sample.nothing:  # where ranks tell nobody apart, nobody decides a figure
            found = replace(found, left_out=found.left_out[:0])
        low, high = _of(found, rule, figure.ceiling)
        if rule.least is not None:
            low = max(low, rule.least)
        rest = figure.floor if rule.rest is None else rule.rest
        if sample.nothing and rest is not None and not np.isnan(rest):
            low, high = min(low, rest), max(high, rest)
    if low is None or high is None:
        return figure
    return replace(figure, low=min(low, figure.value), high=max(high, figure.value))


def _of(found: Estimate, rule: LimitRule, ceiling: float | None) -> tuple[float, float]:
    most = rule.most or ceiling
    if rule.how == "t" or most is None or most <= 0:
        return found.t_limits()
    if rule.how == "signed":
        return found.signed_limits(most)
    return found.share_limits(0.0, most, fitted=rule.how == "fitted")


def _followed(figure: Figure, found: Mapping[str, Figure]) -> Figure:
    """Limits of what is a function of another figure are that function of its limits."""
    rule = rule_of(figure.key)
    if figure.value is None or rule is None or rule.derived is None:
        return figure
    ends = found[rule.derived.source(figure.key)].limits
    if ends[0] is None or ends[1] is None:
        return figure
    low, high = (rule.derived.change(figure, end) for end in ends if end is not None)
    return replace(figure, low=min(low, figure.value), high=max(high, figure.value))
