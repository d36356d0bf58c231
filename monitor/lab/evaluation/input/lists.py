"""Reads lists: pairs of trial and speaker, labels of trials, and groups of speakers or trials.

The header names the columns; otherwise their number and kind do. A list without a header is
``speaker trial score [target]``, as Kaldi and ZEBRA write it. Numbers alone are a table.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
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
from monitor.safe_text import is_empty_cell, printable
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
    """Find the first column with a name of this role."""
    return next((i for i, name in enumerate(names) if name.lower() in role), None)


@dataclass(frozen=True)
class Layout:
    """Indices of columns in the rows of a text, and whether the first row is a header.

    A list has columns of trials, enrolled speakers, scores (not in a trial list) and targets. A
    table may have columns of trials and of their speakers; its other columns are `speakers`.
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
        f"the first line of {label} does not name the columns. Write a header: 'trial speaker "
        "score' (or target) for a list, or 'trial' and every speaker for a table. Separate by "
        "tabs, commas or blanks"
    )


@dataclass(frozen=True)
class Pairs:
    """The n lines of a list, and the label of its file in messages.

    Names of trials and speakers are in order of first appearance. Each line has an index of both, a
    score, and whether it is a target; None if the list has no such column. Names of a `numbered`
    list are numbers from 0.
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
    """Refuse a list without a header if its first column looks like trials."""
    if pairs.target is None:
        return
    of_trial, of_speaker = (
        np.bincount(numbers[pairs.target], minlength=1).max()
        for numbers in (pairs.trial, pairs.speaker)
    )
    if of_trial > 1 == of_speaker:
        rest = " target" if pairs.scores is None else " score target"
        raise UsageError(
            f"the first column of {pairs.label} looks like trials. Write the header 'trial "
            f"speaker{rest}' above it if trials come first, otherwise 'speaker trial{rest}'"
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
        raise UsageError(f"{label} has a target other than 1 and 0: write 0 for nontarget")
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
    """Contents of a file of labels, and its name in messages.

    Attributes:
        columns: column of each trial's speaker, from 0, shape (T,), or
        names: name of each trial's speaker.
        trials: names of the trials; may be empty.
        listed: all trials in a trial list.
        pairs: a trial list with nontarget pairs; only its pairs count.
        several: description of a trial that is a target of two models.
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
            raise UsageError(f"{self.label} lists trial {again} twice; keep one line")
        return speakers


def labels_of_array(label: str, values: object) -> Labels:
    """Convert an array of columns from 0, or of names."""
    array = names_or_numbers(values, label)
    if array.dtype.kind == "U":
        names = tuple(map(str, array.tolist()))
        check_names(label, {"speaker": set(names)})
        return Labels(label, names=names)
    return Labels(label, columns=np.array(array, np.int64))


