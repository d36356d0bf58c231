"""Matches scores with the speakers of trials, and checks the comparisons."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from monitor.errors import UsageError
from monitor.lab.evaluation.comparisons import (
    Comparisons,
    ScoreList,
    ScoreMatrix,
    describe_balance,
    natural,
)
from monitor.lab.evaluation.input.enrolments import describe_merge, find_owners, with_speakers
from monitor.lab.evaluation.input.files import check_names, check_spelling
from monitor.lab.evaluation.input.lists import Labels, RawScores, labels_of_pairs, numbered
from monitor.lab.evaluation.input.pairs import (
    Pairs,
    check_scores,
    merge_models,
    places,
    select_listed,
)
from monitor.lab.evaluation.memory import refuse_beyond_memory, scratch
from monitor.lab.report.model import OneLine
from monitor.phrases import plural
from monitor.types import AnyArray, BoolArray, IntArray

_COLUMN, _DIGITS = re.compile("[0-9]{1,9}"), re.compile("[0-9]+")
UNMATED = ("count", "drop", "refuse")
"""Treatments of impostor trials, with a speaker who is not enrolled. They count for figures without
ranks, are left out, or are refused."""


@dataclass(frozen=True, repr=False)
class EvaluationInput(OneLine):
    """Finite scores, with one note for each allowed property that can mislead.

    A warning is a note that makes all figures doubtful.
    """

    comparisons: Comparisons
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def matrix(self) -> ScoreMatrix:
        """Trials that have ranks."""
        if self.comparisons.matrix is None:
            raise UsageError(
                f"{self.comparisons.name} has no ranks: no trial was compared with every enrolled "
                "speaker"
            )
        return self.comparisons.matrix


def match(
    raw: RawScores | Pairs, stated: Labels | None, owners: Labels | None, label: str, name: str, *,
    unmated: str = "count", scoring: str = "average",
) -> EvaluationInput:  # fmt: skip
    """Match scores with labels and check them; stated labels replace those of the scores' file."""
    notes: list[str] = []
    if owners is not None and stated is not None and stated.listed and stated.pairs is None:
        raise UsageError(
            f"{stated.label} lists only targets, of enrolments with --enrolment-labels. List the "
            "nontarget pairs too, or give the speaker of each trial"
        )
    if isinstance(raw, Pairs):
        if stated is not None:
            who_spoke = numbered(stated) if raw.numbered else stated
        elif raw.target is not None:
            who_spoke = replace(labels_of_pairs(raw), pairs=raw)
        else:
            raise UsageError(f"{raw.label} has no speakers: give labels, or a trial list")
        listed = _label_pairs(raw, who_spoke, notes, owners, scoring)
        return check_list(listed, name, notes=notes, unmated=unmated)
    raw = raw if stated is None else replace(raw, labels=stated)
    who_spoke = _labels_of_matrix(raw, label)
    key = who_spoke.pairs
    if key is not None and raw.trials:
        assert key.target is not None
        most_targets = int(np.bincount(key.trial[key.target], minlength=1).max())
        if owners is not None or len(key.trial) < raw.scores.size or most_targets > 1:
            refuse_beyond_memory(label, raw.scores.size)
            trials, count = raw.scores.shape
            trial, speaker = np.repeat(np.arange(trials), count), np.tile(np.arange(count), trials)
            scores = np.asarray(raw.scores, np.float64).reshape(-1)
            pairs = Pairs(label, raw.trials, raw.speakers, trial, speaker, scores, None)
            listed = _label_pairs(pairs, who_spoke, notes, owners, scoring)
            return check_list(listed, name, notes=notes, unmated=unmated)
    raw = with_speakers(raw, who_spoke, owners, scoring, notes)
    target, speakers, spoken = _find_targets(raw, who_spoke, label, notes)
    raw = replace(raw, speakers=speakers)
    return check_matrix(raw, target, name, spoken=spoken, notes=notes, unmated=unmated)


