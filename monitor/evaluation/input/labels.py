"""Reads who spoke in each trial, and lists of pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, repeat
from pathlib import Path

import numpy as np

from monitor.errors import UsageError
from monitor.evaluation.input.files import (
    SPEAKER,
    TARGET,
    TRIAL,
    WORDS,
    Layout,
    Progress,
    array_at,
    arrays_at,
    fields,
    first_lines,
    kind_of,
    layout_of,
    natural,
    scratch,
    separator_of,
    text_chunks,
    to_number,
)
from monitor.phrases import plural
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray

# ------------------------------------------------------------------------------------------- pairs


@dataclass(frozen=True)
class Pairs:
    """The lines of a list, as they were written, and how messages call the file.

    Names of trials and speakers are in the order of their first appearance; shape (n,): the index
    of those of each line, its score, and whether both are one person, None where the list does not
    say. It is certain where it says which is the trial and which the speaker.
    """

    label: str
    trials: tuple[str, ...]
    speakers: tuple[str, ...]
    trial: IntArray
    speaker: IntArray
    scores: FloatArray | None
    target: BoolArray | None
    certain: bool

    def swapped(self) -> Pairs:
        """Trials taken for speakers and the other way round."""
        return replace(
            self, trials=self.speakers, speakers=self.trials, trial=self.speaker,
            speaker=self.trial,
        )  # fmt: skip

    def only(self, which: BoolArray) -> Pairs:
        """Some of the lines, shape (n,), and no trial or speaker without any."""
        trials, trial = np.unique(self.trial[which], return_inverse=True)
        speakers, speaker = np.unique(self.speaker[which], return_inverse=True)
        return replace(
            self,
            trials=tuple(self.trials[i] for i in trials.tolist()),
            speakers=tuple(self.speakers[i] for i in speakers.tolist()),
            trial=trial.ravel(),
            speaker=speaker.ravel(),
            scores=None if self.scores is None else self.scores[which],
            target=None if self.target is None else self.target[which],
        )

    def codes(self) -> IntArray:
        """A number for each line, equal where trial and speaker are: shape (n,)."""
        return self.trial * len(self.speakers) + self.speaker

    def settled(self) -> Pairs:
        """The same, turned where the target lines show that it must be.

        A trial has one speaker, and a speaker may have many trials.
        """
        if self.certain or self.target is None:
            return self
        of_trial = np.bincount(self.trial[self.target], minlength=1).max()
        of_speaker = np.bincount(self.speaker[self.target], minlength=1).max()
        return self.swapped() if of_trial > 1 == of_speaker else self

    def true_speakers(self) -> tuple[dict[str, str], str]:
        """The first speaker of each trial with a target line, and a trial with several, in words.

        Raises:
            UsageError: no trial has any.
        """
        assert self.target is not None
        rows = np.flatnonzero(self.target)
        if not rows.size:
            raise UsageError(f"{self.label} has no target line; say who spoke in each trial")
        found: dict[str, str] = {}
        several = ""
        for row in rows.tolist():
            trial = self.trials[self.trial[row]]
            speaker = self.speakers[self.speaker[row]]
            if found.setdefault(trial, speaker) != speaker:
                several = several or f"trial {trial} is a target of {found[trial]} and of {speaker}"
        return found, several


def read_pairs(path: Path, layout: Layout, progress: Progress | None = None) -> Pairs:
    """Read a list of pairs.

    Raises:
        UsageError: a line has too few columns, a score is no number, a word is unknown.
    """
    indices: tuple[dict[str, int], dict[str, int]] = ({}, {})
    codes: tuple[list[IntArray], list[IntArray]] = ([], [])
    scores, target = [], []
    assert layout.trial is not None
    assert layout.speaker is not None
    begin = 0
    for lines in text_chunks(path, progress):
        columns = _columns(lines, layout, path.name, begin)
        if begin == 0 and layout.header:
            columns = [column[1:] for column in columns]
        begin += len(lines)
        if not columns or not columns[0]:
            continue
        for index, kept, place in zip(indices, codes, (layout.trial, layout.speaker), strict=True):
            kept.append(_coded(columns[place], index))
        if layout.score is not None:
            scores.append(_numbers(path.name, columns[layout.score]))
        if layout.target is not None:
            target.append(_words(path.name, columns[layout.target]))
    if not indices[0]:
        raise UsageError(f"{path.name} has no line of data")
    for index in indices:
        if "" in index:
            raise UsageError(f"{path.name}: a trial or a speaker has no name")
    return Pairs(
        path.name,
        tuple(indices[0]),
        tuple(indices[1]),
        np.concatenate(codes[0]),
        np.concatenate(codes[1]),
        np.concatenate(scores) if scores else None,
        np.concatenate(target) if target else None,
        layout.certain,
    )


def _columns(lines: list[str], layout: Layout, label: str, begin: int) -> Sequence[Sequence[str]]:
    """The columns of every line that is not blank; blanks around a field do no harm."""
    width, separator, text = layout.width, layout.separator, "".join(lines)
    plain = '"' not in text
    # one split of many lines is several times faster than a split of each
    if separator is None:
        flat = text.split()
        even = len(flat) == width * len(lines) and all(map(str.startswith, lines, flat[::width]))
    else:
        even = set(map(str.count, lines, repeat(separator))) == {width - 1}
        flat = text.rstrip("\n").replace("\n", separator).split(separator) if plain and even else []
    if plain and even:
        return [flat[i::width] for i in range(width)]
    rows = [fields(line, separator) if line.strip() else [] for line in lines]
    for i, row in enumerate(rows):
        if len(row) not in (0, width):
            raise UsageError(
                f"{label} line {begin + i + 1}: has {plural(len(row), 'column')} where the "
                f"first line has {width}"
            )
    return list(zip(*filter(None, rows), strict=True))


def _coded(names: Sequence[str], index: dict[str, int]) -> IntArray:
    """Each name as its number; new ones are added to the index."""
    code = {name: index.setdefault(name.strip(), len(index)) for name in dict.fromkeys(names)}
    return np.fromiter(map(code.__getitem__, names), np.intp, len(names))


def _numbers(label: str, texts: Sequence[str]) -> FloatArray:
    try:
        read = to_number if any("," in text for text in texts) else float
        return np.fromiter(map(read, texts), np.float64, len(texts))
    except ValueError as error:
        raise UsageError(f"{label}: a score is no number ({error})") from None


def _words(label: str, texts: Sequence[str]) -> BoolArray:
    words: dict[str, bool] = {}
    for word in dict.fromkeys(texts):
        known = WORDS.get(word.strip().lower())
        if known is None:
            raise UsageError(f"{label}: {word.strip()!r} is neither target nor nontarget")
        words[word] = known
    return np.fromiter(map(words.__getitem__, texts), bool, len(texts))


# ------------------------------------------------------------------------------------------ labels


@dataclass(frozen=True)
class Labels:
    """What a file of labels says, and how messages call it.

    Attributes:
        columns: shape (T,), the column of each trial's speaker, from 0.
        names, trials: the speaker of each trial, in their order, and its name, where there are any.
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
    each line (Kaldi's utt2spk), or a trial list (``speaker trial target|nontarget``). Names of the
    trials, where they are known, tell the columns apart.

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
    first, second = first_lines(path)
    separator = separator_of(first)
    width = len(fields(first, separator))
    if width > 2:
        return _trial_list(path, first, second)
    lines = (line for chunk in text_chunks(path) for line in chunk if line.strip())
    rows = [fields(line, separator) for line in lines]
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
        path.name, names=tuple(row[1 - at] for row in rows), trials=tuple(row[at] for row in rows)
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


# ----------------------------------------------------------------------------------------- targets


@dataclass(frozen=True)
class RawScores:
    """What a file of scores (T, N) says, before anything fits together.

    Speakers are names of the columns and trials those of the rows, where they have any; labels say
    who spoke, where anybody does.
    """

    scores: AnyArray
    speakers: tuple[str, ...] = ()
    trials: tuple[str, ...] = ()
    labels: Labels | None = None


def targets(
    raw: RawScores, labels: Labels, label: str, notes: list[str]
) -> tuple[IntArray, tuple[str, ...], Sequence[str]]:
    """The column of each trial, the names of the columns, and who spoke.

    Shape (T,), -1 where the speaker is not among the columns; N names, or none; the name of each
    trial's speaker, empty where nobody says, or no names at all. What a person should know of the
    scores, as messages call them, is added to the notes.

    Raises:
        UsageError: labels and scores do not fit together.
    """
    trials, count = raw.scores.shape
    if raw.speakers and len(raw.speakers) != count:
        raise UsageError(f"{label}: {len(raw.speakers)} names for {plural(count, 'column')}")
    if labels.several:
        raise UsageError(
            f"{labels.label}: {labels.several}; say whose enrolments they are, or give the scores "
            "as a list of pairs"
        )
    names = _in_order(raw, labels, label, notes)
    said = trials if names and raw.trials and labels.trials else len(names)
    if labels.columns is not None:
        said = len(labels.columns)
    if said != trials:
        turned = f"; {label} may be turned, trials are its rows" if said == count else ""
        raise UsageError(
            f"{labels.label} has {plural(said, 'label')} for the {plural(trials, 'trial')} "
            f"of {label}{turned}"
        )
    columns, speakers = labels.columns, raw.speakers
    if columns is None and not speakers:
        columns, speakers = _numbered(names, count, label, labels.label, notes)
    if columns is not None:
        outside = np.flatnonzero((columns < 0) | (columns >= count))
        if outside.size:
            i = int(outside[0])
            raise UsageError(
                f"{labels.label}: label {columns[i]} of trial {i + 1} is no column; they go from "
                f"0 to {count - 1}"
            )
        return columns, speakers, ()
    index = {name: i for i, name in enumerate(speakers)}
    if len(index) < count:
        again = next(name for i, name in enumerate(speakers) if index[name] != i)
        raise UsageError(f"{label}: speaker {again} has two columns; merge them")
    return np.fromiter((index.get(n, -1) for n in names), np.intp, len(names)), speakers, names


def _in_order(raw: RawScores, labels: Labels, label: str, notes: list[str]) -> Sequence[str]:
    """The speaker of each trial, in the order of the trials; empty where nobody is enrolled."""
    if labels.known and not raw.trials:
        raise UsageError(
            f"{label} names no trial, so {labels.label} cannot be matched with its rows: give one "
            "speaker for each row, in their order"
        )
    if labels.trials and not raw.trials:
        notes.append(f"rows have no names: labels are taken in the order of {labels.label}")
    if not (raw.trials and labels.trials):
        return labels.names
    found = labels.by_trial()
    known = labels.known or found.keys()
    missing = [name for name in raw.trials if name not in known]
    if missing:
        raise UsageError(
            f"{labels.label} does not say who spoke in {len(missing)} of {len(raw.trials)} trials "
            f"(first: {missing[0]}); add them"
        )
    if len(set(raw.trials)) < len(raw.trials):
        seen = sorted(raw.trials)
        again = next(a for a, b in pairwise(seen) if a == b)
        raise UsageError(f"trial {again} has two rows of scores; keep one")
    spare = len(known) - len(raw.trials)
    if spare:
        notes.append(f"{labels.label} speaks of {plural(spare, 'trial')} without a score")
    return [found.get(name, "") for name in raw.trials]


def _numbered(
    names: Sequence[str], count: int, label: str, source: str, notes: list[str]
) -> tuple[IntArray, tuple[str, ...]]:
    """Columns without names: numbers of columns, or exactly as many names in their order."""
    if all(name.isdecimal() and len(name) < len(str(count)) + 1 for name in names):
        columns = np.array([int(name) for name in names], np.int64)
        if columns.max(initial=0) < count:
            return columns, ()
    order = sorted(set(names))
    if len(order) != count:
        raise UsageError(
            f"{label} names no column and {source} has {plural(len(order), 'speaker')} for "
            f"its {count} columns: give column numbers from 0, or a table with a header"
        )
    if order != sorted(order, key=natural):
        raise UsageError(
            f"{label} names no column, and the speakers of {source} sort differently as numbers "
            "and as words: give column numbers from 0, or a table with a header"
        )
    notes.append(f"columns have no names: taken for {order[0]} to {order[-1]}, in this order")
    index = {name: i for i, name in enumerate(order)}
    return np.fromiter((index[name] for name in names), np.int64, len(names)), tuple(order)


# ------------------------------------------------------------------------------------------ models

SCORINGS = ("average", "max")
"""How several enrolments of one speaker are compared with a trial."""

_BLOCK = 1 << 20


def owners_of(models: Sequence[str], labels: Labels, given: Labels | None) -> tuple[str, ...]:
    """The speaker of each enrolled model: as given, or as labels of the trials say as well.

    Raises:
        UsageError: one is not among those given.
    """
    if given is not None and given.trials:
        known = given.by_trial()
        missing = [name for name in models if name not in known]
        if missing:
            raise UsageError(
                f"{given.label} does not say whose {len(missing)} of {len(models)} enrolments are "
                f"(first: {missing[0]}); add them"
            )
        return tuple(known[name] for name in models)
    if given is not None:
        if len(given.names) != len(models):
            raise UsageError(
                f"{given.label} names {plural(len(given.names), 'speaker')} for "
                f"{len(models)} enrolments"
            )
        return given.names
    if labels.known or not labels.trials:  # a trial list, or no names of trials
        return tuple(models)
    said = dict(zip(labels.trials, labels.names, strict=True))
    utterances = said.keys() - set(labels.names)
    return tuple(said[name] for name in models) if utterances >= set(models) else tuple(models)


def merged_note(models: int, speakers: int, scoring: str) -> str:
    """What was done with several enrolments."""
    how = "the mean of" if scoring == "average" else "the largest of"
    return f"{models} enrolments of {speakers} speakers: a speaker's score is {how} theirs"


def merged_columns(
    scores: AnyArray, owners: Sequence[str], scoring: str
) -> tuple[AnyArray, tuple[str, ...]]:
    """A matrix of trials x enrolments as one of trials x speakers, whose names are in their order.

    Example:
        >>> made, names = merged_columns(np.array([[0.25, 0.75, 0.5]]), ["a", "a", "b"], "max")
        >>> made.tolist(), names
        ([[0.75, 0.5]], ('a', 'b'))
    """
    speakers = tuple(sorted(set(owners), key=natural))
    place = {name: i for i, name in enumerate(speakers)}
    owner = np.array([place[name] for name in owners])
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], np.arange(len(speakers)))
    many = np.diff(starts, append=len(owner))
    made = scratch((len(scores), len(speakers)))
    step = max(1, _BLOCK // len(owner))
    for first in range(0, len(scores), step):
        block = np.asarray(scores[first : first + step], dtype=np.float64)[:, order]
        made[first : first + step] = (
            np.maximum.reduceat(block, starts, axis=1)
            if scoring == "max"
            else np.add.reduceat(block, starts, axis=1) / many
        )
    return made, speakers
