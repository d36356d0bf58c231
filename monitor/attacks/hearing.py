"""Protects and hears pieces of recordings in one pass; no audio is ever written.

What was heard is kept by a hash of everything that it depends on, so that long work goes on where
it was interrupted.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from monitor.attacks.heard import HeardPiece, on_clock, pack, unpack
from monitor.attacks.measures import MEASURES
from monitor.attacks.readers import Piece
from monitor.errors import SourceError, UsageError
from monitor.features.blocks import columns_of
from monitor.features.extractor import Extractor
from monitor.features.registry import make as make_features
from monitor.features.tracks import join_runs
from monitor.kinds import FeatureSpec
from monitor.protectors.registry import make
from monitor.protectors.utterance import Utterance
from monitor.protocols import Feature
from monitor.result_cache import ResultCache, code_mark, result_key
from monitor.sources.file import File
from monitor.sources.fingerprints import file_hash
from monitor.threads import one_thread
from monitor.training.hearing_runs import frames_of, of_words, with_their_words
from monitor.transcripts.choice import LIES_BESIDE, words_mark
from monitor.types import Block, FloatArray, Frames, Words
from monitor.workers import Jobs, each_in_order

__all__ = ["CLEAR", "Hearing", "hear_protected", "program_of"]

CLEAR = "none"
"""The method that changes nothing."""
_CODE = ("monitor.protectors", "monitor.features", "monitor.networks")
_VERSION = 1
"""Of what this file and `monitor.attacks.heard` make of these: another one hears anew."""
_BLOCK_SECONDS = 30.0


@dataclass(frozen=True)
class Hearing:
    """Hears pieces under any method, each once.

    Attributes:
        cache: keeps what was heard; None keeps nothing.
        jobs: processes, or workers elsewhere; what is heard does not depend on it.
        progress: called with seconds of audio done.
        missing: by piece's name, why it could not be used.
    """

    cache: ResultCache | None = None
    jobs: Jobs = 1
    progress: Callable[[float], None] = lambda _: None
    missing: dict[str, str] = field(default_factory=dict)

    def hear(
        self,
        pieces: Sequence[Piece],
        method: str,
        seed: int,
        features: Sequence[str | Feature],
        measures: Sequence[str] = (),
    ) -> dict[Piece, HeardPiece]:
        """Protect and hear each piece, in order; what cannot be used is left out and noted.

        Args:
            pieces: of recordings.
            method: of `monitor.protectors.registry`.
            seed: of what the protector draws.
            features: names, or features that other processes can be given.
            measures: of `monitor.attacks.measures`.

        Raises:
            UsageError: the method or a feature makes no sense.
            MonitorError: a process was ended from outside.
        """
        made_here = make_features(features)
        noted = [_noted(each.spec) for each in made_here]
        words = bool(of_words(made_here))
        versions = {name: MEASURES[name]().version for name in measures}
        found: dict[Piece, HeardPiece] = {}
        todo: list[tuple[Piece, str]] = []
        for piece in pieces:
            try:
                key = _key(piece, method, seed, noted, versions, words=words)
            except SourceError as error:
                self.missing[piece.name] = str(error)
                continue
            kept = self.cache.read(key) if self.cache else None
            if kept is None:
                todo.append((piece, key))
            else:
                found[piece] = unpack(kept)
                self.progress(piece.seconds)
        work = partial(_hear, method, seed, tuple(features), tuple(measures))
        results = each_in_order(
            work,
            [piece for piece, _ in todo],
            self.jobs,
            reads=partial(_read, words),
            alike=_code,
        )
        with closing(results):
            for (piece, key), made in zip(todo, results, strict=True):
                self.progress(piece.seconds)
                if isinstance(made, str):
                    self.missing[piece.name] = made
                    continue
                found[piece] = unpack(made)
                if self.cache:
                    self.cache.write(key, made)
        return {piece: found[piece] for piece in pieces if piece in found}


def hear_protected(
    piece: Piece,
    method: str,
    seed: int,
    features: Sequence[str | Feature],
    measures: Sequence[str] = (),
) -> HeardPiece:
    """Protect one piece, and hear it, in memory.

    Channels are averaged before: a protector hears what the attacker hears.

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
    protector = make(method, Utterance(source.rate, piece.name, piece.speaker, 0, seed))
    made = make_features(features)
    beside = of_words(made)
    clock, extractor = Extractor([]), Extractor([each for each in made if each not in beside])
    said: list[Frames] = []
    clear_runs: list[Frames] = []
    runs: list[Frames] = []
    clear: list[FloatArray] = []
    protected: list[FloatArray] = []

    def take(samples: FloatArray) -> None:
        runs.append(extractor.process(Block(samples, source.rate)))
        protected.append(samples)

    items = with_their_words(
        source, piece.path, made, LIES_BESIDE, piece.speaker, piece.start_seconds
    )
    for block in items:
        if isinstance(block, Words):
            said.append(frames_of(beside, [each.process(block) for each in beside]))
            continue
        if not isinstance(block, Block):
            raise SourceError(getattr(block, "detail", "") or f"{source.label}: breaks off")
        samples = np.asarray(columns_of(block, None).mean(axis=1), np.float32)
        clear_runs.append(clock.process(Block(samples, source.rate)))
        clear.append(samples)
        try:
            take(protector.process(samples))
        except UsageError as error:  # a sample is no number
            raise SourceError(f"{source.label}: {error}") from None
    take(protector.flush())
    speech = join_runs([*clear_runs, clock.flush()]).speech
    frames = join_runs([*runs, extractor.flush()])
    measured: dict[str, Mapping[str, Any]] = {}
    if measures:
        both = np.concatenate(clear), np.concatenate(protected)
        with one_thread():
            measured = {name: MEASURES[name]().measure(*both, source.rate) for name in measures}
    heard = on_clock(frames, speech)
    if beside:  # words lie on the clear clock as they are
        said.append(frames_of(beside, [each.flush() for each in beside]))
        words = on_clock(replace(join_runs(said), speech=speech), speech)
        heard = replace(heard, tracks={**heard.tracks, **words.tracks})
    return HeardPiece(heard, measured)


def _hear(
    method: str,
    seed: int,
    features: Sequence[str | Feature],
    measures: Sequence[str],
    piece: Piece,
) -> bytes | str:
    """A piece as bytes, or why not."""
    try:
        return pack(hear_protected(piece, method, seed, features, measures))
    except SourceError as error:
        return str(error)


def _read(words: bool, piece: Piece) -> list[Path]:
    """The files that are read of a piece."""
    beside = LIES_BESIDE.found(piece.path) if words else None
    return [each.absolute() for each in (piece.path, beside) if each is not None]


def _key(
    piece: Piece,
    method: str,
    seed: int,
    noted: Sequence[Any],
    versions: Mapping[str, str],
    *,
    words: bool,
) -> str:
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


def _noted(spec: FeatureSpec) -> list[Any]:
    return [spec.name, spec.plain()]


def program_of(method: str) -> list[str]:
    """What a command consists of, as far as it is files: another program, another result."""
    kind, _, command = method.partition(":")
    if kind != "command":
        return []
    try:
        words = shlex.split(command)
    except ValueError:  # the protector says so
        return []
    places = [Path(shutil.which(word) or word) for word in words]
    return [file_hash(place) for place in places if place.is_file()]
