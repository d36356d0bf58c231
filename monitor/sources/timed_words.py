"""Files of timed words: JSON lines, one word a line."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from monitor.errors import SourceError
from monitor.types import TICKS_PER_SECOND, Words

__all__ = ["WORDS_SUFFIX", "read_words"]

WORDS_SUFFIX = ".words"
"""Of the file of words that lies beside a recording: ``talk.words`` beside ``talk.flac``."""
_SLACK = 1e-6  # ticks: 0.07 s x 100 is a little more than 7


def read_words(path: str | os.PathLike[str]) -> Words:
    r"""The words of one recording, in the order in which they were known.

    A line is ``{"word": "well", "begin": 0.31, "end": 0.52, "known": 1.2}``, seconds from the
    start of the recording. ``known`` is when whoever recognised the word had it; left out, it was
    known when it ended.

    Raises:
        SourceError: there is no such file, or a line of it is malformed.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "talk.words")
        ...     _ = path.write_text('{"word": "well", "begin": 0.31, "end": 0.52}\n')
        ...     words = read_words(path)
        >>> words.texts, words.begins, words.known
        (('well',), array([31]), array([52]))
    """
    path, rows = Path(path), []
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise SourceError(f"cannot read the words of {path.name}: {reason}") from None
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            rows.append(_row(f"{path.name} line {number}", line))
    rows.sort(key=lambda row: row[3])
    begins, ends, known = (np.array([row[i] for row in rows], np.int64) for i in (1, 2, 3))
    return Words(tuple(row[0] for row in rows), begins, ends, known)


def _row(where: str, line: str) -> tuple[str, int, int, int]:
    try:
        found: Any = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("word"), str):
        raise SourceError(f'{where}: must be {{"word": TEXT, "begin": SECONDS, "end": SECONDS}}')
    times: list[Any] = [found.get("begin"), found.get("end"), found.get("known", found.get("end"))]
    if not all(type(each) in (int, float) and 0 <= each < 1e6 for each in times):
        raise SourceError(f"{where}: begin, end and known must be seconds")
    begin = math.floor(times[0] * TICKS_PER_SECOND + _SLACK)
    end, known = (math.ceil(each * TICKS_PER_SECOND - _SLACK) for each in times[1:])
    if not begin < end <= known:
        raise SourceError(f"{where}: a word begins before it ends, and ends before it is known")
    return found["word"], begin, end, known
