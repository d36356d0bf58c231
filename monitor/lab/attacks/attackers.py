"""The attackers of an anonymiser test: what each knows, the speech it has, what it makes of it.

The one who trains is semi-informed in the VoicePrivacy challenges, informed in the legal
framework's words: the method is known, and its draws are not. Nothing is chosen on the readers who
are judged. Who of the background says enough is held apart from training (a third, at most fifty),
and says which network is used: the one that ships, the adapted one, or both. An attacker who can
train can also leave it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from monitor.anonymisers.filters import Utterance
from monitor.anonymisers.registry import make
from monitor.corpus import Corpus, Recording
from monitor.errors import CorpusError, SourceError, UsageError
from monitor.features.embeddings import Voice
from monitor.kinds import FeatureSpec
from monitor.lab.adapting import adapt, check_torch
from monitor.lab.adapting.training import TrainingPlan
from monitor.lab.attacks.speech import (
    CLEAR,
    PARTS,
    SEGMENT_SECONDS,
    Amounts,
    ExtractedPiece,
    ExtractionRequest,
    Piece,
    PieceExtractor,
    Reader,
    Readers,
    hash_program,
)
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import EvaluationSettings
from monitor.lab.report.model import Figure
from monitor.lab.result_cache import ResultCache
from monitor.maths.scores import Similarity
from monitor.networks.voice import VoiceNetwork, shipped
from monitor.protocols import Feature
from monitor.training.calibrating import FEWEST_SPEAKERS
from monitor.training.voices import SessionFrames, session_frames, units_of
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray

BITS = "srd.mean_bits_model"
"""The figure by which attacks are compared: MeanD of the fitted rank model, whose limits hold."""
NETWORKS = "networks"  # the private folder in which they are kept
FEWEST_TRAINING = 10  # readers; of fewer there is nothing to learn about others
_MOST_APART = 50


@dataclass(frozen=True, slots=True)
class ThreatModel:
    """Knowledge and acts of one attacker; trials do not depend on it."""

    name: str
    knows: str  # in a sentence, for people
    protects: bool
    """Whether enrolled speech and background are protected too, with the attacker's own draws."""
    trains: bool = False  # on a part of the background; models are learnt on the rest
    features: Callable[[AttackContext, str], Mapping[str, str | Feature]] | None = None
    """From context and method, what it hears with by name; None: with what was asked for."""


@dataclass(frozen=True, slots=True)
class Background:
    """Speech of background speakers, that an attacker may learn from; none of them is judged."""

    corpora: tuple[tuple[Corpus, Path], ...]  # with the folder of each
    readers: Readers | None  # those who say enough to learn rank models on
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
    held = Readers(tuple(sorted(chosen, key=lambda reader: reader.name)), "same")
    files = {piece.path for piece in held.pieces(*PARTS)}
    names = {reader.name for reader in chosen}
    training = tuple(
        tuple(r for r in corpus.recordings if r.speaker not in names and r.path not in files)
        for corpus, _ in background.corpora
    )
    return (held if chosen else None), training


@dataclass(frozen=True)
class AttackContext:
    """Speech, settings and tools of an attack."""

    judged: Readers
    background: Background | None
    features: tuple[str, ...]  # that attackers hear with, where they have none of their own
    measures: tuple[str, ...]  # of `MEASURES`, made of the trials when these features hear them
    amounts: Amounts
    extractor: PieceExtractor
    seed: int
    folder: Path  # where an attacker may keep what it made, such as a network; private
    training: TrainingPlan = field(default_factory=TrainingPlan)
    on_progress: Callable[[str], object] = lambda _: None
    notes: list[str] = field(default_factory=list)  # of attackers on themselves, for people
    clear_bits: dict[str, tuple[float, float]] = field(default_factory=dict)
    """By method, MeanD of background speakers' clear speech by a trained and our network."""

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

    def extract_own(
        self, pieces: Sequence[Piece], attacker: ThreatModel, method: str,
        features: Sequence[str | Feature],
    ) -> dict[Piece, ExtractedPiece]:  # fmt: skip
        """Extract speech that an attacker has in the clear, as it would use it."""
        method_used = method if attacker.protects else CLEAR
        return self.extractor.extract(pieces, method_used, self.attacker_seed, features)

    def list_requests(
        self, methods: Mapping[str, Sequence[ThreatModel]]
    ) -> list[ExtractionRequest]:
        """Return what attackers extract with the requested features, each once."""
        requests: dict[ExtractionRequest, None] = {}

        def add(pieces: Sequence[Piece], method: str, seed: int, *measures: str) -> None:
            seed = 0 if method == CLEAR else seed  # nothing is drawn
            requests.update(
                {ExtractionRequest(piece, method, seed, measures): None for piece in pieces}
            )

        for method, attackers in methods.items():
            add(self.judged.pieces("trials"), method, self.seed, *self.measures)
            for attacker in attackers:
                if attacker.features is None:
                    used = method if attacker.protects else CLEAR
                    add(self.judged.pieces("enrolment"), used, self.attacker_seed)
                    readers = self.get_calibration_readers(attacker)
                    if readers is not None and len(self.features) > 1:
                        add(readers.pieces(*PARTS), used, self.attacker_seed)
        return list(requests)


