"""Calibration of scores to likelihood ratios, and checks of it on other people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from monitor.errors import CalibrationError, UsageError
from monitor.maths.condition import UNLIKE
from monitor.maths.evidence import ConditionEffect, ConditionEffects, with_misses
from monitor.maths.lid import softmax_bits
from monitor.maths.newton import descend
from monitor.maths.roc import pool
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray

# ------------------------------------------------------------------------------------------- ridge
# Logistic regression of several numbers, with a ridge, by Newton's method.

_STEPS = 50


def fit_ridge(
    scores: FloatArray, label: BoolArray, weight: FloatArray, ridge: float
) -> tuple[float, FloatArray]:
    """Log odds ``bias + scores @ slopes`` of a label.

    Scores are standardised first. Then the mean negative log-likelihood plus half of ``ridge``
    times the squared slopes is least.

    Of scores (n, F), a label and a weight of each row (n,), of which only proportions matter, and a
    ridge above 0: the bias, and slopes of shape (F,).

    Example:
        >>> scores = np.array([[-1.0], [0.0], [0.0], [1.0]])
        >>> bias, slopes = fit_ridge(scores, np.array([False, False, True, True]), np.ones(4), 0.01)
        >>> bool(slopes[0] > 1), round(abs(bias), 6)
        (True, 0.0)
    """
    weight = weight / weight.sum()
    mean = weight @ scores
    spread = np.sqrt(weight @ (scores - mean) ** 2)
    spread = np.where(spread > 0, spread, 1.0)
    x = np.column_stack([np.ones(len(scores)), (scores - mean) / spread])
    penalty = np.diag([0.0, *np.full(scores.shape[1], ridge)])
    found = np.zeros(x.shape[1])
    for _ in range(_STEPS):
        p = expit(x @ found)
        slope = x.T @ (weight * (label - p)) - penalty @ found
        bend = (x * (weight * p * (1.0 - p))[:, None]).T @ x + penalty + 1e-9 * np.eye(len(found))
        step = np.linalg.solve(bend, slope)
        found += np.clip(step, -2.0, 2.0)
        if np.abs(step).max() < 1e-9:
            break
    slopes = found[1:] / spread
    return float(found[0] - slopes @ mean), slopes


# ------------------------------------------------------------------------------------------- platt
# Platt calibration: logistic regression of one score, by Newton's method.
#
# The weighting and the penalty are scikit-learn's, so that its results can be had without it:
# ``sum_i s_i log(1 + exp(-y_i (w z_i + b))) + w^2 / (2 C)``, the bias free.

_Doubles: TypeAlias = NDArray[np.float64]
_PLATT_STEPS = 100
_LARGE, _MOST = 100, 300
"""Powers of two: of scores that are fitted as they are, and by which a penalty is scaled."""
_ARRIVED = 3e-6
"""Newton squares its error: after a step this short the next would be rounding."""


@dataclass(frozen=True, slots=True)
class Platt:
    """A calibration ``w z + b``.

    Attributes:
        weight: w.
        bias: b.
        bounded: classes separate and no penalty was asked for: that of C = 1 keeps w finite.
    """

    weight: float
    bias: float
    bounded: bool = False


def platt(
    mated: FloatArray,
    non_mated: FloatArray,
    counts: FloatArray | None = None,
    balanced: bool = False,
    strength: float = np.inf,
    start: Platt | None = None,
    separable: bool | None = None,
) -> Platt:
    """Fit a logistic regression that tells mated from non-mated scores, (n,) and (m,).

    `counts`, (m,), is how often each non-mated score stands; `balanced` gives both classes the
    weight of half of all scores (``class_weight="balanced"``); `strength` is C, the inverse of the
    L2 penalty on w; `start` is where to begin; `separable` says whether one threshold tells the
    classes apart, where that is known.

    Raises:
        CalibrationError: a class is empty.

    Example:
        >>> found = platt(np.array([1.0, 2.0, 0.0]), np.array([-1.0, 0.5, -2.0, 0.0]))
        >>> round(found.weight, 4), round(found.bias, 4)
        (2.3005, -0.8566)
    """
    mated, non_mated = np.ravel(mated), np.ravel(non_mated)
    many = float(non_mated.size if counts is None else counts.sum())
    if mated.size == 0 or many == 0:
        raise CalibrationError("a calibration needs mated and non-mated scores: add trials")
    lows, highs = (mated.min(), non_mated.min()), (mated.max(), non_mated.max())
    if min(lows) == max(highs):
        share = 0.0 if balanced else float(np.log(mated.size / many))
        return Platt(0.0, share)
    if separable is None:
        separable = bool(lows[0] >= highs[1] or highs[0] <= lows[1])
    bounded = separable and not np.isfinite(strength)
    penalty = 1.0 if bounded else 1.0 / strength
    power = _power(mated, non_mated)
    if power:
        mated, non_mated = np.ldexp(mated, -power), np.ldexp(non_mated, -power)
    penalty = float(np.ldexp(penalty, max(min(-2 * power, _MOST), -_MOST)))  # of w 2^power
    total = mated.size + many
    heavy = (total / (2 * mated.size), total / (2 * many)) if balanced else (1.0, 1.0)

    def lost(point: _Doubles) -> float:
        own = np.logaddexp(0.0, -(point[0] * mated + point[1])).sum()
        other = np.logaddexp(0.0, point[0] * non_mated + point[1])
        other = other.sum() if counts is None else other @ counts
        return float(heavy[0] * own + heavy[1] * other + penalty * point[0] ** 2 / 2)

    first = 0.0 if balanced else float(np.log(mated.size / many))
    point = np.array([0.0, first] if start is None else [np.ldexp(start.weight, power), start.bias])
    for _ in range(_PLATT_STEPS):
        own, other = _side(-point, mated, None), _side(point, non_mated, counts)
        slope = heavy[1] * other[0] - heavy[0] * own[0] + [penalty * point[0], 0.0]
        bend = heavy[0] * own[1] + heavy[1] * other[1] + np.diag([penalty, 0.0])
        step = -np.linalg.solve(bend + 1e-14 * np.trace(bend) * np.eye(2), slope)
        if (np.abs(step) <= _ARRIVED * (1.0 + np.abs(point))).all():
            point = point + step
            break
        here = lost(point)
        while lost(point + step) > here * (1 + 1e-12) and np.abs(step).max() > _ARRIVED:
            step /= 4
        point = point + step
    return Platt(float(np.ldexp(point[0], -power)), float(point[1]), bounded)


def _power(mated: FloatArray, non_mated: FloatArray) -> int:
    """0, or the power of two of scores whose squares would overflow or vanish."""
    size = max(float(np.abs(each).max()) for each in (mated, non_mated))
    power = int(np.frexp(size)[1])
    return power if abs(power) > _LARGE else 0


def _side(
    point: _Doubles, scores: FloatArray, counts: FloatArray | None
) -> tuple[_Doubles, _Doubles]:
    """Slope and Hessian of ``sum c log(1 + exp(w z + b))``."""
    margin = point[0] * scores + point[1]
    small = np.exp(-np.abs(margin))  # see monitor.maths.newton
    share = np.where(margin >= 0, 1.0, small) / (1.0 + small)
    bend = share * (1.0 - share)
    if counts is not None:
        share, bend = share * counts, bend * counts
    bent = bend * scores
    across = bent.sum()
    return (
        np.array([share @ scores, share.sum()]),
        np.array([[bent @ scores, across], [across, bend.sum()]]),
    )


# ---------------------------------------------------------------------------------------- twoclass
# Likelihood ratios from normalised scores: two-class logistic regression.
#
# Source: docs/method.md section 10.
#
# ``log LR = a + sum_f b_f z_f``, every b >= 0: the logit less the logarithm of the weighted class
# ratio. In each class every speaker, and every pair of speakers, weighs the same, however many
# comparisons there are of them. Few speakers that separate perfectly would have no finite optimum:
# a ridge holds the slopes, centred on another model's coefficients where there is one. Such a model
# counts as m further speakers too, as if their comparisons looked like ours and it said who they
# are (the catalytic prior of `monitor.maths.posterior_fit`).

OTHERS = 30.0
"""Weight of all non-mated comparisons for one of the mated: the fit is best where ratios are large,
since it is other people who show much that a ratio must not have."""
RIDGE = 1.0
"""Nats of half a squared unit of slope: of a speaker's loss, a nat or two at the most."""
_HELD = np.float64(1e-3)
"""The same of the intercept, so that it is finite whatever the data."""
_TWOCLASS_STEPS = 40
_TWOCLASS_ARRIVED = 1e-6
_FOLDS = 8
_FAR = 500.0
_TOGETHER = 1 << 17
_MOST_NATS = 700.0  # of a margin: its exponential does not overflow
_SHORTER, _RISES = 20, 0.9


