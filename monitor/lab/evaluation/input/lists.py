"""Reads lists of pairs of a trial and an enrolled speaker: their scores, and which are targets."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import numpy as np

from monitor.arrays import names_or_numbers
from monitor.errors import UsageError
from monitor.lab.evaluation.input.files import (
    Progress,
    Rows,
    array_at,
    check_names,
    count_lines,
    is_number,
    kind_of,
)
from monitor.lab.evaluation.memory import refuse_beyond_memory
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray

TRIAL = frozenset(
    {"trial", "trial_id", "test", "test_id", "utterance", "utt", "utt_id", "segment", "segmentid"}
)
SPEAKER = frozenset(
    {"speaker", "speaker_id", "spk", "model", "modelid", "model_id"}
    | {"enrolment", "enrollment", "enrolled", "enrol", "enroll", "enrol_id", "enroll_id"}
)
SCORE = frozenset({"score", "scores", "similarity", "llr"})
TARGET = frozenset({"target", "label", "labels", "key", "targettype", "true_speaker"})
WORDS = {
    **dict.fromkeys(("target", "tgt", "true", "1", "mated"), True),
    **dict.fromkeys(("nontarget", "non-target", "imp", "false", "0", "non-mated"), False),
}
"""Words of a trial list, and whether they mark a target."""


def role_of(names: Sequence[str], role: Collection[str]) -> int | None:
    """Find the first column that is called so."""
    return next((i for i, name in enumerate(names) if name.lower() in role), None)


@dataclass(frozen=True)
class Layout:
    """Indices of columns in the rows of a text, and whether the first is a header.

    Of a list those of trial names, enrolled speakers, scores (a trial list has none), and of what
    says whether a pair is a target; of a table that of trial names and of who spoke, where it has
    them, and the speakers that all others are called after.
    """

    rows: Rows
    header: bool
    trial: int | None = None
    speaker: int | None = None
    score: int | None = None
    target: int | None = None
    speakers: tuple[str, ...] = ()


def layout_of(path: Path) -> Layout:
    """Lay out a list or a table, which has no column of speakers, by its first line."""
    rows = Rows.at(path)
    names, width, label = rows.head, len(rows.head), path.name
    trial, speaker, score, target = (
        role_of(names, role) for role in (TRIAL, SPEAKER, SCORE, TARGET)
    )
    if trial is not None and speaker is not None and (score is not None or target is not None):
        return Layout(rows, True, trial, speaker, score, target)
    if trial is None and not names[0]:
        trial = 0  # of a table
    if trial is not None and speaker is None and score is None:
        speakers = tuple(name for i, name in enumerate(names) if i not in (trial, target))
        if "" not in speakers:
            return Layout(rows, True, trial, target=target, speakers=speakers)
    elif all(map(is_number, names)):
        if not (width == 3 and names[0].isdecimal() and names[1].isdecimal()):
            return Layout(rows, False)
    elif rows.separator != "," and width in (3, 4) and trial is None and speaker is None:
        if names[2].lower() in WORDS and not is_number(names[2]):
            return Layout(rows, False, 1, 0, None, 2)
        return Layout(rows, False, 1, 0, 2, 3 if width == 4 else None)
    if rows.has_decimal_commas:
        raise UsageError(f"the first line of {label} has decimal commas: use decimal points")
    if rows.separator is not None and not names[-1]:
        raise UsageError(
            f"lines of {label} end with a separator: remove it, or name the last column"
        )
    raise UsageError(
        f"{label}: its first line does not say which column is which: write a header above it, "
        "'trial speaker score' (or target) for a list, 'trial' and every speaker for a table, "
        "separated by tabs, commas or blanks"
    )


@dataclass(frozen=True)
class Pairs:
    """The lines of a list, as they were written, and how messages call the file.

    Names of trials and speakers are in the order of their first appearance; shape (n,): the index
    of those of each line, its score, and whether both are one person, None where the list does not
    say. It is numbered where names are numbers from 0.
    """

    label: str
    trials: tuple[str, ...]
    speakers: tuple[str, ...]
    trial: IntArray
    speaker: IntArray
    scores: FloatArray | None
    target: BoolArray | None
    numbered: bool = False

    @property
    def codes(self) -> IntArray:
        """A number of each line, equal for equal pairs, ascending by trial: shape (n,)."""
        return self.trial.astype(np.int64) * len(self.speakers) + self.speaker

    def take(self, rows: AnyArray) -> Pairs:
        """Take lines by their indices, or by a mask."""
        return replace(
            self, trial=self.trial[rows], speaker=self.speaker[rows],
            scores=None if self.scores is None else self.scores[rows],
            target=None if self.target is None else self.target[rows],
        )  # fmt: skip

    def without_empty(self) -> Pairs:
        """Drop trials and speakers without any line."""
        trial, trials = _compact(self.trial, self.trials)
        speaker, speakers = _compact(self.speaker, self.speakers)
        return replace(self, trial=trial, trials=trials, speaker=speaker, speakers=speakers)

    def by_trial(self) -> Pairs:
        """Sort lines trial after trial, those of a trial as they came."""
        if (self.trial[1:] >= self.trial[:-1]).all():
            return self
        return self.take(np.argsort(self.trial, kind="stable"))

    def targets(self) -> list[tuple[int, int]]:
        """Return trial and speaker of each target line."""
        which = self.target
        assert which is not None
        return list(zip(self.trial[which].tolist(), self.speaker[which].tolist(), strict=True))


def _compact(numbers: IntArray, names: tuple[str, ...]) -> tuple[IntArray, tuple[str, ...]]:
    present = np.bincount(numbers, minlength=len(names)) > 0
    if present.all():
        return numbers, names
    places = np.cumsum(present, dtype=np.int32) - np.int32(1)
    return places[numbers], tuple(names[i] for i in np.flatnonzero(present).tolist())


def read_pairs(layout: Layout, progress: Progress | None = None) -> Pairs:
    """Read a list of pairs.

    Raises:
        UsageError: a line makes no sense, or the list does not fit in memory.
    """
    rows, label = layout.rows, layout.rows.path.name
    trial_at, speaker_at, score_at, target_at = (
        layout.trial, layout.speaker, layout.score, layout.target,
    )  # fmt: skip
    assert trial_at is not None
    assert speaker_at is not None
    refuse_beyond_memory(label, count_lines(rows.path))
    trials, speakers = (defaultdict[str, int](count().__next__) for _ in range(2))
    trial, speaker, scores, target = array("i"), array("i"), array("d"), array("b")
    for number, row in rows.read(header=layout.header, progress=progress):
        trial.append(trials[row[trial_at]])  # a new name is a new number
        speaker.append(speakers[row[speaker_at]])
        try:
            if score_at is not None:
                scores.append(float(row[score_at]))
            if target_at is not None:
                target.append(WORDS[row[target_at].lower()])
        except ValueError:
            raise rows.refuse_number(number, [row[score_at or 0]], "score", _ORDER) from None
        except KeyError:
            raise rows.refuse(
                number,
                f"{row[target_at or 0]!r} is neither target nor nontarget: write these words, or "
                "1 and 0",
            ) from None
    if not trial:
        raise UsageError(f"{label} has no line of data")
    if "" in trials or "" in speakers:
        raise UsageError(f"{label}: a trial or a speaker has no name")
    check_names(label, {"trial": trials.keys(), "speaker": speakers.keys()})
    pairs = Pairs(
        label, tuple(trials), tuple(speakers), np.frombuffer(trial, np.intc),
        np.frombuffer(speaker, np.intc), np.frombuffer(scores) if scores else None,
        np.frombuffer(target, np.bool_) if target else None,
    )  # fmt: skip
    if not layout.header:
        _check_order(pairs)
    return pairs


_ORDER = "without a header, columns are speaker, trial and score"


def _check_order(pairs: Pairs) -> None:
    """Refuse a list without a header whose targets look as if trials came first."""
    if pairs.target is None:
        return
    of_trial, of_speaker = (
        np.bincount(numbers[pairs.target], minlength=1).max()
        for numbers in (pairs.trial, pairs.speaker)
    )
    if of_trial > 1 == of_speaker:
        rest = " target" if pairs.scores is None else " score target"
        raise UsageError(
            f"{pairs.label}: no name in its first column has two targets, some in its second "
            f"have: write the header 'trial speaker{rest}' above it if trials come first, "
            f"otherwise 'speaker trial{rest}'"
        )


def pairs_of_records(label: str, records: AnyArray) -> Pairs:
    """Read a list from records, shape (n,): trials and speakers are numbers.

    Fields are called as columns of a text are.
    """
    names = list(records.dtype.names or ())
    at = [role_of(names, role) for role in (TRIAL, SPEAKER, SCORE, TARGET)]
    columns = [None if i is None else records[names[i]] for i in at]
    kinds = [
        column.dtype.kind if column is not None and column.ndim == 1 else "" for column in columns
    ]
    allowed = ("i", "u"), ("i", "u"), ("f", "i", "u"), ("", "b", "i", "u")
    if not len(records) or any(k not in kind for k, kind in zip(kinds, allowed, strict=True)):
        raise UsageError(
            f"{label} holds {len(records)} records of {records.dtype}; those of a list are trial "
            "and speaker, numbers from 0, score, and perhaps target, in one row"
        )
    refuse_beyond_memory(label, len(records))
    trial, speaker, scores, target = (
        None if column is None else np.array(column) for column in columns
    )
    assert trial is not None
    assert speaker is not None
    if target is not None and not np.isin(target, (0, 1)).all():
        raise UsageError(f"{label}: a target is neither 1 nor 0: write 0 of nontarget")
    is_target = None if target is None else target != 0
    trials, speakers = _names_up_to(label, trial), _names_up_to(label, speaker)
    pairs = Pairs(label, trials, speakers, trial, speaker, scores, is_target, numbered=True)
    return pairs.without_empty()


def _names_up_to(label: str, numbers: IntArray) -> tuple[str, ...]:
    low, high = int(numbers.min()), int(numbers.max())
    if low < 0 or high > max(10 * len(numbers), 1 << 20):
        raise UsageError(
            f"{label} numbers trials or speakers from {low} to {high}: number them from 0, without "
            "wide gaps"
        )
    return tuple(map(str, range(high + 1)))


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
