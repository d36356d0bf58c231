"""Fits likelihood ratios of a cell (docs/method.md section 10).

The compared people trained none of the networks, and none is in the cohort. So the fit includes a
network's effect on the scores of a cohort that trained it. All figures are of people outside the
fit. If their mean non-mated ratio exceeds 1 in any corpus, the intercept a is lowered until it does
not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from monitor.maths import ratio_checks as calibrated
from monitor.maths.evidence import (
    bits_among,
    cap_bits,
    level_ratios,
    posterior_among,
    total_bits,
    with_misses,
)
from monitor.maths.likelihood_ratios import (
    PriorCoefficients,
    ScorePairs,
    TemplateComparisons,
    cross_fit,
    fit_each,
    pair_count,
)
from monitor.maths.logistic import compute_separation
from monitor.maths.statistics import limits, weighted_quantile
from monitor.training.grid import CellComparisons
from monitor.types import BoolArray, FloatArray, IntArray

Row: TypeAlias = dict[str, Any]  # figures of a line in the calibration table, by column


ROW = (
    *("evidence_speakers", "evidence_pairs", "evidence_bits", "evidence_low_tenth"),
    *("evidence_low_twentieth", "evidence_high_twentieth", "others_high_twentieth"),
    *("support_bits", "invariance_bits", "evidence_lowered_bits", "evidence_cllr"),
    *("evidence_min_cllr", "others_mean_ratio", "others_mean_ratio_low", "others_mean_ratio_high"),
    *("others_exceeding", "evidence_candidates", "rank1_predicted", "rank1_actual"),
    *("among_bits_predicted", "among_bits_actual", "enrolled_area"),
)
"""Evidence columns of the calibration table, all null without a cohort."""

_FLAT = 1e-6  # bits; if all evidence is within this range, it separates no speakers
_MOST = 200_000  # comparisons in the fit, sampled evenly from all pairs; more change nothing
_MOST_DRAWN = 6_000  # comparisons in the fits of resamples and of cross-validation folds


@dataclass(frozen=True, slots=True)
class FittedEvidence:
    """Likelihood ratios of one cell: row 0 is the fit, rows 1..B its resamples."""

    coefficients: FloatArray  # a and b, shape (1 + B, 1 + F)
    support: float  # bits
    area: float
    row: Row


@dataclass(frozen=True, slots=True)
class ChosenComparisons:
    """Comparisons of a cell that count for one set of features."""

    comparisons: TemplateComparisons  # flat, people counted from 0
    people: IntArray  # index of each person among all voices, shape (V,)
    indices: IntArray  # stream and template of each comparison, shape (n, 2)
    streams: IntArray  # shape (n',), person of each mated stream, otherwise -1
    own_column: IntArray  # shape (n',), index of the own template among the N, otherwise -1
    candidates: int
    corpora: IntArray  # of the people, shape (V,)

    def table(self, values: FloatArray) -> FloatArray:
        """Arrange values by mated stream, shape (n'', N); NaN where there is no comparison."""
        table = np.full((self.own_column.size, self.candidates), np.nan)
        table[self.indices[:, 0], self.indices[:, 1]] = values
        return np.asarray(table[self.own_column >= 0])


class ComparisonChooser:
    """Selector of a cell's comparisons by features; it caches those of the same streams.

    People of different ``corpora``, an index per voice, are not compared: microphones differ.
    """

    def __init__(self, compared: CellComparisons, corpora: IntArray | None = None) -> None:
        self._compared = compared

        @cache
        def compare(rows: bytes) -> ChosenComparisons | None:
            return _compare_streams(compared, np.frombuffer(rows, np.bool_), corpora)

        self._compare = compare

    def choose(self, axis: Sequence[int], voices: BoolArray) -> ChosenComparisons | None:
        """Return the comparisons of streams with every feature, of ``voices``, a (voices,) mask.

        None if there are no mated or no non-mated comparisons.
        """
        rows = voices[self._compared.tester] & self._compared.has_frames[:, list(axis)].all(axis=1)
        chosen = self._compare(rows.tobytes())
        if chosen is None:
            return None
        z = chosen.comparisons.z[:, list(axis)]
        comparisons = TemplateComparisons(z, chosen.comparisons.pairs)
        return replace(chosen, comparisons=comparisons)


def _compare_streams(
    compared: CellComparisons, rows: BoolArray, corpora: IntArray | None
) -> ChosenComparisons | None:
    """Return the comparisons of these streams, shape (n,), with scores of all features."""
    tester, mated = compared.tester[rows], compared.mated[rows]
    column = np.arange(compared.owner.size)
    is_own = column == mated[:, None]
    counts = (compared.owner != tester[:, None]) | is_own
    if corpora is None:
        corpora = np.zeros(int(max(tester.max(initial=0), compared.owner.max())) + 1, np.int64)
    counts &= corpora[tester][:, None] == corpora[compared.owner]
    indices = np.argwhere(counts)
    pairs = np.stack([tester[indices[:, 0]], compared.owner[indices[:, 1]]])
    if not (pairs[0] == pairs[1]).any() or (pairs[0] == pairs[1]).all():
        return None
    people, person = np.unique(pairs, return_inverse=True)
    person = person.reshape(pairs.shape)
    z = compared.z[rows][indices[:, 0], :, indices[:, 1]]
    streams = np.where(mated >= 0, np.searchsorted(people, tester), -1)
    return ChosenComparisons(
        TemplateComparisons(z, ScorePairs(person[0], person[1])),
        people,
        indices,
        streams,
        mated,
        column.size,
        corpora[people],
    )


def fit_evidence(
    chosen: ChosenComparisons, speaker_weights: FloatArray, prior: PriorCoefficients | None = None
) -> FittedEvidence:
    """Fit likelihood ratios, judge them on people left out, and bound them.

    ``speaker_weights``, shape (B, voices), count how often each voice is drawn.
    """
    comparisons = chosen.comparisons
    draws = comparisons.pairs.count_draws(speaker_weights, chosen.people)
    fit, replicates, held_out_bits = _fit_ratios(comparisons, draws, prior)
    mated = comparisons.mated
    weight = comparisons.weights()
    mated_weight, others_weight = weight[mated], weight[~mated]
    pairs, speakers = pair_count(comparisons), int(np.unique(comparisons.test_speaker[mated]).size)
    corpus = chosen.corpora[comparisons.test_speaker[~mated]]
    capped = np.minimum(held_out_bits[~mated], float(np.log2(1.0 + pairs)))
    ratio = max(
        calibrated.mean_ratio(capped[corpus == c], others_weight[corpus == c])
        for c in np.unique(corpus)
    )
    lowered = max(float(np.log(ratio)), 0.0)
    coefficients = np.concatenate([fit, replicates])
    coefficients[:, 0] -= lowered
    bits = with_misses(held_out_bits - lowered / np.log(2.0))
    others = comparisons.non_mated
    support, invariance = calibrated.supported_bits(
        bits[mated], bits[~mated], mated_weight, others_weight, speakers, pairs, others
    )
    supported = np.minimum(bits, support)
    costs = supported[mated], supported[~mated], mated_weight, others_weight
    area, among = _compute_among(chosen, bits, support)
    row: Row = {
        "evidence_speakers": speakers,
        "evidence_pairs": pairs,
        "evidence_bits": float(mated_weight @ supported[mated]),
        "evidence_low_tenth": _quantile(supported[mated], mated_weight, 0.1),
        "evidence_low_twentieth": _quantile(supported[mated], mated_weight, 0.05),
        "evidence_high_twentieth": _quantile(supported[mated], mated_weight, 0.95),
        "others_high_twentieth": _quantile(supported[~mated], others_weight, 0.95),
        "support_bits": support,
        "invariance_bits": invariance,
        "evidence_lowered_bits": lowered / float(np.log(2.0)),
        "evidence_cllr": calibrated.cost_bits(*costs),
        "evidence_min_cllr": calibrated.least_cost_bits(*costs),
        **_compute_others(others, supported[~mated], draws),
        **among,
        "enrolled_area": area,
    }
    return FittedEvidence(coefficients, support, area, row)


def _fit_ratios(
    comparisons: TemplateComparisons, draws: FloatArray, prior: PriorCoefficients | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return a and b of all voices, (1, 1 + F), of resamples, (B, 1 + F), and held-out bits."""
    many, sample = comparisons.subsample(_MOST), comparisons.subsample(_MOST_DRAWN)
    prior_fit = prior_resamples = None
    if prior is not None:
        prior_fit = PriorCoefficients(prior.coefficients[:1], prior.worth)
        prior_resamples = PriorCoefficients(prior.coefficients[1:], prior.worth)
    fit = fit_each(many, prior=prior_fit)
    near = fit_each(sample, prior=prior_fit, start=fit[0])
    replicates = fit_each(sample, draws, prior_resamples, near[0])
    by_fold, fold = cross_fit(sample, prior_fit, near[0])
    for fits in (replicates, by_fold):
        fits += fit - near  # correct for the smaller sample of comparisons
        fits[..., 1:] = np.maximum(fits[..., 1:], 0.0)
    held_out = by_fold[fold[comparisons.test_speaker], fold[comparisons.template_speaker]]
    nats = held_out[:, 0] + (held_out[:, 1:] * comparisons.z).sum(axis=1)
    return fit, replicates, nats / np.log(2.0)


