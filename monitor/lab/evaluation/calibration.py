"""Calibration of row-normalised scores for LID: on a dev matrix, or across speakers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, TypeAlias

import numpy as np

from monitor.arrays import real_numbers
from monitor.errors import CalibrationError
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.maths.logistic import Platt, platt
from monitor.maths.scores import near_one
from monitor.types import FloatArray, IntArray

_CONSTANT = 1e-12


def normalise_rows(scores: FloatArray, ddof: int) -> FloatArray:
    """Normalise rows (T-norm): mean 0 and variance 1 over the N candidates.

    ``scores`` have shape (..., N) and are finite. ddof 0 reproduces the printed worked example, 1
    the authors' later code. A row without variance has no information and becomes zeros.

    Example:
        >>> normalise_rows(np.array([[1.0, 3.0], [2.0, 2.0]]), 0)
        array([[-1., 1.],
               [ 0., 0.]])
    """
    scores = real_numbers(scores, "scores", np.float64)
    scores = near_one(scores)
    centred = scores - scores.mean(axis=-1, keepdims=True)
    deviation = scores.std(axis=-1, ddof=ddof, keepdims=True)
    flat = deviation <= _CONSTANT * np.abs(scores).max(axis=-1, keepdims=True)
    return np.where(flat, 0.0, centred / np.where(flat, 1.0, deviation))


def log_likelihood_ratios(
    scores: FloatArray, weight: float, bias: float, prior_odds: float | None = None, ddof: int = 0
) -> FloatArray:
    """Compute calibrated scores ``w z + b - ln(prior odds)``, nats, shape (..., N).

    Prior odds are target over non-target trials that the logistic regression was fitted on; None
    if it was fitted on balanced classes.
    """
    prior = 0.0 if prior_odds is None else float(np.log(prior_odds))
    return np.asarray(weight * normalise_rows(scores, ddof) + bias - prior)


def local_information_bits(
    scores: FloatArray, target: int | IntArray, weight: float, bias: float,
    prior_odds: float | None = None, ddof: int = 0,
) -> FloatArray:  # fmt: skip
    """Compute ``log2(N p_target)`` under the softmax of the calibrated scores.

    Bias and prior cancel in the softmax. They are parameters so that the paper's steps can be
    followed. ``scores`` have shape (..., N). ``target`` is the column of the true speaker, a number
    or (...). The bits, (...), are negative if other candidates look likelier, and 0 if all scores
    are equal.

    Example:
        >>> row = np.array([0.9, 0.7, 0.4, 1.1, 1.2, 0.4])
        >>> round(float(local_information_bits(row, 3, weight=1.5, bias=-1.0, prior_odds=0.2)), 3)
        0.9
    """
    ratios = log_likelihood_ratios(scores, weight, bias, prior_odds, ddof)
    return softmax_bits(ratios, real_numbers(target, "targets"))


def softmax_bits(ratios: FloatArray, target: IntArray) -> FloatArray:
    """Compute ``log2(N p_target)`` under softmax of log-likelihood ratios, nats (..., N): (...)."""
    column = np.broadcast_to(target, ratios.shape[:-1])[..., None]
    deficits = ratios - ratios.max(axis=-1, keepdims=True)
    target_deficit = np.take_along_axis(deficits, column, axis=-1)[..., 0]
    # the mean of exponentials, not their sum, so that equal scores give exactly 0
    return np.asarray((target_deficit - np.log(np.exp(deficits).mean(axis=-1))) / np.log(2.0))


def normalised_ceiling_bits(speakers: int, weight: float, ddof: int = 0) -> float:
    """Compute the most bits that row normalisation lets a trial disclose.

    ``log2 N - log2(1 + (N - 1) exp(-w N / sqrt(N - 1)))``; with ddof = 1, ``sqrt(N)`` for
    ``N / sqrt(N - 1)``.

    Example:
        >>> round(normalised_ceiling_bits(2, 1.0), 3)
        0.817
    """
    lead = np.sqrt(speakers) if ddof else speakers / np.sqrt(speakers - 1)
    # with a negative weight, a single lowest score leads by the same amount
    others = np.log1p((speakers - 1) * np.exp(-abs(weight) * lead))
    return float(np.log2(speakers) - others / np.log(2.0))


FOLDS = 5
_EXACT = 1 << 22
"""Maximum scores that a calibration keeps in memory; more are counted into fine bins."""
_FINE, _COARSE = 1 << 17, 1 << 14


@dataclass(frozen=True)
class LidStyle:
    """Published calibration: ddof of the normalisation, balanced classes or a prior, and C."""

    name: str
    ddof: int
    balanced: bool
    strength: float


STYLES = {"paper": LidStyle("paper", 0, False, np.inf), "repo": LidStyle("repo", 1, True, 1.0)}
"""The paper's text: plain logistic regression, prior log-odds removed. Its authors' later code:
balanced classes, C = 1, ddof = 1."""
STYLE = "paper"  # the style of figures without a style in their key


@dataclass(frozen=True)
class LidCalibration:
    """Weight and bias that turn row-normalised scores into log-likelihood ratios.

    Prior odds are the mated over the non-mated scores of the fit, None for balanced classes.
    ``bounded`` is true if the scores separate, so that only a penalty of C = 1 limits the weight.
    """

    weight: float
    bias: float
    prior_odds: float | None
    ddof: int
    style: str
    bounded: bool = False
    fold: ClassVar[None] = None

    @property
    def calibrations(self) -> tuple[LidCalibration]:
        """This calibration, which is the only one for all trials."""
        return (self,)

    def bits(self, scores: FloatArray, target: IntArray) -> FloatArray:
        """Compute LID of rows, (n, N), with their targets, (n,), in bits, (n,)."""
        return local_information_bits(
            scores, target, self.weight, self.bias, self.prior_odds, self.ddof
        )

    def row_weight(self, speakers: int) -> float:
        """Return the weight for rows of N scores that were normalised with ddof = 0."""
        return self.weight * _scale(self.ddof, speakers)

    def ceiling_bits(self, speakers: int) -> float:
        """Compute the most that row normalisation lets a trial disclose among N speakers."""
        return normalised_ceiling_bits(speakers, self.weight, self.ddof)


@dataclass(frozen=True)
class CrossCalibration:
    """Calibration of each fold of speakers on all other folds, without a dev matrix."""

    fold: IntArray  # fold of each trial, shape (T,)
    calibrations: tuple[LidCalibration, ...]  # one per fold

    @property
    def bounded(self) -> bool:
        """True if the calibration of any fold is bounded."""
        return any(calibration.bounded for calibration in self.calibrations)

    def ceiling_bits(self, speakers: int) -> float:
        """Compute the highest of the folds' ceilings."""
        return max(calibration.ceiling_bits(speakers) for calibration in self.calibrations)


