"""The declaration of ranks as anonymity."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from monitor.evaluation.anonymity.figures import CUTS, figures, roles_note
from monitor.evaluation.context import EvaluationContext
from monitor.evaluation.family import Extremes, Family, FamilyResult, FigureEntry, LimitRule

__all__ = ["FAMILY"]

_AT_MOST = FigureEntry("rank_{k}", "anonymity.share_rank_at_most_{k}",
                       "share of trials at rank {k} or nearer", LimitRule("share"))  # fmt: skip
_FIGURES = (
    FigureEntry("mean_rank", "anonymity.mean_rank_p50", "mean rank of the median speaker",
                LimitRule("given")),
    FigureEntry("mean_rank_p1", "anonymity.mean_rank_p1",
                "mean rank of the most exposed 1 % of speakers",
                LimitRule("given", few_decide=True)),
    *(_AT_MOST.at(k=k) for k in CUTS),
    FigureEntry("worst_rank", "anonymity.worst_rank", "the nearest that any trial comes",
                LimitRule("none")),
)  # fmt: skip


def _compute(context: EvaluationContext) -> FamilyResult:
    """What was anonymised is said once, not at each figure."""
    made = figures(context.ranked, context.weights, roles=context.roles)
    who = roles_note(context.roles)
    bare = (replace(each, note=each.note.removeprefix(who).strip()) for each in made)
    return FamilyResult(tuple(bare), (who,))


FAMILY = Family(
    key="anonymity",
    place=70,
    title="Ranks as anonymity (USC)",
    caveat="A mean rank is not k-anonymity: one speaker at rank 1 hides in an average of "
    "100. Look at P(rank ≤ k) and at the worst trial.",
    needs=("matrix",),
    figures=_FIGURES,
    compute=_compute,
    main=("anonymity.mean_rank_p50",),
    extremes=Extremes(
        monotone=("",),
        rowwise=("",),
        at_ceiling=("share",),
        at_floor=("share", "mean_rank_p50"),
        flat_at_floor=("share", "mean_rank_p50"),
        made=partial(figures, cuts=(1, 2, 5)),
    ),
)
