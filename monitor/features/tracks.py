"""Small operations on the usable frames of features."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from monitor.types import Frames, Track

__all__ = ["join_frames", "join_runs", "join_tracks", "shift_track"]


def join_tracks(before: Track, after: Track) -> Track:
    """The frames of one track and then of another."""
    if not len(before.ticks):
        return after
    if not len(after.ticks):
        return before
    ticks = np.concatenate((before.ticks, after.ticks))
    values = np.concatenate((before.values, after.values))
    if before.spans is None or after.spans is None:
        return Track(ticks, values)
    return Track(ticks, values, np.concatenate((before.spans, after.spans)))


def join_frames(before: Frames, after: Frames) -> Frames:
    """One run of ticks and then the next."""
    tracks: dict[str, Track] = {**before.tracks, **after.tracks}
    for name in before.tracks.keys() & after.tracks.keys():
        tracks[name] = join_tracks(before.tracks[name], after.tracks[name])
    speech = np.concatenate((before.speech, after.speech))
    notices = before.notices + after.notices
    return Frames(speech, tracks, before.gaps + after.gaps, before.recording, notices)


def join_runs(runs: Sequence[Frames]) -> Frames:
    """All runs of a recording, at least one; neighbours first, so that nothing is copied often."""
    joined = list(runs)
    while len(joined) > 1:
        pairs = [joined[at : at + 2] for at in range(0, len(joined), 2)]
        joined = [join_frames(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return joined[0]


def shift_track(track: Track, ticks: int) -> Track:
    """The same frames, so many ticks later."""
    if not ticks:
        return track
    spans = None if track.spans is None else track.spans + ticks
    return Track(track.ticks + ticks, track.values, spans)
