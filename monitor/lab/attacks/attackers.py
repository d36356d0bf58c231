"""The attackers of an anonymiser test: readers, protected recordings, templates."""

from __future__ import annotations

import hashlib
import io
import json
import shlex
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from monitor.anonymisers.registry import make
from monitor.anonymisers.utterance import Utterance
from monitor.corpus.recordings import Corpus, Recording
from monitor.errors import CorpusError, SourceError, UsageError
from monitor.features.extractor import Extractor
from monitor.features.framing import columns_of, join_runs
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup
from monitor.features.registry import make as make_features
from monitor.files import read_arrays
from monitor.jobs import Jobs, each_in_order, one_thread
from monitor.kinds import FeatureSpec
from monitor.lab.adapting.adapted import FINE_TUNING_STEPS, FineTuning, Length, SpeechDraws
from monitor.lab.evaluation.family import Figure
from monitor.lab.result_cache import ResultCache, code_mark, result_key
from monitor.maths.scores import Similarity
from monitor.phrases import plural
from monitor.protocols import Feature
from monitor.sources.file import File
from monitor.sources.provenance import file_hash
from monitor.sources.registry import is_frames
from monitor.training.calibrating import FEWEST_SPEAKERS
from monitor.training.feature_extraction import (
    SpeechFrames,
    SpeechTrack,
    select_word_features,
    with_transcript,
    wrap_tracks,
)
from monitor.training.voices import UNITS_PER_SECOND, SessionFrames, session_frames, units_of
from monitor.transcripts.formats import LIES_BESIDE, words_mark
from monitor.types import (
    TICKS_PER_SECOND,
    AnyArray,
    Block,
    BoolArray,
    FloatArray,
    Frames,
    IntArray,
    Words,
)

# --------------------------------------------------------------------------------------- attackers
# The hierarchy is that of the VoicePrivacy challenges, as in LID section 3.2.3, USC and VoxGuard.


@dataclass(frozen=True, slots=True)
class ThreatModel:
    """What one attacker knows and does; what a trial is does not depend on it.

    Attributes:
        knows: in a sentence, for people.
        protects: whether enrolled speech, and the background that rank models are learnt on, are
            protected by the method too, with draws of the attacker's own.
        needs_background: whether it cannot work without speech of other readers.
        trains: whether it trains on a part of that speech; models are then learnt on the rest
            alone.
        features: from the bench and the method to what it hears with, by the name under which it is
            shown; None: with the features that were asked for.
    """

    name: str
    knows: str
    protects: bool
    needs_background: bool = False
    trains: bool = False
    features: Callable[[AttackContext, str], Mapping[str, str | Feature]] | None = None


def _semi_informed(bench: AttackContext, method: str) -> Mapping[str, str | Feature]:
    from monitor.lab.attacks.semi_informed import semi_informed  # it needs what is defined here

    return semi_informed(bench, method)


ATTACKERS: dict[str, ThreatModel] = {
    each.name: each
    for each in (
        ThreatModel(
            "ignorant",
            "knows of no protection: templates and rank models of clear speech",
            protects=False,
        ),
        ThreatModel(
            "lazy-informed",
            "knows the method, not its draws: enrolled speech is protected too, and so is what "
            "rank models are learnt on",
            protects=True,
        ),
        ThreatModel(
            "semi-informed",
            "knows the method and has speech of other readers: trains the voice network on it, "
            "protected, beside what lazy-informed does",
            protects=True,
            needs_background=True,
            trains=True,
            features=_semi_informed,
        ),
    )
}
"""Every attacker, the weakest first."""


def attacker_named(name: str) -> ThreatModel:
    """The attacker of that name.

    Example:
        >>> attacker_named("lazy-informed").protects
        True
    """
    if name not in ATTACKERS:
        raise UsageError(f"no attacker is called {name!r}; there are {', '.join(ATTACKERS)}")
    return ATTACKERS[name]


