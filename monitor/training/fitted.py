"""Fits one cell of the calibration grid: rank model, evidence, posterior, limits, null band."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from monitor.files import finite
from monitor.maths import likelihood_ratios as calibrated
from monitor.maths import posterior_fit as logit
from monitor.maths.evidence import (
    bits_among,
    cap_bits,
    level_ratios,
    posterior_among,
    total_bits,
    with_misses,
)
from monitor.maths.likelihood_ratios import (
    OpenSet,
    PriorCoefficients,
    ScorePairs,
    TemplateComparisons,
    compute_separation,
    cross_fit,
    fit_each,
    fit_open_set,
    pair_count,
)
from monitor.maths.posterior import reliability
from monitor.maths.posterior_fit import Anchor, information
from monitor.maths.rank_models import LOSSES, fit, fit_many, mean_bits_of, pmf_of
from monitor.maths.ranks import (
    all_rank_bounds,
    kl_bits,
    rank1_match_bits,
    rank_histogram,
    rank_histograms,
    rank_statistics,
)
from monitor.maths.statistics import limits, weighted_quantile
from monitor.training.cells import Cell, CellComparisons
from monitor.types import BoolArray, FloatArray, IntArray

# --------------------------------------------------------------------------------------- shrinking
# The other model counts as m further speakers, beside S of one's own: m / (S + m), which fades as
# own speakers grow. Its rank pmf is mixed into the own histogram of ranks in that proportion, and
# its lambda and e hold those of the fit (see ``monitor.maths.posterior_fit``). How many speakers it
# is worth is chosen by the likelihood of speakers left out, pooled over cells so that the choice is
# stable. It is twenty at least: a dozen who are all told apart easily leave nobody out who could
# speak for others.

WORTHS = (20.0, 50.0, 100.0)  # speakers that another rank model may be worth
_FOLDS = 20
_MOST_SCORES = 200_000  # behind the information of a trial


@dataclass(frozen=True, slots=True)
class KnownModel:
    """What another rank model says of a cell; row 0 the rank model, rows 1..B its resamples.

    Attributes:
        pmf: of the ranks at the cell's N, shape (1 + B, N).
        weights: lambda, shape (1 + B, F).
        floor: e, shape (1 + B,).
        worth: m, speakers.
        evidence: a and b of its likelihood ratios, shape (1 + B, 1 + F); None where it has none
            against the same cohort.
    """

    pmf: FloatArray
    weights: FloatArray
    floor: FloatArray
    worth: float = 0.0
    evidence: FloatArray | None = None

    def share(self, speakers: int) -> float:
        """What it counts beside S speakers: m / (S + m)."""
        return self.worth / (speakers + self.worth)

    def mixed(
        self, histograms: FloatArray, speakers: int, *, resamples: bool = False
    ) -> FloatArray:
        """Histograms of ranks of as many trials, a share of them as this rank model has it.

        Args:
            histograms: shape (..., N); of B resamples, (B, N).
            speakers: S behind each.
            resamples: each with a resample of this rank model, not with the rank model.
        """
        share, pmf = self.share(speakers), self.pmf[1:] if resamples else self.pmf[0]
        return np.asarray(
            (1.0 - share) * histograms + share * histograms.sum(-1, keepdims=True) * pmf
        )

    def anchor(self, trials: logit.Trials, heard: BoolArray) -> Anchor:
        """What holds lambda and e of the heard features."""
        weights = self.weights[:, heard]
        step = -(-trials.margins.size // _MOST_SCORES)
        found = information(trials.margins[::step], weights[0], float(self.floor[0]))
        return Anchor(np.column_stack([weights, np.log(self.floor)]), found).scale_to(self.worth)


def trials_of(cell: Cell, axis: Sequence[int]) -> tuple[logit.Trials, BoolArray] | None:
    """The trials of some features, speakers counted from 0, and which features were heard.

    None where no score ever differed.
    """
    _, place = np.unique(cell.behind_speaker, return_inverse=True)
    behind = cell.behind[:, list(axis)]
    heard: BoolArray = np.asarray(behind.any(axis=(0, 2)))
    return (logit.Trials(behind[:, heard], place), heard) if heard.any() else None


def ranks_of(
    cell: Cell, axis: Sequence[int], evidence: FloatArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Speaker, better and tied of each trial: of one feature all, of several those with scores."""
    if len(axis) == 1:
        return cell.speaker, cell.better[axis[0]], cell.tied[axis[0]]
    return cell.behind_speaker, (evidence > 0).sum(axis=1), (evidence == 0).sum(axis=1)


