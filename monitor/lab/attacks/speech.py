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
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from monitor.anonymisers.filters import Utterance
from monitor.anonymisers.registry import make
from monitor.errors import CorpusError, SourceError, UsageError
from monitor.features.extractor import Extractor
from monitor.features.framing import columns_of, join_runs
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup
from monitor.features.registry import make as make_features
from monitor.jobs import Jobs, each_in_order, one_thread
from monitor.kinds import FeatureSpec
from monitor.lab.attacks.readers import SEGMENT_SECONDS, Amounts, Piece, Reader, Readers
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import EvaluationSettings
from monitor.lab.report.model import Figure
from monitor.lab.result_cache import ResultCache, result_key
from monitor.lab.utility import FAILURE, PROGRAM, get_measure
from monitor.maths.scores import Similarity
from monitor.npz import read_arrays
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
from monitor.training.voices import SessionFrames, session_frames, units_of
from monitor.transcripts.choice import SIDECAR, words_mark
from monitor.types import (
    AnyArray,
    Block,
    BoolArray,
    EarlyFrames,
    FloatArray,
    Frames,
    IntArray,
    Record,
    Words,
)

# The clock is the clear recording's speech, so a trial is the same stretch of talk for every
# anonymiser. If the output is silent there, the trial still counts, without evidence.
CLEAR = "none"  # the method without protection
_VERSION = 3  # of cached results: raise it when anonymisers, features or networks change
_BLOCK_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class ExtractedPiece:
    """Frames of one protected piece, and the results of measures by name."""

    frames: SpeechFrames
    measured: Mapping[str, Record] = field(default_factory=dict)

    @property
    def is_measured(self) -> bool:
        """False if a measure failed."""
        return not any(FAILURE in record for record in self.measured.values())


