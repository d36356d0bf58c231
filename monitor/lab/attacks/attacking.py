"""One attacker against one method: scores, weights, utility."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from hashlib import blake2b
from typing import Any

import numpy as np

from monitor.errors import CalibrationError, CorpusError, StoreError
from monitor.features.registry import make
from monitor.kinds import FeatureSpec
from monitor.lab.attacks.attackers import (
    ATTACKERS,
    CLEAR,
    AttackContext,
    HeardPiece,
    Measure,
    Piece,
    ProtectedTrials,
    Segments,
    ThreatModel,
    scores,
    segments_of,
    speech,
    trials_of,
)
from monitor.lab.attacks.results import FIGURES, AttackRow, method_name
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import Figure
from monitor.lab.evaluation.scores.comparisons import ScoreMatrix
from monitor.lab.result_cache import code_mark
from monitor.lab.scoring import JointScores, largest, scored_by
from monitor.lab.utility import Understood, Utility, compare, figures, understand
from monitor.maths.statistics import REPLICATES
from monitor.population.population import Population
from monitor.population.rank_model import RankModels
from monitor.protocols import Feature
from monitor.training.calibrating import FEWEST_SPEAKERS, CalibrationSettings, calibrate
from monitor.training.voices import SpeakerSpeech
from monitor.types import FloatArray

# ---------------------------------------------------------------------------------------- weighing


def weighing(
    bench: AttackContext,
    attacker: ThreatModel,
    method: str,
    heard_with: Mapping[str, str | Feature],
    specs: Mapping[str, FeatureSpec],
) -> tuple[JointScores | None, str]:
    """What adds an attacker's scores up, and where its rank model is from; None, and why not."""
    if len(specs) < 2:
        return None, ""
    why = "there is no background"
    if bench.background is not None:
        voices = _background(bench, attacker, method, heard_with, specs)
        if len(voices) >= FEWEST_SPEAKERS:
            try:
                rank_models = calibrate(
                    voices,
                    specs,
                    CalibrationSettings(
                        lengths=[bench.amounts.seconds],
                        template_lengths=[bench.amounts.template_seconds],
                        replicates=2,  # limits come from the judged readers
                        seed=bench.seed,
                        prior=None,  # the shipped rank models know of no protection
                        cohort=None,
                    ),
                ).rank_models
            except CalibrationError as error:
                why = str(error)
            else:
                how = method_name(method) if attacker.protects else "clear"
                said = f"learnt on {len(voices)} background speakers, {how} speech"
                return _found(bench, rank_models, specs, said)
        else:
            why = f"{len(voices)} readers of the background say enough; a rank model needs ten"
    shipped = Population.reference().rank_models
    return _found(bench, shipped, specs, f"shipped, of clear speech: {why}")


def _found(
    bench: AttackContext, rank_models: RankModels, specs: Mapping[str, FeatureSpec], said: str
) -> tuple[JointScores | None, str]:
    known = {name: specs[name] for name in largest(rank_models, specs)}
    if len(known) < 2:
        return None, f"there is no rank model for any two of {', '.join(specs)}"
    if len(known) < len(specs):
        said = f"{said}; of {', '.join(known)}, since it knows no more"
    ways = scored_by(known, "average")
    try:
        joint = JointScores(rank_models, known, ways, "cross", bench.amounts.template_seconds)
    except StoreError as error:
        return None, str(error)
    return joint, said


