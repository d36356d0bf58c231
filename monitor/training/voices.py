"""The calibration speech of each speaker, session by session, on the speech clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from monitor.corpus.recordings import Corpus, Recording
from monitor.errors import UsageError
from monitor.kinds import FeatureSpec
from monitor.training.hearing import hear_in_order
from monitor.training.listening import Listener, SpeechFrames
from monitor.training.session_frames import SessionFrames
from monitor.types import BoolArray
from monitor.workers import Jobs

__all__ = ["UNITS_PER_SECOND", "SpeakerSpeech", "collect", "join", "session_frames", "units_of"]

UNITS_PER_SECOND = 10
"""Calibration windows begin and end on tenths of a speech second."""
_UNIT_TICKS = 10
_MOST_UNITS = 1e10
"""Thirty years: what is longer is a mistake."""


@dataclass(frozen=True, slots=True)
class SpeakerSpeech:
    """What one calibration speaker said, session by session.

    Attributes:
        name: the speaker.
        sessions: for each session the frames of every feature, all of the same length in units.
        speech: for each session the decisions on its audio, one a tick; empty where nobody kept
            them.
        session_names: what the sessions are called; empty where nobody said.
    """

    name: str
    sessions: tuple[dict[str, SessionFrames], ...]
    speech: tuple[BoolArray, ...] = ()
    session_names: tuple[str, ...] = ()

    def length(self, session: int) -> int:
        """Units of speech in a session."""
        return next(iter(self.sessions[session].values())).length

    def session_name(self, session: int) -> str:
        """What a session is called; its number from 1 where it has no name."""
        return self.session_names[session] if self.session_names else str(session + 1)


def units_of(seconds: float) -> int:
    """Units of speech in a length.

    Raises:
        UsageError: it is not a positive multiple of a unit.

    Example:
        >>> units_of(0.3)
        3
    """
    units = seconds * UNITS_PER_SECOND
    if not 0.5 < units < _MOST_UNITS or abs(units - round(units)) > 1e-6:
        raise UsageError(f"a length of {seconds:g} s must be a positive multiple of 0.1 s")
    return round(units)


def collect(
    corpus: Corpus,
    *,
    features: Sequence[str] | None = None,
    progress: Callable[[Recording], None] = lambda _: None,
    jobs: Jobs = 1,
    told: Callable[[str], object] = lambda _: None,
) -> tuple[list[SpeakerSpeech], dict[str, FeatureSpec], tuple[str, ...]]:
    """Hear a whole corpus, by processes or a cluster; what is heard does not depend on ``jobs``.

    Args:
        corpus: recordings by speaker and session.
        features: names; None takes the defaults for audio, and what ready-made frames hold.
        progress: called after each recording.
        jobs: processes that listen, or a cluster.
        told: called with a line for people: a transcript seems to be of another recording, say.

    Returns:
        the voices, the spec of each feature, and one line for each file that was skipped or
        has unusable parts.

    Raises:
        UsageError: there is no such feature.
    """
    listener = Listener(features)
    problems = list(corpus.problems)
    voices = []
    with closing(hear_in_order(corpus.recordings, listener, jobs=jobs)) as outcomes:
        for name, of_speaker in groupby(outcomes, key=lambda o: o.recording.speaker):
            sessions, speech, called = [], [], []
            for session_name, group in groupby(of_speaker, key=lambda o: o.recording.session):
                heard = []
                for outcome in group:
                    if outcome.heard is not None:
                        heard.append(outcome.heard)
                        for line in outcome.heard.told:
                            told(line)
                    problems += [outcome.problem] if outcome.problem else []
                    progress(outcome.recording)
                session = {f: session_frames(heard, spec) for f, spec in listener.specs.items()}
                if heard and next(iter(session.values())).length > 0:
                    sessions.append(session)
                    speech.append(np.concatenate([each.speech for each in heard]))
                    called.append(session_name)
            if sessions:
                voices.append(SpeakerSpeech(name, tuple(sessions), tuple(speech), tuple(called)))
    return voices, listener.specs, tuple(problems)


def session_frames(heard: Sequence[SpeechFrames], spec: FeatureSpec) -> SessionFrames:
    """The frames of one feature in the recordings of a session, one after the other."""
    values, units, begins, before = [], [], [], 0
    for each in heard:
        track = each.tracks[spec.name]
        values.append(track.values)
        units.append(np.maximum(track.at + before - 1, 0) // _UNIT_TICKS)
        if track.since is not None or not track.at.size:  # of no frames nothing is known
            since = track.at if track.since is None else track.since
            begins.append((since + before) // _UNIT_TICKS)
        before += each.speech_ticks
    length = before // _UNIT_TICKS
    if not values:
        return SessionFrames(spec.kind.none(spec.size), np.zeros(0, dtype=np.int64), 0, spec)
    all_units = np.concatenate(units)
    keep = slice(0, int(np.searchsorted(all_units, length)))
    all_values = np.concatenate(values)[keep]
    return SessionFrames(
        spec.kind.narrow(all_values, spec.size),
        all_units[keep].astype(np.int32),
        length,
        spec,
        np.concatenate(begins)[keep].astype(np.int32) if len(begins) == len(values) else None,
        _span(spec),
    )


def _span(spec: FeatureSpec) -> int:
    """Units that one frame takes to hear; 0 where it is no longer than a unit."""
    units = round(spec.kind.span_seconds(spec.frame_seconds) * UNITS_PER_SECOND)
    return units if units > 1 else 0


def join(sessions: Sequence[SessionFrames]) -> SessionFrames:
    """Several sessions one after the other."""
    if len(sessions) == 1:
        return sessions[0]
    starts = np.cumsum([0] + [session.length for session in sessions])
    placed = list(zip(sessions, starts[:-1], strict=True))
    begins = [s.begins + start for s, start in placed if s.begins is not None]
    return SessionFrames(
        np.concatenate([session.values for session in sessions]),
        np.concatenate([s.units + start for s, start in placed]),
        int(starts[-1]),
        sessions[0].spec,
        np.concatenate(begins) if len(begins) == len(sessions) else None,
        sessions[0].span,
    )
