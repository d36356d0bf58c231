"""Scores of running totals against every template."""

from __future__ import annotations

from functools import partial

import numpy as np

from monitor.errors import StoreError
from monitor.maths.scores import Similarity
from monitor.population.population import Population
from monitor.population.templates import Scoring, share
from monitor.stream.attacker_model import AttackerModel
from monitor.types import AnyArray, FloatArray, IntArray

_EXACT_BATCH = 4096
"""Templates rescored at a time."""


class Scorer:
    """Scorer of the totals of each feature against all templates."""

    def __init__(self, model: AttackerModel, population: Population) -> None:
        scoring = model.scoring
        # owners of further sessions, which follow the first sessions in ``templates``; None without
        # further sessions
        self.sessions = population.sessions_apart(scoring)
        self._most, self._speakers = model.top, model.speakers
        self._similarities = population.scorers(model.rank_model)
        # of each feature, prepared for its similarity, shape (N + K, M)
        self.templates: dict[str, FloatArray] = {}
        for name, similarity in self._similarities.items():
            key = "prepared", name, scoring.seconds, similarity.name
            self.templates[name] = share(
                population, key, partial(_prepare, population, name, scoring, similarity)
            )
        self._get_exact = partial(population.exact, scoring=scoring)

    def score(self, name: str, totals: AnyArray, watched: IntArray | None = None) -> FloatArray:
        """Score totals of a feature, (R, M), against every template: (R, N + K).

        The ranks of watched speakers, (R,), and the order of the most probable are exact. Templates
        in single precision are rescored in double precision within its error of either.
        """
        templates, similarity = self.templates[name], self._similarities[name]
        scores = similarity.score_each(templates, totals)
        if templates.dtype != np.float32:
            return scores
        assert similarity.bound is not None
        margin, count = 2.0 * similarity.bound(totals.shape[1]), self._most
        for r, (row, total) in enumerate(zip(scores, totals, strict=True)):
            if not total.any():
                continue  # all score zero
            if not (np.isfinite(row).all() and row.any()):
                raise StoreError(
                    f"templates of {name} are no longer numbers: the store changed, or a person "
                    "was deleted, while in use. Start again"
                )
            near = row >= np.partition(row, row.size - count)[row.size - count] - margin
            if watched is not None:
                near |= np.abs(row - row[watched[r]]) <= margin
            places = np.flatnonzero(near)
            for start in range(0, places.size, _EXACT_BATCH):
                batch = places[start : start + _EXACT_BATCH]
                exact = self._get_exact(name, similarity=similarity, places=batch)
                row[batch] = similarity.score(exact, total)
        return scores

    def select_best_session(self, scores: FloatArray) -> FloatArray:
        """Select each speaker's best session, (R, N), from scores of every template, (R, N + K)."""
        if self.sessions is None:
            return scores
        return np.take_along_axis(scores, self.sessions.mix(scores)[1], axis=1)


def _prepare(
    population: Population, name: str, scoring: Scoring, similarity: Similarity
) -> FloatArray:
    """Prepare the templates of a feature, those of further sessions last."""
    templates = population.prepared(name, scoring, similarity)
    if population.sessions_apart(scoring) is None:
        return templates
    further = population.prepared_apart(name, scoring, similarity)
    return np.concatenate([templates, further])
