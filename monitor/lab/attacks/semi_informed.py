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

from monitor.anonymisers.registry import make
from monitor.anonymisers.utterance import Utterance
from monitor.errors import CorpusError, SourceError, UsageError
from monitor.features.embeddings import Voice
from monitor.lab.adapting.adapted import adapted, check_torch
from monitor.lab.attacks.attackers import (
    CLEAR,
    AttackContext,
    Background,
    Readers,
    apart,
    attacker_named,
    program_of,
    scores,
)
from monitor.lab.attacks.attacking import heard_speech
from monitor.lab.attacks.results import BITS
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.scores.comparisons import ScoreMatrix
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
    """Protects stretches of speech by a method, in memory; what is drawn depends on the seed."""

    method: str
    seed: int

    def __call__(self, samples: np.ndarray, rate: int, name: str, speaker: str) -> np.ndarray:
        """The protected samples."""
        anonymiser = make(self.method, Utterance(rate, name, speaker, 0, self.seed))
        try:
            return np.concatenate([anonymiser.process(samples), anonymiser.flush()])
        except UsageError as error:  # a sample is no number
            raise SourceError(f"{name}: {error}") from None


def check_background(background: Background) -> None:
    """See to it that a network can be trained, and chosen, before anything is heard."""
    check_torch()
    held, training = apart(background)
    if held is None or len(held) < FEWEST_SPEAKERS:
        raise UsageError(
            "semi-informed chooses its network on ten readers of --background who say enough for a "
            f"template and trials, not {0 if held is None else len(held)}: add readers with more "
            "speech"
        )
    others = sum(len({r.speaker for r in corpus}) for corpus in training)
    if others < FEWEST_TRAINING:
        raise UsageError(
            f"semi-informed trains a network on {FEWEST_TRAINING} readers of --background or more, "
            f"beside the {len(held)} that choose it, not {others}: add readers"
        )


def semi_informed(bench: AttackContext, method: str) -> Mapping[str, str | Feature]:
    """What this attacker hears with: what was asked for, and ``voice`` by the network it picked.

    Where no network can be made or chosen, such as of an anonymiser that leaves no speech, it is
    the one that ships, and a note says so.
    """
    features: dict[str, str | Feature] = {name: name for name in bench.features}
    if bench.background is None:
        raise UsageError("semi-informed needs speech of background speakers: give --background")
    check_background(bench.background)
    try:
        return {**features, "voice": _picked(bench, bench.background, method)}
    except CorpusError as error:
        bench.notes.append(f"{method}: semi-informed uses the shipped voice network: {error}")
        return {**features, "voice": "voice"}


def _picked(bench: AttackContext, background: Background, method: str) -> Feature:
    """Of the networks that it has the one that tells most of background speakers."""
    held, training = apart(background)
    assert held is not None
    network, problems = adapted(
        training,
        ProtectStretch(method, bench.attacker_seed),
        [method, bench.attacker_seed, program_of(method)],
        ResultCache(bench.folder / NETWORKS),
        bench.training,
        bench.draws,
        bench.fine_tuning,
        progress=_RunReporter(bench, method),
        jobs=bench.hearing.jobs,
    )
    found: dict[str, Feature] = {
        "shipped": Voice(),
        "adapted": Voice(network, "voice_adapted"),
        _BOTH: Voice(BothNetworks(shipped(), network), "voice_both"),
    }
    bits, apartness = _told(bench, method, held, found)
    picked = max(bits, key=lambda name: (round(bits[name], 2), round(apartness[name], 2)))
    said = ", ".join(f"{name} {each:.2f}" for name, each in bits.items())
    networks = "networks" if picked == _BOTH else "network"
    bench.notes.append(
        f"{method}: semi-informed uses the {picked} voice {networks}: MeanD of "
        f"{len(held)} background speakers, in bits: {said}"
    )
    for problem in problems:
        bench.notes.append(f"{method}: not trained on: {problem}")
    if picked != "shipped":
        clear = (  # one by one: the shipped network's are the same for every method
            _told(bench, CLEAR, held, {name: found[name]})[0][name] for name in (picked, "shipped")
        )
        bench.clear_bits[method] = next(clear), next(clear)
    return found[picked]


