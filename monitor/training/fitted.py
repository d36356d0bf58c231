"""Fits one cell of the calibration grid: rank law, posterior, limits, null band.

Source: docs/method.md sections 3 to 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from monitor.maths import logit
from monitor.maths.disclosure import kl_bits, rank1_match_bits, rank_statistics
from monitor.maths.fitting import LOSSES, fit, fit_many, mean_bits_of
from monitor.maths.quantiles import limits
from monitor.maths.ranks import rank_histogram, rank_histograms
from monitor.maths.reliability import reliability
from monitor.training.cells import Cell
from monitor.training.evidence import FittedEvidence
from monitor.training.open_set import learn_strangers
from monitor.training.shrinking import KnownLaw, ranks_of, trials_of
from monitor.types import BoolArray, FloatArray, IntArray

__all__ = ["FittedCell", "fit_cell"]

PERMUTATIONS = 200


@dataclass(frozen=True, slots=True)
class FittedCell:
    """Parameters of a cell, row 0 the law and rows 1..B its resamples.

    Attributes:
        alpha, beta, binomial, floor: shape (1 + B,).
        weights: shape (1 + B, F); NaN for a feature that no trial had a frame of.
        open_set: shape (1 + F,), see ``RankLaw``.
        row: the cell's line in the calibration table.
        evidence: likelihood ratios; None without a cohort, or where a feature had no frame yet.
    """

    alpha: FloatArray
    beta: FloatArray
    binomial: BoolArray
    weights: FloatArray
    floor: FloatArray
    open_set: FloatArray
    row: dict[str, Any]
    evidence: FittedEvidence | None = None


def fit_cell(
    cell: Cell,
    axis: Sequence[int],
    speaker_weights: FloatArray,
    additive: BoolArray,
    seed: int = 0,
    known: KnownLaw | None = None,
) -> FittedCell | None:
    """Fit one cell for one set of features.

    Args:
        cell: its trials.
        axis: which features, as places on the cell's axis F.
        speaker_weights: how often each voice is drawn, shape (B, voices).
        additive: shape (F,), which of those features' scores grow with the evidence.
        seed: of the permutations of the null band.
        known: another law, in the weight that it has; B resamples of it.

    Returns:
        None where no score ever differed, as with embeddings of windows longer than the test.
    """
    made = trials_of(cell, axis)
    if made is None:
        return None
    trials, heard = made
    voices, place = np.unique(cell.behind_speaker), trials.speaker
    prior = logit.prior_of(trials)
    anchor = known.anchor(trials, heard) if known is not None else None
    posterior = logit.fit(trials, prior, anchor)
    drawn = _never_empty(speaker_weights[:, voices])
    replicate_weights, replicate_floor = logit.fit_replicates(
        trials, posterior.weights, drawn, prior, anchor=anchor
    )
    held_weights, held_floor = logit.held_out(trials, posterior.weights, voices.size, prior, anchor)
    held = trials.posterior(held_weights[place], held_floor[place])
    held_bits = logit.held_out_bits(trials, held_weights, held_floor)
    diagram = reliability(held, cell.own, 1.0 / np.bincount(place)[place])

    evidence = np.einsum("f,nfj->nj", posterior.weights, trials.behind)
    strangers = learn_strangers(cell, axis, evidence, additive)
    speaker, better, tied = ranks_of(cell, axis, evidence)
    n = cell.candidates
    histogram = rank_histogram(better, tied, n)
    drawn = _never_empty(speaker_weights[:, np.unique(speaker)])
    mated = np.searchsorted(np.unique(speaker), speaker)
    resampled: FloatArray = rank_histograms(better, tied, n, drawn[:, mated])
    blended: FloatArray = histogram
    if known is not None:
        resampled = known.mixed(resampled, voices.size, resamples=True)
        blended = known.mixed(histogram, voices.size)
    alpha, beta, binomial = fit_many(resampled)
    law = fit(blended, "LL")
    means = mean_bits_of(alpha, beta, binomial, n)
    low, high = limits(means)
    null = _null_band(evidence, cell.own, seed, known)
    weights = np.full((1 + len(speaker_weights), len(axis)), np.nan)
    weights[:, heard] = np.concatenate([posterior.weights[None], replicate_weights])
    statistics = rank_statistics(histogram, trials=better.size)
    gamma = np.exp(law.log_pmf(n))
    pmf = histogram / histogram.sum()
    row: dict[str, Any] = {
        "speakers": int(np.unique(speaker).size),
        "candidates": n,
        "trials": int(better.size),
        "ties": "spread",
        "alpha": law.alpha,
        "beta": law.beta,
        "binomial": law.binomial,
        "mean_bits_raw": statistics.mean_bits,
        "mean_bits_miller_madow": statistics.miller_madow_bits,
        "mean_bits_model": float(law.mean_disclosure_bits(n)),
        "mean_bits_low": low,
        "mean_bits_high": high,
        "identification_rate": statistics.identification_rate,
        "std_bits": statistics.std_bits,
        "max_bits": statistics.max_bits,
        "max_rank": statistics.max_rank,
        "rank1_bits": statistics.rank1_bits,
        "spread": statistics.spread,
        "ceiling_bits": statistics.ceiling_bits,
        "kl_bits": _finite(kl_bits(pmf, gamma)),
        "rank1_match_bits": _finite(rank1_match_bits(pmf, gamma)),
        **null,
        "held_out_local_bits": float(held_bits.mean()),
        "calibration_error": diagram.top_error,
        "reliability": {
            "given": diagram.given.tolist(),
            "true": diagram.true.tolist(),
            "share": diagram.share.tolist(),
            "error": diagram.all_error,
        },
        "weights": [w if np.isfinite(w) else None for w in weights[0].tolist()],
        "floor": posterior.floor,
        "losses": _losses(histogram, pmf),
        "notes": list(law.notes),
        "open_set_area": strangers.area,
        "open_set_enrolled_kept": strangers.enrolled_kept,
        "open_set_strangers_found": strangers.strangers_found,
        "prior_speakers": 0.0 if known is None else known.worth,
    }
    return FittedCell(
        np.append(law.alpha, alpha),
        np.append(law.beta, beta),
        np.append(law.binomial, binomial),
        weights,
        np.append(posterior.floor, replicate_floor),
        np.append(strangers.bias, strangers.slopes),
        row,
    )


def _never_empty(weights: FloatArray) -> FloatArray:
    """A replicate that holds none of a cell's speakers counts them all once."""
    return np.where(weights.sum(axis=1, keepdims=True) > 0, weights, 1.0)


