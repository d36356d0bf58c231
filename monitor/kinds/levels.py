"""Levels: what a voice comes through. In no template; followed for changes against its own past."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from monitor.errors import UsageError
from monitor.kinds.base import Kind
from monitor.kinds.following import FollowedVoice, Sensitivity
from monitor.maths.margin import level_margin
from monitor.maths.sketch import AnySketch
from monitor.types import AnyArray, BoolArray, FloatArray

__all__ = ["LEVELS"]


class _LevelsKind(Kind):
    """Frames are levels in bels, shape (k, M)."""

    name = "levels"
    enrolled = False
    own_past = True

    def none(self, size: int) -> AnyArray:
        return np.empty((0, size))

    def holds(self, values: AnyArray) -> bool:
        return values.ndim == 2 and values.dtype.kind == "f"

    def size_of(self, values: AnyArray, stated: int | None) -> int:
        return int(values.shape[1])

    def usable(self, values: AnyArray, size: int) -> tuple[AnyArray, BoolArray]:
        return values, np.logical_and.reduce(np.isfinite(values), axis=1)

    def check(self, name: str, values: AnyArray, count: int, size: int) -> None:
        if values.dtype.kind != "f" or values.shape != (count, size):
            raise UsageError(f"the levels of {name} must be floats, shape (k, {size})")

    def sketch(self, size: int) -> AnySketch:
        return self._refused(size)

    def total(self, values: AnyArray, size: int) -> AnyArray:
        return self._refused(size)

    def packed(self, slices: AnyArray) -> AnyArray:
        return self._refused(slices)

    def wrong_slices(self, slices: AnyArray) -> str:
        return "of another kind: levels make no templates"

    def background_row(self, sketch: AnySketch) -> AnyArray:
        return self._refused(sketch)

    def packed_background(self, rows: AnyArray) -> AnyArray:
        return self._refused(rows)

    def follow(self, others: AnyArray, how: Sensitivity) -> FollowedVoice:
        return _Followed(others.shape[1], how)

    @staticmethod
    def _refused(_: object) -> NoReturn:
        raise UsageError("levels are followed for changes alone: no template is made of them")


class _Followed(FollowedVoice):
    def _frames_of(self, values: AnyArray) -> AnyArray:
        if values.ndim != 2 or values.shape[1] != self._size:
            raise UsageError(f"levels must have shape (k, {self._size})")
        return values

    def _sum(self, values: AnyArray) -> FloatArray:
        return np.asarray(values.sum(axis=0))

    def _margin(self, unit: FloatArray, own: FloatArray, frames: int) -> float:
        return level_margin(unit / self._how.unit_frames, own / frames)


LEVELS: Kind = _LevelsKind()
"""The kind of what is followed for changes alone."""