def extract_protected(
    piece: Piece, method: str, seed: int,
    features: Sequence[str | Feature], measures: Sequence[str] = (),
    setup: FeatureSetup = AS_ENVIRONMENT, speech: BoolArray | None = None,
) -> ExtractedPiece:  # fmt: skip
    """Protect one piece and extract its features, in memory.

    Channels are averaged first, so the anonymiser gets the same channel as the attacker. ``speech``
    has the clear piece's decisions, if known from another method. Raises SourceError if the piece
    cannot be read or protected, and UsageError if the method or a feature is invalid.
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
        source, piece.path, extractors, SIDECAR, piece.speaker, piece.start_seconds
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

    if speech is None:
        speech = _extract(clear, source.rate, [], whole=True).speech
    audio_features = [feature for feature in extractors if feature not in word_features]
    sound = _extract(protected, source.rate, audio_features, whole=piece.whole)
    frames = align_to_clear(sound, speech)
    if word_features:  # words are on the clear clock already
        tracks = [feature.flush() for feature in word_features]
        words = join_runs([*word_frames, wrap_tracks(word_features, tracks)])
        more = align_to_clear(replace(words, speech=speech), speech).tracks
        frames = replace(frames, tracks={**frames.tracks, **more})
    measured: dict[str, Record] = {}
    if measures:
        both = np.concatenate(clear), np.concatenate(protected)
        with one_thread():
            measured = {name: get_measure(name).measure(*both, source.rate) for name in measures}
    return ExtractedPiece(frames, measured)


def _extract(
    sounds: Sequence[FloatArray], rate: int, features: Sequence[Feature], *, whole: bool
) -> Frames:
    """Extract the frames of consecutive sounds, without early frames of a whole recording."""
    extractor = Extractor(features, template=np.inf if whole else None)
    runs = [extractor.process(Block(samples, rate)) for samples in sounds]
    return join_runs([*runs, extractor.flush()])


def align_to_clear(frames: Frames, clear: BoolArray) -> SpeechFrames:
    """Return frames of a protected piece on the clock of its clear speech, shape (ticks,).

    If the protected audio has another length, its time is scaled to fit.
    """
    clock = np.concatenate([[0], np.cumsum(clear)])
    scale = clear.size / max(frames.speech.size, 1)

    def to_clear(ticks: AnyArray) -> AnyArray:
        scaled = ticks if scale == 1.0 else np.ceil(ticks * scale).astype(np.int64)
        return np.asarray(clock[np.minimum(scaled, clear.size)])

    tracks = {
        name: SpeechTrack(
            track.values,
            to_clear(track.ticks),
            None if track.spans is None else to_clear(track.spans[:, 0]),
            track.early and replace(track.early, ticks=to_clear(track.early.ticks)),
        )
        for name, track in frames.tracks.items()
    }
    return SpeechFrames(clear, tracks)


_EARLY = {key: f"early_{key}" for key in ("ticks", "values", "seconds")}


def pack(piece: ExtractedPiece) -> bytes:
    """Encode a piece for `monitor.lab.result_cache`."""
    frames = piece.frames
    arrays: dict[str, AnyArray] = {"speech": frames.speech}
    for i, track in enumerate(frames.tracks.values()):
        arrays[f"values{i}"], arrays[f"at{i}"] = track.values, track.at
        if track.since is not None:
            arrays[f"since{i}"] = track.since
        if track.early is not None:
            arrays |= {f"{name}{i}": getattr(track.early, key) for key, name in _EARLY.items()}
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
        name: SpeechTrack(
            arrays[f"values{i}"],
            arrays[f"at{i}"],
            arrays.get(f"since{i}"),
            EarlyFrames(**{key: arrays[f"{name_of}{i}"] for key, name_of in _EARLY.items()})
            if f"{_EARLY['ticks']}{i}" in arrays
            else None,
        )
        for i, name in enumerate(header["tracks"])
    }
    return ExtractedPiece(
        SpeechFrames(arrays["speech"], tracks, header["lost"]), header["measured"]
    )


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
            "extraction": [*description, *(["whole"] if piece.whole else [])],
            "measures": {name: get_measure(name).version for name in self.measures},
            **{name: hash_program(name) for name in self.measures if name.startswith(PROGRAM)},
        }
        transcript = SIDECAR.read(piece.path, own_speaker=piece.speaker) if words else None
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
    unmeasured: dict[str, bytes] = field(default_factory=dict)  # results with a failed measure
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
            content = self.unmeasured.get(key) or (self.cache.read(key) if self.cache else None)
            if content is None:
                todo.setdefault(request.piece, {})[key] = request
                continue
            self.seconds.cached += self._count(key, request.piece)
            if give:
                contents[request] = content

        def store(results: Sequence[_Extracted]) -> None:
            for key, request, outcome, is_measured in results:
                self.seconds.computed += self._count(key, request.piece)
                if isinstance(outcome, str):
                    self._failed[key] = self.missing[request.piece.name] = outcome
                    continue
                if not is_measured:
                    self.unmeasured[key] = outcome
                elif self.cache:
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


_Extracted: TypeAlias = tuple[str, ExtractionRequest, bytes | str, bool]
_Task: TypeAlias = tuple[tuple[str, ExtractionRequest], ...]


def _extract_task(
    features: Sequence[str | Feature], setup: FeatureSetup, task: _Task
) -> list[_Extracted]:
    """Return key, request, content or failure reason, and success of measures, by result."""
    outcomes: list[_Extracted] = []
    speech: BoolArray | None = None
    for key, r in task:
        try:
            piece = extract_protected(
                r.piece, r.method, r.seed, features, r.measures, setup, speech
            )
            speech = piece.frames.speech
            outcomes.append((key, r, pack(piece), piece.is_measured))
        except SourceError as error:
            outcomes.append((key, r, str(error), False))
    return outcomes


def _describe_extraction(features: Sequence[str | Feature], setup: FeatureSetup) -> list[object]:
    """Return the inputs of extracted features beside the recording, for cache and workers."""
    specs = [feature.spec for feature in make_features(features, setup)]
    return [_VERSION, [[spec.name, spec.plain()] for spec in specs]]


def _list_files(words: bool, task: _Task) -> list[Path]:
    _, request = task[0]
    return [path.absolute() for path in SIDECAR.files(request.piece.path, words=words)]


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


@dataclass(frozen=True, slots=True)
class AttackSpeech:
    """Enrolled segments of N readers, and n trials, which are consecutive T seconds of speech."""

    names: tuple[str, ...]
    segments: Mapping[str, tuple[AnyArray, ...]]  # by feature, one per reader, (segments, M)
    trials: Mapping[str, AnyArray]  # by feature, shape (n, M)
    has_frames: Mapping[str, BoolArray]  # by feature, whether a trial has frames of it, shape (n,)
    target: IntArray  # position of each trial's reader, shape (n,)
    trial_names: tuple[str, ...]

    @property
    def counts(self) -> list[int]:
        """Number of segments of each reader."""
        return [len(totals) for totals in next(iter(self.segments.values()))]

    def score(
        self, feature: str, similarity: Similarity, count: int, columns: slice = slice(None)
    ) -> FloatArray:
        """Score trials against every reader's first segments, shape (n, N).

        A similarity compares with the sum of L segments, or with each if it is ``by_slice``. A
        reader with fewer than L segments is compared by all of them.
        """
        templates = self.sum_segments(feature, count)[:, columns]
        if similarity.by_slice:
            first = [rows[:count, columns] for rows in self.segments[feature]]
            longest = max(map(len, first))
            # repeating a segment does not change the maximum
            first = [np.concatenate([s, s[:1].repeat(longest - len(s), 0)]) for s in first]
            templates = np.stack(first)
        prepared = similarity.prepare(templates)
        return similarity.score_each(prepared, self.trials[feature][:, columns])

    def sum_segments(self, feature: str, count: int) -> AnyArray:
        """Return the sum of every reader's first segments, shape (N, M)."""
        return np.stack([rows[:count].sum(axis=0) for rows in self.segments[feature]])

    def add_segments(self, other: AttackSpeech) -> AttackSpeech:
        """Add the segments of another draw of the same readers; ignore one that lost a reader."""
        if other.names != self.names:
            return self
        segments = {
            name: tuple(a + b for a, b in zip(rows, other.segments[name], strict=True))
            for name, rows in self.segments.items()
            if name in other.segments
        }
        return replace(self, segments={**self.segments, **segments})

    def select(self, names: Collection[str]) -> AttackSpeech:
        """Return the speech of these readers."""
        chosen = [i for i, name in enumerate(self.names) if name in names]
        rows = np.flatnonzero(np.isin(self.target, chosen))
        return AttackSpeech(
            tuple(self.names[i] for i in chosen),
            {name: tuple(sums[i] for i in chosen) for name, sums in self.segments.items()},
            {name: totals[rows] for name, totals in self.trials.items()},
            {name: flags[rows] for name, flags in self.has_frames.items()},
            np.searchsorted(chosen, self.target[rows]),
            tuple(self.trial_names[i] for i in rows),
        )

    def with_trials(self, trials: Mapping[int, Mapping[str, AnyArray]]) -> AttackSpeech:
        """Compare with the trials of numbered outsiders; ``target`` is the outsider."""
        rows = trials.values()
        totals = {name: np.concatenate([of[name] for of in rows]) for name in self.trials}
        sizes = [len(next(iter(of.values()))) for of in rows]
        return replace(
            self,
            trials=totals,
            has_frames={name: np.any(rows, axis=1) for name, rows in totals.items()},
            target=np.repeat(list(trials), sizes),
            trial_names=(),
        )

    def measure(
        self, scores: FloatArray, feature: str, replicates: int, seed: int
    ) -> Mapping[str, Figure]:
        """Compute every metric on the scores of all trials."""
        matrix = ScoreMatrix(scores, self.target, self.names, feature, self.trial_names)
        return evaluate(matrix, settings=EvaluationSettings(replicates, seed)).figures


