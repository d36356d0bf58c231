"""Local information disclosure of one trial, on row-normalised scores."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from monitor.errors import UsageError
from monitor.types import AnyArray, FloatArray, IntArray

# ------------------------------------------------------------------------------------------- scale
# Scaling of rows to a size near 1, so that their squares neither overflow nor vanish.


def near_one(rows: AnyArray) -> _Doubles:
    """Divide each finite row (..., n) by a power of two, exactly, to a largest below 1.

    Example:
        >>> near_one(np.array([[3e300, 0.0], [-6.0, 5.0]])).round(3).tolist()
        [[0.56, 0.0], [-0.75, 0.625]]
    """
    values = np.asarray(rows, dtype=np.float64)
    _, exponent = np.frexp(np.abs(values).max(axis=-1, keepdims=True))
    return np.asarray(np.ldexp(values, -exponent))


# --------------------------------------------------------------------------------------------- lid
# Local information disclosure of one trial, as its paper works it out on row-normalised scores.
#
# For `evaluate` and for comparison: normalising a row forgets how much was heard, so the live
# posterior works on raw scores (docs/method.md section 5).

_Doubles: TypeAlias = NDArray[np.float64]
_CONSTANT = 1e-12


def normalise_rows(scores: FloatArray, ddof: int) -> _Doubles:
    """Normalise rows (T-norm): mean 0 and variance 1 over the N candidates.

    Of (..., N); ddof 0 reproduces the printed worked example, 1 the authors' later code. A row
    without variance says nothing and becomes zeros.

    Raises:
        UsageError: a score is not finite, fewer than two candidates, or another ddof.

    Example:
        >>> normalise_rows(np.array([[1.0, 3.0], [2.0, 2.0]]), 0)
        array([[-1., 1.],
               [ 0., 0.]])
    """
    scores = np.asarray(scores, dtype=np.float64)
    if ddof not in (0, 1):
        raise UsageError(f"no ddof {ddof}: take 0 (the paper) or 1 (the authors' later code)")
    if scores.ndim == 0 or scores.shape[-1] < 2:
        raise UsageError("a row of scores needs at least two candidates")
    if not np.isfinite(scores).all():
        raise UsageError("a score is not finite: drop such trials before normalising them")
    scores = near_one(scores)
    centred = scores - scores.mean(axis=-1, keepdims=True)
    deviation = scores.std(axis=-1, ddof=ddof, keepdims=True)
    flat = deviation <= _CONSTANT * np.abs(scores).max(axis=-1, keepdims=True)
    return np.where(flat, 0.0, centred / np.where(flat, 1.0, deviation))


def log_likelihood_ratios(
    scores: FloatArray, weight: float, bias: float, prior_odds: float | None = None, ddof: int = 0
) -> _Doubles:
    """Compute calibrated scores ``w z + b - ln(prior odds)``, nats, shape (..., N).

    Prior odds are target over non-target trials that the logistic regression was fitted on; None
    where it was fitted on balanced classes.
    """
    if prior_odds is not None and not prior_odds > 0:
        raise UsageError("prior odds are targets over non-targets: give a positive number")
    prior = 0.0 if prior_odds is None else float(np.log(prior_odds))
    return np.asarray(weight * normalise_rows(scores, ddof) + bias - prior)


def local_information_bits(
    scores: FloatArray, target: int | IntArray, weight: float, bias: float,
    prior_odds: float | None = None, ddof: int = 0,
) -> _Doubles:  # fmt: skip
    """Compute ``log2(N p_target)`` under the softmax of the calibrated scores.

    Bias and prior cancel in the softmax; they are taken so that the paper's steps can be followed.
    Of scores (..., N) and the column of the true speaker, a number or (...), bits (...): negative
    where another candidate looks likelier than chance, 0 where the scores do not differ.

    Example:
        >>> row = np.array([0.9, 0.7, 0.4, 1.1, 1.2, 0.4])
        >>> round(float(local_information_bits(row, 3, weight=1.5, bias=-1.0, prior_odds=0.2)), 3)
        0.9
    """
    ratios = log_likelihood_ratios(scores, weight, bias, prior_odds, ddof)
    column = np.asarray(target)
    if column.dtype.kind not in "iu" or (
        column.size and (column.min() < 0 or column.max() >= ratios.shape[-1])
    ):
        raise UsageError(f"a target lies outside the {ratios.shape[-1]} columns of the scores")
    return softmax_bits(ratios, column)


def softmax_bits(ratios: FloatArray, target: IntArray) -> _Doubles:
    """Compute ``log2(N p_target)`` under softmax of log-likelihood ratios, nats (..., N): (...).

    Example:
        >>> softmax_bits(np.log([[3.0, 1.0]]), np.array([0])).round(3)
        array([0.585])
    """
    column = np.broadcast_to(target, ratios.shape[:-1])[..., None]
    deficits = ratios - ratios.max(axis=-1, keepdims=True)
    target_deficit = np.take_along_axis(deficits, column, axis=-1)[..., 0]
    # The mean of exponentials, not their sum: scores that do not differ give exactly 0.
    return np.asarray((target_deficit - np.log(np.exp(deficits).mean(axis=-1))) / np.log(2.0))


def normalised_ceiling_bits(speakers: int, weight: float, ddof: int = 0) -> float:
    """Compute the most bits that row normalisation lets a trial disclose.

    ``log2 N - log2(1 + (N - 1) exp(-w N / sqrt(N - 1)))``; with ddof = 1, ``sqrt(N)`` for
    ``N / sqrt(N - 1)``.

    Example:
        >>> round(normalised_ceiling_bits(2, 1.0), 3)
        0.817
    """
    if speakers < 2 or ddof not in (0, 1):
        raise UsageError("the ceiling needs at least 2 speakers and a ddof of 0 or 1")
    lead = np.sqrt(speakers) if ddof else speakers / np.sqrt(speakers - 1)
    # A negative weight turns the row around; one lowest score then leads by as much.
    others = np.log1p((speakers - 1) * np.exp(-abs(weight) * lead))
    return float(np.log2(speakers) - others / np.log(2.0))
