"""Readers of an attack, and the pieces of their speech that enrol them and test them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TypeAlias

import numpy as np

from monitor.corpus import Corpus
from monitor.errors import CorpusError, SourceError
from monitor.features.extractor import Extractor
from monitor.jobs import Jobs, each_in_order
from monitor.phrases import plural
from monitor.sources.file import File
from monitor.sources.registry import is_frames
from monitor.training.voices import UNITS_PER_SECOND
from monitor.types import TICKS_PER_SECOND
from monitor.virtual_files import Readable, files_of

SEGMENT_SECONDS = 6.0  # speech of an enrolment segment, with at least one voice window
PARTS = ("enrolment", "trials")
_MARGIN_SECONDS = 1.0  # reserve, because speech detection differs slightly in a piece by itself


@dataclass(frozen=True, slots=True)
class Amounts:
    """Amounts of speech in a test: T of a trial, and the number of segments of a template."""

    seconds: float = 10.0
    trials: int = 10  # at most, per reader
    least_segments: int = 5
    most_segments: int = 30

    @property
    def template_seconds(self) -> float:
        """D, speech seconds of the template that all readers have."""
        return self.least_segments * SEGMENT_SECONDS


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of one recording, protected and processed by itself."""

    path: Readable
    name: str
    speaker: str
    start_seconds: float
    end_seconds: float
    whole: bool = False  # an utterance; all its frames are compared, without early ones

    @property
    def seconds(self) -> float:
        """Length of the audio, in seconds."""
        return self.end_seconds - self.start_seconds


@dataclass(frozen=True, slots=True)
class Reader:
    """Speech of one person in a test."""

    name: str
    enrolment: tuple[tuple[Piece, ...], ...]  # by session, the source of segments
    segments: tuple[tuple[int, int], ...]  # session and index of each, alternating
    trials: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Readers:
    """All readers with enough speech."""

    everybody: tuple[Reader, ...]
    session: str  # "cross", or "same": parts of one session, where a voice is easier to recognise
    problems: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.everybody)

    def pieces(self, *parts: str) -> list[Piece]:
        """Return all pieces of ``"enrolment"``, ``"trials"`` or both (`PARTS`)."""
        return [
            piece
            for role in parts
            for reader in self.everybody
            for session in (reader.enrolment if role == "enrolment" else (reader.trials,))
            for piece in session
        ]


def choose_readers(
    corpus: Corpus,
    root: Path,
    amounts: Amounts,
    *,
    session: str | None = None,
    jobs: Jobs = 1,
    progress: Callable[[str], object] = lambda _: None,
) -> Readers:
    """Choose templates and trials of all readers with enough speech."""
    problems = list(corpus.problems)
    speech: dict[str, list[_Session]] = {}
    tasks = [(name, tuple(corpus.sessions(name).values())) for name in corpus.speakers]
    outputs = each_in_order(
        partial(_locate_speech, root, amounts),
        tasks,
        jobs,
        reads=lambda task: files_of(*chain(*task[1])),
    )
    with closing(outputs) as results:
        for (name, _), (sessions, wrong) in zip(tasks, results, strict=True):
            speech[name] = sessions
            problems += wrong
            progress(name)
    for kind in (session,) if session else ("cross", "same"):
        split = _split_across if kind == "cross" else _split_within
        candidates = [split(name, sessions, amounts) for name, sessions in speech.items()]
        readers = [reader for reader in candidates if reader is not None]
        if len(readers) > 1:
            break
    if len(readers) < 2:
        condition = " in two sessions" if session == "cross" else ""
        raise CorpusError(
            f"fewer than two readers have {amounts.template_seconds:g} s of speech for a template "
            f"and {amounts.seconds:g} s for a trial{condition}: add speech or use shorter ones"
        )
    chosen = {reader.name for reader in readers}
    if excluded := [name for name in speech if name not in chosen]:
        condition = " in two sessions" if kind == "cross" else ""
        problems.append(
            f"{plural(len(excluded), 'reader')} excluded, without speech for template and trial"
            f"{condition}: {', '.join(excluded[:5])}{' ...' if len(excluded) > 5 else ''}"
        )
    return Readers(tuple(readers), kind, tuple(problems))


_Session: TypeAlias = Sequence[tuple[Piece, tuple[float, ...]]]
"""Recordings, with the end times of their units of speech, in seconds of audio."""


