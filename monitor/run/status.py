"""Exit statuses: what a command leaves with, and which of several counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from monitor.errors import UsageError

if TYPE_CHECKING:
    from monitor.run.run import Run

FAILED, USAGE, RAISED, INCOMPLETE, INTERRUPTED = 1, 2, 3, 4, 130
_WORST_FIRST = (INTERRUPTED, FAILED, USAGE, INCOMPLETE, RAISED)


def status_of(run: Run) -> int:
    """That of a run that has ended: incomplete counts before an alert.

    Where nobody spoke it is incomplete, of a recording and at a microphone. A recording too short
    to decide an alert is incomplete, unless another one was raised.
    """
    from monitor.protocols import LiveSource  # numpy: not for a command that only says no

    recorded = not isinstance(run.source, LiveSource)  # who listens ends it as they like
    if run.incomplete or run.totals.silent:
        return INCOMPLETE
    if run.totals.alerts:
        return RAISED
    return INCOMPLETE if run.totals.undecided and recorded else 0


def status_of_error(error: Exception) -> int:
    """Wrong usage, or failed."""
    return USAGE if isinstance(error, UsageError) else FAILED


def worst(statuses: Iterable[int]) -> int:
    """The one that counts where several hold; 0 of none.

    Example:
        >>> worst([0, 3, 4, 0]), worst([4, 1]), worst([])
        (4, 1, 0)
    """
    held = set(statuses)
    return next((status for status in _WORST_FIRST if status in held), 0)
