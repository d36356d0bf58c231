"""Transcripts as the JSON of Whisper and of the programs around it (`.json`).

Known are openai-whisper and faster-whisper, ``verbose_json`` and ``diarized_json`` of OpenAI's API,
whisper.cpp (milliseconds, and tokens that are pieces of words), WhisperX (speakers), and the chunks
of Hugging Face's pipelines, of insanely-fast-whisper too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from monitor.errors import SourceError
from monitor.transcripts.cues import Cue
from monitor.transcripts.gathering import gather
from monitor.transcripts.transcript import Transcript

__all__ = ["read_whisper", "segment_cues"]

_NOBODY = ("", "?", "None", "UNKNOWN")
_NEVER = float("nan")  # a time that is missing; what has it is left out, and told
_LISTS = ("transcription", "speakers", "chunks", "words", "segments", "word_segments")
"""Where the dialects keep their texts; what has words comes before what has segments alone."""


def read_whisper(label: str, text: str) -> Transcript:
    """The words of one of Whisper's JSON dialects, told by its content.

    Raises:
        SourceError: it is no JSON, none of them, or a text without times.

    Example:
        >>> talk = read_whisper("talk.json", '{"words": [{"word": "so", "start": 1, "end": 1.2}]}')
        >>> talk.said[0].text, talk.said[0].begin, talk.spread
        ('so', 1.0, False)
    """
    try:
        found: Any = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        raise SourceError(f"{label} is no JSON") from None
    found = {"segments": found} if isinstance(found, list) else found
    lists = {name: found[name] for name in _LISTS if _is_list(found, name)}
    if not lists:
        cure = "words with times are in segments, words, chunks or transcription"
        if isinstance(found, dict) and isinstance(found.get("text"), str):
            cure = "it is a text without times; ask for verbose_json"
        raise SourceError(f"{label} is none of the JSONs that Whisper's programs write: {cure}")
    name = next((name for name in lists if lists[name]), next(iter(lists)))
    if name == "words" and _says_more(lists.get("segments", []), lists["words"]):
        name = "segments"
    cues = (_pieces if name == "transcription" else segment_cues)(lists[name])
    return gather(label, (replace(cue, text=_mended(cue.text)) for cue in cues))


def segment_cues(rows: list[Any]) -> Iterator[Cue]:
    """The cues of a list of segments, of chunks, or of words: one for each word that has a time.

    Words without a time of their own (WhisperX leaves numbers out) share what lies between their
    neighbours; a segment without words is one cue. A missing end is where the next one begins.
    """
    if not rows:
        return
    begins = [_times(row)[0] for row in rows]
    for row, next_begin in zip(rows, [*begins[1:], _NEVER], strict=True):
        begin, end = _times(row)
        end = next_begin if end != end else end
        words = row.get("words") or row.get("result")
        words = [w for w in words if isinstance(w, dict)] if isinstance(words, list) else []
        if words:
            yield from _words(words, begin, end, _speaker(row))
        else:
            yield Cue(_raw(row), begin, end, _speaker(row))


def _is_list(found: object, name: str) -> bool:
    rows = found.get(name) if isinstance(found, dict) else None
    return isinstance(rows, list) and all(isinstance(row, dict) for row in rows)


def _says_more(segments: list[Any], words: list[Any]) -> bool:
    """Whether segments have words themselves, or speakers that a list of words lacks."""
    named = any(map(_speaker, segments)) and not any(map(_speaker, words))
    return named or any(row.get("words") for row in segments)


def _words(words: list[dict[str, Any]], begin: float, end: float, speaker: str) -> Iterator[Cue]:
    times = [time for word in words for time in _times(word) if time == time]
    begin = min(times, default=_NEVER) if begin != begin else begin
    end = max(times, default=_NEVER) if end != end else end
    last, waiting = begin, list[tuple[str, str]]()
    for text, who, first, stop in (
        *((_raw(word).strip(), _speaker(word) or speaker, *_times(word)) for word in words),
        ("", "", end, end),
    ):
        if first != first:
            waiting.append((text, who))
            continue
        share = max(first - last, 0.0) / max(len(waiting), 1)
        for i, (late, whose) in enumerate(waiting):
            yield Cue(late, last + i * share, last + (i + 1) * share, whose, known=max(end, first))
        waiting.clear()
        last = first if stop != stop else stop
        yield Cue(text, first, last, who)  # the last has no text


def _pieces(rows: list[dict[str, Any]]) -> Iterator[Cue]:
    """Of whisper.cpp: segments of tokens, or with ``--max-len 1`` a segment a token.

    A token that begins without a space goes on with the word before it.
    """
    parted = any(_raw(row).startswith(" ") for row in rows)
    made: list[Cue] = []
    for row in rows:
        tokens = row.get("tokens")
        tokens = [t for t in tokens if isinstance(t, dict)] if isinstance(tokens, list) else []
        tokens = [t for t in tokens if not _raw(t).startswith(("[_", "<|"))]
        timed = [token for token in tokens if _times(token)[0] == _times(token)[0]]
        single = parted and made and not _raw(row).startswith(" ") and " " not in _raw(row).strip()
        if single:
            made[-1] = _joined(made[-1], row)
        elif len(timed) == len(tokens) > 0 and _joins(tokens) == _joins([row]):
            made += _of_tokens(tokens, _speaker(row))
        else:
            made.append(Cue(_raw(row), *_times(row), _speaker(row)))
    return iter(made)


def _of_tokens(tokens: list[dict[str, Any]], speaker: str) -> list[Cue]:
    made: list[Cue] = []
    for token in tokens:
        if made and not _raw(token).startswith(" "):
            made[-1] = _joined(made[-1], token)
        else:
            begin, end = _times(token)
            made.append(Cue(_raw(token), begin, max(begin, end), speaker))
    return made


def _joined(cue: Cue, piece: dict[str, Any]) -> Cue:
    return Cue(cue.text + _raw(piece), cue.begin, max(cue.end, _times(piece)[1]), cue.speaker)


def _joins(pieces: list[dict[str, Any]]) -> str:
    return "".join(_mended("".join(map(_raw, pieces))).split())


def _mended(text: str) -> str:
    """A text whose letters may have been cut into tokens within their bytes."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:  # halves of characters that a JSON wrote as escapes
        return text.encode("utf-8", "replace").decode()


def _times(row: Mapping[str, Any]) -> tuple[float, float]:
    """When a row begins and ends, in seconds; what is missing is no number."""
    offsets, stamp = row.get("offsets"), row.get("timestamp")
    if isinstance(offsets, dict):
        return _seconds(offsets.get("from")) / 1000, _seconds(offsets.get("to")) / 1000
    if isinstance(stamp, list) and len(stamp) == 2:
        return _seconds(stamp[0]), _seconds(stamp[1])
    return _seconds(row.get("start")), _seconds(row.get("end"))


def _seconds(value: object) -> float:
    fits = type(value) in (int, float) and -1e9 < value < 1e9  # type: ignore[operator]
    return float(value) if fits else _NEVER  # type: ignore[arg-type]


def _raw(row: Mapping[str, Any]) -> str:
    text = row.get("word", row.get("text"))
    return text if isinstance(text, str) else ""


def _speaker(row: Mapping[str, Any]) -> str:
    named = row.get("speaker")
    text = str(named).strip() if isinstance(named, str | int) else ""
    return "" if text in _NOBODY else text
