"""The figures of SRD, from the ranks of a score matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from monitor.evaluation.figure import Figure
from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.evaluation.srd.null_band import PERMUTATIONS, null_band
from monitor.evaluation.srd.rank_laws import FittedRankLaw, LossFit, rank_law
from monitor.evaluation.srd.replicates import (
    fit_laws,
    mean_bits_by_speaker,
    resampled_histograms,
)
from monitor.maths.disclosure import null_bias_bits
from monitor.maths.intervals import quantile_limits
from monitor.maths.quantiles import weighted_quantile
from monitor.types import FloatArray

__all__ = [
    "figures",
    "loss_figures",
    "repeated",
]


def figures(
    matrix: ScoreMatrix,
    weights: FloatArray | None = None,
    ties: str = "spread",
    permutations: int = PERMUTATIONS,
    seed: int = 0,
    found: FittedRankLaw | None = None,
    by_speaker: FloatArray | None = None,
) -> tuple[Figure, ...]:
    """Every figure of SRD.

    The limits of MeanD stand on the law's, refitted in each resample; percentile limits of the
    plug-in figure would cover a quarter of the time (docs/method.md section 3), so it carries none.

    Args:
        matrix: the trials.
        weights: shape (B, S), from `resamples`; without them nothing is resampled.
        ties: one of `monitor.maths.ranks.TIE_RULES`.
        permutations: of the null band; 0 leaves it out.
        seed: of the permutations.
        found: `rank_law` of the trials by `ties`, where it was made already.
        by_speaker: `mean_bits_by_speaker` of them, likewise.

    Returns:
        MeanD (plug-in, Miller-Madow, the law's), the null band, IdR, rank-1 bits, StDD, MaxD and
        its rank, Spread, alpha, beta, and the distribution over speakers.

    Raises:
        UsageError: unknown rule, or a score that is not finite.
    """
    if found is None:
        found = rank_law(matrix.better, matrix.tied, matrix.population, ties)
    replicates = {} if weights is None else _replicates(resampled_histograms(matrix, weights, ties))
    values = _values(found)
    extra: dict[str, dict[str, Any]] = {
        "mean_bits": {"note": _PLUG_IN, "floor": null_bias_bits(matrix.population, found.trials)},
        "mean_bits_miller_madow": {"note": _why_no_correction(found), "floor": 0.0},
        "mean_bits_model": {"note": ", ".join(found.law.notes), "floor": 0.0},
        "idr": {"ceiling": 1.0, "floor": 1 / matrix.population},
        "maxd_bits": {"note": _NOISE},
        "rank1_bits": {"note": "" if found.histogram[0] else "nobody came first"},
    }
    if found.law.binomial:
        extra |= {key: {"note": _NO_OPTIMUM} for key in ("alpha", "beta")}
    if permutations:
        band = null_band(matrix, permutations, seed, ties)
        extra["mean_bits"]["floor"] = float(band.mean_bits.mean())
        for key, read, (low, high) in (
            ("null_mean_bits", band.mean_bits, band.limits),
            ("null_model_bits", band.model_bits, band.model_limits),
        ):
            values[key] = float(read.mean())
            extra[key] = {"low": low, "high": high, "note": band.dealt}
        values["null_chance"], extra["null_chance"] = band.chance, {"note": band.dealt}
    if by_speaker is None:
        by_speaker = mean_bits_by_speaker(matrix, ties)
    single = not repeated(matrix)
    for key, share in (("speaker_bits_median", 0.5), ("speaker_bits_95", 0.95)):
        if single:
            values[key], extra[key] = None, {"note": _ONE_TRIAL}
            continue
        values[key] = float(weighted_quantile(by_speaker, np.ones((1, by_speaker.size)), share)[0])
        extra[key] = {"note": _BY_SPEAKER}
        if weights is not None:
            replicates[key] = weighted_quantile(by_speaker, weights, share)
            low, high = quantile_limits(by_speaker, share, 0.0, matrix.ceiling_bits)
            extra[key] |= {"low": low, "high": high}
    made = []
    for key, value in values.items():
        label, unit = _NAMES[key]
        given = {"ceiling": matrix.ceiling_bits if unit == "bits" else None} | extra.get(key, {})
        made.append(
            Figure(
                f"srd.{key}", label, value, unit, replicates=replicates.get(key), ties=ties, **given
            )
        )
    return tuple(made)


_PLUG_IN = "biased up: read it beside its null band"
_NO_OPTIMUM = "ranks vary less than a beta-binomial can: the law is a binomial"
_NOISE = "noise where trials are few: look at the rank at which it stands"
_ONE_TRIAL = "no speaker has a second trial, and one has no mean"
_BY_SPEAKER = "of the law fitted to each speaker's own trials"
_NAMES = {
    "mean_bits": ("MeanD, counted", "bits"),
    "mean_bits_miller_madow": ("MeanD, counted, bias taken off", "bits"),
    "mean_bits_model": ("MeanD, fitted law", "bits"),
    "null_mean_bits": ("MeanD, counted, of no evidence", "bits"),
    "null_model_bits": ("MeanD, fitted law, of no evidence", "bits"),
    "null_chance": ("chance that no evidence reads as much", "share"),
    "idr": ("IdR: the right person first", "share"),
    "rank1_bits": ("disclosure of rank 1", "bits"),
    "stdd_bits": ("StDD", "bits"),
    "maxd_bits": ("MaxD", "bits"),
    "maxd_rank": ("rank of MaxD", "rank"),
    "spread": ("Spread", "share"),
    "alpha": ("alpha of the law", ""),
    "beta": ("beta of the law", ""),
    "speaker_bits_median": ("MeanD of the median speaker", "bits"),
    "speaker_bits_95": ("MeanD that 5 % of speakers exceed", "bits"),
}


def loss_figures(losses: Sequence[LossFit], ties: str = "spread") -> Iterator[Figure]:
    """How far the law by each loss lies from the ranks seen: SRD's Table II.

    Args:
        losses: from `loss_fits`.
        ties: how the ranks treated equal scores.

    Returns:
        ``srd.kl_LOSS_bits`` and ``srd.rank1_match_LOSS_bits`` of each, without limits.
    """
    for each in losses:
        note = ", ".join(each.notes)
        name = each.loss.lower()
        yield Figure(
            f"srd.kl_{name}_bits", f"law by {each.loss}: misfit (KL)", each.kl_bits, "bits",
            ties=ties, note=note,
        )  # fmt: skip
        yield Figure(
            f"srd.rank1_match_{name}_bits", f"law by {each.loss}: misfit at rank 1",
            each.rank1_match_bits, "bits", ties=ties, note=note,
        )  # fmt: skip


def repeated(matrix: ScoreMatrix) -> bool:
    """Whether any speaker has a second trial: one trial alone has no mean."""
    return bool(np.bincount(matrix.owner).max() > 1)


def _values(found: FittedRankLaw) -> dict[str, float | None]:
    of, law = found.statistics, found.law
    return {
        "mean_bits": of.mean_bits,
        "mean_bits_miller_madow": None if found.sparse else of.miller_madow_bits,
        "mean_bits_model": found.mean_bits,
        "idr": of.identification_rate,
        "rank1_bits": of.rank1_bits,
        "stdd_bits": of.std_bits,
        "maxd_bits": of.max_bits,
        "maxd_rank": float(of.max_rank),
        "spread": of.spread,
        "alpha": None if law.binomial else law.alpha,
        "beta": None if law.binomial else law.beta,
    }


def _why_no_correction(found: FittedRankLaw) -> str:
    if found.sparse:
        return "fewer trials than speakers: no correction holds, compare with the null band"
    if found.statistics.miller_madow_bits is None:
        return "needs whole counts: ties are spread over ranks"
    return ""


def _replicates(histograms: FloatArray) -> dict[str, FloatArray]:
    """Of each resample, (B, N): the law's figures, and the plug-in ones that limits suit."""
    model = fit_laws(histograms)
    p = histograms / histograms.sum(axis=1, keepdims=True)
    speakers = p.shape[1]
    bits = np.log2(speakers * np.where(p > 0, p, np.nan))
    return {
        "mean_bits_model": model.mean_bits,
        "idr": p[:, 0],
        "rank1_bits": bits[:, 0],
        "maxd_bits": np.nanmax(bits, axis=1),
        "spread": (p * speakers > 1 + 1e-9).mean(axis=1),
        "alpha": model.alpha,
    }
