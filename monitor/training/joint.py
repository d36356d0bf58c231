"""The joint score of several features: their sum, as rank laws weigh them at T and D."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from monitor.errors import StoreError
from monitor.kinds import FeatureSpec
from monitor.maths.posterior import weighted_evidence
from monitor.maths.scores import Similarity
from monitor.population.interpolation import LengthLaw, at_template
from monitor.population.law import Laws, RankLaw
from monitor.stream.choosing import choose_law, rows_by_features
from monitor.types import BoolArray, FloatArray

__all__ = ["JointScores"]


class JointScores:
    """Adds scores of features up as `Monitor` does, so that both rank alike.

    Args:
        laws: with one of these features together.
        specs: of the features.
        similarities: by which each is scored.
        session: ``"cross"`` or ``"same"``.
        template_seconds: D.

    Raises:
        StoreError: there is no law of them, or it was learnt with other similarities or networks.

    Attributes:
        features: that are added up, in order.
    """

    def __init__(
        self,
        laws: Laws,
        specs: Mapping[str, FeatureSpec],
        similarities: Mapping[str, Similarity],
        session: str,
        template_seconds: float,
    ) -> None:
        law, session, _ = choose_law(laws, tuple(specs), session)

        def fits(other: RankLaw) -> bool:
            pairs = zip(other.features, other.similarities, strict=True)
            return set(other.features) <= specs.keys() and all(
                similarities[name].name == scorer and specs[name].network == other.network(name)
                for name, scorer in pairs
            )

        def at_length(other: RankLaw) -> tuple[tuple[str, ...], LengthLaw]:
            additive = np.array([similarities[name].additive for name in other.features])
            return other.features, at_template(other, template_seconds, additive)

        if not fits(law):
            raise StoreError(
                f"the law of {'+'.join(law.features)} was learnt with other similarities or "
                "networks; learn one with: monitor calibrate CORPUS -o law.npz"
            )
        self.features = law.features
        self._whole = at_length(law)
        self._of = {
            frozenset(other.features): at_length(other)
            for other in laws
            if other.session == session and fits(other)
        }

    def add(
        self, scores: Mapping[str, FloatArray], heard: Mapping[str, BoolArray], seconds: float
    ) -> FloatArray:
        """The joint scores, shape (n, N).

        A feature without a frame leaves the others to a law of their own, where there is one.

        Args:
            scores: of each of these features and perhaps others, shape (n, N).
            heard: whether each trial has a frame of it, shape (n,).
            seconds: T.
        """
        names = self.features
        joint = np.zeros_like(scores[names[0]])
        patterns = np.stack([heard[name] for name in names], axis=1)
        for there, some in rows_by_features(names, patterns):
            features, law = self._of.get(there, self._whole)
            weights, _ = law.weighing(np.full(some.size, seconds))
            each = np.stack([scores[name][some] for name in features], axis=1)
            joint[some] = weighted_evidence(each, weights[:, 0])
        return joint
