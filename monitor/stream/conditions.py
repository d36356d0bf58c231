"""Sound conditions of a stream, compared with those of the templates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypedDict

import numpy as np

from monitor.maths.condition import (
    ROW,
    Condition,
    condition_of,
    list_mismatches,
    list_poor_figures,
    sound_seconds,
)
from monitor.phrases import mismatch_in_words, poor_in_words, unknown_in_words, voicing_in_words
from monitor.types import TICKS_PER_SECOND, AnyArray, BoolArray, Notice, Track

_SLOWLY = 1.05
"""Growth between two estimates of the sound, 5 %: a second changes a longer stream less."""
_UNKNOWN_SECONDS = 20.0
"""Seconds of sound without speech above its noise, after which a notice reports that."""
_TIMES = 3
"""Consecutive estimates that must agree before a notice."""
VOICED = "voiced_share"
_LEAST_VOICED_RATIO, _VOICED_SPEECH = 1 / 3, 8 * TICKS_PER_SECOND
"""Minimum ratio of the smaller to the larger fraction of speech with pitch, and ticks of speech
needed. One of 59 calibration speakers at their own microphones had a lower ratio in another session
with an unchanged voice."""


class ConditionsState(TypedDict):
    """Plain values of `StreamConditions`, in a checkpoint."""

    tick: int
    seconds: int
    due: int
    now: dict[str, float | None] | None
    times: dict[str, int]
    is_voiced_otherwise: bool
    noticed: list[str]


class StreamConditions:
    """Sound of a stream, second by second, compared with the templates'."""

    def __init__(
        self,
        templates: Sequence[Condition | None],  # conditions of the templates' sessions
        # mean evidence of templates with the same conditions, or None
        matching: Callable[[Condition], float | None] = lambda _: None,
        # fraction of speech with pitch in each template; empty for no comparison
        voiced: Sequence[float] = (),
    ) -> None:
        self._sessions = [condition for condition in templates if condition is not None]
        self._matching, self._voiced = matching, voiced
        self.templates = self._sessions[0] if self._sessions else None
        self._waiting: list[tuple[int, AnyArray]] = []
        self._tick = 0
        self.begin_afresh()
        self._noticed: set[str] = set()

    def begin_afresh(self) -> None:
        """Begin another voice, without the sound so far."""
        self._total = np.zeros(ROW, np.int64)
        self._seconds = self._due = 0
        self._times: dict[str, int] = {}
        self._estimates: dict[int, Condition] = {}
        self.now: Condition | None = None  # of all seconds so far; None before the first
        self._is_voiced_otherwise = False

    @property
    def differs(self) -> tuple[str, ...]:
        """Figures of the stream that differ from the templates', or are poor in themselves."""
        names = [name for name, times in self._times.items() if times >= _TIMES]
        return (*names, VOICED) if self._is_voiced_otherwise else tuple(names)

    def add(self, track: Track | None) -> None:
        """Add seconds of sound; those counted before a stop are dropped."""
        if track is not None:
            rows = zip(track.ticks.tolist(), track.values, strict=True)
            self._waiting += [(tick, row) for tick, row in rows if tick > self._tick]

    def look_ahead(self, ticks: Sequence[int]) -> list[Condition | None]:
        """Estimate the sound at each of these increasing ticks, without counting it.

        All rows up to the last tick must have arrived.
        """
        conditions, now = [], self.now
        total, seconds, due, index = self._total.copy(), self._seconds, self._due, 0
        for tick in ticks:
            while index < len(self._waiting) and self._waiting[index][0] <= tick:
                total += self._waiting[index][1]
                index, seconds = index + 1, seconds + 1
                if seconds >= due:
                    due = _next_due(seconds)
                    if seconds not in self._estimates:
                        self._estimates[seconds] = condition_of(total)
                    now = self._estimates[seconds]
            conditions.append(now)
        return conditions

    def advance(self, tick: int) -> Iterator[tuple[int, Notice]]:
        """Count the seconds complete by a tick; yield new notices and their ticks."""
        self._tick = tick
        while self._waiting and self._waiting[0][0] <= tick:
            complete, row = self._waiting.pop(0)
            self._total = self._total + row
            self._seconds += 1
            if self._seconds >= self._due:
                self._due = _next_due(self._seconds)
                yield from ((complete, notice) for notice in self._estimate())

    def correct(self, rows: AnyArray, counts: BoolArray) -> None:
        """Add seconds of sound, rows (k, ROW), if ``counts`` is true; otherwise subtract them."""
        signs = np.where(counts, 1, -1)
        self._total = self._total + signs @ rows
        self._seconds += int(signs.sum())
        self._due = _next_due(self._seconds)
        self._estimates = {}
        self.now = condition_of(self._total) if self._seconds else None

    def _estimate(self) -> Iterator[Notice]:
        estimate = self._estimates.pop(self._seconds, None)
        self.now = condition_of(self._total) if estimate is None else estimate
        mismatched: tuple[str, ...] = ()
        if self._sessions:  # the session most like the stream decides
            differences = [list_mismatches(self.now, session) for session in self._sessions]
            nearest = min(range(len(differences)), key=lambda k: len(differences[k]))
            self.templates, mismatched = self._sessions[nearest], differences[nearest]
        bad = tuple(name for name in list_poor_figures(self.now) if name not in mismatched)
        self._times = {name: self._times.get(name, 0) + 1 for name in (*mismatched, *bad)}
        fresh = [name for name in self.differs if name not in {*self._noticed, VOICED}]
        self._noticed.update(fresh)
        mismatches = [name for name in fresh if name in mismatched]
        if mismatches and self.templates is not None:
            matching = self._matching(self.now)
            text = mismatch_in_words(
                mismatches, self.now.record(), self.templates.record(), matching
            )
            both = {"stream": self.now.record(), "templates": self.templates.record()}
            fields = {"figures": mismatches, **both, "matching_bits": matching}
            yield Notice("conditions differ", text, fields=fields)
        if poor := [name for name in fresh if name in bad]:
            now = self.now.record()
            yield Notice("poor sound", poor_in_words(poor, now), fields={"figures": poor, **now})
        unknown = self.now.snr_db is None and sound_seconds(self._total) >= _UNKNOWN_SECONDS
        if unknown and "unknown" not in self._noticed:
            self._noticed.add("unknown")
            text = unknown_in_words(_UNKNOWN_SECONDS)
            yield Notice("conditions unknown", text, fields={"sound_seconds": _UNKNOWN_SECONDS})

    def compare_voicing(self, speech: int, voiced_seconds: float) -> Notice | None:
        """Compare the voiced fraction of speech, in ticks, with the templates'; return a notice."""
        if not self._voiced or speech < _VOICED_SPEECH:
            return None
        fraction = voiced_seconds * TICKS_PER_SECOND / speech
        nearest = max(self._voiced, key=lambda other: _ratio_of(fraction, other))
        self._is_voiced_otherwise = _ratio_of(fraction, nearest) < _LEAST_VOICED_RATIO
        if not self._is_voiced_otherwise or VOICED in self._noticed:
            return None
        self._noticed.add(VOICED)
        fields = {
            "figures": [VOICED],
            "stream": {VOICED: fraction},
            "templates": {VOICED: nearest},
            "matching_bits": None,
        }
        return Notice("conditions differ", voicing_in_words(fraction, nearest), fields=fields)

    def state(self) -> tuple[ConditionsState, dict[str, AnyArray]]:
        """Return what a replay of the stream would not restore: plain values and arrays."""
        plain: ConditionsState = {
            "tick": self._tick,
            "seconds": self._seconds,
            "due": self._due,
            "now": None if self.now is None else self.now.record(),
            "times": self._times,
            "is_voiced_otherwise": self._is_voiced_otherwise,
            "noticed": sorted(self._noticed),
        }
        return plain, {"total": self._total}

    def restore(self, plain: ConditionsState, arrays: Mapping[str, AnyArray]) -> None:
        """Restore a ``state``; ValueError if the sums have another shape."""
        if arrays["total"].shape != (ROW,):
            raise ValueError
        self._total, self._tick = arrays["total"], int(plain["tick"])
        self._seconds, self._due = int(plain["seconds"]), int(plain["due"])
        self.now = Condition.parse(plain["now"])
        self._times = {str(name): int(times) for name, times in plain["times"].items()}
        self._is_voiced_otherwise = bool(plain["is_voiced_otherwise"])
        self._noticed = set(plain["noticed"])


def _ratio_of(first: float, second: float) -> float:
    """Return the ratio of the smaller of two fractions to the larger; 1 if both are 0."""
    return min(first, second) / max(first, second) if max(first, second) > 0 else 1.0


def _next_due(seconds: int) -> int:
    return max(seconds + 1, math.ceil(_SLOWLY * seconds))
