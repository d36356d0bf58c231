"""Live words and turns, which another program writes to a pipe as lines."""

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
from monitor.transcripts.turn_formats import parse_turn
from monitor.transcripts.turns import MOST_LABELS, Turn
from monitor.types import TICKS_PER_SECOND, Words

_MOST_WAITING = 10_000  # lines; then the writer has to wait
_MOST_TOLD = 5  # malformed lines that are reported one by one
_WAIT_SECONDS = 0.1
_MOST_AHEAD_SECONDS = 10.0
_MOST_AT_ONCE = 1000  # words, if a recogniser was minutes behind
_MOST_BYTES = 1_000_000  # in a line

Parsed = TypeVar("Parsed")


class LinePipe(Managed, Generic[Parsed]):
    """Reader of lines on its own thread, so that the stream never waits for the writer.

    Args:
        lines: lines as text or UTF-8, as they arrive; `lines_from` reads a file descriptor.
        label: name in messages.
        report: called with a line of text, from the thread that collects the items.

    Attributes:
        count: number of words or turns accepted.
        malformed: number of malformed lines, each of which was reported.
        ahead: number of words or turns dropped because they end long after the received audio.
        beyond: number dropped because there are too many items or labels.
        labels: labels of speakers, in order of appearance.
    """

    LOST: ClassVar[tuple[tuple[str, str], tuple[str, str]]]  # nouns for `ahead` and `beyond`

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
        # a daemon, because it may wait for a line forever after the program's end
        self._thread = Thread(target=self._read, name="lines", daemon=True)

    @abstractmethod
    def _parse(self, where: str, line: bytes | str) -> list[Parsed]:
        """Parse a line; SourceError if it is malformed."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop reading, and drop the items that were not collected."""
        self._stopped.set()

    @property
    def over(self) -> bool:
        """True once the pipe has ended and all its items were collected."""
        return self._over.is_set() and self._queue.empty()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until the pipe has ended, or for at most ``seconds``."""
        self._over.wait(seconds)

    def _take(self) -> list[Parsed]:
        items: list[Parsed] = []
        try:
            while True:
                entry = self._queue.get_nowait()
                if not isinstance(entry, str):
                    items += entry
                    continue
                self.malformed += 1
                if self.malformed <= _MOST_TOLD:
                    self._report(f"{entry}; line excluded")
                elif self.malformed == _MOST_TOLD + 1:
                    self._report(f"{self.label}: further malformed lines are excluded")
        except Empty:
            return items

    def report_lost(self) -> None:
        """Report the number of dropped items, if any."""
        nouns = ("malformed line", "malformed lines"), *self.LOST
        counts = zip((self.malformed, self.ahead, self.beyond), nouns, strict=True)
        losses = [plural(count, *noun) for count, noun in counts if count]
        if losses:
            self._report(f"{self.label}: excluded {' and '.join(losses)} in total")

    def _is_ahead(self, noun: str, end: float, audio_seconds: float) -> bool:
        """Return whether an item ends long after the received audio; count and report it."""
        if end <= audio_seconds + _MOST_AHEAD_SECONDS:
            return False
        if not self.ahead:
            self._report(
                f"{self.label}: excluded a {noun} that ends at {end:.4g} s, after only "
                f"{audio_seconds:.4g} s of audio. Use seconds from the start of the stream"
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
        """Queue an item; False after the reader has stopped."""
        while not self._stopped.is_set():
            try:
                self._queue.put(entry, timeout=_WAIT_SECONDS)
            except Full:
                continue
            return True
        return False


class WordPipe(LinePipe[TimedWord]):
    """Reader of lines of words, as a live recogniser writes them.

    A line is a word as in a `.words` file, or a segment as in Whisper's JSON. Words may arrive
    late. A word counts from its collection, or from its own ``known`` if that is later. Only words
    of ``speaker`` count. None takes all words until a second speaker appears, and from then on only
    those of the first.
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
        """Return the words since the last call, or None.

        Args:
            tick: position in the recording; words known earlier count from here.
            recording: index of the recording in the stream.
            audio_ticks: ticks of audio captured. Words that end more than 10 s later have another
                unit or clock and are dropped. None skips this check.
        """
        words_now = self._take()
        if audio_ticks is not None:
            seconds = audio_ticks / TICKS_PER_SECOND
            words_now = [w for w in words_now if not self._is_ahead("word", w.end, seconds)]
            words_now = self._limit_rate(words_now, seconds)
        self.labels |= dict.fromkeys(word.speaker for word in words_now if word.speaker)
        if self._speaker is None and len(self.labels) > 1:
            self._speaker = next(iter(self.labels))
            names = ", ".join(map(printable, self.labels))
            consequence = f"Only those of {printable(self._speaker)} count from now on"
            self._report(
                Message(
                    f"{self.label} has words of {names}. {consequence}, since other "
                    "people's would distort the bits (", Argument("speaker_in_transcript"), ")",
                )
            )  # fmt: skip
        words_now = [word for word in words_now if self._speaker in (None, word.speaker)]
        if not words_now:
            return None
        self.count += len(words_now)
        words = Transcript(self.label, tuple(words_now)).words()
        return replace(words, known=np.maximum(words.known, tick), recording=recording)

    def _limit_rate(self, words: list[TimedWord], seconds: float) -> list[TimedWord]:
        """Limit the rate of words to that of speech, in proportion to the received audio."""
        grown = MOST_WORDS_A_SECOND * max(0.0, seconds - self._seconds)
        self._room, self._seconds = min(self._room + grown, _MOST_AT_ONCE), seconds
        allowed = words[: int(self._room)]
        self._room -= len(allowed)
        if len(allowed) < len(words) and not self.beyond:
            self._report(
                f"{self.label}: {len(words)} words at {seconds:.4g} s are too many for one "
                f"speaker. Words beyond {_MOST_AT_ONCE} at once or {MOST_WORDS_A_SECOND} per "
                "second are excluded"
            )
        self.beyond += len(words) - len(allowed)
        return allowed


