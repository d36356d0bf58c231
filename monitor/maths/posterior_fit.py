"""Fit of the score posterior's weights and floor, by conditional logit.

Source: docs/method.md section 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from monitor.types import FloatArray, IntArray


# A fit on few speakers can be far off, and so can its bits. Another model, fitted on other
# speakers, therefore serves as a catalytic prior. See Huang, Stein, Rubin and Kou, "Catalytic prior
# distributions with application to generalized linear models", PNAS 117, 2020. It acts like m
# further speakers with trials like ours and true speakers drawn from the other model's posterior.
# To second order, their mean loss is a paraboloid around the other model. Its curvature is the
# Fisher information of one trial. With S speakers its weight is m / (S + m), so it fades.
@dataclass(frozen=True, slots=True)
class Anchor:
    """A quadratic penalty around another rank model's lambda and log e."""

    # lambda and log e of that rank model and its resamples, if any, shape (1 + B, F + 1)
    centre: FloatArray
    precision: FloatArray  # curvature in nats of one speaker's mean loss, shape (F + 1, F + 1)

    def scale_to(self, speakers: float) -> Anchor:
        """Scale the penalty to the weight of this number of speakers."""
        return Anchor(self.centre, self.precision * speakers)

    @property
    def rank_model(self) -> Anchor:
        """The anchor without its resamples."""
        return Anchor(self.centre[:1], self.precision)

    def cost(self, weights: FloatArray, floors: FloatArray) -> FloatArray:
        """Compute nats at every point: weights (P, F), floors (E,), to (1 + B, P, E)."""
        squares, points, centres = self.parts(weights, floors)
        cost = squares + centres @ points
        return np.asarray(cost.reshape(-1, len(weights), floors.size))

    def parts(
        self, weights: FloatArray, floors: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Split ``cost`` into squares (P E,), points (F + 2, P E) and centres (1 + B, F + 2)."""
        points = np.repeat(weights, floors.size, axis=0)
        x = np.column_stack([points, np.tile(np.log(floors), len(weights))])
        squares = 0.5 * ((x @ self.precision) * x).sum(axis=1)
        pull = self.centre @ self.precision
        constants = 0.5 * (pull * self.centre).sum(axis=1)
        return squares, np.column_stack([np.ones(len(x)), x]).T, np.column_stack([constants, -pull])

    def bends(self, weights: FloatArray, floor: float) -> tuple[float, FloatArray, FloatArray]:
        """Compute the model's cost at a point, with gradient and Hessian by log lambda and log e.

        Weights have shape (F,).
        """
        by_log = np.append(weights, 1.0)
        distance = np.append(weights, np.log(floor)) - self.centre[0]
        gradient = (self.precision @ distance) * by_log
        hessian = self.precision * by_log[:, None] * by_log
        hessian[np.diag_indices(len(weights))] += gradient[:-1]
        return float(0.5 * distance @ (self.precision @ distance)), gradient, hessian


def information(margins: FloatArray, weights: FloatArray, floor: float) -> FloatArray:
    """Compute one trial's Fisher information on lambda and log e under a given model.

    ``margins`` are raw scores, (n, F, N), minus those of any one candidate per trial. The result,
    (F + 1, F + 1), is the mean of ``sum_j p_j g_j g_j'`` over the trials. Here g is the gradient of
    ``log p_j``, and ``p = (1 - e) softmax(sum_f lambda_f s_f) + e / N``.

    Example:
        >>> information(np.array([[[0.0, 1.0]]]), np.array([0.0]), 1e-9).round(3)
        array([[0.25, 0.  ],
               [0.  , 0.  ]])
    """
    candidates = margins.shape[2]
    q = softmax(np.einsum("f,nfj->nj", weights, margins), axis=1)
    p = (1.0 - floor) * q + floor / candidates
    centred = margins - np.einsum("nj,nfj->nf", q, margins)[:, :, None]
    by_weight = centred * ((1.0 - floor) * q / p)[:, None]
    by_floor = floor * (1.0 / candidates - q) / p
    gradients = np.concatenate([by_weight, by_floor[:, None]], axis=1)
    return np.asarray(
        np.einsum("nj,nfj,ngj->fg", p, gradients, gradients, optimize=True) / len(margins)
    )


# A calibration trial has raw scores ``s_fj`` and true speaker w. Its ``p = (1 - e) / sum_j
# exp(sum_f lambda_f (s_fj - s_fw)) + e / N``. The fit minimises the mean of ``-log p``. This
# maximises the figure that the monitor shows, since mean local bits are log2 N minus that loss in
# bits. The floor e limits a reading to what the calibration speakers support.
#
# Features overlap, and with about twenty speakers every fitted lambda costs some accuracy on new
# speakers. The best single feature is therefore unpenalised. Every other lambda has an exponential
# prior with the weight of one speaker (``prior_of``).
_STEPS = 33
_REACH = 256.0
_START_STEPS = np.geomspace(1.0 / _REACH, _REACH, _STEPS)
_FLOORS = 24
_FEW_SPEAKERS = 12
_FLATTEST = 0.02
_NO_SAY = 1e-3  # a lambda below this fraction of the feature's single-feature lambda is set to 0


@dataclass(frozen=True, slots=True)
class Trials:
    """Calibration trials, seen from the true speaker."""

    margins: FloatArray  # shape (n, F, N), raw score of every template minus the true speaker's
    speaker: IntArray  # shape (n,), calibration speaker of each trial, 0..S-1

    def select(self, features: Sequence[int]) -> Trials:
        """Select features of the trials."""
        return Trials(self.margins[:, list(features)], self.speaker)

    @property
    def speakers(self) -> int:
        """S, the count of calibration speakers."""
        return int(np.unique(self.speaker).size)

    @property
    def per_speaker(self) -> float:
        """Trials of a speaker, on average."""
        return self.speaker.size / self.speakers

    def posterior(self, weights: FloatArray, floor: FloatArray) -> FloatArray:
        """Compute probabilities (n, N) under lambda (n, F) and e (n,) of each trial."""
        evidence = np.einsum("nf,nfj->nj", weights, self.margins)
        evidence -= evidence.max(axis=1, keepdims=True)
        np.exp(evidence, out=evidence)
        evidence *= ((1.0 - floor) / evidence.sum(axis=1))[:, None]
        evidence += (floor / evidence.shape[1])[:, None]
        return np.asarray(evidence)

    def true_share(self, weights: FloatArray) -> FloatArray:
        """Compute the true speaker's softmax for weights, shape (F,): shape (n,), in (0, 1]."""
        evidence = np.einsum("f,nfj->nj", weights, self.margins)
        best = evidence.max(axis=1)
        mass = np.exp(evidence - best[:, None]).sum(axis=1)
        return np.asarray(np.exp(-best - np.log(mass)))


@dataclass(frozen=True, slots=True)
class LogitFit:
    """A fitted posterior: lambda >= 0, (F,), e, and the mean of -log p it was fitted to, nats."""

    weights: FloatArray
    floor: float
    loss: float


def smallest_floor(speakers: int) -> float:
    """Return the lower bound of the floor e, ``1 / (2 (S + 1))`` with S calibration speakers."""
    return 1.0 / (2.0 * (speakers + 1.0))


def _loss(probability: FloatArray, floor: FloatArray | float, candidates: int) -> FloatArray:
    return np.asarray(-np.log((1.0 - floor) * probability + floor / candidates))


def _scale(trials: Trials) -> FloatArray:
    """Compute the weight at which a feature's typical score difference is one nat, shape (F,)."""
    deviation = np.sqrt((trials.margins**2).mean(axis=(0, 2)))
    return np.asarray(np.where(deviation > 0, 1.0 / np.maximum(deviation, 1e-300), 1.0))


_TOGETHER = 1 << 17  # numbers processed at once, so that they stay in the cache
_VANISHED = 1e-200  # smallest product of exponentials without loss of digits


def _chunks(count: int, size: int) -> Iterator[slice]:
    step = max(_TOGETHER // size, 1)
    return (slice(start, start + step) for start in range(0, count, step))


def _shares_at(trials: Trials, points: FloatArray) -> FloatArray:
    """Compute the true speaker's softmax in every trial, by weights (P, F): shape (P, n)."""
    count, features, candidates = trials.margins.shape
    # candidates first: reductions then run along the trials
    margins = np.ascontiguousarray(trials.margins.transpose(1, 2, 0), np.float64)
    margins = margins.reshape(features, -1)
    probability = np.empty((len(points), count))
    for batch in _chunks(len(points), margins.shape[1]):
        evidence = points[batch] @ margins
        evidence = evidence.reshape(-1, candidates, count)
        best = evidence.max(axis=1)
        evidence -= best[:, None]
        mass = np.exp(evidence, out=evidence).sum(axis=1)
        probability[batch] = np.exp(-best - np.log(mass))
    return probability


def _shares_of_products(trials: Trials, levels: Sequence[FloatArray]) -> FloatArray:
    """Compute `_shares_at` for all combinations of levels, (L,); the last lambda varies fastest.

    ``exp(sum_f lambda_f s_f)`` is a product of each feature's factor at one of its levels. This
    takes one exponential per level, and one matrix product for all combinations.
    """
    count, _, candidates = trials.margins.shape
    probability = np.empty((count, int(np.prod([multipliers.size for multipliers in levels]))))
    vanished = np.zeros(probability.shape[1], np.bool_)
    for batch in _chunks(
        count, candidates * max(probability.shape[1] // levels[-1].size, levels[0].size)
    ):
        margins = trials.margins[batch].astype(np.float64)
        top, mass = np.zeros((len(margins), 1)), np.ones((len(margins), 1, candidates))
        for f, multipliers in enumerate(levels):
            best = multipliers * margins[:, f].max(axis=1, keepdims=True)
            factor = np.exp(multipliers[:, None] * margins[:, f, None] - best[:, :, None])
            top = (top[:, :, None] + best[:, None]).reshape(len(margins), -1)
            if f + 1 < len(levels):
                mass = (mass[:, :, None] * factor[:, None]).reshape(len(margins), -1, candidates)
        total = (mass @ factor.transpose(0, 2, 1)).reshape(len(margins), -1)
        vanished |= (total < _VANISHED).any(axis=0)
        probability[batch] = np.exp(-top) / np.maximum(total, _VANISHED)
    if vanished.any():  # features that contradict each other by hundreds of nats
        mesh = np.meshgrid(*levels, indexing="ij")
        points = np.stack([multipliers.ravel()[vanished] for multipliers in mesh], axis=1)
        probability[:, vanished] = _shares_at(trials, points).T
    return probability.T


class _Shares:
    """The true speaker's softmax in every trial by many weights, to tabulate losses."""

    def __init__(self, trials: Trials, probability: FloatArray) -> None:
        self._candidates = trials.margins.shape[2]
        # per round, one trial of each speaker, with the speakers of most trials first
        self._present, index, counts = np.unique(
            trials.speaker, return_inverse=True, return_counts=True
        )
        order = np.argsort(index, kind="stable")
        first = np.cumsum(counts) - counts
        ranking = np.argsort(-counts, kind="stable")
        self._present, self._counts = self._present[ranking], counts[ranking]
        self._rounds = [
            probability[:, order[first[ranking[: int((counts > k).sum())]] + k]].T
            for k in range(int(counts.max()))
        ]

    def table(self, speakers: int, lowest_floor: float) -> tuple[FloatArray, FloatArray]:
        """Tabulate losses with floors from the lowest to 1: floors (E,) and losses (S, P, E)."""
        floors = np.geomspace(lowest_floor, 1.0, _FLOORS)
        people, points = self._rounds[0].shape
        loss = np.zeros((speakers, points, floors.size))
        # p = (1 - e) (q + e / (1 - e) / N), and 1 / N at e = 1
        complement = 1.0 - floors
        uniform = (floors[:-1] / complement[:-1])[:, None] / self._candidates
        constants = (
            -np.append(np.log(complement[:-1]), -np.log(self._candidates)) * self._counts[:, None]
        )
        for batch in _chunks(points, floors.size * people):
            # one logarithm for several trials: the floor keeps their product from underflow
            product = np.ones((floors.size, self._rounds[0][:, batch].size))
            nats = np.zeros_like(product)
            for k, probability in enumerate(self._rounds, 1):
                p = probability[:, batch].reshape(1, -1) + uniform
                product[:-1, : p.shape[1]] *= p
                if k % _AT_ONCE == 0 or k == len(self._rounds):
                    nats -= np.log(product, out=product)
                    product[:] = 1.0
            losses = nats.reshape(floors.size, people, -1).transpose(1, 2, 0)
            loss[self._present, batch] = losses + constants[:, None]
        return floors, loss


_AT_ONCE = 16  # probabilities per product, which cannot underflow: each is at least 1e-18


class _Losses:
    def __init__(self, trials: Trials) -> None:
        count, features, self._candidates = trials.margins.shape
        # candidates first: reductions then run along the trials
        self._margins = np.ascontiguousarray(trials.margins.transpose(1, 2, 0), np.float64)
        self._pairs = list(zip(*np.triu_indices(features), strict=True))
        self._weights = np.full(count, 1.0 / count)

    def evaluate_at(
        self, weights: FloatArray, floor: float
    ) -> tuple[float, FloatArray, FloatArray]:
        """Compute loss, gradient and Hessian by lambda, (F,), and e: scalar, (F + 1,), square."""
        size = len(weights)
        margins = self._margins.reshape(size, -1)
        evidence = (weights @ margins).reshape(self._margins.shape[1:])
        best = evidence.max(axis=0)
        evidence -= best
        np.exp(evidence, out=evidence)
        mass = evidence.sum(axis=0)
        probability = np.exp(-best) / mass
        p = (1.0 - floor) * probability + floor / self._candidates
        # means of (s_fj - s_fw), and of their products, under the posterior
        products = evidence * self._margins
        means = products.sum(axis=1) / mass
        gradients = np.empty((size + 1, mass.size))
        gradients[:size] = (floor - 1.0) * probability * means
        gradients[size] = 1.0 / self._candidates - probability
        gradients /= p
        hessian = (gradients * self._weights) @ gradients.T
        curvatures = self._weights * probability / p
        for f, g in self._pairs:
            second_moment = np.einsum("jn,jn->n", products[f], self._margins[g]) / mass
            hessian[f, g] += (1.0 - floor) * (
                curvatures @ (second_moment - 2.0 * means[f] * means[g])
            )
            hessian[g, f] = hessian[f, g]
        cross_term = -(means @ curvatures)
        hessian[:size, size] += cross_term
        hessian[size, :size] += cross_term
        return -float(self._weights @ np.log(p)), -(gradients @ self._weights), hessian


_FARTHEST = 12.0  # maximum distance in log lambda from the start of a descent
_LONGEST, _MOST_STEPS, _HALVED = 2.0, 100, 40
_ROUNDING = 1e-14
_FLAT = 1e-9
"""Slope, in nats, that counts as 0, because separable classes have no finite optimum."""


def _polish(
    trials: Trials, start: FloatArray, floor: float, prior: FloatArray, anchor: Anchor | None = None
) -> LogitFit:
    """Descend from the best grid point, in log lambda and log e, by Newton's method."""
    speakers = trials.speakers
    losses, pull = _Losses(trials), prior / speakers
    origin = np.log(np.maximum(start, 1e-4 * _scale(trials)))
    low = np.append(origin - _FARTHEST, np.log(smallest_floor(speakers)))
    high = np.append(origin + _FARTHEST, 0.0)

    def objective(x: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        values = np.exp(x)
        loss, gradient, hessian = losses.evaluate_at(values[:-1], float(values[-1]))
        gradient[:-1] += pull
        gradient *= values
        hessian = hessian * values[:, None] * values + np.diag(gradient)
        if anchor is not None:
            cost, anchor_gradient, anchor_hessian = anchor.bends(values[:-1], float(values[-1]))
            loss += cost / speakers
            gradient += anchor_gradient / speakers
            hessian += anchor_hessian / speakers
        return loss + float(pull @ values[:-1]), gradient, hessian

    x = np.clip(np.append(origin, np.log(floor)), low, high)
    loss, gradient, hessian = objective(x)
    for _ in range(_MOST_STEPS):
        free = ~(((x <= low) & (gradient > 0)) | ((x >= high) & (gradient < 0)))
        step = np.zeros(x.size)
        step[free] = _downhill(gradient[free], hessian[np.ix_(free, free)])
        if not step.any():
            break
        # a lambda that heads for 0 jumps to its bound: steps in its logarithm would take long
        vanishes = (
            free[:-1] & (gradient[:-1] > _FLAT) & (np.diag(hessian)[:-1] <= 2.0 * gradient[:-1])
        )
        step[:-1][vanishes] = low[:-1][vanishes] - x[:-1][vanishes]
        for halving in range(_HALVED):
            trial = np.clip(x + step * 0.5**halving, low, high)
            candidate = objective(trial)
            if candidate[0] <= loss + _ROUNDING * max(abs(loss), 1.0):
                break
        else:
            break
        x, (loss, gradient, hessian) = trial, candidate
    weights = np.exp(x[:-1])
    weights[(prior > 0.0) & (weights * prior < _NO_SAY)] = 0.0
    return LogitFit(weights, float(np.exp(x[-1])), loss)


def _downhill(gradient: FloatArray, hessian: FloatArray) -> FloatArray:
    """Compute Newton's step where the loss bends upwards, its mirror image elsewhere."""
    curvatures, axes = np.linalg.eigh(hessian)
    curvatures = np.maximum(np.abs(curvatures), 1e-12 * np.abs(curvatures).max(initial=1e-300))
    along = axes.T @ gradient
    step = -axes @ np.where(np.abs(along) > _FLAT, along / curvatures, 0.0)
    return np.asarray(step * min(1.0, _LONGEST / max(float(np.abs(step).max(initial=0.0)), 1e-300)))


def prior_of(trials: Trials, alone: Sequence[LogitFit] | None = None) -> FloatArray:
    """Compute the penalty per unit of each lambda, shape (F,), in nats of one speaker.

    The best single feature has no penalty. Each other feature may be redundant and costs one nat at
    its single-feature lambda. ``alone`` are the single-feature fits, if known.
    """
    count = trials.margins.shape[1]
    if count == 1:
        return np.zeros(1)
    if alone is None:
        alone = [fit(trials.select([f])) for f in range(count)]
    prior = 1.0 / np.maximum([float(single.weights[0]) for single in alone], 1e-12)
    prior[int(np.argmin([single.loss for single in alone]))] = 0.0
    return np.asarray(prior)


class FitStarts:
    """Losses of trials along lines of lambda: starts of fits with any prior and anchor."""

    def __init__(self, trials: Trials, alone: Sequence[FitStarts] | None = None) -> None:
        scale = _scale(trials)  # one line for all features together and, if several, for each
        directions = np.vstack(
            [np.ones(scale.size), np.eye(scale.size)[: -1 if scale.size < 2 else None]]
        )
        self.lines = np.asarray(_START_STEPS[None, :, None] * (directions * scale)[:, None])
        self.points = self.lines.reshape(-1, self.lines.shape[2])
        if alone is None:
            self.share = _shares_at(trials, self.points)
        else:
            joint = _shares_at(trials, self.lines[0])
            self.share = np.concatenate([joint, *(starts.share for starts in alone)])
        self.floors, loss = _Shares(trials, self.share).table(
            int(trials.speaker.max()) + 1, smallest_floor(trials.speakers)
        )
        self.loss = loss.sum(axis=0)


class SingleFeatureFits:
    """Fits of each feature of trials alone, shared by the fits of every set of features."""

    def __init__(self, trials: Trials) -> None:
        self._trials = trials
        self._fits: dict[int, tuple[FitStarts, LogitFit]] = {}  # no lru_cache: it makes a cycle

    def find_starts(self, axis: Sequence[int]) -> tuple[FitStarts, FloatArray]:
        """Return starts of fits of these features, and their `prior_of`."""
        for feature in axis:
            if feature not in self._fits:
                single = self._trials.select([feature])
                self._fits[feature] = (begin := FitStarts(single)), fit(single, starts=begin)
        starts, fits = zip(*(self._fits[feature] for feature in axis), strict=True)
        if len(axis) == 1:
            return starts[0], np.zeros(1)
        trials = self._trials.select(axis)
        return FitStarts(trials, starts), prior_of(trials, fits)


def fit(
    trials: Trials,
    prior: FloatArray | None = None,
    anchor: Anchor | None = None,
    starts: FitStarts | None = None,
) -> LogitFit:
    """Fit lambda and e on all trials.

    `prior` is from ``prior_of``, and `starts` are from the same trials. If the scores are
    uninformative or misleading, the floor goes to 1, or lambda to almost 0. No bits are then shown.
    """
    table = FitStarts(trials) if starts is None else starts
    lines, points = table.lines, table.points
    prior = np.zeros(lines.shape[2]) if prior is None else prior
    total = table.loss + np.asarray(points @ prior * trials.per_speaker)[:, None]
    if anchor is not None:
        total += anchor.rank_model.cost(points, table.floors)[0] * trials.per_speaker
    optima = []
    # the loss has local optima, such as one feature alone: descend from the best of every line
    for line, loss in zip(lines, np.split(total, len(lines)), strict=True):
        point, floor = divmod(int(loss.argmin()), table.floors.size)
        optima.append(_polish(trials, line[point], float(table.floors[floor]), prior, anchor))
    return min(optima, key=lambda optimum: optimum.loss)


class _Sums(NamedTuple):
    """Losses (K, P) of parts on a grid of P points, and counts of each part, (B, K)."""

    often: FloatArray
    losses: FloatArray
    shape: tuple[int, ...]

    def least(self) -> IntArray:
        """Find the grid point of each replicate's least loss: shape (B,)."""
        best, minimum = np.zeros(len(self.often), np.intp), np.full(len(self.often), np.inf)
        for batch in _chunks(self.losses.shape[1], len(self.often)):
            total = self.often @ self.losses[:, batch]
            index = total.argmin(axis=1)
            losses = total[np.arange(len(total)), index]
            lower = losses < minimum
            best[lower], minimum[lower] = index[lower] + batch.start, losses[lower]
        return best

    def evaluate_at(self, index: IntArray) -> FloatArray:
        """Compute each replicate's loss at its own grid point, (d, B): shape (B,)."""
        column = np.ravel_multi_index(tuple(index), self.shape)
        return np.asarray(np.einsum("bk,kb->b", self.often, self.losses[:, column]))


def _offsets(total: _Sums, index: IntArray) -> FloatArray:
    """Find the minimum of the paraboloid through a grid point's neighbours, in steps.

    ``total`` has the losses, and ``index`` the best grid point, (d, B). The result, (d, B), is 0
    along axes with the best point at an end.
    """
    axes, replicates = index.shape
    last = np.array(total.shape)[:, None] - 1
    inside = (index > 0) & (index < last)
    unit = np.eye(axes, dtype=index.dtype)[:, :, None]

    def loss_at(move: IntArray) -> FloatArray:
        return total.evaluate_at(np.clip(index + move, 0, last))

    gradient, hessian = np.zeros((replicates, axes)), np.zeros((replicates, axes, axes))
    centre = loss_at(np.zeros_like(unit[0]))
    for a in range(axes):
        up, down = loss_at(unit[a]), loss_at(-unit[a])
        gradient[:, a] = 0.5 * (up - down)
        hessian[:, a, a] = up - 2.0 * centre + down
        for b in range(a):
            cross = loss_at(unit[a] + unit[b]) + loss_at(-unit[a] - unit[b])
            cross -= loss_at(unit[a] - unit[b]) + loss_at(unit[b] - unit[a])
            hessian[:, a, b] = hessian[:, b, a] = 0.25 * cross
    free = inside.T & (np.einsum("baa->ba", hessian) > 0)
    gradient *= free
    # in units of each axis's curvature; axes that are not free do not move
    size = np.sqrt(np.where(free, np.einsum("baa->ba", hessian), 1.0))
    pairs = free[:, :, None] & free[:, None, :]
    shape = np.where(pairs, hessian / (size[:, :, None] * size[:, None, :]), np.eye(axes))
    # without a minimum in between, each axis is solved by itself
    saddle = np.linalg.eigvalsh(shape)[:, 0] < _FLATTEST
    shape[saddle] = np.eye(axes)
    offset = -np.linalg.solve(shape, (gradient / size)[:, :, None])[:, :, 0] / size
    return np.asarray(np.clip(offset, -1.0, 1.0).T)


class NearbyLosses:
    """Losses of trials around lambda of a fit, shape (F,), shared by its refits."""

    def __init__(self, trials: Trials, centre: FloatArray) -> None:
        reach, steps = {1: (6.0, 33), 2: (6.0, 15), 3: (4.0, 9)}.get(centre.size, (3.0, 5))
        self.multipliers = np.geomspace(1.0 / reach, reach, steps)
        mesh = np.meshgrid(*[self.multipliers] * centre.size, indexing="ij")
        self.grid = np.stack([m.ravel() for m in mesh], axis=1) * centre
        probability = _shares_of_products(
            trials, [self.multipliers * coefficient for coefficient in centre]
        )
        self.shares = _Shares(trials, probability)


def fit_replicates(
    trials: Trials,
    centre: FloatArray,
    weights: FloatArray,
    prior: FloatArray | None = None,
    lowest_floor: float | None = None,
    anchor: Anchor | None = None,
    around: NearbyLosses | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Refit lambda (B, F) and e (B,) under resampled speakers, weights (B, S).

    One table of every speaker's loss around the full fit's lambda serves all replicates. A
    paraboloid through the best grid point and its neighbours interpolates the minimum. Prior and
    anchor are those of the full fit. The anchor has the same number of resamples, or none.
    """
    if lowest_floor is None:
        lowest_floor = smallest_floor(trials.speakers)
    around = NearbyLosses(trials, centre) if around is None else around
    grid, multipliers = around.grid, around.multipliers
    speakers = weights.shape[1]
    grid_floors, loss = around.shares.table(speakers, lowest_floor)
    shape = (multipliers.size,) * centre.size + (grid_floors.size,)
    # row 0 has each speaker once, with a known optimum
    weights = np.concatenate([np.ones((1, speakers)), weights])
    # a replicate's loss sums those of its speakers, of the prior and of the anchor
    parts, counts = [loss.reshape(speakers, -1)], [weights]
    unit, per_speaker = np.ones((len(weights), 1)), trials.per_speaker
    if prior is not None:
        cost = np.repeat(grid @ prior, grid_floors.size)
        parts.append(cost[None] * per_speaker)
        counts.append(unit)
    if anchor is not None:
        squares, points, centres = anchor.parts(grid, grid_floors)
        parts += [squares[None] * per_speaker, points * per_speaker]
        counts += [unit, np.broadcast_to(centres, (len(weights), points.shape[0]))]
    sums = _Sums(np.concatenate(counts, axis=1), np.concatenate(parts), shape)
    index = np.stack(np.unravel_index(sums.least(), shape))
    position = index + _offsets(sums, index)
    # the paraboloid errs because losses are skewed: row 0, with its known optimum, shows the error
    error = position[:-1, 0] - (multipliers.size - 1) / 2
    position[:-1] -= np.where(np.abs(error) < 1.0, error, 0.0)[:, None]
    step = np.log(multipliers[1] / multipliers[0])
    coefficients = centre * multipliers[0] * np.exp(step * position[:-1, 1:].T)
    floors = lowest_floor * np.exp(np.log(grid_floors[1] / grid_floors[0]) * position[-1, 1:])
    return coefficients, np.clip(floors, lowest_floor, 1.0)


def fit_held_out(
    trials: Trials,
    centre: FloatArray,
    speakers: int,
    prior: FloatArray | None = None,
    anchor: Anchor | None = None,
    around: NearbyLosses | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Fit lambda (S, F) and e (S,) for every speaker without that speaker: cross-fitting.

    Refits search around lambda of the full fit, which includes the speaker. With at most 12
    speakers, when one matters, they start from scratch.
    """
    anchor = None if anchor is None else anchor.rank_model
    if trials.speakers > _FEW_SPEAKERS:
        lowest = smallest_floor(trials.speakers - 1)
        draws = 1.0 - np.eye(speakers)
        return fit_replicates(trials, centre, draws, prior, lowest, anchor, around)
    fits = []
    for speaker in range(speakers):
        is_other = trials.speaker != speaker
        fits.append(fit(Trials(trials.margins[is_other], trials.speaker[is_other]), prior, anchor))
    return np.stack([refit.weights for refit in fits]), np.array([refit.floor for refit in fits])


def held_out_bits(trials: Trials, weights: FloatArray, floor: FloatArray) -> FloatArray:
    """Compute mean local bits (S,) under `fit_held_out`; at most log2 N, negative if misled."""
    candidates = trials.margins.shape[2]
    bits = []
    for speaker in np.unique(trials.speaker):
        of_speaker = trials.speaker == speaker
        probability = Trials(trials.margins[of_speaker], trials.speaker[of_speaker]).true_share(
            weights[speaker]
        )
        loss = _loss(probability, float(floor[speaker]), candidates).mean()
        bits.append((np.log(candidates) - loss) / np.log(2.0))
    return np.array(bits)
