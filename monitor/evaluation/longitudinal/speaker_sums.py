"""Evidence summed over the first K trials of each speaker, and the temperatures that suit it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from monitor.errors import UsageError
from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.evaluation.scores.settled import settled_order
from monitor.maths.allranks import all_rank_bounds
from monitor.maths.fitting import fit
from monitor.maths.lid import normalise_rows
from monitor.maths.ranks import rank_histogram
from monitor.maths.scale import near_one
from monitor.maths.tempering import fit_growing_temperature, fit_temperature, tempered_bits
from monitor.phrases import plural
from monitor.types import BoolArray, FloatArray, IntArray

__all__ = ["FEWEST", "SpeakerSums", "Tempering"]

FEWEST = 10
"""Speakers to fit a rank law on that is carried over to another number of them."""

_CHUNK = 1 << 20
_FITTED = 1 << 21
"""Most numbers that a temperature is fitted on; of more, every so many speakers are taken."""


@dataclass(frozen=True)
class Tempering:
    """What was learnt from development speakers.

    Attributes:
        constant: T of the rule ``temperature``.
        tau: of ``count``.
        rho: of ``count``.
        embedding: tau and rho of ``embedding``; None without embeddings.
        ranks: histogram h of the true speakers' ranks, shape (N,).
    """

    constant: float
    tau: float
    rho: float
    embedding: tuple[float, float] | None
    ranks: FloatArray

    def law(self, speakers: int) -> FloatArray | None:
        """The rank law among another number of speakers, one trial added to each rank.

        Where N is that of the development speakers it is ``(h + 1) / (n + N)``; elsewhere the law
        fitted to h stands for the histogram, evaluated at N (docs/method.md section 3).

        Args:
            speakers: N of the scores.

        Returns:
            shape (N,), sums to 1; None where fewer than ten speakers are too few to fit a law for
            another N.
        """
        trials = self.ranks.sum()
        counts = self.ranks
        if speakers != counts.size:
            if counts.size < FEWEST:
                return None
            counts = trials * np.exp(fit(counts).log_pmf(speakers))
        return np.asarray((counts + 1.0) / (trials + speakers))


@dataclass(frozen=True)
class SpeakerSums:
    """The first K trials of every speaker who has as many.

    Attributes:
        matrix: the trials.
        tested: index into `ScoreMatrix.tested`, shape (S',).
        rows: of those trials, shape (S', K).
        alike: R of the rule ``embedding`` after each number of trials, shape (S', K), or None.
    """

    matrix: ScoreMatrix
    tested: IntArray
    rows: IntArray
    alike: FloatArray | None

    @classmethod
    def of(
        cls,
        matrix: ScoreMatrix,
        longest: int | None,
        most: int,
        embeddings: FloatArray | None,
        as_rows: bool = True,
    ) -> SpeakerSums:
        """Choose the trials: in the order of the rows, or in `settled_order`.

        Raises:
            UsageError: nobody has `longest` trials, or embeddings that are not one a trial.
        """
        counts = np.bincount(matrix.owner)
        length = min(int(np.median(counts)), most) if longest is None else longest
        tested = np.flatnonzero(counts >= length)
        if length < 1 or not tested.size:
            raise UsageError(
                f"{matrix.name}: no speaker has {plural(length, 'trial')}: ask for fewer"
            )
        order = np.arange(matrix.trials) if as_rows else settled_order(matrix)
        order = order[np.argsort(matrix.owner[order], kind="stable")]
        first = np.cumsum(counts) - counts
        rows = order[first[tested][:, None] + np.arange(length)]
        alike = None
        if embeddings is not None:
            if embeddings.ndim != 2 or len(embeddings) != matrix.trials:
                raise UsageError(f"{matrix.name}: give one embedding for each trial")
            alike = _alike(np.asarray(embeddings, dtype=np.float64)[rows])
        return cls(matrix, tested, rows, alike)

    @property
    def trials(self) -> IntArray:
        """1 to K."""
        return np.arange(1, self.rows.shape[1] + 1)

    @property
    def target(self) -> IntArray:
        """Column of each speaker: shape (S',)."""
        return self.matrix.tested[self.tested]

    def temper(self, weight: float, speakers: BoolArray) -> Tempering:
        """Learn the temperatures and the rank law of some of the speakers.

        Args:
            weight: of the calibration, for rows normalised with ddof = 0.
            speakers: which, shape (S',).
        """
        last = self.rows.shape[1]
        some = np.flatnonzero(speakers)
        target = self.target
        constant = fit_temperature(weight * self._final[some], target[some], last)
        at, sums = self._spaced
        thin = np.intersect1d(some, at)
        thin = thin if thin.size else some[:1]
        place = np.isin(at, thin)
        if not place.any():
            place[0] = True
        chosen = at[place]
        steps = self._steps
        ratios = weight * sums[place].reshape(-1, sums.shape[-1])
        whose = np.repeat(target[chosen], len(steps))
        grown = np.tile(steps, len(chosen)).astype(np.float64)
        tau, rho = fit_growing_temperature(ratios, whose, grown)
        embedding = None
        if self.alike is not None:
            alike = self.alike[chosen][:, steps].ravel()
            embedding = fit_growing_temperature(ratios, whose, alike)
        rows = np.isin(self.matrix.owner, self.tested[some])
        histogram = rank_histogram(
            self.matrix.better[rows], self.matrix.tied[rows], self.matrix.population
        )
        return Tempering(constant, tau, rho, embedding, histogram)

    def bits(
        self, weight: float, tempering: Tempering, speakers: BoolArray
    ) -> dict[str, FloatArray]:
        """``log2(N p)`` of some speakers after each trial, by rule: shape (speakers, K)."""
        some = np.flatnonzero(speakers)
        law = tempering.law(self.matrix.population)
        k = self.trials.astype(np.float64)
        temperature = {
            "sum": np.ones_like(k),
            "average": k,
            "temperature": np.full_like(k, tempering.constant),
            "count": tempering.tau * (1.0 + tempering.rho * (k - 1.0)),
        }
        found: dict[str, list[FloatArray]] = {}
        for part, normalised, scores in self._chunks(some):
            target = self.target[part][:, None]
            sums = weight * np.cumsum(normalised, axis=1)
            warmth: dict[str, FloatArray] = dict(temperature)
            if tempering.embedding is not None and self.alike is not None:
                tau, rho = tempering.embedding
                warmth["embedding"] = tau * (1.0 + rho * self.alike[part])
            for rule, each in warmth.items():
                found.setdefault(rule, []).append(tempered_bits(sums, target, each))
            if law is not None:
                evidence = np.cumsum(_rank_evidence(scores, law), axis=1)
                each = tempered_bits(evidence, target, np.ones_like(k))
                found.setdefault("rank", []).append(each)
        return {rule: np.concatenate(parts) for rule, parts in found.items()}

    @cached_property
    def _steps(self) -> IntArray:
        """Numbers of trials, less one, at which ``count`` is fitted: 1, 2, 4 ... K trials."""
        last = self.rows.shape[1]
        return np.unique([*(2 ** np.arange(int(np.log2(last)) + 1)), last]) - 1

    @cached_property
    def _final(self) -> FloatArray:
        """Sum of the normalised scores of all K trials: shape (S', N)."""
        every = np.arange(len(self.tested))
        return np.concatenate([z.sum(axis=1) for _, z, _ in self._chunks(every)])

    @cached_property
    def _spaced(self) -> tuple[IntArray, FloatArray]:
        """Speakers at even distances, and their sums after each of `_steps`."""
        each = len(self._steps) * self.matrix.population
        at = np.arange(0, len(self.tested), max(1, -(-len(self.tested) * each // _FITTED)))
        sums = [np.cumsum(z, axis=1)[:, self._steps] for _, z, _ in self._chunks(at)]
        return at, np.concatenate(sums)

    def _chunks(self, some: IntArray) -> Iterator[tuple[IntArray, FloatArray, FloatArray]]:
        """Speakers a few at a time: which, their normalised scores and scores (C, K, N)."""
        each = self.rows.shape[1] * self.matrix.population
        step = max(1, _CHUNK // each)
        for start in range(0, len(some), step):
            part = some[start : start + step]
            scores = np.asarray(self.matrix.scores[self.rows[part]], dtype=np.float64)
            yield part, normalise_rows(scores, ddof=0), scores


def _rank_evidence(scores: FloatArray, law: FloatArray) -> FloatArray:
    """Log of the law's probability of each candidate's rank, its mean over ranks that tie."""
    better, tied = all_rank_bounds(scores.reshape(-1, scores.shape[-1]))
    if (tied == 1).all():
        return np.asarray(np.log(law)[better].reshape(scores.shape))
    sums = np.concatenate([[0.0], np.cumsum(law)])
    shared = np.where(tied == 1, law[better], (sums[better + tied] - sums[better]) / tied)
    return np.asarray(np.log(shared).reshape(scores.shape))


def _alike(embeddings: FloatArray) -> FloatArray:
    """``R = (2 / k) sum_{i<j<=k} clip(cos, 0, 1)``: (S, K, d) to (S, K)."""
    embeddings = near_one(embeddings)
    length = np.linalg.norm(embeddings, axis=2, keepdims=True)
    unit = embeddings / np.where(length > 0, length, 1.0)
    cosine = np.clip(unit @ unit.transpose(0, 2, 1), 0.0, 1.0)
    earlier = np.tril(cosine, -1).sum(axis=2)
    return np.asarray(2.0 * np.cumsum(earlier, axis=1) / np.arange(1, cosine.shape[1] + 1))
