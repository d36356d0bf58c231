"""The readers of an anonymiser test: templates and trials chosen from their sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np

from monitor.corpus import Corpus
from monitor.errors import CorpusError, SourceError
from monitor.features.extractor import Extractor
from monitor.jobs import Jobs, each_in_order
from monitor.phrases import plural
from monitor.sources.file import File
from monitor.sources.registry import is_frames
from monitor.training.voices import UNITS_PER_SECOND
from monitor.types import (
    TICKS_PER_SECOND,
)

# Templates and trials are of different sessions wherever there are two; nobody's trial is enrolled.

SEGMENT_SECONDS = 6.0  # of speech, of enrolment: a window of the voice network lies in each
PARTS = ("enrolment", "trials")
_MARGIN_SECONDS = 1.0  # beyond what is needed: a part heard by itself is cut a little differently


@dataclass(frozen=True, slots=True)
class Amounts:
    """Amounts of speech of a test.

    Attributes:
        seconds: T, speech seconds of a trial.
        trials: of each reader, at most.
        most_segments: of a template, at most.
    """

    seconds: float = 10.0
    trials: int = 10
    least_segments: int = 5
    most_segments: int = 30

    @property
    def template_seconds(self) -> float:
        """D, speech seconds of the template that everybody has."""
        return self.least_segments * SEGMENT_SECONDS


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of one recording, protected and heard by itself."""

    path: Path
    name: str
    speaker: str
    start_seconds: float
    end_seconds: float

    @property
    def seconds(self) -> float:
        """Length of the audio, in seconds."""
        return self.end_seconds - self.start_seconds


@dataclass(frozen=True, slots=True)
class Reader:
    """Speech used of one person.

    Attributes:
        enrolment: the pieces of each session that segments are taken from.
        segments: of each segment the session (place in ``enrolment``) and the place in it; sessions
            take turns.
    """

    name: str
    enrolment: tuple[tuple[Piece, ...], ...]
    segments: tuple[tuple[int, int], ...]
    trials: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Readers:
    """All readers with enough speech.

    Attributes:
        session: ``"cross"``, or ``"same"`` where template and trials are parts of one session,
            which makes a voice easier to recognise.
    """

    everybody: tuple[Reader, ...]
    session: str
    problems: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.everybody)

    def pieces(self, part: str) -> list[Piece]:
        """Return all pieces of ``"enrolment"`` or ``"trials"``."""
        if part == "trials":
            return [piece for reader in self.everybody for piece in reader.trials]
        return [p for reader in self.everybody for session in reader.enrolment for p in session]


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
    speech: dict[str, list[list[_RecordingSpeech]]] = {}
    tasks = [(name, tuple(corpus.sessions(name).values())) for name in corpus.speakers]
    outputs = each_in_order(
        partial(_locate_speech, root, amounts), tasks, jobs, reads=lambda task: chain(*task[1])
    )
    with closing(outputs) as results:
        for (name, _), (sessions, wrong) in zip(tasks, results, strict=True):
            speech[name] = sessions
            problems += wrong
            progress(name)
    kinds = (session,) if session else ("cross", "same")
    readers: list[Reader] = []
    for kind in kinds:
        split = _split_across if kind == "cross" else _split_within
        candidates = [split(name, sessions, amounts) for name, sessions in speech.items()]
        readers = [reader for reader in candidates if reader is not None]
        if len(readers) > 1:
            break
    if len(readers) < 2:
        place = " in two sessions" if session == "cross" else ""
        raise CorpusError(
            f"fewer than two readers have {amounts.template_seconds:g} s of speech for a template "
            f"and {amounts.seconds:g} s for a trial{place}: add speech or ask for less"
        )
    chosen = {reader.name for reader in readers}
    if left := [name for name in speech if name not in chosen]:
        place = " in two sessions" if kind == "cross" else ""
        problems.append(
            f"{plural(len(left), 'reader')} left out, without speech for template and trial"
            f"{place}: {', '.join(left[:5])}{' ...' if len(left) > 5 else ''}"
        )
    return Readers(tuple(readers), kind, tuple(problems))


@dataclass(frozen=True, slots=True)
class _RecordingSpeech:
    """The ends of a recording's units of speech, audio seconds."""

    path: Path
    name: str
    speaker: str
    ends: tuple[float, ...]


