"""The identification rate and the rank among more people than were measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from monitor.errors import UsageError
from monitor.maths.logistic import descend
from monitor.maths.rank_models import rise
from monitor.types import DoubleArray, FloatArray

__all__ = [
    "FORMS",
    "Form",
    "beta_binomial",
    "beta_mass",
    "fit_rates",
    "logit",
    "mean_bits",
    "pitman_yor",
    "probit",
    "probit_mass",
]

# The first impostor who scores higher takes rank 1. Each form is a model of that probability. It is
# therefore a model of ``rate(n)``, the fraction of trials in which the right one of n people has
# rank 1. All fit equally well on the measured sizes. Far beyond, they diverge, and their difference
# is the uncertainty (docs/method.md section 10).
_STEP = 1e-5  # step of the central differences for slopes
_NEARBY = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]]) * _STEP
_STEPS = 60  # maximum: steps become tiny near the bounds, where the loss is flat
_EDGE = 1e-12  # rates are kept this far from 0 and 1
_MATED = np.arange(-14.0, 26.0, 0.08)
"""Mated scores in standard deviations of impostor scores, fine enough for 1e10 impostors."""


def beta_binomial(points: FloatArray, sizes: FloatArray) -> DoubleArray:
    """Compute SRD's rank-1 rate: each impostor wins with a beta-distributed chance.

    ``rate(n) = B(alpha, n - 1 + beta) / B(alpha, beta)``: docs/method.md section 3 at j = 0.

    Each form maps points (B, 2), here ``(ln alpha, ln beta)``, and sizes n >= 1, (K,), to rates
    (B, K).

    Example:
        >>> beta_binomial(np.zeros((1, 2)), np.array([1.0, 2.0, 4.0])).round(6)
        array([[1.  , 0.5 , 0.25]])
    """
    alpha, beta = np.exp(points).T[..., None]
    return np.asarray(np.exp(rise(beta, alpha) - rise(beta + sizes - 1.0, alpha)))


def probit(points: FloatArray, sizes: FloatArray) -> DoubleArray:
    """Compute the rank-1 rate of normal scores of equal spread, a fraction 1 - w of them missed.

    ``rate(n) = w E[Phi(z)^(n - 1)]``, with z normal with mean d' and deviation 1 (docs/method.md
    section 10). Mated and impostor scores have equal spread, as in signal detection (Green and
    Swets, 1966). A separate deviation would be a third parameter, which a few sizes cannot
    identify.

    Points are ``(logit w, d')``.

    Example:
        >>> probit(np.array([[40.0, 0.0]]), np.array([2.0, 10.0])).round(6)
        array([[0.5, 0.1]])
    """
    from scipy.special import expit, log_ndtr

    density = np.exp(-0.5 * (_MATED - points[:, 1:]) ** 2)
    density /= density.sum(axis=1, keepdims=True)
    best = np.exp(log_ndtr(_MATED)[:, None] * (sizes - 1.0))  # P(a mated score is highest of n)
    return np.asarray(expit(points[:, :1]) * (density @ np.asarray(best)))


def logit(points: FloatArray, sizes: FloatArray) -> DoubleArray:
    """Compute the rank-1 rate if its odds fall as a power of the number of impostors.

    ``rate(n) = 1 / (1 + c (n - 1)^b)``, 0 < b < 1. The rate is therefore 1 without impostors, and
    exactly 1 / n without evidence (c = b = 1).

    Points are ``(ln c, logit b)``.

    Example:
        >>> logit(np.array([[0.0, 40.0]]), np.array([1.0, 2.0, 10.0])).round(6)
        array([[1. , 0.5, 0.1]])
    """
    from scipy.special import expit

    with np.errstate(divide="ignore"):  # without others the odds are infinite
        others = np.log(sizes - 1.0)
    return np.asarray(expit(-points[:, :1] - expit(points[:, 1:]) * others))


def pitman_yor(points: FloatArray, sizes: FloatArray) -> DoubleArray:
    """Compute the correctness of exact matching by a Pitman-Yor process (Rocher et al., 2025).

    Each person has a value drawn from a random distribution. People with the same value can only be
    distinguished by chance. The number of people recognised is therefore the number of distinct
    values K_n among n people, ``rate(n) = E[K_n] / n``. With discount d and concentration t, E[K_n]
    solves ``E[K_n+1] = E[K_n] + (t + d E[K_n]) / (t + n)`` with K_1 = 1. The solution is ``E[K_n] =
    (G(1 + t) / G(d + t) G(n + d + t) / G(n + t) - t) / d``. G is the gamma function (Pitman,
    Combinatorial stochastic processes, 2006, equation 3.13). Rocher, Hendrickx and de Montjoye
    extend it to inexact matching (A scaling rank model to model the effectiveness of identification
    techniques, Nature Communications 16:347, 2025). As there, t is at least 0. As d and t approach
    0, all people have one value and the rate is 1 / n.

    Points are ``(logit d, ln t)``.

    Example:
        >>> pitman_yor(np.array([[0.0, 0.0]]), np.array([1.0, 2.0, 3.0])).round(6)
        array([[1.      , 0.875   , 0.791667]])
    """
    from scipy.special import expit

    d, t = expit(points[:, :1]), np.exp(points[:, 1:])
    values = t * np.expm1(rise(sizes + t, d) - rise(t, d)) / d  # without cancellation
    return np.clip(values / sizes, 1.0 / sizes, 1.0)


@dataclass(frozen=True)
class Form:
    """One parametric form of the rate, with the range of its parameters."""

    name: str  # in keys and on the command line
    label: str  # in tables
    # from parameters, shape (B, 2), and sizes, shape (K,), to rates, shape (B, K)
    rate: Callable[[FloatArray, FloatArray], FloatArray]
    start: tuple[tuple[float, float], ...]  # where searches begin, shape (R, 2)
    low: tuple[float, float]  # minimum of each parameter
    high: tuple[float, float]  # maximum of each parameter


FORMS: Mapping[str, Form] = {
    form.name: form
    for form in (
        Form("beta_binomial", "beta-binomial", beta_binomial,
             ((-1.0, 1.0), (-3.0, 2.0), (0.0, 0.0)), (-16.0, -3.0), (6.0, 16.0)),
        Form("probit", "probit with misses", probit,
             ((2.0, 3.0), (0.0, 2.0), (-1.0, 0.5)), (-9.0, -5.0), (16.0, 14.0)),
        Form("logit", "logit in ln N", logit,
             ((-3.0, 0.0), (-1.0, 1.0), (0.0, 4.0)), (-16.0, -6.0), (9.0, 9.0)),
        Form("pitman_yor", "Pitman-Yor", pitman_yor,
             ((0.0, 3.0), (2.0, 3.0), (-2.0, 1.0)), (-9.0, -8.0), (9.0, 14.0)),
    )
}  # fmt: skip
"""Forms by name, in the order of tables."""


def fit_rates(form: Form, sizes: ArrayLike, rates: ArrayLike, near: ArrayLike = ()) -> DoubleArray:
    """Fit a form to rates by binomial quasi-likelihood.

    ``sizes``, (K,), are 2 or more, at least two of them different. ``rates``, (..., K), are those
    of any number of curves; the result has shape (..., 2). The search starts from ``near``, (2,),
    or from several points.

    Example:
        >>> sizes = np.array([2.0, 5.0, 20.0])
        >>> found = fit_rates(FORMS["logit"], sizes, 1 / (1 + 0.1 * (sizes - 1) ** 0.5))
        >>> FORMS["logit"].rate(found[None], np.array([101.0])).round(4)
        array([[0.5]])
    """
    crowd_sizes, measured = np.asarray(sizes, dtype=np.float64), np.asarray(rates, dtype=np.float64)
    if crowd_sizes.ndim != 1 or np.unique(crowd_sizes).size < 2 or not (crowd_sizes >= 2).all():
        raise UsageError("a form needs rates for at least two crowd sizes, each at least 2")
    if measured.shape[-1:] != crowd_sizes.shape or not ((measured >= 0) & (measured <= 1)).all():
        raise UsageError("invalid rates: give one from 0 to 1 for each size")
    flat = measured.reshape(-1, crowd_sizes.size)
    starts = np.atleast_2d(near) if np.size(near) else np.array(form.start)
    low, high = np.array(form.low), np.array(form.high)
    point = np.tile(starts, (len(flat), 1))
    targets = np.repeat(flat, len(starts), axis=0)
    parameters, loss = descend(
        lambda x, rows: _misfit(form, x, crowd_sizes, targets[rows]), point, low, high, _STEPS
    )
    best = loss.reshape(-1, len(starts)).argmin(axis=1) + len(starts) * np.arange(len(flat))
    return np.asarray(parameters[best].reshape(*measured.shape[:-1], 2))


def _misfit(
    form: Form, point: DoubleArray, sizes: DoubleArray, rates: DoubleArray
) -> tuple[DoubleArray, DoubleArray, DoubleArray]:
    """Compute loss, gradient and Fisher's information of B fits, as `descend` takes them."""
    nearby = point + _NEARBY[:, None]  # (5, B, 2): one call costs little more than for one point
    here, *others = form.rate(nearby.reshape(-1, 2), sizes).reshape(5, -1, sizes.size)
    f = np.clip(here, _EDGE, 1 - _EDGE)
    jacobian = np.stack([others[0] - others[1], others[2] - others[3]], axis=1) / (2 * _STEP)
    precision = 1 / (f * (1 - f))
    loss = -(rates * np.log(f) + (1 - rates) * np.log1p(-f)).mean(axis=1)
    gradient = np.einsum("bik,bk->bi", jacobian, (f - rates) * precision) / sizes.size
    information = np.einsum("bik,bjk,bk->bij", jacobian, jacobian, precision) / sizes.size
    return loss, gradient, information


# MeanD needs a model of the probability that an impostor scores higher than the true speaker. If
# each of M - 1 impostors scores higher with probability p, the rank is 1 + Binomial(M - 1, p). Over
# trials p varies with density f on [0, 1]. MeanD among M is ``log2 M - H(rank)``. It never
# decreases with M, because ranks in a random subset follow from those among all. It tends to the
# divergence of f from the uniform rank model. SRD's rank model is f = Beta(alpha, beta).
_WIDTH = 0.05
_ODDS = np.arange(-60.0, 60.0 + _WIDTH / 2, _WIDTH)  # ln(p / (1 - p)) at the nodes
_LOG_P, _LOG_Q = -np.logaddexp(0.0, -_ODDS), -np.logaddexp(0.0, _ODDS)
_CELL = np.exp(_LOG_P + _LOG_Q) * _WIDTH  # width of a node's cell of p
_EACH = 256
"""Ranks summed one by one at either end. Between them, f hardly changes from rank to rank."""


def beta_mass(points: FloatArray) -> DoubleArray:
    """Compute the probability of each cell of p under SRD's rank model: points (B, 2) to (B, G).

    Mass below the lowest cell is left out.
    """
    from scipy.special import gammaln

    a, b = np.exp(points).T[..., None]
    return np.asarray(_WIDTH * np.exp(a * _LOG_P + b * _LOG_Q + rise(b, a) - gammaln(a)))


def probit_mass(points: FloatArray) -> DoubleArray:
    """Compute the probability of each cell of p under `probit`; p is uniform in misses."""
    from scipy.special import expit, ndtri_exp

    w, d = expit(points[:, :1]), points[:, 1:]
    impostor = np.where(_ODDS > 0, ndtri_exp(_LOG_Q), -ndtri_exp(_LOG_P))
    return np.asarray((w * np.exp(d * impostor - d * d / 2) + 1 - w) * _CELL)


def mean_bits(mass: FloatArray, people: int) -> DoubleArray:
    """Compute MeanD among M >= 2 people, bits (B,); error 0.002 if p spans several cells.

    ``mass`` is from `beta_mass` or `probit_mass`, (B, G). Mass missing from 1 counts at p = 0.

    Example:
        >>> mean_bits(beta_mass(np.log([[0.6248, 1.7375]])), 11696).round(3)
        array([0.59])
    """
    total = np.maximum(mass.sum(axis=1, keepdims=True), 1e-300)
    density = mass / np.maximum(total, 1.0)
    # probability of each rank at either end, or of all ranks if few, by cell: (J, G)
    is_small, others = people <= 2 * _EACH, people - 1.0
    j = np.arange(people if is_small else _EACH, dtype=np.float64)[:, None]
    choose = rise(others - j + 1.0, j) - rise(1.0, j)
    low = np.exp(choose + j * _LOG_P + (others - j) * _LOG_Q)
    ends = [density @ chances.T for chances in ([low] if is_small else [low, low[:, ::-1]])]
    ends[0][:, 0] += 1.0 - density.sum(axis=1)
    bits = sum(_times_log(probability, probability * people).sum(axis=1) for probability in ends)
    if not is_small:
        edge = np.log((_EACH - 0.5) / (people - _EACH + 0.5))
        inside = np.clip((np.abs(edge) - np.abs(_ODDS)) / _WIDTH + 0.5, 0.0, 1.0)
        bits = bits + _times_log(density, density / _CELL) @ inside
    return np.asarray(np.clip(bits, 0.0, np.log2(people)))


def _times_log(probability: DoubleArray, ratio: DoubleArray) -> DoubleArray:
    return np.asarray(probability * np.log2(np.where(probability > 0, ratio, 1.0)))
