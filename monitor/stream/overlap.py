"""Is the stream made of the very audio that was enrolled (METHOD section 4)?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from monitor.errors import OverlapError
from monitor.population.population import Population
from monitor.sources.identity import recording_hashes

__all__ = ["Provenance", "session_of"]


@dataclass(frozen=True, slots=True)
class Provenance:
    """A recording that a stream is made of: the file and the part of it that is heard."""

    path: Path
    start_seconds: float = 0.0
    end_seconds: float | None = None


def session_of(
    population: Population, parts: Iterable[Provenance], *, allow_overlap: bool = False
) -> str:
    """Which law a stream of these recordings needs.

    Returns:
        ``"same"`` where one of them was enrolled too, ``"cross"`` otherwise.

    Raises:
        OverlapError: audio that is to be heard was enrolled, and that is not allowed.
    """
    session = "cross"
    for part in parts:
        for speaker, note in population.overlapping(recording_hashes(part.path)):
            session = "same"
            end = float("inf") if part.end_seconds is None else part.end_seconds
            if note.start_seconds < end and part.start_seconds < note.end_seconds:
                if allow_overlap:
                    continue
                raise OverlapError(
                    f"{part.path.name}: seconds {note.start_seconds:g} to {note.end_seconds:g} were "
                    f"enrolled as {speaker.name}; start after them (--start "
                    f"{note.end_seconds:g}), or insist with --allow-overlap"
                )
    return session
