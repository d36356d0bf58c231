"""Posterior over the speakers from scores, and its bits (docs/method.md section 5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.types import FloatArray, IntArray

_CHUNK = 1 << 15
"""Maximum numbers processed at once, so that they stay in the cache (benchmarks/scale.py)."""

_SHARE = np.array([1.0, 0.5, 0.125], np.float32)
FAR_NATS = 20.0  # candidates this far behind another under every replicate have no mass
EXACT_CANDIDATES = 256  # up to this number, candidates are not grouped
CELL_NATS = 0.6  # beyond it, candidates that differ by less in every feature form one group
LEVEL_NATS = 5.0
"""Groups this far behind the best are twice as wide, and 8 times as wide at twice the distance."""
EDGES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Bins of probability: most of N candidates are improbable, so they are narrow at the low end."""
_LEAST = 1e-300


def score_posterior(evidence: FloatArray, floor: float | FloatArray) -> FloatArray:
    """Compute ``(1 - e) softmax(LLR) + e / N`` of evidence (..., N), nats, and e, (...).

    It is computed in units of ``1 / N``, so that probabilities without evidence, or at a floor of
    1, are exactly equal.

    Example:
        >>> score_posterior(np.array([0.0, np.log(3.0)]), 0.0)
        array([0.25, 0.75])
    """
    speakers = evidence.shape[-1]
    e = np.asarray(floor)[..., None]
    weights: FloatArray = np.exp(evidence - evidence.max(axis=-1, keepdims=True))
    weights *= speakers / weights.sum(axis=-1, keepdims=True) * (1.0 - e)
    weights += e
    weights /= speakers
    return weights


def local_bits(probability: float | FloatArray, speakers: int) -> FloatArray:
    """Compute LID of one speaker, ``log2(N p)``; 0 without evidence, negative if misled."""
    # N p is not exactly 1 for p = 1 / N at N = 49
    return np.asarray(np.log2(np.asarray(probability) / (1.0 / speakers)))


def confidence_bits(posterior: FloatArray) -> FloatArray:
    """Compute the attacker's confidence ``log2 N - H(p)``, in [0, log2 N]: (..., N) to (...)."""
    speakers = posterior.shape[-1]
    terms = np.maximum(posterior, 1e-300)
    terms /= 1.0 / speakers
    np.log(terms, out=terms)
    terms *= posterior
    return np.asarray(np.clip(terms.sum(axis=-1) / np.log(2.0), 0.0, np.log2(speakers)))


