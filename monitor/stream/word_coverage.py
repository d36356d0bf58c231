"""Coverage of speech by words, for each recording of a stream."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.transcripts.transcript import Coverage, measure_coverage
from monitor.types import TICKS_PER_SECOND, BoolArray, IntArray, Words

KEPT_TICKS = 6 * 3600 * TICKS_PER_SECOND
"""Ticks examined at the end of a recording or microphone stream: six hours, 2 MB."""


@dataclass(frozen=True, slots=True)
class RecordingCoverage:
    """Fit of one recording's words to its speech; None without words or speech."""

    recording: int
    words: int
    coverage: Coverage | None


def find_coverage(words: Words, speech: BoolArray) -> Coverage | None:
    """Measure how words lie in speech, shape (ticks,); None without words or speech."""
    return measure_coverage(words, speech) if words.texts and speech.any() else None


_NO_TIMES = np.empty((2, 0), np.int64)


class WordCoverage:
    """Coverage of speech by words, of the last hours, as both arrive.

    Example:
        >>> coverage = WordCoverage()
        >>> coverage.add_words(Words(("so", "be"), *np.array([[0, 3], [2, 6], [2, 6]])))
        >>> coverage.add_speech(0, np.array([1, 1, 1, 1, 1, 0, 0, 0, 0, 0], bool))
        >>> (recording,) = coverage.measure()
        >>> recording.words, recording.coverage.in_speech, recording.coverage.covered
        (2, 0.8, 0.8)
    """

    def __init__(self) -> None:
        self._over: list[RecordingCoverage] = []
        self._begin(0)

    def _begin(self, recording: int) -> None:
        self._recording, self._words = recording, 0
        self._first = self._ticks = 0  # ticks before what is kept, and ticks of that
        self._speech: list[BoolArray] = []
        self._times: list[IntArray] = []  # begins and ends, shape (2, k)

    def add_words(self, words: Words) -> None:
        """Further words; those of another recording end the one before."""
        self._turn(words.recording)
        self._words += len(words.texts)
        self._times.append(np.stack((words.begins, words.ends)))

    def add_speech(self, recording: int, speech: BoolArray) -> None:
        """Decisions on the next ticks of a recording."""
        self._turn(recording)
        self._speech.append(speech)
        self._ticks += speech.size
        if (ticks := self._ticks - KEPT_TICKS) > KEPT_TICKS:
            self._speech = [np.concatenate(self._speech)[ticks:].copy()]
            self._first, self._ticks = self._first + ticks, KEPT_TICKS
            times = np.concatenate([_NO_TIMES, *self._times], axis=1)
            self._times = [times[:, times[0] >= self._first]]

    def measure(self) -> tuple[RecordingCoverage, ...]:
        """Measure every recording so far."""
        return (*self._over, self._now()) if self._ticks or self._words else tuple(self._over)

    def _turn(self, recording: int) -> None:
        if recording != self._recording:
            self._over = [*self.measure()]
            self._begin(recording)

    def _now(self) -> RecordingCoverage:
        begins, ends = np.concatenate([_NO_TIMES, *self._times], axis=1)
        is_recent = begins >= self._first
        begins, ends = begins[is_recent] - self._first, ends[is_recent] - self._first
        words = Words(("",) * begins.size, begins, ends, ends)
        speech = np.concatenate(self._speech or [np.empty(0, np.bool_)])
        return RecordingCoverage(self._recording, self._words, find_coverage(words, speech))
