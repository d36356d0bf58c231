"""Similarity rank disclosure (SRD): bits that the rank of the true speaker gives away.

Measures: how far the ranks of the true speaker are from uniform. A trial of rank k discloses
``log2(N p_k)`` bits; ``log2 N`` identify a speaker. MeanD is the mean over trials, from the
histogram of ranks or from its beta-binomial rank model.

Source: Bäckström et al., "Privacy Disclosure of Similarity Rank in Speech and Language Processing",
sections III and IV. Equation (3) is used as corrected in docs/method.md section 3. Table II has the
five losses, figure 6 the means of single speakers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from math import perm
from typing import TYPE_CHECKING

import numpy as np

from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.curves import POINTS, Drawing, Line, Systems
from monitor.lab.evaluation.family import (
    EvaluationContext,
    Family,
    FamilyResult,
    FigureEntry,
    LimitRule,
    finite_value,
    share_aloud,
)  # fmt: skip
from monitor.lab.evaluation.resampling import settled_order
from monitor.lab.report.model import Figure
from monitor.maths.rank_models import LOSSES, RankFit, fit, fit_many, mean_bits_of
from monitor.maths.ranks import (
    RankStatistics,
    all_rank_bounds,
    kl_bits,
    null_bias_bits,
    placed,
    rank1_match_bits,
    rank_histogram,
    rank_histograms,
    rank_statistics,
)  # fmt: skip
from monitor.maths.statistics import limits, quantile_limits, weighted_quantile
from monitor.plots.canvas import MUTED, legend_above, numbers, percents
from monitor.types import FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# MeanD of many rank histograms: of bootstrap replicates, and of single speakers (docs/method.md
# section 3).
_CHUNK = 1 << 22
_SPEAKERS = 128  # speakers per batch of rank model fits


def resampled_histograms(
    matrix: ScoreMatrix, weights: FloatArray, ties: str = "spread"
) -> FloatArray:
    """Compute the rank histogram of each resample of speakers: weights (B, S) to (B, N)."""
    first, width = placed(matrix.better, matrix.tied, ties)
    histograms = np.empty((len(weights), matrix.population))
    step = max(_CHUNK // max(histograms.shape[1], matrix.trials), 1)
    for k in range(0, len(weights), step):
        row_weights = weights[k : k + step].take(matrix.owner, 1)
        histograms[k : k + step] = rank_histograms(first, width, matrix.population, row_weights)
    return histograms


def _mean_bits(histograms: FloatArray) -> FloatArray:
    """Compute MeanD of the LL rank models of histograms, (B, N) to (B,)."""
    return mean_bits_of(*fit_many(histograms), histograms.shape[1])


def mean_bits_by_speaker(matrix: ScoreMatrix, ties: str = "spread") -> FloatArray:
    """Compute MeanD of each speaker's own trials (SRD fig. 6), through the rank model.

    A speaker has few trials: the plug-in MeanD of n trials among N speakers reads up to ``log2(N /
    n)`` bits without any evidence. Shape (S,), in the order of `matrix.tested`.
    """
    first, width = placed(matrix.better, matrix.tied, ties)
    order = np.argsort(matrix.owner, kind="stable")
    owner = matrix.owner[order]
    count = len(matrix.tested)
    parts = []
    for start in range(0, count, _SPEAKERS):
        low, high = np.searchsorted(owner, [start, start + _SPEAKERS])
        rows, speakers = order[low:high], np.arange(start, min(start + _SPEAKERS, count))
        alone = (owner[low:high] == speakers[:, None]).astype(np.float64)
        histograms = rank_histograms(first[rows], width[rows], matrix.population, alone)
        parts.append(_mean_bits(histograms))
    return np.concatenate(parts)


PERMUTATIONS = 200
_RANKS = 1 << 26  # maximum permuted ranks in memory: 512 MB
_FEWEST = 20
_ENOUGH = 20  # minimum arrangements, so that the true one is at most 5 %
_WHOLE = "permutations of whole speakers against the templates"
_ROUNDING = 1e-9


@dataclass(frozen=True)
class NullBand:
    """MeanD without evidence in each permutation, shape (P,), and a description of these.

    `chance` is the one-sided p-value of the trials. It is the rate at which no evidence gives such
    a MeanD with the true speaker ranked at least as high as by chance.
    """

    mean_bits: FloatArray
    model_bits: FloatArray
    chance: float
    dealt: str


def null_band(
    matrix: ScoreMatrix, permutations: int = PERMUTATIONS, seed: int = 0, ties: str = "spread"
) -> NullBand:
    """Compute MeanD after permuting speakers against the templates.

    The trials of a speaker stay together. All permutations are used if at most 200. With fewer than
    20, each speaker draws a template with replacement (27 ways for three). With two speakers,
    single trials are permuted as if independent. More than 335 000 trials have fewer than 200
    permutations.

    Example:
        >>> perfect = ScoreMatrix(np.eye(3)[[0, 0, 1, 1, 2, 2]], np.array([0, 0, 1, 1, 2, 2]))
        >>> band = null_band(perfect)
        >>> round(band.chance, 3), band.dealt
        (0.037, 'all 27 ways to draw a template for each speaker')
    """
    limit = max(_FEWEST, _RANKS // matrix.trials)
    generator = np.random.default_rng(seed)
    places, who, complete, dealt = _deal(matrix, min(permutations, limit), limit, generator)
    first, width = np.empty((2, len(places) + 1, matrix.trials), dtype=np.int32)
    first[0], width[0] = placed(matrix.better, matrix.tied, ties)
    for block, scores in matrix.blocks():
        columns = places[:, who[block]].T
        better, tied = (np.take_along_axis(x, columns, 1) for x in all_rank_bounds(scores))
        first[1:, block], width[1:, block] = (rank.T for rank in placed(better, tied, ties))
    once = np.ones((1, matrix.trials))
    bits, counted, first_ranks, mean = np.empty((4, len(first)))
    rank = np.arange(matrix.population)
    for block_rows in _few_rows(len(first), matrix.population):
        pairs = zip(first[block_rows], width[block_rows], strict=True)
        histograms = np.concatenate([rank_histograms(*p, matrix.population, once) for p in pairs])
        bits[block_rows], first_ranks[block_rows] = _mean_bits(histograms), histograms[:, 0]
        p = histograms / histograms.sum(axis=1, keepdims=True)
        mean[block_rows] = p @ rank
        counted[block_rows] = (p * np.log2(matrix.population * np.where(p > 0, p, 1.0))).sum(axis=1)
    guessed = first_ranks * matrix.population >= matrix.trials * (1 - _ROUNDING)
    early = 2 * mean <= (matrix.population - 1) * (1 + _ROUNDING)
    signed = np.where(guessed | early, bits, -bits)
    readings = signed[1:] if complete else signed
    chance = float((readings >= signed[0] - _ROUNDING).mean())
    return NullBand(np.maximum(counted[1:], 0.0), bits[1:], chance, dealt)


def _deal(
    matrix: ScoreMatrix, permutations: int, maximum: int, generator: np.random.Generator
) -> tuple[IntArray, IntArray, bool, str]:
    """Choose each trial's template, ``places[p, who[t]]``, whether complete, and a description."""
    speakers, tested = matrix.population, len(matrix.tested)
    ways = perm(speakers, tested)
    if ways > min(PERMUTATIONS, maximum):
        places = np.empty((permutations, speakers), dtype=np.int32)
        for block in _few_rows(permutations, speakers):
            assignments = np.tile(np.arange(speakers), (block.stop - block.start, 1))
            places[block] = matrix.by_name[generator.permuted(assignments, axis=1)]
        named = np.argsort(matrix.by_name)  # the order of the columns does not matter
        return places, named[matrix.target], False, f"{permutations} {_WHOLE}"
    if ways >= _ENOUGH:
        every = np.array(list(itertools.permutations(range(speakers), tested)))
        return every, matrix.owner, True, f"all {ways} {_WHOLE}"
    ways = speakers**tested
    if ways >= _ENOUGH:
        assignments = np.array(list(itertools.product(range(speakers), repeat=tested)))
        words = f"all {ways} ways to draw a template for each speaker"
        return assignments, matrix.owner, True, words
    order = settled_order(matrix)
    trials = generator.permuted(np.tile(matrix.target[order], (permutations, 1)), axis=1)
    words = (
        f"{permutations} permutations of trials, which treats them as independent, because "
        f"{tested} speakers are too few to permute"
    )
    return trials, np.argsort(order), False, words


