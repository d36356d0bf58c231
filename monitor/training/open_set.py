"""Calibration trials with the true speaker's template left out, as a stranger would meet them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from monitor.maths.openset import OpenSet, fit_open_set
from monitor.training.cells import Cell
from monitor.types import BoolArray, FloatArray

__all__ = ["learn_strangers"]


def learn_strangers(
    cell: Cell, axis: Sequence[int], evidence: FloatArray, additive: BoolArray
) -> OpenSet:
    """Learn from one cell how well the favourite fits, enrolled or not.

    Args:
        cell: its trials.
        axis: which features, as places on the cell's axis F.
        evidence: joint evidence of every candidate in every trial, shape (n, N).
        additive: shape (F,), which features' scores grow with the evidence and count by the frame.
    """
    trials = np.arange(evidence.shape[0])
    absolute = cell.behind[:, list(axis)] + cell.mated[:, list(axis), None]
    frames = np.where(additive, np.maximum(cell.frames[:, list(axis)], 1.0), 1.0)
    absolute /= frames[:, :, None]
    enrolled = absolute[trials, :, evidence.argmax(axis=1)]
    others = evidence.copy()
    others[trials, cell.own] = -np.inf
    strangers = absolute[trials, :, others.argmax(axis=1)]
    return fit_open_set(enrolled, strangers, np.unique(cell.behind_speaker, return_inverse=True)[1])