def join_speech(
    pieces: Sequence[Piece],
    extracted: Mapping[Piece, ExtractedPiece],
    specs: Mapping[str, FeatureSpec],
) -> dict[str, SessionFrames] | None:
    """Return the frames of consecutive pieces; None if a piece is missing."""
    if any(piece not in extracted for piece in pieces):
        return None
    frames = [extracted[piece].frames for piece in pieces]
    # each long frame counts where it was complete, as in a piece by itself
    sessions = {name: session_frames(frames, spec) for name, spec in specs.items()}
    return {name: replace(session, begins=None) for name, session in sessions.items()}


def collect_segments(
    reader: Reader, extracted: Mapping[Piece, ExtractedPiece], specs: Mapping[str, FeatureSpec]
) -> dict[str, AnyArray] | None:
    """Return a reader's segments by feature, shape (segments, M); None if a piece is missing."""
    sessions = [
        join_speech(pieces, extracted, specs) if pieces else {} for pieces in reader.enrolment
    ]
    units = units_of(SEGMENT_SECONDS)
    rows_by_feature: dict[str, list[AnyArray]] = {name: [] for name in specs}
    for number, index in reader.segments:
        if (session := sessions[number]) is None:
            return None
        for name, rows in rows_by_feature.items():
            if (index + 1) * units <= session[name].length:
                rows.append(session[name].total(index * units, units))
    return {name: np.stack(rows) for name, rows in rows_by_feature.items() if rows} or None


def collect_trials(
    reader: Reader, extracted: Mapping[Piece, ExtractedPiece], specs: Mapping[str, FeatureSpec],
    amounts: Amounts,
) -> dict[str, AnyArray] | None:  # fmt: skip
    """Return a reader's trials by feature, shape (trials, M); None if a piece is missing."""
    session = join_speech(reader.trials, extracted, specs)
    if session is None:
        return None
    units = units_of(amounts.seconds)
    count = min(amounts.trials, next(iter(session.values())).length // units)
    if not count:
        return None
    return {
        name: np.stack([frames.total(i * units, units) for i in range(count)])
        for name, frames in session.items()
    }


def collect_speech(
    readers: Readers,
    amounts: Amounts,
    specs: Mapping[str, FeatureSpec],
    enrolment: Mapping[Piece, ExtractedPiece],
    published: Mapping[Piece, ExtractedPiece],
) -> AttackSpeech:
    """Return segments and trials of the readers with every piece extracted.

    Raises CorpusError if there are fewer than two.
    """
    speech: dict[str, tuple[Mapping[str, AnyArray], Mapping[str, AnyArray]]] = {}
    for reader in readers.everybody:
        enrolled = collect_segments(reader, enrolment, specs)
        trials = collect_trials(reader, published, specs, amounts)
        if enrolled is not None and trials is not None:
            speech[reader.name] = enrolled, trials
    if len(speech) < 2:
        raise CorpusError(
            f"only {len(speech)} of {len(readers)} readers could be protected and extracted"
        )
    sizes = {name: len(next(iter(trials.values()))) for name, (_, trials) in speech.items()}
    totals = {f: np.concatenate([trials[f] for _, trials in speech.values()]) for f in specs}
    return AttackSpeech(
        tuple(speech),
        {f: tuple(segments[f] for segments, _ in speech.values()) for f in specs},
        totals,
        {name: np.any(rows, axis=1) for name, rows in totals.items()},
        np.repeat(np.arange(len(sizes)), list(sizes.values())),
        tuple(f"{name} {i + 1}" for name, size in sizes.items() for i in range(size)),
    )
