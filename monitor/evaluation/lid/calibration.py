"""Calibration of row-normalised scores for LID: on a dev matrix, or crosswise over speakers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.errors import CalibrationError, UsageError
from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.maths.lid import local_information_bits, normalise_rows, normalised_ceiling_bits
from monitor.maths.platt import Platt, platt
from monitor.types import FloatArray, IntArray

__all__ = [
    "FOLDS",
    "STYLES",
    "CrossCalibration",
    "LidCalibration",
    "LidStyle",
    "RowScores",
    "calibrate",
    "cross_calibrate",
    "style_of",
]

FOLDS = 5
_EXACT = 1 << 22
"""Most scores that a calibration holds in memory; more of them are counted into fine bins."""
_FINE, _COARSE = 1 << 17, 1 << 14


@dataclass(frozen=True)
class LidStyle:
    """How row-normalised scores are calibrated.

    Attributes:
        name: for a table.
        ddof: of the row normalisation.
        balanced: both classes weigh the same, and no prior is removed.
        strength: C of the L2 penalty, as scikit-learn has it; infinite means none.
    """

    name: str
    ddof: int
    balanced: bool
    strength: float


STYLES = {
    "paper": LidStyle("paper", 0, False, np.inf),
    "repo": LidStyle("repo", 1, True, 1.0),
}
"""The paper's text: plain logistic regression, prior log-odds removed. Its authors' later code:
balanced classes, C = 1, ddof = 1."""


@dataclass(frozen=True)
class LidCalibration:
    """Weight and bias that turn row-normalised scores into log-likelihood ratios.

    Attributes:
        weight: w.
        bias: b; it cancels in the posterior over speakers.
        prior_odds: mated over non-mated scores it was fitted on; None for balanced classes.
        ddof: of the row normalisation.
        style: its name.
        bounded: mated and non-mated scores separate, so that w would be infinite without the
            penalty of C = 1, which was taken.
    """

    weight: float
    bias: float
    prior_odds: float | None
    ddof: int
    style: str
    bounded: bool = False

    def bits(self, scores: FloatArray, target: IntArray) -> FloatArray:
        """LID of rows, shape (n, N), with their targets, shape (n,): bits, shape (n,)."""
        return local_information_bits(
            scores, target, self.weight, self.bias, self.prior_odds, self.ddof
        )

    def row_weight(self, speakers: int) -> float:
        """W for rows of N scores that were normalised with ddof = 0."""
        return self.weight * _scale(self.ddof, speakers)

    def ceiling_bits(self, speakers: int) -> float:
        """The most that row normalisation lets a trial disclose among N speakers."""
        return normalised_ceiling_bits(speakers, self.weight, self.ddof)


@dataclass(frozen=True)
class CrossCalibration:
    """Where there is no dev matrix: each speaker's trials go by the other speakers' calibration.

    Attributes:
        fold: shape (T,), the fold of each trial.
        calibrations: of each fold, fitted on the trials of all others.
    """

    fold: IntArray
    calibrations: tuple[LidCalibration, ...]

    @property
    def bounded(self) -> bool:
        """Any of them is."""
        return any(one.bounded for one in self.calibrations)

    def ceiling_bits(self, speakers: int) -> float:
        """The highest of the folds' ceilings."""
        return max(one.ceiling_bits(speakers) for one in self.calibrations)