def singles_of(cell: Cell) -> logit.SingleFeatureFits:
    """What each feature of a cell says alone, for the fits of sets of them."""
    _, place = np.unique(cell.behind_speaker, return_inverse=True)
    return logit.SingleFeatureFits(logit.Trials(cell.behind, place))


def held_out_nats(
    cell: Cell,
    axis: Sequence[int],
    known: KnownModel,
    worths: Sequence[float] = WORTHS,
    singles: logit.SingleFeatureFits | None = None,
) -> dict[int, FloatArray]:
    """What each speaker of a cell loses under a fit on the others, by the worth of the other model.

    ``singles`` are of this cell, where several sets of features share them.

    Returns:
        by voice, shape (M,): nats of its score posterior and of its rank; nothing where no score
            ever differed.
    """
    made = trials_of(cell, axis)
    if made is None:
        return {}
    trials, heard = made
    voices = np.unique(cell.behind_speaker)
    singles = singles_of(cell) if singles is None else singles
    starts, cost = singles.find_starts(np.array(axis)[heard].tolist())
    fold = np.arange(voices.size) % min(voices.size, _FOLDS)
    kept = (fold != np.arange(fold.max() + 1)[:, None]).astype(float)
    lowest = logit.smallest_floor(voices.size - 1)
    losses = np.empty((voices.size, len(worths)))
    for i, worth in enumerate(worths):
        told = replace(known, worth=worth)
        anchor = told.anchor(trials, heard).rank_model
        found = logit.fit(trials, cost, anchor, starts)
        weights, floors = logit.fit_replicates(trials, found.weights, kept, cost, lowest, anchor)
        bits = logit.held_out_bits(trials, weights[fold], floors[fold])
        evidence = np.einsum("f,nfj->nj", found.weights, trials.margins)
        speaker, better, tied = ranks_of(cell, axis, evidence)
        place = np.searchsorted(voices, speaker)
        rest = rank_histograms(better, tied, cell.candidates, kept[:, place])
        pmf = pmf_of(*fit_many(told.mixed(rest, voices.size)), cell.candidates)
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
    """The worth under which speakers who were left out lose least, of what `held_out_nats` says."""
    voices = {voice for cell in losses for voice in cell}
    if not voices:
        return float(worths[0])
    each = [np.mean([c[v] for c in losses if v in c], axis=0) for v in sorted(voices)]
    return float(worths[int(np.mean(each, axis=0).argmin())])


def learn_impostors(
    cell: Cell, axis: Sequence[int], evidence: FloatArray, additive: BoolArray
) -> OpenSet:
    """Learn from one cell how well the favourite fits, enrolled or not.

    Args:
        cell: its trials.
        axis: which features, as places on the cell's axis F.
        evidence: joint evidence of every candidate in every trial, shape (n, N).
        additive: shape (F,), which features' scores grow with the evidence and count by the frame.
    """
    trials = np.arange(evidence.shape[0])
    absolute = cell.behind[:, list(axis)] + cell.mated[:, list(axis), None]
    frames = np.where(additive, np.maximum(cell.frames[:, list(axis)], 1.0), 1.0)
    absolute /= frames[:, :, None]
    enrolled = absolute[trials, :, evidence.argmax(axis=1)]
    others = evidence.copy()
    others[trials, cell.own] = -np.inf
    impostors = absolute[trials, :, others.argmax(axis=1)]
    return fit_open_set(enrolled, impostors, np.unique(cell.behind_speaker, return_inverse=True)[1])


# ---------------------------------------------------------------------------------------- evidence
# Source: docs/method.md section 10.
#
# The streams are of people who trained none of the networks, and nobody in the cohort is compared,
# so that what a network does to the scores of a cohort that trained it is part of the fit. All
# figures are of people whom the fit has not seen: where other people's mean ratio exceeds 1 there,
# a is lowered until it does not, in any corpus.

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
"""What a cell's line in the calibration table says of it, all null without a cohort."""

_FLAT = 1e-6  # bits between the best and the worst that tell nobody from anybody
_MOST = 200_000  # comparisons behind the fit, evenly of all pairs; more would say the same
_MOST_DRAWN = 6_000  # those behind the resamples, and behind the fits that leave people out


