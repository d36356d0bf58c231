"""Extracts frames from a corpus, on the speech clock, in several processes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import TypeAlias, TypeVar

import numpy as np

from monitor.corpus.recordings import Recording, describe_unusable
from monitor.errors import MonitorError, SourceError, UsageError
from monitor.features.channel import CONDITION
from monitor.features.extractor import Extractor
from monitor.features.framing import join_runs
from monitor.features.landmarks import Landmarks
from monitor.features.registry import (
    AS_ENVIRONMENT,
    FEATURES,
    FeatureSetup,
    defaults,
    list_marks,
    make,
    takes,
)
from monitor.jobs import Jobs, each_in_order, here
from monitor.kinds import FeatureSpec, unlike_networks
from monitor.maths.landmarks import NAME, frames_of, unpack
from monitor.population.templates import SLICE_SECONDS
from monitor.protocols import Feature, Source
from monitor.sources.beside import SideInputSource, select_words, with_words
from monitor.sources.frames import FramesFile
from monitor.sources.registry import is_frames, open_source, recording_hashes
from monitor.stream.intake import find_coverage
from monitor.training.starts import StartListener
from monitor.transcripts.choice import SIDECAR, TranscriptChoice
from monitor.types import (
    TICKS_PER_SECOND,
    AnyArray,
    Block,
    BoolArray,
    EarlyFrames,
    Frames,
    Gap,
    IntArray,
    Starts,
    Track,
    Words,
)
from monitor.virtual_files import Readable, make_absolute


def select_word_features(features: Sequence[Feature]) -> list[Feature]:
    """Return the features that use words."""
    return [feature for feature in features if feature.spec.takes == "words"]


def with_transcript(
    source: Source,
    path: Readable,
    features: Sequence[Feature],
    words: TranscriptChoice,
    speaker: str | None = None,
    start_seconds: float = 0.0,
) -> Source:
    """Add the transcript to a recording if a feature uses words."""
    if not select_word_features(features):
        return source
    return with_words(source, path, words, own_speaker=speaker, start_seconds=start_seconds)


def describe_transcript(words: Words, label: str, speech: BoolArray) -> tuple[str, ...]:
    """Describe any doubt that a transcript is of this recording, until ``speech`` ends."""
    coverage = find_coverage(select_words(words, words.begins < speech.size), speech)
    return (coverage.sentence(label),) if coverage is not None and coverage.doubtful else ()


def extract_runs(
    source: Source,
    features: Sequence[Feature],
    channel: int | None = None,
    *,
    most_speech: float = np.inf,
    template: bool = False,
    conditions: bool = False,
    starts: StartListener | None = None,
) -> Iterator[Frames]:
    """Extract the frames of an audio recording in runs; those of words have no ticks.

    ``starts`` receives the same blocks. A ``template`` has no early frames, and no windows that
    begin after ``most_speech`` ticks of speech.
    """
    word_features = select_word_features(features)
    audio_features = [feature for feature in features if feature not in word_features]
    wanted = most_speech if template else None
    extractor = Extractor(audio_features, channel, conditions=conditions, template=wanted)
    for feature in word_features:
        feature.reset()
    ticks = 0
    for item in source:
        if isinstance(item, Gap):
            raise SourceError(item.detail or f"{source.label}: {item.reason}")
        if isinstance(item, Words):
            yield wrap_tracks(word_features, [f.process(item) for f in word_features])
        elif isinstance(item, Block):
            run = extractor.process(item)
            if starts is not None:
                starts.push(item, run)
            yield run
            ticks += int(run.speech.sum())
            if ticks > most_speech:  # only now are all frames up to most_speech complete
                break
    last = extractor.flush()
    if starts is not None:
        starts.keep(last)
    yield last
    yield wrap_tracks(word_features, [f.flush() for f in word_features])


def wrap_tracks(features: Sequence[Feature], tracks: Sequence[Track]) -> Frames:
    """Return the tracks of features of words as a run without ticks."""
    named = {feature.spec.name: track for feature, track in zip(features, tracks, strict=True)}
    return Frames(np.empty(0, np.bool_), named)


@dataclass(frozen=True, slots=True)
class SpeechTrack:
    """Frames of one feature."""

    values: AnyArray  # as in ``Track``
    at: IntArray  # ticks of speech when each frame was complete
    since: IntArray | None = None  # ticks of speech when its audio began; None if complete at once
    early: EarlyFrames | None = None  # with ticks of speech


@dataclass(frozen=True, slots=True)
class SpeechFrames:
    """Frames of one recording, on the speech clock."""

    speech: BoolArray  # shape (ticks,), the voice activity decisions
    tracks: dict[str, SpeechTrack]
    lost: str = ""  # describes lost audio, for people
    messages: tuple[str, ...] = ()  # on the recording and its transcript
    sound: AnyArray | None = None  # counts, shape (ROW,) of `monitor.maths.condition`, if requested
    landmarks: tuple[IntArray, IntArray] | None = None  # times, pitches, if requested
    starts: Starts | None = None  # if requested

    @property
    def speech_ticks(self) -> int:
        """Ticks of speech."""
        return int(self.speech.sum())

    def audio_seconds_at(self, speech_ticks: int) -> float:
        """Return the audio seconds before speech continues after this many ticks of speech."""
        index = np.searchsorted(np.cumsum(self.speech), speech_ticks, side="right")
        return float(index) / TICKS_PER_SECOND


class FeatureExtractor:
    """Extractor of the same features from every recording of a corpus.

    Args:
        features: names or `Feature` objects. None uses the defaults for audio, and all features of
            a frames file.
        channel: audio channel, counted from 1; None mixes all channels.
        sounds: whether to measure the sound conditions of all speech, not only of templates.
        starts: whether to extract also streams that begin within a recording.
    """

    def __init__(
        self,
        features: Sequence[str | Feature] | None = None,
        channel: int | None = None,
        setup: FeatureSetup = AS_ENVIRONMENT,
        *,
        sounds: bool = False,
        starts: bool = False,
    ) -> None:
        self.channel, self.setup, self.sounds, self.starts = channel, setup, sounds, starts
        self._requests = tuple(features) if features is not None else None
        self._instances: list[Feature] | None = None
        self.specs: dict[str, FeatureSpec] = {}  # empty before the first recording

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the features; None if any is an object, which no other process can make."""
        extracted: tuple[str, ...] = tuple(self.specs) or defaults(setup=self.setup)
        chosen: tuple[str | Feature, ...] = self._requests or extracted
        names = tuple(feature for feature in chosen if isinstance(feature, str))
        return names if len(names) == len(chosen) else None

    def extract(
        self,
        path: Readable,
        *,
        speech_seconds: float | None = None,
        words: TranscriptChoice = SIDECAR,
        speaker: str | None = None,
        landmarks: bool = False,
    ) -> SpeechFrames:
        """Extract the frames of a recording; without starts, only those of a template."""
        source = open_source(path)
        features: list[Feature] = []
        if isinstance(source, FramesFile):
            specs = {
                name: _complete_spec(source, spec, self.setup)
                for name, spec in source.stream_info.tracks.items()
            }
        else:
            features = self._features()
            specs = {feature.spec.name: feature.spec for feature in features}
            source = with_transcript(source, path, features, words, speaker)
        self._check_specs(path, specs)
        maximum = np.inf if speech_seconds is None else round(speech_seconds * TICKS_PER_SECOND)
        channel = None if self.channel is None else self.channel - 1
        starts = listen_for_starts(features, channel) if self.starts else None
        with source:
            if isinstance(source, FramesFile):
                runs = _read_runs(source, maximum)
            else:
                runs = extract_runs(
                    source,
                    [*features, *([Landmarks()] if landmarks else [])],
                    channel,
                    most_speech=maximum,
                    template=not self.starts,
                    conditions=self.sounds or speech_seconds is not None,
                    starts=starts,
                )
            frames = speech_frames(path.name, list(runs), self.specs)
        if starts is not None:
            frames = replace(frames, starts=starts.finish())
        if isinstance(source, FramesFile):
            peaks = source.header.landmarks
            unpacked = unpack(peaks) if landmarks and peaks is not None else None
            header = source.header
            frames = replace(frames, sound=header.sound, landmarks=unpacked, starts=header.starts)
        if isinstance(source, SideInputSource) and source.words is not None:
            label = source.transcripts[0].label
            messages = describe_transcript(source.words, label, frames.speech)
            frames = replace(frames, messages=frames.messages + messages)
        return frames

    def _features(self) -> list[Feature]:
        """Return the features of audio, which are made once."""
        if self._instances is None:
            try:
                chosen = self._requests or self.specs or defaults(setup=self.setup)
                self._instances = make(chosen, self.setup)
            except MonitorError as error:  # would fail for every recording
                raise UsageError(str(error)) from None
        return self._instances

    def _check_specs(self, path: Readable, specs: dict[str, FeatureSpec]) -> None:
        if not self.specs:
            names = [w if isinstance(w, str) else w.spec.name for w in self._requests or specs]
            missing = [name for name in names if name not in specs]
            if missing:
                raise SourceError(f"{path.name}: no frames of {', '.join(missing)}")
            self.specs = {name: specs[name] for name in names}
        for name, spec in self.specs.items():
            found_spec = specs.get(name)
            if (
                found_spec is not None
                and found_spec == replace(spec, network=found_spec.network) != spec
            ):
                mismatch = unlike_networks(
                    name, path.name, found_spec.network, "the others", spec.network
                )
                raise SourceError(f"{mismatch}. Extract all of them again with one version.")
            if found_spec != spec:
                raise SourceError(
                    f"{path.name}: its {name!r} differs from the others'. Frames files must give "
                    "the same sizes in their headers."
                )


