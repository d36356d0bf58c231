"""Open-set detection: is the speaker enrolled at all?

A posterior over N enrolled speakers cannot say "none of them" (docs/method.md section 5). What
can is how well the best candidate fits in absolute terms. Every calibration trial is looked at
twice: as it is, and with the true speaker's template taken away, as a stranger would meet it. A
logistic regression on the favourite's absolute scores, one number a feature, tells the two apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.maths.ridge import fit_ridge
from monitor.types import FloatArray, IntArray

__all__ = ["OpenSet", "fit_open_set", "told_apart"]

_RIDGE = 1e-3
_FOLDS = 20


@dataclass(frozen=True, slots=True)
class OpenSet:
    """What tells enrolled speakers from strangers, and how well on speakers not used for it.

    Attributes:
        bias: intercept; the log odds of being enrolled, at even odds before, are
            ``bias + slopes @ favourite``.
        slopes: shape (F,).
        enrolled_kept: fraction of enrolled trials taken for enrolled (log odds >= 0).
        strangers_found: fraction of strangers taken for strangers.
        area: area under the ROC curve: how often an enrolled trial looks more enrolled than a
            stranger's. 0.5 is no use, 1 is perfect.
    """

    bias: float
    slopes: FloatArray
    enrolled_kept: float
    strangers_found: float
    area: float


def fit_open_set(enrolled: FloatArray, strangers: FloatArray, speaker: IntArray) -> OpenSet:
    """Fit the open-set regression, and judge it on speakers left out of the fit.

    Args:
        enrolled: absolute scores of the favourite with everybody enrolled, shape (n, F).
        strangers: the same with the true speaker left out, shape (n, F).
        speaker: shape (n,), whom each trial is of; every speaker weighs the same.
    """
    weight = 1.0 / np.bincount(speaker)[speaker]
    scores = np.concatenate([enrolled, strangers])
    label = np.repeat([True, False], len(enrolled))
    weights = np.tile(weight, 2)
    # folds of whole speakers
    fold = np.tile(np.unique(speaker, return_inverse=True)[1] % _FOLDS, 2)
    odds = np.empty(label.size)
    for each in np.unique(fold):
        mine = fold == each
        if (~mine).any():
            bias, slopes = fit_ridge(scores[~mine], label[~mine], weights[~mine], _RIDGE)
            odds[mine] = bias + scores[mine] @ slopes
    bias, slopes = fit_ridge(scores, label, weights, _RIDGE)
    kept, found, area = told_apart(odds[label], odds[~label], weight)
    return OpenSet(bias, slopes, kept, found, area)


def told_apart(
    enrolled: FloatArray, strangers: FloatArray, weight: FloatArray
) -> tuple[float, float, float]:
    """Rates at even log odds (enrolled kept, strangers found), and the area under the ROC curve.

    Args:
        enrolled: log odds of enrolled trials, shape (n,).
        strangers: of strangers, shape (n,).
        weight: of each trial, shape (n,).

    Example:
        >>> told_apart(np.array([2.0, -1.0]), np.array([-3.0, -2.0]), np.ones(2))
        (0.5, 1.0, 1.0)
    """
    total = weight.sum()
    order = np.argsort(strangers, kind="stable")
    mass = np.concatenate([[0.0], np.cumsum(weight[order])])
    below = mass[np.searchsorted(strangers[order], enrolled, side="left")]
    upto = mass[np.searchsorted(strangers[order], enrolled, side="right")]
    return (
        float(weight[enrolled >= 0].sum() / total),
        float(weight[strangers < 0].sum() / total),
        float((weight * 0.5 * (below + upto)).sum() / total**2),
    )