# --------------------------------------------------------------------------------------- templates
# VoxGuard section 4.2: a template is the mean of L segments (average scoring), or each of them by
# itself, of which the nearest counts (max scoring).


@dataclass(frozen=True, slots=True)
class AttackSpeech:
    """Enrolled segments of N readers, and n trials: consecutive stretches of T speech seconds."""

    names: tuple[str, ...]
    segments: Mapping[str, tuple[AnyArray, ...]]  # by feature, of each reader, (segments, M)
    trials: Mapping[str, AnyArray]  # by feature, shape (n, M)
    has_frames: Mapping[str, BoolArray]  # by feature, whether a trial has any of it, shape (n,)
    target: IntArray  # position of each trial's reader, shape (n,)
    trial_names: tuple[str, ...]

    @property
    def counts(self) -> list[int]:
        """Number of segments of each reader."""
        return [len(totals) for totals in next(iter(self.segments.values()))]

    def score(
        self, feature: str, similarity: Similarity, count: int, columns: slice = slice(None)
    ) -> FloatArray:
        """Score trials against every reader's first segments: shape (n, N).

        A similarity compares with the sum of L segments (all, of a reader with fewer), or
        ``by_slice`` with each.
        """
        first = [rows[:count, columns] for rows in self.segments[feature]]
        if similarity.by_slice:
            longest = max(map(len, first))
            # a segment more of what is there changes no maximum
            first = [np.concatenate([s, s[:1].repeat(longest - len(s), 0)]) for s in first]
        templates = np.stack(first if similarity.by_slice else [s.sum(axis=0) for s in first])
        prepared = similarity.prepare(templates)
        return similarity.score_each(prepared, self.trials[feature][:, columns])

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
    """Return the frames of consecutive pieces; None where a piece is missing."""
    if any(piece not in extracted for piece in pieces):
        return None
    frames = [extracted[piece].frames for piece in pieces]
    # each long frame counts where it was complete, as for who hears a piece alone
    sessions = {name: session_frames(frames, spec) for name, spec in specs.items()}
    return {name: replace(session, begins=None) for name, session in sessions.items()}


def collect_segments(
    reader: Reader, extracted: Mapping[Piece, ExtractedPiece], specs: Mapping[str, FeatureSpec]
) -> dict[str, AnyArray] | None:
    """Return a reader's segments by feature, shape (segments, M); None where a piece is missing."""
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