def _quantile(bits: FloatArray, weight: FloatArray, level: float) -> float:
    return float(weighted_quantile(bits, weight[None], level)[0])


def _compute_others(comparisons: TemplateComparisons, bits: FloatArray, draws: FloatArray) -> Row:
    first, counts, pair = comparisons.pairs.unique
    pair_means = np.bincount(pair, np.exp2(bits)) / counts
    cell = comparisons.test_speaker[first], comparisons.template_speaker[first]
    ratios, compared = np.zeros((2, draws.shape[1], draws.shape[1]))
    ratios[cell], compared[cell] = pair_means, 1.0
    # a pair counts as often as the product of its people's counts
    total = ((draws @ compared) * draws).sum(axis=1)
    means = ((draws @ ratios) * draws).sum(axis=1)[total > 0] / total[total > 0]
    low, high = limits(means if means.size else pair_means)
    steps = np.arange(1, int(np.log2(1.0 + counts.size)) + 1)
    shares = calibrated.exceeding(bits, (1.0 / counts)[pair], steps.astype(float))
    return {
        "others_mean_ratio": float(pair_means.mean()),
        "others_mean_ratio_low": low,
        "others_mean_ratio_high": high,
        "others_exceeding": [
            {"bits": int(k), "share": float(fraction), "allowed": float(0.5**k)}
            for k, fraction in zip(steps, shares, strict=True)
        ],
    }


