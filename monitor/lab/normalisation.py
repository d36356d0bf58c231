"""Scores of embeddings relative to background speakers: z-, t-, s- and adaptive s-norm."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from monitor.errors import UsageError
from monitor.kinds import FeatureSpec
from monitor.maths.scores import Similarity
from monitor.phrases import format_names
from monitor.population.cohort import FeatureTemplates, normalise
from monitor.population.population import Population
from monitor.safe_text import fold_name
from monitor.types import AnyArray, FloatArray

METHODS = ("z", "t", "s", "as")
CLOSEST = 100
"""Number of background speakers that adaptive s-norm compares with: the most similar ones."""


@dataclass(frozen=True)
class ScoreNormalisation:
    """Normalisation of cosines by a cohort of background speakers.

    A score s of a trial and a template becomes (s - m) / d. For z-norm (z), m and d are the mean
    and the standard deviation of the template's scores over the cohort. For t-norm (t) they are
    those of the trial's scores. s-norm (s) is the mean of both. Its adaptive form (as) takes m and
    d over the `CLOSEST` scores.

    Source: P. Matejka et al., Analysis of score normalization in multilingual speaker recognition,
    Interspeech 2017 (AS-norm1).
    """

    method: str
    cohort: Mapping[str, AnyArray]

    @classmethod
    def load(
        cls, method: str, path: Path | None, specs: Mapping[str, FeatureSpec],
        speakers: Collection[str] = (),
    ) -> ScoreNormalisation:  # fmt: skip
        """Load a cohort from a population file of ``monitor enrol``; None loads the shipped one.

        Features of the scores (`specs`) that the cohort lacks are not normalised. The `speakers`
        that are scored must not be in the cohort. Raises UsageError if the cohort has no speaker
        embedding of these networks, or it has a speaker who is scored.
        """
        population = Population.reference() if path is None else Population.load(path)
        cohort: Mapping[str, FeatureTemplates] = population.features
        starts, scored = population.offsets[:-1], set(map(fold_name, speakers))
        if path is None and population.cohort is not None:
            cohort, starts = population.cohort.features, np.arange(len(population.cohort))
        elif doubles := [name for name in sorted(population.names) if fold_name(name) in scored]:
            raise UsageError(
                f"{format_names(doubles)} of the cohort would be scored against themselves: use "
                "other people"
            )
        of_embeddings = {}
        for name, templates in cohort.items():
            spec = templates.spec
            is_same = name in specs and specs[name].network == spec.network
            if is_same and spec.kind.similarity().own_scale:
                sums = np.add.reduceat(templates.slices.astype(spec.kind.wide), starts)
                of_embeddings[name] = sums[sums.any(axis=1)]
        if not of_embeddings:
            raise UsageError(
                "the cohort has no speaker embeddings of the same network: enrol other people "
                "with it, and set cohort = FILE"
            )
        return cls(method, of_embeddings)

    def name_system(self, feature: str) -> str:
        """Return the name of the normalised score matrix of a feature."""
        return f"{feature}-{self.method}norm"

    def score(
        self, feature: str, trials: AnyArray, templates: AnyArray, similarity: Similarity
    ) -> FloatArray:
        """Score trials, shape (n, M), against templates, (N, M), both sums: (n, N)."""
        cohort = self.cohort[feature], self.cohort[feature]
        return score_normalised(self.method, trials, templates, cohort, similarity)


def score_normalised(
    method: str, trials: AnyArray, templates: AnyArray, cohort: tuple[AnyArray, AnyArray],
    similarity: Similarity,
) -> FloatArray:  # fmt: skip
    """Score trials, shape (n, M), against templates, (N, M), relative to a cohort: (n, N).

    The cohort has trials, shape (K, M), for the templates, and templates, (C, M), for the trials.
    A trial without frames scores 0 with all templates.
    """
    if method not in METHODS:
        raise UsageError(f"invalid normalise={method!r}: use one of {', '.join(METHODS)}")
    prepared, (other_trials, other_templates) = similarity.prepare(templates), cohort
    scores = similarity.score(prepared, trials)
    parts = []
    if method != "t":
        parts.append(_normalise(method, scores.T, similarity.score(prepared, other_trials).T).T)
    if method != "z":
        of_trials = similarity.score(similarity.prepare(other_templates), trials)
        parts.append(_normalise(method, scores, of_trials))
    return np.where(np.any(trials, axis=1)[:, None], np.mean(parts, axis=0), 0.0)


def _normalise(method: str, scores: FloatArray, of_cohort: FloatArray) -> FloatArray:
    if method == "as":
        of_cohort = np.sort(of_cohort, axis=1)[:, -CLOSEST:]
    return normalise(scores, of_cohort.mean(axis=1), of_cohort.std(axis=1))
