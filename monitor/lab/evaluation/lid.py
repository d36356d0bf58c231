"""Local information disclosure (LID): bits that a trial gives a calibrated attacker.

Measures: ``log2(N p)``, with p the true speaker's posterior after a trial. A trial's scores are
normalised by row, calibrated (Platt) and passed through a softmax. ALID is the mean over trials,
and PDR the fraction of trials above 0 bits. LID+ and LID- are the means of those above and of the
others.

Source: Šterns et al., "Goodbye Equal Error Rate, Hello Local Information Disclosure", Tables 3 and
4, figure 4. There are two calibrations, the paper's and that of the authors' public code
(docs/method.md section 8).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from monitor.arrays import real_numbers
from monitor.errors import UsageError
from monitor.lab.evaluation.calibration import (
    FOLDS,
    STYLE,
    STYLES,
    AnyCalibration,
    LidStyle,
    RowScores,
    cross_calibrate,
    normalise_rows,
)
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.curves import POINTS, Drawing, Line, Systems
from monitor.lab.evaluation.family import (
    EvaluationContext,
    Family,
    FamilyResult,
    FigureEntry,
    LimitRule,
)
from monitor.lab.evaluation.resampling import find_resamples, resamples
from monitor.lab.report.model import Figure
from monitor.maths.logistic import logistic
from monitor.maths.ranks import first_rank_bits
from monitor.phrases import plural
from monitor.plots.canvas import MUTED, percents
from monitor.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEWEST = 10  # minimum speakers for a rank model that is evaluated at another N


@dataclass(frozen=True, slots=True)
class LidStatistics:
    """Figures of LID's Table 3 over n trials; ``alid = pdr * positive + ndr * negative``.

    PDR is the fraction of trials above 0 bits. LID+ and LID- are the means of these and of the
    others, or None without such trials. ``largest`` is LIDmax.
    """

    trials: int
    alid: float
    pdr: float
    ndr: float
    positive: float | None
    negative: float | None
    largest: float


@dataclass(frozen=True)
class LidBits:
    """LID of every trial, shape (T,), by the name of each published style."""

    calibrations: Mapping[str, AnyCalibration]
    bits: Mapping[str, FloatArray]

    @classmethod
    def from_matrix(cls, matrix: ScoreMatrix, dev: ScoreMatrix | None = None) -> LidBits:
        """Compute LID, calibrated on a dev matrix, or for each fold of speakers on the others."""
        scores = RowScores(matrix, FOLDS) if dev is None else RowScores(dev)
        calibrations: dict[str, AnyCalibration] = {
            name: cross_calibrate(scores, style) if dev is None else scores.calibrate(style)
            for name, style in STYLES.items()
        }
        bits = {name: information_bits(matrix, fit) for name, fit in calibrations.items()}
        return cls(calibrations, bits)


def information_bits(matrix: ScoreMatrix, calibration: AnyCalibration) -> FloatArray:
    """Compute LID of every trial in bits, shape (T,).

    It is ``log2(N p)``, with p the true speaker's posterior.
    """
    fold = np.zeros(matrix.trials, np.intp) if calibration.fold is None else calibration.fold
    if len(fold) != matrix.trials:
        raise UsageError(
            f"{matrix.name}: apply a cross-calibration only to the trials that it was fitted to"
        )
    bits = np.empty(matrix.trials)
    for block, scores in matrix.blocks():
        for index, fold_calibration in enumerate(calibration.calibrations):
            rows = np.flatnonzero(fold[block] == index)
            target = matrix.target[block][rows]
            bits[block.start + rows] = fold_calibration.bits(scores[rows], target)
    return bits


def statistics(bits: FloatArray) -> LidStatistics:
    """Summarise the LID of some trials, shape (n,).

    Example:
        >>> found = statistics(np.array([1.0, 2.0, 0.0, -1.0]))
        >>> found.alid, found.pdr, found.positive, found.negative, found.largest
        (0.5, 0.5, 1.5, -0.5, 2.0)
    """
    bits = real_numbers(bits, "bits", np.float64).ravel()
    above = bits > 0
    fraction = float(above.mean())
    return LidStatistics(
        trials=bits.size,
        alid=float(bits.mean()),
        pdr=fraction,
        ndr=1.0 - fraction,
        positive=float(bits[above].mean()) if above.any() else None,
        negative=float(bits[~above].mean()) if not above.all() else None,
        largest=float(bits.max()),
    )


# Limits with a fixed calibration are too narrow, because it is fitted on few speakers. LID+ would
# differ significantly in 20 to 60 of 100 studies of equal systems with 40 speakers. One Newton step
# gives the weight on each resample, and the slope of each trial's bits the effect of that weight.
def weight_shifts(
    matrix: ScoreMatrix, calibration: AnyCalibration, style: LidStyle, weights: FloatArray
) -> FloatArray:
    """Compute the shift of a calibration's weight w on each resample of speakers.

    The arguments are the matrix that it was fitted on and weights (B, S) from its `resamples`. With
    several folds, the result is their mean. It has shape (B,) and is added to w. At most it halves
    w or doubles it.
    """
    parts = calibration.calibrations
    point = np.mean([[part_fit.weight, part_fit.bias] for part_fit in parts], axis=0)
    count = matrix.population
    heavy = (count / 2, count / (2 * (count - 1))) if style.balanced else (1.0, 1.0)
    sums = np.zeros((len(matrix.tested), 5))  # slope by w and b, bend by ww, wb and bb
    for block, scores in matrix.blocks():
        z = normalise_rows(scores, style.ddof)
        row, target = np.arange(len(z)), matrix.target[block]
        probability = logistic(point[0] * z + point[1])
        hessian = heavy[1] * probability * (1.0 - probability)
        hessian[row, target] *= heavy[0] / heavy[1]
        mated = probability[row, target]
        probability *= heavy[1]
        probability[row, target] = heavy[0] * (mated - 1.0)
        scaled_hessian = hessian * z
        columns = (
            np.einsum("ij,ij->i", probability, z),
            probability.sum(axis=1),
            np.einsum("ij,ij->i", scaled_hessian, z),
            scaled_hessian.sum(axis=1),
            hessian.sum(axis=1),
        )
        owner = matrix.owner[block]
        sums += np.stack([np.bincount(owner, column, len(sums)) for column in columns], axis=1)
    bounded = any(part_fit.bounded for part_fit in parts)
    penalty = 1.0 if bounded else 1.0 / style.strength
    steps = _steps(weights @ sums, penalty, float(point[0]))
    still = _steps(sums.sum(axis=0)[None], penalty, float(point[0]))
    size = abs(float(point[0]))
    return np.asarray(np.clip(steps - still, -size / 2, size))


def bits_slopes(matrix: ScoreMatrix, calibration: AnyCalibration, style: LidStyle) -> FloatArray:
    """Compute the derivative of each trial's LID by the weight, in bits, shape (T,)."""
    fold = calibration.fold
    weight = np.array([fold_fit.weight for fold_fit in calibration.calibrations])
    slopes = np.empty(matrix.trials)
    for block, scores in matrix.blocks():
        z = normalise_rows(scores, style.ddof)
        row_weight = weight[fold[block], None] if fold is not None else weight[0]
        likely = np.exp(row_weight * z - (row_weight * z).max(axis=1, keepdims=True))
        expected = np.einsum("ij,ij->i", likely, z) / likely.sum(axis=1)
        slopes[block] = (z[np.arange(len(z)), matrix.target[block]] - expected) / float(np.log(2.0))
    return slopes


