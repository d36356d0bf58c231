"""Words, and turns, that come while they are said: lines of a program, through a pipe."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import ClassVar, Generic, Self, TypeVar

import numpy as np

from monitor.errors import Argument, Message, SourceError
from monitor.lazy import Managed
from monitor.phrases import plural
from monitor.safe_text import printable
from monitor.transcripts.formats import parse_line
from monitor.transcripts.transcript import MOST_WORDS_A_SECOND, TimedWord, Transcript
from monitor.transcripts.turns import MOST_LABELS, Turn, parse_turn
from monitor.types import TICKS_PER_SECOND, Words

_MOST_WAITING = 10_000  # lines; then whoever writes them has to wait
_MOST_TOLD = 5  # malformed lines
_WAIT_SECONDS = 0.1
_MOST_AHEAD_SECONDS = 10.0
_MOST_AT_ONCE = 1000  # words, of a recogniser that was minutes behind
_MOST_BYTES = 1_000_000  # of a line

Parsed = TypeVar("Parsed")


class LinePipe(Managed, Generic[Parsed]):
    """Reader of lines on a thread of its own, so that nobody waits for whoever writes them.

    Args:
        lines: texts or UTF-8, as they come; `lines_from` gives those of a file descriptor.
        label: what to call it in front of a person.
        report: called with a line for people, by whoever takes what came.

    Attributes:
        count: words, or turns, that were taken.
        malformed: lines that were left out; each is named.
        ahead: words, or turns, that were left out, since they end long after what was heard.
        beyond: those that were left out, since there are too many, or labels too many.
        labels: of speakers, in the order in which they were named.
    """

    LOST: ClassVar[tuple[tuple[str, str], tuple[str, str]]]  # ahead, and too many, with plurals

    def __init__(
        self,
        lines: Iterable[bytes | str],
        *,
        label: str = "-",
        report: Callable[[str], object] = lambda _: None,
    ) -> None:
        self.label = label
        self.count = self.malformed = self.ahead = self.beyond = 0
        self.labels: dict[str, None] = {}
        self._lines, self._report = lines, report
        self._queue: Queue[list[Parsed] | str] = Queue(_MOST_WAITING)
        self._stopped, self._over = Event(), Event()
        # it may wait for a line for ever, and must not keep the program from ending
        self._thread = Thread(target=self._read, name="lines", daemon=True)

    @abstractmethod
    def _parse(self, where: str, line: bytes | str) -> list[Parsed]:
        """Parse a line; SourceError where it is malformed."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def close(self) -> None:
        """Take no more; what has come and was not taken is dropped."""
        self._stopped.set()

    @property
    def over(self) -> bool:
        """Flag: the pipe has ended and all of it was taken."""
        return self._over.is_set() and self._queue.empty()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until the pipe has ended, or for so long."""
        self._over.wait(seconds)

    def _take(self) -> list[Parsed]:
        """Return all that came since the last time; report malformed lines."""
        items: list[Parsed] = []
        try:
            while True:
                entry = self._queue.get_nowait()
                if not isinstance(entry, str):
                    items += entry
                    continue
                self.malformed += 1
                if self.malformed <= _MOST_TOLD:
                    self._report(f"{entry}; it is left out")
                elif self.malformed == _MOST_TOLD + 1:
                    self._report(f"{self.label}: more malformed lines are left out")
        except Empty:
            return items

    def report_lost(self) -> None:
        """Report how much was left out; nothing where nothing was."""
        nouns = ("malformed line", "malformed lines"), *self.LOST
        counts = zip((self.malformed, self.ahead, self.beyond), nouns, strict=True)
        losses = [plural(count, *noun) for count, noun in counts if count]
        if losses:
            self._report(f"{self.label}: left out in all: {' and '.join(losses)}")

    def _lies_ahead(self, noun: str, end: float, audio_seconds: float) -> bool:
        """Return whether something ends long after what was heard; it is counted, and reported."""
        if end <= audio_seconds + _MOST_AHEAD_SECONDS:
            return False
        if not self.ahead:
            self._report(
                f"{self.label}: a {noun} ends at {end:.4g} s, and {audio_seconds:.4g} s were "
                f"heard: times must be seconds from the start of what is heard; such {noun}s are "
                "left out"
            )
        self.ahead += 1
        return True

    def _read(self) -> None:
        try:
            for number, line in enumerate(self._lines, 1):
                entry: list[Parsed] | str
                try:
                    entry = self._parse(f"{self.label} line {number}", line)
                except SourceError as error:
                    entry = str(error)
                if entry and not self._put(entry):
                    return
        except OSError as error:
            self._put(f"{self.label}: nothing more can be read ({error.strerror})")
        finally:
            self._over.set()

    def _put(self, entry: list[Parsed] | str) -> bool:
        """Put it where it waits to be taken; False once nobody takes any."""
        while not self._stopped.is_set():
            try:
                self._queue.put(entry, timeout=_WAIT_SECONDS)
            except Full:
                continue
            return True
        return False


class WordPipe(LinePipe[TimedWord]):
    """Reader of lines of words, as a live recogniser writes them.

    A line is a word, as in a `.words` file, or a segment as Whisper's JSON has it. Words may come
    late: one counts from when it is taken, or from its own ``known`` where that is later still.
    Words of ``speaker`` alone count; None takes all, until a second speaker is named: then those of
    the first alone.
    """

    LOST = ("word ahead", "words ahead"), ("word too many", "words too many")

    def __init__(
        self,
        lines: Iterable[bytes | str],
        *,
        speaker: str | None = None,
        label: str = "-",
        report: Callable[[str], object] = lambda _: None,
    ) -> None:
        super().__init__(lines, label=label, report=report)
        self._room, self._seconds = float(_MOST_AT_ONCE), 0.0
        self._speaker = speaker

    def _parse(self, where: str, line: bytes | str) -> list[TimedWord]:
        return parse_line(where, line)

    def collect(
        self, tick: int, recording: int = 0, audio_ticks: int | None = None
    ) -> Words | None:
        """Return the words that came since the last time; None for none.

        Args:
            tick: how much of the recording has been heard; what counted before counts now.
            recording: which recording of the stream.
            audio_ticks: ticks that anybody can have heard; words that end more than 10 s later have
                times of another unit or clock, and are left out. None asks nothing.
        """
        words_now = self._take()
        if audio_ticks is not None:
            seconds = audio_ticks / TICKS_PER_SECOND
            words_now = [w for w in words_now if not self._lies_ahead("word", w.end, seconds)]
            words_now = self._limit_rate(words_now, seconds)
        self.labels |= dict.fromkeys(word.speaker for word in words_now if word.speaker)
        if self._speaker is None and len(self.labels) > 1:
            self._speaker = next(iter(self.labels))
            names = ", ".join(map(printable, self.labels))
            consequence = f"those of {printable(self._speaker)} alone count from here on"
            self._report(
                Message(
                    f"{self.label}: words of {names}: {consequence}, as others' would be held "
                    "against her (", Argument("speaker_in_transcript"), ")",
                )
            )  # fmt: skip
        words_now = [word for word in words_now if self._speaker in (None, word.speaker)]
        if not words_now:
            return None
        self.count += len(words_now)
        words = Transcript(self.label, tuple(words_now)).words()
        return replace(words, known=np.maximum(words.known, tick), recording=recording)

    def _limit_rate(self, words: list[TimedWord], seconds: float) -> list[TimedWord]:
        """Limit words to as many as anybody can have said: room grows with what was heard."""
        grown = MOST_WORDS_A_SECOND * max(0.0, seconds - self._seconds)
        self._room, self._seconds = min(self._room + grown, _MOST_AT_ONCE), seconds
        allowed = words[: int(self._room)]
        self._room -= len(allowed)
        if len(allowed) < len(words) and not self.beyond:
            self._report(
                f"{self.label}: {len(words)} words at {seconds:.4g} s are more than anybody says; "
                f"beyond {_MOST_AT_ONCE} at once, and {MOST_WORDS_A_SECOND} a second, they are "
                "left out"
            )
        self.beyond += len(words) - len(allowed)
        return allowed


class TurnPipe(LinePipe[Turn]):
    """Reader of RTTM's SPEAKER lines, as a live diariser writes them.

    A line comes when its turn is over, or so far; times are seconds from the start of what is
    heard. Left out are turns that end more than 10 s after what was heard, and those of a label
    beyond the first `MOST_LABELS`.
    """

    LOST = ("turn ahead", "turns ahead"), ("turn of a label too many", "turns of labels too many")

    def _parse(self, where: str, line: bytes | str) -> list[Turn]:
        turn = parse_turn(where, line)
        return [] if turn is None else [turn]

    def collect(self, audio_seconds: float) -> list[Turn]:
        """Return the turns that came since the last time, of so many seconds of audio."""
        turns = []
        for turn in self._take():
            if self._lies_ahead("turn", turn.end_seconds, audio_seconds):
                continue
            if turn.label not in self.labels and len(self.labels) >= MOST_LABELS:
                if not self.beyond:
                    self._report(
                        f"{self.label}: more than {MOST_LABELS} labels: turns of further ones are "
                        "left out"
                    )
                self.beyond += 1
            else:
                self.labels[turn.label] = None
                turns.append(turn)
        self.count += len(turns)
        return turns


def lines_from(descriptor: int) -> Iterator[bytes]:
    """Yield the lines of a pipe as they come; read without buffers that a dying program would lock.

    ``descriptor`` is that of a file, such as ``sys.stdin.fileno()``.
    """
    rest = b""
    while data := os.read(descriptor, 65_536):
        *lines, rest = (rest + data).split(b"\n")
        yield from lines
        if len(rest) > _MOST_BYTES:
            yield rest
            rest = b""
    if rest:
        yield rest
