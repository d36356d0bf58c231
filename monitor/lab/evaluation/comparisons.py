"""Comparisons of trials with enrolled speakers: a matrix, or a list of pairs."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import real_numbers
from monitor.errors import UsageError
from monitor.lab.evaluation.memory import refuse_beyond_memory, scratch
from monitor.lab.report.model import OneLine
from monitor.maths.ranks import rank_bounds
from monitor.maths.roc import Blocks, Counts, cell_counts, cuts_around, pool
from monitor.maths.statistics import REPLICATES, speaker_weights
from monitor.phrases import plural
from monitor.protocols import ScoredComparisons
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray

_VOICES = ("anonymised", "original")
_DIGITS = 19


def natural(name: str) -> tuple[int, int, str]:
    """Return a key to sort names by: numbers by their size, then all others."""
    return (0, int(name), name) if name.isdecimal() and len(name) < _DIGITS else (1, 0, name)


@dataclass(frozen=True, slots=True)
class Roles:
    """Sides that were anonymised: trials (query) and enrolled speech (reference).

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
                raise UsageError(f"a {role} is {' or '.join(_VOICES)}, not {voice!r}")

    def __str__(self) -> str:
        return f"{self.query} queries against {self.reference} references"


@dataclass(frozen=True, repr=False)
class ScoreList(OneLine):
    """Labelled comparisons one by one: pairs of a trial and an enrolled speaker, complete or not.

    Attributes:
        scores: shape (n,), finite; higher is more alike.
        mated: shape (n,), whether trial and enrolled speaker are one person.
        trial: shape (n,), index into `spoken`.
        speaker: shape (n,), index into `speakers`.
        spoken: shape (T,), whose trial each is, index into `people`.
        speakers: the N enrolled speakers.
        people: whose trials there are; a trial whose speaker nobody names is its own.
        trials: names of the T trials, all different; empty where they have none.
    """

    scores: AnyArray
    mated: BoolArray
    trial: IntArray
    speaker: IntArray
    spoken: IntArray
    speakers: tuple[str, ...]
    people: tuple[str, ...]
    trials: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("scores", "mated", "trial", "speaker", "spoken"):
            object.__setattr__(self, name, real_numbers(getattr(self, name), name))
        if not self.scores.shape == self.mated.shape == self.trial.shape == self.speaker.shape:
            raise UsageError("give a score, a trial, a speaker and a label for each comparison")
        if not np.isfinite(self.scores).all():
            raise UsageError("a score is not finite: drop that comparison")

    def of_trials(self, trials: BoolArray, speakers: BoolArray | None = None) -> ScoreList:
        """Select trials, shape (T,), and all or some speakers, shape (N,)."""
        inside = trials[self.trial]
        return self.select(inside if speakers is None else inside & speakers[self.speaker])

    def select(self, which: BoolArray) -> ScoreList:
        """Select comparisons, shape (n,); trials without any are gone."""
        met, trial = np.unique(self.trial[which], return_inverse=True)
        people, spoken = np.unique(self.spoken[met], return_inverse=True)
        return ScoreList(
            self.scores[which], self.mated[which], trial, self.speaker[which], spoken,
            self.speakers, tuple(self.people[i] for i in people.tolist()),
            tuple(self.trials[i] for i in met.tolist()) if self.trials else (),
        )  # fmt: skip

    @cached_property
    def met(self) -> IntArray:
        """Comparisons of each trial: shape (T,)."""
        return np.bincount(self.trial, minlength=len(self.spoken))

    @cached_property
    def hits(self) -> IntArray:
        """Mated comparisons of each trial: shape (T,)."""
        return np.bincount(self.trial[self.mated], minlength=len(self.spoken))

    @cached_property
    def complete(self) -> BoolArray:
        """True for trials that met every enrolled speaker, one of them their own: shape (T,)."""
        return np.asarray((self.met == len(self.speakers)) & (self.hits == 1))


_BLOCK = 1 << 20
"""Scores taken at a time: a matrix on disk never enters memory whole."""


