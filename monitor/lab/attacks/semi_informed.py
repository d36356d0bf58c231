"""The attacker who trains: the voice network fine-tuned on protected speech of background speakers.

Semi-informed in the VoicePrivacy challenges, informed in the legal framework's words: the method is
known, and its draws are not. Nothing is chosen on the readers who are judged. Who of the background
says enough is held apart from training (a third, at most fifty), and says which network is used:
the one that ships, the adapted one, or both. An attacker who can train can also leave it.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from monitor.anonymisers.filters import Utterance
from monitor.anonymisers.registry import make
from monitor.errors import CorpusError, SourceError, UsageError
from monitor.features.embeddings import Voice
from monitor.lab.adapting.training import TrainingPlan, adapt, check_torch
from monitor.lab.attacks.context import (
    BITS,
    AttackContext,
    Background,
    collect_speech,
    score_trials,
    split_background,
)
from monitor.lab.attacks.extraction import CLEAR, hash_program
from monitor.lab.attacks.readers import PARTS, Readers
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import EvaluationSettings
from monitor.lab.result_cache import ResultCache
from monitor.networks.voice import VoiceNetwork, shipped
from monitor.phrases import clock_time
from monitor.protocols import Feature
from monitor.training.calibrating import FEWEST_SPEAKERS
from monitor.types import FloatArray

FEWEST_TRAINING = 10  # readers; of fewer there is nothing to learn about others
NETWORKS = "networks"  # the private folder in which they are kept
_TELL_SECONDS = 5.0
_REPLICATES = 20
_LEAST_SPREAD = 1e-9
_BOTH = "both"  # the shipped network and the adapted one


@dataclass(frozen=True, slots=True)
class ProtectStretch:
    """A callable that protects stretches of speech by a method; the seed fixes draws."""

    method: str
    seed: int

    def __call__(self, samples: np.ndarray, rate: int, name: str, speaker: str) -> np.ndarray:
        """Protect samples."""
        anonymiser = make(self.method, Utterance(rate, name, speaker, 0, self.seed))
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
    network, problems = adapt(
        training,
        ProtectStretch(method, context.attacker_seed),
        [method, context.attacker_seed, hash_program(method)],
        ResultCache(context.folder / NETWORKS),
        TrainingPlan(context.training, context.draws, context.fine_tuning),
        progress=_RunReporter(context, method),
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
        clear = (  # one by one: the shipped network's are the same for every method
            _measure_candidates(context, CLEAR, readers, {name: candidates[name]})[0][name]
            for name in (choice, "shipped")
        )
        context.clear_bits[method] = next(clear), next(clear)
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
        context.extractor.extract(readers.pieces(columns), method, context.attacker_seed, features)
        for columns in PARTS
    )
    enrolled, trials = collect_speech(replace(context, judged=readers), specs, enrolment, published)
    bits, apartness = {}, {}
    rows = np.arange(len(trials.target))
    for name, candidate in candidates.items():
        columns = _select_columns(name, candidates)
        spec = next(iter(specs.values())) if len(extracted) < len(candidates) else candidate.spec
        scores = score_trials(
            candidate.spec.kind.similarity(),
            [totals[:, columns] for totals in enrolled.totals[spec.name]],
            trials.totals[spec.name][:, columns],
            context.amounts.least_segments,
        )
        matrix = ScoreMatrix(scores, trials.target, enrolled.names, name, trials.names)
        report = evaluate(matrix, settings=EvaluationSettings(_REPLICATES, context.seed))
        bits[name] = report.figures[BITS].value or 0.0
        others = scores.copy()
        others[rows, trials.target] = -np.inf
        margin = scores[rows, trials.target] - others.max(axis=1)
        spread = np.ma.masked_invalid(others).std(axis=1).filled(0.0)
        apartness[name] = float(np.mean(margin / np.maximum(spread, _LEAST_SPREAD)))
    return bits, apartness


def _select_columns(name: str, candidates: Mapping[str, Feature]) -> slice:
    """Return a candidate's columns in the embeddings of both networks, where those are extracted.

    `BothNetworks` scales them, which no cosine sees.
    """
    if _BOTH not in candidates or name == _BOTH:
        return slice(None)
    first = candidates["shipped"].spec.size
    return slice(first) if name == "shipped" else slice(first, None)


class BothNetworks:
    """Embeddings of two networks side by side: their cosine is the mean of both cosines.

    Attributes:
        size: numbers in an embedding.
        sha256: marks what both together make.
    """

    def __init__(self, first: VoiceNetwork, second: VoiceNetwork) -> None:
        self._networks = first, second
        self.size = first.size + second.size
        self.sha256 = hashlib.sha256(f"{first.sha256} {second.sha256}".encode()).hexdigest()

    def embed(self, windows: FloatArray) -> FloatArray:
        """Embed windows of one length, shape (b, n): shape (b, size)."""
        both = [network.embed(windows) for network in self._networks]
        return np.concatenate(both, axis=1) / np.float32(np.sqrt(2))


class _RunReporter:
    """Reports the progress of an adaptation, with the time left."""

    def __init__(self, context: AttackContext, method: str) -> None:
        self._context, self._method = context, method
        self._what, self._began, self._last, self._from = "", 0.0, 0.0, 0.0

    def __call__(self, what: str, done: float) -> None:
        now = time.monotonic()
        if what != self._what:
            self._what, self._began, self._last, self._from = what, now, now, done
        if now - self._last < _TELL_SECONDS or done <= self._from:
            return
        self._last = now
        left = (now - self._began) * (1 - done) / (done - self._from)
        self._context.on_progress(
            f"{self._method}, semi-informed: {what}, {done:.0%}, about {clock_time(left)} left"
        )
