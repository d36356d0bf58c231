"""Transcripts as JSON lines: one word a line (`.words`), also while they are said."""

from __future__ import annotations

import json
from typing import Any

from monitor.errors import SourceError
from monitor.safe_text import printable
from monitor.transcripts.cues import spread_words
from monitor.transcripts.gathering import LATEST_SECONDS
from monitor.transcripts.segments import segment_cues
from monitor.transcripts.text import lines_of
from monitor.transcripts.transcript import SaidWord, Transcript

__all__ = ["parse_line", "read_word_lines"]


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

    Raises:
        SourceError: it is malformed; the message begins with ``where``.

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
    cues = [cue for cue in segment_cues(rows) if cue.text.strip()]
    if not all(0 <= cue.begin <= cue.end < LATEST_SECONDS for cue in cues):
        raise SourceError(f"{where}: its words have no time, or end before they begin")
    return [word for cue in cues for word in spread_words(cue)]
