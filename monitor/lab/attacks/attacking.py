"""One attacker against one method: scores, weights, utility."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from monitor.errors import CalibrationError, StoreError
from monitor.features.registry import make
from monitor.kinds import FeatureSpec
from monitor.lab.attacks.attackers import ATTACKERS
from monitor.lab.attacks.context import (
    AttackContext,
    ThreatModel,
    collect_speech,
    join_speech,
    score_trials,
)
from monitor.lab.attacks.extraction import CLEAR
from monitor.lab.attacks.results import FIGURES, AttackRow, method_name
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import EvaluationSettings
from monitor.lab.scoring import JointScores, largest, select_similarities
from monitor.maths.statistics import REPLICATES
from monitor.population.population import Population
from monitor.population.rank_model import RankModels
from monitor.protocols import Feature
from monitor.training.calibrating import FEWEST_SPEAKERS, CalibrationSettings, calibrate
from monitor.training.voices import SpeakerSpeech
from monitor.types import BoolArray, FloatArray

# ---------------------------------------------------------------------------------------- weighing


def choose_weighting(
    context: AttackContext,
    attacker: ThreatModel,
    method: str,
    features_by_name: Mapping[str, str | Feature],
    specs: Mapping[str, FeatureSpec],
) -> tuple[JointScores | None, str]:
    """Return the joint scorer of an attacker and its rank model's origin; or None and why."""
    if len(specs) < 2:
        return None, ""
    reason = "there is no background"
    if context.background is not None:
        voices = _collect_background(context, attacker, method, features_by_name, specs)
        if len(voices) >= FEWEST_SPEAKERS:
            try:
                rank_models = calibrate(
                    voices,
                    specs,
                    CalibrationSettings(
                        lengths=[context.amounts.seconds],
                        template_lengths=[context.amounts.template_seconds],
                        replicates=2,  # limits come from the judged readers
                        seed=context.seed,
                        prior=None,  # the shipped rank models know of no protection
                        cohort=None,
                    ),
                ).rank_models
            except CalibrationError as error:
                reason = str(error)
            else:
                condition = method_name(method) if attacker.protects else "clear"
                origin = f"learnt on {len(voices)} background speakers, {condition} speech"
                return _make_joint(context, rank_models, specs, origin)
        else:
            reason = f"{len(voices)} readers of the background say enough; a rank model needs ten"
    shipped = Population.reference().rank_models
    return _make_joint(context, shipped, specs, f"shipped, of clear speech: {reason}")


def _make_joint(
    context: AttackContext, rank_models: RankModels, specs: Mapping[str, FeatureSpec], origin: str
) -> tuple[JointScores | None, str]:
    modelled = {name: specs[name] for name in largest(rank_models, specs)}
    if len(modelled) < 2:
        return None, f"there is no rank model for any two of {', '.join(specs)}"
    if len(modelled) < len(specs):
        origin = f"{origin}; of {', '.join(modelled)}, since it knows no more"
    similarities = select_similarities(modelled, "average")
    try:
        joint = JointScores(
            rank_models, modelled, similarities, "cross", context.amounts.template_seconds
        )
    except StoreError as error:
        return None, str(error)
    return joint, origin


def _collect_background(
    context: AttackContext,
    attacker: ThreatModel,
    method: str,
    features_by_name: Mapping[str, str | Feature],
    specs: Mapping[str, FeatureSpec],
) -> list[SpeakerSpeech]:
    """Extract background readers: enrolment and trials as two sessions, protected apart."""
    readers = context.get_calibration_readers(attacker)
    if readers is None:
        return []
    pieces = [*readers.pieces("enrolment"), *readers.pieces("trials")]
    extracted = context.extract_own(pieces, attacker, method, tuple(features_by_name.values()))
    voices = []
    for reader in readers.everybody:
        enrolled = join_speech(
            [p for session in reader.enrolment for p in session], extracted, specs
        )
        trials = join_speech(reader.trials, extracted, specs)
        if enrolled is not None and trials is not None:
            voices.append(SpeakerSpeech(reader.name, (enrolled, trials)))
    return voices


# --------------------------------------------------------------------------------------- attacking


def select_attackers(attackers: Sequence[ThreatModel], method: str) -> list[ThreatModel]:
    """Return the attackers who differ on a method: on clear speech knowledge is no help."""
    if method != CLEAR:
        return list(attackers)
    equals = [attacker for attacker in attackers if attacker.features is None]
    others = [
        attacker for attacker in attackers if attacker.features is not None and not attacker.trains
    ]
    return [*equals[:1], *others] or [ATTACKERS["ignorant"]]


def attack_method(
    context: AttackContext,
    method: str,
    attacker: ThreatModel,
    counts: Sequence[int],
    *,
    replicates: int = REPLICATES,
) -> Iterator[AttackRow]:
    """Attack one method: rows by feature, enrolled segments and scoring.

    Args:
        context: what attackers work with.
        method: of protection.
        attacker: who.
        counts: L, segments of a template, beside those that everybody has. Where nobody has so
            many, no row is made.
        replicates: resamples of readers behind the limits.

    Raises:
        CorpusError: fewer than two readers are left under this method.
    """
    features_by_name = context.get_features(attacker, method)
    features = tuple(features_by_name.values())
    specs = {feature.spec.name: feature.spec for feature in make(features, context.extractor.setup)}
    names = dict(zip(specs, features_by_name, strict=True))
    enrolled, trials = collect_speech(
        context,
        specs,
        context.extract_enrolment(attacker, method, features),
        context.extract_trials(method, features),
    )

    def measure(
        feature: str, scores: FloatArray, count: int, scoring: str, silent: BoolArray,
        rank_model: str = "",
    ) -> AttackRow:  # fmt: skip
        matrix = ScoreMatrix(scores, trials.target, enrolled.names, feature, trials.names)
        report = evaluate(matrix, settings=EvaluationSettings(replicates, context.seed))
        figures = {key: report.figures[key] for key in FIGURES if key in report.figures}
        complete = sum(segments >= count for segments in enrolled.counts)
        return AttackRow(
            method, attacker.name, feature, count, scoring, figures, matrix.population,
            matrix.trials, complete, int(silent.sum()), rank_model,
        )  # fmt: skip

    main = context.amounts.least_segments
    for count in sorted({main, *counts}):
        if count > max(enrolled.counts):
            continue
        for scoring in ("average", "max") if count > 1 else ("average",):
            similarities = select_similarities(specs, scoring)
            scores_by_feature = {
                name: score_trials(similarity, enrolled.totals[name], trials.totals[name], count)
                for name, similarity in similarities.items()
            }
            for name, scores in scores_by_feature.items():
                yield measure(names[name], scores, count, scoring, ~trials.has_frames[name])
            if count == main and scoring == "average":
                joint, origin = choose_weighting(context, attacker, method, features_by_name, specs)
                if joint is not None:
                    scores = joint.add(
                        scores_by_feature, trials.has_frames, context.amounts.seconds
                    )
                    silent = ~np.any([trials.has_frames[name] for name in joint.features], 0)
                    yield measure("joint", scores, count, scoring, silent, origin)
