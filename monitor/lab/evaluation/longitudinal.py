"""Joint disclosure of several trials of one speaker, by the number of trials.

Measures: LID of the sum of a speaker's log-likelihood ratios, divided by a temperature; and SRD's
product of rank models.

Source: the longitudinal form of LID (Šterns et al.); temperatures for dependent trials are our own
(docs/method.md section 8).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from monitor.errors import UsageError
from monitor.lab.evaluation.calibration import (
    STYLE,
    AnyCalibration,
    LidCalibration,
    normalise_rows,
    softmax_bits,
)
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.curves import Drawing, Line, Systems
from monitor.lab.evaluation.family import (
    EvaluationContext,
    Family,
    FamilyResult,
    FigureEntry,
    LimitRule,
)
from monitor.lab.evaluation.lid import FEWEST, local_bits
from monitor.lab.evaluation.memory import scratch
from monitor.lab.evaluation.resampling import find_resamples, settled_order
from monitor.lab.report.model import Figure
from monitor.maths.composition import guides
from monitor.maths.logistic import descend
from monitor.maths.rank_models import fit
from monitor.maths.ranks import all_rank_bounds, rank_histogram
from monitor.maths.statistics import Estimate
from monitor.phrases import plural
from monitor.plots.canvas import MUTED, legend_above
from monitor.types import AnyArray, BoolArray, DoubleArray, FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_IN_CACHE = 1 << 15  # numbers per batch
_WIDEST = 20.0  # bound on log tau and on the logit of rho


# Trials of one speaker resemble each other, so their plain sum is overconfident. The sum is divided
# by a temperature: one number, or ``tau (1 + rho g)`` where g grows with the number of trials.
_LOWEST, _HIGHEST = 0.05, 100.0
_SECTIONS, _TEMPERING_STEPS = 60, 30


def fit_temperature(
    ratios: AnyArray,
    target: IntArray,
    trials: int = 1,
    *,
    weight: float = 1.0,
    rows: IntArray | None = None,
) -> float:
    """Fit the temperature under which summed ratios predict their speakers best.

    `ratios` are sums (n, N), times `weight`, of at most `trials` trials each. `target` has their
    columns (n,), and `rows` selects some of them. The loss is convex in ``1 / T``. Its minimum
    between 0.05 and ``max(100, 4 trials)`` is found by Newton steps within a bracket.

    Example:
        >>> ratios = 6 * np.eye(4) + 8 * np.eye(4)[[1, 1, 2, 3]]
        >>> round(fit_temperature(ratios, np.arange(4)), 2)
        2.79
    """
    chosen = np.arange(len(ratios)) if rows is None else rows
    step = max(1, _IN_CACHE // ratios.shape[1])
    batches = [slice(first, first + step) for first in range(0, chosen.size, step)]
    leads, means, curvatures = np.empty((3, chosen.size))

    def load_deficits(batch: slice) -> FloatArray:
        deficits = np.multiply(ratios[chosen[batch]], weight, dtype=np.float64)
        deficits -= deficits.max(axis=1, keepdims=True)
        return deficits

    columns = np.broadcast_to(target, len(ratios))[chosen, None]
    for batch in batches:
        leads[batch] = np.take_along_axis(load_deficits(batch), columns[batch], axis=1)[:, 0]
    mean_lead = float(leads.mean())

    def differentiate(inverse: float) -> tuple[float, float]:
        for batch in batches:
            deficits = load_deficits(batch)
            mass = np.multiply(deficits, inverse)
            np.exp(mass, out=mass)
            mass /= mass.sum(axis=1, keepdims=True)
            mass *= deficits
            mean = mass.sum(axis=1)
            means[batch] = mean
            curvatures[batch] = np.einsum("ij,ij->i", mass, deficits) - mean**2
        return float(means.mean()) - mean_lead, float(curvatures.mean())

    low, high = 1.0 / max(_HIGHEST, 4.0 * trials), 1.0 / _LOWEST
    if differentiate(high)[0] <= 0:  # no temperature is best if all sums are correct
        return _LOWEST
    inverse = 1.0
    for _ in range(_SECTIONS):
        gradient, curvature = differentiate(inverse)
        low, high = (low, inverse) if gradient > 0 else (inverse, high)
        proposal = inverse - gradient / curvature if curvature > 0 else low
        if not low < proposal < high:
            proposal = float(np.sqrt(low * high))
        has_converged = abs(proposal - inverse) <= 1e-10 * inverse
        inverse = proposal
        if has_converged:
            break
    return 1.0 / inverse


def fit_growing_temperature(
    ratios: FloatArray, target: IntArray, growth: FloatArray
) -> tuple[float, float]:
    """Fit tau > 0 and rho in [0, 1] of ``T = tau (1 + rho g)`` that minimise ``-log p_target``.

    `ratios` are sums (n, N) of development speakers after different numbers of trials. `target` has
    their columns (n,), and `growth` has g of each, (n,), such as k - 1 after k trials.
    """
    from scipy.special import expit

    columns = np.broadcast_to(target, len(ratios))[:, None]
    target_ratios = np.take_along_axis(ratios, columns, axis=1)[:, 0]
    deficits = ratios - ratios.max(axis=1, keepdims=True)

    def objective(
        points: DoubleArray, _rows: IntArray
    ) -> tuple[DoubleArray, DoubleArray, DoubleArray]:
        results = (evaluate_at(float(u), float(v)) for u, v in points)
        losses, gradients, hessians = zip(*results, strict=True)
        return np.array(losses), np.stack(gradients), np.stack(hessians)

    def evaluate_at(u: float, v: float) -> tuple[float, DoubleArray, DoubleArray]:
        rho = float(expit(v))
        turn = rho * (1.0 - rho)
        q = 1.0 + rho * growth
        inverse = np.exp(-u) / q  # one over the temperature
        mass = np.exp(deficits * inverse[:, None])
        total = mass.sum(axis=1)
        mean = (mass * deficits).sum(axis=1) / total
        variance = (mass * deficits**2).sum(axis=1) / total - mean**2
        lead = target_ratios - ratios.max(axis=1)
        loss, first = np.log(total) - lead * inverse, mean - lead
        by_rho = -inverse * growth / q
        c_u, c_v = -inverse, by_rho * turn
        c_vv = 2.0 * inverse * (growth / q * turn) ** 2 + by_rho * turn * (1.0 - 2.0 * rho)
        gradient = np.array([(first * c_u).mean(), (first * c_v).mean()])
        cross_term = (variance * c_u * c_v - first * c_v).mean()
        curvature_u = (variance * c_u**2 + first * inverse).mean()
        curvature_v = (variance * c_v**2 + first * c_vv).mean()
        hessian = np.array([[curvature_u, cross_term], [cross_term, curvature_v]])
        return float(loss.mean()), gradient, hessian

    # no temperature is best if all sums are correct, and a few steps towards 0 are enough
    optima, _ = descend(objective, np.array([[0.0, -1.0]]), -_WIDEST, _WIDEST, _TEMPERING_STEPS)
    log_tau, logit = optima[0]
    return float(np.exp(log_tau)), float(expit(logit))


# The sum of a speaker's log-likelihood ratios is divided by a temperature. It is 1 for ``sum``, as
# if trials were independent, and k for ``average``. ``temperature`` is one number fitted on
# development speakers, and ``count`` is ``tau (1 + rho (k - 1))``. ``rank`` multiplies rank
# posteriors instead, ``gamma = (h + 1) / (n + N)``. Development ranks among another number of
# speakers give h at N by their rank model.
LONGEST = 100  # maximum trials per speaker in a curve
_CHUNK = 1 << 20
_FITTED = 1 << 21
"""Maximum numbers in the fit of a temperature; larger samples are thinned by speaker."""


@dataclass(frozen=True)
class Tempering:
    """Fits on development speakers: T, tau and rho of ``count``, and counts of ranks h, (N,)."""

    constant: float
    tau: float
    rho: float
    ranks: FloatArray

    def rank_model(self, speakers: int) -> FloatArray | None:
        """Compute the rank model among N speakers, shape (N,), with one trial added to each rank.

        For another N than the development set's, h comes from its rank model; None if it has fewer
        than ten speakers.
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
    """Rows of the first K trials of each speaker with at least K trials, shape (S', K).

    `tested` is an index into `ScoreMatrix.tested`, (S',).
    """

    matrix: ScoreMatrix
    tested: IntArray
    rows: IntArray

    @classmethod
    def from_matrix(
        cls, matrix: ScoreMatrix, longest: int | None, as_rows: bool = True
    ) -> SpeakerSums:
        """Choose the trials in the order of the rows, or in `settled_order`."""
        counts = np.bincount(matrix.owner)
        length = min(int(np.median(counts)), LONGEST) if longest is None else longest
        tested = np.flatnonzero(counts >= length)
        if length < 1 or not tested.size:
            raise UsageError(
                f"no speaker of {matrix.name} has {plural(length, 'trial')}: use a shorter curve"
            )
        order = np.arange(matrix.trials) if as_rows else settled_order(matrix)
        order = order[np.argsort(matrix.owner[order], kind="stable")]
        first = np.cumsum(counts) - counts
        return cls(matrix, tested, order[first[tested][:, None] + np.arange(length)])

    @property
    def trials(self) -> IntArray:
        """Numbers of trials, 1 to K."""
        return np.arange(1, self.rows.shape[1] + 1)

    @property
    def target(self) -> IntArray:
        """Column of each speaker in the matrix, shape (S',)."""
        return self.matrix.tested[self.tested]

    def temper(self, weight: float, speakers: BoolArray) -> Tempering:
        """Fit the temperatures and the rank model to some speakers, a mask of shape (S',).

        `weight` is the calibration's, for rows normalised with ddof = 0.
        """
        last = self.rows.shape[1]
        chosen_speakers = np.flatnonzero(speakers)
        target = self.target
        constant = fit_temperature(self._final, target, last, weight=weight, rows=chosen_speakers)
        at, sums = self._spaced
        is_chosen = np.isin(at, chosen_speakers)
        if not is_chosen.any():
            is_chosen[0] = True
        chosen = at[is_chosen]
        steps = self._steps
        ratios = weight * sums[is_chosen].reshape(-1, sums.shape[-1])
        true_speakers = np.repeat(target[chosen], len(steps))
        counts = np.tile(steps, len(chosen)).astype(np.float64)
        tau, rho = fit_growing_temperature(ratios, true_speakers, counts)
        matrix, rows = self.matrix, np.isin(self.matrix.owner, self.tested[chosen_speakers])
        histogram = rank_histogram(matrix.better[rows], matrix.tied[rows], matrix.population)
        return Tempering(constant, tau, rho, histogram)

    def bits(
        self, weight: float, tempering: Tempering, speakers: BoolArray
    ) -> dict[str, FloatArray]:
        """Compute ``log2(N p)`` of some speakers after each trial, by rule, (speakers, K)."""
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
        for batch, normalised, scores in self._chunks(chosen):
            target = self.target[batch][:, None]
            sums = weight * np.cumsum(normalised, axis=1)
            for rule, heat in temperature.items():
                bits_by_rule.setdefault(rule, []).append(softmax_bits(sums / heat[:, None], target))
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
        """Sum of the normalised scores of all K trials, shape (S', N); on disk if large."""
        sums = scratch((len(self.tested), self.matrix.population))
        for batch, normalised, _ in self._chunks(np.arange(len(self.tested))):
            sums[batch] = normalised.sum(axis=1)
        return sums

    @cached_property
    def _spaced(self) -> tuple[IntArray, FloatArray]:
        """Speakers at even intervals, and their sums after each of `_steps`."""
        cells = len(self._steps) * self.matrix.population
        at = np.arange(0, len(self.tested), max(1, -(-len(self.tested) * cells // _FITTED)))
        sums = [np.cumsum(z, axis=1)[:, self._steps] for _, z, _ in self._chunks(at)]
        return at, np.concatenate(sums)

    def _chunks(self, speakers: IntArray) -> Iterator[tuple[IntArray, FloatArray, FloatArray]]:
        """Yield batches of speakers: indices, normalised scores and scores, (C, K, N)."""
        cells = self.rows.shape[1] * self.matrix.population
        step = max(1, _CHUNK // cells)
        for start in range(0, len(speakers), step):
            batch = speakers[start : start + step]
            rows = self.rows[batch]
            scores = np.asarray(self.matrix.scores[rows], dtype=np.float64)
            yield batch, normalise_rows(scores, ddof=0), scores


def _rank_evidence(scores: FloatArray, rank_model: FloatArray) -> FloatArray:
    """Compute the log probability of each candidate's rank, with the mean over tied ranks."""
    better, tied = all_rank_bounds(scores.reshape(-1, scores.shape[-1]))
    sums = np.concatenate([[0.0], np.cumsum(rank_model)])
    shared = np.where(tied == 1, rank_model[better], (sums[better + tied] - sums[better]) / tied)
    return np.asarray(np.log(shared).reshape(scores.shape))


@dataclass(frozen=True)
class LongitudinalCurve:
    """Disclosure after 1 to K trials of each of S' speakers."""

    trials: IntArray  # 1 to K, shape (K,)
    tested: IntArray  # index of each speaker into `ScoreMatrix.tested`, shape (S',)
    # ``log2(N p)`` of each speaker after k trials, by rule, shape (S', K)
    bits: Mapping[str, FloatArray]
    ceiling_bits: float
    # fitted parameters, means over folds
    temperature: float
    tau: float
    rho: float  # similarity of trials
    note: str = ""

    def mean_bits(self, rule: str = "count") -> FloatArray:
        """Compute the mean over speakers after each number of trials, shape (K,)."""
        return np.asarray(self.bits[rule].mean(axis=0))

    def replicates(self, weights: FloatArray, rule: str = "count") -> FloatArray:
        """Compute `mean_bits` on resamples, (B, S) to (B, K); NaN if it has no such speaker."""
        chosen = weights[:, self.tested]
        with np.errstate(invalid="ignore"):
            return np.asarray(chosen @ self.bits[rule] / chosen.sum(axis=1, keepdims=True))

    def limits(self, weights: FloatArray, rule: str = "count") -> FloatArray:
        """Compute the interval of each point of `mean_bits`, like those of figures, (2, K)."""
        replicates, is_resample = self.replicates(weights, rule), find_resamples(weights)
        points = zip(self.mean_bits(rule).tolist(), replicates.T, self.trials.tolist(), strict=True)
        limits = []
        for value, draws, trials in points:
            speakers, both = len(self.tested), (draws[is_resample], draws[~is_resample])
            estimate = Estimate(value, *both, speakers, speakers * trials)
            low, high = estimate.signed_limits(self.ceiling_bits)
            limits.append((min(low, value), max(high, value)))
        return np.array(limits).T


def longitudinal(
    matrix: ScoreMatrix,
    calibration: AnyCalibration,
    dev: ScoreMatrix | None = None,
    longest: int | None = None,
    as_rows: bool = True,
) -> LongitudinalCurve:
    """Compute the joint disclosure of each speaker's first k trials, under every rule.

    Temperatures and rank model are fitted where the calibration was: on development trials, or on
    other folds of speakers. K is `longest`, or the median number of trials (at most 100). Speakers
    with fewer trials are left out. Trials are in row order, or in `settled_order`.

    Example:
        >>> from monitor.lab.evaluation.calibration import STYLES, RowScores, cross_calibrate
        >>> target = np.repeat(np.arange(20), 8)
        >>> noise = np.random.default_rng(0).normal(size=(160, 20))
        >>> matrix = ScoreMatrix(noise + 1.5 * np.eye(20)[target], target)
        >>> crossed = cross_calibrate(RowScores(matrix, 5), STYLES["paper"])
        >>> longitudinal(matrix, crossed).mean_bits("sum")[[0, -1]].round(1)
        array([1.4, 4.3])
    """
    sums = SpeakerSums.from_matrix(matrix, longest, as_rows)
    bits: dict[str, FloatArray] = {}
    temperings: list[Tempering] = []
    note = ""
    if isinstance(calibration, LidCalibration):
        assert dev is not None
        dev_sums = SpeakerSums.from_matrix(dev, None, as_rows)
        weight = calibration.row_weight(dev.population)
        temperings.append(dev_sums.temper(weight, np.ones(len(dev_sums.tested), dtype=bool)))
        weight = calibration.row_weight(matrix.population)
        bits = sums.bits(weight, temperings[0], np.ones(len(sums.tested), dtype=bool))
    else:
        fold = calibration.fold[sums.rows[:, 0]]
        for index, fold_calibration in enumerate(calibration.calibrations):
            inside = fold == index
            if inside.all():
                raise UsageError(
                    f"only one fold of speakers of {matrix.name} has "
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


RULE = "count"  # the rule that is drawn, since it is calibrated after any number of trials

_NOTES = {
    "sum": "treats trials as independent; overconfident if they are alike",
    "average": "mean evidence, as certain as one trial",
    "temperature": "one temperature for any number of trials",
    "count": "temperature that grows with the similarity of a speaker's trials",
    "rank": "product of the rank models; treats trials as independent",
}


def figures(
    curve: LongitudinalCurve, weights: FloatArray | None = None, tested: int | None = None
) -> tuple[Figure, ...]:
    """Compute bits after all trials of the curve by each rule, resampled by weights (B, S).

    `tested` is the number of speakers with trials, by default those of the curve.
    """
    last = int(curve.trials[-1])
    speakers = len(curve.tested)
    count = plural(last, "trial")
    who = f"over the {speakers} of {tested or speakers} speakers with at least {count}"
    entries = []
    for rule in curve.bits:
        note = "; ".join(text for text in (_NOTES.get(rule, ""), curve.note, who) if text)
        replicates = None if weights is None else curve.replicates(weights, rule)[:, -1]
        entries.append(
            FAMILY.figure(f"{rule}_bits", float(curve.mean_bits(rule)[-1]), replicates, note,
                          label=f"{plural(last, 'trial')}: {rule}", ceiling=curve.ceiling_bits)
        )  # fmt: skip
    return tuple(entries)


def _paint_growth(axes: Axes, systems: Systems) -> None:
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
    ceiling = max(curves.ceiling_bits for _, curves in systems)
    lowest = min(float(np.nanmin(c.heard.y)) for _, c in systems if c.heard is not None)
    axes.set_ylim(min(0.0, 1.1 * lowest), 1.09 * ceiling)
    axes.annotate(
        "ceiling", (0.99, ceiling), xycoords=("axes fraction", "data"), ha="right", va="bottom",
        color=MUTED, fontsize=8,
    )  # fmt: skip
    axes.locator_params(axis="x", integer=True)
    if alone:
        legend_above(axes)
    axes.set(xlabel="trials of one speaker", ylabel="bits disclosed, mean over speakers")


_OVERSURE = LimitRule("none", reason="a few speakers with confident errors decide it")
_RULES = (
    ("sum", "as if trials were independent", _OVERSURE),
    ("average", "by their average",
     LimitRule("none", reason="it would omit the uncertainty of the calibration")),
    ("temperature", "by one temperature for any number", LimitRule("signed")),
    ("count", "by a temperature that grows with their number", LimitRule("signed")),
    ("rank", "by the product of rank models", _OVERSURE),
)  # fmt: skip


def _compute(context: EvaluationContext) -> FamilyResult:
    matrix, local = context.ranked, context.once(local_bits)
    if local is None:
        return FamilyResult(())
    if np.bincount(matrix.owner).max() < 2:
        note = "No speaker has a second trial: disclosure by several trials is omitted."
        return FamilyResult((), (note,))
    try:
        joint = longitudinal(matrix, local.calibrations[STYLE], context.dev, as_rows=False)
    except UsageError as error:
        return FamilyResult((), (f"Disclosure by several trials is omitted: {error}.",))
    x, bits = joint.trials.astype(np.float64), joint.mean_bits(RULE)
    ends = (None, None) if context.weights is None else joint.limits(context.weights, RULE)
    linear, root = guides(joint.trials, 1.0, max(float(bits[0]), 0.0), joint.ceiling_bits)
    guide_lines = {"linear": Line(x, linear), "square root": Line(x, root)}
    entries = figures(joint, context.weights, len(matrix.tested))
    return FamilyResult(entries, curves={"heard": Line(x, bits, *ends), "guides": guide_lines})


FAMILY = Family(
    key="longitudinal",
    position=30,
    title="Several trials, one speaker (LID)",
    caveat="The plain sum assumes that trials are independent. They are not, so it becomes "
           "overconfident. If the sum and the fitted temperature differ, trust the latter.",
    needs=("matrix",),
    figures=tuple(
        FigureEntry(f"heard_{rule}", f"longitudinal.{rule}_bits",
                    f"bits after several trials, {method}", limits, unit="bits", floor=0.0)
        for rule, method, limits in _RULES
    ),
    compute=_compute,
    drawings=(
        Drawing("heard", "Several trials disclose more",
                "Bits after several trials of one speaker, beside linear and square-root growth "
                "from the first. The guides guarantee nothing.", _paint_growth),
    ),
)  # fmt: skip