@dataclass(frozen=True, repr=False)
class ScoreMatrix(OneLine):
    """Scores of T trials against N speakers, and who really spoke.

    The score of a trial with its own speaker is mated, all others of its row are non-mated. Trials
    of one speaker belong together in their order: the stream order of longitudinal figures.

    Attributes:
        scores: shape (T, N), real numbers or a memory map of them; higher is more alike.
        target: shape (T,), the column of each trial's speaker.
        speakers: the N names of the columns.
        name: of the system that gave the scores.
        trial_names: of the T rows, all different; empty where they have none.

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
            raise UsageError(f"{self.name}: scores are a matrix of numbers, trials x speakers")
        trials, count = self.scores.shape
        if count < 2:
            raise UsageError(
                f"{self.name}: {plural(count, 'speaker')}; a comparison needs at least two"
            )
        if trials == 0:
            raise UsageError(f"{self.name}: there is no trial in it")
        target = self.target
        if target.shape != (trials,) or target.dtype.kind not in "iu":
            raise UsageError(f"{self.name}: give one target column for each of {trials} trials")
        if target.min() < 0 or target.max() >= count:
            raise UsageError(f"{self.name}: a target lies outside the {plural(count, 'column')}")
        names = tuple(map(str, self.speakers)) or tuple(map(str, range(count)))
        if len(names) != count or len(set(names)) != count:
            raise UsageError(f"{self.name}: give {count} different names, one for each column")
        if self.trial_names and len(set(self.trial_names)) != trials:
            raise UsageError(f"{self.name}: give {trials} different names, one for each trial")
        object.__setattr__(self, "target", target.astype(np.intp))
        object.__setattr__(self, "speakers", names)

    @property
    def trials(self) -> int:
        """T: how many trials there are, each with one mated score."""
        return len(self.target)

    @property
    def population(self) -> int:
        """N: how many speakers each trial is compared with."""
        return int(self.scores.shape[1])

    @property
    def ceiling_bits(self) -> float:
        """``log2 N``: the most that any trial can disclose."""
        return float(np.log2(self.population))

    @cached_property
    def tested(self) -> IntArray:
        """Columns of the speakers that have at least one trial, ascending: shape (S,)."""
        return np.unique(self.target)

    @cached_property
    def owner(self) -> IntArray:
        """Index of each trial's speaker into `tested`: shape (T,)."""
        return np.searchsorted(self.tested, self.target)

    @cached_property
    def people(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self.speakers[column] for column in self.tested.tolist())

    @cached_property
    def by_name(self) -> IntArray:
        """All columns in the order of their names, numbers by their size: shape (N,)."""
        names = self.speakers
        return np.array(sorted(range(len(names)), key=lambda i: natural(names[i])), dtype=np.intp)

    @property
    def named_trials(self) -> frozenset[tuple[str, str]]:
        """Speaker and name of each trial; empty where trials have no names."""
        spoken = (self.speakers[column] for column in self.target.tolist())
        return frozenset(zip(spoken, self.trial_names, strict=False))

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """Yield rows in order, some megabytes at a time, as float64."""
        rows = max(1, _BLOCK // self.population)
        for first in range(0, self.trials, rows):
            part = slice(first, min(first + rows, self.trials))
            scores = np.asarray(self.scores[part], dtype=np.float64)
            if not np.isfinite(scores).all():
                row, column = np.argwhere(~np.isfinite(scores))[0].tolist()
                raise UsageError(
                    f"{self.name}: the score of trial {first + row + 1} with speaker "
                    f"{self.speakers[column]} is not a finite number: drop that trial"
                )
            yield part, scores

    @cached_property
    def non_mated_counts(self) -> IntArray:
        """Non-mated scores of each tested speaker's trials: shape (S,)."""
        return np.bincount(self.owner) * (self.population - 1)

    def non_mated_blocks(self) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield `blocks` without mated scores: (rows, N - 1), and rows' indices in `tested`."""
        for part, scores in self.blocks():
            others = self.others(part)
            yield self.owner[part], scores[others].reshape(len(scores), -1)

    def others(self, part: slice) -> BoolArray:
        """Locate the non-mated scores of these rows: shape (rows, N)."""
        target = self.target[part]
        others = np.ones((len(target), self.population), dtype=bool)
        others[np.arange(len(target)), target] = False
        return others

    @cached_property
    def mated(self) -> FloatArray:
        """Score of each trial with its own speaker: shape (T,), float64."""
        return self._first_pass[0]

    @cached_property
    def better(self) -> IntArray:
        """Speakers that score strictly higher than the trial's own: shape (T,)."""
        return self._first_pass[1]

    @cached_property
    def tied(self) -> IntArray:
        """Speakers that share its score, itself included: shape (T,)."""
        return self._first_pass[2]

    @cached_property
    def _first_pass(self) -> tuple[FloatArray, IntArray, IntArray]:
        mated = np.empty(self.trials)
        better, tied = np.empty((2, self.trials), dtype=np.intp)
        for part, scores in self.blocks():
            target = self.target[part]
            mated[part] = scores[np.arange(len(scores)), target]
            better[part], tied[part] = rank_bounds(scores, target)
        return mated, better, tied


_UNEVEN = 3


def describe_balance(matrix: ScoreMatrix, trials: Sequence[str]) -> list[str]:
    """Describe trials that say nothing, and how trials lie among the speakers."""
    notes = []
    flat = np.flatnonzero(matrix.tied == matrix.population)
    if flat.size:
        many = f"{flat.size} of {plural(matrix.trials, 'trial')} score" + "s" * (flat.size == 1)
        notes.append(
            f"{many} the same with every speaker ({'' if flat.size == 1 else 'first: '}trial "
            f"{trials[int(flat[0])]}): {'it says' if flat.size == 1 else 'they say'} nothing"
        )
    counts = np.bincount(matrix.target, minlength=matrix.population)
    silent = np.flatnonzero(counts == 0)
    tested = matrix.population - silent.size
    if silent.size:
        have = "has" if silent.size == 1 else "have"
        notes.append(
            f"{silent.size} of {matrix.population} speakers {have} no trial (first: "
            f"{matrix.speakers[int(silent[0])]}): compared with, never looked for"
        )
    if tested == 1:
        notes.append("all trials are of one speaker: limits over speakers cannot be given")
    counts = counts[counts > 0]
    if counts.max() >= _UNEVEN * counts.min():
        notes.append(
            f"speakers have {counts.min()} to {counts.max()} trials: averages over trials are "
            "mostly those of the speakers with many"
        )
    return notes


# ----------------------------------------------------------------------------------------- settled
# A reproducible random order of a score matrix's trials, whatever the order of its rows.


def settled_order(matrix: ScoreMatrix) -> IntArray:
    """Order rows speaker by speaker, the trials of each in an order drawn at random: (T,).

    What is drawn depends on the name of the speaker and on the names of its trials alone, so that
    systems go through the same trials; where trials have no names, on their scores.
    """
    place = np.argsort(matrix.by_name)[matrix.target]
    if matrix.trial_names:
        names = np.unique(np.array(matrix.trial_names), return_inverse=True)[1]
        order: IntArray = np.lexsort((names, place))
    else:
        order = _by_scores(matrix, place)
    ends = np.flatnonzero(np.diff(place[order], append=-1)) + 1
    for rows in np.split(order, ends[:-1]):
        name = matrix.speakers[matrix.target[rows[0]]]
        np.random.default_rng(zlib.crc32(name.encode())).shuffle(rows)
    return order


def _by_scores(matrix: ScoreMatrix, place: IntArray) -> IntArray:
    """By what the order of columns does not change; equal ones by all of their scores."""
    order = np.lexsort((matrix.tied, matrix.better, matrix.mated, place))
    keys = np.stack([key[order] for key in (place, matrix.mated, matrix.better, matrix.tied)])
    apart = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
    edges = np.concatenate([[0], np.flatnonzero(apart) + 1, [apart.size + 1]])
    for run in np.flatnonzero(np.diff(edges) > 1).tolist():
        start, stop = int(edges[run]), int(edges[run + 1])
        rows = order[start:stop]
        scores = np.asarray(matrix.scores[np.sort(rows)])[:, matrix.by_name]
        order[start:stop] = np.sort(rows)[np.lexsort(scores.T[::-1])]
    return order


# ------------------------------------------------------------------------------- speaker bootstrap
# Bootstrap replicates of speakers: the trials of a speaker count as often as it is drawn.

_GROUPS = 100


@dataclass(frozen=True)
class Sample:
    """Base of the resamples: weights (B + J, S), of `resamples` and `leaving_out`.

    Units are speakers with a mated score, trials theirs; nothing: scores are not told from no
    evidence.
    """

    weights: FloatArray | None
    units: int
    trials: int
    nothing: bool = False


def resamples(matrix: ScoreMatrix, replicates: int = REPLICATES, seed: int = 0) -> FloatArray:
    """Draw how often each tested speaker counts in each resample: (replicates, S).

    Trials of one speaker are alike, so speakers are drawn and not trials; the enrolled speakers,
    the columns, stay as they are. What is drawn depends on names alone, so that systems are
    resampled alike.
    """
    return drawn_by_name(matrix.people, replicates, seed)


def drawn_by_name(names: Sequence[str], replicates: int = REPLICATES, seed: int = 0) -> FloatArray:
    """Compute `speaker_weights` of named people, whatever order they are given in."""
    order = sorted(range(len(names)), key=lambda i: natural(names[i]))
    weights = np.empty((replicates, len(names)))
    weights[:, order] = speaker_weights(len(names), replicates, seed)
    return weights


def leaving_out(names: Sequence[str]) -> FloatArray:
    """Make weights that leave out each person in turn, or a group of more than 100.

    They tell how unequally people contribute to a figure, see `monitor.maths.statistics.freedom`.
    Shape (J, S), 0 or 1; no row of zeros alone, so none for one person.
    """
    group = np.empty(len(names), dtype=np.intp)
    group[sorted(range(len(names)), key=lambda i: natural(names[i]))] = np.arange(len(names))
    groups = min(len(names), _GROUPS) if len(names) > 1 else 0
    return np.asarray(group % _GROUPS != np.arange(groups)[:, None], dtype=np.float64)


def find_resamples(weights: FloatArray) -> BoolArray:
    """Find rows of weights (B, S) that are resamples: those of `leaving_out` sum to less than S."""
    return np.asarray(weights.sum(axis=1) == weights.shape[1])


# ------------------------------------------------------------------------------------- comparisons
# Comparisons of trials with enrolled speakers, whether every trial met every speaker or not.
#
# Two needs: ranks want trials that were compared with every enrolled speaker, their own among them
# (a `ScoreMatrix`); figures of pooled scores (EER, Cllr, ZEBRA, D_sys, rates at few false
# positives) want any `ScoredComparisons`, which say whether they are of one speaker: a
# `ScoreMatrix`, or a `Comparisons` of a matrix, of a `ScoreList` or of both.


@dataclass(frozen=True)
class Usage:
    """Numbers of comparisons, of equal speakers or not, and of trials that ranks can stand on.

    Impostor comparisons are among the non-target ones. Ranked trials met every enrolled speaker,
    one of them their own.
    """

    target: int
    nontarget: int
    impostor: int
    trials: int
    impostor_trials: int
    ranked_trials: int


@dataclass(frozen=True, repr=False)
class Comparisons(OneLine):
    """Everything that was compared: what ranks stand on, and what is beside it.

    Attributes:
        speakers: the N enrolled speakers.
        matrix: trials that met all of them, one of them their own; None where there is none.
        rest: all other comparisons, or None.
        name: of the system.
    """

    speakers: tuple[str, ...]
    matrix: ScoreMatrix | None
    rest: ScoreList | None = None
    name: str = "scores"

    def __post_init__(self) -> None:
        if not self.mated.size:
            raise UsageError(f"{self.name}: no comparison is of one speaker: check the names")
        if not self.non_mated_counts.sum():
            raise UsageError(
                f"{self.name}: no comparison is of two speakers: nothing to tell apart"
            )

    @classmethod
    def of(cls, listed: ScoreList, name: str = "scores") -> Comparisons:
        """Take the trials that ranks can stand on out of a list."""
        is_complete = listed.complete & (len(listed.speakers) > 1)
        if not is_complete.any():
            return cls(listed.speakers, None, listed, name)
        inside = is_complete[listed.trial]
        row, column = (np.cumsum(is_complete) - 1)[listed.trial[inside]], listed.speaker[inside]
        scores = scratch((int(is_complete.sum()), len(listed.speakers)), listed.scores.dtype)
        scores[row, column] = listed.scores[inside]
        own = listed.mated[inside]
        target = np.empty(len(scores), dtype=np.intp)
        target[row[own]] = column[own]
        called = tuple(compress(listed.trials, is_complete.tolist()))
        matrix = ScoreMatrix(scores, target, listed.speakers, name, called)
        rest = None if is_complete.all() else listed.of_trials(~is_complete)
        return cls(listed.speakers, matrix, rest, name)

    @classmethod
    def with_notes(
        cls, matrix: ScoreMatrix, rest: ScoreList | None, trials: Sequence[str]
    ) -> tuple[Comparisons, list[str]]:
        """Take a matrix and what is beside it, and describe the matrix, as `describe_balance`."""
        comparisons = cls(matrix.speakers, matrix, rest, matrix.name)
        return comparisons, describe_balance(matrix, trials)

    @classmethod
    def all_of(cls, matrix: ScoreMatrix) -> Comparisons:
        """Wrap a matrix, with nothing beside it."""
        return cls(matrix.speakers, matrix, None, matrix.name)

    @cached_property
    def people(self) -> tuple[str, ...]:
        """Names of the speakers of trials: S, those of `ScoreMatrix.tested` first."""
        ranked = () if self.matrix is None else self.matrix.people
        return tuple(dict.fromkeys([*ranked, *(self.rest.people if self.rest else ())]))

    @cached_property
    def _whose(self) -> IntArray:
        """Speaker of each trial beside the matrix."""
        if self.rest is None:
            return np.zeros(0, dtype=np.intp)
        place = {name: i for i, name in enumerate(self.people)}
        owner = np.array([place[name] for name in self.rest.people], dtype=np.intp)
        return owner[self.rest.spoken]

    @cached_property
    def _own(self) -> tuple[FloatArray, IntArray]:
        """Mated scores, and whose they are."""
        scores = [] if self.matrix is None else [self.matrix.mated]
        owner = [] if self.matrix is None else [self.matrix.owner]
        if self.rest is not None:
            scores.append(np.asarray(self.rest.scores[self.rest.mated], np.float64))
            owner.append(self._whose[self.rest.trial[self.rest.mated]])
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
        if self.rest is not None:
            np.add.at(counts, self._whose, self.rest.met - self.rest.hits)
        return counts

    def non_mated_blocks(self) -> Iterator[tuple[IntArray, FloatArray]]:
        """See `ScoredComparisons`."""
        if self.matrix is not None:
            yield from self.matrix.non_mated_blocks()
        if self.rest is None:
            return
        others = np.flatnonzero(~self.rest.mated)
        for part in np.split(others, range(_BLOCK, len(others), _BLOCK)):
            if part.size:
                scores = np.asarray(self.rest.scores[part], np.float64)
                yield self._whose[self.rest.trial[part]], scores[:, None]

    def listed(self) -> ScoreList:
        """Return all comparisons one by one, in memory."""
        if self.matrix is None:
            assert self.rest is not None
            return self.rest
        ranked = as_list(self.matrix)
        return ranked if self.rest is None else _join(ranked, self.rest)

    @cached_property
    def usage(self) -> Usage:
        """Numbers of comparisons of each kind."""
        ranked = 0 if self.matrix is None else self.matrix.trials
        lost = strange = more = 0
        if self.rest is not None:
            lone = self.rest.hits == 0
            lost, more = int(lone.sum()), len(self.rest.spoken)
            strange = int(self.rest.met[lone].sum())
        target, others = self.mated.size, int(self.non_mated_counts.sum())
        return Usage(target, others, strange, ranked + more, lost, ranked)


def pooled_resamples(
    pool: Comparisons | ScoreMatrix, replicates: int = REPLICATES, seed: int = 0
) -> FloatArray:
    """Draw how often each person counts in each resample of a pool: as `resamples`.

    People with a mated comparison are drawn among themselves and impostors among themselves, so
    that every resample has as many of both. A resample without any non-mated comparison, as a list
    of few can have, is the whole list instead.
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
    """`leaving_out` of the people of a pool, where both kinds of comparison are left without."""
    weights = leaving_out(pool.people)
    mated = np.bincount(pool.owner, minlength=len(pool.people))
    return np.asarray(weights[(weights @ mated > 0) & (weights @ pool.non_mated_counts > 0)])


def within(every: Comparisons, group_of: Mapping[str, str], group: str) -> Comparisons:
    """Select the comparisons of a group's trials with its own enrolled speakers.

    Groups are by name of the speaker, enrolled or not. An impostor whom nobody names goes with the
    enrolled speakers that it was compared with, where they are of one group.
    """
    columns = np.flatnonzero([group_of.get(name) == group for name in every.speakers])
    if columns.size < 2:
        raise UsageError(f"{plural(columns.size, 'enrolled speaker')}; two are needed")
    listed = every.listed()
    met = np.zeros(len(listed.speakers), bool)
    met[columns] = True
    met_others = np.zeros(len(listed.spoken), bool)
    met_others[listed.trial[~met[listed.speaker]]] = True  # somebody of another group, or of none
    groups = np.array([group_of.get(name, "") for name in listed.people], dtype=object)
    groups = groups[listed.spoken]
    is_member = (groups == group) | ((groups == "") & ~met_others & (listed.hits == 0))
    selected = listed.of_trials(is_member, met)
    if not selected.scores.size:
        raise UsageError("no trial is of its speakers")
    names = tuple(listed.speakers[column] for column in columns.tolist())
    speaker = (np.cumsum(met) - 1)[selected.speaker]
    selected = replace(selected, speaker=speaker, speakers=names)
    return Comparisons.of(selected, f"{every.name} {group}")


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
    place = {name: i for i, name in enumerate(people)}
    moved = np.array([place[name] for name in second.people], dtype=np.intp)
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


# ------------------------------------------------------------------------------------------- counts
# Counts of all scores in one pass: what EER, Cllr, ZEBRA and the ROC are computed from.

_Doubles: TypeAlias = NDArray[np.float64]
_CELLS = 1 << 22
"""Most speakers x cells that are kept for resampling."""
_FACTORS = 512
"""Numbers up to 2 whose product stays finite."""
_MOST_NATS = 1e300
"""What a score costs at most, so that the sum over many stays finite."""


@dataclass(frozen=True)
class ScoreCounts:
    """Counts of a pool of scores, and of its resamples.

    Attributes:
        exact: at and between the distinct mated scores.
        replicates: the same for each resample, shape (B, G); None without weights.
        coarse: whether the resamples use wider cells than `exact`, because there are too many
            speakers and scores to keep; a cell's scores are then tied.
        costs: shape (2,): mean of ``log2(1 + exp(-s))`` over mated scores and of
            ``log2(1 + exp(s))`` over non-mated ones, in bits.
        replicate_costs: the same for each resample, shape (B, 2).
        low, high: the lowest and the highest score.
    """

    exact: Counts
    replicates: Counts | None
    coarse: bool
    costs: FloatArray
    replicate_costs: FloatArray | None
    low: float
    high: float

    @classmethod
    def of(cls, scores: ScoredComparisons, weights: FloatArray | None = None) -> ScoreCounts:
        """Count all scores in one pass over blocks; in one more where there are weights (B, S)."""
        own = np.sort(scores.mated)
        levels = own[np.concatenate([[True], own[1:] > own[:-1]])]
        cuts = cuts_around(levels)
        cells = np.zeros(len(cuts) + 1, dtype=np.intp)
        people = len(scores.non_mated_counts)
        sums = np.zeros((people, 2))
        low, high = float(own[0]), float(own[-1])
        sums[:, 0] = np.bincount(scores.owner, cost_bits(-scores.mated[:, None]), people)
        for owner, block in scores.non_mated_blocks():
            sums[:, 1] += np.bincount(owner, cost_bits(block), people)
            ordered = np.sort(block, axis=None)
            cells += cell_counts(ordered, cuts)
            low, high = min(low, float(ordered[0])), max(high, float(ordered[-1]))
        mated = cell_counts(own, cuts)
        counts = Counts(cuts, mated.astype(np.float64), cells.astype(np.float64))
        sizes = np.stack([np.bincount(scores.owner, minlength=people), scores.non_mated_counts], 1)
        mean = sums.sum(axis=0) / sizes.sum(axis=0)
        if weights is None:
            return cls(counts, None, False, mean, None, low, high)
        most = max(_CELLS // people, 3)
        coarse = len(cuts) > most
        if coarse:
            cuts = levels[np.linspace(0, len(levels) - 1, most).astype(np.intp)]
        by_speaker = speaker_cells(scores, cuts)
        drawn = Counts(cuts, weights @ by_speaker[0], weights @ by_speaker[1])
        shares = weights @ sums / (weights @ sizes)
        return cls(counts, drawn, coarse, mean, shares, low, high)

    @cached_property
    def blocks(self) -> Blocks:
        """Cells of `exact` after pool-adjacent-violators."""
        return pool(self.exact.mated, self.exact.non_mated)

    @cached_property
    def replicate_blocks(self) -> Blocks | None:
        """The same for each resample."""
        return pool(self.replicates.mated, self.replicates.non_mated) if self.replicates else None


def cost_bits(scores: FloatArray) -> _Doubles:
    """Sum ``log2(1 + exp(s))`` of nats over the last axis: cost of scores that should be low.

    One logarithm for hundreds of scores: ``1 + exp(-|s|)`` lies between 1 and 2, and their product
    is summed. Terms below 1e-16 bits are lost.
    """
    factors: _Doubles = np.abs(scores)
    np.negative(factors, out=factors)
    np.exp(factors, out=factors)
    factors += 1.0
    positive: _Doubles = np.clip(scores, 0.0, _MOST_NATS)
    starts = np.arange(0, scores.shape[-1], _FACTORS)
    products = np.multiply.reduceat(factors, starts, axis=-1)
    return np.asarray(np.log2(products).sum(axis=-1) + positive.sum(axis=-1) / np.log(2.0))


def speaker_cells(scores: ScoredComparisons, cuts: FloatArray) -> tuple[_Doubles, _Doubles]:
    """Mated and non-mated scores of each person's trials in each cell of cuts: (S, G) each."""
    shape = (len(scores.non_mated_counts), len(cuts) + 1)
    place = np.searchsorted(cuts, scores.mated, side="right")
    mated = np.bincount(scores.owner * shape[1] + place, minlength=shape[0] * shape[1])
    others = np.zeros(shape)
    for owner, block in scores.non_mated_blocks():
        order = np.argsort(owner, kind="stable")
        firsts = np.flatnonzero(np.diff(owner[order], prepend=-1))
        for rows in np.split(order, firsts[1:]):
            others[owner[rows[0]]] += cell_counts(np.sort(block[rows], axis=None), cuts)
    return mated.reshape(shape).astype(np.float64), others


# --------------------------------------------------------------------------------------- direction
# Warns where higher scores mean less alike: distances passed as scores.

_ERRORS = 3.0
"""Standard errors below chance, over trials and again over speakers."""


def _below_chance(below: FloatArray, owner: IntArray, error: float) -> bool:
    if 0.5 - float(below.mean()) <= _ERRORS * error:
        return False
    tests = np.bincount(owner)
    means = (np.bincount(owner, below) / np.maximum(tests, 1))[tests > 0]
    if means.size < 2:
        return True
    return bool(0.5 - means.mean() > _ERRORS * means.std(ddof=1) / np.sqrt(means.size))


def list_warning(scores: ScoredComparisons, counts: Counts) -> str:
    """Return `warning` where there are no ranks: of mated scores among non-mated ones."""
    others = counts.non_mated_total
    under = np.cumsum(counts.non_mated)  # below the end of each cell
    at = np.searchsorted(counts.cuts, scores.mated, "right")  # the cell of just that score
    below = (under[at - 1] + under[at]) / (2 * others)
    error = float(np.sqrt((1 / below.size + 1 / others) / 12))
    if not _below_chance(below, scores.owner, error):
        return ""
    return (
        f"{scores.name} looks like distances: comparisons of one speaker score lower than others. "
        "Every figure takes higher for more alike: if lower is, give the negatives of these "
        "numbers."
    )


def warning(matrix: ScoreMatrix, what: str = "") -> str:
    """Describe scores of `what` where right speakers rank lower than chance allows, else nothing.

    Both tests must say so: over trials, as if they were independent, and over the means of the
    speakers, whose own trials are alike.
    """
    count, trials = matrix.population, matrix.trials
    below = 1.0 - (matrix.better + (matrix.tied - 1) / 2) / (count - 1)  # share of the others
    error = float(np.sqrt((count + 1) / (12 * (count - 1) * trials)))
    if not _below_chance(below, matrix.owner, error):
        return ""
    first = float((1.0 / matrix.tied * (matrix.better == 0)).mean())
    return (
        f"{what or matrix.name} looks like distances: in {100 * first:.3g} % of the trials the "
        f"right person came first, where guessing does that in {100 / matrix.population:.3g} %, "
        "and most came late. Every figure takes higher for more alike: if lower is, give the "
        "negatives of these numbers."
    )
