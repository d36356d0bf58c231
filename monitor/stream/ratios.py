"""Likelihood ratios of all enrolled speakers along a stream (docs/method.md section 10)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from monitor.features.registry import takes
from monitor.maths.evidence import held_to, levelled, log2_ratios
from monitor.maths.quantiles import limits_of_each
from monitor.population.evidence import EvidencePoint
from monitor.population.law import Laws, RankLaw
from monitor.population.normalising import CohortScoring, normalised
from monitor.population.population import Population, Scoring
from monitor.stream.reading import Bits
from monitor.types import AnyArray, BoolArray, FloatArray

__all__ = ["RatioBits", "Ratios", "evidence_law_of", "ratios_lack"]


@dataclass(frozen=True, slots=True)
class RatioBits:
    """What R moments of a stream say about everybody enrolled.

    Attributes:
        bits: log2 of the likelihood ratios, shape (R, N): all of a moment lowered alike until the
            mean of all but the best is at most 1, and the best at most ``support``, so that odds
            among the enrolled are as the scores have them.
        watched: evidence bits of the watched speaker, held to the support; None where nobody is.
        support: the most bits that the calibration can support, shape (R,).
        at_least: where the figure was cut to the support: the watched speaker's, or the best
            candidate's where nobody is watched; shape (R,).
        area: how well ``enrolled_share`` told strangers from enrolled speakers in calibration: area
            under the ROC curve, shape (R,).
    """

    bits: FloatArray
    watched: list[Bits | None]
    support: FloatArray
    at_least: BoolArray
    area: FloatArray


def ratios_lack(population: Population, law: RankLaw) -> str:
    """Why a population and a law give no likelihood ratios, and what helps; empty where they do."""
    about, cohort = "+".join(law.features), population.cohort
    if law.evidence is None:
        return f"the law of {about} was learnt without evidence; calibrate again"
    if cohort is None:
        return (
            "the population has no cohort of background speakers to set scores against; "
            "calibrate again"
        )
    for name, mark in zip(law.features, law.evidence.cohort, strict=True):
        if name not in cohort.features:
            return f"the cohort has nothing of {name}; calibrate against one that has (--cohort)"
        if cohort.mark(name) != mark:
            return (
                f"the law of {about} was learnt against another cohort than the population's; "
                "calibrate again"
            )
    return ""


def evidence_law_of(population: Population, laws: Laws, law: RankLaw) -> RankLaw | None:
    """The law whose likelihood ratios are told where another one weighs the rest.

    Mostly the same one. Where it has none, that of its features that are not made of words: the
    ratios of a voice are not given up for a transcript of it.

    Args:
        population: whose cohort scores are set against.
        laws: where to look.
        law: what weighs all features.

    Returns:
        None where nothing tells any.
    """
    if not ratios_lack(population, law):
        return law
    heard = tuple(name for name in law.features if takes(name) != "words")
    other = laws.find(heard, law.session)
    if other is None or other.features == law.features or ratios_lack(population, other):
        return None
    scored = dict(zip(law.features, law.similarities, strict=True))
    alike = all(
        scored[name] == similarity and law.network(name) == other.network(name)
        for name, similarity in zip(other.features, other.similarities, strict=True)
    )
    return other if alike else None


class Ratios:
    """Turns scores into likelihood ratios, by one more product with the cohort.

    Args:
        population: whose cohort scores are set against.
        law: with an evidence law; ask ``ratios_lack`` first.
        scoring: the templates' common length.
        watched: place of the watched speaker among the scoring's members, or None.
    """

    def __init__(
        self, population: Population, law: RankLaw, scoring: Scoring, watched: int | None
    ) -> None:
        cohort = population.cohort
        assert cohort is not None, ratios_lack(population, law)
        assert law.evidence is not None, ratios_lack(population, law)
        self.features = law.features
        self.law = law.evidence.at_template(scoring.seconds)
        self._watched = watched
        self._against = {
            name: CohortScoring(cohort, name, scorer)
            for name, scorer in population.scorers(law).items()
        }

    def at(
        self, seconds: FloatArray, totals: Mapping[str, AnyArray], scores: FloatArray
    ) -> RatioBits:
        """What R moments say; a moment does not depend on the others.

        Args:
            seconds: T, speech seconds, shape (R,).
            totals: of each feature's sketch, shape (R, M); every feature has a frame.
            scores: raw, in the law's order of features, shape (R, F, N).
        """
        levels = [self._against[name].levels(totals[name]) for name in self.features]
        mean, spread = (np.stack(each, axis=1) for each in zip(*levels, strict=True))
        point = self.law.at(seconds)
        # a + sum_f b_f (s_fj - mean_f) / spread_f, in one product over the candidates
        scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
        slopes = point.slopes[:, 0] * scale
        level = point.intercept[:, 0] - (slopes * mean).sum(axis=1)
        full = log2_ratios(scores, level, slopes)
        raw = levelled(full)
        watched: list[Bits | None] = [None] * len(seconds)
        best = raw.max(axis=1)
        if self._watched is not None:
            best = raw[:, self._watched]
            own = normalised(scores[..., self._watched, None], mean, spread)
            lowered = full[:, self._watched] - best
            watched = self._limits(point, best, own, lowered)
        return RatioBits(
            held_to(raw, point.support),
            watched,
            point.support,
            np.asarray(best > point.support),
            point.area,
        )

    @staticmethod
    def _limits(
        point: EvidencePoint, value: FloatArray, z: FloatArray, lowered: FloatArray
    ) -> list[Bits | None]:
        """Of the watched speaker alone, under every resample; z has shape (R, F, 1)."""
        replicates = (point.intercept[:, 1:] + (point.slopes[:, 1:] @ z)[..., 0]) / np.log(2.0)
        both = limits_of_each(replicates) - lowered[:, None]  # others have none
        both = np.minimum(both, point.support[:, None])
        values = np.minimum(value, point.support)
        # the law itself need not lie within the percentiles of its resamples
        low, high = np.minimum(both[:, 0], values), np.maximum(both[:, 1], values)
        return [Bits(*each) for each in np.column_stack([values, low, high]).tolist()]
