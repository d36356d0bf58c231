"""The attackers of an anonymiser test: the knowledge, speech and models of each.

The attacker that trains knows the method, but not its random draws. It is called semi-informed in
the VoicePrivacy challenges and informed in the legal framework. Nothing is chosen on the judged
readers. A third of the background readers with enough speech, at most fifty, is excluded
from training. These readers choose the network: the shipped one, the adapted one, or both. So an
attacker that can train may also use no training.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from monitor.anonymisers.filters import Utterance
from monitor.anonymisers.registry import make
from monitor.corpus import Corpus, Recording
from monitor.errors import CorpusError, SourceError, UsageError
from monitor.features.embeddings import Voice
from monitor.features.registry import make as make_features
from monitor.kinds import FeatureSpec
from monitor.lab.adapting import adapt, check_torch
from monitor.lab.adapting.training import TrainingPlan
from monitor.lab.attacks.alignment import WAYS, Alignment, fit_alignment
from monitor.lab.attacks.readers import PARTS, Amounts, Piece, Reader, Readers
from monitor.lab.attacks.speech import (
    CLEAR,
    AttackSpeech,
    ExtractedPiece,
    ExtractionRequest,
    PieceExtractor,
    collect_speech,
    hash_program,
)
from monitor.lab.result_cache import ResultCache
from monitor.networks.voice import VoiceNetwork, shipped
from monitor.protocols import Feature
from monitor.training.calibrating import FEWEST_SPEAKERS
from monitor.types import FloatArray, IntArray

BITS = "srd.mean_bits_model"
"""The figure that compares attacks: MeanD of the fitted rank model, which has a valid interval."""
NETWORKS = "networks"  # private folder of the trained networks
FEWEST_TRAINING = 10  # minimum readers for a network that generalises to others
_MOST_APART = 50


@dataclass(frozen=True, slots=True)
class ThreatModel:
    """Knowledge and actions of one attacker. Trials do not depend on the attacker."""

    name: str
    knows: str  # in one sentence, for people
    protects: bool
    """Whether the attacker also protects enrolled and background speech, with different draws."""
    trains: bool = False  # on some background readers; models are fitted to the others
    features: Callable[[AttackContext, str], Mapping[str, str | Feature]] | None = None
    """Function from context and method to its features by name; None for those requested."""
    fits: Callable[[AttackContext, str, Mapping[str, FeatureSpec]], list[FittedMap]] | None = None
    """Function that fits maps of the compared speech, to all background readers and to parts."""
    draws: int = 1
    """Number of protected versions of each enrolled recording, which the attacker averages."""

    @property
    def only_embeddings(self) -> bool:
        """True if the attacker compares only speaker embeddings."""
        return self.fits is not None or self.draws > 1

    @property
    def needs_background(self) -> bool:
        """True if the attacker needs speech of background readers."""
        return self.trains or self.fits is not None

    @property
    def informed(self) -> bool:
        """True if the attacker knows the protection. Only then do the bits measure protection."""
        return self.protects or self.fits is not None


@dataclass(frozen=True, slots=True)
class Background:
    """Speech of background speakers, on which attackers train. None of them is judged."""

    corpora: tuple[tuple[Corpus, Path], ...]  # each with its folder
    readers: Readers | None  # with enough speech for rank models
    problems: tuple[str, ...] = ()


def shuffle(names: Iterable[str]) -> list[str]:
    """Sort names by a hash."""
    return sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())


def split_background(
    background: Background,
) -> tuple[Readers | None, tuple[tuple[Recording, ...], ...]]:
    """Split background readers: some calibrate and choose the network, others train it.

    Returns a third of the readers, at most fifty, all with enough speech (None if no reader has).
    The recordings of all others follow, by corpus.
    """
    enough = background.readers.everybody if background.readers else ()
    speakers = sum(len(corpus.speakers) for corpus, _ in background.corpora)
    maximum = max(FEWEST_SPEAKERS, min(_MOST_APART, speakers // 3))
    names = set(shuffle(reader.name for reader in enough)[:maximum])
    chosen = [reader for reader in enough if reader.name in names]
    calibration = Readers(tuple(sorted(chosen, key=lambda reader: reader.name)), "same")
    files = {piece.path for piece in calibration.pieces(*PARTS)}
    training = tuple(
        tuple(r for r in corpus.recordings if r.speaker not in names and r.path not in files)
        for corpus, _ in background.corpora
    )
    return (calibration if chosen else None), training


@dataclass(frozen=True)
class AttackContext:
    """Speech, settings and tools of an attack."""

    judged: Readers
    background: Background | None
    features: tuple[str, ...]  # for attackers without features of their own
    measures: tuple[str, ...]  # of `MEASURES`, computed on trials with these features
    amounts: Amounts
    extractor: PieceExtractor
    seed: int
    folder: Path  # private folder for results of an attacker, such as a network
    training: TrainingPlan = field(default_factory=TrainingPlan)
    on_progress: Callable[[str], object] = lambda _: None
    notes: list[str] = field(default_factory=list)  # from attackers, for people
    clear_bits: dict[str, tuple[float, float]] = field(default_factory=dict)
    """MeanD on background speakers' clear speech, of the trained and shipped network, by method."""

    def get_calibration_readers(self, attacker: ThreatModel) -> Readers | None:
        """Return the background readers an attacker calibrates on, or None.

        None of them trained its network, which recognises its training speakers too well.
        """
        if self.background is None or not attacker.trains:
            return None if self.background is None else self.background.readers
        return split_background(self.background)[0]

    def get_features(self, attacker: ThreatModel, method: str) -> Mapping[str, str | Feature]:
        """Return the features an attacker extracts, by display name."""
        if attacker.features is not None:
            return attacker.features(self, method)
        return {name: name for name in self.features}

    @property
    def attacker_seed(self) -> int:
        """Seed of the attacker's draws, which differ from the user's."""
        return self.seed + 1

    def extract_trials(
        self, method: str, features: Sequence[str | Feature]
    ) -> dict[Piece, ExtractedPiece]:
        """Extract the judged readers' trials, protected as for publication."""
        pieces = self.judged.pieces("trials")
        measures = self.measures if tuple(features) == self.features else ()
        return self.extractor.extract(pieces, method, self.seed, features, measures)

    def extract_own(
        self, pieces: Sequence[Piece], attacker: ThreatModel, method: str,
        features: Sequence[str | Feature], draw: int = 0,
    ) -> dict[Piece, ExtractedPiece]:  # fmt: skip
        """Extract clear speech that an attacker owns, protected first if the attacker does so.

        Further draws of the protection are counted from 0.
        """
        method_used = method if attacker.protects else CLEAR
        return self.extractor.extract(pieces, method_used, self.attacker_seed + draw, features)

    def extract_outsiders(
        self, attacker: ThreatModel, method: str, features: Sequence[str | Feature]
    ) -> tuple[tuple[Reader, ...], dict[Piece, ExtractedPiece]]:
        """Extract protected trials of background readers, if any, for the control attack.

        None of them trained the attacker's network.
        """
        readers = self.get_calibration_readers(attacker)
        if readers is None:
            return (), {}
        pieces = readers.pieces("trials")
        extracted = self.extractor.extract(pieces, method, self.attacker_seed, features)
        return readers.everybody, extracted

    def list_requests(
        self, methods: Mapping[str, Sequence[ThreatModel]]
    ) -> list[ExtractionRequest]:
        """Return the attackers' extraction requests for the requested features, each once."""
        requests: dict[ExtractionRequest, None] = {}
        has_embedding = any(
            feature.spec.kind.pointed
            for feature in make_features(self.features, self.extractor.setup)
        )

        def add(pieces: Sequence[Piece], method: str, seed: int, *measures: str) -> None:
            seed = 0 if method == CLEAR else seed  # no random draws
            requests.update(
                {ExtractionRequest(piece, method, seed, measures): None for piece in pieces}
            )

        for method, attackers in methods.items():
            add(self.judged.pieces("trials"), method, self.seed, *self.measures)
            if self.background is not None and self.background.readers is not None:
                add(self.background.readers.pieces("trials"), method, self.attacker_seed)
            for attacker in attackers:
                if attacker.features is None:
                    used = method if attacker.protects else CLEAR
                    add(self.judged.pieces("enrolment"), used, self.attacker_seed)
                    readers = self.get_calibration_readers(attacker)
                    if readers is not None and (has_embedding or len(self.features) > 1):
                        parts = PARTS if len(self.features) > 1 else PARTS[:1]
                        add(readers.pieces(*parts), used, self.attacker_seed)
                    if readers is not None and attacker.fits is not None:
                        add(readers.pieces(*PARTS), method, self.attacker_seed)
        return list(requests)


