"""Comparisons of trials with enrolled speakers, as a matrix or as a list of pairs.

Ranks need a `ScoreMatrix`: every trial compared with every enrolled speaker. Figures of pooled
scores (EER, Cllr, ZEBRA, D_sys, TPR at low FPR) take any `ScoredComparisons`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress

import numpy as np

from monitor.arrays import real_numbers
from monitor.errors import UsageError
from monitor.lab.evaluation.memory import refuse_beyond_memory, scratch
from monitor.lab.report.model import OneLine
from monitor.maths.ranks import rank_bounds
from monitor.phrases import plural
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray

_VOICES = ("anonymised", "original")
_DIGITS = 19


def natural(name: str) -> tuple[int, int, str]:
    """Return a sorting key for names: numbers by size, then all others."""
    return (0, int(name), name) if name.isdecimal() and len(name) < _DIGITS else (1, 0, name)


@dataclass(frozen=True, slots=True)
class Roles:
    """Description of both sides: trials (query) and enrolled speech (reference).

    Each is ``"anonymised"`` or ``"original"``.

    Example:
        >>> str(Roles(query="anonymised", reference="original"))
        'anonymised queries against original references'
    """

    query: str
    reference: str

    def __post_init__(self) -> None:
        for role, voice in (("query", self.query), ("reference", self.reference)):
            if voice not in _VOICES:
                raise UsageError(f"invalid {role} {voice!r}: use {' or '.join(_VOICES)}")

    def __str__(self) -> str:
        return f"{self.query} queries against {self.reference} references"


@dataclass(frozen=True, repr=False)
class ScoreList(OneLine):
    """Labelled comparisons of trials with enrolled speakers, one score each. Pairs may be missing.

    Attributes:
        scores: shape (n,), finite. Higher scores mean more alike.
        mated: shape (n,), whether trial and enrolled speaker are the same person.
        trial: shape (n,), index into `spoken`.
        speaker: shape (n,), index into `speakers`.
        spoken: shape (T,), the speaker of each trial, index into `people`.
        speakers: the N enrolled speakers.
        people: speakers of trials. An unnamed speaker has the name of the trial.
        trials: unique names of the T trials; empty if they have no names.
        met, hits: each trial's numbers of all and of mated comparisons, shape (T,).
    """

    scores: AnyArray
    mated: BoolArray
    trial: IntArray
    speaker: IntArray
    spoken: IntArray
    speakers: tuple[str, ...]
    people: tuple[str, ...]
    trials: tuple[str, ...] = ()
    met: IntArray = field(init=False)
    hits: IntArray = field(init=False)

    def __post_init__(self) -> None:
        for name in ("scores", "mated", "trial", "speaker", "spoken"):
            object.__setattr__(self, name, real_numbers(getattr(self, name), name))
        if not self.scores.shape == self.mated.shape == self.trial.shape == self.speaker.shape:
            raise UsageError("give a score, a trial, a speaker and a label for each comparison")
        if not np.isfinite(self.scores).all():
            raise UsageError("a score is not finite: drop that comparison")
        for name, trial in (("met", self.trial), ("hits", self.trial[self.mated])):
            object.__setattr__(self, name, np.bincount(trial, minlength=len(self.spoken)))

    def of_trials(self, trials: BoolArray, speakers: BoolArray | None = None) -> ScoreList:
        """Select trials, shape (T,), and all or some speakers, shape (N,)."""
        inside = trials[self.trial]
        return self.select(inside if speakers is None else inside & speakers[self.speaker])

    def select(self, which: BoolArray) -> ScoreList:
        """Select comparisons, shape (n,), and drop trials without any."""
        met, trial = np.unique(self.trial[which], return_inverse=True)
        people, spoken = np.unique(self.spoken[met], return_inverse=True)
        return ScoreList(
            self.scores[which], self.mated[which], trial, self.speaker[which], spoken,
            self.speakers, tuple(self.people[i] for i in people.tolist()),
            tuple(self.trials[i] for i in met.tolist()) if self.trials else (),
        )  # fmt: skip

    @cached_property
    def complete(self) -> BoolArray:
        """True for trials compared with every enrolled speaker, including their own: shape (T,)."""
        return np.asarray((self.met == len(self.speakers)) & (self.hits == 1))


_BLOCK = 1 << 20  # scores per block; a matrix on disk is never completely in memory


@dataclass(frozen=True, repr=False)
class ScoreMatrix(OneLine):
    """Scores of T trials against N enrolled speakers, with each trial's true speaker.

    The score of a trial with its own speaker is mated. All other scores of its row are non-mated.
    Longitudinal figures treat a speaker's trials, in their order, as one stream.

    Attributes:
        scores: shape (T, N), an array or memory map of real numbers. Higher scores mean more alike.
        target: shape (T,), the column of each trial's speaker.
        speakers: the N names of the columns.
        name: name of the system that made the scores.
        trial_names: unique names of the T rows; empty if they have no names.

    Example:
        >>> matrix = ScoreMatrix(np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([0, 1]))
        >>> matrix.mated.tolist(), matrix.better.tolist()
        ([0.9, 0.6], [0, 0])
    """

    scores: AnyArray
    target: IntArray
    speakers: tuple[str, ...] = ()
    name: str = "scores"
    trial_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, what in (("scores", "scores"), ("target", "targets")):
            array = real_numbers(getattr(self, name), f"{self.name}: {what}")
            object.__setattr__(self, name, array)
        if self.scores.ndim != 2 or self.scores.dtype.kind not in "fiu":
            raise UsageError(f"{self.name}: scores must be a matrix of numbers, trials x speakers")
        trials, count = self.scores.shape
        if count < 2:
            raise UsageError(
                f"{self.name} has {plural(count, 'speaker')}; a comparison needs at least two"
            )
        if trials == 0:
            raise UsageError(f"{self.name} has no trials")
        target = self.target
        if target.shape != (trials,) or target.dtype.kind not in "iu":
            raise UsageError(f"{self.name}: give one target column for each of {trials} trials")
        if target.min() < 0 or target.max() >= count:
            raise UsageError(f"{self.name}: a target is outside the {plural(count, 'column')}")
        names = tuple(map(str, self.speakers)) or tuple(map(str, range(count)))
        if len(names) != count or len(set(names)) != count:
            raise UsageError(f"{self.name}: give {count} different names, one for each column")
        if self.trial_names and len(set(self.trial_names)) != trials:
            raise UsageError(f"{self.name}: give {trials} different names, one for each trial")
        object.__setattr__(self, "target", target.astype(np.intp))
        object.__setattr__(self, "speakers", names)

    @property
    def trials(self) -> int:
        """Number T of trials, each with one mated score."""
        return len(self.target)

    @property
    def population(self) -> int:
        """Number N of speakers with whom each trial is compared."""
        return int(self.scores.shape[1])

    @property
    def ceiling_bits(self) -> float:
        """Maximum bits of a trial, ``log2 N``."""
        return float(np.log2(self.population))

    @cached_property
    def tested(self) -> IntArray:
        """Ascending columns of the speakers with at least one trial: shape (S,)."""
        return np.unique(self.target)

    @cached_property
    def owner(self) -> IntArray:
        """Index of each trial's speaker into `tested`: shape (T,)."""
        return np.searchsorted(self.tested, self.target)

    @cached_property
    def people(self) -> tuple[str, ...]:
        """Names of the speakers in `tested`."""
        return tuple(self.speakers[column] for column in self.tested.tolist())

    @cached_property
    def by_name(self) -> IntArray:
        """All columns sorted by name, numbers by size: shape (N,)."""
        names = self.speakers
        return np.array(sorted(range(len(names)), key=lambda i: natural(names[i])), dtype=np.intp)

    @property
    def named_trials(self) -> frozenset[tuple[str, str]]:
        """Speaker and name of each trial; empty where trials have no names."""
        spoken = (self.speakers[column] for column in self.target.tolist())
        return frozenset(zip(spoken, self.trial_names, strict=False))

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """Yield blocks of rows in order, some megabytes each, as float64."""
        rows = max(1, _BLOCK // self.population)
        for first in range(0, self.trials, rows):
            block = slice(first, min(first + rows, self.trials))
            scores = np.asarray(self.scores[block], dtype=np.float64)
            if not np.isfinite(scores).all():
                row, column = np.argwhere(~np.isfinite(scores))[0].tolist()
                raise UsageError(
                    f"{self.name}: the score of trial {first + row + 1} with speaker "
                    f"{self.speakers[column]} is not finite. Drop that trial"
                )
            yield block, scores

    @cached_property
    def non_mated_counts(self) -> IntArray:
        """Numbers of non-mated scores in each tested speaker's trials: shape (S,)."""
        return np.bincount(self.owner) * (self.population - 1)

    def non_mated_blocks(self) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield `blocks` without mated scores, (rows, N - 1), and their indices into `tested`."""
        for block, scores in self.blocks():
            others = self.others(block)
            yield self.owner[block], scores[others].reshape(len(scores), -1)

    def others(self, block: slice) -> BoolArray:
        """Locate the non-mated scores of these rows: shape (rows, N)."""
        target = self.target[block]
        others = np.ones((len(target), self.population), dtype=bool)
        others[np.arange(len(target)), target] = False
        return others

    @cached_property
    def mated(self) -> FloatArray:
        """Score of each trial with its own speaker: shape (T,), float64."""
        return self._first_pass[0]

    @cached_property
    def better(self) -> IntArray:
        """Number of speakers who score strictly higher than the trial's own: shape (T,)."""
        return self._first_pass[1]

    @cached_property
    def tied(self) -> IntArray:
        """Number of speakers with the same score as the trial's own, including it: shape (T,)."""
        return self._first_pass[2]

    @cached_property
    def _first_pass(self) -> tuple[FloatArray, IntArray, IntArray]:
        mated = np.empty(self.trials)
        better, tied = np.empty((2, self.trials), dtype=np.intp)
        for block, scores in self.blocks():
            target = self.target[block]
            mated[block] = scores[np.arange(len(scores)), target]
            better[block], tied[block] = rank_bounds(scores, target)
        return mated, better, tied


_UNEVEN = 3


def describe_balance(matrix: ScoreMatrix, trials: Sequence[str]) -> list[str]:
    """Describe uninformative trials, and how trials are distributed among the speakers."""
    notes = []
    flat = np.flatnonzero(matrix.tied == matrix.population)
    if flat.size:
        many = f"{flat.size} of {plural(matrix.trials, 'trial')} score" + "s" * (flat.size == 1)
        notes.append(
            f"{many} the same with every speaker ({'' if flat.size == 1 else 'first: '}trial "
            f"{trials[int(flat[0])]}): {'it contains' if flat.size == 1 else 'they contain'} no "
            "information"
        )
    counts = np.bincount(matrix.target, minlength=matrix.population)
    silent = np.flatnonzero(counts == 0)
    tested = matrix.population - silent.size
    if silent.size:
        have = "has" if silent.size == 1 else "have"
        notes.append(
            f"{silent.size} of {matrix.population} speakers {have} no trial and only serve as "
            f"impostors (first: {matrix.speakers[int(silent[0])]})"
        )
    if tested == 1:
        notes.append("all trials are of one speaker, so there are no intervals over speakers")
    counts = counts[counts > 0]
    if counts.max() >= _UNEVEN * counts.min():
        notes.append(
            f"speakers have {counts.min()} to {counts.max()} trials: speakers with many trials "
            "dominate the averages"
        )
    return notes


@dataclass(frozen=True)
class Usage:
    """Numbers of comparisons and of trials.

    Impostor comparisons are among the non-target ones. Ranked trials were compared with every
    enrolled speaker, including their own.
    """

    target: int
    nontarget: int
    impostor: int
    trials: int
    impostor_trials: int
    ranked_trials: int


@dataclass(frozen=True, repr=False)
class Comparisons(OneLine):
    """All comparisons of a system.

    Attributes:
        speakers: the N enrolled speakers.
        matrix: trials compared with all enrolled speakers, including their own; None without such
            trials.
        incomplete: all other comparisons, or None.
        name: name of the system.
    """

    speakers: tuple[str, ...]
    matrix: ScoreMatrix | None
    incomplete: ScoreList | None = None
    name: str = "scores"

    def __post_init__(self) -> None:
        if not self.mated.size:
            raise UsageError(f"{self.name} has no mated comparison: check the names")
        if not self.non_mated_counts.sum():
            raise UsageError(f"{self.name} has no non-mated comparison: check the names")

    @classmethod
    def from_scores(cls, listed: ScoreList, name: str = "scores") -> Comparisons:
        """Collect the complete trials of a list into a matrix."""
        is_complete = listed.complete & (len(listed.speakers) > 1)
        if not is_complete.any():
            return cls(listed.speakers, None, listed, name)
        inside = is_complete[listed.trial]
        row, column = (np.cumsum(is_complete) - 1)[listed.trial[inside]], listed.speaker[inside]
        scores = scratch((int(is_complete.sum()), len(listed.speakers)), listed.scores.dtype)
        scores[row, column] = listed.scores[inside]
        is_mated = listed.mated[inside]
        target = np.empty(len(scores), dtype=np.intp)
        target[row[is_mated]] = column[is_mated]
        trials = tuple(compress(listed.trials, is_complete.tolist()))
        matrix = ScoreMatrix(scores, target, listed.speakers, name, trials)
        incomplete = None if is_complete.all() else listed.of_trials(~is_complete)
        return cls(listed.speakers, matrix, incomplete, name)

    @classmethod
    def all_of(cls, matrix: ScoreMatrix) -> Comparisons:
        """Wrap a matrix, without other comparisons."""
        return cls(matrix.speakers, matrix, None, matrix.name)

    @cached_property
    def people(self) -> tuple[str, ...]:
        """Names of the S speakers of trials, first the speakers in `ScoreMatrix.tested`."""
        ranked = () if self.matrix is None else self.matrix.people
        return tuple(dict.fromkeys([*ranked, *(self.incomplete.people if self.incomplete else ())]))

    @cached_property
    def _trial_owner(self) -> IntArray:
        if self.incomplete is None:
            return np.zeros(0, dtype=np.intp)
        index = {name: i for i, name in enumerate(self.people)}
        owner = np.array([index[name] for name in self.incomplete.people], dtype=np.intp)
        return owner[self.incomplete.spoken]

    @cached_property
    def _own(self) -> tuple[FloatArray, IntArray]:
        scores = [] if self.matrix is None else [self.matrix.mated]
        owner = [] if self.matrix is None else [self.matrix.owner]
        if self.incomplete is not None:
            scores.append(np.asarray(self.incomplete.scores[self.incomplete.mated], np.float64))
            owner.append(self._trial_owner[self.incomplete.trial[self.incomplete.mated]])
        return np.concatenate(scores), np.concatenate(owner)

    @property
    def mated(self) -> FloatArray:
        """Mated scores, see `ScoredComparisons`."""
        return self._own[0]

    @property
    def owner(self) -> IntArray:
        """Speaker of each mated score, see `ScoredComparisons`."""
        return self._own[1]

    @cached_property
    def non_mated_counts(self) -> IntArray:
        """See `ScoredComparisons`."""
        counts = np.zeros(len(self.people), dtype=np.intp)
        if self.matrix is not None:
            counts[: len(self.matrix.tested)] = self.matrix.non_mated_counts
        if self.incomplete is not None:
            np.add.at(counts, self._trial_owner, self.incomplete.met - self.incomplete.hits)
        return counts

    def non_mated_blocks(self) -> Iterator[tuple[IntArray, FloatArray]]:
        """See `ScoredComparisons`."""
        if self.matrix is not None:
            yield from self.matrix.non_mated_blocks()
        if self.incomplete is None:
            return
        others = np.flatnonzero(~self.incomplete.mated)
        for batch in np.split(others, range(_BLOCK, len(others), _BLOCK)):
            if batch.size:
                scores = np.asarray(self.incomplete.scores[batch], np.float64)
                yield self._trial_owner[self.incomplete.trial[batch]], scores[:, None]

    def listed(self) -> ScoreList:
        """Return all comparisons one by one, in memory."""
        if self.matrix is None:
            assert self.incomplete is not None
            return self.incomplete
        ranked = as_list(self.matrix)
        return ranked if self.incomplete is None else _join(ranked, self.incomplete)

    @cached_property
    def usage(self) -> Usage:
        """Numbers of comparisons of each kind."""
        ranked = 0 if self.matrix is None else self.matrix.trials
        lost = strange = more = 0
        if self.incomplete is not None:
            lone = self.incomplete.hits == 0
            lost, more = int(lone.sum()), len(self.incomplete.spoken)
            strange = int(self.incomplete.met[lone].sum())
        target, others = self.mated.size, int(self.non_mated_counts.sum())
        return Usage(target, others, strange, ranked + more, lost, ranked)


def within(every: Comparisons, group_of: Mapping[str, str], group: str) -> Comparisons:
    """Select the comparisons of a group's trials with its own enrolled speakers.

    Groups are by name of the speaker, enrolled or not. An unnamed impostor joins the group of the
    enrolled speakers it was compared with, if they share one.
    """
    columns = np.flatnonzero([group_of.get(name) == group for name in every.speakers])
    if columns.size < 2:
        raise UsageError(f"{plural(columns.size, 'enrolled speaker')}, at least two are needed")
    listed = every.listed()
    met = np.zeros(len(listed.speakers), bool)
    met[columns] = True
    met_others = np.zeros(len(listed.spoken), bool)
    met_others[listed.trial[~met[listed.speaker]]] = True  # a speaker outside the group
    groups = np.array([group_of.get(name, "") for name in listed.people], dtype=object)
    groups = groups[listed.spoken]
    is_member = (groups == group) | ((groups == "") & ~met_others & (listed.hits == 0))
    selected = listed.of_trials(is_member, met)
    if not selected.scores.size:
        raise UsageError("none of its speakers has a trial")
    names = tuple(listed.speakers[column] for column in columns.tolist())
    speaker = (np.cumsum(met) - 1)[selected.speaker]
    selected = replace(selected, speaker=speaker, speakers=names)
    return Comparisons.from_scores(selected, f"{every.name} {group}")


def as_list(matrix: ScoreMatrix) -> ScoreList:
    """Convert every score of a matrix to a labelled comparison."""
    trials, count = matrix.scores.shape
    refuse_beyond_memory(matrix.name, trials * count)
    trial = np.repeat(np.arange(trials, dtype=np.int32), count)
    speaker = np.tile(np.arange(count, dtype=np.int32), trials)
    scores = np.concatenate([block.ravel() for _, block in matrix.blocks()])
    return ScoreList(
        scores, speaker == np.repeat(matrix.target, count), trial, speaker, matrix.owner,
        matrix.speakers, matrix.people, matrix.trial_names,
    )  # fmt: skip


def _join(first: ScoreList, second: ScoreList) -> ScoreList:
    people = tuple(dict.fromkeys((*first.people, *second.people)))
    index = {name: i for i, name in enumerate(people)}
    moved = np.array([index[name] for name in second.people], dtype=np.intp)
    return ScoreList(
        np.concatenate([first.scores, second.scores]),
        np.concatenate([first.mated, second.mated]),
        np.concatenate([first.trial, second.trial + len(first.spoken)]),
        np.concatenate([first.speaker, second.speaker]),
        np.concatenate([first.spoken, moved[second.spoken]]),
        first.speakers,
        people,
        (*first.trials, *second.trials) if first.trials and second.trials else (),
    )
