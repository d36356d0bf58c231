"""Rank models: SRD's beta-binomial distribution, its losses and its fit to a histogram of ranks.

Source: SRD section IV-B, equation (3) as corrected in docs/method.md section 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from monitor.arrays import real_numbers
from monitor.errors import CalibrationError, UsageError
from monitor.maths.logistic import descend
from monitor.types import BoolArray, DoubleArray, FloatArray, IntArray

# Consider a sum ``sum_i w_i f(i)`` over thousands of ranks. It needs few values of f if f is smooth
# on the scale of i itself. Examples are log(a + i) and 1 / (a + i) for every a > 0. The first
# values are nodes one by one, followed by blocks of doubling width with 16 Chebyshev nodes each. On
# such a block the interpolation error falls by 5.8 with every node, so that 16 nodes leave about
# 1e-12. ``benchmarks/scale.py`` shows its use, a reading among tens of thousands.
EXACT = 48
ORDER = 16


def nodes(count: int) -> DoubleArray:
    """Return the nodes of f for a sum over 0, 1, ..., count - 1."""
    return _from_below(count, EXACT, ORDER)[0]


def gather(weights: FloatArray) -> DoubleArray:
    """Move weights (..., count) of all ranks to the nodes, where some become negative.

    ``w @ f(ranks)`` is ``gather(w) @ f(nodes)``.
    """
    weights = np.asarray(weights, dtype=np.float64)
    parts = [
        weights[..., start:stop] @ matrix for start, stop, matrix in _shares(weights.shape[-1])
    ]
    return np.concatenate([weights[..., :EXACT], *parts], axis=-1)


@lru_cache(maxsize=8)
def _shares(count: int) -> tuple[tuple[int, int, DoubleArray], ...]:
    """Compute the fraction of each rank's weight that `gather` moves to each node, by block."""
    shares = []
    for start, stop in _blocks(count, EXACT):
        weights = np.eye(stop - start)
        if stop - start > ORDER:
            centre, half = (start + stop - 1) / 2, (stop - 1 - start) / 2
            angles = np.arccos(np.clip((np.arange(start, stop) - centre) / half, -1.0, 1.0))
            weights = np.cos(np.outer(angles, np.arange(ORDER))) @ _series(ORDER)[1]
        shares.append((start, stop, weights))
    return tuple(shares)


def _blocks(count: int, first: int) -> Iterator[tuple[int, int]]:
    """Split the ranks after the ``first`` ones into blocks that double in width."""
    start = first
    while start < count:
        stop = min(2 * start, count)
        yield start, stop
        start = stop


@lru_cache(maxsize=4)
def _series(order: int) -> tuple[DoubleArray, DoubleArray]:
    """Return Chebyshev nodes in [-1, 1], and the matrix from values there to the series."""
    angles = (np.arange(order) + 0.5) * np.pi / order
    series = np.cos(np.outer(np.arange(order), angles)) * 2 / order
    series[0] /= 2
    return np.cos(angles), series


@lru_cache(maxsize=64)
def _from_below(count: int, first: int, order: int) -> tuple[DoubleArray, DoubleArray]:
    """Return nodes of 0, 1, ..., count - 1, and the weight of each in a plain sum.

    The first ``first`` ranks are nodes one by one. Each following block has ``order`` nodes.
    """
    exact = np.arange(min(count, first), dtype=np.float64)
    positions, sums = [exact], [np.ones(exact.size)]
    for start, stop in _blocks(count, first):
        if stop - start <= order:
            positions.append(np.arange(start, stop, dtype=np.float64))
            sums.append(np.ones(stop - start))
        else:
            centre, half = (start + stop - 1) / 2, (stop - 1 - start) / 2
            positions.append(centre + half * _series(order)[0])
            sums.append(_block_sum(stop - start, order))
    return np.concatenate(positions), np.concatenate(sums)


@lru_cache(maxsize=256)
def _block_sum(ranks: int, order: int) -> DoubleArray:
    """Compute each node's weight in a plain sum over a block of more ranks than nodes.

    The Euler-Maclaurin formula sums Chebyshev polynomials over ranks exactly, in time that does not
    depend on the number of ranks.
    """
    from scipy.special import bernoulli

    numbers, step = bernoulli(order), 2.0 / (ranks - 1)
    even = np.arange(0.0, order, 2.0)  # polynomials of odd degree sum to 0
    sums = 2.0 / (1.0 - even * even) / step + 1.0  # the integral, and half of both ends
    derivative, scale = np.ones(even.size), 1.0  # r-th derivative at 1, and step^r / (r + 1)!
    for r in range(1, order):
        derivative = derivative * (even * even - (r - 1) ** 2) / (2 * r - 1)
        scale *= step / (r + 1)
        if r % 2:
            sums += 2.0 * numbers[r + 1] * scale * derivative
    return np.asarray(sums @ _series(order)[1][::2])


