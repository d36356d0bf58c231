"""pi_sing: can a predicate isolate one speaker, whoever it is, among N (Vauquier et al., 2025)?

The predicate singling out of Cohen and Nissim: an enrolled speaker and a threshold that lets 1 / N
of calibration trials pass. It has succeeded where exactly one test trial passes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from monitor.errors import UsageError
from monitor.evaluation.figure import Figure
from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.evaluation.scores.settled import settled_order
from monitor.phrases import plural
from monitor.types import AnyArray, FloatArray, IntArray

__all__ = ["CHANCE_SING", "isolated", "pi_sing", "sing_figure"]

CHANCE_SING = float(np.exp(-1.0))
"""pi_sing of a predicate that knows nothing: 37 %."""

_FOLDS = 10
"""Trials of a speaker that are used: one tests, nine calibrate, as in the paper."""


def isolated(calibration: AnyArray, test: AnyArray, passing: IntArray) -> NDArray[np.bool_]:
    """Which predicates fire on exactly one test trial, whoever that is.

    A predicate is an enrolled speaker and a threshold: midway between the M-th and the (M + 1)-th
    highest of its calibration scores. Where those two are equal, fewer than M lie above it.

    Args:
        calibration: shape (K, P), K calibration trials against P enrolled speakers.
        test: shape (S, P), one other trial of each of S speakers.
        passing: shape (P,), M: how many calibration trials the enrolled speaker has.

    Returns:
        shape (P,).

    Raises:
        UsageError: shapes that do not fit, or M not between 1 and K - 1.
    """
    calibration, test, passing = (np.asarray(x) for x in (calibration, test, passing))
    if calibration.ndim != 2 or test.ndim != 2 or calibration.shape[1:] != test.shape[1:]:
        raise UsageError("calibration and test are trials x the same enrolled speakers")
    count = len(calibration)
    if passing.shape != test.shape[1:] or not ((passing > 0) & (passing < count)).all():
        raise UsageError(f"give each predicate 1 to {count - 1} calibration scores that pass")
    ordered = np.array(calibration.T, order="C")
    ordered.sort(axis=1)  # quicker than to partition
    row = np.arange(len(passing))
    pair = ordered[row, count - passing], ordered[row, count - passing - 1]
    threshold = 0.5 * pair[0].astype(np.float64) + 0.5 * pair[1].astype(np.float64)
    return np.asarray((test > threshold).sum(axis=0) == 1)


def pi_sing(calibration: AnyArray, test: AnyArray, passing: IntArray) -> float:
    """Probability that an enrolled speaker's predicate singles out one of S test speakers.

    Args:
        calibration: shape (K, P), as `isolated`.
        test: shape (S, P).
        passing: shape (P,).

    Returns:
        a share; `CHANCE_SING`, 37 %, where scores know nothing.

    Raises:
        UsageError: as `isolated`.

    Example:
        >>> scores = np.eye(4)
        >>> pi_sing(scores, scores, np.ones(4, int))
        1.0
    """
    return float(isolated(calibration, test, passing).mean())


def sing_figure(matrix: ScoreMatrix, weights: FloatArray | None = None) -> Figure:
    """pi_sing of a matrix: ``linkage.pi_sing``.

    Each of ten trials of a speaker, drawn by `settled_order`, tests once, while the others
    calibrate: thresholds never see the trial they are tested on, and every speaker takes part.
    Speakers with one trial are left out. On a resample, predicates of a speaker count as often as
    the speaker, each tested among all speakers.
    """
    key, label = "linkage.pi_sing", "pi_sing"
    many = np.flatnonzero(np.bincount(matrix.owner) > 1)
    if len(many) < 2:
        note = "needs two speakers with two trials: one to calibrate on, one to test"
        return Figure(key, label, None, "share", note=note)
    rows, fold, owner = _folds(matrix, many)
    scores = np.asarray(matrix.scores[rows]).T[matrix.tested[many]]
    trials = np.bincount(owner)
    hits = np.zeros(len(many))
    folds = int(trials.max())
    left_out = np.bincount(matrix.owner).max() > folds
    for number in range(folds):
        test = fold == number % trials[owner]
        hits += isolated(scores[:, ~test].T, scores[:, test].T, trials - 1)
    replicates = None
    if weights is not None:
        kept = weights[:, many]
        with np.errstate(invalid="ignore"):
            replicates = kept @ hits / folds / kept.sum(axis=1)
    return Figure(
        key,
        label,
        float(hits.mean() / folds),
        "share",
        replicates=replicates,
        ceiling=1.0,
        floor=CHANCE_SING,
        ties="strict",
        note=f"among {plural(len(many), 'speaker')}, {plural(folds, 'fold')}"
        + (f" of {folds} trials of each, drawn" if left_out else "")
        + "; chance is 37 %, and a predicate may isolate another person than its own",
    )


def _folds(matrix: ScoreMatrix, many: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Ten trials of each speaker of `many`, drawn: row, number within the speaker, speaker."""
    order = settled_order(matrix)
    order = order[np.argsort(matrix.owner[order], kind="stable")]
    firsts = np.searchsorted(matrix.owner[order], np.arange(len(matrix.tested)))
    number = np.empty(matrix.trials, dtype=np.intp)
    number[order] = np.arange(matrix.trials) - firsts[matrix.owner[order]]
    rows = np.flatnonzero((number < _FOLDS) & np.isin(matrix.owner, many))
    return rows, number[rows], np.searchsorted(many, matrix.owner[rows])
