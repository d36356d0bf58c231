"""Whole runs, from source to outputs, and the exit statuses of commands.

An exit status shows how a run ended. If several apply, `worst` selects one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from monitor.errors import UsageError
from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.run.far_pool import FarPool
    from monitor.run.guarded_call import GuardedCall
    from monitor.run.measuring import Measurement, MeasurementSettings, measure
    from monitor.run.parts import LedgerFile, LogFile, Protection
    from monitor.run.pool import Pool, PoolLimits, PoolStatistics
    from monitor.run.run import Run, RunSettings

__all__ = [
    "FarPool",
    "GuardedCall",
    "LedgerFile",
    "LogFile",
    "Measurement",
    "MeasurementSettings",
    "Pool",
    "PoolLimits",
    "PoolStatistics",
    "Protection",
    "Run",
    "RunSettings",
    "measure",
]

__getattr__, __dir__ = lazily(__name__)

FAILED, USAGE, RAISED, INCOMPLETE, INTERRUPTED = 1, 2, 3, 4, 130
_WORST_FIRST = (INTERRUPTED, FAILED, USAGE, RAISED, INCOMPLETE)


def status_of(run: Run) -> int:
    """Return the exit status of an ended run. An alert outranks incompleteness."""
    if run.totals.alerts:  # a caller that tolerates an incomplete run must still see it
        return RAISED
    return INCOMPLETE if run.shortfalls else 0


def status_of_error(error: Exception) -> int:
    """Return the exit status for an error: wrong usage, or failure."""
    return USAGE if isinstance(error, UsageError) else FAILED


def worst(statuses: Iterable[int]) -> int:
    """Return the status that outranks the others; 0 without any."""
    occurred = set(statuses)
    return next((status for status in _WORST_FIRST if status in occurred), 0)