def _labels_of_matrix(raw: RawScores, label: str) -> Labels:
    """Check a matrix of scores, and return its labels."""
    if raw.scores.ndim != 2 or raw.scores.dtype.kind not in "fiu":
        raise UsageError(
            f"{label} has {raw.scores.dtype} of shape {raw.scores.shape}: give numbers, trials x "
            "speakers"
        )
    if raw.labels is None:
        raise UsageError(f"{label} has no speakers: give labels, or a trial list")
    if not raw.scores.shape[0]:
        raise UsageError(f"{label} has no trials")
    return raw.labels


def _find_targets(
    raw: RawScores, labels: Labels, label: str, notes: list[str]
) -> tuple[IntArray, tuple[str, ...], Sequence[str]]:
    """Return each trial's column, or -1, the columns' names, and each trial's speaker, or ""."""
    trials, count = raw.scores.shape
    if raw.speakers and len(raw.speakers) != count:
        raise UsageError(
            f"{label}: {len(raw.speakers)} names for {plural(count, 'column')}. Give one for each"
        )
    if labels.several:
        raise UsageError(
            f"{labels.several} in {labels.label}: list the nontarget pairs too, and give the "
            "scores as a list of pairs"
        )
    names = _order_speakers(raw, labels, label, notes)
    if labels.listed and labels.pairs is None:
        notes.append(f"{labels.label} lists only targets: all other scored pairs are nontarget")
    count_labels = trials if names and raw.trials and labels.trials else len(names)
    if labels.columns is not None:
        count_labels = len(labels.columns)
    if count_labels != trials:
        turned = f". Is {label} transposed? Rows must be trials" if count_labels == count else ""
        raise UsageError(
            f"{labels.label} has {plural(count_labels, 'label')} for the {plural(trials, 'trial')} "
            f"of {label}{turned}"
        )
    check_names(f"{label} and {labels.label}", {"speaker": {*raw.speakers, *names}})
    columns, speakers = labels.columns, raw.speakers
    if columns is None and not speakers:
        columns, speakers = _name_columns(names, count, label, labels.label, notes)
    if columns is not None:
        outside = np.flatnonzero((columns < 0) | (columns >= count))
        if outside.size:
            i = int(outside[0])
            raise UsageError(
                f"invalid label {columns[i]} of trial {i + 1} in {labels.label}: use columns 0 to "
                f"{count - 1}"
            )
        return columns, speakers, ()
    index = {name: i for i, name in enumerate(speakers)}
    if len(index) < count:
        again = next(name for i, name in enumerate(speakers) if index[name] != i)
        raise UsageError(f"{label} has two columns of speaker {again}; merge them")
    return np.fromiter((index.get(n, -1) for n in names), np.intp, len(names)), speakers, names


def _order_speakers(raw: RawScores, labels: Labels, label: str, notes: list[str]) -> Sequence[str]:
    """Return the speaker of each trial in order; empty for impostors."""
    if labels.listed and not raw.trials:
        raise UsageError(
            f"{label} does not name its trials, so {labels.label} cannot be matched with its "
            "rows: give one speaker per row, in order"
        )
    if labels.trials and not raw.trials:
        notes.append(f"rows have no names and get labels in the order of {labels.label}")
    if not (raw.trials and labels.trials):
        return labels.names
    speakers = labels.by_trial()
    listed_trials = labels.listed or speakers.keys()
    both, every = f"{label} and {labels.label}", {*raw.trials, *listed_trials}
    check_names(both, {"trial": every})
    check_spelling(both, "trial", every, {*raw.trials} ^ {*listed_trials})
    missing = [name for name in raw.trials if name not in listed_trials]
    if missing:
        raise UsageError(
            f"{labels.label} lacks {len(missing)} of {len(raw.trials)} trials (first: "
            f"{missing[0]}). Add them"
        )
    if len(set(raw.trials)) < len(raw.trials):
        again = next(a for a, b in pairwise(sorted(raw.trials)) if a == b)
        raise UsageError(f"trial {again} has two rows of scores; keep one")
    spare = len(listed_trials) - len(raw.trials)
    if spare:
        notes.append(f"{labels.label} lists {plural(spare, 'trial')} without a score")
    return [speakers.get(name, "") for name in raw.trials]


