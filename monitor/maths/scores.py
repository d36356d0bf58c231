"""Similarity of a stream to each template (docs/method.md section 2); higher is more alike.

Every similarity splits into ``prepare`` (once, on the templates) and ``score`` (at each reading),
so that the default costs one matrix-vector product per reading.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np

from monitor.errors import UsageError
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray

PSEUDO_COUNT = 0.5  # a of docs/method.md section 2, added to every bin of a template

GRID_NATS = 2.0**-28


@dataclass(frozen=True, slots=True)
class Similarity:
    """One way to compare a sketch with templates."""

    name: str  # its name in stores and on the command line
    # whether the score grows with the evidence, like a log-likelihood. It is then an exact sum,
    # equal for one stream and for many at once.
    additive: bool
    # from templates, (N, M) counts or sums, or (N, S, M) if ``by_slice``, to prepared ones
    prepare: Callable[[AnyArray], FloatArray]
    # from prepared templates and totals, (M,) or (n, M), to scores (N,) or (n, N). Without frames,
    # all scores are 0.
    score: Callable[[FloatArray, AnyArray], FloatArray]
    by_slice: bool = False  # whether it compares with each slice of a template
    # whether scores have a fixed scale, so that their spread over a cohort does not depend on the
    # stream
    own_scale: bool = False
    # maximum error of a score from M numbers with templates in single precision; None if unknown
    bound: Callable[[int], float] | None = None

    def score_each(self, prepared: FloatArray, totals: AnyArray) -> FloatArray:
        """Score totals, shape (n, M), exactly as one at a time: shape (n, N)."""
        if self.additive and len(totals) > 1:
            return self.score(prepared, totals)
        return np.stack([self.score(prepared, total) for total in totals])


class SessionMixture:
    """Mixture of a person's templates, one per session: rows 0 to N - 1, then `owner`'s, (K,).

    With equally likely sessions, the likelihood of the mixture is the mean of theirs. If a ratio
    has a mean over other people of at most 1 for each session, so has the mixture's. It is at most
    log2 K bits below that of the best of K.

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

        Also return the row of each person's highest value, (R, N).
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
    # On a grid of 4e-9 nats, counts times these are whole numbers of grid steps. Every order of
    # summation then gives the same score to the last bit. Equal templates tie, a single stream
    # scores as in a batch, and all machines agree (up to 3e7 nats, ten hours).
    return np.round(np.log(shares) / GRID_NATS) * GRID_NATS


def unit_vectors(vectors: AnyArray) -> FloatArray:
    """Scale vectors, (..., M), to length 1 in double precision; zeros stay zeros."""
    vectors = np.asarray(vectors, dtype=np.float64)
    length = np.sqrt((vectors * vectors).sum(axis=-1, keepdims=True))
    return np.asarray(np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0))


def near_one(rows: AnyArray) -> FloatArray:
    """Scale each finite row (..., n) exactly, by a power of two, to a maximum below 1.

    Squares of such rows neither overflow nor vanish.
    """
    values = np.asarray(rows, dtype=np.float64)
    _, exponent = np.frexp(np.abs(values).max(axis=-1, keepdims=True))
    return np.asarray(np.ldexp(values, -exponent))


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
# VoxGuard's max scoring, over a template's slices of 5 s
_MAX_COSINE = Similarity(
    "embedding-max", False, unit_vectors, _largest_cosine, by_slice=True, own_scale=True
)
OF_VECTORS = {similarity.name: similarity for similarity in (_COSINE, _MAX_COSINE)}
"""Similarities of sums of embeddings, by name, the default first."""

# Running, mergeable summaries of one feature over a stream (docs/method.md section 1).
LONGEST = 1e24  # an embedding this long is damaged, and would outweigh all others


def are_countable(embeddings: AnyArray) -> BoolArray:
    """Return which embeddings, shape (k, d), have a length above 0 and below `LONGEST`: (k,)."""
    lengths = np.hypot.reduce(embeddings, axis=1, dtype=np.float64)
    countable: BoolArray = (lengths > 0) & (lengths < LONGEST)
    return countable


class _Sum:
    """Base of the sketches: a total that adds up."""

    __slots__ = ("frames", "total")
    _type: type[np.int64 | np.float64]

    def __init__(self, size: int) -> None:
        if size < 1:
            raise UsageError(f"size={size} must be a positive number of bins or dimensions")
        self.total: AnyArray = np.zeros(size, dtype=self._type)
        self.frames = 0

    def __add__(self, other: Self) -> Self:
        if type(self) is not type(other) or self.total.shape != other.total.shape:
            raise UsageError("only sketches of one kind and size can be added")
        merged = type(self)(self.total.size)
        np.add(self.total, other.total, out=merged.total)
        merged.frames = self.frames + other.frames
        return merged