def _steps(sums: FloatArray, penalty: float, weight: float) -> FloatArray:
    """First component of ``-H^-1 g``, in closed form: shape (B,)."""
    by_w, by_b, ww, wb, bb = sums.T
    by_w, ww = by_w + penalty * weight, ww + penalty
    steady = ww * bb - wb * wb
    safe = steady > 1e-12 * ww * bb
    return np.asarray(np.where(safe, (wb * by_b - bb * by_w) / np.where(safe, steady, 1.0), 0.0))


_FEWEST = 10
_TOO_FEW = f"no interval: fewer than {_FEWEST} speakers have such trials"
_THEIR_CODE = "calibrated as in the authors' public code, with equal class weights and ddof 1"
_DEV_SEED = 1  # speakers of a dev matrix are drawn apart from those of the trials


def figures(
    matrix: ScoreMatrix,
    weights: FloatArray | None = None,
    dev: ScoreMatrix | None = None,
    local: LidBits | None = None,
) -> tuple[Figure, ...]:
    """Compute every figure of LID: ``lid.*`` as in the paper, ``lid.repo.*`` as in its code.

    Resamples (weights (B, S), from `resamples`) weight the trials' bits and shift the calibration
    (`weight_shifts`). The calibration is that of the dev matrix if there is one. LIDmax is not
    resampled.
    """
    local = LidBits.from_matrix(matrix, dev) if local is None else local
    entries: list[Figure] = []
    for name, style in STYLES.items():
        replicates = _replicates(matrix, dev, local, style, weights)
        stem = "lid" if name == STYLE else f"lid.{name}"
        entries += _figures(stem, matrix, local.calibrations[name], local.bits[name], replicates)
    return tuple(entries)


