"""LID of single trials, and the statistics over trials of LID's Table 3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from monitor.errors import UsageError
from monitor.evaluation.lid.calibration import (
    FOLDS,
    STYLES,
    CrossCalibration,
    LidCalibration,
    RowScores,
    cross_calibrate,
)
from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.types import FloatArray

__all__ = ["LidBits", "LidStatistics", "information_bits", "statistics"]


@dataclass(frozen=True, slots=True)
class LidStatistics:
    """The figures of LID's Table 3; ``alid = pdr * positive + ndr * negative``.

    Attributes:
        trials: n.
        alid: mean LID, bits.
        pdr: share of the trials with LID above 0.
        ndr: share of the others: LID = 0 counts as negative.
        positive: LID+, mean of those above 0; None where there is none.
        negative: LID-, mean of the others; None where there is none.
        largest: LIDmax.
    """

    trials: int
    alid: float
    pdr: float
    ndr: float
    positive: float | None
    negative: float | None
    largest: float


@dataclass(frozen=True)
class LidBits:
    """LID of every trial by each published style.

    Attributes:
        calibrations: by name of the style.
        bits: by name of the style, shape (T,).
    """

    calibrations: Mapping[str, LidCalibration | CrossCalibration]
    bits: Mapping[str, FloatArray]

    @classmethod
    def of(cls, matrix: ScoreMatrix, dev: ScoreMatrix | None = None, folds: int = FOLDS) -> LidBits:
        """Calibrate and score.

        Args:
            matrix: the trials.
            dev: what to calibrate on; without it each speaker goes by the others' calibration.
            folds: of the cross-calibration.

        Raises:
            UsageError: trials of one speaker and no dev matrix.
        """
        scores = RowScores(matrix, folds) if dev is None else RowScores(dev)
        made: dict[str, LidCalibration | CrossCalibration] = {
            name: cross_calibrate(matrix, name, folds, scores)
            if dev is None
            else scores.calibrate(style)
            for name, style in STYLES.items()
        }
        return cls(made, dict(zip(made, _all_bits(matrix, list(made.values())), strict=True)))


def information_bits(
    matrix: ScoreMatrix, calibration: LidCalibration | CrossCalibration
) -> FloatArray:
    """LID of every trial: ``log2(N p)``, p the posterior of its true speaker.

    Args:
        matrix: the trials.
        calibration: of a dev matrix, or crosswise.

    Returns:
        shape (T,), bits.

    Raises:
        UsageError: a score is not finite, or a cross-calibration of other trials.

    Example:
        >>> matrix = ScoreMatrix(np.array([[0.9, 0.7, 0.4, 1.1, 1.2, 0.4]]), np.array([3]))
        >>> calibration = LidCalibration(1.5, -1.0, 0.2, 0, "paper")
        >>> information_bits(matrix, calibration).round(3)
        array([0.9])
    """
    bits: FloatArray = _all_bits(matrix, [calibration])[0]
    return bits


def _all_bits(
    matrix: ScoreMatrix, calibrations: list[LidCalibration | CrossCalibration]
) -> FloatArray:
    bits = np.empty((len(calibrations), matrix.trials))
    for part, scores in matrix.blocks():
        target = matrix.target[part]
        for row, calibration in zip(bits, calibrations, strict=True):
            if isinstance(calibration, LidCalibration):
                row[part] = calibration.bits(scores, target)
                continue
            if len(calibration.fold) != matrix.trials:
                raise UsageError(
                    f"{matrix.name}: a cross-calibration goes with the trials that it was made on"
                )
            fold, found = calibration.fold[part], row[part]
            for index, one in enumerate(calibration.calibrations):
                rows = fold == index
                found[rows] = one.bits(scores[rows], target[rows])
    return bits


def statistics(bits: FloatArray) -> LidStatistics:
    """Summarise the LID of some trials.

    Args:
        bits: shape (n,).

    Returns:
        the figures of Table 3.

    Raises:
        UsageError: no trial.

    Example:
        >>> found = statistics(np.array([1.0, 2.0, 0.0, -1.0]))
        >>> found.alid, found.pdr, found.positive, found.negative, found.largest
        (0.5, 0.5, 1.5, -0.5, 2.0)
    """
    bits = np.asarray(bits, dtype=np.float64).ravel()
    if not bits.size:
        raise UsageError("there is no trial to summarise")
    above = bits > 0
    share = float(above.mean())
    return LidStatistics(
        trials=bits.size,
        alid=float(bits.mean()),
        pdr=share,
        ndr=1.0 - share,
        positive=float(bits[above].mean()) if above.any() else None,
        negative=float(bits[~above].mean()) if not above.all() else None,
        largest=float(bits.max()),
    )