class Measure(ABC):
    """Compares clear with protected audio, piece by piece.

    Each trial piece is heard twice, clear and protected, while the attackers' features hear it:
    nothing is decoded or protected again.
    """

    name: str
    version: str

    @abstractmethod
    def measure(self, clear: FloatArray, protected: FloatArray, rate: int) -> Mapping[str, Any]:
        """What is to be kept of one piece; anything that goes into JSON.

        Args:
            clear: shape (n,), one channel.
            protected: shape (m,), likewise.
            rate: samples per second of both.
        """

    @abstractmethod
    def figures(self, noted: Mapping[str, Sequence[Mapping[str, Any]]]) -> Sequence[Figure]:
        """What all pieces say together, with limits over readers where they can be had.

        Args:
            noted: by reader, what `measure` kept of each piece.
        """


def _utility() -> Measure:
    from monitor.lab.attacks.attacking import Usefulness

    return Usefulness()


MEASURES: dict[str, Callable[[], Measure]] = {"utility": _utility}
"""What makes each, by its name; called in the process that listens."""


# The clock is the clear recording's speech, so that a trial is the same stretch of talk whatever a
# anonymiser did to it; that it fell silent is then no trial less, but a trial without evidence.


@dataclass(frozen=True, slots=True)
class HeardPiece:
    """One piece, protected and heard."""

    frames: SpeechFrames
    measured: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def on_clock(frames: Frames, clear: BoolArray) -> SpeechFrames:
    """Frames of a protected piece, on the clock of its clear speech.

    Args:
        frames: of the protected audio. Where it has another length, time is stretched to fit.
        clear: shape (ticks,), the decisions on the clear audio.
    """
    clock = np.concatenate([[0], np.cumsum(clear)])
    scale = clear.size / max(frames.speech.size, 1)

    def at(ticks: AnyArray) -> AnyArray:
        placed = ticks if scale == 1.0 else np.ceil(ticks * scale).astype(np.int64)
        return np.asarray(clock[np.minimum(placed, clear.size)])

    tracks = {
        name: SpeechTrack(
            each.values, at(each.ticks), None if each.spans is None else at(each.spans[:, 0])
        )
        for name, each in frames.tracks.items()
    }
    return SpeechFrames(clear, tracks)


def pack(heard: HeardPiece) -> bytes:
    """As bytes, for `monitor.lab.result_cache`."""
    frames = heard.frames
    arrays: dict[str, AnyArray] = {"speech": frames.speech}
    for i, track in enumerate(frames.tracks.values()):
        arrays[f"values{i}"], arrays[f"at{i}"] = track.values, track.at
        if track.since is not None:
            arrays[f"since{i}"] = track.since
    said = {"tracks": list(frames.tracks), "lost": frames.lost, "measured": heard.measured}
    arrays["said"] = np.array(json.dumps(said))
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def unpack(data: bytes) -> HeardPiece:
    """The reverse of `pack`."""
    arrays = read_arrays(io.BytesIO(data))
    said = json.loads(arrays["said"].item())
    tracks = {
        name: SpeechTrack(arrays[f"values{i}"], arrays[f"at{i}"], arrays.get(f"since{i}"))
        for i, name in enumerate(said["tracks"])
    }
    frames = SpeechFrames(arrays["speech"], tracks)
    return HeardPiece(replace(frames, lost=said["lost"]), said["measured"])


# ----------------------------------------------------------------------------------------- readers
# Templates and trials are of different sessions wherever there are two; nobody's trial is enrolled.

SEGMENT_SECONDS = 6.0  # of speech, of enrolment: a window of the voice network lies in each
PARTS = ("enrolment", "trials")
_MARGIN_SECONDS = 1.0  # beyond what is needed: a part heard by itself is cut a little differently


