"""A live source, and words that a recogniser writes meanwhile, as one stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from monitor.brings import Brings
from monitor.managed import Managed
from monitor.phrases import clock_time
from monitor.protocols import LiveSource
from monitor.sources.transcript_note import TranscriptNote
from monitor.transcripts.live import WordPipe
from monitor.types import TICKS_PER_SECOND, Block, Frames, Gap, Tracks, Words

__all__ = ["LiveWords"]

_ENDED_TICKS = TICKS_PER_SECOND  # by which the audio goes on: not both were stopped at once


class LiveWords(Managed):
    """Gives words as they come, each before the audio in which it counts; nobody waits for them.

    Times of words are those of the audio that was heard, from the first sample on: what a device
    that was gone did not hear is left out of them. A word that comes late counts from when it
    comes; one that comes when the audio is over counts at its end. Where the words end, and the
    audio goes on for a second, the stream has a gap ``"words ended"``, once.

    Args:
        source: a live source of audio.
        pipe: where the words come from.
        speaker: whose words these are, where one is chosen.

    Attributes:
        label: of the source.

    Example:
        >>> from monitor.sources import AudioQueue
        >>> queue = AudioQueue(16000)
        >>> pipe = WordPipe(['{"word": "well", "begin": 0, "end": 0.4}'])
        >>> with LiveWords(queue, pipe) as source:
        ...     pipe.wait()
        ...     queue.put(np.zeros(8000, np.float32))
        ...     queue.stop()
        ...     [type(item).__name__ for item in source]
        ['Words', 'Block']
    """

    def __init__(self, source: LiveSource, pipe: WordPipe, speaker: str | None = None) -> None:
        self._source, self._pipe, self._speaker = source, pipe, speaker
        self.label = source.label
        self._ticks = self._first = self._recording = 0

    @property
    def seconds(self) -> float | None:
        """Audio seconds promised."""
        return self._source.seconds

    @property
    def brings(self) -> Brings:
        """What the source brings, and words."""
        return replace(self._source.brings, words=True)

    @property
    def transcripts(self) -> tuple[TranscriptNote, ...]:
        """A note on the pipe: how many words it brings nobody knows before."""
        return (TranscriptNote(self._pipe.label, speaker=self._speaker),)

    @property
    def waiting_seconds(self) -> float:
        """Seconds of audio that were heard and not yet taken."""
        return self._source.waiting_seconds

    def behind_seconds(self, seconds: float) -> float:
        """Wall seconds since that second of the stream was heard."""
        return self._source.behind_seconds(seconds)

    def stop(self) -> None:
        """End the stream after what was heard so far; may be called from anywhere."""
        self._source.stop()

    def __enter__(self) -> LiveWords:
        self._source.__enter__()
        self.label = self._source.label  # of a microphone known once it is open
        self._pipe.__enter__()
        return self

    def close(self) -> None:
        """Let go of both."""
        self._pipe.close()
        self._source.__exit__(None, None, None)

    def __iter__(self) -> Iterator[Block | Frames | Gap | Words | Tracks]:
        self._ticks = self._first = self._recording = 0
        samples = 0
        ended: int | None = None  # when the last word had come
        told = False
        for item in self._source:
            if isinstance(item, Block):
                if item.recording != self._recording:
                    self._recording, self._first, samples = item.recording, self._ticks, 0
                samples += len(item.samples)
                self._ticks = self._first + -(-samples * TICKS_PER_SECOND // item.rate)
                yield from self._words()
                if ended is None and self._pipe.over:
                    ended = self._ticks
                if ended is not None and not told and self._ticks - ended >= _ENDED_TICKS:
                    told = True
                    since = clock_time(ended / TICKS_PER_SECOND)
                    line = f"no more words come: style stands still from {since}"
                    yield Gap("words ended", None, self._recording, line)
            yield item
        yield from self._words()
        self._pipe.tell_lost()

    def _words(self) -> Iterator[Words]:
        """What came since the last time, on the clock of the recording that goes on."""
        waiting = round(self._source.waiting_seconds * TICKS_PER_SECOND)
        came = self._pipe.take(self._ticks, self._recording, self._ticks + waiting)
        if came is not None:
            begins = np.maximum(came.begins - self._first, 0)
            ends = np.maximum(came.ends - self._first, begins + 1)
            known = np.maximum(np.maximum(came.known - self._first, ends), 1)
            order = np.argsort(known, kind="stable")
            texts = tuple(came.texts[place] for place in order.tolist())
            yield Words(texts, begins[order], ends[order], known[order], self._recording)
