"""Reads transcripts of every known format."""

from __future__ import annotations

import hashlib
import html
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import groupby, pairwise
from math import isnan
from pathlib import Path, PurePath
from typing import Any

from monitor.errors import Argument, ForeignTextError, Message, SourceError
from monitor.files import MemoryFile, readable
from monitor.phrases import plural
from monitor.safe_text import file_name, printable
from monitor.transcripts.transcript import (
    LATEST_SECONDS,
    MOST_BYTES,
    Cue,
    SaidWord,
    Transcript,
    check_times,
    gather,
    lines_of,
    read_text,
    rows_in,
    segment_cues,
    speaker_of,
    spread_words,
    text_of,
    times_of,
)

# ---------------------------------------------------------------------------------------- captions

_CLOCK = r"(?:(\d+):)?([0-5]?\d):([0-5]?\d)[.,](\d+)"
_TIMING = re.compile(rf"\s*{_CLOCK}\s*-->\s*{_CLOCK}", re.ASCII)
_ARROWED = re.compile(r"\s*[\d:.,]+\s*-->")  # or what was meant for times
_NO_CAPTION = re.compile(r"(WEBVTT|NOTE|STYLE|REGION)(\s|$)")
_TAG = re.compile(r"(<[^<>]*>|\{\\[^{}]*\})")  # {\an8}: where SubRip shows it
_TIME = re.compile(r"<(?:(\d+):)?(\d\d?):(\d\d?\.\d+)>")
_OWN_TIME = re.compile(rf"{_TIME.pattern}|<u>")
_VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]+)>")
_UNDERLINED = re.compile(r"<u>((?:(?!<u>).)*?)</u>")  # looks at no letter twice
_NAMED = re.compile(r"\[([^\[\]]+)\]:\s|\((speaker [^()]+)\)\s*")  # by WhisperX and whisper.cpp
_BLINK_SECONDS = 0.05  # a caption as short as that only clears the screen
_ARROW = "-->"
_MOST_LINES = 1_000_000  # in twice as long as anybody talks in a day there are fewer
_MOST_LETTERS = 1_000_000  # of what stands between two times


def read_captions(label: str, text: str) -> Transcript:
    r"""The words of captions, WebVTT or SubRip, by the header or the suffix.

    A caption lasts to the next times, blank lines or not, and needs no number. Speakers are those
    of ``<v NAME>``, and of ``[NAME]: `` where WhisperX wrote the captions. Words have times of
    their own where a caption has them within (``<00:00:01.500>``, as YouTube's), or underlines one
    word after the other (as Whisper's ``--highlight_words``). Lines that roll up, and so stand in
    two captions, are counted once.

    Example:
        >>> cue = "00:01.000 --> 00:02.100\n<v Ann>so it goes"
        >>> talk = read_captions("talk.vtt", f"WEBVTT\n\n{cue}\n")
        >>> talk.speakers, [word.text for word in talk.said], talk.said[0].known
        (('Ann',), ['so', 'it', 'goes'], 2.1)
    """
    text = text.strip()
    _check_size(label, text)
    is_vtt = text.startswith("WEBVTT") or label.lower().endswith(".vtt")
    lines = lines_of(text)
    shown, malformed = _captions(lines, is_vtt)
    if not shown and not malformed:
        raise SourceError(f"{label} holds no captions, neither WebVTT nor SubRip")
    notices = []
    if malformed:
        left = "1 malformed caption is" if malformed == 1 else f"{malformed} malformed captions are"
        notices.append(f"{label}: {left} left out")
    first = next(number for number, line in enumerate(lines) if _ARROWED.match(line))
    before = sum(bool(line.strip()) and not line.strip().isdigit() for line in lines[:first])
    if before and not is_vtt:
        notices.append(f"{label}: {plural(before, 'line')} before the first times, left out")
    once = _without_repeats(shown)
    repeated = sum(len(each.lines) for each in shown) - sum(len(each.lines) for each in once)
    if repeated:
        stand, are = ("stands", "it is") if repeated == 1 else ("stand", "they are")
        lines_twice = plural(repeated, "line")
        notices.append(f"{label}: {lines_twice} {stand} in two captions; {are} counted once")
    return gather(label, _cues(once), notices)