@dataclass(frozen=True, slots=True)
class Amounts:
    """How much speech is wanted.

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
        """Of audio."""
        return self.end_seconds - self.start_seconds


@dataclass(frozen=True, slots=True)
class Reader:
    """What is used of one person's speech.

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
    """Everybody who has enough speech.

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
    """Choose templates and trials of everybody who says enough."""
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
        apart = " in two sessions" if session == "cross" else ""
        raise CorpusError(
            f"fewer than two readers have {amounts.template_seconds:g} s of speech for a template "
            f"and {amounts.seconds:g} s for a trial{apart}: add speech or ask for less"
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
    """Where there is speech in one reader's sessions, as far as wanted, and what is unusable."""
    speaker, sessions = task
    template = amounts.most_segments * SEGMENT_SECONDS
    wanted = _units(template + amounts.trials * amounts.seconds + 3 * _MARGIN_SECONDS)
    problems: list[str] = []
    made: list[list[_Spoken]] = []
    for paths in sessions:
        left, found = wanted, list[_Spoken]()
        for path in paths:
            if left <= 0:
                break
            if is_frames(path):
                problems.append(f"{path.name}: holds frames; an anonymiser needs audio")
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
        if found:
            made.append(found)
    return made, problems


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


# ----------------------------------------------------------------------------------------- hearing
# No audio is ever written. What was heard is kept by a hash of all that it depends on, so that long
# work goes on where it was interrupted.

CLEAR = "none"  # the method that changes nothing
_CODE = ("monitor.anonymisers", "monitor.features", "monitor.networks")
_VERSION = 1  # of what this file makes of these: another one hears anew
_BLOCK_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class ExtractionRequest:
    """A piece to be heard under a method, drawn by a seed, with what is measured meanwhile."""

    piece: Piece
    method: str
    seed: int
    measures: tuple[str, ...] = ()

    @property
    def drawn(self) -> ExtractionRequest:
        """The same by what it depends on: clear speech draws nothing."""
        return self if self.method != CLEAR else replace(self, seed=0)


@dataclass
class HeardSeconds:
    """Seconds of audio that were protected and heard, and those that were kept from before."""

    heard: float = 0.0
    kept: float = 0.0


@dataclass(frozen=True)
class Hearing:
    """Hears pieces under any method, each once.

    Attributes:
        cache: keeps what was heard; None keeps nothing.
        setup: from where features are made.
        progress: called with seconds of audio done.
        seconds: of all pieces so far, each once; added to.
    """

    cache: ResultCache | None = None
    jobs: Jobs = 1
    setup: FeatureSetup = AS_ENVIRONMENT
    progress: Callable[[float], None] = lambda _: None
    missing: dict[str, str] = field(default_factory=dict)
    seconds: HeardSeconds = field(default_factory=HeardSeconds)
    _failed: dict[str, str] = field(default_factory=dict)
    _counted: set[str] = field(default_factory=set)

    def extract(
        self,
        pieces: Sequence[Piece],
        method: str,
        seed: int,
        features: Sequence[str | Feature],
        measures: Sequence[str] = (),
    ) -> dict[Piece, HeardPiece]:
        """Protect and hear each piece, in order; what cannot be used is left out and noted.

        Raises:
            UsageError: the method or a feature makes no sense.
            MonitorError: a process was ended from outside.
        """
        found: dict[Piece, HeardPiece] = {}
        wanted = [ExtractionRequest(piece, method, seed, tuple(measures)) for piece in pieces]
        for each, heard in self._hear(wanted, features).items():
            found[each.piece] = unpack(heard)
        return {piece: found[piece] for piece in pieces if piece in found}

    def ahead(self, wanted: Sequence[ExtractionRequest], features: Sequence[str | Feature]) -> None:
        """Hear what will be asked for, all methods of a piece one after the other, and keep it.

        Nothing is heard where nothing is kept. Errors as of `extract`.
        """
        if self.cache is not None:
            self._hear(wanted, features, give=False)

    def _hear(
        self,
        wanted: Sequence[ExtractionRequest],
        features: Sequence[str | Feature],
        *,
        give: bool = True,
    ) -> dict[ExtractionRequest, bytes]:
        setup = self.setup.elsewhere()
        made_here = make_features(features, setup)
        noted = [[each.spec.name, each.spec.plain()] for each in made_here]
        words = bool(select_word_features(made_here))
        found: dict[ExtractionRequest, bytes] = {}
        todo: dict[Piece, dict[str, ExtractionRequest]] = {}
        for each in wanted:
            versions = {name: MEASURES[name]().version for name in each.measures}
            try:
                key = _key(each.piece, each.method, each.seed, noted, versions, words=words)
                if key in self._failed:
                    raise SourceError(self._failed[key])
            except SourceError as error:
                self.missing[each.piece.name] = str(error)
                continue
            kept = self.cache.read(key) if self.cache else None
            if kept is None:
                todo.setdefault(each.piece, {})[key] = each
                continue
            if self._count(key, each.piece):
                self.seconds.kept += each.piece.seconds
            if give:
                found[each] = kept

        def arrived(results: Sequence[_Extracted]) -> None:
            for key, piece, made in results:
                if self._count(key, piece):
                    self.seconds.heard += piece.seconds
                if isinstance(made, str):
                    self._failed[key] = self.missing[piece.name] = made
                elif self.cache:
                    self.cache.write(key, made)

        work = partial(_extract, tuple(features), setup)
        tasks = [tuple(of_piece.items()) for of_piece in todo.values()]
        heard = each_in_order(
            work, tasks, self.jobs, reads=partial(_read, words), alike=_code, arrived=arrived
        )
        with closing(heard) as results:
            for task, made in zip(tasks, results, strict=True):
                for (_, each), (_, _, one) in zip(task, made, strict=True):
                    if give and not isinstance(one, str):
                        found[each] = one
        return found

    def _count(self, key: str, piece: Piece) -> bool:
        """Whether this is heard for the first time."""
        if key in self._counted:
            return False
        self._counted.add(key)
        self.progress(piece.seconds)
        return True


