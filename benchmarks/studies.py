"""Studies whose truth is known: scores of simulated speakers, tested against N candidates.

A candidate's score is normal noise, of which the trials of a speaker share a part: with each
candidate (30 % of its variance) and with all of them (a shift). The own score is higher by what the
speaker gives away, and speakers differ in that by a quarter of the mean. The number of candidates
is fixed by design; speakers are drawn anew in each study. The truth of a figure is what a crowd of
thousands of such speakers reads, each with as many trials and among as many candidates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from monitor.lab.evaluation import anonymity, lid, linkage, membership, srd, verification, zebra
from monitor.lab.evaluation import longitudinal as growth
from monitor.lab.evaluation.comparisons import ScoreCounts, ScoreMatrix
from monitor.lab.evaluation.lid import LidBits
from monitor.lab.evaluation.longitudinal import longitudinal
from monitor.types import FloatArray, IntArray

__all__ = ["EVIDENCE", "SIZES", "Crowd", "Design", "truth"]

SIZES = ((30, 8), (29, 40), (100, 10))
"""Speakers, who are also the candidates, and trials of each."""

EVIDENCE = {"none": 0.0, "weak": 0.7, "middling": 2.0, "strong": 6.0}
"""By how much the own score is higher, in standard deviations of a score."""

_OWN, _SHIFT, _SPREAD = 0.3, 0.3, 0.25
_CROWD = 160_000


class Crowd(ScoreMatrix):
    """Trials of more speakers than there are candidates: several may own the same column."""

    @classmethod
    def of(cls, scores: FloatArray, columns: IntArray, whose: IntArray) -> Crowd:
        """Scores (T, N), a column for each speaker, and a speaker for each trial."""
        made = cls(scores, columns[whose], name="crowd")
        # what a matrix finds at its first use, from columns that are one speaker's each
        made.__dict__.update(tested=columns, owner=whose)
        return made


@dataclass(frozen=True)
class Design:
    """What a study is like.

    Attributes:
        speakers: S, tested among N = S candidates.
        trials: of each speaker.
        strength: one of `EVIDENCE`.
    """

    speakers: int
    trials: int
    strength: float

    def study(self, seed: int, name: str = "study", gift: FloatArray | None = None) -> ScoreMatrix:
        """One study; `gift`, from `gifts`, where two systems share their speakers."""
        generator = np.random.default_rng(seed)
        gift = self.gifts(self.speakers, generator) if gift is None else gift
        columns = np.arange(self.speakers)
        whose = np.repeat(columns, self.trials)
        scores = self._scores(generator, gift, columns)
        return ScoreMatrix(scores, whose, name=name)

    def gifts(self, speakers: int, generator: np.random.Generator) -> FloatArray:
        """What each speaker gives away: shape (speakers,)."""
        return self.strength * (1 + _SPREAD * generator.normal(size=speakers))

    def crowd(self, seed: int) -> Crowd:
        """Many speakers."""
        generator = np.random.default_rng(seed)
        count = _CROWD // self.trials
        columns = np.arange(count) % self.speakers
        scores = self._scores(generator, self.gifts(count, generator), columns)
        return Crowd.of(scores, columns, np.repeat(np.arange(count), self.trials))

    def _scores(
        self, generator: np.random.Generator, gift: FloatArray, columns: IntArray
    ) -> FloatArray:
        count = len(gift)
        shape = count, self.trials, self.speakers
        scores = np.sqrt(1 - _OWN) * generator.standard_normal(shape)
        scores += np.sqrt(_OWN) * generator.standard_normal((count, 1, self.speakers))
        scores += _SHIFT * generator.standard_normal((count, 1, 1))
        scores[np.arange(count), :, columns] += gift[:, None]
        return np.asarray(scores.reshape(-1, self.speakers))


def truth(design: Design, seed: int, other_seed: int) -> Mapping[str, float]:
    """Every figure of a crowd, by key, but pi_sing, which belongs to its number of speakers."""
    crowd, other = design.crowd(seed), design.crowd(other_seed)
    local = LidBits.of(crowd, other)
    counts = ScoreCounts.of(crowd)
    heard = longitudinal(crowd, other, calibration=local.calibrations["paper"])
    found = [
        *srd.figures(crowd, permutations=0),
        *lid.figures(crowd, dev=other, local=local),
        *growth.figures(heard),
        *verification.figures(crowd, counts=counts),
        *zebra.figures(crowd, counts=counts),
        *linkage.link_figures(crowd),
        linkage.d_sys_figure(crowd, counts=counts),
        *anonymity.figures(crowd),
        *membership.figures(crowd),
    ]
    return {f.key: np.nan if f.value is None else f.value for f in found}
