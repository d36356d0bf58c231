"""The context of an attack: what an attacker knows, its speech, and the templates it makes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from monitor.corpus import Corpus, Recording
from monitor.errors import CorpusError
from monitor.kinds import FeatureSpec
from monitor.lab.adapting.training import FINE_TUNING_STEPS, FineTuning, Length, SpeechDraws
from monitor.lab.attacks.extraction import CLEAR, ExtractedPiece, ExtractionRequest, PieceExtractor
from monitor.lab.attacks.readers import PARTS, SEGMENT_SECONDS, Amounts, Piece, Reader, Readers
from monitor.maths.scores import Similarity
from monitor.protocols import Feature
from monitor.training.calibrating import FEWEST_SPEAKERS
from monitor.training.voices import SessionFrames, session_frames, units_of
from monitor.types import (
    AnyArray,
    BoolArray,
    FloatArray,
    IntArray,
)

BITS = "srd.mean_bits_model"
"""The figure by which attacks are compared: MeanD of the fitted rank model, whose limits hold."""


@dataclass(frozen=True, slots=True)
class ThreatModel:
    """Knowledge and acts of one attacker; trials do not depend on it.

    Attributes:
        knows: in a sentence, for people.
        protects: whether enrolled speech, and the background that rank models are learnt on, are
            protected by the method too, with draws of the attacker's own.
        needs_background: whether it cannot work without speech of other readers.
        trains: whether it trains on a part of that speech; models are then learnt on the rest
            alone.
        features: from the context and the method to what it hears with, by the name under which it
            is shown; None: with the features that were asked for.
    """

    name: str
    knows: str
    protects: bool
    needs_background: bool = False
    trains: bool = False
    features: Callable[[AttackContext, str], Mapping[str, str | Feature]] | None = None


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


def split_background(
    background: Background,
) -> tuple[Readers | None, tuple[tuple[Recording, ...], ...]]:
    """Split background readers: some calibrate and choose the network, others train it.

    Returns:
        a third of the readers, at most fifty, of those who say enough (None where nobody does); and
            by corpus the recordings of all others.
    """
    enough = background.readers.everybody if background.readers else ()
    speakers = sum(len(corpus.speakers) for corpus, _ in background.corpora)
    maximum = max(FEWEST_SPEAKERS, min(_MOST_APART, speakers // 3))
    chosen = sorted(enough, key=lambda r: hashlib.sha256(r.name.encode()).digest())[:maximum]
    files = {p.path for r in chosen for s in (*r.enrolment, r.trials) for p in s}
    names = {reader.name for reader in chosen}
    training = tuple(
        tuple(r for r in corpus.recordings if r.speaker not in names and r.path not in files)
        for corpus, _ in background.corpora
    )
    chosen.sort(key=lambda reader: reader.name)
    return (Readers(tuple(chosen), "same") if chosen else None), training


@dataclass(frozen=True)
class AttackContext:
    """Speech, settings and tools of an attack.

    Attributes:
        judged: whose trials are attacked.
        background: None where none was given.
        features: that attackers hear with, where they have none of their own.
        measures: of `MEASURES`, made of the trials when these features hear them.
        amounts: how much speech.
        extractor: of features of protected speech; caches them.
        seed: of the user's draws; the attacker's own follow from it and are others.
        folder: where an attacker may keep what it made, such as a network; private.
        training, draws, fine_tuning: how long an attacker trains a network, on how much speech of
            each reader, and how.
        on_progress: called with the attacker's present step, for people.
        notes: what an attacker found out about itself, for people; added to.
        clear_bits: by method, what the network of an attacker who trains tells of unprotected
            speech of background speakers, and what the shipped one does, MeanD in bits; added to.
    """

    judged: Readers
    background: Background | None
    features: tuple[str, ...]
    measures: tuple[str, ...]
    amounts: Amounts
    extractor: PieceExtractor
    seed: int
    folder: Path
    training: Length = field(default_factory=lambda: Length(steps=FINE_TUNING_STEPS))
    draws: SpeechDraws = field(default_factory=SpeechDraws)
    fine_tuning: FineTuning = field(default_factory=FineTuning)
    on_progress: Callable[[str], object] = lambda _: None
    notes: list[str] = field(default_factory=list)
    clear_bits: dict[str, tuple[float, float]] = field(default_factory=dict)

    def get_calibration_readers(self, attacker: ThreatModel) -> Readers | None:
        """Return the background readers an attacker calibrates on, or None.

        Nobody among them has trained its network, which would know them better than others.
        """
        if self.background is None or not attacker.trains:
            return None if self.background is None else self.background.readers
        return split_background(self.background)[0]

    def get_features(self, attacker: ThreatModel, method: str) -> Mapping[str, str | Feature]:
        """Return the features an attacker extracts, by the name shown."""
        if attacker.features is not None:
            return attacker.features(self, method)
        return {name: name for name in self.features}

    @property
    def attacker_seed(self) -> int:
        """Seed of the attacker's draws: the method is known, the user's draws are not."""
        return self.seed + 1

    def extract_trials(
        self, method: str, features: Sequence[str | Feature]
    ) -> dict[Piece, ExtractedPiece]:
        """Extract the judged readers' trials, as they publish them."""
        pieces = self.judged.pieces("trials")
        measures = self.measures if tuple(features) == self.features else ()
        return self.extractor.extract(pieces, method, self.seed, features, measures)

    def extract_enrolment(
        self, attacker: ThreatModel, method: str, features: Sequence[str | Feature]
    ) -> dict[Piece, ExtractedPiece]:
        """Extract the judged readers' enrolled speech, as the attacker has it."""
        return self.extract_own(self.judged.pieces("enrolment"), attacker, method, features)

    def list_requests(
        self, methods: Mapping[str, Sequence[ThreatModel]]
    ) -> list[ExtractionRequest]:
        """Return what attackers extract with the requested features, each once."""
        requests: dict[ExtractionRequest, None] = {}
        trials, enrolled = self.judged.pieces("trials"), self.judged.pieces("enrolment")
        for method, attackers in methods.items():
            for piece in trials:
                requests[ExtractionRequest(piece, method, self.seed, self.measures).drawn] = None
            for attacker in attackers:
                if attacker.features is not None:
                    continue
                readers = self.get_calibration_readers(attacker) if len(self.features) > 1 else None
                apart = [] if readers is None else [p for x in PARTS for p in readers.pieces(x)]
                method_used = method if attacker.protects else CLEAR
                for piece in (*enrolled, *apart):
                    requests[ExtractionRequest(piece, method_used, self.attacker_seed).drawn] = None
        return list(requests)

    def extract_own(
        self, pieces: Sequence[Piece], attacker: ThreatModel, method: str,
        features: Sequence[str | Feature],
    ) -> dict[Piece, ExtractedPiece]:  # fmt: skip
        """Extract speech that an attacker has in the clear, as it would use it."""
        method_used = method if attacker.protects else CLEAR
        return self.extractor.extract(pieces, method_used, self.attacker_seed, features)


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
        """Number of segments of each reader."""
        return [len(totals) for totals in next(iter(self.totals.values()))]