def hear_protected(
    piece: Piece, method: str, seed: int,
    features: Sequence[str | Feature], measures: Sequence[str] = (),
    setup: FeatureSetup = AS_ENVIRONMENT,
) -> HeardPiece:  # fmt: skip
    """Protect one piece, and hear it, in memory.

    Channels are averaged before: an anonymiser hears what the attacker hears.

    Raises:
        SourceError: it cannot be read or protected.
        UsageError: the method or a feature makes no sense.
    """
    source = File(
        piece.path,
        start_seconds=piece.start_seconds,
        end_seconds=piece.end_seconds,
        block_seconds=_BLOCK_SECONDS,
    )
    anonymiser = make(method, Utterance(source.rate, piece.name, piece.speaker, 0, seed))
    made = make_features(features, setup)
    beside = select_word_features(made)
    clock, extractor = Extractor([]), Extractor([each for each in made if each not in beside])
    said, clear_runs, runs = list[Frames](), list[Frames](), list[Frames]()
    clear, protected = list[FloatArray](), list[FloatArray]()

    def listen(samples: FloatArray) -> None:
        runs.append(extractor.process(Block(samples, source.rate)))
        protected.append(samples)

    items = with_transcript(
        source, piece.path, made, LIES_BESIDE, piece.speaker, piece.start_seconds
    )
    for block in items:
        if isinstance(block, Words):
            said.append(wrap_tracks(beside, [each.process(block) for each in beside]))
            continue
        if not isinstance(block, Block):
            raise SourceError(getattr(block, "detail", "") or f"{source.label}: breaks off")
        samples = np.asarray(columns_of(block, None).mean(axis=1), np.float32)
        clear_runs.append(clock.process(Block(samples, source.rate)))
        clear.append(samples)
        try:
            listen(anonymiser.process(samples))
        except UsageError as error:  # a sample is no number
            raise SourceError(f"{source.label}: {error}") from None
    listen(anonymiser.flush())
    speech = join_runs([*clear_runs, clock.flush()]).speech
    frames = join_runs([*runs, extractor.flush()])
    measured: dict[str, Mapping[str, Any]] = {}
    if measures:
        both = np.concatenate(clear), np.concatenate(protected)
        with one_thread():
            measured = {name: MEASURES[name]().measure(*both, source.rate) for name in measures}
    heard = on_clock(frames, speech)
    if beside:  # words lie on the clear clock as they are
        said.append(wrap_tracks(beside, [each.flush() for each in beside]))
        words = on_clock(replace(join_runs(said), speech=speech), speech)
        heard = replace(heard, tracks={**heard.tracks, **words.tracks})
    return HeardPiece(heard, measured)


