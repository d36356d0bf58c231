"""Transcripts: timed words of speakers, made of cues, and whether they fit a recording."""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from math import isnan
from pathlib import Path

import numpy as np

from monitor.contents import HEAD_BYTES, describe_foreign
from monitor.errors import SourceError
from monitor.safe_text import file_name, find_name, is_empty_cell, printable, spelled
from monitor.types import TICKS_PER_SECOND, BoolArray, FloatArray, Words
from monitor.virtual_files import Readable


def rows_in(rows: object) -> list[dict[str, object]]:
    """Return the rows of a list of rows; skip invalid entries."""
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def times_of(row: Mapping[str, object]) -> tuple[float, float]:
    """Return the begin and end of a row in seconds; NaN if missing."""
    offsets, stamp = row.get("offsets"), row.get("timestamp")
    times, unit = [_first_of(row, names) for names in (_STARTS, _ENDS)], 1.0
    if isinstance(offsets, dict):  # whisper.cpp writes milliseconds
        times, unit = [offsets.get("from"), offsets.get("to")], 1000.0
    elif isinstance(stamp, list) and len(stamp) == 2:
        times = stamp
    begin, end = (
        time / unit
        if isinstance(time, int | float) and not isinstance(time, bool) and -1e9 < time < 1e9
        else math.nan
        for time in map(_plain_time, times)
    )
    return begin, end


_STARTS = ("start", "startTime", "startOffset")
_ENDS = ("end", "endTime", "endOffset")
_GOOGLE_TIME = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s", re.ASCII)


def _first_of(row: Mapping[str, object], names: Sequence[str]) -> object:
    return next((row[name] for name in names if name in row), None)


def _plain_time(time: object) -> object:
    """Convert a time of Google's, such as ``"0.200s"``, to a number; return others unchanged."""
    match = _GOOGLE_TIME.fullmatch(time) if isinstance(time, str) else None
    return time if match is None else float(match[1])


def check_times(where: str, rows: Sequence[Mapping[str, object]]) -> None:
    """Refuse (SourceError) times that are texts, in rows and the words in them."""
    words = (word for row in rows for key in ("words", "result") for word in rows_in(row.get(key)))
    for row in (*rows, *words):
        stamp = row.get("timestamp")
        times = [_first_of(row, names) for names in (_STARTS, _ENDS)]
        for time in (*times, *(stamp if type(stamp) is list else ())):
            if isinstance(_plain_time(time), str):
                text = printable(time)[:40]
                raise SourceError(f"{where}: invalid time {text!r}. Use seconds as a number")


def text_of(row: Mapping[str, object]) -> str:
    """Return the text, with its leading space if the program wrote one."""
    text = row.get("word", row.get("text"))
    return text if isinstance(text, str) else ""


def speaker_of(row: Mapping[str, object]) -> str:
    """Return the speaker; empty if unknown."""
    name = row.get("speaker", row.get("speakerLabel", row.get("speakerTag") or None))
    if isinstance(name, float) and name.is_integer():  # as in a table with empty cells
        name = int(name)
    text = str(name).strip() if isinstance(name, str | int) else ""
    return "" if is_nobody(text) else text


def is_nobody(label: str) -> bool:
    """Return whether a label means that the speaker is unknown."""
    return is_empty_cell(label) or label in ("?", "UNKNOWN")