def listen_for_starts(features: Sequence[Feature], channel: int | None) -> StartListener:
    """Return an extractor of streams that begin within a recording, for features of audio."""
    words = select_word_features(features)
    return StartListener([feature for feature in features if feature not in words], channel)


def speech_frames(label: str, runs: Sequence[Frames], names: Iterable[str]) -> SpeechFrames:
    """Join the runs of a recording, and put the frames of these features on the speech clock."""
    if not runs:
        raise SourceError(f"{label}: no audio could be processed")
    frames = join_runs(runs)
    clock = np.concatenate([[0], np.cumsum(frames.speech)])

    def to_speech(ticks: IntArray) -> IntArray:
        return np.asarray(clock[np.minimum(ticks, frames.speech.size)])

    tracks = {}
    for name in names:
        track = frames.tracks[name]
        since = None if track.spans is None else to_speech(track.spans[:, 0])
        early = track.early
        if early is not None:
            early = replace(early, ticks=to_speech(early.ticks))
        placed = to_speech(track.ticks.astype(np.int64))
        tracks[name] = SpeechTrack(track.values, placed, since, early)
    return SpeechFrames(
        frames.speech,
        tracks,
        describe_loss(frames, label),
        list_notices(frames, label),
        rows.values.sum(axis=0, dtype=np.int64) if (rows := frames.tracks.get(CONDITION)) else None,
        frames_of(frames.tracks.get(NAME)),
    )


