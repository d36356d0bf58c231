"""`enrol` makes templates in one pass over each speaker's recordings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from itertools import groupby
from os import PathLike
from typing import TypeAlias

import numpy as np

from monitor.corpus import Corpus, Recording, find
from monitor.errors import CorpusError, UsageError
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup
from monitor.jobs import Jobs
from monitor.kinds import FeatureSpec
from monitor.maths.condition import ROW, condition_of
from monitor.maths.landmarks import FRAMES_PER_SECOND, pack
from monitor.population.cohort import FeatureTemplates
from monitor.population.people import SourceNote, Speaker, sound_of
from monitor.population.population import Population
from monitor.population.templates import SLICE_SECONDS
from monitor.protocols import Feature
from monitor.safe_text import LONGEST_NAME, file_name
from monitor.sources.registry import span_of
from monitor.training.feature_extraction import (
    SLICE_TICKS,
    ExtractionOutcome,
    FeatureExtractor,
    SpeechFrames,
    summarise_in_order,
)
from monitor.training.session_checks import describe_other_voices
from monitor.types import TICKS_PER_SECOND, AnyArray

Sessions: TypeAlias = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Enrolment:
    """Templates of speakers, and the problems found. You can pass it to `calibrate`.

    Attributes:
        population: the enrolled speakers, without rank models.
        problems: one line per unusable file or speaker.
        sessions: name and number of slices of each session, by speaker, in the order of the slices.
        notes: one line per session that sounds like more than one voice.
        corpus, features, setup: arguments of `enrol`.
    """

    population: Population
    problems: tuple[str, ...]
    sessions: Mapping[str, Sessions] = field(default_factory=dict)
    corpus: Corpus = field(default=Corpus((), ()), kw_only=True)
    features: tuple[str | Feature, ...] | None = field(default=None, kw_only=True)
    setup: FeatureSetup = field(default=AS_ENVIRONMENT, kw_only=True)
    notes: tuple[str, ...] = field(default=(), kw_only=True)


MOST_SECONDS = 1e9  # thirty years


def enrol(
    corpus: Corpus | str | PathLike[str],
    *,
    features: Sequence[str | Feature] | None = None,
    seconds: float = 120.0,
    channel: int | None = None,
    progress: Callable[[Recording], None] = lambda _: None,
    jobs: Jobs = 1,
    notify: Callable[[str], object] = lambda _: None,
    setup: FeatureSetup = AS_ENVIRONMENT,
) -> Enrolment:
    """Enrol every speaker of a corpus, with at most ``seconds`` of speech each.

    Sessions are used in order and never share a slice. Unusable files, and speakers with less than
    one slice of speech, are skipped and reported in ``problems``.

    Args:
        corpus: recordings by speaker and session, or the path of a corpus.
        features: names or `Feature` objects. None uses the defaults for audio, and all features
            of ready-made frames.
        seconds: maximum template length D in speech seconds, rounded down to whole slices.
        channel: audio channel, counted from 1; None mixes all channels.
        progress: called after each recording.
        jobs: number of worker processes, or a cluster. The result does not depend on it.
        notify: called with a message for people, for example about a doubtful transcript.
        setup: files and networks of the features.

    Raises:
        CorpusError: no speaker could be enrolled.
        UsageError: ``seconds`` is less than a slice, or a feature does not exist.
    """
    corpus = corpus if isinstance(corpus, Corpus) else find(corpus)
    slice_limit = whole_slices(seconds)
    extractor = FeatureExtractor(features, channel, setup)
    problems, notes = list(corpus.problems), list[str]()
    speakers: list[Speaker] = []
    offsets = [0]
    slices: dict[str, list[AnyArray]] = {}
    sessions: dict[str, Sessions] = {}
    summaries = summarise_in_order(
        corpus.recordings,
        extractor,
        partial(sum_slices, slice_limit),
        slices=slice_limit,
        jobs=jobs,
    )
    with closing(summaries) as results:
        for recordings, summary in results:
            speaker, speaker_sessions, rows, unusable, messages, doubts = summary
            problems += unusable
            notes += doubts
            for line in messages:
                notify(line)
            for recording in recordings:
                progress(recording)
            count = sum(slice_count for _, slice_count in speaker_sessions)
            if count == 0:
                problems.append(
                    f"{speaker.name}: less than {SLICE_SECONDS:g} s of speech, not enrolled"
                )
                continue
            speakers.append(speaker)
            sessions[speaker.name] = speaker_sessions
            offsets.append(offsets[-1] + count)
            for feature, slices_of_feature in rows.items():
                slices.setdefault(feature, []).extend(slices_of_feature)
    if not speakers:
        raise CorpusError("no speaker could be enrolled: " + "; ".join(problems[:3]))
    population = Population(speakers, np.asarray(offsets), templates_of(slices, extractor.specs))
    chosen = None if features is None else tuple(features)
    return Enrolment(
        population,
        tuple(problems),
        sessions,
        corpus=corpus,
        features=chosen,
        setup=setup,
        notes=tuple(notes),
    )


def whole_slices(seconds: float) -> int:
    """Return the number of whole slices in these seconds."""
    if not SLICE_SECONDS <= seconds <= MOST_SECONDS:
        raise UsageError(f"invalid template length {seconds:g} s: use at least {SLICE_SECONDS:g} s")
    return int(seconds // SLICE_SECONDS)


def templates_of(
    slices: Mapping[str, Sequence[AnyArray]], specs: Mapping[str, FeatureSpec]
) -> dict[str, FeatureTemplates]:
    """Make templates of features from the slices of each speaker."""
    return {
        feature: FeatureTemplates(spec, spec.kind.packed(np.stack(slices[feature])))
        for feature, spec in specs.items()
    }


def sum_slices(
    slice_limit: int, outcomes: Sequence[ExtractionOutcome], specs: Mapping[str, FeatureSpec]
) -> tuple[Speaker, Sessions, dict[str, list[AnyArray]], list[str], list[str], list[str]]:
    """Sum one speaker's frames into at most ``slice_limit`` slices.

    Returns the speaker, sessions, slices, problems, messages, and notes about several voices.
    """
    notes: list[SourceNote] = []
    doubts: list[str] = []
    name = outcomes[0].recording.speaker
    rows: dict[str, list[AnyArray]] = {}
    count = 0
    sessions: list[tuple[str, int]] = []
    total, seconds = np.zeros(ROW, np.int64), 0.0
    for session, group in groupby(outcomes, key=lambda o: o.recording.session):
        used = [(o, o.frames) for o in group if o.frames is not None]
        frames = [recording for _, recording in used]
        speech_ticks = sum(recording.speech_ticks for recording in frames)
        slice_count = min(speech_ticks // SLICE_TICKS, slice_limit - count)
        remaining = slice_count * SLICE_TICKS
        for outcome, recording in used:
            ticks = min(recording.speech_ticks, remaining)
            remaining -= ticks
            end = recording.audio_seconds_at(ticks) if ticks else 0.0  # 0: not in the template
            path, landmarks = outcome.recording.path, landmarks_of(recording, end)
            label = file_name(path.name)[:LONGEST_NAME]
            begin = 0.0
            if end and (span := span_of(path)) is not None:
                begin, end = span
            notes.append(SourceNote(label, session, outcome.hashes, begin, end, landmarks))
            if recording.sound is not None:
                total += recording.sound
                seconds += recording.speech.size / TICKS_PER_SECOND
        for feature, spec in specs.items():
            if slice_count:
                rows.setdefault(feature, []).extend(_slices(frames, spec, slice_count))
        # a live take has no file
        labelled = [
            (file_name(o.recording.path.name) if o.hashes else "the recording", recording)
            for o, recording in used
        ]
        doubts += describe_other_voices(name, labelled, specs, slice_count * SLICE_TICKS)
        count += slice_count
        sessions.append((session, slice_count))
    sound = sound_of(condition_of(total), seconds) if seconds else np.zeros(0, "<f4")
    problems = [o.problem for o in outcomes if o.problem]
    lines = [line for o in outcomes if o.frames is not None for line in o.frames.messages]
    today = date.today().isoformat()  # without the hour: a template is biometric data
    speaker = Speaker(name, tuple(notes), sound, days=(today, today))
    return speaker, tuple(sessions), rows, problems, lines, doubts


def landmarks_of(frames: SpeechFrames, end_seconds: float) -> AnyArray:
    """Return the landmarks before ``end_seconds``, packed for a `SourceNote`."""
    times, pitches = frames.landmarks or (np.empty(0, np.intp),) * 2
    inside = times < end_seconds * FRAMES_PER_SECOND
    return pack(times[inside], pitches[inside])


def _slices(recordings: list[SpeechFrames], spec: FeatureSpec, count: int) -> list[AnyArray]:
    sketches = [spec.sketch() for _ in range(count)]
    before = 0
    for frames in recordings:
        track = frames.tracks[spec.name]
        # a frame belongs to the speech second in which it was completed
        slice_index = np.maximum(track.at + before - 1, 0) // SLICE_TICKS
        bounds = np.searchsorted(slice_index, np.arange(count + 1))
        for i, sketch in enumerate(sketches):
            sketch.learn_many(track.values[bounds[i] : bounds[i + 1]])
        before += frames.speech_ticks
    return [sketch.total for sketch in sketches]
