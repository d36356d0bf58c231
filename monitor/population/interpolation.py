"""A rank model between the lengths it was learnt at (docs/method.md section 4), and its spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from monitor.kinds import FeatureSpec, comparable_features
from monitor.maths import rank_models as betabinomial
from monitor.population.population import Population
from monitor.population.rank_model import RankModel, RankModels, neighbours
from monitor.types import BoolArray, FloatArray, IntArray

# ----------------------------------------------------------------------------------- interpolation

_CHUNK = 1 << 19  # most numbers worked on at once, so that memory stays small


@dataclass(frozen=True, slots=True)
class RankModelPoint:
    """The rank model at one length T: row 0, and its resamples in rows 1..B.

    Attributes:
        share: shape (C, 1 + B): weight of each component of the rank pmf; C is 1, or 2 where some
            row lies beside a degenerate rank model; the other rows' second weight is 0.
        alpha, beta, binomial: shape (C, 1 + B), the components' parameters.
        weights: lambda, shape (1 + B, F).
        floor: e, shape (1 + B,).
        fade: 1 inside the grid, T / T0 below it: what is left is mixed with no evidence at all.
        beyond: True where T lies beyond the grid and the last rank model holds.
    """

    share: FloatArray
    alpha: FloatArray
    beta: FloatArray
    binomial: BoolArray
    weights: FloatArray
    floor: FloatArray
    fade: float
    beyond: bool

    @property
    def spread(self) -> FloatArray:
        """What is claimed by nobody, shape (1 + B,): e and the fading together."""
        return np.asarray(1.0 - self.fade * (1.0 - self.floor))

    def rank_probability(self, speakers: int, better: int, tied: int, row: slice) -> FloatArray:
        """Mean probability of the ``tied`` ranks after ``better``, floor included; (rows,)."""
        ranks = np.arange(better + 1, better + tied + 1)[:, None]
        gamma = np.zeros(self.alpha[0, row].shape)
        for c in range(self.share.shape[0]):
            alpha, beta, binomial = self.alpha[c, row], self.beta[c, row], self.binomial[c, row]
            if binomial.any():
                p, a, b = (
                    np.where(binomial, alpha, 0.5),
                    np.where(binomial, 1.0, alpha),
                    np.where(binomial, 1.0, beta),
                )
                logs = np.where(
                    binomial,
                    betabinomial.binomial_log_pmf_at(p, speakers, ranks),
                    betabinomial.log_pmf_at(a, b, speakers, ranks),
                )
            else:
                logs = betabinomial.log_pmf_at(alpha, beta, speakers, ranks)
            gamma += self.share[c, row] * np.exp(logs).mean(axis=0)
        spread = self.spread[row]
        # N times gamma first: with nothing but the floor left this is exactly 1 / N
        return np.asarray(((1.0 - spread) * (speakers * gamma) + spread) / speakers)

    def rank_bits(self, speakers: int, better: int, tied: int) -> FloatArray:
        """``log2(N x mean gamma over the tied ranks)`` of model and resamples, shape (1 + B,).

        Exactly 0 where every template ties: no evidence.
        """
        if tied == speakers:
            return np.zeros(self.floor.shape)
        probability = self.rank_probability(speakers, better, tied, slice(None))
        return np.asarray(np.log2(probability / (1.0 / speakers)))

    def pmf(self, speakers: int, row: slice | IntArray, *, floor: bool) -> FloatArray:
        """The rank pmf, shape (rows, N); with the floor e mixed in, or only the fading."""
        gamma = np.zeros((self.alpha[0, row].size, speakers))
        for c in range(self.share.shape[0]):
            alpha, beta, binomial = self.alpha[c, row], self.beta[c, row], self.binomial[c, row]
            part = np.empty_like(gamma)
            if binomial.any():
                part[binomial] = betabinomial.binomial_log_pmf(alpha[binomial], speakers)
            if not binomial.all():
                part[~binomial] = betabinomial.log_pmf(alpha[~binomial], beta[~binomial], speakers)
            gamma += self.share[c, row][:, None] * np.exp(part)
        left = self.spread[row][:, None] if floor else 1.0 - self.fade
        return np.asarray((1.0 - left) * gamma + left / speakers)

    def expected_bits(self, speakers: int, row: slice) -> FloatArray:
        """MeanD of the rank model at N, shape (rows,). The floor e is not part of it."""
        if self.fade == 0.0:
            return np.zeros(self.floor[row].shape)
        rows = np.arange(self.floor.size)[row]
        plain = (self.share[0, rows] == 1.0) & ~self.binomial[0, rows] & (self.fade == 1.0)
        bits = np.empty(rows.size)
        if plain.any():
            alpha, beta = self.alpha[0, rows[plain]], self.beta[0, rows[plain]]
            bits[plain] = betabinomial.mean_disclosure_bits(alpha, beta, speakers)
        mixed = np.flatnonzero(~plain)
        if speakers > betabinomial.FINE_FROM:
            r = rows[mixed]
            bits[mixed] = betabinomial.mixed_mean_disclosure_bits(
                self.share[:, r],
                self.alpha[:, r],
                self.beta[:, r],
                self.binomial[:, r],
                1.0 - self.fade,
                speakers,
            )
            mixed = mixed[np.isnan(bits[mixed])]
        step = max(_CHUNK // speakers, 1)
        for start in range(0, mixed.size, step):
            some = mixed[start : start + step]
            gamma = self.pmf(speakers, rows[some], floor=False)
            logs = np.log2(np.maximum(gamma, 1e-300))
            bits[some] = np.log2(speakers) + (gamma * logs).sum(axis=1)
        return np.clip(bits, 0.0, np.log2(speakers))


class _Models(NamedTuple):
    """The rank model alone at R lengths, named as in a `RankModelPoint`, of two components.

    Shapes (2, R), but weights (R, F) and spread (R,).
    """

    share: FloatArray
    alpha: FloatArray
    beta: FloatArray
    binomial: BoolArray
    weights: FloatArray
    spread: FloatArray


class LengthModel:
    """A rank model at one template length, continuous in the test length T.

    Inside the grid log alpha, log beta, log lambda and log e are interpolated in log T; beside a
    degenerate rank model the two pmfs are mixed instead. Below the grid everything fades to no
    evidence, zero bits at T = 0. Beyond it the last rank model holds: a similarity that grows with
    the evidence is weighed as if it had been heard for the last length, so that an hour claims no
    more certainty than calibration has seen.

    Attributes:
        lengths: T of the grid, shape (nT,).
        degenerate: shape (nT,), True where the rank model or one of its resamples is.
    """

    def __init__(
        self,
        lengths: FloatArray,
        alpha: FloatArray,
        beta: FloatArray,
        binomial: BoolArray,
        weights: FloatArray,
        floor: FloatArray,
        additive: BoolArray,
    ) -> None:
        self.lengths = lengths
        self.degenerate: BoolArray = np.logical_or.reduce(binomial, axis=0)
        self._log_lengths = np.log(lengths)
        self._alpha, self._beta, self._binomial = alpha, beta, binomial
        self._weights, self._floor, self._additive = weights, floor, additive
        # alpha, beta, e and every lambda, by length; p = 0 of a perfect cell is never mixed
        every = np.stack([alpha, beta, floor, *np.moveaxis(weights, -1, 0)])
        self._logs = np.log(np.maximum(np.moveaxis(every, -1, 0), 1e-300))
        self._alone = np.ones((1, alpha.shape[0]))
        self._last: tuple[float, RankModelPoint] | None = None

    def at(self, seconds: float) -> RankModelPoint:
        """The rank model at T speech seconds."""
        if self._last is not None and self._last[0] == seconds:
            return self._last[1]
        point = self._at(seconds)
        self._last = (seconds, point)
        return point

    def weighing(self, seconds: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``weights`` and ``spread`` of ``at`` of R lengths: (R, 1 + B, F) and (R, 1 + B)."""
        weights = np.empty((seconds.size, *self._weights[:, -1].shape))
        spread = np.empty(weights.shape[:2])
        beyond = seconds > self.lengths[-1]
        if beyond.any():
            end = self._cell(self.lengths.size - 1)
            weights[beyond] = end.weights * self._shrink(seconds[beyond, None])[:, None]
            spread[beyond] = end.spread
        for r in np.flatnonzero(~beyond):
            point = self.at(float(seconds[r]))
            weights[r], spread[r] = point.weights, point.spread
        return weights, spread

    def of_the_model(self, seconds: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``weighing`` without the resamples, of all lengths at once: (R, F) and (R,)."""
        found = self._models(seconds)
        shrink = self._shrink(np.maximum(seconds, self.lengths[-1])[:, None])
        return found.weights * shrink, found.spread

    def rank_bits_of_the_model(
        self, seconds: FloatArray, speakers: int, better: IntArray, tied: IntArray
    ) -> FloatArray:
        """``at(T).rank_bits`` without the resamples, of R lengths and ranks at once: (R,)."""
        found, alone = self._models(seconds), (tied == 1) & (tied < speakers)
        bits, gamma = np.empty(seconds.size), np.zeros(seconds.size)
        for r in np.flatnonzero(~alone):
            point = self.at(float(seconds[r]))
            bits[r] = point.rank_bits(speakers, int(better[r]), int(tied[r]))[0]
        for c in range(2):
            there = alone & (found.share[c] > 0.0)
            for binomial in (False, True):
                some = np.flatnonzero(there & (found.binomial[c] == binomial))
                if some.size:
                    alpha, beta, rank = found.alpha[c, some], found.beta[c, some], better[some] + 1
                    if binomial:
                        logs = betabinomial.binomial_log_pmf_at(alpha, speakers, rank)
                    else:
                        logs = betabinomial.log_pmf_at(alpha, beta, speakers, rank)
                    gamma[some] += found.share[c, some] * np.exp(logs)
        spread = found.spread[alone]
        probability = ((1.0 - spread) * (speakers * gamma[alone]) + spread) / speakers
        bits[alone] = np.log2(probability / (1.0 / speakers))
        return bits

    def _models(self, seconds: FloatArray) -> _Models:
        inside = np.minimum(np.maximum(seconds, self.lengths[0]), self.lengths[-1])
        left = np.searchsorted(self.lengths, inside, side="right") - 1
        right = np.minimum(left + 1, self.lengths.size - 1)
        gap = self._log_lengths[right] - self._log_lengths[left]
        w = (np.log(inside) - self._log_lengths[left]) / np.where(gap > 0, gap, 1.0)
        near, far = (1.0 - w)[:, None], w[:, None]
        mixed = np.exp(near * self._logs[left, :, 0] + far * self._logs[right, :, 0])
        on_grid = inside == self.lengths[left]
        ends = np.stack([left, right])
        stiff = self._binomial[0, ends]
        beside = ~on_grid & stiff.any(axis=0)
        share = np.where(beside, [1.0 - w, w], [[1.0], [0.0]])
        at_ends = beside | on_grid  # else between them
        alpha = np.where(at_ends, self._alpha[0, ends], mixed[:, 0])
        beta = np.where(at_ends, self._beta[0, ends], mixed[:, 1])
        floor = np.where(on_grid, self._floor[0, left], mixed[:, 2])
        low, high = self._weights[0, left], self._weights[0, right]
        zero = (low == 0.0) | (high == 0.0)  # which has no logarithm
        weights = np.where(zero, near * low + far * high, mixed[:, 3:])
        weights = np.where(on_grid[:, None], low, weights)
        fade = np.minimum(np.maximum(seconds, 0.0) / self.lengths[0], 1.0)
        spread = 1.0 - fade * (1.0 - floor)
        return _Models(share, alpha, beta, stiff & at_ends, weights, spread)

    def _shrink(self, seconds: FloatArray | float) -> FloatArray:
        return np.where(self._additive, self.lengths[-1] / seconds, 1.0)

    def _at(self, seconds: float) -> RankModelPoint:
        first, last = float(self.lengths[0]), float(self.lengths[-1])
        if seconds <= first:
            return self._cell(0, fade=max(seconds, 0.0) / first)
        if seconds >= last:
            shrink = self._shrink(seconds)
            return self._cell(self.lengths.size - 1, shrink=shrink, beyond=seconds > last)
        right = int(np.searchsorted(self.lengths, seconds, side="right"))
        left = right - 1
        if seconds == self.lengths[left]:
            return self._cell(left)
        w = (np.log(seconds) - self._log_lengths[left]) / (
            self._log_lengths[right] - self._log_lengths[left]
        )
        mixed = np.exp((1.0 - w) * self._logs[left] + w * self._logs[right])
        alpha, beta, floor = mixed[:1], mixed[1:2], mixed[2]
        ends = self._weights[:, [left, right]]
        zero = (ends == 0.0).any(axis=1)  # which has no logarithm
        weights = np.where(zero, (1.0 - w) * ends[:, 0] + w * ends[:, 1], mixed[3:].T)
        share = np.ones(alpha.shape)
        binomial = np.zeros(alpha.shape, dtype=bool)
        beside = self._binomial[:, left] | self._binomial[:, right]
        if beside.any():
            share = np.where(beside, [[1.0 - w], [w]], [[1.0], [0.0]])
            alpha = np.where(beside, self._alpha[:, [left, right]].T, alpha)
            beta = np.where(beside, self._beta[:, [left, right]].T, beta)
            binomial = beside & self._binomial[:, [left, right]].T
        return RankModelPoint(share, alpha, beta, binomial, weights, floor, 1.0, False)

    def _cell(
        self,
        index: int,
        *,
        fade: float = 1.0,
        shrink: FloatArray | float = 1.0,
        beyond: bool = False,
    ) -> RankModelPoint:
        return RankModelPoint(
            self._alone,
            self._alpha[None, :, index],
            self._beta[None, :, index],
            self._binomial[None, :, index],
            self._weights[:, index] * shrink,
            self._floor[:, index],
            fade,
            beyond,
        )


def at_template(rank_model: RankModel, seconds: float, additive: BoolArray) -> LengthModel:
    """The rank model for templates of D speech seconds.

    Between two template lengths the parameters are interpolated in log D; outside them, where only
    one was reached, or beside a degenerate cell, the nearest holds.

    Args:
        rank_model: parameters on the grid.
        seconds: D.
        additive: shape (F,), which features' similarities grow with the evidence.
    """
    reached = np.isfinite(rank_model.alpha[0])
    rows = np.flatnonzero(reached.any(axis=1))
    parts = []
    for t in rows:
        left, right, w = neighbours(rank_model.template_lengths, reached[t], seconds)
        nearest = right if w > 0.5 else left
        stiff = rank_model.binomial[:, t, left] | rank_model.binomial[:, t, right]
        alpha, beta, weights, floor = (
            _mixed(values[:, t, left], values[:, t, right], w)
            for values in (rank_model.alpha, rank_model.beta, rank_model.weights, rank_model.floor)
        )
        alpha = np.where(stiff, rank_model.alpha[:, t, nearest], alpha)
        beta = np.where(stiff, rank_model.beta[:, t, nearest], beta)
        parts.append((alpha, beta, rank_model.binomial[:, t, nearest], weights, floor))
    alpha, beta, binomial, weights, floor = (
        np.stack(values, axis=1) for values in zip(*parts, strict=True)
    )
    return LengthModel(rank_model.lengths[rows], alpha, beta, binomial, weights, floor, additive)


def _mixed(low: FloatArray, high: FloatArray, w: float) -> FloatArray:
    if w == 0.0 or w == 1.0:
        return high if w else low
    with np.errstate(divide="ignore"):
        mixed = np.exp((1.0 - w) * np.log(low) + w * np.log(high))
    # a lambda of 0 has no logarithm (nor the p = 0 of a perfect cell, which is then not used)
    zero = (low == 0.0) | (high == 0.0)
    return np.where(zero, (1.0 - w) * low + w * high, mixed)


# ------------------------------------------------------------------------------------------ spread
# Limits of a figure say how much it depends on the people that it was learnt from; readings of
# different voices of the same length, each watched by its own name, lie much further apart: as the
# spread says, of calibration's speakers whom the fit had not seen (docs/method.md section 10).


class Spread(NamedTuple):
    """At one length, bits.

    Attributes:
        low, high: between these 9 of 10 voices read that are watched by their own name.
        others: below this 19 of 20 of other people's voices do; None where it is not known.
    """

    low: float
    high: float
    others: float | None


@dataclass(frozen=True, slots=True)
class EvidenceSpread:
    """The spread at one template length, in the logarithm of T; the longest holds beyond it.

    Attributes:
        lengths: T, speech seconds, shape (n,), increasing.
        bits: low, high and others, shape (n, 3); NaN where it is not known.
    """

    lengths: FloatArray
    bits: FloatArray

    @classmethod
    def of(
        cls, rows: Sequence[Mapping[str, Any]], template_seconds: float
    ) -> EvidenceSpread | None:
        """What a rank model's calibration table says of it; None where it says nothing."""
        told = [(row["T"], row["D"], found) for row in rows if (found := _found(row)) is not None]
        if not told:
            return None
        columns = np.unique([d for _, d, _ in told])
        left, right, w = neighbours(columns, np.ones(columns.size, np.bool_), template_seconds)
        nearest = columns[right if w > 0.5 else left]
        cells = sorted((t, found) for t, d, found in told if d == nearest)
        bits = np.array([found for _, found in cells])
        # cut to what few people support at long lengths: what shorter speech reads, longer does
        bits[:, 1] = np.maximum.accumulate(bits[:, 1])
        return cls(np.array([t for t, _ in cells]), bits)

    def at(self, seconds: float) -> Spread | None:
        """The spread at T speech seconds; None below the shortest that was calibrated.

        Voices of a second read nothing like those of three, and after none nobody reads anything.
        """
        if seconds < self.lengths[0]:
            return None
        at = np.log(seconds)
        low, high, others = (
            float(np.interp(at, np.log(self.lengths), column)) for column in self.bits.T
        )
        return Spread(low, high, None if np.isnan(others) else others)


def _found(row: Mapping[str, Any]) -> tuple[float, float, float] | None:
    """Low, high and others of a cell; tables that know no twentieths have others as far apart."""
    twentieths = "evidence_low_twentieth", "evidence_high_twentieth"
    for names in (twentieths, ("evidence_low_tenth", "support_bits")):
        low, high = (row.get(name) for name in names)
        if low is not None and high is not None:
            others = row.get("others_high_twentieth")
            return float(low), float(high), float("nan") if others is None else float(others)
    return None


# Source: docs/method.md section 5.

GOOD_AREA = 0.8
"""Least area under the ROC curve, on speakers left out, for odds that are worth telling: four times
in five an enrolled voice looks more enrolled than an impostor. Across sessions pitch reaches 0.5,
voice 0.83 at 3 s and 0.93 at 10 s, identity 0.93 and more."""


class EnrolledProbability:
    """The probability that the speaker is enrolled at all, at even odds before (method section 5).

    Between calibrated lengths the coefficients are interpolated in log T; below the shortest the
    odds fade to even, beyond the longest the last hold. Of template lengths the nearest counts.
    They are told only where calibration has seen them work (`GOOD_AREA`).

    Args:
        rank_model: of one set of features.
        seconds: D, template length, speech seconds.
    """

    def __init__(self, rank_model: RankModel, seconds: float) -> None:
        reached = np.isfinite(rank_model.open_set[:, :, 0])
        rows = np.flatnonzero(reached.any(axis=1))
        distance = np.abs(np.log(rank_model.template_lengths / max(seconds, 1e-9)))
        nearest = np.where(reached[rows], distance, np.inf).argmin(axis=1)
        self._lengths = rank_model.lengths[rows]
        self._coefficients = rank_model.open_set[rows, nearest]
        areas = np.full(reached.shape, np.nan)
        for row in rank_model.rows:
            t = np.flatnonzero(np.isclose(rank_model.lengths, row["T"]))
            d = np.flatnonzero(np.isclose(rank_model.template_lengths, row["D"]))
            areas[t, d] = row.get("open_set_area", np.nan)
        self._areas = areas[rows, nearest]

    def area(self, seconds: FloatArray) -> FloatArray:
        """How well they told impostors on speakers left out of the fit, at T.

        Returns:
            area under the ROC curve, shape (R,): 0.5 is no use, 1 is perfect, NaN not known.
        """
        place = np.log(np.maximum(seconds, self._lengths[0]))
        return np.asarray(np.interp(place, np.log(self._lengths), self._areas))

    def at(self, seconds: FloatArray, favourite: FloatArray) -> FloatArray:
        """The probability at R moments.

        Args:
            seconds: T, speech seconds, shape (R,).
            favourite: absolute scores of the most probable candidate, shape (R, F), in the rank
                model's order of features; additive ones divided by their frames.

        Returns:
            shape (R,), in (0, 1); NaN where they cannot tell impostors.
        """
        from scipy.special import expit

        first = self._lengths[0]
        place = np.log(np.maximum(seconds, first))
        grid = np.log(self._lengths)
        bias, *slopes = (np.interp(place, grid, column) for column in self._coefficients.T)
        odds = bias + sum(s * x for s, x in zip(slopes, favourite.T, strict=True))
        odds = odds * np.clip(seconds / first, 0.0, 1.0)
        found = expit(np.clip(odds, -30.0, 30.0))  # never certain
        return np.where(self.area(seconds) >= GOOD_AREA, found, np.nan)


# How much higher same-session figures are than cross-session ones (docs/method.md section 4).

_SHOWN = (10.0, 60.0)  # speech seconds at which the difference is told


@cache
def _shipped() -> tuple[Mapping[str, FeatureSpec], RankModels]:
    """Of the shipped readers; reading them takes as long as hearing a minute of speech."""
    reference = Population.reference()
    return reference.specs, reference.rank_models


def same_session_bias_bits(
    features: Mapping[str, FeatureSpec], speakers: int, template_seconds: float
) -> dict[float, float] | None:
    """Expected bits of the shipped same-session model less those of the cross-session rank model.

    Returns:
        bits by speech seconds; None where the shipped readers have no models of these features.
    """
    specs, rank_models = _shipped()
    same, cross = (rank_models.find(tuple(features), s) for s in ("same", "cross"))
    alike = len(comparable_features(features, specs)) == len(features)
    if not alike or same is None or cross is None:
        return None
    still = np.zeros(len(features), dtype=bool)
    models = [at_template(each, template_seconds, still) for each in (same, cross)]
    bits = {}
    for seconds in _SHOWN:
        mine, other = (m.at(seconds).expected_bits(speakers, slice(0, 1))[0] for m in models)
        bits[seconds] = float(mine - other)
    return bits


def same_session_bias(
    features: Mapping[str, FeatureSpec], speakers: int, template_seconds: float
) -> str:
    """`same_session_bias_bits` in words, to follow "favours the attacker"."""
    bits = same_session_bias_bits(features, speakers, template_seconds)
    if bits is None:
        return f"by how much is not known for {'+'.join(features)}"
    told = " and ".join(f"{max(b, 0.0):.1f} bits at {at:g} s" for at, b in bits.items())
    return f"among {speakers} of the shipped readers by {told} of speech"
