"""The speech of an anonymiser test: templates and trials of readers, protected and extracted.

Templates and trials come from different sessions if a reader has two. No trial is enrolled. Audio
is never written. A cache stores extracted features under a hash of all their inputs, so that an
interrupted test can resume.
"""

from __future__ import annotations

import io
import json
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TypeAlias

import numpy as np

from monitor.anonymisers.filters import Utterance
from monitor.anonymisers.registry import make
from monitor.corpus import Corpus
from monitor.errors import CorpusError, SourceError, UsageError
from monitor.features.extractor import Extractor
from monitor.features.framing import columns_of, join_runs
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup
from monitor.features.registry import make as make_features
from monitor.files import Readable, files_of, read_arrays
from monitor.jobs import Jobs, each_in_order, one_thread
from monitor.lab.result_cache import ResultCache, result_key
from monitor.lab.utility import MEASURES
from monitor.phrases import plural
from monitor.protocols import Feature
from monitor.sources.base import file_hash
from monitor.sources.file import File
from monitor.sources.registry import is_frames
from monitor.training.feature_extraction import (
    SpeechFrames,
    SpeechTrack,
    select_word_features,
    with_transcript,
    wrap_tracks,
)
from monitor.training.voices import UNITS_PER_SECOND
from monitor.transcripts.formats import LIES_BESIDE, words_mark
from monitor.types import (
    TICKS_PER_SECOND,
    AnyArray,
    Block,
    BoolArray,
    FloatArray,
    Frames,
    Record,
    Words,
)

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


# --------------------------------------------------------------------------------------- protected
# The clock is the clear recording's speech, so a trial is the same stretch of talk for every
# anonymiser. If the output is silent there, the trial still counts, without evidence.

CLEAR = "none"  # the method without protection
_VERSION = 2  # of cached results: raise it when anonymisers, features or networks change
_BLOCK_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class ExtractedPiece:
    """Frames of one protected piece, and the results of `MEASURES` by name."""

    frames: SpeechFrames
    measured: Mapping[str, Record] = field(default_factory=dict)


def extract_protected(
    piece: Piece, method: str, seed: int,
    features: Sequence[str | Feature], measures: Sequence[str] = (),
    setup: FeatureSetup = AS_ENVIRONMENT,
) -> ExtractedPiece:  # fmt: skip
    """Protect one piece and extract its features, in memory.

    Channels are averaged first, so the anonymiser gets the same channel as the attacker.

    Raises:
        SourceError: if it cannot be read or protected.
        UsageError: if the method or a feature is invalid.
    """
    source = File(
        piece.path,
        start_seconds=piece.start_seconds,
        end_seconds=piece.end_seconds,
        block_seconds=_BLOCK_SECONDS,
    )
    anonymiser = make(method, Utterance(source.rate, piece.name, piece.speaker, 0, seed))
    extractors = make_features(features, setup)
    word_features = select_word_features(extractors)
    clear, protected, word_frames = list[FloatArray](), list[FloatArray](), list[Frames]()
    for block in with_transcript(
        source, piece.path, extractors, LIES_BESIDE, piece.speaker, piece.start_seconds
    ):
        if isinstance(block, Words):
            tracks = [feature.process(block) for feature in word_features]
            word_frames.append(wrap_tracks(word_features, tracks))
            continue
        if not isinstance(block, Block):
            raise SourceError(getattr(block, "detail", "") or f"{source.label}: truncated")
        clear.append(np.asarray(columns_of(block, None).mean(axis=1), np.float32))
        try:
            protected.append(anonymiser.process(clear[-1]))
        except UsageError as error:  # NaN or infinite samples
            raise SourceError(f"{source.label}: {error}") from None
    protected.append(anonymiser.flush())

    def extract(sounds: Sequence[FloatArray], features: Sequence[Feature]) -> Frames:
        extractor = Extractor(features)
        runs = [extractor.process(Block(samples, source.rate)) for samples in sounds]
        return join_runs([*runs, extractor.flush()])

    speech = extract(clear, []).speech
    frames = align_to_clear(
        extract(protected, [f for f in extractors if f not in word_features]), speech
    )
    if word_features:  # words are on the clear clock already
        tracks = [feature.flush() for feature in word_features]
        words = join_runs([*word_frames, wrap_tracks(word_features, tracks)])
        more = align_to_clear(replace(words, speech=speech), speech).tracks
        frames = replace(frames, tracks={**frames.tracks, **more})
    measured: dict[str, Record] = {}
    if measures:
        both = np.concatenate(clear), np.concatenate(protected)
        with one_thread():
            measured = {name: MEASURES[name].measure(*both, source.rate) for name in measures}
    return ExtractedPiece(frames, measured)


