"""Transcripts: timed words of speakers, read from a file and chosen for a recording."""

from __future__ import annotations

import codecs
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from math import isnan
from pathlib import Path

import numpy as np

from monitor.errors import SourceError
from monitor.files import Readable
from monitor.safe_text import file_name, printable
from monitor.types import TICKS_PER_SECOND, Words

_NOBODY = ("", "?", "None", "UNKNOWN", "<NA>")


def rows_in(rows: object) -> list[dict[str, object]]:
    """Return the rows of what ought to be a list of them; what is none is passed over.

    Example:
        >>> rows_in([{"word": "so"}, 3]), rows_in(None)
        ([{'word': 'so'}], [])
    """
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def times_of(row: Mapping[str, object]) -> tuple[float, float]:
    """Return when a row begins and ends, in seconds; NaN for what is missing.

    Example:
        >>> times_of({"offsets": {"from": 100, "to": 250}}), times_of({"timestamp": [0.1, None]})
        ((0.1, 0.25), (0.1, nan))
    """
    offsets, stamp = row.get("offsets"), row.get("timestamp")
    if isinstance(offsets, dict):  # of whisper.cpp, in milliseconds
        return _number(offsets.get("from")) / 1000, _number(offsets.get("to")) / 1000
    if isinstance(stamp, list) and len(stamp) == 2:
        return _number(stamp[0]), _number(stamp[1])
    return _number(row.get("start")), _number(row.get("end"))


def check_times(where: str, rows: Sequence[Mapping[str, object]]) -> None:
    """Refuse times that are texts, in rows and the words in them.

    Raises:
        SourceError: there is one; it is named.

    Example:
        >>> check_times("a.json", [{"start": "0.5", "end": 2.5}])
        Traceback (most recent call last):
        ...
        monitor.errors.SourceError: a.json: the time '0.5' is a text: write seconds as numbers
    """
    words = (word for row in rows for key in ("words", "result") for word in rows_in(row.get(key)))
    for row in (*rows, *words):
        stamp = row.get("timestamp")
        for time in (row.get("start"), row.get("end"), *(stamp if type(stamp) is list else ())):
            if isinstance(time, str):
                text = printable(time)[:40]
                raise SourceError(f"{where}: the time {text!r} is a text: write seconds as numbers")


def text_of(row: Mapping[str, object]) -> str:
    """Return what was said, with the space before it where the program left it there."""
    text = row.get("word", row.get("text"))
    return text if isinstance(text, str) else ""


def speaker_of(row: Mapping[str, object]) -> str:
    """Return who said it; empty where the program does not know."""
    name = row.get("speaker")
    text = str(name).strip() if isinstance(name, str | int) else ""
    return "" if is_nobody(text) else text


def is_nobody(label: str) -> bool:
    """Return whether programs write this where they know no speaker.

    Example:
        >>> is_nobody("<NA>"), is_nobody("ann")
        (True, False)
    """
    return label in _NOBODY


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1e9 < value < 1e9:
        return math.nan
    return float(value)


MOST_BYTES = 20_000_000  # a day and a half of words, with a time each, are half of it
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def read_text(
    path: Readable, *, most: int = MOST_BYTES, mends: bool = False, holds: str = "words"
) -> str:
    r"""Read the text of a file: UTF-8, or UTF-16 that says so by its first bytes.

    ``most`` bytes of it; ``mends`` keeps bytes that are no text; ``holds`` is what it should hold.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "talk.srt")
        ...     _ = path.write_text("caf\u00e9", encoding="utf-16")
        ...     read_text(path)
        'café'
    """
    label, piped = file_name(path.name), path == Path("-")
    try:
        with open(0, "rb", closefd=False) if piped else path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise SourceError(f"cannot read the {holds} of {label}: {error.strerror}") from None
    if len(data) > most:
        raise SourceError(f"{label} is too large to hold {holds}: {most // 10**6} MB at most")
    encoding = next((name for mark, name in _MARKS.items() if data.startswith(mark)), "utf-8")
    if encoding == "utf-8" and b"\0" in data:
        order = "BE" if data.startswith(b"\0") else "LE"
        advice = f"iconv -f UTF-16{order} -t UTF-8 makes it so"
        raise SourceError(f"{label} is no text, or UTF-16 without a byte-order mark: {advice}")
    try:
        text = data.decode(encoding, "surrogateescape" if mends else "strict")
    except ValueError as error:
        line = data.count(b"\n", 0, getattr(error, "start", 0)) + 1
        advice = "iconv -f WINDOWS-1252 -t UTF-8 makes it so where it is older Western text"
        raise SourceError(f"{label} line {line} is no UTF-8 text: {advice}") from None
    if "\0" in text:
        raise SourceError(f"{label} is no text")
    if not text.strip():
        raise SourceError(f"{label} is empty: it holds no {holds}")
    return text


