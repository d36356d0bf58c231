"""Transcripts: the words of a recording with their times, and who speaks when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.transcripts.choice import TranscriptChoice, transcript_beside
    from monitor.transcripts.formats import read_transcript
    from monitor.transcripts.live import TurnPipe, WordPipe, lines_from
    from monitor.transcripts.transcript import Coverage, TimedWord, Transcript, measure_coverage
    from monitor.transcripts.turn_formats import read_turns
    from monitor.transcripts.turns import Turn, Turns

__all__ = [
    "Coverage",
    "TimedWord",
    "Transcript",
    "TranscriptChoice",
    "Turn",
    "TurnPipe",
    "Turns",
    "WordPipe",
    "lines_from",
    "measure_coverage",
    "read_transcript",
    "read_turns",
    "transcript_beside",
]

__getattr__, __dir__ = lazily(__name__)