@dataclass(frozen=True, slots=True)
class FittedMap:
    """A map of the speech to compare, and the readers to whom it was fitted."""

    apply: Callable[[AttackSpeech], AttackSpeech]
    readers: Set[str] = frozenset()


# VoxGuard section 4.2: the template is the mean of L segments (average scoring), or the nearest of
# the L segments (max scoring).

_REPLICATES = 20
_LEAST_SPREAD = 1e-9
_BOTH = "both"  # the shipped network and the adapted one


def _protect(
    method: str, seed: int, samples: FloatArray, rate: int, name: str, speaker: str
) -> FloatArray:
    anonymiser = make(method, Utterance(rate, name, speaker, 0, seed))
    try:
        return np.concatenate([anonymiser.process(samples), anonymiser.flush()])
    except UsageError as error:  # NaN or infinite samples
        raise SourceError(f"{name}: {error}") from None


def check_background(background: Background) -> None:
    """Check that a network can be trained and chosen, before anything is extracted."""
    check_torch()
    readers, training = split_background(background)
    if readers is None or len(readers) < FEWEST_SPEAKERS:
        raise UsageError(
            "semi-informed needs ten --background readers with speech for a template and trials to "
            f"choose its network, but has {0 if readers is None else len(readers)}: add readers "
            "with more speech"
        )
    others = sum(len({r.speaker for r in corpus}) for corpus in training)
    if others < FEWEST_TRAINING:
        raise UsageError(
            f"semi-informed needs at least {FEWEST_TRAINING} --background readers to train its "
            f"network, beside the {len(readers)} that choose it, but has {others}: add readers"
        )


