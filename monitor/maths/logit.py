"""Tempering and floor of the score posterior, by conditional logit (METHOD section 5).

For a calibration trial with raw scores ``s_fj`` and true speaker w,
``p = (1 - e) / sum_j exp(sum_f lambda_f (s_fj - s_fw)) + e / N``; the fit minimises the mean of
``-log p``, which maximises exactly what the monitor shows: mean local bits are log2 N minus that
loss in bits. The floor e keeps a reading from claiming more than the calibration speakers can back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.types import FloatArray, IntArray

__all__ = ["LogitFit", "Trials", "fit", "fit_draws", "held_out_bits", "smallest_floor"]

_STEPS = 33
_REACH = 256.0
_FLOORS = 24


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

    def true_share(self, weights: FloatArray) -> FloatArray:
        """The true speaker's softmax for weights, shape (F,): shape (n,), in (0, 1]."""
        evidence = np.einsum("f,nfj->nj", weights, self.behind)
        best = evidence.max(axis=1)
        mass = np.exp(evidence - best[:, None]).sum(axis=1)
        return np.asarray(np.exp(-best - np.log(mass)))


@dataclass(frozen=True, slots=True)
class LogitFit:
    """What the fit found.

    Attributes:
        weights: lambda, shape (F,), >= 0.
        floor: e.
        loss: mean of -log p on the trials it was fitted on, nats.
    """

    weights: FloatArray
    floor: float
    loss: float


def smallest_floor(speakers: int) -> float:
    """The floor e may not fall below ``1 / (2 (S + 1))`` with S calibration speakers."""
    return 1.0 / (2.0 * (speakers + 1.0))


def _loss(share: FloatArray, floor: FloatArray | float, candidates: int) -> FloatArray:
    return np.asarray(-np.log((1.0 - floor) * share + floor / candidates))


def _floors(speakers: int) -> FloatArray:
    return np.geomspace(smallest_floor(speakers), 1.0, _FLOORS)


def _scale(trials: Trials) -> FloatArray:
    """The weight at which a feature's typical score difference is one nat, shape (F,)."""
    spread = np.sqrt((trials.behind**2).mean(axis=(0, 2)))
    return np.asarray(np.where(spread > 0, 1.0 / np.maximum(spread, 1e-300), 1.0))


class _Table:
    """Mean loss of every speaker at every point of a grid of weights and floors."""

    def __init__(self, trials: Trials, points: FloatArray, speakers: int) -> None:
        self.points, self.floors = points, _floors(trials.speakers)
        candidates = trials.behind.shape[2]
        self.loss = np.empty((speakers, points.shape[0], self.floors.size))
        self.trials = np.bincount(trials.speaker, minlength=speakers).astype(np.float64)
        member = np.zeros((speakers, trials.speaker.size))
        member[trials.speaker, np.arange(trials.speaker.size)] = 1.0
        for i, point in enumerate(points):
            share = trials.true_share(point)
            losses = _loss(share[:, None], self.floors[None], candidates)
            self.loss[:, i] = member @ losses

    def best(self, weights: FloatArray) -> tuple[IntArray, IntArray]:
        """Grid point and floor of least loss under speaker weights, shape (B, S)."""
        total = np.tensordot(weights, self.loss, axes=1)
        flat = total.reshape(total.shape[0], -1).argmin(axis=1)
        return np.divmod(flat, self.floors.size)


def _start_grid(trials: Trials) -> FloatArray:
    """Points along one common scaling of all features, and along each feature alone."""
    steps = np.geomspace(1.0 / _REACH, _REACH, _STEPS)
    scale = _scale(trials)
    features = scale.size
    along = [steps[:, None] * scale[None]]
    if features > 1:
        along += [
            steps[:, None] * (scale * (np.arange(features) == f))[None] for f in range(features)
        ]
    return np.concatenate(along)


def _polish(trials: Trials, start: FloatArray, floor: float, row_weights: FloatArray) -> LogitFit:
    """Descend from the best grid point, in log lambda and log e."""
    from scipy.optimize import minimize

    candidates = trials.behind.shape[2]
    lowest = np.log(smallest_floor(trials.speakers))
    origin = np.log(np.maximum(start, 1e-4 * _scale(trials)))
    row_weights = row_weights / row_weights.sum()

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        weights, e = np.exp(origin + x[:-1]), float(np.exp(min(x[-1], 0.0)))
        evidence = np.einsum("f,nfj->nj", weights, trials.behind)
        best = evidence.max(axis=1, keepdims=True)
        np.exp(evidence - best, out=evidence)
        mass = evidence.sum(axis=1)
        share = np.exp(-best[:, 0]) / mass
        p = (1.0 - e) * share + e / candidates
        # d share / d lambda_f = -share * posterior mean of (s_fj - s_fw)
        mean = np.einsum("nj,nfj->nf", evidence, trials.behind) / mass[:, None]
        common = row_weights * (1.0 - e) * share / p
        slope = (common @ mean) * weights
        slope_e = -(row_weights * (1.0 / candidates - share) / p).sum() * e
        return float(-(row_weights @ np.log(p))), np.append(slope, slope_e)

    found = minimize(
        objective,
        np.append(np.zeros(start.size), np.log(floor)),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-12.0, 12.0)] * start.size + [(lowest, 0.0)],
        options={"maxiter": 200, "ftol": 1e-14, "gtol": 1e-9},
    )
    return LogitFit(np.exp(origin + found.x[:-1]), float(np.exp(found.x[-1])), float(found.fun))


