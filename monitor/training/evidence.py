"""Fits and judges the likelihood ratios of one cell of the calibration grid.

Source: docs/method.md section 10.

The streams are of people who trained none of the networks, and nobody in the cohort is compared, so
that what a network does to the scores of a cohort that trained it is part of the fit. All
figures are of people whom the fit has not seen: where other people's mean ratio exceeds 1 there, a
is lowered until it does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from monitor.maths import calibrated
from monitor.maths.evidence import (
    bits_among,
    held_to,
    levelled,
    posterior_among,
    total_bits,
)
from monitor.maths.openset import told_apart
from monitor.maths.quantiles import limits, weighted_quantile
from monitor.maths.twoclass import (
    PriorCoefficients,
    TemplateComparisons,
    cross_fit,
    fit_each,
    pair_count,
)
from monitor.training.cells import CellComparisons
from monitor.types import BoolArray, FloatArray, IntArray

__all__ = ["ROW", "ChosenComparisons", "FittedEvidence", "chosen", "fit_evidence"]

ROW = (
    *("evidence_speakers", "evidence_pairs", "evidence_bits", "evidence_low_tenth"),
    *("evidence_low_twentieth", "evidence_high_twentieth", "others_high_twentieth"),
    *("support_bits", "evidence_lowered_bits", "evidence_cllr", "evidence_min_cllr"),
    *("others_mean_ratio", "others_mean_ratio_low", "others_mean_ratio_high"),
    *("others_exceeding", "evidence_candidates", "rank1_predicted", "rank1_actual"),
    *("among_bits_predicted", "among_bits_actual", "enrolled_area"),
)
"""What a cell's line in the calibration table says of it, all null without a cohort."""

_FLAT = 1e-6
"""Bits between the best and the worst that tell nobody from anybody."""
_MOST = 200_000
"""Comparisons behind the fit, evenly of all pairs; of more, those left out say the same."""
_MOST_DRAWN = 6_000
"""Those behind the resamples, and behind the fits that leave people out."""


@dataclass(frozen=True, slots=True)
class FittedEvidence:
    """The law of one cell, row 0, and its resamples, rows 1..B.

    Attributes:
        coefficients: a and b, shape (1 + B, 1 + F).
        support: bits.
        area: under the ROC curve of enrolled speakers against strangers.
        row: what the calibration table says of it.
    """

    coefficients: FloatArray
    support: float
    area: float
    row: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ChosenComparisons:
    """The comparisons of a cell that count for one set of features.

    Attributes:
        comparisons: flat, people counted from 0.
        people: which voice each of these is, shape (V,).
        place: stream and template of each comparison, shape (n, 2).
        streams: shape (n', ), person of each mated stream; -1 of the others.
        own: position of its own template among the N, shape (n',); -1 of the others.
        candidates: N.
    """

    comparisons: TemplateComparisons
    people: IntArray
    place: IntArray
    streams: IntArray
    own: IntArray
    candidates: int

    def table(self, values: FloatArray) -> FloatArray:
        """Of each mated stream, shape (n'', N); NaN where there is no comparison."""
        made = np.full((self.own.size, self.candidates), np.nan)
        made[self.place[:, 0], self.place[:, 1]] = values
        return np.asarray(made[self.own >= 0])


def chosen(
    compared: CellComparisons, axis: Sequence[int], voices: BoolArray
) -> ChosenComparisons | None:
    """Streams of those voices alone, where every feature was heard, against all templates.

    Args:
        compared: of a cell.
        axis: which features, as places on the axis F.
        voices: shape (voices,), whose streams count.

    Returns:
        None where a class of comparisons is empty.
    """
    rows = voices[compared.tester] & compared.heard[:, list(axis)].all(axis=1)
    tester, mated = compared.tester[rows], compared.mated[rows]
    column = np.arange(compared.owner.size)
    own = column == mated[:, None]
    counts = (compared.owner != tester[:, None]) | own
    place = np.argwhere(counts)
    who = np.stack([tester[place[:, 0]], compared.owner[place[:, 1]]])
    if not (who[0] == who[1]).any() or (who[0] == who[1]).all():
        return None
    people, of = np.unique(who, return_inverse=True)
    of = of.reshape(who.shape)
    z = compared.z[rows][:, list(axis)][place[:, 0], :, place[:, 1]]
    streams = np.where(mated >= 0, np.searchsorted(people, tester), -1)
    return ChosenComparisons(
        TemplateComparisons(z, of[0], of[1]), people, place, streams, mated, column.size
    )


