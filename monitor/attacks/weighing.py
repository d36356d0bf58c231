"""What weighs the features for a joint score: a law learnt on speech as the attacker has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from monitor.attacks.attackers import ThreatModel
from monitor.attacks.bench import Bench
from monitor.attacks.templates import speech
from monitor.attacks.wording import method_name
from monitor.errors import CalibrationError, StoreError
from monitor.kinds import FeatureSpec
from monitor.population.law import Laws
from monitor.population.population import Population
from monitor.protocols import Feature
from monitor.training.calibrating import FEWEST_SPEAKERS, calibrate
from monitor.training.joint import JointScores
from monitor.training.score_grid import scored_by
from monitor.training.scoring import largest
from monitor.training.voices import SpeakerSpeech

__all__ = ["Weighing", "weighing"]


@dataclass(frozen=True, slots=True)
class Weighing:
    """What weighs features together.

    Attributes:
        joint: adds scores up; None where there is no law of these features.
        law: where it comes from, in words; without it, why there is none.
    """

    joint: JointScores | None
    law: str


def weighing(
    bench: Bench,
    attacker: ThreatModel,
    method: str,
    heard_with: Mapping[str, str | Feature],
    specs: Mapping[str, FeatureSpec],
) -> Weighing:
    """The law of an attacker: learnt on the background, or the shipped readers' of clear speech.

    Args:
        bench: with or without a background.
        attacker: whose; it says whether the background is protected by the method.
        method: of protection.
        heard_with: what it hears with, by the name under which it is shown.
        specs: of these features, by the feature's own name.
    """
    if len(specs) < 2:
        return Weighing(None, "")
    why = "there is no background"
    if bench.background is not None:
        voices = _background(bench, attacker, method, heard_with, specs)
        if len(voices) >= FEWEST_SPEAKERS:
            try:
                laws = _learnt(bench, voices, specs)
            except CalibrationError as error:
                why = str(error)
            else:
                how = method_name(method) if attacker.protects else "clear"
                said = f"learnt on {len(voices)} readers apart, {how} speech"
                return _found(bench, laws, specs, said)
        else:
            why = f"{len(voices)} readers of the background say enough; a law needs ten"
    return _found(bench, Population.reference().laws, specs, f"shipped, of clear speech: {why}")


def _found(bench: Bench, laws: Laws, specs: Mapping[str, FeatureSpec], said: str) -> Weighing:
    known = {name: specs[name] for name in largest(laws, specs)}
    if len(known) < 2:
        return Weighing(None, f"there is no law for any two of {', '.join(specs)}")
    if len(known) < len(specs):
        said = f"{said}; of {', '.join(known)}, since it knows no more"
    ways = scored_by(known, "average")
    try:
        joint = JointScores(laws, known, ways, "cross", bench.amounts.template_seconds)
    except StoreError as error:
        return Weighing(None, str(error))
    return Weighing(joint, said)


def _background(
    bench: Bench,
    attacker: ThreatModel,
    method: str,
    heard_with: Mapping[str, str | Feature],
    specs: Mapping[str, FeatureSpec],
) -> list[SpeakerSpeech]:
    """Readers apart, enrolment and trials as two sessions, each protected by itself."""
    readers = bench.learns_from(attacker)
    if readers is None:
        return []
    pieces = [*readers.pieces("enrolment"), *readers.pieces("trials")]
    heard = bench.own(pieces, attacker, method, tuple(heard_with.values()))
    voices = []
    for reader in readers.everybody:
        enrolled = speech([p for each in reader.enrolment for p in each], heard, specs)
        tried = speech(reader.trials, heard, specs)
        if enrolled is not None and tried is not None:
            voices.append(SpeakerSpeech(reader.name, (enrolled, tried)))
    return voices


def _learnt(bench: Bench, voices: list[SpeakerSpeech], specs: Mapping[str, FeatureSpec]) -> Laws:
    amounts = bench.amounts
    return calibrate(
        voices,
        specs,
        lengths=[amounts.seconds],
        template_lengths=[amounts.template_seconds],
        replicates=2,  # limits come from the judged readers
        seed=bench.seed,
        prior=None,  # the shipped laws know of no protection
        cohort=None,
    ).laws
