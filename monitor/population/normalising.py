"""Normalisation of scores by those of the cohort, who are certainly not the speaker.

Source: docs/method.md section 10.

A log-likelihood grows with what was heard and has no scale but its spread over the cohort in this
very stream. A cosine has one: of embeddings only the mean is the stream's own, and the spread is
that of the cohort among itself. Where the cohort trained the network, as it did that of voice, how
much its cosines differ in a stream is the network's memory of them and noise otherwise:
docs/measurements.md has both.
"""

from __future__ import annotations

import numpy as np

from monitor.maths.scores import Similarity
from monitor.population.cohort import Cohort
from monitor.types import AnyArray, FloatArray

__all__ = ["CohortScoring", "normalised"]


class CohortScoring:
    """The cohort's sketches of one feature, ready to be scored by streams.

    They are short, an utterance each, where templates have minutes: what that does to scores is
    part of the law that was learnt against them.

    Args:
        cohort: background speakers; those of whom nothing was heard of this feature are left out.
        name: of the feature.
        similarity: that of the law.
    """

    def __init__(self, cohort: Cohort, name: str, similarity: Similarity) -> None:
        slices = cohort.features[name].slices
        heard = slices[slices.any(axis=1)]
        wide: AnyArray = heard.astype(cohort.features[name].spec.kind.wide)
        self._similarity = similarity
        self._prepared = similarity.prepare(wide[:, None] if similarity.by_slice else wide)
        self._spread = self._inner(wide) if similarity.own_scale else None

    def __len__(self) -> int:
        return len(self._prepared)

    def levels(self, totals: AnyArray) -> tuple[FloatArray, FloatArray]:
        """Mean and spread of each stream's scores over the cohort.

        Args:
            totals: of the streams' sketches, shape (R, M); each as if it were alone.

        Returns:
            shape (R,) each; the spread is 0 where nothing was heard.
        """
        if self._similarity.additive:
            scores = self._similarity.score(self._prepared, totals)
        else:
            scores = np.stack([self._similarity.score(self._prepared, each) for each in totals])
        scores = np.ascontiguousarray(scores)
        spread = scores.std(axis=1)
        if self._spread is not None:
            spread = np.where(spread > 0, self._spread, 0.0)
        return scores.mean(axis=1), spread

    def _inner(self, sketches: AnyArray) -> float:
        """Spread of the cohort's scores with each other, each one's with itself left out."""
        scores = np.stack([self._similarity.score(self._prepared, each) for each in sketches])
        return float(scores[~np.eye(len(scores), dtype=bool)].std())


def normalised(scores: FloatArray, mean: FloatArray, spread: FloatArray) -> FloatArray:
    """``(s - mean) / spread``; 0 where there is no spread, since nothing was heard.

    Args:
        scores: shape (..., N).
        mean: shape (...).
        spread: shape (...).
    """
    away = scores - mean[..., None]
    wide = spread[..., None]
    return np.divide(away, wide, out=np.zeros_like(away), where=wide > 0)
