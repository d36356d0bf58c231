"""The probability that the speaker of a stream is enrolled at all, by length of speech.

Source: docs/method.md section 5.
"""

from __future__ import annotations

import numpy as np

from monitor.population.law import RankLaw
from monitor.types import FloatArray

__all__ = ["GOOD_AREA", "EnrolledProbability"]

GOOD_AREA = 0.8
"""Least area under the ROC curve, on speakers left out, for odds that are worth telling: four times
in five an enrolled voice looks more enrolled than a stranger. Across sessions pitch reaches 0.5,
voice 0.83 at 3 s and 0.93 at 10 s, identity 0.93 and more."""


class EnrolledProbability:
    """The probability that the speaker is enrolled at all, at even odds before hearing anything.

    Between calibrated lengths the coefficients are interpolated in log T; below the shortest the
    odds fade to even, beyond the longest the last hold. Of template lengths the nearest counts.
    They are told only where calibration has seen them work (`GOOD_AREA`).

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
        areas = np.full(reached.shape, np.nan)
        for row in law.rows:
            t = np.flatnonzero(np.isclose(law.lengths, row["T"]))
            d = np.flatnonzero(np.isclose(law.template_lengths, row["D"]))
            areas[t, d] = row.get("open_set_area", np.nan)
        self._areas = areas[rows, nearest]

    def area(self, seconds: FloatArray) -> FloatArray:
        """How well they told strangers on speakers left out of the fit, at T.

        Returns:
            area under the ROC curve, shape (R,): 0.5 is no use, 1 is perfect, NaN not known.
        """
        place = np.log(np.maximum(seconds, self._lengths[0]))
        return np.asarray(np.interp(place, np.log(self._lengths), self._areas))

    def at(self, seconds: FloatArray, favourite: FloatArray) -> FloatArray:
        """The probability at R moments.

        Args:
            seconds: T, speech seconds, shape (R,).
            favourite: absolute scores of the most probable candidate, shape (R, F), in the law's
                order of features; additive ones divided by their frames.

        Returns:
            shape (R,), in (0, 1); NaN where they cannot tell strangers.
        """
        from scipy.special import expit

        first = self._lengths[0]
        place = np.log(np.maximum(seconds, first))
        grid = np.log(self._lengths)
        bias, *slopes = (np.interp(place, grid, column) for column in self._coefficients.T)
        odds = bias + sum(s * x for s, x in zip(slopes, favourite.T, strict=True))
        odds = odds * np.clip(seconds / first, 0.0, 1.0)
        found = expit(np.clip(odds, -30.0, 30.0))  # never certain
        return np.where(self.area(seconds) >= GOOD_AREA, found, np.nan)
