"""Watches when either side of a run reaches round numbers of bits, and the disclosure delay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from monitor.alerts.rules import figure
from monitor.events.declaration import Event
from monitor.events.occurrences import Change, GapEvent, LevelReached
from monitor.events.reading import Reading
from monitor.events.schema import event_of
from monitor.maths.statistics import HOLD_SECONDS, Crossing, FirstCrossing

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

    def update(self, record: Event | Mapping[str, Any]) -> list[LevelReached]:
        """Return the crossings that an event, or its record, makes certain."""
        match event := event_of(record):
            case GapEvent() | Change():
                for both in self._found.values():
                    for crossing in both.values():
                        crossing.broken()
                self._over |= isinstance(event, Change) and event.action in ("reset", "split")
            case Reading() if not self._over:
                return self._judge(event)
        return []

    def _judge(self, reading: Reading) -> list[LevelReached]:
        reached: list[LevelReached] = []
        for bits, both in self._found.items():
            for side, crossing in both.items():
                if crossing.known is None:
                    self._observe(crossing, side, reading)
                    if crossing.known is not None and crossing.known.crossed:
                        reached.append(self._reached(bits, side, reading))
        return reached

    @property
    def table(self) -> list[dict[str, Any]]:
        """Crossings so far, a row for each level."""
        return [
            {
                "bits": bits,
                **{side: both[side].so_far()._asdict() for side in _SIDES},
                **_disclosure_delay(*(both[side].so_far() for side in _SIDES)),
            }
            for bits, both in self._found.items()
        ]

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps; JSON-able."""
        states = [crossing.state() for both in self._found.values() for crossing in both.values()]
        return {"crossings": states, "over": self._over}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a ``state``."""
        crossings = [crossing for both in self._found.values() for crossing in both.values()]
        for crossing, saved in zip(crossings, state["crossings"], strict=True):
            crossing.restore(saved)
        self._over = bool(state["over"])

    def _observe(self, crossing: FirstCrossing, side: str, reading: Reading) -> None:
        if reading.change is not None:  # it may be somebody else's
            crossing.broken()
            return
        source = reading if side == "clear" else reading.protected
        cut = self._evidence and source is not None and bool(source.at_least)
        crossing.update(reading.seconds, figure(_SIDES[side] + "bits", reading), cut=cut)

    def _reached(self, bits: float, side: str, reading: Reading) -> LevelReached:
        both = self._found[bits]
        states = {name: crossing.so_far() for name, crossing in both.items()}
        is_crossed = all(c.known is not None and c.known.crossed for c in both.values())
        delay = _disclosure_delay(*states.values())["delay_seconds"] if is_crossed else None
        return LevelReached(reading.seconds, bits, side, states[side].seconds, delay)


def as_text(table: Sequence[Mapping[str, Any]]) -> str:
    """Format a `Crossings.table` in one cell: seconds of the clear and of the protected side.

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
    """Parse the text of `as_text`: by level, the crossings of both sides."""
    crossings = {}
    for word in text.split():
        bits, _, times = word.partition(":")
        clear, _, protected = times.partition("/")
        crossings[float(bits)] = (_crossing(clear), _crossing(protected))
    return crossings


def _cell(crossing: Mapping[str, Any]) -> str:
    return f"{crossing['seconds']:g}{'' if crossing['crossed'] else '+'}"


def _crossing(cell: str) -> Crossing:
    return Crossing(float(cell.removesuffix("+")), not cell.endswith("+"))


def _disclosure_delay(clear: Crossing, protected: Crossing) -> dict[str, Any]:
    """Compute the delay of the protected side, at least or exactly; None where unknown."""
    if not clear.crossed:
        return {"delay_seconds": None, "at_least": False}
    seconds = protected.seconds - clear.seconds
    if not protected.crossed:
        return {"delay_seconds": max(0.0, seconds), "at_least": True}
    return {"delay_seconds": seconds, "at_least": False}
