"""Thresholds at low false positive rates: counts and resamples (VoxGuard section 4).

What scores strictly higher than the threshold is accepted as the same speaker.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.errors import UsageError
from monitor.maths.bootstrap import REPLICATES
from monitor.maths.privacyloss import finite_epsilon_nats
from monitor.maths.tail import Highest, RunningWeights, Tail
from monitor.protocols import ScoredComparisons
from monitor.types import FloatArray, IntArray

__all__ = [
    "OperatingPoint",
    "Rates",
    "allowed_alarms",
    "half_trials",
    "mirrored_points",
    "operating_point",
    "operating_points",
]

_SPARE = 200
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """What an attacker gets at one threshold.

    Attributes:
        threshold: accepted is what scores strictly higher.
        hits: mated scores above it.
        mated: how many mated scores there are.
        false_alarms: non-mated scores above it.
        non_mated: how many non-mated scores there are.
    """

    threshold: float
    hits: int
    mated: int
    false_alarms: int
    non_mated: int

    @property
    def tpr(self) -> float:
        """True positive rate."""
        return self.hits / self.mated

    @property
    def fpr(self) -> float:
        """The realised false positive rate: at most what was asked for, less where scores tie."""
        return self.false_alarms / self.non_mated


@dataclass(frozen=True, slots=True)
class Rates:
    """Both rates on each of B resamples, each with a threshold of its own.

    Attributes:
        tpr: shape (B,).
        fpr: shape (B,), realised.
    """

    tpr: FloatArray
    fpr: FloatArray

    @property
    def epsilon_nats(self) -> FloatArray:
        """VoxGuard eq. (5), at least 0, shape (B,); NaN where it is infinite."""
        return finite_epsilon_nats(self.tpr, self.fpr)


def operating_point(mated: FloatArray, non_mated: FloatArray, fpr: float) -> OperatingPoint:
    """The threshold that accepts at most a share of the non-mated scores.

    It stands on the ``floor(fpr n) + 1``-th highest non-mated score; only what is strictly higher
    is accepted.

    Args:
        mated: scores of equal speakers, any shape.
        non_mated: scores of different speakers, any shape.
        fpr: false positive rate asked for, in (0, 1).

    Raises:
        UsageError: no score on one side, or a rate outside (0, 1).

    Example:
        >>> point = operating_point(np.array([0.9, 0.6]), np.arange(10) / 10, 0.2)
        >>> point.threshold, point.tpr, point.fpr
        (0.7, 0.5, 0.2)
    """
    return _point(_descending(mated), _tail_of(non_mated, fpr), fpr)


def operating_points(
    scores: ScoredComparisons, rates: tuple[float, ...], weights: FloatArray | None = None
) -> tuple[tuple[OperatingPoint, Rates | None, Rates | None], ...]:
    """One look at all scores for several rates; only its highest non-mated scores are kept.

    Args:
        scores: a matrix, or comparisons of any kind.
        rates: false positive rates asked for, in (0, 1).
        weights: shape (B, S), from `pooled_resamples`.

    Returns:
        for each rate the point, both rates on each resample of speakers (None without weights), and
        `half_trials` (None where there is but one score of a kind).

    Raises:
        UsageError: as `operating_point`, or a resample without any speaker.
    """
    total = int(scores.non_mated_counts.sum())
    keep = 2 * max(allowed_alarms(rate, total) for rate in rates) + _SPARE
    tail = _tail(scores, keep)
    found = None if weights is None else _resampled(scores, tail, weights, rates)
    while weights is not None and found is None:
        keep = 4 * keep + 1  # some resample has few high scores: look further down
        tail = _tail(scores, keep)
        found = _resampled(scores, tail, weights, rates)
    mated = _descending(scores.mated)
    halves = min(mated.size, total) >= 2
    return tuple(
        (
            _point(mated, tail, rate),
            found[place] if found else None,
            _half(mated, tail, rate, REPLICATES, 0) if halves else None,
        )
        for place, rate in enumerate(rates)
    )


def mirrored_points(
    scores: ScoredComparisons, rates: tuple[float, ...]
) -> tuple[OperatingPoint, ...]:
    """Points of the attacker who takes low scores for alike: those of the negated scores.

    Args:
        scores: a matrix, or comparisons of any kind; read once in blocks.
        rates: false positive rates asked for, in (0, 1).

    Raises:
        UsageError: as `operating_point`.

    Example:
        >>> from monitor.evaluation.scores.matrix import ScoreMatrix
        >>> distances = ScoreMatrix(1.0 - np.eye(4), np.arange(4))
        >>> [(point.tpr, point.fpr) for point in mirrored_points(distances, (0.1,))]
        [(1.0, 0.0)]
    """
    total = int(scores.non_mated_counts.sum())
    tail = _tail(scores, 2 * max(allowed_alarms(rate, total) for rate in rates) + _SPARE, -1.0)
    mated = _descending(-scores.mated)
    return tuple(_point(mated, tail, rate) for rate in rates)


def half_trials(
    mated: FloatArray,
    non_mated: FloatArray,
    fpr: float,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Rates:
    """Resample half as many mated and half as many non-mated scores, as VoxGuard does.

    With replacement. The scores count as independent trials, which those of one speaker are not:
    resampling speakers is right. No resample is written out: where its threshold falls and what
    exceeds it are drawn from their exact distributions.

    Args:
        mated: any shape.
        non_mated: any shape.
        fpr: false positive rate asked for, in (0, 1).
        replicates: B.
        seed: equal seeds give equal replicates.

    Raises:
        UsageError: as `operating_point`, or a single score on one side.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> found = half_trials(generator.normal(2, 1, 1000), generator.normal(0, 1, 9000), 0.01)
        >>> bool(0.3 < found.tpr.mean() < 0.45), bool(0.005 < found.fpr.mean() < 0.015)
        (True, True)
    """
    return _half(_descending(mated), _tail_of(non_mated, fpr), fpr, replicates, seed)


def allowed_alarms(fpr: float, total: int) -> int:
    """``floor(fpr n)``, where a product such as 0.29 x 100 does not fall short by rounding.

    Raises:
        UsageError: a rate outside (0, 1).

    Example:
        >>> allowed_alarms(0.29, 100)
        29
    """
    if not 0 < fpr < 1:
        raise UsageError(f"a false positive rate lies between 0 and 1, not at {fpr:g}")
    return min(int(np.floor(fpr * total + _ROUNDING)), total - 1)


def _resampled(
    scores: ScoredComparisons, tail: Tail, weights: FloatArray, rates: tuple[float, ...]
) -> list[Rates] | None:
    """None where the tail is too short for some resample."""
    counts = scores.non_mated_counts
    mated_total = weights @ np.bincount(scores.owner, minlength=counts.size)
    total = weights @ counts
    if not ((total > 0) & (mated_total > 0)).all():
        raise UsageError("a resample holds no trial: give each row of weights a speaker")
    order = np.argsort(-scores.mated, kind="stable")
    mated = RunningWeights(scores.owner[order], np.ones(order.size), weights)
    non_mated = RunningWeights(tail.owner, tail.counts, weights)
    found = []
    for rate in rates:
        allowed = np.minimum(np.floor(rate * total + _ROUNDING), total - 1)
        place = non_mated.place(allowed)
        if (place == tail.values.size).any():
            return None
        threshold = tail.values[place]
        hits = mated.before(_above(scores.mated[order], threshold))
        alarms = non_mated.before(tail.first_of(threshold))
        found.append(Rates(hits / mated_total, alarms / total))
    return found


def _half(mated: FloatArray, tail: Tail, fpr: float, replicates: int, seed: int) -> Rates:
    half, few = tail.total // 2, mated.size // 2
    if half < 1 or few < 1:
        raise UsageError("half of the trials is none: give at least two scores of each kind")
    generator = np.random.default_rng(seed)
    allowed = allowed_alarms(fpr, half)
    # Of `half` uniform places the threshold is the (allowed + 1)-th, the earlier ones are uniform.
    upto = generator.beta(allowed + 1, half - allowed, replicates) * tail.total
    running = _running(tail)
    place = np.minimum(_place(running, upto), tail.values.size - 1)
    threshold = tail.values[place]
    above = running[tail.first_of(threshold)]
    alarms = generator.binomial(allowed, np.minimum(above / upto, 1.0))
    hits = generator.binomial(few, _above(mated, threshold) / mated.size)
    return Rates(hits / few, alarms / half)


def _point(mated: FloatArray, tail: Tail, fpr: float) -> OperatingPoint:
    running = _running(tail)
    threshold = tail.values[_place(running, np.array([allowed_alarms(fpr, tail.total)]))]
    hits = int(_above(mated, threshold)[0])
    alarms = int(running[tail.first_of(threshold)][0])
    return OperatingPoint(float(threshold[0]), hits, mated.size, alarms, tail.total)


def _running(tail: Tail) -> IntArray:
    """How many scores there are before each entry of the tail, and in all of it: (K + 1,)."""
    return np.concatenate([[0], np.cumsum(tail.counts)])


def _place(running: IntArray, rank: IntArray | FloatArray) -> IntArray:
    """The entry that holds the score with that many scores before it."""
    return np.searchsorted(running[1:], rank, side="right")


def _above(descending: FloatArray, threshold: FloatArray) -> IntArray:
    return np.searchsorted(-descending, -threshold, side="left")


def _tail(scores: ScoredComparisons, keep: int, sign: float = 1.0) -> Tail:
    highest = Highest(keep, len(scores.non_mated_counts))
    for owner, block in scores.non_mated_blocks():
        highest.add(sign * block, owner)
    return highest.tail()


def _tail_of(non_mated: FloatArray, fpr: float) -> Tail:
    scores = np.asarray(non_mated).reshape(1, -1)
    if scores.size == 0 or np.isnan(scores).any():
        raise UsageError("a false positive rate takes scores of different speakers, all numbers")
    highest = Highest(2 * allowed_alarms(fpr, scores.size) + _SPARE)
    highest.add(scores, np.zeros(1, dtype=np.intp))
    return highest.tail()


def _descending(mated: FloatArray) -> FloatArray:
    if np.size(mated) == 0 or np.isnan(mated).any():
        raise UsageError("a true positive rate takes scores of equal speakers, all of them numbers")
    return np.sort(np.asarray(mated, dtype=np.float64), axis=None)[::-1]
