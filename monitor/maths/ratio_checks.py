"""Checks of likelihood ratios on held-out speakers: cost, calibration, and supported bounds."""

from __future__ import annotations

import numpy as np

from monitor.maths.likelihood_ratios import TemplateComparisons
from monitor.maths.roc import pool
from monitor.types import FloatArray, IntArray


# Ratios of mated comparisons and of other people are in bits, (n,) and (m,). The weights
# `mated_weight` and `other_weight` give each speaker and each pair of speakers the same weight. If
# the mean ratio of other people is at most 1, at most a fraction 2^-k of them shows k bits, for any
# k. This inequality by Markov is the meaning of a ratio.
def cost_bits(
    mated: FloatArray, others: FloatArray, mated_weight: FloatArray, other_weight: FloatArray
) -> float:
    """Compute Cllr (Brummer and du Preez, 2006); 1 is uninformative, more is misleading."""
    misses = mated_weight @ np.logaddexp2(0.0, -mated) / mated_weight.sum()
    alarms = other_weight @ np.logaddexp2(0.0, others) / other_weight.sum()
    return float(misses + alarms) / 2


def least_cost_bits(
    mated: FloatArray, others: FloatArray, mated_weight: FloatArray, other_weight: FloatArray
) -> float:
    """Compute min Cllr: Cllr after the best monotone calibration on these very ratios."""
    levels, level = np.unique(np.concatenate([mated, others]), return_inverse=True)
    hits = np.bincount(level[: mated.size], mated_weight / mated_weight.sum(), levels.size)
    misses = np.bincount(level[mated.size :], other_weight / other_weight.sum(), levels.size)
    blocks = pool(hits.astype(np.float64), misses.astype(np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        bits = np.log2(blocks.odds)
        lost = np.where(blocks.mated > 0, blocks.mated * np.logaddexp2(0.0, -bits), 0.0)
        lost += np.where(blocks.non_mated > 0, blocks.non_mated * np.logaddexp2(0.0, bits), 0.0)
    return float(lost.sum()) / 2


def mean_ratio(others: FloatArray, other_weight: FloatArray) -> float:
    """Compute other people's mean likelihood ratio, at most 1 for a valid ratio."""
    top = float(others.max())
    return float(
        other_weight @ np.exp2(others - top) / other_weight.sum() * np.exp2(np.minimum(top, 1000.0))
    )


def exceeding(others: FloatArray, other_weight: FloatArray, bits: FloatArray) -> FloatArray:
    """Compute the weighted fraction of ratios with at least ``bits``, (K,): shape (K,).

    For other people it is at most 2^-bits if the ratios are valid.
    """
    order = np.argsort(others, kind="stable")
    mass = np.append(0.0, np.cumsum(other_weight[order]))
    below = mass[np.searchsorted(others[order], bits, side="left")] / mass[-1]
    return np.asarray(np.maximum(1.0 - below, 0.0))


def supported_bits(
    mated: FloatArray, others: FloatArray, mated_weight: FloatArray, other_weight: FloatArray,
    speakers: int, pairs: int, comparisons: TemplateComparisons | None = None,
) -> tuple[float, float]:  # fmt: skip
    """Compute the supported bits (ELUB), and the limit up to which data do not contradict them.

    The first is the empirical upper bound of Vergeer, van Es, de Jongh, Alberink and Stoel, Science
    & Justice 56 (2016). Its title is "Numerical likelihood ratios outputted by LR systems are often
    based on extrapolation: When to stop extrapolating?". One misleading ratio is added on each
    side. Decisions by the ratios must then cost no more than decisions without them, at every
    threshold up to the bound. The second is the upper bound of `invariance_bounds_bits`. Each is
    the last step of 0.01 bits before ``P(t bits or more | mated) >= 2^t P(t or more | others)``
    fails. The ELUB adds one misleading other, the second bound half a comparison per side.

    The observations are held-out speakers and pairs of people. Pairs that share people count as
    fewer if `comparisons` identifies them (`effective_pairs`).

    Example:
        >>> mated, others, ones = np.full(30, 9.0), np.full(200, -5.0), np.ones(230)
        >>> found = supported_bits(mated, others, ones[:30], ones[30:], 30, 200)
        >>> np.round(found, 2).tolist()
        [7.6, 7.65]
    """
    steps = np.arange(0.0, np.log2(1.0 + pairs), 0.01)
    count = np.full(steps.size, float(pairs))
    if comparisons is not None:
        count = effective_pairs(comparisons, others, steps)
    alarmed = count * exceeding(others, other_weight, steps)
    hits = speakers * exceeding(mated, mated_weight, steps)

    def first(hit: float, alarm: float) -> float:
        shown = (hits + hit) / (speakers + 1.0)
        good = np.exp2(steps) * (alarmed + alarm) / (count + 1.0) <= shown
        return float(steps[-1] if good.all() else steps[max(int(np.argmin(good)) - 1, 0)])

    return first(0.0, 1.0), first(0.5, 0.5)


def bounds_bits(mated: FloatArray, others: FloatArray) -> tuple[float, float]:
    """Compute the published ELUB, lower and upper, with every comparison as an observation.

    Unlike `supported_bits`, it is exact, without steps.

    Example:
        >>> low, high = bounds_bits(np.full(30, 9.0), np.full(200, -5.0))
        >>> round(low, 2), round(high, 2)
        (-4.95, 7.6)
    """
    return _find_bounds(mated, others, 0.0, 1.0)


def invariance_bounds_bits(mated: FloatArray, others: FloatArray) -> tuple[float, float]:
    """Compute bounds within which ratios are valid (invariance verification).

    Up to the upper bound, ``P(t bits or more | mated) >= 2^t P(t bits or more | others)`` is true.
    Down to the lower bound, its inverse is true. Fractions have Jeffreys' prior (Alberink,
    Leegwater, Malmborg, Nordgaard, Sjerps and van der Ham, 2025).

    Example:
        >>> low, high = invariance_bounds_bits(np.full(30, 9.0), np.full(200, -5.0))
        >>> round(low, 2), round(high, 2)
        (-5.0, 8.63)
    """
    return _find_bounds(mated, others, 0.5, 0.5)


def _find_bounds(
    mated: FloatArray, others: FloatArray, hit: float, alarm: float
) -> tuple[float, float]:
    lower = _holds_up_to(-others, -mated, hit, alarm)
    return 0.0 - lower, _holds_up_to(mated, others, hit, alarm)


def _holds_up_to(mated: FloatArray, others: FloatArray, hit: float, alarm: float) -> float:
    """Find the first t > 0 where ``(H(t) + hit) / (n + 1) >= 2^t (A(t) + alarm) / (m + 1)`` fails.

    H and A count mated and other ratios of t bits or more, and change only at a ratio.
    """
    ends = np.unique(np.concatenate([mated, others]))
    ends = ends[ends > 0.0]
    hits, alarms = (
        scores.size - np.searchsorted(np.sort(scores), ends, side="left")
        for scores in (mated, others)
    )
    with np.errstate(divide="ignore"):
        allowed = np.log2((hits + hit) / (mated.size + 1)) - np.log2(
            (alarms + alarm) / (others.size + 1)
        )
    fails = np.flatnonzero(allowed < ends)
    if not fails.size:
        return max(float(mated.max()), 0.0)
    first = int(fails[0])
    return float(max(ends[first - 1] if first else 0.0, allowed[first]))


def calibrated_by_pav(mated: FloatArray, others: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Calibrate ratios monotonically (PAV): the distinct ones, ascending, and their bits.

    Both kinds have equal total weight. The result is minus infinity for values of others only and
    infinity for mated only. Shape (K,) each.

    Example:
        >>> calibrated_by_pav(np.array([1.0, 3.0]), np.array([1.0, -1.0]))
        (array([-1.,  1.,  3.]), array([-inf,   0.,  inf]))
    """
    levels, level = np.unique(np.concatenate([mated, others]), return_inverse=True)
    hits = np.bincount(level[: mated.size], minlength=levels.size).astype(np.float64)
    misses = np.bincount(level[mated.size :], minlength=levels.size).astype(np.float64)
    blocks = pool(hits, misses)
    ends = np.cumsum(blocks.mated + blocks.non_mated)
    block = np.searchsorted(ends, np.cumsum(hits + misses), side="left")
    with np.errstate(divide="ignore"):
        bits = np.log2(blocks.odds) - np.log2(mated.size / others.size)
    return levels, np.asarray(bits[block])


def deviation_from_pav(levels: FloatArray, calibrated: FloatArray) -> float:
    """Compute DevPAV: the mean distance of ratios from PAV's, 0 if they are calibrated.

    The distance is the area per bit between the diagonal and the line through the finite points of
    `calibrated_by_pav`. See Vergeer, van Schaik and Sjerps, Forensic Science International 321,
    2021. It has the unit of the ratios, and is NaN without finite points.

    Example:
        >>> levels = np.array([-2.0, 0.0, 2.0])
        >>> deviation_from_pav(levels, levels), deviation_from_pav(levels, levels + 1)
        (0.0, 1.0)
    """
    finite = np.isfinite(calibrated)
    x, deviation = levels[finite], (calibrated - levels)[finite]
    if x.size < 2:
        return float(np.abs(deviation[0])) if x.size else float("nan")
    left, right = deviation[:-1], deviation[1:]
    size = np.abs(left) + np.abs(right)
    # a segment that crosses the diagonal encloses two triangles, not a trapezium
    crossed = np.divide(left**2 + right**2, size, out=np.zeros_like(size), where=size > 0)
    area = np.where(left * right < 0, crossed, size) / 2
    return float(area @ np.diff(x) / (x[-1] - x[0]))


def effective_pairs(
    comparisons: TemplateComparisons, bits: FloatArray, steps: FloatArray
) -> FloatArray:
    """Count the independent pairs of people behind the fraction with at least these bits, (K,).

    The count is ``p (1 - p) / Var(p)``. The variance allows for pairs that share people (M.
    Fafchamps and F. Gubert, Journal of Development Economics 83, 2007), because a person with a
    common voice is one observation. Beyond the highest bits of any pair, the count at those bits is
    used. ``bits``, (m,), are those of non-mated comparisons, and ``steps``, (K,), are increasing
    bits.

    Example:
        >>> from monitor.maths.likelihood_ratios import ScorePairs
        >>> one, other = np.triu_indices(10, 1)
        >>> pairs = TemplateComparisons(np.zeros((45, 1)), ScorePairs(one, other))
        >>> one_voice, apart = np.where(one == 0, 9.0, 0.0), np.where(other - one == 5, 9.0, 0.0)
        >>> effective_pairs(pairs, one_voice, np.array([5.0])).round(1)
        array([6.4])
        >>> effective_pairs(pairs, apart, np.array([5.0])).round(1)
        array([45.])
    """
    first, counts, pair = comparisons.pairs.unique
    pairs = counts.size
    speakers = np.stack([comparisons.test_speaker, comparisons.template_speaker], axis=1)[first]
    with_others = np.bincount(speakers.ravel())
    # by descending bits, the increments of each comparison to sums over pairs and over people
    order = np.flatnonzero(bits >= steps[0])
    order = order[np.argsort(-bits[order], kind="stable")]
    pair_index = pair[order]
    weight = 1.0 / counts[pair_index]
    squares = weight * (2.0 * _before(pair_index, weight) + weight)
    people = speakers[pair_index].ravel()
    weights = np.repeat(weight, 2)
    person_squares = weights * (2.0 * _before(people, weights) + weights)
    total, squares, by_size, person_squares = (
        np.append(0.0, np.cumsum(increments))
        for increments in (
            weight,
            squares,
            weight * with_others[speakers].sum(axis=1)[pair_index],
            person_squares.reshape(-1, 2).sum(axis=1),
        )
    )
    ends = np.searchsorted(-bits[order], -steps, side="right")
    p = total[ends] / pairs
    # squared excess of each person's pairs over p, summed over people
    deviation = (
        person_squares[ends] - 2.0 * p * by_size[ends] + p * p * float(with_others @ with_others)
    )
    variance = (deviation - (squares[ends] - pairs * p * p)) / pairs**2
    variance = np.maximum(variance, p * (1.0 - p) / pairs)
    independent = np.full(steps.size, float(pairs))
    np.divide(p * (1.0 - p), variance, out=independent, where=variance > 0)
    effective = np.where(ends > 0, np.clip(independent, 1.0, pairs), float(pairs))
    highest = effective[np.searchsorted(steps, bits.max(), side="right") - 1]
    return np.where(steps > bits.max(), min(highest, pairs), effective)


def _before(group: IntArray, values: FloatArray) -> FloatArray:
    """Sum, for each entry in order, the earlier values of its group: shape (n,)."""
    order = np.argsort(group, kind="stable")
    sums = np.append(0.0, np.cumsum(values[order]))
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    sizes = np.diff(np.append(starts, group.size))
    sums_before = np.empty(group.size)
    sums_before[order] = sums[:-1] - np.repeat(sums[starts], sizes)
    return sums_before
