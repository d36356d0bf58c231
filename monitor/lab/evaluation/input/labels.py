"""Reads who spoke in each trial, and lists of pairs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from pathlib import Path

import numpy as np

from monitor.arrays import names_or_numbers
from monitor.errors import UsageError
from monitor.lab.evaluation.comparisons import ScoreList
from monitor.lab.evaluation.input.files import (
    SPEAKER,
    TARGET,
    TRIAL,
    Pairs,
    array_at,
    check_names,
    count_true,
    describe_width,
    fields,
    first_line,
    kind_of,
    layout_of,
    natural,
    parts,
    read_pairs,
    release,
    renumber,
    role_of,
    scratch,
    separator_of,
    starts_of,
    text_lines,
    whole_trials,
)
from monitor.phrases import plural
from monitor.safe_text import is_empty_cell, printable
from monitor.types import AnyArray, IntArray

_COLUMN, _DIGITS = re.compile("[0-9]{1,9}"), re.compile("[0-9]+")


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
        check_names(label, "speaker", set(names))
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
    rows = [fields(line, separator) for _, line in text_lines(path)][header:]
    for row in rows:
        if len(row) != len(head) or "" in row:
            shape = "a name" if len(head) == 1 else "two names"
            raise UsageError(f"{path.name}: {' '.join(row)!r} is not {shape}")
    columns = list(zip(*rows, strict=True))
    for column in columns:
        check_names(path.name, "speaker" if len(columns) == 1 else "trial or speaker", set(column))
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
    check_names(f"{label} and {labels.label}", "speaker", {*raw.speakers, *names})
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
    check_names(f"{label} and {labels.label}", "trial", {*raw.trials, *listed_trials})
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
            f"{label} names no column, and the speakers of {source} sort differently as "
            "numbers and as words: give column numbers from 0, or a table with a header"
        )
    notes.append(f"columns have no names: taken for {order[0]} to {order[-1]}, in this order")
    index = {name: i for i, name in enumerate(order)}
    return np.array([index[name] for name in names], np.int64), tuple(order)


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
                f"enrolments are (first: {missing[0]}); add them"
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


_KEYS = SPEAKER | TRIAL | {"id", "name", "reader"}


_ATTRIBUTES_MOST = 20


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


def read_attribute(
    path: Path, column: str | None = None, of: Callable[[str], str] = str
) -> Attribute:
    r"""Read ``speaker attribute`` lines (Kaldi's spk2gender), or a column of a table.

    The column need not be named where there is but one. Groups are `of` what stands there.
    """
    if kind_of(path) != "text":
        raise UsageError(f"{path.name}: groups are text, a speaker and its group a line")
    first = first_line(path)
    separator = separator_of(first)
    head = fields(first, separator)
    header = column is not None or len(head) > 2 or head[0].lower() in _KEYS
    key, value = _attribute_columns(path, head, column) if header else (0, 1)
    groups: dict[str, str] = {}
    for number, line in islice(text_lines(path), header, None):
        row = fields(line, separator)
        if len(row) != len(head) or len(row) < 2:
            raise UsageError(f"{path.name} line {number}: {describe_width(row, max(len(head), 2))}")
        try:
            group = "" if is_empty_cell(row[value]) else of(row[value])
        except UsageError as error:
            raise UsageError(f"{path.name} line {number}: {error}") from None
        if group and groups.setdefault(row[key], group) != group:
            raise UsageError(
                f"{path.name}: {row[key]} is {groups[row[key]]} on one line and {group} on "
                "another; keep one"
            )
    attribute = Attribute(path.name, head[value] if header else "", groups)
    if len(attribute.values) > _ATTRIBUTES_MOST:
        raise UsageError(
            f"{path.name} has {len(attribute.values)} groups, more than {_ATTRIBUTES_MOST}: give "
            "ranges instead of numbers, or choose another column"
        )
    return attribute


_LENGTHS = frozenset({"seconds", "length", "duration"})


_EDGES = (1, 2, 5, 10, 20, 40)


def read_conditions(path: Path) -> tuple[Attribute, ...]:
    r"""Read the conditions of trials: a trial and its condition a line, or a table with a header.

    Every column beside the trial's is a condition; one called seconds, length or duration falls
    into ranges.
    """
    if kind_of(path) != "text":
        raise UsageError(f"{path.name}: conditions are text, a trial and its condition a line")
    first = first_line(path)
    head = fields(first, separator_of(first))
    if len(head) < 2:
        raise UsageError(f"{path.name}: give a trial and its condition a line")
    if len(head) == 2 and head[0].lower() not in _KEYS:
        return (replace(read_attribute(path), name="condition"),)
    key = role_of(head, frozenset(_KEYS)) or 0
    names = [name for i, name in enumerate(head) if i != key]
    if len(set(names)) < len(names):
        raise UsageError(f"{path.name}: two columns have one name")
    return tuple(
        read_attribute(path, name, _length_range if name.lower() in _LENGTHS else str)
        for name in names
    )


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


def _attribute_columns(path: Path, head: list[str], column: str | None) -> tuple[int, int]:
    """Find the column of speaker names and that of the attribute."""
    key = role_of(head, frozenset(_KEYS))
    key = 0 if key is None else key
    others = [name for i, name in enumerate(head) if i != key]
    if column is None and len(others) == 1:
        return key, 1 - key
    if column is None:
        raise UsageError(
            f"{path.name} has {printable(', '.join(others))}: choose one with --group-by"
        )
    if column not in others:
        raise UsageError(
            f"{path.name} has no column {column!r}, but {printable(', '.join(others))}"
        )
    return key, head.index(column)


def label_pairs(
    pairs: Pairs, labels: Labels, notes: list[str], models: Labels | None, scoring: str
) -> ScoreList:
    """Bring scores and labels together, some trials at a time; notes gain what one should know.

    Where labels list target and nontarget pairs, these alone count. Models say whose each enrolled
    model is, where speakers have several, whose scores become one.
    """
    key, within = labels.pairs, labels.pairs is pairs
    pairs = pairs.by_trial()
    _check(pairs)
    if key is not None and not within:
        pairs = _by_key(pairs, key, notes)
    whose = find_owners(pairs.speakers, labels, models)
    speakers = tuple(sorted(set(whose), key=natural))
    speaker = renumber(pairs.speaker, _places(whose, speakers))
    pairs = replace(pairs, speakers=speakers, speaker=speaker)
    names = list(pairs.trials)  # of people whom nobody names
    if key is None:
        nothing = np.broadcast_to(0.0, (len(pairs.trials), len(speakers)))
        raw = RawScores(nothing, speakers, pairs.trials)
        target, _, spoken = targets(raw, labels, pairs.label, notes)
        mated = scratch(pairs.trial.shape, np.bool_)
        for part in parts(pairs.trial, pairs.speaker, mated):
            mated[part] = pairs.speaker[part] == target[pairs.trial[part]]
        pairs = replace(pairs, target=mated)
        for i, column in enumerate(target.tolist()):
            speaker_name = spoken[i] if spoken else ""
            names[i] = speakers[column] if column >= 0 else speaker_name or names[i]
    else:
        for i, column in reversed(pairs.targets()):
            names[i] = speakers[column]
    if len(speakers) < len(whose):
        notes.append(describe_merge(len(whose), len(speakers), scoring))
        pairs = _merge(pairs, scoring)
    people = tuple(dict.fromkeys(names))
    spoken_by = _places(names, people)
    assert pairs.scores is not None
    assert pairs.target is not None
    return ScoreList(
        pairs.scores, pairs.target, pairs.trial, pairs.speaker, spoken_by, speakers, people,
        pairs.trials,
    )  # fmt: skip


def _codes(pairs: Pairs, part: slice, speakers: int) -> IntArray:
    """Number some lines, equal for equal pairs among so many speakers."""
    return pairs.trial[part].astype(np.int64) * speakers + pairs.speaker[part]


def _pieces(pairs: Pairs) -> Iterator[tuple[slice, IntArray]]:
    """Whole trials, some at a time, and the codes of their lines."""
    edges = whole_trials(starts_of(pairs.trial, len(pairs.trials)))
    for first, last in pairwise(edges.tolist()):
        part = slice(first, last)
        yield part, _codes(pairs, part, len(pairs.speakers))
        release(*pairs.columns.values())


def _check(pairs: Pairs) -> None:
    assert pairs.scores is not None
    again, twice = "", 0
    for part, codes in _pieces(pairs):

        def pair(row: int, first: int = part.start) -> str:
            trial, speaker = pairs.trial[first + row], pairs.speaker[first + row]
            return f"trial {pairs.trials[trial]} with speaker {pairs.speakers[speaker]}"

        good = np.isfinite(pairs.scores[part])
        if not good.all():
            raise UsageError(
                f"{pairs.label}: the score of {pair(int(np.argmin(good)))} is not a finite number: "
                "drop that trial"
            )
        ordered = np.sort(codes)
        repeats = int(np.count_nonzero(ordered[1:] == ordered[:-1]))
        if repeats and not twice:
            later = np.ones(codes.size, bool)
            later[np.unique(codes, return_index=True)[1]] = False
            again = pair(int(np.argmax(later)))
        twice += repeats
    if twice:
        raise UsageError(
            f"{pairs.label}: {again} is listed twice "
            f"({plural(twice, 'line')} too many); keep one score for each pair"
        )


def _by_key(pairs: Pairs, key: Pairs, notes: list[str]) -> Pairs:
    """Select the lines that a trial list has, with their targets; both go trial by trial."""
    assert key.target is not None
    trials, speakers = (
        {name: i for i, name in enumerate(names)} for names in (pairs.trials, pairs.speakers)
    )
    # names of the list alone come after those of the scores
    places = [
        np.array([index.setdefault(name, len(index)) for name in names])
        for index, names in ((trials, key.trials), (speakers, key.speakers))
    ]
    for role, merged in (("trial", trials), ("speaker", speakers)):
        check_names(f"{pairs.label} and {key.label}", role, merged)
    numbers = renumber(key.trial, places[0]), renumber(key.speaker, places[1])
    key = replace(
        key, trials=tuple(trials), speakers=tuple(speakers), trial=numbers[0], speaker=numbers[1]
    ).by_trial()
    assert key.target is not None
    both = [starts_of(side.trial, len(trials)) for side in (pairs, key)]
    is_kept, target = scratch((2, len(pairs.trial)), np.bool_)
    distinct = targets = 0
    edges = np.searchsorted(both[0] + both[1], whole_trials(both[0] + both[1]))
    for first, last in pairwise(edges.tolist()):
        part, key_part = (slice(*side[[first, last]].tolist()) for side in both)
        codes, key_codes = (
            _codes(side, block, len(speakers)) for side, block in ((pairs, part), (key, key_part))
        )
        order = np.argsort(key_codes, kind="stable")
        listed, at = np.unique(key_codes[order], return_index=True)
        distinct += listed.size
        if not listed.size:
            continue
        hits = np.add.reduceat(key.target[key_part][order].astype(np.intp), at)
        if ((hits > 0) & (hits < np.diff(at, append=key_codes.size))).any():
            raise UsageError(f"{key.label}: a pair is a target on one line and not on another")
        targets += int(np.count_nonzero(hits))
        at = np.minimum(np.searchsorted(listed, codes), listed.size - 1)
        is_kept[part] = listed[at] == codes
        target[part] = is_kept[part] & (hits[at] > 0)
        release(pairs.trial, pairs.speaker, key.trial, key.speaker, is_kept, target)
    count = count_true(is_kept)
    if not count:
        raise UsageError(f"{key.label} has none of the pairs of {pairs.label}; check the names")
    if left := len(is_kept) - count:
        notes.append(f"{left} of {len(is_kept)} scored pairs are not in {key.label}: left out")
    if distinct > count:
        lost = targets - count_true(target)
        notes.append(
            f"{distinct - count} of {plural(distinct, 'pair')} of {key.label} have no score"
            + f", {lost} of them targets, which are neither hit nor miss" * bool(lost)
        )
    pairs = replace(pairs, target=target)
    return pairs.only(is_kept) if left else pairs


def _places(names: Sequence[str], among: Sequence[str]) -> IntArray:
    """Return the index of each name among others, -1 where it is not."""
    place = {name: i for i, name in enumerate(among)}
    return np.array([place.get(name, -1) for name in names], dtype=np.intp)


def _merge(pairs: Pairs, scoring: str) -> Pairs:
    """Merge scores into one for each trial and speaker."""
    assert pairs.scores is not None
    assert pairs.target is not None
    size = pairs.trial.shape
    trial, speaker = scratch(size, np.int32), scratch(size, np.int32)
    scores, target = scratch(size), scratch(size, np.bool_)
    done = 0
    for part, every in _pieces(pairs):
        codes, cell, many = np.unique(every, return_inverse=True, return_counts=True)
        into = slice(done, done := done + codes.size)
        if scoring == "max":
            scores[into] = -np.inf
            np.maximum.at(scores[into], cell, pairs.scores[part])
        else:
            scores[into] = np.bincount(cell, pairs.scores[part]) / many
        hits = np.bincount(cell, pairs.target[part])
        torn = np.flatnonzero((hits > 0) & (hits < many))
        if torn.size:
            row, owner = divmod(int(codes[torn[0]]), len(pairs.speakers))
            raise UsageError(
                f"trial {pairs.trials[row]} is a target of one enrolment of speaker "
                f"{pairs.speakers[owner]} and not of another; check whose the enrolments are"
            )
        target[into] = hits > 0
        trial[into], speaker[into] = np.divmod(codes, len(pairs.speakers))
        release(trial, speaker, scores, target)
    return replace(
        pairs, trial=trial[:done], speaker=speaker[:done], scores=scores[:done],
        target=target[:done],
    )  # fmt: skip
