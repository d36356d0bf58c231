"""The options --jobs and --scheduler: who computes features, processes or workers elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from monitor.cli.saying import say

if TYPE_CHECKING:
    from monitor.workers import Jobs

__all__ = [
    "UNKNOWN_SECONDS",
    "check_not_scheduled",
    "for_workers",
    "jobs_option",
    "processes",
    "processes_for",
    "scheduled",
    "scheduler_option",
    "seconds_of",
]

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


_ASKED, _OPENED = f"{__name__}.asked", f"{__name__}.opened"
"""Of a command's context: the place of a scheduler, and the cluster once it was needed."""


def _note(context: click.Context, _: click.Parameter, where: str | None) -> None:
    context.meta[_ASKED] = where


scheduler_option = click.option(
    "--scheduler",
    metavar="tcp://HOST:PORT|local",
    expose_value=False,
    callback=_note,
    help="Let the workers of a dask scheduler listen (docs/cluster.md), or those of a local "
    "cluster, local:K of K processes; the result does not depend on it. Needs the extra 'cluster'.",
)
"""For commands that map over recordings: `processes`, `processes_for` and `scheduled` heed it."""


def scheduled(jobs: int | None) -> Jobs | None:
    """The workers of ``--scheduler``, for the rest of the command; else ``--jobs`` as it was given.

    Raises:
        UsageError: both were given, or the extra is not installed.
        MonitorError: the scheduler cannot be reached.
    """
    context = click.get_current_context(silent=True)
    where = None if context is None else context.meta.get(_ASKED)
    if context is None or where is None:
        return jobs
    from monitor.cluster import Cluster
    from monitor.errors import UsageError

    if jobs is not None:
        raise UsageError("--jobs is for processes of this machine: leave it out with --scheduler")
    if _OPENED not in context.meta:
        cluster = Cluster(where, lambda line: say(f"monitor: {line}"))
        context.meta[_OPENED] = context.with_resource(cluster)
    opened: Jobs = context.meta[_OPENED]
    return opened


def for_workers(path: Path) -> Path:
    """A path as the workers of ``--scheduler`` can use it, who have other working folders."""
    from monitor.workers import absolute

    asked = click.get_current_context().meta.get(_ASKED) is not None
    return absolute(path) if asked else path


def check_not_scheduled(cure: str) -> None:
    """Refuse ``--scheduler`` where there is only one thing to do.

    Args:
        cure: what would make more of it.

    Raises:
        UsageError: it was given.
    """
    from monitor.errors import UsageError

    if click.get_current_context().meta.get(_ASKED) is not None:
        raise UsageError(f"--scheduler is for many recordings: {cure}")


def processes(jobs: int | None, recordings: Sequence[Path]) -> Jobs:
    """What ``--scheduler`` or ``--jobs`` says, else as many processes as are worth it."""
    return processes_for(jobs, map(seconds_of, recordings))


def processes_for(jobs: int | None, lengths: Iterable[float | None]) -> Jobs:
    """As `processes`, by the lengths of the recordings; None where a header does not say."""
    from monitor.workers import worthwhile

    asked = scheduled(jobs)
    if asked is not None:
        return asked
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
