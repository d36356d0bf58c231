"""What a reader returns: comparisons, with notes on what was assumed and left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from monitor.errors import UsageError
from monitor.evaluation.input.files import Progress
from monitor.evaluation.scores.comparisons import Comparisons
from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.evaluation.scores.score_list import ScoreList
from monitor.evaluation.scores.scratch import scratch
from monitor.phrases import plural
from monitor.types import AnyArray, BoolArray, IntArray

__all__ = ["UNMATED", "EvaluationInput", "finished", "finished_list"]

UNMATED = ("count", "drop", "refuse")
"""What becomes of impostor trials, whose speaker is not enrolled."""

_UNEVEN = 3


@dataclass(frozen=True)
class EvaluationInput:
    """What was read.

    Attributes:
        comparisons: scores that were all looked at once: they are finite.
        notes: one sentence each, on what is allowed and yet can mislead.
    """

    comparisons: Comparisons
    notes: tuple[str, ...] = ()

    @property
    def matrix(self) -> ScoreMatrix:
        """The trials that ranks can stand on.

        Raises:
            UsageError: there are none.
        """
        if self.comparisons.matrix is None:
            raise UsageError(
                f"{self.comparisons.name}: no trial was compared with every enrolled speaker, its "
                "own among them: there are no ranks"
            )
        return self.comparisons.matrix


def finished(
    scores: AnyArray,
    target: IntArray,
    speakers: tuple[str, ...],
    name: str,
    *,
    trials: Sequence[str] = (),
    spoken: Sequence[str] = (),
    notes: Sequence[str] = (),
    unmated: str = "count",
    progress: Progress | None = None,
) -> EvaluationInput:
    """Check a matrix in one pass over it, which the matrix keeps for its ranks.

    Args:
        scores: shape (T, N).
        target: shape (T,); -1 where the speaker is not among the columns.
        speakers: names of the columns, empty where they have none.
        name: of the system.
        trials: names of the rows, where they have any.
        spoken: names of their speakers, where they are known.
        notes: what is known already.
        unmated: ``"count"`` impostor trials where no rank is needed, ``"drop"`` or ``"refuse"``
            them.
        progress: called as rows are gone through where rows are set apart.

    Raises:
        UsageError: a score is not finite, impostor trials are refused, or nothing is left.

    Example:
        >>> made = finished(np.array([[0.9, 0.1], [0.5, 0.5]]), np.array([0, 1]), (), "mine")
        >>> made.notes
        ('1 of 2 trials scores the same with every speaker (trial 2): it says nothing',)
    """
    said = list(notes)
    called = trials or tuple(str(row + 1) for row in range(len(target)))
    impostor = target < 0
    strangers = _impostors(impostor, called, name, unmated, said)
    rest = None
    if impostor.any():
        keep = np.flatnonzero(~impostor)
        if strangers:
            rows = np.flatnonzero(impostor)
            rest = _rest(_rows(scores, rows, progress), rows, speakers, called, spoken)
        scores, target = _rows(scores, keep, progress), target[keep]
        called = tuple(called[row] for row in keep.tolist())
    named = called if trials and len(set(called)) == len(called) else ()
    matrix = ScoreMatrix(scores, target, speakers, name, tuple(named))
    return EvaluationInput(
        Comparisons(matrix.speakers, matrix, rest, name), (*said, *_balance(matrix, called))
    )


def finished_list(
    listed: ScoreList,
    name: str,
    *,
    notes: Sequence[str] = (),
    unmated: str = "count",
) -> EvaluationInput:
    """Take the trials that ranks can stand on out of a list, and say what is beside them.

    Args:
        listed: the comparisons, of named trials.
        name: of the system.
        notes: what is known already.
        unmated: as `finished`.

    Raises:
        UsageError: impostor trials are refused, or nothing is left.
    """
    said = list(notes)
    impostor = listed.hits == 0
    if not _impostors(impostor, listed.trials, name, unmated, said):
        listed = listed.chosen(~impostor[listed.trial])
    several = np.flatnonzero(listed.hits > 1)
    if several.size:
        said.append(
            f"{plural(several.size, 'trial')} with several targets (first: "
            f"{listed.trials[several[0]]}): each counts by itself; to take the enrolments of a "
            "speaker together, say whose they are (--enrolment-labels)"
        )
    count, met = len(listed.speakers), np.bincount(listed.trial, minlength=len(listed.spoken))
    short = np.flatnonzero(met < count)
    if short.size:
        row = int(short[0])
        lacks = np.setdiff1d(np.arange(count), listed.speaker[listed.trial == row])[0]
        said.append(
            f"{short.size} of {plural(met.size, 'trial')} were not compared with every speaker "
            f"(first: trial {listed.trials[row]}, not with {listed.speakers[lacks]}): ranks leave "
            "them out"
        )
    made = Comparisons.of(listed, name)
    if made.matrix is not None:
        said += _balance(made.matrix, made.matrix.trial_names)
    return EvaluationInput(made, tuple(said))


def _impostors(
    impostor: BoolArray, trials: Sequence[str], name: str, unmated: str, said: list[str]
) -> bool:
    """Whether they are to be counted; what is done with them is said."""
    if unmated not in UNMATED:
        raise UsageError(f"unmated={unmated!r} is not one of {', '.join(UNMATED)}")
    lost = int(impostor.sum())
    if not lost:
        return True
    first = f"first: trial {trials[int(np.argmax(impostor))]}"
    if unmated == "refuse" or lost == impostor.size:
        raise UsageError(
            f"{name}: {lost} of {impostor.size} trials have no mated score, their speaker is not "
            f"enrolled ({first}); check the names"
            + (
                ", or say whose the enrolments are (--enrolment-labels)"
                if lost == impostor.size
                else ", or let impostors count (--unmated count)"
            )
        )
    many = (
        f"{lost} of {impostor.size} trials have no target, as those of impostors, who are not "
        f"enrolled ({first}): "
    )
    if unmated == "drop":
        said.append(f"{many}dropped, tools that count them as non-mated differ")
        return False
    said.append(f"{many}ranks leave them out")
    return True


def _rest(
    scores: AnyArray,
    rows: IntArray,
    speakers: tuple[str, ...],
    trials: Sequence[str],
    spoken: Sequence[str],
) -> ScoreList:
    """Impostor trials as a list; one whose speaker nobody names is its own speaker."""
    if not np.isfinite(scores).all():
        row = int(np.argwhere(~np.isfinite(scores))[0, 0])
        raise UsageError(
            f"a score of trial {trials[rows[row]]} is not a finite number: drop that trial"
        )
    names = [(spoken[row] if spoken else "") or trials[row] for row in rows.tolist()]
    people = {person: i for i, person in enumerate(dict.fromkeys(names))}
    count = scores.shape[1]
    return ScoreList(
        scores.reshape(-1),
        np.zeros(scores.size, bool),
        np.repeat(np.arange(len(rows)), count),
        np.tile(np.arange(count), len(rows)),
        np.array([people[name] for name in names], dtype=np.intp),
        speakers or tuple(map(str, range(count))),
        tuple(people),
        tuple(trials[row] for row in rows.tolist()),
    )


def _balance(matrix: ScoreMatrix, trials: Sequence[str]) -> list[str]:
    """What the trials say at all, and how they lie among the speakers."""
    said = []
    flat = np.flatnonzero(matrix.tied == matrix.population)
    if flat.size:
        many = f"{flat.size} of {plural(matrix.trials, 'trial')} score" + "s" * (flat.size == 1)
        said.append(
            f"{many} the same with every speaker ({'' if flat.size == 1 else 'first: '}trial "
            f"{trials[int(flat[0])]}): {'it says' if flat.size == 1 else 'they say'} nothing"
        )
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
