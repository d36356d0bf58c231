"""Reads who spoke in each trial, and lists of pairs."""

from __future__ import annotations

import io
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from monitor.errors import UsageError
from monitor.lab.evaluation.input import files
from monitor.lab.evaluation.input.files import (
    SCORE,
    SPEAKER,
    TARGET,
    TRIAL,
    WORDS,
    Layout,
    Progress,
    array_at,
    arrays_at,
    count_lines,
    fields,
    first_lines,
    kind_of,
    layout_of,
    many,
    natural,
    parts,
    release,
    renumbered,
    role_of,
    rows_of,
    scratch,
    separator_of,
    taken,
    tally,
    text_blocks,
    text_chunks,
    to_number,
)
from monitor.phrases import plural
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray

_DIGITS = re.compile(r"[0-9]{1,4000}")  # no number that Python refuses to read

# ------------------------------------------------------------------------------------------- pairs


@dataclass(frozen=True)
class Pairs:
    """The lines of a list, as they were written, and how messages call the file.

    Names of trials and speakers are in the order of their first appearance; shape (n,): the index
    of those of each line, its score, and whether both are one person, None where the list does not
    say. It is certain where it says which is the trial and which the speaker, and numbered where
    names are numbers from 0.
    """

    label: str
    trials: tuple[str, ...]
    speakers: tuple[str, ...]
    trial: IntArray
    speaker: IntArray
    scores: FloatArray | None
    target: BoolArray | None
    certain: bool
    numbered: bool = False

    def swapped(self) -> Pairs:
        """Trials taken for speakers and the other way round."""
        return replace(
            self, trials=self.speakers, speakers=self.trials, trial=self.speaker,
            speaker=self.trial,
        )  # fmt: skip

    @property
    def columns(self) -> dict[str, Any]:
        """What there is of each line."""
        every = {key: getattr(self, key) for key in ("trial", "speaker", "scores", "target")}
        return {key: column for key, column in every.items() if column is not None}

    def only(self, which: BoolArray) -> Pairs:
        """Some of the lines, shape (n,), and no trial or speaker without any."""
        columns = self.columns
        made: dict[str, Any] = dict(
            zip(columns, taken(which.__getitem__, many(which), *columns.values()), strict=True)
        )
        return replace(self, **made).without_empty()

    def without_empty(self) -> Pairs:
        """The same, and no trial or speaker without any line."""
        given: dict[str, Any] = {}
        for name, names in (("trial", self.trials), ("speaker", self.speakers)):
            there = tally(getattr(self, name), len(names)) > 0
            if not there.all():
                given[name] = renumbered(getattr(self, name), np.cumsum(there) - 1)
                given[name + "s"] = tuple(itertools.compress(names, there.tolist()))
        return replace(self, **given)

    def settled(self) -> Pairs:
        """The same, turned where the target lines show that it must be.

        A trial has one speaker, and a speaker may have many trials.
        """
        if self.certain or self.target is None:
            return self
        of_trial = tally(self.trial, len(self.trials), self.target).max()
        of_speaker = tally(self.speaker, len(self.speakers), self.target).max()
        return self.swapped() if of_trial > 1 == of_speaker else self

    def by_trial(self) -> Pairs:
        """The same, the lines of each trial together and as they came, trial after trial."""
        if _ascending(self.trial):
            return self
        starts = starts_of(self.trial, len(self.trials))
        edges = whole_trials(starts)
        columns = self.columns
        made: dict[str, Any] = {key: scratch(c.shape, c.dtype) for key, c in columns.items()}
        heap = np.searchsorted(edges, starts[:-1], "right") - 1  # of each trial
        ends = edges[:-1].copy()
        for part in parts(*columns.values()):
            which = heap[self.trial[part]]
            order = np.argsort(which, kind="stable")
            sizes = np.bincount(which, minlength=len(ends))
            cuts = np.cumsum(sizes) - sizes
            for key, column in columns.items():
                moved = column[part][order]
                for at in np.flatnonzero(sizes).tolist():
                    some = moved[cuts[at] : cuts[at] + sizes[at]]
                    made[key][ends[at] : ends[at] + sizes[at]] = some
                release(made[key])
            ends += sizes
        for first, last in pairwise(edges.tolist()):
            order = np.argsort(made["trial"][first:last], kind="stable")
            for into in made.values():
                into[first:last] = into[first:last][order]
            release(*made.values())
        return replace(self, **made)

    def true_speakers(self) -> tuple[dict[str, str], str]:
        """The first speaker of each trial with a target line, and a trial with several, in words.

        Raises:
            UsageError: no trial has any.
        """
        assert self.target is not None
        found: dict[str, str] = {}
        several = ""
        for own, other in zip(*self.targets(), strict=True):
            trial, speaker = self.trials[own], self.speakers[other]
            if found.setdefault(trial, speaker) != speaker:
                several = several or f"trial {trial} is a target of {found[trial]} and of {speaker}"
        if not found:
            raise UsageError(f"{self.label} has no target line; say who spoke in each trial")
        return found, several

    def targets(self) -> tuple[list[int], list[int]]:
        """Trials and speakers of the target lines."""
        assert self.target is not None
        found = taken(self.target.__getitem__, many(self.target), self.trial, self.speaker)
        trial, speaker = (each.tolist() for each in found)
        return trial, speaker


