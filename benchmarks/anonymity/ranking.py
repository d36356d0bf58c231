"""USC's rank test: each query against one utterance of every reader, drawn anew for each test.

Source: Tura-Vecino et al. (USC), section 3.3, equation (2). Its names are not ours: what it calls
linkability has both sides anonymised; singling out is defined as anonymised queries against
original references, and described as measured the other way round. Roles are said; both are made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.types import FloatArray

__all__ = ["enrolled_matrix", "rank_tests"]


def rank_tests(
    queries: Mapping[str, Sequence[FloatArray]],
    references: Mapping[str, Sequence[FloatArray]],
    tests: int,
    seed: int = 0,
) -> ScoreMatrix:
    """Cosines of L tests of each reader: a query of theirs, a reference of everybody.

    Args:
        queries: by reader, embeddings of length 1.
        references: likewise, of the same readers in the same order.
        tests: L. The same seed draws the same utterances, so that systems compare in pairs.
        seed: of the draws.

    Example:
        >>> one, two = np.array([1.0, 0.0]), np.array([0.0, 1.0])
        >>> found = rank_tests({"ann": [one], "bob": [two]}, {"ann": [one], "bob": [two]}, 3)
        >>> found.scores.shape, found.better.tolist()
        ((6, 2), [0, 0, 0, 0, 0, 0])
    """
    generator = np.random.default_rng(seed)
    names = tuple(queries)
    rows, target, called = [], [], []
    for place, name in enumerate(names):
        for test in range(tests):
            query = _drawn(queries[name], generator)
            rows.append(np.stack([_drawn(references[n], generator) for n in names]) @ query)
            target.append(place)
            called.append(f"{name} {test + 1}")
    return ScoreMatrix(np.stack(rows), np.array(target), names, "cosine", tuple(called))


def enrolled_matrix(
    queries: Mapping[str, Sequence[FloatArray]], references: Mapping[str, Sequence[FloatArray]]
) -> ScoreMatrix:
    """Cosines of every query with the mean of all references of every reader: who has them all.

    Example:
        >>> one, two = np.array([1.0, 0.0]), np.array([0.0, 1.0])
        >>> enrolled_matrix({"ann": [one], "bob": [two]}, {"ann": [one, one], "bob": [two]}).scores
        array([[1., 0.],
               [0., 1.]])
    """
    names = tuple(queries)
    means = np.stack([np.mean(references[name], axis=0) for name in names])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    target = np.repeat(np.arange(len(names)), [len(queries[name]) for name in names])
    called = tuple(f"{name} {i + 1}" for name in names for i in range(len(queries[name])))
    scores = np.stack([query for name in names for query in queries[name]]) @ means.T
    return ScoreMatrix(scores, target, names, "cosine", called)


def _drawn(embeddings: Sequence[FloatArray], generator: np.random.Generator) -> FloatArray:
    return embeddings[int(generator.integers(len(embeddings)))]
