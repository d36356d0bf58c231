"""Words, and turns, that come while they are said: lines of a program, through a pipe."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Generic, Self, TypeVar

import numpy as np

from monitor.errors import Argument, Message, SourceError
from monitor.managed import Managed
from monitor.phrases import plural
from monitor.safe_text import printable
from monitor.transcripts.formats import parse_line
from monitor.transcripts.transcript import MOST_WORDS_A_SECOND, SaidWord, Transcript
from monitor.transcripts.turns import MOST_LABELS, Turn, turn_of_line
from monitor.types import TICKS_PER_SECOND, Words

_MOST_WAITING = 10_000  # lines; then whoever writes them has to wait
_MOST_TOLD = 5  # malformed lines
_WAIT_SECONDS = 0.1
_MOST_AHEAD_SECONDS = 10.0
_MOST_AT_ONCE = 1000  # words, of a recogniser that was minutes behind
_MOST_BYTES = 1_000_000  # of a line

Parsed = TypeVar("Parsed")


class LinePipe(Managed, Generic[Parsed]):
    """Reads lines on a thread of its own, so that nobody waits for whoever writes them.

    Args:
        lines: texts or UTF-8, as they come; `lines_from` gives those of a file descriptor.
        label: what to call it in front of a person.
        told: called with a line for people, by whoever takes what came.

    Attributes:
        label: what it is called.
        malformed: lines that were left out.
    """

    def __init__(
        self, lines: Iterable[bytes | str], label: str, told: Callable[[str], object]
    ) -> None:
        self.label, self.malformed = label, 0
        self._lines, self._told = lines, told
        self._queue: Queue[list[Parsed] | str] = Queue(_MOST_WAITING)
        self._stopped, self._over = Event(), Event()
        # it may wait for a line for ever, and must not keep the program from ending
        self._thread = Thread(target=self._read, name="lines", daemon=True)

    @abstractmethod
    def _parsed(self, where: str, line: bytes | str) -> list[Parsed]:
        """What a line says; SourceError where it is malformed."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def close(self) -> None:
        """Take no more; what has come and was not taken is dropped."""
        self._stopped.set()

    @property
    def over(self) -> bool:
        """Whether the pipe has ended and all of it was taken."""
        return self._over.is_set() and self._queue.empty()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until the pipe has ended, or for so long."""
        self._over.wait(seconds)

    def _came(self) -> list[Parsed]:
        """All that came since the last time; malformed lines are told."""
        found: list[Parsed] = []
        try:
            while True:
                came = self._queue.get_nowait()
                if isinstance(came, str):
                    self._tell(came)
                else:
                    found += came
        except Empty:
            return found

    def _tell(self, line: str) -> None:
        self.malformed += 1
        if self.malformed <= _MOST_TOLD:
            self._told(f"{line}; it is left out")
        elif self.malformed == _MOST_TOLD + 1:
            self._told(f"{self.label}: more malformed lines are left out")

    def _tell_lost(self, *lost: tuple[int, str, str]) -> None:
        """Say how much was left out: how many, of what; nothing where nothing was."""
        every = ((self.malformed, "malformed line", "malformed lines"), *lost)
        said = [plural(count, one, several) for count, one, several in every if count]
        if said:
            self._told(f"{self.label}: left out in all: {' and '.join(said)}")

    def _read(self) -> None:
        try:
            for number, line in enumerate(self._lines, 1):
                found: list[Parsed] | str
                try:
                    found = self._parsed(f"{self.label} line {number}", line)
                except SourceError as error:
                    found = str(error)
                if found and not self._waits(found):
                    return
        except OSError as error:
            self._waits(f"{self.label}: nothing more can be read ({error.strerror})")
        finally:
            self._over.set()

    def _waits(self, found: list[Parsed] | str) -> bool:
        """Put it where it waits to be taken; False once nobody takes any."""
        while not self._stopped.is_set():
            try:
                self._queue.put(found, timeout=_WAIT_SECONDS)
            except Full:
                continue
            return True
        return False


class WordPipe(LinePipe[SaidWord]):
    r"""Reads lines of words on a thread of its own, so that nobody waits for a recogniser.

    A line is a word, as in a `.words` file, or a segment as Whisper's JSON has it. Words may come
    late: one counts from when it is taken, or from its own ``known`` where that is later still. A
    malformed line is named and left out.

    Args:
        lines: texts or UTF-8, as they come; `lines_from` gives those of a file descriptor.
        speaker: take the words of this one alone; None takes all, until a second speaker is
            named: then those of the first alone.
        label: what to call it in front of a person.
        told: called with a line for people, by whoever takes words.

    Attributes:
        label: what it is called.
        count: words that were taken.
        malformed: lines that were left out.
        ahead: words that were left out, since they end long after what was heard.
        beyond: words that were left out, since nobody says so many in so short a time.
        speakers: those that were named so far.

    Example:
        >>> with WordPipe(['{"word": "well", "begin": 0.31, "end": 0.52}']) as pipe:
        ...     pipe.wait()
        ...     words = pipe.collect(300)
        >>> words.texts, words.ends, words.known
        (('well',), array([52]), array([300]))
    """

    def __init__(
        self,
        lines: Iterable[bytes | str],
        *,
        speaker: str | None = None,
        label: str = "-",
        told: Callable[[str], object] = lambda _: None,
    ) -> None:
        super().__init__(lines, label, told)
        self.count = self.ahead = self.beyond = 0
        self._room, self._heard = float(_MOST_AT_ONCE), 0.0
        self.speakers: tuple[str, ...] = ()
        self._speaker = speaker

    def _parsed(self, where: str, line: bytes | str) -> list[SaidWord]:
        return parse_line(where, line)

    def collect(self, tick: int, recording: int = 0, heard: int | None = None) -> Words | None:
        """The words that came since the last time; None for none.

        Args:
            tick: how much of the recording has been heard; what counted before counts now.
            recording: which recording of the stream.
            heard: ticks that anybody can have heard; words that end more than 10 s later have times
                of another unit or clock, and are left out. None asks nothing.
        """
        said = self._came()
        if heard is not None:
            said = self._of_now(said, heard / TICKS_PER_SECOND)
            said = self._sayable(said, heard / TICKS_PER_SECOND)
        named = [word.speaker for word in said if word.speaker]
        self.speakers = tuple(dict.fromkeys([*self.speakers, *named]))
        if self._speaker is None and len(self.speakers) > 1:
            self._speaker = self.speakers[0]
            names = ", ".join(map(printable, self.speakers))
            mine = f"those of {printable(self._speaker)} alone count from here on"
            self._told(
                Message(
                    f"{self.label}: words of {names}: {mine}, as others' would be held against "
                    "her (", Argument("speaker_in_transcript"), ")",
                )
            )  # fmt: skip
        said = [word for word in said if self._speaker in (None, word.speaker)]
        if not said:
            return None
        self.count += len(said)
        words = Transcript(self.label, tuple(said)).words()
        return replace(words, known=np.maximum(words.known, tick), recording=recording)

    def _of_now(self, said: list[SaidWord], seconds: float) -> list[SaidWord]:
        near: list[SaidWord] = []
        far: list[SaidWord] = []
        for word in said:
            (far if word.end > seconds + _MOST_AHEAD_SECONDS else near).append(word)
        if far and not self.ahead:
            ends = f"a word ends at {far[0].end:.4g} s, and {seconds:.4g} s were heard"
            must = "times must be seconds from the start of what is heard"
            self._told(f"{self.label}: {ends}: {must}; such words are left out")
        self.ahead += len(far)
        return near

    def _sayable(self, said: list[SaidWord], seconds: float) -> list[SaidWord]:
        """So many of them as anybody can have said: room for them grows with what was heard."""
        grown = MOST_WORDS_A_SECOND * max(0.0, seconds - self._heard)
        self._room, self._heard = min(self._room + grown, _MOST_AT_ONCE), seconds
        kept = said[: int(self._room)]
        self._room -= len(kept)
        if len(kept) < len(said) and not self.beyond:
            self._told(
                f"{self.label}: {len(said)} words at {seconds:.4g} s are more than anybody says; "
                f"beyond {_MOST_AT_ONCE} at once, and {MOST_WORDS_A_SECOND} a second, they are "
                "left out"
            )
        self.beyond += len(said) - len(kept)
        return kept

    def tell_lost(self) -> None:
        """Say how much was left out; nothing where nothing was."""
        self._tell_lost(
            (self.ahead, "word ahead", "words ahead"),
            (self.beyond, "word too many", "words too many"),
        )


class TurnPipe(LinePipe[Turn]):
    r"""Reads the SPEAKER lines of an RTTM on a thread of its own, as a live diariser writes them.

    A line comes when its turn is over, or so far; times are seconds from the start of what is
    heard. A malformed line is named and left out; so is a turn that ends more than 10 s after what
    was heard, and one of a label beyond the first `MOST_LABELS`.

    Args:
        lines: texts or UTF-8, as they come; `lines_from` gives those of a file descriptor.
        label: what to call it in front of a person.
        told: called with a line for people, by whoever takes turns.

    Attributes:
        label: what it is called.
        count: turns that were taken.
        malformed: lines that were left out.
        ahead: turns that were left out, since they end long after what was heard.
        beyond: turns that were left out, of labels too many.
        labels: those that were named so far.

    Example:
        >>> with TurnPipe(["SPEAKER call 1 0.50 2.00 <NA> <NA> ann <NA> <NA>"]) as pipe:
        ...     pipe.wait()
        ...     pipe.collect(3.0)
        [Turn(start_seconds=0.5, end_seconds=2.5, label='ann')]
    """

    def __init__(
        self,
        lines: Iterable[bytes | str],
        *,
        label: str = "-",
        told: Callable[[str], object] = lambda _: None,
    ) -> None:
        super().__init__(lines, label, told)
        self.count = self.ahead = self.beyond = 0
        self.labels: dict[str, None] = {}

    def _parsed(self, where: str, line: bytes | str) -> list[Turn]:
        found = turn_of_line(where, line)
        return [] if found is None else [found]

    def collect(self, heard: float) -> list[Turn]:
        """The turns that came since the last time; so many seconds can have been heard by now."""
        found = []
        for turn in self._came():
            if turn.end_seconds > heard + _MOST_AHEAD_SECONDS:
                if not self.ahead:
                    self._told(
                        f"{self.label}: a turn ends at {turn.end_seconds:.4g} s, and {heard:.4g} s "
                        "were heard: times must be seconds from the start of what is heard; such "
                        "turns are left out"
                    )
                self.ahead += 1
            elif turn.label not in self.labels and len(self.labels) >= MOST_LABELS:
                if not self.beyond:
                    self._told(
                        f"{self.label}: more than {MOST_LABELS} labels: turns of further ones are "
                        "left out"
                    )
                self.beyond += 1
            else:
                self.labels[turn.label] = None
                found.append(turn)
        self.count += len(found)
        return found

    def tell_lost(self) -> None:
        """Say how much was left out; nothing where nothing was."""
        self._tell_lost(
            (self.ahead, "turn ahead", "turns ahead"),
            (self.beyond, "turn of a label too many", "turns of labels too many"),
        )


def lines_from(descriptor: int) -> Iterator[bytes]:
    """The lines of a pipe as they come; read without buffers that a dying program would lock.

    Args:
        descriptor: of the file, such as ``sys.stdin.fileno()``.
    """
    kept = b""
    while data := os.read(descriptor, 65_536):
        *lines, kept = (kept + data).split(b"\n")
        yield from lines
        if len(kept) > _MOST_BYTES:
            yield kept
            kept = b""
    if kept:
        yield kept