def _name_columns(
    names: Sequence[str], count: int, label: str, source: str, notes: list[str]
) -> tuple[IntArray, tuple[str, ...]]:
    """Number columns without names, or name them in order if there is one name per column."""
    if all(map(_COLUMN.fullmatch, names)) and max(map(int, names), default=0) < count:
        return np.array(names, np.int64), ()
    order = sorted(set(names))
    if len(order) != count:
        raise UsageError(
            f"{label} does not name its columns, and {source} has "
            f"{plural(len(order), 'speaker')} for its {count} columns: give column numbers from "
            "0, or a table with a header"
        )
    by_number = sorted(order, key=lambda name: _DIGITS.sub(lambda m: m[0].zfill(99), name))
    if order != by_number:
        raise UsageError(
            f"{label} does not name its columns, and the order of {source}'s speakers is "
            "ambiguous (numbers or words). Give column numbers from 0, or a table with a header"
        )
    notes.append(f"columns have no names and are taken as {order[0]} to {order[-1]}, in this order")
    return places(names, order), tuple(order)


def _label_pairs(
    pairs: Pairs, labels: Labels, notes: list[str], models: Labels | None, scoring: str
) -> ScoreList:
    """Label the pairs of a list, select those of a trial list, and merge a speaker's models."""
    key = labels.pairs
    check_scores(pairs)
    if key is not None and key is not pairs:
        pairs = select_listed(pairs, key, notes)
    pairs = pairs.by_trial()
    owners = find_owners(pairs.speakers, labels, models)
    speakers = tuple(sorted(set(owners), key=natural))
    pairs = replace(pairs, speakers=speakers, speaker=places(owners, speakers)[pairs.speaker])
    names = list(pairs.trials)  # an unnamed speaker has the name of the trial
    if key is None:
        nothing = np.broadcast_to(0.0, (len(pairs.trials), len(speakers)))
        raw = RawScores(nothing, speakers, pairs.trials)
        target, _, spoken = _find_targets(raw, labels, pairs.label, notes)
        pairs = replace(pairs, target=pairs.speaker == target[pairs.trial])
        for i, column in enumerate(target.tolist()):
            speaker_name = spoken[i] if spoken else ""
            names[i] = speakers[column] if column >= 0 else speaker_name or names[i]
    else:
        for i, column in reversed(pairs.targets()):
            names[i] = speakers[column]
    if len(speakers) < len(owners):
        notes.append(describe_merge(len(owners), len(speakers), scoring))
        pairs = merge_models(pairs, scoring)
    people = tuple(dict.fromkeys(names))
    assert pairs.scores is not None
    assert pairs.target is not None
    return ScoreList(
        pairs.scores, pairs.target, pairs.trial, pairs.speaker, places(names, people), speakers,
        people, pairs.trials,
    )  # fmt: skip


def check_matrix(
    raw: RawScores, target: IntArray, name: str, *, spoken: Sequence[str] = (),
    notes: Sequence[str] = (), unmated: str = "count",
) -> EvaluationInput:  # fmt: skip
    """Check a matrix (T, N) in one pass, and keep it for its ranks.

    Targets are -1 if the speaker is not among the columns. `spoken` has the speakers of the rows,
    or is empty.
    """
    messages = list(notes)
    scores, speakers = raw.scores, raw.speakers
    called = raw.trials or tuple(str(row + 1) for row in range(len(target)))
    impostor = target < 0
    impostors = _impostors(impostor, called, name, unmated, messages)
    without_target = None
    if impostor.any():
        keep = np.flatnonzero(~impostor)
        if impostors:
            rows = np.flatnonzero(impostor)
            without_target = _list_impostors(_rows(scores, rows), rows, speakers, called, spoken)
        scores, target = _rows(scores, keep), target[keep]
        called = tuple(called[row] for row in keep.tolist())
    named = called if raw.trials and len(set(called)) == len(called) else ()
    matrix = ScoreMatrix(scores, target, speakers, name, tuple(named))
    comparisons = Comparisons(matrix.speakers, matrix, without_target, matrix.name)
    return EvaluationInput(comparisons, (*messages, *describe_balance(matrix, called)))