def collect_speech(
    context: AttackContext,
    specs: Mapping[str, FeatureSpec],
    enrolment: Mapping[Piece, ExtractedPiece],
    published: Mapping[Piece, ExtractedPiece],
) -> AttackSpeech:
    """Return segments and trials of the readers with every piece extracted.

    Raises:
        CorpusError: they are fewer than two.
    """
    speech: dict[str, tuple[Mapping[str, AnyArray], Mapping[str, AnyArray]]] = {}
    for reader in context.judged.everybody:
        enrolled = collect_segments(reader, enrolment, specs)
        trials = collect_trials(reader, published, specs, context.amounts)
        if enrolled is not None and trials is not None:
            speech[reader.name] = enrolled, trials
    if len(speech) < 2:
        raise CorpusError(
            f"only {len(speech)} of {len(context.judged)} readers could be protected and heard"
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


# ------------------------------------------------------------------------------------ who trains

_REPLICATES = 20
_LEAST_SPREAD = 1e-9
_BOTH = "both"  # the shipped network and the adapted one


def _protect(
    method: str, seed: int, samples: FloatArray, rate: int, name: str, speaker: str
) -> FloatArray:
    """Protect a stretch of speech by a method; the seed fixes draws."""
    anonymiser = make(method, Utterance(rate, name, speaker, 0, seed))
    try:
        return np.concatenate([anonymiser.process(samples), anonymiser.flush()])
    except UsageError as error:  # a sample is no number
        raise SourceError(f"{name}: {error}") from None


def check_background(background: Background) -> None:
    """Check that a network can be trained and chosen, before anything is extracted."""
    check_torch()
    readers, training = split_background(background)
    if readers is None or len(readers) < FEWEST_SPEAKERS:
        raise UsageError(
            "semi-informed chooses its network on ten readers of --background who say enough for a "
            f"template and trials, not {0 if readers is None else len(readers)}: add readers with "
            "more speech"
        )
    others = sum(len({r.speaker for r in corpus}) for corpus in training)
    if others < FEWEST_TRAINING:
        raise UsageError(
            f"semi-informed trains a network on {FEWEST_TRAINING} readers of --background or more, "
            f"beside the {len(readers)} that choose it, not {others}: add readers"
        )


def choose_features(context: AttackContext, method: str) -> Mapping[str, str | Feature]:
    """Return the requested features, and ``voice`` by the network it chooses.

    Where no network can be made or chosen, such as of an anonymiser that leaves no speech, it is
    the one that ships, and a note says so.
    """
    features: dict[str, str | Feature] = {name: name for name in context.features}
    if context.background is None:
        raise UsageError("semi-informed needs speech of background speakers: give --background")
    check_background(context.background)
    try:
        return {**features, "voice": _choose_network(context, context.background, method)}
    except CorpusError as error:
        context.notes.append(f"{method}: semi-informed uses the shipped voice network: {error}")
        return {**features, "voice": "voice"}


def _choose_network(context: AttackContext, background: Background, method: str) -> Feature:
    """Return the network that discloses most of background speakers."""
    readers, training = split_background(background)
    assert readers is not None

    def report(activity: str, done: float) -> None:
        context.on_progress(f"{method}, semi-informed: {activity}, {done:.0%}")

    network, problems = adapt(
        training,
        partial(_protect, method, context.attacker_seed),
        [method, context.attacker_seed, hash_program(method)],
        ResultCache(context.folder / NETWORKS),
        context.training,
        progress=report,
        jobs=context.extractor.jobs,
    )
    candidates: dict[str, Feature] = {
        "shipped": Voice(),
        "adapted": Voice(network, "voice_adapted"),
        _BOTH: Voice(BothNetworks(shipped(), network), "voice_both"),
    }
    bits, apartness = _measure_candidates(context, method, readers, candidates)
    choice = max(bits, key=lambda name: (round(bits[name], 2), round(apartness[name], 2)))
    listing = ", ".join(f"{name} {value:.2f}" for name, value in bits.items())
    networks = "networks" if choice == _BOTH else "network"
    context.notes.append(
        f"{method}: semi-informed uses the {choice} voice {networks}: MeanD of "
        f"{len(readers)} background speakers, in bits: {listing}"
    )
    for problem in problems:
        context.notes.append(f"{method}: not trained on: {problem}")
    if choice != "shipped":
        own, ours = (  # one by one: the shipped network's are the same for every method
            _measure_candidates(context, CLEAR, readers, {name: candidates[name]})[0][name]
            for name in (choice, "shipped")
        )
        context.clear_bits[method] = own, ours
    return candidates[choice]


def _measure_candidates(
    context: AttackContext, method: str, readers: Readers, candidates: Mapping[str, Feature]
) -> tuple[dict[str, float], dict[str, float]]:
    """Measure what each candidate discloses of background speakers, who trained none.

    Returns:
        MeanD in bits; and, since of few readers all of them may be told, by how many standard
        deviations the own score lies above the best of the others, in the mean.
    """
    extracted = {_BOTH: candidates[_BOTH]} if _BOTH in candidates else candidates
    specs = {candidate.spec.name: candidate.spec for candidate in extracted.values()}
    features = tuple(extracted.values())
    enrolment, published = (
        context.extractor.extract(readers.pieces(part), method, context.attacker_seed, features)
        for part in PARTS
    )
    speech = collect_speech(replace(context, judged=readers), specs, enrolment, published)
    bits, apartness = {}, {}
    rows = np.arange(len(speech.target))
    for name, candidate in candidates.items():
        spec, columns = candidate.spec, slice(None)
        if _BOTH in candidates and name != _BOTH:  # both are scaled, which no cosine sees
            spec, first = candidates[_BOTH].spec, candidates["shipped"].spec.size
            columns = slice(first) if name == "shipped" else slice(first, None)
        similarity, count = candidate.spec.kind.similarity(), context.amounts.least_segments
        scores = speech.score(spec.name, similarity, count, columns)
        figures = speech.measure(scores, name, _REPLICATES, context.seed)
        bits[name] = figures[BITS].value or 0.0
        others = scores.copy()
        others[rows, speech.target] = -np.inf
        margin = scores[rows, speech.target] - others.max(axis=1)
        spread = np.ma.masked_invalid(others).std(axis=1).filled(0.0)
        apartness[name] = float(np.mean(margin / np.maximum(spread, _LEAST_SPREAD)))
    return bits, apartness


class BothNetworks:
    """Embeddings of two networks side by side: their cosine is the mean of both cosines."""

    def __init__(self, first: VoiceNetwork, second: VoiceNetwork) -> None:
        self._networks = first, second
        self.size = first.size + second.size
        self.sha256 = hashlib.sha256(f"{first.sha256} {second.sha256}".encode()).hexdigest()

    def embed(self, windows: FloatArray) -> FloatArray:
        """Embed windows of one length, shape (b, n): shape (b, size)."""
        both = [network.embed(windows) for network in self._networks]
        return np.concatenate(both, axis=1) / np.float32(np.sqrt(2))


ATTACKERS: dict[str, ThreatModel] = {
    attacker.name: attacker
    for attacker in (
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
            trains=True,
            features=choose_features,
        ),
    )
}
"""Every attacker, the weakest first."""


def get_attacker(name: str) -> ThreatModel:
    """Return the attacker of that name."""
    if name not in ATTACKERS:
        raise UsageError(f"no attacker is called {name!r}; there are {', '.join(ATTACKERS)}")
    return ATTACKERS[name]
