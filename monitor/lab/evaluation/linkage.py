"""Linkability: three quantities with this name, or reported beside it.

Measures: ``d_sys`` is the separation of the histograms of mated and non-mated scores. ``pi_link``
is the probability that the true speaker scores highest among N' people drawn at random. ``pi_sing``
is the probability that a threshold isolates exactly one speaker, right or wrong.

Source: Gomez-Barrero et al., 2018, for D_sys. Vauquier et al., 2025, for pi_link and pi_sing, the
legally validated framework (docs/method.md section 8).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.arrays import real_numbers
from monitor.errors import UsageError
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.counts import ScoreCounts, speaker_cells
from monitor.lab.evaluation.curves import Drawing, Line, Systems
from monitor.lab.evaluation.family import (
    EvaluationContext,
    Family,
    FamilyResult,
    FigureEntry,
    LimitRule,
)  # fmt: skip
from monitor.lab.evaluation.resampling import settled_order
from monitor.lab.report.model import Figure
from monitor.maths.roc import cell_counts, scores_of
from monitor.phrases import plural
from monitor.plots.canvas import MUTED, legend_above, numbers, percents
from monitor.protocols import ScoredComparisons
from monitor.types import AnyArray, DoubleArray, FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FEWEST = 10  # mated scores for one bin
_BINS = 100


def d_sys(
    mated: ArrayLike, non_mated: ArrayLike, omega: float = 1.0, bins: int | None = None
) -> float:
    """Compute the global linkability D_sys (Gomez-Barrero et al., 2018) of mated scores.

    This is the mean over mated scores of ``2 omega LR / (1 + omega LR) - 1``, with negative values
    set to 0. LR is the ratio of two histograms over one range, and the mean is a trapezoid over bin
    centres. Few trials distort the result. Perfect separation gives 0.98 with 1000 mated scores,
    0.80 with 100, and 0.0 with 10. Uninformative scores give 0.06 with 1000.

    Args:
        mated: at least 10 scores of the same speaker, any shape.
        non_mated: scores of different speakers, any shape.
        omega: prior odds of a mated pair.
        bins: number of histogram bins; by default a tenth of the mated scores and at most 100, as
            in public tools.

    Example:
        >>> round(d_sys(np.linspace(2, 3, 200), np.linspace(0, 1, 200)), 3)
        0.925
    """
    mated_scores, others = scores_of(mated, non_mated)
    bins = _bins(len(mated_scores)) if bins is None else bins
    if bins < 1:
        raise UsageError(
            f"D_sys needs at least {_FEWEST} mated scores; there are {mated_scores.size}"
        )
    if not (omega > 0 and np.isfinite(omega)):
        raise UsageError("invalid omega (prior odds of a mated pair): use a number above 0")
    low, high = min(mated_scores.min(), others.min()), max(mated_scores.max(), others.max())
    edges = _edges(float(low), float(high), bins)
    mated_scores, others = (
        cell_counts(np.sort(x), edges[1:-1]).astype(np.float64) for x in (mated_scores, others)
    )
    return float(_d_sys(mated_scores, others, omega))


def d_sys_figure(
    scores: ScoredComparisons, weights: FloatArray | None, counts: ScoreCounts
) -> Figure:
    """Compute D_sys of all scores, omega 1; resamples keep the edges of the bins."""
    bins = _bins(scores.mated.size)
    if bins < 1:
        note = f"needs {_FEWEST} mated scores for a histogram; there are {scores.mated.size}"
        return FAMILY.figure("d_sys", None, note=note, ceiling=None, floor=None)
    by_speaker = speaker_cells(scores, _edges(counts.low, counts.high, bins)[1:-1])
    mated, others = (cells.sum(axis=0) for cells in by_speaker)
    replicates = None
    if weights is not None:
        replicates = _d_sys(weights @ by_speaker[0], weights @ by_speaker[1], 1.0)
    note = (
        f"{bins} bins per histogram; chance gives more than 0, and perfect separation less than 1"
    )
    value = float(_d_sys(mated, others, 1.0))
    return FAMILY.figure("d_sys", value, replicates, note, ceiling=float(bins > 1))


def _bins(mated: int) -> int:
    return min(mated // _FEWEST, _BINS)


def _edges(low: float, high: float, bins: int) -> DoubleArray:
    if low == high:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, bins + 1)


def _d_sys(mated: FloatArray, others: FloatArray, omega: float) -> DoubleArray:
    """Compute D_sys (...) from counts (..., bins) of one width, which cancels."""
    density = mated / mated.sum(axis=-1, keepdims=True)
    against = others / others.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = omega * np.where(against > 0, density / against, 1.0)
    local = np.where(odds > 1, 2 * odds / (1 + odds) - 1, 0.0)
    local = np.where((against == 0) & (density > 0), 1.0, local)
    area = local * density
    return np.asarray(area.sum(axis=-1) - (area[..., 0] + area[..., -1]) / 2)


# Predicate singling out (Cohen and Nissim): the predicate is an enrolled speaker and a threshold
# that 1 / N of calibration trials exceed. It succeeds if exactly one test trial exceeds it.
CHANCE_SING = float(np.exp(-1.0))  # pi_sing without evidence: 37 %

_FOLDS = 10  # trials per speaker: one for the test, nine for calibration, as in the paper


def isolated(calibration: AnyArray, test: AnyArray, passing: IntArray) -> NDArray[np.bool_]:
    """Find predicates (P,) that fire on exactly one test trial, of any speaker.

    A predicate is an enrolled speaker and a threshold. The threshold is midway between the M-th and
    the (M + 1)-th highest of the speaker's calibration scores. M is the speaker's number of
    calibration trials. If those two scores are equal, fewer than M exceed the threshold. The
    arguments are K calibration trials (K, P), one other trial of each of S speakers (S, P), and M
    (P,).
    """
    calibration, test = real_numbers(calibration, "scores"), real_numbers(test, "scores")
    passing = real_numbers(passing, "numbers of passing scores")
    if calibration.ndim != 2 or test.ndim != 2 or calibration.shape[1:] != test.shape[1:]:
        raise UsageError("calibration and test scores must have the same enrolled speakers")
    count = len(calibration)
    if passing.shape != test.shape[1:] or not ((passing > 0) & (passing < count)).all():
        raise UsageError(
            f"invalid number of passing scores: use 1 to {count - 1} for each predicate"
        )
    ordered = np.array(calibration.T, order="C")
    ordered.sort(axis=1)  # faster than a partition
    row = np.arange(len(passing))
    pair = ordered[row, count - passing], ordered[row, count - passing - 1]
    threshold = 0.5 * pair[0].astype(np.float64) + 0.5 * pair[1].astype(np.float64)
    return np.asarray((test > threshold).sum(axis=0) == 1)


def pi_sing(calibration: AnyArray, test: AnyArray, passing: IntArray) -> float:
    """Compute how often an enrolled speaker's predicate singles out one of S test speakers.

    The arguments are those of `isolated`. Scores without information give `CHANCE_SING`, 37 %.

    Example:
        >>> scores = np.eye(4)
        >>> pi_sing(scores, scores, np.ones(4, int))
        1.0
    """
    return float(isolated(calibration, test, passing).mean())


def sing_figure(matrix: ScoreMatrix, weights: FloatArray | None = None) -> Figure:
    """Compute pi_sing of a matrix.

    At most ten trials of each speaker are drawn by `settled_order`. Each tests once, while the
    others calibrate. Thresholds are never tested on their own trials, and every speaker takes part.
    Speakers with one trial are left out. On a resample, predicates of a speaker count as often as
    the speaker, each tested among all speakers.
    """
    repeated = np.flatnonzero(np.bincount(matrix.owner) > 1)
    if len(repeated) < 2:
        note = "needs two speakers with two trials each, one for calibration and one for the test"
        return FAMILY.figure("pi_sing", None, note=note, ceiling=None, floor=None, ties="")
    rows, fold, owner = _folds(matrix, repeated)
    scores = np.asarray(matrix.scores[rows]).T[matrix.tested[repeated]]
    trials = np.bincount(owner)
    hits = np.zeros(len(repeated))
    folds = int(trials.max())
    left_out = np.bincount(matrix.owner).max() > folds
    for number in range(folds):
        test = fold == number % trials[owner]
        hits += isolated(scores[:, ~test].T, scores[:, test].T, trials - 1)
    replicates = None
    if weights is not None:
        drawn_weights = weights[:, repeated]
        with np.errstate(invalid="ignore"):
            replicates = drawn_weights @ hits / folds / drawn_weights.sum(axis=1)
    note = (
        f"among {plural(len(repeated), 'speaker')}, {plural(folds, 'fold')}"
        + (f" of {folds} trials drawn per speaker" if left_out else "")
        + "; chance is 37 %, and a predicate may isolate the wrong person"
    )
    return FAMILY.figure("pi_sing", float(hits.mean() / folds), replicates, note)


def _folds(matrix: ScoreMatrix, many: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Draw ten trials of each speaker in `many`: row, number within the speaker, speaker."""
    order = settled_order(matrix)
    order = order[np.argsort(matrix.owner[order], kind="stable")]
    firsts = np.searchsorted(matrix.owner[order], np.arange(len(matrix.tested)))
    number = np.empty(matrix.trials, dtype=np.intp)
    number[order] = np.arange(matrix.trials) - firsts[matrix.owner[order]]
    rows = np.flatnonzero((number < _FOLDS) & np.isin(matrix.owner, many))
    return rows, number[rows], np.searchsorted(many, matrix.owner[rows])