class Pairing:
    """Who is compared with whom, and what follows from that alone, worked out once.

    Several sets of features share it where the same streams were heard of all of them.

    Attributes:
        tester: whose stream, shape (n,), 0..V-1.
        owner: whose template, shape (n,), 0..V-1.
    """

    def __init__(self, tester: IntArray, owner: IntArray) -> None:
        self.tester, self.owner = tester, owner
        self._thinned: dict[tuple[int, int], tuple[IntArray, Pairing]] = {}
        self._drawn: tuple[FloatArray, IntArray, FloatArray] | None = None
        self._weights: list[tuple[FloatArray | None, FloatArray]] = []

    @cached_property
    def mated(self) -> BoolArray:
        """Which are of one person, shape (n,)."""
        return np.asarray(self.tester == self.owner)

    @cached_property
    def pair(self) -> IntArray:
        """Which two people each is of, whoever is the template, shape (n,)."""
        low, high = np.minimum(self.tester, self.owner), np.maximum(self.tester, self.owner)
        return np.asarray(low.astype(np.int64) * (int(high.max(initial=0)) + 1) + high)

    @cached_property
    def pairs(self) -> tuple[IntArray, IntArray, IntArray]:
        """Of each pair the first comparison and how many there are; and the pair of each, (n,)."""
        _, first, place, counts = np.unique(
            self.pair, return_index=True, return_inverse=True, return_counts=True
        )
        return first, counts, place

    @cached_property
    def others(self) -> Pairing:
        """Those of two people alone."""
        return Pairing(self.tester[~self.mated], self.owner[~self.mated])

    def drawn(self, speakers: FloatArray, people: IntArray) -> FloatArray:
        """How often each of these people is drawn, (B, V), of how often each voice is."""
        if self._drawn is None or self._drawn[0] is not speakers or self._drawn[1] is not people:
            self._drawn = speakers, people, speakers[:, people]
        return self._drawn[2]

    def weights(self, speakers: FloatArray | None = None) -> FloatArray:
        """As `TemplateComparisons.weights`; (1, n) without speakers."""
        for known, made in self._weights:
            if known is speakers:
                return made
        _, counts, place = self.pairs
        each = (1.0 / counts)[place]
        drawn: FloatArray = np.ones((1, each.size))
        if speakers is not None:
            drawn = speakers[:, self.tester] * np.where(self.mated, 1.0, speakers[:, self.owner])
        made = drawn * each
        for label in (self.mated, ~self.mated):
            total = made[:, label].sum(axis=1)
            made[np.ix_(total == 0.0, label)] = each[label]
            made[:, label] /= np.where(total == 0.0, each[label].sum(), total)[:, None]
        self._weights = [*self._weights[-2:], (speakers, made)]
        return made

    @cached_property
    def folds(self) -> tuple[IntArray, FloatArray]:
        """The fold of each person, (V,), and who is kept without two of them, (pairs, V)."""
        people = int(max(self.tester.max(), self.owner.max())) + 1
        own = np.zeros(people, dtype=bool)
        own[self.tester[self.mated]] = True
        folds = min(_FOLDS, int(own.sum()))
        # mated speakers first: every fold has its share of them
        fold = np.empty(people, dtype=np.int64)
        fold[np.argsort(~own, kind="stable")] = np.arange(people) % folds
        one, two = np.triu_indices(folds)
        return fold, ((fold != one[:, None]) & (fold != two[:, None])).astype(np.float64)

    def thinned(self, most: int, seed: int) -> tuple[IntArray, Pairing]:
        """Which are kept, and these alone, as `TemplateComparisons.thinned`."""
        if (most, seed) not in self._thinned:
            order = np.random.default_rng(seed).permutation(self.tester.size)
            pair = self.pair[order]
            by_pair = np.argsort(pair, kind="stable")
            starts = np.flatnonzero(np.diff(pair[by_pair], prepend=-1))
            turn = np.empty(order.size, dtype=np.int64)
            turn[by_pair] = np.arange(order.size) - np.repeat(
                starts, np.diff(np.append(starts, order.size))
            )
            # every pair's first one, then every pair's second
            kept = order[np.argsort(turn, kind="stable")[:most]]
            own = np.flatnonzero(self.mated)
            index = np.sort(np.union1d(kept, own[:: -(-own.size // most)]))
            self._thinned[most, seed] = index, Pairing(self.tester[index], self.owner[index])
        return self._thinned[most, seed]


@dataclass(frozen=True, slots=True)
class TemplateComparisons:
    """Normalised scores of streams against templates, and whose each of them is.

    Attributes:
        z: normalised scores, shape (n, F).
        tester: whose stream, shape (n,), 0..V-1.
        owner: whose template, shape (n,), 0..V-1.
        pairing: of these, where it is shared.
    """

    z: FloatArray
    tester: IntArray
    owner: IntArray
    pairing: Pairing = field(default=None, repr=False, compare=False)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.pairing is None:
            object.__setattr__(self, "pairing", Pairing(self.tester, self.owner))

    @classmethod
    def of(cls, z: FloatArray, pairing: Pairing) -> TemplateComparisons:
        """Of scores, (n, F), of who is compared so."""
        return cls(z, pairing.tester, pairing.owner, pairing)

    @property
    def mated(self) -> BoolArray:
        """Which are of one person, shape (n,)."""
        return self.pairing.mated

    @property
    def pair(self) -> IntArray:
        """Which two people each is of, whoever is the template, shape (n,)."""
        return self.pairing.pair

    @property
    def others(self) -> TemplateComparisons:
        """Those of two people alone."""
        return self.of(self.z[~self.mated], self.pairing.others)

    def some(self, chosen: BoolArray | IntArray) -> TemplateComparisons:
        """Those comparisons alone."""
        return TemplateComparisons(self.z[chosen], self.tester[chosen], self.owner[chosen])

    def weights(self, speakers: FloatArray | None = None) -> FloatArray:
        """How much each counts: in each class the shares of speakers and pairs, summing to 1.

        Shape (n,); or (B, n) where `speakers`, shape (B, V), says how often each speaker is drawn:
        a pair then counts as often as the product of its two, and a replicate without any
        comparison of a class counts everybody.
        """
        made = self.pairing.weights(speakers)
        return made if speakers is not None else made[0]

    def thinned(self, most: int, seed: int = 0) -> TemplateComparisons:
        """As few of each speaker and pair as make some so many, evenly, by a stated draw."""
        if self.tester.size <= most:
            return self
        index, pairing = self.pairing.thinned(most, seed)
        return self.of(self.z[index], pairing)


@dataclass(frozen=True, slots=True)
class PriorCoefficients:
    """Another model's a and b, or its resamples', (1 or B, 1 + F); it counts as m people."""

    coefficients: FloatArray
    worth: float


def pair_count(comparisons: TemplateComparisons) -> int:
    """Pairs of people behind the non-mated comparisons."""
    return int(comparisons.pairing.others.pairs[1].size)


def fit_each(
    comparisons: TemplateComparisons,
    speakers: FloatArray | None = None,
    told: PriorCoefficients | None = None,
    start: FloatArray | None = None,
) -> FloatArray:
    """Fit the regression in every bootstrap replicate of the speakers: a and b, (B, 1 + F), b >= 0.

    `speakers`, (B, V), is how often each is drawn; without it there is the fit itself alone. `told`
    is another model, `start`, (1 + F,), where to begin.

    Example:
        >>> z = np.array([[4.0], [5.0], [0.0], [1.0], [-1.0], [0.0]])
        >>> people = np.array([0, 1, 0, 1, 1, 0]), np.array([0, 1, 1, 0, 0, 1])
        >>> fit_each(TemplateComparisons(z, *people)).round(2)
        array([[-2.06,  1.54]])
    """
    x = np.column_stack([np.ones(len(comparisons.z)), comparisons.z]).astype(np.float64)
    ratio = np.append(np.log(OTHERS), np.zeros(comparisons.z.shape[1]))
    people = np.unique(comparisons.tester[comparisons.mated])
    count = np.full((1, 1), float(people.size))
    if speakers is not None:
        count = speakers[:, people].sum(axis=1, keepdims=True)
        count = np.where(count > 0, count, people.size)
    weight = comparisons.pairing.weights(speakers)
    shape = (len(weight), x.shape[1])
    rows = _Regressions(x, comparisons.mated, weight)
    centre = np.broadcast_to(-ratio if told is None else told.coefficients - ratio, shape)
    share = 0.0 if told is None else told.worth / (count + told.worth)
    goal = (1.0 - share) * rows.by_label()
    if told is not None:
        goal += share * rows.by_share(centre)
    times = np.broadcast_to(count / (1.0 - share), (shape[0], 1))
    begin = centre if start is None else np.broadcast_to(start - ratio, shape)
    return np.asarray(rows.descend(begin, times, goal, centre) + ratio)


class _Regressions:
    """Logistic regressions on the same n comparisons, each with weights of its own, (B, n).

    Args:
        x: shape (n, K), the first column ones.
        mated: shape (n,); all others count `OTHERS` times.
        weight: shape (B, n).
    """

    def __init__(self, x: FloatArray, mated: BoolArray, weight: FloatArray) -> None:
        self._x, self._mated, self._weight = x, mated, weight
        self._across = np.ascontiguousarray(x.T)
        self._one, self._two = np.triu_indices(x.shape[1])
        self._often = np.where(mated, 1.0, OTHERS)
        # what sums of slopes and bends are made of
        self._each = x * self._often[:, None]
        self._products = self._each[:, self._one] * x[:, self._two]
        self._held = np.append(_HELD, np.full(x.shape[1] - 1, RIDGE))
        together = max(_TOGETHER // len(x), 1)  # so many rows stay in a processor's cache
        self._parts = [slice(k, k + together) for k in range(0, len(weight), together)]

    def by_label(self) -> FloatArray:
        """``sum_i w_bi x_i`` of the mated, (B, K)."""
        own = np.flatnonzero(self._mated)
        return np.asarray(self._weight[:, own] @ self._each[own])

    def by_share(self, point: FloatArray) -> FloatArray:
        """``sum_i w_bi p_bi x_i`` with the probabilities at these points (B, K): (B, K)."""
        return np.concatenate(
            [self._slopes(self._shares(point[part]) * self._weight[part]) for part in self._parts]
        )

    def _slopes(self, weights: FloatArray) -> FloatArray:
        return np.asarray(weights @ self._each)

    def _shares(self, point: FloatArray) -> FloatArray:
        """Probabilities at points (r, K), (r, n)."""
        share = point @ self._across
        np.negative(share, out=share)
        np.exp(np.minimum(share, _MOST_NATS, out=share), out=share)
        share += 1.0
        return np.divide(1.0, share, out=share)

    def descend(
        self, begin: FloatArray, times: FloatArray, goal: FloatArray, centre: FloatArray
    ) -> FloatArray:
        """Newton's method within slopes >= 0, every row for itself: points, (B, K).

        Args:
            begin: where to, shape (B, K).
            times: what weights are multiplied by, shape (B, 1).
            goal: ``sum_i w_bi g_bi x_i`` of what the probabilities should be, shape (B, K).
            centre: of the ridge, shape (B, K).
        """
        first = None
        if len(begin) > 1 and (begin == begin[0]).all():  # the probabilities are the same in all
            share = self._shares(begin[:1])[0, :, None]
            bend = self._products * (share * (1.0 - share))
            first = self._weight @ np.concatenate([self._each * share, bend], axis=1)
        found = np.array(begin)
        for part in self._parts:
            rows = np.arange(len(begin))[part]
            sums = self._sums(found[rows], rows) if first is None else first[part]
            self._descend(found, rows, sums, times, goal, centre)
        return found

    def _sums(self, point: FloatArray, rows: IntArray) -> FloatArray:
        """``sum_i w_i p_i x_i`` and ``sum_i w_i p_i (1 - p_i) x_i x_i'`` of rows, side by side."""
        share = self._shares(point)
        weighed = self._weight[rows] * share
        slope = weighed @ self._each
        weighed *= np.subtract(1.0, share, out=share)
        return np.concatenate([slope, weighed @ self._products], axis=1)

    def _descend(
        self, found: FloatArray, rows: IntArray, sums: FloatArray,
        times: FloatArray, goal: FloatArray, centre: FloatArray,
    ) -> None:  # fmt: skip
        """Move these rows of ``found`` to their optimum; ``sums`` as `_sums` of where they are."""
        size = found.shape[1]
        for _ in range(_TWOCLASS_STEPS):
            point = found[rows]
            slope = times[rows] * (sums[:, :size] - goal[rows])
            slope += self._held * (point - centre[rows])
            bend = np.empty((len(rows), size, size))
            bend[:, self._one, self._two] = times[rows] * sums[:, size:]
            bend[:, self._two, self._one] = bend[:, self._one, self._two]
            bend += np.diag(self._held)
            # a slope at 0 that would go below stays there
            free = np.ones(point.shape, dtype=bool)
            free[:, 1:] = (point[:, 1:] > 0.0) | (slope[:, 1:] < 0.0)
            bend = np.where(free[:, :, None] & free[:, None, :], bend, np.eye(size))
            step = -np.linalg.solve(bend, np.where(free, slope, 0.0)[:, :, None])[:, :, 0]
            tried = _within(point + step)
            arrived = np.abs(tried - point).max(axis=1) <= _TWOCLASS_ARRIVED * (
                1.0 + np.abs(tried).max(axis=1)
            )
            found[rows[arrived]] = tried[arrived]
            if arrived.all():
                return
            left = ~arrived
            rows, point, slope, step = rows[left], point[left], slope[left], step[left]
            scale = np.ones((len(rows), 1))
            for _ in range(_SHORTER):
                tried = _within(point + scale * step)
                sums = self._sums(tried, rows)
                away = tried - point
                there = times[rows] * (sums[:, :size] - goal[rows])
                there += self._held * (tried - centre[rows])
                # the loss is convex: where it does not rise more steeply than it fell it is less
                worse = (away * there).sum(axis=1) > -_RISES * (away * slope).sum(axis=1) + 1e-12
                if not worse.any():
                    break
                scale[worse] *= 0.4
            found[rows[~worse]] = tried[~worse]
            rows, sums = rows[~worse], sums[~worse]
            if not rows.size:
                return


def _within(point: FloatArray) -> FloatArray:
    point = np.clip(point, -_FAR, _FAR)
    point[:, 1:] = np.maximum(point[:, 1:], 0.0)
    return point


def cross_fit(
    comparisons: TemplateComparisons,
    told: PriorCoefficients | None = None,
    start: FloatArray | None = None,
) -> tuple[FloatArray, IntArray]:
    """Fits that leave out the people of two folds, or of one.

    Returns:
        coefficients, shape (K, K, 1 + F), of fold k and l both left out; and the fold of each
        person, shape (V,). A comparison of persons i and j is judged by
        ``coefficients[fold[i], fold[j]]``, which has seen neither.
    """
    fold, kept = comparisons.pairing.folds
    folds = int(fold.max()) + 1
    one, two = np.triu_indices(folds)
    fits = fit_each(comparisons, kept, told, start)
    found = np.empty((folds, folds, fits.shape[1]))
    found[one, two] = found[two, one] = fits
    return found, fold


# --------------------------------------------------------------------------------------- tempering
# Tempering of log-likelihood ratios that were summed over dependent trials (LID, longitudinal).
#
# Trials of one speaker resemble each other, so their plain sum is overconfident. The sum is divided
# by a temperature: one number, or ``tau (1 + rho g)`` where g grows with the number of trials.

_LOWEST, _HIGHEST = 0.05, 100.0
_SECTIONS, _TEMPERING_STEPS = 60, 30
_IN_CACHE = 1 << 15
"""Numbers taken at a time."""
_WIDEST = 20.0
"""Range of log tau and of the logit of rho."""


def tempered_bits(ratios: FloatArray, target: IntArray, temperature: FloatArray) -> _Doubles:
    """``log2(N p_target)`` under the softmax of ``ratios / temperature``: (..., N) to (...), bits.

    Example:
        >>> tempered_bits(np.log([[3.0, 1.0]]), np.array([0]), np.array([1.0])).round(3)
        array([0.585])
    """
    return softmax_bits(ratios / np.asarray(temperature)[..., None], target)


def fit_temperature(
    ratios: AnyArray,
    target: IntArray,
    trials: int = 1,
    *,
    weight: float = 1.0,
    rows: IntArray | None = None,
    after: Callable[[AnyArray], None] = lambda _: None,
) -> float:
    """The temperature under which summed ratios predict their speakers best.

    The loss is convex in ``1 / T``: the one minimum between 0.05 and ``max(100, 4 trials)`` that
    a fine grid and a golden section would find, by Newton steps held inside a bracket. Sums are
    taken a few at a time, so that nothing of the size of all of them is made.

    Args:
        ratios: sums of development speakers, shape (n, N).
        target: their columns, shape (n,).
        trials: the most that a sum holds.
        weight: by which every sum is multiplied.
        rows: which sums to fit on, ascending; None for all.
        after: called with each part of the sums once it has been looked at, so that pages of what
            is mapped can be given back.

    Raises:
        UsageError: there is no sum.

    Example:
        >>> ratios = 6 * np.eye(4) + 8 * np.eye(4)[[1, 1, 2, 3]]
        >>> round(fit_temperature(ratios, np.arange(4)), 2)
        2.79
    """
    chosen = np.arange(len(ratios)) if rows is None else rows
    if not chosen.size:
        raise UsageError("a temperature is fitted on sums of development speakers: give some")
    step = max(1, _IN_CACHE // ratios.shape[1])
    parts = [slice(first, first + step) for first in range(0, chosen.size, step)]
    leads, means, bends = np.empty((3, chosen.size))

    def behind_of(part: slice) -> _Doubles:
        some = chosen[part]
        behind = np.multiply(ratios[some], weight, dtype=np.float64)
        after(ratios[some[0] : some[-1] + 1])
        behind -= behind.max(axis=1, keepdims=True)
        return behind

    columns = np.broadcast_to(target, len(ratios))[chosen, None]
    for part in parts:
        leads[part] = np.take_along_axis(behind_of(part), columns[part], axis=1)[:, 0]
    own = float(leads.mean())

    def slope(cold: float) -> tuple[float, float]:
        for part in parts:
            behind = behind_of(part)
            mass = np.multiply(behind, cold)
            np.exp(mass, out=mass)
            mass /= mass.sum(axis=1, keepdims=True)
            mass *= behind
            mean = mass.sum(axis=1)
            means[part] = mean
            bends[part] = np.einsum("ij,ij->i", mass, behind) - mean**2
        return float(means.mean()) - own, float(bends.mean())

    low, high = 1.0 / max(_HIGHEST, 4.0 * trials), 1.0 / _LOWEST
    if slope(high)[0] <= 0:  # sums that are all right have no best temperature
        return _LOWEST
    cold = 1.0
    for _ in range(_SECTIONS):
        rise, bend = slope(cold)
        low, high = (low, cold) if rise > 0 else (cold, high)
        new = cold - rise / bend if bend > 0 else low
        if not low < new < high:
            new = float(np.sqrt(low * high))
        arrived = abs(new - cold) <= 1e-10 * cold
        cold = new
        if arrived:
            break
    return 1.0 / cold


def fit_growing_temperature(
    ratios: FloatArray, target: IntArray, growth: FloatArray
) -> tuple[float, float]:
    """Tau > 0 and rho in [0, 1] of ``T = tau (1 + rho g)`` that make ``-log p_target`` least.

    Of sums (n, N) of development speakers after different numbers of trials, their columns (n,),
    and g of each, (n,): k - 1 after k trials, or what embeddings say. UsageError without a sum.
    """
    if not len(ratios):
        raise UsageError("a temperature is fitted on sums of development speakers: give some")
    columns = np.broadcast_to(target, len(ratios))[:, None]
    own = np.take_along_axis(ratios, columns, axis=1)[:, 0]
    behind = ratios - ratios.max(axis=1, keepdims=True)

    def objective(points: _Doubles) -> tuple[_Doubles, _Doubles, _Doubles]:
        losses, slopes, bends = zip(*(at(float(u), float(v)) for u, v in points), strict=True)
        return np.array(losses), np.stack(slopes), np.stack(bends)

    def at(u: float, v: float) -> tuple[float, _Doubles, _Doubles]:
        rho = float(expit(v))
        turn = rho * (1.0 - rho)
        q = 1.0 + rho * growth
        cold = np.exp(-u) / q  # one over the temperature
        mass = np.exp(behind * cold[:, None])
        total = mass.sum(axis=1)
        mean = (mass * behind).sum(axis=1) / total
        spread = (mass * behind**2).sum(axis=1) / total - mean**2
        lead = own - ratios.max(axis=1)
        loss, first = np.log(total) - lead * cold, mean - lead
        by_rho = -cold * growth / q
        c_u, c_v = -cold, by_rho * turn
        c_vv = 2.0 * cold * (growth / q * turn) ** 2 + by_rho * turn * (1.0 - 2.0 * rho)
        slope = np.array([(first * c_u).mean(), (first * c_v).mean()])
        across = (spread * c_u * c_v - first * c_v).mean()
        bend_u = (spread * c_u**2 + first * cold).mean()
        bend_v = (spread * c_v**2 + first * c_vv).mean()
        return float(loss.mean()), slope, np.array([[bend_u, across], [across, bend_v]])

    # sums that are all right have no best temperature: a few steps towards a sharper one will do
    found, _ = descend(objective, np.array([[0.0, -1.0]]), -_WIDEST, _WIDEST, _TEMPERING_STEPS)
    log_tau, logit = found[0]
    return float(np.exp(log_tau)), float(expit(logit))


# ----------------------------------------------------------------------------------------- openset
# Open-set detection: is the speaker enrolled at all?
#
# A posterior over N enrolled speakers cannot say "none of them" (docs/method.md section 5). What
# can is how well the best candidate fits in absolute terms. Every calibration trial is looked at
# twice: as it is, and with the true speaker's template taken away, as an impostor would meet it. A
# logistic regression on the favourite's absolute scores, one number a feature, tells the two apart.

_RIDGE = 1e-3
_OPENSET_FOLDS = 20


@dataclass(frozen=True, slots=True)
class OpenSet:
    """What tells enrolled speakers from impostors, and how well on speakers not used for it.

    The log odds of being enrolled, at even odds before, are ``bias + slopes @ favourite``. At log
    odds of 0 such fractions of enrolled trials are kept, and of impostors found; ``area`` is that
    under the ROC curve: 0.5 is no use, 1 is perfect.
    """

    bias: float
    slopes: FloatArray
    enrolled_kept: float
    impostors_found: float
    area: float


def fit_open_set(enrolled: FloatArray, impostors: FloatArray, speaker: IntArray) -> OpenSet:
    """Fit the open-set regression, and judge it on speakers left out of the fit.

    Of absolute scores (n, F) of the favourite with everybody enrolled, of the same with the true
    speaker left out, and whom each trial is of, (n,): every speaker weighs the same.
    """
    weight = 1.0 / np.bincount(speaker)[speaker]
    weights = np.tile(weight, 2)
    scores = np.concatenate([enrolled, impostors])
    label = np.repeat([True, False], len(enrolled))
    # folds of whole speakers
    fold = np.tile(np.unique(speaker, return_inverse=True)[1] % _OPENSET_FOLDS, 2)
    odds = np.empty(label.size)
    for each in np.unique(fold):
        mine = fold == each
        if (~mine).any():
            bias, slopes = fit_ridge(scores[~mine], label[~mine], weights[~mine], _RIDGE)
            odds[mine] = bias + scores[mine] @ slopes
    bias, slopes = fit_ridge(scores, label, weights, _RIDGE)
    kept, found, area = told_apart(odds[label], odds[~label], weight)
    return OpenSet(bias, slopes, kept, found, area)


def told_apart(
    enrolled: FloatArray, impostors: FloatArray, weight: FloatArray
) -> tuple[float, float, float]:
    """Rates at even log odds (enrolled kept, impostors found), and the area under the ROC curve.

    Of log odds of enrolled trials and of impostors, and the weight of each trial, all (n,).

    Example:
        >>> told_apart(np.array([2.0, -1.0]), np.array([-3.0, -2.0]), np.ones(2))
        (0.5, 1.0, 1.0)
    """
    total = weight.sum()
    order = np.argsort(impostors, kind="stable")
    mass = np.concatenate([[0.0], np.cumsum(weight[order])])
    below = mass[np.searchsorted(impostors[order], enrolled, side="left")]
    upto = mass[np.searchsorted(impostors[order], enrolled, side="right")]
    return (
        float(weight[enrolled >= 0].sum() / total),
        float(weight[impostors < 0].sum() / total),
        float((weight * 0.5 * (below + upto)).sum() / total**2),
    )


# -------------------------------------------------------------------------------------- conditions
# What conditions do to likelihood ratios that were learnt on clean speech (docs/method.md section
# 10): the same people under every pair of conditions, so that they cancel in the differences.

_CONDITION_RIDGE = 5e-5
_TOO_LARGE = 0.02
"""What it costs, in bits of Cllr, that other people's mean ratio is twice as large as it may be.
Chosen with the ridge on half of the people whom effects are learnt from, by the other half: the
most evidence whose mean ratio of other people stayed below 1 on average."""
_ODDS = (0.0, 5.0)
"""Log2 of the odds against the right person at which costs count: Cllr's own, and 1 to 32. At even
odds alone features that mislead keep a say, since ratios of 100 and 1000 cost the same."""
_SCALE = 8.0
"""Bits of a usual ratio, of either sign: by it the ridge is measured."""
_FEWEST_MATED = 20
"""People who were heard under a condition: fewer say nothing of what it supports."""


@dataclass(frozen=True, slots=True)
class ConditionComparisons:
    """Comparisons under one pair of conditions.

    Attributes:
        parts: what each feature adds to the log2 of the ratio, ``b_f z_f`` as learnt on clean
            speech, shape (n, F).
        intercept: of these ratios, bits.
        mated: shape (n,).
        weight: shape (n,); mated and other comparisons sum to 1/2 each.
        unlike: how stream and template sound (`monitor.maths.condition.unlike`), shape (n, 10).
        tester, owner: whose stream and whose template, shape (n,); a name is one person's in all
            comparisons.
        template_seconds: D of the templates.
    """

    parts: FloatArray
    intercept: float
    mated: BoolArray
    weight: FloatArray
    unlike: FloatArray
    tester: AnyArray
    owner: AnyArray
    template_seconds: float

    def bits(self, effect: ConditionEffect) -> FloatArray:
        """As an effect has them count, shape (n,), before any share of misses."""
        shift, slope, _ = effect.at(self.unlike)
        bits = self.intercept + (self.parts * slope).sum(axis=1)
        return np.asarray(bits + max(-self.intercept, 0.0) * shift)


def fit_condition_effects(rows: Sequence[ConditionComparisons]) -> ConditionEffects:
    """The effects of conditions that make Cllr least, and what each condition supports.

    One of each template length among the rows. Cllr of each pair of conditions counts the same, the
    mean of it at even odds and at 1 to 32 (`_ODDS`), where it matters how large a large ratio is;
    with a ridge on the first effect and on the step from each to the next, and a penalty where
    other people's mean ratio exceeds 1. The support, at all lengths, is the ELUB of the comparisons
    with much of one condition alone; of too few people it is the least of the others, since nothing
    is known.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> mated = np.arange(4000) < 2000
        >>> z = 10 + np.where(mated, 4.0, -4.0) + 3.4 * rng.standard_normal(4000)
        >>> telephone = np.tile(np.eye(10)[0], (4000, 1))
        >>> who = np.arange(4000) % 100, np.arange(4000) % 99
        >>> even = np.full(4000, 1 / 4000)
        >>> row = ConditionComparisons(z[:, None] - 3, -10.0, mated, even, telephone, *who, 30.0)
        >>> (effect,) = fit_condition_effects([row]).effects
        >>> found = row.bits(effect)
        >>> bool(abs(found[mated].mean() - 4) < 1), bool(effect.shift[1] == 0)
        (True, True)
    """
    from scipy.optimize import minimize

    features = rows[0].parts.shape[1]
    lengths = np.unique([row.template_seconds for row in rows])
    places = [int(np.searchsorted(lengths, row.template_seconds)) for row in rows]
    tables = [
        np.hstack([
            max(-row.intercept, 0.0) * row.unlike,
            *(row.unlike * row.parts[:, f, None] for f in range(features)),
        ]) / _SCALE
        for row in rows
    ]  # fmt: skip
    clean = [row.intercept + row.parts.sum(axis=1) for row in rows]
    signs = [np.where(row.mated, -1.0, 1.0) for row in rows]
    weights = [[row.weight * scale for scale in _scales(row.mated)] for row in rows]

    def objective(steps: FloatArray) -> tuple[float, FloatArray]:
        steps = steps.reshape(lengths.size, -1)
        parameters = np.cumsum(steps, axis=0)
        total = _CONDITION_RIDGE * float((steps**2).sum())
        slopes = np.zeros_like(parameters)
        given = zip(rows, tables, places, clean, signs, weights, strict=True)
        for row, table, place, base, sign, weight_at in given:
            bits = base + table @ parameters[place]
            cost, pull = 0.0, np.zeros_like(bits)
            for odds, weight in zip(_ODDS, weight_at, strict=True):
                apart = sign * (bits - odds)
                cost += weight @ np.logaddexp2(0.0, apart)
                pull += weight * sign * expit(apart * np.log(2.0))
            others = 2.0 * row.weight[~row.mated] * np.exp2(np.minimum(bits[~row.mated], 30.0))
            beyond = max(float(np.log2(others.sum())), 0.0)
            total += (cost + _TOO_LARGE * beyond**2) / len(rows)
            slopes[place] += table.T @ pull / len(rows)
            if beyond:
                share = table[~row.mated].T @ (others / others.sum())
                slopes[place] += 2.0 * _TOO_LARGE * beyond * share / len(rows)
        # a step counts at its own length and at all longer ones
        slope = np.cumsum(slopes[::-1], axis=0)[::-1] + 2.0 * _CONDITION_RIDGE * steps
        return total, slope.ravel()

    start = np.zeros(lengths.size * (1 + features) * UNLIKE)
    steps = minimize(objective, start, jac=True, method="L-BFGS-B").x / _SCALE
    found = np.cumsum(steps.reshape(lengths.size, -1, UNLIKE), axis=0)
    effects = [ConditionEffect(each[0], each[1:], np.zeros(UNLIKE)) for each in found]
    told = [with_misses(row.bits(effects[place])) for row, place in zip(rows, places, strict=True)]
    support = np.array([_supported(rows, told, k) for k in range(UNLIKE)])
    least = float(np.nanmin(support)) if np.isfinite(support).any() else 0.0
    support = np.where(np.isnan(support), least, support)
    return ConditionEffects(lengths, tuple(replace(each, support=support) for each in effects))


def _scales(mated: BoolArray) -> list[FloatArray]:
    """Return what each comparison, (n,), weighs in the cost at each of `_ODDS`.

    Ratios of 1 cost 1 in all, whatever the odds.
    """
    scales = []
    for odds in _ODDS:
        uninformed = np.logaddexp2(0.0, odds) + 2.0**odds * np.logaddexp2(0.0, -odds)
        scales.append(np.where(mated, 1.0, 2.0**odds) * 2.0 / (uninformed * len(_ODDS)))
    return scales


def _supported(rows: Sequence[ConditionComparisons], told: Sequence[FloatArray], k: int) -> float:
    """Bits that comparisons support with half or more of one figure of q, and of no other.

    The last, what comes together, is never alone. `told` are the ratios of each row. NaN of too few
    people.
    """
    parts: list[tuple[FloatArray, FloatArray, FloatArray, FloatArray]] = []
    people: set[str] = set()
    pairs: set[frozenset[str]] = set()
    for row, ratios in zip(rows, told, strict=True):
        large = row.unlike >= 0.5
        some = large[:, k] & ((large.sum(axis=1) == 1) | (k == UNLIKE - 1))
        if not (some & row.mated).any() or not (some & ~row.mated).any():
            continue
        bits = ratios[some]
        is_mated, weight = row.mated[some], row.weight[some]
        own, theirs = weight[is_mated], weight[~is_mated]
        parts.append((bits[is_mated], bits[~is_mated], own / own.sum(), theirs / theirs.sum()))
        people.update(row.tester[some][is_mated].tolist())
        both = row.tester[some][~is_mated].tolist(), row.owner[some][~is_mated].tolist()
        pairs.update(frozenset(pair) for pair in zip(*both, strict=True))
    if len(people) < _FEWEST_MATED:
        return float("nan")
    mated, others, own, theirs = (np.concatenate(each) for each in zip(*parts, strict=True))
    return upper_bound_bits(mated, others, own, theirs, len(people), len(pairs))


# -------------------------------------------------------------------------------------- calibrated
# Checks of likelihood ratios on speakers not fitted on: are they as large as they claim?
#
# Ratios of mated comparisons and of other people are bits, (n,) and (m,), with weights `own` and
# `theirs`, so that every speaker and every pair of speakers counts the same. If the mean ratio of
# other people is at most 1, then by Markov's inequality no more than a share 2^-k of them shows k
# bits, for any k: what a ratio promises.


def cost_bits(mated: FloatArray, others: FloatArray, own: FloatArray, theirs: FloatArray) -> float:
    """Cllr (Brummer and du Preez, 2006): 1 for ratios that say nothing, more where they mislead.

    Example:
        >>> one = np.ones(1)
        >>> cost_bits(np.zeros(1), np.zeros(1), one, one)
        1.0
    """
    misses = own @ np.logaddexp2(0.0, -mated) / own.sum()
    alarms = theirs @ np.logaddexp2(0.0, others) / theirs.sum()
    return float(misses + alarms) / 2


def least_cost_bits(
    mated: FloatArray, others: FloatArray, own: FloatArray, theirs: FloatArray
) -> float:
    """Min Cllr: what is left of Cllr after the best monotone calibration on these very ratios.

    Example:
        >>> least_cost_bits(np.array([5.0]), np.array([1.0]), np.ones(1), np.ones(1))
        0.0
    """
    levels, place = np.unique(np.concatenate([mated, others]), return_inverse=True)
    hits = np.bincount(place[: mated.size], own / own.sum(), levels.size)
    misses = np.bincount(place[mated.size :], theirs / theirs.sum(), levels.size)
    blocks = pool(hits.astype(np.float64), misses.astype(np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        bits = np.log2(blocks.odds)
        lost = np.where(blocks.mated > 0, blocks.mated * np.logaddexp2(0.0, -bits), 0.0)
        lost += np.where(blocks.non_mated > 0, blocks.non_mated * np.logaddexp2(0.0, bits), 0.0)
    return float(lost.sum()) / 2


def mean_ratio(others: FloatArray, theirs: FloatArray) -> float:
    """Mean likelihood ratio of other people: 1 is the most that is allowed."""
    top = float(others.max())
    return float(theirs @ np.exp2(others - top) / theirs.sum() * np.exp2(np.minimum(top, 1000.0)))


def exceeding(others: FloatArray, theirs: FloatArray, bits: FloatArray) -> FloatArray:
    """Share of other people who show so many bits (K,) or more; 2^-bits is the most allowed.

    Example:
        >>> exceeding(np.array([0.0, 3.0]), np.ones(2), np.array([1.0, 4.0]))
        array([0.5, 0. ])
    """
    order = np.argsort(others, kind="stable")
    mass = np.append(0.0, np.cumsum(theirs[order]))
    below = mass[np.searchsorted(others[order], bits, side="left")] / mass[-1]
    return np.asarray(np.maximum(1.0 - below, 0.0))


def upper_bound_bits(
    mated: FloatArray, others: FloatArray, own: FloatArray, theirs: FloatArray,
    speakers: int, pairs: int, of: TemplateComparisons | None = None,
) -> float:  # fmt: skip
    """Empirical upper bound of likelihood ratios (ELUB): beyond it they are extrapolation.

    Vergeer, van Es, de Jongh, Alberink and Stoel, "Numerical likelihood ratios outputted by LR
    systems are often based on extrapolation: When to stop extrapolating?", Science & Justice 56
    (2016). With one misleading ratio added on either side, decisions by the ratios must cost no
    more than decisions without any, at every threshold up to the bound. Pairs of people are the
    observations here, not comparisons, which share them.

    The former come from so many speakers, the latter from so many pairs of people, all left out of
    the fit. Where it is said of whom the latter are, pairs that share people count as fewer
    (`effective_pairs`). Between 0 and log2(1 + pairs) bits.

    Example:
        >>> mated, others, ones = np.full(30, 9.0), np.full(200, -5.0), np.ones(230)
        >>> round(upper_bound_bits(mated, others, ones[:30], ones[30:], 30, 200), 2)
        7.6
    """
    return supported_bits(mated, others, own, theirs, speakers, pairs, of)[0]


def supported_bits(
    mated: FloatArray, others: FloatArray, own: FloatArray, theirs: FloatArray,
    speakers: int, pairs: int, of: TemplateComparisons | None = None,
) -> tuple[float, float]:  # fmt: skip
    """`upper_bound_bits`, and up to where neither side contradicts the ratios: by the same counts.

    The second is the upper of `invariance_bounds_bits`, with speakers and pairs of people as the
    observations; it lies beyond the first (ELUB), which adds a misleading ratio to each side.

    First t at which ``P(t bits or more | mated) >= 2^t P(t bits or more | others)`` fails. To how
    many of either side show as much, of one more than there are, the one adds a misleading other,
    the other half a one to each.

    Example:
        >>> mated, others, ones = np.full(30, 9.0), np.full(200, -5.0), np.ones(230)
        >>> found = supported_bits(mated, others, ones[:30], ones[30:], 30, 200)
        >>> np.round(found, 2).tolist()
        [7.6, 7.65]
    """
    steps = np.arange(0.0, np.log2(1.0 + pairs), 0.01)
    count = np.full(steps.size, float(pairs)) if of is None else effective_pairs(of, others, steps)
    alarmed = count * exceeding(others, theirs, steps)
    hits = speakers * exceeding(mated, own, steps)

    def first(hit: float, alarm: float) -> float:
        shown = (hits + hit) / (speakers + 1.0)
        good = np.exp2(steps) * (alarmed + alarm) / (count + 1.0) <= shown
        return float(steps[-1] if good.all() else steps[max(int(np.argmin(good)) - 1, 0)])

    return first(0.0, 1.0), first(0.5, 0.5)


def bounds_bits(mated: FloatArray, others: FloatArray) -> tuple[float, float]:
    """ELUB as published, lower and upper: every comparison counts as an observation.

    See `upper_bound_bits`. With one misleading ratio more on either side, decisions by the ratios
    cost no more than decisions without any, at every threshold within the bounds: exact, without
    steps.

    Example:
        >>> low, high = bounds_bits(np.full(30, 9.0), np.full(200, -5.0))
        >>> round(low, 2), round(high, 2)
        (-4.95, 7.6)
    """
    low, high = (
        _holds_up_to(own, theirs, 0.0, 1.0) for own, theirs in ((-others, -mated), (mated, others))
    )
    return 0.0 - low, high


def invariance_bounds_bits(mated: FloatArray, others: FloatArray) -> tuple[float, float]:
    """Bounds within which ratios keep what they claim (invariance verification).

    That a ratio is so large has a ratio itself, which must be no less:
    ``P(t bits or more | mated) >= 2^t P(t bits or more | others)`` up to the upper bound, and
    inverted down to the lower one. Shares are estimated with Jeffreys' prior (Alberink, Leegwater,
    Malmborg, Nordgaard, Sjerps and van der Ham, 2025). Where nothing contradicts them the bounds
    are the most that there is of either kind.

    Example:
        >>> low, high = invariance_bounds_bits(np.full(30, 9.0), np.full(200, -5.0))
        >>> round(low, 2), round(high, 2)
        (-5.0, 8.63)
    """
    low, high = (
        _holds_up_to(own, theirs, 0.5, 0.5) for own, theirs in ((-others, -mated), (mated, others))
    )
    return 0.0 - low, high


def _holds_up_to(mated: FloatArray, others: FloatArray, hit: float, alarm: float) -> float:
    """First t > 0 beyond which ``(H(t) + hit) / (n + 1) >= 2^t (A(t) + alarm) / (m + 1)`` fails.

    H and A are how many show t bits or more: they are the same from one ratio to the next.
    """
    ends = np.unique(np.concatenate([mated, others]))
    ends = ends[ends > 0.0]
    hits, alarms = (
        each.size - np.searchsorted(np.sort(each), ends, side="left") for each in (mated, others)
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
    """The distinct ratios, ascending, and what the best monotone calibration makes of each (PAV).

    Of bits, at even weight of both kinds; minus infinity where only others are, infinity where only
    mated are. Shape (K,) each.

    Example:
        >>> calibrated_by_pav(np.array([1.0, 3.0]), np.array([1.0, -1.0]))
        (array([-1.,  1.,  3.]), array([-inf,   0.,  inf]))
    """
    levels, place = np.unique(np.concatenate([mated, others]), return_inverse=True)
    hits = np.bincount(place[: mated.size], minlength=levels.size).astype(np.float64)
    misses = np.bincount(place[mated.size :], minlength=levels.size).astype(np.float64)
    blocks = pool(hits, misses)
    ends = np.cumsum(blocks.mated + blocks.non_mated)
    block = np.searchsorted(ends, np.cumsum(hits + misses), side="left")
    with np.errstate(divide="ignore"):
        bits = np.log2(blocks.odds) - np.log2(mated.size / others.size)
    return levels, np.asarray(bits[block])


def deviation_from_pav(levels: FloatArray, calibrated: FloatArray) -> float:
    """DevPAV: mean distance of ratios from what PAV makes of them, 0 where they are calibrated.

    Of what `calibrated_by_pav` gives: the area between the lines that join finite points and the
    diagonal, per bit (Vergeer, van Schaik and Sjerps, Forensic Science International 321, 2021). In
    the unit of the ratios; NaN where they separate perfectly, so that no point is finite.

    Example:
        >>> levels = np.array([-2.0, 0.0, 2.0])
        >>> deviation_from_pav(levels, levels), deviation_from_pav(levels, levels + 1)
        (0.0, 1.0)
    """
    finite = np.isfinite(calibrated)
    x, away = levels[finite], (calibrated - levels)[finite]
    if x.size < 2:
        return float(np.abs(away[0])) if x.size else float("nan")
    one, two = away[:-1], away[1:]
    size = np.abs(one) + np.abs(two)
    # where the diagonal is crossed two triangles are left of a trapezium
    crossed = np.divide(one**2 + two**2, size, out=np.zeros_like(size), where=size > 0)
    area = np.where(one * two < 0, crossed, size) / 2
    return float(area @ np.diff(x) / (x[-1] - x[0]))


def effective_pairs(of: TemplateComparisons, bits: FloatArray, steps: FloatArray) -> FloatArray:
    """As how many independent pairs of people the share that shows so many bits is known.

    ``p (1 - p) / Var(p)``; the variance is that of pairs which share people (M. Fafchamps and
    F. Gubert, Journal of Development Economics 83, 2007): somebody whose voice is like many others'
    is one observation, not as many as there are others. Where nobody shows so many bits the number
    is that of the most bits that somebody shows.

    Args:
        of: non-mated comparisons, (m,).
        bits: of each, (m,).
        steps: bits, increasing, (K,).

    Returns:
        shape (K,), between 1 and how many pairs there are.

    Example:
        >>> one, other = np.triu_indices(10, 1)
        >>> of = TemplateComparisons(np.zeros((45, 1)), one, other)
        >>> one_voice, apart = np.where(one == 0, 9.0, 0.0), np.where(other - one == 5, 9.0, 0.0)
        >>> effective_pairs(of, one_voice, np.array([5.0])).round(1)
        array([6.4])
        >>> effective_pairs(of, apart, np.array([5.0])).round(1)
        array([45.])
    """
    first, counts, place = of.pairing.pairs
    pairs = counts.size
    one, other = of.tester[first], of.owner[first]
    with_others = np.bincount(one, minlength=1 + int(max(one.max(), other.max())))
    with_others = with_others + np.bincount(other, minlength=with_others.size)
    # comparisons from the most bits down: what each adds to sums over pairs, and over people
    some = np.flatnonzero(bits >= steps[0])
    some = some[np.argsort(-bits[some], kind="stable")]
    mine = place[some]
    more = 1.0 / counts[mine]
    squares = more * (2.0 * _before(mine, more) + more)
    people = np.stack([one[mine], other[mine]], axis=1).ravel()
    twice = np.repeat(more, 2)
    apart = twice * (2.0 * _before(people, twice) + twice)
    total, squares, by_size, apart = (
        np.append(0.0, np.cumsum(each))
        for each in (
            more,
            squares,
            more * (with_others[one] + with_others[other])[mine],
            apart.reshape(-1, 2).sum(axis=1),
        )
    )
    ends = np.searchsorted(-bits[some], -steps, side="right")
    p = total[ends] / pairs
    # of each person what her pairs show beyond p, squared, summed over people
    away = apart[ends] - 2.0 * p * by_size[ends] + p * p * float(with_others @ with_others)
    variance = (away - (squares[ends] - pairs * p * p)) / pairs**2
    variance = np.maximum(variance, p * (1.0 - p) / pairs)
    known = np.full(steps.size, float(pairs))
    np.divide(p * (1.0 - p), variance, out=known, where=variance > 0)
    found = np.where(ends > 0, np.clip(known, 1.0, pairs), float(pairs))
    highest = found[np.searchsorted(steps, bits.max(), side="right") - 1]
    return np.where(steps > bits.max(), min(highest, pairs), found)


def _before(group: IntArray, more: FloatArray) -> FloatArray:
    """Of each entry, in order, the sum of those of its group before it: shape (n,).

    Example:
        >>> _before(np.array([0, 1, 0, 0]), np.array([1.0, 5.0, 2.0, 3.0])).tolist()
        [0.0, 0.0, 1.0, 3.0]
    """
    order = np.argsort(group, kind="stable")
    sums = np.append(0.0, np.cumsum(more[order]))
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    sizes = np.diff(np.append(starts, group.size))
    made = np.empty(group.size)
    made[order] = sums[:-1] - np.repeat(sums[starts], sizes)
    return made