class TurnPipe(LinePipe[Turn]):
    """Reader of RTTM's SPEAKER lines, as a live diariser writes them.

    A line arrives when its turn is over, or with its part so far. Times are seconds from the start
    of the stream. Turns that end more than 10 s after the received audio are dropped, as are those
    of a label beyond the first `MOST_LABELS`.
    """

    LOST = ("turn ahead", "turns ahead"), ("turn of a label too many", "turns of labels too many")

    def _parse(self, where: str, line: bytes | str) -> list[Turn]:
        turn = parse_turn(where, line)
        return [] if turn is None else [turn]

    def collect(self, audio_seconds: float) -> list[Turn]:
        """Return the turns since the last call, after ``audio_seconds`` of audio."""
        turns = []
        for turn in self._take():
            if self._is_ahead("turn", turn.end_seconds, audio_seconds):
                continue
            if turn.label not in self.labels and len(self.labels) >= MOST_LABELS:
                if not self.beyond:
                    self._report(
                        f"{self.label} has more than {MOST_LABELS} labels: turns of further ones "
                        "are excluded"
                    )
                self.beyond += 1
            else:
                self.labels[turn.label] = None
                turns.append(turn)
        self.count += len(turns)
        return turns


def lines_from(descriptor: int) -> Iterator[bytes]:
    """Yield the lines of a pipe as they arrive, unbuffered: a locked buffer would break the exit.

    ``descriptor`` is a file descriptor, such as ``sys.stdin.fileno()``.
    """
    incomplete = b""
    while data := os.read(descriptor, 65_536):
        *lines, incomplete = (incomplete + data).split(b"\n")
        yield from lines
        if len(incomplete) > _MOST_BYTES:
            yield incomplete
            incomplete = b""
    if incomplete:
        yield incomplete
