"""Reads scores and labels, of whatever format, into comparisons."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from monitor.errors import UsageError
from monitor.features.registry import caveats
from monitor.lab.evaluation.comparisons import Comparisons, ScoreList, ScoreMatrix
from monitor.lab.evaluation.input.files import (
    Progress,
    array_at,
    arrays_at,
    count_true,
    first_line,
    kind_of,
    layout_of,
    natural,
    parts,
    read_table,
    release,
    renumber,
    scratch,
)
from monitor.lab.evaluation.input.labels import (
    SCORINGS,
    Labels,
    Pairs,
    RawScores,
    describe_merge,
    find_owners,
    labels_of_array,
    labels_of_pairs,
    merge_columns,
    numbered,
    pairs_of_records,
    read_labels,
    read_pairs,
    starts_of,
    targets,
    whole_trials,
)
from monitor.lab.evaluation.input.score_file import ScoreFile
from monitor.phrases import plural
from monitor.types import AnyArray, BoolArray, IntArray

UNMATED = ("count", "drop", "refuse")
"""What becomes of impostor trials, whose speaker is not enrolled: they count where no rank is
needed, or not at all, or are not allowed."""

_UNEVEN = 3


@dataclass(frozen=True)
class EvaluationInput:
    """Finite scores, and a sentence each on what is allowed and yet can mislead.

    Warnings are what makes all figures doubtful.
    """

    comparisons: Comparisons
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def matrix(self) -> ScoreMatrix:
        """The trials that ranks can stand on."""
        if self.comparisons.matrix is None:
            raise UsageError(
                f"{self.comparisons.name}: no trial was compared with every enrolled speaker, its "
                "own among them: there are no ranks"
            )
        return self.comparisons.matrix


def check_matrix(
    raw: RawScores,
    target: IntArray,
    name: str,
    *,
    spoken: Sequence[str] = (),
    notes: Sequence[str] = (),
    unmated: str = "count",
    progress: Progress | None = None,
) -> EvaluationInput:
    """Check a matrix (T, N) in one pass over it, which the matrix keeps for its ranks.

    Targets are -1 where the speaker is not among the columns. `spoken` names the speakers of the
    rows, or nobody. `progress` is called where rows are set apart.
    """
    messages = list(notes)
    scores, speakers = raw.scores, raw.speakers
    called = raw.trials or tuple(str(row + 1) for row in range(len(target)))
    impostor = target < 0
    impostors = _impostors(impostor, called, name, unmated, messages)
    rest = None
    if impostor.any():
        keep = np.flatnonzero(~impostor)
        if impostors:
            rows = np.flatnonzero(impostor)
            rest = _list_impostors(_rows(scores, rows, progress), rows, speakers, called, spoken)
        scores, target = _rows(scores, keep, progress), target[keep]
        called = tuple(called[row] for row in keep.tolist())
    named = called if raw.trials and len(set(called)) == len(called) else ()
    matrix = ScoreMatrix(scores, target, speakers, name, tuple(named))
    return EvaluationInput(
        Comparisons(matrix.speakers, matrix, rest, name), (*messages, *_balance(matrix, called))
    )


def check_list(
    listed: ScoreList, name: str, *, notes: Sequence[str], unmated: str
) -> EvaluationInput:
    """Take the trials that ranks can stand on out of a list, and say what is beside them."""
    messages = list(notes)
    impostor = listed.hits == 0
    if not _impostors(impostor, listed.trials, name, unmated, messages):
        listed = listed.of_trials(~impostor)
    several = np.flatnonzero(listed.hits > 1)
    if several.size:
        messages.append(
            f"{plural(several.size, 'trial')} with several targets (first: "
            f"{listed.trials[several[0]]}): each counts by itself; to take the enrolments of a "
            "speaker together, say whose they are (--enrolment-labels)"
        )
    count, met = len(listed.speakers), listed.met
    short = np.flatnonzero(met < count)
    if short.size:
        row = int(short[0])
        compared = [listed.speaker[part][listed.trial[part] == row] for part in listed.parts()]
        missing = np.setdiff1d(np.arange(count), np.concatenate(compared))[0]
        messages.append(
            f"{short.size} of {plural(met.size, 'trial')} were not compared with every speaker "
            f"(first: trial {listed.trials[row]}, not with {listed.speakers[missing]}): ranks "
            "leave them out"
        )
    comparisons = Comparisons.of(listed, name)
    if comparisons.matrix is not None:
        messages += _balance(comparisons.matrix, comparisons.matrix.trial_names)
    return EvaluationInput(comparisons, tuple(messages))


def _impostors(
    impostor: BoolArray, trials: Sequence[str], name: str, unmated: str, notes: list[str]
) -> bool:
    """Return whether impostors count, and note how they are treated."""
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
        notes.append(f"{many}dropped, tools that count them as non-mated differ")
        return False
    notes.append(f"{many}ranks leave {'it' if lost == 1 else 'them'} out")
    return True


def _list_impostors(
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


def _rows(scores: AnyArray, keep: IntArray, progress: Progress | None) -> AnyArray:
    rows = scratch((len(keep), scores.shape[1]), scores.dtype)
    step = max(1, (1 << 20) // scores.shape[1])
    for first in range(0, len(keep), step):
        rows[first : first + step] = scores[keep[first : first + step]]
        if progress is not None:
            progress(min(first + step, len(keep)), len(keep))
    return rows


# ----------------------------------------------------------------------------------------- listing


def label_pairs(
    pairs: Pairs, labels: Labels, notes: list[str], models: Labels | None, scoring: str
) -> ScoreList:
    """Bring scores and labels together, some trials at a time; notes gain what one should know.

    Where labels list target and nontarget pairs, these alone count. Models say whose each enrolled
    model is, where speakers have several, whose scores become one.
    """
    key, within = labels.pairs, labels.pairs is pairs
    pairs = pairs.by_trial()
    _check(pairs)
    if key is not None and not within:
        pairs = _by_key(pairs, key, notes)
    whose = find_owners(pairs.speakers, labels, models)
    speakers = tuple(sorted(set(whose), key=natural))
    speaker = renumber(pairs.speaker, _places(whose, speakers))
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
            speaker_name = spoken[i] if spoken else ""
            names[i] = speakers[column] if column >= 0 else speaker_name or names[i]
    else:
        rows, columns = pairs.targets()
        for i, column in zip(reversed(rows), reversed(columns), strict=True):
            names[i] = speakers[column]
    if len(speakers) < len(whose):
        notes.append(describe_merge(len(whose), len(speakers), scoring))
        pairs = _merge(pairs, scoring)
    people = tuple(dict.fromkeys(names))
    spoken_by = _places(names, people)
    assert pairs.scores is not None
    assert pairs.target is not None
    return ScoreList(
        pairs.scores, pairs.target, pairs.trial, pairs.speaker, spoken_by, speakers, people,
        pairs.trials,
    )  # fmt: skip


def _codes(pairs: Pairs, part: slice, speakers: int) -> IntArray:
    """Number some lines, equal for equal pairs among so many speakers."""
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
    """Select the lines that a trial list has, with their targets; both go trial by trial."""
    assert key.target is not None
    trials, speakers = (
        {name: i for i, name in enumerate(names)} for names in (pairs.trials, pairs.speakers)
    )
    # names of the list alone come after those of the scores
    places = [
        np.array([index.setdefault(name, len(index)) for name in names])
        for index, names in ((trials, key.trials), (speakers, key.speakers))
    ]
    numbers = renumber(key.trial, places[0]), renumber(key.speaker, places[1])
    key = replace(
        key, trials=tuple(trials), speakers=tuple(speakers), trial=numbers[0], speaker=numbers[1]
    ).by_trial()
    assert key.target is not None
    both = [starts_of(side.trial, len(trials)) for side in (pairs, key)]
    is_kept, target = scratch((2, len(pairs.trial)), np.bool_)
    distinct = targets = 0
    edges = np.searchsorted(both[0] + both[1], whole_trials(both[0] + both[1]))
    for first, last in pairwise(edges.tolist()):
        part, key_part = (slice(*side[[first, last]].tolist()) for side in both)
        codes, key_codes = (
            _codes(side, block, len(speakers)) for side, block in ((pairs, part), (key, key_part))
        )
        order = np.argsort(key_codes, kind="stable")
        listed, at = np.unique(key_codes[order], return_index=True)
        distinct += listed.size
        if not listed.size:
            continue
        hits = np.add.reduceat(key.target[key_part][order].astype(np.intp), at)
        if ((hits > 0) & (hits < np.diff(at, append=key_codes.size))).any():
            raise UsageError(f"{key.label}: a pair is a target on one line and not on another")
        targets += int(np.count_nonzero(hits))
        at = np.minimum(np.searchsorted(listed, codes), listed.size - 1)
        is_kept[part] = listed[at] == codes
        target[part] = is_kept[part] & (hits[at] > 0)
        release(pairs.trial, pairs.speaker, key.trial, key.speaker, is_kept, target)
    count = count_true(is_kept)
    if not count:
        raise UsageError(f"{key.label} has none of the pairs of {pairs.label}; check the names")
    if left := len(is_kept) - count:
        notes.append(f"{left} of {len(is_kept)} scored pairs are not in {key.label}: left out")
    if distinct > count:
        lost = targets - count_true(target)
        notes.append(
            f"{distinct - count} of {plural(distinct, 'pair')} of {key.label} have no score"
            + f", {lost} of them targets, which are neither hit nor miss" * bool(lost)
        )
    pairs = replace(pairs, target=target)
    return pairs.only(is_kept) if left else pairs


def _places(names: Sequence[str], among: Sequence[str]) -> IntArray:
    """Return the index of each name among others, -1 where it is not."""
    place = {name: i for i, name in enumerate(among)}
    return np.array([place.get(name, -1) for name in names], dtype=np.intp)


def _merge(pairs: Pairs, scoring: str) -> Pairs:
    """Merge scores into one for each trial and speaker."""
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
    labels_path = None if labels is None else Path(labels)
    if scoring not in SCORINGS:
        raise UsageError(f"scoring={scoring!r} is not one of {', '.join(SCORINGS)}")
    models = None if enrolment_labels is None else Path(enrolment_labels)
    called = path.stem if name is None else name
    held = ScoreFile.at(path) if kind_of(path) == "npz" else None
    if held is not None:
        if labels_path is not None or models is not None:
            raise UsageError(f"{path.name} says itself who spoke: give no labels beside it")
        return _read_matrix(held, choose, called)
    raw = _read_raw(path, labels_path, progress)
    notes: list[str] = []
    if isinstance(raw, Pairs):
        listed = _read_list(raw, labels_path, models, scoring, notes)
        return check_list(listed, called, notes=notes, unmated=unmated)
    who_spoke = _labels_of_matrix(raw, path.name)
    key = who_spoke.pairs
    if key is not None and raw.trials and (models is not None or not _covers(key, raw)):
        listed = _read_list(
            _as_pairs(raw, path.name), labels_path, models, scoring, notes, who_spoke
        )
        return check_list(listed, called, notes=notes, unmated=unmated)
    raw = _with_speakers(raw, models, scoring, notes)
    assert raw.labels is not None
    target, speakers, spoken = targets(raw, raw.labels, path.name, notes)
    return check_matrix(
        replace(raw, speakers=speakers), target, called, spoken=spoken, notes=notes,
        unmated=unmated, progress=progress,
    )  # fmt: skip


def scores_of_array(scores: AnyArray, labels: AnyArray, name: str = "scores") -> EvaluationInput:
    """Take a matrix in memory, (T, N), and each trial's column from 0, or speaker: (T,)."""
    raw = RawScores(scores, labels=labels_of_array("labels", labels))
    notes: list[str] = []
    target, speakers, spoken = targets(raw, _labels_of_matrix(raw, name), name, notes)
    return check_matrix(replace(raw, speakers=speakers), target, name, spoken=spoken, notes=notes)


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


