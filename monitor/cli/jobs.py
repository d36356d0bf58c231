"""The option --jobs: how many processes compute features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import click

__all__ = ["UNKNOWN_SECONDS", "jobs_option", "processes", "processes_for", "seconds_of"]

WORTHWHILE_SECONDS = 60.0
"""Of audio for each process: it takes a second or two to start."""
UNKNOWN_SECONDS = 60.0
"""For the progress: of a recording whose header is silent."""

jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes that listen; the result does not depend on it. [default: one a core, where "
    "there are minutes of audio]",
)


def processes(jobs: int | None, recordings: Sequence[Path]) -> int:
    """What ``--jobs`` says, else as many as are worth it."""
    return processes_for(jobs, map(seconds_of, recordings))


def processes_for(jobs: int | None, lengths: Iterable[float | None]) -> int:
    """As `processes`, by the lengths of the recordings; None where a header does not say."""
    from monitor.workers import worthwhile

    if jobs is not None:
        return jobs
    return worthwhile((seconds or 0.0 for seconds in lengths), WORTHWHILE_SECONDS)


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