def numbered(labels: Labels) -> Labels:
    """Name unnamed trials 0, 1 ...; column -1 means an unknown speaker."""
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
        raise UsageError(f"{pairs.label} has no target line; add the speaker of each trial")
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

    A ``.npy`` of columns or names, or text with lines of ``speaker``, ``trial speaker`` (Kaldi's
    utt2spk), or ``speaker trial target|nontarget`` (a trial list). A header may change the order.
    """
    kind = kind_of(path)
    if kind == "npy":
        return labels_of_array(path.name, array_at(path))
    if kind == "npz":
        raise UsageError(f"{path.name} is an archive: save labels as .npy or text")
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
            f"only the first column of {path.name} repeats names. Write the header 'speaker trial' "
            "above it if speakers come first, otherwise 'trial speaker'"
        )
    if trial is None:
        trial = 0 if speaker is None else 1 - speaker
    return Labels(path.name, names=columns[1 - trial], trials=columns[trial])


@dataclass(frozen=True)
class RawScores:
    """Contents of a file of scores (T, N), with names of columns and rows, and labels, if any."""

    scores: AnyArray
    speakers: tuple[str, ...] = ()
    trials: tuple[str, ...] = ()
    labels: Labels | None = None


_KEYS = SPEAKER | TRIAL | {"id", "name", "reader"}
_ATTRIBUTES_MOST = 20
_LENGTHS = frozenset({"seconds", "length", "duration"})
_EDGES = (1, 2, 5, 10, 20, 40)


@dataclass(frozen=True)
class Attribute:
    """An attribute of speakers by name, or of trials, and the label of its file."""

    label: str
    name: str
    of: Mapping[str, str]

    @property
    def values(self) -> tuple[str, ...]:
        """The groups, in the order of their names."""
        return tuple(sorted(set(self.of.values())))


def read_attribute(path: Path, column: str | None = None) -> Attribute:
    """Read ``speaker attribute`` lines (Kaldi's spk2gender), or a column of a table."""
    rows = Rows.at(path)
    header = column is not None or len(rows.head) > 2 or rows.head[0].lower() in _KEYS
    return _read_column(rows, *_find_columns(rows, column), True) if header else _read_column(rows)


def read_conditions(path: Path) -> tuple[Attribute, ...]:
    """Read ``trial condition`` lines, or a table with a column per condition.

    A column called seconds, length or duration is grouped into ranges.
    """
    rows = Rows.at(path)
    if len(rows.head) < 2:
        raise UsageError(f"{path.name}: give a trial and its condition a line")
    if len(rows.head) == 2 and rows.head[0].lower() not in _KEYS:
        return (replace(_read_column(rows), name="condition"),)
    key = role_of(rows.head, _KEYS) or 0
    names = {name: i for i, name in enumerate(rows.head) if i != key}
    if len(names) < len(rows.head) - 1:
        raise UsageError(f"{path.name}: two columns have one name")
    return tuple(
        _read_column(rows, key, i, True, _length_range if name.lower() in _LENGTHS else str)
        for name, i in names.items()
    )


def _read_column(
    rows: Rows, key: int = 0, value: int = 1, header: bool = False, of: Callable[[str], str] = str
) -> Attribute:
    """Read one column of groups, converted by `of`."""
    groups: dict[str, str] = {}
    for number, row in rows.read(header=header, width=max(len(rows.head), 2)):
        try:
            group = "" if is_empty_cell(row[value]) else of(row[value])
        except UsageError as error:
            raise rows.refuse(number, str(error)) from None
        if group and (known := groups.setdefault(row[key], group)) != group:
            raise rows.refuse(
                number, f"{row[key]} is {known} on one line and {group} on another; keep one"
            )
    label = rows.path.name
    attribute = Attribute(label, rows.head[value] if header else "", groups)
    if len(attribute.values) > _ATTRIBUTES_MOST:
        raise UsageError(
            f"{label} has {len(attribute.values)} groups, more than {_ATTRIBUTES_MOST}: give "
            "ranges instead of numbers, or choose another column"
        )
    return attribute


def _find_columns(rows: Rows, column: str | None) -> tuple[int, int]:
    """Find the column of names and that of the attribute, below a header."""
    key = role_of(rows.head, _KEYS) or 0
    others = [name for i, name in enumerate(rows.head) if i != key]
    if column is None and len(others) == 1:
        return key, 1 - key
    listed = printable(", ".join(others))
    if column is None:
        raise UsageError(f"{rows.path.name} has {listed}: choose one with --group-by")
    if column not in others:
        raise UsageError(f"{rows.path.name} has no column {column!r}, but {listed}")
    return key, rows.head.index(column)


def _length_range(text: str) -> str:
    try:
        seconds = float(text)
    except ValueError:
        raise UsageError(f"{text!r} is no length in seconds") from None
    if not 0 <= seconds < float("inf"):
        raise UsageError(f"{text!r} is no length in seconds")
    above = sum(seconds >= edge for edge in _EDGES)
    if above == 0:
        return f"below {_EDGES[0]} s"
    if above == len(_EDGES):
        return f"{_EDGES[-1]} s and more"
    return f"{_EDGES[above - 1]} to {_EDGES[above]} s"