def align_to_clear(frames: Frames, clear: BoolArray) -> SpeechFrames:
    """Return frames of a protected piece on the clock of its clear speech, shape (ticks,).

    If the protected audio has another length, its time is scaled to fit.
    """
    clock = np.concatenate([[0], np.cumsum(clear)])
    scale = clear.size / max(frames.speech.size, 1)

    def at(ticks: AnyArray) -> AnyArray:
        scaled = ticks if scale == 1.0 else np.ceil(ticks * scale).astype(np.int64)
        return np.asarray(clock[np.minimum(scaled, clear.size)])

    tracks = {
        name: SpeechTrack(
            track.values, at(track.ticks), None if track.spans is None else at(track.spans[:, 0])
        )
        for name, track in frames.tracks.items()
    }
    return SpeechFrames(clear, tracks)


def pack(piece: ExtractedPiece) -> bytes:
    """Encode a piece for `monitor.lab.result_cache`."""
    frames = piece.frames
    arrays: dict[str, AnyArray] = {"speech": frames.speech}
    for i, track in enumerate(frames.tracks.values()):
        arrays[f"values{i}"], arrays[f"at{i}"] = track.values, track.at
        if track.since is not None:
            arrays[f"since{i}"] = track.since
    header = {"tracks": list(frames.tracks), "lost": frames.lost, "measured": piece.measured}
    arrays["said"] = np.array(json.dumps(header))
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def unpack(data: bytes) -> ExtractedPiece:
    """Decode a piece that `pack` encoded."""
    arrays = read_arrays(io.BytesIO(data))
    header = json.loads(arrays["said"].item())
    tracks = {
        name: SpeechTrack(arrays[f"values{i}"], arrays[f"at{i}"], arrays.get(f"since{i}"))
        for i, name in enumerate(header["tracks"])
    }
    return ExtractedPiece(
        SpeechFrames(arrays["speech"], tracks, header["lost"]), header["measured"]
    )


# -------------------------------------------------------------------------------------- extracting


@dataclass(frozen=True, slots=True)
class ExtractionRequest:
    """A piece to extract after protection by a method, with its seed and measures."""

    piece: Piece
    method: str
    seed: int
    measures: tuple[str, ...] = ()

    def key(self, description: Sequence[object], *, words: bool) -> str:
        """Return the cache key of its result, from a description of the features."""
        piece = self.piece
        inputs = {
            "recording": file_hash(piece.path),
            "part": [piece.start_seconds, piece.end_seconds],
            "method": self.method,
            "program": hash_program(self.method),
            "drawn": None if self.method == CLEAR else [piece.name, piece.speaker, self.seed],
            "extraction": description,
            "measures": {name: MEASURES[name].version for name in self.measures},
        }
        transcript = LIES_BESIDE.read(piece.path, own=piece.speaker) if words else None
        if transcript is not None:
            inputs["words"] = words_mark(transcript)
        return result_key(inputs)


@dataclass
class ExtractedSeconds:
    """Seconds of audio computed now, and read from the cache."""

    computed: float = 0.0
    cached: float = 0.0


