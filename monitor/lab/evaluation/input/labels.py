"""Reads who spoke in each trial, and lists of pairs."""

from __future__ import annotations

import io
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress, count, pairwise
from pathlib import Path

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
    count_true,
    fields,
    first_line,
    kind_of,
    layout_of,
    natural,
    parts,
    release,
    renumber,
    role_of,
    rows_of,
    scratch,
    separator_of,
    take_where,
    tally,
    text_blocks,
    text_chunks,
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
    def columns(self) -> dict[str, AnyArray]:
        """Columns that there are of each line, by field."""
        every = {key: getattr(self, key) for key in ("trial", "speaker", "scores", "target")}
        return {key: column for key, column in every.items() if column is not None}

    def _with_columns(self, columns: Mapping[str, AnyArray]) -> Pairs:
        return replace(
            self, trial=columns["trial"], speaker=columns["speaker"],
            scores=columns.get("scores"), target=columns.get("target"),
        )  # fmt: skip

    def only(self, which: BoolArray) -> Pairs:
        """Select lines, shape (n,), and drop trials and speakers without any."""
        columns = self.columns
        selected = take_where(which.__getitem__, count_true(which), *columns.values())
        return self._with_columns(dict(zip(columns, selected, strict=True))).without_empty()

    def without_empty(self) -> Pairs:
        """Drop trials and speakers without any line."""
        trial, trials = _compact(self.trial, self.trials)
        speaker, speakers = _compact(self.speaker, self.speakers)
        return replace(self, trial=trial, trials=trials, speaker=speaker, speakers=speakers)

    def by_trial(self) -> Pairs:
        """Sort lines trial after trial, those of a trial as they came."""
        if _ascending(self.trial):
            return self
        starts = starts_of(self.trial, len(self.trials))
        edges = whole_trials(starts)
        columns = self.columns
        sorted_columns: dict[str, AnyArray] = {
            key: scratch(c.shape, c.dtype) for key, c in columns.items()
        }
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
                    rows = moved[cuts[at] : cuts[at] + sizes[at]]
                    sorted_columns[key][ends[at] : ends[at] + sizes[at]] = rows
                release(sorted_columns[key])
            ends += sizes
        for first, last in pairwise(edges.tolist()):
            order = np.argsort(sorted_columns["trial"][first:last], kind="stable")
            for into in sorted_columns.values():
                into[first:last] = into[first:last][order]
            release(*sorted_columns.values())
        return self._with_columns(sorted_columns)

    def true_speakers(self) -> tuple[dict[str, str], str]:
        """Return the first speaker of each trial with targets, and a trial with several."""
        assert self.target is not None
        true_speakers: dict[str, str] = {}
        several = ""
        for own, other in zip(*self.targets(), strict=True):
            trial, speaker = self.trials[own], self.speakers[other]
            if true_speakers.setdefault(trial, speaker) != speaker:
                several = (
                    several
                    or f"trial {trial} is a target of {true_speakers[trial]} and of {speaker}"
                )
        if not true_speakers:
            raise UsageError(f"{self.label} has no target line; say who spoke in each trial")
        return true_speakers, several

    def targets(self) -> tuple[list[int], list[int]]:
        """Return trials and speakers of the target lines."""
        assert self.target is not None
        columns = take_where(
            self.target.__getitem__, count_true(self.target), self.trial, self.speaker
        )
        trial, speaker = (column.tolist() for column in columns)
        return trial, speaker


def _compact(numbers: IntArray, names: tuple[str, ...]) -> tuple[IntArray, tuple[str, ...]]:
    present = tally(numbers, len(names)) > 0
    if present.all():
        return numbers, names
    return renumber(numbers, np.cumsum(present) - 1), tuple(compress(names, present.tolist()))


def _ascending(numbers: IntArray) -> bool:
    last = -1
    for part in parts(numbers):
        block = numbers[part]
        if block[0] < last or (block[1:] < block[:-1]).any():
            return False
        last = int(block[-1])
    return True


def starts_of(trial: IntArray, trials: int) -> IntArray:
    """Return where the lines of each of T trials begin, and of one after: (T + 1,)."""
    return np.concatenate([[0], np.cumsum(tally(trial, trials))])


