"""What the records of a run say of transcripts: before it, and how well they fitted after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from monitor.protocols import Source
from monitor.sources.transcript_note import stated_transcripts
from monitor.stream.coverage import RecordingCoverage
from monitor.types import Notice

__all__ = ["coverage_notices", "coverage_record", "transcripts_record"]


def transcripts_record(source: Source, labels: Sequence[str]) -> dict[str, Any]:
    """For the ``start`` record: whose words are heard; nothing where no words come.

    Args:
        source: what is heard.
        labels: what its recordings are called.
    """
    if not source.brings.words:
        return {}
    known = [
        {
            "recording": _named(labels, place),
            "transcript": each.label,
            "words": each.words,
            "spread": each.spread,
            "speaker": each.speaker,
        }
        for place, each in enumerate(stated_transcripts(source))
    ]
    return {"transcripts": known}


def coverage_record(
    found: Sequence[RecordingCoverage], labels: Sequence[str]
) -> list[dict[str, Any]]:
    """For the ``end`` record: how well the words of each recording fit its speech."""
    return [
        {
            "recording": _named(labels, each.recording),
            "words": each.words,
            "words_in_speech": each.coverage and each.coverage.in_speech,
            "speech_with_words": each.coverage and each.coverage.covered,
            "as_well_elsewhere": each.coverage and each.coverage.as_well,
        }
        for each in found
    ]


def coverage_notices(
    found: Sequence[RecordingCoverage],
    labels: Sequence[str],
    begun: Sequence[Mapping[str, Any]],
) -> Iterator[Notice]:
    """One for each recording: how its words lie in its speech.

    Args:
        found: of each recording.
        labels: what the recordings are called.
        begun: from `transcripts_record`.
    """
    for each in found:
        place = each.recording
        name = begun[place]["transcript"] if place < len(begun) else _named(labels, place)
        if each.coverage is not None:
            said = each.coverage.sentence(name)
        else:
            none = "no words came: the average and the plateau are still those of voices with words"
            why = "nobody speaks in its recording" if each.words else none
            said = f"{name}: {why}"
        yield Notice("transcript", said)


def _named(labels: Sequence[str], place: int) -> str:
    return labels[place] if place < len(labels) else ""
