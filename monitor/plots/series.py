"""The records of a run as columns of numbers, ready to be drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from monitor.phrases import another_voice, closed_set, enrolment, of_evidence
from monitor.types import BoolArray, FloatArray, IntArray

__all__ = ["RunColumns", "curve_points", "run_of", "short_name"]

LIMITED = ("bits", "bits_low", "bits_high")
COLUMNS = (
    *("seconds", "speech", "support_bits"), *LIMITED,
    *(f"expected_{name}" for name in LIMITED),
)  # fmt: skip


@dataclass(frozen=True)
class RunColumns:
    """The records of a run as columns: everything that a plot needs of it.

    Attributes:
        columns: figures of the readings by name, shape (n,), NaN where null; ``bits`` also where
            they are not of the run's headline; ``linear`` and ``sqrt`` are the guides. Speech
            counts on where the evidence began afresh.
        speakers: N.
        ceiling: log2 N, in bits.
        plateau: the average plateau in bits, None where unknown.
        watch: the watched speaker, None where nobody is.
        alerts: alert records.
        gaps: (stream seconds, lost seconds or None).
        changes: change records.
        notices: what was noticed on the stream, a sentence each.
        fresh: shape (k,), ascending: readings with which the evidence began afresh, by place.
        doubtful: shape (n,), readings with which a change was open.
        doubt: whose bits the last ones may not be, where a change is open; else empty.
        session: ``"same"``, ``"cross"`` or None.
        withheld: why the last reading gives no headline, if it says so.
        enrolment: whether anybody enrolled speaks at all, in words; empty where it says nothing.
        last: the last reading.
        protected: the method of the protected side, else empty; its figures are columns too, named
            ``protected_bits`` and so on.
        alone: where there are several features, what each would disclose alone, in bits, shape
            (n,): local bits, or the attacker's confidence where nobody is watched.
        evidence: whether the headline is evidence; else it is the closed-set figure.
    """

    columns: Mapping[str, FloatArray]
    speakers: int
    ceiling: float
    plateau: float | None
    watch: str | None
    alerts: Sequence[Mapping[str, Any]] = ()
    gaps: Sequence[tuple[float, float | None]] = field(default=())
    changes: Sequence[Mapping[str, Any]] = ()
    notices: Sequence[str] = ()
    fresh: Sequence[int] = ()
    doubtful: BoolArray = field(default_factory=lambda: np.zeros(0, bool))
    doubt: str = ""
    session: str | None = None
    withheld: str | None = None
    enrolment: str = ""
    last: Mapping[str, Any] = field(default_factory=dict)
    alone: Mapping[str, FloatArray] = field(default_factory=dict)
    protected: str = ""
    evidence: bool = False

    def speech_at(self, seconds: float) -> float:
        """Speech seconds at a stream time."""
        times, speech = self.columns["seconds"], self.columns["speech"]
        known = np.isfinite(times) & np.isfinite(speech)
        if not known.any():
            return 0.0
        return float(np.interp(seconds, times[known], speech[known]))


def run_of(records: Sequence[Mapping[str, Any]]) -> RunColumns:
    """Sort the records of a run by type; a missing ``start`` or ``end`` is no harm.

    Examples:
        >>> run = run_of([{"type": "reading", "seconds": 2.0, "speech": 1.5, "bits": None,
        ...                  "ceiling": 5.64}])
        >>> run.speakers, run.columns["speech"], run.columns["bits"]
        (50, array([1.5]), array([nan]))
    """
    readings = [record for record in records if record.get("type") == "reading"]
    start = next((record for record in records if record.get("type") == "start"), {})
    ended = next((record for record in records if record.get("type") == "end"), {})
    last: Mapping[str, Any] = readings[-1] if readings else {}
    columns = {name: _column([r.get(name) for r in readings]) for name in COLUMNS}
    evidence = any(map(of_evidence, readings))
    for end in ("", "_low", "_high"):
        columns[f"closed_set_bits{end}"] = _column([closed_set(r, end) for r in readings])
        # a reading without evidence has the other figure: one curve is of one kind
        own = [of_evidence(r) == evidence for r in readings]
        columns[f"bits{end}"] = np.where(own, columns[f"bits{end}"], np.nan)
    for name in ("spread_low", "spread_high"):
        columns[name] = _column([r.get(name) if of_evidence(r) else None for r in readings])
    changes = [r for r in records if r.get("type") == "change"]
    fresh = _fresh(columns, changes)
    columns["speech"] = _one_after_the_other(columns["speech"], fresh)
    for guide in ("linear", "sqrt"):
        columns[guide] = _column([(r.get("guides") or {}).get(guide) for r in readings])
    sides = [reading.get("protected") or {} for reading in readings]
    for name in LIMITED:
        columns[f"protected_{name}"] = _column([side.get(name) for side in sides])
    ceiling = float(last.get("ceiling") or start.get("ceiling") or 0.0)
    speakers = int(start.get("speakers") or round(2.0 ** min(ceiling, 64.0)))
    plateau = last.get("plateau", start.get("plateau"))
    watch = start.get("watch", ended.get("watch"))
    if watch is None and last.get("assumes_enrolled") is False:
        watch = "the watched speaker"
    names = tuple(last.get("features") or {})
    key = "gain_bits" if watch is None else "local_bits"
    each = [reading.get("features") or {} for reading in readings]
    alone = {n: _column([(f.get(n) or {}).get(key) for f in each]) for n in names}
    return RunColumns(
        columns=columns,
        speakers=speakers,
        ceiling=ceiling,
        plateau=None if plateau is None else float(plateau),
        watch=None if watch is None else short_name(watch),
        alerts=[r for r in records if r.get("type") == "alert" and r.get("level") != "warning"],
        gaps=[
            (r["seconds"], r.get("lost_seconds"))
            for r in records
            if r.get("type") == "gap" and r.get("reason") != "words ended"  # no audio is lost
        ],
        changes=changes,
        notices=[short_name(r.get("text", ""), 160) for r in records if r.get("type") == "notice"],
        fresh=fresh,
        doubtful=np.array(["change" in reading for reading in readings], bool),
        doubt=another_voice(last, None if watch is None else short_name(watch)),
        session=last.get("session"),
        withheld=last.get("withheld"),
        enrolment=enrolment(last),
        last=last,
        alone=alone if len(names) > 1 else {},
        evidence=evidence,
        protected=short_name((start.get("protected") or {}).get("method", "")),
    )


def short_name(name: object, longest: int = 24) -> str:
    r"""A name that fits beside a line: printable and not too long.

    Examples:
        >>> short_name("a\tb"), short_name("x" * 30, 8)
        ('a b', 'xxxxxxx…')
    """
    text = "".join(c if c.isprintable() else " " for c in str(name))
    return text if len(text) <= longest else text[: longest - 1] + "…"


def curve_points(x: FloatArray, y: FloatArray, limit: int = 1200) -> IntArray:
    """Indices of at most about ``4 * limit`` points that draw the same curve on a log axis.

    Of each of ``limit`` slots along log x the first, last, lowest and highest points stay, so
    that no peak is lost.

    Args:
        x: shape (n,), positive, non-decreasing.
        y: shape (n,), NaN where there is no figure.
        limit: slots.
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


def _fresh(columns: Mapping[str, FloatArray], changes: Sequence[Mapping[str, Any]]) -> list[int]:
    """Readings with which the evidence began afresh: after a reset or split, or where T fell."""
    seconds, speech = columns["seconds"], columns["speech"]
    known = np.flatnonzero(np.isfinite(speech))
    found = set(known[1:][np.diff(speech[known]) < 0].tolist())
    for change in changes:
        if change.get("action") in ("reset", "split"):
            # the reading that comes with the change is the last one on the old evidence
            after = np.flatnonzero(seconds > change["seconds"])
            found |= set(after[:1].tolist())
    return sorted(found - {0})


def _one_after_the_other(speech: FloatArray, fresh: Sequence[int]) -> FloatArray:
    """Where the evidence began afresh, the speech before it counts on: the axis never goes back."""
    result = speech.copy()
    for at in fresh:
        before = speech[:at][np.isfinite(speech[:at])]
        if before.size:
            result[at:] += before[-1]
    return result


def _column(values: Sequence[float | None]) -> FloatArray:
    return np.array([np.nan if v is None else v for v in values], float)