def pi_link(better: IntArray, population: int, candidates: ArrayLike) -> DoubleArray:
    """Compute the probability that the true speaker scores highest among N' candidates.

    The result is exact. The other N' - 1 candidates are drawn from the N - 1 other speakers without
    replacement. The attacker succeeds if none of them scores higher, so ties count as success.

    Args:
        better: shape (T,), number of speakers that score strictly higher than the trial's own
            (`ScoreMatrix.better`).
        population: number N of speakers.
        candidates: numbers N' of candidates, any shape, from 1 to N. Chance is 1 / N'.

    Example:
        >>> pi_link(np.array([0, 1, 2]), 3, [1, 2, 3]).round(4).tolist()
        [1.0, 0.5, 0.3333]
    """
    better = real_numbers(better, "ranks")
    if better.ndim != 1 or not better.size or better.min() < 0 or better.max() >= population:
        raise UsageError(f"ranks do not fit into {plural(population, 'speaker')}: check N")
    sizes = real_numbers(candidates, "numbers of candidates")
    inside = (sizes >= 1) & (sizes <= population)
    if sizes.dtype.kind not in "iu" or not inside.all():
        raise UsageError(f"invalid number of candidates: use whole numbers from 1 to {population}")
    levels = np.bincount(better)
    levels_seen = np.flatnonzero(levels)
    mean = levels[levels_seen] @ link_table(levels_seen, population, sizes.ravel()) / len(better)
    return np.asarray(mean.reshape(sizes.shape))


