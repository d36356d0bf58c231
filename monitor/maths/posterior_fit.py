"""Fits temperature, weights and floor of the score posterior, by conditional logit.

Source: docs/method.md section 5.
"""

from __future__ import annotations

from collections.abc import Iterator
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
        points = np.repeat(weights, floors.size, axis=0)
        x = np.column_stack([points, np.tile(np.log(floors), len(weights))])
        bent, pulled = x @ self.precision, self.centre @ self.precision
        own, theirs = (bent * x).sum(axis=1), (pulled * self.centre).sum(axis=1)
        cost = 0.5 * (own + theirs[:, None]) - pulled @ x.T
        return np.asarray(cost.reshape(-1, len(weights), floors.size))

    def slope(self, weights: FloatArray, floor: float) -> tuple[float, FloatArray]:
        """The model's cost at one point, weights of shape (F,), and its slopes by lambda, log e."""
        away = np.append(weights, np.log(floor)) - self.centre[0]
        slope = self.precision @ away
        return float(0.5 * away @ slope), slope


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


class _Shares:
    """The true speaker's softmax in every trial, by many weights: of it tables of losses are made.

    Attributes:
        points: weights, shape (P, F).
    """

    def __init__(self, trials: Trials, points: FloatArray) -> None:
        self.points = points
        self._order = np.argsort(trials.speaker, kind="stable")
        self._present, self._starts = np.unique(trials.speaker[self._order], return_index=True)
        count, features, self._candidates = trials.behind.shape
        # candidates first: reductions then run along the trials
        behind = np.ascontiguousarray(trials.behind[self._order].transpose(1, 2, 0), np.float64)
        behind = behind.reshape(features, -1)
        self._share = np.empty((len(points), count))
        for part in _chunks(len(points), behind.shape[1]):
            evidence = points[part] @ behind
            evidence = evidence.reshape(-1, self._candidates, count)
            best = evidence.max(axis=1)
            evidence -= best[:, None]
            mass = np.exp(evidence, out=evidence).sum(axis=1)
            self._share[part] = np.exp(-best - np.log(mass))

    def table(self, speakers: int, lowest_floor: float) -> _Table:
        """Losses with floors from the lowest to 1."""
        floors = np.geomspace(lowest_floor, 1.0, _FLOORS)
        loss = np.zeros((speakers, len(self.points), floors.size))
        for part in _chunks(len(self.points), floors.size * self._share.shape[1]):
            losses = _loss(self._share[part, None], floors[:, None], self._candidates)
            sums = np.add.reduceat(losses, self._starts, axis=2)
            loss[self._present, part] = sums.transpose(2, 0, 1)
        return _Table(floors, loss)


_TOGETHER = 1 << 17
"""Numbers that are worked on at once: what a processor keeps at hand."""


