"""A transcript: the words of one recording with their times, whatever file they came from."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from monitor.errors import SourceError
from monitor.safe_text import printable
from monitor.types import TICKS_PER_SECOND, Words

__all__ = ["SaidWord", "Transcript"]

_MANY = 0.1  # of the words
_SLACK = 1e-6  # ticks: 0.07 s x 100 is a little more than 7


@dataclass(frozen=True, slots=True)
class SaidWord:
    """One word of a transcript.

    Attributes:
        text: as it was written, punctuation and all.
        begin, end: when it was said, in seconds from the start of the recording.
        known: when whoever recognised it had it: with a time of its own when it ended, else when
            the stretch ended over which the words were spread.
        speaker: who said it; empty where the transcript does not say.
        spread: whether its time is a share of a longer stretch, not measured.
    """

    text: str = field(repr=False)  # what is printed may be logged
    begin: float
    end: float
    known: float
    speaker: str = ""
    spread: bool = False


@dataclass(frozen=True, slots=True)
class Transcript:
    """What was said in one recording, word by word, and when.

    Attributes:
        label: of the file, for people.
        said: the words, in the order in which they were said.
        notices: a line each on what is not as it should be, for people: times that were spread,
            stretches that overlap, lines that were left out.

    Example:
        >>> said = SaidWord("well", 0.31, 0.52, 0.52, "ann"), SaidWord("no", 0.6, 0.7, 0.7, "bob")
        >>> talk = Transcript("talk.vtt", said)
        >>> talk.speakers, talk.of("bob").words().texts, talk.words().begins
        (('ann', 'bob'), ('no',), array([31, 60]))
    """

    label: str
    said: tuple[SaidWord, ...]
    notices: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Without any word: what is printed may be logged."""
        return f"Transcript({self.label!r}, {len(self.said)} words, speakers {self.speakers!r})"

    @property
    def speakers(self) -> tuple[str, ...]:
        """Those that it names, in the order in which they begin to speak."""
        return tuple(dict.fromkeys(word.speaker for word in self.said if word.speaker))

    @property
    def spread(self) -> bool:
        """Whether times of words are shares of longer stretches."""
        return any(word.spread for word in self.said)

    def of(self, speaker: str) -> Transcript:
        """The words of one speaker alone.

        Raises:
            SourceError: the transcript does not name that speaker; the message has those it does.
        """
        if speaker not in self.speakers:
            named = ", ".join(map(printable, self.speakers)) or "nobody"
            raise SourceError(f"{self.label} has no speaker {printable(speaker)}; it names {named}")
        nobody = sum(not word.speaker for word in self.said)
        told = f"{self.label}: {nobody} of {len(self.said)} words are of nobody named; left out"
        return replace(
            self,
            said=tuple(word for word in self.said if word.speaker == speaker),
            notices=(*self.notices, told) if nobody else self.notices,
        )

    def beyond(self, seconds: float) -> str:
        """What lies after the end of a recording of that length, in a line; empty for nothing.

        Raises:
            SourceError: all of it does: it is of another recording.

        Example:
            >>> said = SaidWord("so", 9.0, 9.2, 9.2), SaidWord("no", 70.0, 71.0, 71.0)
            >>> talk = Transcript("talk.vtt", said)
            >>> print(talk.beyond(60.0))
            talk.vtt: 1 of 2 words lie after the end of the recording (60 s): is it of another
            recording?
            >>> talk.beyond(80.0)
            ''
        """
        late = sum(word.begin >= seconds for word in self.said)
        what = f"{late} of {len(self.said)} words lie after the end of the recording"
        if not late:
            return ""
        if late == len(self.said):
            raise SourceError(
                f"{self.label}: all of its {late} words lie after the end of the recording "
                f"({seconds:.4g} s); it is of another one, or its times are of another clock"
            )
        asked = ": is it of another recording?" if late > _MANY * len(self.said) else ""
        return f"{self.label}: {what} ({seconds:.4g} s){asked}"

    def words(self) -> Words:
        """The words on the clock of the program, in the order in which they were known."""
        rows = sorted((_ticks(word) for word in self.said), key=lambda row: row[2])
        begins, ends, known = np.array([row[:3] for row in rows], np.int64).reshape(-1, 3).T
        return Words(tuple(row[3] for row in rows), begins, ends, known)


def _ticks(word: SaidWord) -> tuple[int, int, int, str]:
    """When a word begins, ends and is known; a word that takes no time takes a tick."""
    begin = math.floor(word.begin * TICKS_PER_SECOND + _SLACK)
    end, known = (math.ceil(x * TICKS_PER_SECOND - _SLACK) for x in (word.end, word.known))
    end = max(end, begin + 1)
    return begin, end, max(known, end), word.text
