"""Fits one cell of the calibration grid: rank model, evidence, posterior, limits, null band."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from monitor.files import finite
from monitor.maths import posterior_fit as logit
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
from monitor.maths.logistic import OpenSet, compute_separation, fit_open_set
from monitor.maths.posterior import reliability
from monitor.maths.posterior_fit import Anchor, information
from monitor.maths.rank_models import LOSSES, RankFit, fit, fit_many, mean_bits_of, pmf_of
from monitor.maths.ranks import (
    all_rank_bounds,
    kl_bits,
    rank1_match_bits,
    rank_histogram,
    rank_histograms,
    rank_statistics,
)
from monitor.maths.statistics import limits, weighted_quantile
from monitor.training.voices import Cell, CellComparisons
from monitor.types import BoolArray, FloatArray, IntArray

Row: TypeAlias = dict[str, Any]
"""Figures of a line in the calibration table, by column."""

# --------------------------------------------------------------------------------------- shrinking
# The other model counts as m further speakers beside S own ones: m / (S + m), which fades as S
# grows. Its rank pmf is mixed into our histogram of ranks in that proportion. Its lambda and e
# anchor those of the fit (see ``monitor.maths.posterior_fit``). The likelihood of left-out speakers
# selects m, pooled over cells so that the choice is stable. The minimum of m is twenty, since a
# dozen easily separable speakers do not represent others.

WORTHS = (20.0, 50.0, 100.0)  # speakers that another rank model may be worth
_FOLDS = 20
_MOST_SCORES = 200_000  # behind the information of a trial


@dataclass(frozen=True, slots=True)
class PriorModel:
    """Rank model of other speakers at a cell; row 0 the model, rows 1..B its resamples."""

    pmf: FloatArray  # of the ranks at the cell's N, shape (1 + B, N)
    weights: FloatArray  # lambda, shape (1 + B, F)
    floor: FloatArray  # e, shape (1 + B,)
    worth: float = 0.0  # m, speakers
    evidence: FloatArray | None = None  # of its likelihood ratios, (1 + B, 1 + F), or None

    def share(self, speakers: int) -> float:
        """Return its weight beside S speakers: m / (S + m)."""
        return self.worth / (speakers + self.worth)

    def mixed(
        self, histograms: FloatArray, speakers: int, *, resamples: bool = False
    ) -> FloatArray:
        """Mix its ranks, or those of its resamples, into histograms (..., N) of S speakers."""
        share, pmf = self.share(speakers), self.pmf[1:] if resamples else self.pmf[0]
        return np.asarray(
            (1.0 - share) * histograms + share * histograms.sum(-1, keepdims=True) * pmf
        )

    def anchor(self, trials: logit.Trials, has_frames: BoolArray) -> Anchor:
        """Return the anchor of lambda and e of the features with frames."""
        weights = self.weights[:, has_frames]
        step = -(-trials.margins.size // _MOST_SCORES)
        fisher = information(trials.margins[::step], weights[0], float(self.floor[0]))
        return Anchor(np.column_stack([weights, np.log(self.floor)]), fisher).scale_to(self.worth)


def trials_of(cell: Cell, axis: Sequence[int]) -> tuple[logit.Trials, BoolArray] | None:
    """Return the trials of some features, and those with frames; None if no score differed."""
    _, place = np.unique(cell.gap_speaker, return_inverse=True)
    gaps = cell.gaps[:, list(axis)]
    has_frames: BoolArray = np.asarray(gaps.any(axis=(0, 2)))
    return (logit.Trials(gaps[:, has_frames], place), has_frames) if has_frames.any() else None


def ranks_of(
    cell: Cell, axis: Sequence[int], evidence: FloatArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Return speaker, better and tied of each trial; of several features those with scores."""
    if len(axis) == 1:
        return cell.speaker, cell.better[axis[0]], cell.tied[axis[0]]
    return cell.gap_speaker, (evidence > 0).sum(axis=1), (evidence == 0).sum(axis=1)


def singles_of(cell: Cell) -> logit.SingleFeatureFits:
    """Fit each feature of a cell alone, for the fits of sets of them."""
    _, place = np.unique(cell.gap_speaker, return_inverse=True)
    return logit.SingleFeatureFits(logit.Trials(cell.gaps, place))