class RowScores:
    """Row-normalised scores of a matrix, gathered in one pass for any number of calibrations.

    Up to four million scores stay in memory and calibrations are exact. More are counted into
    131 072 bins of which each keeps its mean: the weight is then off by about 1e-7 of itself.
    """

    def __init__(self, matrix: ScoreMatrix, folds: int = 1) -> None:
        self.speakers = matrix.population
        self.folds = min(folds, len(matrix.tested))
        # by name: the order of the columns does not matter
        names = np.array([matrix.speakers[column] for column in matrix.tested])
        self.fold = np.argsort(np.argsort(names))[matrix.owner] % self.folds
        exact = matrix.trials * matrix.population <= _EXACT
        bins = _COARSE if exact else _FINE
        reach = np.sqrt(matrix.population) * (1 + 1e-9)
        self.mated = np.empty(matrix.trials)
        self._counts, self._sums = np.zeros((2, self.folds, bins))
        self._low, self._high = np.full(self.folds, np.inf), np.full(self.folds, -np.inf)
        kept = []
        for part, scores in matrix.blocks():
            z = normalise_rows(scores, ddof=0)
            row, target = np.arange(len(z)), matrix.target[part]
            self.mated[part] = z[row, target]
            left = z[matrix.others(part)].reshape(len(z), -1)
            fold = self.fold[part]
            np.minimum.at(self._low, fold, left.min(axis=1))
            np.maximum.at(self._high, fold, left.max(axis=1))
            place = ((left + reach) * (bins / (2 * reach))).astype(np.intp) + fold[:, None] * bins
            size = self.folds * bins
            self._counts += np.bincount(place.ravel(), minlength=size).reshape(-1, bins)
            self._sums += np.bincount(place.ravel(), left.ravel(), size).reshape(-1, bins)
            if exact:
                kept.append(left)
        self._kept = np.concatenate(kept) if exact else None

    def calibrate(
        self, style: LidStyle, without: int | None = None, near: LidCalibration | None = None
    ) -> LidCalibration:
        """Fit one style on all trials, or on those outside one fold, faster from a near one.

        Raises:
            CalibrationError: nothing is left to fit on.
        """
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
        found = platt(
            scale * mated,
            scale * means,
            counts[seen],
            style.balanced,
            style.strength,
            None if near is None else Platt(near.weight, near.bias),
            apart,
        )
        if self._kept is not None:
            exact = self._kept if without is None else self._kept[rows]
            found = platt(
                scale * mated,
                scale * exact,
                None,
                style.balanced,
                style.strength,
                found,
                apart,
            )
        return _calibration(found, style, self.speakers)


def calibrate(dev: ScoreMatrix, style: str | LidStyle = "paper") -> LidCalibration:
    """Fit the calibration on a dev matrix, of other speakers than those that are judged.

    Args:
        dev: the trials to fit on.
        style: ``"paper"``, ``"repo"`` or another `LidStyle`.

    Returns:
        weight, bias and prior.

    Raises:
        UsageError: unknown style, or a score that is not finite.

    Example:
        >>> scores = np.random.default_rng(0).normal(size=(60, 6)) + 2.0 * np.eye(6).repeat(10, 0)
        >>> found = calibrate(ScoreMatrix(scores, np.arange(60) // 10))
        >>> round(found.weight, 2), found.prior_odds
        (3.11, 0.2)
    """
    return RowScores(dev).calibrate(style_of(style))


def cross_calibrate(
    matrix: ScoreMatrix,
    style: str | LidStyle = "paper",
    folds: int = FOLDS,
    scores: RowScores | None = None,
) -> CrossCalibration:
    """Calibrate each speaker's trials on those of other speakers.

    Args:
        matrix: the trials.
        style: as `calibrate`.
        folds: speakers are dealt into so many, in the order of their names.
        scores: of this matrix, where they have been gathered already.

    Returns:
        a calibration for each fold.

    Raises:
        UsageError: fewer than two folds, or trials of one speaker only.
    """
    if folds < 2 or len(matrix.tested) < 2:
        raise UsageError(
            "without a dev matrix LID is calibrated on other speakers: give trials of two or more"
        )
    made = scores or RowScores(matrix, folds)
    fitted = [made.calibrate(style_of(style), 0)]
    for fold in range(1, made.folds):
        fitted.append(made.calibrate(style_of(style), fold, fitted[-1]))
    return CrossCalibration(made.fold, tuple(fitted))


def style_of(style: str | LidStyle) -> LidStyle:
    """A style by its name."""
    if isinstance(style, LidStyle):
        return style
    if style not in STYLES:
        raise UsageError(f"no LID style {style!r}: take one of {', '.join(STYLES)}")
    return STYLES[style]


def _scale(ddof: int, speakers: int) -> float:
    """With ddof = 1 every normalised score is smaller, by this factor."""
    return float(np.sqrt((speakers - 1) / speakers)) if ddof else 1.0


def _calibration(found: Platt, style: LidStyle, speakers: int) -> LidCalibration:
    odds = None if style.balanced else 1 / (speakers - 1)
    return LidCalibration(found.weight, found.bias, odds, style.ddof, style.name, found.bounded)
