"""The segments and tokens of whisper.cpp, whose tokens are pieces of words and of letters."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any

from monitor.transcripts.cues import Cue
from monitor.transcripts.json_rows import rows_in, speaker_of, text_of, times_of

__all__ = ["mended", "token_cues"]

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
        elif timed and _letters(tokens) == _letters([row]):
            made += _of_tokens(tokens, speaker_of(row))
        else:
            made.append(Cue(text, *times_of(row), speaker_of(row)))
    return made


def mended(text: str) -> str:
    """A text whose letters may have been cut into tokens within their bytes.

    Args:
        text: as `monitor.transcripts.text.read_text` gives it with ``mends``.
    """
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


def _letters(pieces: Sequence[dict[str, Any]]) -> str:
    return "".join(mended("".join(map(text_of, pieces))).split())
