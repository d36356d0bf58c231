"""The beta-binomial law fitted to the ranks of trials, by each of SRD's five losses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.maths.disclosure import RankStatistics, kl_bits, rank1_match_bits, rank_statistics
from monitor.maths.fitting import LOSSES, RankFit, fit
from monitor.maths.ranks import rank_histogram
from monitor.types import FloatArray, IntArray

__all__ = ["FittedRankLaw", "LossFit", "loss_fits", "rank_law"]


@dataclass(frozen=True)
class FittedRankLaw:
    """Ranks of some trials, what they disclose and the law that they follow.

    Attributes:
        histogram: shape (N,), index 0 is rank 1.
        trials: n.
        ties: how a shared score was ranked.
        statistics: of the histogram (plug-in).
        law: fitted by LL.
    """

    histogram: FloatArray
    trials: int
    ties: str
    statistics: RankStatistics
    law: RankFit

    @property
    def mean_bits(self) -> float:
        """MeanD of the law."""
        return self.law.mean_disclosure_bits(self.histogram.size)

    @property
    def sparse(self) -> bool:
        """Fewer trials than ranks: the plug-in figures mean little."""
        return self.trials < self.histogram.size


@dataclass(frozen=True, kw_only=True)
class LossFit(RankFit):
    """The law by one of the paper's losses, as in SRD's Table II; ``loss`` is what was asked for.

    Attributes:
        kl_bits: Kullback-Leibler divergence of the law from the histogram.
        rank1_match_bits: ``|log2(p_1 / gamma_1)|``; infinite where rank 1 was never seen.
        mean_bits: MeanD of the law.
    """

    kl_bits: float
    rank1_match_bits: float
    mean_bits: float


def rank_law(
    better: IntArray, tied: IntArray, speakers: int, ties: str = "spread"
) -> FittedRankLaw:
    """SRD of trials whose ranks are known.

    Args:
        better: shape (n,), how many speakers score strictly higher than the true one; see
            `monitor.maths.ranks.rank_bounds` or `ScoreMatrix.better`.
        tied: shape (n,), how many share its score, itself included.
        speakers: N.
        ties: ``"spread"``, ``"optimistic"``, ``"pessimistic"`` or ``"mid"``.

    Returns:
        histogram, statistics and law.

    Raises:
        CalibrationError: no trial.
        UsageError: unknown rule, or ranks that do not fit into N speakers.

    Example:
        >>> found = rank_law(np.array([0, 0, 0, 1, 0, 2, 0, 1]), np.ones(8, dtype=int), 4)
        >>> round(found.statistics.mean_bits, 2), found.statistics.identification_rate
        (0.7, 0.625)
    """
    histogram = rank_histogram(better, tied, speakers, ties)
    law = fit(histogram)
    trials = len(better)
    return FittedRankLaw(histogram, trials, ties, rank_statistics(histogram, trials), law)


def loss_fits(histogram: FloatArray) -> tuple[LossFit, ...]:
    """The law by each of the five losses: LL, MS, WMS, RWMS and CLL.

    Args:
        histogram: shape (N,), index 0 is rank 1.

    Returns:
        in the order of `monitor.maths.fitting.LOSSES`.

    Raises:
        CalibrationError: the histogram is empty.
        UsageError: fewer than two ranks, or a negative count.

    Example:
        >>> for row in loss_fits(np.array([40.0, 25, 15, 10, 6, 4]))[:2]:
        ...     print(row.loss, round(row.mean_bits, 2), round(row.kl_bits, 3))
        LL 0.38 0.003
        MS 0.4 0.005
    """
    fitted = []
    for loss in LOSSES:
        law = fit(histogram, loss)
        gamma = np.exp(law.log_pmf(len(histogram)))
        fitted.append(
            LossFit(
                loss=loss,
                alpha=law.alpha,
                beta=law.beta,
                binomial=law.binomial,
                value=law.value,
                kl_bits=kl_bits(histogram, gamma),
                rank1_match_bits=rank1_match_bits(histogram, gamma),
                mean_bits=law.mean_disclosure_bits(len(histogram)),
                notes=law.notes,
            )
        )
    return tuple(fitted)