class Histogram(_Sum):
    """Counts, shape (M,), of the bins so far.

    Example:
        >>> first, second = Histogram(4), Histogram(4)
        >>> first.learn_many(np.array([0, 2, 2]))
        >>> second.learn_one(3)
        >>> (first + second).total
        array([1, 0, 2, 1])
    """

    __slots__ = ()
    _type = np.int64

    def learn_one(self, value: Any) -> None:
        """Count one bin, 0 <= value < M."""
        self.learn_many(np.asarray([value]))

    def learn_many(self, values: AnyArray) -> None:
        """Count bins, shape (k,); anything outside 0..M-1 is a UsageError and counts nothing."""
        if values.shape[0] == 0:
            return
        self._check(values)
        self.total += np.bincount(values.astype(np.intp, copy=False), minlength=self.total.size)
        self.frames += int(values.shape[0])

    def correct(self, values: AnyArray, counts: BoolArray) -> None:
        """Add bins, shape (k,), if ``counts``, shape (k,), is true; otherwise subtract them."""
        change = np.where(counts, 1, -1)
        np.add.at(self.total, values.astype(np.intp, copy=False), change)
        self.frames += int(change.sum())

    def totals_after(self, values: AnyArray, ends: IntArray) -> tuple[AnyArray, IntArray]:
        """Compute the totals after the first ``ends[r]`` of these values, without adding them.

        From values (k,) and R ascending ends, it returns totals (R, M) and frames (R,).
        """
        if values.shape[0]:
            self._check(values)
        size, steps = self.total.size, ends.shape[0]
        step = np.repeat(np.arange(steps), np.diff(ends, prepend=0))
        places = step * size + values[: step.shape[0]].astype(np.intp, copy=False)
        totals = np.bincount(places, minlength=steps * size).reshape(steps, size)
        np.cumsum(totals, axis=0, out=totals)
        totals += self.total
        return totals, self.frames + ends

    def _check(self, values: AnyArray) -> None:
        size = self.total.size
        if values.ndim != 1 or values.dtype.kind not in "iu":
            raise UsageError(f"bins must be whole numbers, shape (k,), in 0..{size - 1}")
        if values.min() < 0 or values.max() >= size:
            raise UsageError(f"bins must lie in 0..{size - 1}")


class EmbeddingSum(_Sum):
    """Sum (d,) of the embeddings so far; scores use only its direction.

    Example:
        >>> total = EmbeddingSum(2)
        >>> total.learn_many(np.array([[2.0, 0.0], [0.0, 0.5], [np.nan, 1.0]]))
        >>> total.total, total.frames
        (array([2. , 0.5]), 2)
    """

    __slots__ = ()
    _type = np.float64

    def learn_one(self, value: Any) -> None:
        """Add one embedding, shape (d,)."""
        self.learn_many(np.asarray(value)[None])

    def learn_many(self, values: AnyArray) -> None:
        """Add embeddings, shape (k, d), one after the other so that batching leaves no trace.

        Embeddings of length 0, or of `LONGEST` or more, or with a number that is not finite, are
        ignored.
        """
        if values.ndim != 2 or values.shape[1] != self.total.size:
            raise UsageError(f"embeddings must have shape (k, {self.total.size})")
        values = values.astype(np.float64)
        for row in values[are_countable(values)]:
            self.total += row
            self.frames += 1

    def correct(self, values: AnyArray, counts: BoolArray) -> None:
        """Add embeddings, shape (k, d), if ``counts``, (k,), is true; otherwise subtract them."""
        usable = are_countable(values)
        for row, change in zip(values[usable], np.where(counts, 1, -1)[usable], strict=True):
            self.total += change * row.astype(np.float64)
            self.frames += int(change)

    def totals_after(self, values: AnyArray, ends: IntArray) -> tuple[AnyArray, IntArray]:
        """Compute totals (R, d) and frames (R,) like ``Histogram.totals_after``."""
        trial = self + type(self)(self.total.size)
        totals, frames = np.empty((ends.shape[0], self.total.size)), np.empty_like(ends)
        start = 0
        for r, end in enumerate(ends.tolist()):
            if end > start:
                trial.learn_many(values[start:end])
            totals[r], frames[r], start = trial.total, trial.frames, end
        return totals, frames


AnySketch: TypeAlias = Histogram | EmbeddingSum