def lines_of(text: str) -> list[str]:
    r"""Split a text into lines, whoever wrote it; what else parts lines in Unicode is no break.

    Example:
        >>> lines_of("so\r\nbe\rit")
        ['so', 'be', 'it']
    """
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


# -------------------------------------------------------------------------------------- transcript

_MANY = 0.1  # of the words
_SLACK = 1e-6  # ticks: 0.07 s x 100 is a little more than 7


@dataclass(frozen=True, slots=True)
class TimedWord:
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
    """Transcript of one recording: word by word, and when.

    Attributes:
        label: of the file, for people.
        timed_words: the words, in the order in which they were said.
        notices: a line each on what is not as it should be, for people: times that were spread,
            stretches that overlap, lines that were left out.

    Example:
        >>> words = TimedWord("yes", 0.31, 0.52, 0.52, "ann"), TimedWord("no", 0.6, 0.7, 0.7, "bob")
        >>> talk = Transcript("talk.vtt", words)
        >>> talk.speakers, talk.of("bob").words().texts, talk.words().begins
        (('ann', 'bob'), ('no',), array([31, 60]))
    """

    label: str
    timed_words: tuple[TimedWord, ...]
    notices: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return no word: what is printed may be logged."""
        return (
            f"Transcript({self.label!r}, {len(self.timed_words)} words, speakers {self.speakers!r})"
        )

    @property
    def speakers(self) -> tuple[str, ...]:
        """Names of its speakers, in the order in which they begin to speak."""
        return tuple(dict.fromkeys(word.speaker for word in self.timed_words if word.speaker))

    @property
    def spread(self) -> bool:
        """Flag: times of words are shares of longer stretches."""
        return any(word.spread for word in self.timed_words)

    def of(self, speaker: str) -> Transcript:
        """Return the words of one speaker alone.

        Raises:
            SourceError: the transcript does not name that speaker; the message has those it does.
        """
        if speaker not in self.speakers:
            names = ", ".join(map(printable, self.speakers)) or "nobody"
            raise SourceError(f"{self.label} has no speaker {printable(speaker)}; it names {names}")
        nobody = sum(not word.speaker for word in self.timed_words)
        notice = (
            f"{self.label}: {nobody} of {len(self.timed_words)} words are of nobody named; left out"
        )
        return replace(
            self,
            timed_words=tuple(word for word in self.timed_words if word.speaker == speaker),
            notices=(*self.notices, notice) if nobody else self.notices,
        )

    def beyond(self, seconds: float) -> str:
        """Report what lies after the end of a recording that long, in a line; empty for nothing.

        Raises:
            SourceError: all of it does: it is of another recording.

        Example:
            >>> words = TimedWord("so", 9.0, 9.2, 9.2), TimedWord("no", 70.0, 71.0, 71.0)
            >>> talk = Transcript("talk.vtt", words)
            >>> print(talk.beyond(60.0))
            talk.vtt: 1 of 2 words lie after the end of the recording (60 s): is it of another
            recording?
            >>> talk.beyond(80.0)
            ''
        """
        count = sum(word.begin >= seconds for word in self.timed_words)
        what = f"{count} of {len(self.timed_words)} words lie after the end of the recording"
        if not count:
            return ""
        if count == len(self.timed_words):
            raise SourceError(
                f"{self.label}: all of its {count} words lie after the end of the recording "
                f"({seconds:.4g} s); it is of another one, or its times are of another clock"
            )
        question = ": is it of another recording?" if count > _MANY * len(self.timed_words) else ""
        return f"{self.label}: {what} ({seconds:.4g} s){question}"

    def words(self) -> Words:
        """Return the words on the clock of the program, in the order in which they were known."""
        rows = sorted((_ticks(word) for word in self.timed_words), key=lambda row: row[2])
        begins, ends, arrivals = np.array([row[:3] for row in rows], np.int64).reshape(-1, 3).T
        return Words(tuple(row[3] for row in rows), begins, ends, arrivals)


def _ticks(word: TimedWord) -> tuple[int, int, int, str]:
    """Return when a word begins, ends and is known; a word that takes no time takes a tick."""
    begin = math.floor(word.begin * TICKS_PER_SECOND + _SLACK)
    end, arrival = (math.ceil(x * TICKS_PER_SECOND - _SLACK) for x in (word.end, word.known))
    end = max(end, begin + 1)
    return begin, end, max(arrival, end), word.text


@dataclass(frozen=True, slots=True)
class Cue:
    """A caption, a segment or a single word of a recogniser: a text and when it was said.

    Attributes:
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


