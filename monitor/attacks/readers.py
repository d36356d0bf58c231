"""Whose speech an attack is tried on: what each reader's templates are made of, and the trials.

Templates and trials are of different sessions wherever there are two; nobody's trial is enrolled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np

from monitor.corpus.recordings import Corpus
from monitor.errors import CorpusError, SourceError
from monitor.features.extractor import Extractor
from monitor.phrases import plural
from monitor.sources.file import File
from monitor.sources.registry import is_frames
from monitor.training.voices import UNITS_PER_SECOND
from monitor.types import TICKS_PER_SECOND
from monitor.workers import Jobs, each_in_order

__all__ = ["PARTS", "SEGMENT_SECONDS", "Amounts", "Piece", "Reader", "Readers", "readers_of"]

SEGMENT_SECONDS = 6.0
"""Speech seconds of one segment of enrolment: a window of the voice network lies in each."""
PARTS = ("enrolment", "trials")
"""What a reader's speech is parted into."""
_MARGIN_SECONDS = 1.0
"""Heard beyond what is needed: a part heard by itself is cut into speech a little differently."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """How much speech is wanted.

    Attributes:
        seconds: T, speech seconds of a trial.
        trials: of each reader, at most.
        least_segments: of a template that everybody must have.
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
    """A part of one recording, protected and heard by itself.

    Attributes:
        path: the recording.
        name: of the part, the same in every run: what a protector draws by.
        speaker: who speaks.
        start_seconds, end_seconds: of audio.
    """

    path: Path
    name: str
    speaker: str
    start_seconds: float
    end_seconds: float

    @property
    def seconds(self) -> float:
        """Of audio."""
        return self.end_seconds - self.start_seconds


@dataclass(frozen=True, slots=True)
class Reader:
    """What is used of one person's speech.

    Attributes:
        name: who it is.
        enrolment: the pieces of each session that segments are taken from.
        segments: of each segment the session (place in ``enrolment``) and the place in it; sessions
            take turns.
        trials: the pieces of the session that trials are cut from.
    """

    name: str
    enrolment: tuple[tuple[Piece, ...], ...]
    segments: tuple[tuple[int, int], ...]
    trials: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Readers:
    """Everybody who has enough speech.

    Attributes:
        everybody: in the order of the corpus.
        session: ``"cross"``, or ``"same"`` where template and trials are parts of one session,
            which makes a voice easier to recognise.
        problems: one line for everybody and everything that was left out.
    """

    everybody: tuple[Reader, ...]
    session: str
    problems: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.everybody)

    def pieces(self, part: str) -> list[Piece]:
        """All pieces of ``"enrolment"`` or ``"trials"``."""
        if part == "trials":
            return [piece for reader in self.everybody for piece in reader.trials]
        return [p for reader in self.everybody for session in reader.enrolment for p in session]


def readers_of(
    corpus: Corpus,
    root: Path,
    amounts: Amounts,
    *,
    session: str | None = None,
    jobs: Jobs = 1,
    progress: Callable[[str], object] = lambda _: None,
) -> Readers:
    """Choose templates and trials of everybody who says enough.

    Args:
        corpus: the recordings.
        root: their folder: names of recordings are relative to it.
        amounts: how much is wanted.
        session: ``"cross"``, ``"same"``, or None: cross-session where two readers have it.
        jobs: processes that look for speech, or workers elsewhere.
        progress: called with each reader's name.

    Raises:
        CorpusError: fewer than two readers say enough, or the corpus holds no audio.
    """
    problems = list(corpus.problems)
    spoken: dict[str, list[list[_Spoken]]] = {}
    tasks = [(name, tuple(corpus.sessions(name).values())) for name in corpus.speakers]
    looked = each_in_order(
        partial(_sessions, root, amounts), tasks, jobs, reads=lambda task: chain(*task[1])
    )
    with closing(looked) as results:
        for (name, _), (sessions, wrong) in zip(tasks, results, strict=True):
            spoken[name] = sessions
            problems += wrong
            progress(name)
    ways = (session,) if session else ("cross", "same")
    found: list[Reader] = []
    for way in ways:
        split = _across if way == "cross" else _within
        made = [split(name, sessions, amounts) for name, sessions in spoken.items()]
        found = [reader for reader in made if reader is not None]
        if len(found) > 1:
            break
    if len(found) < 2:
        raise CorpusError(
            f"fewer than two readers have {amounts.template_seconds:g} s of speech for a template "
            f"and {amounts.seconds:g} s for a trial{_apart(session)}: add speech or ask for less"
        )
    chosen = {reader.name for reader in found}
    if left := [name for name in spoken if name not in chosen]:
        apart = " in two sessions" if way == "cross" else ""
        problems.append(
            f"{plural(len(left), 'reader')} left out, without speech for template and trial"
            f"{apart}: {', '.join(left[:5])}{' ...' if len(left) > 5 else ''}"
        )
    return Readers(tuple(found), way, tuple(problems))