_FINE_EXACT, _FINE_ORDER = 128, 24  # more nodes, for a rank model that is narrow among many ranks


def sum_nodes(
    count: int, windows: Sequence[tuple[int, int]] = (), *, coarse: bool = False
) -> tuple[DoubleArray, DoubleArray]:
    """Return the nodes of f for a sum over 0, 1, ..., count - 1, and the weight of each.

    ``windows`` are disjoint stretches of ranks, ``[first, last)``, in order. Within them f is known
    at every rank. Between them there are about a hundred nodes, dense at both ends, or fewer if
    ``coarse``.
    """
    counts = (EXACT, ORDER) if coarse else (_FINE_EXACT, _FINE_ORDER)
    positions, sums, start = [], [], 0
    for first, last in (*windows, (count, count)):
        size = first - start
        if size > 0:
            lower = (size + 1) // 2
            for end, sign, half in ((start, 1, lower), (first - 1, -1, size - lower)):
                if half:
                    offsets, weight = _from_below(half, *counts)
                    positions.append(end + sign * offsets)
                    sums.append(weight)
        if last > first:
            positions.append(np.arange(first, last, dtype=np.float64))
            sums.append(np.ones(last - first))
        start = last
    return np.concatenate(positions), np.concatenate(sums)


# The number of impostors with higher scores, j of n = N - 1, is beta-binomial. The true speaker's
# rank is k = j + 1, from 1 to N. This gives ``gamma_k = C(n, j) B(j + alpha, n - j + beta) /
# B(alpha, beta)``. The paper prints alpha twice and counts j from 1 to N. Neither sums to one
# (docs/method.md section 3). If (alpha, beta) diverge, the model is Binomial(n, p). Logarithms are
# natural, except in names that end in ``_bits``.
_FEW = 8
_LARGE = 1e5  # differences of log-gammas above this lose digits that matter: error 1e-10 here
_SHIFT = 16
_TABLED = 4096  # impostors
ALL_RANKS_TO = 2048
_CHUNK = 1 << 19  # maximum numbers processed at once, to limit memory
_ROWS = 32
FINE_FROM = 1 << 17  # with more speakers, `sum_nodes` replaces sums over every rank where possible
_FINE_NEAR = 1e-8
"""Tolerated deviation from mass 1 by log-gammas of millions, at most 1e-6 bits in the figure."""


def log_pmf(alpha: ArrayLike, beta: ArrayLike, speakers: int) -> DoubleArray:
    """Compute every rank's log-probability, of alpha and beta > 0, (...): (..., N), rank 1 first.

    Example:
        >>> np.exp(log_pmf(1.0, 1.0, 4))
        array([0.25, 0.25, 0.25, 0.25])
    """
    a, b = _parameters(alpha, beta)
    log = _relative(a, b, _impostors(speakers))
    log -= np.log(np.exp(log).sum(axis=-1, keepdims=True))
    return log


def log_pmf_at(alpha: ArrayLike, beta: ArrayLike, speakers: int, rank: ArrayLike) -> DoubleArray:
    """Compute `log_pmf` of single ranks, 1 to N, broadcast with the parameters."""
    a, b = _parameters(alpha, beta)
    last, j = _impostors(speakers), _beaten_by(rank, speakers)
    log, large = _log_at_small(a, b, last, j), np.maximum(a, b) + last > _LARGE
    return np.where(large, _log_at(a, b, last, j), log) if large.any() else log


def binomial_log_pmf(p: ArrayLike, speakers: int) -> DoubleArray:
    """Compute every rank's log-probability, (..., N), if an impostor wins with chance p, (...)."""
    rank = np.arange(1, _impostors(speakers) + 2)
    return binomial_log_pmf_at(np.asarray(p, dtype=np.float64)[..., None], speakers, rank)


def binomial_log_pmf_at(p: ArrayLike, speakers: int, rank: ArrayLike) -> DoubleArray:
    """Compute `binomial_log_pmf` of single ranks, 1 to N, broadcast with p."""
    chance = np.asarray(p, dtype=np.float64)
    if not ((chance >= 0) & (chance <= 1)).all():
        raise UsageError("invalid p of the binomial rank model: use 0 to 1")
    last, j = _impostors(speakers), _beaten_by(rank, speakers)
    if last > _TABLED:
        return _binomial_log(chance, last, j)
    return _binomial_log(chance, last, j, _log_choose_table(last)[j.astype(np.intp)])


