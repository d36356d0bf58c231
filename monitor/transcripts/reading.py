"""Reads the transcript of a recording, in any of the formats in which people have them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from monitor.errors import SourceError
from monitor.safe_text import file_name
from monitor.transcripts.captions import read_captions
from monitor.transcripts.ctm import read_ctm
from monitor.transcripts.tables import read_table
from monitor.transcripts.text import MOST_BYTES, read_text
from monitor.transcripts.transcript import Transcript
from monitor.transcripts.whisper import read_whisper
from monitor.transcripts.word_lines import read_word_lines

__all__ = ["SUFFIXES", "read_transcript"]

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


def read_transcript(path: str | os.PathLike[str], *, speaker: str | None = None) -> Transcript:
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
    path = Path(path)
    reader = read_word_lines if str(path) == "-" else _READERS.get(path.suffix.lower())
    if path.is_dir():
        raise SourceError(f"{file_name(path)} is a folder: name the transcript in it")
    if reader is None:
        raise SourceError(f"{file_name(path)} is no transcript: it must be {', '.join(SUFFIXES)}")
    whisper = reader is read_whisper  # tells of each word and piece of a word all that it knows
    most = _MOST_JSON_BYTES if whisper else MOST_BYTES
    transcript = reader(file_name(path), read_text(path, most=most, mends=whisper))
    if not transcript.said:
        raise SourceError(f"{transcript.label} holds no words")
    return transcript if speaker is None else transcript.of(speaker)
