"""Reads texts of scores: lists of pairs, tables, and labels of trials.

The header identifies the columns, otherwise their number and kind. A list without a header is
``speaker trial score [target]``, as in Kaldi and ZEBRA. Numbers alone are a table.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from monitor.arrays import names_or_numbers
from monitor.errors import UsageError
from monitor.lab.evaluation.input.files import Progress, Rows, check_names
from monitor.lab.evaluation.input.pairs import Pairs
from monitor.lab.evaluation.memory import count_lines, refuse_beyond_memory
from monitor.phrases import plural
from monitor.safe_text import is_number
from monitor.types import AnyArray, IntArray

TRIAL = frozenset(
    {"trial", "trial_id", "test", "test_id", "utterance", "utt", "utt_id", "segment", "segmentid"}
)
SPEAKER = frozenset(
    {"speaker", "speaker_id", "spk", "model", "modelid", "model_id"}
    | {"enrolment", "enrollment", "enrolled", "enrol", "enroll", "enrol_id", "enroll_id"}
)
SCORE = frozenset({"score", "scores", "similarity", "llr"})
TARGET = frozenset({"target", "label", "labels", "key", "targettype", "true_speaker"})
_OTHERS = frozenset(
    {"seconds", "length", "duration", "start", "start_seconds", "end", "end_seconds", "snr"}
    | {"session", "session_id", "chapter", "gender", "sex", "age", "index", "unnamed: 0"}
)
"""Names of columns of numbers in tables that are not speakers."""
ROLES = (TRIAL, SPEAKER, SCORE, TARGET)
WORDS = {
    **dict.fromkeys(("target", "tgt", "true", "1", "mated"), True),
    **dict.fromkeys(("nontarget", "non-target", "imp", "false", "0", "non-mated"), False),
}
"""Words of a trial list, and whether they mark a target."""


def role_of(names: Sequence[str], role: Collection[str]) -> int | None:
    """Find the first column with a name of this role."""
    return next((i for i, name in enumerate(names) if name.lower() in role), None)


def check_columns(label: str, names: Sequence[str]) -> None:
    """Refuse (UsageError) a column beside those of speakers, as another candidate changes ranks."""
    if (other := role_of(names, _OTHERS)) is not None:
        raise UsageError(f"{label} has a column {names[other]}, which is not a speaker: remove it")


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


def layout_of(rows: Rows) -> Layout:
    """Find the layout of a list, or of a table without a column of speakers, by its first line."""
    names, width, label = rows.head, len(rows.head), rows.path.name
    trial, speaker, score, target = (role_of(names, role) for role in ROLES)
    if trial is not None and speaker is not None and (score is not None or target is not None):
        return Layout(rows, True, trial, speaker, score, target)
    if trial is None and not names[0]:
        trial = 0  # a table may leave the name of its first column empty
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


def read_pairs(layout: Layout, progress: Progress | None = None) -> Pairs:
    """Read a list of pairs.

    Raises UsageError if a line is invalid, or the list does not fit in memory.
    """
    rows, label = layout.rows, layout.rows.path.name
    trial_at, speaker_at = layout.trial, layout.speaker
    score_at, target_at = layout.score, layout.target
    assert trial_at is not None
    assert speaker_at is not None
    refuse_beyond_memory(label, count_lines(rows.path))
    trials, speakers = (defaultdict[str, int](count().__next__) for _ in range(2))
    trial, speaker, scores, target = array("i"), array("i"), array("d"), array("b")
    for number, row in rows.read(header=layout.header, progress=progress):
        trial.append(trials[row[trial_at]])  # a new name gets the next number
        speaker.append(speakers[row[speaker_at]])
        try:
            if score_at is not None:
                scores.append(float(row[score_at]))
            if target_at is not None:
                target.append(WORDS[row[target_at].lower()])
        except ValueError:
            hint = _HEADED if layout.header else _ORDER
            raise rows.refuse_number(number, [row[score_at or 0]], "score", hint) from None
        except KeyError:
            raise rows.refuse(
                number,
                f"{row[target_at or 0]!r} is neither target nor nontarget: write these words, or "
                "1 and 0",
            ) from None
    if not trial:
        raise UsageError(f"{label} has no data")
    if "" in trials or "" in speakers:
        raise UsageError(f"{label}: a trial or a speaker has no name")
    check_names(label, {"trial": trials.keys(), "speaker": speakers.keys()})
    pairs = Pairs(
        label, tuple(trials), tuple(speakers), np.frombuffer(trial, np.intc),
        np.frombuffer(speaker, np.intc), np.frombuffer(scores) if scores else None,
        np.frombuffer(target, np.bool_) if target else None,
    )  # fmt: skip
    if not layout.header and (hits := pairs.target) is not None:
        by_trial, by_speaker = (
            np.bincount(index[hits], minlength=1).max() for index in (pairs.trial, pairs.speaker)
        )
        if by_trial > 1 == by_speaker:
            columns = " target" if pairs.scores is None else " score target"
            raise UsageError(
                f"the first column of {label} looks like trials. Write the header 'trial "
                f"speaker{columns}' above it if trials come first, otherwise 'speaker "
                f"trial{columns}'"
            )
    return pairs


_HEADED = "a list has one score per line"
_ORDER = "without a header, columns are speaker, trial and score"


def pairs_of_records(label: str, records: AnyArray) -> Pairs:
    """Read a list from records, shape (n,): trials and speakers are numbers.

    Fields have the names that columns of a text have.
    """
    names = list(records.dtype.names or ())
    at = [role_of(names, role) for role in ROLES]
    columns = [None if i is None else records[names[i]] for i in at]
    kinds = [array.dtype.kind if array is not None and array.ndim == 1 else "" for array in columns]
    allowed = ("i", "u"), ("i", "u"), ("f", "i", "u"), ("", "b", "i", "u")
    if not len(records) or any(k not in kind for k, kind in zip(kinds, allowed, strict=True)):
        raise UsageError(
            f"{label} has {len(records)} records of {records.dtype}. Use one row of records with "
            "trial and speaker (numbers from 0), score, and optionally target"
        )
    refuse_beyond_memory(label, len(records))
    trial, speaker, scores, target = (None if x is None else np.array(x) for x in columns)
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
    """Contents of a file of labels, and its name in messages."""

    label: str
    columns: IntArray | None = None  # column of each trial's speaker, from 0, shape (T,)
    names: tuple[str, ...] = ()  # or name of each trial's speaker
    trials: tuple[str, ...] = ()  # names of the trials; may be empty
    listed: frozenset[str] = frozenset()  # all trials in a trial list
    pairs: Pairs | None = None  # a trial list with nontarget pairs; only its pairs count
    several: str = ""  # description of a trial that is a target of two models

    def by_trial(self) -> Mapping[str, str]:
        """Return the speaker by trial."""
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
    names = labels.names or tuple("" if column < 0 else str(column) for column in columns)
    trials = tuple(map(str, range(len(names))))
    return replace(labels, columns=None, names=names, trials=trials)


def labels_of_pairs(pairs: Pairs) -> Labels:
    """Return the speaker of every trial that has a target line."""
    speakers: dict[str, str] = {}
    several = ""
    for trial_index, other in pairs.targets():
        trial, speaker = pairs.trials[trial_index], pairs.speakers[other]
        if speakers.setdefault(trial, speaker) != speaker and not several:
            several = f"trial {trial} is a target of {speakers[trial]} and of {speaker}"
    if not speakers:
        raise UsageError(f"{pairs.label} has no target line; add the speaker of each trial")
    assert pairs.target is not None
    names, trials, key = tuple(speakers.values()), tuple(speakers), frozenset(pairs.trials)
    selecting = None if pairs.target.all() else pairs
    return Labels(pairs.label, None, names, trials, key, selecting, several)


def read_label_rows(lines: Rows) -> Labels:
    """Read labels from a text.

    Lines are ``speaker``, ``trial speaker`` (Kaldi's utt2spk), or ``speaker trial
    target|nontarget`` (a trial list). A header may change the order.
    """
    label, width = lines.path.name, len(lines.head)
    if width > 2:
        layout = layout_of(lines)
        if layout.speaker is None:
            raise UsageError(
                f"{label}: use one speaker per line, a trial and its speaker, or a trial list "
                "(speaker, trial, target or nontarget)"
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
        check_names(label, {"speaker" if width == 1 else "trial or speaker": set(column)})
    if len(columns) < 2:
        return Labels(label, names=columns[0] if columns else ())
    if not header and len(set(columns[0])) < len(rows) == len(set(columns[1])):
        raise UsageError(
            f"only the first column of {label} repeats names. Write the header 'speaker trial' "
            "above it if speakers come first, otherwise 'trial speaker'"
        )
    if trial is None:
        trial = 0 if speaker is None else 1 - speaker
    return Labels(label, names=columns[1 - trial], trials=columns[trial])


@dataclass(frozen=True)
class RawScores:
    """Scores (T, N) of a file, with its names of columns and rows and its labels, if any."""

    scores: AnyArray
    speakers: tuple[str, ...] = ()
    trials: tuple[str, ...] = ()
    labels: Labels | None = None


def read_text(rows: Rows, progress: Progress | None = None) -> RawScores | Pairs:
    """Read a table of scores, or a list of pairs."""
    layout = layout_of(rows)
    if layout.speaker is None:
        return _read_table(layout, progress)
    if layout.score is None:
        raise UsageError(
            f"{rows.path.name} is a trial list: give a file of scores, and this one as labels"
        )
    return read_pairs(layout, progress)


def _read_table(layout: Layout, progress: Progress | None) -> RawScores:
    rows, label = layout.rows, layout.rows.path.name
    columns = [i for i in range(len(rows.head)) if i not in (layout.trial, layout.target)]
    if len(columns) < 2:
        raise UsageError(
            f"{label} has {plural(len(columns), 'column')} of scores: a table needs one per "
            "speaker, and at least two"
        )
    check_columns(label, layout.speakers)
    named = {"trial": layout.trial, "speaker": layout.target}
    scores, names = rows.read_matrix(
        columns, {role: i for role, i in named.items() if i is not None},
        "a table has one row per trial and one score per speaker", header=layout.header,
        called="speaker" if layout.header else "", progress=progress,
    )  # fmt: skip
    labels = Labels(label, names=names["speaker"]) if "speaker" in names else None
    return RawScores(scores, layout.speakers, names.get("trial", ()), labels)
