"""The figures of linkability: D_sys, pi_link and pi_sing."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.errors import UsageError
from monitor.evaluation.figure import Figure
from monitor.evaluation.linkage.separation import d_sys_figure
from monitor.evaluation.linkage.singling import sing_figure
from monitor.evaluation.scores.counts import ScoreCounts
from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.phrases import plural
from monitor.types import FloatArray, IntArray

__all__ = [
    "figures",
    "link_figures",
    "link_table",
    "pi_link",
    "pi_link_curve",
    "rank_figures",
]

_Doubles: TypeAlias = NDArray[np.float64]


def pi_link(better: IntArray, population: int, candidates: ArrayLike) -> _Doubles:
    """Probability that the right speaker scores highest among N' candidates.

    Exact: the other N' - 1 are drawn from the N - 1 other speakers without replacement, and none
    of those that score higher may be among them. A tie goes to the attacker.

    Args:
        better: shape (T,), how many speakers score strictly higher than the trial's own
            (`ScoreMatrix.better`).
        population: N.
        candidates: N', any shape, from 1 to N. Chance is 1 / N'.

    Returns:
        shape of `candidates`: mean over the trials.

    Raises:
        UsageError: candidates or ranks that do not fit into N, or no trial.

    Example:
        >>> pi_link(np.array([0, 1, 2]), 3, [1, 2, 3]).round(4).tolist()
        [1.0, 0.5, 0.3333]
    """
    better = np.asarray(better)
    if better.ndim != 1 or not better.size or better.min() < 0 or better.max() >= population:
        raise UsageError(f"ranks do not fit into {plural(population, 'speaker')}: check N")
    wanted = np.asarray(candidates)
    inside = (wanted >= 1) & (wanted <= population)
    if wanted.dtype.kind not in "iu" or not inside.all():
        raise UsageError(f"pi_link takes whole numbers of candidates from 1 to {population}")
    levels = np.bincount(better)
    found = np.flatnonzero(levels)
    mean = levels[found] @ link_table(found, population, wanted.ravel()) / len(better)
    return np.asarray(mean.reshape(wanted.shape))


def pi_link_curve(matrix: ScoreMatrix) -> tuple[IntArray, _Doubles]:
    """pi_link against the number of candidates, to plot.

    Returns:
        N' from 2 to N, shape (N - 1,), at most some 200 of them, and pi_link at each.
    """
    steps = np.geomspace(2, matrix.population, min(matrix.population - 1, 200))
    candidates = np.unique(np.rint(steps).astype(np.intp))
    return candidates, pi_link(matrix.better, matrix.population, candidates)


def figures(
    matrix: ScoreMatrix, weights: FloatArray | None = None, counts: ScoreCounts | None = None
) -> tuple[Figure, ...]:
    """D_sys, pi_link among 2, 10 and all speakers, and pi_sing.

    Args:
        matrix: trials x speakers.
        weights: shape (B, S), from `resamples`: gives the figures their replicates.
        counts: of this matrix, where it was counted already.

    Returns:
        keys ``linkage.d_sys``, ``linkage.pi_link_2``, ``.pi_link_10`` (from N = 11),
        ``.pi_link_all`` and ``linkage.pi_sing``.
    """
    return (d_sys_figure(matrix, weights, counts), *rank_figures(matrix, weights))


def rank_figures(matrix: ScoreMatrix, weights: FloatArray | None = None) -> tuple[Figure, ...]:
    """Those of `figures` that need every trial against every speaker: all but D_sys."""
    return (*link_figures(matrix, weights), sing_figure(matrix, weights))


def link_figures(matrix: ScoreMatrix, weights: FloatArray | None) -> tuple[Figure, ...]:
    """``linkage.pi_link_2``, ``.pi_link_10`` and ``.pi_link_all``, as `figures`."""
    population = matrix.population
    wanted = [(n, str(n)) for n in (2, 10) if n < population] + [(population, "all")]
    levels, place = np.unique(matrix.better, return_inverse=True)
    table = link_table(levels, population, np.array([n for n, _ in wanted]))
    mean = np.bincount(place) @ table / matrix.trials
    replicates = None
    if weights is not None:
        shape = len(matrix.tested), len(levels)
        cells = np.bincount(matrix.owner * shape[1] + place, minlength=shape[0] * shape[1])
        seen = weights @ cells.reshape(shape).astype(np.float64)
        replicates = seen @ table / seen.sum(axis=1, keepdims=True)
    return tuple(
        Figure(
            f"linkage.pi_link_{name}",
            f"pi_link among {count}",
            float(mean[i]),
            "share",
            replicates=None if replicates is None else replicates[:, i],
            ceiling=1.0,
            floor=1 / count,
            ties="optimistic",
        )
        for i, (count, name) in enumerate(wanted)
    )


def link_table(levels: IntArray, population: int, candidates: IntArray) -> _Doubles:
    """pi_link of a trial that m others beat: ``C(N - N', m) / C(N - 1, m)``.

    The same number as ``C(N - 1 - m, N' - 1) / C(N - 1, N' - 1)``, as a product over m.

    Args:
        levels: shape (L,), m.
        population: N.
        candidates: shape (C,), N'.

    Returns:
        shape (L, C).
    """
    placed = np.arange(levels.max())
    free = np.maximum(population - candidates[:, None] - placed, 0) / (population - 1.0 - placed)
    ways = np.ones((len(candidates), len(placed) + 1))
    np.cumprod(free, axis=1, out=ways[:, 1:])
    return np.asarray(ways[:, levels].T)