def held_out_nats(
    cell: Cell,
    axis: Sequence[int],
    prior: PriorModel,
    worths: Sequence[float] = WORTHS,
    singles: logit.SingleFeatureFits | None = None,
) -> dict[int, FloatArray]:
    """Compute each speaker's loss under a fit on the others, by the worth of the other model.

    Returns:
        by voice, shape (M,): nats of its score posterior and of its rank.
    """
    selection = trials_of(cell, axis)
    if selection is None:
        return {}
    trials, has_frames = selection
    voices = np.unique(cell.gap_speaker)
    singles = singles_of(cell) if singles is None else singles
    starts, cost = singles.find_starts(np.array(axis)[has_frames].tolist())
    fold = np.arange(voices.size) % min(voices.size, _FOLDS)
    is_fitted = (fold != np.arange(fold.max() + 1)[:, None]).astype(float)
    lowest = logit.smallest_floor(voices.size - 1)
    losses = np.empty((voices.size, len(worths)))
    for i, worth in enumerate(worths):
        weighted_prior = replace(prior, worth=worth)
        anchor = weighted_prior.anchor(trials, has_frames).rank_model
        posterior = logit.fit(trials, cost, anchor, starts)
        weights, floors = logit.fit_replicates(
            trials, posterior.weights, is_fitted, cost, lowest, anchor
        )
        bits = logit.held_out_bits(trials, weights[fold], floors[fold])
        evidence = np.einsum("f,nfj->nj", posterior.weights, trials.margins)
        speaker, better, tied = ranks_of(cell, axis, evidence)
        place = np.searchsorted(voices, speaker)
        rest = rank_histograms(better, tied, cell.candidates, is_fitted[:, place])
        pmf = pmf_of(*fit_many(weighted_prior.mixed(rest, voices.size)), cell.candidates)
        gamma = (1.0 - lowest) * pmf + lowest / cell.candidates  # no rank is impossible
        # of tied ranks the mean of their logarithms
        sums = np.cumsum(np.pad(np.log(gamma), ((0, 0), (1, 0))), axis=1)
        logs = (sums[fold[place], better + tied] - sums[fold[place], better]) / tied
        ranked = np.bincount(place, logs) / np.bincount(place)
        losses[:, i] = -np.log(2.0) * bits - ranked
    return dict(zip(voices.tolist(), losses, strict=True))


def choose_worth(
    losses: Sequence[Mapping[int, FloatArray]], worths: Sequence[float] = WORTHS
) -> float:
    """Choose the worth under which speakers who were left out lose least."""
    voices = {voice for cell in losses for voice in cell}
    if not voices:
        return float(worths[0])
    means = [np.mean([c[v] for c in losses if v in c], axis=0) for v in sorted(voices)]
    return float(worths[int(np.mean(means, axis=0).argmin())])


def learn_impostors(
    cell: Cell, axis: Sequence[int], evidence: FloatArray, additive: BoolArray
) -> OpenSet:
    """Fit how well the favourite fits, enrolled or not, by the joint evidence, shape (n, N)."""
    trials = np.arange(evidence.shape[0])
    absolute = cell.gaps[:, list(axis)] + cell.mated[:, list(axis), None]
    frames = np.where(additive, np.maximum(cell.frames[:, list(axis)], 1.0), 1.0)
    absolute /= frames[:, :, None]
    enrolled = absolute[trials, :, evidence.argmax(axis=1)]
    others = evidence.copy()
    others[trials, cell.own] = -np.inf
    impostors = absolute[trials, :, others.argmax(axis=1)]
    return fit_open_set(enrolled, impostors, np.unique(cell.gap_speaker, return_inverse=True)[1])


# ---------------------------------------------------------------------------------------- evidence
# Source: docs/method.md section 10.
#
# The streams are of people who trained none of the networks, and the cohort is not compared. So the
# fit includes a network's effect on the scores of a cohort that trained it. All figures are of
# people outside the fit. If other people's mean ratio exceeds 1 there in any corpus, a is lowered
# until it does not.

ROW = (
    *("evidence_speakers", "evidence_pairs", "evidence_bits", "evidence_low_tenth"),
    *("evidence_low_twentieth", "evidence_high_twentieth", "others_high_twentieth"),
    *(
        "support_bits",
        "invariance_bits",
        "evidence_lowered_bits",
        "evidence_cllr",
        "evidence_min_cllr",
    ),
    *("others_mean_ratio", "others_mean_ratio_low", "others_mean_ratio_high"),
    *("others_exceeding", "evidence_candidates", "rank1_predicted", "rank1_actual"),
    *("among_bits_predicted", "among_bits_actual", "enrolled_area"),
)
"""A cell's columns of the calibration table, all null without a cohort."""

