"""The rank law: SRD's equation (3), corrected.

Rank k = 1..N of the true speaker is a beta-binomial count of impostors that beat it, j = k - 1 of
n = N - 1: ``gamma_k = C(n, j) B(j + alpha, n - j + beta) / B(alpha, beta)``. The paper prints alpha
twice and counts j from 1 to N; neither sums to one (docs/method.md section 3). Where (alpha, beta)
run away the law is Binomial(n, p). Everything is natural logarithms but the names that end in
``_bits``.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.errors import UsageError
from monitor.maths import quadrature

__all__ = [
    "binomial_log_pmf",
    "binomial_log_pmf_at",
    "binomial_mean_disclosure_bits",
    "log_pmf",
    "log_pmf_at",
    "mean_disclosure_bits",
    "rise",
]

_Doubles: TypeAlias = NDArray[np.float64]
_FEW = 8
_LARGE = 1e5
"""Differences of log-gammas above this lose digits that matter: error 1e-10 here."""
_SHIFT = 16
_THIN_FROM = 2048
_CHUNK = 1 << 19
"""Most numbers worked on at once, so that memory stays small."""


def log_pmf(alpha: ArrayLike, beta: ArrayLike, speakers: int) -> _Doubles:
    """Log-probability of every rank.

    Args:
        alpha: first parameter, > 0, shape (...).
        beta: second parameter, > 0, shape (...); broadcast with alpha.
        speakers: N >= 2.

    Returns:
        shape (..., N), index 0 is rank 1.

    Raises:
        UsageError: a parameter is not a positive number, or N < 2.

    Example:
        >>> np.exp(log_pmf(1.0, 1.0, 4))
        array([0.25, 0.25, 0.25, 0.25])
    """
    a, b = _parameters(alpha, beta)
    log = _relative(a, b, _impostors(speakers))
    log -= np.log(np.exp(log).sum(axis=-1, keepdims=True))
    return log


def log_pmf_at(alpha: ArrayLike, beta: ArrayLike, speakers: int, rank: ArrayLike) -> _Doubles:
    """Log-probability of single ranks, without going through all N.

    Args:
        alpha: first parameter, > 0.
        beta: second parameter, > 0.
        speakers: N >= 2.
        rank: 1 to N; broadcast with alpha and beta.

    Returns:
        the broadcast shape.

    Raises:
        UsageError: as `log_pmf`, or a rank outside 1..N.

    Example:
        >>> round(float(np.exp(log_pmf_at(1.0, 2.0, 3, 1))), 12)
        0.5
    """
    a, b = _parameters(alpha, beta)
    last, j = _impostors(speakers), _beaten_by(rank, speakers)
    large = max(a.max(), b.max()) + last > _LARGE
    return _log_at(a, b, last, j) if large else _log_at_small(a, b, last, j)


def binomial_log_pmf(p: ArrayLike, speakers: int) -> _Doubles:
    """Log-probability of every rank where each impostor wins with the same probability.

    Args:
        p: in [0, 1], shape (...); 0 puts everything on rank 1.
        speakers: N >= 2.

    Returns:
        shape (..., N); minus infinity where a rank is impossible.

    Raises:
        UsageError: p outside [0, 1], or N < 2.

    Example:
        >>> binomial_log_pmf(0.0, 3)
        array([  0., -inf, -inf])
    """
    rank = np.arange(1, _impostors(speakers) + 2)
    return binomial_log_pmf_at(np.asarray(p, dtype=np.float64)[..., None], speakers, rank)


def binomial_log_pmf_at(p: ArrayLike, speakers: int, rank: ArrayLike) -> _Doubles:
    """Log-probability of single ranks under the binomial law.

    Args:
        p: in [0, 1].
        speakers: N >= 2.
        rank: 1 to N; broadcast with p.

    Returns:
        the broadcast shape.

    Raises:
        UsageError: as `binomial_log_pmf`, or a rank outside 1..N.

    Example:
        >>> round(float(np.exp(binomial_log_pmf_at(0.5, 3, 2))), 12)
        0.5
    """
    chance = np.asarray(p, dtype=np.float64)
    if not ((chance >= 0) & (chance <= 1)).all():
        raise UsageError("p of the binomial law is a probability: give a number from 0 to 1")
    last, j = _impostors(speakers), _beaten_by(rank, speakers)
    with np.errstate(divide="ignore"):
        won, lost = np.log(chance), np.log1p(-chance)
    return np.asarray(_log_choose(last, j) + _times(j, won) + _times(last - j, lost))


def mean_disclosure_bits(alpha: ArrayLike, beta: ArrayLike, speakers: int) -> _Doubles:
    """MeanD of the law, ``log2 N - H(gamma)``, in [0, log2 N].

    Args:
        alpha: first parameter, > 0, shape (...).
        beta: second parameter, > 0; broadcast with alpha.
        speakers: N >= 2. Above 2048 the sum runs over a few hundred nodes (error below 1e-6 bits).

    Returns:
        the broadcast shape of the parameters.

    Raises:
        UsageError: as `log_pmf`.

    Example:
        >>> round(float(mean_disclosure_bits(0.6248, 1.7375, 11696)), 3)
        0.59
    """
    a, b = _parameters(alpha, beta)
    last = _impostors(speakers)
    flat = np.stack([a.ravel(), b.ravel()])
    entropy = np.full(flat.shape[1], np.nan)
    if speakers > _THIN_FROM:
        entropy = _thinned_entropy(flat[0], flat[1], last)
    left = np.flatnonzero(np.isnan(entropy))
    step = max(_CHUNK // speakers, 1)
    for start in range(0, left.size, step):
        some = left[start : start + step]
        log = _relative(flat[0, some], flat[1, some], last)
        mass = np.exp(log)
        total = mass.sum(axis=1)
        entropy[some] = np.log(total) - np.einsum("ij,ij->i", mass, log) / total
    return _in_bits(entropy.reshape(a.shape), speakers)


def binomial_mean_disclosure_bits(p: ArrayLike, speakers: int) -> _Doubles:
    """MeanD of the binomial law.

    Args:
        p: in [0, 1], shape (...).
        speakers: N >= 2.

    Returns:
        shape (...).

    Raises:
        UsageError: as `binomial_log_pmf`.

    Example:
        >>> binomial_mean_disclosure_bits(0.0, 8)
        array(3.)
    """
    return _in_bits(_entropy(binomial_log_pmf(p, speakers)), speakers)


def _impostors(speakers: int) -> int:
    if speakers < 2:
        raise UsageError(f"a rank among {speakers} speakers says nothing: take at least 2")
    return int(speakers) - 1


def _parameters(alpha: ArrayLike, beta: ArrayLike) -> tuple[_Doubles, _Doubles]:
    a, b = np.broadcast_arrays(np.asarray(alpha, np.float64), np.asarray(beta, np.float64))
    if not ((a > 0) & (b > 0) & np.isfinite(a) & np.isfinite(b)).all():
        raise UsageError("alpha and beta of a rank law are positive numbers: refit the law")
    return a, b


def _beaten_by(rank: ArrayLike, speakers: int) -> _Doubles:
    ranks = np.asarray(rank)
    if ranks.dtype.kind not in "iu" or not ((ranks >= 1) & (ranks <= speakers)).all():
        raise UsageError(f"a rank is a whole number from 1 to {speakers}")
    return ranks.astype(np.float64) - 1.0


def _ladder(last: int) -> tuple[_Doubles, _Doubles, _Doubles]:
    """j, n - 1 - j and (n - j) / (j + 1) for j in 0..n - 1."""
    j = np.arange(last, dtype=np.float64)
    return j, last - 1 - j, (last - j) / (j + 1)


def _relative(a: _Doubles, b: _Doubles, last: int) -> _Doubles:
    """Log-probability of every rank against that of the likeliest, shape (..., N)."""
    j, back, ways = _ladder(last)
    # Neighbours differ by a simple factor: no special function, and nothing that cancels.
    steps = (a[..., None] + j) / (b[..., None] + back)
    steps *= ways
    np.log(steps, out=steps)
    log = np.zeros((*steps.shape[:-1], last + 1))
    np.cumsum(steps, axis=-1, out=log[..., 1:])
    log -= log.max(axis=-1, keepdims=True)
    return log


def _log_at(a: _Doubles, b: _Doubles, last: int, j: _Doubles) -> _Doubles:
    # j need not be whole: the thinned sums evaluate the law between two ranks.
    one = rise(a, j) + rise(b, last - j) - rise(a + b, np.float64(last))
    return np.asarray(_log_choose(last, j) + one)


def _log_at_small(a: _Doubles, b: _Doubles, last: int, j: _Doubles) -> _Doubles:
    # log-gammas are faster (benchmarks/update.py: this stands in every reading), and exact enough
    # for small parameters
    from scipy.special import gammaln

    ways = gammaln(last + 1.0) - gammaln(j + 1.0) - gammaln(last - j + 1.0)
    won = gammaln(a + j) - gammaln(a) + gammaln(b + (last - j)) - gammaln(b)
    return np.asarray(ways + won + gammaln(a + b) - gammaln(a + b + last))


def _log_choose(last: int, j: _Doubles) -> _Doubles:
    few = np.minimum(j, last - j)
    return np.asarray(rise(last - few + 1.0, few) - rise(np.float64(1.0), few))


def rise(x: ArrayLike, m: ArrayLike) -> _Doubles:
    """``log Gamma(x + m) - log Gamma(x)`` without the cancellation of two large log-gammas.

    Stirling's series of the difference; below 16 after ``Gamma(x + 16) = Gamma(x) x ... (x + 15)``.

    Args:
        x: > 0.
        m: > -x; broadcast with x.

    Example:
        >>> round(float(np.exp(rise(3.0, 2.0))), 9)
        12.0
    """
    x, m = np.asarray(x, dtype=np.float64), np.asarray(m, dtype=np.float64)
    small = x < _SHIFT
    y = np.where(small, x + _SHIFT, x)
    risen = (y - 0.5) * np.log1p(m / y) + m * (np.log(y + m) - 1.0) + (_tail(y + m) - _tail(y))
    if not small.any():
        return np.asarray(risen)
    low = np.where(small, x, 1.0)
    return np.asarray(risen + np.where(small, _log_product(low) - _log_product(low + m), 0.0))


def _tail(x: _Doubles) -> _Doubles:
    square = 1.0 / (x * x)
    return np.asarray((1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) / x)


def _log_product(x: _Doubles) -> _Doubles:
    product = x.copy()
    for step in range(1, _SHIFT):
        product *= x + step
    return np.asarray(np.log(product))


def _times(count: _Doubles, log: _Doubles) -> _Doubles:
    """``count * log`` where nothing times minus infinity is nothing."""
    return np.asarray(count * np.where((count == 0) & np.isinf(log), 0.0, log))


def _entropy(log: _Doubles) -> _Doubles:
    return np.asarray(-(np.exp(log) * np.where(np.isinf(log), 0.0, log)).sum(axis=-1))


def _thinned_entropy(a: _Doubles, b: _Doubles, last: int) -> _Doubles:
    """Entropies through nodes that are dense at both ends; NaN where a law is too narrow."""
    lower = (last + 2) // 2
    upper = last + 1 - lower
    j = np.concatenate([quadrature.nodes(lower), last - quadrature.nodes(upper)])
    weight = np.concatenate([quadrature.weights(lower), quadrature.weights(upper)])
    entropy = np.empty(a.shape)
    few = a.size < _FEW and max(a.max(), b.max()) + last < _LARGE
    at, near = (_log_at_small, 1e-8) if few else (_log_at, 1e-9)
    step = max(_CHUNK // j.size, 1)
    for start in range(0, a.size, step):
        some = slice(start, start + step)
        log = at(a[some, None], b[some, None], last, j)
        mass = np.exp(log)
        # Nodes that give the right mass and the right mean give the right entropy; where a law is
        # so narrow that it falls between them, the caller sums over every rank.
        share = a[some] / (a[some] + b[some])
        mean = mass @ (weight * j) / last
        seen = (np.abs(mass @ weight - 1.0) < near) & (np.abs(mean / share - 1.0) < near)
        entropy[some] = np.where(seen, -(mass * log) @ weight, np.nan)
    return entropy


def _in_bits(entropy: _Doubles, speakers: int) -> _Doubles:
    return np.asarray(np.clip(np.log2(speakers) - entropy / np.log(2.0), 0.0, np.log2(speakers)))
