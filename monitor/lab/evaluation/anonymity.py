"""Ranks as anonymity: mean rank of a speaker over its tests, and share of near ranks.

Measures: percentiles over speakers of the mean rank, the share of trials within rank k, and the
worst rank.

Source: Tura-Vecino et al. (USC), section 3.3, equation (2). USC names the same figure by its roles.
Singling out is anonymised queries against original references in its definition, and the reverse in
its experiment. Cosine is symmetric, the rank is not.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from monitor.arrays import real_numbers
from monitor.errors import UsageError
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.family import (
    EvaluationContext,
    Family,
    FamilyResult,
    FigureEntry,
    LimitRule,
)  # fmt: skip
from monitor.lab.report.model import Figure
from monitor.maths.statistics import interpolated_quantile, quantile_limits
from monitor.types import FloatArray, IntArray

CUTS = (1, 5, 10, 50, 100)  # each k of P(rank <= k), if it is below N


def expected_ranks(better: IntArray, tied: IntArray) -> FloatArray:
    """Compute the expected rank of each trial, from 1, ties broken by chance: (T,)."""
    better, tied = real_numbers(better, "ranks"), real_numbers(tied, "numbers of ties")
    return np.asarray(better + (tied + 1) / 2)


def speaker_mean_ranks(ranks: FloatArray, speaker: IntArray) -> FloatArray:
    """Compute the mean rank of each speaker, (S,), from ranks and speakers (T,): USC eq. (2).

    Example:
        >>> speaker_mean_ranks(np.array([1, 3, 7]), np.array([4, 4, 9])).tolist()
        [2.0, 7.0]
    """
    ranks, speaker = real_numbers(ranks, "ranks"), real_numbers(speaker, "numbers of speakers")
    if ranks.ndim != 1 or ranks.shape != speaker.shape or ranks.size == 0:
        raise UsageError("give one rank and one speaker for each trial")
    _, owner, tests = np.unique(speaker, return_inverse=True, return_counts=True)
    return np.asarray(np.bincount(owner.ravel(), ranks) / tests)


def rank_shares(better: IntArray, tied: IntArray, k: int) -> FloatArray:
    """Compute the probability that each trial ranks at most k, ties broken by chance: (T,)."""
    shares = (k - real_numbers(better, "ranks")) / real_numbers(tied, "numbers of ties")
    return np.asarray(np.clip(shares, 0.0, 1.0))


def chance_mean_ranks(population: int, tests: IntArray, draws: int = 100) -> FloatArray:
    """Draw mean ranks without disclosure, (draws, S), from each speaker's number of tests, (S,).

    Ranks are uniform on 1 to N. Low percentiles of the means fall with fewer tests (USC's row
    "Random").
    """
    generator = np.random.default_rng(0)
    first = np.concatenate([[0], np.cumsum(tests)[:-1]])
    means = np.empty((draws, len(tests)))
    for mean in means:  # one draw at a time, because a corpus has a hundred thousand tests
        ranks = generator.integers(1, population + 1, int(np.sum(tests)))
        mean[:] = np.add.reduceat(ranks, first) / tests
    return means


def figures(
    matrix: ScoreMatrix, weights: FloatArray | None = None, cuts: tuple[int, ...] = CUTS
) -> tuple[Figure, ...]:
    """Compute percentiles of the mean rank over speakers, P(rank <= k), and the worst trial."""
    ranks = expected_ranks(matrix.better, matrix.tied)
    tests = np.bincount(matrix.owner)
    population = float(matrix.population)
    entries = list(_percentiles(matrix, ranks, tests, weights))
    for k in cuts:
        if k < matrix.population:
            shares = np.bincount(matrix.owner, rank_shares(matrix.better, matrix.tied, k))
            replicates = None if weights is None else (weights @ shares) / (weights @ tests)
            value = float(shares.sum() / matrix.trials)
            entries.append(
                FAMILY.figure(f"share_rank_at_most_{k}", value, replicates,
                              label=f"P(rank ≤ {k})", floor=k / population)
            )  # fmt: skip
    note = (
        "Rank 1 is the worst. More trials can only lower this figure, and a resample never has a "
        "worse trial, so there is no interval."
    )
    worst = FAMILY.figure("worst_rank", float(ranks.min()), note=note, ceiling=population)
    return *entries, worst


def _percentiles(
    matrix: ScoreMatrix, ranks: FloatArray, tests: IntArray, weights: FloatArray | None
) -> Iterator[Figure]:
    means = np.bincount(matrix.owner, ranks) / tests
    chance = chance_mean_ranks(matrix.population, np.sort(tests))
    fewest, maximum = tests.min(), tests.max()
    tests_each = f"{fewest}" if fewest == maximum else f"{fewest} to {maximum}"
    population = float(matrix.population)
    for percent, floor, warning in (
        (50, (population + 1) / 2, "An average hides single first ranks, and half of the "
                                   "speakers have lower ones."),
        (1, float(np.percentile(chance, 1, axis=1).mean()),
         "With fewer than 100 speakers, it is between the two lowest." if means.size < 100
         else "A mean rank is not k-anonymity: single trials have far lower ranks."),
    ):  # fmt: skip
        replicates = low = high = None
        if weights is not None:
            replicates = interpolated_quantile(means, weights, percent / 100)
            low, high = quantile_limits(means, percent / 100, 1.0, population)
        value = float(interpolated_quantile(means, np.ones((1, means.size)), percent / 100)[0])
        plural_s = "" if tests_each == "1" else "s"
        note = f"Mean over {tests_each} test{plural_s} per speaker. {warning}"
        yield FAMILY.figure(
            f"mean_rank_p{percent}", value, replicates, note, ceiling=population, floor=floor,
            low=low, high=high,
        )  # fmt: skip


def _compute(context: EvaluationContext) -> FamilyResult:
    roles = context.settings.roles
    who = f"{roles}." if roles else "Whether queries or references were anonymised is not stated."
    return FamilyResult(figures(context.ranked, context.weights), (who[0].upper() + who[1:],))


_AT_MOST = FigureEntry("rank_{k}", "anonymity.share_rank_at_most_{k}",
                       "fraction of trials with a rank of at most {k}", LimitRule("share"),
                       unit="share", ceiling=1.0, ties="spread")  # fmt: skip

FAMILY = Family(
    key="anonymity",
    position=70,
    title="Ranks as anonymity (USC)",
    caveat="A mean rank is not k-anonymity: an average of 100 can hide a speaker at rank 1. Also "
           "read P(rank ≤ k) and the worst rank.",
    needs=("matrix",),
    figures=(
        FigureEntry("mean_rank", "anonymity.mean_rank_p50", "mean rank of the median speaker",
                    LimitRule("given"), label="mean rank, median speaker", unit="rank",
                    ties="spread"),
        FigureEntry("mean_rank_p1", "anonymity.mean_rank_p1",
                    "mean rank of the most exposed 1 % of speakers",
                    LimitRule("given", few_decide=True), label="mean rank, most exposed 1 %",
                    unit="rank", ties="spread"),
        *(_AT_MOST.fill_in(k=k) for k in CUTS),
        FigureEntry("worst_rank", "anonymity.worst_rank", "lowest rank of any trial",
                    LimitRule("none"), label="worst rank", unit="rank", ties="mid"),
    ),
    compute=_compute,
    main=("anonymity.mean_rank_p50",),
)  # fmt: skip
