"""Exit statuses: what a command leaves with, and which of several counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from monitor.errors import UsageError

if TYPE_CHECKING:
    from monitor.run.run import Run

FAILED, USAGE, RAISED, INCOMPLETE, INTERRUPTED = 1, 2, 3, 4, 130
_WORST_FIRST = (INTERRUPTED, FAILED, USAGE, RAISED, INCOMPLETE)


def status_of(run: Run) -> int:
    """Return that of a run that has ended: an alert counts before what is incomplete.

    A gate that tolerates what is incomplete must not miss an alert.
    """
    if run.totals.alerts:
        return RAISED
    return INCOMPLETE if run.shortfalls else 0


def status_of_error(error: Exception) -> int:
    """Wrong usage, or failed."""
    return USAGE if isinstance(error, UsageError) else FAILED


def worst(statuses: Iterable[int]) -> int:
    """Return the one that counts where several hold; 0 of none.

    Example:
        >>> worst([0, 3, 4, 0]), worst([4, 1]), worst([])
        (3, 1, 0)
    """
    held = set(statuses)
    return next((status for status in _WORST_FIRST if status in held), 0)
