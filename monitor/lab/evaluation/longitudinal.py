"""Joint disclosure of several trials of one speaker, against their number.

Measures: LID of the sum of a speaker's log-likelihood ratios, divided by a temperature; and SRD's
product of rank models.

Source: the longitudinal form of LID (Šterns et al.); temperatures against dependent trials are our
own (docs/method.md section 8, `monitor.maths.logistic`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from monitor.errors import UsageError
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.curves import Drawing, Line, Systems
from monitor.lab.evaluation.family import (
    EvaluationContext,
    Family,
    FamilyResult,
    FigureEntry,
    LimitRule,
)
from monitor.lab.evaluation.lid import (
    FEWEST,
    STYLE,
    CrossCalibration,
    LidCalibration,
    LidStyle,
    calibrate,
    cross_calibrate,
    local_bits,
)  # fmt: skip
from monitor.lab.evaluation.memory import scratch
from monitor.lab.evaluation.resampling import find_resamples, settled_order
from monitor.lab.report.model import Figure
from monitor.maths.composition import guides
from monitor.maths.logistic import fit_growing_temperature, fit_temperature
from monitor.maths.posterior import normalise_rows, softmax_bits
from monitor.maths.rank_models import fit
from monitor.maths.ranks import all_rank_bounds, rank_histogram
from monitor.maths.statistics import Estimate
from monitor.phrases import plural
from monitor.plots.canvas import MUTED, legend_above
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# ------------------------------------------------------------------------------ longitudinal curve
# Bits disclosed after 1, 2 ... K trials of a speaker, by each rule of adding evidence up.
#
# Log-likelihood ratios of a speaker's trials are summed, in the order of the rows or in one that no
# order of rows changes, and divided by a temperature T: 1 (``sum``, trials taken as independent), k
# (``average``), one number fitted on development speakers (``temperature``), ``tau (1 + rho (k -
# 1))`` (``count``). ``rank`` multiplies the rank posteriors instead, ``gamma = (h + 1) / (n + N)``
# of the development ranks; where those were taken among another number of speakers, the model
# fitted to them gives h at N.

LONGEST = 100
"""Most trials of a speaker that a curve goes through."""
_CHUNK = 1 << 20
_FITTED = 1 << 21
"""Most numbers that a temperature is fitted on; of more, every so many speakers are taken."""


@dataclass(frozen=True)
class Tempering:
    """Fits on development speakers: T, tau and rho of ``count``, and h, ranks counted, (N,)."""

    constant: float
    tau: float
    rho: float
    ranks: FloatArray

    def rank_model(self, speakers: int) -> FloatArray | None:
        """Compute the rank model among N speakers, shape (N,), one trial added to each rank.

        Among as many as the development speakers ``(h + 1) / (n + N)``; elsewhere of the rank model
        fitted to h, or None where they are fewer than ten.
        """
        trials = self.ranks.sum()
        counts = self.ranks
        if speakers != counts.size:
            if counts.size < FEWEST:
                return None
            counts = trials * np.exp(fit(counts).log_pmf(speakers))
        return np.asarray((counts + 1.0) / (trials + speakers))


@dataclass(frozen=True)
class SpeakerSums:
    """The first K trials of every speaker who has as many: their rows, shape (S', K).

    `tested` is an index into `ScoreMatrix.tested`, (S',).
    """

    matrix: ScoreMatrix
    tested: IntArray
    rows: IntArray

    @classmethod
    def of(cls, matrix: ScoreMatrix, longest: int | None, as_rows: bool = True) -> SpeakerSums:
        """Choose the trials: in the order of the rows, or in `settled_order`."""
        counts = np.bincount(matrix.owner)
        length = min(int(np.median(counts)), LONGEST) if longest is None else longest
        tested = np.flatnonzero(counts >= length)
        if length < 1 or not tested.size:
            raise UsageError(
                f"{matrix.name}: no speaker has {plural(length, 'trial')}: ask for fewer"
            )
        order = np.arange(matrix.trials) if as_rows else settled_order(matrix)
        order = order[np.argsort(matrix.owner[order], kind="stable")]
        first = np.cumsum(counts) - counts
        return cls(matrix, tested, order[first[tested][:, None] + np.arange(length)])

    @property
    def trials(self) -> IntArray:
        """1 to K."""
        return np.arange(1, self.rows.shape[1] + 1)

    @property
    def target(self) -> IntArray:
        """Heading of each speaker: shape (S',)."""
        return self.matrix.tested[self.tested]

    def temper(self, weight: float, speakers: BoolArray) -> Tempering:
        """Learn the temperatures and the rank model of some of the speakers, shape (S',).

        `weight` is of the calibration, for rows normalised with ddof = 0.
        """
        last = self.rows.shape[1]
        chosen_speakers = np.flatnonzero(speakers)
        target = self.target
        constant = fit_temperature(self._final, target, last, weight=weight, rows=chosen_speakers)
        at, sums = self._spaced
        place = np.isin(at, chosen_speakers)
        if not place.any():
            place[0] = True
        chosen = at[place]
        steps = self._steps
        ratios = weight * sums[place].reshape(-1, sums.shape[-1])
        true_speakers = np.repeat(target[chosen], len(steps))
        counts = np.tile(steps, len(chosen)).astype(np.float64)
        tau, rho = fit_growing_temperature(ratios, true_speakers, counts)
        rows = np.isin(self.matrix.owner, self.tested[chosen_speakers])
        histogram = rank_histogram(
            self.matrix.better[rows], self.matrix.tied[rows], self.matrix.population
        )
        return Tempering(constant, tau, rho, histogram)

    def bits(
        self, weight: float, tempering: Tempering, speakers: BoolArray
    ) -> dict[str, FloatArray]:
        """``log2(N p)`` of some speakers after each trial, by rule: shape (speakers, K)."""
        chosen = np.flatnonzero(speakers)
        rank_model = tempering.rank_model(self.matrix.population)
        k = self.trials.astype(np.float64)
        temperature = {
            "sum": np.ones_like(k),
            "average": k,
            "temperature": np.full_like(k, tempering.constant),
            "count": tempering.tau * (1.0 + tempering.rho * (k - 1.0)),
        }
        bits_by_rule: dict[str, list[FloatArray]] = {}
        for part, normalised, scores in self._chunks(chosen):
            target = self.target[part][:, None]
            sums = weight * np.cumsum(normalised, axis=1)
            for rule, heat in temperature.items():
                bits = softmax_bits(sums / heat[:, None], target)
                bits_by_rule.setdefault(rule, []).append(bits)
            if rank_model is not None:
                evidence = np.cumsum(_rank_evidence(scores, rank_model), axis=1)
                bits_by_rule.setdefault("rank", []).append(softmax_bits(evidence, target))
        return {rule: np.concatenate(parts) for rule, parts in bits_by_rule.items()}

    @cached_property
    def _steps(self) -> IntArray:
        """Numbers of trials, less one, at which ``count`` is fitted: 1, 2, 4 ... K trials."""
        last = self.rows.shape[1]
        return np.unique([*(2 ** np.arange(int(np.log2(last)) + 1)), last]) - 1

    @cached_property
    def _final(self) -> AnyArray:
        """Sum of the normalised scores of all K trials: shape (S', N); many are mapped."""
        sums = scratch((len(self.tested), self.matrix.population))
        for part, normalised, _ in self._chunks(np.arange(len(self.tested))):
            sums[part] = normalised.sum(axis=1)
        return sums

    @cached_property
    def _spaced(self) -> tuple[IntArray, FloatArray]:
        """Speakers at even distances, and their sums after each of `_steps`."""
        cells = len(self._steps) * self.matrix.population
        at = np.arange(0, len(self.tested), max(1, -(-len(self.tested) * cells // _FITTED)))
        sums = [np.cumsum(z, axis=1)[:, self._steps] for _, z, _ in self._chunks(at)]
        return at, np.concatenate(sums)

    def _chunks(self, speakers: IntArray) -> Iterator[tuple[IntArray, FloatArray, FloatArray]]:
        """Yield speakers a few at a time: which, their normalised scores and scores (C, K, N)."""
        cells = self.rows.shape[1] * self.matrix.population
        step = max(1, _CHUNK // cells)
        for start in range(0, len(speakers), step):
            part = speakers[start : start + step]
            rows = self.rows[part]
            scores = np.asarray(self.matrix.scores[rows], dtype=np.float64)
            yield part, normalise_rows(scores, ddof=0), scores


def _rank_evidence(scores: FloatArray, rank_model: FloatArray) -> FloatArray:
    """Log of the model's probability of each candidate's rank, its mean over ranks that tie."""
    better, tied = all_rank_bounds(scores.reshape(-1, scores.shape[-1]))
    sums = np.concatenate([[0.0], np.cumsum(rank_model)])
    shared = np.where(tied == 1, rank_model[better], (sums[better + tied] - sums[better]) / tied)
    return np.asarray(np.log(shared).reshape(scores.shape))


@dataclass(frozen=True)
class LongitudinalCurve:
    """Disclosure after 1, 2 ... K trials of each of S' speakers, who have as many.

    Trials (K,); tested is an index into `ScoreMatrix.tested`, (S',); bits, by rule, ``log2(N p)``
    of each speaker after k trials, (S', K). Temperature, tau and rho of the rules ``temperature``
    and ``count`` are means over folds; rho says how alike trials of one speaker are.
    """

    trials: IntArray
    tested: IntArray
    bits: Mapping[str, FloatArray]
    ceiling_bits: float
    temperature: float
    tau: float
    rho: float
    note: str = ""

    def mean_bits(self, rule: str = "count") -> FloatArray:
        """Mean over speakers after each number of trials, shape (K,)."""
        return np.asarray(self._of(rule).mean(axis=0))

    def replicates(self, weights: FloatArray, rule: str = "count") -> FloatArray:
        """`mean_bits` of resamples, weights (B, S): (B, K), NaN where none of the speakers is."""
        chosen = weights[:, self.tested]
        with np.errstate(invalid="ignore"):
            return np.asarray(chosen @ self._of(rule) / chosen.sum(axis=1, keepdims=True))

    def limits(self, weights: FloatArray, rule: str = "count") -> FloatArray:
        """Compute limits of each point of `mean_bits`, as of the figures: shape (2, K)."""
        replicates, is_resample = self.replicates(weights, rule), find_resamples(weights)
        points = zip(self.mean_bits(rule).tolist(), replicates.T, self.trials.tolist(), strict=True)
        limits = []
        for value, draws, trials in points:
            speakers = len(self.tested)
            estimate = Estimate(
                value, draws[is_resample], draws[~is_resample], speakers, speakers * trials
            )
            low, high = estimate.signed_limits(self.ceiling_bits)
            limits.append((min(low, value), max(high, value)))
        return np.array(limits).T

    def _of(self, rule: str) -> FloatArray:
        if rule not in self.bits:
            raise UsageError(f"no rule {rule!r} in this curve: take one of {', '.join(self.bits)}")
        return self.bits[rule]


def longitudinal(
    matrix: ScoreMatrix,
    dev: ScoreMatrix | None = None,
    style: str | LidStyle = "paper",
    longest: int | None = None,
    calibration: LidCalibration | CrossCalibration | None = None,
    as_rows: bool = True,
) -> LongitudinalCurve:
    """Compute the joint disclosure of each speaker's first k trials, under every rule.

    Calibration, temperatures and rank model are of development trials, or of the speakers of other
    folds. K is `longest`, or the median number of trials (at most 100); speakers with fewer are
    left out, so that the same stand behind every k. Rows stand in the order of their streams, or
    each speaker's trials are taken in an order drawn at random.

    Example:
        >>> random, target = np.random.default_rng(0), np.repeat(np.arange(20), 8)
        >>> scores = random.normal(size=(160, 20)) + 1.5 * (target[:, None] == np.arange(20))
        >>> longitudinal(ScoreMatrix(scores, target)).mean_bits("sum")[[0, -1]].round(1)
        array([1.4, 4.3])
    """
    sums = SpeakerSums.of(matrix, longest, as_rows)
    bits: dict[str, FloatArray] = {}
    temperings: list[Tempering] = []
    note = ""
    if dev is not None:
        if not isinstance(calibration, LidCalibration):
            calibration = calibrate(dev, style)
        dev_sums = SpeakerSums.of(dev, None, as_rows)
        weight = calibration.row_weight(dev.population)
        temperings.append(dev_sums.temper(weight, np.ones(len(dev_sums.tested), dtype=bool)))
        weight = calibration.row_weight(matrix.population)
        bits = sums.bits(weight, temperings[0], np.ones(len(sums.tested), dtype=bool))
    else:
        if not isinstance(calibration, CrossCalibration):
            calibration = cross_calibrate(matrix, style)
        fold = calibration.fold[sums.rows[:, 0]]
        for index, fold_calibration in enumerate(calibration.calibrations):
            inside = fold == index
            if inside.all():
                raise UsageError(
                    f"{matrix.name}: only one fold of speakers has "
                    f"{plural(len(sums.trials), 'trial')} each: give a dev matrix or a shorter "
                    "curve"
                )
            if inside.any():
                weight = fold_calibration.row_weight(matrix.population)
                temperings.append(sums.temper(weight, ~inside))
                for rule, values in sums.bits(weight, temperings[-1], inside).items():
                    bits.setdefault(rule, np.empty(sums.rows.shape))[inside] = values
        note = f"cross-fitted over speakers, {plural(len(temperings), 'fold')}"
    fits = [[fit.constant, fit.tau, fit.rho] for fit in temperings]
    temperature, tau, rho = np.mean(fits, axis=0).tolist()
    return LongitudinalCurve(
        sums.trials, sums.tested, bits, matrix.ceiling_bits, temperature, tau, rho, note
    )


RULE = "count"
"""The rule that is drawn: calibrated after any number of trials."""

_NOTES = {
    "sum": "trials taken as independent: overconfident where they are alike",
    "average": "mean of the evidence: as sure as one trial",
    "temperature": "one temperature for any number of trials",
    "count": "temperature grows with how alike trials of one speaker are",
    "rank": "product of the rank models: trials taken as independent",
}


def figures(
    curve: LongitudinalCurve, weights: FloatArray | None = None, tested: int | None = None
) -> tuple[Figure, ...]:
    """Compute bits after all trials of the curve by each rule, resampled by weights (B, S).

    `tested`: how many speakers have trials, where that is not those of the curve.
    """
    last = int(curve.trials[-1])
    speakers = len(curve.tested)
    count = plural(last, "trial")
    who = f"over {speakers} of {tested or speakers} speakers, who have {count} or more"
    entries = []
    for rule in curve.bits:
        note = "; ".join(part for part in (_NOTES.get(rule, ""), curve.note, who) if part)
        drawn = None if weights is None else curve.replicates(weights, rule)[:, -1]
        entries.append(
            FAMILY.figure(f"{rule}_bits", float(curve.mean_bits(rule)[-1]), drawn, note,
                          label=f"{plural(last, 'trial')}: {rule}", ceiling=curve.ceiling_bits)
        )  # fmt: skip
    return tuple(entries)


def _paint_growth(axes: Axes, systems: Systems) -> None:
    """Draw bits against the number of trials of a speaker, beside the guides."""
    alone = len(systems) == 1
    for colour, curves in systems:
        line = curves.heard
        assert line is not None
        if line.low is not None and line.high is not None:
            axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.16, linewidth=0)
        axes.plot(
            line.x, line.y, "o-", color=colour, markersize=3.5, label="measured" if alone else None
        )
        for (name, guide), dashes in zip(curves.guides.items(), ("--", ":"), strict=False):
            axes.plot(
                guide.x, guide.y, color=colour, linestyle=dashes, linewidth=1, alpha=0.8,
                label=name if alone else None,
            )  # fmt: skip
        axes.axhline(curves.ceiling_bits, color=MUTED, linewidth=0.8, linestyle=(0, (1, 2)))
    most = max(curves.ceiling_bits for _, curves in systems)
    lowest = min(
        float(np.nanmin(curves.heard.y)) for _, curves in systems if curves.heard is not None
    )
    axes.set_ylim(min(0.0, 1.1 * lowest), 1.09 * most)
    axes.annotate(
        "ceiling", (0.99, most), xycoords=("axes fraction", "data"), ha="right", va="bottom",
        color=MUTED, fontsize=8,
    )  # fmt: skip
    axes.locator_params(axis="x", integer=True)
    if alone:
        legend_above(axes)
    axes.set_xlabel("trials of one speaker heard")
    axes.set_ylabel("bits disclosed, mean over speakers")


_OVERSURE = LimitRule("none", why="a few speakers of whom it is wrongly sure decide it")
_RULES = (
    ("sum", "as if its trials were independent", _OVERSURE),
    ("average", "by their average",
     LimitRule("none", why="they would leave out its calibration")),
    ("temperature", "by one temperature for any number", LimitRule("signed")),
    ("count", "by a temperature that grows with their number", LimitRule("signed")),
    ("rank", "by the product of rank models", _OVERSURE),
)  # fmt: skip


def _compute(context: EvaluationContext) -> FamilyResult:
    matrix, local = context.ranked, context.once(local_bits)
    if local is None:
        return FamilyResult(())
    if np.bincount(matrix.owner).max() < 2:
        note = "No speaker has a second trial: what hearing more discloses is left out."
        return FamilyResult((), (note,))
    try:
        calibration = local.calibrations[STYLE]
        joint = longitudinal(matrix, context.dev, STYLE, calibration=calibration, as_rows=False)
    except UsageError as error:
        return FamilyResult((), (f"What hearing more discloses is left out: {error}.",))
    x, bits = joint.trials.astype(np.float64), joint.mean_bits(RULE)
    ends = (None, None) if context.weights is None else joint.limits(context.weights, RULE)
    linear, root = guides(joint.trials, 1.0, max(float(bits[0]), 0.0), joint.ceiling_bits)
    return FamilyResult(
        figures(joint, context.weights, len(matrix.tested)),
        curves={
            "heard": Line(x, bits, *ends),
            "guides": {"linear": Line(x, linear), "square root": Line(x, root)},
        },
    )


FAMILY = Family(
    key="longitudinal",
    place=30,
    title="Several trials, one speaker (LID)",
    caveat="The plain sum assumes that trials are independent; they are not, and it grows "
    "overconfident. Where sum and fitted temperature part, believe the latter.",
    needs=("matrix",),
    figures=tuple(
        FigureEntry(f"heard_{rule}", f"longitudinal.{rule}_bits",
                    f"bits after several trials, {how}", limits, unit="bits", floor=0.0)
        for rule, how, limits in _RULES
    ),
    compute=_compute,
    drawings=(
        Drawing("heard", "What hearing more discloses",
                "Bits after several trials of one speaker, beside linear and square-root growth "
                "from the first. The guides are no guarantee.", _paint_growth),
    ),
)  # fmt: skip
