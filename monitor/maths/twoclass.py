"""Likelihood ratios from normalised scores: two-class logistic regression.

Source: docs/method.md section 10.

``log LR = a + sum_f b_f z_f``, every b >= 0: the logit less the logarithm of the weighted class
ratio. In each class every speaker, and every pair of speakers, weighs the same, however many
comparisons there are of them. Few speakers that separate perfectly would have no finite optimum: a
ridge holds the slopes, centred on another law's coefficients where there is one. Such a law counts
as m further speakers too, as if their comparisons looked like ours and it said who they are (the
catalytic prior of `monitor.maths.anchor`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.maths.logistic import logistic
from monitor.types import BoolArray, FloatArray, IntArray

__all__ = ["PriorCoefficients", "TemplateComparisons", "cross_fit", "fit_each", "pair_count"]

OTHERS = 30.0
"""Weight of all non-mated comparisons for one of the mated: the fit is best where ratios are large,
since it is other people who show much that a ratio must not have."""
RIDGE = 1.0
"""Nats of half a squared unit of slope: of a speaker's loss, a nat or two at the most."""
_HELD = np.float64(1e-3)
"""The same of the intercept, so that it is finite whatever the data."""
_STEPS = 40
_ARRIVED = 1e-6
_FOLDS = 8
_FAR = 500.0


