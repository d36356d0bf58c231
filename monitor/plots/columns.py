"""The events of a run as columns of numbers, for pictures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from monitor.events import phrases
from monitor.events.declaration import Event, find_first
from monitor.events.reading import Reading
from monitor.events.run import Alert, AlertTerms, Change, GapEvent, NoticeEvent, RunEnd, RunStart
from monitor.safe_text import short_name
from monitor.types import BoolArray, FloatArray, IntArray

Columns: TypeAlias = Mapping[str, FloatArray]
Pieces: TypeAlias = Sequence[slice]  # readings between two restarts of the evidence

POWERS = {"linear": 1.0, "sqrt": 0.5}
"""Guides, and the power of the speech seconds with which each grows."""
COMPOSITION = {"basic": (0, (1, 1)), "advanced": (0, (4, 1, 1, 1)), "optimal": (0, (8, 2))}
"""Compositions of a declared epsilon, and the dash pattern of each."""
LIMITED = ("bits", "bits_low", "bits_high")


@dataclass(frozen=True)
class RunColumns:
    """Events of a run as columns, with everything that a plot needs."""

    columns: Columns
    speakers: int
    ceiling: float
    plateau: float | None
    watch: str | None
    last: Reading
    evidence: bool
    protected: str
    rules: Sequence[AlertTerms | Alert]
    undecided: Sequence[str]
    alerts: Sequence[Alert]
    gaps: Sequence[GapEvent]
    changes: Sequence[Change]
    notices: Sequence[str]
    fresh: Sequence[int]
    doubtful: BoolArray
    alone: Columns

    @property
    def cap(self) -> FloatArray:
        """Maximum bits at each reading: what calibration supports, or log2 N."""
        support = self.columns["support_bits"]
        return support if self.evidence else np.full_like(support, self.ceiling or np.nan)

    @property
    def doubt(self) -> str:
        """Warning if a change is unresolved at the end, otherwise empty."""
        return phrases.another_voice(self.last, self.watch)

    def speech_at(self, seconds: float) -> float:
        """Return speech seconds at a stream time."""
        times, speech = self.columns["seconds"], self.columns["speech"]
        is_finite = np.isfinite(times) & np.isfinite(speech)
        if not is_finite.any():
            return 0.0
        return float(np.interp(seconds, times[is_finite], speech[is_finite]))


def read_columns(events: Sequence[Event]) -> RunColumns:
    """Sort the events of a run by type; the start or end may be missing."""
    readings = [event for event in events if isinstance(event, Reading)]
    start = find_first(events, RunStart) or RunStart.from_record({})
    end = find_first(events, RunEnd)
    last = readings[-1] if readings else Reading.from_record({})
    evidence = any(reading.is_evidence for reading in readings)
    changes = [event for event in events if isinstance(event, Change)]
    alerts = [e for e in events if isinstance(e, Alert) and e.level != "warning"]
    columns = _make_columns(readings, evidence=evidence)
    fresh = _find_restarts(columns, changes)
    columns["speech"] = _chain_speech(columns["speech"], fresh)
    ceiling = float(last.ceiling or start.ceiling or 0.0)
    watch = end.watch if start.watch is None and end is not None else start.watch
    if watch is None and last.assumes_enrolled is False:
        watch = "the watched speaker"
    names = tuple(last.features or {})
    figures = [reading.features or {} for reading in readings]
    field = "gain_bits" if watch is None else "local_bits"
    alone = {n: _column([getattr(f.get(n), field, None) for f in figures]) for n in names}
    return RunColumns(
        columns=columns,
        speakers=int(start.speakers or round(2.0 ** min(ceiling, 64.0))),
        ceiling=ceiling,
        plateau=start.plateau if last.plateau is None else last.plateau,
        watch=None if watch is None else short_name(watch),
        last=last,
        evidence=evidence,
        protected="" if start.protected is None else short_name(start.protected.method),
        rules=[rule for rule in start.alerts or alerts if rule.level != "warning"],
        undecided=(end and end.undecided) or (),
        alerts=alerts,
        gaps=[  # the end of words loses no audio
            e for e in events if isinstance(e, GapEvent) and e.reason != "words ended"
        ],
        changes=changes,
        notices=[short_name(e.text or "", 160) for e in events if isinstance(e, NoticeEvent)],
        fresh=fresh,
        doubtful=np.array([reading.change is not None for reading in readings], bool),
        alone=alone if len(names) > 1 else {},
    )


def _make_columns(readings: Sequence[Reading], *, evidence: bool) -> dict[str, FloatArray]:
    """Return one column per curve; each curve has only one kind of figure."""

    def column(get: Callable[[Reading], object], names: Sequence[str], under: str = "") -> None:
        """Add attributes of the value that ``get`` returns for each reading."""
        values = [get(reading) for reading in readings]
        for name in names:
            columns[under + name] = _column([getattr(value, name, None) for value in values])

    columns: dict[str, FloatArray] = {}
    column(lambda reading: reading, ("seconds", "speech", "support_bits"))
    column(lambda reading: reading, [f"expected_{name}" for name in LIMITED])
    column(lambda reading: reading if reading.is_evidence == evidence else None, LIMITED)
    column(lambda reading: reading if reading.is_evidence else None, ("spread_low", "spread_high"))
    for end in ("", "_low", "_high"):
        columns[f"closed_set_bits{end}"] = _column([r.closed_set(end) for r in readings])
    column(lambda r: r.evidence_guides if evidence else r.guides, tuple(POWERS))
    column(lambda reading: reading.protected, LIMITED, "protected_")
    column(lambda reading: reading.declared, [f"{name}_nats" for name in COMPOSITION])
    for name in COMPOSITION:
        columns[name] = columns.pop(f"{name}_nats") / math.log(2.0)
    return columns


def curve_points(x: FloatArray, y: FloatArray, limit: int = 1200) -> IntArray:
    """Return indices of at most about ``4 * limit`` points that draw the same curve on a log axis.

    Each of ``limit`` slots along log x keeps its first, last, lowest and highest points, so that no
    peak is lost.
    """
    if x.size <= limit:
        return np.arange(x.size)
    logs = np.log(x)
    span = logs[-1] - logs[0]
    slot = np.zeros(x.size, int) if span <= 0 else ((logs - logs[0]) / span * limit).astype(int)
    order = np.lexsort((y, slot))  # NaN sorts last within its slot
    heads = np.flatnonzero(np.diff(slot[order], prepend=-1))
    tails = np.append(heads[1:], x.size) - 1
    finite = np.add.reduceat(np.isfinite(y[order]).astype(int), heads)
    highest = order[heads + np.maximum(finite - 1, 0)]
    return np.unique(np.concatenate([heads, tails, order[heads], highest]))


def _find_restarts(columns: Columns, changes: Sequence[Change]) -> list[int]:
    """Find readings where the evidence restarted: after a reset or split, or where T fell."""
    seconds, speech = columns["seconds"], columns["speech"]
    indices = np.flatnonzero(np.isfinite(speech))
    starts = set(indices[1:][np.diff(speech[indices]) < 0].tolist())
    for change in changes:
        if change.action in ("reset", "split"):
            # the reading at the time of the change is the last one of the old evidence
            after = np.flatnonzero(seconds > change.seconds)
            starts |= set(after[:1].tolist())
    return sorted(starts - {0})


def _chain_speech(speech: FloatArray, fresh: Sequence[int]) -> FloatArray:
    """Add the speech before each restart to the readings after it, so the axis never goes back."""
    result = speech.copy()
    for start in fresh:
        before = speech[:start][np.isfinite(speech[:start])]
        if before.size:
            result[start:] += before[-1]
    return result


def _column(values: Sequence[float | None]) -> FloatArray:
    return np.array([np.nan if v is None else v for v in values], float)


def cut_pieces(has_speech: BoolArray, fresh: Sequence[int]) -> list[slice]:
    """Cut the readings with speech where the evidence restarted."""
    indices = np.cumsum(has_speech) - 1
    cuts = sorted({int(indices[start]) + int(not has_speech[start]) for start in fresh} - {0})
    edges = [0, *(start for start in cuts if start < int(has_speech.sum())), int(has_speech.sum())]
    return [slice(low, high) for low, high in pairwise(edges) if high > low]
