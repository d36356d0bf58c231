"""Folders of frames, which can replace the corpus from which they were extracted."""

from __future__ import annotations

import csv
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from monitor.corpus.recordings import Corpus, describe_unusable
from monitor.errors import MonitorError, SourceError, UsageError
from monitor.features.channel import CONDITION
from monitor.features.embeddings import EARLY_SECONDS, EARLY_WINDOWS
from monitor.features.framing import join_runs
from monitor.features.landmarks import Landmarks
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup, list_marks, make, takes
from monitor.files import csv_text, list_open_files, make_folder, sweep, write_text, writing
from monitor.jobs import Jobs, absolute, each_in_order
from monitor.maths.condition import ROW
from monitor.maths.landmarks import NAME, frames_of, pack
from monitor.protocols import Feature
from monitor.safe_text import file_name, printable
from monitor.sources.base import file_hash
from monitor.sources.file import File
from monitor.sources.frames import FramesFile, Header, write_frames
from monitor.sources.registry import is_frames, recording_hashes, span_of
from monitor.training.feature_extraction import (
    describe_loss,
    describe_transcript,
    extract_runs,
    list_notices,
    listen_for_starts,
    select_word_features,
    with_transcript,
)
from monitor.training.starts import EVERY_SECONDS, START_SECONDS, StartListener
from monitor.transcripts.choice import SIDECAR, TranscriptChoice, words_mark
from monitor.types import TICKS_PER_SECOND, AnyArray, Frames, Starts
from monitor.version import __version__
from monitor.virtual_files import Readable, make_absolute

MANIFEST = "manifest.csv"
COLUMNS = ["path", "speaker", "session"]


@dataclass(frozen=True, slots=True)
class ExtractionOptions:
    """Features to extract, and limits."""

    features: tuple[str, ...]
    seconds: float | None = None  # from the beginning of each recording; None for all
    channel: int | None = None  # counted from 1; None for the mean of all channels
    setup: FeatureSetup = AS_ENVIRONMENT

    @property
    def index(self) -> int | None:
        """The channel counted from 0."""
        return None if self.channel is None else self.channel - 1

    def note(self, features: Sequence[Feature]) -> dict[str, object]:
        """Return the settings that a frames file stores; others make it outdated."""
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
    """Outcome of an `ExtractionTask`."""

    order: ExtractionTask
    seconds: float  # newly extracted
    is_complete: bool  # the file holds frames of the whole recording
    problem: str = ""  # describes unusable parts
    messages: tuple[str, ...] = ()  # on the new frames and their transcript


def orders(corpus: Corpus, root: Path, folder: Path) -> list[ExtractionTask]:
    """Plan one frames file per recording, named by its path below ``root``, or by speaker."""
    if root.is_dir() and folder.resolve().is_relative_to(root.resolve()):
        raise UsageError(f"{folder} is in the corpus itself: choose a folder outside")
    _check_folder(folder)
    extraction_tasks: list[ExtractionTask] = []
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
        extraction_tasks.append(
            ExtractionTask(recording.path, names[0], speaker, session, recording.words)
        )
    return extraction_tasks


