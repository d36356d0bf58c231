"""Rank of the true speaker among N candidates, histograms of it, and their disclosure.

Source: docs/method.md section 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from monitor.arrays import real_numbers
from monitor.errors import UsageError
from monitor.types import DoubleArray, FloatArray, IntArray

TIE_RULES = ("spread", "optimistic", "pessimistic", "mid")
"""Rank at which a trial with tied templates counts."""

_ROUNDING = 1e-12


def score_gaps(scores: FloatArray, target: int | IntArray) -> FloatArray:
    """Subtract the target's score; differences within rounding become ties.

    A matrix product may give equal templates different scores in the last bit. ``scores``, (...,
    N), are higher for more similar templates. ``target`` is the target's column.

    Example:
        >>> score_gaps(np.array([0.3, 0.1 + 0.2, 0.5]), 0)
        array([0. , 0. , 0.2])
    """
    gaps = scores - _target_score(scores, target)
    noise = _ROUNDING * np.abs(scores).max(axis=-1, keepdims=True)
    gaps[np.abs(gaps) <= noise] = 0.0
    return gaps


def _target_score(scores: FloatArray, target: int | IntArray) -> FloatArray:
    """Return the target's score, shape (..., 1)."""
    column = np.broadcast_to(np.asarray(target), scores.shape[:-1])[..., None]
    return np.asarray(np.take_along_axis(scores, column, axis=-1))


def rank_now(scores: FloatArray, target: int | IntArray) -> tuple[IntArray, IntArray]:
    """Compute ``rank_bounds`` of streams (..., N), with ``score_gaps``' rule on rounding."""
    target_score = _target_score(scores, target)
    noise = _ROUNDING * np.maximum(scores.max(axis=-1), -scores.min(axis=-1))[..., None]
    better = np.count_nonzero(scores > target_score + noise, axis=-1)
    return np.asarray(better), np.asarray(
        np.count_nonzero(scores >= target_score - noise, axis=-1) - better
    )


def rank_bounds(scores: FloatArray, target: int | IntArray) -> tuple[IntArray, IntArray]:
    """Count the templates that beat the target, and those that share its score, itself included.

    ``scores``, (..., N), are higher for more similar templates. ``target`` is the column of the
    true speaker, a number or (...). The results ``better`` and ``tied`` have shape (...). The
    target's ranks are ``better + 1`` to ``better + tied``.

    Example:
        >>> scores = np.array([[0.9, 0.4, 0.4], [0.1, 0.5, 0.2]])
        >>> better, tied = rank_bounds(scores, np.array([1, 0]))
        >>> better.tolist(), tied.tolist()
        ([1, 2], [2, 1])
    """
    scores = real_numbers(scores, "scores")
    if scores.ndim == 0 or np.isnan(scores).any():
        raise UsageError("a score is not a number: drop such trials before ranking them")
    column = real_numbers(target, "targets")
    if column.dtype.kind not in "iu":
        raise UsageError("a target is the column of a speaker: give whole numbers")
    if column.size and (column.min() < 0 or column.max() >= scores.shape[-1]):
        raise UsageError(f"invalid target: use 0 to {scores.shape[-1] - 1}, a column of the scores")
    column = np.broadcast_to(column, scores.shape[:-1])
    target_score = np.take_along_axis(scores, column[..., None], axis=-1)
    return np.asarray((scores > target_score).sum(axis=-1)), np.asarray(
        (scores == target_score).sum(axis=-1)
    )


def placed(better: IntArray, tied: IntArray, ties: str) -> tuple[IntArray, IntArray]:
    """Return the first rank (less one) and the number of ranks over which a rule spreads trials."""
    if ties == "spread":
        return better, tied
    if ties == "optimistic":
        return better, np.ones_like(tied)
    if ties == "pessimistic":
        return better + tied - 1, np.ones_like(tied)
    if ties == "mid":
        return better + (tied - 1) // 2, 2 - tied % 2
    raise UsageError(f"unknown tie rule {ties!r}: use one of {', '.join(TIE_RULES)}")


def rank_histogram(
    better: IntArray, tied: IntArray, speakers: int, ties: str = "spread",
    weights: FloatArray | None = None,
) -> DoubleArray:  # fmt: skip
    """Count the ranks of n trials among N templates, of `rank_bounds`: shape (N,), rank 1 first.

    ``"spread"`` divides a trial equally among its tied ranks. ``"optimistic"`` takes the first (the
    attacker wins), ``"pessimistic"`` the last, and ``"mid"`` the middle one (half each if there are
    two). Each trial counts 1, or its weight.

    Example:
        >>> rank_histogram(np.array([0, 1]), np.array([1, 2]), 4)
        array([1. , 0.5, 0.5, 0. ])
    """
    better, tied = _checked(better, tied, speakers)
    weight = np.ones((1, better.size)) if weights is None else _weighing(weights, better.size)
    if weight.shape[0] != 1:
        raise UsageError("give one weight for each trial of a histogram")
    return np.asarray(_spread(*placed(better, tied, ties), speakers, weight)[0])