MOST_BYTES = 20_000_000  # twice the timed words of a day and a half
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def read_text(
    path: Readable, *, maximum: int = MOST_BYTES, mends: bool = False, holds: str = "words"
) -> str:
    """Read the text of a file in UTF-8, or UTF-16 with a byte order mark.

    ``-`` is standard input. `mends` keeps invalid bytes. `holds` is the content, for messages.
    """
    label, piped = file_name(path.name), path == Path("-")
    try:
        with open(0, "rb", closefd=False) if piped else path.open("rb") as file:
            data = file.read(maximum + 1)
    except OSError as error:
        raise SourceError(f"cannot read the {holds} of {label}: {error.strerror}") from None
    if len(data) > maximum:
        raise SourceError(f"{label} is too large for {holds}: use at most {maximum // 10**6} MB")
    if reason := describe_foreign(data[:HEAD_BYTES]):
        raise SourceError(f"{label} {reason}")
    encoding = next((name for mark, name in _MARKS.items() if data.startswith(mark)), "utf-8")
    if encoding == "utf-8" and b"\0" in data:
        order = "BE" if data.startswith(b"\0") else "LE"
        advice = f"convert it with iconv -f UTF-16{order} -t UTF-8"
        raise SourceError(f"{label} is not text, or UTF-16 without a byte-order mark: {advice}")
    try:
        text = data.decode(encoding, "surrogateescape" if mends else "strict")
    except ValueError as error:
        line = data.count(b"\n", 0, getattr(error, "start", 0)) + 1
        advice = "convert older Western text with iconv -f WINDOWS-1252 -t UTF-8"
        raise SourceError(f"{label} line {line} is not UTF-8 text: {advice}") from None
    if "\0" in text:
        raise SourceError(f"{label} is not text")
    if not text.strip():
        raise SourceError(f"{label} is empty: it has no {holds}")
    return text


def check_content(path: Readable) -> None:
    """Refuse (SourceError) a file that is compressed, a web page or the like."""
    try:
        with path.open("rb") as file:
            reason = describe_foreign(file.read(HEAD_BYTES))
    except OSError:
        return
    if reason:
        raise SourceError(f"{file_name(path.name)} {reason}")


def lines_of(text: str) -> list[str]:
    """Split a text at any system's line ends, but not at Unicode's other separators."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


_MANY = 0.1  # of the words
_SLACK = 1e-6  # ticks: 0.07 s x 100 is a little more than 7


@dataclass(frozen=True, slots=True)
class TimedWord:
    """One word of a transcript."""

    text: str = field(repr=False)  # private: a printed word may be logged
    begin: float  # seconds from the start of the recording
    end: float
    known: float  # when the recogniser had it: at its end, or at the end of its cue
    speaker: str = ""
    spread: bool = False  # whether its time is a fraction of its cue's, not measured


@dataclass(frozen=True, slots=True)
class Transcript:
    """Transcript of one recording, with its words in spoken order.

    Example:
        >>> words = TimedWord("yes", 0.31, 0.52, 0.52, "ann"), TimedWord("no", 0.6, 0.7, 0.7, "bob")
        >>> talk = Transcript("talk.vtt", words)
        >>> talk.speakers, talk.select_speaker("bob").words().texts, talk.words().begins
        (('ann', 'bob'), ('no',), array([31, 60]))
    """

    label: str  # of the file, for people
    timed_words: tuple[TimedWord, ...]
    notices: tuple[str, ...] = ()  # one line per problem

    def __repr__(self) -> str:
        # without words, because output may be logged
        return (
            f"Transcript({self.label!r}, {len(self.timed_words)} words, speakers {self.speakers!r})"
        )

    @property
    def speakers(self) -> tuple[str, ...]:
        """Names of its speakers, in the order in which they begin to speak."""
        return tuple(dict.fromkeys(word.speaker for word in self.timed_words if word.speaker))

    @property
    def spread(self) -> bool:
        """True if the time of any word is a fraction of its cue's."""
        return any(word.spread for word in self.timed_words)

    def select_speaker(self, speaker: str) -> Transcript:
        """Return the words of one speaker; SourceError for an unknown name."""
        if (name := find_name(speaker, self.speakers)) is None:
            names = ", ".join(map(printable, self.speakers)) or "no speakers"
            raise SourceError(f"{self.label} has no speaker {printable(speaker)}; it names {names}")
        nobody = sum(not word.speaker for word in self.timed_words)
        notice = (
            f"{self.label}: excluded {nobody} of {len(self.timed_words)} words without a speaker"
        )
        return replace(
            self,
            timed_words=tuple(word for word in self.timed_words if word.speaker == name),
            notices=(*self.notices, notice) if nobody else self.notices,
        )

    def describe_overrun(self, seconds: float) -> str:
        """Report words after the end of a recording in one line; empty without any.

        Raises SourceError if all words are after the end, because they belong to another recording.
        """
        count = sum(word.begin >= seconds for word in self.timed_words)
        what = f"{count} of {len(self.timed_words)} words are after the end of the recording"
        if not count:
            return ""
        if count == len(self.timed_words):
            raise SourceError(
                f"{self.label}: all {count} words are after the end of the recording "
                f"({seconds:.4g} s). It belongs to another recording or uses another clock"
            )
        many = count > _MANY * len(self.timed_words)
        question = ". Does it belong to another recording?" if many else ""
        return f"{self.label}: {what} ({seconds:.4g} s){question}"

    def words(self) -> Words:
        """Return the words in ticks, in the order in which they were known.

        A word without duration lasts one tick.
        """
        times = [(word.begin, word.end, word.known) for word in self.timed_words]
        seconds = np.array(times, np.float64).reshape(-1, 3).T
        begins = np.floor(seconds[0] * TICKS_PER_SECOND + _SLACK).astype(np.int64)
        ends, arrivals = np.ceil(seconds[1:] * TICKS_PER_SECOND - _SLACK).astype(np.int64)
        ends = np.maximum(ends, begins + 1)
        arrivals = np.maximum(arrivals, ends)
        order = np.argsort(arrivals, kind="stable")
        texts = tuple(self.timed_words[index].text for index in order.tolist())
        return Words(texts, begins[order], ends[order], arrivals[order])