def _read_matrix(file: ScoreFile, choose: Sequence[str], name: str) -> EvaluationInput:
    """Read one matrix of a score file, which says everything itself."""
    entry, *others = file.choose(choose)
    if others:
        raise UsageError(
            f"{file.path.name} has {len(others) + 1} matrices: choose one of "
            f"{file.describe_choices()}"
        )
    matrix = file.matrix(entry, name)
    notes = [_SAME_SESSION] if entry.session == "same" else []
    notes += caveats(entry.features)
    raw = RawScores(matrix.scores, matrix.speakers, matrix.trial_names)
    return check_matrix(raw, matrix.target, name, notes=notes)


def _read_list(
    pairs: Pairs, labels_path: Path | None, models: Path | None, scoring: str, notes: list[str],
    labels: Labels | None = None,
) -> ScoreList:  # fmt: skip
    """Match a list with the labels beside it or in it."""
    owners = None if models is None else read_labels(models)
    if labels is None and labels_path is not None:
        labels = read_labels(labels_path)
        labels = numbered(labels) if pairs.numbered else labels
    elif labels is None and pairs.target is not None:
        labels = replace(labels_of_pairs(pairs), pairs=pairs)
    if labels is None:
        raise UsageError(f"{pairs.label} does not say who spoke: give labels, or a trial list")
    return label_pairs(pairs, labels, notes, owners, scoring)