def _check_size(label: str, text: str) -> None:
    """Refuse what would take memory and minutes, before any of it is taken apart."""
    if text.count("\n") + text.count("\r") > _MOST_LINES:
        raise SourceError(f"{label} has more than {_MOST_LINES} lines; is it a transcript?")
    begin = 0
    while begin >= 0:
        end = text.find(_ARROW, begin + 1)
        if (len(text) if end < 0 else end) - begin > _MOST_LETTERS:
            raise SourceError(
                f"{label}: more than {_MOST_LETTERS} letters stand between two times, more than "
                "anybody says in a day; its captions must have times of their own"
            )
        begin = end


def _captions(lines: Sequence[str], is_vtt: bool) -> tuple[list[_Shown], int]:
    """The captions of a file, and how many there are whose times cannot be read."""
    begins = [number for number, line in enumerate(lines) if _ARROWED.match(line)]
    is_numbered = bool(begins) and begins[0] > 0 and lines[begins[0] - 1].strip().isdigit()
    shown = list[_Shown]()
    for begin, end in pairwise([*begins, len(lines) + 1]):
        times = _TIMING.match(lines[begin])
        if times is None:
            continue
        body = lines[begin + 1 : end]
        if end <= len(lines) and _is_identifier(body, is_vtt, is_numbered):
            body = body[:-1]
        clock = times.groups(default="0")
        said = tuple(line for line in _spoken(body, is_vtt) if _plain(line))
        shown.append(_Shown(_seconds(clock[:4]), _seconds(clock[4:]), said))
    return shown, len(begins) - len(shown)


def _seconds(clock: Sequence[str]) -> float:
    hours, minutes, seconds, fraction = clock
    return 3600 * float(hours) + 60 * int(minutes) + float(f"{seconds}.{fraction}")


def _is_identifier(body: Sequence[str], is_vtt: bool, is_numbered: bool) -> bool:
    """Whether the last line before the times of a caption is its name or number, no text."""
    if not body or not body[-1].strip():
        return False
    apart = len(body) > 1 and not body[-2].strip()
    return (apart and is_vtt) or (body[-1].strip().isdigit() and (apart or is_numbered))


def _spoken(body: Sequence[str], is_vtt: bool) -> Iterator[str]:
    """The lines of a caption without the comments and styles that may follow it in WebVTT."""
    apart = passed = False
    for line in body:
        passed = bool(line.strip()) and (passed or (apart and bool(_NO_CAPTION.match(line))))
        apart = not line.strip()
        if not (passed and is_vtt):
            yield line


@dataclass(frozen=True, slots=True)
class _Shown:
    """One caption: when it is shown, and its lines, with their tags."""

    begin: float
    end: float
    lines: tuple[str, ...]

    @property
    def plain(self) -> tuple[str, ...]:
        return tuple(_plain(line) for line in self.lines)


def _without_repeats(captions: Sequence[_Shown]) -> list[_Shown]:
    """Captions without the lines that roll up from the one before."""
    timed = any(_TIME.search(line) for each in captions for line in each.lines)
    made = list(captions[:1])
    for before, each in pairwise(captions):
        old = before.plain
        new = list(zip(each.plain, each.lines, strict=True))
        while new and new[0][0] in old and not _OWN_TIME.search(new[0][1]):
            blinks = each.end - each.begin < _BLINK_SECONDS
            if not (timed or blinks or (len(each.lines) > 1 and new[0][0] == old[-1])):
                break
            old = old[old.index(new[0][0]) + 1 :]
            del new[0]
        if new:
            made.append(replace(each, lines=tuple(line for _, line in new)))
    return made


def _cues(captions: Sequence[_Shown]) -> Iterator[Cue]:
    for plain, run in groupby(captions, key=lambda each: each.plain):
        alike = list(run)
        marked = [" ".join(_UNDERLINED.findall(" ".join(e.lines))) for e in alike]
        speaker, said = _voice(" ".join(plain))
        if len(alike) > 1 and "".join("".join(marked).split()) == "".join(said.split()):
            for each, text in zip(alike, marked, strict=True):
                yield Cue(_plain(text), each.begin, each.end, speaker)
        else:
            for each in alike:
                yield from _runs(each)