def rank_histograms(
    better: IntArray, tied: IntArray, speakers: int, weights: FloatArray
) -> DoubleArray:
    """Compute histograms of weightings (B, n) of the same trials, ties spread.

    Row b of (B, N) is ``rank_histogram(better, tied, speakers, "spread", weights[b])``.
    """
    better, tied = _checked(better, tied, speakers)
    return _spread(better, tied, speakers, _weighing(weights, better.size))


def _spread(better: IntArray, tied: IntArray, speakers: int, weights: DoubleArray) -> DoubleArray:
    is_untied = tied == 1
    histograms = _bin(better[is_untied], weights[:, is_untied], speakers)
    # Tied trials are added by running sums of steps up and down. Those sums may round, so `covered`
    # makes ranks without trials exactly empty.
    first, split_weight = better[~is_untied], weights[:, ~is_untied] / tied[~is_untied]
    last = first + tied[~is_untied]
    steps = _bin(first, split_weight, speakers + 1) - _bin(last, split_weight, speakers + 1)
    reached = np.bincount(first, minlength=speakers + 1) - np.bincount(last, minlength=speakers + 1)
    covered = np.cumsum(reached)[:-1] > 0
    spread_counts = np.where(covered, np.cumsum(steps, axis=1)[:, :-1], 0.0)
    return np.asarray(histograms + np.maximum(spread_counts, 0.0))


def _bin(rank: IntArray, weights: DoubleArray, size: int) -> DoubleArray:
    return np.stack([np.bincount(rank, row, size) for row in weights]).astype(np.float64)


def _checked(better: IntArray, tied: IntArray, speakers: int) -> tuple[IntArray, IntArray]:
    better = real_numbers(better, "ranks", np.intp)
    tied = real_numbers(tied, "numbers of ties", np.intp)
    if better.ndim != 1 or better.shape != tied.shape:
        raise UsageError("better and tied need one number for each trial")
    if better.size and (better.min() < 0 or tied.min() < 1 or (better + tied).max() > speakers):
        raise UsageError(f"ranks do not fit into {speakers} speakers: check N")
    return better, tied


def _weighing(weights: ArrayLike, trials: int) -> DoubleArray:
    weight = np.atleast_2d(real_numbers(weights, "weights", np.float64))
    if weight.ndim != 2 or weight.shape[0] == 0 or weight.shape[1] != trials:
        raise UsageError(f"weights do not match the {trials} trials: give one for each")
    if not (weight >= 0).all() or np.isinf(weight).any():
        raise UsageError("a weight is negative or not finite: give weights of 0 or more")
    return weight


def first_rank_bits(fraction: float, speakers: int) -> float:
    """Compute the average bits from the fraction of trials with rank 1.

    This is the capacity of a symmetric channel for N >= 2. See Cover and Thomas, Elements of
    Information Theory, section 7.2::

        log2 N + p log2 p + (1 - p) log2((1 - p) / (N - 1))

    Example:
        >>> first_rank_bits(1.0, 16), first_rank_bits(1 / 16, 16), first_rank_bits(0.5, 2)
        (4.0, 0.0, 0.0)
    """
    error_rate = 1.0 - fraction
    bits = np.log2(speakers)
    bits += fraction * np.log2(fraction) if fraction > 0 else 0.0
    bits += error_rate * np.log2(error_rate / (speakers - 1)) if error_rate > 0 else 0.0
    return float(bits)


def all_rank_bounds(scores: FloatArray) -> tuple[IntArray, IntArray]:
    """Compute `rank_bounds` of every column of (n, N) at once, by one sort of each row.

    Example:
        >>> better, tied = all_rank_bounds(np.array([[0.9, 0.4, 0.4]]))
        >>> better.tolist(), tied.tolist()
        ([[0, 1, 1]], [[1, 2, 2]])
    """
    scores = real_numbers(scores, "scores")
    if scores.ndim != 2 or np.isnan(scores).any():
        raise UsageError("ranks need a matrix of scores, trials x speakers, without gaps")
    order = np.argsort(scores, axis=1)
    rows, columns = scores.shape
    better, tied = np.empty((2, rows, columns), dtype=np.intp)
    position = np.arange(columns)
    ordered = np.take_along_axis(scores, order, axis=1)
    differs = ordered[:, 1:] != ordered[:, :-1]
    edge = np.ones((rows, 1), dtype=bool)
    first = np.where(np.hstack([edge, differs]), position, 0)
    last = np.where(np.hstack([differs, edge]), position, columns - 1)
    first = np.maximum.accumulate(first, axis=1)
    last = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
    np.put_along_axis(better, order, columns - 1 - last, axis=1)
    np.put_along_axis(tied, order, last - first + 1, axis=1)
    return better, tied


# The disclosure of rank k is ``log2(N p_k)``: the paper prints a minus, its own table needs the
# plus (docs/method.md section 3).
_LN2 = float(np.log(2.0))


