"""A progress bar on stderr where it is a terminal; a quiet line now and then where it is not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from monitor.cli.saying import say

__all__ = ["progress_over"]

_QUIET_SECONDS = 10.0


@contextmanager
def progress_over(total: int, what: str) -> Iterator[Callable[[str], None]]:
    """Yields a function to call after each of ``total`` steps, with what was just done."""
    from monitor.sinks.console import PlainConsole

    console = PlainConsole(stderr=True)
    if not console.is_terminal:
        done, last = 0, time.monotonic()

        def step(label: str) -> None:
            nonlocal done, last
            done += 1
            if time.monotonic() - last >= _QUIET_SECONDS:
                last = time.monotonic()
                more = f" ({label})" if label else ""
                say(f"{what}: {done} of {total}{more}")

        yield step
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),  # a speaker may be called [/]
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda label: progress.update(task, advance=1, description=label)
