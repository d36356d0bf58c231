"""What a transcript is: timed words of speakers, read from a file and chosen for a recording."""

from __future__ import annotations

import codecs
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np

from monitor.errors import SourceError
from monitor.files import Readable
from monitor.safe_text import file_name, printable
from monitor.types import TICKS_PER_SECOND, Words

_NOBODY = ("", "?", "None", "UNKNOWN", "<NA>")


def rows_in(found: object) -> list[dict[str, Any]]:
    """The rows of what ought to be a list of them; what is none is passed over.

    Example:
        >>> rows_in([{"word": "so"}, 3]), rows_in(None)
        ([{'word': 'so'}], [])
    """
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def times_of(row: Mapping[str, Any]) -> tuple[float, float]:
    """When a row begins and ends, in seconds; NaN for what is missing.

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


def check_times(where: str, rows: Sequence[Mapping[str, Any]]) -> None:
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


def text_of(row: Mapping[str, Any]) -> str:
    """What was said, with the space before it where the program left it there."""
    text = row.get("word", row.get("text"))
    return text if isinstance(text, str) else ""


def speaker_of(row: Mapping[str, Any]) -> str:
    """Who said it; empty where the program does not know."""
    named = row.get("speaker")
    text = str(named).strip() if isinstance(named, str | int) else ""
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
    r"""The text of a file: UTF-8, or UTF-16 that says so by its first bytes.

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
        cure = f"iconv -f UTF-16{order} -t UTF-8 makes it so"
        raise SourceError(f"{label} is no text, or UTF-16 without a byte-order mark: {cure}")
    try:
        text = data.decode(encoding, "surrogateescape" if mends else "strict")
    except ValueError as error:
        line = data.count(b"\n", 0, getattr(error, "start", 0)) + 1
        cure = "iconv -f WINDOWS-1252 -t UTF-8 makes it so where it is older Western text"
        raise SourceError(f"{label} line {line} is no UTF-8 text: {cure}") from None
    if "\0" in text:
        raise SourceError(f"{label} is no text")
    if not text.strip():
        raise SourceError(f"{label} is empty: it holds no {holds}")
    return text


def lines_of(text: str) -> list[str]:
    r"""The lines of a text, whoever wrote it; what else parts lines in Unicode is part of a line.

    Example:
        >>> lines_of("so\r\nbe\rit")
        ['so', 'be', 'it']
    """
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


# -------------------------------------------------------------------------------------- transcript

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


