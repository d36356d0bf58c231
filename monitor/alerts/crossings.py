"""Watches when either side of a run reaches round numbers of bits, and the disclosure delay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from monitor.alerts.rules import figure
from monitor.maths.statistics import HOLD_SECONDS, Crossing, FirstCrossing
from monitor.types import LevelReached

LEVELS = (1.0, 2.0, 3.0, 10.0)
"""Bits whose crossing is told."""
_SIDES = {"clear": "", "protected": "protected."}


class Crossings:
    """Takes the records of a run with a protected side, and gives each crossing of a level.

    What crosses is the headline: of the clear side, and of the strongest attacker who was tried.

    Levels that it can never reach are left out: evidence beyond what calibration supports, a
    closed-set figure beyond log2 N. A crossing counts as an alert would
    (`monitor.maths.statistics`): a gap or an open change begins it anew. Where the
    evidence begins afresh, with another voice, what was not crossed by then stays so. Of an
    attacker's confidence, where nobody is watched, nothing is told: it may be in somebody else.

    Example:
        >>> start = {"watch": "ann", "headline": "closed-set", "ceiling": 5.64}
        >>> watch = Crossings(start, levels=[2.0])
        >>> for second in range(1, 20):
        ...     both = {"bits": 2.5 if second > 2 else 1.0, "protected": {"bits": second / 5}}
        ...     for each in watch.update({"type": "reading", "seconds": second, **both}):
        ...         print(each.side, each.since_seconds, each.delay_seconds)
        clear 3 None
        protected 10 7
    """

    def __init__(self, start: Mapping[str, Any], levels: Sequence[float] = LEVELS) -> None:
        self._evidence = start.get("headline") == "evidence"
        most = start.get("support_bits" if self._evidence else "ceiling") or 0.0
        watched = start.get("watch") is not None
        self._found = {
            bits: {side: FirstCrossing(bits, HOLD_SECONDS) for side in _SIDES}
            for bits in levels
            if watched and bits <= most
        }
        self._over = False

    def update(self, record: Mapping[str, Any]) -> list[LevelReached]:
        """The crossings that a record makes certain."""
        kind = record["type"]
        if kind in ("gap", "change"):
            for both in self._found.values():
                for each in both.values():
                    each.broken()
            self._over |= kind == "change" and record.get("action") in ("reset", "split")
        if kind != "reading" or self._over:
            return []
        told: list[LevelReached] = []
        for bits, both in self._found.items():
            for side, crossing in both.items():
                if crossing.known is None:
                    self._observe(crossing, side, record)
                    if crossing.known is not None and crossing.known.crossed:
                        told.append(self._reached(bits, side, record))
        return told

    @property
    def table(self) -> list[dict[str, Any]]:
        """What is known by now, a row for each level."""
        return [
            {
                "bits": bits,
                **{side: both[side].so_far()._asdict() for side in _SIDES},
                **_disclosure_delay(*(both[side].so_far() for side in _SIDES)),
            }
            for bits, both in self._found.items()
        ]

    def state(self) -> dict[str, Any]:
        """What a checkpoint must keep; JSON-able."""
        found = [each.state() for both in self._found.values() for each in both.values()]
        return {"crossings": found, "over": self._over}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where ``state`` was taken."""
        found = [each for both in self._found.values() for each in both.values()]
        for each, saved in zip(found, state["crossings"], strict=True):
            each.restore(saved)
        self._over = bool(state["over"])

    def _observe(self, crossing: FirstCrossing, side: str, record: Mapping[str, Any]) -> None:
        if record.get("change") is not None:  # it may be somebody else's
            crossing.broken()
            return
        source = record if side == "clear" else record.get("protected") or {}
        cut = self._evidence and bool(source.get("at_least"))
        crossing.update(record["seconds"], figure(_SIDES[side] + "bits", record), cut=cut)

    def _reached(self, bits: float, side: str, record: Mapping[str, Any]) -> LevelReached:
        both = self._found[bits]
        known = all(each.known is not None and each.known.crossed for each in both.values())
        delay = _disclosure_delay(*(each.so_far() for each in both.values()))["delay_seconds"]
        since = both[side].so_far().seconds
        return LevelReached(record["seconds"], bits, side, since, delay if known else None)


def as_text(table: Sequence[Mapping[str, Any]]) -> str:
    """A `Crossings.table` in one cell: seconds of the clear and of the protected side.

    Example:
        >>> row = {"bits": 2.0, "clear": {"seconds": 4.0, "crossed": True},
        ...        "protected": {"seconds": 60.0, "crossed": False}}
        >>> as_text([row]), from_text(as_text([row]))[2.0][1]
        ('2:4/60+', Crossing(seconds=60.0, crossed=False))
    """
    sides = ("clear", "protected")
    return " ".join(
        f"{row['bits']:g}:" + "/".join(_cell(row[side]) for side in sides) for row in table
    )


def from_text(text: str) -> dict[float, tuple[Crossing, Crossing]]:
    """What `as_text` wrote: by level, the crossings of both sides."""
    found = {}
    for word in text.split():
        bits, _, times = word.partition(":")
        clear, _, protected = times.partition("/")
        found[float(bits)] = (_crossing(clear), _crossing(protected))
    return found


def _cell(crossing: Mapping[str, Any]) -> str:
    return f"{crossing['seconds']:g}{'' if crossing['crossed'] else '+'}"


def _crossing(cell: str) -> Crossing:
    return Crossing(float(cell.removesuffix("+")), not cell.endswith("+"))


def _disclosure_delay(clear: Crossing, protected: Crossing) -> dict[str, Any]:
    """How much later the protected side was, at least or exactly; None where nobody can know."""
    if not clear.crossed:
        return {"delay_seconds": None, "at_least": False}
    seconds = protected.seconds - clear.seconds
    if not protected.crossed:
        return {"delay_seconds": max(0.0, seconds), "at_least": True}
    return {"delay_seconds": seconds, "at_least": False}