def write_manifest(
    folder: Path,
    extraction_tasks: Sequence[ExtractionTask],
    columns: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """Write path, speaker and session of each file; ``columns`` add cells by title and speaker."""
    columns = columns or {}
    rows = (
        [order.target.relative_to(folder).as_posix(), order.speaker, order.session,
         *(cells.get(order.speaker, "") for cells in columns.values())]
        for order in extraction_tasks
    )  # fmt: skip
    path = folder / MANIFEST
    with writing(path):
        make_folder(folder)
    sweep(path)
    write_text(csv_text([*COLUMNS, *columns], rows), path)


def keep(
    extraction_tasks: Sequence[ExtractionTask],
    options: ExtractionOptions,
    jobs: Jobs = 1,
    folder: Path | None = None,
) -> Generator[OrderOutcome, None, None]:
    """Extract all recordings in order, except those with complete and current files.

    If the recording or the options changed, all features are extracted again. Files are private
    (mode 0600) and written atomically, so you can repeat an interrupted call.
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
        for order in extraction_tasks
    ]
    outcomes = each_in_order(
        partial(_keep, options, options.note(features), _shapes(features)),
        tasks,
        jobs,
        reads=lambda order: [*manifest, *order.words.files(order.source, words=words)],
        alike=partial(list_marks, options.features, options.setup),
    )
    with closing(outcomes):
        for order, outcome in zip(extraction_tasks, outcomes, strict=True):
            if outcome.is_complete and not order.target.exists():
                raise MonitorError(
                    f"{order.target} was written by a worker but is not visible here: name a "
                    "folder on a file system that all workers share"
                )
            yield replace(outcome, order=order)


def extract_features(
    path: Readable,
    features: Sequence[Feature],
    options: ExtractionOptions,
    words: TranscriptChoice = SIDECAR,
    speaker: str | None = None,
) -> Frames:
    """Extract the frames of one recording, with its transcript if a feature uses words."""
    return join_runs(list(_extract_file(path, features, options, words, speaker)))


def _extract_file(
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


def _extract_recording(
    order: ExtractionTask, features: Sequence[Feature], options: ExtractionOptions
) -> tuple[Frames, AnyArray, Starts]:
    """Return a recording's frames with landmarks, its summed sound conditions and its starts."""
    sound = np.zeros(ROW, np.int64)
    starts = listen_for_starts(features, options.index)
    runs = []
    for run in _extract_file(
        order.source, [*features, Landmarks()], options, order.words, order.speaker,
        conditions=True, starts=starts,
    ):  # fmt: skip
        tracks = dict(run.tracks)  # without the rows of conditions, to save memory
        if (rows := tracks.pop(CONDITION, None)) is not None:
            sound += rows.values.sum(axis=0, dtype=np.int64)
        runs.append(replace(run, tracks=tracks))
    return join_runs(runs), sound, starts.finish()


_Shapes: TypeAlias = dict[str, list[Any]]
"""Values of each feature's spec, in the order of the spec's fields."""


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

    if outdated:
        try:
            transcript = order.words.read(order.source, own_speaker=order.speaker)
            stored_mark, mark = mark, words_mark(transcript)
        except SourceError as error:  # frames of the audio remain
            problem = describe_unusable(order.source, error, order.speaker)
            return OrderOutcome(order, 0.0, current is not None, problem)
        outdated = [] if stored_mark == mark else outdated
    try:
        if is_frames(order.source):
            raise SourceError(f"{file_name(order.source.name)}: contains frames, not audio")
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
        frames, sound, starts = _extract_recording(order, make(missing, options.setup), options)
        if current is not None:
            before, begun = join_runs(list(current)), current.header.starts
            if np.array_equal(before.speech, frames.speech):
                frames = replace(frames, tracks={**before.tracks, **frames.tracks})
                tracks = {**({} if begun is None else begun.frames.tracks), **starts.frames.tracks}
                starts = replace(starts, frames=replace(starts.frames, tracks=tracks))
            else:  # speech decisions have changed, so no stored track fits
                features = make(names, options.setup)
                frames, sound, starts = _extract_recording(order, features, options)
                shapes = _shapes(features)
    except SourceError as error:
        order.target.unlink(missing_ok=True)  # frames of an earlier state of the recording
        problem = describe_unusable(order.source, error, order.speaker)
        return OrderOutcome(order, 0.0, False, problem)
    shapes = {name: shapes[name] for name in names}
    settings = {**note, "features": shapes, **({} if mark is None else {"words": mark})}
    header = Header(hashes=hashes, settings=settings, sound=sound, starts=starts)
    problem = _write(order, frames, shapes, header)
    messages = list_notices(frames, file_name(order.source.name))
    if transcript is not None:
        messages += describe_transcript(transcript.words(), transcript.label, frames.speech)
    return OrderOutcome(order, len(frames.speech) / TICKS_PER_SECOND, True, problem, messages)


def _write(order: ExtractionTask, frames: Frames, shapes: _Shapes, header: Header) -> str:
    """Write the frames and landmarks of a task; return a description of lost audio."""
    peaks = frames_of(frames.tracks.get(NAME))
    header = replace(header, landmarks=None if peaks is None else pack(*peaks))
    problem = describe_loss(frames, file_name(order.source.name))
    span = span_of(order.source)
    span_setting = {} if span is None else {"span": list(span)}
    with writing(order.target):
        make_folder(order.target.parent)
        sweep(order.target)
    write_frames(
        order.target,
        frames.speech,
        {name: frames.tracks[name] for name in shapes},
        {name: shape[1] for name, shape in shapes.items()},
        {name: shape[2] for name, shape in shapes.items()},
        networks={name: mark for name, shape in shapes.items() for mark in shape[3:]},
        header=replace(header, settings={**header.settings, "lost": problem, **span_setting}),
    )
    return problem


def list_files_of(speaker: str, folder: Path) -> list[Path]:
    """List a speaker's files in a folder of frames; empty for any other folder."""
    try:
        with (folder / MANIFEST).open(encoding="utf-8", newline="") as lines:
            rows = [row for row in csv.reader(lines) if len(row) >= len(COLUMNS)]
    except (OSError, ValueError, csv.Error):
        return []
    paths = [folder / path for path, name, *_ in rows[1:] if name == speaker]
    return [path for path in paths if path.is_file()]


def _load(path: Path) -> FramesFile | None:
    try:
        stored = FramesFile(path)
    except SourceError:
        return None
    features = stored.header.settings.get("features")
    ours = isinstance(features, dict) and features.keys() == stored.stream_info.tracks.keys()
    return stored if ours else None


def _in_order(names: Iterable[str], setup: FeatureSetup) -> list[str]:
    """Sort features by name, the built-in ones first in their own order."""
    return sorted(names, key=lambda name: ([*setup.names(), name].index(name), name))


def describe_difference(
    extraction_tasks: Sequence[ExtractionTask], options: ExtractionOptions
) -> str:
    """Describe how existing frames differ from the options; empty if they do not."""
    loaded = (_load(order.target) for order in extraction_tasks if order.target.exists())
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


def _safe(text: str) -> str:
    """Return a printable part of a path, without separators or a leading dot."""
    return re.sub(r"^\.|[/\\:]", "_", printable(text, "_").strip())


def _check_folder(folder: Path) -> None:
    if not list_open_files(folder):
        return
    try:
        rows = list(csv.reader((folder / MANIFEST).read_text(encoding="utf-8").splitlines()))
    except (OSError, ValueError, csv.Error):
        rows = []
    if not rows or rows[0][:3] != COLUMNS or not all(is_frames(row[0]) for row in rows[1:] if row):
        raise UsageError(f"{folder} has other contents: name an empty folder, or one of frames")