def _runs(caption: _Shown) -> Iterator[Cue]:
    """The stretches of a caption from one time within it to the next; of each voice its own."""
    begin, voice, spoken = caption.begin, "", list[tuple[str, str]]()
    for part in _TAG.split("\n".join(caption.lines)):
        time, named = _TIME.fullmatch(part), _VOICE.fullmatch(part)
        if time is not None:
            hours, minutes, seconds = time.groups()
            at = 3600 * int(hours or 0) + 60 * int(minutes) + float(seconds)
            yield from _shared(spoken, begin, at)
            begin, spoken = at, []
        elif named is not None:
            voice = html.unescape(named[1]).strip()
        elif part == "</v>":
            voice = ""
        elif not _TAG.fullmatch(part):
            spoken.append((voice, html.unescape(part)))
    yield from _shared(spoken, begin, caption.end)


def _shared(spoken: Sequence[tuple[str, str]], begin: float, end: float) -> Iterator[Cue]:
    """What the voices of one stretch say, each with its share of the time."""
    parts = [
        (who, "".join(text for _, text in said))
        for who, said in groupby(spoken, key=lambda each: each[0])
    ]
    parts = [(who, text) for who, text in parts if text.strip()]
    if len(parts) < 2:
        for who, text in parts:
            named, rest = _voice(text)
            yield Cue(rest, begin, end, who or named)
        return
    words = iter(list(spread_words(Cue(" ".join(text for _, text in parts), begin, end))))
    for who, text in parts:
        own = [next(words) for _ in text.split()]
        yield Cue(text, own[0].begin, own[-1].end, who, known=end)


def _voice(text: str) -> tuple[str, str]:
    """Who a text says that it is by, and the rest of it."""
    found = _NAMED.match(text.lstrip())
    if found is None:
        return "", text
    return (found[1] or found[2]).strip(), text.lstrip()[found.end() :]


def _plain(line: str) -> str:
    return html.unescape(_TAG.sub("", line)).strip()


_MARKS = ("[_", "<|")  # tokens that are no text: [_BEG_], [_TT_50], <|endoftext|>


def token_cues(rows: Sequence[dict[str, Any]]) -> list[Cue]:
    """The cues of segments: one a word where they have tokens, or a segment a token.

    A token that begins without a space goes on with the word before it.

    Example:
        >>> times = {"offsets": {"from": 0, "to": 500}}
        >>> [cue.text for cue in token_cues([{"text": " app"} | times, {"text": "les"} | times])]
        [' apples']
    """
    parted = any(text_of(row).startswith(" ") for row in rows)
    made: list[Cue] = []
    for row in rows:
        text = text_of(row)
        tokens = [t for t in rows_in(row.get("tokens")) if not text_of(t).startswith(_MARKS)]
        timed = tokens and not any(isnan(times_of(token)[0]) for token in tokens)
        if parted and made and not text.startswith(" ") and " " not in text.strip():
            made[-1] = _joined(made[-1], row)
        elif timed and _whisper_cpp_letters(tokens) == _whisper_cpp_letters([row]):
            made += _of_tokens(tokens, speaker_of(row))
        else:
            made.append(Cue(text, *times_of(row), speaker_of(row)))
    return made


