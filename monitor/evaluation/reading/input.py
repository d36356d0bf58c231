"""A matrix with what a person should know about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from monitor.errors import UsageError
from monitor.evaluation.matrix import ScoreMatrix
from monitor.evaluation.reading.files import Progress
from monitor.evaluation.reading.scratch import scratch
from monitor.types import AnyArray, IntArray

__all__ = ["UNMATED", "Input", "finished"]

UNMATED = ("refuse", "drop")
"""What becomes of trials whose speaker is not enrolled."""

_UNEVEN = 3


@dataclass(frozen=True)
class Input:
    """What was read.

    Attributes:
        matrix: scores that were all looked at once: they are finite.
        notes: one sentence each, on what is allowed and yet can mislead.
    """

    matrix: ScoreMatrix
    notes: tuple[str, ...] = ()


def finished(
    scores: AnyArray,
    target: IntArray,
    speakers: tuple[str, ...],
    name: str,
    *,
    trials: Sequence[str] = (),
    notes: Sequence[str] = (),
    unmated: str = "refuse",
    progress: Progress | None = None,
) -> Input:
    """Check a matrix in one pass over it, which the matrix keeps for its ranks.

    Args:
        scores: shape (T, N).
        target: shape (T,); -1 where the speaker is not among the columns.
        speakers: names of the columns, empty where they have none.
        name: of the system.
        trials: names of the rows, where they have any.
        notes: what is known already.
        unmated: ``"refuse"`` trials without a mated score, or ``"drop"`` them and say so.
        progress: called as rows are gone through where rows are dropped.

    Raises:
        UsageError: a score is not finite, a trial has no mated score, or nothing is left.

    Example:
        >>> made = finished(np.array([[0.9, 0.1], [0.5, 0.5]]), np.array([0, 1]), (), "mine")
        >>> made.notes
        ('1 of 2 trials scores the same with every speaker (trial 2): it says nothing',)
    """
    if unmated not in UNMATED:
        raise UsageError(f"unmated={unmated!r} is not one of {', '.join(UNMATED)}")
    said = list(notes)

    def trial(row: int) -> str:
        return trials[row] if trials else str(row + 1)

    lost = np.flatnonzero(target < 0)
    if lost.size:
        if unmated == "refuse" or lost.size == len(target):
            raise UsageError(
                f"{name}: {lost.size} of {len(target)} trials have no mated score, their speaker "
                f"is not enrolled (first: trial {trial(int(lost[0]))}); "
                + ("check the names" if lost.size == len(target) else "drop them (unmated: drop)")
            )
        said.append(
            f"{lost.size} of {len(target)} trials were dropped, their speaker is not enrolled "
            f"(first: trial {trial(int(lost[0]))}): tools that count them as non-mated differ"
        )
        keep = np.flatnonzero(target >= 0)
        scores, target = _rows(scores, keep, progress), target[keep]
        trials = [trials[row] for row in keep.tolist()] if trials else ()
    matrix = ScoreMatrix(scores, target, speakers, name)
    flat = np.flatnonzero(matrix.tied == matrix.population)
    if flat.size:
        many = f"{flat.size} of {matrix.trials} trials score" + "s" * (flat.size == 1)
        said.append(
            f"{many} the same with every speaker ({'' if flat.size == 1 else 'first: '}trial "
            f"{trial(int(flat[0]))}): {'it says' if flat.size == 1 else 'they say'} nothing"
        )
    said += _balance(matrix)
    return Input(matrix, tuple(said))


def _balance(matrix: ScoreMatrix) -> list[str]:
    """How the trials lie among the speakers."""
    said = []
    counts = np.bincount(matrix.target, minlength=matrix.population)
    silent = np.flatnonzero(counts == 0)
    tested = matrix.population - silent.size
    if silent.size:
        have = "has" if silent.size == 1 else "have"
        said.append(
            f"{silent.size} of {matrix.population} speakers {have} no trial (first: "
            f"{matrix.speakers[int(silent[0])]}): compared with, never looked for"
        )
    if tested == 1:
        said.append("all trials are of one speaker: limits over speakers cannot be given")
    counts = counts[counts > 0]
    if counts.max() >= _UNEVEN * counts.min():
        said.append(
            f"speakers have {counts.min()} to {counts.max()} trials: averages over trials are "
            "mostly those of the speakers with many"
        )
    return said


def _rows(scores: AnyArray, keep: IntArray, progress: Progress | None) -> AnyArray:
    kept = scratch((len(keep), scores.shape[1]), scores.dtype)
    step = max(1, (1 << 20) // scores.shape[1])
    for first in range(0, len(keep), step):
        kept[first : first + step] = scores[keep[first : first + step]]
        if progress is not None:
            progress(min(first + step, len(keep)), len(keep))
    return kept
