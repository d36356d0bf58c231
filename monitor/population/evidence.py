"""The part of a law that turns normalised scores into likelihood ratios, by length of speech.

Source: docs/method.md section 10.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from monitor.errors import StoreError
from monitor.network_marks import is_mark
from monitor.population.neighbours import neighbours
from monitor.types import AnyArray, FloatArray

__all__ = ["EvidenceLaw", "EvidencePoint", "LengthEvidence"]

_MOST = 1e4
"""Nats of a coefficient, or bits of support, that no calibration reaches."""


@dataclass(frozen=True, slots=True)
class EvidenceLaw:
    """``log LR_j = a + sum_f b_f z_fj`` on a grid of test lengths T and template lengths D.

    Row 0 of ``intercept`` and ``slopes`` is the law; rows 1..B are its resamples. A cell that the
    corpus could not reach is NaN.

    Attributes:
        lengths: T, speech seconds, shape (nT,), increasing.
        template_lengths: D, speech seconds, shape (nD,), increasing.
        intercept: a, nats, shape (1 + B, nT, nD).
        slopes: b >= 0, nats, shape (1 + B, nT, nD, F), in the order of the rank law's features.
        support: the most bits that the calibration's people can support, each length by itself,
            shape (nT, nD).
        area: how well the sum of all ratios tells enrolled speakers from strangers, area under the
            ROC curve on speakers left out of the fit, shape (nT, nD).
        cohort: marks of each feature of the cohort that scores were set against (``Cohort.mark``):
            with another one it means nothing. Shape (F,).
    """

    lengths: FloatArray
    template_lengths: FloatArray
    intercept: FloatArray
    slopes: FloatArray
    support: FloatArray
    area: FloatArray
    cohort: tuple[str, ...]

    def __post_init__(self) -> None:
        cells = self.lengths.size, self.template_lengths.size
        replicates = self.intercept.shape[0] if self.intercept.ndim else 0
        if (
            self.intercept.shape != (replicates, *cells)
            or self.slopes.shape[:-1] != (replicates, *cells)
            or self.support.shape != cells
            or self.area.shape != cells
        ):
            raise StoreError("the parts of an evidence law do not have the shapes of one grid")
        reached = np.isfinite(self.support)
        told = (self.intercept[:, reached], self.slopes[:, reached], self.support[reached])
        good = all((np.abs(each) <= _MOST).all() for each in told)
        if replicates < 2 or not reached.any() or not good:
            raise StoreError("an evidence law needs a cell, a resample, and coefficients in range")
        if (told[1] < 0).any() or (told[2] < 0).any() or not _is_share(self.area[reached]):
            raise StoreError("an evidence law has negative slopes or support, or areas beyond 1")
        marks = self.cohort if isinstance(self.cohort, tuple) else ()
        if len(marks) != self.slopes.shape[-1] or not all(each and is_mark(each) for each in marks):
            raise StoreError("an evidence law does not say which cohort it was learnt against")

    def pack(self, start: str) -> dict[str, AnyArray]:
        """Arrays for a store, their names beginning so; resamples in half precision."""
        return {
            f"{start}intercept": self.intercept[0].astype(np.float32),
            f"{start}slopes": self.slopes[0].astype(np.float32),
            # they are spread, not precision
            f"{start}intercepts": self.intercept[1:].astype(np.float16),
            f"{start}slope_draws": self.slopes[1:].astype(np.float16),
            f"{start}support": self.support.astype(np.float32),
            f"{start}area": self.area.astype(np.float32),
        }

    @classmethod
    def unpack(
        cls,
        start: str,
        arrays: Mapping[str, AnyArray],
        lengths: FloatArray,
        template_lengths: FloatArray,
        cohort: tuple[str, ...],
    ) -> EvidenceLaw:
        """The reverse of ``pack``, on the grid of the rank law.

        Raises:
            StoreError: it is no law.
            KeyError: a part is missing.
        """

        def part(*names: str) -> FloatArray:
            found = [arrays[f"{start}{name}"] for name in names]
            if any(each.dtype.kind != "f" for each in found):
                raise StoreError("an evidence law is no table of numbers")
            first = found[0].astype(np.float64)
            if len(found) == 1:
                return first
            return np.concatenate([first[None], found[1].astype(np.float64)])

        return cls(
            lengths,
            template_lengths,
            part("intercept", "intercepts"),
            part("slopes", "slope_draws"),
            part("support"),
            part("area"),
            cohort,
        )

    def at_template(self, seconds: float) -> LengthEvidence:
        """The law for templates of D speech seconds.

        Between two template lengths it is interpolated in log D; outside them, or where only one
        was reached, the nearest holds. What shorter speech supports, longer speech supports: the
        support at T is the largest of all lengths up to T.
        """
        reached = np.isfinite(self.support)
        rows = np.flatnonzero(reached.any(axis=1))
        parts = []
        for t in rows:
            left, right, w = neighbours(self.template_lengths, reached[t], seconds)
            parts.append([
                (1.0 - w) * each[..., left] + w * each[..., right]
                for each in (
                    self.intercept[:, t],
                    np.moveaxis(self.slopes[:, t], 1, -1),
                    self.support[t],
                    self.area[t],
                )
            ])  # fmt: skip
        intercept, slopes, support, area = (np.stack(each) for each in zip(*parts, strict=True))
        # fewer people are long enough heard to calibrate more speech, which tells no less for that
        support = np.maximum.accumulate(support)
        return LengthEvidence(self.lengths[rows], intercept, slopes, support, area)


@dataclass(frozen=True, slots=True)
class EvidencePoint:
    """The law at R test lengths; row 0 the law, rows 1..B its resamples.

    Attributes:
        intercept: a, nats, shape (R, 1 + B).
        slopes: b, nats, shape (R, 1 + B, F).
        support: bits, shape (R,).
        area: shape (R,).
    """

    intercept: FloatArray
    slopes: FloatArray
    support: FloatArray
    area: FloatArray


@dataclass(frozen=True, slots=True)
class LengthEvidence:
    """The evidence law at one template length, continuous in the test length T.

    Inside the grid a and b are interpolated in log T, which keeps the promise: where other people's
    mean ratio is at most 1 at both ends, it is in between (Hoelder's inequality). Below the grid
    the ratio fades to 1, nothing at T = 0 (Jensen's). Beyond it the last law holds.

    Attributes:
        lengths: T of the grid, shape (nT,).
        intercept: shape (nT, 1 + B).
        slopes: shape (nT, 1 + B, F).
        support: shape (nT,), never falling.
        area: shape (nT,).
    """

    lengths: FloatArray
    intercept: FloatArray
    slopes: FloatArray
    support: FloatArray
    area: FloatArray

    _table: FloatArray = field(init=False, repr=False)
    _bounds: FloatArray = field(init=False, repr=False)
    _logs: FloatArray = field(init=False, repr=False)
    _gaps: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # one table of all coefficients: a reading looks them up once
        logs = np.log(self.lengths)
        made = {
            "_table": np.concatenate([self.intercept[..., None], self.slopes], axis=-1),
            "_bounds": np.column_stack([self.support, self.area]),
            "_logs": logs,
            "_gaps": np.append(np.diff(logs), 1.0),
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)

    def at(self, seconds: FloatArray) -> EvidencePoint:
        """The law at T speech seconds, shape (R,); a moment does not depend on the others."""
        first, last = self.lengths[0], self.lengths[-1]
        inside = np.minimum(np.maximum(seconds, first), last)
        left = np.maximum(np.searchsorted(self.lengths, inside) - 1, 0)
        right = np.minimum(left + 1, self.lengths.size - 1)
        w = (np.log(inside) - self._logs[left]) / self._gaps[left]
        fade = np.minimum(seconds / first, 1.0)
        near, far = (fade * (1.0 - w))[:, None, None], (fade * w)[:, None, None]
        table = near * self._table[left] + far * self._table[right]
        lower, upper = self._bounds[left], self._bounds[right]
        bounds = lower + w[:, None] * (upper - lower)  # equal ends stay what they are
        return EvidencePoint(table[..., 0], table[..., 1:], bounds[:, 0], bounds[:, 1])


def _is_share(values: FloatArray) -> bool:
    return bool(((values >= 0) & (values <= 1)).all())
