"""Similarity of a stream to each template (docs/method.md section 2); higher is more alike.

Every similarity splits into ``prepare`` (once, on the templates) and ``score`` (at each reading),
so that the default costs one matrix-vector product a reading.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from monitor.types import AnyArray, FloatArray, IntArray

PSEUDO_COUNT = 0.5
"""a of docs/method.md section 2: what is added to every bin of a template."""

GRID_NATS = 2.0**-28


@dataclass(frozen=True, slots=True)
class Similarity:
    """One way to compare a sketch with templates.

    Attributes:
        name: how it is called in stores and on the command line.
        additive: the score grows with the evidence (a log-likelihood does), and is an exact sum:
            the same for one stream as for many at once.
        prepare: templates, (N, M) counts or sums, or with ``by_slice`` (N, S, M): prepared ones.
        score: prepared templates and totals, (M,) or (n, M), to (N,) or (n, N). Totals of zero
            score zero everywhere: no frames, no score.
        by_slice: it compares with each slice of a template.
        own_scale: scores are on one scale whatever was heard, so that their spread over a cohort is
            the cohort's own, not a stream's.
        bound: of M numbers, the most by which a score is off whose templates are kept in single
            precision; None where that is not known.
    """

    name: str
    additive: bool
    prepare: Callable[[AnyArray], FloatArray]
    score: Callable[[FloatArray, AnyArray], FloatArray]
    by_slice: bool = False
    own_scale: bool = False
    bound: Callable[[int], float] | None = None

    def score_each(self, prepared: FloatArray, totals: AnyArray) -> FloatArray:
        """Score totals, shape (n, M), each to the last bit as if it were alone: (n, N)."""
        if self.additive and len(totals) > 1:
            return self.score(prepared, totals)
        return np.stack([self.score(prepared, total) for total in totals])


class SessionMixture:
    """Mixture of a person's templates, one a session.

    The likelihood of a mixture in which every session is as likely: the mean of the likelihoods of
    the sessions. So a ratio whose mean over other people is at most 1 for each session has that
    mean over all of them, and is at most log2 K bits below that of the best of K.

    Args:
        people: N; rows 0 to N - 1 are their first templates.
        owner: shape (K,): whose template each further row is.

    Attributes:
        rows: N + K.

    Example:
        >>> both = SessionMixture(2, np.array([0]))
        >>> values, place = both.mix(np.log([[1.0, 4.0, 3.0]]))
        >>> np.exp(values).round(6).tolist(), place.tolist()
        ([[2.0, 4.0]], [[2, 1]])
    """

    def __init__(self, people: int, owner: AnyArray) -> None:
        self.people, self.rows = people, people + len(owner)
        self._repeated, count = np.unique(owner, return_counts=True)
        self._index = np.repeat(self._repeated[:, None], 1 + count.max(initial=0), axis=1)
        self._is_session = np.arange(self._index.shape[1]) <= count[:, None]
        self._index[:, 1:][self._is_session[:, 1:]] = people + np.argsort(owner, kind="stable")

    def mix(self, values: FloatArray) -> tuple[FloatArray, IntArray]:
        """Mix log likelihoods of every row, (R, N + K), into those of every person, (R, N).

        And which row of each says most, (R, N).
        """
        mixture = values[:, : self.people].copy()
        rows = np.tile(np.arange(self.people), (len(values), 1))
        session_values = np.where(self._is_session, values[:, self._index], -np.inf)
        best = session_values.argmax(axis=2)
        rows[:, self._repeated] = np.take_along_axis(
            np.broadcast_to(self._index, session_values.shape), best[..., None], axis=2
        )[..., 0]
        maximum = session_values.max(axis=2)
        with np.errstate(invalid="ignore"):
            likelihood = np.exp(session_values - maximum[..., None]).sum(
                axis=2
            ) / self._is_session.sum(axis=1)
        mixture[:, self._repeated] = np.where(
            np.isfinite(maximum), maximum + np.log(likelihood), maximum
        )
        return mixture, rows

    @staticmethod
    def select(rows: FloatArray, chosen: IntArray) -> FloatArray:
        """Select from rows (R, F, N + K) those at (R, N) places: (R, F, N)."""
        return np.take_along_axis(rows, chosen[:, None], axis=2)


def _log_probabilities(templates: AnyArray) -> FloatArray:
    counts = np.asarray(templates, dtype=np.float64) + PSEUDO_COUNT
    shares: FloatArray = counts / counts.sum(axis=-1, keepdims=True)
    # on a grid of 4e-9 nats, counts times these are whole numbers of grid steps: every order of
    # summation gives the same score to the last bit, so that equal templates tie, one stream scores
    # as it does in a batch, and every machine agrees (up to 3e7 nats, ten hours)
    return np.round(np.log(shares) / GRID_NATS) * GRID_NATS


def unit_vectors(vectors: AnyArray) -> FloatArray:
    """Scale vectors to length 1, in double precision: shape (..., M); zeros stay zeros."""
    vectors = np.asarray(vectors, dtype=np.float64)
    length = np.sqrt((vectors * vectors).sum(axis=-1, keepdims=True))
    return np.asarray(np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0))


def _product(prepared: FloatArray, totals: AnyArray) -> FloatArray:
    totals = np.asarray(totals, dtype=prepared.dtype)
    # templates @ totals for one stream: BLAS reads the matrix once, in its own order
    product = prepared @ totals if totals.ndim == 1 else totals @ prepared.T
    return np.asarray(product, dtype=np.float64)


def _cosine_bound(size: int) -> float:
    """Bound the rounding error of a cosine of unit vectors in single precision."""
    return (size + 4) * 2.0**-24


def _cosine(prepared: FloatArray, totals: AnyArray) -> FloatArray:
    return _product(prepared, unit_vectors(totals))


def _largest_cosine(prepared: FloatArray, totals: AnyArray) -> FloatArray:
    speakers, slices, size = prepared.shape
    cosines = _cosine(prepared.reshape(-1, size), totals)
    return np.asarray(cosines.reshape(*cosines.shape[:-1], speakers, slices).max(axis=-1))


_LOG_LIKELIHOOD = Similarity("log-likelihood", True, _log_probabilities, _product)
OF_COUNTS = {_LOG_LIKELIHOOD.name: _LOG_LIKELIHOOD}
"""Similarities of histograms, by name.

Example:
    >>> likelihood = OF_COUNTS["log-likelihood"]
    >>> templates = likelihood.prepare(np.array([[9, 1, 0], [0, 1, 9]]))
    >>> likelihood.score(templates, np.array([3, 0, 0])).argmax()
    np.int64(0)
"""
_COSINE = Similarity(
    "embedding-cosine", False, unit_vectors, _cosine, own_scale=True, bound=_cosine_bound
)
# VoxGuard's max scoring, over the slices of 5 s that a template is kept in
_MAX_COSINE = Similarity(
    "embedding-max", False, unit_vectors, _largest_cosine, by_slice=True, own_scale=True
)
OF_VECTORS = {how.name: how for how in (_COSINE, _MAX_COSINE)}
"""Similarities of sums of embeddings, by name, the default first."""