@dataclass(frozen=True, slots=True)
class Cue:
    """A caption, a segment or a word of a recogniser, with its text and time.

    Times are seconds from the start of the recording. ``known`` is None if the cue was known at its
    end. Otherwise its time is a fraction of a longer stretch. ``speaker`` is empty if unknown.
    """

    text: str
    begin: float
    end: float
    speaker: str = ""
    known: float | None = None


def spread_words(cue: Cue) -> Iterator[TimedWord]:
    """Spread the words of a cue over its time in proportion to their letters.

    The true time of a word within its cue is unknown, so all words are known only at the cue's end.
    The only word of a cue has the cue's time.
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
        yield TimedWord(text, begin, end, arrival, printable(spelled(cue.speaker)), spread)


def segment_cues(rows: Sequence[dict[str, object]]) -> Iterator[Cue]:
    """Yield the cues of segments, chunks or words, one per word with a time.

    Words without times (WhisperX omits them for numbers) share the time between their neighbours. A
    segment without words is one cue. A missing end is the start of the next one.
    """
    nexts = [*(times_of(row)[0] for row in rows[1:]), math.nan]
    for row, following in zip(rows, nexts, strict=False):
        begin, end = times_of(row)
        end = following if isnan(end) else end
        words = rows_in(row.get("words") or row.get("result"))  # the latter is Vosk's
        if words:
            yield from _word_cues(words, begin, end, speaker_of(row))
        else:
            yield Cue(text_of(row), begin, end, speaker_of(row))


def _word_cues(
    words: Sequence[dict[str, object]], begin: float, end: float, speaker: str
) -> Iterator[Cue]:
    times = [time for word in words for time in times_of(word) if not isnan(time)]
    begin = min(times, default=math.nan) if isnan(begin) else begin
    end = max(times, default=math.nan) if isnan(end) else end
    last, waiting = begin, list[tuple[str, str]]()

    def share_time(first: float) -> Iterator[Cue]:
        """Yield words without times, between the last one that has a time and the next."""
        seconds = max(first - last, 0.0) / max(len(waiting), 1)
        for i, (text, person) in enumerate(waiting):
            until = last + (i + 1) * seconds
            yield Cue(text, last + i * seconds, until, person, known=max(end, until))
        waiting.clear()

    for word in words:
        text, person = text_of(word).strip(), speaker_of(word) or speaker
        first, stop = times_of(word)
        if isnan(first):
            waiting.append((text, person))
            continue
        yield from share_time(first)
        last = first if isnan(stop) else stop
        yield Cue(text, first, last, person)
    yield from share_time(end)


LATEST_SECONDS = 1e6  # eleven days, longer than any recording
_TOUCHING_SECONDS = 0.1  # tolerated overlap of neighbours
MOST_WORDS_A_SECOND = 15  # auctioneers reach eight, and two may talk at once
_ENOUGH_WORDS = 20
_RUN_WORDS = 1000  # the limit also applies to each run of this many words
_MOST_WORDS = 300_000  # a day and a half without a pause
_WORD_SECONDS = 0.3  # of a word without a duration


def gather(label: str, texts: Iterable[Cue], notices: Sequence[str] = ()) -> Transcript:
    """Make a transcript from cues in the order of the file."""
    cues = [cue for cue in _bounded(label, texts) if cue.text.strip()]
    timed = [cue for cue in cues if 0 <= cue.begin <= cue.end < LATEST_SECONDS]
    messages = list(notices)
    if len(timed) < len(cues):
        wrong = f"{len(cues) - len(timed)} of {len(cues)} texts"
        messages.append(f"{label}: excluded {wrong} that have no time or end before they begin")
    jumps = sum(b.begin < a.begin for a, b in pairwise(timed))
    if jumps:
        times = "once" if jumps == 1 else f"{jumps} times"
        messages.append(f"{label}: times go back {times}. Its words were sorted")
    timed.sort(key=lambda cue: (cue.begin, cue.end))
    instants = sum(cue.begin == cue.end for cue in timed)
    if instants:
        duration = "Each of their words gets 0.3 s, or less if the next one begins earlier"
        messages.append(f"{label}: {instants} of {len(timed)} texts have no duration. {duration}")
        timed = list(_lasting(timed))
    overlaps = _overlapping(timed)
    if overlaps:
        messages.append(
            f"{label}: {overlaps} of {len(timed)} texts begin before the previous one has ended"
        )
    words = [word for cue in timed for word in spread_words(cue)]
    if not words:
        raise SourceError(messages[-1] if cues else f"{label} has no words")
    _check_rate(label, words)
    spread_count = sum(word.spread for word in words)
    if spread_count:
        which = "its" if spread_count == len(words) else f"{spread_count} of {len(words)}"
        fault = "no times of their own; each has a fraction of its text's"
        messages.append(f"{label}: {which} words have {fault}")
    return Transcript(label, tuple(sorted(words, key=lambda word: word.begin)), tuple(messages))


def _bounded(label: str, cues: Iterable[Cue]) -> Iterator[Cue]:
    """Yield the cues; SourceError if they have more words than the memory should hold."""
    words = 0
    for cue in cues:
        words += len(cue.text.split(None, _MOST_WORDS))
        if words > _MOST_WORDS:
            raise SourceError(f"{label} has more than {_MOST_WORDS} words: split it")
        yield cue


def _lasting(cues: Sequence[Cue]) -> Iterator[Cue]:
    """Yield cues in order, and divide the time to the next begin among those without duration."""
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
    """Count the cues that begin before an earlier cue of the same speaker ends."""
    overlaps, ends = 0, dict[str, float]()
    for cue in cues:
        end = ends.get(cue.speaker, 0.0)
        overlaps += cue.begin < end - _TOUCHING_SECONDS
        ends[cue.speaker] = max(end, cue.end)
    return overlaps


def _check_rate(label: str, words: Sequence[TimedWord]) -> None:
    seconds = max(word.end for word in words) - min(word.begin for word in words)
    a_second = len(words) / seconds if seconds > 0 else math.inf
    begins = sorted(word.begin for word in words)
    runs = zip(begins, begins[_RUN_WORDS - 1 :], strict=False)
    shortest = min((end - begin for begin, end in runs), default=math.inf)
    if shortest < _RUN_WORDS / MOST_WORDS_A_SECOND:
        a_second = max(a_second, _RUN_WORDS / shortest if shortest else math.inf)
    if len(words) >= _ENOUGH_WORDS and a_second > MOST_WORDS_A_SECOND:
        raise SourceError(
            f"{label}: {a_second:.3g} words per second are too many for speech. Are its times in "
            "another unit?"
        )


_BIN_TICKS = 10
_NEAR_SECONDS = 5.0  # smaller shifts are not compared, because they fit almost equally well
_OFF_BINS = 10  # tolerated offset of all times, at every shift
_ENOUGH_SECONDS = 30.0
_NO_PAUSES = 0.9  # fraction of speech with words from which captions have too few pauses
_DOUBTFUL = 0.05


@dataclass(frozen=True, slots=True)
class Coverage:
    """Overlap of the words of a transcript with the speech of a recording."""

    in_speech: float  # fraction of the words' time with speech
    covered: float  # fraction of the speech with words
    # Fraction of positions in the recording where the words would fit the speech equally well. It
    # is near 0 for the right recording, and None with too few pauses or less than 30 s.
    as_well: float | None

    @property
    def doubtful(self) -> bool:
        """True if the words fit the speech no better than those of another recording might."""
        return self.as_well is not None and self.as_well > _DOUBTFUL

    def sentence(self, label: str) -> str:
        """Format all figures in one line."""
        shares = f"{self.in_speech:.0%} of its words' time is speech, and {self.covered:.0%} of"
        line = f"{label}: {shares} the speech has words".replace("%", " %")
        if self.doubtful:
            places = f"{self.as_well:.0%}".replace("%", " %")
            moved = f"it would fit equally well at {places} of other positions"
            return f"{line}, but {moved}. Does it belong to another recording?"
        if self.as_well is None:
            return (
                f"{line}. It is too short, or has too few pauses, to check that it belongs to this "
                "recording"
            )
        return line


def measure_coverage(words: Words, speech: BoolArray) -> Coverage:
    """Measure the overlap of a transcript's words with speech, shape (ticks,)."""
    ticks = max(speech.size, int(words.ends.max(initial=0)))
    steps = np.zeros(ticks + 1, np.int64)
    np.add.at(steps, words.begins, 1)
    np.add.at(steps, words.ends, -1)
    has_words = np.cumsum(steps[:-1]) > 0
    has_speech = np.zeros(ticks, np.bool_)
    has_speech[: speech.size] = speech
    both = float((has_words & has_speech).sum())
    covered = both / max(int(has_speech.sum()), 1)
    has_pauses = covered < _NO_PAUSES and speech.size >= _ENOUGH_SECONDS * TICKS_PER_SECOND
    as_well = _as_well(has_words[: speech.size], speech) if has_pauses else None
    return Coverage(both / max(int(has_words.sum()), 1), covered, as_well)


def _as_well(has_words: BoolArray, speech: BoolArray) -> float | None:
    """Return the fraction of larger circular shifts that fit the speech as well as no shift."""
    from scipy import ndimage  # both are slow to import
    from scipy.fft import irfft, rfft

    a, b = _binned(has_words), _binned(speech)
    near = round(_NEAR_SECONDS * TICKS_PER_SECOND / _BIN_TICKS)
    if min(np.ptp(a), np.ptp(b)) == 0:
        return None
    overlap = irfft(rfft(a) * np.conj(rfft(b)), a.size)
    best = ndimage.maximum_filter1d(overlap, 2 * _OFF_BINS + 1, mode="wrap")
    far = best[near : a.size - near + 1]
    if np.ptp(far) < 1e-6 * a.size:
        return None
    return float(np.mean(far >= best[0] - 1e-6))


def _binned(mask: BoolArray) -> FloatArray:
    count = mask.size // _BIN_TICKS
    return np.asarray(mask[: count * _BIN_TICKS].reshape(count, _BIN_TICKS).mean(axis=1))
