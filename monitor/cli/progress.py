"""A progress bar on stderr where it is a terminal; a quiet line now and then where it is not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from monitor.cli.saying import say
from monitor.phrases import clock_time

__all__ = ["progress_over"]

_QUIET_SECONDS = 10.0


@contextmanager
def progress_over(
    total: float, what: str, unit: str = ""
) -> Iterator[Callable[[str, float], None]]:
    """Yields a function to call after each step: what was just done, and how much of it.

    Args:
        total: steps, or an amount of ``unit``.
        what: is being done.
        unit: of what is counted, where it is not steps.
    """
    from monitor.sinks.console import PlainConsole

    console = PlainConsole(stderr=True)
    if not console.is_terminal:
        began = last = time.monotonic()
        done = 0.0

        def step(label: str, amount: float) -> None:
            nonlocal done, last
            done += amount
            if time.monotonic() - last >= _QUIET_SECONDS:
                last = time.monotonic()
                more = f" ({label})" if label else ""
                left = (last - began) * max(total - done, 0.0) / done if done else 0.0
                ready = f"{done:.0f} of {total:.0f} {unit}".strip()
                say(f"{what}: {ready}, about {clock_time(left)} left{more}")

        yield step
        return
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn(what),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}" + (unit and f" {unit}")),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),  # a speaker may be called [/]
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total)

        def draw(label: str, amount: float) -> None:
            progress.update(task, advance=amount, description=label)

        yield draw