# A margin needs no ground truth. It compares how well a stream's own past and the population
# explain its newest speech. It is positive while one voice continues, and falls when another voice
# or channel takes over.
SHARPNESS = 10.0
"""Sharpness of the mixture. With 0 all speakers have equal weight, with large values only the best
counts.
"""
PSEUDO_FRAMES = 200.0  # weight of the population in a voice's own distribution, in frames


def histogram_margin(
    counts: AnyArray, voice: AnyArray, log_templates: FloatArray, average: FloatArray,
    independent: float,
) -> float:  # fmt: skip
    """Compute the advantage of a voice's own histogram on new frames, in nats per frame.

    ``counts`` and ``voice`` are counts of new and earlier frames, (M,). ``log_templates`` are log
    probabilities of each speaker, (N, M), and ``average`` is their mean, (M,). The voice's own
    distribution is its histogram shrunk towards that mean. The population is a mixture in which one
    speaker made all new frames, `independent` of which are independent. With few it is the average
    of the log-likelihoods, with many the largest.

    Example:
        >>> shares = np.array([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]])
        >>> others, voice = (np.log(shares), shares.mean(axis=0)), np.array([1600, 200, 200])
        >>> new = np.array([8, 1, 1]), np.array([1, 1, 8])  # from the first voice, or the other
        >>> [round(histogram_margin(counts, voice, *others, 10), 2) for counts in new]
        [0.06, -1.17]
    """
    frequencies = counts / counts.sum()
    voice_fit = float(
        frequencies @ np.log((voice + PSEUDO_FRAMES * average) / (voice.sum() + PSEUDO_FRAMES))
    )
    others = independent * (log_templates @ frequencies)
    best = float(others.max())
    # scipy.special.logsumexp takes ten times as long for few numbers (benchmarks/runs.py)
    return voice_fit - (best + float(np.log(np.exp(others - best).mean()))) / independent


def embedding_margin(new: AnyArray, voice: AnyArray, others: FloatArray) -> float:
    """Compute the cosine of new embeddings with a voice's past minus that with the population.

    ``new`` and ``voice`` are sums of new and earlier embeddings, (d,), and ``others`` have length
    1, (N, d). As in `histogram_margin`, the population is a mixture, and speakers similar to the
    new embeddings count most. The speaker most similar to the voice itself is ignored, because that
    may be the same person, enrolled. The margin is in [-2, 2].

    Example:
        >>> others = np.array([[0, 1.0], [0.8, 0.6], [-1, 0]])
        >>> voice = np.array([2.0, 0])
        >>> same, other = (embedding_margin(np.array(x), voice, others) for x in ([3, 0], [0, 1]))
        >>> round(same, 2), round(other, 2)
        (1.07, -0.93)
    """
    length = float(np.sqrt(new @ new))
    lengths = length * float(np.sqrt(voice @ voice))
    voice_similarity = float(new @ voice) / lengths if lengths > 0 else 0.0
    if len(others) < 2:
        return voice_similarity
    similarities = np.delete(others @ new, (others @ voice).argmax()) / (length or 1.0)
    best = float(similarities.max())
    return (
        voice_similarity
        - best
        - float(np.log(np.exp(SHARPNESS * (similarities - best)).mean())) / SHARPNESS
    )


def level_margin(new: AnyArray, mean: AnyArray) -> float:
    """Compute the negative root mean square distance of levels from a stream's mean, in bels."""
    return -float(np.sqrt(np.mean((new - mean) ** 2)))


def find_split(margins: FloatArray) -> int:
    """Find the change between two stretches of constant mean, by least squares.

    Returns the number of margins before the change, 1 to n - 1; n is at least 2.
    """
    before = np.arange(1, margins.size)
    excess = np.cumsum(margins - margins.mean())[:-1]
    return int(before[np.argmax(excess**2 / (before * (margins.size - before)))])


def page_cusum(rises: FloatArray) -> tuple[float, int]:
    """Compute Page's cumulative sum ("Continuous inspection schemes", Biometrika 1954).

    Rises, shape (n,), are the evidence for a change in each observation, on average negative before
    it and positive after it. Returns the evidence for a change, at least 0, and the number of
    observations before it.

    Example:
        >>> page_cusum(np.array([-1.0, 0.5, -1.0, 2.0, 3.0])), page_cusum(np.array([-1.0, -1.0]))
        ((5.0, 3), (0.0, 2))
    """
    sums = np.cumsum(np.append(0.0, rises))
    at = int(sums.size - 1 - sums[::-1].argmin())
    return float(sums[-1] - sums[at]), at
