"""Checks of likelihood ratios on speakers not fitted on: are they as large as they claim?

All with weights, so that every speaker and every pair of speakers counts the same. If the mean
ratio of other people is at most 1, then by Markov's inequality no more than a share 2^-k of them
shows k bits, for any k: what a ratio promises.
"""

from __future__ import annotations

import numpy as np

from monitor.maths.pav import pool
from monitor.types import FloatArray

__all__ = ["cost_bits", "exceeding", "least_cost_bits", "mean_ratio", "upper_bound_bits"]


def cost_bits(mated: FloatArray, others: FloatArray, own: FloatArray, theirs: FloatArray) -> float:
    """Cllr (Brummer and du Preez, 2006): 1 for ratios that say nothing, more where they mislead.

    Args:
        mated: bits, shape (n,).
        others: bits, shape (m,).
        own: weights of the former, shape (n,).
        theirs: weights of the latter, shape (m,).

    Example:
        >>> one = np.ones(1)
        >>> cost_bits(np.zeros(1), np.zeros(1), one, one)
        1.0
    """
    misses = own @ np.logaddexp2(0.0, -mated) / own.sum()
    alarms = theirs @ np.logaddexp2(0.0, others) / theirs.sum()
    return float(misses + alarms) / 2


def least_cost_bits(
    mated: FloatArray, others: FloatArray, own: FloatArray, theirs: FloatArray
) -> float:
    """Min Cllr: what is left of Cllr after the best monotone calibration on these very ratios.

    Example:
        >>> least_cost_bits(np.array([5.0]), np.array([1.0]), np.ones(1), np.ones(1))
        0.0
    """
    levels, place = np.unique(np.concatenate([mated, others]), return_inverse=True)
    hits = np.bincount(place[: mated.size], own / own.sum(), levels.size)
    misses = np.bincount(place[mated.size :], theirs / theirs.sum(), levels.size)
    blocks = pool(hits.astype(np.float64), misses.astype(np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        bits = np.log2(blocks.odds)
        lost = np.where(blocks.mated > 0, blocks.mated * np.logaddexp2(0.0, -bits), 0.0)
        lost += np.where(blocks.non_mated > 0, blocks.non_mated * np.logaddexp2(0.0, bits), 0.0)
    return float(lost.sum()) / 2


def mean_ratio(others: FloatArray, theirs: FloatArray) -> float:
    """Mean likelihood ratio of other people: 1 is the most that is allowed.

    Args:
        others: bits, shape (m,).
        theirs: weights, shape (m,).
    """
    top = float(others.max())
    return float(theirs @ np.exp2(others - top) / theirs.sum() * np.exp2(np.minimum(top, 1000.0)))


def exceeding(others: FloatArray, theirs: FloatArray, bits: FloatArray) -> FloatArray:
    """Share of other people who show so many bits or more; 2^-bits is the most that is allowed.

    Args:
        others: bits, shape (m,).
        theirs: weights, shape (m,).
        bits: k, shape (K,).

    Example:
        >>> exceeding(np.array([0.0, 3.0]), np.ones(2), np.array([1.0, 4.0]))
        array([0.5, 0. ])
    """
    order = np.argsort(others, kind="stable")
    mass = np.append(0.0, np.cumsum(theirs[order]))
    below = mass[np.searchsorted(others[order], bits, side="left")] / mass[-1]
    return np.asarray(np.maximum(1.0 - below, 0.0))


def upper_bound_bits(
    mated: FloatArray,
    others: FloatArray,
    own: FloatArray,
    theirs: FloatArray,
    speakers: int,
    pairs: int,
) -> float:
    """Empirical upper bound of likelihood ratios: beyond it they are extrapolation.

    Vergeer, van Es, de Jongh, Alberink and Stoel, "Numerical likelihood ratios outputted by LR
    systems are often based on extrapolation: When to stop extrapolating?", Science & Justice 56
    (2016). With one misleading ratio added on either side, decisions by the ratios must cost no
    more than decisions without any, at every threshold up to the bound. Pairs of people are the
    observations here, not comparisons, which share them.

    Args:
        mated: bits of people left out of the fit, shape (n,).
        others: likewise, shape (m,).
        own: weights, shape (n,).
        theirs: weights, shape (m,).
        speakers: people behind the former.
        pairs: pairs of people behind the latter.

    Returns:
        bits, between 0 and log2(1 + pairs).

    Example:
        >>> mated, others, ones = np.full(30, 9.0), np.full(200, -5.0), np.ones(230)
        >>> round(upper_bound_bits(mated, others, ones[:30], ones[30:], 30, 200), 2)
        7.6
    """
    steps = np.arange(0.0, np.log2(1.0 + pairs), 0.01)
    missed = 1.0 - exceeding(mated, own, steps)
    alarmed = exceeding(others, theirs, steps)
    cost = (speakers * missed + 1.0) / (speakers + 1.0)
    cost += np.exp2(steps) * (pairs * alarmed + 1.0) / (pairs + 1.0)
    good = cost <= 1.0
    if good.all():
        return float(steps[-1])
    return float(steps[max(int(np.argmin(good)) - 1, 0)])
