"""Fitting the rank law to a histogram of ranks (SRD section IV-B, docs/method.md section 3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from monitor.errors import CalibrationError, UsageError
from monitor.maths import betabinomial, likelihood
from monitor.maths.descent import descend
from monitor.maths.rankloss import RankLoss, loss_values
from monitor.types import BoolArray, FloatArray, IntArray

__all__ = ["LOSSES", "RankFit", "fit", "fit_many", "mean_bits_of", "pmf_of"]

LOSSES = ("LL", "MS", "WMS", "RWMS", "CLL")
"""Log-likelihood; mean square, plain, weighted by p and by exp(-k); LL held to rank 1."""

_Doubles: TypeAlias = NDArray[np.float64]
_CHUNK = 1 << 19
_DIPS = 4
_GRID = np.log(10.0) * np.stack(
    [axis.ravel() for axis in np.meshgrid(np.linspace(-3, 3, 15), np.linspace(-3, 3, 15))], axis=1
)
"""(log alpha, log beta) where a search looks for dips: 15 x 15, from 1e-3 to 1e3."""
_TRIED = 25
"""Steps from every dip; the search goes on from the best of them only."""


@dataclass(frozen=True, slots=True)
class RankFit:
    """A rank law, and how it was found.

    Attributes:
        alpha: first parameter; where ``binomial``, the chance p that an impostor wins.
        beta: second parameter; where ``binomial``, 1 - p.
        binomial: the histogram is no wider than a binomial: (alpha, beta) would run away.
        loss: the loss that was minimised (``"LL"`` where ``"CLL"`` made no sense).
        value: its value: nats a trial for LL and CLL, squared probability for the others.
        notes: words to warn with: ``"perfect"`` (always rank 1), ``"under-dispersed"``,
            ``"sparse"`` (fewer trials than ranks), ``"reversed"`` (mean rank above (N + 1) / 2),
            ``"LL instead of CLL"`` (rank 1 never seen, or sparse), ``"at the bound"`` (no finite
            optimum, held at the end of the range).
    """

    alpha: float
    beta: float
    binomial: bool
    loss: str
    value: float
    notes: tuple[str, ...] = ()

    def log_pmf(self, speakers: int) -> FloatArray:
        """Log-probability of every rank, shape (N,), at any N, not only the fitted one."""
        if self.binomial:
            return betabinomial.binomial_log_pmf(self.alpha, speakers)
        return betabinomial.log_pmf(self.alpha, self.beta, speakers)

    def mean_disclosure_bits(self, speakers: int) -> float:
        """MeanD of the law among N speakers."""
        if self.binomial:
            return float(betabinomial.binomial_mean_disclosure_bits(self.alpha, speakers))
        return float(betabinomial.mean_disclosure_bits(self.alpha, self.beta, speakers))


def fit(histogram: FloatArray | IntArray, loss: str = "LL") -> RankFit:
    """Fit the law to one histogram.

    Args:
        histogram: shape (N,), index 0 is rank 1: counts, weights, or proportions that sum to one
            (of an unknown number of trials, which are then not called sparse).
        loss: one of `LOSSES`. The live law is LL.

    Returns:
        the law; where the histogram has no finite optimum, the binomial one.

    Raises:
        CalibrationError: the histogram is empty.
        UsageError: unknown loss, fewer than two ranks, a negative or infinite count.

    Example:
        >>> law = fit(np.array([40.0, 25, 15, 10, 6, 4]))
        >>> round(law.mean_disclosure_bits(6), 2), law.notes
        (0.38, ())
    """
    if loss not in LOSSES:
        raise UsageError(f"no loss {loss!r}: take one of {', '.join(LOSSES)}")
    counts = _checked(np.asarray(histogram, dtype=np.float64)[None])
    shares = counts[0] / counts[0].sum()
    alpha, beta, binomial = fit_many(counts)
    notes = _notes(counts[0], bool(binomial[0]))
    if loss == "CLL" and (shares[0] == 0 or "sparse" in notes):
        loss, notes = "LL", [*notes, "LL instead of CLL"]
    point = np.array([alpha[0], beta[0]])
    if binomial[0]:
        log = betabinomial.binomial_log_pmf(point[0], shares.size)
    else:
        if loss != "LL":
            point = _search(shares, loss, point)
        if point.min() <= 2 * likelihood.LOWEST or point.max() >= likelihood.HIGHEST / 2:
            notes = [*notes, "at the bound"]
        log = betabinomial.log_pmf(point[0], point[1], shares.size)
    value = float(loss_values(shares, log, loss))
    return RankFit(float(point[0]), float(point[1]), bool(binomial[0]), loss, value, tuple(notes))


def fit_many(histograms: FloatArray | IntArray) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Fit the law to many histograms by log-likelihood, all at once.

    Args:
        histograms: shape (B, N), as in `fit`.

    Returns:
        ``alpha`` (B,), ``beta`` (B,) and ``binomial`` (B,): where the last is true alpha is p and
        beta is 1 - p, as in `RankFit`.

    Raises:
        CalibrationError: a histogram is empty.
        UsageError: fewer than two ranks, a negative or infinite count.

    Example:
        >>> histograms = np.array([[40.0, 25, 15, 10, 6, 4], [9, 0, 0, 0, 0, 0]])
        >>> alpha, beta, binomial = fit_many(histograms)
        >>> alpha.round(2), beta.round(2), binomial
        (array([0.67, 0.  ]), array([1.91, 1.  ]), array([False,  True]))
    """
    counts = _checked(np.asarray(histograms, dtype=np.float64))
    shares = counts / counts.sum(axis=1, keepdims=True)
    last = shares.shape[1] - 1
    j = np.arange(last + 1, dtype=np.float64)
    mean = shares @ j
    spread = np.maximum(shares @ (j * j) - mean * mean, 0.0)
    alpha = np.clip(mean / last, 0.0, 1.0)
    beta = 1.0 - alpha
    narrowest = last * alpha * beta
    # At the binomial limit the slope of the likelihood has the sign of (variance - n p q).
    binomial = spread <= narrowest * (1 + 1e-9)
    wide = np.flatnonzero(~binomial)
    if wide.size:
        extra = spread[wide] - narrowest[wide]
        total = np.clip((last * narrowest[wide] - spread[wide]) / extra, 1e-2, 1e9)  # moments
        start = np.stack([alpha[wide] * total, beta[wide] * total], axis=1)
        alpha[wide], beta[wide] = likelihood.maximise(shares[wide], start).T
    return alpha, beta, binomial