_Extracted: TypeAlias = tuple[str, Piece, bytes | str]
_Task: TypeAlias = tuple[tuple[str, ExtractionRequest], ...]


def _extract(
    features: Sequence[str | Feature], setup: FeatureSetup, task: _Task
) -> list[_Extracted]:
    """Each of a task as bytes, or why not, by its key."""
    made: list[_Extracted] = []
    for key, each in task:
        found: bytes | str
        try:
            found = pack(
                hear_protected(each.piece, each.method, each.seed, features, each.measures, setup)
            )
        except SourceError as error:
            found = str(error)
        made.append((key, each.piece, found))
    return made


def _read(words: bool, task: _Task) -> list[Path]:
    """The files that are read for a task, which is of one piece."""
    _, each = task[0]
    return [one.absolute() for one in LIES_BESIDE.files(each.piece.path, words=words)]


def _key(
    piece: Piece, method: str, seed: int, noted: Sequence[Any], versions: Mapping[str, str],
    *, words: bool,
) -> str:  # fmt: skip
    transcript = LIES_BESIDE.read(piece.path, own=piece.speaker) if words else None
    drawn = None if method == CLEAR else [piece.name, piece.speaker, seed]
    return result_key(
        {
            "code": [_code(), _VERSION],
            "recording": file_hash(piece.path),
            "part": [piece.start_seconds, piece.end_seconds],
            "method": method,
            "program": program_of(method),
            "drawn": drawn,
            "features": noted,
            "measures": dict(versions),
            **({} if transcript is None else {"words": words_mark(transcript)}),
        }
    )


@cache
def _code() -> str:
    return code_mark(*_CODE)


def program_of(method: str) -> list[str]:
    """What a command consists of, as far as it is files: another program, another result."""
    kind, _, command = method.partition(":")
    if kind != "command":
        return []
    try:
        words = shlex.split(command)
    except ValueError:  # the anonymiser says so
        return []
    places = [Path(shutil.which(word) or word) for word in words]
    return [file_hash(place) for place in places if place.is_file()]


# ------------------------------------------------------------------------------------------- bench

_MOST_APART = 50


@dataclass(frozen=True, slots=True)
class Background:
    """Speech of background speakers, that an attacker may learn from; none of them is judged.

    Attributes:
        corpora: with the folder of each; readers who are judged are left out.
        readers: those of them who say enough to learn rank models on.
        problems: one line for everything that was left out.
    """

    corpora: tuple[tuple[Corpus, Path], ...]
    readers: Readers | None
    problems: tuple[str, ...] = ()