def _locate_speech(
    root: Path, amounts: Amounts, task: tuple[str, Sequence[Sequence[Path]]]
) -> tuple[list[list[_RecordingSpeech]], list[str]]:
    """Locate the speech of one reader's sessions; return it and unusable files."""
    speaker, sessions = task
    template = amounts.most_segments * SEGMENT_SECONDS
    units = _to_units(template + amounts.trials * amounts.seconds + 3 * _MARGIN_SECONDS)
    problems: list[str] = []
    located: list[list[_RecordingSpeech]] = []
    for paths in sessions:
        remaining, recordings = units, list[_RecordingSpeech]()
        for path in paths:
            if remaining <= 0:
                break
            if is_frames(path):
                problems.append(f"{path.name}: holds frames; an anonymiser needs audio")
                continue
            try:
                ends = _find_unit_ends(path, remaining)
            except SourceError as error:
                problems.append(str(error))
                continue
            inside = path.is_relative_to(root)
            name = path.relative_to(root).as_posix() if inside else f"{speaker}/{path.name}"
            recordings.append(_RecordingSpeech(path, name, speaker, tuple(ends)))
            remaining -= len(ends)
        if recordings:
            located.append(recordings)
    return located, problems


def _find_unit_ends(path: Path, most: int) -> list[float]:
    """Return when units of speech end, at most so many, in seconds of audio."""
    step = TICKS_PER_SECOND // UNITS_PER_SECOND
    extractor, runs, spoken = Extractor([]), [np.empty(0, np.bool_)], 0
    for block in File(path).blocks():
        runs.append(extractor.process(block).speech)
        spoken += int(runs[-1].sum())
        if spoken >= most * step:
            break
    else:
        runs.append(extractor.flush().speech)
    last = np.flatnonzero(np.concatenate(runs))[step - 1 :: step] + 1
    ends: list[float] = (last[:most] / TICKS_PER_SECOND).tolist()
    return ends


def _split_across(
    name: str, sessions: Sequence[Sequence[_RecordingSpeech]], amounts: Amounts
) -> Reader | None:
    """Take trials from the last session that leaves a template in the others."""
    for index in reversed(range(len(sessions))):
        others = [*sessions[:index], *sessions[index + 1 :]]
        trials = _cut_pieces(sessions[index], 0, _to_units(amounts.trials * amounts.seconds))
        if _count_units(sessions[index]) < _to_units(amounts.seconds + _MARGIN_SECONDS):
            continue
        segments = _alternate_segments(
            [_count_units(session) for session in others], amounts.most_segments
        )
        if len(segments) >= amounts.least_segments:
            return Reader(name, _cut_enrolment(others, segments), segments, trials)
    return None


def _split_within(
    name: str, sessions: Sequence[Sequence[_RecordingSpeech]], amounts: Amounts
) -> Reader | None:
    """Take a template from the start of the longest session and trials from the rest."""
    session = max(sessions, key=_count_units, default=())
    room = _count_units(session) - _to_units(amounts.seconds + 2 * _MARGIN_SECONDS)
    (*segments,) = _alternate_segments([room], amounts.most_segments)
    if len(segments) < amounts.least_segments:
        return None
    begin = _to_units(len(segments) * SEGMENT_SECONDS + _MARGIN_SECONDS)
    trials = _cut_pieces(session, begin, _to_units(amounts.trials * amounts.seconds))
    return Reader(name, _cut_enrolment([session], segments), tuple(segments), trials)


def _alternate_segments(lengths: Sequence[int], most: int) -> tuple[tuple[int, int], ...]:
    """Return segments of alternating sessions: session and index."""
    room = [max(0, n - _to_units(_MARGIN_SECONDS)) // _to_units(SEGMENT_SECONDS) for n in lengths]
    rounds = (
        (session, place)
        for place in range(max(room, default=0))
        for session, count in enumerate(room)
        if place < count
    )
    return tuple(segment for segment, _ in zip(rounds, range(most), strict=False))


def _cut_enrolment(
    sessions: Sequence[Sequence[_RecordingSpeech]], segments: Sequence[tuple[int, int]]
) -> tuple[tuple[Piece, ...], ...]:
    seconds_of_sessions = [
        sum(s == i for s, _ in segments) * SEGMENT_SECONDS for i in range(len(sessions))
    ]
    return tuple(
        _cut_pieces(session, 0, _to_units(seconds)) if seconds else ()
        for session, seconds in zip(sessions, seconds_of_sessions, strict=True)
    )


def _cut_pieces(session: Sequence[_RecordingSpeech], begin: int, units: int) -> tuple[Piece, ...]:
    """Cut pieces with so many units of speech from one on, and a little more."""
    pieces = []
    remaining = units + _to_units(_MARGIN_SECONDS)
    for recording in session:
        if begin >= len(recording.ends):
            begin -= len(recording.ends)
            continue
        if remaining <= 0:
            break
        start = recording.ends[begin - 1] if begin else 0.0
        last = min(begin + remaining, len(recording.ends)) - 1
        name = f"{recording.name}@{start:g}" if start else recording.name
        pieces.append(Piece(recording.path, name, recording.speaker, start, recording.ends[last]))
        remaining -= last + 1 - begin
        begin = 0
    return tuple(pieces)


def _count_units(session: Sequence[_RecordingSpeech]) -> int:
    return sum(map(len, (recording.ends for recording in session)))


def _to_units(seconds: float) -> int:
    return round(seconds * UNITS_PER_SECOND)