def link_figures(matrix: ScoreMatrix, weights: FloatArray | None = None) -> tuple[Figure, ...]:
    """Compute pi_link among 2, 10 and all speakers."""
    population = matrix.population
    wanted = [(n, str(n)) for n in (2, 10) if n < population] + [(population, "all")]
    levels, cell = np.unique(matrix.better, return_inverse=True)
    table = link_table(levels, population, np.array([n for n, _ in wanted]))
    mean = np.bincount(cell) @ table / matrix.trials
    replicates = None
    if weights is not None:
        shape = len(matrix.tested), len(levels)
        cells = np.bincount(matrix.owner * shape[1] + cell, minlength=shape[0] * shape[1])
        seen = weights @ cells.reshape(shape).astype(np.float64)
        replicates = seen @ table / seen.sum(axis=1, keepdims=True)
    return tuple(
        FAMILY.figure(
            f"pi_link_{name}", float(mean[i]), None if replicates is None else replicates[:, i],
            label=f"pi_link among {count}", floor=1 / count,
        )
        for i, (count, name) in enumerate(wanted)
    )  # fmt: skip


def link_table(levels: IntArray, population: int, candidates: IntArray) -> DoubleArray:
    """Compute pi_link of a trial that m others beat: ``C(N - N', m) / C(N - 1, m)``.

    This equals ``C(N - 1 - m, N' - 1) / C(N - 1, N' - 1)``, as a product over m. Levels m (L,) and
    candidates N' (C,) give shape (L, C).
    """
    placed = np.arange(levels.max())
    free = np.maximum(population - candidates[:, None] - placed, 0) / (population - 1.0 - placed)
    ways = np.ones((len(candidates), len(placed) + 1))
    np.cumprod(free, axis=1, out=ways[:, 1:])
    return np.asarray(ways[:, levels].T)


