"""Alignment of anonymised embeddings with clear ones by a rotation.

Sources: P. Champion et al., On the invertibility of a voice privacy system using embedding
alignment, ASRU 2021 (arXiv 2110.05431); E. Grave et al., Unsupervised alignment of embeddings with
Wasserstein Procrustes, AISTATS 2019.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from monitor.maths.scores import unit_vectors
from monitor.types import AnyArray, FloatArray

_SHRINKAGES = (0.01, 0.3)
_ROUNDS = 50


@dataclass(frozen=True, eq=False)
class Alignment:
    """A map of anonymised embeddings onto clear ones: both are centred, the former are rotated."""

    # clear_mean, protected_mean: shape (d,)
    clear_mean: FloatArray
    protected_mean: FloatArray
    rotation: FloatArray  # orthogonal matrix, shape (d, d)

    def centre(self, clear: AnyArray) -> FloatArray:
        """Return centred directions of clear embeddings, shape (n, d); zeros stay zeros."""
        return _centre(clear, self.clear_mean)

    def align(self, protected: AnyArray) -> FloatArray:
        """Return centred and rotated directions of anonymised embeddings, shape (n, d)."""
        return _centre(protected, self.protected_mean) @ self.rotation


def _centre(vectors: AnyArray, mean: FloatArray) -> FloatArray:
    return np.where(np.any(vectors, axis=-1, keepdims=True), unit_vectors(vectors) - mean, 0.0)


def find_rotation(protected: FloatArray, clear: FloatArray, shrinkage: float = 0.0) -> FloatArray:
    """Find the orthogonal matrix R that brings ``protected @ R`` nearest to ``clear``.

    Rows are pairs, shape (n, d). Shrinkage draws R to the identity, relative to the strongest
    direction. Few pairs do not determine all directions.

    Example:
        >>> turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
        >>> clear = np.array([[1.0, 0.0], [1.0, 2.0]])
        >>> np.allclose(find_rotation(clear @ turn.T, clear), turn)
        True
    """
    product = protected.T @ clear
    strongest = np.linalg.norm(product, 2)
    u, _, vt = np.linalg.svd(product + shrinkage * strongest * np.eye(len(product)))
    return np.asarray(u @ vt)


def match_moments(protected: FloatArray, clear: FloatArray) -> FloatArray:
    """Find a rotation without pairs, from principal axes (second moments).

    The sign of each axis is that of its skewness. Rows are centred, shape (n, d) and (m, d).
    """
    axes = []
    for rows in (protected, clear):
        _, vectors = np.linalg.eigh(rows.T @ rows)
        skewness = ((rows @ vectors) ** 3).mean(axis=0)
        axes.append(vectors * np.where(skewness < 0, -1.0, 1.0))
    return np.asarray(axes[0] @ axes[1].T)


def match_sets(protected: FloatArray, clear: FloatArray) -> FloatArray:
    """Find a rotation without pairs (Wasserstein-Procrustes).

    Each round assigns anonymised to clear rows at the lowest cost, and rotates for these pairs. It
    begins from equal moments, and from no rotation. The result is the nearer of both.
    """
    from scipy.optimize import linear_sum_assignment

    results = []
    for rotation in (match_moments(protected, clear), np.eye(clear.shape[1])):
        before: tuple[int, ...] = ()
        for _ in range(_ROUNDS):
            rows, columns = linear_sum_assignment(-(protected @ rotation) @ clear.T)
            if (pairs := (*rows.tolist(), *columns.tolist())) == before:
                break
            before = pairs
            rotation = find_rotation(protected[rows], clear[columns], _SHRINKAGES[0])
        rows, columns = linear_sum_assignment(-(protected @ rotation) @ clear.T)
        nearness = float(np.sum((protected @ rotation)[rows] * clear[columns]))
        results.append((nearness, rotation))
    return max(results, key=lambda result: result[0])[1]


WAYS: Mapping[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "no rotation": lambda _, clear: np.eye(clear.shape[1]),
    "sets": match_sets,
    **{
        f"pairs, shrinkage {shrinkage:g}": partial(find_rotation, shrinkage=shrinkage)
        for shrinkage in _SHRINKAGES
    },
}
"""Ways to find a rotation from centred rows. Only those called pairs know the pairs of rows."""


def fit_alignment(protected: AnyArray, clear: AnyArray, way: str) -> Alignment:
    """Fit a map of embeddings of the same speech, shape (n, d), by one of the `WAYS`."""
    both = np.any(protected, axis=1) & np.any(clear, axis=1)
    rows = [unit_vectors(vectors[both]) for vectors in (protected, clear)]
    protected_mean, clear_mean = (vectors.mean(axis=0) for vectors in rows)
    rotation = WAYS[way](rows[0] - protected_mean, rows[1] - clear_mean)
    return Alignment(clear_mean, protected_mean, rotation)
