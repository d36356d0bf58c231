"""Interpolate a rank model and its spread between calibrated lengths (docs/method.md section 4)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from monitor.kinds import FeatureSpec, comparable_features
from monitor.lazy import once
from monitor.maths import rank_models as betabinomial
from monitor.maths.evidence import neighbours
from monitor.population.population import Population
from monitor.population.rank_model import RankModel, RankModels
from monitor.types import BoolArray, FloatArray, IntArray

_CHUNK = 1 << 19  # maximum numbers processed at once, to limit memory


@dataclass(frozen=True, slots=True)
class RankModelPoint:
    """Rank model at n points: itself and its resamples at one length T, or itself at several."""

    mixture: FloatArray  # (C, n), weight of each part of the rank pmf; C is 1, or 2 if degenerate
    alpha: FloatArray  # (C, n)
    beta: FloatArray  # (C, n)
    binomial: BoolArray  # (C, n)
    weights: FloatArray  # lambda, (n, F)
    floor: FloatArray  # e, (n,)
    fade: FloatArray  # (n,), weight of the model: 1 inside the grid, T / T0 below it

    @property
    def uniform_share(self) -> FloatArray:
        """Total probability spread evenly over all speakers, shape (n,): e and the fading."""
        return np.asarray(1.0 - self.fade * (1.0 - self.floor))

    def rank_probability(
        self, speakers: int, better: int | IntArray, tied: int, row: slice | IntArray
    ) -> FloatArray:
        """Compute the mean probability of ``tied`` ranks after ``better``, with floor; (rows,)."""
        ranks = better + np.arange(1, tied + 1)[:, None]
        gamma = np.zeros(self.alpha[0, row].shape)
        for components in zip(self.mixture, self.alpha, self.beta, self.binomial, strict=True):
            weight, alpha, beta, binomial = (component[row] for component in components)
            for is_binomial in (False, True):
                at = (weight > 0) & (binomial == is_binomial)
                if not at.any():
                    continue
                of_each = ranks if ranks.shape[1] == 1 else ranks[:, at]
                if is_binomial:
                    logs = betabinomial.binomial_log_pmf_at(alpha[at], speakers, of_each)
                else:
                    logs = betabinomial.log_pmf_at(alpha[at], beta[at], speakers, of_each)
                gamma[at] += weight[at] * np.exp(logs).mean(axis=0)
        spread = self.uniform_share[row]
        # N times gamma first: this is exactly 1 / N if only the floor remains
        return np.asarray(((1.0 - spread) * (speakers * gamma) + spread) / speakers)

    def rank_bits(self, speakers: int, better: int | IntArray, tied: int | IntArray) -> FloatArray:
        """Compute ``log2(N x mean gamma over the tied ranks)`` of one rank or of n ranks: (n,).

        It is exactly 0 without evidence, if every template ties.
        """
        bits = np.zeros(self.floor.shape)
        counts = {tied} if isinstance(tied, int) else set(tied.tolist())
        for many in counts:
            if many < speakers:
                rows = slice(None) if len(counts) == 1 else np.flatnonzero(tied == many)
                ahead = better if isinstance(better, int) else better[rows]
                probability = self.rank_probability(speakers, ahead, many, rows)
                bits[rows] = np.log2(probability / (1.0 / speakers))
        return bits

    def pmf(self, speakers: int, row: slice | IntArray, *, floor: bool) -> FloatArray:
        """Compute the rank pmf, (rows, N), faded below the grid and, if requested, with floor e."""
        gamma = np.zeros((self.alpha[0, row].size, speakers))
        for c in range(self.mixture.shape[0]):
            alpha, beta, binomial = self.alpha[c, row], self.beta[c, row], self.binomial[c, row]
            log_pmf = np.empty_like(gamma)
            if binomial.any():
                log_pmf[binomial] = betabinomial.binomial_log_pmf(alpha[binomial], speakers)
            if not binomial.all():
                log_pmf[~binomial] = betabinomial.log_pmf(
                    alpha[~binomial], beta[~binomial], speakers
                )
            gamma += self.mixture[c, row][:, None] * np.exp(log_pmf)
        even = (self.uniform_share if floor else 1.0 - self.fade)[row][:, None]
        return np.asarray((1.0 - even) * gamma + even / speakers)

    def expected_bits(self, speakers: int, row: slice) -> FloatArray:
        """Compute MeanD of the rank model at N, shape (rows,). The floor e is not part of it."""
        rows = np.arange(self.floor.size)[row]
        fade = self.fade[rows]
        plain = (self.mixture[0, rows] == 1.0) & ~self.binomial[0, rows] & (fade == 1.0)
        bits = np.zeros(rows.size)
        if plain.any():
            alpha, beta = self.alpha[0, rows[plain]], self.beta[0, rows[plain]]
            bits[plain] = betabinomial.mean_disclosure_bits(alpha, beta, speakers)
        mixed = np.flatnonzero(~plain & (fade > 0.0))
        if speakers > betabinomial.FINE_FROM:
            r = rows[mixed]
            bits[mixed] = betabinomial.mixed_mean_disclosure_bits(
                self.mixture[:, r],
                self.alpha[:, r],
                self.beta[:, r],
                self.binomial[:, r],
                1.0 - self.fade[r],
                speakers,
            )
            mixed = mixed[np.isnan(bits[mixed])]
        step = max(_CHUNK // speakers, 1)
        for start in range(0, mixed.size, step):
            batch = mixed[start : start + step]
            gamma = self.pmf(speakers, rows[batch], floor=False)
            logs = np.log2(np.maximum(gamma, 1e-300))
            bits[batch] = np.log2(speakers) + (gamma * logs).sum(axis=1)
        return np.clip(bits, 0.0, np.log2(speakers))


class LengthModel:
    """Rank model at one template length, continuous in the test length T.

    Inside the grid, log alpha, log beta, log lambda and log e are interpolated in log T. Next to a
    degenerate rank model, the two pmfs are mixed instead. Below the grid everything fades to zero
    bits at T = 0. Beyond the grid the last rank model applies, and a similarity that grows with the
    evidence is weighted as at the last length.
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
        self._binomial, self._additive = binomial.T, additive
        # by length, alpha, beta, e and every lambda; p = 0 in a perfect cell is never mixed
        every = np.stack([alpha, beta, floor, *np.moveaxis(weights, -1, 0)])
        self._parameters = np.moveaxis(every, -1, 0).copy()
        self._logs = np.log(np.maximum(self._parameters, 1e-300))
        self._last: tuple[bytes, RankModelPoint] | None = None

    @property
    def least_floor(self) -> float:
        """The smallest floor e over all lengths."""
        return float(self._parameters[:, 2, 0].min())

    def evaluate_at(self, seconds: float) -> RankModelPoint:
        """Return the rank model and its resamples at T speech seconds: 1 + B points."""
        return self.evaluate_each(np.array([seconds]))

    def evaluate_each(self, seconds: FloatArray) -> RankModelPoint:
        """Return the rank model and its resamples at R lengths: R (1 + B) points, by length."""
        last, key = self._last, seconds.tobytes()  # read once, because threads share the model
        if last is None or last[0] != key:
            last = self._last = key, self._points(seconds, slice(None))
        return last[1]

    def at_each(self, seconds: FloatArray) -> RankModelPoint:
        """Return the rank model alone at each of R lengths: R points."""
        return self._points(seconds, slice(0, 1))

    def split(self, lengths: int) -> list[slice]:
        """Split R lengths into those to pass to `evaluate_each` together."""
        _, parameters, count = self._parameters.shape
        step = max(_CHUNK // (parameters * count), 1)
        return [slice(start, start + step) for start in range(0, lengths, step)]

    def weighing(
        self, seconds: FloatArray, *, resamples: bool = True
    ) -> tuple[FloatArray, FloatArray]:
        """Return ``weights`` and ``uniform_share`` at R lengths, (R, 1 + B, F) and (R, 1 + B).

        Row 0 is the rank model. The others are its ``resamples``, if requested.
        """
        if not resamples:
            point = self.at_each(seconds)
            return point.weights[:, None], point.uniform_share[:, None]
        points = [self.evaluate_each(seconds[batch]) for batch in self.split(seconds.size)]
        weights, shares = points[0].weights, points[0].uniform_share
        if len(points) > 1:
            weights = np.concatenate([point.weights for point in points])
            shares = np.concatenate([point.uniform_share for point in points])
        count = seconds.size
        return weights.reshape(count, -1, weights.shape[1]), shares.reshape(count, -1)

    def _points(self, seconds: FloatArray, rows: slice) -> RankModelPoint:
        """Interpolate some rows at each of R lengths, length after length."""
        first, last = self.lengths[0], self.lengths[-1]
        inside = np.minimum(np.maximum(seconds, first), last)
        lower = np.searchsorted(self.lengths, inside, side="right") - 1
        exact = inside == self.lengths[lower]
        upper = lower + ~exact
        gap = np.where(exact, 1.0, self._log_lengths[upper] - self._log_lengths[lower])
        w = (np.log(inside) - self._log_lengths[lower]) / gap
        near, far, on_grid = (factor[:, None, None] for factor in (1.0 - w, w, exact))
        # of shape (R, 3 + F, rows)
        low, high = (self._parameters[ends, :, rows] for ends in (lower, upper))
        mixed = np.exp(near * self._logs[lower, :, rows] + far * self._logs[upper, :, rows])
        zero = (low[:, 3:] == 0.0) | (high[:, 3:] == 0.0)  # lambda has no logarithm
        mixed[:, 3:] = np.where(zero, near * low[:, 3:] + far * high[:, 3:], mixed[:, 3:])
        mixed = np.where(on_grid, low, mixed)
        # of shape (C, R, rows)
        alpha, beta, binomial = (
            mixed[None, :, 0],
            mixed[None, :, 1],
            self._binomial[None, lower, rows],
        )
        weight = np.ones(alpha.shape)
        is_degenerate = ~exact & (self.degenerate[lower] | self.degenerate[upper])
        if is_degenerate.any():
            stiff = self._binomial[np.stack([lower, upper]), rows]
            is_mixed = is_degenerate[:, None] & stiff.any(axis=0)
            weight = np.where(is_mixed, [near[:, 0], far[:, 0]], [[[1.0]], [[0.0]]])
            alpha = np.where(is_mixed, [low[:, 0], high[:, 0]], alpha)
            beta = np.where(is_mixed, [low[:, 1], high[:, 1]], beta)
            binomial = stiff & (is_mixed | on_grid[:, 0])
        # beyond the grid a score that grows with the evidence counts as at the last length
        shrink = np.where(self._additive, last / np.maximum(seconds, last)[:, None], 1.0)
        weights = np.multiply(mixed[:, 3:].swapaxes(1, 2), shrink[:, None], order="C")
        fade = np.minimum(np.maximum(seconds, 0.0) / first, 1.0)
        parts = len(weight)
        return RankModelPoint(
            weight.reshape(parts, -1),
            alpha.reshape(parts, -1),
            beta.reshape(parts, -1),
            binomial.reshape(parts, -1),
            weights.reshape(-1, weights.shape[-1]),
            mixed[:, 2].reshape(-1),
            np.repeat(fade, mixed.shape[2]),
        )


def at_template(rank_model: RankModel, seconds: float, additive: BoolArray) -> LengthModel:
    """Interpolate the rank model for templates of D speech seconds.

    Between two template lengths the parameters are interpolated in log D. The nearest length
    applies outside the grid, if only one length was reached, or next to a degenerate cell.
    ``additive``, shape (F,), marks features with similarities that grow with the evidence.
    """
    reached = np.isfinite(rank_model.alpha[0])
    rows = np.flatnonzero(reached.any(axis=1))
    parts = []
    for t in rows:
        lower, upper, w = neighbours(rank_model.template_lengths, reached[t], seconds)
        nearest = upper if w > 0.5 else lower
        stiff = rank_model.binomial[:, t, lower] | rank_model.binomial[:, t, upper]
        alpha, beta, weights, floor = (
            _mixed(values[:, t, lower], values[:, t, upper], w)
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


# The limits of a figure show how much it depends on the calibration's speakers. Readings of
# different voices of the same length, each watched by name, differ much more. The spread measures
# this on calibration speakers held out from the fit (docs/method.md section 10).


class SpeakerRange(NamedTuple):
    """Range of voices' readings at one length, bits."""

    low: float  # 9 in 10 voices, watched by their own name, read from low to high
    high: float  # infinite if it reaches the calibration's support
    others: float | None  # 19 in 20 of other people's voices read below this; None if unknown


@dataclass(frozen=True, slots=True)
class EvidenceSpread:
    """Range of voices at one template length, interpolated in log T; constant beyond the grid."""

    lengths: FloatArray  # T, speech seconds, (n,), increasing
    bits: FloatArray  # low, high and others, (n, 3); NaN if unknown
    clipped: BoolArray  # whether high reaches the calibration's support and may be higher, (n,)

    @classmethod
    def from_rows(
        cls, rows: Sequence[Mapping[str, Any]], template_seconds: float
    ) -> EvidenceSpread | None:
        """Read the spread from a rank model's calibration table; None if the table has none."""
        bounds = "evidence_low_twentieth", "evidence_high_twentieth", "others_high_twentieth"
        names = ("T", "D", *bounds, "support_bits")
        read = np.array([[row.get(name) for name in names] for row in rows], float).reshape(-1, 6)
        # the shipped population has a range of held-out people (benchmarks/results/usual.md)
        usual = [[row.get(name) for name in ("usual_low", "usual_high")] for row in rows]
        measured = np.array(usual, float).reshape(-1, 2)
        has_usual = ~np.isnan(measured).any(axis=1)
        read[has_usual, 2:4] = measured[has_usual]
        read[has_usual, 5] = np.fmax.reduce(read[:, 5], initial=0.0)
        cells = read[~np.isnan(read[:, 2:4]).any(axis=1)]
        if not len(cells):
            return None
        columns = np.array(sorted(set(cells[:, 1].tolist())))  # unique is slow to load
        lower, upper, w = neighbours(columns, np.ones(columns.size, np.bool_), template_seconds)
        cells = cells[cells[:, 1] == columns[upper if w > 0.5 else lower]]
        cells = cells[np.argsort(cells[:, 0], kind="stable")]
        # few people at long lengths support less, but longer speech reads as high as shorter
        clipped = np.maximum.accumulate(cells[:, 3] >= cells[:, 5] - 1e-6)
        cells[:, 3] = np.maximum.accumulate(cells[:, 3])
        return cls(cells[:, 0], cells[:, 2:5], clipped)

    def evaluate_at(self, seconds: float) -> SpeakerRange | None:
        """Interpolate the range at T speech seconds; None below the shortest calibrated."""
        if seconds < self.lengths[0]:
            return None
        at = np.log(seconds)
        low, high, others = (
            float(np.interp(at, np.log(self.lengths), column)) for column in self.bits.T
        )
        is_clipped = self.clipped[np.searchsorted(self.lengths, seconds, side="right") - 1]
        high = math.inf if is_clipped else high
        return SpeakerRange(low, high, None if np.isnan(others) else others)


# Source: docs/method.md section 5.

GOOD_AREA = 0.8  # minimum held-out area under the ROC curve for odds to be shown


class EnrolledProbability:
    """Probability that the speaker is enrolled at all, at even odds before (method section 5).

    Between calibrated lengths the coefficients are interpolated in log T. Below the shortest, the
    odds fade to even. Beyond the longest, the last coefficients apply. The nearest template length
    D ``seconds`` is used.
    """

    def __init__(self, rank_model: RankModel, seconds: float) -> None:
        reached = np.isfinite(rank_model.open_set[:, :, 0])
        rows = np.flatnonzero(reached.any(axis=1))
        distance = np.abs(np.log(rank_model.template_lengths / max(seconds, 1e-9)))
        nearest = np.where(reached[rows], distance, np.inf).argmin(axis=1)
        self._lengths = rank_model.lengths[rows]
        self._coefficients = rank_model.open_set[rows, nearest]
        areas = np.full(reached.shape, np.nan)
        cells = np.array([(row["T"], row["D"]) for row in rank_model.rows]).reshape(-1, 2)
        t = np.isclose(rank_model.lengths, cells[:, :1])
        d = np.isclose(rank_model.template_lengths, cells[:, 1:])
        for row, its_t, its_d in zip(rank_model.rows, t, d, strict=True):
            areas[its_t, its_d] = row.get("open_set_area", np.nan)
        self._areas = areas[rows, nearest]

    def area(self, seconds: FloatArray) -> FloatArray:
        """Interpolate the area under the ROC curve at T, shape (R,); NaN if it is not known."""
        log_length = np.log(np.maximum(seconds, self._lengths[0]))
        return np.asarray(np.interp(log_length, np.log(self._lengths), self._areas))

    def evaluate_at(self, seconds: FloatArray, favourite: FloatArray) -> FloatArray:
        """Compute the probability at R moments, in (0, 1); NaN if impostors cannot be detected.

        ``favourite`` has the absolute scores of the most probable candidate, (R, F), in the rank
        model's order of features. Additive scores are divided by their frames.
        """
        from scipy.special import expit

        first = self._lengths[0]
        log_length = np.log(np.maximum(seconds, first))
        grid = np.log(self._lengths)
        bias, *slopes = (np.interp(log_length, grid, column) for column in self._coefficients.T)
        odds = bias + sum(s * x for s, x in zip(slopes, favourite.T, strict=True))
        odds = odds * np.clip(seconds / first, 0.0, 1.0)
        probability = expit(np.clip(odds, -30.0, 30.0))  # never certain
        return np.where(self.area(seconds) >= GOOD_AREA, probability, np.nan)


# How much higher same-session figures are than cross-session ones (docs/method.md section 4).

_SHOWN = (10.0, 60.0)  # speech seconds at which the difference is shown


@once
def _load_shipped() -> tuple[Mapping[str, FeatureSpec], RankModels]:
    """Load the shipped readers' models, once; this takes as long as a minute of speech does."""
    reference = Population.reference()
    return reference.specs, reference.rank_models


def same_session_bias_bits(
    features: Mapping[str, FeatureSpec], speakers: int, template_seconds: float
) -> dict[float, float] | None:
    """Compute expected bits of the shipped same-session model minus the cross-session model's.

    The keys are speech seconds. None if the shipped readers have no models of these features.
    """
    specs, rank_models = _load_shipped()
    same, cross = (rank_models.find(tuple(features), s) for s in ("same", "cross"))
    has_features = len(comparable_features(features, specs)) == len(features)
    if not has_features or same is None or cross is None:
        return None
    still = np.zeros(len(features), dtype=bool)
    models = [at_template(model, template_seconds, still) for model in (same, cross)]
    bits = {}
    for seconds in _SHOWN:
        same_bits, cross_bits = (
            m.evaluate_at(seconds).expected_bits(speakers, slice(0, 1))[0] for m in models
        )
        bits[seconds] = float(same_bits - cross_bits)
    return bits


def same_session_bias(
    features: Mapping[str, FeatureSpec], speakers: int, template_seconds: float
) -> str:
    """Format `same_session_bias_bits`, to follow "favours the attacker"."""
    bits = same_session_bias_bits(features, speakers, template_seconds)
    if bits is None:
        return f"by an unknown amount for {'+'.join(features)}"
    text = " and ".join(f"{max(b, 0.0):.1f} bits at {at:g} s" for at, b in bits.items())
    return f"among {speakers} of the shipped readers by {text} of speech"
