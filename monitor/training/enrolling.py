"""Make templates: one pass over the enrolment speech of each speaker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path

import numpy as np

from monitor.corpus.recordings import Corpus, Recording
from monitor.errors import CorpusError, UsageError
from monitor.kinds import FeatureSpec
from monitor.maths.condition import ROW, condition_of
from monitor.maths.landmarks import FRAMES_PER_SECOND, pack
from monitor.population.people import sound_of
from monitor.population.population import (
    SLICE_SECONDS,
    FeatureTemplates,
    Population,
    SourceNote,
    Speaker,
)
from monitor.protocols import Feature
from monitor.safe_text import LONGEST_NAME, file_name
from monitor.training.hearing import SLICE_TICKS, HearingOutcome, speakers_in_order
from monitor.training.listening import Listener, SpeechFrames
from monitor.types import TICKS_PER_SECOND, AnyArray
from monitor.workers import Jobs

__all__ = ["Enrolment", "enrol", "landmarks_of"]


@dataclass(frozen=True, slots=True)
class Enrolment:
    """What enrolment made, and what it could not use: one line for each file.

    Attributes:
        population: the speakers, without laws.
        problems: a line each.
        sessions: names and slices of each speaker's sessions, in the order of the slices.
    """

    population: Population
    problems: tuple[str, ...]
    sessions: Mapping[str, tuple[tuple[str, int], ...]] = field(default_factory=dict)


MOST_SECONDS = 1e9
"""Thirty years: what is longer is no length of a template."""


def enrol(
    corpus: Corpus,
    *,
    features: Sequence[str | Feature] | None = None,
    seconds: float = 120.0,
    channel: int | None = None,
    progress: Callable[[Recording], None] = lambda _: None,
    jobs: Jobs = 1,
    told: Callable[[str], object] = lambda _: None,
) -> Enrolment:
    """Make a template of at most ``seconds`` speech seconds for every speaker of a corpus.

    Sessions are taken in order and never share a slice. A file that cannot be used is reported and
    skipped; a speaker without one whole slice is reported and left out.

    Args:
        corpus: recordings by speaker and session.
        features: names, or features; None takes the defaults for audio, and what is there
            for ready-made frames.
        seconds: D, speech seconds, rounded down to whole slices.
        channel: of audio, counted from 1; None mixes all of them.
        progress: called after each recording.
        jobs: processes that listen, or a cluster; the result does not depend on it.
        told: called with a line for people: a transcript seems to be of another recording, or two
            channels that are mixed hold different speech, say.

    Raises:
        CorpusError: nobody could be enrolled.
        UsageError: ``seconds`` is less than a slice, or there is no such feature.
    """
    if not SLICE_SECONDS <= seconds <= MOST_SECONDS:
        raise UsageError(f"{seconds:g} s are no length of a template; at least {SLICE_SECONDS:g} s")
    wanted = int(seconds // SLICE_SECONDS)
    listener = Listener(features, channel)
    problems = list(corpus.problems)
    speakers: list[Speaker] = []
    offsets = [0]
    slices: dict[str, list[AnyArray]] = {}
    sessions: dict[str, tuple[tuple[str, int], ...]] = {}
    made = speakers_in_order(
        corpus.recordings, listener, partial(_summed, wanted), slices=wanted, jobs=jobs
    )
    with closing(made) as results:
        for recordings, each in results:
            name = recordings[0].speaker
            problems += each.problems
            for line in each.told:
                told(line)
            for recording in recordings:
                progress(recording)
            if each.count == 0:
                problems.append(f"{name}: less than {SLICE_SECONDS:g} s of speech, not enrolled")
                continue
            speakers.append(Speaker(name, each.notes, each.sound))
            sessions[name] = each.sessions
            offsets.append(offsets[-1] + each.count)
            for feature, rows in each.slices.items():
                slices.setdefault(feature, []).extend(rows)
    if not speakers:
        raise CorpusError("nobody could be enrolled: " + "; ".join(problems[:3]))
    templates = {
        feature: FeatureTemplates(spec, spec.kind.packed(np.stack(slices[feature])))
        for feature, spec in listener.specs.items()
    }
    population = Population(speakers, np.asarray(offsets), templates)
    return Enrolment(population, tuple(problems), sessions)


@dataclass(frozen=True, slots=True)
class _Summed:
    """What is left of a speaker's enrolment speech where it was heard.

    Attributes:
        slices: sketches of 5 s each, by feature.
        notes: what they came from.
        sessions: names and slices of the sessions.
        problems: a line each.
        told: what is to be said of their transcripts, a line each.
        sound: what the speech sounds like, as a `Speaker` keeps it.
    """

    slices: Mapping[str, list[AnyArray]]
    notes: tuple[SourceNote, ...]
    sessions: tuple[tuple[str, int], ...]
    problems: tuple[str, ...]
    told: tuple[str, ...]
    sound: AnyArray

    @property
    def count(self) -> int:
        """Slices, over all sessions."""
        return sum(whole for _, whole in self.sessions)


def _summed(
    wanted: int, outcomes: Sequence[HearingOutcome], specs: Mapping[str, FeatureSpec]
) -> _Summed:
    """At most so many slices of one speaker."""
    notes: list[SourceNote] = []
    rows: dict[str, list[AnyArray]] = {}
    count = 0
    counts: list[tuple[str, int]] = []
    for session, group in groupby(outcomes, key=lambda o: o.recording.session):
        used = [(o, o.heard) for o in group if o.heard is not None]
        heard = [each for _, each in used]
        found = [(file_name(o.recording.path)[:LONGEST_NAME], o.hashes) for o, _ in used]
        ticks = sum(each.speech_ticks for each in heard)
        whole = min(ticks // SLICE_TICKS, wanted - count)
        notes += _notes(session, found, heard, whole * SLICE_TICKS)
        for feature, spec in specs.items():
            if whole:
                rows.setdefault(feature, []).extend(_slices(heard, spec, whole))
        count += whole
        counts.append((session, whole))
    problems = tuple(o.problem for o in outcomes if o.problem)
    told = tuple(line for o in outcomes if o.heard is not None for line in o.heard.told)
    return _Summed(rows, tuple(notes), tuple(counts), problems, told, _sound(outcomes))


def _sound(outcomes: Sequence[HearingOutcome]) -> AnyArray:
    """What all that was heard sounds like; empty where it was no audio."""
    total, seconds = np.zeros(ROW, np.int64), 0.0
    for each in (o.heard for o in outcomes):
        if each is not None and each.sound is not None:
            total += each.sound
            seconds += each.speech.size / TICKS_PER_SECOND
    return sound_of(condition_of(total), seconds) if seconds else np.zeros(0, "<f4")


def _notes(
    session: str, found: list[tuple[str, tuple[str, ...]]], heard: list[SpeechFrames], used: int
) -> list[SourceNote]:
    """What the first ``used`` ticks of speech came from; nothing of a file is an empty interval."""
    notes = []
    for (label, hashes), each in zip(found, heard, strict=True):
        mine = min(each.speech_ticks, used)
        used -= mine
        end = each.audio_seconds_at(mine) if mine else 0.0
        notes.append(SourceNote(label, session, hashes, 0.0, end, _landmarks(each, end)))
    return notes


def landmarks_of(path: Path, end_seconds: float) -> AnyArray:
    """Landmarks of the beginning of a recording, as a `SourceNote` has them."""
    return _landmarks(Listener(("f0",)).hear(path, landmarks=True), end_seconds)


def _landmarks(heard: SpeechFrames, end_seconds: float) -> AnyArray:
    """Those of the part that is in the template."""
    times, pitches = heard.landmarks or (np.empty(0, np.intp),) * 2
    inside = times < end_seconds * FRAMES_PER_SECOND
    return pack(times[inside], pitches[inside])


def _slices(heard: list[SpeechFrames], spec: FeatureSpec, count: int) -> list[AnyArray]:
    """The first ``count`` slices of one session's speech, recording after recording."""
    sketches = [spec.sketch() for _ in range(count)]
    before = 0
    for each in heard:
        track = each.tracks[spec.name]
        # a frame belongs to the speech second in which it was completed
        place = np.maximum(track.at + before - 1, 0) // SLICE_TICKS
        bounds = np.searchsorted(place, np.arange(count + 1))
        for i, sketch in enumerate(sketches):
            sketch.learn_many(track.values[bounds[i] : bounds[i + 1]])
        before += each.speech_ticks
    return [sketch.total for sketch in sketches]
