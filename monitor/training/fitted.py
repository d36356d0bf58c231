"""Fits one cell of the calibration grid: rank model, posterior, limits and null band.

Source: docs/method.md sections 3 to 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from monitor.files import finite
from monitor.maths import posterior_fit as logit
from monitor.maths.posterior import reliability
from monitor.maths.posterior_fit import Anchor
from monitor.maths.rank_models import LOSSES, RankFit, fit, fit_many, mean_bits_of
from monitor.maths.ranks import (
    all_rank_bounds,
    kl_bits,
    rank1_match_bits,
    rank_histogram,
    rank_histograms,
    rank_statistics,
)
from monitor.maths.statistics import limits
from monitor.training.evidence import FittedEvidence, Row
from monitor.training.grid import Cell, ranks_of, singles_of, trials_of
from monitor.training.prior import PriorModel, learn_impostors
from monitor.types import BoolArray, FloatArray, IntArray

PERMUTATIONS = 200


@dataclass(frozen=True, slots=True)
class FittedCell:
    """Parameters of a cell: row 0 is the rank model, rows 1..B its resamples."""

    alpha: FloatArray  # alpha, beta, binomial, floor: shape (1 + B,)
    beta: FloatArray
    binomial: BoolArray
    weights: FloatArray  # shape (1 + B, F); NaN for a feature that no trial had a frame of
    floor: FloatArray
    open_set: FloatArray  # shape (1 + F,), see ``RankModel``
    row: Row  # its line in the calibration table
    speakers: int  # speakers with tests
    candidates: int  # N
    prior_speakers: float  # speakers that the prior counts as
    evidence: FittedEvidence | None = None  # None: no cohort, or a feature had no frame yet


def fit_cell(
    cell: Cell,  # its trials
    axis: Sequence[int],  # indices of the features on the cell's axis F
    speaker_weights: FloatArray,  # how often each voice is drawn, shape (B, voices)
    additive: BoolArray,  # shape (F,), whether each feature's scores grow with the evidence
    seed: int = 0,  # of the permutations of the null band
    prior: PriorModel | None = None,  # rank model of other people, with its weight
    # fits of single features of this cell, if several sets share them
    singles: logit.SingleFeatureFits | None = None,
) -> FittedCell | None:
    """Fit one cell for one set of features; None if no score differed."""
    selection = trials_of(cell, axis)
    if selection is None:
        return None
    trials, has_frames = selection
    singles = singles_of(cell) if singles is None else singles
    starts = singles.find_starts(np.array(axis)[has_frames].tolist())
    anchor = prior.anchor(trials, has_frames) if prior is not None else None
    draws = _never_empty(speaker_weights[:, np.unique(cell.gap_speaker)])
    weights, floor, posterior_row = _fit_posterior(trials, cell.true_index, starts, draws, anchor)
    evidence = np.einsum("f,nfj->nj", weights[0], trials.margins)
    impostors = learn_impostors(cell, axis, evidence, additive)
    ranks = ranks_of(cell, axis, evidence)
    histogram = rank_histogram(*ranks[1:], cell.candidates)
    rank_fit, resamples, rank_row = _fit_ranks(
        ranks, histogram, speaker_weights, draws.shape[1], prior
    )
    speakers = np.unique(ranks[0]).size
    all_weights = np.full((len(weights), len(axis)), np.nan)
    all_weights[:, has_frames] = weights
    row: Row = {
        "speakers": speakers,
        "candidates": cell.candidates,
        "trials": int(ranks[0].size),
        "ties": "spread",
        **rank_row,
        **_null_band(evidence, cell.true_index, seed, prior),
        **posterior_row,
        "weights": [w if np.isfinite(w) else None for w in all_weights[0].tolist()],
        "floor": float(floor[0]),
        "losses": _losses(histogram),
        "notes": list(rank_fit.notes),
        "open_set_area": impostors.area,
        "open_set_enrolled_kept": impostors.enrolled_kept,
        "open_set_impostors_found": impostors.impostors_found,
        "prior_speakers": 0.0 if prior is None else prior.worth,
    }
    alpha, beta, binomial = resamples
    return FittedCell(
        np.append(rank_fit.alpha, alpha),
        np.append(rank_fit.beta, beta),
        np.append(rank_fit.binomial, binomial),
        all_weights,
        floor,
        np.append(impostors.bias, impostors.slopes),
        row,
        speakers,
        cell.candidates,
        0.0 if prior is None else prior.worth,
    )


def _fit_posterior(
    trials: logit.Trials,
    target: IntArray,
    singles: tuple[logit.FitStarts, FloatArray],
    draws: FloatArray,
    anchor: Anchor | None,
) -> tuple[FloatArray, FloatArray, Row]:
    """Fit lambda, (1 + B, F), and e, (1 + B,), and assess them on left-out speakers."""
    starts, cost = singles
    posterior = logit.fit(trials, cost, anchor, starts)
    around = logit.NearbyLosses(trials, posterior.weights)
    weights, floor = logit.fit_replicates(
        trials, posterior.weights, draws, cost, anchor=anchor, around=around
    )
    held_weights, held_floor = logit.fit_held_out(
        trials, posterior.weights, draws.shape[1], cost, anchor, around
    )
    speaker = trials.speaker
    held_out = trials.posterior(held_weights[speaker], held_floor[speaker])
    held_bits = logit.held_out_bits(trials, held_weights, held_floor)
    diagram = reliability(held_out, target, 1.0 / np.bincount(speaker)[speaker])
    row: Row = {
        "held_out_local_bits": float(held_bits.mean()),
        "calibration_error": diagram.top_error,
        "reliability": {
            "given": diagram.predicted.tolist(),
            "true": diagram.observed.tolist(),
            "share": diagram.share.tolist(),
            "error": diagram.all_error,
        },
    }
    weights = np.concatenate([posterior.weights[None], weights])
    return weights, np.append(posterior.floor, floor), row


def _fit_ranks(
    ranks: tuple[IntArray, IntArray, IntArray],
    histogram: FloatArray,
    speaker_weights: FloatArray,
    scored: int,
    prior: PriorModel | None,
) -> tuple[RankFit, tuple[FloatArray, FloatArray, BoolArray], Row]:
    speaker, better, tied = ranks
    candidates = histogram.size
    people, person = np.unique(speaker, return_inverse=True)
    draws = _never_empty(speaker_weights[:, people])
    resampled: FloatArray = rank_histograms(better, tied, candidates, draws[:, person])
    blended: FloatArray = histogram
    if prior is not None:
        resampled = prior.mixed(resampled, scored, resamples=True)
        blended = prior.mixed(histogram, scored)
    alpha, beta, binomial = fit_many(resampled)
    rank_model = fit(blended, "LL")
    low, high = limits(mean_bits_of(alpha, beta, binomial, candidates))
    statistics = rank_statistics(histogram, trials=better.size)
    gamma = np.exp(rank_model.log_pmf(candidates))
    pmf = histogram / histogram.sum()
    row: Row = {
        "alpha": rank_model.alpha,
        "beta": rank_model.beta,
        "binomial": rank_model.binomial,
        "mean_bits_raw": statistics.mean_bits,
        "mean_bits_miller_madow": statistics.miller_madow_bits,
        "mean_bits_model": float(rank_model.mean_disclosure_bits(candidates)),
        "mean_bits_low": low,
        "mean_bits_high": high,
        "identification_rate": statistics.identification_rate,
        "std_bits": statistics.std_bits,
        "max_bits": statistics.max_bits,
        "max_rank": statistics.max_rank,
        "rank1_bits": statistics.rank1_bits,
        "spread": statistics.spread,
        "ceiling_bits": statistics.ceiling_bits,
        "kl_bits": finite(kl_bits(pmf, gamma)),
        "rank1_match_bits": finite(rank1_match_bits(pmf, gamma)),
    }
    return rank_model, (alpha, beta, binomial), row


def _never_empty(weights: FloatArray) -> FloatArray:
    """Count every speaker once in a replicate without any speaker of the cell."""
    return np.where(weights.sum(axis=1, keepdims=True) > 0, weights, 1.0)


def _null_band(
    evidence: FloatArray, target: IntArray, seed: int, prior: PriorModel | None = None
) -> dict[str, float]:
    """Compute MeanD of the same scores with whole speakers permuted against the templates."""
    trials, n = evidence.shape
    generator = np.random.default_rng(seed + 1)
    # permutations of thousands of candidates vary less, and cost more
    count = int(np.clip(100_000_000 // max(trials * n, 1), 20, PERMUTATIONS))
    rows = np.arange(trials)
    wrong = np.stack([generator.permutation(n)[target] for _ in range(count)])
    better, tied = (bounds[rows, wrong] for bounds in all_rank_bounds(evidence))
    if (tied == 1).all():
        cells = better + n * np.arange(count)[:, None]
        histograms = np.bincount(cells.ravel(), minlength=count * n).reshape(count, n).astype(float)
    else:
        both = zip(better, tied, strict=True)
        histograms = np.stack([rank_histogram(*bounds, n) for bounds in both])
    blended = histograms if prior is None else prior.mixed(histograms, np.unique(target).size)
    model = mean_bits_of(*fit_many(blended), n)
    fraction = histograms / trials
    raw = np.maximum(
        (fraction * np.log2(n * np.where(fraction > 0, fraction, 1.0 / n))).sum(axis=1), 0.0
    )
    low, high = limits(model)
    raw_low, raw_high = limits(raw)
    return {"null_low": low, "null_high": high, "null_raw_low": raw_low, "null_raw_high": raw_high}


def _losses(histogram: FloatArray) -> dict[str, Row]:
    losses, pmf = {}, histogram / histogram.sum()
    likeliest = fit_many(histogram[None])
    for loss in LOSSES:
        rank_fit = fit(histogram, loss, likeliest)
        gamma = np.exp(rank_fit.log_pmf(histogram.size))
        losses[loss] = {
            "alpha": rank_fit.alpha,
            "beta": rank_fit.beta,
            "binomial": rank_fit.binomial,
            "loss": rank_fit.loss,
            "value": finite(rank_fit.value),
            "kl_bits": finite(kl_bits(pmf, gamma)),
            "rank1_match_bits": finite(rank1_match_bits(pmf, gamma)),
            "notes": list(rank_fit.notes),
        }
    return losses
