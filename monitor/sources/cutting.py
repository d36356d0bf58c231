"""Cuts a run of frames into shorter runs."""

from __future__ import annotations

from collections.abc import Iterator

from monitor.types import Frames, Track

__all__ = ["cut_frames"]


def cut_frames(frames: Frames, first: int, most: int) -> Iterator[Frames]:
    """The same frames in runs of at most ``most`` ticks.

    Args:
        frames: a run whose first tick is the one after ``first``.
        first: ticks of the stream before this run.
        most: longest run, in ticks.

    Example:
        >>> import numpy as np
        >>> track = Track(np.array([1, 2, 4]), np.array([7, 8, 9]))
        >>> runs = cut_frames(Frames(np.ones(4, bool), {"f0": track}), 0, 3)
        >>> [(len(run.speech), run.tracks["f0"].values.tolist()) for run in runs]
        [(3, [7, 8]), (1, [9])]
    """
    for start in range(0, len(frames.speech), most):
        speech = frames.speech[start : start + most]
        low, high = first + start, first + start + len(speech)
        tracks = {}
        for name, track in frames.tracks.items():
            a, b = track.ticks.searchsorted([low, high], side="right")
            spans = None if track.spans is None else track.spans[a:b]
            tracks[name] = Track(track.ticks[a:b], track.values[a:b], spans)
        gaps = tuple((tick, gap) for tick, gap in frames.gaps if low < tick <= high)
        notices = tuple((tick, each) for tick, each in frames.notices if low < tick <= high)
        yield Frames(speech, tracks, gaps, frames.recording, notices)
