"""Cues: stretches of text with one time for all of it, spread over its words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from monitor.safe_text import printable
from monitor.transcripts.transcript import SaidWord

__all__ = ["Cue", "spread_words"]


@dataclass(frozen=True, slots=True)
class Cue:
    """A caption, a segment or a single word of a recogniser: a text and when it was said.

    Attributes:
        text: some words.
        begin, end: in seconds from the start of the recording.
        speaker: who said it; empty where nobody says.
        known: when the text was known, where its own time is a share of something longer; None
            where it was known when it ended.
    """

    text: str
    begin: float
    end: float
    speaker: str = ""
    known: float | None = None


def spread_words(cue: Cue) -> Iterator[SaidWord]:
    """The words of a cue: each gets a share of its time, by how many letters it has.

    Where a word really was said within its cue nobody knows, so that all of them are known only
    when the cue ends. The time of a word that is alone in its cue is its own.

    Example:
        >>> for word in spread_words(Cue("so it goes", 1.0, 2.1)):
        ...     print(word.text, round(word.begin, 2), round(word.end, 2), word.known)
        so 1.0 1.3 2.1
        it 1.3 1.6 2.1
        goes 1.6 2.1 2.1
    """
    texts = cue.text.split()
    sizes = [len(text) + 1 for text in texts]  # and the space after it
    second = (cue.end - cue.begin) / max(sum(sizes), 1)
    known = cue.end if cue.known is None else cue.known
    spread = len(texts) > 1 or cue.known is not None
    done = 0
    for text, size in zip(texts, sizes, strict=True):
        begin, end = (cue.begin + second * letters for letters in (done, done + size))
        done += size
        yield SaidWord(text, begin, end, known, printable(cue.speaker.strip()), spread)