_FLAT = 1e-6  # bits between the best and the worst that separate no speakers
_MOST = 200_000  # comparisons behind the fit, evenly from all pairs; more would change nothing
_MOST_DRAWN = 6_000  # those behind the resamples, and behind the fits that leave people out


@dataclass(frozen=True, slots=True)
class FittedEvidence:
    """Rank model of one cell, row 0, and its resamples, rows 1..B."""

    coefficients: FloatArray  # a and b, shape (1 + B, 1 + F)
    support: float  # bits
    area: float
    row: Row


@dataclass(frozen=True, slots=True)
class ChosenComparisons:
    """Comparisons of a cell that count for one set of features."""

    comparisons: TemplateComparisons  # flat, people counted from 0
    people: IntArray  # which voice each of these is, shape (V,)
    place: IntArray  # stream and template of each comparison, shape (n, 2)
    streams: IntArray  # shape (n', ), person of each mated stream; -1 of the others
    own: IntArray  # position of its own template among the N, shape (n',); -1 of the others
    candidates: int
    corpora: IntArray  # of the people, shape (V,)

    def table(self, values: FloatArray) -> FloatArray:
        """Arrange values by mated stream, shape (n'', N); NaN where there is no comparison."""
        table = np.full((self.own.size, self.candidates), np.nan)
        table[self.place[:, 0], self.place[:, 1]] = values
        return np.asarray(table[self.own >= 0])


class ComparisonChooser:
    """Comparisons of a cell by the features that they need; of the same streams made once.

    People of two ``corpora``, shape (voices,), are not compared, because their microphones differ.
    """

    def __init__(self, compared: CellComparisons, corpora: IntArray | None = None) -> None:
        self._compared = compared

        @cache
        def compare(rows: bytes) -> ChosenComparisons | None:
            return _compare_streams(compared, np.frombuffer(rows, np.bool_), corpora)

        self._compare = compare

    def choose(self, axis: Sequence[int], voices: BoolArray) -> ChosenComparisons | None:
        """Return streams of those voices, (voices,), with frames of every feature of the axis.

        None where a class of comparisons is empty.
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
    own = column == mated[:, None]
    counts = (compared.owner != tester[:, None]) | own
    if corpora is None:
        corpora = np.zeros(int(max(tester.max(initial=0), compared.owner.max())) + 1, np.int64)
    counts &= corpora[tester][:, None] == corpora[compared.owner]
    place = np.argwhere(counts)
    who = np.stack([tester[place[:, 0]], compared.owner[place[:, 1]]])
    if not (who[0] == who[1]).any() or (who[0] == who[1]).all():
        return None
    people, of = np.unique(who, return_inverse=True)
    of = of.reshape(who.shape)
    z = compared.z[rows][place[:, 0], :, place[:, 1]]
    streams = np.where(mated >= 0, np.searchsorted(people, tester), -1)
    return ChosenComparisons(
        TemplateComparisons(z, ScorePairs(of[0], of[1])),
        people,
        place,
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
    drawn = comparisons.pairs.count_draws(speaker_weights, chosen.people)
    fit, replicates, held_out_bits = _fit_ratios(comparisons, drawn, prior)
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
    held = np.minimum(bits, support)
    costs = held[mated], held[~mated], mated_weight, others_weight
    area, among = _compute_among(chosen, bits, support)
    row: Row = {
        "evidence_speakers": speakers,
        "evidence_pairs": pairs,
        "evidence_bits": float(mated_weight @ held[mated]),
        "evidence_low_tenth": _quantile(held[mated], mated_weight, 0.1),
        "evidence_low_twentieth": _quantile(held[mated], mated_weight, 0.05),
        "evidence_high_twentieth": _quantile(held[mated], mated_weight, 0.95),
        "others_high_twentieth": _quantile(held[~mated], others_weight, 0.95),
        "support_bits": support,
        "invariance_bits": invariance,
        "evidence_lowered_bits": lowered / float(np.log(2.0)),
        "evidence_cllr": calibrated.cost_bits(*costs),
        "evidence_min_cllr": calibrated.least_cost_bits(*costs),
        **_compute_others(others, held[~mated], drawn),
        **among,
        "enrolled_area": area,
    }
    return FittedEvidence(coefficients, support, area, row)


def _fit_ratios(
    comparisons: TemplateComparisons, drawn: FloatArray, prior: PriorCoefficients | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Fit a and b on all voices, (1, 1 + F), and on resamples, (B, 1 + F)."""
    many, sample = comparisons.subsample(_MOST), comparisons.subsample(_MOST_DRAWN)
    prior_fit = prior_resamples = None
    if prior is not None:
        prior_fit = PriorCoefficients(prior.coefficients[:1], prior.worth)
        prior_resamples = PriorCoefficients(prior.coefficients[1:], prior.worth)
    fit = fit_each(many, prior=prior_fit)
    near = fit_each(sample, prior=prior_fit, start=fit[0])
    replicates = fit_each(sample, drawn, prior_resamples, near[0])
    by_fold, fold = cross_fit(sample, prior_fit, near[0])
    for fits in (replicates, by_fold):
        fits += fit - near  # what the fewer comparisons alone would move
        fits[..., 1:] = np.maximum(fits[..., 1:], 0.0)
    held_out = by_fold[fold[comparisons.test_speaker], fold[comparisons.template_speaker]]
    nats = held_out[:, 0] + (held_out[:, 1:] * comparisons.z).sum(axis=1)
    return fit, replicates, nats / np.log(2.0)