@dataclass(frozen=True, slots=True)
class ProtectedTrials:
    """Consecutive stretches of T speech seconds.

    Attributes:
        totals: by feature, shape (n, M).
        has_frames: by feature, whether a trial has any frame of it, shape (n,).
        target: position of each one's reader, shape (n,).
        names: of each.
    """

    totals: Mapping[str, AnyArray]
    has_frames: Mapping[str, BoolArray]
    target: IntArray
    names: tuple[str, ...]


def join_speech(
    pieces: Sequence[Piece],
    extracted: Mapping[Piece, ExtractedPiece],
    specs: Mapping[str, FeatureSpec],
) -> dict[str, SessionFrames] | None:
    """Return the frames of consecutive pieces; None where a piece is missing.

    Pieces are heard by themselves, and each long frame counts where it was complete: there are as
    many in a stretch as somebody has who hears it alone.
    """
    if any(piece not in extracted for piece in pieces):
        return None
    frames = [extracted[piece].frames for piece in pieces]
    sessions = {name: session_frames(frames, spec) for name, spec in specs.items()}
    return {name: replace(session, begins=None) for name, session in sessions.items()}


def collect_segments(
    reader: Reader, extracted: Mapping[Piece, ExtractedPiece], specs: Mapping[str, FeatureSpec]
) -> dict[str, AnyArray] | None:
    """Return a reader's segments by feature, shape (segments, M); None where a piece is missing."""
    sessions = [
        join_speech(pieces, extracted, specs) if pieces else {} for pieces in reader.enrolment
    ]
    if any(session is None for session in sessions):
        return None
    units = units_of(SEGMENT_SECONDS)
    rows_by_feature: dict[str, list[AnyArray]] = {name: [] for name in specs}
    for session, index in reader.segments:
        session_frames = sessions[session] or {}
        for name, rows in rows_by_feature.items():
            if (index + 1) * units <= session_frames[name].length:
                rows.append(session_frames[name].total(index * units, units))
    return {name: np.stack(rows) for name, rows in rows_by_feature.items() if rows} or None


