"""Make templates: one pass over the enrolment speech of each speaker, checked."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import partial
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from monitor.corpus import Corpus, Recording, find
from monitor.errors import CorpusError, StoreError, UsageError
from monitor.features.channel import Landmarks
from monitor.features.extractor import Extractor
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
from monitor.stream.attacker import Attacker
from monitor.stream.totals import RunningTotals
from monitor.training.feature_extraction import (
    SLICE_TICKS,
    ExtractionOutcome,
    FeatureExtractor,
    SpeechFrames,
    speech_frames,
    summarise_in_order,
)
from monitor.training.one_voice import describe_other_voices
from monitor.types import TICKS_PER_SECOND, AnyArray, Block, FloatArray, Frames, IntArray

# --- Each session is a stream against a template of the others, among other people, and the
# reverse. Where that leaves an attacker further from the speaker than no evidence would, two people
# may have been enrolled as one (benchmarks/results/sessions.md).

LEAST_SECONDS = 30.0  # speech of a session, and of the others together, worth comparing
UNLIKE_BITS = -1.0  # mean local bits of both directions: below, they are of two people


@dataclass(frozen=True, slots=True)
class UnlikeSession:
    """A session that does not sound like the speaker's others."""

    speaker: str
    session: str
    bits: float  # local bits of the speaker, mean of both directions


def unlike_sessions(
    population: Population, sessions: Mapping[str, Sequence[tuple[str, int]]], others: Population
) -> list[UnlikeSession]:
    """Find sessions that sound unlike their speaker's others."""
    unlike: list[UnlikeSession] = []
    try:
        for name in population.names:
            if name not in others.names:
                slices = _slices_of(population, name)
                unlike += _find_unlike(name, sessions.get(name, ()), slices, population, others)
    except (StoreError, UsageError):  # no rank model, or no speaker with enough speech
        return []
    return unlike


def unlike_additions(
    before: Population, after: Population, sessions: Mapping[str, Sequence[tuple[str, int]]]
) -> list[UnlikeSession]:
    """Find additional sessions that sound unlike the earlier ones."""
    additions: list[UnlikeSession] = []
    for name in (name for name in sessions if name in before.names):
        parts = (("", int(np.diff(before.offsets)[before.index(name)])), *sessions[name])
        with suppress(StoreError, UsageError):  # no rank model, or no speaker with enough speech
            slices = _slices_of(after, name)
            unlike = _find_unlike(name, parts, slices, after, before.without(name))
            additions += [session for session in unlike if session.session]
    return additions


def _slices_of(population: Population, name: str) -> dict[str, AnyArray]:
    place = population.index(name)
    rows = slice(population.offsets[place], population.offsets[place + 1])
    return {key: templates.slices[rows] for key, templates in population.features.items()}


def _find_unlike(
    name: str,
    parts: Sequence[tuple[str, int]],
    slices: Mapping[str, AnyArray],
    population: Population,
    others: Population,
) -> list[UnlikeSession]:
    """Find the sessions that differ most, one after the other, until the rest is alike."""
    owner = np.repeat(np.arange(len(parts)), [count for _, count in parts])
    unlike: list[UnlikeSession] = []
    while True:
        bits = {}
        for i in np.unique(owner[owner >= 0]).tolist():
            mine, rest = np.flatnonzero(owner == i), np.flatnonzero((owner >= 0) & (owner != i))
            if min(mine.size, rest.size) * SLICE_SECONDS >= LEAST_SECONDS:
                directions = [
                    _compute_bits(slices, *pair, population, others)
                    for pair in ((rest, mine), (mine, rest))
                ]
                bits[i] = float(np.mean(directions))
        lowest = min(bits, key=bits.__getitem__, default=None)
        if lowest is None or bits[lowest] >= UNLIKE_BITS:
            return unlike
        # two sessions do not show which one is wrong
        suspects = bits if len(bits) == 2 else [lowest]
        unlike += [UnlikeSession(name, parts[i][0], bits[i]) for i in suspects]
        owner[np.isin(owner, list(suspects))] = -1


