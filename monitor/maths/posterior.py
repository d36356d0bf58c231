"""From scores to a posterior over the speakers, and from it to bits (METHOD section 5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.types import FloatArray

__all__ = ["Candidates", "condense", "gain_bits", "local_bits", "score_posterior"]

LN2 = float(np.log(2.0))
FAR_NATS = 60.0
"""Candidates this far behind the best one share a group: together they hold no mass."""
EXACT_CANDIDATES = 256
BIN_NATS = 0.1


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
    weights *= (1.0 - floor) / weights.sum()
    weights += floor / evidence.shape[0]
    return weights


def local_bits(probability: float, speakers: int) -> float:
    """LID of one speaker: ``log2(N p)``; 0 where nothing was learnt, negative where misled."""
    return float(np.log2(speakers * probability))


def gain_bits(posterior: FloatArray) -> float:
    """The attacker's confidence ``log2 N - H(p)``, in [0, log2 N]."""
    seen = posterior[posterior > 0]
    return float(max(np.log2(posterior.shape[0]) + (seen * np.log2(seen)).sum(), 0.0))


@dataclass(frozen=True, slots=True)
class Candidates:
    """The N candidates of one reading, in groups that hardly differ in score.

    The limits evaluate one reading under every draw of the law. With N candidates and B draws that
    would be B N exponentials; candidates whose evidence differs by under 0.1 nat are one group here
    (its mean has a relative error below 1e-3), and up to 256 serious candidates stand alone.

    Attributes:
        scores: shape (F, G), raw scores: a single candidate's or the group's mean.
        counts: shape (G,), candidates in each group.
        speakers: N.
    """

    scores: FloatArray
    counts: FloatArray
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
        evidence = weights @ self.scores
        best = evidence.max(axis=1, keepdims=True)
        evidence -= best
        np.exp(evidence, out=evidence)
        mass = evidence @ self.counts
        evidence *= ((1.0 - floors) / mass)[:, None]
        evidence += (floors / self.speakers)[:, None]
        if target is None:
            local = None
        else:
            share = np.exp(np.minimum(weights @ target - best[:, 0], 0.0)) / mass
            local = np.log2(self.speakers * ((1.0 - floors) * share + floors / self.speakers))
        logs = np.log2(np.maximum(evidence, 1e-300))
        gain = np.log2(self.speakers) + (evidence * logs) @ self.counts
        return local, np.maximum(gain, 0.0)


def condense(scores: FloatArray, evidence: FloatArray) -> Candidates:
    """Group candidates by their evidence.

    Args:
        scores: raw scores, shape (F, N).
        evidence: the tempered log-likelihood ratios under the law itself, shape (N,), nats.
    """
    speakers = evidence.shape[0]
    behind = evidence.max() - evidence
    near = np.flatnonzero(behind < FAR_NATS)
    if near.size == speakers <= EXACT_CANDIDATES:
        return Candidates(scores, np.ones(speakers), speakers)
    if near.size <= EXACT_CANDIDATES:
        counts = np.ones(near.size + 1)
        counts[-1] = speakers - near.size
        rest = (scores.sum(axis=1) - scores[:, near].sum(axis=1)) / counts[-1]
        return Candidates(np.column_stack([scores[:, near], rest]), counts, speakers)
    bins = np.minimum(behind / BIN_NATS, FAR_NATS / BIN_NATS).astype(np.intp)
    counts = np.bincount(bins).astype(np.float64)
    used = np.flatnonzero(counts)
    sums = np.stack([np.bincount(bins, weights=row) for row in scores])
    return Candidates(sums[:, used] / counts[used], counts[used], speakers)
