"""The option --jobs: how many processes compute features."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

__all__ = ["jobs_option", "processes"]

WORTHWHILE_SECONDS = 60.0
"""Of audio for each process: it takes a second or two to start."""

jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes that listen; the result does not depend on it. [default: one a core, where "
    "there are minutes of audio]",
)


def processes(jobs: int | None, recordings: Sequence[Path]) -> int:
    """What ``--jobs`` says, else as many as are worth it."""
    from monitor.workers import cores

    if jobs is not None:
        return jobs
    most, total = cores(), 0.0
    for path in recordings:
        total += seconds_of(path) or 0.0
        if total >= most * WORTHWHILE_SECONDS:
            return most
    return max(1, int(total // WORTHWHILE_SECONDS))


def seconds_of(path: Path) -> float | None:
    """Of audio, by the header; None where it does not say, or of ready-made frames."""
    from monitor.errors import MonitorError
    from monitor.sources.file import File
    from monitor.sources.registry import is_frames

    if is_frames(path):
        return None
    try:
        return File(path).seconds
    except MonitorError:  # told, with the reason, when it is to be heard
        return None
