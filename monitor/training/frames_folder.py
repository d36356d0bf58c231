"""Hear a corpus once and keep its frames, in a folder that can be used in its place."""

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

from monitor.corpus import Corpus, describe_unusable
from monitor.errors import MonitorError, SourceError, UsageError
from monitor.features.embeddings import EARLY_EVERY, EARLY_SECONDS, EARLY_WINDOWS
from monitor.features.framing import join_runs
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup, list_marks, make, takes
from monitor.files import csv_text, held_by, make_folder, not_written, sweep, write_text
from monitor.jobs import Jobs, absolute, each_in_order
from monitor.protocols import Feature
from monitor.safe_text import file_name
from monitor.sources.base import file_hash
from monitor.sources.file import File
from monitor.sources.frames import FramesFile, Header, write_frames
from monitor.sources.registry import is_frames, recording_hashes
from monitor.training.feature_extraction import (
    describe_transcript,
    extract_runs,
    select_word_features,
    with_transcript,
)
from monitor.transcripts.formats import LIES_BESIDE, TranscriptChoice, words_mark
from monitor.types import TICKS_PER_SECOND, Frames
from monitor.version import __version__

MANIFEST = "manifest.csv"
COLUMNS = ["path", "speaker", "session"]


@dataclass(frozen=True, slots=True)
class HearingOptions:
    """Features that recordings are heard with, and how far.

    Attributes:
        seconds: of each recording from its beginning, at most; None for all of it.
        channel: which one, from 1; None for the mean of all.
        setup: from where features are made.
    """

    features: tuple[str, ...]
    seconds: float | None = None
    channel: int | None = None
    setup: FeatureSetup = AS_ENVIRONMENT

    def make(self, names: Iterable[str]) -> list[Feature]:
        """Make fresh features."""
        return make(names, self.setup)

    def note(self, features: Sequence[Feature]) -> dict[str, object]:
        """Return the note in a file of frames; with another note it has to be made again."""
        return {
            "version": __version__,
            "features": _shapes(features),
            "seconds": self.seconds,
            "channel": self.channel,
            "early": [EARLY_EVERY, EARLY_WINDOWS, *EARLY_SECONDS],
        }


@dataclass(frozen=True, slots=True)
class HearingOrder:
    """One recording to be heard."""

    source: Path
    target: Path
    speaker: str
    session: str
    words: TranscriptChoice = LIES_BESIDE


@dataclass(frozen=True, slots=True)
class OrderOutcome:
    """Outcome of a `HearingOrder`.

    Attributes:
        is_complete: whether the file holds frames of the whole recording.
        problem: a line on what could not be used; empty where there is nothing to tell.
        messages: notices on what was heard now, and on its transcript, a line each.
    """

    order: HearingOrder
    seconds: float
    is_complete: bool
    problem: str = ""
    messages: tuple[str, ...] = ()


def orders(corpus: Corpus, root: Path, folder: Path) -> list[HearingOrder]:
    """Choose files for the frames: as recordings lie below ``root``, else by their names."""
    if root.is_dir() and folder.resolve().is_relative_to(root.resolve()):
        raise UsageError(f"{folder} lies in the corpus itself; choose a folder outside")
    _check_folder(folder)
    hearing_orders: list[HearingOrder] = []
    targets: set[Path] = set()
    base = absolute(root if root.is_dir() else root.parent)
    for recording in corpus.recordings:
        path, speaker, session = absolute(recording.path), recording.speaker, recording.session
        inside = path.is_relative_to(base)
        parts = path.relative_to(base).parts if inside else (speaker, session, path.name)
        below = folder.joinpath(*map(_safe, parts))
        names = [below.with_suffix(".npz"), below.with_name(f"{below.name}.npz")]
        number = 2
        while names[0] in targets:
            del names[0]
            names.append(below.with_name(f"{below.name}-{number}.npz"))
            number += 1
        targets.add(names[0])
        hearing_orders.append(
            HearingOrder(recording.path, names[0], speaker, session, recording.words)
        )
    return hearing_orders


def write_manifest(
    folder: Path,
    hearing_orders: Sequence[HearingOrder],
    columns: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """Write who speaks in which file of frames, and on which occasion.

    ``columns`` hold more of each speaker, by title and name.
    """
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
    hearing_orders: Sequence[HearingOrder],
    options: HearingOptions,
    jobs: Jobs = 1,
    folder: Path | None = None,
) -> Generator[OrderOutcome, None, None]:
    """Hear what is not there yet, in order; what is there, whole and as it would be made, stays.

    Features that are there and not wanted stay too; where the recording or the options have changed
    they are heard anew with the others. Files are private (mode 0600) and whole or absent; an
    interrupted call is taken up by the next.

    Raises:
        UsageError: the features cannot be made.
        StoreError: a file cannot be written.
        MonitorError: a process was ended from outside, or workers elsewhere are lost or unfit.
    """
    options = replace(options, setup=options.setup.elsewhere())
    features = options.make(options.features)
    words = bool(select_word_features(features))
    manifest = () if folder is None else (absolute(folder / MANIFEST),)
    tasks = [
        replace(
            order,
            source=absolute(order.source),
            target=absolute(order.target),
            words=order.words.make_absolute(),
        )
        for order in hearing_orders
    ]

    def read(order: HearingOrder) -> Iterator[Path]:
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
    path: Path,
    features: Sequence[Feature],
    options: HearingOptions,
    words: TranscriptChoice = LIES_BESIDE,
    speaker: str | None = None,
) -> Frames:
    """Extract the frames of one recording, with its words where a feature is made of them.

    Raises:
        SourceError: it cannot be read, or breaks off, or has no words.
    """
    channel = None if options.channel is None else options.channel - 1
    file = File(path, end_seconds=options.seconds)
    source = with_transcript(file, path, features, words, speaker)
    return join_runs(list(extract_runs(source, features, channel)))


