"""Bootstrap replicates of speakers: the trials of a speaker count as often as it is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from monitor.evaluation.input.layout import natural
from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.maths.bootstrap import REPLICATES, speaker_weights
from monitor.types import BoolArray, FloatArray

__all__ = ["Sample", "drawn_by_name", "leaving_out", "resampled", "resamples"]

_GROUPS = 100


@dataclass(frozen=True)
class Sample:
    """What figures were resampled over.

    Attributes:
        weights: shape (B + J, S), from `resamples` and `leaving_out`; None where nothing was.
        units: speakers with a mated score.
        trials: of theirs.
        nothing: whether scores are not told from no evidence.
    """

    weights: FloatArray | None
    units: int
    trials: int
    nothing: bool = False


def resamples(matrix: ScoreMatrix, replicates: int = REPLICATES, seed: int = 0) -> FloatArray:
    """How often each tested speaker counts in each resample.

    Trials of one speaker are alike, so speakers are drawn and not trials; the enrolled speakers,
    the columns, stay as they are (docs/method.md section 5). They are drawn by name: systems with
    their columns in another order draw the same people. The weight of a trial is
    ``weights[:, matrix.owner]``, and a row's non-mated scores weigh as much as its mated one.

    Args:
        matrix: S of its speakers have trials.
        replicates: B.
        seed: equal seeds draw equal speakers, so that systems tested on the same speakers compare
            pairwise.

    Returns:
        shape (B, S), whole numbers as float64; each row sums to S.

    Example:
        >>> matrix = ScoreMatrix(np.eye(3), np.arange(3))
        >>> resamples(matrix, replicates=2).sum(axis=1).tolist()
        [3.0, 3.0]
    """
    return drawn_by_name([matrix.speakers[i] for i in matrix.tested.tolist()], replicates, seed)


def drawn_by_name(names: Sequence[str], replicates: int = REPLICATES, seed: int = 0) -> FloatArray:
    """`speaker_weights` of named people: the same for everybody in whatever order they are given.

    Example:
        >>> one, other = drawn_by_name(["ann", "bob"], 4), drawn_by_name(["bob", "ann"], 4)
        >>> bool((one == other[:, ::-1]).all())
        True
    """
    order = sorted(range(len(names)), key=lambda i: natural(names[i]))
    weights = np.empty((replicates, len(names)))
    weights[:, order] = speaker_weights(len(names), replicates, seed)
    return weights


def leaving_out(names: Sequence[str]) -> FloatArray:
    """Weights that leave out each person in turn; of more than 100, a group of them.

    They tell how unequally people contribute to a figure, see `monitor.maths.intervals.freedom`.
    Groups go by name, so that the order of the columns does not matter.

    Args:
        names: S.

    Returns:
        shape (J, S), 0 or 1; no row of zeros alone, so none for one person.

    Example:
        >>> leaving_out(["ann", "bob", "cid"]).tolist()
        [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
    """
    group = np.empty(len(names), dtype=np.intp)
    group[sorted(range(len(names)), key=lambda i: natural(names[i]))] = np.arange(len(names))
    groups = min(len(names), _GROUPS) if len(names) > 1 else 0
    return np.asarray(group % _GROUPS != np.arange(groups)[:, None], dtype=np.float64)


def resampled(weights: FloatArray) -> BoolArray:
    """Which rows of weights are resamples: those of `leaving_out` sum to less than S.

    Args:
        weights: shape (B, S).

    Returns:
        shape (B,).
    """
    return np.asarray(weights.sum(axis=1) == weights.shape[1])
