"""The declaration of membership inference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from monitor.evaluation.context import EvaluationContext
from monitor.evaluation.family import (
    Derived,
    Extremes,
    Family,
    FamilyResult,
    FigureEntry,
    LimitRule,
)
from monitor.evaluation.figure import Figure
from monitor.evaluation.membership.figures import figures
from monitor.evaluation.words import finite_value, share_aloud
from monitor.maths.privacyloss import epsilon_nats

__all__ = ["FAMILY"]

_RATES = ("1e-2", "1e-3", "1e-4")


def _epsilon_end(figure: Figure, tpr: float) -> float:
    return max(0.0, float(epsilon_nats(tpr, float(figure.key.rpartition("_at_")[2]))))


_OF_TPR = Derived(lambda key: key.replace(".epsilon_nats_at_", ".tpr_at_"), _epsilon_end)
_DEPENDENT = LimitRule("none", why="scores are not independent")
_AT_A_RATE = (
    FigureEntry("tpr_{rate}", "membership.tpr_at_{rate}",
                "share recognised by who allows a false alarm rate of {rate}", LimitRule("share")),
    FigureEntry("fpr_{rate}", "membership.realised_fpr_at_{rate}",
                "the rate that was reached for {rate}"),
    FigureEntry("epsilon_{rate}", "membership.epsilon_nats_at_{rate}",
                "log-ratio of the two, nats", LimitRule("derived", derived=_OF_TPR)),
    FigureEntry("epsilon_low_{rate}", "membership.epsilon_lower_nats_at_{rate}",
                "what the mechanism's epsilon is at least, nats"),
    FigureEntry("epsilon_mirrored_{rate}", "membership.epsilon_lower_mirrored_nats_at_{rate}",
                "the same where scores point away"),
    FigureEntry("tpr_half_{rate}", "membership.half_trials_tpr_at_{rate}",
                "tpr_{rate} on half of the scores", _DEPENDENT),
    FigureEntry("epsilon_half_{rate}", "membership.half_trials_epsilon_nats_at_{rate}",
                "epsilon_{rate} on half of the scores", _DEPENDENT),
)  # fmt: skip


def _compute(context: EvaluationContext) -> FamilyResult:
    return FamilyResult(figures(context.pool, context.pool_weights, delta=context.delta))


def _meaning(found: Mapping[str, Figure], _speakers: int) -> Iterator[str]:
    sure = finite_value(found.get("membership.tpr_at_1e-3"))
    if sure is not None:
        yield (
            "An attacker who allows one false alarm in a thousand recognises "
            f"{share_aloud(sure)} of a wanted person's recordings; guessing would recognise 0.1 %."
        )


FAMILY = Family(
    key="membership",
    place=90,
    title="At few false positives (VoxGuard)",
    caveat="A true positive rate at 1e-4 needs ten thousand non-mated scores at least, and "
    "with ties the rate that was realised is another. epsilon is a lower bound on what the "
    "mechanism leaks: a small one proves nothing.",
    needs=("pool",),
    figures=tuple(entry.at(rate=rate) for rate in _RATES for entry in _AT_A_RATE),
    compute=_compute,
    main=("membership.tpr_at_1e-3", "membership.epsilon_lower_nats_at_1e-3"),
    meaning=_meaning,
    extremes=Extremes(
        monotone=("",),
        at_ceiling=("tpr", "epsilon_lower_nats", "half_trials_tpr"),
        at_floor=("tpr", "epsilon_lower"),
        flat_at_floor=("tpr", "epsilon", "half_trials"),
        made=partial(figures, rates=(0.01, 0.1, 0.5)),
    ),
)