@dataclass(frozen=True, slots=True)
class RankStatistics:
    """Statistics of SRD's Table II, for a histogram of n trials or a rank model."""

    speakers: int
    trials: float | None
    mean_bits: float  # MeanD, ``log2 N - H(p)``; biased upwards for a histogram
    # MeanD less ``(occupied ranks - 1) / (2 n ln 2)``, at least 0; None if the histogram does not
    # hold whole counts
    miller_madow_bits: float | None
    identification_rate: float  # IdR, the probability of rank 1
    std_bits: float  # StDD, over the ranks that occur
    # max_bits, max_rank: MaxD and its rank. On a sparse histogram it is noise.
    max_bits: float
    max_rank: int
    rank1_bits: float | None  # disclosure of rank 1; None if it never occurs (minus infinity)
    spread: float  # fraction of ranks strictly more probable than chance
    ceiling_bits: float  # log2 N


def rank_statistics(
    histogram: FloatArray | IntArray, trials: float | None = None
) -> RankStatistics:
    """Compute the statistics of a rank histogram (N,), or of a rank model's probabilities.

    `trials` is n if ``histogram`` has the proportions of n trials.

    Example:
        >>> found = rank_statistics(np.array([6, 2, 0, 0]))
        >>> round(found.mean_bits, 3), round(found.max_bits, 3), found.max_rank, found.spread
        (1.189, 1.585, 1, 0.25)
    """
    counts = _distribution(histogram)
    total = float(counts.sum())
    proportions = abs(total - 1.0) < 1e-6 and float(counts.max()) < 1.0
    if trials is not None:
        if not trials > 0:
            raise UsageError("a histogram needs at least one trial")
        counts, total, proportions = counts * (trials / total), float(trials), False
    rounded = np.rint(counts)
    is_whole = not proportions and bool(np.abs(counts - rounded).max() <= 1e-9 * total)
    speakers = counts.size
    p = (rounded if is_whole else counts) / total
    occurs = p > 0
    bits = np.log2(speakers * p[occurs])
    mean = max(float(p[occurs] @ bits), 0.0)
    top = int(np.argmax(p))
    above = rounded * speakers > round(total) if is_whole else p * speakers > 1 + 1e-9
    bias = (int(occurs.sum()) - 1) / (2 * total * _LN2)
    return RankStatistics(
        speakers=speakers,
        trials=None if proportions else total,
        mean_bits=mean,
        miller_madow_bits=max(mean - bias, 0.0) if is_whole else None,
        identification_rate=float(p[0]),
        std_bits=float(np.sqrt(p[occurs] @ (bits - mean) ** 2)),
        max_bits=float(bits.max()),
        max_rank=top + 1,
        rank1_bits=float(np.log2(speakers * p[0])) if p[0] > 0 else None,
        spread=float(np.mean(above)),
        ceiling_bits=ceiling_bits(speakers),
    )


def kl_bits(p: FloatArray | IntArray, gamma: FloatArray) -> float:
    """Compute the Kullback-Leibler divergence of a rank model from a histogram, as SRD does.

    Infinite if the rank model calls an observed rank impossible.
    """
    p, gamma = _pair(p, gamma)
    occurs = p > 0
    if not (gamma[occurs] > 0).all():
        return float("inf")
    return float(p[occurs] @ np.log2(p[occurs] / gamma[occurs]))


def rank1_match_bits(p: FloatArray | IntArray, gamma: FloatArray) -> float:
    """Compute ``|log2(p_1 / gamma_1)|``: the fit of a rank model at rank 1.

    Infinite if only one of the two calls rank 1 impossible.
    """
    p, gamma = _pair(p, gamma)
    if p[0] == gamma[0]:
        return 0.0
    if p[0] == 0 or gamma[0] == 0:
        return float("inf")
    return float(abs(np.log2(p[0] / gamma[0])))


def null_bias_bits(speakers: int, trials: float) -> float:
    """Compute the plug-in MeanD of trials without evidence: ``(N - 1) / (2 n ln 2)``.

    It assumes many more independent trials than ranks. Overlapping windows have more.
    """
    if speakers < 1 or not trials > 0:
        raise UsageError("the null bias needs speakers and trials: use positive numbers")
    return (speakers - 1) / (2 * trials * _LN2)


def ceiling_bits(speakers: int) -> float:
    """Return log2 N, the maximum disclosure among N speakers."""
    if speakers < 1:
        raise UsageError("invalid number of speakers: use at least 1")
    return float(np.log2(speakers))


def _distribution(histogram: FloatArray | IntArray) -> DoubleArray:
    counts = np.asarray(histogram, dtype=np.float64)
    if counts.ndim != 1 or counts.size < 2:
        raise UsageError("a rank histogram has one number for each of at least two ranks")
    if not ((counts >= 0) & np.isfinite(counts)).all() or not counts.any():
        raise UsageError(
            "invalid rank histogram: use counts of at least 0, with at least one trial"
        )
    return counts


def _pair(p: FloatArray | IntArray, gamma: FloatArray) -> tuple[DoubleArray, DoubleArray]:
    first, second = _distribution(p), _distribution(gamma)
    if first.shape != second.shape:
        raise UsageError(
            f"{first.size} ranks against {second.size}: evaluate the rank model at the same N"
        )
    return first / first.sum(), second