@dataclass(frozen=True, slots=True)
class _Spoken:
    """One recording as far as it was looked at: when each unit of speech is over, audio seconds."""

    path: Path
    name: str
    speaker: str
    ends: tuple[float, ...]


def _sessions(
    root: Path, amounts: Amounts, task: tuple[str, Sequence[Sequence[Path]]]
) -> tuple[list[list[_Spoken]], list[str]]:
    """The sessions of one reader in which there is speech, and what could not be used."""
    name, sessions = task
    problems: list[str] = []
    heard = [_speech(paths, root, name, amounts, problems) for paths in sessions]
    return [session for session in heard if session], problems


def _apart(session: str | None) -> str:
    return "" if session != "cross" else " in two sessions"


def _speech(
    paths: Sequence[Path], root: Path, speaker: str, amounts: Amounts, problems: list[str]
) -> list[_Spoken]:
    """Where there is speech in a session, as far as anybody could want it."""
    template = amounts.most_segments * SEGMENT_SECONDS
    wanted = template + amounts.trials * amounts.seconds + 3 * _MARGIN_SECONDS
    left = _units(wanted)
    found = []
    for path in paths:
        if left <= 0:
            break
        if is_frames(path):
            problems.append(f"{path.name}: holds frames; a protector needs audio")
            continue
        try:
            ends = _unit_ends(path, left)
        except SourceError as error:
            problems.append(str(error))
            continue
        inside = path.is_relative_to(root)
        name = path.relative_to(root).as_posix() if inside else f"{speaker}/{path.name}"
        found.append(_Spoken(path, name, speaker, tuple(ends)))
        left -= len(ends)
    return found


def _unit_ends(path: Path, most: int) -> list[float]:
    """When each unit of speech is over, at most so many, in seconds of audio."""
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


def _across(name: str, sessions: Sequence[Sequence[_Spoken]], amounts: Amounts) -> Reader | None:
    """Trials of the last session that leaves a template in the others."""
    for place in reversed(range(len(sessions))):
        others = [*sessions[:place], *sessions[place + 1 :]]
        trials = _cut(sessions[place], 0, _units(amounts.trials * amounts.seconds))
        if _length(sessions[place]) < _units(amounts.seconds + _MARGIN_SECONDS):
            continue
        segments = _turns([_length(each) for each in others], amounts.most_segments)
        if len(segments) >= amounts.least_segments:
            return Reader(name, _enrolment(others, segments), segments, trials)
    return None


def _within(name: str, sessions: Sequence[Sequence[_Spoken]], amounts: Amounts) -> Reader | None:
    """Template from the beginning of the longest session, trials from what follows."""
    session = max(sessions, key=_length, default=())
    room = _length(session) - _units(amounts.seconds + 2 * _MARGIN_SECONDS)
    (*segments,) = _turns([room], amounts.most_segments)
    if len(segments) < amounts.least_segments:
        return None
    begin = _units(len(segments) * SEGMENT_SECONDS + _MARGIN_SECONDS)
    trials = _cut(session, begin, _units(amounts.trials * amounts.seconds))
    return Reader(name, _enrolment([session], segments), tuple(segments), trials)


def _turns(lengths: Sequence[int], most: int) -> tuple[tuple[int, int], ...]:
    """Segments of sessions that take turns: session and place."""
    room = [max(0, n - _units(_MARGIN_SECONDS)) // _units(SEGMENT_SECONDS) for n in lengths]
    rounds = (
        (session, place)
        for place in range(max(room, default=0))
        for session, there in enumerate(room)
        if place < there
    )
    return tuple(each for each, _ in zip(rounds, range(most), strict=False))


def _enrolment(
    sessions: Sequence[Sequence[_Spoken]], segments: Sequence[tuple[int, int]]
) -> tuple[tuple[Piece, ...], ...]:
    wanted = [sum(s == i for s, _ in segments) * SEGMENT_SECONDS for i in range(len(sessions))]
    return tuple(
        _cut(session, 0, _units(seconds)) if seconds else ()
        for session, seconds in zip(sessions, wanted, strict=True)
    )


def _cut(session: Sequence[_Spoken], begin: int, units: int) -> tuple[Piece, ...]:
    """Pieces that hold so many units of speech from one on, and a little more."""
    pieces = []
    left = units + _units(_MARGIN_SECONDS)
    for each in session:
        if begin >= len(each.ends):
            begin -= len(each.ends)
            continue
        if left <= 0:
            break
        start = each.ends[begin - 1] if begin else 0.0
        last = min(begin + left, len(each.ends)) - 1
        name = f"{each.name}@{start:g}" if start else each.name
        pieces.append(Piece(each.path, name, each.speaker, start, each.ends[last]))
        left -= last + 1 - begin
        begin = 0
    return tuple(pieces)


def _length(session: Sequence[_Spoken]) -> int:
    return sum(map(len, (each.ends for each in session)))


def _units(seconds: float) -> int:
    return round(seconds * UNITS_PER_SECOND)
