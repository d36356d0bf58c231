"""Embeddings: features whose frames are directions in space, made by a speaker network."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from monitor.errors import UsageError
from monitor.kinds.base import Kind, within
from monitor.kinds.following import MOST_HELD, MOST_TEMPLATES, Fall, FollowedVoice, Sensitivity
from monitor.maths.margin import embedding_margin, page_cusum
from monitor.maths.scores import OF_VECTORS
from monitor.maths.sketch import AnySketch, EmbeddingSum
from monitor.types import AnyArray, BoolArray, FloatArray

__all__ = ["EMBEDDING", "MOST_LENGTH"]

MOST_LENGTH = 1e6
"""Of a slice's sum of embeddings, each of length 1."""


class _EmbeddingKind(Kind):
    """Frames are vectors, shape (k, d), of which only the direction counts; a sketch adds them."""

    name = "embedding"
    discerning = True
    pointed = True
    wants_background = True
    least = -1e15
    similarities = OF_VECTORS

    def none(self, size: int) -> AnyArray:
        return np.empty((0, size))

    def holds(self, values: AnyArray) -> bool:
        return values.ndim == 2 and values.shape[1] > 0 and values.dtype.kind == "f"

    def size_of(self, values: AnyArray, stated: int | None) -> int:
        if stated not in (None, values.shape[1]):
            raise ValueError(f"has {values.shape[1]} dimensions, its header says {stated}")
        return int(values.shape[1])

    def usable(self, values: AnyArray, size: int) -> tuple[AnyArray, BoolArray]:
        return values, np.logical_and.reduce(np.isfinite(values), axis=1)

    def check(self, name: str, values: AnyArray, count: int, size: int) -> None:
        if values.dtype.kind != "f" or values.shape != (count, size):
            raise UsageError(f"the frames of {name} must be floats, shape (k, {size})")

    def counting(self, values: AnyArray) -> BoolArray | None:
        length = np.hypot.reduce(values, axis=1)  # without one, or a number, no direction
        counts: BoolArray = (length > 0) & (length < np.inf)
        return None if counts.all() else counts

    def sketch(self, size: int) -> AnySketch:
        return EmbeddingSum(size)

    def total(self, values: AnyArray, size: int) -> AnyArray:
        values = values.astype(np.float64)
        length = np.hypot.reduce(values, axis=1, keepdims=True)
        usable = (length > 0) & np.isfinite(length)
        unit = np.divide(values, length, out=np.zeros_like(values), where=usable)
        return np.asarray(unit.sum(axis=0))

    def span_seconds(self, frame_seconds: float) -> float:
        return frame_seconds

    def packed(self, slices: AnyArray) -> AnyArray:
        return slices.astype(np.float32)

    def wrong_slices(self, slices: AnyArray) -> str:
        good = slices.dtype.kind == "f" and within(slices, -MOST_LENGTH, MOST_LENGTH)
        return "" if good else "finite sums of embeddings"

    def background_row(self, sketch: AnySketch) -> AnyArray:
        return sketch.total / sketch.frames if sketch.frames else sketch.total

    def packed_background(self, rows: AnyArray) -> AnyArray:
        return rows.astype(np.float16)  # a cosine moves by less than 1e-4

    def wrong_background(self, rows: AnyArray) -> str:
        return "holds no means of embeddings" if (np.abs(rows) > 1).any() else ""

    def follow(self, others: AnyArray, how: Sensitivity) -> FollowedVoice:
        return _Followed(others, how)


class _Followed(FollowedVoice):
    """Says by itself whether one person spoke: no ADWIN, margins are added up as Page does."""

    def __init__(self, templates: AnyArray, how: Sensitivity) -> None:
        some = templates[:: -(-len(templates) // MOST_TEMPLATES)] if len(templates) else templates
        self._others: FloatArray = _unit(some.astype(np.float64))
        super().__init__(templates.shape[1], how)

    def reset(self) -> None:
        super().reset()
        self._doubted = 0  # newest units that together speak for a change

    def restore(self, arrays: Mapping[str, AnyArray]) -> None:
        super().restore(arrays)
        self._doubted = len(self._held)

    def _most_held(self) -> int:
        """What speaks for a change is not learnt before it is known to be none."""
        return min(self._doubted, MOST_HELD)

    def _look(self) -> Fall | None:
        recent = np.array(self._margins[-1 - len(self._held) :])  # there was no evidence before
        nats, at = page_cusum(self._how.gain * (self._how.level - recent))
        self._doubted = recent.size - at
        if nats <= -np.log(self._how.delta):
            return None
        at += len(self._margins) - recent.size
        before = float(np.mean(self._margins[:at])) if at else self._how.level
        return Fall(self._began[at], before, float(np.mean(self._margins[at:])))

    def _frames_of(self, values: AnyArray) -> AnyArray:
        if values.ndim != 2 or values.shape[1] != self._size:
            raise UsageError(f"embeddings must have shape (k, {self._size})")
        return _unit(values.astype(np.float64))

    def _sum(self, values: AnyArray) -> FloatArray:
        return np.asarray(values.sum(axis=0))

    def _margin(self, unit: FloatArray, own: FloatArray, frames: int) -> float:
        return embedding_margin(unit, own, self._others)

    def _usual(self, margins: FloatArray) -> float:
        return min(self._how.level, float(margins.mean()))


def _unit(vectors: FloatArray) -> FloatArray:
    """Length-normalised rows; those without a direction are left out."""
    lengths = np.hypot.reduce(vectors, axis=1)
    good = (lengths > 0) & np.isfinite(lengths)
    return np.asarray(vectors[good] / lengths[good, None])


EMBEDDING: Kind = _EmbeddingKind()
"""The kind of features whose frames are directions in space."""
