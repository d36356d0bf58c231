"""Cells made from score matrices, for tests that know the truth."""

import numpy as np

from monitor.training.grid import Cell


def cell_of(scores: np.ndarray, target: np.ndarray) -> Cell:
    """A cell of one feature from a score matrix, shape (n, N)."""
    rows = np.arange(target.size)
    behind = scores - scores[rows, target][:, None]
    better, tied = (behind > 0).sum(axis=1), (behind == 0).sum(axis=1)
    mated = scores[rows, target][:, None]
    behind = behind[:, None]
    ones = np.ones_like(mated)
    return Cell(
        target, better[None], tied[None], scores.shape[1], behind, target, target, mated, ones
    )