def _quantile(bits: FloatArray, weight: FloatArray, share: float) -> float:
    return float(weighted_quantile(bits, weight[None], share)[0])


def _compute_others(comparisons: TemplateComparisons, bits: FloatArray, drawn: FloatArray) -> Row:
    first, counts, place = comparisons.pairs.unique
    pair_means = np.bincount(place, np.exp2(bits)) / counts
    who = comparisons.test_speaker[first], comparisons.template_speaker[first]
    ratios, compared = np.zeros((2, drawn.shape[1], drawn.shape[1]))
    ratios[who], compared[who] = pair_means, 1.0
    # a pair counts as often as the product of its two
    total = ((drawn @ compared) * drawn).sum(axis=1)
    means = ((drawn @ ratios) * drawn).sum(axis=1)[total > 0] / total[total > 0]
    low, high = limits(means if means.size else pair_means)
    steps = np.arange(1, int(np.log2(1.0 + counts.size)) + 1)
    shares = calibrated.exceeding(bits, (1.0 / counts)[place], steps.astype(float))
    return {
        "others_mean_ratio": float(pair_means.mean()),
        "others_mean_ratio_low": low,
        "others_mean_ratio_high": high,
        "others_exceeding": [
            {"bits": int(k), "share": float(share), "allowed": float(0.5**k)}
            for k, share in zip(steps, shares, strict=True)
        ],
    }


def _compute_among(
    chosen: ChosenComparisons, bits: FloatArray, support: float
) -> tuple[float, Row]:
    """Compare enrolled with impostors; and rank 1 and bits among candidates, claimed and true."""
    table = chosen.table(bits)
    rows = np.arange(len(table))
    own = chosen.own[chosen.own >= 0]
    speaker = np.unique(chosen.streams[chosen.own >= 0], return_inverse=True)[1]
    weight = (1.0 / np.bincount(speaker))[speaker]
    weight /= weight.sum()
    filled = np.where(np.isnan(table), -np.inf, table)
    away = filled.copy()
    away[rows, own] = -np.inf
    enrolled, impostors = (
        cap_bits(level_ratios(ratios_of_class), support) for ratios_of_class in (filled, away)
    )
    count = np.isfinite(table).sum(axis=1)
    # to a billionth of a bit, so that rounding does not decide
    odds = [
        (total_bits(ratios_of_class) - np.log2(n)).round(9)
        for ratios_of_class, n in ((enrolled, count), (impostors, count - 1))
    ]
    area = min(compute_separation(odds[0], odds[1], weight)[2], 1.0)
    if np.nanmax(table) - np.nanmin(table) < _FLAT:
        area = 0.5  # if all are alike, only their number would decide
    # candidates not to be compared
    n = int(count.max())
    complete = count == n
    candidates = np.argsort(np.isnan(table[complete]), axis=1, kind="stable")[:, :n]
    ratios = np.take_along_axis(enrolled[complete], candidates, axis=1)
    target = np.argmax(candidates == own[complete][:, None], axis=1)
    posterior = posterior_among(ratios, n)
    share = weight[complete] / weight[complete].sum()
    true = posterior[np.arange(len(candidates)), target]
    first = posterior.argmax(axis=1) == target
    return area, {
        "evidence_candidates": n,
        "rank1_predicted": float(share @ posterior.max(axis=1)),
        "rank1_actual": float(share @ first),
        "among_bits_predicted": float(share @ bits_among(ratios, n, None)),
        "among_bits_actual": float(share @ np.log2(n * np.maximum(true, 1e-300))),
    }


# ------------------------------------------------------------------------------------------ fitted
# Source: docs/method.md sections 3 to 5.

PERMUTATIONS = 200


