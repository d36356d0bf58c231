"""Readers of transcripts of every known format."""

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
from monitor.files import Readable, VirtualFile, files_of, readable
from monitor.phrases import plural
from monitor.safe_text import file_name, find_name, printable, spelled
from monitor.transcripts.transcript import (
    LATEST_SECONDS,
    MOST_BYTES,
    Cue,
    TimedWord,
    Transcript,
    check_content,
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
_MOST_LINES = 1_000_000  # more than in two days of speech
_MOST_LETTERS = 1_000_000  # between two times


def read_captions(label: str, text: str) -> Transcript:
    """Read the words of captions, WebVTT or SubRip, by the header or the suffix.

    A caption ends at the next times, regardless of blank lines. Speakers are taken from ``<v
    NAME>``, and from ``[NAME]: `` in WhisperX captions. Words have their own times if a caption
    contains times (``<00:00:01.500>``) or underlines the words in turn (as Whisper's
    ``--highlight_words``). Lines that roll up through two captions count once.
    """
    text = text.strip()
    _check_size(label, text)
    is_vtt = text.startswith("WEBVTT") or label.lower().endswith(".vtt")
    lines = lines_of(text)
    shown, malformed = _captions(lines, is_vtt)
    if not shown and not malformed:
        raise SourceError(f"{label} has no captions, neither WebVTT nor SubRip")
    notices = []
    if malformed:
        are = "caption is" if malformed == 1 else "captions are"
        notices.append(f"{label}: {malformed} malformed {are} excluded")
    first = next(number for number, line in enumerate(lines) if _ARROWED.match(line))
    before = sum(bool(line.strip()) and not line.strip().isdigit() for line in lines[:first])
    if before and not is_vtt:
        notices.append(f"{label}: {plural(before, 'line')} before the first times, excluded")
    captions = _without_repeats(shown)
    shown_lines, kept_lines = (sum(len(c.lines) for c in every) for every in (shown, captions))
    if repeated := shown_lines - kept_lines:
        twice = plural(repeated, "line")
        notices.append(f"{label}: counted {twice} once that appeared in two captions")
    return gather(label, _cues(captions), notices)


def _check_size(label: str, text: str) -> None:
    """Refuse inputs that would take too much memory and time, before parsing."""
    if text.count("\n") + text.count("\r") > _MOST_LINES:
        raise SourceError(f"{label} has more than {_MOST_LINES} lines; is it a transcript?")
    if max(map(len, text.split("-->"))) > _MOST_LETTERS:
        raise SourceError(
            f"{label} has more than {_MOST_LETTERS} letters between two times, more than a day of "
            "speech: give each caption its own time"
        )


def _captions(lines: Sequence[str], is_vtt: bool) -> tuple[list[_Shown], int]:
    """Return the captions of a file, and the number with unreadable times."""
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
        texts = tuple(line for line in _spoken(body, is_vtt) if _plain(line))
        first, last = (
            3600 * float(hours) + 60 * int(minutes) + float(f"{seconds}.{fraction}")
            for hours, minutes, seconds, fraction in (clock[:4], clock[4:])
        )
        shown.append(_Shown(first, last, texts))
    return shown, len(begins) - len(shown)


def _is_identifier(body: Sequence[str], is_vtt: bool, is_numbered: bool) -> bool:
    """Return whether the last line before a caption's times is its name or number, no text."""
    if not body or not body[-1].strip():
        return False
    is_separate = len(body) > 1 and not body[-2].strip()
    return (is_separate and is_vtt) or (body[-1].strip().isdigit() and (is_separate or is_numbered))


def _spoken(body: Sequence[str], is_vtt: bool) -> Iterator[str]:
    """Yield the lines of a caption without the comments and styles that may follow it in WebVTT."""
    is_separate = passed = False
    for line in body:
        passed = bool(line.strip()) and (passed or (is_separate and bool(_NO_CAPTION.match(line))))
        is_separate = not line.strip()
        if not (passed and is_vtt):
            yield line


@dataclass(frozen=True, slots=True)
class _Shown:
    """Caption: when it is shown, and its lines, with their tags."""

    begin: float
    end: float
    lines: tuple[str, ...]

    @property
    def plain(self) -> tuple[str, ...]:
        return tuple(_plain(line) for line in self.lines)


def _without_repeats(captions: Sequence[_Shown]) -> list[_Shown]:
    """Return captions without the lines that roll up from the one before."""
    timed = any(_TIME.search(line) for caption in captions for line in caption.lines)
    unique = list(captions[:1])
    for before, caption in pairwise(captions):
        old = before.plain
        new = list(zip(caption.plain, caption.lines, strict=True))
        while new and new[0][0] in old and not _OWN_TIME.search(new[0][1]):
            blinks = caption.end - caption.begin < _BLINK_SECONDS
            if not (timed or blinks or (len(caption.lines) > 1 and new[0][0] == old[-1])):
                break
            old = old[old.index(new[0][0]) + 1 :]
            del new[0]
        if new:
            unique.append(replace(caption, lines=tuple(line for _, line in new)))
    return unique


def _cues(captions: Sequence[_Shown]) -> Iterator[Cue]:
    for plain, run in groupby(captions, key=lambda caption: caption.plain):
        shown = list(run)
        underlined = [" ".join(_UNDERLINED.findall(" ".join(caption.lines))) for caption in shown]
        speaker, text_said = _voice(" ".join(plain))
        if len(shown) > 1 and "".join("".join(underlined).split()) == "".join(text_said.split()):
            for caption, text in zip(shown, underlined, strict=True):
                yield Cue(_plain(text), caption.begin, caption.end, speaker)
        else:
            for caption in shown:
                yield from _runs(caption)


def _runs(caption: _Shown) -> Iterator[Cue]:
    """Yield a caption's stretches from one time within it to the next; of each voice its own."""
    begin, voice, spoken = caption.begin, "", list[tuple[str, str]]()
    for piece in _TAG.split("\n".join(caption.lines)):
        time, name = _TIME.fullmatch(piece), _VOICE.fullmatch(piece)
        if time is not None:
            hours, minutes, seconds = time.groups()
            time_within = 3600 * int(hours or 0) + 60 * int(minutes) + float(seconds)
            yield from _share_time(spoken, begin, time_within)
            begin, spoken = time_within, []
        elif name is not None:
            voice = html.unescape(name[1]).strip()
        elif piece == "</v>":
            voice = ""
        elif not _TAG.fullmatch(piece):
            spoken.append((voice, html.unescape(piece)))
    yield from _share_time(spoken, begin, caption.end)


def _share_time(spoken: Sequence[tuple[str, str]], begin: float, end: float) -> Iterator[Cue]:
    """Yield the cues of several voices in one stretch, each with a fraction of the time."""
    parts = [
        (voice, "".join(text for _, text in pieces))
        for voice, pieces in groupby(spoken, key=lambda piece: piece[0])
    ]
    parts = [(voice, text) for voice, text in parts if text.strip()]
    if len(parts) < 2:
        for voice, text in parts:
            name, unlabelled = _voice(text)
            yield Cue(unlabelled, begin, end, voice or name)
        return
    words = iter(list(spread_words(Cue(" ".join(text for _, text in parts), begin, end))))
    for voice, text in parts:
        words_said = [next(words) for _ in text.split()]
        yield Cue(text, words_said[0].begin, words_said[-1].end, voice, known=end)


def _voice(text: str) -> tuple[str, str]:
    """Split a text into the speaker that it names and the rest of it."""
    match = _NAMED.match(text.lstrip())
    if match is None:
        return "", text
    return (match[1] or match[2]).strip(), text.lstrip()[match.end() :]


def _plain(line: str) -> str:
    return html.unescape(_TAG.sub("", line)).strip()


_MARKS = ("[_", "<|")  # tokens without text: [_BEG_], [_TT_50], <|endoftext|>


def token_cues(rows: Sequence[dict[str, object]]) -> list[Cue]:
    """Make cues from segments: one per word if they have tokens, or one per token.

    A token without a leading space continues the previous word.
    """
    parted = any(text_of(row).startswith(" ") for row in rows)
    cues: list[Cue] = []
    for row in rows:
        text = text_of(row)
        tokens = [t for t in rows_in(row.get("tokens")) if not text_of(t).startswith(_MARKS)]
        timed = tokens and not any(isnan(times_of(token)[0]) for token in tokens)
        if parted and cues and not text.startswith(" ") and " " not in text.strip():
            cues[-1] = _joined(cues[-1], row)
        elif timed and _whisper_cpp_letters(tokens) == _whisper_cpp_letters([row]):
            cues += _token_words(tokens, speaker_of(row))
        else:
            cues.append(Cue(text, *times_of(row), speaker_of(row)))
    return cues


def mend_text(text: str) -> str:
    """Mend a text that was cut into tokens within multi-byte letters."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:  # halves of characters that a JSON wrote as escapes
        return text.encode("utf-8", "replace").decode()


def _token_words(tokens: Sequence[dict[str, object]], speaker: str) -> list[Cue]:
    cues: list[Cue] = []
    for token in tokens:
        if cues and not text_of(token).startswith(" "):
            cues[-1] = _joined(cues[-1], token)
        else:
            begin, end = times_of(token)  # some end before they begin
            cues.append(Cue(text_of(token), begin, max(begin, end), speaker))
    return cues


def _joined(cue: Cue, piece: dict[str, object]) -> Cue:
    return Cue(cue.text + text_of(piece), cue.begin, max(cue.end, times_of(piece)[1]), cue.speaker)


def _whisper_cpp_letters(pieces: Sequence[dict[str, object]]) -> str:
    return "".join(mend_text("".join(map(text_of, pieces))).split())


# Supported dialects are openai-whisper and faster-whisper, and ``verbose_json`` and
# ``diarized_json`` of OpenAI's API. Others are whisper.cpp (milliseconds, sub-word tokens),
# WhisperX (speakers), and the chunks of Hugging Face's pipelines and insanely-fast-whisper.

# where the dialects keep their texts; what has words comes before what has segments alone
_LISTS = ("transcription", "speakers", "chunks", "words", "segments", "word_segments")
_TEXTS = {"text", "word", "words", "tokens"}


def read_whisper(label: str, text: str) -> Transcript:
    """Read the words of one of Whisper's JSON dialects, told apart by its keys."""
    try:
        document: Any = json.loads(text, strict=False)
    except json.JSONDecodeError as error:
        lines = error.msg == "Extra data"
        advice = "JSON lines are called NAME.words" if lines else "was it written to its end?"
        message = f"{label} is not JSON from line {error.lineno} on ({error.msg}): {advice}"
        raise SourceError(message) from None
    except (ValueError, RecursionError):
        raise SourceError(f"{label} is not a recogniser's JSON") from None
    document = {"segments": document} if isinstance(document, list) else _google_segments(document)
    members = document if isinstance(document, dict) else {}
    lists = {name: members[name] for name in _LISTS if _is_list(members.get(name))}
    if not lists:
        advice = "no segments, words, chunks or transcription with times"
        if isinstance(members.get("text"), str):
            advice = "it has text without times, use verbose_json"
        raise ForeignTextError(
            f"{label} is not a Whisper JSON file ({advice}): rename it if it is not a transcript"
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
    return gather(label, (replace(cue, text=mend_text(cue.text)) for cue in cues))


def _google_segments(document: Any) -> Any:
    """Return the first alternatives of Google's Speech-to-Text as segments; leave others unchanged.

    With diarisation, its last result repeats all words with their speakers.
    """
    results = rows_in(document.get("results")) if isinstance(document, dict) else []
    segments = [rows_in(result.get("alternatives"))[:1] for result in results]
    rows = [row for segment in segments for row in segment if rows_in(row.get("words"))]
    if not rows:
        return document
    last = rows_in(rows[-1]["words"])
    has_all = len(rows) > 1 and all(map(speaker_of, last))
    before = (word for row in rows[:-1] for word in rows_in(row["words"]))
    return {"segments": rows[-1:] if has_all and not any(map(speaker_of, before)) else rows}


def _is_list(rows: object) -> bool:
    """Return whether these are rows, with texts in them where there are any."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return False
    return not rows or any(row.keys() & _TEXTS for row in rows)


_NO_WORD = frozenset({"non-lex", "misc", "noise", "other"})  # types; lex, fp and frag are words
_NO_TEXT = frozenset({"<eps>", "SIL", "<sil>", "@"})


def read_ctm(label: str, text: str) -> Transcript:
    """Read the words of a CTM, with recording, channel, begin, duration and word per line.

    Confidence, type and speaker may follow. If there are several recordings, the one with the
    file's name is used. Several channels are several speakers.
    """
    rows = []
    for number, line in enumerate(lines_of(text), 1):
        cells = line.split()
        if not cells or line.startswith(";;"):
            continue
        try:
            begin, lasts, _ = float(cells[2]), float(cells[3]), cells[4]
        except (ValueError, IndexError):
            must = "must be recording, channel, begin, duration, word"
            raise SourceError(f"{label} line {number} {must}") from None
        rows.append((cells, begin, begin + lasts))
    recordings = dict.fromkeys(cells[0] for cells, *_ in rows)
    recording = PurePath(label).stem if len(recordings) > 1 else next(iter(recordings), "")
    if recording not in recordings and rows:
        names = printable(", ".join(list(recordings)[:5]))
        count = len(recordings)
        raise SourceError(f"{label} is of {count} recordings, {names}; none is {recording}")
    rows = [row for row in rows if row[0][0] == recording]
    has_channels = len({cells[1] for cells, *_ in rows}) > 1
    cues = []
    for cells, begin, end in rows:
        kind = cells[6].lower() if len(cells) > 6 else "lex"
        if cells[4] not in _NO_TEXT and kind not in _NO_WORD:
            is_named = len(cells) > 7 and cells[7].lower() not in ("unknown", "<na>")
            speaker = cells[7] if is_named else cells[1] if has_channels else ""
            cues.append(Cue(cells[4], begin, end, speaker))
    return gather(label, cues)


def read_table(label: str, text: str) -> Transcript:
    """Read the words of a table of start, end and text, a line each.

    The first line may name the columns, in another order then, and ``speaker`` as well. Times are
    seconds; whole numbers in all lines are milliseconds, as Whisper writes such tables.
    """
    lines = [(n, line) for n, line in enumerate(lines_of(text), 1) if line.strip()]
    columns = [name.strip().lower() for name in lines[0][1].split("\t")]
    if {"start", "end", "text"} <= set(columns):
        lines = lines[1:]
    else:
        columns = ["start", "end", "text"]
    rows = []
    for number, line in lines:
        cells = dict(zip(columns, line.split("\t"), strict=False))
        if len(cells) < len(columns):
            needed = printable(", ".join(columns))
            raise SourceError(f"{label} line {number} must be {needed}, with tabs between them")
        rows.append((f"{label} line {number}", cells))
    is_integer = all(
        cells[name].strip().isdecimal() for _, cells in rows for name in ("start", "end")
    )
    unit = 1000 if is_integer else 1
    cues = []
    for where, cells in rows:
        try:
            begin, end = float(cells["start"]) / unit, float(cells["end"]) / unit
        except (ValueError, OverflowError):
            raise SourceError(f"{where}: start and end must be numbers") from None
        cues.append(Cue(cells["text"], begin, end, cells.get("speaker", "").strip()))
    return gather(label, cues)


# -------------------------------------------------------------------------------------- word lines


def read_word_lines(label: str, text: str) -> Transcript:
    """Read the words of a file of JSON lines.

    A line is ``{"word": "well", "begin": 0.31, "end": 0.52, "known": 1.2, "speaker": "ann"}``,
    seconds from the start of the recording. ``known`` is when whoever recognised the word had it;
    left out, it was known when it ended. ``speaker`` may be left out too, and ``begin`` may be
    called ``start``. A line may also be a segment, as Whisper's JSON has it.
    """
    words = [
        word
        for number, line in enumerate(lines_of(text), 1)
        for word in parse_line(f"{label} line {number}", line)
    ]
    return Transcript(label, tuple(sorted(words, key=lambda word: (word.begin, word.end))))


def parse_line(where: str, line: str | bytes) -> list[TimedWord]:
    """Parse the words of one such line; none of an empty one, nor of what is still revised."""
    if not line.strip():
        return []
    try:
        row: Any = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    if isinstance(row, dict):
        if isinstance(row.get("word"), str):
            return [_parse_word(where, row)]
        if row.keys() & {"segments", "words", "result", "text"}:
            return _parse_segments(where, row)
        if row.keys() == {"partial"}:  # Vosk's, of what it has not yet made up its mind on
            return []
    raise SourceError(f'{where}: must be {{"word": TEXT, "begin": SECONDS, "end": SECONDS}}')


def _parse_word(where: str, row: dict[str, object]) -> TimedWord:
    begin, end = row.get("begin", row.get("start")), row.get("end")
    times: list[Any] = [begin, end, row.get("known", end)]
    if not all(type(time) in (int, float) and 0 <= time < LATEST_SECONDS for time in times):
        raise SourceError(f"{where}: begin, end and known must be seconds")
    begin, end, arrival = map(float, times)
    if not begin < end <= arrival:
        raise SourceError(f"{where}: a word begins before it ends, and ends before it is known")
    speaker = row.get("speaker") or ""
    if not isinstance(speaker, str):
        raise SourceError(f"{where}: speaker must be a text")
    return TimedWord(str(row["word"]), begin, end, arrival, printable(spelled(speaker)))


def _parse_segments(where: str, line: dict[str, object]) -> list[TimedWord]:
    rows = line.get("segments", [line])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise SourceError(f"{where}: its segments are not a list of texts with times")
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
"""Suffixes of transcripts in search order. Formats that usually time each word come first."""


def read_transcript(
    path: str | os.PathLike[str] | VirtualFile, *, speaker: str | None = None
) -> Transcript:
    """Read the words of a recording with their times.

    Args:
        path: JSON lines (``.words``), CTM (``.ctm``), Whisper JSON (``.json``), captions (``.vtt``,
            ``.srt``) or a table (``.tsv``). ``-`` reads JSON lines from standard input to its end.
        speaker: take only this speaker's words; None takes all.

    Raises:
        SourceError: it cannot be read, or does not name the speaker; with a one-line reason.
    """
    path = readable(path)
    reader = read_word_lines if path == Path("-") else _READERS.get(path.suffix.lower())
    if path.is_dir():
        raise SourceError(f"{file_name(path.name)} is a folder: use the transcript in it")
    if reader is None:
        check_content(path)
        raise SourceError(f"{file_name(path.name)} is not a transcript: use {', '.join(SUFFIXES)}")
    whisper = reader is read_whisper  # it stores many values for each word and token
    limit = _MOST_JSON_BYTES if whisper else MOST_BYTES
    transcript = reader(file_name(path.name), read_text(path, most=limit, mends=whisper))
    if not transcript.timed_words:
        raise SourceError(f"{transcript.label} has no words")
    return transcript if speaker is None else transcript.of(speaker)


# ------------------------------------------------------------------------------------------ choice

_CAPTIONS = (".vtt", ".srt")
_LANGUAGE = re.compile(r"\.[a-z]{2,3}(-[A-Za-z0-9]+)*", re.ASCII)


def transcript_beside(recording: Readable) -> Path | None:
    """Find the transcript beside a recording, such as ``talk.vtt`` beside ``talk.flac``.

    If there are several, the first of `SUFFIXES` is used, so that word-timed formats precede
    captions. Otherwise a single file of captions with a language (``talk.en.vtt``) is used.
    """
    if isinstance(recording, VirtualFile):
        return None
    for path in map(recording.with_suffix, SUFFIXES):
        if path != recording and path.is_file():
            return path
    captions = _find_language_captions(recording)
    return captions[0] if len(captions) == 1 else None


def _find_language_captions(recording: Path) -> list[Path]:
    """Find captions that name their language, and are not those of another recording."""
    try:
        names = [name for name in os.listdir(recording.parent) if name.startswith(recording.stem)]  # noqa: PTH208
    except OSError:
        return []
    others = {Path(name).stem for name in names if Path(name).suffix not in SUFFIXES}
    return [
        recording.with_name(name)
        for name in sorted(names)
        for stem in [Path(name).stem]
        if Path(name).suffix in _CAPTIONS
        and stem not in others
        and _LANGUAGE.fullmatch(stem.removeprefix(recording.stem))
    ]


@dataclass(frozen=True, slots=True)
class TranscriptChoice:
    """Choice of a recording's transcript, and of the speaker in it who counts.

    ``path`` is None for the transcript beside each recording. ``speaker`` is the name in the
    transcript. None takes all words of a transcript with at most one speaker.
    """

    path: Path | None = None
    speaker: str | None = None

    def make_absolute(self) -> TranscriptChoice:
        """Return the same, found from any working folder."""
        path = None if self.path is None else Path(os.path.abspath(self.path))  # noqa: PTH100
        return replace(self, path=path)

    def find(self, recording: Readable) -> Path | None:
        """Find the transcript of a recording, or return None."""
        return self.path or transcript_beside(recording)

    def files(self, recording: Readable, *, words: bool) -> list[Path]:
        """List a recording and, where words are wanted, its transcript, if there is one."""
        transcript = self.find(recording) if words else None
        return [*files_of(recording), *(() if transcript is None else (transcript,))]

    def locate(self, recording: Readable) -> Path:
        """Find the transcript of a recording, or raise SourceError."""
        transcript = self.find(recording)
        if transcript is None and isinstance(recording, VirtualFile):
            raise SourceError(f"{recording.name} has no words: leave out the features of words")
        if transcript is None:
            assert isinstance(recording, Path)
            stem = file_name(recording.with_suffix(""))
            captions = ", ".join(file_name(path) for path in _find_language_captions(recording)[:5])
            lie = (f"; {captions} lie there, name one (", Argument("transcript"), ")")
            raise SourceError(
                Message(
                    f"{file_name(recording)} has no words beside it: put {stem}{SUFFIXES[0]} "
                    f"there, or {', '.join(SUFFIXES[1:])}",
                    *(lie if captions else ()),
                )
            )
        return transcript

    def read(self, recording: Readable, *, own: str | None = None) -> Transcript:
        """Read the words of the measured speaker of a recording.

        ``own`` is the speaker's name elsewhere. It is used if no speaker was chosen and it is among
        several in the transcript. Raises SourceError if the speaker is ambiguous, because other
        people's words would distort the bits.
        """
        return self.of(read_transcript(self.locate(recording)), own=own)

    def of(self, transcript: Transcript, *, own: str | None = None) -> Transcript:
        """Return the words of a transcript that count; SourceError as in `read`."""
        if self.speaker is not None:
            return transcript.of(self.speaker)
        speakers = transcript.speakers
        if len(speakers) < 2:
            return transcript
        if own is not None and find_name(own, speakers):
            return transcript.of(own)
        names = ", ".join(map(printable, speakers))
        text = f"{transcript.label} has words of {names}: choose one speaker ("
        raise SourceError(Message(text, Argument("speaker_in_transcript"), ")"))


SIDECAR = TranscriptChoice()
"""The transcript beside each recording, of its measured speaker."""


def words_mark(transcript: Transcript) -> str:
    """Compute a mark of the words and their times, whatever their file: sha256 in hexadecimal."""
    words = [astuple(word) for word in transcript.timed_words]
    return hashlib.sha256(repr(words).encode()).hexdigest()