def fit_evidence(
    found: ChosenComparisons, speaker_weights: FloatArray, told: PriorCoefficients | None = None
) -> FittedEvidence:
    """Fit likelihood ratios, judge them on people left out, and bound them.

    Args:
        found: comparisons, of ten mated speakers or more.
        speaker_weights: how often each voice is drawn, shape (B, voices).
        told: another law and its B resamples, shape (1 + B, 1 + F), in the weight that it has.
    """
    many = found.comparisons.thinned(_MOST)
    few = found.comparisons.thinned(_MOST_DRAWN)
    law = None if told is None else PriorCoefficients(told.coefficients[:1], told.worth)
    resampled = None if told is None else PriorCoefficients(told.coefficients[1:], told.worth)
    fit = fit_each(many, told=law)
    near = fit_each(few, told=law, start=fit[0])
    replicates = fit_each(few, speaker_weights[:, found.people], resampled, near[0])
    replicates += fit - near  # what the fewer comparisons alone would move
    replicates[:, 1:] = np.maximum(replicates[:, 1:], 0.0)
    by_fold, fold = cross_fit(few, law, near[0])
    by_fold = by_fold + (fit - near)
    by_fold[..., 1:] = np.maximum(by_fold[..., 1:], 0.0)

    all_of_them = found.comparisons
    without = by_fold[fold[all_of_them.tester], fold[all_of_them.owner]]
    bits = (without[:, 0] + (without[:, 1:] * all_of_them.z).sum(axis=1)) / np.log(2.0)
    mated = all_of_them.mated
    weight = all_of_them.weights()
    own, theirs = weight[mated], weight[~mated]
    pairs, speakers = pair_count(all_of_them), int(np.unique(all_of_them.tester[mated]).size)
    most = float(np.log2(1.0 + pairs))
    ratio = calibrated.mean_ratio(np.minimum(bits[~mated], most), theirs)
    lowered = max(float(np.log(ratio)), 0.0)
    coefficients = np.concatenate([fit, replicates])
    coefficients[:, 0] -= lowered
    bits -= lowered / np.log(2.0)
    support = calibrated.upper_bound_bits(bits[mated], bits[~mated], own, theirs, speakers, pairs)
    held = np.minimum(bits, support)
    area, among = _among(found, bits, support)
    row = {
        "evidence_speakers": speakers,
        "evidence_pairs": pairs,
        "evidence_bits": float(own @ held[mated]),
        "evidence_low_tenth": _quantile(held[mated], own, 0.1),
        "evidence_low_twentieth": _quantile(held[mated], own, 0.05),
        "evidence_high_twentieth": _quantile(held[mated], own, 0.95),
        "others_high_twentieth": _quantile(held[~mated], theirs, 0.95),
        "support_bits": support,
        "evidence_lowered_bits": lowered / float(np.log(2.0)),
        "evidence_cllr": calibrated.cost_bits(held[mated], held[~mated], own, theirs),
        "evidence_min_cllr": calibrated.least_cost_bits(held[mated], held[~mated], own, theirs),
        **_others(all_of_them.some(~mated), held[~mated], speaker_weights[:, found.people]),
        **among,
        "enrolled_area": area,
    }
    return FittedEvidence(coefficients, support, area, row)


def _quantile(bits: FloatArray, weight: FloatArray, share: float) -> float:
    return float(weighted_quantile(bits, weight[None], share)[0])


def _others(
    comparisons: TemplateComparisons, bits: FloatArray, drawn: FloatArray
) -> dict[str, Any]:
    """Other people's mean ratio with limits, and how many of them show k bits."""
    pair, place, counts = np.unique(comparisons.pair, return_inverse=True, return_counts=True)
    first = np.unique(place, return_index=True)[1]
    weights = drawn[:, comparisons.tester[first]] * drawn[:, comparisons.owner[first]]
    each = np.bincount(place, np.exp2(bits)) / counts
    total = weights.sum(axis=1)
    means = (weights @ each)[total > 0] / total[total > 0]
    low, high = limits(means if means.size else each)
    steps = np.arange(1, int(np.log2(1.0 + pair.size)) + 1)
    shares = calibrated.exceeding(bits, (1.0 / counts)[place], steps.astype(float))
    return {
        "others_mean_ratio": float(each.mean()),
        "others_mean_ratio_low": low,
        "others_mean_ratio_high": high,
        "others_exceeding": [
            {"bits": int(k), "share": float(share), "allowed": float(0.5**k)}
            for k, share in zip(steps, shares, strict=True)
        ],
    }


def _among(
    found: ChosenComparisons, bits: FloatArray, support: float
) -> tuple[float, dict[str, Any]]:
    """Enrolled told from strangers; and rank 1 and bits among the candidates, as told and true."""
    table = found.table(bits)
    rows = np.arange(len(table))
    own = found.own[found.own >= 0]
    speaker = np.unique(found.streams[found.own >= 0], return_inverse=True)[1]
    weight = (1.0 / np.bincount(speaker))[speaker]
    weight /= weight.sum()
    there = np.where(np.isnan(table), -np.inf, table)
    away = there.copy()
    away[rows, own] = -np.inf
    enrolled, strangers = (held_to(levelled(each), support) for each in (there, away))
    count = np.isfinite(table).sum(axis=1)
    # to a billionth of a bit: rounding is not what tells them apart
    odds = [
        (total_bits(each) - np.log2(n)).round(9)
        for each, n in ((enrolled, count), (strangers, count - 1))
    ]
    area = min(told_apart(odds[0], odds[1], weight)[2], 1.0)
    if np.nanmax(table) - np.nanmin(table) < _FLAT:
        area = 0.5  # where all are alike, only how many there are would tell
    # candidates who are not to be compared are nobody
    n = int(count.max())
    whole = count == n
    kept = np.argsort(np.isnan(table[whole]), axis=1, kind="stable")[:, :n]
    ratios = np.take_along_axis(enrolled[whole], kept, axis=1)
    target = np.argmax(kept == own[whole][:, None], axis=1)
    posterior = posterior_among(ratios, n)
    share = weight[whole] / weight[whole].sum()
    true = posterior[np.arange(len(kept)), target]
    first = posterior.argmax(axis=1) == target
    return area, {
        "evidence_candidates": n,
        "rank1_predicted": float(share @ posterior.max(axis=1)),
        "rank1_actual": float(share @ first),
        "among_bits_predicted": float(share @ bits_among(ratios, n, None)),
        "among_bits_actual": float(share @ np.log2(n * np.maximum(true, 1e-300))),
    }
