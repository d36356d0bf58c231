"""Notices that a stream repeats itself: audio that was heard before tells nothing new.

Every ten seconds the landmarks of the last ten are looked up among the stream's own. While what is
heard is what was heard before, a clip in a loop, say, it is left out of the sums and of the speech
that is counted. The same words said again have other landmarks, and count. As long as something is
left out, and ten seconds beyond, it is looked up every second, so that little is lost of what comes
after a repetition.

What was heard of ten minutes is remembered whole, and an eighth of it for two hours. All of it
follows from the stream heard from its start, so that nothing is kept in a checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from monitor.maths.landmarks import FRAMES_PER_SECOND, NAME, OwnLandmarks
from monitor.stream.copies import WINDOW_TICKS, LandmarkWindows
from monitor.types import TICKS_PER_SECOND, BoolArray, Frames, IntArray, Notice, Track

__all__ = ["RepeatFinder", "is_repetition"]

LEAST_SHARE = 0.6
"""Of the half seconds of a window that must have been heard before."""
LEAST_CELLS = 6
_NEWEST = 4  # half seconds at the end of the window, of which all but one must have been, too
OFTEN_TICKS = TICKS_PER_SECOND
"""From look to look while a stream repeats itself."""
_AFTER_TICKS = TICKS_PER_SECOND  # no feature runs as far ahead of the clock


class RepeatFinder:
    """Tells from when on a stream repeats itself, the same for any cutting.

    Args:
        leaves_out: whether what is repeated is left out, for the notice.

    Attributes:
        leaves_out: as given.
        seconds: of speech that were left out so far.
    """

    def __init__(self, leaves_out: bool = True) -> None:
        self.leaves_out, self.seconds = leaves_out, 0.0
        self._windows, self._own = LandmarkWindows(), OwnLandmarks()
        self._since: IntArray = np.zeros(1, np.intp)
        self._repeats: BoolArray = np.zeros(1, np.bool_)
        self._told: set[int] = set()
        self._often_until = 0  # tick

    def hear(self, frames: Frames, arrived: int, recording: int) -> Iterator[tuple[int, Notice]]:
        """What is noticed with a further run of ticks, as (tick, Notice), once a recording.

        Args:
            frames: of the stream.
            arrived: ticks of the stream with these.
            recording: which is heard.
        """
        for tick, times, pitches in self._windows.hear(frames, arrived):
            repeats = is_repetition(times, self._own.heard_before(times, pitches))
            self._since = np.append(self._since, tick + _AFTER_TICKS)
            self._repeats = np.append(self._repeats, repeats)
            if repeats:
                self._often_until = tick + WINDOW_TICKS
            self._windows.every = OFTEN_TICKS if tick < self._often_until else WINDOW_TICKS
            if repeats and recording not in self._told:
                self._told.add(recording)
                yield tick, _notice(self.leaves_out)

    def counted(self, frames: Frames, start: int) -> Frames:
        """What is to be learnt of a run of audio that begins after so many ticks of the stream."""
        over = max(0, int(np.searchsorted(self._since, start)) - 1)
        self._since, self._repeats = self._since[over:], self._repeats[over:]
        if not self.leaves_out or NAME not in frames.tracks or not self._repeats.any():
            return frames
        again = self._again(start + 1 + np.arange(len(frames.speech)))
        self.seconds += np.count_nonzero(again & frames.speech) / TICKS_PER_SECOND
        tracks = {name: self._left(track, start) for name, track in frames.tracks.items()}
        return replace(frames, speech=frames.speech & ~again, tracks=tracks)

    def _left(self, track: Track, start: int) -> Track:
        kept = ~self._again(np.maximum(track.ticks, start + 1))
        spans = None if track.spans is None else track.spans[kept]
        return Track(track.ticks[kept], track.values[kept], spans)

    def _again(self, ticks: IntArray) -> BoolArray:
        """Whether each tick lies in a stretch that repeats what was heard before."""
        place = np.searchsorted(self._since, ticks, side="left") - 1
        return np.asarray(self._repeats[np.maximum(place, 0)])


def is_repetition(times: IntArray, before: BoolArray) -> bool:
    """Whether most of a window, and its end, was heard before.

    Args:
        times: of its landmarks, frames, non-decreasing.
        before: which of them were.
    """
    if not before.any():  # as nearly always
        return False
    cells, place = np.unique(times * 2 // FRAMES_PER_SECOND, return_inverse=True)
    told = np.bincount(place, minlength=cells.size) >= 2
    again = (np.bincount(place, before, cells.size) >= 2)[told]
    if again.size < LEAST_CELLS or again.mean() < LEAST_SHARE:
        return False
    return bool(again[-_NEWEST:].sum() >= _NEWEST - 1)


def _notice(leaves_out: bool) -> Notice:
    done = "is left out while it lasts" if leaves_out else "counts twice here: leave it out"
    return Notice(
        "repeated",
        "what is heard is audio that was heard before in this stream: it tells nothing new, and "
        f"{done}",
    )
