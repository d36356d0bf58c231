"""Reads scores and labels, of whatever format, into comparisons."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from monitor.errors import UsageError
from monitor.features.registry import caveats
from monitor.lab.evaluation.input.files import (
    Progress,
    array_at,
    arrays_at,
    first_lines,
    kind_of,
    layout_of,
    many,
    natural,
    parts,
    read_table,
    release,
    renumbered,
    scratch,
)
from monitor.lab.evaluation.input.labels import (
    SCORINGS,
    Labels,
    Pairs,
    RawScores,
    labels_of_array,
    labels_of_pairs,
    merged_columns,
    merged_note,
    numbered,
    owners_of,
    pairs_of_records,
    read_labels,
    read_pairs,
    starts_of,
    targets,
    whole_trials,
)
from monitor.lab.evaluation.input.score_file import ScoreFile
from monitor.lab.evaluation.scores.comparisons import Comparisons, ScoreList, ScoreMatrix
from monitor.phrases import plural
from monitor.types import AnyArray, BoolArray, IntArray

UNMATED = ("count", "drop", "refuse")
"""What becomes of impostor trials, whose speaker is not enrolled: they count where no rank is
needed, or not at all, or are not allowed."""

_UNEVEN = 3


@dataclass(frozen=True)
class EvaluationInput:
    """What was read: finite scores, and a sentence each on what is allowed and yet can mislead.

    Warnings are what makes all figures doubtful.
    """

    comparisons: Comparisons
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

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
    """Check a matrix (T, N) in one pass over it, which the matrix keeps for its ranks.

    Targets are -1 where the speaker is not among the columns. Columns, rows and the speakers of
    rows have names, or none. `progress` is called where rows are set apart.

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
    impostors = _impostors(impostor, called, name, unmated, said)
    rest = None
    if impostor.any():
        keep = np.flatnonzero(~impostor)
        if impostors:
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
    listed: ScoreList, name: str, *, notes: Sequence[str], unmated: str
) -> EvaluationInput:
    """Take the trials that ranks can stand on out of a list, and say what is beside them.

    Raises:
        UsageError: impostor trials are refused, or nothing is left.
    """
    said = list(notes)
    impostor = listed.hits == 0
    if not _impostors(impostor, listed.trials, name, unmated, said):
        listed = listed.of_trials(~impostor)
    several = np.flatnonzero(listed.hits > 1)
    if several.size:
        said.append(
            f"{plural(several.size, 'trial')} with several targets (first: "
            f"{listed.trials[several[0]]}): each counts by itself; to take the enrolments of a "
            "speaker together, say whose they are (--enrolment-labels)"
        )
    count, met = len(listed.speakers), listed.met
    short = np.flatnonzero(met < count)
    if short.size:
        row = int(short[0])
        heard = [listed.speaker[part][listed.trial[part] == row] for part in listed.parts()]
        missing = np.setdiff1d(np.arange(count), np.concatenate(heard))[0]
        said.append(
            f"{short.size} of {plural(met.size, 'trial')} were not compared with every speaker "
            f"(first: trial {listed.trials[row]}, not with {listed.speakers[missing]}): ranks "
            "leave them out"
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
        cure = "say whose the enrolments are (--enrolment-labels)"
        cure = cure if lost == impostor.size else "let impostors count (--unmated count)"
        raise UsageError(
            f"{name}: {lost} of {impostor.size} trials have no mated score, their speaker is not "
            f"enrolled ({first}); check the names, or {cure}"
        )
    have = "has" if lost == 1 else "have"
    many = (
        f"{lost} of {impostor.size} trials {have} no score with the right speaker, as those of "
        f"impostors, who are not enrolled ({first}): "
    )
    if unmated == "drop":
        said.append(f"{many}dropped, tools that count them as non-mated differ")
        return False
    said.append(f"{many}ranks leave {'it' if lost == 1 else 'them'} out")
    return True


def _rest(
    scores: AnyArray, rows: IntArray, speakers: tuple[str, ...], trials: Sequence[str],
    spoken: Sequence[str],
) -> ScoreList:  # fmt: skip
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


# ----------------------------------------------------------------------------------------- listing


def labelled(
    pairs: Pairs, labels: Labels, notes: list[str], models: Labels | None, scoring: str
) -> ScoreList:
    """Bring scores and labels together; what a person should know is added to the notes.

    Where labels list target and nontarget pairs, these alone count. Models say whose each enrolled
    model is, where speakers have several, whose scores become one. It is done for the lines of some
    trials at a time, about a million.

    Raises:
        UsageError: a pair comes twice, a score is not finite, or names do not fit together.
    """
    key, own = labels.pairs, labels.pairs is pairs
    pairs = pairs.by_trial()
    _check(pairs)
    if key is not None and not own:
        pairs = _by_key(pairs, key, notes)
    whose = owners_of(pairs.speakers, labels, models)
    speakers = tuple(sorted(set(whose), key=natural))
    speaker = renumbered(pairs.speaker, _places(whose, speakers))
    pairs = replace(pairs, speakers=speakers, speaker=speaker)
    names = list(pairs.trials)  # of people whom nobody names
    if key is None:
        nothing = np.broadcast_to(0.0, (len(pairs.trials), len(speakers)))
        raw = RawScores(nothing, speakers, pairs.trials)
        target, _, spoken = targets(raw, labels, pairs.label, notes)
        mated = scratch(pairs.trial.shape, np.bool_)
        for part in parts(pairs.trial, pairs.speaker, mated):
            mated[part] = pairs.speaker[part] == target[pairs.trial[part]]
        pairs = replace(pairs, target=mated)
        for i, column in enumerate(target.tolist()):
            said = spoken[i] if spoken else ""
            names[i] = speakers[column] if column >= 0 else said or names[i]
    else:
        rows, columns = pairs.targets()
        for i, column in zip(reversed(rows), reversed(columns), strict=True):
            names[i] = speakers[column]
    if len(speakers) < len(whose):
        notes.append(merged_note(len(whose), len(speakers), scoring))
        pairs = _merged(pairs, scoring)
    people = tuple(dict.fromkeys(names))
    spoken_by = _places(names, people)
    assert pairs.scores is not None
    assert pairs.target is not None
    return ScoreList(
        pairs.scores, pairs.target, pairs.trial, pairs.speaker, spoken_by, speakers, people,
        pairs.trials,
    )  # fmt: skip


def _codes(pairs: Pairs, part: slice, speakers: int) -> IntArray:
    """A number for each of some lines, equal for equal pairs among so many speakers."""
    return pairs.trial[part].astype(np.int64) * speakers + pairs.speaker[part]


def _pieces(pairs: Pairs) -> Iterator[tuple[slice, IntArray]]:
    """Whole trials, some at a time, and the codes of their lines."""
    edges = whole_trials(starts_of(pairs.trial, len(pairs.trials)))
    for first, last in pairwise(edges.tolist()):
        part = slice(first, last)
        yield part, _codes(pairs, part, len(pairs.speakers))
        release(*pairs.columns.values())


def _check(pairs: Pairs) -> None:
    assert pairs.scores is not None
    again, twice = "", 0
    for part, codes in _pieces(pairs):

        def pair(row: int, first: int = part.start) -> str:
            trial, speaker = pairs.trial[first + row], pairs.speaker[first + row]
            return f"trial {pairs.trials[trial]} with speaker {pairs.speakers[speaker]}"

        good = np.isfinite(pairs.scores[part])
        if not good.all():
            raise UsageError(
                f"{pairs.label}: the score of {pair(int(np.argmin(good)))} is not a finite number: "
                "drop that trial"
            )
        ordered = np.sort(codes)
        repeats = int(np.count_nonzero(ordered[1:] == ordered[:-1]))
        if repeats and not twice:
            later = np.ones(codes.size, bool)
            later[np.unique(codes, return_index=True)[1]] = False
            again = pair(int(np.argmax(later)))
        twice += repeats
    if twice:
        raise UsageError(
            f"{pairs.label}: {again} is listed twice "
            f"({plural(twice, 'line')} too many); keep one score for each pair"
        )


def _by_key(pairs: Pairs, key: Pairs, notes: list[str]) -> Pairs:
    """The lines that a trial list has, with their targets; both go trial by trial."""
    assert key.target is not None
    trials, speakers = (
        {name: i for i, name in enumerate(names)} for names in (pairs.trials, pairs.speakers)
    )
    # names of the list alone come after those of the scores
    places = [
        np.array([index.setdefault(name, len(index)) for name in names])
        for index, names in ((trials, key.trials), (speakers, key.speakers))
    ]
    numbers = renumbered(key.trial, places[0]), renumbered(key.speaker, places[1])
    key = replace(
        key, trials=tuple(trials), speakers=tuple(speakers), trial=numbers[0], speaker=numbers[1]
    ).by_trial()
    assert key.target is not None
    both = [starts_of(each.trial, len(trials)) for each in (pairs, key)]
    kept, target = scratch((2, len(pairs.trial)), np.bool_)
    distinct = targets = 0
    edges = np.searchsorted(both[0] + both[1], whole_trials(both[0] + both[1]))
    for first, last in pairwise(edges.tolist()):
        part, beside = (slice(*each[[first, last]].tolist()) for each in both)
        codes, said = (
            _codes(each, some, len(speakers)) for each, some in ((pairs, part), (key, beside))
        )
        order = np.argsort(said, kind="stable")
        listed, at = np.unique(said[order], return_index=True)
        distinct += listed.size
        if not listed.size:
            continue
        hits = np.add.reduceat(key.target[beside][order].astype(np.intp), at)
        if ((hits > 0) & (hits < np.diff(at, append=said.size))).any():
            raise UsageError(f"{key.label}: a pair is a target on one line and not on another")
        targets += int(np.count_nonzero(hits))
        at = np.minimum(np.searchsorted(listed, codes), listed.size - 1)
        kept[part] = listed[at] == codes
        target[part] = kept[part] & (hits[at] > 0)
        release(pairs.trial, pairs.speaker, key.trial, key.speaker, kept, target)
    found = many(kept)
    if not found:
        raise UsageError(f"{key.label} has none of the pairs of {pairs.label}; check the names")
    if left := len(kept) - found:
        notes.append(f"{left} of {len(kept)} scored pairs are not in {key.label}: left out")
    if distinct > found:
        lost = targets - many(target)
        notes.append(
            f"{distinct - found} of {plural(distinct, 'pair')} of {key.label} have no score"
            + f", {lost} of them targets, which are neither hit nor miss" * bool(lost)
        )
    pairs = replace(pairs, target=target)
    return pairs.only(kept) if left else pairs


def _places(names: Sequence[str], among: Sequence[str]) -> IntArray:
    """Where each name stands among others, -1 where it does not."""
    place = {name: i for i, name in enumerate(among)}
    return np.array([place.get(name, -1) for name in names], dtype=np.intp)


def _merged(pairs: Pairs, scoring: str) -> Pairs:
    """One score for each trial and speaker."""
    assert pairs.scores is not None
    assert pairs.target is not None
    size = pairs.trial.shape
    trial, speaker = scratch(size, np.int32), scratch(size, np.int32)
    scores, target = scratch(size), scratch(size, np.bool_)
    done = 0
    for part, every in _pieces(pairs):
        codes, cell, many = np.unique(every, return_inverse=True, return_counts=True)
        into = slice(done, done := done + codes.size)
        if scoring == "max":
            scores[into] = -np.inf
            np.maximum.at(scores[into], cell, pairs.scores[part])
        else:
            scores[into] = np.bincount(cell, pairs.scores[part]) / many
        hits = np.bincount(cell, pairs.target[part])
        torn = np.flatnonzero((hits > 0) & (hits < many))
        if torn.size:
            row, owner = divmod(int(codes[torn[0]]), len(pairs.speakers))
            raise UsageError(
                f"trial {pairs.trials[row]} is a target of one enrolment of speaker "
                f"{pairs.speakers[owner]} and not of another; check whose the enrolments are"
            )
        target[into] = hits > 0
        trial[into], speaker[into] = np.divmod(codes, len(pairs.speakers))
        release(trial, speaker, scores, target)
    return replace(
        pairs, trial=trial[:done], speaker=speaker[:done], scores=scores[:done],
        target=target[:done],
    )  # fmt: skip


# ------------------------------------------------------------------------------------------ scores

_SAME_SESSION = (
    "tests and templates are parts of one session each, where a voice is easier to recognise than "
    "on another day"
)


def read_scores(
    path: str | os.PathLike[str],
    labels: str | os.PathLike[str] | None = None,
    *,
    name: str | None = None,
    unmated: str = "count",
    enrolment_labels: str | os.PathLike[str] | None = None,
    scoring: str = "average",
    choose: Sequence[str] = (),
    progress: Progress | None = None,
) -> EvaluationInput:
    r"""Read scores and who really spoke; what kind of file it is shows in its content.

    Args:
        path: ``.npy`` (a matrix, or records of a list: mapped, never held in memory whole),
            ``.npz``, a table (CSV, TSV, blanks), or a list of pairs (Kaldi, ZEBRA, VoicePrivacy,
            or CSV), which is never held whole either. See docs/evaluate-input.md.
        labels: columns, names, names by trial, or a trial list; not needed where the scores say it.
        name: of the system; the file's without its ending where not given.
        unmated: impostor trials, whose speaker is not enrolled: ``"count"`` them where no rank is
            needed, ``"drop"`` or ``"refuse"`` them.
        enrolment_labels: whose each enrolled model is, in any form of `labels`, where speakers
            have several; an utt2spk of trials may speak of them as well.
        scoring: ``"average"`` or ``"max"``: the mean or the largest score of a speaker's models.
        choose: of a file of `monitor score`, which matrix: ``voice``, ``cross``, ``T=10``, ``D=30``
            as far as needed. Other files need none.
        progress: called with how much of the text is read, and its length.

    Returns:
        The comparisons, checked, and notes. Columns are as the file has them; of a list, in the
        order of their names. Of a list that has not every pair the rest counts where no rank is
        needed; pairs that a trial list with nontarget pairs does not have are left out.

    Raises:
        UsageError: the content makes no sense; the message names the place.
        StoreError: a file cannot be opened, or is not what its name says.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     scores, trials = Path(folder, "scores"), Path(folder, "trials")
        ...     _ = scores.write_text("A u1 0.9\nB u1 0.2\nA u2 0.3\nB u2 0.4\n")
        ...     _ = trials.write_text("A u1 target\nB u1 nontarget\nA u2 nontarget\nB u2 target\n")
        ...     read = read_scores(scores, trials)
        >>> read.matrix.speakers, read.matrix.mated.tolist(), read.notes
        (('A', 'B'), [0.9, 0.4], ())
    """
    path = Path(path)
    beside = None if labels is None else Path(labels)
    if scoring not in SCORINGS:
        raise UsageError(f"scoring={scoring!r} is not one of {', '.join(SCORINGS)}")
    models = None if enrolment_labels is None else Path(enrolment_labels)
    called = path.stem if name is None else name
    held = ScoreFile.at(path) if kind_of(path) == "npz" else None
    if held is not None:
        if beside is not None or models is not None:
            raise UsageError(f"{path.name} says itself who spoke: give no labels beside it")
        return _held(held, choose, called)
    raw = _raw(path, beside, progress)
    notes: list[str] = []
    if isinstance(raw, Pairs):
        listed = _listed(raw, beside, models, scoring, notes)
        return finished_list(listed, called, notes=notes, unmated=unmated)
    who_spoke = _labels_of_matrix(raw, path.name)
    key = who_spoke.pairs
    if key is not None and raw.trials and (models is not None or not _covers(key, raw)):
        listed = _listed(_as_pairs(raw, path.name), beside, models, scoring, notes, who_spoke)
        return finished_list(listed, called, notes=notes, unmated=unmated)
    raw = _with_speakers(raw, models, scoring, notes)
    assert raw.labels is not None
    target, speakers, spoken = targets(raw, raw.labels, path.name, notes)
    return finished(
        raw.scores, target, speakers, called, trials=raw.trials, spoken=spoken, notes=notes,
        unmated=unmated, progress=progress,
    )  # fmt: skip


def scores_of_array(scores: AnyArray, labels: AnyArray, name: str = "scores") -> EvaluationInput:
    """Take a matrix in memory, trials x speakers, as `read_scores` reads one of a file.

    Args:
        scores: shape (T, N), higher is more alike.
        labels: shape (T,), the column of each trial's speaker, from 0, or their names.
        name: of the system.

    Raises:
        UsageError: the content makes no sense.

    Example:
        >>> scores_of_array(np.array([[0.9, 0.1], [0.2, 0.4]]), np.array([0, 1])).matrix.trials
        2
    """
    raw = RawScores(scores, labels=labels_of_array("labels", labels))
    notes: list[str] = []
    target, speakers, spoken = targets(raw, _labels_of_matrix(raw, name), name, notes)
    return finished(raw.scores, target, speakers, name, spoken=spoken, notes=notes)


def _labels_of_matrix(raw: RawScores, label: str) -> Labels:
    """Return who spoke in each trial of a matrix of scores; refuse anything else."""
    if raw.scores.ndim != 2 or raw.scores.dtype.kind not in "fiu":
        raise UsageError(
            f"{label} holds {raw.scores.dtype} of shape {raw.scores.shape}; scores are "
            "numbers, trials x speakers"
        )
    if raw.labels is None:
        raise UsageError(f"{label} does not say who spoke: give labels, or a trial list")
    if not raw.scores.shape[0]:
        raise UsageError(f"{label} has no trial in it")
    return raw.labels


def _held(file: ScoreFile, choose: Sequence[str], name: str) -> EvaluationInput:
    """One matrix of a score file, which says everything itself."""
    entry, *others = file.chosen(choose)
    if others:
        raise UsageError(
            f"{file.path.name} has {len(others) + 1} matrices: choose one of {file.listed()}"
        )
    matrix = file.matrix(entry, name)
    notes = [_SAME_SESSION] if entry.session == "same" else []
    notes += caveats(entry.features)
    return finished(
        matrix.scores, matrix.target, matrix.speakers, name, trials=matrix.trial_names, notes=notes
    )


def _listed(
    pairs: Pairs, beside: Path | None, models: Path | None, scoring: str, notes: list[str],
    labels: Labels | None = None,
) -> ScoreList:  # fmt: skip
    """A list, with the labels that stand beside it or in it."""
    owners = None if models is None else read_labels(models)
    if owners is not None and owners.trials and not pairs.certain:
        pairs = replace(pairs, certain=True)
        pairs = pairs.swapped() if _named(pairs.trials, pairs.speakers, owners.trials) else pairs
    pairs = pairs.settled()
    if labels is None and beside is not None:
        labels = read_labels(beside, pairs.trials if pairs.certain else ())
        labels = numbered(labels) if pairs.numbered else labels
        known = labels.known or frozenset(labels.trials)
        if not pairs.certain and known and _named(pairs.speakers, pairs.trials, known):
            pairs = pairs.swapped()  # labels name trials that it took for speakers
    elif labels is None and pairs.target is not None:
        labels = replace(labels_of_pairs(pairs), pairs=pairs)
    if labels is None:
        raise UsageError(f"{pairs.label} does not say who spoke: give labels, or a trial list")
    key = labels.pairs
    if key is not None and _named(key.trials, key.speakers, pairs.speakers):
        labels = labels_of_pairs(key.swapped())  # the list knows better which are its speakers
    return labelled(pairs, labels, notes, owners, scoring)


def _covers(key: Pairs, raw: RawScores) -> bool:
    """Whether a trial list speaks of every cell of a table, and gives each trial one speaker."""
    assert key.target is not None
    hits = np.bincount(key.trial[key.target], minlength=1)
    return len(key.trial) >= raw.scores.size and int(hits.max()) == 1


def _as_pairs(raw: RawScores, label: str) -> Pairs:
    """A table as a list."""
    trials, count = raw.scores.shape
    trial, speaker = np.repeat(np.arange(trials), count), np.tile(np.arange(count), trials)
    scores = np.asarray(raw.scores, np.float64).reshape(-1)
    return Pairs(label, raw.trials, raw.speakers, trial, speaker, scores, None, certain=True)


def _with_speakers(
    raw: RawScores, models: Path | None, scoring: str, notes: list[str]
) -> RawScores:
    """One column a speaker, where a speaker has several enrolments."""
    assert raw.labels is not None
    count = raw.scores.shape[1]
    columns = raw.speakers or tuple(map(str, range(count)))
    given = None if models is None else read_labels(models, raw.speakers)
    if given is None and not raw.speakers:
        return raw
    if given is not None and given.columns is not None:
        raise UsageError(f"{given.label}: give names of speakers, one for each enrolment")
    owners = owners_of(columns, raw.labels, given)
    if len(set(owners)) == count:
        return raw if given is None else replace(raw, speakers=owners)
    if given is None and len(set(columns)) < count:
        return raw  # two columns of one name: refused where they are matched
    notes.append(merged_note(count, len(set(owners)), scoring))
    scores, speakers = merged_columns(raw.scores, owners, scoring)
    return replace(raw, scores=scores, speakers=speakers)


def _raw(path: Path, beside: Path | None, progress: Progress | None) -> RawScores | Pairs:
    kind = kind_of(path)
    if kind == "npy":
        array = array_at(path)
        if array.dtype.names:
            return pairs_of_records(path.name, array)
        return RawScores(array, labels=None if beside is None else read_labels(beside))
    if kind == "npz":
        return _archive(path, beside)
    layout = layout_of(path.name, *first_lines(path))
    if not layout.list:
        table = read_table(path, layout, progress)
        given = Labels(path.name, names=table.target) if table.target else None
        given = given if beside is None else read_labels(beside, table.trials)
        return RawScores(table.scores, layout.speakers, table.trials, given)
    if layout.score is None:
        raise UsageError(f"{path.name} is a trial list: give the scores first, it as labels")
    return read_pairs(path, layout, progress)


def _archive(path: Path, beside: Path | None) -> RawScores:
    arrays = arrays_at(path)
    if "scores" not in arrays:
        raise UsageError(
            f"{path.name} has no array called scores, but {', '.join(sorted(arrays)) or 'none'}; "
            "name it so"
        )
    names = arrays.get("speakers", np.array([], "U1"))
    if names.ndim != 1 or names.dtype.kind not in "iuU":
        raise UsageError(f"{path.name}: speakers are names, one for each column")
    key = next((key for key in ("target", "labels") if key in arrays), None)
    given = None if key is None else labels_of_array(f"{path.name} {key}", arrays[key])
    given = given if beside is None else read_labels(beside)
    return RawScores(arrays["scores"], tuple(map(str, names.tolist())), (), given)


def _named(some: Sequence[str], others: Sequence[str], known: Collection[str]) -> bool:
    """Whether a greater share of some names is known than of others."""
    among = frozenset(known)
    shares = [sum(name in among for name in names) / len(names) for names in (some, others)]
    return shares[0] > shares[1]