def collect_trials(
    reader: Reader, extracted: Mapping[Piece, ExtractedPiece], specs: Mapping[str, FeatureSpec],
    amounts: Amounts,
) -> dict[str, AnyArray] | None:  # fmt: skip
    """Return a reader's trials by feature, shape (trials, M); None where a piece is missing."""
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


def score_trials(
    similarity: Similarity, segments: Sequence[AnyArray], trials: AnyArray, count: int
) -> FloatArray:
    """Score trials against every reader's first segments, shape (n, N).

    Args:
        similarity: how they are compared: with the sum of segments, or ``by_slice`` with each.
        segments: of each reader, shape (S, M).
        trials: shape (n, M).
        count: L; all that a reader has where that is less.
    """
    first = [rows[:count] for rows in segments]
    if similarity.by_slice:
        longest = max(map(len, first))
        # a segment more of what is there changes no maximum
        templates = np.stack(
            [np.concatenate([s, s[:1].repeat(longest - len(s), 0)]) for s in first]
        )
    else:
        templates = np.stack([rows.sum(axis=0) for rows in first])
    return similarity.score_each(similarity.prepare(templates), trials)


def collect_speech(
    context: AttackContext,
    specs: Mapping[str, FeatureSpec],
    enrolment: Mapping[Piece, ExtractedPiece],
    published: Mapping[Piece, ExtractedPiece],
) -> tuple[Segments, ProtectedTrials]:
    """Return segments and trials of the readers with every piece extracted."""
    names: list[str] = []
    segments: list[Mapping[str, FloatArray]] = []
    trials: list[Mapping[str, FloatArray]] = []
    for reader in context.judged.everybody:
        enrolled = collect_segments(reader, enrolment, specs)
        totals_of_trials = collect_trials(reader, published, specs, context.amounts)
        if enrolled is not None and totals_of_trials is not None:
            names.append(reader.name)
            segments.append(enrolled)
            trials.append(totals_of_trials)
    if len(names) < 2:
        raise CorpusError(
            f"only {len(names)} of {len(context.judged)} readers could be protected and heard"
        )
    sizes = [len(next(iter(rows.values()))) for rows in trials]
    totals = {name: np.concatenate([rows[name] for rows in trials]) for name in specs}
    return (
        Segments(tuple(names), {name: tuple(rows[name] for rows in segments) for name in specs}),
        ProtectedTrials(
            totals,
            {name: np.any(rows, axis=1) for name, rows in totals.items()},
            np.repeat(np.arange(len(names)), sizes),
            tuple(
                f"{n} {i + 1}" for n, size in zip(names, sizes, strict=True) for i in range(size)
            ),
        ),
    )