def _ascending(numbers: IntArray) -> bool:
    last = -1
    for part in parts(numbers):
        some = numbers[part]
        if some[0] < last or (some[1:] < some[:-1]).any():
            return False
        last = int(some[-1])
    return True


def starts_of(trial: IntArray, trials: int) -> IntArray:
    """Where the lines of each of T trials begin, trial after trial, and of one after: (T + 1,)."""
    return np.concatenate([[0], np.cumsum(tally(trial, trials))])


def whole_trials(starts: IntArray) -> IntArray:
    """Where lists are cut into pieces of about `PART` lines, each with all lines of its trials.

    Of `starts`, (T + 1,): where the first piece begins, and where each of them ends.
    """
    first = np.flatnonzero(np.diff(starts[:-1] // files.PART, prepend=-1))
    return np.unique([*starts[first], starts[-1]])


def read_pairs(path: Path, layout: Layout, progress: Progress | None = None) -> Pairs:
    """Read a list of pairs: the text is never held whole.

    Raises:
        UsageError: a line has too few columns, a score is no number, a word is unknown.
    """
    assert layout.trial is not None
    assert layout.speaker is not None
    most = (count_lines(path),)
    index: list[defaultdict[str, int]] = [
        defaultdict(itertools.count().__next__)
        for _ in range(2)  # a new name is a new number
    ]
    numbers = [scratch(most, np.int32) for _ in index]
    scores = None if layout.score is None else scratch(most)
    target = None if layout.target is None else scratch(most, np.bool_)
    kept = [column for column in (*numbers, scores, target) if column is not None]
    done = begin = 0
    header = layout.header
    for block in text_blocks(path, progress):
        columns, lines = _columns(block, layout, path.name, begin)
        begin += block.count("\n")
        if header and lines:
            columns, lines, header = [column[1:] for column in columns], lines[1:], False
        if not lines:
            continue
        part = slice(done, done + len(lines))
        for names, into, place in zip(index, numbers, (layout.trial, layout.speaker), strict=True):
            into[part] = np.fromiter(map(names.__getitem__, columns[place]), np.int32, len(lines))
        if scores is not None and layout.score is not None:
            scores[part] = _numbers(path.name, columns[layout.score], lines)
        if target is not None and layout.target is not None:
            target[part] = _words(path.name, columns[layout.target], lines)
        done = part.stop
        if done // files.PART > part.start // files.PART:
            release(*kept)
    if not done:
        raise UsageError(f"{path.name} has no line of data")
    if any("" in names for names in index):
        raise UsageError(f"{path.name}: a trial or a speaker has no name")
    return Pairs(
        path.name,
        tuple(index[0]),
        tuple(index[1]),
        numbers[0][:done],
        numbers[1][:done],
        None if scores is None else scores[:done],
        None if target is None else target[:done],
        layout.certain,
    )


def pairs_of_records(label: str, records: AnyArray) -> Pairs:
    """A list as an array of records, mapped or not, shape (n,): trials and speakers are numbers.

    Fields are called as columns of a text are.

    Raises:
        UsageError: there is no such field, or what is in it is no number from 0.

    Example:
        >>> kinds = [("trial", "<i4"), ("speaker", "<i4"), ("score", "<f4")]
        >>> made = pairs_of_records("mine", np.array([(0, 0, 0.5), (0, 2, 0.25)], kinds))
        >>> made.trials, made.speakers, made.speaker.tolist()
        (('0',), ('0', '2'), [0, 1])
    """
    names = list(records.dtype.names or ())
    at = [role_of(names, role) for role in (TRIAL, SPEAKER, SCORE, TARGET)]
    found = [None if i is None else records[names[i]] for i in at]
    trial, speaker, scores, target = found
    kinds = [each.dtype.kind if each is not None and each.ndim == 1 else "" for each in found]
    right = kinds[0] in tuple("iu") and kinds[1] in tuple("iu") and kinds[2] in tuple("fiu")
    if not (right and kinds[3] in ("", *"biu")) or not len(records):
        raise UsageError(
            f"{label} holds {len(records)} records of {records.dtype}; those of a list are trial "
            "and speaker, numbers from 0, score, and perhaps target, in one row"
        )
    assert trial is not None
    assert speaker is not None
    said = None
    if target is not None:
        said = scratch(target.shape, np.bool_)
        for part in parts(target, said):
            said[part] = target[part] != 0
            if np.any((target[part] != 0) & (target[part] != 1)):
                raise UsageError(f"{label}: a target is neither 1 nor 0: write 0 of nontarget")
    trials, speakers = _names_up_to(label, trial), _names_up_to(label, speaker)
    made = Pairs(label, trials, speakers, trial, speaker, scores, said, True, numbered=True)
    return made.without_empty()


def _names_up_to(label: str, numbers: IntArray) -> tuple[str, ...]:
    ends = [(int(numbers[part].min()), int(numbers[part].max())) for part in parts(numbers)]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    if low < 0 or high > max(10 * len(numbers), 1 << 20):
        raise UsageError(
            f"{label} numbers trials or speakers from {low} to {high}: number them from 0, without "
            "wide gaps"
        )
    return tuple(map(str, range(high + 1)))


def _columns(
    block: str, layout: Layout, label: str, begin: int
) -> tuple[Sequence[Sequence[str]], Sequence[int]]:
    """The columns of every line that is not blank, and the numbers of these lines."""
    width, separator = layout.width, layout.separator
    if '"' not in block:  # one split of many lines is several times faster than a split of each
        block += "" if block.endswith("\n") else "\n"
        flat = block.replace("\n", f"{separator or ' '}\0{separator or ' '}").split(separator)
        lines = block.count("\n")
        ends = flat[width :: width + 1]
        even = len(flat) == lines * (width + 1) + (separator is not None)
        if even and ends.count("\0") == lines:
            columns = [flat[i : lines * (width + 1) : width + 1] for i in range(width)]
            blanks = (blank in block for blank in " \t\v\f" if blank != separator)
            if separator is not None and (not block.isascii() or any(blanks)):
                columns = [list(map(str.strip, column)) for column in columns]
            return columns, range(begin + 1, begin + lines + 1)
    rows = list(rows_of(io.StringIO(block).readlines(), layout, label, begin))
    return list(zip(*(row for _, row in rows), strict=True)), [number for number, _ in rows]


def _numbers(label: str, texts: Sequence[str], lines: Sequence[int]) -> FloatArray:
    try:
        return np.fromiter(map(float, texts), np.float64, len(texts))
    except ValueError:  # decimal commas, or no numbers
        made = np.empty(len(texts))
    for i, (text, line) in enumerate(zip(texts, lines, strict=True)):
        try:
            made[i] = to_number(text)
        except ValueError as error:
            raise UsageError(f"{label} line {line}: a score is no number ({error})") from None
    return made


def _words(label: str, texts: Sequence[str], lines: Sequence[int]) -> BoolArray:
    words: dict[str, bool] = {}
    for word in dict.fromkeys(texts):
        known = WORDS.get(word.strip().lower())
        if known is None:
            raise UsageError(
                f"{label} line {lines[texts.index(word)]}: {word.strip()!r} is neither target nor "
                "nontarget: write these words, or 1 and 0"
            )
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


def numbered(labels: Labels) -> Labels:
    """Labels in the order of trials as those of trials that are called 0, 1 ...; -1 is nobody."""
    if labels.trials:
        return labels
    columns = () if labels.columns is None else labels.columns.tolist()
    names = labels.names or tuple("" if own < 0 else str(own) for own in columns)
    trials = tuple(map(str, range(len(names))))
    return replace(labels, columns=None, names=names, trials=trials)


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
    width, third = len(fields(first, separator)), "".join(first.split()[2:])
    if width > 2 or (third.lower() in WORDS and not third.isdecimal()):  # tabs among other blanks
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
        word = "" if target is None or target >= len(values) else values[target]
        if word.lower() not in WORDS:
            raise UsageError(
                f"{path.name}: {word!r} is neither target nor nontarget: give a trial list with "
                "these words, or 1 and 0, as labels"
            )
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
    alike: dict[str, list[str]] = {}  # names that differ by their numbers alone
    for name in order:
        alike.setdefault(_DIGITS.sub("0", name), []).append(name)
    for some in alike.values():
        if some != sorted(some, key=lambda name: [*map(int, _DIGITS.findall(name))]):
            raise UsageError(
                f"{label} names no column, and the speakers of {source} sort differently as "
                "numbers and as words: give column numbers from 0, or a table with a header"
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