def _figures(
    stem: str, matrix: ScoreMatrix, calibration: AnyCalibration, bits: FloatArray,
    replicates: Mapping[str, FloatArray],
) -> Iterator[Figure]:  # fmt: skip
    summary = statistics(bits)
    notes = []
    if calibration.fold is not None:
        notes.append(f"cross-fitted over speakers, {plural(len(calibration.calibrations), 'fold')}")
    if calibration.bounded:
        notes.append(
            "mated and non-mated scores separate perfectly, so an L2 penalty (C = 1) "
            "limits the weight"
        )
    note = "; ".join(notes)
    maximum = calibration.ceiling_bits(matrix.population)
    above, below = (
        "" if not replicates or len(np.unique(matrix.owner[rows_of_sign])) >= _FEWEST else _TOO_FEW
        for rows_of_sign in (bits > 0, bits <= 0)
    )
    rows: tuple[tuple[str, str, float | None, str, str], ...] = (
        ("alid_bits", "ALID", summary.alid, "bits", note),
        ("pdr", "PDR", summary.pdr, "share", ""),
        ("ndr", "NDR", summary.ndr, "share", "includes trials that disclose 0 bits"),
        ("positive_bits", "LID+", summary.positive, "bits",
         above if summary.pdr else "no such trial"),
        ("negative_bits", "LID-", summary.negative, "bits",
         below if summary.ndr else "no such trial"),
        ("max_bits", "LIDmax", summary.largest, "bits",
        "of one trial; the ceiling comes from row normalisation"),
    )  # fmt: skip
    coded = ", authors' code" if stem == "lid.repo" else ""
    for key, label, value, unit, remark in rows:
        yield Figure(
            f"{stem}.{key}", label + coded, value, unit,
            note="; ".join(filter(None, (remark, _THEIR_CODE if coded else ""))),
            replicates=None if remark is _TOO_FEW else replicates.get(key),
            ceiling=1.0 if unit == "share" else 0.0 if key == "negative_bits" else maximum,
            floor=0.0 if key in ("alid_bits", "max_bits") else None,
        )  # fmt: skip


