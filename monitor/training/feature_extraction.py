"""Frames of the recordings of a corpus, on the speech clock, and folders that keep them."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np

from monitor.corpus import Corpus, Recording, describe_unusable
from monitor.errors import MonitorError, SourceError, UsageError
from monitor.features.channel import CONDITION, Landmarks
from monitor.features.embeddings import EARLY_SECONDS, EARLY_WINDOWS
from monitor.features.extractor import Extractor
from monitor.features.framing import join_runs
from monitor.features.registry import (
    AS_ENVIRONMENT,
    FEATURES,
    FeatureSetup,
    defaults,
    list_marks,
    make,
    takes,
)
from monitor.files import (
    Readable,
    csv_text,
    held_by,
    make_absolute,
    make_folder,
    not_written,
    sweep,
    write_text,
)
from monitor.jobs import Jobs, absolute, each_in_order, here
from monitor.kinds import FeatureSpec, unlike_networks
from monitor.maths.condition import ROW
from monitor.maths.landmarks import NAME, frames_of, pack, unpack
from monitor.population.templates import SLICE_SECONDS
from monitor.protocols import Feature, Source
from monitor.safe_text import file_name, printable
from monitor.sources.base import file_hash
from monitor.sources.beside import SideInputSource, with_words
from monitor.sources.file import File
from monitor.sources.frames import FramesFile, Header, write_frames
from monitor.sources.registry import is_frames, open_source, recording_hashes, span_of
from monitor.stream.word_coverage import find_coverage
from monitor.training.starts import EVERY_SECONDS, START_SECONDS, StartListener
from monitor.transcripts.formats import SIDECAR, TranscriptChoice, words_mark
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
from monitor.version import __version__

# --- Runs of a recording.


def select_word_features(features: Sequence[Feature]) -> list[Feature]:
    """Return the features that are made of words."""
    return [feature for feature in features if feature.spec.takes == "words"]


def with_transcript(
    source: Source,
    path: Readable,
    features: Sequence[Feature],
    words: TranscriptChoice,
    speaker: str | None = None,
    start_seconds: float = 0.0,
) -> Source:
    """Add its transcript to a recording where one of the features is made of words."""
    if not select_word_features(features):
        return source
    return with_words(source, path, words, own=speaker, start_seconds=start_seconds)


def describe_transcript(words: Words, label: str, speech: BoolArray) -> tuple[str, ...]:
    """Return doubts whether a transcript is of this recording, up to the end of ``speech``."""
    inside = words.begins < speech.size
    texts = tuple(text for text, within in zip(words.texts, inside.tolist(), strict=True) if within)
    spoken = Words(texts, words.begins[inside], words.ends[inside], words.known[inside])
    coverage = find_coverage(spoken, speech)
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
    """Extract the frames of a recording of audio; those of words take no time by themselves.

    ``starts`` takes the same blocks. For a ``template`` there are no early frames, and no windows
    that begin after ``most_speech`` ticks of it.
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
            if ticks > most_speech:  # only then are all frames of the wanted part complete
                break
    last = extractor.flush()
    if starts is not None:
        starts.keep(last)
    yield last
    yield wrap_tracks(word_features, [f.flush() for f in word_features])


def wrap_tracks(features: Sequence[Feature], tracks: Sequence[Track]) -> Frames:
    """Return tracks that features made of words, as a run of no time."""
    named = {feature.spec.name: track for feature, track in zip(features, tracks, strict=True)}
    return Frames(np.empty(0, np.bool_), named)


# --- A recording on the speech clock.


@dataclass(frozen=True, slots=True)
class SpeechTrack:
    """Frames of one feature."""

    values: AnyArray  # as in ``Track``
    at: IntArray  # ticks of speech at the completion of each
    since: IntArray | None = None  # likewise at the start of its audio; None if complete at once
    early: EarlyFrames | None = None  # their ticks are those of speech


