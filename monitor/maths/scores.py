"""How alike a stream and each template are (docs/method.md section 2); higher is more alike.

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
            score
            zero everywhere: no frames, no score.
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
        """Scores of totals, shape (n, M), each to the last bit as if it were alone: (n, N)."""
        if self.additive and len(totals) > 1:
            return self.score(prepared, totals)
        return np.stack([self.score(prepared, total) for total in totals])


class SessionMixture:
    """Several templates of a person, one a session: what they say together.

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
        >>> values, place = both.mixed(np.log([[1.0, 4.0, 3.0]]))
        >>> np.exp(values).round(6).tolist(), place.tolist()
        ([[2.0, 4.0]], [[2, 1]])
    """

    def __init__(self, people: int, owner: AnyArray) -> None:
        self.people, self.rows = people, people + len(owner)
        self._some, count = np.unique(owner, return_counts=True)
        self._index = np.repeat(self._some[:, None], 1 + count.max(initial=0), axis=1)
        self._there = np.arange(self._index.shape[1]) <= count[:, None]
        self._index[:, 1:][self._there[:, 1:]] = people + np.argsort(owner, kind="stable")

    def mixed(self, values: FloatArray) -> tuple[FloatArray, IntArray]:
        """Of log likelihoods of every row, (R, N + K), those of everybody, (R, N).

        And which row of each says most, (R, N).
        """
        made = values[:, : self.people].copy()
        place = np.tile(np.arange(self.people), (len(values), 1))
        each = np.where(self._there, values[:, self._index], -np.inf)
        best = each.argmax(axis=2)
        place[:, self._some] = np.take_along_axis(
            np.broadcast_to(self._index, each.shape), best[..., None], axis=2
        )[..., 0]
        most = each.max(axis=2)
        with np.errstate(invalid="ignore"):
            share = np.exp(each - most[..., None]).sum(axis=2) / self._there.sum(axis=1)
        made[:, self._some] = np.where(np.isfinite(most), most + np.log(share), most)
        return made, place

    @staticmethod
    def taken(rows: FloatArray, place: IntArray) -> FloatArray:
        """Of rows (R, F, N + K) those at (R, N) places: (R, F, N)."""
        return np.take_along_axis(rows, place[:, None], axis=2)


def _smoothed(templates: AnyArray) -> FloatArray:
    counts = np.asarray(templates, dtype=np.float64) + PSEUDO_COUNT
    return np.asarray(counts / counts.sum(axis=-1, keepdims=True))


def _log_probabilities(templates: AnyArray) -> FloatArray:
    # on a grid of 4e-9 nats, counts times these are whole numbers of grid steps: every order of
    # summation gives the same score to the last bit, so that equal templates tie, one stream scores
    # as it does in a batch, and every machine agrees (up to 3e7 nats, ten hours)
    return np.round(np.log(_smoothed(templates)) / GRID_NATS) * GRID_NATS


def unit_vectors(vectors: AnyArray) -> FloatArray:
    """Of length 1, in double precision: shape (..., M); zeros stay zeros."""
    vectors = np.asarray(vectors, dtype=np.float64)
    length = np.sqrt((vectors * vectors).sum(axis=-1, keepdims=True))
    return np.asarray(np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0))


def _normalised(totals: AnyArray) -> FloatArray:
    totals = np.asarray(totals, dtype=np.float64)
    mass = totals.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(totals, mass, out=np.zeros_like(totals), where=mass > 0))


def _product(prepared: FloatArray, totals: AnyArray) -> FloatArray:
    totals = np.asarray(totals, dtype=prepared.dtype)
    # templates @ totals for one stream: BLAS reads the matrix once, in its own order
    product = prepared @ totals if totals.ndim == 1 else totals @ prepared.T
    return np.asarray(product, dtype=np.float64)


def _cosine_bound(size: int) -> float:
    """Of unit vectors: each number is rounded, as is each term, and each sum of them."""
    return (size + 4) * 2.0**-24


def _cosine(prepared: FloatArray, totals: AnyArray) -> FloatArray:
    return _product(prepared, unit_vectors(totals))


def _largest_cosine(prepared: FloatArray, totals: AnyArray) -> FloatArray:
    speakers, slices, size = prepared.shape
    each = _cosine(prepared.reshape(-1, size), totals)
    return np.asarray(each.reshape(*each.shape[:-1], speakers, slices).max(axis=-1))


def _hellinger(prepared: FloatArray, totals: AnyArray) -> FloatArray:
    overlap = _product(prepared, np.sqrt(_normalised(totals)))
    heard = np.asarray(totals).sum(axis=-1, keepdims=np.ndim(totals) > 1) > 0
    return np.where(heard, -np.sqrt(np.maximum(1.0 - overlap, 0.0)), 0.0)


def _rowwise(
    distance: Callable[[FloatArray, FloatArray], FloatArray],
) -> Callable[[FloatArray, AnyArray], FloatArray]:
    def score(prepared: FloatArray, totals: AnyArray) -> FloatArray:
        rows = np.atleast_2d(np.asarray(totals))
        result = np.zeros((rows.shape[0], prepared.shape[0]))
        for i, row in enumerate(rows):
            if row.sum() > 0:
                result[i] = -distance(prepared, _normalised(row))
        return result if np.ndim(totals) > 1 else result[0]

    return score


def _jensen_shannon(templates: FloatArray, heard: FloatArray) -> FloatArray:
    middle = 0.5 * (templates + heard)
    # templates are smoothed and never zero; an empty bin contributes 0 log 0 = 0
    seen = heard > 0
    own = (templates * np.log(templates / middle)).sum(axis=1)
    other = (heard[seen] * np.log(heard[seen] / middle[:, seen])).sum(axis=1)
    return np.asarray(0.5 * (own + other))


def _wasserstein(templates: FloatArray, heard: FloatArray) -> FloatArray:
    return np.asarray(np.abs(np.cumsum(templates - heard, axis=1)).sum(axis=1))


def _by_name(*similarities: Similarity) -> dict[str, Similarity]:
    return {each.name: each for each in similarities}


OF_COUNTS = _by_name(
    Similarity("log-likelihood", True, _log_probabilities, _product),
    Similarity("hellinger", False, lambda t: np.sqrt(_smoothed(t)), _hellinger),
    Similarity("jensen-shannon", False, _smoothed, _rowwise(_jensen_shannon)),
    Similarity("l1", False, _smoothed, _rowwise(lambda t, h: np.abs(t - h).sum(axis=1))),
    Similarity("l2", False, _smoothed, _rowwise(lambda t, h: np.sqrt(((t - h) ** 2).sum(axis=1)))),
    Similarity("cosine", False, lambda t: unit_vectors(_smoothed(t)), _cosine),
    Similarity("wasserstein", False, _smoothed, _rowwise(_wasserstein)),
)
"""Those of histograms, the default first.

Example:
    >>> likelihood = OF_COUNTS["log-likelihood"]
    >>> templates = likelihood.prepare(np.array([[9, 1, 0], [0, 1, 9]]))
    >>> likelihood.score(templates, np.array([3, 0, 0])).argmax()
    np.int64(0)
"""
OF_VECTORS = _by_name(
    Similarity(
        "embedding-cosine", False, unit_vectors, _cosine, own_scale=True, bound=_cosine_bound
    ),
    # VoxGuard's max scoring, over the slices of 5 s that a template is kept in
    Similarity(
        "embedding-max", False, unit_vectors, _largest_cosine, by_slice=True, own_scale=True
    ),
)
"""Those of sums of embeddings, the default first."""