def _compute_bits(
    slices: Mapping[str, AnyArray],
    template: IntArray,
    test: IntArray,
    population: Population,
    others: Population,
) -> float:
    """Compute local bits of a stream of the slices ``test`` under a template of ``template``."""
    name = "the speaker"
    while name in others.names:
        name += "'"
    alone = Population(
        [Speaker(name)],
        np.array([0, template.size]),
        {
            key: replace(templates, slices=slices[key][template])
            for key, templates in population.features.items()
        },
    )
    attacker = Attacker(others.joined(alone), tuple(population.features), name)
    if not attacker.watched:
        raise UsageError(attacker.withheld)
    totals = {}
    for key, templates in population.features.items():
        total = slices[key][test].astype(float).sum(axis=0)[None]
        frames = np.abs(total).sum(axis=1).round().astype(np.int64)
        totals[key] = RunningTotals(total, frames, frames * templates.spec.frame_seconds)
    seconds = np.array([test.size * SLICE_SECONDS])
    local = attacker.assess_each(totals, seconds)[0].local
    assert local is not None
    return local.value


# --- Enrolment of a corpus.


Sessions: TypeAlias = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Enrolment:
    """Templates of speakers, and problems on the way; `calibrate` takes it as it is.

    Attributes:
        population: the speakers, without rank models.
        problems: a line for each file that could not be used.
        sessions: names and slices of each speaker's sessions, in the order of the slices.
        notes: a line for each session that does not sound like one voice alone.
        corpus, features, setup: what was enrolled, by which features, made from where.
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
    """Make a template of at most ``seconds`` speech seconds for every speaker of a corpus.

    Sessions are taken in order and never share a slice. A file that cannot be used is reported and
    skipped; a speaker without one whole slice is reported and left out.

    Args:
        corpus: recordings by speaker and session, or the path of a corpus.
        features: names, or features; None takes the defaults for audio, and what is there for
            ready-made frames.
        seconds: D, speech seconds, rounded down to whole slices.
        channel: of audio, counted from 1; None mixes all of them.
        progress: called after each recording.
        jobs: processes that listen, or a cluster; the result does not depend on it.
        notify: called with a message for people, such as a doubtful transcript.
        setup: from where features are made.

    Raises:
        CorpusError: no speaker could be enrolled.
        UsageError: ``seconds`` is less than a slice, or there is no such feature.
    """
    corpus = corpus if isinstance(corpus, Corpus) else find(corpus)
    slice_limit = _whole_slices(seconds)
    listener = FeatureExtractor(features, channel, setup)
    problems, notes = list(corpus.problems), list[str]()
    speakers: list[Speaker] = []
    offsets = [0]
    slices: dict[str, list[AnyArray]] = {}
    sessions: dict[str, Sessions] = {}
    summaries = summarise_in_order(
        corpus.recordings,
        listener,
        partial(_sum_slices, slice_limit),
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
    population = Population(speakers, np.asarray(offsets), _templates(slices, listener.specs))
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


def _whole_slices(seconds: float) -> int:
    if not SLICE_SECONDS <= seconds <= MOST_SECONDS:
        raise UsageError(f"{seconds:g} s are no length of a template; at least {SLICE_SECONDS:g} s")
    return int(seconds // SLICE_SECONDS)


def _templates(
    slices: Mapping[str, Sequence[AnyArray]], specs: Mapping[str, FeatureSpec]
) -> dict[str, FeatureTemplates]:
    return {
        feature: FeatureTemplates(spec, spec.kind.packed(np.stack(slices[feature])))
        for feature, spec in specs.items()
    }


def _sum_slices(
    slice_limit: int, outcomes: Sequence[ExtractionOutcome], specs: Mapping[str, FeatureSpec]
) -> tuple[Speaker, Sessions, dict[str, list[AnyArray]], list[str], list[str], list[str]]:
    """Sum up one speaker, up to a number of slices.

    Gives the speaker, sessions, slices, problems, messages, and doubts that it is one voice.
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
        left = slice_count * SLICE_TICKS
        for outcome, recording in used:
            ticks = min(recording.speech_ticks, left)
            left -= ticks
            end = recording.audio_seconds_at(ticks) if ticks else 0.0  # nothing of it
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
    today = date.today().isoformat()  # a day and no hour: a template is biometric data
    speaker = Speaker(name, tuple(notes), sound, days=(today, today))
    return speaker, tuple(sessions), rows, problems, lines, doubts


