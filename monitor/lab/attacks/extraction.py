"""Features of protected recordings, extracted piece by piece, each once."""

from __future__ import annotations

import io
import json
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from monitor.anonymisers.filters import Utterance
from monitor.anonymisers.registry import make
from monitor.errors import SourceError, UsageError
from monitor.features.extractor import Extractor
from monitor.features.framing import columns_of, join_runs
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup
from monitor.features.registry import make as make_features
from monitor.files import read_arrays
from monitor.jobs import Jobs, each_in_order, one_thread
from monitor.lab.attacks.readers import Piece
from monitor.lab.result_cache import ResultCache, result_key
from monitor.lab.utility import MEASURES
from monitor.protocols import Feature
from monitor.sources.base import file_hash
from monitor.sources.file import File
from monitor.training.feature_extraction import (
    SpeechFrames,
    SpeechTrack,
    select_word_features,
    with_transcript,
    wrap_tracks,
)
from monitor.transcripts.formats import LIES_BESIDE, words_mark
from monitor.types import (
    AnyArray,
    Block,
    BoolArray,
    FloatArray,
    Frames,
    Words,
)

# No audio is ever written. What was heard is kept by a hash of all that it depends on, so that long
# work goes on where it was interrupted.

CLEAR = "none"  # the method that changes nothing
_VERSION = 2  # of anonymisers, features and networks as used here: raise it when results change
_BLOCK_SECONDS = 30.0


# The clock is the clear recording's speech, so that a trial is the same stretch of talk whatever a
# anonymiser did to it; that it fell silent is then no trial less, but a trial without evidence.


@dataclass(frozen=True, slots=True)
class ExtractedPiece:
    """Frames and measurements of one protected piece."""

    frames: SpeechFrames
    measured: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def align_to_clear(frames: Frames, clear: BoolArray) -> SpeechFrames:
    """Return frames of a protected piece on the clock of its clear speech.

    Args:
        frames: of the protected audio. Where it has another length, time is stretched to fit.
        clear: shape (ticks,), the decisions on the clear audio.
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
    frames = SpeechFrames(arrays["speech"], tracks)
    return ExtractedPiece(replace(frames, lost=header["lost"]), header["measured"])


@dataclass(frozen=True, slots=True)
class ExtractionRequest:
    """A piece to extract under a method, with its seed and measures."""

    piece: Piece
    method: str
    seed: int
    measures: tuple[str, ...] = ()

    @property
    def drawn(self) -> ExtractionRequest:
        """The same request without a seed where nothing is drawn."""
        return self if self.method != CLEAR else replace(self, seed=0)


@dataclass
class ExtractedSeconds:
    """Seconds of audio extracted now, and read from the cache."""

    computed: float = 0.0
    cached: float = 0.0


@dataclass(frozen=True)
class PieceExtractor:
    """Extractor of pieces under any method, each once.

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
    seconds: ExtractedSeconds = field(default_factory=ExtractedSeconds)
    _failed: dict[str, str] = field(default_factory=dict)
    _counted: set[str] = field(default_factory=set)

    def extract(
        self,
        pieces: Sequence[Piece],
        method: str,
        seed: int,
        features: Sequence[str | Feature],
        measures: Sequence[str] = (),
    ) -> dict[Piece, ExtractedPiece]:
        """Protect and hear each piece, in order; what cannot be used is left out and noted.

        Raises:
            UsageError: the method or a feature makes no sense.
            MonitorError: a process was ended from outside.
        """
        extracted: dict[Piece, ExtractedPiece] = {}
        requests = [ExtractionRequest(piece, method, seed, tuple(measures)) for piece in pieces]
        for request, content in self._hear(requests, features).items():
            extracted[request.piece] = unpack(content)
        return {piece: extracted[piece] for piece in pieces if piece in extracted}

    def prefetch(
        self, requests: Sequence[ExtractionRequest], features: Sequence[str | Feature]
    ) -> None:
        """Hear what will be asked for, all methods of a piece one after the other, and keep it.

        Nothing is heard where nothing is kept. Errors as of `extract`.
        """
        if self.cache is not None:
            self._hear(requests, features, give=False)

    def _hear(
        self,
        requests: Sequence[ExtractionRequest],
        features: Sequence[str | Feature],
        *,
        give: bool = True,
    ) -> dict[ExtractionRequest, bytes]:
        setup = self.setup.elsewhere()
        mark = partial(_describe_extraction, tuple(features), setup)
        description = mark()
        words = bool(select_word_features(make_features(features, setup)))
        contents: dict[ExtractionRequest, bytes] = {}
        todo: dict[Piece, dict[str, ExtractionRequest]] = {}
        for request in requests:
            versions = {name: MEASURES[name]().version for name in request.measures}
            try:
                key = _make_key(
                    request.piece, request.method, request.seed, description, versions, words=words
                )
                if key in self._failed:
                    raise SourceError(self._failed[key])
            except SourceError as error:
                self.missing[request.piece.name] = str(error)
                continue
            content = self.cache.read(key) if self.cache else None
            if content is None:
                todo.setdefault(request.piece, {})[key] = request
                continue
            if self._count(key, request.piece):
                self.seconds.cached += request.piece.seconds
            if give:
                contents[request] = content

        def store(results: Sequence[_Extracted]) -> None:
            for key, piece, outcome in results:
                if self._count(key, piece):
                    self.seconds.computed += piece.seconds
                if isinstance(outcome, str):
                    self._failed[key] = self.missing[piece.name] = outcome
                elif self.cache:
                    self.cache.write(key, outcome)

        work = partial(_extract_task, tuple(features), setup)
        tasks = [tuple(tasks_of_piece.items()) for tasks_of_piece in todo.values()]
        outputs = each_in_order(
            work, tasks, self.jobs, reads=partial(_list_files, words), alike=mark, arrived=store
        )
        with closing(outputs) as results:
            for task, outcomes in zip(tasks, results, strict=True):
                for (_, request), (_, _, outcome) in zip(task, outcomes, strict=True):
                    if give and not isinstance(outcome, str):
                        contents[request] = outcome
        return contents

    def _count(self, key: str, piece: Piece) -> bool:
        """Count a piece; return whether it is new."""
        if key in self._counted:
            return False
        self._counted.add(key)
        self.progress(piece.seconds)
        return True