def _chunks(count: int, each: int) -> Iterator[slice]:
    step = max(_TOGETHER // each, 1)
    return (slice(start, start + step) for start in range(0, count, step))


class _Table(NamedTuple):
    """Every speaker's losses, summed over trials, on a grid of floors and weights, (S, P, E)."""

    floors: FloatArray
    loss: FloatArray


def _start_lines(trials: Trials) -> FloatArray:
    """All features scaled together, and each alone: shape (lines, steps, F)."""
    steps = np.geomspace(1.0 / _REACH, _REACH, _STEPS)
    scale = _scale(trials)
    directions = np.ones((1, scale.size))
    if scale.size > 1:
        directions = np.concatenate([directions, np.eye(scale.size)])
    return np.asarray(steps[None, :, None] * (directions * scale)[:, None])


def _loss_and_slopes(
    trials: Trials, weights: FloatArray, floor: float, row_weights: FloatArray
) -> tuple[float, FloatArray, float]:
    """Weighted sum of -log p, and its derivatives by lambda, shape (F,), and by e."""
    candidates = trials.behind.shape[2]
    evidence = np.einsum("f,nfj->nj", weights, trials.behind)
    best = evidence.max(axis=1, keepdims=True)
    np.exp(evidence - best, out=evidence)
    mass = evidence.sum(axis=1)
    share = np.exp(-best[:, 0]) / mass
    p = (1.0 - floor) * share + floor / candidates
    # d share / d lambda_f = -share * posterior mean of (s_fj - s_fw)
    mean = np.einsum("nj,nfj->nf", evidence, trials.behind) / mass[:, None]
    slope = (row_weights * (1.0 - floor) * share / p) @ mean
    slope_floor = (row_weights * (share - 1.0 / candidates) / p).sum()
    return float(-(row_weights @ np.log(p))), slope, float(slope_floor)


def _polish(
    trials: Trials, start: FloatArray, floor: float, prior: FloatArray, anchor: Anchor | None = None
) -> LogitFit:
    """Descend from the best grid point, in log lambda and log e."""
    from scipy.optimize import minimize

    speakers = trials.speakers
    lowest = np.log(smallest_floor(speakers))
    origin = np.log(np.maximum(start, 1e-4 * _scale(trials)))
    row_weights = np.full(trials.speaker.size, 1.0 / trials.speaker.size)
    pull = prior / speakers

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        weights, e = np.exp(origin + x[:-1]), float(np.exp(min(x[-1], 0.0)))
        loss, slope, slope_floor = _loss_and_slopes(trials, weights, e, row_weights)
        slopes = np.append((slope + pull) * weights, slope_floor * e)
        if anchor is not None:
            cost, pulled = anchor.slope(weights, e)
            loss += cost / speakers
            slopes += pulled * np.append(weights, 1.0) / speakers
        return loss + pull @ weights, slopes

    found = minimize(
        objective,
        np.append(np.zeros(start.size), np.log(floor)),
        jac=True,
        method="TNC",  # L-BFGS-B calls LAPACK on tiny matrices, whose idle threads cost more
        bounds=[(-12.0, 12.0)] * start.size + [(lowest, 0.0)],
        options={"maxfun": 400, "ftol": 1e-14, "gtol": 1e-9},
    )
    weights = np.exp(origin + found.x[:-1])
    weights[(prior > 0.0) & (weights * prior < _NO_SAY)] = 0.0
    return LogitFit(weights, float(np.exp(found.x[-1])), float(found.fun))


def prior_of(trials: Trials) -> FloatArray:
    """The penalty on each lambda, shape (F,): nats of one speaker for each unit of it.

    Nothing for the feature that does best alone; of the others, whose information may be the same,
    one nat for the lambda that each would get alone.
    """
    count = trials.behind.shape[1]
    if count == 1:
        return np.zeros(1)
    alone = [fit(Trials(trials.behind[:, f : f + 1], trials.speaker)) for f in range(count)]
    prior = 1.0 / np.maximum([float(each.weights[0]) for each in alone], 1e-12)
    prior[int(np.argmin([each.loss for each in alone]))] = 0.0
    return np.asarray(prior)


class Starts:
    """Losses of some trials far and wide: where fits begin, whatever prior and anchor they have."""

    def __init__(self, trials: Trials) -> None:
        self.lines = _start_lines(trials)
        self.points = self.lines.reshape(-1, self.lines.shape[2])
        table = _Shares(trials, self.points).table(
            int(trials.speaker.max()) + 1, smallest_floor(trials.speakers)
        )
        self.floors, self.loss = table.floors, table.loss.sum(axis=0)


def fit(
    trials: Trials,
    prior: FloatArray | None = None,
    anchor: Anchor | None = None,
    starts: Starts | None = None,
) -> LogitFit:
    """Fit lambda and e on all trials.

    `prior` is from ``prior_of``, `anchor` what another rank model knows, in the weight that it has;
    `starts` are of the same trials, where they are fitted several times. Where the scores say
    nothing (or mislead) the floor goes to 1, or lambda to almost nothing: no bits claimed.
    """
    table = Starts(trials) if starts is None else starts
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


def _near_grid(centre: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Products of multipliers around an optimum, shape (steps ** F, F), and the multipliers."""
    reach, steps = {1: (6.0, 33), 2: (6.0, 15), 3: (4.0, 9)}.get(centre.size, (3.0, 5))
    multipliers = np.geomspace(1.0 / reach, reach, steps)
    mesh = np.meshgrid(*[multipliers] * centre.size, indexing="ij")
    return np.stack([m.ravel() for m in mesh], axis=1) * centre, multipliers


def _offsets(total: FloatArray, index: IntArray) -> FloatArray:
    """Where between grid points the paraboloid through the neighbours has its minimum, in steps.

    Of losses (B, n1, ..., nd) and the best grid point (d, B), to (d, B); 0 along an axis where the
    best point is at its end.
    """
    axes, replicates = index.shape
    rows, last = np.arange(replicates), np.array(total.shape[1:])[:, None] - 1
    inside = (index > 0) & (index < last)
    unit = np.eye(axes, dtype=index.dtype)[:, :, None]

    def at(move: IntArray) -> FloatArray:
        return np.asarray(total[(rows, *np.clip(index + move, 0, last))])

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


class Around:
    """What trials say around lambda of a fit, shape (F,): behind all its refits."""

    def __init__(self, trials: Trials, centre: FloatArray) -> None:
        self.grid, self.multipliers = _near_grid(centre)
        self.shares = _Shares(trials, self.grid)


def fit_replicates(
    trials: Trials,
    centre: FloatArray,
    weights: FloatArray,
    prior: FloatArray | None = None,
    lowest_floor: float | None = None,
    anchor: Anchor | None = None,
    around: Around | None = None,
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
    around = Around(trials, centre) if around is None else around
    grid, multipliers = around.grid, around.multipliers
    speakers = weights.shape[1]
    table = around.shares.table(speakers, lowest_floor)
    shape = (multipliers.size,) * centre.size + (table.floors.size,)
    # row 0: everybody once, whose optimum is known
    weights = np.concatenate([np.ones((1, speakers)), weights])
    total = np.tensordot(weights, table.loss, axes=1)
    if prior is not None:
        total += np.asarray(grid @ prior * trials.per_speaker)[:, None]
    if anchor is not None:
        total += anchor.cost(grid, table.floors) * trials.per_speaker
    total = total.reshape(-1, *shape)
    best = total.reshape(total.shape[0], -1).argmin(axis=1)
    index = np.stack(np.unravel_index(best, shape))
    place = index + _offsets(total, index)
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
    around: Around | None = None,
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