def _told(
    bench: AttackContext, method: str, held: Readers, candidates: Mapping[str, Feature]
) -> tuple[dict[str, float], dict[str, float]]:
    """What each candidate discloses of background speakers, who trained none.

    Returns:
        MeanD in bits; and, since of few readers all of them may be told, by how many standard
        deviations the own score lies above the best of the others, in the mean.
    """
    trial, attacker = replace(bench, judged=held), attacker_named("semi-informed")
    heard = {_BOTH: candidates[_BOTH]} if _BOTH in candidates else candidates
    specs = {each.spec.name: each.spec for each in heard.values()}
    features = tuple(heard.values())
    enrolled, trials = heard_speech(
        trial,
        specs,
        bench.own(held.pieces("enrolment"), attacker, method, features),
        bench.own(held.pieces("trials"), attacker, method, features),
    )
    bits, apartness = {}, {}
    rows = np.arange(len(trials.target))
    for name, each in candidates.items():
        part = _columns(name, candidates)
        spec = next(iter(specs.values())) if len(heard) < len(candidates) else each.spec
        made = scores(
            each.spec.kind.similarity(),
            [of[:, part] for of in enrolled.totals[spec.name]],
            trials.totals[spec.name][:, part],
            bench.amounts.least_segments,
        )
        found = ScoreMatrix(made, trials.target, enrolled.names, name, trials.names)
        report = evaluate(found, replicates=_REPLICATES, seed=bench.seed)
        bits[name] = report.figures[BITS].value or 0.0
        others = made.copy()
        others[rows, trials.target] = -np.inf
        ahead = made[rows, trials.target] - others.max(axis=1)
        spread = np.ma.masked_invalid(others).std(axis=1).filled(0.0)
        apartness[name] = float(np.mean(ahead / np.maximum(spread, _LEAST_SPREAD)))
    return bits, apartness


def _columns(name: str, candidates: Mapping[str, Feature]) -> slice:
    """Where a candidate's numbers lie: in those of both networks, side by side, where it is heard.

    `BothNetworks` scales them, which no cosine sees.
    """
    if _BOTH not in candidates or name == _BOTH:
        return slice(None)
    first = candidates["shipped"].spec.size
    return slice(first) if name == "shipped" else slice(first, None)


class BothNetworks:
    """Embeddings of two networks side by side: their cosine is the mean of the networks' cosines.

    Attributes:
        size: numbers in an embedding.
        sha256: marks what both together make.
    """

    def __init__(self, one: VoiceNetwork, other: VoiceNetwork) -> None:
        self._networks = one, other
        self.size = one.size + other.size
        self.sha256 = hashlib.sha256(f"{one.sha256} {other.sha256}".encode()).hexdigest()

    def embed(self, windows: FloatArray) -> FloatArray:
        """Embed windows of one length, shape (b, n): shape (b, size)."""
        both = [network.embed(windows) for network in self._networks]
        return np.concatenate(both, axis=1) / np.float32(np.sqrt(2))


class _RunReporter:
    """Says how far an adaptation is, with the time left, now and then."""

    def __init__(self, bench: AttackContext, method: str) -> None:
        self._bench, self._method = bench, method
        self._what, self._began, self._last, self._from = "", 0.0, 0.0, 0.0

    def __call__(self, what: str, done: float) -> None:
        now = time.monotonic()
        if what != self._what:
            self._what, self._began, self._last, self._from = what, now, now, done
        if now - self._last < _TELL_SECONDS or done <= self._from:
            return
        self._last = now
        left = (now - self._began) * (1 - done) / (done - self._from)
        self._bench.told(
            f"{self._method}, semi-informed: {what}, {done:.0%}, about {clock_time(left)} left"
        )
