"""Calibration of scores to likelihood ratios, and checks of it on other people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit

from monitor.maths.condition import NEW, UNLIKE
from monitor.maths.evidence import UNBOUNDED, ConditionEffect, ConditionEffects, with_misses
from monitor.maths.roc import pool
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray

# ---------------------------------------------------------------------------------------- twoclass
# Likelihood ratios from normalised scores: two-class logistic regression.
#
# Source: docs/method.md section 10.
#
# ``log LR = a + sum_f b_f z_f``, with every b >= 0, is the logit less the logarithm of the weighted
# class ratio. In each class every speaker, and every pair of speakers, has the same weight for any
# number of comparisons. A few perfectly separated speakers would have no finite optimum. A ridge
# therefore limits the slopes, centred on another model's coefficients if given. Such a model also
# counts as m further speakers. Their comparisons look like ours and have the labels that the model
# predicts (the catalytic prior of `monitor.maths.posterior_fit`).

OTHERS = 30.0
"""Weight of all non-mated comparisons relative to mated ones. It improves the fit at large ratios,
where other people's must not be too high.
"""
RIDGE = 1.0
"""Nats of half a squared unit of slope: of a speaker's loss, a nat or two at the most."""
_HELD = np.float64(1e-3)
"""The same of the intercept, so that it is finite whatever the data."""
_TWOCLASS_STEPS = 40
_TWOCLASS_ARRIVED = 1e-4
"""Step relative to the coefficients: Newton squares the error, which is 1e-8 after such a step."""
_FOLDS = 8
_FAR = 500.0
_TOGETHER = 1 << 17
_MOST_NATS = 700.0  # of a margin: its exponential does not overflow
_SHORTER, _RISES = 20, 0.9


