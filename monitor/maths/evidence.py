"""Likelihood ratios of all enrolled speakers, and evidence among M people.

Source: docs/method.md section 10.

``LR_j = f(scores | the stream is j's) / f(scores | it is another speaker's)``, in bits. A
probability of 1 in 2 000 corresponds to 11 bits. A person who is not enrolled has a ratio of 1 on
average. With N enrolled among M people, ``p_j(M) = LR_j / (sum_i LR_i + M - N)``. This covers
everything from a closed set (M = N) to the evidence itself (large M). Nothing here overflows up to
a thousand bits and 1e10 people.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.errors import UsageError
from monitor.maths.posterior import weighted_evidence
from monitor.types import BoolArray, FloatArray

MISSES = 0.01
"""Fraction of mated comparisons that look non-mated, because of another microphone, noise or a
wrong label. Chosen on calibration speakers (benchmarks/results/world.md)."""
UNBOUNDED = 1000.0  # bits that no ratio reaches


def neighbours(lengths: FloatArray, reached: BoolArray, seconds: float) -> tuple[int, int, float]:
    """Find the reached grid lengths around a length: two indices, and the second one's weight.

    ``lengths``, (n,), are increasing seconds, and ``reached``, (n,), marks those with data. The
    weight grows with the logarithm of the length. Outside all reached lengths, only the outermost
    counts.

    Example:
        >>> neighbours(np.array([10.0, 30.0, 90.0]), np.array([True, False, True]), 30.0)
        (0, 2, 0.5)
    """
    logs, target = np.log(lengths), np.log(max(seconds, 1e-9))
    columns = np.flatnonzero(reached)
    index = int(np.searchsorted(logs[columns], target))
    lower = int(columns[max(index - 1, 0)])
    upper = int(columns[min(index, columns.size - 1)])
    gap = logs[upper] - logs[lower]
    return lower, upper, float(np.clip((target - logs[lower]) / gap, 0.0, 1.0)) if gap > 0 else 0.0


@dataclass(frozen=True, slots=True)
class ConditionEffect:
    """Effect of conditions on ratios fitted on clean speech (docs/method.md section 10).

    ``a + sum_f b_f z_f`` becomes ``a (1 - q . shift) + sum_f b_f z_f (1 + q . slope_f)``. Here q
    describes the conditions of stream and template (`monitor.maths.condition.unlike`). The result
    is supported up to the smallest ``support / q``. The intercept a <= 0 sets the scale of z at
    this length.
    """

    shift: FloatArray  # fraction of the intercept, shape (11,)
    slope: FloatArray  # of each feature, shape (F, 11)
    support: FloatArray  # bits, at least 0, shape (11,)

    def evaluate_at(self, mismatch: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Compute shift (...), slopes (..., F), at least 0, and support (...) of q (..., 11)."""
        bounds = np.full(mismatch.shape, np.inf)
        np.divide(self.support, np.minimum(mismatch, 1.0), out=bounds, where=mismatch > 0)
        slope = np.maximum(1.0 + mismatch @ self.slope.T, 0.0)
        return mismatch @ self.shift, slope, bounds.min(axis=-1)


@dataclass(frozen=True, slots=True)
class ConditionEffects:
    """Effects of conditions on ratios, fitted at K template lengths."""

    template_lengths: FloatArray
    effects: tuple[ConditionEffect, ...]

    def at_template(self, seconds: float) -> ConditionEffect:
        """Interpolate in log D for templates of D speech seconds; beyond the grid, use its ends."""
        is_reached = np.ones(len(self.effects), np.bool_)
        lower, upper, w = neighbours(self.template_lengths, is_reached, seconds)
        shorter, longer = self.effects[lower], self.effects[upper]
        return ConditionEffect(
            (1.0 - w) * shorter.shift + w * longer.shift,
            (1.0 - w) * shorter.slope + w * longer.slope,
            (1.0 - w) * shorter.support + w * longer.support,
        )


def log2_ratios(z: FloatArray, intercept: FloatArray | float, slopes: FloatArray) -> FloatArray:
    """Compute ``log2((1 - e) exp(a + sum_f b_f z_fj) + e)``, with e = `MISSES`.

    ``z`` are cohort-normalised scores, (..., F, N). The intercept, (...), and slopes, (..., F), are
    in nats. The shape is (..., N).

    Example:
        >>> log2_ratios(np.array([[1.0, 5.0]]), -2.0, np.array([1.0])).round(2)
        array([-1.42,  4.31])
    """
    nats = weighted_evidence(z, slopes) + np.asarray(intercept)[..., None]
    return with_misses(np.asarray(nats / np.log(2.0)))


def with_misses(bits: FloatArray) -> FloatArray:
    """Bound ratios below by ``log2 e``, the fraction of uninformative comparisons."""
    return np.asarray(np.logaddexp2(bits + np.log2(1.0 - MISSES), np.log2(MISSES)))


_BETS = np.array([0.02, 0.05, 0.1, 0.2, 0.5, 1.0])


def e_value(ratios: FloatArray) -> float:
    """Compute how strongly other people's ratios, (n,), contradict a mean of at most 1.

    The value is the mean of ``M = prod (1 + lambda (LR_i - 1))`` over several lambda. This is an
    e-process. If each ratio is 1 on average given the earlier ones, it ever exceeds 20 with
    probability at most 1 in 20 (V. Vovk and R. Wang, Annals of Statistics 49, 2021).

    Example:
        >>> round(e_value(np.full(10, 0.5)), 2), e_value(np.full(10, 4.0)) > 20
        (0.45, True)
    """
    with np.errstate(divide="ignore"):
        logs = np.log1p(_BETS[:, None] * (np.asarray(ratios) - 1.0)).sum(axis=1)
    return float(np.exp(np.minimum(logs, 700.0)).mean())