def landmarks_of(frames: SpeechFrames, end_seconds: float) -> AnyArray:
    """Return landmarks of the part that is in the template, as a `SourceNote` has them."""
    times, pitches = frames.landmarks or (np.empty(0, np.intp),) * 2
    inside = times < end_seconds * FRAMES_PER_SECOND
    return pack(times[inside], pitches[inside])


def _slices(recordings: list[SpeechFrames], spec: FeatureSpec, count: int) -> list[AnyArray]:
    """Return the first ``count`` slices of one session's speech, recording after recording."""
    sketches = [spec.sketch() for _ in range(count)]
    before = 0
    for frames in recordings:
        track = frames.tracks[spec.name]
        # a frame belongs to the speech second in which it was completed
        place = np.maximum(track.at + before - 1, 0) // SLICE_TICKS
        bounds = np.searchsorted(place, np.arange(count + 1))
        for i, sketch in enumerate(sketches):
            sketch.learn_many(track.values[bounds[i] : bounds[i + 1]])
        before += frames.speech_ticks
    return [sketch.total for sketch in sketches]


# --- Enrolment of one speaker, live.

RECENT_SECONDS = 5.0  # problems are looked for in this much recent audio
CLIPPED_SHARE = 1e-3
QUIET_DECIBELS = -45.0
SPEECH_SHARE = 0.3
_FULL = 0.999
_LOUD_SHARE = 0.2  # speech, where there is any
_NOTHING_DECIBELS = -120.0
_ROUNDING = 1e-6  # of sums of seconds


@dataclass(frozen=True, slots=True)
class Quality:
    """Level, clipping and speech of a stretch of audio for enrolment."""

    seconds: float
    speech_share: float
    level_decibels: float  # of its loudest fifth, relative to full scale
    clipped_share: float  # samples at full scale

    @property
    def trouble(self) -> str:
        """Fault and how to mend it; empty without one.

        Example:
            >>> Quality(5.0, 0.8, -20.0, 0.0).trouble, Quality(5.0, 0.8, -3.0, 0.02).trouble
            ('', 'clipping: turn the input down, or move away from the microphone')
        """
        if self.seconds <= 0:
            return ""
        if self.clipped_share >= CLIPPED_SHARE:
            return "clipping: turn the input down, or move away from the microphone"
        if self.level_decibels < QUIET_DECIBELS:
            return "too quiet: turn the input up, or move nearer (is it the right input?)"
        if self.speech_share < SPEECH_SHARE:
            return "mostly silence: continue speaking"
        return ""