_Shapes: TypeAlias = dict[str, list[Any]]
"""Values of the spec of each feature, in the order of its fields."""


def _shapes(features: Sequence[Feature]) -> _Shapes:
    return {feature.spec.name: list(feature.spec.plain().values()) for feature in features}


def _keep(
    options: HearingOptions,
    note: Mapping[str, object],
    requested: Mapping[str, list[Any]],
    order: HearingOrder,
) -> OrderOutcome:
    """Fulfil one order."""
    stored = None if is_frames(order.source) else _load(order.target)
    stored_shapes: _Shapes = {} if stored is None else stored.header.settings["features"]
    current = stored if stored is not None and _is_current(stored, note, order) else None
    mark = None if current is None else current.header.settings.get("words")
    outdated = [name for name in options.features if takes(name) == "words"]
    transcript = None
    if outdated:
        try:
            transcript = order.words.read(order.source, own=order.speaker)
            stored_mark, mark = mark, words_mark(transcript)
        except SourceError as error:  # what was heard of the sound stays
            problem = describe_unusable(order.source, error, order.speaker)
            return OrderOutcome(order, 0.0, current is not None, problem)
        outdated = [] if stored_mark == mark else outdated
    try:
        if is_frames(order.source):
            raise SourceError(f"{file_name(order.source)}: holds frames already, no audio")
        if current is not None:
            names = _in_order({*options.features, *stored_shapes}, options.setup)
            shapes = {**stored_shapes, **requested}
            missing = [n for n in names if n in outdated or stored_shapes.get(n) != shapes[n]]
            if not missing:
                return OrderOutcome(order, 0.0, True, str(current.header.settings.get("lost", "")))
        else:
            audio = (name for name in stored_shapes if takes(name) == "audio")
            missing = names = _in_order({*options.features, *audio}, options.setup)
            shapes = _shapes(options.make(missing))
        hashes = recording_hashes(order.source)
        frames = _hear_order(order, options, missing)
        if current is not None:
            before = join_runs(list(current))
            if np.array_equal(before.speech, frames.speech):
                frames = replace(frames, tracks={**before.tracks, **frames.tracks})
            else:  # another voice activity: nothing that was there belongs to it
                frames = _hear_order(order, options, names)
                shapes = _shapes(options.make(names))
    except SourceError as error:
        order.target.unlink(missing_ok=True)  # of a recording that was another, or was whole
        return OrderOutcome(
            order, 0.0, False, describe_unusable(order.source, error, order.speaker)
        )
    shapes = {name: shapes[name] for name in names}
    words = {} if mark is None else {"words": mark}
    problem = _write(order, frames, shapes, hashes, {**note, "features": shapes}, words)
    label = file_name(order.source)
    messages = tuple(f"{label}: {notice.text}" for _, notice in frames.notices)
    if transcript is not None:
        messages += describe_transcript(transcript.words(), transcript.label, frames.speech)
    return OrderOutcome(order, len(frames.speech) / TICKS_PER_SECOND, True, problem, messages)


def _hear_order(order: HearingOrder, options: HearingOptions, names: Sequence[str]) -> Frames:
    return hear(order.source, options.make(names), options, order.words, order.speaker)


def _write(
    order: HearingOrder,
    frames: Frames,
    shapes: _Shapes,
    hashes: tuple[str, ...],
    note: Mapping[str, object],
    words: Mapping[str, object],
) -> str:
    """Write the frames of an order; return a line on what was lost of it."""
    problem = ""
    if frames.gaps:
        lost = sum(gap.lost_seconds or 0.0 for _, gap in frames.gaps)
        problem = f"{lost:.3g} s of {file_name(order.source)}: {frames.gaps[0][1].reason}"
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
        header=Header(hashes=hashes, settings={**note, "lost": problem, **words}),
    )
    return problem


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
    """Sort features into one order, whichever was heard first."""
    return sorted(names, key=lambda name: ([*setup.names(), name].index(name), name))


def _is_current(stored: FramesFile, note: Mapping[str, object], order: HearingOrder) -> bool:
    """Return whether stored frames are of this recording, and heard with these options."""
    changing = {"features": None, "lost": None, "words": None}
    if {**stored.header.settings, **changing} != {**note, **changing}:
        return False
    try:
        return file_hash(order.source) in stored.header.hashes
    except SourceError:
        return False


def _safe(part: str) -> str:
    """Return a name that a table can hold, and that leads nowhere else."""
    name = "".join(c if c.isprintable() and c not in r"/\:" else "_" for c in part).strip()
    return re.sub(r"^\.", "_", name)


def _check_folder(folder: Path) -> None:
    """Refuse to write among things that are not ours."""
    if not held_by(folder):
        return
    try:
        rows = list(csv.reader((folder / MANIFEST).read_text(encoding="utf-8").splitlines()))
    except (OSError, ValueError, csv.Error):
        rows = []
    if not rows or rows[0][:3] != COLUMNS or not all(is_frames(row[0]) for row in rows[1:] if row):
        raise UsageError(
            f"{folder} holds something else; name an empty folder, or one that monitor hear made"
        )
