"""Fits temperature, weights and floor of the score posterior, by conditional logit.

Source: docs/method.md section 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from monitor.types import FloatArray, IntArray

# ------------------------------------------------------------------------------------------ anchor
# A prior on the weights and the floor of a posterior, from a rank model of other speakers.
#
# A fit on few speakers can be far off, and what it then claims is far off too. Another model,
# learnt on other speakers, says where to look: as if m further speakers had been heard whose trials
# look like ours and whose true speakers are drawn from what the other model says (a catalytic
# prior: Huang, Stein, Rubin and Kou, "Catalytic prior distributions with application to generalized
# linear models", PNAS 117, 2020). Their mean loss is, to second order, a paraboloid around the
# other model whose bend is the Fisher information of one trial. Against S speakers it counts m / (S
# + m): it fades.


@dataclass(frozen=True, slots=True)
class Anchor:
    """A quadratic penalty around another rank model's lambda and log e.

    Attributes:
        centre: of that rank model, and of each of its resamples if any, shape (1 + B, F + 1).
        precision: its bend, nats of one speaker's mean loss, shape (F + 1, F + 1).
    """

    centre: FloatArray
    precision: FloatArray

    def worth(self, speakers: float) -> Anchor:
        """The same in the weight of so many speakers."""
        return Anchor(self.centre, self.precision * speakers)

    @property
    def rank_model(self) -> Anchor:
        """The rank model without its resamples."""
        return Anchor(self.centre[:1], self.precision)

    def cost(self, weights: FloatArray, floors: FloatArray) -> FloatArray:
        """Nats at every point: weights of shape (P, F), floors (E,); shape (1 + B, P, E)."""
        own, pulled, theirs = self.parts(weights, floors)
        cost = own + theirs @ pulled
        return np.asarray(cost.reshape(-1, len(weights), floors.size))

    def parts(
        self, weights: FloatArray, floors: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """``cost`` in parts: ``own + theirs @ pulled``, (P E,), (F + 2, P E), (1 + B, F + 2)."""
        points = np.repeat(weights, floors.size, axis=0)
        x = np.column_stack([points, np.tile(np.log(floors), len(weights))])
        own = 0.5 * ((x @ self.precision) * x).sum(axis=1)
        pulled = self.centre @ self.precision
        theirs = 0.5 * (pulled * self.centre).sum(axis=1)
        return own, np.column_stack([np.ones(len(x)), x]).T, np.column_stack([theirs, -pulled])

    def bends(self, weights: FloatArray, floor: float) -> tuple[float, FloatArray, FloatArray]:
        """The model's cost at one point, and its slope and bend by log lambda and log e.

        Weights have shape (F,).
        """
        by_log = np.append(weights, 1.0)
        away = np.append(weights, np.log(floor)) - self.centre[0]
        slope = (self.precision @ away) * by_log
        bend = self.precision * by_log[:, None] * by_log
        bend[np.diag_indices(len(weights))] += slope[:-1]
        return float(0.5 * away @ (self.precision @ away)), slope, bend


def information(behind: FloatArray, weights: FloatArray, floor: float) -> FloatArray:
    """Fisher information of one trial on lambda and log e, at a model that is taken to be true.

    Of raw scores (n, F, N) against any one of each trial's candidates: the mean over the trials of
    ``sum_j p_j g_j g_j'``, shape (F + 1, F + 1), with g the gradient of ``log p_j``,
    ``p = (1 - e) softmax(sum_f lambda_f s_f) + e / N``.

    Example:
        >>> information(np.array([[[0.0, 1.0]]]), np.array([0.0]), 1e-9).round(3)
        array([[0.25, 0.  ],
               [0.  , 0.  ]])
    """
    candidates = behind.shape[2]
    q = softmax(np.einsum("f,nfj->nj", weights, behind), axis=1)
    p = (1.0 - floor) * q + floor / candidates
    ahead = behind - np.einsum("nj,nfj->nf", q, behind)[:, :, None]
    by_weight = ahead * ((1.0 - floor) * q / p)[:, None]
    by_floor = floor * (1.0 / candidates - q) / p
    slopes = np.concatenate([by_weight, by_floor[:, None]], axis=1)
    return np.asarray(np.einsum("nj,nfj,ngj->fg", p, slopes, slopes, optimize=True) / len(behind))


# ------------------------------------------------------------------------------------------- logit
# Tempering and floor of the score posterior, by conditional logit (docs/method.md section 5).
#
# For a calibration trial with raw scores ``s_fj`` and true speaker w,
# ``p = (1 - e) / sum_j exp(sum_f lambda_f (s_fj - s_fw)) + e / N``; the fit minimises the mean of
# ``-log p``, which maximises exactly what the monitor shows: mean local bits are log2 N minus that
# loss in bits. The floor e keeps a reading from claiming more than the calibration speakers can
# back.
#
# Features overlap, and with some twenty speakers every lambda that is learnt costs a little on
# those who were not there. So the best single feature is free, and every other one must earn its
# lambda against an exponential prior that weighs as much as one speaker (``prior_of``).

_STEPS = 33
_REACH = 256.0
_START_STEPS = np.geomspace(1.0 / _REACH, _REACH, _STEPS)
_FLOORS = 24
_FEW_SPEAKERS = 12
_FLATTEST = 0.02
_NO_SAY = 1e-3
"""A lambda below this share of what the feature would get alone is none."""


@dataclass(frozen=True, slots=True)
class Trials:
    """Calibration trials, seen from the true speaker.

    Attributes:
        behind: shape (n, F, N), raw score of every template minus the true speaker's.
        speaker: shape (n,), which calibration speaker each trial is of, 0..S-1.
    """

    behind: FloatArray
    speaker: IntArray

    def of(self, features: Sequence[int]) -> Trials:
        """The same trials with some of the features."""
        return Trials(self.behind[:, list(features)], self.speaker)

    @property
    def speakers(self) -> int:
        """S, the calibration speakers behind the trials."""
        return int(np.unique(self.speaker).size)

    @property
    def per_speaker(self) -> float:
        """Trials of a speaker, on average."""
        return self.speaker.size / self.speakers

    def posterior(self, weights: FloatArray, floor: FloatArray) -> FloatArray:
        """Each candidate's probability (n, N), under lambda (n, F) and e (n,) of each trial."""
        evidence = np.einsum("nf,nfj->nj", weights, self.behind)
        evidence -= evidence.max(axis=1, keepdims=True)
        np.exp(evidence, out=evidence)
        evidence *= ((1.0 - floor) / evidence.sum(axis=1))[:, None]
        evidence += (floor / evidence.shape[1])[:, None]
        return np.asarray(evidence)

    def true_share(self, weights: FloatArray) -> FloatArray:
        """The true speaker's softmax for weights, shape (F,): shape (n,), in (0, 1]."""
        evidence = np.einsum("f,nfj->nj", weights, self.behind)
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
    """The floor e may not fall below ``1 / (2 (S + 1))`` with S calibration speakers."""
    return 1.0 / (2.0 * (speakers + 1.0))