def _replicates(
    matrix: ScoreMatrix, dev: ScoreMatrix | None, local: LidBits, style: LidStyle,
    weights: FloatArray | None,
) -> dict[str, FloatArray]:  # fmt: skip
    """Compute the statistics on each resample, with bits shifted by its calibration."""
    if weights is None:
        return {}
    calibration, bits = local.calibrations[style.name], local.bits[style.name]
    if dev is None:
        shifts = weight_shifts(matrix, calibration, style, weights)
    else:
        others = resamples(dev, len(weights), _DEV_SEED)
        shifts = weight_shifts(dev, calibration, style, others) * find_resamples(weights)
    slopes = bits_slopes(matrix, calibration, style)
    maximum = matrix.ceiling_bits  # linear shifts may exceed it
    sums = np.empty((len(weights), 4))  # trials, trials above 0, bits of these and of the others
    for row, by_speaker, shift in zip(sums, weights, shifts, strict=True):
        weight = by_speaker[matrix.owner]
        moved = np.minimum(bits + shift * slopes, maximum)
        above = moved > 0
        mass = weight * moved
        row[:] = weight.sum(), weight[above].sum(), mass[above].sum(), mass[~above].sum()
    trials, positive, gained, lost = sums.T
    with np.errstate(invalid="ignore"):
        return {
            "alid_bits": (gained + lost) / trials,
            "pdr": positive / trials,
            "ndr": 1.0 - positive / trials,
            "positive_bits": gained / positive,
            "negative_bits": np.minimum(lost / (trials - positive), 0.0),
        }


def exceeding(values: FloatArray) -> Line:
    """Compute the complementary distribution of values, at evenly spaced quantiles."""
    ordered = np.sort(values)
    at = np.unique(np.linspace(0, len(ordered) - 1, min(POINTS, len(ordered))).astype(np.intp))
    x = ordered[at]
    above = len(ordered) - np.searchsorted(ordered, x, side="left")
    return Line(x, above / len(ordered))


def _paint_local(axes: Axes, systems: Systems) -> None:
    lines = [curves.local_bits for _, curves in systems if curves.local_bits is not None]
    leftmost = min(float(line.x[0]) for line in lines) - 0.3
    for (colour, curves), line in zip(systems, lines, strict=True):
        axes.step([leftmost, *line.x], [1.0, *line.y], where="pre", color=colour)
        axes.axvline(curves.ceiling_bits, color=MUTED, linewidth=0.8, linestyle=(0, (1, 2)))
    axes.axvline(0.0, color=MUTED, linewidth=0.8)
    axes.set_xlim(left=leftmost)
    axes.set_ylim(0, 1.02)
    percents(axes.yaxis)
    axes.set_xlabel("local disclosure of a trial, bits (below 0: misled)")
    axes.set_ylabel("fraction of trials with at least these bits")


_TIMES_CHANCE, _OUTLIERS, _FEW_SPEAKERS, _WORTH_BITS = 2.0, 0.05, 30, 0.3
"""Thresholds for the calibration warning."""
_FAR = 10
"""Multiple of a rank model's N up to which it is trusted (docs/method.md section 3)."""

_OF_A_STYLE = (
    FigureEntry("alid", "alid_bits", "mean bits that a calibrated attacker learns from a trial",
                LimitRule("signed")),
    FigureEntry("pdr", "pdr", "fraction of trials above 0 bits",
                LimitRule("share", neutral=0.5)),
    FigureEntry("ndr", "ndr", "fraction of trials at 0 bits or below",
                LimitRule("share", neutral=0.5)),
    FigureEntry("lid_plus", "positive_bits", "mean bits of the trials above 0",
                LimitRule("share", neutral=0.0)),
    FigureEntry("lid_minus", "negative_bits", "mean bits of the other trials",
                LimitRule("t", neutral=0.0, few_decide=True)),
    FigureEntry("lid_max", "max_bits", "bits of the most revealing trial",
                LimitRule("none", reason="one trial decides it")),
)  # fmt: skip


def local_bits(context: EvaluationContext) -> LidBits | None:
    """Compute LID of every trial; None if there is nothing to calibrate on."""
    if context.dev is None and len(context.ranked.tested) < 2:
        return None
    return LidBits.from_matrix(context.ranked, context.dev)


def _compute(context: EvaluationContext) -> FamilyResult:
    matrix, dev, local = context.ranked, context.dev, context.once(local_bits)
    if local is None:
        note = "LID is omitted: it needs a dev matrix, or trials of two speakers."
        return FamilyResult((), (note,))
    entries = figures(matrix, context.weights, dev, local=local)
    notes = (*_notes(matrix, dev), *_contradiction(matrix, dev, local))
    return FamilyResult(entries, notes, curves={"local_bits": exceeding(local.bits[STYLE])})


