"""What a source says of the words that it brings: which transcript, how many, whose."""

from __future__ import annotations

from dataclasses import dataclass, field

from monitor.protocols import Source
from monitor.transcripts.choice import words_mark
from monitor.transcripts.transcript import Transcript

__all__ = ["TranscriptNote", "note_of", "stated_transcripts"]


@dataclass(frozen=True, slots=True)
class TranscriptNote:
    """A transcript that lies beside a recording, or words that come with a live one.

    Attributes:
        label: what to call it in front of a person.
        words: how many; None where they are still to come.
        spread: whether times of words are shares of longer stretches; None where nobody knows yet.
        speaker: whose words they are, where it names one alone.
        mark: of the words and their times; empty where they are still to come.
        notices: a line each on what is not as it should be.
        texts: of the words, of a whole transcript.
    """

    label: str
    words: int | None = None
    spread: bool | None = None
    speaker: str | None = None
    mark: str = ""
    notices: tuple[str, ...] = ()
    texts: tuple[str, ...] = field(default=(), repr=False)


def note_of(transcript: Transcript, seconds: float | None = None) -> TranscriptNote:
    """The note of a transcript that was read.

    Args:
        transcript: of a recording.
        seconds: when that ends; None where nobody knows.
    """
    named = transcript.speakers
    late = "" if seconds is None else transcript.beyond(seconds)
    return TranscriptNote(
        transcript.label,
        len(transcript.said),
        transcript.spread,
        named[0] if len(named) == 1 else None,
        words_mark(transcript),
        (*transcript.notices, *([late] if late else [])),
        tuple(word.text for word in transcript.said),
    )


def stated_transcripts(source: Source) -> tuple[TranscriptNote, ...]:
    """What a source says of its words, a note a recording; none where it says nothing."""
    known: tuple[TranscriptNote, ...] = getattr(source, "transcripts", ())
    return known
