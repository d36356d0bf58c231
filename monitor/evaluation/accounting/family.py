"""The declaration of the accounting for a declared epsilon."""

from __future__ import annotations

from collections.abc import Iterator

from monitor.evaluation.accounting.account import account
from monitor.evaluation.context import EvaluationContext
from monitor.evaluation.family import Family, FamilyResult, FigureEntry
from monitor.evaluation.figure import Figure

__all__ = ["FAMILY"]

_TRIALS = (1, 10, 100, 1000)
"""Trials that a declared epsilon is accounted for."""
_RULES = ("basic", "advanced", "optimal")


def _compute(context: EvaluationContext) -> FamilyResult:
    assert context.epsilon is not None
    return FamilyResult(tuple(_figures(context.epsilon, context.delta)))


def _figures(epsilon: float, delta: float) -> Iterator[Figure]:
    found = account(epsilon, delta, max(_TRIALS))
    for row in found.rows:
        if row.trials not in _TRIALS:
            continue
        values = (row.basic_nats, row.advanced_nats, row.optimal_nats)
        for rule, value in zip(_RULES, values, strict=True):
            yield Figure(
                f"accounting.{rule}_nats_{row.trials}",
                f"{row.trials:,} trial{'s' if row.trials > 1 else ''}: {rule}",
                value,
                "nats",
                floor=0.0,
                note=found.note,
            )


FAMILY = Family(
    key="accounting",
    place=100,
    title="Accounting for a declared epsilon",
    caveat="The guides beside the curve are a scale, not a guarantee: bits of MeanD are "
    "not an epsilon. The accounting holds for the epsilon that was declared, if that is true.",
    needs=("epsilon",),
    figures=tuple(
        FigureEntry(
            f"{rule}_{count}",
            f"accounting.{rule}_nats_{count}",
            f"epsilon left after {count} trial{'s' * (count > 1)}, {rule} composition",
        )
        for count in _TRIALS
        for rule in _RULES
    ),
    compute=_compute,
)