def apart(background: Background) -> tuple[Readers | None, tuple[tuple[Recording, ...], ...]]:
    """Who says which network is used and teaches rank models, and whose speech it is trained on.

    Returns:
        a third of the readers, at most fifty, of those who say enough (None where nobody does); and
            by corpus the recordings of all others.
    """
    enough = background.readers.everybody if background.readers else ()
    speakers = sum(len(corpus.speakers) for corpus, _ in background.corpora)
    wanted = max(FEWEST_SPEAKERS, min(_MOST_APART, speakers // 3))
    held = sorted(enough, key=lambda r: hashlib.sha256(r.name.encode()).digest())[:wanted]
    files = {p.path for r in held for s in (*r.enrolment, r.trials) for p in s}
    names = {reader.name for reader in held}
    training = tuple(
        tuple(r for r in corpus.recordings if r.speaker not in names and r.path not in files)
        for corpus, _ in background.corpora
    )
    held.sort(key=lambda reader: reader.name)
    return (Readers(tuple(held), "same") if held else None), training


@dataclass(frozen=True)
class AttackContext:
    """What attackers work with.

    Attributes:
        judged: whose trials are attacked.
        background: None where none was given.
        features: that attackers hear with, where they have none of their own.
        measures: of `MEASURES`, made of the trials when these features hear them.
        amounts: how much speech.
        hearing: hears protected speech; keeps what it heard.
        seed: of the user's draws; the attacker's own follow from it and are others.
        folder: where an attacker may keep what it made, such as a network; private.
        training, draws, fine_tuning: how long an attacker trains a network, on how much speech of
            each reader, and how.
        told: called with what an attacker is doing, for people.
        notes: what an attacker found out about itself, for people; added to.
        clear_bits: by method, what the network of an attacker who trains tells of unprotected
            speech of background speakers, and what the shipped one does, MeanD in bits; added to.
    """

    judged: Readers
    background: Background | None
    features: tuple[str, ...]
    measures: tuple[str, ...]
    amounts: Amounts
    hearing: Hearing
    seed: int
    folder: Path
    training: Length = field(default_factory=lambda: Length(steps=FINE_TUNING_STEPS))
    draws: SpeechDraws = field(default_factory=SpeechDraws)
    fine_tuning: FineTuning = field(default_factory=FineTuning)
    told: Callable[[str], object] = lambda _: None
    notes: list[str] = field(default_factory=list)
    clear_bits: dict[str, tuple[float, float]] = field(default_factory=dict)

    def learns_from(self, attacker: ThreatModel) -> Readers | None:
        """The readers of the background that an attacker learns models on; None where nobody is.

        Nobody among them has trained its network, which would know them better than others.
        """
        if self.background is None or not attacker.trains:
            return None if self.background is None else self.background.readers
        return apart(self.background)[0]

    def heard_with(self, attacker: ThreatModel, method: str) -> Mapping[str, str | Feature]:
        """What an attacker hears with, by the name under which it is shown."""
        if attacker.features is not None:
            return attacker.features(self, method)
        return {name: name for name in self.features}

    @property
    def attacker_seed(self) -> int:
        """Of the attacker's draws: the method is known, the user's draws are not."""
        return self.seed + 1

    def trials(self, method: str, features: Sequence[str | Feature]) -> dict[Piece, HeardPiece]:
        """The judged readers' trials, as they publish them."""
        pieces = self.judged.pieces("trials")
        measures = self.measures if tuple(features) == self.features else ()
        return self.hearing.extract(pieces, method, self.seed, features, measures)

    def enrolment(
        self, attacker: ThreatModel, method: str, features: Sequence[str | Feature]
    ) -> dict[Piece, HeardPiece]:
        """The judged readers' enrolled speech, as the attacker has it."""
        return self.own(self.judged.pieces("enrolment"), attacker, method, features)

    def wanted(self, methods: Mapping[str, Sequence[ThreatModel]]) -> list[ExtractionRequest]:
        """All that these attackers of methods hear with the features of the bench, each once."""
        found: dict[ExtractionRequest, None] = {}
        tried, enrolled = self.judged.pieces("trials"), self.judged.pieces("enrolment")
        for method, attackers in methods.items():
            for piece in tried:
                found[ExtractionRequest(piece, method, self.seed, self.measures).drawn] = None
            for attacker in attackers:
                if attacker.features is not None:
                    continue
                readers = self.learns_from(attacker) if len(self.features) > 1 else None
                apart = [] if readers is None else [p for x in PARTS for p in readers.pieces(x)]
                used = method if attacker.protects else CLEAR
                for piece in (*enrolled, *apart):
                    found[ExtractionRequest(piece, used, self.attacker_seed).drawn] = None
        return list(found)

    def own(
        self, pieces: Sequence[Piece], attacker: ThreatModel, method: str,
        features: Sequence[str | Feature],
    ) -> dict[Piece, HeardPiece]:  # fmt: skip
        """Any speech that an attacker has in the clear, as it would use it."""
        used = method if attacker.protects else CLEAR
        return self.hearing.extract(pieces, used, self.attacker_seed, features)


# --------------------------------------------------------------------------------------- templates
# VoxGuard section 4.2: a template is the mean of L segments (average scoring), or each of them by
# itself, of which the nearest counts (max scoring).


@dataclass(frozen=True, slots=True)
class Segments:
    """Enrolled segments of N readers.

    Attributes:
        totals: by feature, of each reader, shape (segments, M).
    """

    names: tuple[str, ...]
    totals: Mapping[str, tuple[AnyArray, ...]]

    @property
    def counts(self) -> list[int]:
        """How many segments each reader has."""
        return [len(each) for each in next(iter(self.totals.values()))]


@dataclass(frozen=True, slots=True)
class ProtectedTrials:
    """Consecutive stretches of T speech seconds.

    Attributes:
        totals: by feature, shape (n, M).
        heard: by feature, whether a trial has any frame of it, shape (n,).
        target: position of each one's reader, shape (n,).
        names: of each.
    """

    totals: Mapping[str, AnyArray]
    heard: Mapping[str, BoolArray]
    target: IntArray
    names: tuple[str, ...]


def speech(
    pieces: Sequence[Piece], heard: Mapping[Piece, HeardPiece], specs: Mapping[str, FeatureSpec]
) -> dict[str, SessionFrames] | None:
    """The frames of consecutive pieces; None where one of them could not be heard.

    Pieces are heard by themselves, and each long frame counts where it was complete: there are as
    many in a stretch as somebody has who hears it alone.
    """
    if any(piece not in heard for piece in pieces):
        return None
    frames = [heard[piece].frames for piece in pieces]
    made = {name: session_frames(frames, spec) for name, spec in specs.items()}
    return {name: replace(each, begins=None) for name, each in made.items()}


def segments_of(
    reader: Reader, heard: Mapping[Piece, HeardPiece], specs: Mapping[str, FeatureSpec]
) -> dict[str, AnyArray] | None:
    """A reader's segments by feature, shape (segments, M); None where a piece is missing."""
    sessions = [speech(pieces, heard, specs) if pieces else {} for pieces in reader.enrolment]
    if any(session is None for session in sessions):
        return None
    units = units_of(SEGMENT_SECONDS)
    made: dict[str, list[AnyArray]] = {name: [] for name in specs}
    for session, place in reader.segments:
        found = sessions[session] or {}
        for name, rows in made.items():
            if (place + 1) * units <= found[name].length:
                rows.append(found[name].total(place * units, units))
    return {name: np.stack(rows) for name, rows in made.items() if rows} or None


def trials_of(
    reader: Reader, heard: Mapping[Piece, HeardPiece], specs: Mapping[str, FeatureSpec],
    amounts: Amounts,
) -> dict[str, AnyArray] | None:  # fmt: skip
    """A reader's trials by feature, shape (trials, M); None where a piece is missing."""
    session = speech(reader.trials, heard, specs)
    if session is None:
        return None
    units = units_of(amounts.seconds)
    count = min(amounts.trials, next(iter(session.values())).length // units)
    if not count:
        return None
    return {
        name: np.stack([each.total(i * units, units) for i in range(count)])
        for name, each in session.items()
    }


def scores(
    way: Similarity, segments: Sequence[AnyArray], trials: AnyArray, count: int
) -> FloatArray:
    """Every trial against every reader's first segments, shape (n, N).

    Args:
        way: how they are compared: with the sum of segments, or ``by_slice`` with each.
        segments: of each reader, shape (S, M).
        trials: shape (n, M).
        count: L; all that a reader has where that is less.
    """
    first = [each[:count] for each in segments]
    if way.by_slice:
        most = max(map(len, first))
        # a segment more of what is there changes no maximum
        templates = np.stack([np.concatenate([s, s[:1].repeat(most - len(s), 0)]) for s in first])
    else:
        templates = np.stack([each.sum(axis=0) for each in first])
    return way.score_each(way.prepare(templates), trials)
