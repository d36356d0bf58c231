"""Maxima of other people's streams, which thresholds against false alarms are made of.

Streams of calibration speakers who are not the watched one, each watched as somebody else and with
the speaker's own template taken out (docs/method.md section 11). Maxima alone: no audio, no
templates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from monitor.errors import StoreError
from monitor.safe_text import is_name
from monitor.types import AnyArray, FloatArray

__all__ = ["HORIZONS", "FieldMaxima", "Maxima", "check_maxima", "pack_maxima", "unpack_maxima"]

HORIZONS = (10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Lengths of streams, audio seconds."""
MOST_BITS = 1e6
MOST_SECONDS = 1e9
_OLD_NAMES = {"bits": "closed_set_bits"}
"""Populations of before the headline was the evidence say so."""
_ARRAYS = ("horizons", "values", "seconds")


@dataclass(frozen=True, slots=True)
class FieldMaxima:
    """The maxima of one field over streams of one length.

    Attributes:
        values: shape (n,), one a speaker.
        horizon_seconds: what they are over.
        repeated: of the n, how many streams had less audio and were heard again from their
            beginning.
    """

    values: FloatArray
    horizon_seconds: float
    repeated: int


@dataclass(frozen=True, slots=True)
class Maxima:
    """The largest values of some fields over streams of S speakers, one stream each.

    A stream that had less audio than a horizon, but half of it, was heard again from its beginning
    up to there: then chance that favoured somebody in it counts twice, which more speech would
    have levelled out. ``seconds`` says which these are.

    Attributes:
        fields: of a reading (``closed_set_bits``, ``gain_bits``, ``evidence_bits`` ...), as with
            somebody watched.
        horizons: audio seconds, shape (nH,), increasing.
        values: shape (len(fields), S, nH), half precision, rounded up; NaN where the stream is
            shorter than half of the horizon, or never had a figure.
        seconds: audio seconds of each stream, shape (S,).
        speakers: their names.
        template_seconds: D, to which the templates were cut.
    """

    fields: tuple[str, ...]
    horizons: FloatArray
    values: AnyArray
    seconds: FloatArray
    speakers: tuple[str, ...]
    template_seconds: float

    def horizon(self, seconds: float) -> float | None:
        """The shortest length in the grid that is no shorter; None beyond it."""
        longer = self.horizons[self.horizons >= seconds - 1e-9]
        return float(longer[0]) if longer.size else None

    def others(
        self, field: str, seconds: float, *, needed: int = 1, watch: str | None = None
    ) -> FieldMaxima:
        """What others reached in streams of a length, or of the next longer one that is here.

        Args:
            field: one of ``fields``.
            seconds: audio seconds, at most the longest horizon.
            needed: how many speakers it takes; where fewer had so much audio, those who had half
                of it count too.
            watch: who is no other.
        """
        place = int(np.searchsorted(self.horizons, seconds - 1e-9))
        values = self.values[self.fields.index(field), :, place].astype(np.float64)
        there = ~np.isnan(values) & np.array([name != watch for name in self.speakers], np.bool_)
        whole = there & (self.seconds >= self.horizons[place])
        chosen = whole if whole.sum() >= needed else there
        return FieldMaxima(
            values[chosen], float(self.horizons[place]), int(chosen.sum() - (chosen & whole).sum())
        )

    def without(self, name: str) -> Maxima | None:
        """Everybody else's; None where nobody is left."""
        others = np.array([each != name for each in self.speakers], np.bool_)
        if not others.any():
            return None
        return replace(
            self,
            values=self.values[:, others],
            seconds=self.seconds[others],
            speakers=tuple(each for each in self.speakers if each != name),
        )


def rounded_up(values: FloatArray) -> AnyArray:
    """In half precision, never smaller: so that nothing that stops at a bound exceeds it."""
    half = values.astype(np.float16)
    return np.where(half < values, np.nextafter(half, np.float16(np.inf)), half)


def pack_maxima(maxima: Maxima) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Maxima as a store keeps them: a note for the law's header, and arrays by name."""
    plain = {
        "fields": maxima.fields,
        "speakers": maxima.speakers,
        "template_seconds": maxima.template_seconds,
    }
    return plain, {name: getattr(maxima, name) for name in _ARRAYS}


def unpack_maxima(plain: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> Maxima:
    """The reverse of ``pack_maxima``.

    Raises:
        StoreError: they are none.
        KeyError: an array is missing.
    """
    made = Maxima(
        tuple(_OLD_NAMES.get(name, name) for name in plain["fields"]),
        arrays["horizons"],
        arrays["values"],
        arrays["seconds"],
        tuple(plain["speakers"]),
        plain["template_seconds"],
    )
    check_maxima(made)
    return made


def check_maxima(maxima: Maxima) -> None:
    """Refuse maxima that no streams have.

    Raises:
        StoreError: of the wrong shape or type, out of range, or smaller over more.
    """
    names = (*maxima.fields, *maxima.speakers)
    if not all(map(is_name, names)) or len(set(maxima.fields)) != len(maxima.fields):
        raise StoreError("the maxima of a law are of fields or speakers that cannot be printed")
    if len(set(maxima.speakers)) != len(maxima.speakers):
        raise StoreError("the maxima of a law are of one speaker twice")
    horizons, values, seconds = maxima.horizons, maxima.values, maxima.seconds
    shape = (len(maxima.fields), len(maxima.speakers), horizons.size)
    shapes = (values.shape, seconds.shape, horizons.shape)
    if shapes != (shape, shape[1:2], shape[2:]) or 0 in shape:
        raise StoreError(f"the maxima of a law have shape {values.shape}, not {shape}")
    d = maxima.template_seconds
    if isinstance(d, bool) or not isinstance(d, int | float) or not 0 < d < MOST_SECONDS:
        raise StoreError("the maxima of a law do not say how long the templates were")
    for axis in (horizons, seconds):
        if axis.dtype.kind != "f" or not ((axis > 0) & (axis < MOST_SECONDS)).all():
            raise StoreError("the lengths of the maxima of a law are no seconds")
    if not (np.diff(horizons) > 0).all():
        raise StoreError("the lengths of the maxima of a law do not increase")
    there = np.asarray(values[~np.isnan(values)] if values.dtype.kind == "f" else [np.inf], float)
    if not (np.abs(there) <= MOST_BITS).all():
        raise StoreError("the maxima of a law are no bits")
    if (np.diff(values.astype(float), axis=2) < 0).any():
        raise StoreError("the maxima of a law shrink as streams grow")