def describe_loss(frames: Frames, label: str) -> str:
    """Describe the lost audio of a recording; empty if none was lost."""
    if not frames.gaps:
        return ""
    lost = sum(gap.lost_seconds or 0.0 for _, gap in frames.gaps)
    return f"{lost:.3g} s of {label}: {frames.gaps[0][1].reason}"


def list_notices(frames: Frames, label: str) -> tuple[str, ...]:
    """Return the notices of a recording, for people."""
    return tuple(f"{label}: {notice.text}" for _, notice in frames.notices)


def _read_runs(source: Source, most_speech: float) -> Iterator[Frames]:
    """Read the runs of a frames file until they exceed ``most_speech`` ticks of speech."""
    ticks = 0
    for item in source:
        if isinstance(item, Frames):
            yield item
            ticks += int(item.speech.sum())
            if ticks > most_speech:
                break


def _complete_spec(source: FramesFile, spec: FeatureSpec, setup: FeatureSetup) -> FeatureSpec:
    """Return a frames file's spec; the built-in feature provides values that it lacks."""
    if spec.name not in FEATURES or not spec.kind.counted:
        return spec
    built_in = make((spec.name,), setup)[0].spec
    seconds = source.header.frame_seconds.get(spec.name, built_in.frame_seconds)
    return replace(spec, size=max(built_in.size, spec.size), frame_seconds=seconds)


SLICE_TICKS = round(SLICE_SECONDS * TICKS_PER_SECOND)

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class ExtractionOutcome:
    """Outcome of extracting features from one recording."""

    recording: Recording
    frames: SpeechFrames | None = None  # None if not needed or unreadable
    hashes: tuple[str, ...] = ()
    problem: str = ""  # describes unusable parts


_Summary: TypeAlias = Callable[[Sequence[ExtractionOutcome], Mapping[str, FeatureSpec]], _Result]