def _covers(key: Pairs, raw: RawScores) -> bool:
    """Return whether a trial list has every cell of a table, and one speaker a trial."""
    assert key.target is not None
    hits = np.bincount(key.trial[key.target], minlength=1)
    return len(key.trial) >= raw.scores.size and int(hits.max()) == 1


def _as_pairs(raw: RawScores, label: str) -> Pairs:
    """Convert a table to a list."""
    trials, count = raw.scores.shape
    trial, speaker = np.repeat(np.arange(trials), count), np.tile(np.arange(count), trials)
    scores = np.asarray(raw.scores, np.float64).reshape(-1)
    return Pairs(label, raw.trials, raw.speakers, trial, speaker, scores, None)


def _with_speakers(
    raw: RawScores, models: Path | None, scoring: str, notes: list[str]
) -> RawScores:
    """Merge the columns of a speaker with several enrolments."""
    assert raw.labels is not None
    count = raw.scores.shape[1]
    columns = raw.speakers or tuple(map(str, range(count)))
    enrolment_labels = None if models is None else read_labels(models)
    if enrolment_labels is None and not raw.speakers:
        return raw
    if enrolment_labels is not None and enrolment_labels.columns is not None:
        raise UsageError(
            f"{enrolment_labels.label}: give names of speakers, one for each enrolment"
        )
    owners = find_owners(columns, raw.labels, enrolment_labels)
    if len(set(owners)) == count:
        return raw if enrolment_labels is None else replace(raw, speakers=owners)
    if enrolment_labels is None and len(set(columns)) < count:
        return raw  # two columns of one name: refused where they are matched
    notes.append(describe_merge(count, len(set(owners)), scoring))
    scores, speakers = merge_columns(raw.scores, owners, scoring)
    return replace(raw, scores=scores, speakers=speakers)


def _read_raw(path: Path, labels_path: Path | None, progress: Progress | None) -> RawScores | Pairs:
    kind = kind_of(path)
    if kind == "npy":
        array = array_at(path)
        if array.dtype.names:
            return pairs_of_records(path.name, array)
        return RawScores(array, labels=None if labels_path is None else read_labels(labels_path))
    if kind == "npz":
        return _archive(path, labels_path)
    layout = layout_of(path.name, first_line(path))
    if not layout.list:
        table = read_table(path, layout, progress)
        labels = Labels(path.name, names=table.target) if table.target else None
        labels = labels if labels_path is None else read_labels(labels_path)
        return RawScores(table.scores, layout.speakers, table.trials, labels)
    if layout.score is None:
        raise UsageError(f"{path.name} is a trial list: give the scores first, it as labels")
    return read_pairs(path, layout, progress)


def _archive(path: Path, labels_path: Path | None) -> RawScores:
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
    labels = None if key is None else labels_of_array(f"{path.name} {key}", arrays[key])
    labels = labels if labels_path is None else read_labels(labels_path)
    return RawScores(arrays["scores"], tuple(map(str, names.tolist())), (), labels)
