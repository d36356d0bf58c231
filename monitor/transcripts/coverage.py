"""Check that a transcript is of the recording beside it: where its words are, is speech."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.maths.spectra import irfft, rfft
from monitor.types import TICKS_PER_SECOND, BoolArray, FloatArray, Words

_BIN_TICKS = 10
_NEAR_SECONDS = 5.0  # a transcript moved by less is still much the same
_OFF_BINS = 10  # by which all times may be off, here and at every other place
_ENOUGH_SECONDS = 30.0
_NO_PAUSES = 0.9  # of the speech has words: captions follow each other without a pause
_DOUBTFUL = 0.05


@dataclass(frozen=True, slots=True)
class Coverage:
    """Overlap of the words of a transcript with the speech of a recording.

    Attributes:
        in_speech: share of the words' time in which there is speech.
        covered: share of the speech in which there are words.
        as_well: share of the places to which the transcript could be moved along the recording
            where it would lie in speech as well as it does; of another recording's transcript it is
            anything from 0 to 1, of this one's near 0 (docs/transcripts.md has measurements). None
            where that tells nothing: words in nearly all of the speech, or less than 30 s.
    """

    in_speech: float
    covered: float
    as_well: float | None

    @property
    def doubtful(self) -> bool:
        """Flag: the words fit the speech no better than those of another recording might."""
        return self.as_well is not None and self.as_well > _DOUBTFUL

    def sentence(self, label: str) -> str:
        """Format all of it in a line, for people.

        Example:
            >>> print(Coverage(0.62, 0.7, 0.4).sentence("talk.vtt"))
            talk.vtt: 62 % of its words' time is speech, and 70 % of the speech has words; moved to
            another place it would fit as well in 40 % of them: is it of another recording?
        """
        shares = f"{self.in_speech:.0%} of its words' time is speech, and {self.covered:.0%} of"
        line = f"{label}: {shares} the speech has words".replace("%", " %")
        if self.doubtful:
            places = f"{self.as_well:.0%}".replace("%", " %")
            moved = f"moved to another place it would fit as well in {places} of them"
            return f"{line}; {moved}: is it of another recording?"
        if self.as_well is None:
            return f"{line}; there are too few pauses to tell whether it is of this recording"
        return line


def measure_coverage(words: Words, speech: BoolArray) -> Coverage:
    """Measure how the words of a transcript lie in the speech of a recording.

    Args:
        words: their begins and ends, in ticks of the recording.
        speech: shape (ticks,), the decisions of the voice activity detector.

    Example:
        >>> begins = np.arange(0, 6000, 200)
        >>> words = Words(("so",) * 30, begins, begins + 90, begins + 90)
        >>> speech = np.arange(6000) % 200 < 120
        >>> found = measure_coverage(words, speech)
        >>> found.in_speech, found.covered
        (1.0, 0.75)
    """
    ticks = max(speech.size, int(words.ends.max(initial=0)))
    steps = np.zeros(ticks + 1, np.int64)
    np.add.at(steps, words.begins, 1)
    np.add.at(steps, words.ends, -1)
    has_words = np.cumsum(steps[:-1]) > 0
    has_speech = np.zeros(ticks, np.bool_)
    has_speech[: speech.size] = speech
    covered = _share(has_words & has_speech, has_speech)
    tells = covered < _NO_PAUSES and speech.size >= _ENOUGH_SECONDS * TICKS_PER_SECOND
    as_well = _as_well(has_words[: speech.size], speech) if tells else None
    return Coverage(_share(has_words & has_speech, has_words), covered, as_well)


def _as_well(has_words: BoolArray, speech: BoolArray) -> float | None:
    """Return the share of circular shifts, but for small ones, that fit speech as well as none."""
    from scipy import ndimage  # slow to import

    a, b = _binned(has_words), _binned(speech)
    near = round(_NEAR_SECONDS * TICKS_PER_SECOND / _BIN_TICKS)
    if min(np.ptp(a), np.ptp(b)) == 0:
        return None
    overlap = irfft(rfft(a) * np.conj(rfft(b)), a.size)
    best = ndimage.maximum_filter1d(overlap, 2 * _OFF_BINS + 1, mode="wrap")
    far = best[near : a.size - near + 1]
    if np.ptp(far) < 1e-6 * a.size:
        return None
    return float(np.mean(far >= best[0] - 1e-6))


def _share(subset: BoolArray, mask: BoolArray) -> float:
    return float(subset.sum()) / max(int(mask.sum()), 1)


def _binned(mask: BoolArray) -> FloatArray:
    count = mask.size // _BIN_TICKS
    return np.asarray(mask[: count * _BIN_TICKS].reshape(count, _BIN_TICKS).mean(axis=1))
