"""`Weigher` weighs the scores of moments, each by the rank model of its available features."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from monitor.maths.condition import Condition
from monitor.maths.posterior import weighted_evidence
from monitor.maths.ranks import rank_now
from monitor.stream.attacker_model import AttackerModel
from monitor.stream.choice import group_rows
from monitor.stream.posterior import PosteriorModel, RatioBits, Weighed
from monitor.stream.scorer import Scorer
from monitor.stream.totals import RunningTotals
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray


class _Batch(NamedTuple):
    """Totals at R moments, their conditions, a cache of scores, and the watched speakers, (R,)."""

    totals: Mapping[str, RunningTotals]
    sounds: Sequence[Condition | None]
    cache: dict[tuple[str, str, bytes], Any]
    watched: IntArray | None


class Weigher:
    """Weigher of totals at R moments: scores to posteriors, bits and likelihood ratios."""

    def __init__(self, model: AttackerModel, scorer: Scorer) -> None:
        self._model, self._scorer = model, scorer

    def list_waiting(
        self, totals: Mapping[str, RunningTotals], speech_seconds: FloatArray
    ) -> BoolArray:
        """Return at which moments, (R,), the first frame of an embedding is still to come.

        Pitch and phones alone would rate a voice as harmless that the embedding recognises.
        """
        waits = np.zeros(speech_seconds.size, np.bool_)
        for name in self._model.discerning:
            is_short = (speech_seconds > 0) & (speech_seconds < self._model.frame_seconds[name])
            waits |= (totals[name].frames == 0) & is_short
        return waits

    def weigh(
        self,
        totals: Mapping[str, RunningTotals],
        speech_seconds: FloatArray,
        sounds: Sequence[Condition | None],
        cache: dict[tuple[str, str, bytes], Any],
        waits: BoolArray,
        watched: IntArray | None,
        *,
        limits: bool = True,
    ) -> tuple[dict[str, Weighed], list[Weighed]]:
        """Weigh each feature that has frames, and all of them together; scores are cached.

        ``watched`` are the watched speakers' indices, (R,).
        """
        features, scorer = self._model.features, self._scorer
        present = self._list_present(totals, speech_seconds) & ~waits[:, None]
        batch = _Batch(totals, sounds, cache, watched)
        scores = self._score(batch)
        weigh = partial(
            PosteriorModel.weigh, watched=watched, sessions=scorer.sessions, limits=limits
        )
        alone: dict[str, Weighed] = {}
        for f, name in enumerate(features):
            if present[:, f].any():
                rows: IntArray = np.flatnonzero(present[:, f])
                seconds = totals[name].length(speech_seconds)[rows]
                feature_scores = scores[rows, f : f + 1]
                weighed = weigh(self._model.alone[name], rows, seconds, feature_scores)
                if watched is not None:
                    best = scorer.select_best_session(feature_scores[:, 0])
                    ranks = rank_now(best, watched[rows])
                    weighed = weighed._replace(ranks=ranks)
                alone[name] = weighed
        lengths, parts = self._lengths(totals, speech_seconds), []
        for model, rows, axis in self._choose_models(present):
            seconds, feature_scores = lengths[rows], scores[np.ix_(rows, axis)]
            weighed = (
                alone[features[0]]
                if len(features) == 1
                else weigh(model, rows, seconds, feature_scores)
            )
            ratios = self._compute_ratios(
                model, rows, seconds, feature_scores, batch, limits=limits
            )
            parts.append(weighed._replace(ratios=ratios))
        return alone, parts

    def evidence(
        self, totals: Mapping[str, RunningTotals], speech_seconds: FloatArray
    ) -> FloatArray:
        """Compute ``evidence_bits`` alone, as of `figures`: (R,)."""
        totals = self._model.add_early_frames(totals)
        waits = self.list_waiting(totals, speech_seconds)
        present = self._list_present(totals, speech_seconds) & ~waits[:, None]
        count = speech_seconds.size
        batch = _Batch(totals, [None] * count, {}, self._model.watch_each(count))
        scores, lengths = self._score(batch), self._lengths(totals, speech_seconds)
        bits = np.zeros(count)
        for model, rows, axis in self._choose_models(present):
            feature_scores = scores[np.ix_(rows, axis)]
            ratios = self._compute_ratios(
                model, rows, lengths[rows], feature_scores, batch, limits=False
            )
            bits[rows] = np.nan if ratios is None else ratios.watched[:, 0]
        return bits

    def _score(self, batch: _Batch) -> FloatArray:
        """Score each feature against every template, shape (R, F, N + K)."""
        columns = []
        for name in self._model.features:
            score = partial(self._scorer.score, name, watched=batch.watched)
            columns.append(_compute_once(batch.cache, "scores", name, batch.totals[name], score))
        return np.stack(columns, axis=1)

    def _lengths(
        self, totals: Mapping[str, RunningTotals], speech_seconds: FloatArray
    ) -> FloatArray:
        """Return T of all features together, shape (R,)."""
        for name in self._model.features:
            speech_seconds = totals[name].length(speech_seconds)
        return speech_seconds

    def _compute_ratios(
        self,
        model: PosteriorModel,
        rows: IntArray,
        seconds: FloatArray,
        scores: FloatArray,
        batch: _Batch,
        *,
        limits: bool,
    ) -> RatioBits | None:
        """Compute the likelihood ratios of scores, (R, F, N + K), if the rank model has ratios."""
        ratios = model.ratios
        totals, sounds, cache, watched = batch
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

    def _list_present(
        self, totals: Mapping[str, RunningTotals], speech_seconds: FloatArray
    ) -> BoolArray:
        """Return which features have as many frames as speech brings, shape (R, F)."""
        feature_totals = [totals[name] for name in self._model.features]
        usable = np.stack([running.usable_seconds for running in feature_totals], axis=1)
        is_enough = usable >= self._model.least_shares * speech_seconds[:, None]
        return np.stack([running.frames > 0 for running in feature_totals], axis=1) & is_enough

    def _choose_models(
        self, present: BoolArray
    ) -> Iterator[tuple[PosteriorModel, IntArray, IntArray]]:
        """Yield for rows of (R, F) frames the model of the features they have, or the joint one."""
        features = self._model.features
        for names, rows in group_rows(features, present):
            model = self._model.models.get(names, self._model.joint)
            yield model, rows, np.array([features.index(name) for name in model.features])

    def figures(
        self,
        totals: Mapping[str, RunningTotals],
        speech_seconds: FloatArray,
        cache: dict[tuple[str, str, bytes], Any],
        conditions: Sequence[Condition | None] | None = None,
    ) -> dict[str, FloatArray]:
        """Compute figures as of `Attacker.figures`."""
        model, moments = self._model, speech_seconds.size
        only, has_evidence = len(model.features) == 1, model.joint.ratios is not None
        sounds = [None] * moments if conditions is None else conditions
        totals = model.add_early_frames(totals)
        waits = self.list_waiting(totals, speech_seconds)
        watched = model.watch_each(moments)
        alone, parts = self.weigh(
            totals, speech_seconds, sounds, cache, waits, watched, limits=False
        )
        local = 0.0 if model.watched else np.nan
        before = {
            "closed_set_bits": local,
            "gain_bits": 0.0,
            "sum_bits": local,
            "rank_bits": local if only else np.nan,
            "evidence_bits": local if has_evidence else np.nan,
        }
        figures = {name: np.full(moments, bits) for name, bits in before.items()}
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
        """Compute scores as of `Attacker.scores`."""
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
    cache: dict[tuple[str, str, bytes], Any],
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
