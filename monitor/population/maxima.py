"""Maxima of figures over the streams of other people (docs/method.md section 11).

The streams are of calibration speakers other than the watched one. Each is watched as another
person, and the speaker's own template is removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from monitor.population.store import are_names, is_number, refuse_invalid
from monitor.safe_text import spelled_all
from monitor.types import AnyArray, FloatArray, Record

HORIZONS = (10.0, 30.0, 60.0, 120.0, 300.0, 600.0)  # lengths of streams, audio seconds
MOST_BITS = 1e6
MOST_SECONDS = 1e9


@dataclass(frozen=True, slots=True)
class FieldMaxima:
    """Maxima of one field over streams of one length."""

    values: FloatArray  # shape (n,), one a speaker
    horizon_seconds: float
    repeated: int  # of the n, the number with less audio, which was repeated


@dataclass(frozen=True, slots=True)
class Maxima:
    """Largest values of some fields over streams of S speakers, one stream each.

    A stream with half a horizon of audio or more is repeated from its beginning up to the horizon.
    ``seconds`` shows which these are.
    """

    fields: tuple[str, ...]  # fields of a reading with a watched speaker, such as evidence_bits
    horizons: FloatArray  # audio seconds, (nH,), increasing
    values: AnyArray  # (fields, S, nH), half precision, rounded up; NaN where unknown
    seconds: FloatArray  # audio seconds of each stream, (S,)
    speakers: tuple[str, ...]
    template_seconds: float  # D, to which the templates were cut

    def horizon(self, seconds: float) -> float | None:
        """Return the shortest length in the grid that is no shorter; None beyond it."""
        longer = self.horizons[self.horizons >= seconds - 1e-9]
        return float(longer[0]) if longer.size else None

    def select_others(
        self, field: str, seconds: float, *, needed: int = 1, watch: str | None = None
    ) -> FieldMaxima:
        """Select other people's maxima in streams of a length, or of the next longer one.

        If fewer than ``needed`` speakers had that much audio, those with half of it count, too. The
        speaker ``watch`` is left out.
        """
        column = int(np.searchsorted(self.horizons, seconds - 1e-9))
        values = self.values[self.fields.index(field), :, column].astype(np.float64)
        is_other = ~np.isnan(values) & np.array([name != watch for name in self.speakers], np.bool_)
        is_whole = is_other & (self.seconds >= self.horizons[column])
        selection = is_whole if is_whole.sum() >= needed else is_other
        return FieldMaxima(
            values[selection],
            float(self.horizons[column]),
            int(selection.sum() - (selection & is_whole).sum()),
        )

    def without(self, name: str) -> Maxima | None:
        """Remove a speaker; None if no speakers remain."""
        others = np.array([speaker != name for speaker in self.speakers], np.bool_)
        if not others.any():
            return None
        return replace(
            self,
            values=self.values[:, others],
            seconds=self.seconds[others],
            speakers=tuple(speaker for speaker in self.speakers if speaker != name),
        )


def round_up(values: FloatArray) -> AnyArray:
    """Round up to half precision, so that nothing that stops at a bound exceeds it."""
    half = values.astype(np.float16)
    return np.where(half < values, np.nextafter(half, np.float16(np.inf)), half)


def pack_maxima(maxima: Maxima) -> tuple[dict[str, object], dict[str, AnyArray]]:
    """Return maxima as a store keeps them: a note for the rank model's header, and arrays."""
    names = ("fields", "speakers", "template_seconds")
    arrays = ("horizons", "values", "seconds")
    return ({name: getattr(maxima, name) for name in names},
            {name: getattr(maxima, name) for name in arrays})  # fmt: skip


def unpack_maxima(plain: Record, arrays: Mapping[str, AnyArray]) -> Maxima:
    """Reverse ``pack_maxima``; StoreError if no streams have them."""
    maxima = Maxima(
        tuple(plain["fields"]),
        arrays["horizons"],
        arrays["values"],
        arrays["seconds"],
        spelled_all(plain["speakers"]),
        plain["template_seconds"],
    )
    horizons, values, seconds = maxima.horizons, maxima.values, maxima.seconds
    shape = (len(maxima.fields), len(maxima.speakers), horizons.size)
    bits = values[~np.isnan(values)].astype(float)
    d = maxima.template_seconds
    valid = {
        "fields": are_names(maxima.fields) and len(set(maxima.fields)) == shape[0] > 0,
        "speakers": are_names(maxima.speakers) and len(set(maxima.speakers)) == shape[1] > 0,
        "shape": (values.shape, seconds.shape, horizons.shape) == (shape, shape[1:2], shape[2:]),
        "lengths": all(((x > 0) & (x < MOST_SECONDS)).all() for x in (horizons, seconds)),
        "template_seconds": is_number(d) and 0 < d < MOST_SECONDS,
        "horizons": horizons.size and (np.diff(horizons) > 0).all(),
        "numbers": all(array.dtype.kind == "f" for array in (values, horizons, seconds)),
        "bits": (np.abs(bits) <= MOST_BITS).all(),
        "growth": not (np.diff(values.astype(float), axis=2) < 0).any(),
    }
    refuse_invalid("the maxima of a rank model", valid)
    return maxima