def _background(
    bench: AttackContext,
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


_MOST_UNDERSTOOD = 256
_UNDERSTOOD: dict[tuple[bytes, int], Understood] = {}
"""The last pieces by a hash of their samples: every method is compared with the same clear ones."""


def _understood(samples: FloatArray, rate: int) -> Understood:
    place = blake2b(np.ascontiguousarray(samples).tobytes(), digest_size=16).digest(), rate
    if place not in _UNDERSTOOD:
        if len(_UNDERSTOOD) >= _MOST_UNDERSTOOD:
            del _UNDERSTOOD[next(iter(_UNDERSTOOD))]
        _UNDERSTOOD[place] = understand(samples, rate)
    return _UNDERSTOOD[place]


class Usefulness(Measure):
    """The measure of utility (`monitor.lab.utility`): phone error, pitch, loudness, length.

    Example:
        >>> import numpy as np
        >>> noted = Usefulness().measure(np.ones(800), np.ones(1600) / 10, 8000)
        >>> round(noted["louder_db"], 3), noted["longer"]
        (-20.0, 2.0)
    """

    name = "utility"

    def __init__(self) -> None:
        self.version = code_mark("monitor.lab.utility")

    def measure(self, clear: FloatArray, protected: FloatArray, rate: int) -> Mapping[str, Any]:
        """What one protected piece keeps."""
        return asdict(compare(_understood(clear, rate), _understood(protected, rate)))

    def figures(self, noted: Mapping[str, Sequence[Mapping[str, Any]]]) -> Sequence[Figure]:
        """What all pieces keep, with limits over readers."""
        each = [(who, Utility(**one)) for who, pieces in noted.items() for one in pieces]
        if not each:
            return ()
        return figures([one for _, one in each], [who for who, _ in each])


# --------------------------------------------------------------------------------------- attacking


def worth_trying(attackers: Sequence[ThreatModel], method: str) -> list[ThreatModel]:
    """The attackers who differ on a method: where nothing is protected, knowing it is no help."""
    if method != CLEAR:
        return list(attackers)
    alike = [each for each in attackers if each.features is None]
    others = [each for each in attackers if each.features is not None and not each.trains]
    return [*alike[:1], *others] or [ATTACKERS["ignorant"]]


def attack(
    bench: AttackContext,
    method: str,
    attacker: ThreatModel,
    counts: Sequence[int],
    *,
    replicates: int = REPLICATES,
) -> Iterator[AttackRow]:
    """What one attacker learns of one method, by feature, enrolled segments and scoring.

    Args:
        bench: what attackers work with.
        method: of protection.
        attacker: who.
        counts: L, segments of a template, beside those that everybody has. Where nobody has so
            many, no row is made.
        replicates: resamples of readers behind the limits.

    Raises:
        CorpusError: fewer than two readers are left under this method.
    """
    heard_with = bench.heard_with(attacker, method)
    made = make(heard_with.values(), bench.hearing.setup)
    shown = dict(zip((each.spec.name for each in made), heard_with, strict=True))
    specs = {each.spec.name: each.spec for each in made}
    features = tuple(heard_with.values())
    enrolled, trials = heard_speech(
        bench, specs, bench.enrolment(attacker, method, features), bench.trials(method, features)
    )

    def row(
        feature: str,
        found: FloatArray,
        count: int,
        scoring: str,
        silent: int,
        rank_model: str = "",
    ) -> AttackRow:
        matrix = ScoreMatrix(found, trials.target, enrolled.names, feature, trials.names)
        report = evaluate(matrix, replicates=replicates, seed=bench.seed)
        return AttackRow(
            method,
            attacker.name,
            feature,
            count,
            scoring,
            {key: report.figures[key] for key in FIGURES if key in report.figures},
            matrix.population,
            matrix.trials,
            sum(each >= count for each in enrolled.counts),
            silent,
            rank_model,
        )

    main = bench.amounts.least_segments
    for count in sorted({main, *counts}):
        if count > max(enrolled.counts):
            continue
        for scoring in ("average", "max") if count > 1 else ("average",):
            ways = scored_by(specs, scoring)
            made_scores = {
                name: scores(way, enrolled.totals[name], trials.totals[name], count)
                for name, way in ways.items()
            }
            for name, found in made_scores.items():
                yield row(shown[name], found, count, scoring, int((~trials.heard[name]).sum()))
            if count == main and scoring == "average":
                joint, origin = weighing(bench, attacker, method, heard_with, specs)
                if joint is not None:
                    found = joint.add(made_scores, trials.heard, bench.amounts.seconds)
                    silent = ~np.any([trials.heard[name] for name in joint.features], 0)
                    yield row("joint", found, count, scoring, int(silent.sum()), origin)


def heard_speech(
    bench: AttackContext,
    specs: Mapping[str, FeatureSpec],
    enrolment: Mapping[Piece, HeardPiece],
    published: Mapping[Piece, HeardPiece],
) -> tuple[Segments, ProtectedTrials]:
    """Segments and trials of the readers of whom everything could be heard."""
    names: list[str] = []
    segments: list[Mapping[str, FloatArray]] = []
    trials: list[Mapping[str, FloatArray]] = []
    for reader in bench.judged.everybody:
        enrolled = segments_of(reader, enrolment, specs)
        tried = trials_of(reader, published, specs, bench.amounts)
        if enrolled is not None and tried is not None:
            names.append(reader.name)
            segments.append(enrolled)
            trials.append(tried)
    if len(names) < 2:
        raise CorpusError(
            f"only {len(names)} of {len(bench.judged)} readers could be protected and heard"
        )
    sizes = [len(next(iter(each.values()))) for each in trials]
    totals = {name: np.concatenate([each[name] for each in trials]) for name in specs}
    return (
        Segments(tuple(names), {name: tuple(each[name] for each in segments) for name in specs}),
        ProtectedTrials(
            totals,
            {name: np.any(each, axis=1) for name, each in totals.items()},
            np.repeat(np.arange(len(names)), sizes),
            tuple(
                f"{n} {i + 1}" for n, size in zip(names, sizes, strict=True) for i in range(size)
            ),
        ),
    )