def _loss(share: FloatArray, floor: FloatArray | float, candidates: int) -> FloatArray:
    return np.asarray(-np.log((1.0 - floor) * share + floor / candidates))


def _scale(trials: Trials) -> FloatArray:
    """The weight at which a feature's typical score difference is one nat, shape (F,)."""
    spread = np.sqrt((trials.behind**2).mean(axis=(0, 2)))
    return np.asarray(np.where(spread > 0, 1.0 / np.maximum(spread, 1e-300), 1.0))


_TOGETHER = 1 << 17
"""Numbers that are worked on at once: what a processor keeps at hand."""
_VANISHED = 1e-200
"""Of a product of exponentials: below it digits are lost."""


def _chunks(count: int, each: int) -> Iterator[slice]:
    step = max(_TOGETHER // each, 1)
    return (slice(start, start + step) for start in range(0, count, step))


def _shares_at(trials: Trials, points: FloatArray) -> FloatArray:
    """The true speaker's softmax in every trial, by weights (P, F): shape (P, n)."""
    count, features, candidates = trials.behind.shape
    # candidates first: reductions then run along the trials
    behind = np.ascontiguousarray(trials.behind.transpose(1, 2, 0), np.float64)
    behind = behind.reshape(features, -1)
    share = np.empty((len(points), count))
    for part in _chunks(len(points), behind.shape[1]):
        evidence = points[part] @ behind
        evidence = evidence.reshape(-1, candidates, count)
        best = evidence.max(axis=1)
        evidence -= best[:, None]
        mass = np.exp(evidence, out=evidence).sum(axis=1)
        share[part] = np.exp(-best - np.log(mass))
    return share


def _shares_of_products(trials: Trials, levels: Sequence[FloatArray]) -> FloatArray:
    """`_shares_at` every combination of levels, (L,), of each lambda, the last runs fastest.

    ``exp(sum_f lambda_f s_f)`` is a product of what each feature has at each of its levels: as many
    exponentials as there are levels, and one product of matrices for all combinations.
    """
    count, _, candidates = trials.behind.shape
    share = np.empty((count, int(np.prod([each.size for each in levels]))))
    lost = np.zeros(share.shape[1], np.bool_)
    for part in _chunks(count, candidates * max(share.shape[1] // levels[-1].size, levels[0].size)):
        behind = trials.behind[part].astype(np.float64)
        top, mass = np.zeros((len(behind), 1)), np.ones((len(behind), 1, candidates))
        for f, each in enumerate(levels):
            best = each * behind[:, f].max(axis=1, keepdims=True)
            alone = np.exp(each[:, None] * behind[:, f, None] - best[:, :, None])
            top = (top[:, :, None] + best[:, None]).reshape(len(behind), -1)
            if f + 1 < len(levels):
                mass = (mass[:, :, None] * alone[:, None]).reshape(len(behind), -1, candidates)
        total = (mass @ alone.transpose(0, 2, 1)).reshape(len(behind), -1)
        lost |= (total < _VANISHED).any(axis=0)
        share[part] = np.exp(-top) / np.maximum(total, _VANISHED)
    if lost.any():  # features that contradict each other by hundreds of nats
        mesh = np.meshgrid(*levels, indexing="ij")
        points = np.stack([each.ravel()[lost] for each in mesh], axis=1)
        share[:, lost] = _shares_at(trials, points).T
    return share.T


class _Shares:
    """The true speaker's softmax in every trial, by many weights: of it tables of losses are made.

    Args:
        trials: n of them.
        share: shape (P, n).
    """

    def __init__(self, trials: Trials, share: FloatArray) -> None:
        self._candidates = trials.behind.shape[2]
        # trial by trial of each speaker, those of most trials first
        self._present, place, counts = np.unique(
            trials.speaker, return_inverse=True, return_counts=True
        )
        order = np.argsort(place, kind="stable")
        first = np.cumsum(counts) - counts
        ranked = np.argsort(-counts, kind="stable")
        self._present, self._counts = self._present[ranked], counts[ranked]
        self._rounds = [
            share[:, order[first[ranked[: int((counts > k).sum())]] + k]].T
            for k in range(int(counts.max()))
        ]

    def table(self, speakers: int, lowest_floor: float) -> _Table:
        """Losses with floors from the lowest to 1."""
        floors = np.geomspace(lowest_floor, 1.0, _FLOORS)
        people, points = self._rounds[0].shape
        loss = np.zeros((speakers, points, floors.size))
        # p = (1 - e) (q + e / (1 - e) / N), and 1 / N at e = 1
        kept = 1.0 - floors
        spread = (floors[:-1] / kept[:-1])[:, None] / self._candidates
        lost = -np.append(np.log(kept[:-1]), -np.log(self._candidates)) * self._counts[:, None]
        for part in _chunks(points, floors.size * people):
            # of several trials one logarithm: no probability is below the floor's
            product = np.ones((floors.size, self._rounds[0][:, part].size))
            nats = np.zeros_like(product)
            for k, share in enumerate(self._rounds, 1):
                p = share[:, part].reshape(1, -1) + spread
                product[:-1, : p.shape[1]] *= p
                if k % _AT_ONCE == 0 or k == len(self._rounds):
                    nats -= np.log(product, out=product)
                    product[:] = 1.0
            each = nats.reshape(floors.size, people, -1).transpose(1, 2, 0)
            loss[self._present, part] = each + lost[:, None]
        return _Table(floors, loss)


_AT_ONCE = 16
"""Probabilities of which a product does not vanish: each is 1e-18 at least."""


class _Table(NamedTuple):
    """Every speaker's losses, summed over trials, on a grid of floors and weights, (S, P, E)."""

    floors: FloatArray
    loss: FloatArray


def _start_lines(trials: Trials) -> FloatArray:
    """All features scaled together, and each alone: shape (lines, steps, F)."""
    scale = _scale(trials)
    directions = np.ones((1, scale.size))
    if scale.size > 1:
        directions = np.concatenate([directions, np.eye(scale.size)])
    return np.asarray(_START_STEPS[None, :, None] * (directions * scale)[:, None])


class _Losses:
    """Mean of -log p of some trials, with its derivatives."""

    def __init__(self, trials: Trials, row_weights: FloatArray | None = None) -> None:
        count, features, self._candidates = trials.behind.shape
        # candidates first: reductions then run along the trials
        self._behind = np.ascontiguousarray(trials.behind.transpose(1, 2, 0), np.float64)
        self._pairs = list(zip(*np.triu_indices(features), strict=True))
        self._weights = np.full(count, 1.0 / count) if row_weights is None else row_weights

    def at(self, weights: FloatArray, floor: float) -> tuple[float, FloatArray, FloatArray]:
        """The loss, its slope and its bend by lambda, (F,), and e: scalar, (F + 1,), square."""
        size = len(weights)
        behind = self._behind.reshape(size, -1)
        evidence = (weights @ behind).reshape(self._behind.shape[1:])
        best = evidence.max(axis=0)
        evidence -= best
        np.exp(evidence, out=evidence)
        mass = evidence.sum(axis=0)
        share = np.exp(-best) / mass
        p = (1.0 - floor) * share + floor / self._candidates
        # means of (s_fj - s_fw), and of their products, under the posterior
        products = [evidence * each for each in self._behind]
        means = np.stack([each.sum(axis=0) for each in products]) / mass
        slopes = np.empty((size + 1, mass.size))
        slopes[:size] = (floor - 1.0) * share * means
        slopes[size] = 1.0 / self._candidates - share
        slopes /= p
        each = self._weights
        bend = (slopes * each) @ slopes.T
        bent = each * share / p
        for f, g in self._pairs:
            both = np.einsum("jn,jn->n", products[f], self._behind[g]) / mass
            bend[f, g] += (1.0 - floor) * (bent @ (both - 2.0 * means[f] * means[g]))
            bend[g, f] = bend[f, g]
        across = -(means @ bent)
        bend[:size, size] += across
        bend[size, :size] += across
        return -float(each @ np.log(p)), -(slopes @ each), bend


_FARTHEST = 12.0
"""Of the logarithm of a lambda, from where a descent begins."""
_LONGEST, _MOST_STEPS, _HALVED = 2.0, 100, 40
_ROUNDING = 1e-14
_FLAT = 1e-9
"""Slope, nats, along which nothing is gained: classes that separate want lambda without end."""


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
        at = np.exp(x)
        loss, slope, bend = losses.at(at[:-1], float(at[-1]))
        slope[:-1] += pull
        slope *= at
        bend = bend * at[:, None] * at + np.diag(slope)
        if anchor is not None:
            cost, pulled, stiff = anchor.bends(at[:-1], float(at[-1]))
            loss += cost / speakers
            slope += pulled / speakers
            bend += stiff / speakers
        return loss + float(pull @ at[:-1]), slope, bend

    x = np.clip(np.append(origin, np.log(floor)), low, high)
    loss, slope, bend = objective(x)
    for _ in range(_MOST_STEPS):
        free = ~(((x <= low) & (slope > 0)) | ((x >= high) & (slope < 0)))
        step = np.zeros(x.size)
        step[free] = _downhill(slope[free], bend[np.ix_(free, free)])
        if not step.any():
            break
        # towards 0, where the loss still falls as it is reached: in the logarithm that takes long
        vanishes = free[:-1] & (slope[:-1] > _FLAT) & (np.diag(bend)[:-1] <= 2.0 * slope[:-1])
        step[:-1][vanishes] = low[:-1][vanishes] - x[:-1][vanishes]
        for halved in range(_HALVED):
            tried = np.clip(x + step * 0.5**halved, low, high)
            found = objective(tried)
            if found[0] <= loss + _ROUNDING * max(abs(loss), 1.0):
                break
        else:
            break
        x, (loss, slope, bend) = tried, found
    weights = np.exp(x[:-1])
    weights[(prior > 0.0) & (weights * prior < _NO_SAY)] = 0.0
    return LogitFit(weights, float(np.exp(x[-1])), loss)


def _downhill(slope: FloatArray, bend: FloatArray) -> FloatArray:
    """Newton's step where the loss bends upwards, its mirror image where it bends downwards."""
    bends, axes = np.linalg.eigh(bend)
    bends = np.maximum(np.abs(bends), 1e-12 * np.abs(bends).max(initial=1e-300))
    along = axes.T @ slope
    step = -axes @ np.where(np.abs(along) > _FLAT, along / bends, 0.0)
    return np.asarray(step * min(1.0, _LONGEST / max(float(np.abs(step).max(initial=0.0)), 1e-300)))


def prior_of(trials: Trials, alone: Sequence[LogitFit] | None = None) -> FloatArray:
    """The penalty on each lambda, shape (F,): nats of one speaker for each unit of it.

    Nothing for the feature that does best alone; of the others, whose information may be the same,
    one nat for the lambda that each would get alone. ``alone`` are the fits of each by itself,
    where they are known.
    """
    count = trials.behind.shape[1]
    if count == 1:
        return np.zeros(1)
    if alone is None:
        alone = [fit(trials.of([f])) for f in range(count)]
    prior = 1.0 / np.maximum([float(each.weights[0]) for each in alone], 1e-12)
    prior[int(np.argmin([each.loss for each in alone]))] = 0.0
    return np.asarray(prior)


class FitStarts:
    """Losses of some trials far and wide: where fits begin, whatever prior and anchor they have.

    ``alone`` are those of each feature by itself, where they are known.
    """

    def __init__(self, trials: Trials, alone: Sequence[FitStarts] | None = None) -> None:
        self.lines = _start_lines(trials)
        self.points = self.lines.reshape(-1, self.lines.shape[2])
        if alone is None:
            self.share = _shares_at(trials, self.points)
        else:
            together = _shares_at(trials, self.lines[0])
            self.share = np.concatenate([together, *(each.share for each in alone)])
        table = _Shares(trials, self.share).table(
            int(trials.speaker.max()) + 1, smallest_floor(trials.speakers)
        )
        self.floors, self.loss = table.floors, table.loss.sum(axis=0)


class SingleFeatureFits:
    """What each feature of some trials says alone: behind the fits of every set of them."""

    def __init__(self, trials: Trials) -> None:
        self._trials = trials
        self._known: dict[int, tuple[FitStarts, LogitFit]] = {}

    def of(self, axis: Sequence[int]) -> tuple[FitStarts, FloatArray]:
        """Where fits of these features begin, and their `prior_of`."""
        for f in axis:
            if f not in self._known:
                single = self._trials.of([f])
                there = FitStarts(single)
                self._known[f] = there, fit(single, starts=there)
        each = [self._known[f] for f in axis]
        if len(axis) == 1:
            return each[0][0], np.zeros(1)
        trials = self._trials.of(axis)
        starts = FitStarts(trials, [starts for starts, _ in each])
        return starts, prior_of(trials, [found for _, found in each])


def fit(
    trials: Trials,
    prior: FloatArray | None = None,
    anchor: Anchor | None = None,
    starts: FitStarts | None = None,
) -> LogitFit:
    """Fit lambda and e on all trials.

    `prior` is from ``prior_of``, `anchor` what another rank model knows, in the weight that it has;
    `starts` are of the same trials, where they are fitted several times. Where the scores say
    nothing (or mislead) the floor goes to 1, or lambda to almost nothing: no bits claimed.
    """
    table = FitStarts(trials) if starts is None else starts
    lines, points = table.lines, table.points
    prior = np.zeros(lines.shape[2]) if prior is None else prior
    total = table.loss + np.asarray(points @ prior * trials.per_speaker)[:, None]
    if anchor is not None:
        total += anchor.rank_model.cost(points, table.floors)[0] * trials.per_speaker
    found = []
    # the loss has local optima, a feature alone among them: descend from the best of every line
    for line, loss in zip(lines, np.split(total, len(lines)), strict=True):
        point, floor = divmod(int(loss.argmin()), table.floors.size)
        found.append(_polish(trials, line[point], float(table.floors[floor]), prior, anchor))
    return min(found, key=lambda each: each.loss)


def _near_grid(centre: FloatArray) -> FloatArray:
    """Multipliers of each lambda of an optimum, all products of which are looked at."""
    reach, steps = {1: (6.0, 33), 2: (6.0, 15), 3: (4.0, 9)}.get(centre.size, (3.0, 5))
    return np.geomspace(1.0 / reach, reach, steps)


class _Sums(NamedTuple):
    """Losses of B replicates on a grid, of which few are looked at.

    Attributes:
        often: how often each part of a loss counts, shape (B, K).
        losses: shape (K, P).
        shape: of the grid of P points.
    """

    often: FloatArray
    losses: FloatArray
    shape: tuple[int, ...]

    def least(self) -> IntArray:
        """Where each replicate's loss is least: shape (B,)."""
        best, least = np.zeros(len(self.often), np.intp), np.full(len(self.often), np.inf)
        for part in _chunks(self.losses.shape[1], len(self.often)):
            total = self.often @ self.losses[:, part]
            place = total.argmin(axis=1)
            found = total[np.arange(len(total)), place]
            lower = found < least
            best[lower], least[lower] = place[lower] + part.start, found[lower]
        return best

    def at(self, index: IntArray) -> FloatArray:
        """Of each replicate at a grid point of its own, (d, B): shape (B,)."""
        place = np.ravel_multi_index(tuple(index), self.shape)
        return np.asarray(np.einsum("bk,kb->b", self.often, self.losses[:, place]))


def _offsets(total: _Sums, index: IntArray) -> FloatArray:
    """Where between grid points the paraboloid through the neighbours has its minimum, in steps.

    Of losses and the best grid point (d, B), to (d, B); 0 along an axis where the best point is at
    its end.
    """
    axes, replicates = index.shape
    last = np.array(total.shape)[:, None] - 1
    inside = (index > 0) & (index < last)
    unit = np.eye(axes, dtype=index.dtype)[:, :, None]

    def at(move: IntArray) -> FloatArray:
        return total.at(np.clip(index + move, 0, last))

    slope, bend = np.zeros((replicates, axes)), np.zeros((replicates, axes, axes))
    here = at(np.zeros_like(unit[0]))
    for a in range(axes):
        up, down = at(unit[a]), at(-unit[a])
        slope[:, a] = 0.5 * (up - down)
        bend[:, a, a] = up - 2.0 * here + down
        for b in range(a):
            cross = at(unit[a] + unit[b]) + at(-unit[a] - unit[b])
            cross -= at(unit[a] - unit[b]) + at(unit[b] - unit[a])
            bend[:, a, b] = bend[:, b, a] = 0.25 * cross
    free = inside.T & (np.einsum("baa->ba", bend) > 0)
    slope *= free
    # in units of each axis's own curvature; an axis that is not free stays where it is
    size = np.sqrt(np.where(free, np.einsum("baa->ba", bend), 1.0))
    pairs = free[:, :, None] & free[:, None, :]
    shape = np.where(pairs, bend / (size[:, :, None] * size[:, None, :]), np.eye(axes))
    # no minimum in between: each axis for itself
    saddle = np.linalg.eigvalsh(shape)[:, 0] < _FLATTEST
    shape[saddle] = np.eye(axes)
    offset = -np.linalg.solve(shape, (slope / size)[:, :, None])[:, :, 0] / size
    return np.asarray(np.clip(offset, -1.0, 1.0).T)


class NearbyLosses:
    """What trials say around lambda of a fit, shape (F,): behind all its refits."""

    def __init__(self, trials: Trials, centre: FloatArray) -> None:
        self.multipliers = _near_grid(centre)
        mesh = np.meshgrid(*[self.multipliers] * centre.size, indexing="ij")
        self.grid = np.stack([m.ravel() for m in mesh], axis=1) * centre
        share = _shares_of_products(trials, [self.multipliers * each for each in centre])
        self.shares = _Shares(trials, share)


def fit_replicates(
    trials: Trials,
    centre: FloatArray,
    weights: FloatArray,
    prior: FloatArray | None = None,
    lowest_floor: float | None = None,
    anchor: Anchor | None = None,
    around: NearbyLosses | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Lambda (B, F) and e (B,), refitted under resampled speakers, weights (B, S).

    One table of every speaker's loss around the full fit's lambda serves all replicates; a
    paraboloid through the best grid point and its neighbours finds the place between them. Prior
    and anchor are those of the full fit, the latter with as many resamples of its own, or with
    none; `lowest_floor` is what e may not fall below, where that is not ``smallest_floor`` of the
    trials; `around` is of the same trials and centre, where several such refits share it.
    """
    if lowest_floor is None:
        lowest_floor = smallest_floor(trials.speakers)
    around = NearbyLosses(trials, centre) if around is None else around
    grid, multipliers = around.grid, around.multipliers
    speakers = weights.shape[1]
    table = around.shares.table(speakers, lowest_floor)
    shape = (multipliers.size,) * centre.size + (table.floors.size,)
    # row 0: everybody once, whose optimum is known
    weights = np.concatenate([np.ones((1, speakers)), weights])
    # a replicate's loss is a sum of those of its speakers, of the prior, and of parts of the anchor
    parts, often = [table.loss.reshape(speakers, -1)], [weights]
    one, per_speaker = np.ones((len(weights), 1)), trials.per_speaker
    if prior is not None:
        cost = np.repeat(grid @ prior, table.floors.size)
        parts.append(cost[None] * per_speaker)
        often.append(one)
    if anchor is not None:
        own, pulled, theirs = anchor.parts(grid, table.floors)
        parts += [own[None] * per_speaker, pulled * per_speaker]
        often += [one, np.broadcast_to(theirs, (len(weights), pulled.shape[0]))]
    sums = _Sums(np.concatenate(often, axis=1), np.concatenate(parts), shape)
    index = np.stack(np.unravel_index(sums.least(), shape))
    place = index + _offsets(sums, index)
    # a loss is steeper on one side than on the other: what that moves is seen in row 0
    error = place[:-1, 0] - (multipliers.size - 1) / 2
    place[:-1] -= np.where(np.abs(error) < 1.0, error, 0.0)[:, None]
    step = np.log(multipliers[1] / multipliers[0])
    found = centre * multipliers[0] * np.exp(step * place[:-1, 1:].T)
    floors = lowest_floor * np.exp(np.log(table.floors[1] / table.floors[0]) * place[-1, 1:])
    return found, np.clip(floors, lowest_floor, 1.0)


def held_out(
    trials: Trials,
    centre: FloatArray,
    speakers: int,
    prior: FloatArray | None = None,
    anchor: Anchor | None = None,
    around: NearbyLosses | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Lambda (S, F) and e (S,) for every speaker, fitted without that speaker: cross-fitting.

    Arguments as of `fit_replicates`, with ``trials.speaker`` in 0..S-1. The refits look around
    lambda of the full fit, which has seen everybody: with few speakers, where one matters, they
    start from nothing instead.
    """
    anchor = None if anchor is None else anchor.rank_model
    if trials.speakers > _FEW_SPEAKERS:
        lowest = smallest_floor(trials.speakers - 1)
        kept = 1.0 - np.eye(speakers)
        return fit_replicates(trials, centre, kept, prior, lowest, anchor, around)
    fits = []
    for speaker in range(speakers):
        rest = trials.speaker != speaker
        fits.append(fit(Trials(trials.behind[rest], trials.speaker[rest]), prior, anchor))
    return np.stack([each.weights for each in fits]), np.array([each.floor for each in fits])


def held_out_bits(trials: Trials, weights: FloatArray, floor: FloatArray) -> FloatArray:
    """Mean local bits (S,) under what `held_out` gave; at most log2 N, negative if it misleads."""
    candidates = trials.behind.shape[2]
    bits = []
    for speaker in np.unique(trials.speaker):
        mine = trials.speaker == speaker
        share = Trials(trials.behind[mine], trials.speaker[mine]).true_share(weights[speaker])
        loss = _loss(share, float(floor[speaker]), candidates).mean()
        bits.append((np.log(candidates) - loss) / np.log(2.0))
    return np.array(bits)