def extract_in_order(
    recordings: Sequence[Recording], extractor: FeatureExtractor, *, jobs: Jobs = 1
) -> Generator[ExtractionOutcome, None, None]:
    """Extract every recording, in order; the result does not depend on ``jobs``."""
    groups = [(recording,) for recording in recordings]
    outcomes = _extract_groups(groups, extractor, None, _keep_all, jobs)
    for (recording,), (outcome,) in zip(groups, outcomes, strict=True):
        yield replace(outcome, recording=recording)


def summarise_in_order(
    recordings: Sequence[Recording],
    extractor: FeatureExtractor,
    summarise: _Summary[_Result],
    *,
    slices: int | None = None,
    jobs: Jobs = 1,
) -> Generator[tuple[tuple[Recording, ...], _Result], None, None]:
    """Summarise every speaker, in order; no frame leaves the process that extracted it."""
    groups = [tuple(group) for _, group in groupby(recordings, lambda r: r.speaker)]
    yield from zip(groups, _extract_groups(groups, extractor, slices, summarise, jobs), strict=True)


def _extract_groups(
    groups: Sequence[tuple[Recording, ...]],
    extractor: FeatureExtractor,
    slices: int | None,
    summarise: _Summary[_Result],
    jobs: Jobs,
) -> Generator[_Result, None, None]:
    tasks = [  # absolute, because workers may have another working folder
        tuple(replace(r, path=make_absolute(r.path), words=r.words.make_absolute()) for r in group)
        for group in groups
    ]
    names = extractor.names
    ready_made = any(is_frames(recording.path) for group in groups for recording in group)
    if names is None or ready_made or here(jobs, tasks):
        for outcomes in each_in_order(partial(_extract, extractor, slices), tasks):
            yield summarise(outcomes, extractor.specs)
        return
    words, setup = "words" in map(takes, names), extractor.setup.elsewhere()
    sent = FeatureExtractor(
        names, extractor.channel, setup, sounds=extractor.sounds, starts=extractor.starts
    )
    results = each_in_order(
        partial(_extract_elsewhere, sent, slices, summarise),
        tasks,
        jobs,
        reads=lambda group: [f for r in group for f in r.words.files(r.path, words=words)],
        alike=partial(list_marks, names, setup),
    )
    with closing(results):
        for specs, result in results:
            extractor.specs = extractor.specs or specs
            yield result


def _keep_all(
    outcomes: Sequence[ExtractionOutcome], _: Mapping[str, FeatureSpec]
) -> Sequence[ExtractionOutcome]:
    return outcomes


def _extract_elsewhere(
    sent: FeatureExtractor,
    slices: int | None,
    summarise: _Summary[_Result],
    recordings: Sequence[Recording],
) -> tuple[dict[str, FeatureSpec], _Result]:
    extractor = copy(sent)  # one per group
    outcomes = _extract(extractor, slices, recordings)
    return extractor.specs, summarise(outcomes, extractor.specs)


def _extract(
    extractor: FeatureExtractor, slices: int | None, recordings: Sequence[Recording]
) -> list[ExtractionOutcome]:
    outcomes = []
    count = 0
    for _, session in groupby(recordings, lambda r: r.session):
        ticks = 0
        for recording in session:
            remaining = None if slices is None else (slices - count) * SLICE_TICKS - ticks
            outcome = _extract_recording(extractor, recording, remaining)
            if outcome.frames is not None:
                ticks += outcome.frames.speech_ticks
            outcomes.append(outcome)
        if slices is not None:
            count += min(ticks // SLICE_TICKS, slices - count)
    return outcomes


def _extract_recording(
    extractor: FeatureExtractor, recording: Recording, remaining: int | None
) -> ExtractionOutcome:
    if remaining is not None and remaining <= 0:
        return ExtractionOutcome(recording)
    try:
        hashes = () if remaining is None else recording_hashes(recording.path)
        seconds = None if remaining is None else remaining / TICKS_PER_SECOND
        frames = extractor.extract(
            recording.path,
            speech_seconds=seconds,
            words=recording.words,
            speaker=recording.speaker,
            landmarks=remaining is not None,
        )
    except UsageError:  # the call is wrong, not this file
        raise
    except MonitorError as error:
        problem = describe_unusable(recording.path, error, recording.speaker)
        return ExtractionOutcome(recording, problem=problem)
    return ExtractionOutcome(recording, frames, hashes, frames.lost)
