"""The most probable of N speakers, by name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from monitor.types import FloatArray

__all__ = ["most_probable"]

_SORTED = 64
"""Of more speakers only those that may be among the most probable are sorted."""


def most_probable(
    posterior: FloatArray, names: Sequence[str], most: int
) -> list[list[tuple[str, float]]]:
    """The most probable speakers of each row, best first; of equals, the first enrolled.

    Args:
        posterior: shape (R, N).
        names: of the N.
        most: how many, at most N.

    Example:
        >>> most_probable(np.array([[0.2, 0.5, 0.3]]), ["ann", "bob", "eve"], 2)
        [[('bob', 0.5), ('eve', 0.3)]]
    """
    if len(names) > _SORTED:
        edge = np.partition(posterior, len(names) - most, axis=1)
        edge = edge[:, len(names) - most]
        few = [np.flatnonzero(row >= least) for row, least in zip(posterior, edge, strict=True)]
        order = np.array([
            places[np.argsort(-row[places], kind="stable")[: most]]
            for row, places in zip(posterior, few, strict=True)
        ])  # fmt: skip
    else:
        order = np.argsort(-posterior, axis=1, kind="stable")[:, :most]
    values = posterior[np.arange(len(order))[:, None], order].tolist()
    return [
        [(names[j], p) for j, p in zip(*each, strict=True)]
        for each in zip(order.tolist(), values, strict=True)
    ]