def pmf_of(alpha: FloatArray, beta: FloatArray, binomial: BoolArray, speakers: int) -> FloatArray:
    """Probability of every rank under each of ``fit_many``'s laws, shape (B, N), at any N.

    Example:
        >>> pmf_of(*fit_many(np.array([[1.0, 1, 1], [9, 0, 0]])), 2).round(6)
        array([[0.5, 0.5],
               [1. , 0. ]])
    """
    pmf = np.empty((alpha.size, speakers))
    pmf[binomial] = np.exp(betabinomial.binomial_log_pmf(alpha[binomial], speakers))
    if not binomial.all():
        pmf[~binomial] = np.exp(betabinomial.log_pmf(alpha[~binomial], beta[~binomial], speakers))
    return pmf


def mean_bits_of(
    alpha: FloatArray, beta: FloatArray, binomial: BoolArray, speakers: int
) -> FloatArray:
    """MeanD of each of ``fit_many``'s laws among N speakers, shape (B,).

    Example:
        >>> mean_bits_of(*fit_many(np.array([[1.0, 1, 1], [9, 0, 0]])), 2).round(6)
        array([0., 1.])
    """
    bits = np.empty(alpha.shape)
    if binomial.any():
        bits[binomial] = betabinomial.binomial_mean_disclosure_bits(alpha[binomial], speakers)
    if not binomial.all():
        bits[~binomial] = betabinomial.mean_disclosure_bits(
            alpha[~binomial], beta[~binomial], speakers
        )
    return bits


def _checked(counts: _Doubles) -> _Doubles:
    if counts.ndim != 2 or counts.shape[1] < 2:
        raise UsageError("a rank histogram has one number for each of at least two ranks")
    if not ((counts >= 0) & np.isfinite(counts)).all():
        raise UsageError(
            "a rank histogram holds a negative or infinite count: count the ranks anew"
        )
    if not (counts.sum(axis=1) > 0).all():
        raise CalibrationError(
            "no trials to learn a rank law from: add speech of enrolled speakers"
        )
    return counts


def _notes(counts: _Doubles, binomial: bool) -> list[str]:
    notes, total, ranks = [], counts.sum(), counts.size
    if binomial:
        notes.append("perfect" if counts[0] == total else "under-dispersed")
    proportions = abs(total - 1.0) < 1e-9 and counts.max() < 1.0 - 1e-9
    if total < ranks * (1 - 1e-12) and not proportions:  # weights add up but for rounding
        notes.append("sparse")
    if counts @ np.arange(ranks) > total * (ranks - 1) / 2 * (1 + 1e-12):
        notes.append("reversed")
    return notes


def _search(shares: _Doubles, loss: str, likeliest: _Doubles) -> _Doubles:
    """Minimise a loss that can have several minima: from each dip of a grid."""
    side = int(np.sqrt(len(_GRID)))
    values = np.concatenate([loss_values(shares, log, loss) for log in _grid(shares.size)])
    own = loss_values(shares, betabinomial.log_pmf(likeliest[0], likeliest[1], shares.size), loss)
    unit = float(min(values.min(), own)) or 1.0  # squared losses are tiny: makes noise relative
    surface = values.reshape(side, side)
    around = np.lib.stride_tricks.sliding_window_view(
        np.pad(surface, 1, constant_values=np.inf), (3, 3)
    )
    dips = np.flatnonzero(surface <= around.min(axis=(2, 3)))
    dips = dips[np.argsort(values[dips], kind="stable")][:_DIPS]
    starts = np.concatenate([np.log(likeliest)[None], _GRID[dips]])
    low, high = float(np.log(likelihood.LOWEST)), float(np.log(likelihood.HIGHEST))
    objective = RankLoss(shares, loss, unit)
    found, value = descend(objective, starts, low, high, _TRIED)
    best, _ = descend(objective, found[[np.argmin(value)]], low, high)
    return np.asarray(np.exp(best[0]))


def _grid(speakers: int) -> Iterator[_Doubles]:
    """Log-probabilities of the laws of the grid, some at a time."""
    step = max(_CHUNK // speakers, 1)
    for k in range(0, len(_GRID), step):
        a, b = np.exp(_GRID[k : k + step]).T
        yield betabinomial.log_pmf(a, b, speakers)
