"""The declaration of ZEBRA."""

from __future__ import annotations

from monitor.evaluation.context import EvaluationContext
from monitor.evaluation.family import Extremes, Family, FamilyResult, FigureEntry, LimitRule
from monitor.evaluation.zebra.curves import DRAWINGS, curves
from monitor.evaluation.zebra.figures import figures

__all__ = ["FAMILY"]

_FIGURES = (
    FigureEntry("d_ece", "zebra.d_ece_bits",
                "bits disclosed on average over all beliefs held before", LimitRule("fitted")),
    FigureEntry("log10_l", "zebra.log10_l",
                "the strongest evidence in any score, decimal logarithm",
                LimitRule("none", why="one trial decides it")),
    FigureEntry("tag", "zebra.tag", "its category, 0 and A to F"),
)  # fmt: skip


def _compute(context: EvaluationContext) -> FamilyResult:
    made = figures(context.pool, context.pool_weights, context.counts)
    return FamilyResult(made, curves=curves(context.counts))


FAMILY = Family(
    key="zebra",
    place=40,
    title="Expected and worst case (ZEBRA)",
    caveat="The tag depends on how many trials there are: perfect separation of a few scores "
    "still reads B or C. Read it against the ceiling that the counts allow. It is an estimate of "
    "the worst case, not a bound.",
    needs=("pool",),
    figures=_FIGURES,
    compute=_compute,
    main=("zebra.d_ece_bits", "zebra.tag"),
    drawings=DRAWINGS,
    extremes=Extremes(
        monotone=("",),
        at_ceiling=("d_ece", "log10_l"),
        at_floor=("d_ece",),
        flat_at_floor=("d_ece", "log10_l"),
        made=figures,
    ),
)