def fit(trials: Trials) -> LogitFit:
    """Fit lambda and e on all trials.

    Returns:
        the optimum. Where the scores say nothing (or mislead) the floor goes to 1: no bits claimed.
    """
    speakers = int(trials.speaker.max()) + 1
    grid = _start_grid(trials)
    table = _Table(trials, grid, speakers)
    point, floor = table.best(np.ones((1, speakers)))
    even = np.ones(trials.speaker.size)
    return _polish(trials, grid[point[0]], float(table.floors[floor[0]]), even)


def _near_grid(centre: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Products of multipliers around an optimum, shape (steps ** F, F), and the multipliers."""
    steps = {1: 33, 2: 13, 3: 7}.get(centre.size, 5)
    multipliers = np.geomspace(1.0 / 6.0, 6.0, steps)
    mesh = np.meshgrid(*[multipliers] * centre.size, indexing="ij")
    return np.stack([m.ravel() for m in mesh], axis=1) * centre, multipliers


def _between(total: FloatArray, index: tuple[IntArray, ...], axis: int) -> FloatArray:
    """Where between grid points the parabola through the three nearest has its minimum."""
    rows = np.arange(total.shape[0])
    last = total.shape[axis + 1] - 1

    def at(step: int) -> FloatArray:
        moved = list(index)
        moved[axis] = np.clip(index[axis] + step, 0, last)
        return np.asarray(total[(rows, *moved)])

    left, middle, right = at(-1), at(0), at(1)
    bend = left - 2.0 * middle + right
    inside = (index[axis] > 0) & (index[axis] < last) & (bend > 0)
    offset = np.divide(0.5 * (left - right), bend, out=np.zeros_like(bend), where=inside)
    return np.clip(offset, -0.5, 0.5)


def fit_draws(
    trials: Trials, centre: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Refit under resampled speakers.

    One table of every speaker's loss around the optimum serves all draws; a parabola along each
    axis finds the place between grid points.

    Args:
        trials: the calibration trials.
        centre: lambda of the full fit, shape (F,).
        weights: how often each speaker is drawn, shape (B, S).

    Returns:
        lambda, shape (B, F), and e, shape (B,).
    """
    grid, multipliers = _near_grid(centre)
    table = _Table(trials, grid, weights.shape[1])
    shape = (multipliers.size,) * centre.size + (table.floors.size,)
    total = np.tensordot(weights, table.loss, axes=1)
    index = np.unravel_index(total.reshape(total.shape[0], -1).argmin(axis=1), shape)
    total = total.reshape(-1, *shape)
    step = np.log(multipliers[1] / multipliers[0])
    found = np.empty((weights.shape[0], centre.size))
    for f in range(centre.size):
        found[:, f] = centre[f] * multipliers[index[f]] * np.exp(step * _between(total, index, f))
    step = np.log(table.floors[1] / table.floors[0])
    floors = table.floors[index[-1]] * np.exp(step * _between(total, index, centre.size))
    return found, np.minimum(floors, 1.0)


def held_out_bits(trials: Trials, centre: FloatArray, speakers: int) -> float:
    """Mean local bits on speakers the fit has not seen: each speaker left out in turn.

    Args:
        trials: the calibration trials.
        centre: lambda of the full fit, shape (F,): where the refits look.
        speakers: S, with ``trials.speaker`` in 0..S-1.

    Returns:
        bits; every speaker weighs the same. At most log2 N; negative where the fit misleads.
    """
    candidates = trials.behind.shape[2]
    weights, floors = fit_draws(trials, centre, 1.0 - np.eye(speakers))
    bits = []
    for speaker in np.unique(trials.speaker):
        mine = trials.speaker == speaker
        share = Trials(trials.behind[mine], trials.speaker[mine]).true_share(weights[speaker])
        loss = _loss(share, floors[speaker], candidates).mean()
        bits.append((np.log(candidates) - loss) / np.log(2.0))
    return float(np.mean(bits))