def whole_trials(starts: IntArray) -> IntArray:
    """Return where to cut lists into pieces of about `PART` lines, never within a trial.

    Of `starts`, (T + 1,): where the first piece begins, and where each of them ends.
    """
    first = np.flatnonzero(np.diff(starts[:-1] // files.PART, prepend=-1))
    return np.unique([*starts[first], starts[-1]])


def read_pairs(path: Path, layout: Layout, progress: Progress | None = None) -> Pairs:
    """Read a list of pairs: the text is never held whole."""
    assert layout.trial is not None
    assert layout.speaker is not None
    most = (count_lines(path),)
    index: list[defaultdict[str, int]] = [
        defaultdict(count().__next__)
        for _ in range(2)  # a new name is a new number
    ]
    numbers = [scratch(most, np.int32) for _ in index]
    scores = None if layout.score is None else scratch(most)
    target = None if layout.target is None else scratch(most, np.bool_)
    held = [column for column in (*numbers, scores, target) if column is not None]
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
            release(*held)
    if not done:
        raise UsageError(f"{path.name} has no line of data")
    if any("" in names for names in index):
        raise UsageError(f"{path.name}: a trial or a speaker has no name")
    pairs = Pairs(
        path.name,
        tuple(index[0]),
        tuple(index[1]),
        numbers[0][:done],
        numbers[1][:done],
        None if scores is None else scores[:done],
        None if target is None else target[:done],
    )
    if not layout.header:
        _check_order(pairs)
    return pairs


def _check_order(pairs: Pairs) -> None:
    """Refuse a list without a header whose targets look as if trials came first."""
    if pairs.target is None:
        return
    of_trial = tally(pairs.trial, len(pairs.trials), pairs.target).max()
    of_speaker = tally(pairs.speaker, len(pairs.speakers), pairs.target).max()
    if of_trial > 1 == of_speaker:
        rest = " target" if pairs.scores is None else " score target"
        raise UsageError(
            f"{pairs.label}: no name in its first column has two targets, some in its second "
            f"have: write the header 'trial speaker{rest}' above it if trials come first, else "
            f"'speaker trial{rest}'"
        )


def pairs_of_records(label: str, records: AnyArray) -> Pairs:
    """Read a list from records, mapped or not, shape (n,): trials and speakers are numbers.

    Fields are called as columns of a text are.
    """
    names = list(records.dtype.names or ())
    at = [role_of(names, role) for role in (TRIAL, SPEAKER, SCORE, TARGET)]
    columns = [None if i is None else records[names[i]] for i in at]
    trial, speaker, scores, target = columns
    kinds = [
        column.dtype.kind if column is not None and column.ndim == 1 else "" for column in columns
    ]
    right = kinds[0] in tuple("iu") and kinds[1] in tuple("iu") and kinds[2] in tuple("fiu")
    if not (right and kinds[3] in ("", *"biu")) or not len(records):
        raise UsageError(
            f"{label} holds {len(records)} records of {records.dtype}; those of a list are trial "
            "and speaker, numbers from 0, score, and perhaps target, in one row"
        )
    assert trial is not None
    assert speaker is not None
    is_target = None
    if target is not None:
        is_target = scratch(target.shape, np.bool_)
        for part in parts(target, is_target):
            is_target[part] = target[part] != 0
            if np.any((target[part] != 0) & (target[part] != 1)):
                raise UsageError(f"{label}: a target is neither 1 nor 0: write 0 of nontarget")
    trials, speakers = _names_up_to(label, trial), _names_up_to(label, speaker)
    pairs = Pairs(label, trials, speakers, trial, speaker, scores, is_target, numbered=True)
    return pairs.without_empty()


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
    """Split every line that is not blank into columns, beside the numbers of these lines."""
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
    numbers = np.empty(len(texts))
    for i, text in enumerate(texts):
        try:
            numbers[i] = float(text)
        except ValueError as error:
            raise UsageError(
                f"{label} line {lines[i]}: a score is no number ({error}): decimals follow a "
                "point, and without a header columns are speaker, trial and score"
            ) from None
    return numbers


def _words(label: str, texts: Sequence[str], lines: Sequence[int]) -> BoolArray:
    words: dict[str, bool] = {}
    for word in dict.fromkeys(texts):
        is_target = WORDS.get(word.strip().lower())
        if is_target is None:
            raise UsageError(
                f"{label} line {lines[texts.index(word)]}: {word.strip()!r} is neither target nor "
                "nontarget: write these words, or 1 and 0"
            )
        words[word] = is_target
    return np.fromiter(map(words.__getitem__, texts), bool, len(texts))


# ------------------------------------------------------------------------------------------ labels


@dataclass(frozen=True)
class Labels:
    """Contents of a file of labels, and how messages call it.

    Attributes:
        columns: shape (T,), the column of each trial's speaker, from 0.
        names, trials: the speaker of each trial, in their order, and its name, where there are any.
        listed: all trials a trial list speaks of, those without a target among them.
        pairs: the trial list itself, where it lists nontarget pairs too: then no others count.
        several: a trial that is a target of two models, in words, where there is one.
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


def labels_of_array(label: str, values: AnyArray) -> Labels:
    """Whole numbers are columns from 0, texts are names."""
    if values.ndim != 1 or values.dtype.kind not in "iuU":
        raise UsageError(
            f"{label}: labels are whole numbers (columns from 0) or names, one for each trial, "
            f"not {values.dtype} of shape {values.shape}"
        )
    if values.dtype.kind == "U":
        return Labels(label, names=tuple(map(str, values.tolist())))
    return Labels(label, columns=np.array(values, np.int64))


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
    spoken, several = pairs.true_speakers()
    assert pairs.target is not None
    return Labels(
        pairs.label,
        names=tuple(spoken.values()),
        trials=tuple(spoken),
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
        arrays = arrays_at(path)
        name = next((name for name in ("target", "labels") if name in arrays), None)
        if name is None:
            raise UsageError(f"{path.name} has neither target nor labels in it")
        return labels_of_array(path.name, arrays[name])
    first = first_line(path)
    separator = separator_of(first)
    head = fields(first, separator)
    if len(head) > 2:
        layout = layout_of(path.name, first)
        if not layout.list:
            raise UsageError(
                f"{path.name}: labels are one speaker a line, trial and speaker, or a trial list "
                "of speaker, trial and target or nontarget"
            )
        target = layout.score if layout.target is None else layout.target
        return labels_of_pairs(read_pairs(path, replace(layout, score=None, target=target)))
    trial, speaker = role_of(head, TRIAL), role_of(head, SPEAKER | TARGET)
    header = trial is not None or speaker is not None
    lines = (line for chunk in text_chunks(path) for line in chunk if line.strip())
    rows = [fields(line, separator) for line in lines][header:]
    for row in rows:
        if len(row) != len(head) or "" in row:
            shape = "a name" if len(head) == 1 else "two names"
            raise UsageError(f"{path.name}: {' '.join(row)!r} is not {shape}")
    columns = list(zip(*rows, strict=True))
    if len(columns) < 2:
        return Labels(path.name, names=columns[0] if columns else ())
    if not header and len(set(columns[0])) < len(rows) == len(set(columns[1])):
        raise UsageError(
            f"{path.name}: names in its first column repeat, those in its second do not: write "
            f"the header 'speaker trial' above it if it is turned, else 'trial speaker'"
        )
    if trial is None:
        trial = 0 if speaker is None else 1 - speaker
    return Labels(path.name, names=columns[1 - trial], trials=columns[trial])


# ----------------------------------------------------------------------------------------- targets


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


def targets(
    raw: RawScores, labels: Labels, label: str, notes: list[str]
) -> tuple[IntArray, tuple[str, ...], Sequence[str]]:
    """Return the column of each trial, the names of the columns, and who spoke.

    Shape (T,), -1 where the speaker is not among the columns; N names, or none; the name of each
    trial's speaker, empty where nobody says, or no names at all. What a person should know of the
    scores, as messages call them, is added to the notes.
    """
    trials, count = raw.scores.shape
    if raw.speakers and len(raw.speakers) != count:
        raise UsageError(f"{label}: {len(raw.speakers)} names for {plural(count, 'column')}")
    if labels.several:
        raise UsageError(
            f"{labels.label}: {labels.several}; say whose enrolments they are, or give the scores "
            "as a list of pairs"
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
    columns, speakers = labels.columns, raw.speakers
    if columns is None and not speakers:
        columns, speakers = _name_columns(names, count, label, labels.label, notes)
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


def _order_speakers(raw: RawScores, labels: Labels, label: str, notes: list[str]) -> Sequence[str]:
    """Return the speaker of each trial, in their order; empty where nobody is enrolled."""
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
    missing = [name for name in raw.trials if name not in listed_trials]
    if missing:
        raise UsageError(
            f"{labels.label} does not say who spoke in {len(missing)} of {len(raw.trials)} trials "
            f"(first: {missing[0]}); add them"
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
    for similar in alike.values():
        if similar != sorted(similar, key=lambda name: [*map(int, _DIGITS.findall(name))]):
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


def find_owners(
    models: Sequence[str], labels: Labels, owner_labels: Labels | None
) -> tuple[str, ...]:
    """Find the speaker of each enrolled model: as given, or as labels of the trials say."""
    if owner_labels is not None and owner_labels.trials:
        owners = owner_labels.by_trial()
        missing = [name for name in models if name not in owners]
        if missing:
            raise UsageError(
                f"{owner_labels.label} does not say whose {len(missing)} of {len(models)} "
                "enrolments are "
                f"(first: {missing[0]}); add them"
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


def describe_merge(models: int, speakers: int, scoring: str) -> str:
    """Describe how several enrolments were merged."""
    how = "the mean of" if scoring == "average" else "the largest of"
    return f"{models} enrolments of {speakers} speakers: a speaker's score is {how} theirs"


def merge_columns(
    scores: AnyArray, owners: Sequence[str], scoring: str
) -> tuple[AnyArray, tuple[str, ...]]:
    """Merge columns of enrolments into one for each speaker, in the order of names."""
    speakers = tuple(sorted(set(owners), key=natural))
    place = {name: i for i, name in enumerate(speakers)}
    owner = np.array([place[name] for name in owners])
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
