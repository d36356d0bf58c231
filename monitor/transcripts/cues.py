"""Cues: stretches of text with one time for all of it, spread over its words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from monitor.transcripts.transcript import SaidWord

__all__ = ["Cue", "spread_words"]


@dataclass(frozen=True, slots=True)
class Cue:
    """A caption, or a segment of a recogniser: a text and when it was said.

    Attributes:
        text: some words.
        begin, end: in seconds from the start of the recording.
        speaker: who said it; empty where nobody says.
    """

    text: str
    begin: float
    end: float
    speaker: str = ""


def spread_words(cues: Iterable[Cue]) -> Iterator[SaidWord]:
    """The words of cues: each gets a share of its cue's time, by how many letters it has.

    Where a word really was said within its cue nobody knows, so that all of them are known only
    when the cue ends. The time of a word that is alone in its cue is its own.

    Example:
        >>> for word in spread_words([Cue("so it goes", 1.0, 2.1)]):
        ...     print(word.text, round(word.begin, 2), round(word.end, 2), word.known)
        so 1.0 1.3 2.1
        it 1.3 1.6 2.1
        goes 1.6 2.1 2.1
    """
    for cue in cues:
        texts = cue.text.split()
        sizes = [len(text) + 1 for text in texts]  # and the space after it
        second = (cue.end - cue.begin) / max(sum(sizes), 1)
        done = 0
        for text, size in zip(texts, sizes, strict=True):
            begin, end = (cue.begin + second * letters for letters in (done, done + size))
            done += size
            yield SaidWord(text, begin, end, cue.end, cue.speaker, spread=len(texts) > 1)