class LiveEnrolment:
    """Enrolment of one speaker from a live source, in progress."""

    def __init__(self, features: Sequence[Feature]) -> None:
        self._specs = {feature.spec.name: feature.spec for feature in features}
        self._extractor = Extractor([*features, Landmarks()], conditions=True)
        self._runs: list[Frames] = []
        self._recent: deque[_Stretch] = deque()
        self._recent_seconds = 0.0
        self._stretches: list[_Stretch] = []
        self.speech_seconds = 0.0
        self.noticed: list[str] = []

    def push(self, block: Block) -> None:
        """Listen to some more."""
        frames = self._extractor.process(block)
        self._keep(frames)
        stretch = _measure(block, frames.speech.sum() / TICKS_PER_SECOND)
        self._stretches.append(stretch)
        self._recent.append(stretch)
        self._recent_seconds += stretch.seconds
        while self._recent_seconds - self._recent[0].seconds >= RECENT_SECONDS - _ROUNDING:
            self._recent_seconds -= self._recent.popleft().seconds

    @property
    def recent(self) -> Quality:
        """Quality of the last few seconds; of nothing until there are as many."""
        quality = _assess(self._recent)
        if self._recent_seconds < RECENT_SECONDS - _ROUNDING:
            return Quality(0.0, 0.0, quality.level_decibels, 0.0)
        return quality

    @property
    def whole(self) -> Quality:
        """Quality of the whole take."""
        return _assess(self._stretches)

    def enrolment(
        self, speaker: str, heard_by: str, seconds: float, setup: FeatureSetup = AS_ENVIRONMENT
    ) -> Enrolment:
        """End the take and make a template; ``heard_by``, with the time, names the session."""
        slice_limit = _whole_slices(seconds)
        if self.speech_seconds < SLICE_SECONDS:
            raise CorpusError(
                f"{self.speech_seconds:.0f} s of speech are too short for a template, which needs "
                f"at least {SLICE_SECONDS:g} s. Nothing was enrolled. Try again, or use another "
                "input."
            )
        session = f"{heard_by}-{datetime.now().astimezone():%Y-%m-%dT%H%M%S}"
        specs = self._specs
        frames = self.end(session)
        recording = Recording(speaker, session, Path(session))
        outcome = ExtractionOutcome(recording, frames, problem=frames.lost)
        summary = _sum_slices(slice_limit, [outcome], specs)
        enrolled, sessions, slices, problems, _, doubts = summary
        offsets = np.array([0, sum(count for _, count in sessions)])
        return Enrolment(
            Population([enrolled], offsets, _templates(slices, specs)),
            tuple(problems),
            {speaker: sessions},
            corpus=Corpus((recording,), ()),
            features=tuple(specs),
            setup=setup,
            notes=tuple(doubts),
        )

    def end(self, label: str) -> SpeechFrames:
        """End the take; return its frames. ``label`` is what messages call it."""
        self._keep(self._extractor.flush())
        return speech_frames(label, self._runs, self._specs)

    def _keep(self, frames: Frames) -> None:
        self._runs.append(frames)
        self.noticed += [notice.text for _, notice in frames.notices]
        self.speech_seconds += float(frames.speech.sum()) / TICKS_PER_SECOND


class _Stretch(NamedTuple):
    """Measures of a stretch of audio; powers by tick."""

    seconds: float
    speech: float
    powers: FloatArray
    samples: int
    clipped: int


def _measure(block: Block, speech: float) -> _Stretch:
    samples = np.asarray(block.samples, np.float32).reshape(len(block.samples), -1)
    samples = np.nan_to_num(samples)
    tick = max(1, block.rate // TICKS_PER_SECOND)
    mono = samples.mean(axis=1)
    full_ticks = mono[: len(mono) // tick * tick].reshape(-1, tick)
    clipped = int(np.count_nonzero(np.abs(samples) >= _FULL))
    seconds = len(mono) / block.rate
    return _Stretch(seconds, speech, np.square(full_ticks).mean(axis=1), samples.size, clipped)


def _assess(stretches: Collection[_Stretch]) -> Quality:
    """Assess stretches together, the level by their loudest fifth."""
    powers = np.concatenate([np.empty(0), *(stretch.powers for stretch in stretches)])
    samples = sum(stretch.samples for stretch in stretches)
    if not samples:
        return Quality(0.0, 0.0, _NOTHING_DECIBELS, 0.0)
    level = _NOTHING_DECIBELS
    if powers.size:
        most = max(1, round(_LOUD_SHARE * powers.size))
        loud = float(np.mean(np.partition(powers, -most)[-most:]))
        level = 10 * math.log10(loud) if loud > 1e-12 else level
    seconds = sum(stretch.seconds for stretch in stretches)
    speech = sum(stretch.speech for stretch in stretches)
    clipped = sum(stretch.clipped for stretch in stretches)
    return Quality(seconds, speech / seconds, level, clipped / samples)
