"""The prior of a calibration: the shipped law, which was learnt on other speakers.

Source: docs/method.md section 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from monitor.kinds import FeatureSpec, comparable_features
from monitor.maths.scores import Similarity
from monitor.population.cohort import Cohort
from monitor.population.interpolation import LengthLaw, at_template
from monitor.population.law import RankLaw
from monitor.population.population import Population
from monitor.training.shrinking import KnownLaw
from monitor.types import FloatArray

__all__ = ["Prior"]


class Prior:
    """What a population's laws say of the cells of a calibration.

    Args:
        population: whose laws; the shipped one.
        specs: of the features that are calibrated.
        scorers: their similarities.
        replicates: resamples to give of each cell.
        cohort: what scores are set against; another one's likelihood ratios say nothing here.
    """

    def __init__(
        self,
        population: Population,
        specs: Mapping[str, FeatureSpec],
        scorers: Mapping[str, Similarity],
        replicates: int,
        cohort: Cohort | None = None,
    ) -> None:
        self._cohort = cohort
        self._laws, self._scorers, self._replicates = population.laws, scorers, replicates
        self._alike = comparable_features(specs, population.specs)
        self._made: dict[tuple[tuple[str, ...], str, float], LengthLaw] = {}

    def has(self, features: Sequence[str], session: str) -> bool:
        """Whether there is a law of these very features, scored alike."""
        law = self._laws.find(tuple(features), session)
        mine = {name: self._scorers[name].name for name in features}
        return (
            law is not None
            and self._alike.issuperset(features)
            and dict(zip(law.features, law.similarities, strict=True)) == mine
        )

    def at(
        self, features: tuple[str, ...], session: str, test: float, template: float, candidates: int
    ) -> KnownLaw | None:
        """What it says of one cell, T and D in speech seconds; None where it has no such law."""
        if not self.has(features, session):
            return None
        law = self._laws.find(features, session)
        assert law is not None
        place = features, session, template
        if place not in self._made:
            additive = np.array([self._scorers[name].additive for name in law.features])
            self._made[place] = at_template(law, template, additive)
        point = self._made[place].at(test)
        resamples = law.alpha.shape[0] - 1
        rows = np.append(0, 1 + np.arange(self._replicates) % resamples)
        order = [law.features.index(name) for name in features]
        return KnownLaw(
            point.pmf(candidates, rows, floor=False),
            point.weights[rows][:, order],
            point.floor[rows],
            evidence=self._evidence(law, order, test, template),
        )

    def _evidence(
        self, law: RankLaw, order: Sequence[int], test: float, template: float
    ) -> FloatArray | None:
        """Its likelihood ratios at one cell, features in that order."""
        known, cohort = law.evidence, self._cohort
        if known is None or cohort is None:
            return None
        marks = {n: cohort.mark(n) for n in law.features if n in cohort.features}
        if tuple(marks.get(name) for name in law.features) != known.cohort:
            return None
        point = known.at_template(template).at(np.array([test]))
        rows = np.append(0, 1 + np.arange(self._replicates) % (known.intercept.shape[0] - 1))
        slopes = point.slopes[0][rows][:, list(order)]
        return np.column_stack([point.intercept[0, rows], slopes])