def extract_protected(
    piece: Piece, method: str, seed: int,
    features: Sequence[str | Feature], measures: Sequence[str] = (),
    setup: FeatureSetup = AS_ENVIRONMENT,
) -> ExtractedPiece:  # fmt: skip
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
    extractors = make_features(features, setup)
    word_features = select_word_features(extractors)
    clock = Extractor([])
    extractor = Extractor([feature for feature in extractors if feature not in word_features])
    word_frames, clear_runs, runs = list[Frames](), list[Frames](), list[Frames]()
    clear, protected = list[FloatArray](), list[FloatArray]()

    def listen(samples: FloatArray) -> None:
        runs.append(extractor.process(Block(samples, source.rate)))
        protected.append(samples)

    items = with_transcript(
        source, piece.path, extractors, LIES_BESIDE, piece.speaker, piece.start_seconds
    )
    for block in items:
        if isinstance(block, Words):
            frames_here = [feature.process(block) for feature in word_features]
            word_frames.append(wrap_tracks(word_features, frames_here))
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
    tracks = align_to_clear(frames, speech)
    if word_features:  # words lie on the clear clock as they are
        word_frames.append(
            wrap_tracks(word_features, [feature.flush() for feature in word_features])
        )
        words = align_to_clear(replace(join_runs(word_frames), speech=speech), speech)
        tracks = replace(tracks, tracks={**tracks.tracks, **words.tracks})
    return ExtractedPiece(tracks, measured)


_Extracted: TypeAlias = tuple[str, Piece, bytes | str]
_Task: TypeAlias = tuple[tuple[str, ExtractionRequest], ...]


def _extract_task(
    features: Sequence[str | Feature], setup: FeatureSetup, task: _Task
) -> list[_Extracted]:
    """Return every content of a task, or the reason without one, by its key."""
    outcomes: list[_Extracted] = []
    for key, request in task:
        content: bytes | str
        try:
            content = pack(
                extract_protected(
                    request.piece, request.method, request.seed, features, request.measures, setup
                )
            )
        except SourceError as error:
            content = str(error)
        outcomes.append((key, request.piece, content))
    return outcomes


def _describe_extraction(features: Sequence[str | Feature], setup: FeatureSetup) -> list[object]:
    """Return what extracted features depend on beside the recording, for a cache and workers."""
    specs = [feature.spec for feature in make_features(features, setup)]
    return [_VERSION, [[spec.name, spec.plain()] for spec in specs]]


def _list_files(words: bool, task: _Task) -> list[Path]:
    """Return the files read for a task, which is of one piece."""
    _, request = task[0]
    return [path.absolute() for path in LIES_BESIDE.files(request.piece.path, words=words)]


def _make_key(
    piece: Piece, method: str, seed: int,
    description: Sequence[object], versions: Mapping[str, str],
    *, words: bool,
) -> str:  # fmt: skip
    transcript = LIES_BESIDE.read(piece.path, own=piece.speaker) if words else None
    drawn = None if method == CLEAR else [piece.name, piece.speaker, seed]
    return result_key(
        {
            "recording": file_hash(piece.path),
            "part": [piece.start_seconds, piece.end_seconds],
            "method": method,
            "program": hash_program(method),
            "drawn": drawn,
            "extraction": description,
            "measures": dict(versions),
            **({} if transcript is None else {"words": words_mark(transcript)}),
        }
    )


def hash_program(method: str) -> list[str]:
    """Return hashes of a command's files: another program gives another result."""
    kind, _, command = method.partition(":")
    if kind != "command":
        return []
    try:
        words = shlex.split(command)
    except ValueError:  # the anonymiser says so
        return []
    paths = [Path(shutil.which(word) or word) for word in words]
    return [file_hash(path) for path in paths if path.is_file()]