@dataclass(frozen=True, slots=True)
class TemplateComparisons:
    """Normalised scores of streams against templates, and whose each of them is.

    Attributes:
        z: normalised scores, shape (n, F).
        tester: whose stream, shape (n,), 0..V-1.
        owner: whose template, shape (n,), 0..V-1.
    """

    z: FloatArray
    tester: IntArray
    owner: IntArray

    @property
    def mated(self) -> BoolArray:
        """Which are of one person, shape (n,)."""
        return np.asarray(self.tester == self.owner)

    @property
    def pair(self) -> IntArray:
        """Which two people each is of, whoever is the template, shape (n,)."""
        low, high = np.minimum(self.tester, self.owner), np.maximum(self.tester, self.owner)
        return np.asarray(low.astype(np.int64) * (int(high.max(initial=0)) + 1) + high)

    def some(self, chosen: BoolArray | IntArray) -> TemplateComparisons:
        """Those comparisons alone."""
        return TemplateComparisons(self.z[chosen], self.tester[chosen], self.owner[chosen])

    def weights(self, speakers: FloatArray | None = None) -> FloatArray:
        """How much each counts: in each class the shares of speakers and pairs, summing to 1.

        Args:
            speakers: how often each speaker is drawn, shape (B, V); a pair counts as often as the
                product of its two. None: everybody once.

        Returns:
            shape (n,), or (B, n); a replicate without any comparison of a class counts everybody.
        """
        _, place, counts = np.unique(self.pair, return_inverse=True, return_counts=True)
        each = (1.0 / counts)[place]
        drawn: FloatArray = np.ones((1, each.size))
        if speakers is not None:
            drawn = speakers[:, self.tester] * np.where(self.mated, 1.0, speakers[:, self.owner])
        made: FloatArray = drawn * each
        for label in (self.mated, ~self.mated):
            total = made[:, label].sum(axis=1)
            made[np.ix_(total == 0.0, label)] = each[label]
            made[:, label] /= np.where(total == 0.0, each[label].sum(), total)[:, None]
        return made if speakers is not None else made[0]

    def thinned(self, most: int, seed: int = 0) -> TemplateComparisons:
        """As few of each speaker and pair as make some so many, evenly, by a stated draw."""
        if self.tester.size <= most:
            return self
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
        return self.some(np.sort(np.union1d(kept, own[:: -(-own.size // most)])))


@dataclass(frozen=True, slots=True)
class PriorCoefficients:
    """Another law's coefficients, and how many speakers it counts as.

    Attributes:
        coefficients: a and b of it, or of each of its resamples, shape (1, 1 + F) or (B, 1 + F).
        worth: m.
    """

    coefficients: FloatArray
    worth: float


def pair_count(comparisons: TemplateComparisons) -> int:
    """Pairs of people behind the non-mated comparisons."""
    return int(np.unique(comparisons.pair[~comparisons.mated]).size)


def fit_each(
    comparisons: TemplateComparisons,
    speakers: FloatArray | None = None,
    told: PriorCoefficients | None = None,
    start: FloatArray | None = None,
) -> FloatArray:
    """Fit the regression in every bootstrap replicate of the speakers.

    Args:
        comparisons: of both classes, at least one each.
        speakers: how often each speaker is drawn, shape (B, V); None: the fit itself, B = 1.
        told: another law.
        start: where to begin, shape (1 + F,).

    Returns:
        a and b, shape (B, 1 + F), always finite, b >= 0.

    Example:
        >>> z = np.array([[4.0], [5.0], [0.0], [1.0], [-1.0], [0.0]])
        >>> people = np.array([0, 1, 0, 1, 1, 0]), np.array([0, 1, 1, 0, 0, 1])
        >>> fit_each(TemplateComparisons(z, *people)).round(2)
        array([[-2.06,  1.54]])
    """
    x = np.column_stack([np.ones(len(comparisons.z)), comparisons.z]).astype(np.float64)
    label = comparisons.mated.astype(np.float64)
    ratio = np.append(np.log(OTHERS), np.zeros(comparisons.z.shape[1]))
    people = np.unique(comparisons.tester[comparisons.mated])
    count = np.full((1, 1), float(people.size))
    if speakers is not None:
        count = speakers[:, people].sum(axis=1, keepdims=True)
        count = np.where(count > 0, count, people.size)
    weight = comparisons.weights(speakers) * count * np.where(comparisons.mated, 1.0, OTHERS)
    held = np.append(_HELD, np.full(x.shape[1] - 1, RIDGE))
    centre = -ratio[None]
    goal = np.broadcast_to(label, weight.shape)
    if told is not None:
        centre = told.coefficients - ratio
        share = told.worth / (count + told.worth)
        goal = (1.0 - share) * label + share * logistic(centre @ x.T)
        weight = weight / (1.0 - share)
    shape = (len(weight), x.shape[1])
    found = np.broadcast_to(centre if start is None else start - ratio, shape).copy()
    centre = np.broadcast_to(centre, shape)
    return np.asarray(_descend(x, goal, weight, held, centre, found) + ratio)


def _descend(
    x: FloatArray,
    goal: FloatArray,
    weight: FloatArray,
    held: FloatArray,
    centre: FloatArray,
    found: FloatArray,
) -> FloatArray:
    """Newton's method within slopes >= 0, every row for itself, halved where it overshoots."""
    size = x.shape[1]
    products = (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)

    def loss(point: FloatArray, rows: IntArray) -> FloatArray:
        margin = point @ x.T
        nats = np.logaddexp(0.0, margin) - goal[rows] * margin
        return np.asarray(
            (weight[rows] * nats).sum(axis=1) + 0.5 * ((point - centre[rows]) ** 2 @ held)
        )

    rows = np.arange(len(found))
    here = loss(found, rows)
    for _ in range(_STEPS):
        point = found[rows]
        share = logistic(point @ x.T)
        slope = (weight[rows] * (share - goal[rows])) @ x + held * (point - centre[rows])
        bend = ((weight[rows] * share * (1.0 - share)) @ products).reshape(-1, size, size)
        bend = bend + np.diag(held)
        # a slope at 0 that would go below stays there
        free = np.ones(point.shape, dtype=bool)
        free[:, 1:] = (point[:, 1:] > 0.0) | (slope[:, 1:] < 0.0)
        slope = np.where(free, slope, 0.0)
        bend = np.where(free[:, :, None] & free[:, None, :], bend, np.eye(size))
        step = -np.linalg.solve(bend, slope[:, :, None])[:, :, 0]
        scale = np.ones(len(rows))
        for _ in range(20):
            tried = _within(point + scale[:, None] * step)
            new = loss(tried, rows)
            worse = new > here[rows] + 1e-12
            if not worse.any():
                break
            scale[worse] *= 0.4
        tried, new = np.where(worse[:, None], point, tried), np.where(worse, here[rows], new)
        found[rows], here[rows] = tried, new
        moved = np.abs(tried - point).max(axis=1) > _ARRIVED * (1.0 + np.abs(tried).max(axis=1))
        rows = rows[moved]
        if not rows.size:
            break
    return found


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

    Args:
        comparisons: of V people.
        told: another law; its first row alone.
        start: where to begin.

    Returns:
        coefficients, shape (K, K, 1 + F), of fold k and l both left out; and the fold of each
        person, shape (V,). A comparison of persons i and j is judged by
        ``coefficients[fold[i], fold[j]]``, which has seen neither.
    """
    people = int(max(comparisons.tester.max(), comparisons.owner.max())) + 1
    own = np.zeros(people, dtype=bool)
    own[comparisons.tester[comparisons.mated]] = True
    folds = min(_FOLDS, int(own.sum()))
    # mated speakers first: every fold has its share of them
    fold = np.empty(people, dtype=np.int64)
    fold[np.argsort(~own, kind="stable")] = np.arange(people) % folds
    one, two = np.triu_indices(folds)
    kept = ((fold != one[:, None]) & (fold != two[:, None])).astype(np.float64)
    fits = fit_each(comparisons, kept, told, start)
    found = np.empty((folds, folds, fits.shape[1]))
    found[one, two] = found[two, one] = fits
    return found, fold
