"""All families of metrics, and which limits each figure has: what simulation bears out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module

import numpy as np

from monitor.evaluation.family import Family, Figure, FigureEntry, LimitRule
from monitor.evaluation.scores.comparisons import Sample, resampled
from monitor.maths.statistics import Estimate

MODULES = (
    *("srd", "lid", "longitudinal", "among", "zebra", "verification", "linkage", "membership"),
    *("anonymity", "accounting"),
)
"""Of `monitor.evaluation`: each declares one family, ``FAMILY``."""


def families() -> tuple[Family, ...]:
    """Every family, in the order of reports.

    Example:
        >>> [family.key for family in families()][:3]
        ['srd', 'lid', 'longitudinal']
    """
    return _declared(MODULES)


@cache
def _declared(modules: tuple[str, ...]) -> tuple[Family, ...]:
    made = [import_module(f"monitor.evaluation.{each}").FAMILY for each in modules]
    return tuple(sorted(made, key=lambda family: family.place))


def family_of(key: str) -> Family | None:
    """The family of a figure's key, or of its own; None where there is none.

    Example:
        >>> family_of("zebra.tag").title
        'Expected and worst case (ZEBRA)'
    """
    stem = key.split(".")[0]
    return next((family for family in families() if family.key == stem), None)


def entry_of(key: str) -> FigureEntry | None:
    """What is declared of a figure; None where nothing is."""
    family = family_of(key)
    return None if family is None else family.entry(key)


def rule_of(key: str) -> LimitRule | None:
    """The rule for the limits of a figure; None where none was made."""
    entry = entry_of(key)
    return None if entry is None else entry.limits


# ------------------------------------------------------------------------------------------ limits
# Each family declares the rule of each of its figures (`monitor.evaluation.family.LimitRule`); the
# limits themselves are those of docs/method.md section 12. Coverage of each is measured by
# ``python -m benchmarks.coverage`` and stands in benchmarks/results/coverage.md. A figure that no
# rule names gets no limits. Where ranks cannot be told from those of permuted speakers, limits
# reach to what no evidence reads.

_GIVEN = LimitRule("given")
_UNKNOWN = LimitRule("none", why="how often they hold was not measured")


def limited(figures: Iterable[Figure], sample: Sample) -> tuple[Figure, ...]:
    """Give the figures of a family their limits, or say why they have none.

    `Figure.replicates` has one for each row of the sample's weights, without which nothing changes:
    those of the bootstrap stay there, the others go to `Figure.left_out`. Limits hold the value
    between them.
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
        most = rule.most or figure.ceiling
        if rule.how == "t" or most is None or most <= 0:
            low, high = found.t_limits()
        elif rule.how == "signed":
            low, high = found.signed_limits(most)
        else:
            low, high = found.share_limits(0.0, most, fitted=rule.how == "fitted")
        if rule.least is not None:
            low = max(low, rule.least)
        rest = figure.floor if rule.rest is None else rule.rest
        if sample.nothing and rest is not None and not np.isnan(rest):
            low, high = min(low, rest), max(high, rest)
    if low is None or high is None:
        return figure
    return replace(figure, low=min(low, figure.value), high=max(high, figure.value))


def _followed(figure: Figure, found: Mapping[str, Figure]) -> Figure:
    """Limits of what is a function of another figure are that function of its limits."""
    rule = rule_of(figure.key)
    if figure.value is None or rule is None or rule.source is None or rule.change is None:
        return figure
    low, high = found[rule.source(figure.key)].limits
    if low is None or high is None:
        return figure
    low, high = rule.change(figure, low), rule.change(figure, high)
    return replace(figure, low=min(low, figure.value), high=max(high, figure.value))
