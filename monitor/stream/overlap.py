"""Refuses to monitor the very audio that was enrolled (docs/method.md section 4)."""

from __future__ import annotations

import math
from collections.abc import Iterable

from monitor.errors import OverlapError
from monitor.population.population import Population, SourceNote, Speaker
from monitor.sources.provenance import Provenance

__all__ = ["session_of"]


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
        enrolled = population.overlapping(part.hashes)
        if enrolled:
            session = "same"
        if not allow_overlap:
            _refuse_overlap(part, enrolled)
    return session


def _refuse_overlap(part: Provenance, enrolled: Iterable[tuple[Speaker, SourceNote]]) -> None:
    end = math.inf if part.end_seconds is None else part.end_seconds
    heard = [
        (speaker, note)
        for speaker, note in enrolled
        if note.start_seconds < end and part.start_seconds < note.end_seconds
    ]
    if heard:
        speaker, note = heard[0]
        after = max(note.end_seconds for _, note in heard)
        raise OverlapError(
            f"{part.label}: seconds {note.start_seconds:g} to {note.end_seconds:g} were "
            f"enrolled as {speaker.name}; start after them (start_seconds={after:g}), or insist "
            "with allow_overlap=True"
        )
