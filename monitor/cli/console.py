"""The console that tables are printed to."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["made_console"]

_LEAST = 40


def made_console(wide: int) -> Console:
    """Stdout as wide as its terminal or as COLUMNS says; ``wide`` where neither tells."""
    from monitor.sinks.console import PlainConsole

    console = PlainConsole(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        columns = os.environ.get("COLUMNS", "")
        told = columns.isdecimal() and int(columns)
        console.width = max(_LEAST, int(columns)) if told else wide
    return console
