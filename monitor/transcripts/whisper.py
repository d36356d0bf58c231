"""Transcripts as the JSON of Whisper and of the programs around it (`.json`).

Known are openai-whisper and faster-whisper, ``verbose_json`` and ``diarized_json`` of OpenAI's API,
whisper.cpp (milliseconds, and tokens that are pieces of words), WhisperX (speakers), and the chunks
of Hugging Face's pipelines, of insanely-fast-whisper too.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from monitor.errors import ForeignTextError, SourceError
from monitor.transcripts.gathering import gather
from monitor.transcripts.json_rows import speaker_of
from monitor.transcripts.segments import segment_cues
from monitor.transcripts.transcript import Transcript
from monitor.transcripts.whisper_cpp import mended, token_cues

__all__ = ["read_whisper"]

_LISTS = ("transcription", "speakers", "chunks", "words", "segments", "word_segments")
"""Where the dialects keep their texts; what has words comes before what has segments alone."""

_TEXTS = {"text", "word", "words", "tokens"}


def read_whisper(label: str, text: str) -> Transcript:
    """The words of one of Whisper's JSON dialects, told by its content.

    Raises:
        ForeignTextError: it is JSON and none of them, or a text without times.
        SourceError: it is no JSON, or its texts cannot be used.

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
    if name == "words" and _says_more(lists.get("segments", []), lists["words"]):
        name = "segments"
    cues = token_cues(lists[name]) if name == "transcription" else segment_cues(lists[name])
    return gather(label, (replace(cue, text=mended(cue.text)) for cue in cues))


def _is_list(found: object, name: str) -> bool:
    """Whether there are rows of that name, and, where there are any, texts in them."""
    rows = found.get(name) if isinstance(found, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return False
    return not rows or any(row.keys() & _TEXTS for row in rows)


def _says_more(segments: list[Any], words: list[Any]) -> bool:
    """Whether segments have words themselves, or speakers that a list of words lacks."""
    named = any(map(speaker_of, segments)) and not any(map(speaker_of, words))
    return named or any(row.get("words") for row in segments)
