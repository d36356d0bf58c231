"""Hear a corpus once and keep its frames, in a folder that can be used in its place."""

from __future__ import annotations

import csv
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from monitor.corpus.recordings import Corpus, unusable
from monitor.errors import MonitorError, SourceError, UsageError
from monitor.features.embeddings import EARLY_EVERY, EARLY_SECONDS, EARLY_WINDOWS
from monitor.features.framing import join_runs
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup, list_marks, make, takes
from monitor.files import csv_text, held_by, make_folder, not_written, sweep, write_text
from monitor.jobs import Jobs, absolute, each_in_order
from monitor.protocols import Feature
from monitor.safe_text import file_name
from monitor.sources.file import File
from monitor.sources.frames import FramesFile, Header, write_frames
from monitor.sources.provenance import file_hash
from monitor.sources.registry import is_frames, recording_hashes
from monitor.training.feature_extraction import (
    heard_runs,
    of_words,
    told_of_words,
    with_their_words,
)
from monitor.transcripts.formats import LIES_BESIDE, TranscriptChoice, words_mark
from monitor.types import TICKS_PER_SECOND, Frames
from monitor.version import __version__

MANIFEST = "manifest.csv"
COLUMNS = ["path", "speaker", "session"]


@dataclass(frozen=True, slots=True)
class HearingOptions:
    """With which features recordings are heard, and how far.

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
        """Fresh features."""
        return make(names, self.setup)

    def noted(self, made: Sequence[Feature]) -> dict[str, Any]:
        """What a file of frames notes of it; another note, and it has to be made again."""
        return {
            "version": __version__,
            "features": {each.spec.name: list(each.spec.plain().values()) for each in made},
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
    """What became of a `HearingOrder`.

    Attributes:
        problem: a line on what could not be used; empty where there is nothing to tell.
        told: what is to be said of what was heard now, and of its transcript, a line each.
    """

    order: HearingOrder
    seconds: float
    whole: bool
    problem: str = ""
    told: tuple[str, ...] = ()


def orders(corpus: Corpus, root: Path, folder: Path) -> list[HearingOrder]:
    """Where the frames of every recording go: as they lie below ``root``, else by their names."""
    if root.is_dir() and folder.resolve().is_relative_to(root.resolve()):
        raise UsageError(f"{folder} lies in the corpus itself; choose a folder outside")
    _check_folder(folder)
    made: list[HearingOrder] = []
    taken: set[Path] = set()
    base = absolute(root if root.is_dir() else root.parent)
    for each in corpus.recordings:
        place = absolute(each.path)
        inside = place.is_relative_to(base)
        parts = (
            place.relative_to(base).parts if inside else (each.speaker, each.session, place.name)
        )
        below = folder.joinpath(*map(_safe, parts))
        names = [below.with_suffix(".npz"), below.with_name(f"{below.name}.npz")]
        number = 2
        while names[0] in taken:
            del names[0]
            names.append(below.with_name(f"{below.name}-{number}.npz"))
            number += 1
        taken.add(names[0])
        made.append(HearingOrder(each.path, names[0], each.speaker, each.session, each.words))
    return made


def write_manifest(
    folder: Path,
    listed: Sequence[HearingOrder],
    said: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """Write who speaks in which file of frames, and on which occasion."""
    said = said or {}
    rows = (
        [each.target.relative_to(folder).as_posix(), each.speaker, each.session,
         *(of.get(each.speaker, "") for of in said.values())]
        for each in listed
    )  # fmt: skip
    path = folder / MANIFEST
    try:
        make_folder(folder)
    except OSError as error:
        raise not_written(path, error) from None
    sweep(path)
    write_text(csv_text([*COLUMNS, *said], rows), path)


def keep(
    wanted: Sequence[HearingOrder],
    manner: HearingOptions,
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
    manner = replace(manner, setup=manner.setup.elsewhere())
    made_here = manner.make(manner.features)
    note = manner.noted(made_here)
    words = bool(of_words(made_here))
    beside = () if folder is None else (absolute(folder / MANIFEST),)
    tasks = [
        replace(
            each,
            source=absolute(each.source),
            target=absolute(each.target),
            words=each.words.make_absolute(),
        )
        for each in wanted
    ]

    def read(order: HearingOrder) -> Iterator[Path]:
        yield from (*beside, *order.words.files(order.source, words=words))

    made = each_in_order(
        partial(_keep, manner, note),
        tasks,
        jobs,
        reads=read,
        alike=partial(list_marks, manner.features, manner.setup),
    )
    with closing(made) as results:
        for order, outcome in zip(wanted, results, strict=True):
            if outcome.whole and not order.target.exists():
                raise MonitorError(
                    f"{order.target} was written where it cannot be seen from here: name a folder "
                    "on a file system that all workers share"
                )
            yield replace(outcome, order=order)


def hear(
    path: Path,
    features: Sequence[Feature],
    manner: HearingOptions,
    words: TranscriptChoice = LIES_BESIDE,
    speaker: str | None = None,
) -> Frames:
    """The frames of one recording, with its words where a feature is made of them.

    Raises:
        SourceError: it cannot be read, or breaks off, or has no words.
    """
    channel = None if manner.channel is None else manner.channel - 1
    file = File(path, end_seconds=manner.seconds)
    source = with_their_words(file, path, features, words, speaker)
    return join_runs(list(heard_runs(source, features, channel)))


def _keep(manner: HearingOptions, note: Mapping[str, Any], order: HearingOrder) -> OrderOutcome:
    """One order."""
    said = [name for name in manner.features if takes(name) == "words"]
    held = None if is_frames(order.source) else _held(order.target)
    there = {} if held is None else held.header.settings["features"]
    goes_on = held is not None and _goes_on(held, note, order)
    words = held.header.settings.get("words") if held is not None and goes_on else None
    anew, transcript = [*said], None
    if said:
        try:
            transcript = order.words.read(order.source, own=order.speaker)
            mark = words_mark(transcript)
        except SourceError as error:  # what was heard of the sound stays
            return OrderOutcome(order, 0.0, goes_on, unusable(order.source, error, order.speaker))
        anew = [] if words == mark else said
        words = mark
    try:
        if is_frames(order.source):
            raise SourceError(f"{file_name(order.source)}: holds frames already, no audio")
        if held is not None and goes_on:
            names = _in_order({*manner.features, *there}, manner.setup)
            shapes = {**there, **note["features"]}
            lacking = [n for n in names if n in anew or there.get(n) != shapes[n]]
            if not lacking:
                return OrderOutcome(order, 0.0, True, str(held.header.settings.get("lost", "")))
        else:
            kept = (name for name in there if takes(name) == "audio")
            held, lacking = None, _in_order({*manner.features, *kept}, manner.setup)
            names, shapes = lacking, manner.noted(manner.make(lacking))["features"]
        hashes = recording_hashes(order.source)

        def heard_by(some: Sequence[str]) -> Frames:
            return hear(order.source, manner.make(some), manner, order.words, order.speaker)

        frames = heard_by(lacking)
        if held is not None:
            before = join_runs(list(held))
            if np.array_equal(before.speech, frames.speech):
                frames = replace(frames, tracks={**before.tracks, **frames.tracks})
            else:  # another voice activity: nothing that was there belongs to it
                frames = heard_by(names)
                shapes = manner.noted(manner.make(names))["features"]
    except SourceError as error:
        order.target.unlink(missing_ok=True)  # of a recording that was another, or was whole
        return OrderOutcome(order, 0.0, False, unusable(order.source, error, order.speaker))
    lost = sum(gap.lost_seconds or 0.0 for _, gap in frames.gaps)
    problem = ""
    if frames.gaps:
        problem = f"{lost:.3g} s of {file_name(order.source)}: {frames.gaps[0][1].reason}"
    try:
        make_folder(order.target.parent)
        sweep(order.target)
    except OSError as error:
        raise not_written(order.target, error) from None
    write_frames(
        order.target,
        frames.speech,
        {name: frames.tracks[name] for name in names},
        {name: shapes[name][1] for name in names},
        {name: shapes[name][2] for name in names},
        networks={name: mark for name in names for mark in shapes[name][3:]},
        header=Header(
            hashes=hashes,
            settings={
                **note,
                "features": {name: shapes[name] for name in names},
                "lost": problem,
                **({} if words is None else {"words": words}),
            },
        ),
    )
    label = file_name(order.source)
    told = tuple(f"{label}: {notice.text}" for _, notice in frames.notices)
    if transcript is not None:
        own = transcript.words(), transcript.label
        told += told_of_words(*own, frames.speech)
    return OrderOutcome(order, len(frames.speech) / TICKS_PER_SECOND, True, problem, told)


def _held(path: Path) -> FramesFile | None:
    """Frames that were kept before, if they are whole."""
    try:
        held = FramesFile(path)
    except SourceError:
        return None
    features = held.header.settings.get("features")
    ours = isinstance(features, dict) and features.keys() == held.stream_info.tracks.keys()
    return held if ours else None


def _in_order(names: Iterable[str], setup: FeatureSetup) -> list[str]:
    """The same order, whichever was heard first."""
    return sorted(names, key=lambda name: ([*setup.names(), name].index(name), name))


def _goes_on(held: FramesFile, note: Mapping[str, Any], order: HearingOrder) -> bool:
    """Whether what was kept is of this very recording, and was heard in this manner."""
    changing = {"features": None, "lost": None, "words": None}
    if {**held.header.settings, **changing} != {**note, **changing}:
        return False
    try:
        return file_hash(order.source) in held.header.hashes
    except SourceError:
        return False


def _safe(part: str) -> str:
    """A name that a table can hold, and that leads nowhere else."""
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
