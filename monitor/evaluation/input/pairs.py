"""Reads lists of pairs: a trial, an enrolled speaker, their score or whether they are the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path

import numpy as np

from monitor.errors import UsageError
from monitor.evaluation.input.files import Progress, fields, text_chunks, to_number
from monitor.evaluation.input.layout import WORDS, Layout
from monitor.phrases import plural
from monitor.types import BoolArray, FloatArray, IntArray

__all__ = ["Pairs", "read_pairs"]


@dataclass(frozen=True)
class Pairs:
    """The lines of a list, as they were written.

    Attributes:
        label: how messages call the file.
        trials: names in the order of their first appearance.
        speakers: likewise.
        trial: shape (n,), index of each line's trial.
        speaker: shape (n,), likewise.
        scores: shape (n,), or None where the list has none.
        target: shape (n,), whether trial and speaker are one person, or None where it is not said.
        certain: whether the list says which is the trial and which the speaker.
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
        return Pairs(
            self.label,
            self.speakers,
            self.trials,
            self.speaker,
            self.trial,
            self.scores,
            self.target,
            self.certain,
        )

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
        """The speaker of each trial that has a target line, the first where it has several.

        Returns:
            speakers by trial, and a trial that has several, in words; empty where none has.

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
                f"first line has "
                f"{width}"
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