def segment_cues(rows: Sequence[dict[str, Any]]) -> Iterator[Cue]:
    """The cues of a list of segments, of chunks, or of words: one for each word that has a time.

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


def _words(words: list[dict[str, Any]], begin: float, end: float, speaker: str) -> Iterator[Cue]:
    times = [time for word in words for time in times_of(word) if not isnan(time)]
    begin = min(times, default=math.nan) if isnan(begin) else begin
    end = max(times, default=math.nan) if isnan(end) else end
    last, waiting = begin, list[tuple[str, str]]()
    for word in words:
        text, who = text_of(word).strip(), speaker_of(word) or speaker
        first, stop = times_of(word)
        if isnan(first):
            waiting.append((text, who))
            continue
        yield from _shared(waiting, last, first, end)
        waiting.clear()
        last = first if isnan(stop) else stop
        yield Cue(text, first, last, who)
    yield from _shared(waiting, last, end, end)


def _shared(
    waiting: Sequence[tuple[str, str]], last: float, first: float, end: float
) -> Iterator[Cue]:
    """Words without times, between the last one that has a time and the next."""
    share = max(first - last, 0.0) / max(len(waiting), 1)
    for i, (text, who) in enumerate(waiting):
        begin, stop = last + i * share, last + (i + 1) * share
        yield Cue(text, begin, stop, who, known=max(end, stop))


# --------------------------------------------------------------------------------------- gathering

LATEST_SECONDS = 1e6  # eleven days: nobody records longer
_TOUCHING_SECONDS = 0.1  # by which recognisers let neighbours overlap
MOST_WORDS_A_SECOND = 15  # auctioneers say eight, and two may talk at once
_ENOUGH_WORDS = 20
_RUN_WORDS = 1000  # and no more than a minute's words in a minute either
_MOST_WORDS = 300_000  # of a day and a half without a pause
_WORD_SECONDS = 0.3  # that one takes, where nobody says


def gather(label: str, found: Iterable[Cue], notices: Sequence[str] = ()) -> Transcript:
    """A transcript of cues, in the order in which a file has them.

    Example:
        >>> talk = gather("talk.vtt", [Cue("as it is", 2, 3), Cue("so be it", 0, 1)])
        >>> [word.text for word in talk.said][:2], talk.notices[0]
        (['so', 'be'], 'talk.vtt: times go back once; its words were put in order')
    """
    cues = [cue for cue in _bounded(label, found) if cue.text.strip()]
    kept = [cue for cue in cues if 0 <= cue.begin <= cue.end < LATEST_SECONDS]
    told = list(notices)
    if len(kept) < len(cues):
        wrong = f"{len(cues) - len(kept)} of {len(cues)} texts have no time, or end before they"
        told.append(f"{label}: {wrong} begin; they are left out")
    back = sum(b.begin < a.begin for a, b in pairwise(kept))
    if back:
        times = "once" if back == 1 else f"{back} times"
        told.append(f"{label}: times go back {times}; its words were put in order")
    kept.sort(key=lambda cue: (cue.begin, cue.end))
    brief = sum(cue.begin == cue.end for cue in kept)
    if brief:
        takes = f"{brief} of {len(kept)} texts take no time"
        told.append(f"{label}: {takes}; each word of them is given 0.3 s, or less up to the next")
        kept = list(_lasting(kept))
    over = _overlapping(kept)
    if over:
        told.append(f"{label}: {over} of {len(kept)} texts begin before the one before has ended")
    said = [word for cue in kept for word in spread_words(cue)]
    if not said:
        raise SourceError(told[-1] if cues else f"{label} holds no words")
    _check_rate(label, said)
    spread = sum(word.spread for word in said)
    if spread:
        which = "its words have" if spread == len(said) else f"{spread} of {len(said)} words have"
        told.append(f"{label}: {which} no times of their own; each has a share of its text's")
    return Transcript(label, tuple(sorted(said, key=lambda word: word.begin)), tuple(told))


def _bounded(label: str, cues: Iterable[Cue]) -> Iterator[Cue]:
    """The same, until they hold too many words: each is an object that takes memory."""
    words = 0
    for cue in cues:
        words += len(cue.text.split(None, _MOST_WORDS))
        if words > _MOST_WORDS:
            raise SourceError(f"{label} holds more than {_MOST_WORDS} words; cut it into parts")
        yield cue


def _lasting(cues: Sequence[Cue]) -> Iterator[Cue]:
    """Cues in order; those without length share what lies before the next that begins later."""
    nexts = [*dict.fromkeys(cue.begin for cue in cues), math.inf][1:]
    by_begin = groupby(cues, key=lambda cue: cue.begin)
    for (begin, together), following in zip(by_begin, nexts, strict=True):
        alike = list(together)
        brief = [cue for cue in alike if cue.end == begin]
        words = sum(len(cue.text.split()) for cue in brief)
        each = min(_WORD_SECONDS, (following - begin) / max(words, 1))
        known = begin + each * words if len(brief) > 1 else None
        at = begin
        for cue in brief:
            end = at + each * len(cue.text.split())
            yield replace(cue, begin=at, end=end, known=known)
            at = end
        yield from alike[len(brief) :]


def _overlapping(cues: Iterable[Cue]) -> int:
    """How many begin while another of the same speaker lasts."""
    over, ends = 0, dict[str, float]()
    for cue in cues:
        end = ends.get(cue.speaker, 0.0)
        over += cue.begin < end - _TOUCHING_SECONDS
        ends[cue.speaker] = max(end, cue.end)
    return over


def _check_rate(label: str, said: Sequence[SaidWord]) -> None:
    """Refuse more words a second than anybody says, over all or in a stretch of a thousand."""
    seconds = max(word.end for word in said) - min(word.begin for word in said)
    a_second = len(said) / seconds if seconds > 0 else math.inf
    begins = sorted(word.begin for word in said)
    runs = zip(begins, begins[_RUN_WORDS - 1 :], strict=False)
    shortest = min((end - begin for begin, end in runs), default=math.inf)
    if shortest < _RUN_WORDS / MOST_WORDS_A_SECOND:
        a_second = max(a_second, _RUN_WORDS / shortest if shortest else math.inf)
    if len(said) >= _ENOUGH_WORDS and a_second > MOST_WORDS_A_SECOND:
        raise SourceError(
            f"{label}: {a_second:.3g} words a second are more than anybody says; its times must "
            "be in another unit"
        )
