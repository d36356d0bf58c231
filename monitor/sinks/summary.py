"""The few lines that are left on a terminal when a run is over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from monitor.sinks.people import bits_now, clean, clock_time, number

__all__ = ["print_summary"]


def print_summary(records: Sequence[Mapping[str, Any]]) -> None:
    """Print the result of a run as a table on stdout.

    Args:
        records: the run, at least its ``start`` and its last ``reading``.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    start = next((r for r in records if r["type"] == "start"), {})
    last = next((r for r in reversed(records) if r["type"] == "reading"), None)
    console = Console()
    if last is None:
        console.print("nothing was heard: no bits disclosed")
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    who = start.get("watch")
    headline = "attacker's confidence" if who is None else f"disclosed of {clean(who, 40)}"
    rows = [
        (headline, f"{bits_now(last)}   (95 %: {_limits(last, 'bits')})"),
        (
            "heard",
            f"{clock_time(last['seconds'])} audio, {clock_time(last['speech'])} of it speech",
        ),
        (
            "a voice of this length",
            f"{number(last['expected_bits'])} bits on average ({_limits(last, 'expected_bits')})",
        ),
        ("largest so far", f"{number(last['peak_bits'])} bits"),
    ]
    for name, feature in last["features"].items():
        rank = "" if feature["rank"] is None else f", rank {feature['rank']:g}"
        rows.append((f"of it {name}", f"{number(feature['usable'])} s usable{rank}"))
    likely = ", ".join(f"{clean(name, 20)} {p:.0%}" for name, p in last["top"])
    rows.append(("most probable", likely))
    for label, value in rows:
        table.add_row(Text(label, style="dim"), Text(value))
    console.print(table)
    if last["assumes_enrolled"]:
        console.print(
            "This assumes that the speaker is enrolled; it says nothing about being right."
        )
    if last["beyond_grid"]:
        console.print("Longer than anything calibrated: the last law holds.")


def _limits(record: Mapping[str, Any], field: str) -> str:
    return f"{number(record[field + '_low'])} to {number(record[field + '_high'])}"
