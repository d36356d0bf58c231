"""Readers of transcripts of every known format."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path, PurePath
from typing import Any

from monitor.errors import ForeignTextError, SourceError
from monitor.safe_text import file_name, printable, spelled
from monitor.transcripts.captions import read_captions
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
from monitor.virtual_files import VirtualFile, readable

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
    except UnicodeEncodeError:  # unpaired surrogates from escapes in JSON
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
# Lists of texts in these dialects; lists with words precede those with segments alone.
_LISTS = ("transcription", "speakers", "chunks", "words", "segments", "word_segments")
_TEXTS = {"text", "word", "words", "tokens"}


def read_whisper(label: str, text: str) -> Transcript:
    """Read the words of one of Whisper's JSON dialects, told apart by its keys."""
    try:
        document: Any = json.loads(text, strict=False)
    except json.JSONDecodeError as error:
        lines = error.msg == "Extra data"
        advice = "JSON lines are called NAME.words" if lines else "is it complete?"
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
    """Return whether this is an empty list, or a list of rows with texts."""
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
    """Read the words of a table with start, end and text per line, separated by tabs.

    The first line may name the columns, in any order and with ``speaker``. Times are seconds, or
    milliseconds if all are whole numbers, as in Whisper's tables.
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


def read_word_lines(label: str, text: str) -> Transcript:
    """Read the words of a file of JSON lines.

    A line is ``{"word": "well", "begin": 0.31, "end": 0.52, "known": 1.2, "speaker": "ann"}``,
    in seconds from the start of the recording. ``known`` is when the recogniser had the word, by
    default at its end. ``speaker`` is optional, and ``begin`` may be called ``start``. A line may
    also be a segment as in Whisper's JSON.
    """
    words = [
        word
        for number, line in enumerate(lines_of(text), 1)
        for word in parse_line(f"{label} line {number}", line)
    ]
    return Transcript(label, tuple(sorted(words, key=lambda word: (word.begin, word.end))))


def parse_line(where: str, line: str | bytes) -> list[TimedWord]:
    """Parse the words of one line; an empty line or a partial result has none."""
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
        if row.keys() == {"partial"}:  # a partial result of Vosk
            return []
    raise SourceError(f'{where}: must be {{"word": TEXT, "begin": SECONDS, "end": SECONDS}}')


def _parse_word(where: str, row: dict[str, object]) -> TimedWord:
    begin, end = row.get("begin", row.get("start")), row.get("end")
    times: list[Any] = [begin, end, row.get("known", end)]
    if not all(type(time) in (int, float) and 0 <= time < LATEST_SECONDS for time in times):
        raise SourceError(f"{where}: begin, end and known must be seconds")
    begin, end, arrival = map(float, times)
    if not begin < end <= arrival:
        raise SourceError(f"{where}: a word must begin before it ends, and end before it is known")
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
    transcript = reader(file_name(path.name), read_text(path, maximum=limit, mends=whisper))
    if not transcript.timed_words:
        raise SourceError(f"{transcript.label} has no words")
    return transcript if speaker is None else transcript.select_speaker(speaker)