def _locate_speech(
    root: Path, amounts: Amounts, task: tuple[str, Sequence[Sequence[Readable]]]
) -> tuple[list[_Session], list[str]]:
    """Locate the speech of one reader's sessions; return it and unusable files."""
    speaker, sessions = task
    template = amounts.most_segments * SEGMENT_SECONDS
    units = _to_units(template + amounts.trials * amounts.seconds + 3 * _MARGIN_SECONDS)
    problems: list[str] = []
    located: list[_Session] = []
    for paths in sessions:
        remaining, recordings = units, list[tuple[Piece, tuple[float, ...]]]()
        for path in paths:
            if remaining <= 0:
                break
            if is_frames(path):
                problems.append(f"{path.name}: contains frames, but an anonymiser needs audio")
                continue
            try:
                ends = _find_unit_ends(path, remaining)
            except SourceError as error:
                problems.append(str(error))
                continue
            name = f"{speaker}/{path.name}"
            if isinstance(path, Path) and path.is_relative_to(root):
                name = path.relative_to(root).as_posix()
            recordings.append((Piece(path, name, speaker, 0.0, 0.0), tuple(ends)))
            remaining -= len(ends)
        if recordings:
            located.append(recordings)
    return located, problems


def _find_unit_ends(path: Readable, maximum: int) -> list[float]:
    """Return the end times of up to ``maximum`` units of speech, in seconds of audio."""
    step = TICKS_PER_SECOND // UNITS_PER_SECOND
    extractor, runs, spoken = Extractor([]), [np.empty(0, np.bool_)], 0
    for block in File(path).blocks():
        runs.append(extractor.process(block).speech)
        spoken += int(runs[-1].sum())
        if spoken >= maximum * step:
            break
    else:
        runs.append(extractor.flush().speech)
    last = np.flatnonzero(np.concatenate(runs))[step - 1 :: step] + 1
    ends: list[float] = (last[:maximum] / TICKS_PER_SECOND).tolist()
    return ends


def _split_across(name: str, sessions: Sequence[_Session], amounts: Amounts) -> Reader | None:
    """Take trials from the last session for which the others have speech for a template."""
    for index in reversed(range(len(sessions))):
        if _count_units(sessions[index]) < _to_units(amounts.seconds + _MARGIN_SECONDS):
            continue
        others = [*sessions[:index], *sessions[index + 1 :]]
        segments = _alternate_segments(list(map(_count_units, others)), amounts.most_segments)
        if len(segments) >= amounts.least_segments:
            trials = _cut_pieces(sessions[index], 0, amounts.trials * amounts.seconds)
            return Reader(name, _cut_enrolment(others, segments), segments, trials)
    return None


def _split_within(name: str, sessions: Sequence[_Session], amounts: Amounts) -> Reader | None:
    """Take a template from the start of the longest session and trials from its remainder."""
    session = max(sessions, key=_count_units, default=())
    room = _count_units(session) - _to_units(amounts.seconds + 2 * _MARGIN_SECONDS)
    segments = _alternate_segments([room], amounts.most_segments)
    if len(segments) < amounts.least_segments:
        return None
    begin = _to_units(len(segments) * SEGMENT_SECONDS + _MARGIN_SECONDS)
    trials = _cut_pieces(session, begin, amounts.trials * amounts.seconds)
    return Reader(name, _cut_enrolment([session], segments), segments, trials)


def _alternate_segments(lengths: Sequence[int], maximum: int) -> tuple[tuple[int, int], ...]:
    """Return session and index of segments from alternating sessions."""
    room = [max(0, n - _to_units(_MARGIN_SECONDS)) // _to_units(SEGMENT_SECONDS) for n in lengths]
    segments = [
        (session, index)
        for index in range(max(room, default=0))
        for session, count in enumerate(room)
        if index < count
    ]
    return tuple(segments[:maximum])


def _cut_enrolment(
    sessions: Sequence[_Session], segments: Sequence[tuple[int, int]]
) -> tuple[tuple[Piece, ...], ...]:
    counts = [sum(session == i for session, _ in segments) for i in range(len(sessions))]
    return tuple(
        _cut_pieces(session, 0, count * SEGMENT_SECONDS) if count else ()
        for session, count in zip(sessions, counts, strict=True)
    )


def _cut_pieces(session: _Session, begin: int, seconds: float) -> tuple[Piece, ...]:
    """Cut pieces with these seconds of speech from unit ``begin`` on, plus the margin."""
    pieces = []
    remaining = _to_units(seconds) + _to_units(_MARGIN_SECONDS)
    for recording, ends in session:
        if begin >= len(ends):
            begin -= len(ends)
            continue
        if remaining <= 0:
            break
        start = ends[begin - 1] if begin else 0.0
        last = min(begin + remaining, len(ends)) - 1
        name = f"{recording.name}@{start:g}" if start else recording.name
        pieces.append(Piece(recording.path, name, recording.speaker, start, ends[last]))
        remaining -= last + 1 - begin
        begin = 0
    return tuple(pieces)


def _count_units(session: _Session) -> int:
    return sum(len(ends) for _, ends in session)


def _to_units(seconds: float) -> int:
    return round(seconds * UNITS_PER_SECOND)