def _notes(matrix: ScoreMatrix, dev: ScoreMatrix | None) -> Iterator[str]:
    if dev is None:
        yield "There is no dev matrix, so LID was calibrated for each speaker on the others."
        return
    if shared := _tested(matrix) & _tested(dev):
        yield f"{len(shared)} of the speakers are also in the dev matrix, which biases LID upwards."
    population, dev_population = matrix.population, dev.population
    if population == dev_population:
        return
    is_small = dev_population < FEWEST
    yield (
        f"The dev matrix has N = {plural(dev_population, 'speaker')}: row normalisation makes "
        f"LID's calibration slightly different at N = {population}. "
        + (f"A dev matrix with N under {FEWEST} gives no rank model." if is_small else
           f"The rank model is evaluated at N = {population}.")
    )  # fmt: skip
    if population > _FAR * dev_population:
        yield f"N is more than {_FAR} times that of the dev matrix, which is a long extrapolation."


def _contradiction(matrix: ScoreMatrix, dev: ScoreMatrix | None, local: LidBits) -> Iterator[str]:
    """Explain a calibration that contradicts the ranks, with advice."""
    bits = local.bits[STYLE]
    fraction = float((matrix.better == 0).mean())
    alid, trials = float(bits.mean()), matrix.trials
    maximum = local.calibrations[STYLE].ceiling_bits(matrix.population)
    worth = min(first_rank_bits(fraction, matrix.population), maximum)
    if fraction * matrix.population < _TIMES_CHANCE or worth < _WORTH_BITS or alid >= worth / 2:
        return
    worst = np.sort(bits)[: max(1, round(_OUTLIERS * trials))]
    lost = -float(worst.sum()) / trials
    source = matrix if dev is None else dev
    reasons = []
    if lost > worth / 4:
        reasons.append(
            f"the worst {worst.size} of {trials} trials lower the mean by {lost:.2f} bits (wrong "
            "labels or silence?)"
        )
    if len(source.tested) < _FEW_SPEAKERS:
        reasons.append(
            f"it was fitted to only {plural(len(source.tested), 'speaker')} and "
            f"{plural(source.trials, 'trial')}"
        )
    if dev is not None:
        reasons.append("the dev scores may be from another system or other conditions")
    reason = "; ".join(reasons) or "some speakers' scores vary far more than others'"
    yield (
        f"ALID of {alid:.2f} bits contradicts the ranks: {100 * fraction:.0f} % of the trials "
        f"rank the correct person first, which alone is worth {worth:.2f} bits. The calibration "
        f"does not fit these trials: {reason}. Rely on SRD and the error rates, inspect the "
        "worst trials, and calibrate on more speakers like these (--dev)."
    )


def _tested(matrix: ScoreMatrix) -> set[str]:
    """Return the names of speakers with trials, except names that are only numbers."""
    return {name for i in matrix.tested if not (name := matrix.speakers[i]).isdecimal()}


FAMILY = Family(
    key="lid",
    position=20,
    title="Local information disclosure (LID)",
    caveat="Row normalisation limits what a trial can disclose, even with perfect scores. "
           "Compare LID with its own ceiling. The two calibrations differ, and depend on the "
           "speakers to whom they were fitted. LID is signed: a mean of zero can hide trials "
           "that disclose a lot beside trials that mislead.",
    needs=("matrix",),
    figures=(
        *(replace(entry, key=f"lid.{entry.key}") for entry in _OF_A_STYLE),
        *(
            replace(entry, name=f"{entry.name}_code", key=f"lid.repo.{entry.key}",
                    says=f"{entry.name}, calibrated as the authors' code does")
            for entry in _OF_A_STYLE
        ),
    ),
    compute=_compute,
    main=("lid.alid_bits", "lid.max_bits"),
    drawings=(
        Drawing("local_bits", "How much single trials disclose",
                "Fraction of trials that disclose at least this many bits. The right tail is the "
                "worst case. Below 0, the attacker is misled.", _paint_local),
    ),
)  # fmt: skip
