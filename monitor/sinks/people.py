"""Several people in one recording on a terminal: a line each as it is heard, and a table."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from monitor import phrases
from monitor.sinks.summary import bits_now, clean, limits_in_words, number
from monitor.sinks.terminal import ReplayProgress

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

MOST_SHOWN = 8
"""People with a line of their own while the recording is heard: those with most bits."""
_BAR = 24


class PeopleProgress(ReplayProgress):
    r"""A bar for a replay, with a line for each person in the recording.

    Where stderr is no terminal, a line every 10 s of wall time, and one for each person at the end.

    Examples:
        >>> import io
        >>> from rich.console import Console
        >>> console = Console(file=io.StringIO(), force_terminal=False)
        >>> progress = PeopleProgress(60.0, console, clock=lambda: 0.0)
        >>> reading = {"type": "reading", "seconds": 30.0, "speech": 9.0, "ceiling": 5.64}
        >>> progress.write({**reading, "label": "ann", "bits": 2.06})
        >>> progress.write({**reading, "label": "bob", "bits": 1.0})
        >>> progress.close()
        >>> print(progress.console.file.getvalue(), end="")
        0:30 of 1:00 audio, 2 people, most: ann, 2.1 of 5.6 bits, 1 in 12
    """

    def __init__(
        self,
        total_seconds: float | None,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._people: dict[str, dict[Any, Mapping[str, Any]]] = {}  # last readings by whom watched
        self._alerted: set[str] = set()
        super().__init__(total_seconds, console, clock)

    def say(self, line: str) -> None:
        """Tell a person something that is no record."""
        self._say(clean(line, 200))

    def _show(self, record: Mapping[str, Any]) -> None:
        super()._show(record)
        self._people.setdefault(str(record.get("label")), {})[record.get("watch")] = record

    @property
    def _others(self) -> str:
        """Whom the last reading narrowed down says nothing of all."""
        return ""

    @property
    def _most(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Everybody's last reading that says most, those with most bits first."""
        found = [(label, max(views.values(), key=_bits)) for label, views in self._people.items()]
        return sorted(found, key=lambda each: -_bits(each[1]))

    def _parts(self) -> list[str]:
        *parts, _ = super()._parts()
        return [*parts, phrases.plural(len(self._people), "person", "people")]

    def _line(self) -> str:
        place, speed, left, people = self._parts()
        most = self._most
        parts = [f"{place} audio", speed and f"{speed} x real time", left, people]
        if most:
            label, reading = most[0]
            parts.append(f"most: {clean(label, 20)}, {bits_now(reading)}")
        return ", ".join(part for part in parts if part)

    def _view(self) -> RenderableType:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 2))
        for _ in range(4):
            grid.add_column(no_wrap=True)
        shown = self._most[:MOST_SHOWN]
        top = max([1.0, *(_bits(reading) for _, reading in shown)])
        for label, reading in sorted(shown, key=lambda each: list(self._people).index(each[0])):
            bits = _bits(reading)
            bar = "█" * round(_BAR * max(bits, 0.0) / top) or "▏"
            style = "bold red" if label in self._alerted else "bold"
            grid.add_row(
                clean(label, 18),
                phrases.clock_time(reading.get("speech") or 0.0),
                Text(number(reading.get("bits")), style=style),
                Text(bar, style="red" if label in self._alerted else "blue"),
            )
        more = len(self._people) - len(shown)
        rest = [Text(f"and {more} more with less", style="dim")] if more else []
        return Group(super()._view(), grid, *rest)

    def _alert(self, record: Mapping[str, Any]) -> None:
        label = str(record.get("label"))
        if record.get("level") != "warning":
            raised = record.get("state") == "raised"
            (self._alerted.add if raised else self._alerted.discard)(label)
        super()._alert(record)


def _bits(reading: Mapping[str, Any]) -> float:
    bits = reading.get("bits")
    return float("-inf") if bits is None else float(bits)


def print_people(records: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print who is in a recording and what each gave away, a row each."""
    from rich.table import Table
    from rich.text import Text

    end = next(r for r in reversed(records) if r["type"] == "end")
    table = Table(box=None, pad_edge=False)
    for name in PEOPLE_COLUMNS:
        table.add_column(Text(name, style="dim"))
    for cells in people_rows(records):
        table.add_row(*map(Text, cells))
    console.print(table)
    if overlap := end.get("overlap_seconds"):
        console.print(f"{phrases.overlap_in_words(overlap)}.")
    console.print("In brackets: 95 % interval, by how far it depends on those it was learnt from.")
    if any(r.get("assumes_enrolled") for r in records if r["type"] == "reading"):
        console.print("This confidence assumes that each speaker is enrolled: it may be misplaced.")


PEOPLE_COLUMNS = ("label", "most probably", "spoke", "bits", "that is", "alert", "pure")


def people_rows(records: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """The cells of everybody in a recording, under `PEOPLE_COLUMNS`; the run has ended."""
    end = next(r for r in reversed(records) if r["type"] == "end")
    lasts = {
        (r["label"], r.get("watch")): r for r in records if r["type"] == "reading" and "label" in r
    }
    several = any(watch is not None for _, watch in lasts)
    return [
        person_cells(row, lasts.get((row["label"], row["watch"] if several else None)))
        for row in end["people"]
    ]


def person_cells(row: Mapping[str, Any], last: Mapping[str, Any] | None) -> list[str]:
    """The cells of one person.

    Examples:
        >>> row = {"label": "S0", "person": "ann", "probability": 0.961, "purity": 0.98,
        ...     "watch": None, "speech": 61.0, "first_alert_seconds": 12.0, "bits": 2.06,
        ...     "bits_low": 1.9, "bits_high": 2.2, "headline": "closed-set", "at_least": False}
        >>> person_cells(row, {"bits": 2.06, "ceiling": 5.64})
        ['S0', 'ann, 96 %', '1:01', '2.1 (1.9 to 2.2)', '1 in 12', '0:12', '98 %']
        >>> person_cells({**row, "person": None, "purity": None}, None)[1:5]
        ['nobody enrolled, 96 %', '1:01', '', 'too little to say']
    """
    who = "nobody enrolled" if row["person"] is None else clean(row["person"], 20)
    sure = row["probability"]
    bits, said = "", "too little to say"
    if last is not None:
        said = bits_now(last)
        if row["bits"] is not None:
            cut = row["headline"] == "evidence" and row["at_least"]
            limits = limits_in_words(row["bits_low"], row["bits_high"], cut=cut)
            bits, said = f"{number(row['bits'])} {limits}", said.partition(", ")[2]
        if row["watch"] is not None:
            said = f"as {clean(row['watch'], 20)}{': ' if said else ''}{said}"
    first, purity = row["first_alert_seconds"], row["purity"]
    return [
        clean(row["label"], 20),
        "" if sure is None else f"{who}, {100 * sure:.0f} %",
        phrases.clock_time(row["speech"]),
        bits,
        said,
        "" if first is None else phrases.clock_time(first),
        "" if purity is None else f"{100 * purity:.0f} %",
    ]
