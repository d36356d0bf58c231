"""Transcripts as JSON lines: one word a line (`.words`)."""

from __future__ import annotations

import json
from typing import Any

from monitor.errors import SourceError
from monitor.safe_text import printable
from monitor.transcripts.text import lines_of
from monitor.transcripts.transcript import SaidWord, Transcript

__all__ = ["parse_word", "read_word_lines"]

_LATEST = 1e6  # seconds: eleven days


def read_word_lines(label: str, text: str) -> Transcript:
    r"""The words of a file of JSON lines.

    A line is ``{"word": "well", "begin": 0.31, "end": 0.52, "known": 1.2, "speaker": "ann"}``,
    seconds from the start of the recording. ``known`` is when whoever recognised the word had it;
    left out, it was known when it ended. ``speaker`` may be left out too.

    Raises:
        SourceError: a line of it is malformed.

    Example:
        >>> talk = read_word_lines("a.words", '{"word": "well", "begin": 0.31, "end": 0.52}\n')
        >>> talk.said[0].text, talk.said[0].known
        ('well', 0.52)
    """
    said = [
        parse_word(f"{label} line {number}", line)
        for number, line in enumerate(lines_of(text), 1)
        if line.strip()
    ]
    return Transcript(label, tuple(sorted(said, key=lambda word: (word.begin, word.end))))


def parse_word(where: str, line: str) -> SaidWord:
    """One line of such a file.

    Raises:
        SourceError: it is malformed; the message begins with ``where``.
    """
    try:
        found: Any = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("word"), str):
        raise SourceError(f'{where}: must be {{"word": TEXT, "begin": SECONDS, "end": SECONDS}}')
    times: list[Any] = [found.get("begin"), found.get("end"), found.get("known", found.get("end"))]
    if not all(type(each) in (int, float) and 0 <= each < _LATEST for each in times):
        raise SourceError(f"{where}: begin, end and known must be seconds")
    begin, end, known = map(float, times)
    if not begin < end <= known:
        raise SourceError(f"{where}: a word begins before it ends, and ends before it is known")
    speaker = found.get("speaker") or ""
    if not isinstance(speaker, str):
        raise SourceError(f"{where}: speaker must be a text")
    return SaidWord(found["word"], begin, end, known, printable(speaker.strip()))
