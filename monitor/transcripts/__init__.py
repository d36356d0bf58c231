"""Transcripts: the words of a recording with their times, from any file that people have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.transcripts.reading import read_transcript
    from monitor.transcripts.transcript import SaidWord, Transcript

__all__ = ["SaidWord", "Transcript", "read_transcript"]

_HOMES = {
    "SaidWord": "transcript",
    "Transcript": "transcript",
    "read_transcript": "reading",
}


__getattr__, __dir__ = lazily(__name__, _HOMES)
