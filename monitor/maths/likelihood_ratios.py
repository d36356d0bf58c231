"""Calibration of scores to likelihood ratios, and checks of it on other people."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from monitor.types import BoolArray, FloatArray, IntArray

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
RIDGE = 1.0  # penalty in nats on half a squared slope: at most a nat or two of a speaker's loss
_HELD = np.float64(1e-3)  # the same penalty on the intercept, which keeps it finite
_TWOCLASS_STEPS = 40
_TWOCLASS_ARRIVED = 1e-4
"""Step relative to the coefficients: Newton squares the error, which is 1e-8 after such a step."""
_FOLDS = 8
_FAR = 500.0
_TOGETHER = 1 << 17
_MOST_NATS = 700.0  # of a margin: its exponential does not overflow
_SHORTER, _RISES = 20, 0.9


class ScorePairs:
    """Test and template speaker of each comparison, with cached weights, folds and subsamples.

    Several sets of features share it if all have the same streams.
    """

    def __init__(self, test_speaker: IntArray, template_speaker: IntArray) -> None:
        # speakers of the streams and of the templates, shape (n,), 0..V-1
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
        """Fold of each person, (V,), and 1 for people outside two folds, (fold pairs, V)."""
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
        # every pair's first comparison, then every pair's second
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
        """Draw ``maximum`` comparisons evenly over pairs, plus at most as many mated ones."""
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

    `speakers`, (B, V), has the number of draws of each. Without it, every speaker counts once, and
    B = 1. `prior` is another model, and `start`, (1 + F,), is the initial point.

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
    """B logistic regressions on the same n comparisons, with different weights, (B, n)."""

    def __init__(self, x: FloatArray, mated: BoolArray, weight: FloatArray) -> None:
        self._mated, self._weight = mated, weight
        self._columns = np.ascontiguousarray(x.T)
        self._first, self._second = np.triu_indices(x.shape[1])
        # terms of gradients and Hessians
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
        """Sum ``w_bi p_bi x_i`` with the probabilities p at points (B, K): (B, K)."""
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
        if len(begin) > 1 and (begin == begin[0]).all():  # all rows have the same probabilities
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
        """Sum ``w_i p_i x_i`` and ``w_i p_i (1 - p_i) x_i x_i'`` for rows (r,), side by side."""
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
            # a slope at 0 stays there if the step would make it negative
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
                # the loss is convex: it is lower if it ends no steeper than it began
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
    """Fit without the people of each pair of folds: coefficients (K, K, 1 + F), folds (V,).

    A comparison of persons i and j is judged by ``coefficients[fold[i], fold[j]]``, fitted without
    both.
    """
    fold, speakers = comparisons.pairs.folds
    folds = int(fold.max()) + 1
    first, second = np.triu_indices(folds)
    fits = fit_each(comparisons, speakers, prior, start)
    coefficients = np.empty((folds, folds, fits.shape[1]))
    coefficients[first, second] = coefficients[second, first] = fits
    return coefficients, fold
