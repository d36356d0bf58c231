"""Likelihood ratios on a grid of lengths (docs/method.md section 10)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from monitor.kinds import is_mark
from monitor.maths.condition import NEW, UNLIKE
from monitor.maths.evidence import UNBOUNDED, ConditionEffect, ConditionEffects, neighbours
from monitor.population.store import refuse_invalid, require
from monitor.types import AnyArray, FloatArray, Record

_MOST = 1e4  # nats of a coefficient, or bits of support, that no calibration reaches


@dataclass(frozen=True, slots=True)
class EvidenceModel:
    """Model ``log LR_j = a + sum_f b_f z_fj`` on a grid of T and D (docs/method.md section 10).

    Row 0 of ``intercept`` and ``slopes`` is the model; rows 1..B are its resamples. A cell that the
    corpus could not reach is NaN.
    """

    lengths: FloatArray  # T, speech seconds, (nT,), increasing
    template_lengths: FloatArray  # D, likewise, (nD,)
    intercept: FloatArray  # a, nats, (1 + B, nT, nD)
    slopes: FloatArray  # b >= 0, nats, (1 + B, nT, nD, F)
    support: FloatArray  # maximum bits that the calibration speakers support, (nT, nD)
    area: FloatArray  # under the ROC curve of held-out enrolled and impostors, (nT, nD)
    cohort: tuple[str, ...]  # digest of each feature of the cohort that normalised the scores
    conditions: ConditionEffects | None = None  # effects of telephones, rooms and noise

    def __post_init__(self) -> None:
        cells = self.lengths.size, self.template_lengths.size
        replicates = self.intercept.shape[0] if self.intercept.ndim else 0
        shapes = self.intercept.shape, self.slopes.shape[:-1], self.support.shape, self.area.shape
        require(
            shapes == ((replicates, *cells), (replicates, *cells), cells, cells),
            "the parts of an evidence rank model do not have the shapes of one grid",
        )
        reached = np.isfinite(self.support)
        intercept, slopes = self.intercept[:, reached], self.slopes[:, reached]
        support, area = self.support[reached], self.area[reached]
        marks, features = self.cohort, self.slopes.shape[-1]
        valid = {
            "cells": reached.any(),
            "replicates": replicates >= 2,
            "intercept": (np.abs(intercept) <= _MOST).all(),
            "slopes": ((slopes >= 0) & (slopes <= _MOST)).all(),
            "support": ((support >= 0) & (support <= _MOST)).all(),
            "area": ((area >= 0) & (area <= 1)).all(),
            "cohort": isinstance(marks, tuple) and len(marks) == features and all(marks),
            "digests": all(map(is_mark, marks)),
            "conditions": self.conditions is None or _have_effect(self.conditions, features),
        }
        refuse_invalid("an evidence rank model", valid)

    @property
    def most_bits(self) -> float:
        """Maximum bits that the calibration speakers support at any lengths."""
        return float(self.support[np.isfinite(self.support)].max())

    def pack(self) -> dict[str, AnyArray]:
        """Return arrays for a store; resamples in half precision."""
        packed = {}
        if (conditions := self.conditions) is not None:
            table = [
                np.vstack([effect.shift, effect.support, effect.slope])
                for effect in conditions.effects
            ]
            packed["conditions"] = np.stack(table).astype(np.float32)
            packed["condition_lengths"] = conditions.template_lengths.astype(np.float32)
        return {
            **packed,
            "intercept": self.intercept[0].astype(np.float32),
            "slopes": self.slopes[0].astype(np.float32),
            # resamples only give a spread
            "intercepts": self.intercept[1:].astype(np.float16),
            "slope_draws": self.slopes[1:].astype(np.float16),
            "support": self.support.astype(np.float32),
            "area": self.area.astype(np.float32),
        }

    @classmethod
    def unpack(
        cls,
        arrays: Mapping[str, AnyArray],
        lengths: FloatArray,
        template_lengths: FloatArray,
        cohort: tuple[str, ...],
    ) -> EvidenceModel:
        """Reverse ``pack`` on the rank model's grid; KeyError if a part is missing."""

        def part(*names: str) -> FloatArray:
            parts = [arrays[name] for name in names]
            is_table = all(array.dtype.kind == "f" for array in parts)
            require(is_table, "an evidence rank model is not a table of numbers")
            first, *others = (array.astype(np.float64) for array in parts)
            return np.concatenate([first[None], *others]) if others else first

        effects = None
        if "conditions" in arrays:
            table = part("conditions")
            is_table = table.ndim == 3 and table.shape[1] >= 2
            require(is_table, "an evidence rank model has invalid effects of conditions")
            if table.shape[2] == UNLIKE - 1:  # a store from before new streams had an effect
                table = np.pad(table, ((0, 0), (0, 0), (0, 1)))
                table[:, 1, NEW] = UNBOUNDED
            rows = tuple(ConditionEffect(x[0], x[2:], x[1]) for x in table)
            effects = ConditionEffects(part("condition_lengths"), rows)
        intercept, slopes = part("intercept", "intercepts"), part("slopes", "slope_draws")
        support, area = part("support"), part("area")
        return cls(lengths, template_lengths, intercept, slopes, support, area, cohort, effects)

    def holding(self, rows: Iterable[Record]) -> EvidenceModel:
        """Keep a shorter length's a and b if those of a longer one give less evidence on average.

        Fewer people speak for long, and a fit to fewer people claims less. ``rows`` are cells of
        the calibration table, with the mean evidence of held-out people.
        """
        means = np.full(self.support.shape, np.nan)
        for row in rows:
            if row.get("evidence_bits") is not None:
                cell = np.isclose(self.lengths, row["T"])[:, None]
                cell = cell & np.isclose(self.template_lengths, row["D"])
                means[cell] = row["evidence_bits"]
        best = np.fmax.accumulate(means, axis=0)
        here = np.broadcast_to(np.arange(len(means))[:, None], means.shape)
        last = np.maximum.accumulate(np.where(means >= best, here, 0), axis=0)
        chosen = np.where(means < best, last, here)[None]
        return replace(
            self,
            intercept=np.take_along_axis(self.intercept, chosen, axis=1),
            slopes=np.take_along_axis(self.slopes, chosen[..., None], axis=1),
        )

    def at_template(self, seconds: float) -> LengthEvidence:
        """Interpolate the model for templates of D speech seconds.

        Between two template lengths it is interpolated in log D. Outside them, or if only one was
        reached, the nearest applies. Longer speech and templates support at least as much as
        shorter ones.
        """
        reached = np.isfinite(self.support)
        supported = np.fmax.accumulate(self.support, axis=1)
        rows = np.flatnonzero(reached.any(axis=1))
        parts = []
        for t in rows:
            lower, upper, w = neighbours(self.template_lengths, reached[t], seconds)
            parts.append([
                (1.0 - w) * values[..., lower] + w * values[..., upper]
                for values in (
                    self.intercept[:, t],
                    np.moveaxis(self.slopes[:, t], 1, -1),
                    supported[t],
                    self.area[t],
                )
            ])  # fmt: skip
        intercept, slopes, support, area = (np.stack(values) for values in zip(*parts, strict=True))
        # longer speech has fewer calibration speakers, but does not disclose less
        support = np.maximum.accumulate(support)
        effect = None if self.conditions is None else self.conditions.at_template(seconds)
        table = np.concatenate([intercept[..., None], slopes], axis=-1)
        bounds = np.column_stack([support, area])
        return LengthEvidence(self.lengths[rows], table, bounds, effect)


