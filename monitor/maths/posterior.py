"""From scores to a posterior over the speakers, and from it to bits (METHOD section 5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.types import FloatArray

__all__ = ["Candidates", "condense", "gain_bits", "local_bits", "score_posterior"]

_SHARE = np.array([1.0, 0.5, 0.125], np.float32)
FAR_NATS = 20.0
"""Candidates this far behind another under every draw hold no mass."""
EXACT_CANDIDATES = 256
"""Up to so many candidates each stands alone."""
CELL_NATS = 0.6
"""Of more, those that differ by less in every feature are one group ..."""
LEVEL_NATS = 5.0
"""... by twice as much this far behind the best, by four times beyond twice as far."""


def score_posterior(evidence: FloatArray, floor: float) -> FloatArray:
    """``(1 - e) softmax(LLR) + e / N``.

    Args:
        evidence: tempered log-likelihood ratios, shape (N,), nats, up to a constant.
        floor: e, in [0, 1].

    Returns:
        shape (N,), sums to 1.

    Example:
        >>> score_posterior(np.array([0.0, np.log(3.0)]), 0.0)
        array([0.25, 0.75])
    """
    weights: FloatArray = np.exp(evidence - evidence.max())
    # in units of 1 / N, so that no evidence, and a floor of 1, are even to the last bit
    weights *= evidence.shape[0] / weights.sum() * (1.0 - floor)
    weights += floor
    weights /= evidence.shape[0]
    return weights


def local_bits(probability: float, speakers: int) -> float:
    """LID of one speaker: ``log2(N p)``; 0 where nothing was learnt, negative where misled."""
    # not N p: that is not exactly 1 for 1 / N at N = 49
    return float(np.log2(probability / (1.0 / speakers)))


def gain_bits(posterior: FloatArray) -> float:
    """The attacker's confidence ``log2 N - H(p)``, in [0, log2 N]."""
    speakers = posterior.shape[0]
    seen = posterior if posterior.min() > 0 else posterior[posterior > 0]
    gain = float(seen @ np.log(seen / (1.0 / speakers))) / np.log(2.0)
    return float(min(max(gain, 0.0), np.log2(speakers)))


@dataclass(frozen=True, slots=True)
class Candidates:
    """The N candidates of one reading, those that score alike in groups.

    The limits evaluate one reading under every draw of the law: with N candidates and B draws that
    is B N exponentials. Among many candidates those that hardly differ in any feature are one group
    here, counted with its mean and spread.

    Attributes:
        scores: shape (F, G), raw scores minus the best candidate's: of one, or a group's mean.
        spread: shape (F, F, G), covariance of the raw scores within each group; None where every
            candidate stands alone.
        counts: shape (G,), candidates in each group.
        best: raw scores of the best candidate, shape (F,).
        speakers: N, those counted nowhere included: they are too far behind to matter.
    """

    scores: FloatArray
    spread: FloatArray | None
    counts: FloatArray
    best: FloatArray
    speakers: int

    def bits(
        self, weights: FloatArray, floors: FloatArray, target: FloatArray | None
    ) -> tuple[FloatArray | None, FloatArray]:
        """Local and gain bits under each draw.

        Args:
            weights: lambda, shape (B, F).
            floors: e, shape (B,).
            target: raw scores of the watched speaker, shape (F,), or None.

        Returns:
            local bits, shape (B,), or None; gain bits, shape (B,).
        """
        # single precision is 1e-6 bits and a fifth of the time; so is working in place
        floor = floors.astype(np.float32)[:, None]
        share = _product(weights, self.scores)
        spread = None if self.spread is None else _quadratic(weights, 0.5 * self.spread)
        # with one feature nobody overtakes the best candidate
        top = np.zeros((1, 1), np.float32) if len(self.scores) == 1 else share.max(1, keepdims=True)
        if len(self.scores) > 1:
            share -= top
        if spread is not None:
            share += spread
        # beyond this there is no mass, and denormal numbers are ten times as slow
        np.maximum(share, np.float32(-40.0), out=share)
        np.exp(share, out=share)
        counts = self.counts.astype(np.float32)
        # everything in units of 1 / N, as in score_posterior
        scale = np.float32(self.speakers) / (share @ counts)[:, None]
        local = None
        if target is not None:
            own = np.exp((weights @ (target - self.best)) - top[:, 0])
            local = np.log2((1.0 - floors) * (own * scale[:, 0]) + floors)
            local = np.minimum(local, np.log2(self.speakers))
        share *= scale * (np.float32(1.0) - floor)
        ratio = share + floor
        terms = np.log(ratio)
        terms *= ratio
        if spread is not None:
            # x log x is convex: its mean over a group lies above its value at the mean
            share *= share
            share *= spread
            share /= ratio
            terms += share
        gain = (terms @ counts).astype(np.float64) / np.log(2.0)
        lost = self.speakers - self.counts.sum()
        gain += lost * floors * np.log2(np.maximum(floors, 1e-300))
        gain /= self.speakers
        return local, np.clip(gain, 0.0, np.log2(self.speakers))