def cap_bits(bits: FloatArray, maximum: FloatArray | float) -> FloatArray:
    """Lower all ratios of a stream equally until the best is at most ``maximum`` bits.

    ``bits`` has shape (..., N), ``maximum`` (...). The cap is the empirical upper bound (ELUB).
    Odds among the enrolled are unchanged. Only the odds against people who are not enrolled lack
    further support.
    """
    excess = np.maximum(bits.max(axis=-1) - maximum, 0.0)
    return np.asarray(bits - excess[..., None])


def level_ratios(bits: FloatArray) -> FloatArray:
    """Lower all ratios of a stream equally until the mean of other people's is at most 1.

    At most one of the enrolled is the speaker. If the others' mean ratio exceeds 1 on this stream,
    the voice is closer to this crowd than to the calibration's speakers. The best may be the
    speaker and counts as one bit above the runner-up. That is the median lead of the best of many
    if a fraction 2^-k shows k bits. ``bits`` has shape (..., N), and -inf is an empty column.

    Example:
        >>> level_ratios(np.array([[9.0, 3.0, 3.0], [9.0, -2.0, -2.0]])).round(1)
        array([[ 5.6, -0.4, -0.4],
               [ 9. , -2. , -2. ]])
    """
    index = bits.argmax(axis=-1)[..., None]
    others = bits.copy()
    np.put_along_axis(others, index, -np.inf, axis=-1)
    np.put_along_axis(others, index, others.max(axis=-1)[..., None] + 1.0, axis=-1)
    count = np.isfinite(others).sum(axis=-1)
    level = total_bits(others) - np.log2(np.maximum(count, 1))
    return np.asarray(bits - np.maximum(level, 0.0)[..., None])


def total_bits(bits: FloatArray, others: FloatArray | float = 0.0) -> FloatArray:
    """Compute ``log2(sum_j 2^bits_j + others)``: shape (..., N) to (...).

    `others` are people with a ratio of 1, >= 0, shape (...).

    Example:
        >>> total_bits(np.array([2000.0, 2000.0])), total_bits(np.array([1.0, 1.0]), others=4)
        (np.float64(2001.0), np.float64(3.0))
    """
    with np.errstate(divide="ignore"):
        top = np.maximum(bits.max(axis=-1), np.log2(others))
        top = np.where(np.isfinite(top), top, 0.0)
        mass = np.exp2(bits - top[..., None]).sum(axis=-1)
        return np.asarray(top + np.log2(mass + others * np.exp2(-top)))[()]


def posterior_among(bits: FloatArray, people: float) -> FloatArray:
    """Compute ``p_j(M)`` of N enrolled among M people, (R, N); others share the remainder to 1.

    Example:
        >>> posterior_among(np.array([[11.0, -3.0]]), 1e6).round(4)
        array([[0.002, 0.   ]])
    """
    others = _count_others(bits, people)
    return np.asarray(np.exp2(bits - total_bits(bits, others)[..., None]))


def bits_among(bits: FloatArray, people: float, watched: int | None) -> FloatArray:
    """Compute the bits that the stream discloses among M people.

    From likelihood ratios (R, N) this returns bits (R,). A watched speaker has ``log2(M p_w(M))``,
    at most log2 M, and negative if the attacker is misled. Without a watched speaker it is the
    relative entropy of the posterior over all M people to a uniform one. Being the best of N is
    then not evidence by itself.

    Example:
        >>> ratios = np.array([[11.0, 0.0]])
        >>> bits_among(ratios, 1e9, 0).round(3), bits_among(ratios, 1e4, None).round(3)
        (array([11.]), array([1.601]))
    """
    total = total_bits(bits, _count_others(bits, people))
    if watched is not None:
        return np.asarray(np.log2(people) + bits[..., watched] - total)
    # sum_j p_j log2(M p_j) + (M - N) q log2(M q) with log2 p_j = bits_j - total, log2 q = -total
    mean = (np.exp2(bits - total[..., None]) * bits).sum(axis=-1)
    return np.asarray(np.maximum(np.log2(people) - total + mean, 0.0))


def crowd_bits(
    speaker_bits: FloatArray, other_bits: FloatArray, enrolled: int, people: FloatArray | float
) -> FloatArray:
    """Compute ``bits_among`` of one speaker for many ratios, with the others' fixed.

    `other_bits` is ``total_bits`` of the other N - 1 (-inf without others). `people` is M, at least
    N. All shapes must broadcast.
    """
    with np.errstate(divide="ignore"):  # log2 0 if M = N
        others = np.log2(np.maximum(np.asarray(people, float) - enrolled, 0.0))
    total = np.logaddexp2(speaker_bits, np.logaddexp2(other_bits, others))
    return np.asarray(np.log2(people) + speaker_bits - total)


def enrolled_share(bits: FloatArray, prior: float = 0.5) -> FloatArray:
    """Compute the probability of being one of the N: ``sum LR / (sum LR + N (1 - prior) / prior)``.

    `prior` is that probability before any speech. The shapes are (R, N) to (R,).
    """
    if not 0.0 < prior < 1.0:
        raise UsageError(f"invalid prior {prior:g}: use more than 0 and less than 1")
    odds = total_bits(bits) - np.log2(bits.shape[-1]) + np.log2(prior) - np.log2(1.0 - prior)
    return np.asarray(1.0 / (1.0 + np.exp2(np.clip(-odds, -1000.0, 1000.0))))


def _count_others(bits: FloatArray, people: float) -> float:
    enrolled = bits.shape[-1]
    if not enrolled <= people < np.inf:
        raise UsageError(
            f"invalid crowd of {people:g}: use a finite number, at least the {enrolled} enrolled"
        )
    return float(people - enrolled)