def choose_features(context: AttackContext, method: str) -> Mapping[str, str | Feature]:
    """Return the requested features, and ``voice`` with the network chosen on background readers.

    If no network can be trained or chosen, the shipped network is used and a note reports it. This
    happens if the anonymiser leaves no speech.
    """
    features: dict[str, str | Feature] = {name: name for name in context.features}
    if context.background is None:
        raise UsageError("semi-informed needs speech of background speakers: add --background")
    check_background(context.background)
    try:
        return {**features, "voice": _choose_network(context, context.background, method)}
    except CorpusError as error:
        context.notes.append(f"{method}: semi-informed uses the shipped voice network ({error})")
        return {**features, "voice": "voice"}


def _choose_network(context: AttackContext, background: Background, method: str) -> Feature:
    """Return the network that discloses most about background speakers."""
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
        f"{method}: semi-informed uses the {choice} voice {networks} (MeanD in bits on "
        f"{len(readers)} background speakers = {listing})"
    )
    for problem in problems:
        context.notes.append(f"{method}: excluded from training ({problem})")
    if choice != "shipped":
        # the shipped network's speech is the same for every method, unless it is in both
        parts = [("shipped", choice)] if choice == _BOTH else [("shipped",), (choice,)]
        bits = {}
        for part in parts:
            compared = {name: candidates[name] for name in part}
            bits |= _measure_candidates(context, CLEAR, readers, compared)[0]
        context.clear_bits[method] = bits[choice], bits["shipped"]
    return candidates[choice]