def mended(text: str) -> str:
    """A text whose letters may have been cut into tokens within their bytes."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:  # halves of characters that a JSON wrote as escapes
        return text.encode("utf-8", "replace").decode()


def _of_tokens(tokens: Sequence[dict[str, Any]], speaker: str) -> list[Cue]:
    made: list[Cue] = []
    for token in tokens:
        if made and not text_of(token).startswith(" "):
            made[-1] = _joined(made[-1], token)
        else:
            begin, end = times_of(token)  # some end before they begin
            made.append(Cue(text_of(token), begin, max(begin, end), speaker))
    return made


def _joined(cue: Cue, piece: dict[str, Any]) -> Cue:
    return Cue(cue.text + text_of(piece), cue.begin, max(cue.end, times_of(piece)[1]), cue.speaker)


def _whisper_cpp_letters(pieces: Sequence[dict[str, Any]]) -> str:
    return "".join(mended("".join(map(text_of, pieces))).split())


# Known are openai-whisper and faster-whisper, ``verbose_json`` and ``diarized_json`` of OpenAI's
# API, whisper.cpp (milliseconds, and tokens that are pieces of words), WhisperX (speakers), and the
# chunks of Hugging Face's pipelines, of insanely-fast-whisper too.

_LISTS = ("transcription", "speakers", "chunks", "words", "segments", "word_segments")
"""Where the dialects keep their texts; what has words comes before what has segments alone."""

_TEXTS = {"text", "word", "words", "tokens"}


def read_whisper(label: str, text: str) -> Transcript:
    """The words of one of Whisper's JSON dialects, told by its content.

    Example:
        >>> talk = read_whisper("talk.json", '{"words": [{"word": "so", "start": 1, "end": 1.2}]}')
        >>> talk.said[0].text, talk.said[0].begin, talk.spread
        ('so', 1.0, False)
    """
    try:
        found: Any = json.loads(text, strict=False)
    except json.JSONDecodeError as error:
        lines = error.msg == "Extra data"
        cure = "JSON lines are called NAME.words" if lines else "was it written to its end?"
        told = f"{label} is no JSON, from line {error.lineno} on ({error.msg}): {cure}"
        raise SourceError(told) from None
    except (ValueError, RecursionError):
        raise SourceError(f"{label} is no JSON that a recogniser writes") from None
    found = {"segments": found} if isinstance(found, list) else found
    lists = {name: found[name] for name in _LISTS if _is_list(found, name)}
    if not lists:
        cure = "words with times are in segments, words, chunks or transcription"
        if isinstance(found, dict) and isinstance(found.get("text"), str):
            cure = "it is a text without times; ask for verbose_json"
        raise ForeignTextError(
            f"{label} is none of the JSONs that Whisper's programs write: {cure}"
        )
    name = next((name for name in lists if lists[name]), next(iter(lists)))
    segments = lists.get("segments", [])
    if name == "words" and (  # segments have words themselves, or speakers that words lack
        (any(map(speaker_of, segments)) and not any(map(speaker_of, lists["words"])))
        or any(row.get("words") for row in segments)
    ):
        name = "segments"
    check_times(label, lists[name])
    cues = token_cues(lists[name]) if name == "transcription" else segment_cues(lists[name])
    return gather(label, (replace(cue, text=mended(cue.text)) for cue in cues))


def _is_list(found: object, name: str) -> bool:
    """Whether there are rows of that name, and, where there are any, texts in them."""
    rows = found.get(name) if isinstance(found, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return False
    return not rows or any(row.keys() & _TEXTS for row in rows)


_NO_WORD = frozenset({"non-lex", "misc", "noise", "other"})  # types; lex, fp and frag are words
_NO_TEXT = frozenset({"<eps>", "SIL", "<sil>", "@"})


def read_ctm(label: str, text: str) -> Transcript:
    r"""The words of a CTM: a line is recording, channel, begin, duration, word.

    Confidence, type and speaker may follow. Of several recordings that is taken which the file is
    named after; of several channels each is a speaker; of alternatives the first counts.

    Example:
        >>> talk = read_ctm("talk.ctm", "talk 1 0.31 0.21 well 0.98\n")
        >>> talk.said[0].text, round(talk.said[0].end, 2), talk.speakers
        ('well', 0.52, ())
    """
    rows = []
    alternative, others = 0, 0  # the first is 1; words of the others
    for number, line in enumerate(lines_of(text), 1):
        cells = line.split()
        if not cells or line.startswith(";;"):
            continue
        if len(cells) > 4 and cells[2] == "*":
            alternative = {"<ALT_BEGIN>": 1, "<ALT>": alternative + 1}.get(cells[4].upper(), 0)
            continue
        if alternative > 1:
            others += 1
            continue
        try:
            begin, lasts, _ = float(cells[2]), float(cells[3]), cells[4]
        except (ValueError, IndexError):
            must = "must be recording, channel, begin, duration, word"
            raise SourceError(f"{label} line {number} {must}") from None
        rows.append((cells, begin, begin + lasts))
    if alternative > 1:
        raise SourceError(
            f"{label}: the last <ALT_BEGIN> has no <ALT_END>; was it written to its end?"
        )
    recordings = dict.fromkeys(cells[0] for cells, *_ in rows)
    own = PurePath(label).stem if len(recordings) > 1 else next(iter(recordings), "")
    if own not in recordings and rows:
        named = printable(", ".join(list(recordings)[:5]))
        raise SourceError(f"{label} is of {len(recordings)} recordings, {named}; none is {own}")
    rows = [row for row in rows if row[0][0] == own]
    many = len({cells[1] for cells, *_ in rows}) > 1
    cues = []
    for cells, begin, end in rows:
        kind = cells[6].lower() if len(cells) > 6 else "lex"
        if cells[4] not in _NO_TEXT and kind not in _NO_WORD:
            known = len(cells) > 7 and cells[7].lower() not in ("unknown", "<na>")
            speaker = cells[7] if known else cells[1] if many else ""
            cues.append(Cue(cells[4], begin, end, speaker))
    told = (
        [f"{label}: {plural(others, 'word')} of further alternatives, left out"] if others else []
    )
    return gather(label, cues, told)


_COLUMNS = ("start", "end", "text")


def read_table(label: str, text: str) -> Transcript:
    r"""The words of a table of start, end and text, a line each.

    The first line may name the columns, in another order then, and ``speaker`` as well. Times are
    seconds; whole numbers in all lines are milliseconds, as Whisper writes such tables.

    Example:
        >>> talk = read_table("talk.tsv", "start\tend\ttext\n0.50\t1.50\tso be it\n")
        >>> [(word.text, round(word.begin, 2)) for word in talk.said]
        [('so', 0.5), ('be', 0.83), ('it', 1.17)]
    """
    lines = [(n, line) for n, line in enumerate(lines_of(text), 1) if line.strip()]
    columns = [name.strip().lower() for name in lines[0][1].split("\t")]
    if set(_COLUMNS) <= set(columns):
        lines = lines[1:]
    else:
        columns = list(_COLUMNS)
    rows = []
    for number, line in lines:
        cells = dict(zip(columns, line.split("\t"), strict=False))
        if len(cells) < len(columns):
            needed = printable(", ".join(columns))
            raise SourceError(f"{label} line {number} must be {needed}, with tabs between them")
        rows.append((f"{label} line {number}", cells))
    whole = all(cells[name].strip().isdecimal() for _, cells in rows for name in _COLUMNS[:2])
    cues = []
    for where, cells in rows:
        try:
            begin, end = (float(cells[name]) / (1000 if whole else 1) for name in _COLUMNS[:2])
        except (ValueError, OverflowError):
            raise SourceError(f"{where}: start and end must be numbers") from None
        cues.append(Cue(cells["text"], begin, end, cells.get("speaker", "").strip()))
    return gather(label, cues)


# -------------------------------------------------------------------------------------- word lines


def read_word_lines(label: str, text: str) -> Transcript:
    r"""The words of a file of JSON lines.

    A line is ``{"word": "well", "begin": 0.31, "end": 0.52, "known": 1.2, "speaker": "ann"}``,
    seconds from the start of the recording. ``known`` is when whoever recognised the word had it;
    left out, it was known when it ended. ``speaker`` may be left out too, and ``begin`` may be
    called ``start``. A line may also be a segment, as Whisper's JSON has it.

    Raises:
        SourceError: a line of it is malformed.

    Example:
        >>> talk = read_word_lines("a.words", '{"word": "well", "begin": 0.31, "end": 0.52}\n')
        >>> talk.said[0].text, talk.said[0].known
        ('well', 0.52)
    """
    said = [
        word
        for number, line in enumerate(lines_of(text), 1)
        for word in parse_line(f"{label} line {number}", line)
    ]
    return Transcript(label, tuple(sorted(said, key=lambda word: (word.begin, word.end))))


def parse_line(where: str, line: str | bytes) -> list[SaidWord]:
    """The words of one such line; none of an empty one, nor of what a recogniser still revises.

    Example:
        >>> found = parse_line("line 1", '{"start": 1, "end": 2, "text": "so it goes"}')
        >>> [word.text for word in found], found[0].known
        (['so', 'it', 'goes'], 2.0)
    """
    if not line.strip():
        return []
    try:
        found: Any = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        if isinstance(found.get("word"), str):
            return [_word(where, found)]
        if found.keys() & {"segments", "words", "result", "text"}:
            return _segments(where, found)
        if found.keys() == {"partial"}:  # Vosk's, of what it has not yet made up its mind on
            return []
    raise SourceError(f'{where}: must be {{"word": TEXT, "begin": SECONDS, "end": SECONDS}}')


def _word(where: str, found: dict[str, Any]) -> SaidWord:
    begin, end = found.get("begin", found.get("start")), found.get("end")
    times: list[Any] = [begin, end, found.get("known", end)]
    if not all(type(each) in (int, float) and 0 <= each < LATEST_SECONDS for each in times):
        raise SourceError(f"{where}: begin, end and known must be seconds")
    begin, end, known = map(float, times)
    if not begin < end <= known:
        raise SourceError(f"{where}: a word begins before it ends, and ends before it is known")
    speaker = found.get("speaker") or ""
    if not isinstance(speaker, str):
        raise SourceError(f"{where}: speaker must be a text")
    return SaidWord(found["word"], begin, end, known, printable(speaker.strip()))


def _segments(where: str, found: dict[str, Any]) -> list[SaidWord]:
    rows = found.get("segments", [found])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise SourceError(f"{where}: its segments are no list of texts with times")
    check_times(where, rows)
    cues = [cue for cue in segment_cues(rows) if cue.text.strip()]
    if not all(0 <= cue.begin <= cue.end < LATEST_SECONDS for cue in cues):
        raise SourceError(f"{where}: its words have no time, or end before they begin")
    return [word for cue in cues for word in spread_words(cue)]


_READERS: Mapping[str, Callable[[str, str], Transcript]] = {
    ".words": read_word_lines,
    ".ctm": read_ctm,
    ".json": read_whisper,
    ".vtt": read_captions,
    ".srt": read_captions,
    ".tsv": read_table,
}
_MOST_JSON_BYTES = 200_000_000
SUFFIXES = tuple(_READERS)
"""Of transcripts, ``talk.words`` beside ``talk.flac``; the first that lies there is taken.

