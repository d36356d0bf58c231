"""How likely phones follow each other in what those who train say."""

from __future__ import annotations

import numpy as np

from monitor.types import FloatArray
from recipes.phones.network import CLASSES
from recipes.phones.prepare import Spoken

__all__ = ["trigram", "trigram_of"]


def trigram(spoken: Spoken) -> FloatArray:
    """Of the training transcripts: see `trigram_of`."""
    return trigram_of([each.phones for each in spoken.of("train")])


def trigram_of(said: list[list[int]], classes: int = CLASSES) -> FloatArray:
    """Logarithms of probabilities, shape (classes, classes, classes), smoothed.

    What was seen after two phones is interpolated with what was seen after one, and that with what
    was seen at all, by how many different ones were seen (I. Witten and T. Bell, "The
    zero-frequency problem", IEEE Trans. Inf. Theory 37, 1991).

    Args:
        said: classes from 1, as they follow each other; 0 stands before and after.
        classes: the 0 included.

    Example:
        >>> logs = trigram_of([[1, 2], [1, 2], [1, 2]], classes=3)
        >>> bool(np.exp(logs[0, 1, 2]) > 0.7), bool(np.allclose(np.exp(logs).sum(axis=2), 1))
        (True, True)
    """
    counts = np.zeros((classes, classes, classes))
    for phones in said:
        row = np.array([0, 0, *phones, 0])
        np.add.at(counts, (row[:-2], row[1:-1], row[2:]), 1)
    found = np.full(classes, 1 / classes)
    for seen in (counts.sum(axis=(0, 1)), counts.sum(axis=0), counts):
        times, kinds = seen.sum(axis=-1, keepdims=True), (seen > 0).sum(axis=-1, keepdims=True)
        new = np.where(kinds, kinds / np.maximum(times + kinds, 1), 1)
        found = seen / np.maximum(times + kinds, 1) + new * found
    return np.asarray(np.log(found))