@dataclass(frozen=True, slots=True)
class SpeechFrames:
    """Frames of one recording, on the speech clock."""

    speech: BoolArray  # shape (ticks,), the voice activity decisions
    tracks: dict[str, SpeechTrack]
    lost: str = ""  # what could not be used of it, for people
    messages: tuple[str, ...] = ()  # on it and on its transcript
    sound: AnyArray | None = None  # counts, shape (ROW,) of `monitor.maths.condition`; not always
    landmarks: tuple[IntArray, IntArray] | None = None  # times, pitches; where asked for
    starts: Starts | None = None  # likewise

    @property
    def speech_ticks(self) -> int:
        """Ticks of speech."""
        return int(self.speech.sum())

    def audio_seconds_at(self, speech_ticks: int) -> float:
        """Audio seconds before speech continues after this many ticks of it."""
        place = np.searchsorted(np.cumsum(self.speech), speech_ticks, side="right")
        return float(place) / TICKS_PER_SECOND


class FeatureExtractor:
    """Extractor of one set of features from recordings, which have to agree.

    Args:
        features: names, or features; None takes the defaults for audio, and whatever a frames file
            holds.
        channel: of audio, counted from 1; None mixes all of them.
        sounds: whether to find out what all speech sounds like, not only that of templates.
        starts: whether to extract streams that begin within a recording, too.
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
        self.specs: dict[str, FeatureSpec] = {}  # once a recording was extracted

    @property
    def names(self) -> tuple[str, ...] | None:
        """Features of audio, by name; None where they are objects that cannot be made again."""
        own: tuple[str, ...] = tuple(self.specs) or defaults(setup=self.setup)
        chosen: tuple[str | Feature, ...] = self._requests or own
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
        """Extract the frames of a recording: without starts those that a template is made of."""
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
        self._agree(path, specs)
        most = np.inf if speech_seconds is None else round(speech_seconds * TICKS_PER_SECOND)
        channel = None if self.channel is None else self.channel - 1
        starts = _listen_for_starts(features, channel) if self.starts else None
        with source:
            if isinstance(source, FramesFile):
                runs = _read_runs(source, most)
            else:
                runs = extract_runs(
                    source,
                    [*features, *([Landmarks()] if landmarks else [])],
                    channel,
                    most_speech=most,
                    template=not self.starts,
                    conditions=self.sounds or speech_seconds is not None,
                    starts=starts,
                )
            frames = speech_frames(path.name, list(runs), self.specs)
        if starts is not None:
            frames = replace(frames, starts=starts.finish())
        if isinstance(source, FramesFile):
            peaks = source.header.landmarks
            known = unpack(peaks) if landmarks and peaks is not None else None
            header = source.header
            frames = replace(frames, sound=header.sound, landmarks=known, starts=header.starts)
        if isinstance(source, SideInputSource) and source.words is not None:
            label = source.transcripts[0].label
            messages = describe_transcript(source.words, label, frames.speech)
            frames = replace(frames, messages=frames.messages + messages)
        return frames

    def _features(self) -> list[Feature]:
        """Return the features of audio, made for the first of it and reset for each."""
        if self._instances is None:
            try:
                chosen = self._requests or self.specs or defaults(setup=self.setup)
                self._instances = make(chosen, self.setup)
            except MonitorError as error:  # the call cannot be met, whatever the recording
                raise UsageError(str(error)) from None
        return self._instances

    def _agree(self, path: Readable, specs: dict[str, FeatureSpec]) -> None:
        if not self.specs:
            names = [w if isinstance(w, str) else w.spec.name for w in self._requests or specs]
            missing = [name for name in names if name not in specs]
            if missing:
                raise SourceError(f"{path.name}: no frames of {', '.join(missing)}")
            self.specs = {name: specs[name] for name in names}
        for name, spec in self.specs.items():
            own = specs.get(name)
            if own is not None and own == replace(spec, network=own.network) != spec:
                mismatch = unlike_networks(name, path.name, own.network, "the others", spec.network)
                raise SourceError(f"{mismatch}. Extract all of them again with one version.")
            if own != spec:
                raise SourceError(
                    f"{path.name}: its {name!r} differs from the others'. Frames files must give "
                    "the same sizes in their headers."
                )


def _listen_for_starts(features: Sequence[Feature], channel: int | None) -> StartListener:
    words = select_word_features(features)
    return StartListener([feature for feature in features if feature not in words], channel)


def speech_frames(label: str, runs: Sequence[Frames], names: Iterable[str]) -> SpeechFrames:
    """Join the runs of a recording, and put the frames of these features on the speech clock."""
    if not runs:
        raise SourceError(f"{label}: no audio could be processed")
    frames = join_runs(runs)
    clock = np.concatenate([[0], np.cumsum(frames.speech)])

    def at(ticks: IntArray) -> IntArray:
        return np.asarray(clock[np.minimum(ticks, frames.speech.size)])

    tracks = {}
    for name in names:
        track = frames.tracks[name]
        since = None if track.spans is None else at(track.spans[:, 0])
        early = track.early
        if early is not None:
            early = replace(early, ticks=at(early.ticks))
        placed = at(track.ticks.astype(np.int64))
        tracks[name] = SpeechTrack(track.values, placed, since, early)
    return SpeechFrames(
        frames.speech,
        tracks,
        _describe_loss(frames, label),
        _list_notices(frames, label),
        rows.values.sum(axis=0, dtype=np.int64) if (rows := frames.tracks.get(CONDITION)) else None,
        frames_of(frames.tracks.get(NAME)),
    )


def _describe_loss(frames: Frames, label: str) -> str:
    """Describe what was lost of a recording; empty where nothing was."""
    if not frames.gaps:
        return ""
    lost = sum(gap.lost_seconds or 0.0 for _, gap in frames.gaps)
    return f"{lost:.3g} s of {label}: {frames.gaps[0][1].reason}"


def _list_notices(frames: Frames, label: str) -> tuple[str, ...]:
    return tuple(f"{label}: {notice.text}" for _, notice in frames.notices)


def _read_runs(source: Source, most_speech: float) -> Iterator[Frames]:
    """Read frames of a file, until there were more ticks of speech than that."""
    ticks = 0
    for item in source:
        if isinstance(item, Frames):
            yield item
            ticks += int(item.speech.sum())
            if ticks > most_speech:
                break


def _complete_spec(source: FramesFile, spec: FeatureSpec, setup: FeatureSetup) -> FeatureSpec:
    """Return a spec of a file; what the file leaves open is as our own feature has it."""
    if spec.name not in FEATURES or not spec.kind.counted:
        return spec
    own = make((spec.name,), setup)[0].spec
    seconds = source.header.frame_seconds.get(spec.name, own.frame_seconds)
    return replace(spec, size=max(own.size, spec.size), frame_seconds=seconds)


# --- Recordings, by several processes.

SLICE_TICKS = round(SLICE_SECONDS * TICKS_PER_SECOND)

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class ExtractionOutcome:
    """Outcome of extracting features from one recording."""

    recording: Recording
    frames: SpeechFrames | None = None  # None if not needed or unreadable
    hashes: tuple[str, ...] = ()
    problem: str = ""  # what could not be used


_Summary: TypeAlias = Callable[[Sequence[ExtractionOutcome], Mapping[str, FeatureSpec]], _Result]


def extract_in_order(
    recordings: Sequence[Recording], listener: FeatureExtractor, *, jobs: Jobs = 1
) -> Generator[ExtractionOutcome, None, None]:
    """Extract every recording, in order; what comes out does not depend on ``jobs``."""
    groups = [(recording,) for recording in recordings]
    outcomes = _extract_groups(groups, listener, None, _keep_all, jobs)
    for (recording,), (outcome,) in zip(groups, outcomes, strict=True):
        yield replace(outcome, recording=recording)


def summarise_in_order(
    recordings: Sequence[Recording],
    listener: FeatureExtractor,
    summarise: _Summary[_Result],
    *,
    slices: int | None = None,
    jobs: Jobs = 1,
) -> Generator[tuple[tuple[Recording, ...], _Result], None, None]:
    """Summarise every speaker, in order; no frame leaves the process that extracted it."""
    groups = [tuple(group) for _, group in groupby(recordings, lambda r: r.speaker)]
    yield from zip(groups, _extract_groups(groups, listener, slices, summarise, jobs), strict=True)


def _extract_groups(
    groups: Sequence[tuple[Recording, ...]],
    listener: FeatureExtractor,
    slices: int | None,
    summarise: _Summary[_Result],
    jobs: Jobs,
) -> Generator[_Result, None, None]:
    tasks = [  # as they are found from any working folder
        tuple(replace(r, path=make_absolute(r.path), words=r.words.make_absolute()) for r in group)
        for group in groups
    ]
    names = listener.names
    ready_made = any(is_frames(recording.path) for group in groups for recording in group)
    if names is None or ready_made or here(jobs, tasks):
        for outcomes in each_in_order(partial(_extract, listener, slices), tasks):
            yield summarise(outcomes, listener.specs)
        return
    words, setup = "words" in map(takes, names), listener.setup.elsewhere()
    sent = FeatureExtractor(
        names, listener.channel, setup, sounds=listener.sounds, starts=listener.starts
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
            listener.specs = listener.specs or specs
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
    listener = copy(sent)  # each group its own
    outcomes = _extract(listener, slices, recordings)
    return listener.specs, summarise(outcomes, listener.specs)


def _extract(
    listener: FeatureExtractor, slices: int | None, recordings: Sequence[Recording]
) -> list[ExtractionOutcome]:
    """Extract recordings of one speaker, as far as they are needed."""
    outcomes = []
    count = 0
    for _, session in groupby(recordings, lambda r: r.session):
        ticks = 0
        for recording in session:
            left = None if slices is None else (slices - count) * SLICE_TICKS - ticks
            outcome = _extract_recording(listener, recording, left)
            if outcome.frames is not None:
                ticks += outcome.frames.speech_ticks
            outcomes.append(outcome)
        if slices is not None:
            count += min(ticks // SLICE_TICKS, slices - count)
    return outcomes


def _extract_recording(
    listener: FeatureExtractor, recording: Recording, left: int | None
) -> ExtractionOutcome:
    """Extract one recording, up to this many ticks of speech."""
    if left is not None and left <= 0:
        return ExtractionOutcome(recording)
    try:
        hashes = () if left is None else recording_hashes(recording.path)
        seconds = None if left is None else left / TICKS_PER_SECOND
        frames = listener.extract(
            recording.path,
            speech_seconds=seconds,
            words=recording.words,
            speaker=recording.speaker,
            landmarks=left is not None,
        )
    except UsageError:  # of the call, not of this file
        raise
    except MonitorError as error:
        problem = describe_unusable(recording.path, error, recording.speaker)
        return ExtractionOutcome(recording, problem=problem)
    return ExtractionOutcome(recording, frames, hashes, frames.lost)


# --- A folder of frames, which can be used in place of the corpus that they are of.

MANIFEST = "manifest.csv"
COLUMNS = ["path", "speaker", "session"]


@dataclass(frozen=True, slots=True)
class ExtractionOptions:
    """Features to extract, and limits."""

    features: tuple[str, ...]
    seconds: float | None = None  # of each recording from its beginning; None for all
    channel: int | None = None  # from 1; None for the mean of all
    setup: FeatureSetup = AS_ENVIRONMENT

    @property
    def index(self) -> int | None:
        """The channel counted from 0."""
        return None if self.channel is None else self.channel - 1

    def note(self, features: Sequence[Feature]) -> dict[str, object]:
        """Return the note in a file of frames; with another note it has to be made again."""
        return {
            "version": __version__,
            "features": _shapes(features),
            "seconds": self.seconds,
            "channel": self.channel,
            "early": [EARLY_WINDOWS, *EARLY_SECONDS],
            "starts": [START_SECONDS, EVERY_SECONDS],
            "recording": ["sound", "landmarks"],
        }


@dataclass(frozen=True, slots=True)
class ExtractionTask:
    """One recording to extract."""

    source: Readable
    target: Path
    speaker: str
    session: str
    words: TranscriptChoice = SIDECAR


@dataclass(frozen=True, slots=True)
class OrderOutcome:
    """Outcome of a `ExtractionTask`."""

    order: ExtractionTask
    seconds: float  # newly extracted
    is_complete: bool  # the file holds frames of the whole recording
    problem: str = ""  # what could not be used
    messages: tuple[str, ...] = ()  # on the new frames and their transcript


def orders(corpus: Corpus, root: Path, folder: Path) -> list[ExtractionTask]:
    """Choose files for the frames by paths below ``root``, otherwise by names."""
    if root.is_dir() and folder.resolve().is_relative_to(root.resolve()):
        raise UsageError(f"{folder} is in the corpus itself: choose a folder outside")
    _check_folder(folder)
    hearing_orders: list[ExtractionTask] = []
    targets: set[Path] = set()
    base = absolute(root if root.is_dir() else root.parent)
    for recording in corpus.recordings:
        path, speaker, session = make_absolute(recording.path), recording.speaker, recording.session
        parts: tuple[str, ...] = speaker, session, path.name
        if isinstance(path, Path) and path.is_relative_to(base):
            parts = path.relative_to(base).parts
        below = folder.joinpath(*map(_safe, parts))
        names = [below.with_suffix(".npz"), below.with_name(f"{below.name}.npz")]
        number = 2
        while names[0] in targets:
            del names[0]
            names.append(below.with_name(f"{below.name}-{number}.npz"))
            number += 1
        targets.add(names[0])
        hearing_orders.append(
            ExtractionTask(recording.path, names[0], speaker, session, recording.words)
        )
    return hearing_orders


def write_manifest(
    folder: Path,
    hearing_orders: Sequence[ExtractionTask],
    columns: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """Write who speaks when in which file; ``columns`` hold more, by title and speaker."""
    columns = columns or {}
    rows = (
        [order.target.relative_to(folder).as_posix(), order.speaker, order.session,
         *(cells.get(order.speaker, "") for cells in columns.values())]
        for order in hearing_orders
    )  # fmt: skip
    path = folder / MANIFEST
    try:
        make_folder(folder)
    except OSError as error:
        raise not_written(path, error) from None
    sweep(path)
    write_text(csv_text([*COLUMNS, *columns], rows), path)


def keep(
    hearing_orders: Sequence[ExtractionTask],
    options: ExtractionOptions,
    jobs: Jobs = 1,
    folder: Path | None = None,
) -> Generator[OrderOutcome, None, None]:
    """Hear what is not there yet, in order; what is there, whole and as it would be made, stays.

    If the recording or the options changed, all features are extracted again. Files are private
    (mode 0600) and whole or absent; an interrupted call is taken up by the next.
    """
    options = replace(options, setup=options.setup.elsewhere())
    features = make(options.features, options.setup)
    words = bool(select_word_features(features))
    manifest = () if folder is None else (absolute(folder / MANIFEST),)
    tasks = [
        replace(
            order,
            source=make_absolute(order.source),
            target=absolute(order.target),
            words=order.words.make_absolute(),
        )
        for order in hearing_orders
    ]

    def read(order: ExtractionTask) -> Iterator[Path]:
        yield from (*manifest, *order.words.files(order.source, words=words))

    outcomes = each_in_order(
        partial(_keep, options, options.note(features), _shapes(features)),
        tasks,
        jobs,
        reads=read,
        alike=partial(list_marks, options.features, options.setup),
    )
    with closing(outcomes):
        for order, outcome in zip(hearing_orders, outcomes, strict=True):
            if outcome.is_complete and not order.target.exists():
                raise MonitorError(
                    f"{order.target} was written where it cannot be seen from here: name a folder "
                    "on a file system that all workers share"
                )
            yield replace(outcome, order=order)


def hear(
    path: Readable,
    features: Sequence[Feature],
    options: ExtractionOptions,
    words: TranscriptChoice = SIDECAR,
    speaker: str | None = None,
) -> Frames:
    """Extract the frames of one recording, with its words where a feature is made of them."""
    return join_runs(list(_hear_runs(path, features, options, words, speaker)))


def _hear_runs(
    path: Readable,
    features: Sequence[Feature],
    options: ExtractionOptions,
    words: TranscriptChoice,
    speaker: str | None,
    *,
    conditions: bool = False,
    starts: StartListener | None = None,
) -> Iterator[Frames]:
    file = File(path, end_seconds=options.seconds)
    source = with_transcript(file, path, features, words, speaker)
    return extract_runs(source, features, options.index, conditions=conditions, starts=starts)


def _hear_recording(
    order: ExtractionTask, features: Sequence[Feature], options: ExtractionOptions
) -> tuple[Frames, AnyArray, Starts]:
    """Extract frames, landmarks and starts of one recording; and the sum of rows of conditions."""
    sound = np.zeros(ROW, np.int64)
    starts = _listen_for_starts(features, options.index)
    runs = []
    for run in _hear_runs(
        order.source, [*features, Landmarks()], options, order.words, order.speaker,
        conditions=True, starts=starts,
    ):  # fmt: skip
        tracks = dict(run.tracks)  # without the rows, which would fill the memory
        if (rows := tracks.pop(CONDITION, None)) is not None:
            sound += rows.values.sum(axis=0, dtype=np.int64)
        runs.append(replace(run, tracks=tracks))
    return join_runs(runs), sound, starts.finish()


_Shapes: TypeAlias = dict[str, list[Any]]
"""Values of the spec of each feature, in the order of its fields."""


def _shapes(features: Sequence[Feature]) -> _Shapes:
    return {feature.spec.name: list(feature.spec.plain().values()) for feature in features}


def _keep(
    options: ExtractionOptions,
    note: Mapping[str, object],
    requested: Mapping[str, list[Any]],
    order: ExtractionTask,
) -> OrderOutcome:
    stored = None if is_frames(order.source) else _load(order.target)
    stored_shapes: _Shapes = {} if stored is None else stored.header.settings["features"]
    current = stored if stored is not None and _is_current(stored, note, order) else None
    mark = None if current is None else current.header.settings.get("words")
    outdated = [name for name in options.features if takes(name) == "words"]
    transcript = None

    def hear_again(names: Sequence[str]) -> tuple[Frames, AnyArray, Starts]:
        return _hear_recording(order, make(names, options.setup), options)

    if outdated:
        try:
            transcript = order.words.read(order.source, own=order.speaker)
            stored_mark, mark = mark, words_mark(transcript)
        except SourceError as error:  # frames of the audio remain
            problem = describe_unusable(order.source, error, order.speaker)
            return OrderOutcome(order, 0.0, current is not None, problem)
        outdated = [] if stored_mark == mark else outdated
    try:
        if is_frames(order.source):
            raise SourceError(f"{file_name(order.source.name)}: holds frames already, no audio")
        if current is not None:
            names = _in_order({*options.features, *stored_shapes}, options.setup)
            shapes = {**stored_shapes, **requested}
            missing = [n for n in names if n in outdated or stored_shapes.get(n) != shapes[n]]
            if not missing:
                return OrderOutcome(order, 0.0, True, str(current.header.settings.get("lost", "")))
        else:
            audio = (name for name in stored_shapes if takes(name) == "audio")
            missing = names = _in_order({*options.features, *audio}, options.setup)
            shapes = _shapes(make(missing, options.setup))
        hashes = recording_hashes(order.source)
        frames, sound, starts = hear_again(missing)
        if current is not None:
            before, begun = join_runs(list(current)), current.header.starts
            if np.array_equal(before.speech, frames.speech):
                frames = replace(frames, tracks={**before.tracks, **frames.tracks})
                tracks = {**({} if begun is None else begun.frames.tracks), **starts.frames.tracks}
                starts = replace(starts, frames=replace(starts.frames, tracks=tracks))
            else:  # another voice activity: nothing that was there belongs to it
                frames, sound, starts = hear_again(names)
                shapes = _shapes(make(names, options.setup))
    except SourceError as error:
        order.target.unlink(missing_ok=True)  # of a recording that was another, or was whole
        problem = describe_unusable(order.source, error, order.speaker)
        return OrderOutcome(order, 0.0, False, problem)
    shapes = {name: shapes[name] for name in names}
    settings = {**note, "features": shapes, **({} if mark is None else {"words": mark})}
    header = Header(hashes=hashes, settings=settings, sound=sound, starts=starts)
    problem = _write(order, frames, shapes, header)
    messages = _list_notices(frames, file_name(order.source.name))
    if transcript is not None:
        messages += describe_transcript(transcript.words(), transcript.label, frames.speech)
    return OrderOutcome(order, len(frames.speech) / TICKS_PER_SECOND, True, problem, messages)


def _write(order: ExtractionTask, frames: Frames, shapes: _Shapes, header: Header) -> str:
    """Write the frames of an order and their landmarks; return a line on what was lost of it."""
    peaks = frames_of(frames.tracks.get(NAME))
    header = replace(header, landmarks=None if peaks is None else pack(*peaks))
    problem = _describe_loss(frames, file_name(order.source.name))
    span = span_of(order.source)
    part = {} if span is None else {"span": list(span)}
    try:
        make_folder(order.target.parent)
        sweep(order.target)
    except OSError as error:
        raise not_written(order.target, error) from None
    write_frames(
        order.target,
        frames.speech,
        {name: frames.tracks[name] for name in shapes},
        {name: shape[1] for name, shape in shapes.items()},
        {name: shape[2] for name, shape in shapes.items()},
        networks={name: mark for name, shape in shapes.items() for mark in shape[3:]},
        header=replace(header, settings={**header.settings, "lost": problem, **part}),
    )
    return problem


def list_files_of(speaker: str, folder: Path) -> list[Path]:
    """List the files of a folder of frames that hold a speaker's; none if it is no such folder."""
    try:
        with (folder / MANIFEST).open(encoding="utf-8", newline="") as lines:
            rows = [row for row in csv.reader(lines) if len(row) >= len(COLUMNS)]
    except (OSError, ValueError, csv.Error):
        return []
    paths = [folder / path for path, name, *_ in rows[1:] if name == speaker]
    return [path for path in paths if path.is_file()]