def _null_band(
    evidence: FloatArray, own: IntArray, seed: int, known: KnownLaw | None = None
) -> dict[str, float]:
    """MeanD of the same scores with whole speakers permuted against the templates.

    The model's holds what the known law brings even then.
    """
    trials, n = evidence.shape
    generator = np.random.default_rng(seed + 1)
    # permutations of thousands of candidates vary less, and cost more
    count = int(np.clip(100_000_000 // max(trials * n, 1), 20, PERMUTATIONS))
    histograms = np.empty((count, n))
    rows = np.arange(trials)
    for i in range(count):
        wrong = generator.permutation(n)[own]
        score = evidence[rows, wrong][:, None]
        better = (evidence > score).sum(axis=1)
        tied = (evidence == score).sum(axis=1)
        histograms[i] = rank_histogram(better, tied, n)
    told = histograms if known is None else known.mixed(histograms, np.unique(own).size)
    model = mean_bits_of(*fit_many(told), n)
    raw = np.array([rank_statistics(each, trials=trials).mean_bits for each in histograms])
    low, high = limits(model)
    raw_low, raw_high = limits(raw)
    return {
        "null_low": low,
        "null_high": high,
        "null_raw_low": raw_low,
        "null_raw_high": raw_high,
    }


def _losses(histogram: FloatArray, pmf: FloatArray) -> dict[str, dict[str, Any]]:
    result = {}
    for loss in LOSSES:
        found = fit(histogram, loss)
        gamma = np.exp(found.log_pmf(histogram.size))
        result[loss] = {
            "alpha": found.alpha,
            "beta": found.beta,
            "binomial": found.binomial,
            "loss": found.loss,
            "value": _finite(found.value),
            "kl_bits": _finite(kl_bits(pmf, gamma)),
            "rank1_match_bits": _finite(rank1_match_bits(pmf, gamma)),
            "notes": list(found.notes),
        }
    return result


def _finite(value: float | None) -> float | None:
    return value if value is not None and np.isfinite(value) else None