def _measure_candidates(
    context: AttackContext, method: str, readers: Readers, candidates: Mapping[str, Feature]
) -> tuple[dict[str, float], dict[str, float]]:
    """Measure what each candidate discloses about background speakers outside its training.

    Returns MeanD in bits, and the mean margin of the mated score above the best non-mated score, in
    standard deviations. The margin decides if all candidates identify a few readers perfectly.
    """
    extracted = {_BOTH: candidates[_BOTH]} if _BOTH in candidates else candidates
    specs = {candidate.spec.name: candidate.spec for candidate in extracted.values()}
    features = tuple(extracted.values())
    enrolment, published = (
        context.extractor.extract(readers.pieces(role), method, context.attacker_seed, features)
        for role in PARTS
    )
    speech = collect_speech(readers, context.amounts, specs, enrolment, published)
    bits, apartness = {}, {}
    for name, candidate in candidates.items():
        spec, columns = candidate.spec, slice(None)
        if _BOTH in candidates and name != _BOTH:  # scaling both does not change a cosine
            spec, first = candidates[_BOTH].spec, candidates["shipped"].spec.size
            columns = slice(first) if name == "shipped" else slice(first, None)
        similarity, count = candidate.spec.kind.similarity(), context.amounts.least_segments
        scores = speech.score(spec.name, similarity, count, columns)
        figures = speech.measure(scores, name, _REPLICATES, context.seed)
        bits[name] = figures[BITS].value or 0.0
        apartness[name] = measure_apartness(scores, speech.target)
    return bits, apartness


def measure_apartness(scores: FloatArray, target: IntArray) -> float:
    """Compute the mean margin of the mated score above the best other, in standard deviations."""
    rows, others = np.arange(len(target)), scores.copy()
    others[rows, target] = -np.inf
    margin = scores[rows, target] - others.max(axis=1)
    spread = np.ma.masked_invalid(others).std(axis=1).filled(0.0)
    return float(np.mean(margin / np.maximum(spread, _LEAST_SPREAD)))


def check_readers(background: Background | None) -> Readers:
    """Return the background readers, if there are enough of them to fit a rotation."""
    readers = background.readers if background is not None else None
    if readers is None or len(readers) < FEWEST_SPEAKERS:
        raise UsageError(
            "aligned needs ten --background readers with speech for a template and trials, but "
            f"has {0 if readers is None else len(readers)}: add readers with more speech"
        )
    return readers


def fit_alignments(
    context: AttackContext, method: str, specs: Mapping[str, FeatureSpec]
) -> list[FittedMap]:
    """Fit a rotation of protected embeddings onto clear ones, to background readers.

    Each half of the readers judges each of the `WAYS`, fitted to the other half. Returns the best
    way, fitted to all readers, and to each half for the control attack on the other.
    """
    readers = check_readers(context.background)
    clear, protected = (
        context.extractor.extract(
            readers.pieces(*PARTS), used, context.attacker_seed, context.features
        )
        for used in (CLEAR, method)
    )
    usable = clear.keys() & protected.keys()
    clear, protected = (
        {p: e for p, e in all_.items() if p in usable} for all_ in (clear, protected)
    )

    def collect(group: Readers, enrolment: Mapping[Piece, ExtractedPiece]) -> AttackSpeech:
        return collect_speech(group, context.amounts, specs, enrolment, protected)

    order = shuffle(reader.name for reader in readers.everybody)
    halves = [
        Readers(tuple(r for r in readers.everybody if r.name in order[i::2]), readers.session)
        for i in (0, 1)
    ]
    pairs = [(collect(half, clear), collect(half, protected)) for half in halves]
    all_readers = collect(readers, clear), collect(readers, protected)
    maps: list[dict[str, Alignment]] = [{}, {}, {}]
    for name, spec in specs.items():
        fitted = {way: [_fit_rotation(context, *both, name, way) for both in pairs] for way in WAYS}
        apartness = {
            way: sum(
                measure_apartness(
                    align_speech(ignorant, {name: alignment}).score(
                        name, spec.kind.similarity(), context.amounts.least_segments
                    ),
                    ignorant.target,
                )
                for alignment, (ignorant, _) in zip(reversed(fitted[way]), pairs, strict=True)
            )
            for way in WAYS
        }
        way = max(apartness, key=apartness.__getitem__)
        rotations = (_fit_rotation(context, *all_readers, name, way), *fitted[way])
        for alignments, rotation in zip(maps, rotations, strict=True):
            alignments[name] = rotation
        context.notes.append(f"{method}: aligned uses {way} for {name} ({len(readers)} readers)")
    return [
        FittedMap(partial(align_speech, maps=alignments), {r.name for r in group.everybody})
        for alignments, group in zip(maps, (readers, *halves), strict=True)
    ]


