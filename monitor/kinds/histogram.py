"""Histograms: features whose frames are bins, counted (pitch, phones, codes, words)."""

from __future__ import annotations

import numpy as np

from monitor.errors import UsageError
from monitor.kinds.base import Kind, within
from monitor.kinds.following import MOST_TEMPLATES, FollowedVoice, Sensitivity
from monitor.maths.margin import histogram_margin
from monitor.maths.scores import OF_COUNTS
from monitor.maths.sketch import AnySketch, Histogram
from monitor.types import AnyArray, BoolArray, FloatArray

__all__ = ["HISTOGRAM", "MOST_COUNT"]

MOST_COUNT = 1e9
"""Of one bin in one slice: sums over a template stay whole numbers, exact in double precision."""
_MOST_BINS = 1 << 31


class _HistogramKind(Kind):
    """Frames are whole numbers 0..M-1, shape (k,); a sketch counts them."""

    name = "histogram"
    # an embedding beside them notices all that they do, and they cry wolf
    beside_discerning = 1e-4
    open_size = True
    counted = True
    unusable = "not a bin"
    wide = np.int64
    stored = "<i8"
    least = 0.0
    similarities = OF_COUNTS

    def none(self, size: int) -> AnyArray:
        return np.empty(0, np.intp)

    def holds(self, values: AnyArray) -> bool:
        return values.ndim == 1 and values.dtype.kind in "iu"

    def size_of(self, values: AnyArray, stated: int | None) -> int:
        if stated is not None:
            return stated
        seen = int(values.max(initial=1)) + 1
        if seen >= _MOST_BINS:
            raise ValueError(f"has bin {seen - 1}; state its size in the header")
        return seen

    def usable(self, values: AnyArray, size: int) -> tuple[AnyArray, BoolArray]:
        good: BoolArray = (values >= 0) & (values < size)
        if values.dtype.kind == "u" and values.dtype.itemsize == 8:
            values = np.where(good, values, 0)
        return values.astype(np.int64), good

    def check(self, name: str, values: AnyArray, count: int, size: int) -> None:
        if values.shape != (count,) or values.dtype.kind not in "iu":
            raise UsageError(f"the bins of {name} must be whole numbers, shape (k,)")
        if count and not 0 <= values.min() <= values.max() < size:
            raise UsageError(f"the bins of {name} must lie in 0..{size - 1}")

    def fits(self, size: int, enrolled: int) -> bool:
        return size <= enrolled

    def sketch(self, size: int) -> AnySketch:
        return Histogram(size)

    def total(self, values: AnyArray, size: int) -> AnyArray:
        return np.bincount(values, minlength=size)

    def narrow(self, values: AnyArray, size: int) -> AnyArray:
        return values.astype(np.min_scalar_type(max(size - 1, 1)))

    def packed(self, slices: AnyArray) -> AnyArray:
        return slices.astype(np.uint16 if slices.max(initial=0) < 2**16 else np.uint32)

    def wrong_slices(self, slices: AnyArray) -> str:
        good = slices.dtype.kind in "iu" and within(slices, 0, MOST_COUNT)
        return "" if good else f"counts from 0 to {MOST_COUNT:g}"

    def background_row(self, sketch: AnySketch) -> AnyArray:
        return sketch.total

    def packed_background(self, rows: AnyArray) -> AnyArray:
        return rows.astype(np.min_scalar_type(int(rows.max(initial=0))))

    def follow(self, others: AnyArray, how: Sensitivity) -> FollowedVoice:
        return _Followed(others, how)


class _Followed(FollowedVoice):
    LEAST = 0.0

    def __init__(self, templates: AnyArray, how: Sensitivity) -> None:
        smoothed = templates[:: -(-len(templates) // MOST_TEMPLATES)] + 0.5
        shares = smoothed / smoothed.sum(axis=1, keepdims=True)
        self._others: FloatArray = np.log(shares)
        self._average: FloatArray = shares.mean(axis=0)
        super().__init__(templates.shape[1], how)

    def _frames_of(self, values: AnyArray) -> AnyArray:
        last = self._size - 1
        whole = values.ndim == 1 and (values.dtype.kind in "iu" or not values.size)
        if not whole or (values.size and not 0 <= values.min() <= values.max() <= last):
            raise UsageError(f"bins must be whole numbers in 0..{last}, shape (k,)")
        return values.astype(np.intp, copy=False)

    def _sum(self, values: AnyArray) -> FloatArray:
        return np.bincount(values, minlength=self._size).astype(np.float64)

    def _margin(self, unit: FloatArray, own: FloatArray, frames: int) -> float:
        independent = self._how.unit_frames / 3
        return histogram_margin(unit, own, self._others, self._average, independent)


HISTOGRAM: Kind = _HistogramKind()
"""The kind of features whose frames are bins."""
