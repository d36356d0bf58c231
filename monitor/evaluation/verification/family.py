"""The declaration of speaker verification."""

from __future__ import annotations

import numpy as np

from monitor.evaluation.context import EvaluationContext
from monitor.evaluation.family import Extremes, Family, FamilyResult, FigureEntry, LimitRule
from monitor.evaluation.verification.curves import DRAWINGS, curves
from monitor.evaluation.verification.figures import figures

__all__ = ["FAMILY"]

_FIGURES = (
    FigureEntry("eer", "verification.eer_rocch",
                "equal error rate on the convex hull; 50 % is no evidence",
                LimitRule("fitted", most=0.5)),
    FigureEntry("eer_nearest", "verification.eer_nearest",
                "the same at the nearest threshold (VoicePrivacy)", LimitRule("share", most=1.0)),
    FigureEntry("cllr", "verification.cllr_bits",
                "cost of the scores as log-likelihood ratios, bits", LimitRule("t", rest=np.nan)),
    FigureEntry("min_cllr", "verification.min_cllr_bits",
                "that cost calibrated ideally; 1 is no evidence", LimitRule("fitted", most=1.0)),
)  # fmt: skip


def _compute(context: EvaluationContext) -> FamilyResult:
    made = figures(context.pool, context.pool_weights, context.counts)
    return FamilyResult(made, curves=curves(context.counts))


FAMILY = Family(
    key="verification",
    place=50,
    title="Verification",
    caveat="The equal error rate is the error at one point in the middle, where no "
    "attacker needs to work: two systems of one EER can differ a hundredfold in their sure hits. "
    "Its two rules differ on few or tied scores.",
    needs=("pool",),
    figures=_FIGURES,
    compute=_compute,
    main=("verification.eer_rocch", "verification.min_cllr_bits"),
    drawings=DRAWINGS,
    extremes=Extremes(
        monotone=("eer", "min_cllr"),
        at_floor=("eer", "min_cllr"),
        flat_at_floor=("eer", "min_cllr"),
        scaled=("cllr",),
        near=("eer_nearest",),
        made=figures,
    ),
)