def _compute_among(
    chosen: ChosenComparisons, bits: FloatArray, support: float
) -> tuple[float, Row]:
    """Compute the AUC of enrolled against impostors, and predicted and actual rank 1 and bits."""
    table = chosen.table(bits)
    rows = np.arange(len(table))
    own_column = chosen.own_column[chosen.own_column >= 0]
    speaker = np.unique(chosen.streams[chosen.own_column >= 0], return_inverse=True)[1]
    weight = (1.0 / np.bincount(speaker))[speaker]
    weight /= weight.sum()
    filled = np.where(np.isnan(table), -np.inf, table)
    away = filled.copy()
    away[rows, own_column] = -np.inf
    enrolled, impostors = (
        cap_bits(level_ratios(ratios_of_class), support) for ratios_of_class in (filled, away)
    )
    count = np.isfinite(table).sum(axis=1)
    # rounded to 1e-9 bits, so that rounding errors do not decide
    odds = [
        (total_bits(ratios_of_class) - np.log2(n)).round(9)
        for ratios_of_class, n in ((enrolled, count), (impostors, count - 1))
    ]
    area = min(compute_separation(odds[0], odds[1], weight)[2], 1.0)
    if np.nanmax(table) - np.nanmin(table) < _FLAT:
        area = 0.5  # otherwise the number of candidates alone would decide
    # move the candidates with a comparison to the front
    n = int(count.max())
    complete = count == n
    candidates = np.argsort(np.isnan(table[complete]), axis=1, kind="stable")[:, :n]
    ratios = np.take_along_axis(enrolled[complete], candidates, axis=1)
    target = np.argmax(candidates == own_column[complete][:, None], axis=1)
    posterior = posterior_among(ratios, n)
    weights = weight[complete] / weight[complete].sum()
    true = posterior[np.arange(len(candidates)), target]
    first = posterior.argmax(axis=1) == target
    return area, {
        "evidence_candidates": n,
        "rank1_predicted": float(weights @ posterior.max(axis=1)),
        "rank1_actual": float(weights @ first),
        "among_bits_predicted": float(weights @ bits_among(ratios, n, None)),
        "among_bits_actual": float(weights @ np.log2(n * np.maximum(true, 1e-300))),
    }