def no_evidence(figures: Iterable[Figure]) -> bool:
    """Return whether the rank model's MeanD is within its null band."""
    by_key = {figure.key: figure for figure in figures}
    model, band = by_key.get("srd.mean_bits_model"), by_key.get("srd.null_model_bits")
    if model is None or model.value is None or band is None or band.high is None:
        return False
    return model.value <= band.high


@dataclass(frozen=True)
class FittedRankModel:
    """Ranks of n trials, (N,), what they disclose (plug-in) and the rank model fitted by LL."""

    histogram: FloatArray
    trials: int
    ties: str
    statistics: RankStatistics
    rank_model: RankFit

    @property
    def mean_bits(self) -> float:
        """MeanD of the rank model."""
        return self.rank_model.mean_disclosure_bits(self.histogram.size)

    @property
    def sparse(self) -> bool:
        """True with fewer trials than ranks, so that plug-in figures mean little."""
        return self.trials < self.histogram.size


@dataclass(frozen=True, kw_only=True)
class LossFit(RankFit):
    """Rank model fitted by one of the paper's losses (SRD's Table II), the requested ``loss``.

    It has the Kullback-Leibler divergence from the histogram, and ``|log2(p_1 / gamma_1)|``, in
    bits.
    """

    kl_bits: float
    rank1_match_bits: float
    mean_bits: float


