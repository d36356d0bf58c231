"""`Crossings` finds when each side of a protected run reaches whole numbers of bits."""

from __future__ import annotations

from collections.abc import Sequence

from monitor.alerts.figures import figure
from monitor.events.declaration import Event
from monitor.events.reading import Reading
from monitor.events.run import Change, DelayRow, LevelReached, RunStart
from monitor.maths.statistics import HOLD_SECONDS, Crossing, FirstCrossing
from monitor.types import Record

LEVELS = (1.0, 2.0, 3.0, 10.0)  # levels in bits for which crossings are reported
_SIDES = {"clear": "", "protected": "protected."}


class Crossings:
    """Find each level of bits that the clear or the protected side of a run reaches.

    It compares the clear side's headline with that of the strongest attacker tried.

    Levels above the maximum are skipped. The maximum is the calibration's support for evidence, and
    log2 N for closed-set figures. A figure must stay at a level for a while, as for an alert
    (`monitor.maths.statistics`). An open change restarts this time. If the evidence restarts with
    another voice, levels not crossed by then stay uncrossed. Without a watched speaker there are no
    crossings, because the attacker's confidence may be in the wrong person.
    """

    def __init__(self, start: RunStart, levels: Sequence[float] = LEVELS) -> None:
        self._evidence = start.headline == "evidence"
        maximum = (start.support_bits if self._evidence else start.ceiling) or 0.0
        watched = start.watch is not None
        self._found = {
            bits: {side: FirstCrossing(bits, HOLD_SECONDS) for side in _SIDES}
            for bits in levels
            if watched and bits <= maximum
        }
        self._over = False

    def update(self, event: Event) -> list[LevelReached]:
        """Process an event; return the crossings that it confirms."""
        match event:
            case Change():
                for both in self._found.values():
                    for crossing in both.values():
                        crossing.broken()
                self._over |= event.action in ("reset", "split")
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
    def table(self) -> tuple[DelayRow, ...]:
        """Crossings so far, one row per level."""
        return tuple(self._row(bits) for bits in self._found)

    def _row(self, bits: float) -> DelayRow:
        clear, protected = (self._found[bits][side].so_far() for side in _SIDES)
        return DelayRow(bits, clear, protected, *_disclosure_delay(clear, protected))

    def state(self) -> Record:
        """Return the state for a checkpoint, as JSON values."""
        states = [crossing.state() for both in self._found.values() for crossing in both.values()]
        return {"crossings": states, "over": self._over}

    def restore(self, state: Record) -> None:
        """Continue from a ``state``."""
        crossings = [crossing for both in self._found.values() for crossing in both.values()]
        for crossing, saved in zip(crossings, state["crossings"], strict=True):
            crossing.restore(saved)
        self._over = bool(state["over"])

    def _observe(self, crossing: FirstCrossing, side: str, reading: Reading) -> None:
        if reading.change is not None:  # the figure may be another speaker's
            crossing.broken()
            return
        source = reading if side == "clear" else reading.protected
        cut = self._evidence and source is not None and bool(source.at_least)
        crossing.update(reading.seconds, figure(_SIDES[side] + "bits", reading), cut=cut)

    def _reached(self, bits: float, side: str, reading: Reading) -> LevelReached:
        row, both = self._row(bits), self._found[bits]
        is_crossed = all(c.known is not None and c.known.crossed for c in both.values())
        delay = row.delay_seconds if is_crossed else None
        return LevelReached(reading.seconds, bits, side, both[side].so_far().seconds, delay)


def as_text(table: Sequence[DelayRow]) -> str:
    """Format `Crossings.table` as one cell, with the seconds of both sides at each level."""
    return " ".join(f"{row.bits:g}:{_cell(row.clear)}/{_cell(row.protected)}" for row in table)


def from_text(text: str) -> dict[float, tuple[Crossing, Crossing]]:
    """Parse the text of `as_text` into the crossings of both sides by level."""
    crossings = {}
    for word in text.split():
        bits, _, times = word.partition(":")
        clear, _, protected = times.partition("/")
        crossings[float(bits)] = (_crossing(clear), _crossing(protected))
    return crossings


def _cell(crossing: Crossing) -> str:
    return f"{crossing.seconds:g}{'' if crossing.crossed else '+'}"


def _crossing(cell: str) -> Crossing:
    return Crossing(float(cell.removesuffix("+")), not cell.endswith("+"))


def _disclosure_delay(clear: Crossing, protected: Crossing) -> tuple[float | None, bool]:
    """Compute the delay of the protected side, or None, and whether it is only a minimum."""
    if not clear.crossed:
        return None, False
    seconds = protected.seconds - clear.seconds
    return (seconds, False) if protected.crossed else (max(0.0, seconds), True)