@dataclass(frozen=True, slots=True)
class Candidates:
    """The N candidates of one reading, grouped by similar scores if there are many.

    Limits evaluate a reading under every replicate of the rank model. If there are many candidates,
    those that hardly differ in any feature form one group with its mean and spread. With few,
    several readings are evaluated together, along leading axes written as ``...``.
    """

    # shape (..., F, G), raw scores of candidates, or group means, minus the best candidate's
    scores: FloatArray
    # shape (F, F, G), covariance of the raw scores within each group, if there are groups
    spread: FloatArray | None
    counts: FloatArray  # shape (G,), candidates in each group
    best: FloatArray  # raw scores of the best candidate, shape (..., F)
    speakers: int  # N, including candidates too far behind to be counted

    def bits(
        self, weights: FloatArray, floors: FloatArray, target: FloatArray | None
    ) -> tuple[FloatArray | None, FloatArray]:
        """Compute local and confidence bits under each replicate: (..., B) each.

        ``weights`` are lambda, (..., B, F), ``floors`` are e, (..., B), and ``target`` has the
        watched speaker's raw scores, (..., F). Without a target, local bits are None.
        """
        mass, top, confidence = self._under(weights, floors)
        local = None
        if target is not None:
            target_mass = np.exp(_evidence(weights, target - self.best) - top)
            # everything in units of 1 / N, as in score_posterior
            local = np.log((1.0 - floors) * target_mass * (self.speakers / mass) + floors)
            local = np.minimum(local / np.log(2.0), np.log2(self.speakers))
        if uncounted := self.speakers - self.counts.sum():
            confidence += uncounted * floors * np.log(np.maximum(floors, 1e-300))
        confidence /= self.speakers * np.log(2.0)
        return local, np.clip(confidence, 0.0, np.log2(self.speakers))

    def _under(
        self, weights: FloatArray, floors: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Compute mass, largest evidence and N times the confidence in nats, each (..., B)."""
        if self.scores.ndim == 2:
            return self._batch(slice(None), weights, floors)
        # a few readings at a time
        step = max(_CHUNK // (self.scores.shape[-1] * floors.shape[-1]), 1)
        batches = [
            self._batch(slice(start, start + step), weights, floors)
            for start in range(0, len(floors), step)
        ]
        mass, top, confidence = (np.concatenate(columns) for columns in zip(*batches, strict=True))
        return mass, top, confidence

    def _batch(
        self, batch: slice, weights: FloatArray, floors: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        # Single precision costs 1e-6 bits and takes a fifth of the time. Arrays (..., G, B) in
        # place have the replicates last, because there are more of them than near candidates.
        floor = floors[batch].astype(np.float32)
        probability = _product(self.scores[batch], weights[batch])
        half_variance = None if self.spread is None else _quadratic(0.5 * self.spread, weights)
        # with one feature no candidate can overtake the best
        top = np.zeros_like(floor) if self.scores.shape[-2] == 1 else probability.max(axis=-2)
        if self.scores.shape[-2] > 1:
            probability -= top[..., None, :]
        if half_variance is not None:
            probability += half_variance
        # lower ones have no mass, and denormal numbers are ten times as slow; clip beats maximum
        np.clip(probability, np.float32(-40.0), np.float32(np.inf), out=probability)
        np.exp(probability, out=probability)
        counts = self.counts.astype(np.float32)
        mass = counts @ probability
        probability *= (np.float32(self.speakers) / mass * (np.float32(1.0) - floor))[..., None, :]
        ratio = probability + floor[..., None, :]
        terms = np.log(ratio)
        terms *= ratio
        if half_variance is not None:
            # x log x is convex, so its mean over a group exceeds its value at the mean
            probability *= probability
            probability *= half_variance
            probability /= ratio
            terms += probability
        return mass, top, (counts @ terms).astype(np.float64)


def condense(scores: FloatArray, weights: FloatArray) -> Candidates:
    """Group the candidates of one reading, or of several if there are few.

    ``scores`` are raw scores, (F, N), or (..., F, N) for up to 256 candidates. ``weights``, (..., 1
    + B, F), are lambda of the model and of every replicate used later.
    """
    speakers = scores.shape[-1]
    if scores.shape[-2] == 1:
        best = scores.max(axis=-1)
    else:
        leader = weighted_evidence(scores, weights[..., 0, :]).argmax(axis=-1)
        best = np.take_along_axis(scores, leader[..., None, None], axis=-1)[..., 0]
    deficits = scores - best[..., None]
    if speakers <= EXACT_CANDIDATES:
        return Candidates(deficits, None, np.ones(speakers), best, speakers)
    deficits = deficits.astype(np.float32)
    low, high = (w.astype(np.float32)[:, None] for w in (weights.min(axis=0), weights.max(axis=0)))
    # upper bound of a candidate's evidence, relative to the best, under any replicate
    reach = np.maximum(low * deficits, high * deficits).sum(axis=0)
    is_near = reach > -FAR_NATS
    if not is_near.all():
        deficits, reach = deficits[:, is_near], reach[is_near]
    if deficits.shape[1] <= EXACT_CANDIDATES:
        return Candidates(deficits, None, np.ones(deficits.shape[1]), best, speakers)
    level = np.clip(reach * np.float32(-1.0 / LEVEL_NATS), 0.0, 2.0).astype(np.intp)
    cells = np.floor(deficits * (high * np.float32(1.0 / CELL_NATS)) * _SHARE[level])
    cells -= cells.min(axis=1, keepdims=True)
    key = level.astype(np.float64)
    for row in cells:
        key = key * (float(row.max()) + 1.0) + row
    # a narrow range of keys is counted directly; only a wide one is sorted
    is_dense = key.max() < 4 * key.size
    group = key.astype(np.intp) if is_dense else np.unique(key, return_inverse=True)[1]
    counts = np.bincount(group)
    used = np.flatnonzero(counts)
    sizes = counts[used].astype(np.float64)
    means = np.stack([np.bincount(group, row)[used] for row in deficits]) / sizes
    products = [[np.bincount(group, a * b)[used] for b in deficits] for a in deficits]
    covariance = np.asarray(products) / sizes - means[:, None] * means[None]
    return Candidates(means, covariance, sizes, best, speakers)


def replicate_bits(
    scores: FloatArray, weights: FloatArray, floors: FloatArray, target: int | IntArray | None
) -> tuple[FloatArray | None, FloatArray]:
    """Compute local and confidence bits of R readings under each replicate.

    ``scores`` are raw scores, (R, F, N). ``weights``, (R, 1 + B, F), are lambda of the model and of
    every replicate, and ``floors``, (R, B), are e of every replicate. Both results have shape (R,
    B). Local bits are None without a watched speaker. ``target`` is its index, one or (R,).
    """
    target_scores = None if target is None else scores[np.arange(len(scores)), :, target]
    if scores.shape[2] <= EXACT_CANDIDATES:
        return condense(scores, weights).bits(weights[:, 1:], floors, target_scores)
    # grouping takes one reading at a time
    readings = [
        condense(scores[r], weights[r]).bits(
            weights[r, 1:], floors[r], None if target_scores is None else target_scores[r]
        )
        for r in range(len(scores))
    ]
    confidence = np.stack([bits for _, bits in readings])
    if target_scores is None:
        return None, confidence
    return np.stack([bits for bits, _ in readings if bits is not None]), confidence


def weighted_evidence(scores: FloatArray, weights: FloatArray) -> FloatArray:
    """Compute ``sum_f lambda_f s_fj``: scores (..., F, N) and weights (..., F) to (..., N)."""
    if scores.shape[-2] == 1:
        return weights * scores[..., 0, :]
    product: FloatArray = weights[..., None, :] @ scores
    return product[..., 0, :]


def _evidence(weights: FloatArray, scores: FloatArray) -> FloatArray:
    """Compute a candidate's evidence under B replicates: (..., B, F) and (..., F) to (..., B)."""
    features = range(scores.shape[-1])
    return np.asarray(sum(weights[..., f] * scores[..., f, None] for f in features))


def _product(scores: FloatArray, weights: FloatArray) -> FloatArray:
    """Compute every candidate's evidence under every replicate, (..., G, B), single precision."""
    rows = np.swapaxes(scores.astype(np.float32), -1, -2)
    columns = np.swapaxes(weights.astype(np.float32), -1, -2)
    # one feature needs no BLAS
    return rows * columns if scores.shape[-2] == 1 else rows @ columns


def _quadratic(spread: FloatArray, weights: FloatArray) -> FloatArray:
    """Compute the evidence's variance within each group under each replicate, (G, B)."""
    features, _, groups = spread.shape
    pairs = (weights[:, :, None] * weights[:, None, :]).reshape(-1, features**2)
    return _product(spread.reshape(features**2, groups), pairs)


@dataclass(frozen=True, slots=True)
class Reliability:
    """Reliability diagram of a posterior, with its errors.

    The arrays, (K,), describe the non-empty bins. They have the mean probability of each, the
    fraction of its candidates who are the true speaker, and its fraction of all candidates. The top
    error is the mean distance between the stated probability of the best guess and its accuracy
    (ten even bins). The all error is the same over all candidates, times N. It is the misplaced
    probability of a trial.
    """

    predicted: FloatArray
    observed: FloatArray
    share: FloatArray
    top_error: float
    all_error: float


def reliability(posterior: FloatArray, speaker: IntArray, weight: FloatArray) -> Reliability:
    """Compare probabilities with outcomes.

    The inputs are posteriors, (n, N), and the column of the true speaker and the weight of each
    trial, (n,).
    """
    trials, candidates = posterior.shape
    is_true = np.zeros(posterior.shape, dtype=bool)
    is_true[np.arange(trials), speaker] = True
    weights = np.broadcast_to(weight[:, None] / candidates, posterior.shape)
    predicted, observed, fraction = _binned(
        posterior.ravel(), is_true.ravel(), weights.ravel(), np.array(EDGES)
    )
    best = posterior.argmax(axis=1)
    # in ties the first of N equal candidates is right as often as any other
    top = _binned(
        posterior[np.arange(trials), best], best == speaker, weight, np.linspace(0, 1, 11)
    )
    return Reliability(
        predicted,
        observed,
        fraction,
        float((top[2] * np.abs(top[0] - top[1])).sum()),
        float(candidates * (fraction * np.abs(predicted - observed)).sum()),
    )


def _binned(
    p: FloatArray, is_true: FloatArray, weight: FloatArray, edges: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    index = np.clip(np.searchsorted(edges, p, side="right") - 1, 0, edges.size - 2)
    mass = np.bincount(index, weight, edges.size - 1)
    used = mass > 0
    predicted = np.bincount(index, weight * p, edges.size - 1)[used] / mass[used]
    observed = np.bincount(index, weight * is_true, edges.size - 1)[used] / mass[used]
    return predicted, observed, mass[used] / mass.sum()


def one_to_one(shares: FloatArray) -> list[tuple[int | None, float]]:
    """Find the likeliest match of voices to people, each person to at most one voice.

    The matches maximise the product of their probabilities (the assignment problem; H. W. Kuhn,
    Naval Research Logistics Quarterly 1955). Any number of voices may match no person.

    ``shares``, (L, N), are the probabilities that voice l is person j. The remainder of a row to 1
    is the probability of another person. Returns each voice's person, or None for no match, and the
    probability that this match is right if the other matches are right.

    Example:
        >>> matches = one_to_one(np.array([[0.8, 0.1], [0.7, 0.2], [0.1, 0.0]]))
        >>> [(person, round(probability, 2)) for person, probability in matches]
        [(0, 0.89), (1, 0.67), (None, 1.0)]
    """
    from scipy.optimize import linear_sum_assignment

    voices, people = shares.shape
    nobody = np.clip(1.0 - shares.sum(axis=1), 0.0, 1.0)
    cost = np.full((voices, people + voices), -np.log(_LEAST) * (voices + 1.0))
    cost[:, :people] = -np.log(np.maximum(shares, _LEAST))
    cost[np.arange(voices), people + np.arange(voices)] = -np.log(np.maximum(nobody, _LEAST))
    chosen = linear_sum_assignment(cost)[1]
    is_matched = np.zeros(people, np.bool_)
    is_matched[chosen[chosen < people]] = True
    matches: list[tuple[int | None, float]] = []
    for voice, column in enumerate(chosen.tolist()):
        is_enrolled = column < people
        free = ~is_matched
        if is_enrolled:
            free[column] = True
        total = float(shares[voice, free].sum() + nobody[voice])
        probability = float(shares[voice, column] if is_enrolled else nobody[voice])
        matches.append((column if is_enrolled else None, probability / total if total > 0 else 0.0))
    return matches