def fitted_rank_model(
    better: IntArray, tied: IntArray, speakers: int, ties: str = "spread"
) -> FittedRankModel:
    """Compute histogram, statistics and rank model of ranks.

    Args:
        better: speakers that score strictly higher than the true one, shape (n,), as from
            `monitor.maths.ranks.rank_bounds` or `ScoreMatrix.better`.
        tied: speakers with the same score, including the true one, shape (n,).
        speakers: number N of enrolled speakers.
        ties: rule for equal scores, one of `monitor.maths.ranks.TIE_RULES`.

    Example:
        >>> found = fitted_rank_model(np.array([0, 0, 0, 1, 0, 2, 0, 1]), np.ones(8, dtype=int), 4)
        >>> round(found.statistics.mean_bits, 2), found.statistics.identification_rate
        (0.7, 0.625)
    """
    histogram = rank_histogram(better, tied, speakers, ties)
    rank_model = fit(histogram)
    trials = len(better)
    return FittedRankModel(histogram, trials, ties, rank_statistics(histogram, trials), rank_model)


def loss_fits(histogram: FloatArray) -> tuple[LossFit, ...]:
    """Fit the rank model of a histogram (N,) by each loss of `monitor.maths.rank_models.LOSSES`.

    Example:
        >>> for row in loss_fits(np.array([40.0, 25, 15, 10, 6, 4]))[:2]:
        ...     print(row.loss, round(row.mean_bits, 2), round(row.kl_bits, 3))
        LL 0.38 0.003
        MS 0.4 0.005
    """
    fitted = []
    for loss in LOSSES:
        rank_model = fit(histogram, loss)
        gamma = np.exp(rank_model.log_pmf(len(histogram)))
        fitted.append(LossFit(
            **asdict(rank_model) | {"loss": loss},
            kl_bits=kl_bits(histogram, gamma), rank1_match_bits=rank1_match_bits(histogram, gamma),
            mean_bits=rank_model.mean_disclosure_bits(len(histogram)),
        ))  # fmt: skip
    return tuple(fitted)


MISFIT = "too low, as the ranks do not follow the rank model"


def _is_misfit(model_bits: float, beyond_chance: float) -> bool:
    """Return whether the counted MeanD, less the most that chance gives, exceeds the model's."""
    return beyond_chance > 1.1 * model_bits + 0.05


