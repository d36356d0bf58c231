"""Turns a list of scored pairs, with its labels, into labelled comparisons."""

from __future__ import annotations

import numpy as np

from monitor.errors import UsageError
from monitor.evaluation.input.labels import Labels
from monitor.evaluation.input.layout import natural
from monitor.evaluation.input.models import merged_note, owners_of
from monitor.evaluation.input.pairs import Pairs
from monitor.evaluation.input.targets import RawScores, targets
from monitor.evaluation.scores.score_list import ScoreList
from monitor.phrases import plural
from monitor.types import BoolArray, FloatArray, IntArray

__all__ = ["labelled"]


def labelled(
    pairs: Pairs,
    labels: Labels,
    notes: list[str],
    models: Labels | None = None,
    scoring: str = "average",
) -> ScoreList:
    """Bring scores and labels together.

    Args:
        pairs: with scores.
        labels: who spoke; where they list target and nontarget pairs, these alone count.
        notes: what a person should know is added to them.
        models: whose each enrolled model is, where speakers have several.
        scoring: how these become one score: their mean or the largest.

    Returns:
        the comparisons.

    Raises:
        UsageError: a pair comes twice, a score is not finite, or names do not fit together.
    """
    _check(pairs)
    mated = None
    if labels.pairs is not None:
        kept, mated = _by_key(pairs, labels.pairs, notes)
        if not kept.all():
            pairs, mated = pairs.only(kept), mated[kept]
    whose = owners_of(pairs.speakers, labels, models)
    speakers = tuple(sorted(set(whose), key=natural))
    place = {name: i for i, name in enumerate(speakers)}
    column = np.array([place[name] for name in whose], dtype=np.intp)
    speaker: IntArray = column[pairs.speaker]
    names = list(pairs.trials)  # of people whom nobody names
    if mated is None:
        nothing = np.broadcast_to(0.0, (len(pairs.trials), len(speakers)))
        raw = RawScores(nothing, speakers, pairs.trials)
        target, _, spoken = targets(raw, labels, pairs.label, notes)
        mated = speaker == target[pairs.trial]
        for i, own in enumerate(target.tolist()):
            said = spoken[i] if spoken else ""
            names[i] = speakers[own] if own >= 0 else said or names[i]
    else:
        for row in np.flatnonzero(mated)[::-1].tolist():
            names[pairs.trial[row]] = speakers[speaker[row]]
    assert pairs.scores is not None
    scores: FloatArray = pairs.scores
    trial: IntArray = pairs.trial
    if len(speakers) < len(whose):
        notes.append(merged_note(len(whose), len(speakers), scoring))
        scores, mated, trial, speaker = _merged(pairs, speaker, mated, speakers, scoring)
    people = dict.fromkeys(names)
    index = {name: i for i, name in enumerate(people)}
    spoken_by = np.array([index[name] for name in names], dtype=np.intp)
    return ScoreList(
        scores, mated, trial, speaker, spoken_by, speakers, tuple(people), pairs.trials
    )


def _check(pairs: Pairs) -> None:
    assert pairs.scores is not None

    def pair(row: int) -> str:
        trial, speaker = pairs.trials[pairs.trial[row]], pairs.speakers[pairs.speaker[row]]
        return f"trial {trial} with speaker {speaker}"

    good = np.isfinite(pairs.scores)
    if not good.all():
        raise UsageError(
            f"{pairs.label}: the score of {pair(int(np.argmin(good)))} is not a finite number: "
            "drop that trial"
        )
    codes = pairs.codes()
    distinct, first = np.unique(codes, return_index=True)
    if distinct.size < codes.size:
        again = np.ones(codes.size, bool)
        again[first] = False
        raise UsageError(
            f"{pairs.label}: {pair(int(np.argmax(again)))} is listed twice "
            f"({plural(codes.size - distinct.size, 'line')} too many); keep one score for each pair"
        )


def _by_key(pairs: Pairs, key: Pairs, notes: list[str]) -> tuple[BoolArray, BoolArray]:
    """Which lines the trial list has, and which of them are target pairs: shape (n,) each."""
    assert key.target is not None
    if key is pairs:
        return np.ones(len(key.target), bool), key.target
    place = {name: i for i, name in enumerate(pairs.trials)}
    trial = np.array([place.get(name, -1) for name in key.trials], dtype=np.intp)[key.trial]
    place = {name: i for i, name in enumerate(pairs.speakers)}
    speaker = np.array([place.get(name, -1) for name in key.speakers], dtype=np.intp)[key.speaker]
    both = (trial >= 0) & (speaker >= 0)
    said = trial[both] * len(pairs.speakers) + speaker[both]
    listed = np.unique(said)
    target = np.isin(listed, said[key.target[both]])
    if np.isin(said[~key.target[both]], listed[target]).any():
        raise UsageError(f"{key.label}: a pair is a target on one line and not on another")
    codes = pairs.codes()
    if not listed.size:
        raise UsageError(f"{key.label} has none of the pairs of {pairs.label}; check the names")
    at = np.minimum(np.searchsorted(listed, codes), listed.size - 1)
    kept = listed[at] == codes
    left = codes.size - int(kept.sum())
    if left:
        notes.append(f"{left} of {codes.size} scored pairs are not in {key.label}: left out")
    spare = np.unique(key.codes()).size - int(kept.sum())
    if spare:
        notes.append(f"{spare} of the pairs of {key.label} have no score")
    return kept, target[at]


def _merged(
    pairs: Pairs, speaker: IntArray, mated: BoolArray, speakers: tuple[str, ...], scoring: str
) -> tuple[FloatArray, BoolArray, IntArray, IntArray]:
    """One score for each trial and speaker: scores, labels, trials and speakers."""
    assert pairs.scores is not None
    codes, cell, many = np.unique(
        pairs.trial * len(speakers) + speaker, return_inverse=True, return_counts=True
    )
    if scoring == "max":
        scores = np.full(codes.size, -np.inf)
        np.maximum.at(scores, cell, pairs.scores)
    else:
        scores = np.bincount(cell, pairs.scores) / many
    hits = np.bincount(cell, mated)
    torn = np.flatnonzero((hits > 0) & (hits < many))
    if torn.size:
        trial, owner = divmod(int(codes[torn[0]]), len(speakers))
        raise UsageError(
            f"trial {pairs.trials[trial]} is a target of one enrolment of speaker "
            f"{speakers[owner]} and not of another; check whose the enrolments are"
        )
    return scores, hits > 0, codes // len(speakers), codes % len(speakers)