def check_list(
    listed: ScoreList, name: str, *, notes: Sequence[str], unmated: str
) -> EvaluationInput:
    """Collect the complete trials of a list into a matrix, and describe the other trials."""
    messages = list(notes)
    impostor = listed.hits == 0
    if not _impostors(impostor, listed.trials, name, unmated, messages):
        listed = listed.of_trials(~impostor)
    several = np.flatnonzero(listed.hits > 1)
    if several.size:
        messages.append(
            f"{plural(several.size, 'trial')} with several targets (first: "
            f"{listed.trials[several[0]]}) count once per target. To merge the enrolments of a "
            "speaker, use --enrolment-labels"
        )
    count, met = len(listed.speakers), listed.met
    short = np.flatnonzero(met < count)
    if short.size:
        row = int(short[0])
        missing = np.setdiff1d(np.arange(count), listed.speaker[listed.trial == row])[0]
        messages.append(
            f"{short.size} of {plural(met.size, 'trial')} were not compared with every speaker "
            f"(first: trial {listed.trials[row]}, not with {listed.speakers[missing]}) and have no "
            "ranks"
        )
    comparisons = Comparisons.from_scores(listed, name)
    if comparisons.matrix is not None:
        messages += describe_balance(comparisons.matrix, comparisons.matrix.trial_names)
    return EvaluationInput(comparisons, tuple(messages))


def _impostors(
    impostor: BoolArray, trials: Sequence[str], name: str, unmated: str, notes: list[str]
) -> bool:
    """Return whether impostors count, and note how they are treated."""
    if unmated not in UNMATED:
        raise UsageError(f"invalid unmated={unmated!r}: use one of {', '.join(UNMATED)}")
    lost = int(impostor.sum())
    if not lost:
        return True
    first = f"first: trial {trials[int(np.argmax(impostor))]}"
    if unmated == "refuse" or lost == impostor.size:
        cure = "name the speakers of enrolments (--enrolment-labels)"
        cure = (
            cure
            if lost == impostor.size
            else ("count impostors (unmated = 'count' in --config FILE)")
        )
        raise UsageError(
            f"{lost} of {impostor.size} trials of {name} have no mated score, because their "
            f"speaker is not enrolled ({first}); check the names, or {cure}"
        )
    have = "has" if lost == 1 else "have"
    many = (
        f"{lost} of {impostor.size} trials {have} no mated score, because the speaker is not "
        f"enrolled ({first}): "
    )
    if unmated == "drop":
        notes.append(f"{many}dropped. Tools that count them as non-mated give other figures")
        return False
    notes.append(f"{many}ranks exclude {'it' if lost == 1 else 'them'}")
    return True


def _list_impostors(
    scores: AnyArray, rows: IntArray, speakers: tuple[str, ...], trials: Sequence[str],
    spoken: Sequence[str],
) -> ScoreList:  # fmt: skip
    """Convert impostor trials to a list; unnamed speakers are named by their trial."""
    if not np.isfinite(scores).all():
        row = int(np.argwhere(~np.isfinite(scores))[0, 0])
        raise UsageError(
            f"a score of trial {trials[rows[row]]} is not a finite number: drop that trial"
        )
    names = [(spoken[row] if spoken else "") or trials[row] for row in rows.tolist()]
    people = tuple(dict.fromkeys(names))
    count = scores.shape[1]
    return ScoreList(
        scores.reshape(-1), np.zeros(scores.size, bool), np.repeat(np.arange(len(rows)), count),
        np.tile(np.arange(count), len(rows)), places(names, people),
        speakers or tuple(map(str, range(count))), people,
        tuple(trials[row] for row in rows.tolist()),
    )  # fmt: skip


def _rows(scores: AnyArray, keep: IntArray) -> AnyArray:
    selected = scratch((len(keep), scores.shape[1]), scores.dtype)
    return np.take(scores, keep, axis=0, out=selected, mode="clip")  # this mode needs no buffer