def meaning(figures: Mapping[str, Figure], speakers: int) -> Iterator[str]:
    """Write a paragraph on MeanD, and one on first ranks and the most revealing trial."""
    means = (figures.get(f"srd.{key}") for key in ("mean_bits_model", "mean_bits"))
    measured = [figure for figure in means if figure is not None and figure.value is not None]
    if measured:
        figure, counted = measured[0], finite_value(figures.get("srd.mean_bits"))
        band = figures.get("srd.null_mean_bits")
        beyond = 0.0 if counted is None or band is None else counted - (band.high or counted)
        if _is_misfit(figure.value or 0.0, beyond):
            figure = replace(figure, value=beyond, low=None, high=None)
        yield _crowd(figures, figure, speakers)
    rank1 = finite_value(figures.get("srd.idr"))
    if rank1 is None:
        return
    text = (
        f"The correct person ranks first in {share_aloud(rank1)} of the trials. Guessing would "
        f"give {share_aloud(1 / speakers)}."
    )
    worst = finite_value(figures.get("lid.max_bits"))
    if worst is not None:
        belief = min(1.0, float(2.0**worst) / speakers)
        text += (
            f" The most revealing trial gave the attacker {worst:.2f} of at most "
            f"{np.log2(speakers):.2f} bits: a probability of {share_aloud(belief)} for the "
            "correct person."
        )
    yield text


def _crowd(figures: Mapping[str, Figure], figure: Figure, people: int) -> str:
    bits = max(figure.value or 0.0, 0.0)
    remaining = people / 2.0**bits
    maximum = f"{np.log2(people):.2f}"
    chance = finite_value(figures.get("srd.null_chance"))
    band = figures.get("srd.null_model_bits")
    high = None if band is None else band.high
    if chance is not None and high is not None and chance > 0.5 and bits > high:
        return (
            f"The correct one of {people:,} people ranks later than by chance. An attacker who "
            f"reverses the scores learns {bits:.2f} bits of the {maximum} that identify a person."
        )
    if bits <= 0.002 * np.log2(people) if chance is None else chance > 0.05:
        return (
            f"Among {people:,} people, these scores disclose nothing measurable about the "
            f"speaker: {bits:.2f} bits on average, of the {maximum} that identify a person."
        )
    text = (
        f"The attacker narrows {people:,} people to about {_count(remaining)} on average: a trial "
        f"discloses {bits:.2f} bits of the {maximum} that identify a person"
    )
    low, high = figure.limits
    if low is not None and high is not None:
        fewest_people, most_people = (_count(people / 2.0 ** max(end, 0.0)) for end in (high, low))
        text += (
            f" (interval: {low:.2f} to {high:.2f} bits, {fewest_people} to {most_people} people)"
        )
    return text + "."


def _count(people: float) -> str:
    return f"{people:,.0f}" if people >= 9.95 else f"{people:.1f}".removesuffix(".0")


