"""Merges the scores of speakers with several enrolments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from monitor.errors import UsageError
from monitor.lab.evaluation.comparisons import natural
from monitor.lab.evaluation.input.lists import Labels, RawScores
from monitor.lab.evaluation.input.pairs import places
from monitor.lab.evaluation.memory import scratch
from monitor.phrases import plural
from monitor.types import AnyArray

SCORINGS = ("average", "max")  # how several enrolments of one speaker are compared with a trial

_BLOCK = 1 << 20


def with_speakers(
    raw: RawScores, labels: Labels, owner_labels: Labels | None, scoring: str, notes: list[str]
) -> RawScores:
    """Merge the columns of a speaker with several enrolments."""
    if owner_labels is None and len(set(raw.speakers)) < raw.scores.shape[1]:
        return raw  # no names, or two columns with one name, which matching refuses
    if owner_labels is not None and owner_labels.columns is not None:
        raise UsageError(f"{owner_labels.label}: give names of speakers, one for each enrolment")
    count = raw.scores.shape[1]
    owners = find_owners(raw.speakers or tuple(map(str, range(count))), labels, owner_labels)
    if len(set(owners)) == count:
        return replace(raw, speakers=raw.speakers if owner_labels is None else owners)
    notes.append(describe_merge(count, len(set(owners)), scoring))
    scores, speakers = _merge_columns(raw.scores, owners, scoring)
    return replace(raw, scores=scores, speakers=speakers)


def find_owners(
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
                f"{len(models)} enrolments: give one for each"
            )
        return owner_labels.names
    if labels.listed or not labels.trials:  # a trial list, or no names of trials
        return tuple(models)
    speakers = dict(zip(labels.trials, labels.names, strict=True))
    utterances = speakers.keys() - set(labels.names)
    return tuple(speakers[name] for name in models) if utterances >= set(models) else tuple(models)


def describe_merge(models: int, speakers: int, scoring: str) -> str:
    """Describe how several enrolments were merged."""
    rule = "the mean" if scoring == "average" else "the largest"
    return (
        f"{models} enrolments of {speakers} speakers: a speaker's score is {rule} over the "
        "enrolments"
    )


def _merge_columns(
    scores: AnyArray, owners: Sequence[str], scoring: str
) -> tuple[AnyArray, tuple[str, ...]]:
    """Merge columns of enrolments into one for each speaker, in the order of names."""
    speakers = tuple(sorted(set(owners), key=natural))
    owner = places(owners, speakers)
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], np.arange(len(speakers)))
    counts = np.diff(starts, append=len(owner))
    merged = scratch((len(scores), len(speakers)))
    step = max(1, _BLOCK // len(owner))
    for first in range(0, len(scores), step):
        block = np.asarray(scores[first : first + step], dtype=np.float64)[:, order]
        merge = np.maximum if scoring == "max" else np.add
        totals = merge.reduceat(block, starts, axis=1)
        merged[first : first + step] = totals if scoring == "max" else totals / counts
    return merged, speakers
