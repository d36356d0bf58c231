"""Resamples of speakers, and a random order of trials that does not depend on that of rows."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from monitor.lab.evaluation.comparisons import Comparisons, ScoreMatrix, natural
from monitor.maths.statistics import REPLICATES, speaker_weights
from monitor.types import BoolArray, FloatArray, IntArray


def settled_order(matrix: ScoreMatrix) -> IntArray:
    """Order rows by speaker, with each speaker's trials in random order: shape (T,).

    The order depends only on names of speakers and trials, so that all systems use the same trials;
    without names of trials, on their scores.
    """
    position = np.argsort(matrix.by_name)[matrix.target]
    if matrix.trial_names:
        names = np.unique(np.array(matrix.trial_names), return_inverse=True)[1]
        order: IntArray = np.lexsort((names, position))
    else:
        order = _by_scores(matrix, position)
    ends = np.flatnonzero(np.diff(position[order], append=-1)) + 1
    for rows in np.split(order, ends[:-1]):
        name = matrix.speakers[matrix.target[rows[0]]]
        np.random.default_rng(zlib.crc32(name.encode())).shuffle(rows)
    return order


def _by_scores(matrix: ScoreMatrix, position: IntArray) -> IntArray:
    """Order rows by keys that do not depend on the order of columns, then by all scores."""
    order = np.lexsort((matrix.tied, matrix.better, matrix.mated, position))
    keys = np.stack([key[order] for key in (position, matrix.mated, matrix.better, matrix.tied)])
    apart = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
    edges = np.concatenate([[0], np.flatnonzero(apart) + 1, [apart.size + 1]])
    for run in np.flatnonzero(np.diff(edges) > 1).tolist():
        start, stop = int(edges[run]), int(edges[run + 1])
        rows = order[start:stop]
        scores = np.asarray(matrix.scores[np.sort(rows)])[:, matrix.by_name]
        order[start:stop] = np.sort(rows)[np.lexsort(scores.T[::-1])]
    return order


_GROUPS = 100


@dataclass(frozen=True)
class Sample:
    """Weights (B + J, S) from `resamples` and `leaving_out`, with the sample's size.

    Units are speakers with mated scores. `nothing`: scores look like no evidence.
    """

    weights: FloatArray | None
    units: int
    trials: int
    nothing: bool = False


def resamples(matrix: ScoreMatrix, replicates: int = REPLICATES, seed: int = 0) -> FloatArray:
    """Draw how often each tested speaker counts in each resample: (replicates, S).

    Trials of one speaker are alike, so speakers are drawn, not trials. The columns stay unchanged.
    Draws depend only on names, so that all systems have the same resamples.
    """
    return drawn_by_name(matrix.people, replicates, seed)


def drawn_by_name(names: Sequence[str], replicates: int = REPLICATES, seed: int = 0) -> FloatArray:
    """Compute `speaker_weights` of named people, independent of their order."""
    order = sorted(range(len(names)), key=lambda i: natural(names[i]))
    weights = np.empty((replicates, len(names)))
    weights[:, order] = speaker_weights(len(names), replicates, seed)
    return weights


def leaving_out(names: Sequence[str]) -> FloatArray:
    """Make weights that leave out each person in turn, or each of 100 groups of more people.

    They measure how unequally people contribute to a figure (`monitor.maths.statistics.freedom`).
    Shape (J, S), 0 or 1, without rows for a single person.
    """
    group = np.empty(len(names), dtype=np.intp)
    group[sorted(range(len(names)), key=lambda i: natural(names[i]))] = np.arange(len(names))
    groups = min(len(names), _GROUPS) if len(names) > 1 else 0
    return np.asarray(group % _GROUPS != np.arange(groups)[:, None], dtype=np.float64)


def find_resamples(weights: FloatArray) -> BoolArray:
    """Find rows of weights (B, S) that are resamples: those of `leaving_out` sum to less than S."""
    return np.asarray(weights.sum(axis=1) == weights.shape[1])


def pooled_resamples(
    pool: Comparisons | ScoreMatrix, replicates: int = REPLICATES, seed: int = 0
) -> FloatArray:
    """Draw how often each person counts in each resample of a pool, as in `resamples`.

    People with a mated comparison and impostors are drawn separately, so that their numbers stay
    the same. A resample without any non-mated comparison, which can occur with few, is replaced by
    the whole pool.
    """
    weights = np.zeros((replicates, len(pool.people)))
    mated_people = np.unique(pool.owner)
    others = np.setdiff1d(np.arange(len(pool.people)), mated_people)
    for start, group in enumerate((mated_people, others)):
        if group.size:
            names = [pool.people[i] for i in group.tolist()]
            weights[:, group] = drawn_by_name(names, replicates, seed + start)
    weights[weights @ pool.non_mated_counts == 0] = 1.0
    return weights


def pooled_leaving_out(pool: Comparisons | ScoreMatrix) -> FloatArray:
    """Return the rows of `leaving_out` for a pool that keep comparisons of both kinds."""
    weights = leaving_out(pool.people)
    mated = np.bincount(pool.owner, minlength=len(pool.people))
    return np.asarray(weights[(weights @ mated > 0) & (weights @ pool.non_mated_counts > 0)])