def _load(path: Path) -> FramesFile | None:
    """Load frames that were stored before, if they are whole."""
    try:
        stored = FramesFile(path)
    except SourceError:
        return None
    features = stored.header.settings.get("features")
    ours = isinstance(features, dict) and features.keys() == stored.stream_info.tracks.keys()
    return stored if ours else None


def _in_order(names: Iterable[str], setup: FeatureSetup) -> list[str]:
    """Sort features into one order, independent of extraction."""
    return sorted(names, key=lambda name: ([*setup.names(), name].index(name), name))


def describe_difference(
    hearing_orders: Sequence[ExtractionTask], options: ExtractionOptions
) -> str:
    """Describe how the frames that are there were made otherwise; empty where they were not."""
    loaded = (_load(order.target) for order in hearing_orders if order.target.exists())
    stored = next(filter(None, loaded), None)
    if stored is None:
        return ""
    features = make(options.features, options.setup)
    settings, note = stored.header.settings, options.note(features)
    for name in ("version", "seconds", "channel", "early", "starts"):
        if settings.get(name) != note[name]:
            old, new = ("all" if x is None else x for x in (settings.get(name), note[name]))
            return f"its frames were made with {name} {old}, not {new}"
    for name, shape in _shapes(features).items():
        if settings["features"].get(name, shape) != shape:
            return f"its frames of {name} were made with another network or list"
    return ""


def _is_current(stored: FramesFile, note: Mapping[str, object], order: ExtractionTask) -> bool:
    changing = {"features": None, "lost": None, "words": None, "span": None}
    if {**stored.header.settings, **changing} != {**note, **changing}:
        return False
    try:
        return file_hash(order.source) in stored.header.hashes
    except SourceError:
        return False


def _safe(part: str) -> str:
    """Return a name that a table can hold, and that leads nowhere else."""
    return re.sub(r"^\.|[/\\:]", "_", printable(part, "_").strip())


def _check_folder(folder: Path) -> None:
    if not held_by(folder):
        return
    try:
        rows = list(csv.reader((folder / MANIFEST).read_text(encoding="utf-8").splitlines()))
    except (OSError, ValueError, csv.Error):
        rows = []
    if not rows or rows[0][:3] != COLUMNS or not all(is_frames(row[0]) for row in rows[1:] if row):
        raise UsageError(f"{folder} holds something else; name an empty folder, or one of frames")