def _fit_rotation(
    context: AttackContext, ignorant: AttackSpeech, informed: AttackSpeech, feature: str, way: str
) -> Alignment:  # fmt: skip
    """Fit a rotation to enrolled segments, which both have clear and protected."""
    protected, clear = (
        np.concatenate(
            [rows[: context.amounts.least_segments] for rows in speech.segments[feature]]
        )
        for speech in (informed, ignorant)
    )
    return fit_alignment(protected, clear, way)


def align_speech(speech: AttackSpeech, maps: Mapping[str, Alignment]) -> AttackSpeech:
    """Centre enrolled embeddings, which are clear, and align the trials, which are protected."""
    segments, trials = dict(speech.segments), dict(speech.trials)
    for name, alignment in maps.items():
        segments[name] = tuple(map(alignment.centre, segments[name]))
        trials[name] = alignment.align(trials[name])
    return replace(speech, segments=segments, trials=trials)


class BothNetworks:
    """Concatenated embeddings of two networks: their cosine is the mean of both cosines."""

    def __init__(self, first: VoiceNetwork, second: VoiceNetwork) -> None:
        self._networks = first, second
        self.size = first.size + second.size
        self.sha256 = hashlib.sha256(f"{first.sha256} {second.sha256}".encode()).hexdigest()

    def embed(self, windows: FloatArray) -> FloatArray:
        """Embed windows of one length, shape (b, n), as vectors of shape (b, size)."""
        both = [network.embed(windows) for network in self._networks]
        return np.concatenate(both, axis=1) / np.float32(np.sqrt(2))


ATTACKERS: dict[str, ThreatModel] = {
    attacker.name: attacker
    for attacker in (
        ThreatModel(
            "ignorant",
            "does not know of the protection, and has templates and rank models of clear speech",
            protects=False,
        ),
        ThreatModel(
            "aligned",
            "has templates of clear speech, and rotates protected embeddings onto clear ones by a "
            "map fitted to other readers",
            protects=False,
            fits=fit_alignments,
        ),
        ThreatModel(
            "lazy-informed",
            "knows the method, but not its draws, and protects enrolled speech and the speech for "
            "its rank models too",
            protects=True,
        ),
        ThreatModel(
            "simulating",
            "works like lazy-informed, but protects enrolled speech four times, each with new "
            "draws, and compares with the mean embedding",
            protects=True,
            draws=4,
        ),
        ThreatModel(
            "semi-informed",
            "works like lazy-informed, and also trains the voice network on protected speech of "
            "other readers",
            protects=True,
            trains=True,
            features=choose_features,
        ),
    )
}
"""Every attacker, weakest first."""


def get_attacker(name: str) -> ThreatModel:
    """Return the attacker of that name."""
    if name not in ATTACKERS:
        raise UsageError(f"unknown attacker {name!r}: use {', '.join(ATTACKERS)}")
    return ATTACKERS[name]
