"""How well the law fits by each of SRD's five losses: Table III, and on speakers left out.

SRD's two measures judge a law on the ranks that it was fitted to, where the likelihood cannot lose
by Kullback-Leibler divergence. So each law is also fitted on nine tenths of the speakers and asked
what the ranks of the others cost, in bits a trial more than by the likelihood's law.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.evaluation.scores.speaker_bootstrap import leaving_out, resamples
from monitor.evaluation.srd.rank_laws import LossFit, loss_fits
from monitor.maths.disclosure import RankStatistics, rank_statistics
from monitor.maths.estimate import Estimate
from monitor.maths.fitting import LOSSES, fit
from monitor.maths.logit import smallest_floor
from monitor.maths.ranks import rank_histogram
from monitor.types import FloatArray

__all__ = ["loss_rows", "table_of_law"]

_FOLDS = 10


def loss_rows(matrix: ScoreMatrix, replicates: int, seed: int) -> list[dict[str, Any]]:
    """A dict for each loss, ready for JSON.

    Args:
        matrix: the trials.
        replicates: resamples of speakers behind the limits.
        seed: of the resamples.

    Returns:
        with ``loss``, ``fitted`` (LL where CLL makes no sense), ``alpha``, ``beta``, ``binomial``,
        ``notes``, ``kl_bits``, ``rank1_match_bits`` (None where rank 1 was never seen), ``rank1``
        (its probability by the law), the law's statistics, and ``left_out_bits``, ``..._low``,
        ``..._high``: what it costs more than LL on speakers left out, None of fewer than three.
    """
    histogram = rank_histogram(matrix.better, matrix.tied, matrix.population)
    more = _left_out(matrix)
    rows = []
    for law in loss_fits(histogram):
        gamma = np.exp(law.log_pmf(matrix.population))
        row = {
            "loss": law.loss,
            "fitted": "LL" if "LL instead of CLL" in law.notes else law.loss,
            "alpha": law.alpha,
            "beta": law.beta,
            "binomial": law.binomial,
            "notes": list(law.notes),
            "kl_bits": _finite(law.kl_bits),
            "rank1_match_bits": _finite(law.rank1_match_bits),
            "rank1": float(gamma[0]),
            **table_of_law(law, matrix.population),
        }
        low = high = value = None
        if more is not None:
            value, low, high = _with_limits(more[law.loss], matrix, replicates, seed)
        rows.append(row | {"left_out_bits": value, "left_out_low": low, "left_out_high": high})
    return rows


def table_of_law(law: LossFit, speakers: int) -> dict[str, float]:
    """The statistics of SRD's Table II, of a law."""
    found: RankStatistics = rank_statistics(np.exp(law.log_pmf(speakers)))
    return {
        "mean_bits": law.mean_bits,
        "idr": found.identification_rate,
        "maxd_bits": found.max_bits,
        "stdd_bits": found.std_bits,
        "spread": found.spread,
    }


def _left_out(matrix: ScoreMatrix) -> dict[str, FloatArray] | None:
    """By loss, bits of each speaker's trials under laws of the others, less those by LL: (S,)."""
    count = len(matrix.tested)
    if count < 3:
        return None
    fold = np.arange(count) % min(count, _FOLDS)
    floor = smallest_floor(count)
    bits = {loss: np.empty(count) for loss in LOSSES}
    for each in range(fold.max() + 1):
        mine = fold[matrix.owner] == each
        rest = rank_histogram(matrix.better[~mine], matrix.tied[~mine], matrix.population)
        for loss in LOSSES:
            gamma = np.exp(fit(rest, loss).log_pmf(matrix.population))
            gamma = (1.0 - floor) * gamma + floor / matrix.population  # no rank is impossible
            # of tied ranks the mean of their logarithms
            sums = np.cumsum(np.append(0.0, np.log2(gamma)))
            better, tied, owner = matrix.better[mine], matrix.tied[mine], matrix.owner[mine]
            cost = -(sums[better + tied] - sums[better]) / tied
            total = np.bincount(owner, cost, minlength=count)
            trials = np.bincount(owner, minlength=count)
            bits[loss][fold == each] = (total / np.maximum(trials, 1))[fold == each]
    return {loss: bits[loss] - bits["LL"] for loss in LOSSES}


def _with_limits(
    values: FloatArray, matrix: ScoreMatrix, replicates: int, seed: int
) -> tuple[float, float, float]:
    """The mean over speakers with its 95 % limits."""
    names = [matrix.speakers[column] for column in matrix.tested.tolist()]
    without = leaving_out(names)
    drawn = Estimate(
        float(values.mean()),
        resamples(matrix, replicates, seed) @ values / values.size,
        without @ values / without.sum(axis=1),
        values.size,
        matrix.trials,
    )
    return (drawn.value, *drawn.t_limits())


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