What mostly has times of words comes before what mostly has those of captions.
"""


def read_transcript(
    path: str | os.PathLike[str] | MemoryFile, *, speaker: str | None = None
) -> Transcript:
    r"""The words of a recording with their times.

    Args:
        path: JSON lines (``.words``), CTM (``.ctm``), JSON of Whisper's programs (``.json``),
            captions (``.vtt``, ``.srt``), or a table (``.tsv``); ``-`` reads JSON lines from
            standard input, to its end.
        speaker: take the words of this one alone; None takes all.

    Raises:
        SourceError: there is no such file, it is no transcript, it is empty, or it does not name
            the speaker; one line says which.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "talk.words")
        ...     _ = path.write_text('{"word": "well", "begin": 0.31, "end": 0.52}\n')
        ...     words = read_transcript(path).words()
        >>> words.texts, words.begins, words.known
        (('well',), array([31]), array([52]))
    """
    path = readable(path)
    reader = read_word_lines if path == Path("-") else _READERS.get(path.suffix.lower())
    if path.is_dir():
        raise SourceError(f"{file_name(path.name)} is a folder: name the transcript in it")
    if reader is None:
        raise SourceError(
            f"{file_name(path.name)} is no transcript: it must be {', '.join(SUFFIXES)}"
        )
    whisper = reader is read_whisper  # tells of each word and piece of a word all that it knows
    most = _MOST_JSON_BYTES if whisper else MOST_BYTES
    transcript = reader(file_name(path.name), read_text(path, most=most, mends=whisper))
    if not transcript.said:
        raise SourceError(f"{transcript.label} holds no words")
    return transcript if speaker is None else transcript.of(speaker)


# ------------------------------------------------------------------------------------------ choice

_CAPTIONS = (".vtt", ".srt")
_LANGUAGE = re.compile(r"\.[a-z]{2,3}(-[A-Za-z0-9]+)*", re.ASCII)


def transcript_beside(recording: Path) -> Path | None:
    """The transcript that lies beside a recording, ``talk.vtt`` beside ``talk.flac``.

    Where several do, the first of `SUFFIXES`: those that time each word come before captions. JSON
    that is whole and no recogniser's, such as metadata, is passed over where another lies there.
    Where nothing else does, captions that name their language (``talk.en.vtt``, as of yt-dlp), if
    there is one file of them.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in ("talk.flac", "talk.tsv", "talk.words"):
        ...         Path(folder, name).touch()
        ...     print(transcript_beside(Path(folder, "talk.flac")).name)
        talk.words
    """
    return _beside(recording)[0]


def _beside(recording: Path) -> tuple[Path | None, Path | None]:
    """What is taken of what lies beside a recording, and what is passed over for it."""
    places = (recording.with_suffix(suffix) for suffix in SUFFIXES)
    there = [place for place in places if place != recording and place.is_file()]
    if not there or [place.suffix for place in there] == [".json"]:
        of_languages = _of_languages(recording)
        there += of_languages if len(of_languages) == 1 else []
    if len(there) > 1 and there[0].suffix == ".json":
        try:
            read_transcript(there[0])
        except ForeignTextError:  # whole, and something else
            return there[1], there[0]
        except SourceError:  # one that is broken is not passed over
            pass
    return (there[0] if there else None), None


def _of_languages(recording: Path) -> list[Path]:
    """Captions that name their language, and are not those of another recording."""
    try:
        names = [each for each in os.listdir(recording.parent) if each.startswith(recording.stem)]  # noqa: PTH208
    except OSError:
        return []
    others = {Path(each).stem for each in names if Path(each).suffix not in SUFFIXES}
    return [
        recording.with_name(each)
        for each in sorted(names)
        for stem in [Path(each).stem]
        if Path(each).suffix in _CAPTIONS
        and stem not in others
        and _LANGUAGE.fullmatch(stem.removeprefix(recording.stem))
    ]


@dataclass(frozen=True, slots=True)
class TranscriptChoice:
    """Which transcript goes with a recording, and whose words in it count.

    Attributes:
        path: of the transcript; None for the one beside each recording.
        speaker: as the transcript calls who is heard; None takes all words of a transcript that
            names one speaker or nobody.
    """

    path: Path | None = None
    speaker: str | None = None

    def made_absolute(self) -> TranscriptChoice:
        """The same, found from any working folder."""
        path = None if self.path is None else Path(os.path.abspath(self.path))  # noqa: PTH100
        return replace(self, path=path)

    def found(self, recording: Path) -> Path | None:
        """The transcript of a recording; None where none lies beside it."""
        return self.path or transcript_beside(recording)

    def files(self, recording: Path, *, words: bool) -> list[Path]:
        """A recording and, where words are wanted, its transcript, if there is one."""
        transcript = self.found(recording) if words else None
        return [recording] if transcript is None else [recording, transcript]

    def place(self, recording: Path) -> Path:
        """The transcript of a recording.

        Raises:
            SourceError: none lies beside it.
        """
        found = self.found(recording)
        if found is None:
            stem = file_name(recording.with_suffix(""))
            several = ", ".join(file_name(each) for each in _of_languages(recording)[:5])
            lie = (f"; {several} lie there, name one (", Argument("transcript"), ")")
            raise SourceError(
                Message(
                    f"{file_name(recording)} has no words beside it: put {stem}{SUFFIXES[0]} "
                    f"there, or {', '.join(SUFFIXES[1:])}",
                    *(lie if several else ()),
                )
            )
        return found

    def read(self, recording: Path, *, own: str | None = None) -> Transcript:
        """The words of whoever is heard in a recording.

        Args:
            recording: the file.
            own: what the speaker is called elsewhere; taken where the transcript names several,
                this one among them, and nobody chose.

        Raises:
            SourceError: there is no transcript, it cannot be read, it does not name the speaker, or
                several and it is not said who counts: other people's words would be held against
                her.
        """
        found = self.of(read_transcript(self.place(recording)), own=own)
        other = self.passed_over(recording)
        return replace(found, notices=(other, *found.notices)) if other else found

    def passed_over(self, recording: Path) -> str:
        """That a file beside a recording was passed over, in a line; empty where none was."""
        taken, other = (None, None) if self.path else _beside(recording)
        if taken is None or other is None:
            return ""
        return f"{file_name(other)} is no transcript; {file_name(taken)} is taken"

    def of(self, found: Transcript, *, own: str | None = None) -> Transcript:
        """Those words of a transcript that count.

        Raises:
            SourceError: as `read`.
        """
        if self.speaker is not None:
            return found.of(self.speaker)
        several = found.speakers
        if len(several) < 2:
            return found
        if own in several:
            return found.of(own)
        text = f"{found.label} holds the words of {', '.join(map(printable, several))}: say whose "
        raise SourceError(Message(text, "count (", Argument("speaker_in_transcript"), ")"))


LIES_BESIDE = TranscriptChoice()
"""The transcript that lies beside each recording, of whoever is heard in it."""


def words_mark(transcript: Transcript) -> str:
    """A mark of the words and their times, whatever file they came from: sha256 in hexadecimal."""
    return hashlib.sha256(repr([astuple(word) for word in transcript.said]).encode()).hexdigest()
