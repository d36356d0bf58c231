"""Tries every attacker on every method of protection, and says what each learns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from monitor.attacks.attackers import ATTACKERS, ThreatModel
from monitor.attacks.bench import Bench
from monitor.attacks.heard import HeardPiece
from monitor.attacks.hearing import CLEAR
from monitor.attacks.readers import Piece
from monitor.attacks.results import FIGURES, AttackRow
from monitor.attacks.templates import ProtectedTrials, Segments, scores, segments_of, trials_of
from monitor.attacks.weighing import weighing
from monitor.errors import CorpusError
from monitor.evaluation.evaluating import evaluate
from monitor.evaluation.figure import Figure
from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.features.registry import make
from monitor.kinds import FeatureSpec
from monitor.maths.bootstrap import REPLICATES
from monitor.protocols import Feature
from monitor.training.score_grid import scored_by
from monitor.types import FloatArray

__all__ = ["attack", "heard_speech", "worth_trying"]


def worth_trying(attackers: Sequence[ThreatModel], method: str) -> list[ThreatModel]:
    """The attackers who differ on a method: where nothing is protected, knowing it is no help."""
    if method != CLEAR:
        return list(attackers)
    alike = [each for each in attackers if each.features is None]
    others = [each for each in attackers if each.features is not None and not each.trains]
    return [*alike[:1], *others] or [ATTACKERS["ignorant"]]


def attack(
    bench: Bench,
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
    heard_with: Mapping[str, str | Feature] = dict(zip(bench.features, bench.features, strict=True))
    if attacker.features is not None:
        heard_with = attacker.features(bench, method)
    made = make(heard_with.values())
    shown = dict(zip((each.spec.name for each in made), heard_with, strict=True))
    specs = {each.spec.name: each.spec for each in made}
    features = tuple(heard_with.values())
    enrolled, trials = heard_speech(
        bench, specs, bench.enrolment(attacker, method, features), bench.trials(method, features)
    )

    def row(
        feature: str, found: FloatArray, count: int, scoring: str, unheard: int, law: str = ""
    ) -> AttackRow:
        matrix = ScoreMatrix(found, trials.target, enrolled.names, feature, trials.names)
        return AttackRow(
            method,
            attacker.name,
            feature,
            count,
            scoring,
            _figures(matrix, replicates, bench.seed),
            matrix.population,
            matrix.trials,
            enrolled.with_all(count),
            unheard,
            law,
        )

    main = bench.amounts.least_segments
    for count in sorted({main, *counts}):
        if count > enrolled.most():
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
                weighed = weighing(bench, attacker, method, heard_with, specs)
                if weighed.joint is not None:
                    found = weighed.joint.add(made_scores, trials.heard, bench.amounts.seconds)
                    silent = ~np.any([trials.heard[name] for name in weighed.joint.features], 0)
                    yield row("joint", found, count, scoring, int(silent.sum()), weighed.law)


def heard_speech(
    bench: Bench,
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


def _figures(matrix: ScoreMatrix, replicates: int, seed: int) -> dict[str, Figure]:
    report = evaluate(matrix, replicates=replicates, seed=seed)
    return {key: report.figures[key] for key in FIGURES if key in report.figures}
