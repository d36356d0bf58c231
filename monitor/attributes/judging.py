"""How well an attribute is told at low false positive rates, with limits over speakers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from monitor.errors import UsageError
from monitor.evaluation.membership.operating import (
    OperatingPoint,
    allowed_alarms,
    operating_point,
)
from monitor.evaluation.verification.error_rates import eer
from monitor.maths.bootstrap import REPLICATES, speaker_weights
from monitor.maths.estimate import Estimate
from monitor.maths.privacyloss import DELTA, epsilon_nats
from monitor.phrases import plural
from monitor.types import BoolArray, FloatArray, IntArray

__all__ = ["RATES", "AtRate", "AttributeJudgement", "judged"]

RATES = (1e-2, 1e-3)
"""False positive rates that figures are given at."""


@dataclass(frozen=True)
class AtRate:
    """What an attacker gets who allows a false positive rate.

    Attributes:
        asked: the rate that is allowed.
        realised: the rate that was reached, at most the former.
        realised_high: what it may be among other readers, the upper 95 % limit.
        tpr, tpr_low, tpr_high: share of the excerpts with the attribute that are told at this very
            threshold, with 95 % limits over readers.
        epsilon_nats: VoxGuard eq. (5), at least 0; None where it is infinite.
        epsilon_low_nats: what the mechanism's epsilon is at least, with 95 % confidence.
        note: what the numbers cannot show; mostly empty.
    """

    asked: float
    realised: float
    realised_high: float
    tpr: float
    tpr_low: float
    tpr_high: float
    epsilon_nats: float | None
    epsilon_low_nats: float
    note: str


@dataclass(frozen=True)
class AttributeJudgement:
    """How well readers with an attribute are told from those without.

    Attributes:
        readers_with, readers_without: how many were judged.
        excerpts_with, excerpts_without: stretches of their speech.
        eer, eer_low, eer_high: equal error rate (of the ROC's convex hull), a share, with limits.
        at: for each of the rates.
    """

    readers_with: int
    readers_without: int
    excerpts_with: int
    excerpts_without: int
    eer: float
    eer_low: float
    eer_high: float
    at: tuple[AtRate, ...]


def judged(
    scores: FloatArray,
    whose: Sequence[str],
    has: Mapping[str, bool],
    *,
    rates: tuple[float, ...] = RATES,
    delta: float = DELTA,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> AttributeJudgement:
    """Judge the scores of an attacker on readers it did not learn from.

    A threshold is strict, and stands where the non-mated scores allow it (as in
    `monitor.evaluation.membership`). Excerpts of one reader are alike, so limits come of readers
    drawn anew, of either group by itself; those of the rates are at that very threshold, since few
    readers cannot say where another one would stand. The bound on epsilon is Clopper and Pearson's,
    one-sided at 0.025 for each rate, of as many independent trials as the readers' agreement leaves
    (Korn and Graubard, see `monitor.maths.intervals.share_limits`): with one excerpt a reader it is
    the plain one.

    Args:
        scores: shape (n,), higher where the attribute is more probable.
        whose: n readers.
        has: whether each has the attribute.
        rates: false positive rates to allow.
        delta: of the (epsilon, delta)-privacy in question.
        replicates: resamples of readers.
        seed: of the resamples.

    Raises:
        UsageError: fewer than two readers with or without it.
    """
    readers, reader = np.unique(np.asarray(whose), return_inverse=True)
    having = np.array([has[who] for who in readers.tolist()], bool)
    counts = int(having.sum()), int((~having).sum())
    if min(counts) < 2:
        raise UsageError(
            f"{plural(counts[0], 'reader')} with the attribute and {counts[1]} without it: two of "
            "each are needed to be judged"
        )
    pool = _Pool(scores, reader, having)
    weights = np.concatenate([_drawn(having, replicates, seed), 1.0 - np.eye(readers.size)])
    excerpts = int(having[reader].sum()), int((~having)[reader].sum())
    rate, drawn = eer(pool.mated, pool.other), _eers(pool, weights)
    error = Estimate(
        rate, drawn[:replicates], drawn[replicates:], min(counts), min(excerpts)
    ).share_limits(0.0, 0.5)
    at = []
    for asked in rates:
        point = operating_point(pool.mated, pool.other, asked)
        told = _limits(pool.mated, pool.owner, point.threshold, weights, replicates)
        _, mistaken = _limits(pool.other, pool.other_owner, point.threshold, weights, replicates)
        loss = float(epsilon_nats(point.tpr, point.fpr))
        at.append(
            AtRate(
                asked, point.fpr, mistaken, point.tpr, *told,
                max(loss, 0.0) if np.isfinite(loss) else None,
                _epsilon_low(told[0], mistaken, delta),
                _note(asked, point, counts[1]),
            )
        )  # fmt: skip
    return AttributeJudgement(*counts, *excerpts, rate, *error, tuple(at))


class _Pool:
    """Scores by whether their reader has the attribute, and whose they are."""

    def __init__(self, scores: FloatArray, reader: IntArray, having: BoolArray) -> None:
        has = having[reader]
        self.mated, self.owner = np.asarray(scores[has], np.float64), reader[has]
        self.other, self.other_owner = np.asarray(scores[~has], np.float64), reader[~has]


def _drawn(having: BoolArray, replicates: int, seed: int) -> FloatArray:
    """How often each reader counts: both groups keep their size."""
    weights = np.zeros((replicates, having.size))
    for group, place in ((having, 0), (~having, 1)):
        weights[:, group] = speaker_weights(int(group.sum()), replicates, seed + place)
    return weights


def _eers(pool: _Pool, weights: FloatArray) -> FloatArray:
    times = weights.astype(np.int64)
    return np.array(
        [
            eer(
                np.repeat(pool.mated, each[pool.owner]),
                np.repeat(pool.other, each[pool.other_owner]),
            )
            for each in times
        ]
    )


def _epsilon_low(accepted: float, mistaken: float, delta: float) -> float:
    """Of each rate at its limit against the attacker."""
    ratios = (accepted - delta) / mistaken, (1 - mistaken - delta) / (1 - accepted)
    return float(np.log(max(1.0, *ratios)))


def _limits(
    scores: FloatArray, owner: IntArray, threshold: float, weights: FloatArray, replicates: int
) -> tuple[float, float]:
    """Of the share of some scores above a threshold, those of one reader being alike."""
    people = weights.shape[1]
    above = np.bincount(owner, scores > threshold, minlength=people)
    total = np.bincount(owner, minlength=people)
    share = float(above.sum() / total.sum())
    drawn = (weights @ above) / (weights @ total)
    left_out = drawn[replicates:][total > 0]
    units = int((total > 0).sum())
    found = Estimate(share, drawn[:replicates], left_out, units, int(total.sum()))
    return found.share_limits(0.0, 1.0)


def _note(asked: float, point: OperatingPoint, readers: int) -> str:
    if not allowed_alarms(asked, point.non_mated):
        return (
            f"{plural(point.non_mated, 'excerpt')} without the attribute cannot resolve a false "
            f"positive rate of {asked:g}: this is where none is accepted by mistake"
        )
    if readers * asked < 1:
        return (
            f"{point.non_mated} excerpts of {readers} readers: a false positive rate of {asked:g} "
            "among readers is not resolved"
        )
    return ""