@dataclass(frozen=True, slots=True)
class FittedEvidence:
    """The rank model of one cell, row 0, and its resamples, rows 1..B.

    Attributes:
        coefficients: a and b, shape (1 + B, 1 + F).
        support: bits.
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
        corpora: of the people, shape (V,).
    """

    comparisons: TemplateComparisons
    people: IntArray
    place: IntArray
    streams: IntArray
    own: IntArray
    candidates: int
    corpora: IntArray

    def table(self, values: FloatArray) -> FloatArray:
        """Of each mated stream, shape (n'', N); NaN where there is no comparison."""
        made = np.full((self.own.size, self.candidates), np.nan)
        made[self.place[:, 0], self.place[:, 1]] = values
        return np.asarray(made[self.own >= 0])


def chosen(
    compared: CellComparisons,
    axis: Sequence[int],
    voices: BoolArray,
    corpora: IntArray | None = None,
    known: dict[bytes, ChosenComparisons | None] | None = None,
) -> ChosenComparisons | None:
    """Streams of those voices alone, where every feature was heard, against all templates.

    Args:
        compared: of a cell.
        axis: which features, as places on the axis F.
        voices: shape (voices,), whose streams count.
        corpora: shape (voices,): people of two corpora, whom their microphones and languages would
            tell apart, are not compared. None: all are of one.
        known: what was chosen for other features of this cell, which is shared where it is of the
            same streams; added to.

    Returns:
        None where a class of comparisons is empty.
    """
    rows = voices[compared.tester] & compared.heard[:, list(axis)].all(axis=1)
    known = {} if known is None else known
    if (key := rows.tobytes()) not in known:
        known[key] = _of_all_features(compared, rows, corpora)
    every = known[key]
    if every is None:
        return None
    comparisons = every.comparisons
    z = comparisons.z[:, list(axis)]
    return replace(every, comparisons=TemplateComparisons(z, comparisons.pairs))


def _of_all_features(
    compared: CellComparisons, rows: BoolArray, corpora: IntArray | None
) -> ChosenComparisons | None:
    """The comparisons of these streams, shape (n,), with scores of all features."""
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
    found: ChosenComparisons, speaker_weights: FloatArray, told: PriorCoefficients | None = None
) -> FittedEvidence:
    """Fit likelihood ratios, judge them on people left out, and bound them.

    Args:
        found: comparisons, of ten mated speakers or more.
        speaker_weights: how often each voice is drawn, shape (B, voices).
        told: another model and its B resamples, shape (1 + B, 1 + F), in the weight that it has.
    """
    many = found.comparisons.subsample(_MOST)
    few = found.comparisons.subsample(_MOST_DRAWN)
    rank_model = None if told is None else PriorCoefficients(told.coefficients[:1], told.worth)
    resampled = None if told is None else PriorCoefficients(told.coefficients[1:], told.worth)
    fit = fit_each(many, prior=rank_model)
    near = fit_each(few, prior=rank_model, start=fit[0])
    drawn = found.comparisons.pairs.count_draws(speaker_weights, found.people)
    replicates = fit_each(few, drawn, resampled, near[0])
    replicates += fit - near  # what the fewer comparisons alone would move
    replicates[:, 1:] = np.maximum(replicates[:, 1:], 0.0)
    by_fold, fold = cross_fit(few, rank_model, near[0])
    by_fold = by_fold + (fit - near)
    by_fold[..., 1:] = np.maximum(by_fold[..., 1:], 0.0)

    all_of_them = found.comparisons
    without = by_fold[fold[all_of_them.test_speaker], fold[all_of_them.template_speaker]]
    bits = (without[:, 0] + (without[:, 1:] * all_of_them.z).sum(axis=1)) / np.log(2.0)
    mated = all_of_them.mated
    weight = all_of_them.weights()
    own, theirs = weight[mated], weight[~mated]
    pairs, speakers = pair_count(all_of_them), int(np.unique(all_of_them.test_speaker[mated]).size)
    most = float(np.log2(1.0 + pairs))
    corpus, shown = found.corpora[all_of_them.test_speaker[~mated]], np.minimum(bits[~mated], most)
    ratio = max(
        calibrated.mean_ratio(shown[corpus == each], theirs[corpus == each])
        for each in np.unique(corpus)
    )
    lowered = max(float(np.log(ratio)), 0.0)
    coefficients = np.concatenate([fit, replicates])
    coefficients[:, 0] -= lowered
    bits = with_misses(bits - lowered / np.log(2.0))
    others = all_of_them.non_mated
    support, invariance = calibrated.supported_bits(
        bits[mated], bits[~mated], own, theirs, speakers, pairs, others
    )
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
        "invariance_bits": invariance,
        "evidence_lowered_bits": lowered / float(np.log(2.0)),
        "evidence_cllr": calibrated.cost_bits(held[mated], held[~mated], own, theirs),
        "evidence_min_cllr": calibrated.least_cost_bits(held[mated], held[~mated], own, theirs),
        **_others(others, held[~mated], drawn),
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
    first, counts, place = comparisons.pairs.unique
    each = np.bincount(place, np.exp2(bits)) / counts
    who = comparisons.test_speaker[first], comparisons.template_speaker[first]
    ratios, there = np.zeros((2, drawn.shape[1], drawn.shape[1]))
    ratios[who], there[who] = each, 1.0
    # a pair counts as often as the product of its two
    total = ((drawn @ there) * drawn).sum(axis=1)
    means = ((drawn @ ratios) * drawn).sum(axis=1)[total > 0] / total[total > 0]
    low, high = limits(means if means.size else each)
    steps = np.arange(1, int(np.log2(1.0 + counts.size)) + 1)
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
    """Enrolled told from impostors; and rank 1 and bits among the candidates, as told and true."""
    table = found.table(bits)
    rows = np.arange(len(table))
    own = found.own[found.own >= 0]
    speaker = np.unique(found.streams[found.own >= 0], return_inverse=True)[1]
    weight = (1.0 / np.bincount(speaker))[speaker]
    weight /= weight.sum()
    there = np.where(np.isnan(table), -np.inf, table)
    away = there.copy()
    away[rows, own] = -np.inf
    enrolled, impostors = (cap_bits(level_ratios(each), support) for each in (there, away))
    count = np.isfinite(table).sum(axis=1)
    # to a billionth of a bit: rounding is not what tells them apart
    odds = [
        (total_bits(each) - np.log2(n)).round(9)
        for each, n in ((enrolled, count), (impostors, count - 1))
    ]
    area = min(compute_separation(odds[0], odds[1], weight)[2], 1.0)
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


