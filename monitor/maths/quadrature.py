"""Sums over thousands of ranks, by quadrature through a few nodes.

A sum ``sum_i w_i f(i)`` over thousands of ranks, with f smooth on the scale of i itself (log(a + i)
and 1 / (a + i) are, for every a > 0), needs few values of f: the first ones one by one, then blocks
that double in width with 16 Chebyshev nodes each. On such a block the error of interpolation falls
by 5.8 with every node, so that 16 leave about 1e-12. ``benchmarks/update.py`` has what it is for: a
reading among tens of thousands.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from monitor.types import FloatArray

__all__ = ["gather", "nodes", "weights"]

EXACT = 48
ORDER = 16
_Doubles: TypeAlias = NDArray[np.float64]


def nodes(count: int) -> _Doubles:
    """Where f has to be known to sum it over 0, 1, ..., count - 1.

    Example:
        >>> nodes(4), nodes(11696).size
        (array([0., 1., 2., 3.]), 176)
    """
    exact = np.arange(min(count, EXACT), dtype=np.float64)
    return np.concatenate([exact, *(places for _, _, places, _ in _blocks(count))])


def gather(weights: FloatArray) -> _Doubles:
    """Move weights from all the ranks to the nodes: ``w @ f(ranks)`` is ``gather(w) @ f(nodes)``.

    Args:
        weights: shape (..., count).

    Returns:
        shape (..., len(nodes(count))); some may be negative.

    Example:
        >>> thinned = gather(np.ones(5000)) @ np.log1p(nodes(5000))
        >>> abs(float(thinned - np.log1p(np.arange(5000)).sum())) < 1e-7
        True
    """
    weights = np.asarray(weights, dtype=np.float64)
    parts = [
        weights[..., start:stop] @ share for start, stop, _, share in _blocks(weights.shape[-1])
    ]
    return np.concatenate([weights[..., :EXACT], *parts], axis=-1)


@lru_cache(maxsize=8)
def weights(count: int) -> _Doubles:
    """The weight of each node in a plain sum over 0, 1, ..., count - 1.

    Example:
        >>> bool(abs(weights(5000).sum() - 5000) < 1e-6)
        True
    """
    return gather(np.ones(count))


@lru_cache(maxsize=8)
def _blocks(count: int) -> tuple[tuple[int, int, _Doubles, _Doubles], ...]:
    blocks, start = [], EXACT
    while start < count:
        stop = min(2 * start, count)
        blocks.append((start, stop, *_block(start, stop)))
        start = stop
    return tuple(blocks)


def _block(start: int, stop: int) -> tuple[_Doubles, _Doubles]:
    """Nodes of one block, and the share of each node in each of its ranks."""
    ranks = np.arange(start, stop, dtype=np.float64)
    if ranks.size <= ORDER:
        return ranks, np.eye(ranks.size)
    angles = (np.arange(ORDER) + 0.5) * np.pi / ORDER
    centre, half = (start + stop - 1) / 2, (stop - 1 - start) / 2
    order = np.arange(ORDER)
    series = np.cos(np.outer(order, angles)) * 2 / ORDER  # values at the nodes -> Chebyshev series
    series[0] /= 2
    where = np.arccos(np.clip((ranks - centre) / half, -1.0, 1.0))
    return centre + half * np.cos(angles), np.cos(np.outer(where, order)) @ series