def figures(
    matrix: ScoreMatrix,
    weights: FloatArray | None = None,
    ties: str = "spread",
    permutations: int = PERMUTATIONS,
    seed: int = 0,
    ranked: FittedRankModel | None = None,
    by_speaker: FloatArray | None = None,
) -> tuple[Figure, ...]:
    """Compute every figure of SRD, except those of the losses.

    Limits of MeanD come from the rank model, refitted in each resample (weights (B, S), from
    `resamples`), because resamples of the plug-in figure are biased.
    """
    if ranked is None:
        ranked = fitted_rank_model(matrix.better, matrix.tied, matrix.population, ties)
    replicates = {} if weights is None else _replicates(matrix, weights, ties)
    values, notes = _values(ranked), _notes(ranked)
    floors = {
        "mean_bits_miller_madow": 0.0, "mean_bits_model": 0.0, "idr": 1 / matrix.population,
        "mean_bits": null_bias_bits(matrix.population, ranked.trials),
    }  # fmt: skip
    ends: dict[str, tuple[float, float]] = {}
    if permutations:
        band = null_band(matrix, permutations, seed, ties)
        ends["null_mean_bits"] = limits(band.mean_bits)
        ends["null_model_bits"] = limits(band.model_bits)
        null = {f"null_{k}": float(getattr(band, k).mean()) for k in ("mean_bits", "model_bits")}
        null["null_chance"] = band.chance
        floors["mean_bits"] = null["null_mean_bits"]
        values |= null
        notes |= dict.fromkeys(null, band.dealt)
        beyond = ranked.statistics.mean_bits - ends["null_mean_bits"][1]
        if _is_misfit(ranked.mean_bits, beyond):
            text = f"{MISFIT}: the count shows at least {beyond:.2f} bits"
            notes["mean_bits_model"] = "; ".join(filter(None, [notes["mean_bits_model"], text]))
    if by_speaker is None:
        by_speaker = mean_bits_by_speaker(matrix, ties)
    for key, level in (("speaker_bits_median", 0.5), ("speaker_bits_95", 0.95)):
        if not has_repeats(matrix):
            values[key] = None
            notes[key] = "no speaker has a second trial to average"
            continue
        values[key] = float(weighted_quantile(by_speaker, np.ones((1, by_speaker.size)), level)[0])
        notes[key] = "from a rank model fitted to each speaker's own trials"
        if weights is not None:
            replicates[key] = weighted_quantile(by_speaker, weights, level)
            ends[key] = quantile_limits(by_speaker, level, 0.0, matrix.ceiling_bits)
    in_bits = (entry.key.removeprefix("srd.") for entry in FAMILY.figures if entry.unit == "bits")
    ceilings = dict.fromkeys(in_bits, matrix.ceiling_bits) | {"idr": 1.0}
    none = (None, None)
    return tuple(
        FAMILY.figure(
            key, value, replicates.get(key), notes.get(key, ""), ties=ties,
            ceiling=ceilings.get(key), floor=floors.get(key),
            low=ends.get(key, none)[0], high=ends.get(key, none)[1],
        )
        for key, value in values.items()
    )  # fmt: skip


def has_repeats(matrix: ScoreMatrix) -> bool:
    """Return whether any speaker has a second trial: one trial alone has no mean."""
    return bool(np.bincount(matrix.owner).max() > 1)


def _values(ranked: FittedRankModel) -> dict[str, float | None]:
    statistics, rank_model = ranked.statistics, ranked.rank_model
    return {
        "mean_bits": statistics.mean_bits,
        "mean_bits_miller_madow": None if ranked.sparse else statistics.miller_madow_bits,
        "mean_bits_model": ranked.mean_bits,
        "idr": statistics.identification_rate,
        "rank1_bits": statistics.rank1_bits,
        "stdd_bits": statistics.std_bits,
        "maxd_bits": statistics.max_bits,
        "maxd_rank": float(statistics.max_rank),
        "spread": statistics.spread,
        "alpha": None if rank_model.binomial else rank_model.alpha,
        "beta": None if rank_model.binomial else rank_model.beta,
    }


_WORDS = {
    "perfect": "the correct person always ranks first",
    "under-dispersed": "ranks vary less than a beta-binomial can, so a binomial replaces it and "
    "may read too low; compare with the count",
    "sparse": "fewer trials than ranks",
    "reversed": "the correct person ranks late on average",
    "at the bound": "there is no finite optimum, so parameters are at the end of their range",
}


def _describe_fit(rank_model: RankFit) -> str:
    return "; ".join(_WORDS.get(note, note) for note in rank_model.notes)


def _notes(ranked: FittedRankModel) -> dict[str, str]:
    correction = ""
    if ranked.sparse:
        correction = (
            "with fewer trials than speakers, no correction is valid; compare with the null band"
        )
    elif ranked.statistics.miller_madow_bits is None:
        correction = "needs whole counts, but ties are spread over ranks"
    notes = {
        "mean_bits": "biased upwards; compare with the null band",
        "mean_bits_miller_madow": correction,
        "mean_bits_model": _describe_fit(ranked.rank_model),
        "maxd_bits": "noise if trials are few; see its rank",
        "rank1_bits": "" if ranked.histogram[0] else "no one ranked first",
    }
    if ranked.rank_model.binomial:
        note = "ranks vary less than a beta-binomial can: the rank model is a binomial"
        notes |= dict.fromkeys(("alpha", "beta"), note)
    return notes


