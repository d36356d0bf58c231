"""How the words of each recording of a stream lie in its speech, asked when the stream is over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.transcripts.coverage import Coverage, coverage_of
from monitor.types import TICKS_PER_SECOND, BoolArray, IntArray, Words

__all__ = ["RecordingCoverage", "WordCoverage", "worth_telling"]

KEPT_TICKS = 6 * 3600 * TICKS_PER_SECOND
"""Of a recording, or of a microphone, the last hours are looked at: 2 MB."""


@dataclass(frozen=True, slots=True)
class RecordingCoverage:
    """How well words and speech of one recording fit together.

    Attributes:
        recording: its place in the stream.
        words: how many came.
        coverage: how they lie; None where there were none, or nobody spoke.
    """

    recording: int
    words: int
    coverage: Coverage | None


def worth_telling(words: Words, speech: BoolArray) -> Coverage | None:
    """How words lie in speech; None where there is nothing of either.

    Args:
        words: of one recording.
        speech: shape (ticks,), the decisions on its audio.
    """
    return coverage_of(words, speech) if words.texts and speech.any() else None


class WordCoverage:
    """Keeps when words were said and when somebody spoke, as both come, of the last hours.

    Example:
        >>> coverage = WordCoverage()
        >>> coverage.take(Words(("so", "be"), *np.array([[0, 3], [2, 6], [2, 6]])))
        >>> coverage.hear(0, np.array([1, 1, 1, 1, 1, 0, 0, 0, 0, 0], bool))
        >>> (found,) = coverage.found()
        >>> found.words, found.coverage.in_speech, found.coverage.covered
        (2, 0.8, 0.8)
    """

    def __init__(self) -> None:
        self._over: list[RecordingCoverage] = []
        self._begin(0)

    def _begin(self, recording: int) -> None:
        self._recording, self._words = recording, 0
        self._first = self._heard = 0  # ticks before what is kept, and ticks of that
        self._speech: list[BoolArray] = []
        self._times: list[IntArray] = []  # begins and ends, shape (2, k)

    def take(self, words: Words) -> None:
        """Further words; those of another recording end the one before."""
        self._turn(words.recording)
        self._words += len(words.texts)
        self._times.append(np.stack((words.begins, words.ends)))

    def hear(self, recording: int, speech: BoolArray) -> None:
        """Decisions on the next ticks of a recording."""
        self._turn(recording)
        self._speech.append(speech)
        self._heard += speech.size
        if self._heard > 2 * KEPT_TICKS:
            self._let_go(self._heard - KEPT_TICKS)

    def found(self) -> tuple[RecordingCoverage, ...]:
        """Of each recording, as far as it was heard."""
        return (*self._over, self._now()) if self._heard or self._words else tuple(self._over)

    def _turn(self, recording: int) -> None:
        if recording != self._recording:
            self._over = [*self.found()]
            self._begin(recording)

    def _let_go(self, ticks: int) -> None:
        self._speech = [np.concatenate(self._speech)[ticks:].copy()]
        self._first, self._heard = self._first + ticks, self._heard - ticks
        times = np.concatenate(self._times, axis=1) if self._times else np.empty((2, 0), np.int64)
        self._times = [times[:, times[0] >= self._first]]

    def _now(self) -> RecordingCoverage:
        begins, ends = np.concatenate(self._times or [np.empty((2, 0), np.int64)], axis=1)
        kept = begins >= self._first
        begins, ends = begins[kept] - self._first, ends[kept] - self._first
        words = Words(("",) * begins.size, begins, ends, ends)
        speech = np.concatenate(self._speech or [np.empty(0, np.bool_)])
        return RecordingCoverage(self._recording, self._words, worth_telling(words, speech))