def _have_effect(effects: ConditionEffects, features: int) -> bool:
    """Return whether these are valid effects of conditions on this number of features."""
    lengths, shapes = effects.template_lengths, ((UNLIKE,), (UNLIKE,), (features, UNLIKE))
    is_valid = lengths.shape == (len(effects.effects),) and lengths.size > 0
    is_valid = is_valid and bool((lengths > 0).all() and (np.diff(lengths) > 0).all())
    for effect in effects.effects:
        parts = effect.shift, effect.support, effect.slope
        is_valid = is_valid and tuple(array.shape for array in parts) == shapes
        is_valid = is_valid and all(bool((np.abs(array) <= _MOST).all()) for array in parts)
        is_valid = is_valid and not (effect.support < 0).any()
    return is_valid


@dataclass(frozen=True, slots=True)
class EvidencePoint:
    """Evidence model at R test lengths; row 0 the model, rows 1..B its resamples."""

    intercept: FloatArray  # a, nats, (R, 1 + B)
    slopes: FloatArray  # b, nats, (R, 1 + B, F)
    support: FloatArray  # bits, (R,)
    area: FloatArray  # (R,)


class LengthEvidence:
    """Evidence model at one template length, continuous in the test length T.

    Inside the grid, a and b are interpolated in log T. This keeps the bound: if other people's mean
    ratio is at most 1 at both ends, it is at most 1 in between (Hoelder's inequality). Below the
    grid the ratio fades to 1 at T = 0, where it carries no evidence (Jensen's inequality). Beyond
    the grid the last rank model applies.
    """

    def __init__(
        self,
        lengths: FloatArray,  # T of the grid, shape (nT,)
        table: FloatArray,  # intercepts and slopes, shape (nT, 1 + B, 1 + F)
        bounds: FloatArray,  # non-decreasing support, and area, shape (nT, 2)
        conditions: ConditionEffect | None,  # effects of conditions at every test length
    ) -> None:
        self.lengths, self.conditions = lengths, conditions
        self._table, self._bounds, self._logs = table, bounds, np.log(lengths)
        self._gaps = np.append(np.diff(self._logs), 1.0)
        self.support = bounds[:, 0]

    def evaluate_at(self, seconds: FloatArray) -> EvidencePoint:
        """Interpolate at T speech seconds, shape (R,); a moment does not depend on the others."""
        first, last = self.lengths[0], self.lengths[-1]
        inside = np.minimum(np.maximum(seconds, first), last)
        previous = np.maximum(np.searchsorted(self.lengths, inside) - 1, 0)
        following = np.minimum(previous + 1, self.lengths.size - 1)
        w = (np.log(inside) - self._logs[previous]) / self._gaps[previous]
        fade = np.minimum(seconds / first, 1.0)
        near, far = (fade * (1.0 - w))[:, None, None], (fade * w)[:, None, None]
        table = near * self._table[previous] + far * self._table[following]
        lower, upper = self._bounds[previous], self._bounds[following]
        bounds = lower + w[:, None] * (upper - lower)  # equal ends stay what they are
        return EvidencePoint(table[..., 0], table[..., 1:], bounds[:, 0], bounds[:, 1])
