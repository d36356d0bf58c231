"""What lies beside the clock of a stream, audio or frames: timed words, and ready-made frames."""

from __future__ import annotations

import numpy as np

from monitor.errors import UsageError
from monitor.features.tracks import shift_track
from monitor.stream.checking import check_frames
from monitor.stream.front_end import FrontEnd
from monitor.types import Frames, Track, Tracks, Words

__all__ = ["BesideClock", "check_words"]


class BesideClock:
    """Turns words and ready-made frames into frames at their place on the stream.

    Args:
        front_end: the features of words, and which ones come ready-made.

    Attributes:
        begun: whether anything came.
    """

    def __init__(self, front_end: FrontEnd) -> None:
        self._front_end = front_end
        self._recording: int | None = None
        self._first = 0  # tick of the stream at which it began
        self.begun = False

    def check(self, item: Words | Tracks) -> None:
        """Refuse what could not be learnt, before anything of the stream changes.

        Raises:
            UsageError: it makes no sense, or nobody expects it.
        """
        if isinstance(item, Words):
            check_words(item)
        else:
            specs = self._front_end.expected(item.tracks)
            check_frames(Frames(np.empty(0, np.bool_), item.tracks), specs)

    def turn(self, recording: int, tick: int) -> Frames | None:
        """The clock has come to a recording, which begins at a tick of the stream.

        Returns:
            what only the end of the recording before it completes.
        """
        if recording == self._recording:
            return None
        last = self.flush()
        self._recording, self._first = recording, tick
        return last

    def process(self, item: Words | Tracks) -> Frames:
        """Frames of a stretch of no time, at ticks of the stream."""
        if not self.begun:  # what makes frames of words may have heard another stream
            for feature in self._front_end.of_words():
                feature.reset()
        self.begun = True
        if isinstance(item, Tracks):
            return self._frames(dict(item.tracks))
        made = {f.spec.name: f.process(item) for f in self._front_end.of_words()}
        return self._frames(made)

    def flush(self) -> Frames | None:
        """What only the end of the recording completes; then the next one begins."""
        features = self._front_end.of_words() if self.begun else []
        last = {feature.spec.name: feature.flush() for feature in features}
        for feature in features:
            feature.reset()
        return self._frames(last) if any(len(each.ticks) for each in last.values()) else None

    def _frames(self, tracks: dict[str, Track]) -> Frames:
        moved = {name: shift_track(track, self._first) for name, track in tracks.items()}
        return Frames(np.empty(0, np.bool_), moved, (), self._recording or 0)


def check_words(words: Words) -> None:
    """Refuse words that were never said.

    Raises:
        UsageError: shapes, types or ticks do not fit.
    """
    times = (words.begins, words.ends, words.known)
    if any(each.shape != (len(words.texts),) or each.dtype.kind not in "iu" for each in times):
        raise UsageError("words need as many begins, ends and knowns, in whole ticks")
    if not all(isinstance(text, str) for text in words.texts):
        raise UsageError("the texts of words must be strings")
    wrong = (words.begins < 0) | (words.begins >= words.ends) | (words.ends > words.known)
    if wrong.any() or np.any(words.known[1:] < words.known[:-1]):
        raise UsageError(
            "words must begin before they end and end before they are known, in the order in "
            "which they are known"
        )
