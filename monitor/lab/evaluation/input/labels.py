"""Reads who spoke in each trial."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from monitor.arrays import names_or_numbers
from monitor.errors import UsageError
from monitor.lab.evaluation.input.files import array_at, kind_of
from monitor.lab.evaluation.input.layout import SPEAKER, TARGET, TRIAL, layout_of, role_of
from monitor.lab.evaluation.input.pairs import Pairs, read_pairs
from monitor.lab.evaluation.input.rows import Rows, check_names
from monitor.types import AnyArray, IntArray


@dataclass(frozen=True)
class Labels:
    """Contents of a file of labels, and how messages call it.

    Columns from 0, (T,), or names of the speakers, and of trials where there are any; all trials
    that a trial list speaks of; the list itself where it has nontarget pairs: then no others count;
    in words, a trial that is a target of two models.
    """

    label: str
    columns: IntArray | None = None
    names: tuple[str, ...] = ()
    trials: tuple[str, ...] = ()
    listed: frozenset[str] = field(default=frozenset())
    pairs: Pairs | None = None
    several: str = ""

    def by_trial(self) -> Mapping[str, str]:
        """Speaker by trial."""
        speakers = dict(zip(self.trials, self.names, strict=True))
        if len(speakers) < len(self.trials):
            again = next(name for name, times in Counter(self.trials).items() if times > 1)
            raise UsageError(f"{self.label}: trial {again} is listed twice; keep one line for it")
        return speakers


def labels_of_array(label: str, values: object) -> Labels:
    """Whole numbers are columns from 0, texts are names."""
    array = names_or_numbers(values, label)
    if array.dtype.kind == "U":
        names = tuple(map(str, array.tolist()))
        check_names(label, {"speaker": set(names)})
        return Labels(label, names=names)
    return Labels(label, columns=np.array(array, np.int64))


def numbered(labels: Labels) -> Labels:
    """Name trials 0, 1 ... where labels are in their order; -1 is nobody."""
    if labels.trials:
        return labels
    columns = () if labels.columns is None else labels.columns.tolist()
    names = labels.names or tuple("" if own < 0 else str(own) for own in columns)
    trials = tuple(map(str, range(len(names))))
    return replace(labels, columns=None, names=names, trials=trials)


def labels_of_pairs(pairs: Pairs) -> Labels:
    """Return the speaker of every trial that has a target line."""
    speakers: dict[str, str] = {}
    several = ""
    for own, other in pairs.targets():
        trial, speaker = pairs.trials[own], pairs.speakers[other]
        if speakers.setdefault(trial, speaker) != speaker and not several:
            several = f"trial {trial} is a target of {speakers[trial]} and of {speaker}"
    if not speakers:
        raise UsageError(f"{pairs.label} has no target line; say who spoke in each trial")
    assert pairs.target is not None
    return Labels(
        pairs.label,
        names=tuple(speakers.values()),
        trials=tuple(speakers),
        listed=frozenset(pairs.trials),
        pairs=None if pairs.target.all() else pairs,
        several=several,
    )


def read_labels(path: Path) -> Labels:
    """Read labels of any form.

    A ``.npy`` of columns or names; a text with one name in each line, with ``trial speaker`` in
    each line (Kaldi's utt2spk), or a trial list (``speaker trial target|nontarget``). A header
    may name other orders.
    """
    kind = kind_of(path)
    if kind == "npy":
        return labels_of_array(path.name, array_at(path))
    if kind == "npz":
        raise UsageError(f"{path.name}: labels are a .npy of columns or names, or text; save it so")
    lines = Rows.at(path)
    width = len(lines.head)
    if width > 2:
        layout = layout_of(path)
        if layout.speaker is None:
            raise UsageError(
                f"{path.name}: labels are one speaker a line, trial and speaker, or a trial list "
                "of speaker, trial and target or nontarget"
            )
        target = layout.score if layout.target is None else layout.target
        return labels_of_pairs(read_pairs(replace(layout, score=None, target=target)))
    trial, speaker = role_of(lines.head, TRIAL), role_of(lines.head, SPEAKER | TARGET)
    header = trial is not None or speaker is not None
    shape = "a name" if width == 1 else "two names"
    rows = list(lines.read(header=header, shape=shape))
    if empty := next((number for number, row in rows if "" in row), None):
        raise lines.refuse(empty, f"is not {shape}: a cell is empty")
    columns = list(zip(*(row for _, row in rows), strict=True))
    for column in columns:
        check_names(path.name, {"speaker" if width == 1 else "trial or speaker": set(column)})
    if len(columns) < 2:
        return Labels(path.name, names=columns[0] if columns else ())
    if not header and len(set(columns[0])) < len(rows) == len(set(columns[1])):
        raise UsageError(
            f"{path.name}: names in its first column repeat, those in its second do not: write "
            "the header 'speaker trial' above it if it is turned, otherwise 'trial speaker'"
        )
    if trial is None:
        trial = 0 if speaker is None else 1 - speaker
    return Labels(path.name, names=columns[1 - trial], trials=columns[trial])


@dataclass(frozen=True)
class RawScores:
    """Contents of a file of scores (T, N), before anything is matched.

    Speakers are names of the columns and trials those of the rows, where they have any; labels say
    who spoke, where anybody does.
    """

    scores: AnyArray
    speakers: tuple[str, ...] = ()
    trials: tuple[str, ...] = ()
    labels: Labels | None = None
