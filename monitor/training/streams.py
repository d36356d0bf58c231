"""What a calibration speaker said as one stream, as the monitor would have heard it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from monitor.training.session_frames import SessionFrames
from monitor.training.voices import UNITS_PER_SECOND, SpeakerSpeech
from monitor.types import TICKS_PER_SECOND, AnyArray, BoolArray, Frames, IntArray, Track

__all__ = ["stream_of"]

_UNIT_TICKS = TICKS_PER_SECOND // UNITS_PER_SECOND


def stream_of(voice: SpeakerSpeech, features: Iterable[str], most_seconds: float) -> Frames:
    """A stream of a speaker: the session with most speech, then the others.

    Frames come with the tenth of a second of speech in which they were complete.

    Args:
        voice: with its speech decisions; without them there are no pauses.
        features: which frames.
        most_seconds: audio seconds after which it ends.
    """
    order = sorted(range(len(voice.sessions)), key=lambda s: (-voice.length(s), s))
    most = round(most_seconds * TICKS_PER_SECOND)
    decisions = [_decisions(voice, session) for session in order]
    starts = np.cumsum([0] + [each.size for each in decisions])
    tracks = {}
    for name in features:
        parts = [voice.sessions[session][name] for session in order]
        placed = zip(parts, decisions, starts, strict=False)
        ticks = np.concatenate([_ticks(*each) for each in placed])
        values = np.concatenate([part.values for part in parts])
        tracks[name] = Track(ticks[ticks <= most], values[ticks <= most])
    return Frames(np.concatenate(decisions)[:most], tracks)


def _decisions(voice: SpeakerSpeech, session: int) -> BoolArray:
    if voice.speech:
        return voice.speech[session]
    return np.ones(voice.length(session) * _UNIT_TICKS, np.bool_)


def _ticks(session: SessionFrames, decisions: BoolArray, start: int) -> IntArray:
    """When each frame was complete, on the clock of the audio."""
    spoken = (session.units.astype(np.int64) + 1) * _UNIT_TICKS
    ticks: AnyArray = np.searchsorted(np.cumsum(decisions), spoken) + 1
    return ticks + start