# ------------------------------------------------------------------------------------------ fitted
# Source: docs/method.md sections 3 to 5.

PERMUTATIONS = 200


@dataclass(frozen=True, slots=True)
class FittedCell:
    """Parameters of a cell, row 0 the rank model and rows 1..B its resamples.

    Attributes:
        alpha, beta, binomial, floor: shape (1 + B,).
        weights: shape (1 + B, F); NaN for a feature that no trial had a frame of.
        open_set: shape (1 + F,), see ``RankModel``.
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
    known: KnownModel | None = None,
    singles: logit.SingleFeatureFits | None = None,
) -> FittedCell | None:
    """Fit one cell for one set of features.

    Args:
        cell: its trials.
        axis: which features, as places on the cell's axis F.
        speaker_weights: how often each voice is drawn, shape (B, voices).
        additive: shape (F,), which of those features' scores grow with the evidence.
        seed: of the permutations of the null band.
        known: another rank model, in the weight that it has; B resamples of it.
        singles: of this cell, where several sets of features share them.

    Returns:
        None where no score ever differed, as with embeddings of windows longer than the test.
    """
    made = trials_of(cell, axis)
    if made is None:
        return None
    trials, heard = made
    voices, place = np.unique(cell.behind_speaker), trials.speaker
    singles = singles_of(cell) if singles is None else singles
    starts, prior = singles.find_starts(np.array(axis)[heard].tolist())
    anchor = known.anchor(trials, heard) if known is not None else None
    posterior = logit.fit(trials, prior, anchor, starts)
    drawn = _never_empty(speaker_weights[:, voices])
    around = logit.NearbyLosses(trials, posterior.weights)
    replicate_weights, replicate_floor = logit.fit_replicates(
        trials, posterior.weights, drawn, prior, anchor=anchor, around=around
    )
    held_weights, held_floor = logit.fit_held_out(
        trials, posterior.weights, voices.size, prior, anchor, around
    )
    held = trials.posterior(held_weights[place], held_floor[place])
    held_bits = logit.held_out_bits(trials, held_weights, held_floor)
    diagram = reliability(held, cell.own, 1.0 / np.bincount(place)[place])

    evidence = np.einsum("f,nfj->nj", posterior.weights, trials.margins)
    impostors = learn_impostors(cell, axis, evidence, additive)
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
    rank_model = fit(blended, "LL")
    means = mean_bits_of(alpha, beta, binomial, n)
    low, high = limits(means)
    null = _null_band(evidence, cell.own, seed, known)
    weights = np.full((1 + len(speaker_weights), len(axis)), np.nan)
    weights[:, heard] = np.concatenate([posterior.weights[None], replicate_weights])
    statistics = rank_statistics(histogram, trials=better.size)
    gamma = np.exp(rank_model.log_pmf(n))
    pmf = histogram / histogram.sum()
    row: dict[str, Any] = {
        "speakers": int(np.unique(speaker).size),
        "candidates": n,
        "trials": int(better.size),
        "ties": "spread",
        "alpha": rank_model.alpha,
        "beta": rank_model.beta,
        "binomial": rank_model.binomial,
        "mean_bits_raw": statistics.mean_bits,
        "mean_bits_miller_madow": statistics.miller_madow_bits,
        "mean_bits_model": float(rank_model.mean_disclosure_bits(n)),
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
        **null,
        "held_out_local_bits": float(held_bits.mean()),
        "calibration_error": diagram.top_error,
        "reliability": {
            "given": diagram.predicted.tolist(),
            "true": diagram.observed.tolist(),
            "share": diagram.share.tolist(),
            "error": diagram.all_error,
        },
        "weights": [w if np.isfinite(w) else None for w in weights[0].tolist()],
        "floor": posterior.floor,
        "losses": _losses(histogram, pmf),
        "notes": list(rank_model.notes),
        "open_set_area": impostors.area,
        "open_set_enrolled_kept": impostors.enrolled_kept,
        "open_set_impostors_found": impostors.impostors_found,
        "prior_speakers": 0.0 if known is None else known.worth,
    }
    return FittedCell(
        np.append(rank_model.alpha, alpha),
        np.append(rank_model.beta, beta),
        np.append(rank_model.binomial, binomial),
        weights,
        np.append(posterior.floor, replicate_floor),
        np.append(impostors.bias, impostors.slopes),
        row,
    )


def _never_empty(weights: FloatArray) -> FloatArray:
    """A replicate that holds none of a cell's speakers counts them all once."""
    return np.where(weights.sum(axis=1, keepdims=True) > 0, weights, 1.0)