class ScorePairs:
    """Test and template speaker of each comparison, and what follows from them alone.

    Several sets of features share it if all have the same streams.

    Attributes:
        test_speaker: speaker of the stream, shape (n,), 0..V-1.
        template_speaker: speaker of the template, shape (n,), 0..V-1.
    """

    def __init__(self, test_speaker: IntArray, template_speaker: IntArray) -> None:
        self.test_speaker, self.template_speaker = test_speaker, template_speaker
        self._subsamples: dict[tuple[int, int], tuple[IntArray, ScorePairs]] = {}
        self._draws: tuple[FloatArray, IntArray, FloatArray] | None = None
        self._weights: list[tuple[FloatArray | None, FloatArray]] = []

    @cached_property
    def mated(self) -> BoolArray:
        """Mask of comparisons within one person, shape (n,)."""
        return np.asarray(self.test_speaker == self.template_speaker)

    @cached_property
    def unique(self) -> tuple[IntArray, IntArray, IntArray]:
        """First comparison and size of each pair of people, and the pair of each comparison."""
        low, high = np.sort([self.test_speaker, self.template_speaker], axis=0)
        number = low.astype(np.int64) * (int(high.max(initial=0)) + 1) + high
        _, first, pair, counts = np.unique(
            number, return_index=True, return_inverse=True, return_counts=True
        )
        return first, counts, pair

    @cached_property
    def non_mated(self) -> ScorePairs:
        """The comparisons of two people."""
        return ScorePairs(self.test_speaker[~self.mated], self.template_speaker[~self.mated])

    def count_draws(self, speakers: FloatArray, people: IntArray) -> FloatArray:
        """Select from ``speakers``, (B, voices), the draws of these people: (B, V)."""
        if self._draws is None or self._draws[0] is not speakers or self._draws[1] is not people:
            self._draws = speakers, people, speakers[:, people]
        return self._draws[2]

    def weights(self, speakers: FloatArray | None = None) -> FloatArray:
        """Compute `TemplateComparisons.weights`; (1, n) without speakers."""
        for cached_speakers, weights in self._weights:
            if cached_speakers is speakers:
                return weights
        _, counts, pair = self.unique
        pair_weight = (1.0 / counts)[pair]
        draws: FloatArray = np.ones((1, pair_weight.size))
        if speakers is not None:
            draws = speakers[:, self.test_speaker] * np.where(
                self.mated, 1.0, speakers[:, self.template_speaker]
            )
        weights = draws * pair_weight
        for label in (self.mated, ~self.mated):
            total = weights[:, label].sum(axis=1)
            weights[np.ix_(total == 0.0, label)] = pair_weight[label]
            weights[:, label] /= np.where(total == 0.0, pair_weight[label].sum(), total)[:, None]
        self._weights = [*self._weights[-2:], (speakers, weights)]
        return weights

    @cached_property
    def folds(self) -> tuple[IntArray, FloatArray]:
        """Fold of each person, (V,), and people outside two folds, (fold pairs, V)."""
        people = int(max(self.test_speaker.max(), self.template_speaker.max())) + 1
        is_mated = np.zeros(people, dtype=bool)
        is_mated[self.test_speaker[self.mated]] = True
        folds = min(_FOLDS, int(is_mated.sum()))
        # mated speakers first: every fold has its share of them
        fold = np.empty(people, dtype=np.int64)
        fold[np.argsort(~is_mated, kind="stable")] = np.arange(people) % folds
        first, second = np.triu_indices(folds)
        return fold, ((fold != first[:, None]) & (fold != second[:, None])).astype(np.float64)

    def subsample(self, maximum: int, seed: int) -> tuple[IntArray, ScorePairs]:
        """Return indices and pairs of `TemplateComparisons.subsample`."""
        if (maximum, seed) in self._subsamples:
            return self._subsamples[maximum, seed]
        order = np.random.default_rng(seed).permutation(self.test_speaker.size)
        pair = self.unique[2][order]
        by_pair = np.argsort(pair, kind="stable")
        sizes = np.bincount(pair)
        turn = np.empty(order.size, dtype=np.int64)
        turn[by_pair] = np.arange(order.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        # every pair's first one, then every pair's second
        selection = order[np.argsort(turn, kind="stable")[:maximum]]
        mated = np.flatnonzero(self.mated)
        index = np.sort(np.union1d(selection, mated[:: -(-mated.size // maximum)]))
        pairs = ScorePairs(self.test_speaker[index], self.template_speaker[index])
        return self._subsamples.setdefault((maximum, seed), (index, pairs))


@dataclass(frozen=True, slots=True)
class TemplateComparisons:
    """Normalised scores, (n, F), of streams against templates, with their speakers."""

    z: FloatArray
    pairs: ScorePairs

    @property
    def test_speaker(self) -> IntArray:
        """Speaker of each stream, shape (n,), 0..V-1."""
        return self.pairs.test_speaker

    @property
    def template_speaker(self) -> IntArray:
        """Speaker of each template, shape (n,), 0..V-1."""
        return self.pairs.template_speaker

    @property
    def mated(self) -> BoolArray:
        """Mask of comparisons within one person, shape (n,)."""
        return self.pairs.mated

    @property
    def non_mated(self) -> TemplateComparisons:
        """The comparisons of two people."""
        return TemplateComparisons(self.z[~self.mated], self.pairs.non_mated)

    def select(self, rows: BoolArray | IntArray) -> TemplateComparisons:
        """Return those rows."""
        pairs = ScorePairs(self.test_speaker[rows], self.template_speaker[rows])
        return TemplateComparisons(self.z[rows], pairs)

    def weights(self, speakers: FloatArray | None = None) -> FloatArray:
        """Compute weights under which every speaker, and every pair, counts the same.

        The shape is (n,), or (B, n) if `speakers`, shape (B, V), has the number of draws of each
        speaker. A pair then counts as the product of its two speakers' draws. A replicate without
        comparisons of a class uses all speakers.
        """
        weights = self.pairs.weights(speakers)
        return weights if speakers is not None else weights[0]

    def subsample(self, maximum: int, seed: int = 0) -> TemplateComparisons:
        """Draw at most that many comparisons, evenly over speakers and pairs, by ``seed``."""
        if self.test_speaker.size <= maximum:
            return self
        index, pairs = self.pairs.subsample(maximum, seed)
        return TemplateComparisons(self.z[index], pairs)


@dataclass(frozen=True, slots=True)
class PriorCoefficients:
    """Coefficients of another model or its resamples, (1 or B, 1 + F), that count as m people."""

    coefficients: FloatArray
    worth: float


def pair_count(comparisons: TemplateComparisons) -> int:
    """Count the pairs of people behind the non-mated comparisons."""
    return int(comparisons.pairs.non_mated.unique[1].size)


def fit_each(
    comparisons: TemplateComparisons,
    speakers: FloatArray | None = None,
    prior: PriorCoefficients | None = None,
    start: FloatArray | None = None,
) -> FloatArray:
    """Fit the regression in every bootstrap replicate of the speakers: a and b, (B, 1 + F), b >= 0.

    `speakers`, (B, V), has the number of draws of each. Without it, only the fit itself is made.
    `prior` is another model, and `start`, (1 + F,), is the initial point.

    Example:
        >>> z = np.array([[4.0], [5.0], [0.0], [1.0], [-1.0], [0.0]])
        >>> people = np.array([0, 1, 0, 1, 1, 0]), np.array([0, 1, 1, 0, 0, 1])
        >>> fit_each(TemplateComparisons(z, ScorePairs(*people))).round(2)
        array([[-2.06,  1.54]])
    """
    x = np.column_stack([np.ones(len(comparisons.z)), comparisons.z]).astype(np.float64)
    ratio = np.append(np.log(OTHERS), np.zeros(comparisons.z.shape[1]))
    people = np.unique(comparisons.test_speaker[comparisons.mated])
    count = np.full((1, 1), float(people.size))
    if speakers is not None:
        count = speakers[:, people].sum(axis=1, keepdims=True)
        count = np.where(count > 0, count, people.size)
    weight = comparisons.pairs.weights(speakers)
    shape = (len(weight), x.shape[1])
    rows = _Regressions(x, comparisons.mated, weight)
    centre = np.broadcast_to(-ratio if prior is None else prior.coefficients - ratio, shape)
    prior_share = 0.0 if prior is None else prior.worth / (count + prior.worth)
    goal = (1.0 - prior_share) * rows.by_label()
    if prior is not None:
        goal += prior_share * rows.by_share(centre)
    times = np.broadcast_to(count / (1.0 - prior_share), (shape[0], 1))
    starts = centre if start is None else np.broadcast_to(start - ratio, shape)
    return np.asarray(rows.descend(starts, times, goal, centre) + ratio)


class _Regressions:
    """Logistic regressions on the same n comparisons, each with weights of its own, (B, n)."""

    def __init__(self, x: FloatArray, mated: BoolArray, weight: FloatArray) -> None:
        self._mated, self._weight = mated, weight
        self._columns = np.ascontiguousarray(x.T)
        self._first, self._second = np.triu_indices(x.shape[1])
        # summed up by gradients and Hessians
        self._rows = x * np.where(mated, 1.0, OTHERS)[:, None]
        self._products = self._rows[:, self._first] * x[:, self._second]
        self._ridge = np.append(_HELD, np.full(x.shape[1] - 1, RIDGE))
        batch = max(_TOGETHER // len(x), 1)  # rows that fit in a processor's cache
        self._batches = [slice(k, k + batch) for k in range(0, len(weight), batch)]

    def by_label(self) -> FloatArray:
        """Sum ``w_bi x_i`` over the mated: (B, K)."""
        mated_rows = np.flatnonzero(self._mated)
        return np.asarray(self._weight[:, mated_rows] @ self._rows[mated_rows])

    def by_share(self, point: FloatArray) -> FloatArray:
        """Sum ``w_bi p_bi x_i`` with the probabilities at these points, (B, K): (B, K)."""
        return np.concatenate([
            self._shares(point[batch]) * self._weight[batch] @ self._rows for batch in self._batches
        ])  # fmt: skip

    def _shares(self, point: FloatArray) -> FloatArray:
        """Compute probabilities at points (r, K): (r, n)."""
        probability = point @ self._columns
        np.negative(probability, out=probability)
        np.exp(np.minimum(probability, _MOST_NATS, out=probability), out=probability)
        probability += 1.0
        return np.divide(1.0, probability, out=probability)

    def descend(
        self, begin: FloatArray, times: FloatArray, goal: FloatArray, centre: FloatArray
    ) -> FloatArray:
        """Minimise each row's loss by Newton's method within slopes >= 0: points, (B, K).

        It starts from `begin`, (B, K). Weights are multiplied by `times`, (B, 1). `goal`, (B, K),
        is ``sum_i w_bi g_bi x_i`` of the target probabilities, and `centre` is the ridge's centre.
        """
        first = None
        if len(begin) > 1 and (begin == begin[0]).all():  # the probabilities are the same in all
            probability = self._shares(begin[:1])[0, :, None]
            curvature = self._products * (probability * (1.0 - probability))
            first = self._weight @ np.concatenate([self._rows * probability, curvature], axis=1)
        coefficients = np.array(begin)
        for batch in self._batches:
            rows = np.arange(len(begin))[batch]
            sums = self._sums(coefficients[rows], rows) if first is None else first[batch]
            self._descend(coefficients, rows, sums, times, goal, centre)
        return coefficients

    def _sums(self, point: FloatArray, rows: IntArray) -> FloatArray:
        """Sum ``w_i p_i x_i`` and ``w_i p_i (1 - p_i) x_i x_i'`` of rows, side by side."""
        probability = self._shares(point)
        weights = self._weight[rows] * probability
        gradient = weights @ self._rows
        weights *= np.subtract(1.0, probability, out=probability)
        return np.concatenate([gradient, weights @ self._products], axis=1)

    def _descend(
        self, coefficients: FloatArray, rows: IntArray, sums: FloatArray,
        times: FloatArray, goal: FloatArray, centre: FloatArray,
    ) -> None:  # fmt: skip
        """Move these rows of ``coefficients`` to their optimum; ``sums`` is `_sums` there."""
        size = coefficients.shape[1]
        for _ in range(_TWOCLASS_STEPS):
            point = coefficients[rows]
            gradient = times[rows] * (sums[:, :size] - goal[rows])
            gradient += self._ridge * (point - centre[rows])
            hessian = np.empty((len(rows), size, size))
            hessian[:, self._first, self._second] = times[rows] * sums[:, size:]
            hessian[:, self._second, self._first] = hessian[:, self._first, self._second]
            hessian += np.diag(self._ridge)
            # a slope at 0 that would go below stays there
            free = np.ones(point.shape, dtype=bool)
            free[:, 1:] = (point[:, 1:] > 0.0) | (gradient[:, 1:] < 0.0)
            hessian = np.where(free[:, :, None] & free[:, None, :], hessian, np.eye(size))
            step = -np.linalg.solve(hessian, np.where(free, gradient, 0.0)[:, :, None])[:, :, 0]
            trial = _within(point + step)
            has_converged = np.abs(trial - point).max(axis=1) <= _TWOCLASS_ARRIVED * (
                1.0 + np.abs(trial).max(axis=1)
            )
            coefficients[rows[has_converged]] = trial[has_converged]
            if has_converged.all():
                return
            is_active = ~has_converged
            rows, point = rows[is_active], point[is_active]
            gradient, step = gradient[is_active], step[is_active]
            scale = np.ones((len(rows), 1))
            for _ in range(_SHORTER):
                trial = _within(point + scale * step)
                sums = self._sums(trial, rows)
                move = trial - point
                trial_gradient = times[rows] * (sums[:, :size] - goal[rows])
                trial_gradient += self._ridge * (trial - centre[rows])
                # the loss is convex: where it does not rise more steeply than it fell it is less
                fall = (move * gradient).sum(axis=1)
                overshoots = (move * trial_gradient).sum(axis=1) > -_RISES * fall + 1e-12
                if not overshoots.any():
                    break
                scale[overshoots] *= 0.4
            coefficients[rows[~overshoots]] = trial[~overshoots]
            rows, sums = rows[~overshoots], sums[~overshoots]
            if not rows.size:
                return


def _within(point: FloatArray) -> FloatArray:
    point = np.clip(point, -_FAR, _FAR)
    point[:, 1:] = np.maximum(point[:, 1:], 0.0)
    return point


def cross_fit(
    comparisons: TemplateComparisons,
    prior: PriorCoefficients | None = None,
    start: FloatArray | None = None,
) -> tuple[FloatArray, IntArray]:
    """Fit without the people of two folds, or of one: coefficients (K, K, 1 + F), folds (V,).

    A comparison of persons i and j is judged by ``coefficients[fold[i], fold[j]]``, which has seen
    neither.
    """
    fold, speakers = comparisons.pairs.folds
    folds = int(fold.max()) + 1
    first, second = np.triu_indices(folds)
    fits = fit_each(comparisons, speakers, prior, start)
    coefficients = np.empty((folds, folds, fits.shape[1]))
    coefficients[first, second] = coefficients[second, first] = fits
    return coefficients, fold


# -------------------------------------------------------------------------------------- conditions
# Effects of conditions on likelihood ratios fitted on clean speech (docs/method.md section 10). The
# same people are compared under every pair of conditions, so that they cancel in the differences.

_CONDITION_RIDGE = 5e-5
_TOO_LARGE = 0.02
"""Penalty in bits of Cllr if other people's mean ratio is twice the allowed one. Effects were
fitted on half of the people. Penalty and ridge were chosen on the other half, for the most evidence
with other people's mean ratio below 1 on average.
"""
_ODDS = (0.0, 5.0)
"""Log2 of the odds against the right person at which costs are computed: Cllr's own, and 1 to 32.
At even odds only, misleading features would keep their weight, since ratios of 100 and 1000 cost
the same.
"""
_SCALE = 8.0
"""Bits of a usual ratio, of either sign: by it the ridge is measured."""
_FEWEST_MATED = 20
"""Minimum number of people under a condition to estimate its support."""


@dataclass(frozen=True, slots=True)
class ConditionComparisons:
    """Comparisons under one pair of conditions, n of them; D of the templates.

    ``parts`` are each feature's contribution to the log2 ratio, ``b_f z_f`` as fitted on clean
    speech, (n, F). Weights of mated and of other comparisons sum to 1/2 each. ``unlike``, (n, 11),
    compares the conditions (`monitor.maths.condition.unlike`). Equal names mean the same person
    throughout.
    """

    parts: FloatArray
    intercept: float
    mated: BoolArray
    weight: FloatArray
    unlike: FloatArray
    test_speaker: AnyArray
    template_speaker: AnyArray
    template_seconds: float

    def bits(self, effect: ConditionEffect) -> FloatArray:
        """Compute bits under an effect, shape (n,), before any share of misses."""
        shift, slope, _ = effect.at(self.unlike)
        bits = self.intercept + (self.parts * slope).sum(axis=1)
        return np.asarray(bits + max(-self.intercept, 0.0) * shift)


def fit_condition_effects(
    rows: Sequence[ConditionComparisons], new: Sequence[ConditionComparisons] = ()
) -> ConditionEffects:
    """Fit the effects of conditions that minimise Cllr, and the support of each condition.

    Each pair of conditions has the same weight. Its cost is the mean Cllr at even odds and at 1 to
    32 (`_ODDS`). A ridge applies to the first effect and to the step from each to the next. A
    penalty applies if other people's mean ratio exceeds 1. The support, at all lengths, is the ELUB
    of comparisons with much of that condition alone. With too few people it is the smallest of the
    others. The effect on ``new`` streams is fitted last, with all others as they are. These are
    supported like known ones: an ELUB of short streams would bound longer templates too.
    """
    lengths = np.unique([row.template_seconds for row in rows])
    known = np.arange(UNLIKE) < NEW
    clean_bits = [row.intercept + row.parts.sum(axis=1) for row in rows]
    fitted = _fit_steps(rows, clean_bits, lengths, known)
    effects = [ConditionEffect(each[0], each[1:], np.zeros(UNLIKE)) for each in fitted]
    places = np.searchsorted(lengths, [row.template_seconds for row in rows]).tolist()
    ratios = [
        with_misses(row.bits(effects[place])) for row, place in zip(rows, places, strict=True)
    ]
    support = np.array([_supported(rows, ratios, k) for k in range(UNLIKE)])
    minimum = float(np.nanmin(support)) if np.isfinite(support).any() else 0.0
    support = np.where(np.isnan(support), minimum, support)
    support[NEW] = UNBOUNDED
    if new:
        places = np.searchsorted(lengths, [row.template_seconds for row in new]).tolist()
        before = [row.bits(effects[place]) for row, place in zip(new, places, strict=True)]
        fitted += _fit_steps(new, before, lengths, ~known)
    return ConditionEffects(
        lengths, tuple(ConditionEffect(each[0], each[1:], support) for each in fitted)
    )


def _fit_steps(
    rows: Sequence[ConditionComparisons],
    bits_before: Sequence[FloatArray],
    lengths: FloatArray,
    columns: BoolArray,
) -> FloatArray:
    """Fit shift and slopes of some columns of q at each length: (K, 1 + F, 11), 0 elsewhere.

    ``bits_before`` are each row's bits, (n,), without these columns.
    """
    from scipy.optimize import minimize

    features = rows[0].parts.shape[1]
    length_indices = np.searchsorted(lengths, [row.template_seconds for row in rows]).tolist()
    tables = []
    for row in rows:
        q = row.unlike[:, columns]
        slopes = [q * row.parts[:, f, None] for f in range(features)]
        tables.append(np.hstack([max(-row.intercept, 0.0) * q, *slopes]) / _SCALE)
    signs = [np.where(row.mated, -1.0, 1.0) for row in rows]
    weights = [[row.weight * scale for scale in _scales(row.mated)] for row in rows]

    def objective(steps: FloatArray) -> tuple[float, FloatArray]:
        steps = steps.reshape(lengths.size, -1)
        cumulative = np.cumsum(steps, axis=0)
        total = _CONDITION_RIDGE * float((steps**2).sum())
        gradients = np.zeros_like(cumulative)
        terms = zip(rows, tables, length_indices, bits_before, signs, weights, strict=True)
        for row, table, index, before, sign, weight_at in terms:
            bits = before + table @ cumulative[index]
            cost, gradient = 0.0, np.zeros_like(bits)
            for odds, weight in zip(_ODDS, weight_at, strict=True):
                margin = sign * (bits - odds)
                cost += weight @ np.logaddexp2(0.0, margin)
                gradient += weight * sign * expit(margin * np.log(2.0))
            others = 2.0 * row.weight[~row.mated] * np.exp2(np.minimum(bits[~row.mated], 30.0))
            excess = max(float(np.log2(others.sum())), 0.0)
            total += (cost + _TOO_LARGE * excess**2) / len(rows)
            gradients[index] += table.T @ gradient / len(rows)
            if excess:
                excess_gradient = table[~row.mated].T @ (others / others.sum())
                gradients[index] += 2.0 * _TOO_LARGE * excess * excess_gradient / len(rows)
        # a step counts at its own length and at all longer ones
        step_gradients = np.cumsum(gradients[::-1], axis=0)[::-1] + 2.0 * _CONDITION_RIDGE * steps
        return total, step_gradients.ravel()

    start = np.zeros((lengths.size, 1 + features, int(columns.sum())))
    steps = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B").x / _SCALE
    fitted = np.zeros((lengths.size, 1 + features, UNLIKE))
    fitted[..., columns] = np.cumsum(steps.reshape(start.shape), axis=0)
    return fitted


def _scales(mated: BoolArray) -> list[FloatArray]:
    """Return what each comparison, (n,), weighs in the cost at each of `_ODDS`."""
    scales = []
    for odds in _ODDS:
        uninformed = np.logaddexp2(0.0, odds) + 2.0**odds * np.logaddexp2(0.0, -odds)
        scales.append(np.where(mated, 1.0, 2.0**odds) * 2.0 / (uninformed * len(_ODDS)))
    return scales


def _supported(
    rows: Sequence[ConditionComparisons], ratios_by_row: Sequence[FloatArray], k: int
) -> float:
    """Compute the support of comparisons with half or more of one figure of q, and of no other.

    Combined degradations are never alone. NaN of too few people.
    """
    parts: list[tuple[FloatArray, FloatArray, FloatArray, FloatArray]] = []
    people: set[str] = set()
    pairs: set[frozenset[str]] = set()
    for row, ratios in zip(rows, ratios_by_row, strict=True):
        large = row.unlike >= 0.5
        chosen = large[:, k] & ((large.sum(axis=1) == 1) | (k == NEW - 1))
        if not (chosen & row.mated).any() or not (chosen & ~row.mated).any():
            continue
        bits = ratios[chosen]
        is_mated, weight = row.mated[chosen], row.weight[chosen]
        mated_weight, other_weight = weight[is_mated], weight[~is_mated]
        shares = mated_weight / mated_weight.sum(), other_weight / other_weight.sum()
        parts.append((bits[is_mated], bits[~is_mated], *shares))
        tests, templates = row.test_speaker[chosen], row.template_speaker[chosen]
        people.update(tests[is_mated].tolist())
        names = zip(tests[~is_mated].tolist(), templates[~is_mated].tolist(), strict=True)
        pairs.update(map(frozenset, names))
    if len(people) < _FEWEST_MATED:
        return float("nan")
    mated, others, mated_weight, other_weight = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    return supported_bits(mated, others, mated_weight, other_weight, len(people), len(pairs))[0]


# -------------------------------------------------------------------------------------- calibrated
# Calibration checks of likelihood ratios on held-out speakers.
#
# Ratios of mated comparisons and of other people are in bits, (n,) and (m,). The weights
# `mated_weight` and `other_weight` give each speaker and each pair of speakers the same weight. If
# the mean ratio of other people is at most 1, then at most a fraction 2^-k of them shows k bits,
# for any k (Markov's inequality). That is the meaning of a ratio.


def cost_bits(
    mated: FloatArray, others: FloatArray, mated_weight: FloatArray, other_weight: FloatArray
) -> float:
    """Compute Cllr (Brummer and du Preez, 2006); 1 is uninformative, more is misleading."""
    misses = mated_weight @ np.logaddexp2(0.0, -mated) / mated_weight.sum()
    alarms = other_weight @ np.logaddexp2(0.0, others) / other_weight.sum()
    return float(misses + alarms) / 2


def least_cost_bits(
    mated: FloatArray, others: FloatArray, mated_weight: FloatArray, other_weight: FloatArray
) -> float:
    """Compute min Cllr: Cllr after the best monotone calibration on these very ratios."""
    levels, level = np.unique(np.concatenate([mated, others]), return_inverse=True)
    hits = np.bincount(level[: mated.size], mated_weight / mated_weight.sum(), levels.size)
    misses = np.bincount(level[mated.size :], other_weight / other_weight.sum(), levels.size)
    blocks = pool(hits.astype(np.float64), misses.astype(np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        bits = np.log2(blocks.odds)
        lost = np.where(blocks.mated > 0, blocks.mated * np.logaddexp2(0.0, -bits), 0.0)
        lost += np.where(blocks.non_mated > 0, blocks.non_mated * np.logaddexp2(0.0, bits), 0.0)
    return float(lost.sum()) / 2


def mean_ratio(others: FloatArray, other_weight: FloatArray) -> float:
    """Compute other people's mean likelihood ratio: 1 is the most that is allowed."""
    top = float(others.max())
    return float(
        other_weight @ np.exp2(others - top) / other_weight.sum() * np.exp2(np.minimum(top, 1000.0))
    )


def exceeding(others: FloatArray, other_weight: FloatArray, bits: FloatArray) -> FloatArray:
    """Compute the share of other people with that many bits, (K,), or more: at most 2^-bits."""
    order = np.argsort(others, kind="stable")
    mass = np.append(0.0, np.cumsum(other_weight[order]))
    below = mass[np.searchsorted(others[order], bits, side="left")] / mass[-1]
    return np.asarray(np.maximum(1.0 - below, 0.0))


def supported_bits(
    mated: FloatArray, others: FloatArray, mated_weight: FloatArray, other_weight: FloatArray,
    speakers: int, pairs: int, comparisons: TemplateComparisons | None = None,
) -> tuple[float, float]:  # fmt: skip
    """Compute the supported bits (ELUB), and the limit up to which data do not contradict them.

    The first is the empirical upper bound of Vergeer, van Es, de Jongh, Alberink and Stoel,
    "Numerical likelihood ratios outputted by LR systems are often based on extrapolation: When to
    stop extrapolating?", Science & Justice 56 (2016). One misleading ratio is added on each side.
    Decisions by the ratios must then cost no more than decisions without them, at every threshold
    up to the bound. The second is the upper bound of `invariance_bounds_bits`. Each is the first t
    at which ``P(t bits or more | mated) >= 2^t P(t bits or more | others)`` fails. The ELUB adds
    one misleading other, the second bound half a comparison on each side.

    The observations are held-out speakers and pairs of people. Pairs that share people count as
    fewer if `comparisons` identifies them (`effective_pairs`).

    Example:
        >>> mated, others, ones = np.full(30, 9.0), np.full(200, -5.0), np.ones(230)
        >>> found = supported_bits(mated, others, ones[:30], ones[30:], 30, 200)
        >>> np.round(found, 2).tolist()
        [7.6, 7.65]
    """
    steps = np.arange(0.0, np.log2(1.0 + pairs), 0.01)
    count = np.full(steps.size, float(pairs))
    if comparisons is not None:
        count = effective_pairs(comparisons, others, steps)
    alarmed = count * exceeding(others, other_weight, steps)
    hits = speakers * exceeding(mated, mated_weight, steps)

    def first(hit: float, alarm: float) -> float:
        shown = (hits + hit) / (speakers + 1.0)
        good = np.exp2(steps) * (alarmed + alarm) / (count + 1.0) <= shown
        return float(steps[-1] if good.all() else steps[max(int(np.argmin(good)) - 1, 0)])

    return first(0.0, 1.0), first(0.5, 0.5)


def bounds_bits(mated: FloatArray, others: FloatArray) -> tuple[float, float]:
    """Compute ELUB as published, lower and upper: every comparison is an observation.

    See `supported_bits`; exact, without steps.

    Example:
        >>> low, high = bounds_bits(np.full(30, 9.0), np.full(200, -5.0))
        >>> round(low, 2), round(high, 2)
        (-4.95, 7.6)
    """
    return _find_bounds(mated, others, 0.0, 1.0)


def invariance_bounds_bits(mated: FloatArray, others: FloatArray) -> tuple[float, float]:
    """Compute bounds within which ratios are valid (invariance verification).

    ``P(t bits or more | mated) >= 2^t P(t bits or more | others)`` is true up to the upper bound,
    and its inverse down to the lower one. Fractions have Jeffreys' prior (Alberink, Leegwater,
    Malmborg, Nordgaard, Sjerps and van der Ham, 2025).

    Example:
        >>> low, high = invariance_bounds_bits(np.full(30, 9.0), np.full(200, -5.0))
        >>> round(low, 2), round(high, 2)
        (-5.0, 8.63)
    """
    return _find_bounds(mated, others, 0.5, 0.5)


def _find_bounds(
    mated: FloatArray, others: FloatArray, hit: float, alarm: float
) -> tuple[float, float]:
    lower = _holds_up_to(-others, -mated, hit, alarm)
    return 0.0 - lower, _holds_up_to(mated, others, hit, alarm)


def _holds_up_to(mated: FloatArray, others: FloatArray, hit: float, alarm: float) -> float:
    """Find the first t > 0 where ``(H(t) + hit) / (n + 1) >= 2^t (A(t) + alarm) / (m + 1)`` fails.

    H and A are how many show t bits or more: they are the same from one ratio to the next.
    """
    ends = np.unique(np.concatenate([mated, others]))
    ends = ends[ends > 0.0]
    hits, alarms = (
        scores.size - np.searchsorted(np.sort(scores), ends, side="left")
        for scores in (mated, others)
    )
    with np.errstate(divide="ignore"):
        allowed = np.log2((hits + hit) / (mated.size + 1)) - np.log2(
            (alarms + alarm) / (others.size + 1)
        )
    fails = np.flatnonzero(allowed < ends)
    if not fails.size:
        return max(float(mated.max()), 0.0)
    first = int(fails[0])
    return float(max(ends[first - 1] if first else 0.0, allowed[first]))


def calibrated_by_pav(mated: FloatArray, others: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Calibrate ratios monotonically (PAV): the distinct ones, ascending, and their bits.

    Both kinds have equal total weight. The result is minus infinity for values of others only and
    infinity for mated only. Shape (K,) each.

    Example:
        >>> calibrated_by_pav(np.array([1.0, 3.0]), np.array([1.0, -1.0]))
        (array([-1.,  1.,  3.]), array([-inf,   0.,  inf]))
    """
    levels, level = np.unique(np.concatenate([mated, others]), return_inverse=True)
    hits = np.bincount(level[: mated.size], minlength=levels.size).astype(np.float64)
    misses = np.bincount(level[mated.size :], minlength=levels.size).astype(np.float64)
    blocks = pool(hits, misses)
    ends = np.cumsum(blocks.mated + blocks.non_mated)
    block = np.searchsorted(ends, np.cumsum(hits + misses), side="left")
    with np.errstate(divide="ignore"):
        bits = np.log2(blocks.odds) - np.log2(mated.size / others.size)
    return levels, np.asarray(bits[block])


def deviation_from_pav(levels: FloatArray, calibrated: FloatArray) -> float:
    """Compute DevPAV: mean distance of ratios from PAV's, 0 if they are calibrated.

    Of what `calibrated_by_pav` gives: the area between the lines that join finite points and the
    diagonal, per bit (Vergeer, van Schaik and Sjerps, Forensic Science International 321, 2021). In
    the unit of the ratios; NaN if they separate perfectly, so that no point is finite.

    Example:
        >>> levels = np.array([-2.0, 0.0, 2.0])
        >>> deviation_from_pav(levels, levels), deviation_from_pav(levels, levels + 1)
        (0.0, 1.0)
    """
    finite = np.isfinite(calibrated)
    x, deviation = levels[finite], (calibrated - levels)[finite]
    if x.size < 2:
        return float(np.abs(deviation[0])) if x.size else float("nan")
    left, right = deviation[:-1], deviation[1:]
    size = np.abs(left) + np.abs(right)
    # where the diagonal is crossed two triangles are left of a trapezium
    crossed = np.divide(left**2 + right**2, size, out=np.zeros_like(size), where=size > 0)
    area = np.where(left * right < 0, crossed, size) / 2
    return float(area @ np.diff(x) / (x[-1] - x[0]))


def effective_pairs(
    comparisons: TemplateComparisons, bits: FloatArray, steps: FloatArray
) -> FloatArray:
    """Count the independent pairs of people behind the fraction with at least these bits, (K,).

    The count is ``p (1 - p) / Var(p)``. The variance allows for pairs that share people (M.
    Fafchamps and F. Gubert, Journal of Development Economics 83, 2007), because a person with a
    common voice is one observation. Beyond the highest bits of any pair, the count at those bits is
    used. ``bits``, (m,), are those of non-mated comparisons, and ``steps``, (K,), are increasing
    bits.

    Example:
        >>> one, other = np.triu_indices(10, 1)
        >>> pairs = TemplateComparisons(np.zeros((45, 1)), ScorePairs(one, other))
        >>> one_voice, apart = np.where(one == 0, 9.0, 0.0), np.where(other - one == 5, 9.0, 0.0)
        >>> effective_pairs(pairs, one_voice, np.array([5.0])).round(1)
        array([6.4])
        >>> effective_pairs(pairs, apart, np.array([5.0])).round(1)
        array([45.])
    """
    first, counts, pair = comparisons.pairs.unique
    pairs = counts.size
    speakers = np.stack([comparisons.test_speaker, comparisons.template_speaker], axis=1)[first]
    with_others = np.bincount(speakers.ravel())
    # comparisons from the most bits down: what each adds to sums over pairs, and over people
    order = np.flatnonzero(bits >= steps[0])
    order = order[np.argsort(-bits[order], kind="stable")]
    pair_index = pair[order]
    weight = 1.0 / counts[pair_index]
    squares = weight * (2.0 * _before(pair_index, weight) + weight)
    people = speakers[pair_index].ravel()
    weights = np.repeat(weight, 2)
    person_squares = weights * (2.0 * _before(people, weights) + weights)
    total, squares, by_size, person_squares = (
        np.append(0.0, np.cumsum(increments))
        for increments in (
            weight,
            squares,
            weight * with_others[speakers].sum(axis=1)[pair_index],
            person_squares.reshape(-1, 2).sum(axis=1),
        )
    )
    ends = np.searchsorted(-bits[order], -steps, side="right")
    p = total[ends] / pairs
    # of each person what her pairs show beyond p, squared, summed over people
    deviation = (
        person_squares[ends] - 2.0 * p * by_size[ends] + p * p * float(with_others @ with_others)
    )
    variance = (deviation - (squares[ends] - pairs * p * p)) / pairs**2
    variance = np.maximum(variance, p * (1.0 - p) / pairs)
    independent = np.full(steps.size, float(pairs))
    np.divide(p * (1.0 - p), variance, out=independent, where=variance > 0)
    effective = np.where(ends > 0, np.clip(independent, 1.0, pairs), float(pairs))
    highest = effective[np.searchsorted(steps, bits.max(), side="right") - 1]
    return np.where(steps > bits.max(), min(highest, pairs), effective)


def _before(group: IntArray, values: FloatArray) -> FloatArray:
    """Sum, for each entry in order, the earlier values of its group: shape (n,)."""
    order = np.argsort(group, kind="stable")
    sums = np.append(0.0, np.cumsum(values[order]))
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    sizes = np.diff(np.append(starts, group.size))
    sums_before = np.empty(group.size)
    sums_before[order] = sums[:-1] - np.repeat(sums[starts], sizes)
    return sums_before