AnyCalibration: TypeAlias = LidCalibration | CrossCalibration


class RowScores:
    """Row-normalised scores of a matrix, gathered in one pass for any number of calibrations.

    Up to four million scores stay in memory, and calibrations are exact. More are counted into
    131 072 bins, each with its mean. The relative error of the weight is then about 1e-7.
    """

    def __init__(self, matrix: ScoreMatrix, folds: int = 1) -> None:
        self.speakers = matrix.population
        self.folds = min(folds, len(matrix.tested))
        # folds by name, so that the order of the columns does not matter
        names = np.array([matrix.speakers[column] for column in matrix.tested])
        self.fold = np.argsort(np.argsort(names))[matrix.owner] % self.folds
        exact = matrix.trials * matrix.population <= _EXACT
        bins = _COARSE if exact else _FINE
        reach = np.sqrt(matrix.population) * (1 + 1e-9)
        self.mated = np.empty(matrix.trials)
        self._counts, self._sums = np.zeros((2, self.folds, bins))
        self._low, self._high = np.full(self.folds, np.inf), np.full(self.folds, -np.inf)
        row_blocks = []
        for block, scores in matrix.blocks():
            z = normalise_rows(scores, ddof=0)
            row, target = np.arange(len(z)), matrix.target[block]
            self.mated[block] = z[row, target]
            non_mated = z[matrix.others(block)].reshape(len(z), -1)
            fold = self.fold[block]
            np.minimum.at(self._low, fold, non_mated.min(axis=1))
            np.maximum.at(self._high, fold, non_mated.max(axis=1))
            cells = ((non_mated + reach) * (bins / (2 * reach))).astype(np.intp)
            cells += fold[:, None] * bins
            size = self.folds * bins
            self._counts += np.bincount(cells.ravel(), minlength=size).reshape(-1, bins)
            self._sums += np.bincount(cells.ravel(), non_mated.ravel(), size).reshape(-1, bins)
            if exact:
                row_blocks.append(non_mated)
        self._kept = np.concatenate(row_blocks) if exact else None

    def calibrate(
        self, style: LidStyle, without: int | None = None, near: LidCalibration | None = None
    ) -> LidCalibration:
        """Fit one style to all trials, or to those outside one fold; ``near`` starts the fit."""
        used = np.arange(self.folds) != without
        rows = used[self.fold]
        mated = self.mated[rows]
        if not mated.size:
            raise CalibrationError("no trials are left to calibrate on: give a dev matrix")
        scale = _scale(style.ddof, self.speakers)
        counts, sums = self._counts[used].sum(axis=0), self._sums[used].sum(axis=0)
        seen = counts > 0
        means = sums[seen] / counts[seen]
        low, high = self._low[used].min(), self._high[used].max()
        apart = bool(mated.min() >= high or mated.max() <= low) and mated.min() != low
        fit = partial(platt, balanced=style.balanced, strength=style.strength, separable=apart)
        start = None if near is None else Platt(near.weight, near.bias)
        calibration = fit(scale * mated, scale * means, counts[seen], start=start)
        if self._kept is not None:
            exact = self._kept if without is None else self._kept[rows]
            calibration = fit(scale * mated, scale * exact, start=calibration)
        odds = None if style.balanced else 1 / (self.speakers - 1)
        return LidCalibration(
            calibration.weight, calibration.bias, odds, style.ddof, style.name, calibration.bounded
        )


def cross_calibrate(scores: RowScores, style: LidStyle) -> CrossCalibration:
    """Calibrate each fold's trials on those of the other folds."""
    fitted: list[LidCalibration] = []
    for fold in range(scores.folds):
        fitted.append(scores.calibrate(style, fold, fitted[-1] if fitted else None))
    return CrossCalibration(scores.fold, tuple(fitted))


def _scale(ddof: int, speakers: int) -> float:
    """Return the factor of normalised scores with this ddof, relative to ddof = 0."""
    return float(np.sqrt((speakers - 1) / speakers)) if ddof else 1.0
