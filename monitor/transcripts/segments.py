"""Segments of recognisers, with words that have times, or some of them, or none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from math import isnan
from typing import Any

from monitor.transcripts.cues import Cue
from monitor.transcripts.json_rows import rows_in, speaker_of, text_of, times_of

__all__ = ["segment_cues"]


def segment_cues(rows: Sequence[dict[str, Any]]) -> Iterator[Cue]:
    """The cues of a list of segments, of chunks, or of words: one for each word that has a time.

    Words without a time of their own (WhisperX leaves numbers out) share what lies between their
    neighbours; a segment without words is one cue. A missing end is where the next one begins.

    Example:
        >>> words = [{"word": "In", "start": 0, "end": 0.5}, {"word": "2014"}]
        >>> for cue in segment_cues([{"start": 0, "end": 2, "words": words}]):
        ...     print(cue.text, cue.begin, cue.end, cue.known)
        In 0.0 0.5 None
        2014 0.5 2.0 2.0
    """
    nexts = [*(times_of(row)[0] for row in rows[1:]), math.nan]
    for row, following in zip(rows, nexts, strict=False):
        begin, end = times_of(row)
        end = following if isnan(end) else end
        words = rows_in(row.get("words") or row.get("result"))  # the latter is Vosk's
        if words:
            yield from _words(words, begin, end, speaker_of(row))
        else:
            yield Cue(text_of(row), begin, end, speaker_of(row))


def _words(words: list[dict[str, Any]], begin: float, end: float, speaker: str) -> Iterator[Cue]:
    times = [time for word in words for time in times_of(word) if not isnan(time)]
    begin = min(times, default=math.nan) if isnan(begin) else begin
    end = max(times, default=math.nan) if isnan(end) else end
    last, waiting = begin, list[tuple[str, str]]()
    for word in words:
        text, who = text_of(word).strip(), speaker_of(word) or speaker
        first, stop = times_of(word)
        if isnan(first):
            waiting.append((text, who))
            continue
        yield from _shared(waiting, last, first, end)
        waiting.clear()
        last = first if isnan(stop) else stop
        yield Cue(text, first, last, who)
    yield from _shared(waiting, last, end, end)


def _shared(
    waiting: Sequence[tuple[str, str]], last: float, first: float, end: float
) -> Iterator[Cue]:
    """Words without times, between the last one that has a time and the next."""
    share = max(first - last, 0.0) / max(len(waiting), 1)
    for i, (text, who) in enumerate(waiting):
        begin, stop = last + i * share, last + (i + 1) * share
        yield Cue(text, begin, stop, who, known=max(end, stop))