@dataclass(frozen=True, slots=True)
class FittedCell:
    """Parameters of a cell, row 0 the rank model and rows 1..B its resamples."""

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
    cell: Cell,
    axis: Sequence[int],
    speaker_weights: FloatArray,
    additive: BoolArray,
    seed: int = 0,
    prior: PriorModel | None = None,
    singles: logit.SingleFeatureFits | None = None,
) -> FittedCell | None:
    """Fit one cell for one set of features; None where no score ever differed.

    Args:
        cell: its trials.
        axis: which features, as places on the cell's axis F.
        speaker_weights: how often each voice is drawn, shape (B, voices).
        additive: shape (F,), which of those features' scores grow with the evidence.
        seed: of the permutations of the null band.
        prior: another rank model, in the weight that it has.
        singles: of this cell, where several sets of features share them.
    """
    selection = trials_of(cell, axis)
    if selection is None:
        return None
    trials, has_frames = selection
    singles = singles_of(cell) if singles is None else singles
    starts = singles.find_starts(np.array(axis)[has_frames].tolist())
    anchor = prior.anchor(trials, has_frames) if prior is not None else None
    drawn = _never_empty(speaker_weights[:, np.unique(cell.gap_speaker)])
    weights, floor, posterior_row = _fit_posterior(trials, cell.own, starts, drawn, anchor)
    evidence = np.einsum("f,nfj->nj", weights[0], trials.margins)
    impostors = learn_impostors(cell, axis, evidence, additive)
    ranks = ranks_of(cell, axis, evidence)
    histogram = rank_histogram(*ranks[1:], cell.candidates)
    rank_fit, resamples, rank_row = _fit_ranks(
        ranks, histogram, speaker_weights, drawn.shape[1], prior
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
        **_null_band(evidence, cell.own, seed, prior),
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
    own: IntArray,
    singles: tuple[logit.FitStarts, FloatArray],
    drawn: FloatArray,
    anchor: Anchor | None,
) -> tuple[FloatArray, FloatArray, Row]:
    """Fit lambda, (1 + B, F), and e, (1 + B,), and measure them on speakers left out."""
    starts, cost = singles
    posterior = logit.fit(trials, cost, anchor, starts)
    around = logit.NearbyLosses(trials, posterior.weights)
    weights, floor = logit.fit_replicates(
        trials, posterior.weights, drawn, cost, anchor=anchor, around=around
    )
    held_weights, held_floor = logit.fit_held_out(
        trials, posterior.weights, drawn.shape[1], cost, anchor, around
    )
    speaker = trials.speaker
    held = trials.posterior(held_weights[speaker], held_floor[speaker])
    held_bits = logit.held_out_bits(trials, held_weights, held_floor)
    diagram = reliability(held, own, 1.0 / np.bincount(speaker)[speaker])
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
    """Fit alpha and beta to the ranks of all trials, and of resampled speakers."""
    speaker, better, tied = ranks
    candidates = histogram.size
    people, place = np.unique(speaker, return_inverse=True)
    drawn = _never_empty(speaker_weights[:, people])
    resampled: FloatArray = rank_histograms(better, tied, candidates, drawn[:, place])
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
    """Count all once in a replicate that holds none of a cell's speakers."""
    return np.where(weights.sum(axis=1, keepdims=True) > 0, weights, 1.0)


def _null_band(
    evidence: FloatArray, own: IntArray, seed: int, prior: PriorModel | None = None
) -> dict[str, float]:
    """Compute MeanD of the same scores with whole speakers permuted against the templates."""
    trials, n = evidence.shape
    generator = np.random.default_rng(seed + 1)
    # permutations of thousands of candidates vary less, and cost more
    count = int(np.clip(100_000_000 // max(trials * n, 1), 20, PERMUTATIONS))
    rows = np.arange(trials)
    wrong = np.stack([generator.permutation(n)[own] for _ in range(count)])
    better, tied = (bounds[rows, wrong] for bounds in all_rank_bounds(evidence))
    if (tied == 1).all():
        place = better + n * np.arange(count)[:, None]
        histograms = np.bincount(place.ravel(), minlength=count * n).reshape(count, n).astype(float)
    else:
        both = zip(better, tied, strict=True)
        histograms = np.stack([rank_histogram(*bounds, n) for bounds in both])
    blended = histograms if prior is None else prior.mixed(histograms, np.unique(own).size)
    model = mean_bits_of(*fit_many(blended), n)
    share = histograms / trials
    raw = np.maximum((share * np.log2(n * np.where(share > 0, share, 1.0 / n))).sum(axis=1), 0.0)
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