def _paint_linkage(axes: Axes, systems: Systems) -> None:
    axes.set(xscale="log", yscale="log")
    for colour, curves in systems:
        assert curves.linkage is not None
        axes.plot(curves.linkage.x, curves.linkage.y, color=colour)
    sizes = np.geomspace(2, max(curves.speakers for _, curves in systems), 50)
    axes.plot(sizes, 1 / sizes, color=MUTED, linestyle=":", label="by chance")
    legend_above(axes)
    numbers(axes.xaxis)
    percents(axes.yaxis)
    axes.set(xlabel="people to choose from", ylabel="chance to pick the right one")


def _compute(context: EvaluationContext) -> FamilyResult:
    pooled = d_sys_figure(context.pool, context.pool_weights, context.counts)
    matrix, weights = context.matrix, context.weights
    if matrix is None:
        return FamilyResult((pooled,))
    steps = np.geomspace(2, matrix.population, min(matrix.population - 1, 200))
    candidates = np.unique(np.rint(steps).astype(np.intp))
    linked = pi_link(matrix.better, matrix.population, candidates)
    return FamilyResult(
        (pooled, *link_figures(matrix, weights), sing_figure(matrix, weights)),
        curves={"linkage": Line(candidates.astype(np.float64), linked)},
    )


def _link(count: int | str, name: str, whom: str) -> FigureEntry:
    return FigureEntry(
        name, f"linkage.pi_link_{count}", f"probability of choosing the correct one of {whom}",
        LimitRule("share"), ("matrix",), unit="share", ceiling=1.0, ties="optimistic",
        like="linkage.pi_link_{count}",
    )  # fmt: skip


FAMILY = Family(
    key="linkage",
    position=60,
    title="Linking two recordings",
    caveat="Linkability means three things in the literature. D_sys depends on its bins. Few "
           "perfectly separated scores can read 0, and chance reads above 0. The figure pi_link "
           "depends on the number of people to choose from, so quote that too.",
    needs=("pool",),
    figures=(
        FigureEntry("d_sys", "linkage.d_sys",
                    "how little the two histograms of scores overlap, 0 to 1", LimitRule("fitted"),
                    label="D_sys", floor=0.0),
        _link(2, "pi_link_2", "two people"),
        _link(10, "pi_link_10", "ten"),
        _link("all", "pi_link", "all"),
        FigureEntry("pi_sing", "linkage.pi_sing",
                    "probability of isolating exactly one person; 37 % without "
                    "evidence", LimitRule("share"),
                    ("matrix",), label="pi_sing", unit="share", ceiling=1.0, floor=CHANCE_SING,
                    ties="strict"),
    ),
    compute=_compute,
    main=("linkage.d_sys", "linkage.pi_link_10"),
    drawings=(
        Drawing("linkage", "Linking is easier among fewer people",
                "Probability that the speaker is the best match among N′ people.", _paint_linkage),
    ),
)  # fmt: skip
