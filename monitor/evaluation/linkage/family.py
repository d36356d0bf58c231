"""The declaration of linkability."""

from __future__ import annotations

import numpy as np

from monitor.evaluation.context import EvaluationContext
from monitor.evaluation.family import Extremes, Family, FamilyResult, FigureEntry, LimitRule
from monitor.evaluation.linkage.curves import DRAWINGS
from monitor.evaluation.linkage.figures import figures, pi_link_curve, rank_figures
from monitor.evaluation.linkage.separation import d_sys_figure
from monitor.plots.evaluation import Line

__all__ = ["FAMILY"]

_LINK = FigureEntry("pi_link_{count}", "linkage.pi_link_{count}",
                    "chance to pick the right one of {count}", LimitRule("share"),
                    ("matrix",))  # fmt: skip
_FIGURES = (
    FigureEntry("d_sys", "linkage.d_sys",
                "how little the two histograms of scores overlap, 0 to 1", LimitRule("fitted")),
    _LINK.at(count=2).named("pi_link_2", "chance to pick the right one of two people"),
    _LINK.at(count=10).named("pi_link_10", "chance to pick the right one of ten"),
    _LINK.at(count="all").named("pi_link", "chance to pick the right one of all"),
    FigureEntry("pi_sing", "linkage.pi_sing",
                "chance to isolate exactly one person; 37 % is no evidence", LimitRule("share"),
                ("matrix",)),
)  # fmt: skip


def _compute(context: EvaluationContext) -> FamilyResult:
    pooled = d_sys_figure(context.pool, context.pool_weights, context.counts)
    if context.matrix is None:
        return FamilyResult((pooled,))
    candidates, linked = pi_link_curve(context.matrix)
    return FamilyResult(
        (pooled, *rank_figures(context.matrix, context.weights)),
        curves={"linkage": Line(candidates.astype(np.float64), linked)},
    )


FAMILY = Family(
    key="linkage",
    place=60,
    title="Linking two recordings",
    caveat="Linkability means three things in the literature. D_sys depends on its bins: few "
    "mated scores read 0 even if they separate perfectly, and chance reads above 0. pi_link "
    "depends on the number of people to choose from: name it with the figure.",
    needs=("pool",),
    figures=_FIGURES,
    compute=_compute,
    main=("linkage.d_sys", "linkage.pi_link_10"),
    drawings=DRAWINGS,
    extremes=Extremes(
        monotone=("pi_link",),
        at_ceiling=("pi",),
        at_floor=("pi",),
        flat_at_floor=("d_sys",),
        made=figures,
    ),
)