@dataclass(frozen=True)
class PieceExtractor:
    """Extracts pieces protected by any method, each once."""

    cache: ResultCache | None = None
    jobs: Jobs = 1
    setup: FeatureSetup = AS_ENVIRONMENT
    progress: Callable[[float], None] = lambda _: None  # called with seconds of audio done
    missing: dict[str, str] = field(default_factory=dict)  # reason of each failure, by piece
    seconds: ExtractedSeconds = field(default_factory=ExtractedSeconds)  # counts each piece once
    _failed: dict[str, str] = field(default_factory=dict)
    _counted: set[str] = field(default_factory=set)

    def extract(
        self, pieces: Sequence[Piece], method: str, seed: int,
        features: Sequence[str | Feature], measures: Sequence[str] = (),
    ) -> dict[Piece, ExtractedPiece]:  # fmt: skip
        """Protect and extract each piece, in order; unusable pieces are excluded and noted."""
        requests = [ExtractionRequest(piece, method, seed, tuple(measures)) for piece in pieces]
        contents = self._extract_requests(requests, features)
        extracted = {request.piece: unpack(content) for request, content in contents.items()}
        return {piece: extracted[piece] for piece in pieces if piece in extracted}

    def prefetch(
        self, requests: Sequence[ExtractionRequest], features: Sequence[str | Feature]
    ) -> None:
        """Extract requests into the cache, with all methods of a piece one after the other."""
        if self.cache is not None:
            self._extract_requests(requests, features, give=False)

    def _extract_requests(
        self, requests: Sequence[ExtractionRequest], features: Sequence[str | Feature],
        *, give: bool = True,
    ) -> dict[ExtractionRequest, bytes]:  # fmt: skip
        setup = self.setup.elsewhere()
        describe = partial(_describe_extraction, tuple(features), setup)
        description = describe()
        words = bool(select_word_features(make_features(features, setup)))
        contents: dict[ExtractionRequest, bytes] = {}
        todo: dict[Piece, dict[str, ExtractionRequest]] = {}
        for request in requests:
            try:
                key = request.key(description, words=words)
                if key in self._failed:
                    raise SourceError(self._failed[key])
            except SourceError as error:
                self.missing[request.piece.name] = str(error)
                continue
            content = self.cache.read(key) if self.cache else None
            if content is None:
                todo.setdefault(request.piece, {})[key] = request
                continue
            self.seconds.cached += self._count(key, request.piece)
            if give:
                contents[request] = content

        def store(results: Sequence[_Extracted]) -> None:
            for key, request, outcome in results:
                self.seconds.computed += self._count(key, request.piece)
                if isinstance(outcome, str):
                    self._failed[key] = self.missing[request.piece.name] = outcome
                    continue
                if self.cache:
                    self.cache.write(key, outcome)
                if give:
                    contents[request] = outcome

        tasks = [tuple(tasks_of_piece.items()) for tasks_of_piece in todo.values()]
        outputs = each_in_order(
            partial(_extract_task, tuple(features), setup), tasks, self.jobs,
            reads=partial(_list_files, words), alike=describe, arrived=store,
        )  # fmt: skip
        with closing(outputs):
            for _ in outputs:  # `store` takes what arrives
                pass
        return contents

    def _count(self, key: str, piece: Piece) -> float:
        """Count a piece; return its seconds if it is new, otherwise 0."""
        if key in self._counted:
            return 0.0
        self._counted.add(key)
        self.progress(piece.seconds)
        return piece.seconds


_Extracted: TypeAlias = tuple[str, ExtractionRequest, bytes | str]
_Task: TypeAlias = tuple[tuple[str, ExtractionRequest], ...]


def _extract_task(
    features: Sequence[str | Feature], setup: FeatureSetup, task: _Task
) -> list[_Extracted]:
    """Return the key and request of each result of a task, with its content or failure reason."""
    outcomes: list[_Extracted] = []
    for key, r in task:
        try:
            piece = extract_protected(r.piece, r.method, r.seed, features, r.measures, setup)
            outcomes.append((key, r, pack(piece)))
        except SourceError as error:
            outcomes.append((key, r, str(error)))
    return outcomes


def _describe_extraction(features: Sequence[str | Feature], setup: FeatureSetup) -> list[object]:
    """Return the inputs of extracted features beside the recording, for cache and workers."""
    specs = [feature.spec for feature in make_features(features, setup)]
    return [_VERSION, [[spec.name, spec.plain()] for spec in specs]]


def _list_files(words: bool, task: _Task) -> list[Path]:
    """Return the files read for a task, all of one piece."""
    _, request = task[0]
    return [path.absolute() for path in LIES_BESIDE.files(request.piece.path, words=words)]


def hash_program(method: str) -> list[str]:
    """Return hashes of a command's files, because results depend on the program."""
    kind, _, command = method.partition(":")
    if kind != "command":
        return []
    try:
        words = shlex.split(command)
    except ValueError:  # the anonymiser raises the error
        return []
    paths = [Path(shutil.which(word) or word) for word in words]
    return [file_hash(path) for path in paths if path.is_file()]