def spread_words(cue: Cue) -> Iterator[TimedWord]:
    """Spread the words of a cue over its time, by how many letters each has.

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
    arrival = cue.end if cue.known is None else cue.known
    spread = len(texts) > 1 or cue.known is not None
    letters_before = 0
    for text, size in zip(texts, sizes, strict=True):
        begin, end = (
            cue.begin + second * letters for letters in (letters_before, letters_before + size)
        )
        letters_before += size
        yield TimedWord(text, begin, end, arrival, printable(cue.speaker.strip()), spread)


def segment_cues(rows: Sequence[dict[str, object]]) -> Iterator[Cue]:
    """Yield the cues of segments, of chunks, or of words: one for each word that has a time.

    Words without a time of their own (WhisperX leaves numbers out) share what lies between their
    neighbours; a segment without words is one cue. A missing end is where the next one begins.

    Example:
        >>> words = [{"word": "In", "start": 0, "end": 0.5}, {"word": "2014"}]
        >>> for cue in segment_cues([{"start": 0, "end": 2, "words": words}]):
        ...     print(cue.text, cue.begin, cue.end, cue.known)
        In 0.0 0.5 None
        2014 0.5 2.0 2.0
    """
    nexts = [*(times_of(row)[0] for row in rows[1:]), math.nan]
    for row, following in zip(rows, nexts, strict=False):
        begin, end = times_of(row)
        end = following if isnan(end) else end
        words = rows_in(row.get("words") or row.get("result"))  # the latter is Vosk's
        if words:
            yield from _words(words, begin, end, speaker_of(row))
        else:
            yield Cue(text_of(row), begin, end, speaker_of(row))


def _words(words: list[dict[str, object]], begin: float, end: float, speaker: str) -> Iterator[Cue]:
    times = [time for word in words for time in times_of(word) if not isnan(time)]
    begin = min(times, default=math.nan) if isnan(begin) else begin
    end = max(times, default=math.nan) if isnan(end) else end
    last, waiting = begin, list[tuple[str, str]]()
    for word in words:
        text, person = text_of(word).strip(), speaker_of(word) or speaker
        first, stop = times_of(word)
        if isnan(first):
            waiting.append((text, person))
            continue
        yield from _share_time(waiting, last, first, end)
        waiting.clear()
        last = first if isnan(stop) else stop
        yield Cue(text, first, last, person)
    yield from _share_time(waiting, last, end, end)


def _share_time(
    waiting: Sequence[tuple[str, str]], last: float, first: float, end: float
) -> Iterator[Cue]:
    """Yield words without times, between the last one that has a time and the next."""
    seconds = max(first - last, 0.0) / max(len(waiting), 1)
    for i, (text, person) in enumerate(waiting):
        begin, stop = last + i * seconds, last + (i + 1) * seconds
        yield Cue(text, begin, stop, person, known=max(end, stop))


# --------------------------------------------------------------------------------------- gathering

LATEST_SECONDS = 1e6  # eleven days: nobody records longer
_TOUCHING_SECONDS = 0.1  # by which recognisers let neighbours overlap
MOST_WORDS_A_SECOND = 15  # auctioneers say eight, and two may talk at once
_ENOUGH_WORDS = 20
_RUN_WORDS = 1000  # and no more than a minute's words in a minute either
_MOST_WORDS = 300_000  # of a day and a half without a pause
_WORD_SECONDS = 0.3  # that one takes, where nobody says


def gather(label: str, texts: Iterable[Cue], notices: Sequence[str] = ()) -> Transcript:
    """Make a transcript of cues, in the order in which a file has them.

    Example:
        >>> talk = gather("talk.vtt", [Cue("as it is", 2, 3), Cue("so be it", 0, 1)])
        >>> [word.text for word in talk.timed_words][:2], talk.notices[0]
        (['so', 'be'], 'talk.vtt: times go back once; its words were put in order')
    """
    cues = [cue for cue in _bounded(label, texts) if cue.text.strip()]
    timed = [cue for cue in cues if 0 <= cue.begin <= cue.end < LATEST_SECONDS]
    messages = list(notices)
    if len(timed) < len(cues):
        wrong = f"{len(cues) - len(timed)} of {len(cues)} texts have no time, or end before they"
        messages.append(f"{label}: {wrong} begin; they are left out")
    jumps = sum(b.begin < a.begin for a, b in pairwise(timed))
    if jumps:
        times = "once" if jumps == 1 else f"{jumps} times"
        messages.append(f"{label}: times go back {times}; its words were put in order")
    timed.sort(key=lambda cue: (cue.begin, cue.end))
    instants = sum(cue.begin == cue.end for cue in timed)
    if instants:
        takes = f"{instants} of {len(timed)} texts take no time"
        messages.append(
            f"{label}: {takes}; each word of them is given 0.3 s, or less up to the next"
        )
        timed = list(_lasting(timed))
    overlaps = _overlapping(timed)
    if overlaps:
        messages.append(
            f"{label}: {overlaps} of {len(timed)} texts begin before the one before has ended"
        )
    words = [word for cue in timed for word in spread_words(cue)]
    if not words:
        raise SourceError(messages[-1] if cues else f"{label} holds no words")
    _check_rate(label, words)
    spread_count = sum(word.spread for word in words)
    if spread_count:
        which = (
            "its words have"
            if spread_count == len(words)
            else f"{spread_count} of {len(words)} words have"
        )
        messages.append(f"{label}: {which} no times of their own; each has a share of its text's")
    return Transcript(label, tuple(sorted(words, key=lambda word: word.begin)), tuple(messages))


def _bounded(label: str, cues: Iterable[Cue]) -> Iterator[Cue]:
    """Yield the same, until they hold too many words: each is an object that takes memory."""
    words = 0
    for cue in cues:
        words += len(cue.text.split(None, _MOST_WORDS))
        if words > _MOST_WORDS:
            raise SourceError(f"{label} holds more than {_MOST_WORDS} words; cut it into parts")
        yield cue


def _lasting(cues: Sequence[Cue]) -> Iterator[Cue]:
    """Yield cues in order; those without length share what lies before the next later one."""
    nexts = [*dict.fromkeys(cue.begin for cue in cues), math.inf][1:]
    by_begin = groupby(cues, key=lambda cue: cue.begin)
    for (begin, together), following in zip(by_begin, nexts, strict=True):
        group = list(together)
        instants = [cue for cue in group if cue.end == begin]
        words = sum(len(cue.text.split()) for cue in instants)
        seconds = min(_WORD_SECONDS, (following - begin) / max(words, 1))
        arrival = begin + seconds * words if len(instants) > 1 else None
        start = begin
        for cue in instants:
            end = start + seconds * len(cue.text.split())
            yield replace(cue, begin=start, end=end, known=arrival)
            start = end
        yield from group[len(instants) :]


def _overlapping(cues: Iterable[Cue]) -> int:
    """Count those that begin while another of the same speaker lasts."""
    overlaps, ends = 0, dict[str, float]()
    for cue in cues:
        end = ends.get(cue.speaker, 0.0)
        overlaps += cue.begin < end - _TOUCHING_SECONDS
        ends[cue.speaker] = max(end, cue.end)
    return overlaps


def _check_rate(label: str, words: Sequence[TimedWord]) -> None:
    """Refuse more words a second than anybody says, over all or in a stretch of a thousand."""
    seconds = max(word.end for word in words) - min(word.begin for word in words)
    a_second = len(words) / seconds if seconds > 0 else math.inf
    begins = sorted(word.begin for word in words)
    runs = zip(begins, begins[_RUN_WORDS - 1 :], strict=False)
    shortest = min((end - begin for begin, end in runs), default=math.inf)
    if shortest < _RUN_WORDS / MOST_WORDS_A_SECOND:
        a_second = max(a_second, _RUN_WORDS / shortest if shortest else math.inf)
    if len(words) >= _ENOUGH_WORDS and a_second > MOST_WORDS_A_SECOND:
        raise SourceError(
            f"{label}: {a_second:.3g} words a second are more than anybody says; its times must "
            "be in another unit"
        )
