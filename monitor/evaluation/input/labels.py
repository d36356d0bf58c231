"""Reads who spoke in each trial: columns, names in order, or names by trial."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path

import numpy as np

from monitor.errors import UsageError
from monitor.evaluation.input.files import (
    array_at,
    arrays_at,
    fields,
    kind_of,
    separator_of,
    text_chunks,
)
from monitor.evaluation.input.layout import SPEAKER, TARGET, TRIAL, WORDS, layout_of
from monitor.evaluation.input.pairs import Pairs, read_pairs
from monitor.types import AnyArray, IntArray

__all__ = ["Labels", "labels_of_array", "labels_of_pairs", "read_labels"]


@dataclass(frozen=True)
class Labels:
    """What a file of labels says.

    Attributes:
        label: how messages call it.
        columns: shape (T,), the column of each trial's speaker, from 0.
        names: the speaker of each trial, in the order of the trials.
        trials: the name of each trial in that order, where the file has them.
        known: all trials a trial list speaks of, those without a target among them.
        pairs: the trial list itself, where it lists nontarget pairs too: then no others count.
        several: a trial that is a target of two models, in words, where there is one.
    """

    label: str
    columns: IntArray | None = None
    names: tuple[str, ...] = ()
    trials: tuple[str, ...] = ()
    known: frozenset[str] = field(default=frozenset())
    pairs: Pairs | None = None
    several: str = ""

    def by_trial(self) -> Mapping[str, str]:
        """Speaker by trial.

        Raises:
            UsageError: a trial comes twice.
        """
        found = dict(zip(self.trials, self.names, strict=True))
        if len(found) < len(self.trials):
            again = next(name for name, times in Counter(self.trials).items() if times > 1)
            raise UsageError(f"{self.label}: trial {again} is listed twice; keep one line for it")
        return found


def labels_of_array(label: str, values: AnyArray) -> Labels:
    """Whole numbers are columns from 0, texts are names.

    Raises:
        UsageError: they are neither.
    """
    if values.ndim != 1 or values.dtype.kind not in "iuU":
        raise UsageError(
            f"{label}: labels are whole numbers (columns from 0) or names, one for each trial, "
            f"not {values.dtype} of shape {values.shape}"
        )
    if values.dtype.kind == "U":
        return Labels(label, names=tuple(map(str, values.tolist())))
    return Labels(label, columns=np.array(values, np.int64))


def labels_of_pairs(pairs: Pairs) -> Labels:
    """The speaker of every trial that has a target line.

    Raises:
        UsageError: a trial has two speakers, or none has any.
    """
    spoken, several = pairs.true_speakers()
    assert pairs.target is not None
    return Labels(
        pairs.label,
        names=tuple(spoken.values()),
        trials=tuple(spoken),
        known=frozenset(pairs.trials),
        pairs=None if pairs.target.all() else pairs,
        several=several,
    )


def read_labels(path: Path, trials: Sequence[str] = ()) -> Labels:
    """Read labels of any form.

    A ``.npy`` of columns or names; a text with one name in each line, with ``trial speaker`` in
    each line (Kaldi's utt2spk), or a trial list (``speaker trial target|nontarget``).

    Args:
        path: the file.
        trials: names of the trials, where they are known: they tell the columns apart.

    Raises:
        UsageError: its content makes no sense.
        StoreError: it cannot be read.
    """
    kind = kind_of(path)
    if kind == "npy":
        return labels_of_array(path.name, array_at(path))
    if kind == "npz":
        arrays = arrays_at(path)
        name = next((name for name in ("target", "labels") if name in arrays), None)
        if name is None:
            raise UsageError(f"{path.name} has neither target nor labels in it")
        return labels_of_array(path.name, arrays[name])
    lines = (line for chunk in text_chunks(path) for line in chunk if line.strip())
    first, second = [*islice(lines, 2), "", ""][:2]
    if not first:
        raise UsageError(f"{path.name} is empty")
    separator = separator_of(first)
    width = len(fields(first, separator))
    if width > 2:
        return _trial_list(path, first, second)
    rest = chain([first, second], lines)
    rows = [fields(line, separator) for line in rest if line]
    wrong = [row for row in rows if len(row) != width or "" in row]
    if wrong:
        raise UsageError(
            f"{path.name}: {' '.join(wrong[0])!r} is not {'a name' if width == 1 else 'two names'}"
        )
    if width == 1:
        names = [row[0] for row in rows]
        if names[0].lower() in SPEAKER | TARGET:
            del names[0]
        return Labels(path.name, names=tuple(names))
    at = _trial_column(rows, trials)
    if rows[0][at].lower() in TRIAL or rows[0][1 - at].lower() in SPEAKER | TARGET:
        del rows[0]
    return Labels(
        path.name,
        names=tuple(row[1 - at] for row in rows),
        trials=tuple(row[at] for row in rows),
    )


def _trial_column(rows: list[list[str]], trials: Sequence[str]) -> int:
    """Which of two columns names the trials.

    By header, else by the names, else the one that repeats itself less, else the first.
    """
    for at in (0, 1):
        if rows[0][at].lower() in TRIAL or rows[0][1 - at].lower() in SPEAKER | TARGET:
            return at
    columns = [[row[at] for row in rows] for at in (0, 1)]
    known = set(trials)
    first, second = (
        sum(name in known for name in names) if known else len(set(names)) for names in columns
    )
    return int(second > first)


def _trial_list(path: Path, first: str, second: str) -> Labels:
    layout = layout_of(path.name, first, second)
    if not layout.list:
        raise UsageError(
            f"{path.name}: labels are one speaker a line, trial and speaker, or a trial list of "
            "speaker, trial and target or nontarget"
        )
    target = layout.target
    if target is None:  # 1 and 0 stand where a score would
        values = fields(second or first, layout.separator)
        target = layout.score
        if target is None or target >= len(values) or values[target].lower() not in WORDS:
            raise UsageError(f"{path.name} has scores in it; give the trial list as labels")
    return labels_of_pairs(read_pairs(path, replace(layout, score=None, target=target)).settled())