def mean_disclosure_bits(alpha: ArrayLike, beta: ArrayLike, speakers: int) -> DoubleArray:
    """Compute MeanD of the rank model, ``log2 N - H(gamma)``, in [0, log2 N].

    The parameters are those of `log_pmf`. Above 2048 speakers, the sum uses a few hundred nodes
    (error below 1e-6 bits).

    Example:
        >>> round(float(mean_disclosure_bits(0.6248, 1.7375, 11696)), 3)
        0.59
    """
    a, b = _parameters(alpha, beta)
    last = _impostors(speakers)
    flat = np.stack([a.ravel(), b.ravel()])
    entropy = np.full(flat.shape[1], np.nan)
    if speakers > ALL_RANKS_TO:
        entropy = _entropy(flat[0], flat[1], last, coarse=True)
    remaining = np.flatnonzero(np.isnan(entropy))
    if speakers > FINE_FROM and remaining.size:
        entropy[remaining] = _entropy(flat[0, remaining], flat[1, remaining], last, coarse=False)
        remaining = np.flatnonzero(np.isnan(entropy))
    step = max(_CHUNK // speakers, 1)
    for start in range(0, remaining.size, step):
        batch = remaining[start : start + step]
        log = _relative(flat[0, batch], flat[1, batch], last)
        mass = np.exp(log)
        total = mass.sum(axis=1)
        entropy[batch] = np.log(total) - np.einsum("ij,ij->i", mass, log) / total
    return _in_bits(entropy.reshape(a.shape), speakers)


def mixed_mean_disclosure_bits(
    weights: FloatArray,
    alpha: FloatArray,
    beta: FloatArray,
    binomial: BoolArray,
    uniform: FloatArray,
    speakers: int,
) -> DoubleArray:
    """Compute MeanD of R mixtures of rank models and even odds, without a sum over all ranks.

    ``uniform`` is the weight of the even odds, (R,). Each component, shape (parts, R), has a
    weight, alpha and beta. If it is binomial, p replaces alpha. The result is NaN if a component is
    too narrow.
    """
    narrow = (binomial & (weights > 0)).any(axis=0)
    bits = np.full(weights.shape[1], np.nan)
    wide_rows = np.flatnonzero(~narrow)
    groups = [wide_rows[first : first + _ROWS] for first in range(0, wide_rows.size, _ROWS)]
    for rows in (*groups, *np.flatnonzero(narrow)[:, None]):
        for coarse in (True, False):
            remaining = rows[np.isnan(bits[rows])]
            if remaining.size:
                at = slice(None), remaining
                parts = weights[at], alpha[at], beta[at], binomial[at], uniform[remaining, None]
                bits[remaining] = _mixed(*parts, speakers, coarse)
    return bits


def _mixed(
    weights: FloatArray,
    alpha: FloatArray,
    beta: FloatArray,
    binomial: BoolArray,
    uniform: FloatArray,
    n: int,
    coarse: bool,
) -> DoubleArray:
    """Compute MeanD of one mixture with a binomial part, or of several without: bits (R,)."""
    last = _impostors(n)
    windows: list[tuple[int, int]] = []
    for p in np.sort(alpha[binomial & (weights > 0)]).tolist():
        reach = 12.0 * np.sqrt(last * p * (1.0 - p)) + 8.0
        first = max(int(last * p - reach), windows[-1][1] if windows else 0)
        windows.append((first, max(min(int(last * p + reach) + 1, n), first)))
    if sum(end - first for first, end in windows) > _CHUNK:
        return np.full(weights.shape[1], np.nan)
    j, weight = sum_nodes(n, windows, coarse=coarse)
    gamma = np.zeros((weights.shape[1], j.size))
    for part_share, a, b, narrow in zip(
        weights[..., None], alpha[..., None], beta, binomial, strict=True
    ):
        if not part_share.any():
            continue
        log = _binomial_log(a, last, j) if narrow.any() else _log_at(a, b[:, None], last, j)
        gamma += part_share * np.exp(log)
    is_exact = np.abs(gamma @ weight - 1.0) < _FINE_NEAR
    gamma = (1.0 - uniform) * gamma + uniform / n
    bits = np.log2(n) + (gamma * np.log2(np.maximum(gamma, 1e-300))) @ weight
    return np.where(is_exact, np.clip(bits, 0.0, np.log2(n)), np.nan)


def binomial_mean_disclosure_bits(p: ArrayLike, speakers: int) -> DoubleArray:
    """Compute MeanD of the binomial rank model, with p of `binomial_log_pmf`: bits (...)."""
    log = binomial_log_pmf(p, speakers)
    entropy = -(np.exp(log) * np.where(np.isinf(log), 0.0, log)).sum(axis=-1)
    return _in_bits(np.asarray(entropy), speakers)


def _impostors(speakers: int) -> int:
    if speakers < 2:
        raise UsageError(f"invalid number of speakers {speakers}: use at least 2")
    return int(speakers) - 1


def _parameters(alpha: ArrayLike, beta: ArrayLike) -> tuple[DoubleArray, DoubleArray]:
    a, b = np.broadcast_arrays(np.asarray(alpha, np.float64), np.asarray(beta, np.float64))
    if not ((a > 0) & (b > 0) & np.isfinite(a) & np.isfinite(b)).all():
        raise UsageError("alpha and beta of a rank model must be positive: refit the rank model")
    return a, b


def _beaten_by(rank: ArrayLike, speakers: int) -> DoubleArray:
    ranks = np.asarray(rank)
    if ranks.dtype.kind not in "iu" or not ((ranks >= 1) & (ranks <= speakers)).all():
        raise UsageError(f"a rank must be a whole number from 1 to {speakers}")
    return ranks.astype(np.float64) - 1.0


def _relative(a: DoubleArray, b: DoubleArray, last: int) -> DoubleArray:
    """Compute every rank's log-probability minus that of the likeliest rank, shape (..., N)."""
    j = np.arange(last, dtype=np.float64)
    # Neighbours differ by a simple factor, without special functions or cancellation.
    steps = (a[..., None] + j) / (b[..., None] + (last - 1 - j))
    steps *= (last - j) / (j + 1)
    np.log(steps, out=steps)
    log = np.zeros((*steps.shape[:-1], last + 1))
    np.cumsum(steps, axis=-1, out=log[..., 1:])
    log -= log.max(axis=-1, keepdims=True)
    return log


def _log_at(a: DoubleArray, b: DoubleArray, last: int, j: DoubleArray) -> DoubleArray:
    # j need not be whole: the thinned sums evaluate the rank model between two ranks.
    log_beta = rise(a, j) + rise(b, last - j) - rise(a + b, np.float64(last))
    return np.asarray(_log_choose(last, j) + log_beta)


def _log_at_small(a: DoubleArray, b: DoubleArray, last: int, j: DoubleArray) -> DoubleArray:
    # log-gammas are faster, which matters in every reading (benchmarks/scale.py), and exact enough
    # for small parameters
    from scipy.special import gammaln

    log_choose = gammaln(last + 1.0) - gammaln(j + 1.0) - gammaln(last - j + 1.0)
    log_beta = gammaln(a + j) - gammaln(a) + gammaln(b + (last - j)) - gammaln(b)
    return np.asarray(log_choose + log_beta + gammaln(a + b) - gammaln(a + b + last))


def _log_choose(last: int, j: DoubleArray) -> DoubleArray:
    smaller = np.minimum(j, last - j)
    return np.asarray(rise(last - smaller + 1.0, smaller) - rise(np.float64(1.0), smaller))


def rise(x: ArrayLike, m: ArrayLike) -> DoubleArray:
    """Compute ``log Gamma(x + m) - log Gamma(x)``, x > 0, without cancelling log-gammas.

    It is Stirling's series of the difference, for x < 16 after ``Gamma(x + 16) = Gamma(x) x ... (x
    + 15)``.

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


def _tail(x: DoubleArray) -> DoubleArray:
    square = 1.0 / (x * x)
    return np.asarray((1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) / x)


def _log_product(x: DoubleArray) -> DoubleArray:
    product = x.copy()
    for step in range(1, _SHIFT):
        product *= x + step
    return np.asarray(np.log(product))


@lru_cache(maxsize=4)
def _log_choose_table(last: int) -> DoubleArray:
    return _log_choose(last, np.arange(last + 1.0))


def _binomial_log(
    p: DoubleArray, last: int, j: DoubleArray, log_choose: DoubleArray | None = None
) -> DoubleArray:
    # 0 times minus infinity is 0
    def times(count: DoubleArray, log: DoubleArray) -> DoubleArray:
        return np.asarray(count * np.where((count == 0) & np.isinf(log), 0.0, log))

    with np.errstate(divide="ignore"):
        won, lost = np.log(p), np.log1p(-p)
    log_choose = _log_choose(last, j) if log_choose is None else log_choose
    return np.asarray(log_choose + times(j, won) + times(last - j, lost))


def _entropy(a: DoubleArray, b: DoubleArray, last: int, *, coarse: bool) -> DoubleArray:
    """Compute entropies through nodes; NaN where a rank model is too narrow for them."""
    j, weight = sum_nodes(last + 1, coarse=coarse)
    entropy = np.empty(a.shape)
    small = a.size < _FEW and max(a.max(), b.max()) + last < _LARGE
    log_probability, tolerance = (_log_at_small, 1e-8) if small else (_log_at, 1e-9)
    tolerance = _FINE_NEAR if last >= FINE_FROM else tolerance
    step = max(_CHUNK // j.size, 1)
    for start in range(0, a.size, step):
        batch = slice(start, start + step)
        log = log_probability(a[batch, None], b[batch, None], last, j)
        mass = np.exp(log)
        # Nodes with the right mass and mean give the right entropy. If a model is narrow enough to
        # fall between them, the caller sums over every rank.
        expected = a[batch] / (a[batch] + b[batch])
        mean = mass @ (weight * j) / last
        is_exact = (np.abs(mass @ weight - 1.0) < tolerance) & (
            np.abs(mean / expected - 1.0) < tolerance
        )
        entropy[batch] = np.where(is_exact, -(mass * log) @ weight, np.nan)
    return entropy


def _in_bits(entropy: DoubleArray, speakers: int) -> DoubleArray:
    return np.asarray(np.clip(np.log2(speakers) - entropy / np.log(2.0), 0.0, np.log2(speakers)))


# In the corrected equation (3), log gamma_k sums log(alpha + i) over i < j and log(beta + i) over i
# < n - j. The likelihood therefore depends on a histogram only through the number of trials above
# and below each i. Those sums can be thinned, so 11696 ranks cost about as much as 200.
LOWEST, HIGHEST = 1e-9, 1e12
"""Range of alpha and beta. A rank model that reaches either end has no finite optimum."""
_ENDS = float(np.log(LOWEST)), float(np.log(HIGHEST))


@dataclass(frozen=True, slots=True)
class _Tails:
    """Fractions of trials with j > i, with n - j > i, and of all, at the nodes i."""

    above: DoubleArray
    below: DoubleArray
    every: DoubleArray
    at: DoubleArray

    @classmethod
    def from_shares(cls, shares: DoubleArray) -> _Tails:
        """Sum the tails of histograms that each sum to one, shape (B, N)."""
        above = np.cumsum(shares[:, :0:-1], axis=1)[:, ::-1]
        below = np.cumsum(shares[:, :-1], axis=1)[:, ::-1]
        last = above.shape[1]
        return cls(gather(above), gather(below), gather(np.ones(last)), nodes(last))

    def __call__(
        self, logs: DoubleArray, rows: IntArray
    ) -> tuple[DoubleArray, DoubleArray, DoubleArray]:
        """Compute loss (up to a constant), gradient and Hessian at (log alpha, log beta)."""
        a, b = np.exp(logs).T
        above, below = self.above[rows], self.below[rows]
        x, y, z = (value[:, None] + self.at for value in (a, b, a + b))
        # Relative to the uniform rank model, the logarithms are small, and little cancels.
        unit = self.at + 1.0
        loss = (
            np.log(z / unit) @ self.every
            - _dot(above, np.log(x / unit))
            - _dot(below, np.log(y / unit))
        )
        x, y, z = 1.0 / x, 1.0 / y, 1.0 / z
        sums, curvature = z @ self.every, (z * z) @ self.every
        gradient_a = a * (sums - _dot(above, x))
        gradient_b = b * (sums - _dot(below, y))
        hessian = np.empty((a.size, 2, 2))
        hessian[:, 0, 0] = gradient_a + a * a * (_dot(above, x * x) - curvature)
        hessian[:, 1, 1] = gradient_b + b * b * (_dot(below, y * y) - curvature)
        hessian[:, 0, 1] = hessian[:, 1, 0] = -a * b * curvature
        return loss, np.stack([gradient_a, gradient_b], axis=1), hessian


def _dot(weights: DoubleArray, values: DoubleArray) -> DoubleArray:
    return np.asarray(np.einsum("bk,bk->b", weights, values))


# SRD's four losses beside the likelihood, with their slopes (SRD section IV-B).
_HELD = 1e5  # weight of CLL's constraint at rank 1 (SRD eq. 7)


def loss_values(shares: DoubleArray, log: DoubleArray, loss: str) -> DoubleArray:
    """Compute one of `LOSSES` of log-probabilities (..., N), for a histogram that sums to one.

    Nats for LL and CLL, squared probability for the others.
    """
    if loss in ("LL", "CLL"):
        occurs = shares > 0
        value = -(log[..., occurs] @ shares[occurs])
        if loss == "CLL":
            value = value + _HELD * (shares[0] - np.exp(log[..., 0])) ** 2
        return np.asarray(value)
    return np.asarray((shares - np.exp(log)) ** 2 @ _weights(shares, loss))


def _weights(shares: DoubleArray, loss: str) -> DoubleArray:
    if loss == "MS":
        return np.ones(shares.size)
    return shares if loss == "WMS" else np.exp(-np.arange(1.0, shares.size + 1.0))


@dataclass(frozen=True, slots=True)
class RankLoss:
    """Any loss except LL at (log alpha, log beta), divided by ``unit``."""

    shares: DoubleArray
    loss: str
    unit: float = 1.0

    def __call__(self, logs: DoubleArray) -> tuple[DoubleArray, DoubleArray, DoubleArray]:
        """Compute loss (B,), gradient (B, 2), Hessian (B, 2, 2) at B points, shape (B, 2)."""
        a, b = np.exp(logs).T
        log = log_pmf(a, b, self.shares.size)
        gradients, hessians = _derivatives(a[:, None], b[:, None], self.shares.size - 1)
        gamma, weights = np.exp(log), np.ones(1)
        residual = gamma - self.shares
        if self.loss == "CLL":
            # only rank 1 enters the squared part
            gamma, residual, weights = gamma[:, :1], residual[:, :1], np.full(1, _HELD)
        else:
            weights = _weights(self.shares, self.loss)
        ranks, outer = gamma.shape[1], gradients[:, :, None] * gradients[:, None]
        first = gamma[:, None] * gradients[..., :ranks]
        second = gamma[:, None, None] * (outer + hessians)[..., :ranks]
        gradient = 2.0 * (first * residual[:, None]) @ weights
        hessian = first[:, :, None] * first[:, None] + residual[:, None, None] * second
        hessian = 2.0 * hessian @ weights
        if self.loss == "CLL":
            gradient -= gradients @ self.shares
            hessian -= hessians @ self.shares
        value = loss_values(self.shares, log, self.loss)
        return value / self.unit, gradient / self.unit, hessian / self.unit


def _derivatives(a: DoubleArray, b: DoubleArray, last: int) -> tuple[DoubleArray, DoubleArray]:
    """Differentiate log gamma twice in (log a, log b): (B, 2, N) and (B, 2, 2, N)."""
    i = np.arange(last, dtype=np.float64)
    x, y, z = 1.0 / (a + i), 1.0 / (b + i), 1.0 / (a + b + i)
    total, curvature = z.sum(axis=1, keepdims=True), (z * z).sum(axis=1, keepdims=True)
    gradient_a, gradient_b = a * (_sums(x) - total), b * (_sums(y)[:, ::-1] - total)
    cross_term = np.broadcast_to(a * b * curvature, gradient_a.shape)
    curvature_a = gradient_a + a * a * (curvature - _sums(x * x))
    curvature_b = gradient_b + b * b * (curvature - _sums(y * y)[:, ::-1])
    hessian = np.stack([curvature_a, cross_term, cross_term, curvature_b], axis=1)
    return np.stack([gradient_a, gradient_b], axis=1), hessian.reshape(len(a), 2, 2, last + 1)


def _sums(steps: DoubleArray) -> DoubleArray:
    """Sum from zero: shape (B, n) to (B, n + 1)."""
    sums = np.zeros((steps.shape[0], steps.shape[1] + 1))
    np.cumsum(steps, axis=1, out=sums[:, 1:])
    return sums


# Fitting the rank model to a histogram of ranks (SRD section IV-B, docs/method.md section 3).
LOSSES = ("LL", "MS", "WMS", "RWMS", "CLL")
"""Log-likelihood, mean squares (plain, weighted by p, weighted by exp(-k)), and LL constrained at
rank 1.
"""

_DIPS = 4
_GRID = np.log(10.0) * np.stack(
    [axis.ravel() for axis in np.meshgrid(np.linspace(-3, 3, 15), np.linspace(-3, 3, 15))], axis=1
)
"""(log alpha, log beta) at which a search looks for minima: 15 x 15, from 1e-3 to 1e3."""
_TRIED = 25  # steps from every start; the search continues only from the best result


@dataclass(frozen=True, slots=True)
class RankFit:
    """A fitted rank model, with its loss and notes."""

    # alpha, beta: parameters of the model. If ``binomial``, the probability p that an impostor
    # wins, and 1 - p.
    alpha: float
    beta: float
    # whether the histogram is no wider than a binomial, so that (alpha, beta) would diverge
    binomial: bool
    loss: str  # the minimised loss (``"LL"`` if ``"CLL"`` is undefined)
    # value of the loss, in nats per trial for LL and CLL, squared probability for the others
    value: float
    # warnings. ``"perfect"`` means always rank 1, ``"sparse"`` fewer trials than ranks, and
    # ``"reversed"`` a mean rank above (N + 1) / 2. ``"LL instead of CLL"`` means that rank 1 is
    # missing or trials are sparse. ``"at the bound"`` means no finite optimum within the range, and
    # ``"under-dispersed"`` a binomial model that is not perfect.
    notes: tuple[str, ...] = ()

    def log_pmf(self, speakers: int) -> FloatArray:
        """Compute every rank's log-probability, shape (N,), at any N, not only the fitted one."""
        if self.binomial:
            return binomial_log_pmf(self.alpha, speakers)
        return log_pmf(self.alpha, self.beta, speakers)

    def mean_disclosure_bits(self, speakers: int) -> float:
        """Compute MeanD of the rank model among N speakers."""
        if self.binomial:
            return float(binomial_mean_disclosure_bits(self.alpha, speakers))
        return float(mean_disclosure_bits(self.alpha, self.beta, speakers))


def fit(
    histogram: FloatArray | IntArray,
    loss: str = "LL",
    likeliest: tuple[FloatArray, FloatArray, BoolArray] | None = None,
) -> RankFit:
    """Fit the rank model to one histogram by one of `LOSSES`; the live rank model is LL.

    ``histogram``, (N,), rank 1 first, has counts, weights, or proportions that sum to one.
    Proportions have an unknown number of trials and are never called sparse. Without a finite
    optimum, the rank model is the binomial one. ``likeliest`` is the result of `fit_many`, if
    known.

    Example:
        >>> rank_model = fit(np.array([40.0, 25, 15, 10, 6, 4]))
        >>> round(rank_model.mean_disclosure_bits(6), 2), rank_model.notes
        (0.38, ())
    """
    if loss not in LOSSES:
        raise UsageError(f"unknown loss {loss!r}: use one of {', '.join(LOSSES)}")
    counts = _checked(real_numbers(histogram, "counts of ranks", np.float64)[None])
    shares = counts[0] / counts[0].sum()
    alpha, beta, binomial = fit_many(counts) if likeliest is None else likeliest
    notes = _notes(counts[0], bool(binomial[0]))
    if loss == "CLL" and (shares[0] == 0 or "sparse" in notes):
        loss, notes = "LL", [*notes, "LL instead of CLL"]
    point = np.array([alpha[0], beta[0]])
    if binomial[0]:
        log = binomial_log_pmf(point[0], shares.size)
    else:
        if loss != "LL":
            point = _search(shares, loss, point)
        if point.min() <= 2 * LOWEST or point.max() >= HIGHEST / 2:
            notes = [*notes, "at the bound"]
        log = log_pmf(point[0], point[1], shares.size)
    value = float(loss_values(shares, log, loss))
    return RankFit(float(point[0]), float(point[1]), bool(binomial[0]), loss, value, tuple(notes))


def fit_many(histograms: FloatArray | IntArray) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Fit the rank model to many histograms (B, N) by log-likelihood, all at once.

    It returns ``alpha``, ``beta`` and ``binomial``, (B,). If ``binomial``, alpha is p and beta is 1
    - p, as in `RankFit`. It raises the errors of `fit`.

    Example:
        >>> histograms = np.array([[40.0, 25, 15, 10, 6, 4], [9, 0, 0, 0, 0, 0]])
        >>> alpha, beta, binomial = fit_many(histograms)
        >>> alpha.round(2), beta.round(2), binomial
        (array([0.67, 0.  ]), array([1.91, 1.  ]), array([False,  True]))
    """
    counts = _checked(real_numbers(histograms, "counts of ranks", np.float64))
    shares = counts / counts.sum(axis=1, keepdims=True)
    last = shares.shape[1] - 1
    j = np.arange(last + 1, dtype=np.float64)
    mean = shares @ j
    variance = np.maximum(shares @ (j * j) - mean * mean, 0.0)
    alpha = np.clip(mean / last, 0.0, 1.0)
    beta = 1.0 - alpha
    binomial_variance = last * alpha * beta
    # At the binomial limit the slope of the likelihood has the sign of (variance - n p q).
    binomial = variance <= binomial_variance * (1 + 1e-9)
    is_wide = np.flatnonzero(~binomial)
    if is_wide.size:
        excess = variance[is_wide] - binomial_variance[is_wide]
        # moments
        total = np.clip((last * binomial_variance[is_wide] - variance[is_wide]) / excess, 1e-2, 1e9)
        start = np.stack([alpha[is_wide] * total, beta[is_wide] * total], axis=1)
        alpha[is_wide], beta[is_wide] = np.exp(
            descend(_Tails.from_shares(shares[is_wide]), np.log(start), *_ENDS)[0]
        ).T
    return alpha, beta, binomial


def pmf_of(alpha: FloatArray, beta: FloatArray, binomial: BoolArray, speakers: int) -> FloatArray:
    """Compute every rank's probability under ``fit_many``'s rank models, (B, N), at any N."""
    pmf = np.empty((alpha.size, speakers))
    pmf[binomial] = np.exp(binomial_log_pmf(alpha[binomial], speakers))
    if not binomial.all():
        pmf[~binomial] = np.exp(log_pmf(alpha[~binomial], beta[~binomial], speakers))
    return pmf


def mean_bits_of(
    alpha: FloatArray, beta: FloatArray, binomial: BoolArray, speakers: int
) -> FloatArray:
    """Compute MeanD of each of ``fit_many``'s rank models among N speakers, shape (B,)."""
    bits = np.empty(alpha.shape)
    if binomial.any():
        bits[binomial] = binomial_mean_disclosure_bits(alpha[binomial], speakers)
    if not binomial.all():
        bits[~binomial] = mean_disclosure_bits(alpha[~binomial], beta[~binomial], speakers)
    return bits


def _checked(counts: DoubleArray) -> DoubleArray:
    if counts.ndim != 2 or counts.shape[1] < 2:
        raise UsageError("a rank histogram has one number for each of at least two ranks")
    if not ((counts >= 0) & np.isfinite(counts)).all():
        raise UsageError("a rank histogram has a negative or infinite count: count the ranks again")
    if not (counts.sum(axis=1) > 0).all():
        raise CalibrationError("no trials to fit a rank model to: add speech of enrolled speakers")
    return counts


def _notes(counts: DoubleArray, binomial: bool) -> list[str]:
    notes, total, ranks = [], counts.sum(), counts.size
    if binomial:
        notes.append("perfect" if counts[0] == total else "under-dispersed")
    proportions = abs(total - 1.0) < 1e-9 and counts.max() < 1.0 - 1e-9
    if total < ranks * (1 - 1e-12) and not proportions:  # sums of weights may round
        notes.append("sparse")
    if counts @ np.arange(ranks) > total * (ranks - 1) / 2 * (1 + 1e-12):
        notes.append("reversed")
    return notes


def _search(shares: DoubleArray, loss: str, likeliest: DoubleArray) -> DoubleArray:
    """Minimise a loss with several minima, from ``likeliest`` and the lowest dips of a grid."""
    side = int(np.sqrt(len(_GRID)))
    step = max(_CHUNK // shares.size, 1)
    batches = [np.exp(_GRID[k : k + step]).T for k in range(0, len(_GRID), step)]
    values = np.concatenate(
        [loss_values(shares, log_pmf(a, b, shares.size), loss) for a, b in batches]
    )
    likeliest_loss = loss_values(shares, log_pmf(likeliest[0], likeliest[1], shares.size), loss)
    # squared losses are tiny, so tolerances must be relative
    unit = float(min(values.min(), likeliest_loss)) or 1.0
    surface = values.reshape(side, side)
    neighbourhoods = np.lib.stride_tricks.sliding_window_view(
        np.pad(surface, 1, constant_values=np.inf), (3, 3)
    )
    dips = np.flatnonzero(surface <= neighbourhoods.min(axis=(2, 3)))
    dips = dips[np.argsort(values[dips], kind="stable")][:_DIPS]
    starts = np.concatenate([np.log(likeliest)[None], _GRID[dips]])
    rank_loss = RankLoss(shares, loss, unit)

    def objective(
        points: DoubleArray, _rows: IntArray
    ) -> tuple[DoubleArray, DoubleArray, DoubleArray]:
        return rank_loss(points)

    optima, value = descend(objective, starts, *_ENDS, _TRIED)
    best, _ = descend(objective, optima[[np.argmin(value)]], *_ENDS)
    return np.asarray(np.exp(best[0]))