def _null_band(
    evidence: FloatArray, own: IntArray, seed: int, known: KnownModel | None = None
) -> dict[str, float]:
    """MeanD of the same scores with whole speakers permuted against the templates.

    The model's holds what the known rank model brings even then.
    """
    trials, n = evidence.shape
    generator = np.random.default_rng(seed + 1)
    # permutations of thousands of candidates vary less, and cost more
    count = int(np.clip(100_000_000 // max(trials * n, 1), 20, PERMUTATIONS))
    rows = np.arange(trials)
    wrong = np.stack([generator.permutation(n)[own] for _ in range(count)])
    better, tied = (each[rows, wrong] for each in all_rank_bounds(evidence))
    if (tied == 1).all():
        place = better + n * np.arange(count)[:, None]
        histograms = np.bincount(place.ravel(), minlength=count * n).reshape(count, n).astype(float)
    else:
        both = zip(better, tied, strict=True)
        histograms = np.stack([rank_histogram(*each, n) for each in both])
    told = histograms if known is None else known.mixed(histograms, np.unique(own).size)
    model = mean_bits_of(*fit_many(told), n)
    share = histograms / trials
    raw = np.maximum((share * np.log2(n * np.where(share > 0, share, 1.0 / n))).sum(axis=1), 0.0)
    low, high = limits(model)
    raw_low, raw_high = limits(raw)
    return {"null_low": low, "null_high": high, "null_raw_low": raw_low, "null_raw_high": raw_high}


def _losses(histogram: FloatArray, pmf: FloatArray) -> dict[str, dict[str, Any]]:
    result = {}
    likeliest = fit_many(histogram[None])
    for loss in LOSSES:
        found = fit(histogram, loss, likeliest)
        gamma = np.exp(found.log_pmf(histogram.size))
        result[loss] = {
            "alpha": found.alpha,
            "beta": found.beta,
            "binomial": found.binomial,
            "loss": found.loss,
            "value": finite(found.value),
            "kl_bits": finite(kl_bits(pmf, gamma)),
            "rank1_match_bits": finite(rank1_match_bits(pmf, gamma)),
            "notes": list(found.notes),
        }
    return result