def _replicates(matrix: ScoreMatrix, weights: FloatArray, ties: str) -> dict[str, FloatArray]:
    """Compute rank model figures on each resample, and plug-in figures that have intervals."""
    names = ("mean_bits_model", "idr", "rank1_bits", "maxd_bits", "spread", "alpha")
    replicates: dict[str, FloatArray] = {name: np.empty(len(weights)) for name in names}
    speakers = matrix.population
    for block in _few_rows(len(weights), speakers):
        histograms = resampled_histograms(matrix, weights[block], ties)
        alpha, beta, binomial = fit_many(histograms)
        p = histograms / histograms.sum(axis=1, keepdims=True)
        bits = np.log2(speakers * np.where(p > 0, p, np.nan))
        columns = (
            mean_bits_of(alpha, beta, binomial, speakers),
            p[:, 0],
            bits[:, 0],
            np.nanmax(bits, axis=1),
            (p * speakers > 1 + 1e-9).mean(axis=1),
            np.where(binomial, np.nan, alpha),
        )
        for name, values in zip(names, columns, strict=True):
            replicates[name][block] = values
    return replicates


def _few_rows(rows: int, columns: int) -> Iterator[slice]:
    """Yield slices of rows for arrays of limited size."""
    step = max(_CHUNK // columns, 1)
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


_DASHES = {"LL": "-", "MS": "--", "WMS": "-.", "RWMS": ":", "CLL": (0, (6, 1, 1, 1, 1, 1))}
_SINGLE = 20  # ranks up to here are drawn one by one, further ones in bins


def binned_ranks(histogram: FloatArray) -> Line:
    """Compute the fraction of trials by rank from a histogram, (N,), in bins beyond rank 20."""
    count = len(histogram)
    edges = np.arange(min(_SINGLE, count) + 1.0)
    if count > _SINGLE:
        wide = np.unique(np.rint(np.geomspace(_SINGLE, count, 60)))
        edges = np.concatenate([edges, wide[1:]])
    first, last = edges[:-1].astype(np.intp), edges[1:]
    fraction = np.add.reduceat(histogram, first) / (last - first) / histogram.sum()
    return Line(np.sqrt((first + 1) * last), fraction)


def rank_model_line(rank_model: RankFit, speakers: int) -> Line:
    """Compute the probability by rank, at logarithmically spaced ranks."""
    ranks = np.unique(np.rint(np.geomspace(1, speakers, POINTS)))
    return Line(ranks, np.exp(rank_model.log_pmf(speakers))[ranks.astype(np.intp) - 1])


def _paint_ranks(axes: Axes, systems: Systems) -> None:
    axes.set(xscale="log", yscale="log")
    alone = len(systems) == 1
    lowest = 1.0
    for colour, curves in systems:
        assert curves.ranks is not None
        seen = curves.ranks.y > 0
        axes.plot(
            curves.ranks.x[seen], curves.ranks.y[seen], "o", color=colour, markersize=3, alpha=0.55,
            markeredgewidth=0, label="seen" if alone else None,
        )  # fmt: skip
        lowest = min(lowest, float(curves.ranks.y[seen].min()), 1 / curves.speakers)
        for loss, rank_model in list(curves.rank_models.items())[: None if alone else 1]:
            first, dashes = loss == "LL", _DASHES.get(loss, "-")
            axes.plot(
                rank_model.x, rank_model.y, color=colour if first else MUTED, linestyle=dashes,
                linewidth=1.6 if first else 0.9, label=f"fit, {loss}" if alone else None,
            )  # fmt: skip
    count = systems[0][1].speakers
    axes.axhline(1 / count, color=MUTED, linewidth=0.8, linestyle=(0, (1, 2)), label="chance")
    axes.set_ylim(lowest / 3, 1.5)
    numbers(axes.xaxis)
    percents(axes.yaxis)
    legend_above(axes)
    axes.set(xlabel="rank of the speaker", ylabel="share of trials")


def _paint_speakers(axes: Axes, systems: Systems) -> None:
    by_system = [bits for _, curves in systems if (bits := curves.speaker_bits) is not None]
    every_bits = np.concatenate(by_system)
    edges = np.linspace(min(0.0, every_bits.min()), max(every_bits.max(), 0.1), 25)
    for (colour, _), bits in zip(systems, by_system, strict=True):
        fraction = np.histogram(bits, edges)[0] / bits.size
        axes.stairs(fraction, edges, fill=True, color=colour, alpha=0.22)
        axes.stairs(fraction, edges, color=colour, linewidth=1.4)
        axes.axvline(float(bits.mean()), color=colour, linewidth=1, linestyle="--")
    percents(axes.yaxis)
    axes.set_xlabel("mean bits that a speaker discloses (dashed: mean over speakers)")
    axes.set_ylabel("share of speakers")


TRAINED_SHARE = 0.9  # minimum MeanD of clear speech, relative to a network trained on clear speech


def is_undertrained(trained: float, clear: float) -> bool:
    """Return whether a network recognises clear speech too badly to judge a protection."""
    return trained < TRAINED_SHARE * clear


def _compute(context: EvaluationContext) -> FamilyResult:
    matrix, settings = context.ranked, context.settings
    ties = settings.ties
    ranked = fitted_rank_model(matrix.better, matrix.tied, matrix.population, ties)
    losses = loss_fits(ranked.histogram)
    by_speaker = mean_bits_by_speaker(matrix, ties)
    draws = settings.replicates if len(matrix.tested) > 1 else 0
    entries = figures(matrix, context.weights, ties, draws, settings.seed, ranked, by_speaker)
    misfits = (
        FAMILY.figure(f"{name}_{fit.loss.lower()}_bits", bits, note=_describe_fit(fit), ties=ties)
        for fit in losses
        for name, bits in (("kl", fit.kl_bits), ("rank1_match", fit.rank1_match_bits))
    )
    return FamilyResult(
        (*entries, *misfits),
        conclusions=() if has_repeats(matrix) else (_three_means({f.key: f for f in entries}),),
        curves={
            "ranks": binned_ranks(ranked.histogram),
            "rank_models": {fit.loss: rank_model_line(fit, matrix.population) for fit in losses},
            "speaker_bits": by_speaker if has_repeats(matrix) else None,
        },
    )


def _three_means(by_key: Mapping[str, Figure]) -> str:
    """Explain why the three means differ if each speaker has one trial."""
    means = (by_key[f"srd.{key}"] for key in ("mean_bits", "mean_bits_miller_madow",
                                             "mean_bits_model"))  # fmt: skip
    counted, corrected, model = (
        "" if figure.value is None else f" ({figure.value:.2f})" for figure in means
    )
    return (
        f"Each speaker has one trial. Three figures estimate one mean, MeanD. The count{counted} "
        f"is too high if trials are few. The bias correction{corrected} and the fitted rank "
        f"model{model} remove this. Quote the rank model's, which has a valid interval. ALID is "
        "another attacker's mean. Single speakers have no mean, and are omitted."
    )


_SHARE, _GIVEN = LimitRule("share"), LimitRule("given")
_MODEL_HOLDS = LimitRule("none", reason="use the interval of the model's MeanD")
_MOST_FIRST = LimitRule("none", reason="it covers the truth too rarely if most ranks are 1")
_OF_IDR = LimitRule(
    "derived",
    source=lambda _: "srd.idr",
    change=lambda figure, value: float(
        np.log2(2.0 ** (figure.ceiling or 0.0) * max(value, np.finfo(float).tiny))
    ),
)


def _entry(
    name: str, key: str, label: str, unit: str, says: str, limits: LimitRule | None = None
) -> FigureEntry:
    return FigureEntry(name, f"srd.{key}", says, limits, label=label, unit=unit)


FAMILY = Family(
    key="srd",
    position=10,
    title="Similarity rank disclosure (SRD)",
    caveat="MeanD counted from a histogram is above zero even without disclosure. Trust the "
           "model's figure, and compare with the null band. A mean also hides the few speakers "
           "who are always found, so read IdR and the spread over speakers. MaxD of a sparse "
           "histogram is noise, so read its rank.",
    needs=("matrix",),
    figures=(
        _entry("meand", "mean_bits_model", "MeanD, fitted rank model", "bits",
               "mean bits that a trial discloses, by the rank model fitted to the ranks", _SHARE),
        _entry("meand_counted", "mean_bits", "MeanD, counted", "bits",
               "the same, counted from the ranks; too high if trials are few", _MODEL_HOLDS),
        _entry("meand_corrected", "mean_bits_miller_madow", "MeanD, counted, bias-corrected",
               "bits", "that count, bias-corrected (Miller and Madow)", _MODEL_HOLDS),
        _entry("meand_nothing", "null_model_bits", "MeanD, fitted rank model, without evidence",
               "bits", "meand if nothing is disclosed", _GIVEN),
        _entry("meand_counted_nothing", "null_mean_bits",
        "MeanD, counted, without evidence", "bits",
               "meand_counted if nothing is disclosed", _GIVEN),
        _entry("nothing_chance", "null_chance", "p-value of MeanD", "share",
               "how often meand is at least this large without evidence"),
        _entry("idr", "idr", "IdR: the correct person first", "share",
               "fraction of trials in which the correct person ranks first", _SHARE),
        _entry("rank1_bits", "rank1_bits", "disclosure of rank 1", "bits",
               "bits that rank 1 discloses", _OF_IDR),
        _entry("stdd", "stdd_bits", "StDD", "bits", "how unequal the ranks are, bits", _MOST_FIRST),
        _entry("maxd", "maxd_bits", "MaxD", "bits", "bits that the most revealing rank discloses",
               LimitRule("share", neutral=0.0)),
        _entry("maxd_rank", "maxd_rank", "rank of MaxD", "rank", "which rank that is",
               LimitRule("none", reason="it varies too much between resamples")),
        _entry("spread", "spread", "Spread", "share",
               "fraction of ranks likelier than by chance",
               LimitRule("share", maximum=1.0,
                         quiet="without evidence, chance decides which ranks are likelier")),
        _entry("alpha", "alpha", "alpha of the rank model", "",
               "first parameter of the rank model", LimitRule("t", neutral=1.0, minimum=0.0)),
        _entry("beta", "beta", "beta of the rank model", "",
        "second parameter of the rank model", _MOST_FIRST),
        _entry("speaker_median", "speaker_bits_median", "MeanD of the median speaker", "bits",
               "bits that the median speaker discloses", _GIVEN),
        _entry("speaker_95", "speaker_bits_95", "MeanD that 5 % of speakers exceed", "bits",
               "bits that one speaker in twenty exceeds", _GIVEN),
        *(_entry(f"kl_{loss.lower()}", f"kl_{loss.lower()}_bits",
                 f"rank model by {loss}: misfit (KL)", "bits",
                 f"misfit of the rank model fitted by {loss}, bits") for loss in LOSSES),
        *(_entry(f"rank1_match_{loss.lower()}", f"rank1_match_{loss.lower()}_bits",
                 f"rank model by {loss}: misfit at rank 1", "bits",
                 f"misfit at rank 1 of the rank model fitted by {loss}, bits") for loss in LOSSES),
    ),
    compute=_compute,
    main=("srd.mean_bits_model", "srd.idr"),
    drawings=(
        Drawing("ranks", "Rank of the speaker on the attacker's list",
                "Fraction of trials at each rank, with the fitted rank model. High ranks are "
                "averaged in bins. A flat line at chance means no disclosure.", _paint_ranks),
        Drawing("speaker_bits", "Speakers differ in disclosure",
                "Mean disclosure of each tested speaker.", _paint_speakers),
    ),
    meaning=meaning,
    no_evidence=no_evidence,
)  # fmt: skip
