"""The figures of LID, from calibrated posteriors of the true speaker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from monitor.evaluation.figure import Figure
from monitor.evaluation.lid.bits import LidBits, statistics
from monitor.evaluation.lid.calibration import (
    FOLDS,
    STYLES,
    CrossCalibration,
    LidCalibration,
    LidStyle,
    style_of,
)
from monitor.evaluation.lid.replicates import bits_slopes, weight_shifts
from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.evaluation.scores.speaker_bootstrap import resampled, resamples
from monitor.phrases import plural
from monitor.types import FloatArray

__all__ = [
    "figures",
]


_FEWEST = 10
_TOO_FEW = f"no limits: fewer than {_FEWEST} speakers have such trials"
_DEV_SEED = 1
"""Speakers of a dev matrix are drawn apart from those of the trials."""


def figures(
    matrix: ScoreMatrix,
    weights: FloatArray | None = None,
    dev: ScoreMatrix | None = None,
    style: str = "paper",
    folds: int = FOLDS,
    found: LidBits | None = None,
) -> tuple[Figure, ...]:
    """Every figure of LID: of the chosen style as ``lid.*``, of the other as ``lid.STYLE.*``.

    Resamples weigh the trials' bits, and move the calibration as `weight_shifts` says, and with it
    which trials lie above 0: with a dev matrix over its speakers, without one over those of the
    trials. LIDmax is not resampled: one trial decides it.

    Args:
        matrix: the trials.
        weights: shape (B, S), from `resamples`; without them nothing is resampled.
        dev: what to calibrate on; without it each speaker goes by the others' calibration.
        style: of the figures without a style in their name.
        folds: of the cross-calibration.
        found: of this matrix and `dev`, where it was calibrated already.

    Returns:
        ALID, PDR, NDR, LID+, LID- and LIDmax of each style.

    Raises:
        UsageError: unknown style, or trials of one speaker and no dev matrix.
    """
    style_of(style)
    found = LidBits.of(matrix, dev, folds) if found is None else found
    made = {
        name: _figures(
            f"lid.{name}",
            matrix,
            found.calibrations[name],
            found.bits[name],
            _replicates(matrix, dev, found, STYLES[name], weights),
        )
        for name in STYLES
    }
    chosen = tuple(
        replace(one, key=one.key.replace(f"lid.{style}.", "lid.")) for one in made[style]
    )
    return chosen + tuple(one for name in STYLES if name != style for one in made[name])


def _figures(
    stem: str,
    matrix: ScoreMatrix,
    calibration: LidCalibration | CrossCalibration,
    bits: FloatArray,
    replicates: Mapping[str, FloatArray],
) -> tuple[Figure, ...]:
    found = statistics(bits)
    notes = []
    if isinstance(calibration, CrossCalibration):
        notes.append(f"cross-fitted over speakers, {plural(len(calibration.calibrations), 'fold')}")
    if calibration.bounded:
        notes.append("mated and non-mated scores separate: weight held by an L2 penalty, C = 1")
    note = "; ".join(notes)
    most = calibration.ceiling_bits(matrix.population)
    above, below = (
        "" if not replicates or len(np.unique(matrix.owner[some])) >= _FEWEST else _TOO_FEW
        for some in (bits > 0, bits <= 0)
    )
    rows: tuple[tuple[str, str, float | None, str, str], ...] = (
        ("alid_bits", "ALID", found.alid, "bits", note),
        ("pdr", "PDR", found.pdr, "share", ""),
        ("ndr", "NDR", found.ndr, "share", "a trial that discloses 0 bits counts here"),
        ("positive_bits", "LID+", found.positive, "bits", above if found.pdr else "no such trial"),
        ("negative_bits", "LID-", found.negative, "bits", below if found.ndr else "no such trial"),
        ("max_bits", "LIDmax", found.largest, "bits", "of one trial; the ceiling is what row "
         "normalisation allows"),
    )  # fmt: skip
    return tuple(
        Figure(
            f"{stem}.{key}",
            label,
            value,
            unit,
            replicates=None if said is _TOO_FEW else replicates.get(key),
            ceiling=1.0 if unit == "share" else 0.0 if key == "negative_bits" else most,
            floor=0.0 if key in ("alid_bits", "max_bits") else None,
            note=said,
        )
        for key, label, value, unit, said in rows
    )


def _replicates(
    matrix: ScoreMatrix,
    dev: ScoreMatrix | None,
    found: LidBits,
    style: LidStyle,
    weights: FloatArray | None,
) -> dict[str, FloatArray]:
    """The statistics of each resample: its trials as the calibration moves them."""
    if weights is None:
        return {}
    calibration, bits = found.calibrations[style.name], found.bits[style.name]
    if dev is None:
        shifts = weight_shifts(matrix, calibration, style, weights)
    else:
        others = resamples(dev, len(weights), _DEV_SEED)
        shifts = weight_shifts(dev, calibration, style, others) * resampled(weights)
    slopes = bits_slopes(matrix, calibration, style)
    most = matrix.ceiling_bits  # a step of the weight may go beyond it
    sums = np.empty((len(weights), 4))  # trials, those above 0, and the bits of both kinds
    for row, by_speaker, shift in zip(sums, weights, shifts, strict=True):
        weight = by_speaker[matrix.owner]
        moved = np.minimum(bits + shift * slopes, most)
        above = moved > 0
        mass = weight * moved
        row[:] = weight.sum(), weight[above].sum(), mass[above].sum(), mass[~above].sum()
    trials, positive, gained, lost = sums.T
    with np.errstate(invalid="ignore"):
        return {
            "alid_bits": (gained + lost) / trials,
            "pdr": positive / trials,
            "ndr": 1.0 - positive / trials,
            "positive_bits": gained / positive,
            "negative_bits": np.minimum(lost / (trials - positive), 0.0),
        }
