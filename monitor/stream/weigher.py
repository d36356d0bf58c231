"""`Weigher` weighs the scores of moments, each by the rank model of its available features."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from monitor.errors import StoreError
from monitor.maths.condition import Condition
from monitor.maths.posterior import weighted_evidence
from monitor.maths.ranks import rank_now
from monitor.maths.scores import Similarity
from monitor.population.population import Population
from monitor.population.templates import Scoring, share
from monitor.stream.attacker_model import AttackerModel
from monitor.stream.choice import group_rows
from monitor.stream.posterior import PosteriorModel, RatioBits, Weighed
from monitor.stream.totals import RunningTotals
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray

_Cache = dict[tuple[str, str, bytes], Any]
_EXACT_BATCH = 4096
"""Templates rescored at a time."""


class WatchedMoments(NamedTuple):
    """Totals at R moments, T, conditions, and the index of the speaker watched at each, (R,)."""

    totals: Mapping[str, RunningTotals]
    seconds: FloatArray
    sounds: Sequence[Condition | None]
    watched: IntArray | None

    @classmethod
    def joined(cls, several: Sequence[WatchedMoments]) -> WatchedMoments:
        """Concatenate the moments of several questions."""
        if len(several) == 1:
            return several[0]
        totals, seconds, sounds, speakers = zip(*several, strict=True)
        watched = [indices for indices in speakers if indices is not None]
        return cls(
            {name: RunningTotals.joined([t[name] for t in totals]) for name in totals[0]},
            np.concatenate(seconds),
            [sound for conditions in sounds for sound in conditions],
            np.concatenate(watched) if watched else None,
        )

    def select(self, rows: IntArray) -> WatchedMoments:
        """Select some of the moments."""
        return WatchedMoments(
            {name: running.select(rows) for name, running in self.totals.items()},
            self.seconds[rows],
            [self.sounds[i] for i in rows.tolist()],
            None if self.watched is None else self.watched[rows],
        )


class Weigher:
    """Weigher of totals at R moments: scores to posteriors, bits and likelihood ratios."""

    def __init__(self, model: AttackerModel, scorer: Scorer) -> None:
        self._model, self._scorer = model, scorer

    def list_waiting(self, moments: WatchedMoments) -> BoolArray:
        """Return the moments, (R,), that still wait for the first frame of an embedding.

        Pitch and phones alone would rate a voice as harmless that the embedding recognises.
        """
        seconds = moments.seconds
        waits = np.zeros(seconds.size, np.bool_)
        for name in self._model.discerning:
            is_short = (seconds > 0) & (seconds < self._model.frame_seconds[name])
            waits |= (moments.totals[name].frames == 0) & is_short
        return waits

    def weigh(
        self, moments: WatchedMoments, waits: BoolArray, cache: _Cache, *, limits: bool = True
    ) -> tuple[dict[str, Weighed], list[Weighed]]:
        """Weigh each feature that has frames, and all of them together; scores are cached."""
        features, scorer, watched = self._model.features, self._scorer, moments.watched
        present = self._list_present(moments) & ~waits[:, None]
        scores = self._score(moments, cache)
        weigh = partial(
            PosteriorModel.weigh, watched=watched, sessions=scorer.sessions, limits=limits
        )
        alone: dict[str, Weighed] = {}
        for f, name in enumerate(features):
            if present[:, f].any():
                rows: IntArray = np.flatnonzero(present[:, f])
                seconds = moments.totals[name].length(moments.seconds)[rows]
                feature_scores = scores[rows, f : f + 1]
                weighed = weigh(self._model.alone[name], rows, seconds, feature_scores)
                if watched is not None:
                    best = scorer.select_best_session(feature_scores[:, 0])
                    ranks = rank_now(best, watched[rows])
                    weighed = weighed._replace(ranks=ranks)
                alone[name] = weighed
        lengths, parts = self._lengths(moments), []
        for model, rows, axis in self._choose_models(present):
            seconds, feature_scores = lengths[rows], scores[np.ix_(rows, axis)]
            weighed = (
                alone[features[0]]
                if len(features) == 1
                else weigh(model, rows, seconds, feature_scores)
            )
            ratios = self._compute_ratios(
                model, rows, seconds, feature_scores, moments, cache, limits=limits
            )
            parts.append(weighed._replace(ratios=ratios))
        return alone, parts

    def evidence(self, moments: WatchedMoments) -> FloatArray:
        """Compute only the ``evidence_bits`` of `figures`: (R,)."""
        cache: _Cache = {}
        present = self._list_present(moments) & ~self.list_waiting(moments)[:, None]
        scores, lengths = self._score(moments, cache), self._lengths(moments)
        bits = np.zeros(moments.seconds.size)
        for model, rows, axis in self._choose_models(present):
            feature_scores = scores[np.ix_(rows, axis)]
            ratios = self._compute_ratios(
                model, rows, lengths[rows], feature_scores, moments, cache, limits=False
            )
            bits[rows] = np.nan if ratios is None else ratios.watched[:, 0]
        return bits

    def _score(self, moments: WatchedMoments, cache: _Cache) -> FloatArray:
        columns = []
        for name in self._model.features:
            score = partial(self._scorer.score, name, watched=moments.watched)
            columns.append(_compute_once(cache, "scores", name, moments.totals[name], score))
        return np.stack(columns, axis=1)

    def _lengths(self, moments: WatchedMoments) -> FloatArray:
        """Return T of all features together, shape (R,)."""
        seconds = moments.seconds
        for name in self._model.features:
            seconds = moments.totals[name].length(seconds)
        return seconds

    def _compute_ratios(
        self,
        model: PosteriorModel,
        rows: IntArray,
        seconds: FloatArray,
        scores: FloatArray,
        moments: WatchedMoments,
        cache: _Cache,
        *,
        limits: bool,
    ) -> RatioBits | None:
        """Compute the likelihood ratios of scores, (R, F, N + K), if the rank model has ratios."""
        ratios, (totals, _, sounds, watched) = model.ratios, moments
        if ratios is None or not all(totals[name].frames[rows].all() for name in model.features):
            return None
        levels = []
        for name in ratios.features:
            compute = ratios.cohort[name].compute_score_stats
            mean, spread = _compute_once(cache, "levels", name, totals[name], compute)
            levels.append((mean[rows], spread[rows]))
        return ratios.evaluate_at(
            seconds,
            levels,
            scores[:, [model.features.index(name) for name in ratios.features]],
            [sounds[i] for i in rows.tolist()],
            None if watched is None else watched[rows],
            limits=limits,
        )

    def _list_present(self, moments: WatchedMoments) -> BoolArray:
        """Return which features have frames in enough of the speech, shape (R, F)."""
        feature_totals = [moments.totals[name] for name in self._model.features]
        usable = np.stack([running.usable_seconds for running in feature_totals], axis=1)
        is_enough = usable >= self._model.least_shares * moments.seconds[:, None]
        return np.stack([running.frames > 0 for running in feature_totals], axis=1) & is_enough

    def _choose_models(
        self, present: BoolArray
    ) -> Iterator[tuple[PosteriorModel, IntArray, IntArray]]:
        """Yield groups of rows of (R, F): the model for their features, the rows, its features."""
        features = self._model.features
        for names, rows in group_rows(features, present):
            model = self._model.models.get(names, self._model.joint)
            yield model, rows, np.array([features.index(name) for name in model.features])

    def figures(self, moments: WatchedMoments, cache: _Cache) -> dict[str, FloatArray]:
        """Compute the figures of `Attacker.figures`."""
        model = self._model
        only, has_evidence = len(model.features) == 1, model.joint.ratios is not None
        alone, parts = self.weigh(moments, self.list_waiting(moments), cache, limits=False)
        local = 0.0 if model.watched else np.nan
        before = {
            "closed_set_bits": local,
            "gain_bits": 0.0,
            "sum_bits": local,
            "rank_bits": local if only else np.nan,
            "evidence_bits": local if has_evidence else np.nan,
        }
        figures = {name: np.full(moments.seconds.size, bits) for name, bits in before.items()}
        for name, feature in alone.items():
            figures["sum_bits"][feature.rows] += feature.local[:, 0]
            if feature.ranks is not None and only:
                point = model.alone[name].rank_model.at_each(feature.seconds)
                figures["rank_bits"][feature.rows] = point.rank_bits(model.speakers, *feature.ranks)
        for weighed in parts:
            figures["closed_set_bits"][weighed.rows] = weighed.local[:, 0]
            figures["gain_bits"][weighed.rows] = weighed.gain[:, 0]
            evidence = np.nan if weighed.ratios is None else weighed.ratios.watched[:, 0]
            figures["evidence_bits"][weighed.rows] = evidence
        return figures

    def scores(
        self, totals: Mapping[str, AnyArray], speech_seconds: FloatArray
    ) -> dict[str, FloatArray]:
        """Compute the scores of `Attacker.scores`."""
        features, scorer = self._model.features, self._scorer
        watched = self._model.watch_each(speech_seconds.size)
        every = {name: scorer.score(name, totals[name], watched) for name in features}
        best = {name: scorer.select_best_session(scores) for name, scores in every.items()}
        if len(features) == 1:
            return best
        stacked = np.stack(list(every.values()), axis=1)
        present = np.stack([totals[name].any(axis=1) for name in features], axis=1)
        best["joint"] = np.zeros((speech_seconds.size, self._model.speakers))
        for model, rows, axis in self._choose_models(present):
            weights, _ = model.rank_model.weighing(speech_seconds[rows], resamples=False)
            joint = weighted_evidence(stacked[np.ix_(rows, axis)], weights[:, 0])
            if scorer.sessions is not None:
                joint = scorer.sessions.mix(joint)[0]
            best["joint"][rows] = joint
        return best


def _compute_once(
    cache: _Cache,
    quantity: str,
    name: str,
    running: RunningTotals,
    compute: Callable[[AnyArray], Any],
) -> Any:
    """Compute a quantity of a feature's totals once; early frames change them and the key."""
    key = quantity, name, (running.frames > 0).tobytes()
    if key not in cache:
        cache[key] = compute(running.totals)
    return cache[key]


class Scorer:
    """Scorer of the totals of each feature against all templates."""

    def __init__(self, model: AttackerModel, population: Population) -> None:
        scoring = model.scoring
        # owners of further sessions, which follow the first sessions in ``templates``; None without
        # further sessions
        self.sessions = population.sessions_apart(scoring)
        self._most, self._speakers = model.top, model.speakers
        self._similarities = population.scorers(model.rank_model)
        # by feature, templates prepared for its similarity, shape (N + K, M)
        self.templates: dict[str, FloatArray] = {}
        for name, similarity in self._similarities.items():
            key = "prepared", name, scoring.seconds, similarity.name
            self.templates[name] = share(
                population, key, partial(_prepare, population, name, scoring, similarity)
            )
        self._get_exact = partial(population.exact, scoring=scoring)

    def score(self, name: str, totals: AnyArray, watched: IntArray | None = None) -> FloatArray:
        """Score totals of a feature, (R, M), against every template: (R, N + K).

        The ranks of watched speakers, (R,), and the order of the most probable are exact. Scores in
        single precision that are within their error of these are computed in double precision.
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
