"""What is about to be heard, before the long work: who, how many sessions, how many minutes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from monitor.phrases import plural

if TYPE_CHECKING:
    from monitor.corpus.recordings import Corpus

__all__ = ["plan_of"]

MOST_ROWS = 20
_NAME_CELLS = 32


def plan_of(corpus: Corpus, more: str = "") -> Iterator[str]:
    """The plan, a line each; of many speakers the first few.

    Args:
        corpus: what is to be heard.
        more: to be said in the first line.
    """
    from rich.cells import cell_len, set_cell_size

    sessions = {name: corpus.sessions(name) for name in corpus.speakers[:MOST_ROWS]}
    count = plural(len(corpus.speakers), "speaker")
    by = f", {corpus.told_by}" if corpus.told_by else ""
    yield f"plan: {count}{by}{more}"
    width = min(max(map(cell_len, ["speaker", *sessions])), _NAME_CELLS)
    yield f"  {'speaker':{width}}  sessions  files  minutes"
    for name, of in sessions.items():
        files = [file for session in of.values() for file in session]
        minutes = _minutes(files)
        yield (
            f"  {set_cell_size(name, width)}  {len(of):8}  {len(files):5}  "
            f"{'?' if minutes is None else format(minutes, '.1f'):>7}"
        )
    if left := len(corpus.speakers) - len(sessions):
        yield f"  and {left} more"


def _minutes(files: Iterable[Path]) -> float | None:
    """Of audio, by the headers; None where one does not say."""
    from monitor.errors import MonitorError
    from monitor.sources.registry import open_source

    total = 0.0
    for file in files:
        try:
            seconds = getattr(open_source(file), "seconds", None)
        except MonitorError:  # told, with the reason, when it is to be heard
            seconds = None
        if seconds is None:
            return None
        total += seconds
    return total / 60