def condense(scores: FloatArray, weights: FloatArray) -> Candidates:
    """Group the candidates of one reading.

    Args:
        scores: raw scores, shape (F, N).
        weights: lambda of the law and of every draw that will be asked for, shape (1 + B, F).
    """
    speakers = scores.shape[1]
    best = scores[:, int((weights[0] @ scores).argmax())]
    behind = scores - best[:, None]
    if speakers <= EXACT_CANDIDATES:
        return Candidates(behind, None, np.ones(speakers), best, speakers)
    behind = behind.astype(np.float32)
    low, high = (w.astype(np.float32)[:, None] for w in (weights.min(axis=0), weights.max(axis=0)))
    # the best that any draw between the extremes could make of a candidate
    reach = np.maximum(low * behind, high * behind).sum(axis=0)
    near = reach > -FAR_NATS
    if not near.all():
        behind, reach = behind[:, near], reach[near]
    if behind.shape[1] <= EXACT_CANDIDATES:
        return Candidates(behind, None, np.ones(behind.shape[1]), best, speakers)
    level = np.clip(reach * np.float32(-1.0 / LEVEL_NATS), 0.0, 2.0).astype(np.intp)
    cells = np.floor(behind * (high * np.float32(1.0 / CELL_NATS)) * _SHARE[level])
    cells -= cells.min(axis=1, keepdims=True)
    key = level.astype(np.float64)
    for row in cells:
        key = key * (float(row.max()) + 1.0) + row
    # few keys are counted as they are; only a wide range is worth a sort
    few = key.max() < 4 * key.size
    group = key.astype(np.intp) if few else np.unique(key, return_inverse=True)[1]
    counts = np.bincount(group)
    used = np.flatnonzero(counts)
    share = counts[used].astype(np.float64)
    means = np.stack([np.bincount(group, row)[used] for row in behind]) / share
    products = [[np.bincount(group, a * b)[used] for b in behind] for a in behind]
    spread = np.asarray(products) / share - means[:, None] * means[None]
    return Candidates(means, spread, share, best, speakers)


def _product(weights: FloatArray, scores: FloatArray) -> FloatArray:
    """``weights @ scores``, shape (B, G), single precision; one feature needs no BLAS."""
    weights, scores = weights.astype(np.float32), scores.astype(np.float32)
    return weights * scores if scores.shape[0] == 1 else weights @ scores


def _quadratic(weights: FloatArray, spread: FloatArray) -> FloatArray:
    """Variance of the evidence within each group under each draw, shape (B, G)."""
    features, _, groups = spread.shape
    pairs = (weights[:, :, None] * weights[:, None, :]).reshape(-1, features**2)
    return _product(pairs, spread.reshape(features**2, groups))
