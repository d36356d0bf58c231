"""Reads lists of pairs of a trial and an enrolled speaker: their scores, and which are targets."""

from __future__ import annotations

from array import array
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from monitor.errors import UsageError
from monitor.lab.evaluation.input.layout import (
    SCORE,
    SPEAKER,
    TARGET,
    TRIAL,
    WORDS,
    Layout,
    role_of,
)
from monitor.lab.evaluation.input.rows import Progress, check_names, count_lines
from monitor.lab.evaluation.memory import refuse_beyond_memory
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray


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
