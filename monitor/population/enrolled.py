"""Is anybody enrolled speaking? A law's open-set coefficients along a stream (METHOD section 5)."""

from __future__ import annotations

import numpy as np

from monitor.population.law import RankLaw
from monitor.types import FloatArray

__all__ = ["EnrolledOdds"]


class EnrolledOdds:
    """The probability that the speaker is enrolled at all, at even odds before hearing anything.

    Between calibrated lengths the coefficients are interpolated in log T; below the shortest the
    odds fade to even, beyond the longest the last hold. Of template lengths the nearest counts.

    Args:
        law: of one set of features.
        seconds: D, template length, speech seconds.
    """

    def __init__(self, law: RankLaw, seconds: float) -> None:
        reached = np.isfinite(law.open_set[:, :, 0])
        rows = np.flatnonzero(reached.any(axis=1))
        distance = np.abs(np.log(law.template_lengths / max(seconds, 1e-9)))
        nearest = np.where(reached[rows], distance, np.inf).argmin(axis=1)
        self._lengths = law.lengths[rows]
        self._coefficients = law.open_set[rows, nearest]

    def at(self, seconds: FloatArray, favourite: FloatArray) -> FloatArray:
        """The probability at R moments.

        Args:
            seconds: T, speech seconds, shape (R,).
            favourite: absolute scores of the most probable candidate, shape (R, F), in the law's
                order of features; additive ones divided by their frames.

        Returns:
            shape (R,), in (0, 1).
        """
        first = self._lengths[0]
        place = np.log(np.maximum(seconds, first))
        grid = np.log(self._lengths)
        bias, *slopes = (np.interp(place, grid, column) for column in self._coefficients.T)
        odds = bias + sum(s * x for s, x in zip(slopes, favourite.T, strict=True))
        odds = odds * np.clip(seconds / first, 0.0, 1.0)
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip(odds, -30.0, 30.0))))
