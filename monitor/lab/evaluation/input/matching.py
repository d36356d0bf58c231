"""Matches scores with the speakers of trials and enrolments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from monitor.errors import UsageError
from monitor.lab.evaluation.comparisons import ScoreList, natural
from monitor.lab.evaluation.input.files import check_names
from monitor.lab.evaluation.input.lists import Labels, RawScores, labels_of_pairs, numbered
from monitor.lab.evaluation.input.pairs import (
    Pairs,
    check_scores,
    merge_models,
    places,
    select_listed,
)
from monitor.lab.evaluation.memory import refuse_beyond_memory, scratch
from monitor.phrases import plural
from monitor.types import AnyArray, IntArray

_COLUMN, _DIGITS = re.compile("[0-9]{1,9}"), re.compile("[0-9]+")


def match(
    raw: RawScores | Pairs, stated: Labels | None, owners: Labels | None, label: str, scoring: str,
    notes: list[str],
) -> ScoreList | tuple[RawScores, IntArray, Sequence[str]]:  # fmt: skip
    """Match scores with labels; stated labels replace those of the file of scores.

    Returns:
        a list; or a matrix with the column and name of each trial's speaker, as `_find_targets`.
    """
    if isinstance(raw, Pairs):
        if stated is not None:
            who_spoke = numbered(stated) if raw.numbered else stated
        elif raw.target is not None:
            who_spoke = replace(labels_of_pairs(raw), pairs=raw)
        else:
            raise UsageError(f"{raw.label} has no speakers: give labels, or a trial list")
        return _label_pairs(raw, who_spoke, notes, owners, scoring)
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
            return _label_pairs(pairs, who_spoke, notes, owners, scoring)
    raw = _with_speakers(raw, who_spoke, owners, scoring, notes)
    target, speakers, spoken = _find_targets(raw, who_spoke, label, notes)
    return replace(raw, speakers=speakers), target, spoken


def _labels_of_matrix(raw: RawScores, label: str) -> Labels:
    """Check a matrix of scores, and return its labels."""
    if raw.scores.ndim != 2 or raw.scores.dtype.kind not in "fiu":
        raise UsageError(
            f"{label} holds {raw.scores.dtype} of shape {raw.scores.shape}; scores are "
            "numbers, trials x speakers"
        )
    if raw.labels is None:
        raise UsageError(f"{label} has no speakers: give labels, or a trial list")
    if not raw.scores.shape[0]:
        raise UsageError(f"{label} has no trial in it")
    return raw.labels


def _with_speakers(
    raw: RawScores, labels: Labels, owner_labels: Labels | None, scoring: str, notes: list[str]
) -> RawScores:
    """Merge the columns of a speaker with several enrolments."""
    if owner_labels is None and len(set(raw.speakers)) < raw.scores.shape[1]:
        return raw  # no names, or two columns of one: refused where they are matched
    if owner_labels is not None and owner_labels.columns is not None:
        raise UsageError(f"{owner_labels.label}: give names of speakers, one for each enrolment")
    count = raw.scores.shape[1]
    owners = _find_owners(raw.speakers or tuple(map(str, range(count))), labels, owner_labels)
    if len(set(owners)) == count:
        return replace(raw, speakers=raw.speakers if owner_labels is None else owners)
    notes.append(_describe_merge(count, len(set(owners)), scoring))
    scores, speakers = _merge_columns(raw.scores, owners, scoring)
    return replace(raw, scores=scores, speakers=speakers)


def _find_targets(
    raw: RawScores, labels: Labels, label: str, notes: list[str]
) -> tuple[IntArray, tuple[str, ...], Sequence[str]]:
    """Return each trial's column, the columns' names, and each trial's speaker; add notes.

    Columns have shape (T,), -1 for a speaker without a column. Names may be missing; an unknown
    speaker is empty.
    """
    trials, count = raw.scores.shape
    if raw.speakers and len(raw.speakers) != count:
        raise UsageError(f"{label}: {len(raw.speakers)} names for {plural(count, 'column')}")
    if labels.several:
        raise UsageError(
            f"{labels.several} in {labels.label}: name the speakers of enrolments, or give the "
            "scores as a list of pairs"
        )
    names = _order_speakers(raw, labels, label, notes)
    count_labels = trials if names and raw.trials and labels.trials else len(names)
    if labels.columns is not None:
        count_labels = len(labels.columns)
    if count_labels != trials:
        turned = f"; {label} may be turned, trials are its rows" if count_labels == count else ""
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
            f"{label} names no trial, so {labels.label} cannot be matched with its rows: give one "
            "speaker for each row, in their order"
        )
    if labels.trials and not raw.trials:
        notes.append(f"rows have no names: labels are taken in the order of {labels.label}")
    if not (raw.trials and labels.trials):
        return labels.names
    speakers = labels.by_trial()
    listed_trials = labels.listed or speakers.keys()
    check_names(f"{label} and {labels.label}", {"trial": {*raw.trials, *listed_trials}})
    missing = [name for name in raw.trials if name not in listed_trials]
    if missing:
        raise UsageError(
            f"{labels.label} lacks {len(missing)} of {len(raw.trials)} trials (first: "
            f"{missing[0]}). Add them"
        )
    if len(set(raw.trials)) < len(raw.trials):
        seen = sorted(raw.trials)
        again = next(a for a, b in pairwise(seen) if a == b)
        raise UsageError(f"trial {again} has two rows of scores; keep one")
    spare = len(listed_trials) - len(raw.trials)
    if spare:
        notes.append(f"{labels.label} speaks of {plural(spare, 'trial')} without a score")
    return [speakers.get(name, "") for name in raw.trials]


def _name_columns(
    names: Sequence[str], count: int, label: str, source: str, notes: list[str]
) -> tuple[IntArray, tuple[str, ...]]:
    """Number columns without names, or name them in order where the names are as many."""
    if all(map(_COLUMN.fullmatch, names)) and max(map(int, names), default=0) < count:
        return np.array(names, np.int64), ()
    order = sorted(set(names))
    if len(order) != count:
        raise UsageError(
            f"{label} names no column and {source} has {plural(len(order), 'speaker')} for "
            f"its {count} columns: give column numbers from 0, or a table with a header"
        )
    by_number = sorted(order, key=lambda name: _DIGITS.sub(lambda m: m[0].zfill(99), name))
    if order != by_number:
        raise UsageError(
            f"{label} names no column, and the order of {source}'s speakers is ambiguous "
            "(numbers or words). Give column numbers from 0, or a table with a header"
        )
    notes.append(f"columns have no names: taken for {order[0]} to {order[-1]}, in this order")
    index = {name: i for i, name in enumerate(order)}
    return np.array([index[name] for name in names], np.int64), tuple(order)


SCORINGS = ("average", "max")
"""How several enrolments of one speaker are compared with a trial."""

_BLOCK = 1 << 20


def _find_owners(
    models: Sequence[str], labels: Labels, owner_labels: Labels | None
) -> tuple[str, ...]:
    """Find the speaker of each enrolled model, from its own labels or those of the trials."""
    if owner_labels is not None and owner_labels.trials:
        owners = owner_labels.by_trial()
        missing = [name for name in models if name not in owners]
        if missing:
            raise UsageError(
                f"{owner_labels.label} lacks {len(missing)} of {len(models)} enrolments (first: "
                f"{missing[0]}). Add them"
            )
        return tuple(owners[name] for name in models)
    if owner_labels is not None:
        if len(owner_labels.names) != len(models):
            raise UsageError(
                f"{owner_labels.label} names {plural(len(owner_labels.names), 'speaker')} for "
                f"{len(models)} enrolments"
            )
        return owner_labels.names
    if labels.listed or not labels.trials:  # a trial list, or no names of trials
        return tuple(models)
    speakers = dict(zip(labels.trials, labels.names, strict=True))
    utterances = speakers.keys() - set(labels.names)
    return tuple(speakers[name] for name in models) if utterances >= set(models) else tuple(models)


def _describe_merge(models: int, speakers: int, scoring: str) -> str:
    """Describe how several enrolments were merged."""
    rule = "the mean of" if scoring == "average" else "the largest of"
    return f"{models} enrolments of {speakers} speakers: a speaker's score is {rule} theirs"


def _merge_columns(
    scores: AnyArray, owners: Sequence[str], scoring: str
) -> tuple[AnyArray, tuple[str, ...]]:
    """Merge columns of enrolments into one for each speaker, in the order of names."""
    speakers = tuple(sorted(set(owners), key=natural))
    index = {name: i for i, name in enumerate(speakers)}
    owner = np.array([index[name] for name in owners])
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], np.arange(len(speakers)))
    counts = np.diff(starts, append=len(owner))
    merged = scratch((len(scores), len(speakers)))
    step = max(1, _BLOCK // len(owner))
    for first in range(0, len(scores), step):
        block = np.asarray(scores[first : first + step], dtype=np.float64)[:, order]
        merged[first : first + step] = (
            np.maximum.reduceat(block, starts, axis=1)
            if scoring == "max"
            else np.add.reduceat(block, starts, axis=1) / counts
        )
    return merged, speakers


def _label_pairs(
    pairs: Pairs, labels: Labels, notes: list[str], models: Labels | None, scoring: str
) -> ScoreList:
    """Label the pairs of a list, and add notes.

    A trial list with nontarget pairs selects its pairs. `models` has the speakers of enrolled
    models; scores of several models of a speaker are merged.
    """
    key = labels.pairs
    check_scores(pairs)
    if key is not None and key is not pairs:
        pairs = select_listed(pairs, key, notes)
    pairs = pairs.by_trial()
    whose = _find_owners(pairs.speakers, labels, models)
    speakers = tuple(sorted(set(whose), key=natural))
    pairs = replace(pairs, speakers=speakers, speaker=places(whose, speakers)[pairs.speaker])
    names = list(pairs.trials)  # of unnamed speakers
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
    if len(speakers) < len(whose):
        notes.append(_describe_merge(len(whose), len(speakers), scoring))
        pairs = merge_models(pairs, scoring)
    people = tuple(dict.fromkeys(names))
    assert pairs.scores is not None
    assert pairs.target is not None
    return ScoreList(
        pairs.scores, pairs.target, pairs.trial, pairs.speaker, places(names, people), speakers,
        people, pairs.trials,
    )  # fmt: skip
