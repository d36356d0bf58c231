"""Sources with words or frames from another file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING, Self

import numpy as np

from monitor.errors import UsageError
from monitor.phrases import clock_time
from monitor.protocols import LiveSource, Source, TranscriptNote
from monitor.sources.base import WrappedLiveSource, WrappedSource
from monitor.sources.frames import FramesFile
from monitor.transcripts.choice import SIDECAR, TranscriptChoice, words_mark
from monitor.transcripts.transcript import Transcript
from monitor.types import TICKS_PER_SECOND, AnyArray, Block, Frames, Gap, Item, Track, Tracks, Words
from monitor.virtual_files import VirtualFile, readable

if TYPE_CHECKING:
    from monitor.transcripts.live import WordPipe


def note_of(transcript: Transcript, seconds: float | None = None) -> TranscriptNote:
    """Summarise a transcript; ``seconds`` is the recording's end, or None."""
    named = transcript.speakers
    late = "" if seconds is None else transcript.describe_overrun(seconds)
    return TranscriptNote(
        transcript.label,
        len(transcript.timed_words),
        transcript.spread,
        named[0] if len(named) == 1 else None,
        words_mark(transcript),
        (*transcript.notices, *([late] if late else [])),
        tuple(word.text for word in transcript.timed_words),
    )


class SideInputSource(WrappedSource):
    """Source that adds words and precomputed frames before the audio in which they count.

    The result does not depend on the size of blocks. Words and frames after the end of the
    recording are dropped. A word that ends within the recording, but is known only later, counts at
    the recording's end. In a live source, such a word comes too late.

    Args:
        source: one recording, of audio or of frames.
        words: timed words, or a transcript (`monitor.transcripts.read_transcript`).
        frames: a file of precomputed frames; its speech decisions are not used.
        start_seconds: start of the recording on the clock of words and frames.

    Raises:
        UsageError: neither words nor frames are given, or the source already has them.
        SourceError: the frames cannot be read, or the whole transcript is after the recording's
            end.

    Example:
        >>> import io
        >>> from monitor.sources import Pipe
        >>> said = Words(("yes",), np.array([5]), np.array([9]), np.array([15]))
        >>> pipe = Pipe(io.BytesIO(bytes(6400)), raw=(16000, 1, "s16le"))
        >>> [type(item).__name__ for item in SideInputSource(pipe, words=said)]
        ['Words', 'Block']
    """

    transcripts: tuple[TranscriptNote, ...] = ()

    def __init__(
        self,
        source: Source,
        *,
        words: Words | Transcript | None = None,
        frames: str | os.PathLike[str] | None = None,
        start_seconds: float = 0.0,
    ) -> None:
        super().__init__(source)
        info = source.stream_info
        file = None if frames is None else FramesFile(frames)
        tracks = {} if file is None else file.stream_info.tracks
        if words is None and not tracks:
            raise UsageError(f"no words or frames for {source.label}: give at least one")
        if (info.words and words is not None) or info.tracks.keys() & tracks.keys():
            raise UsageError(f"{source.label} already has these words or frames: leave them out")
        self.stream_info = replace(
            info,
            words=info.words or words is not None,
            tracks={**info.tracks, **tracks},
            noise=info.noise or ("" if file is None else file.header.noise),
        )
        first = round(start_seconds * TICKS_PER_SECOND)
        if isinstance(words, Transcript):
            end = None
            if source.seconds is not None and not info.cut:
                end = start_seconds + source.seconds
            self.transcripts, words = (note_of(words, end),), words.words()
        self.words = None if words is None else _moved_words(words, first)
        file_tracks = {} if file is None else file.whole().tracks
        self._tracks = {name: _moved_track(track, first) for name, track in file_tracks.items()}

    def items(self) -> Iterator[Item]:
        """Yield the recording with its words and frames."""
        clock, emitted, recording = _Clock(), 0, 0
        waiting: list[Item] = []  # held back, since it may be the last
        for item in self.source:
            if isinstance(item, Block | Frames):
                if item.recording != recording and emitted:
                    raise UsageError("put each recording's words beside it, and then chain them")
                yield from waiting
                waiting.clear()
                recording = item.recording
                ticks = clock.advance(item)
                yield from self._due(emitted, ticks, recording)
                emitted = ticks
            waiting.append(item)
            if self.stream_info.live:  # must not be held back
                yield waiting.pop()
        late = self._late(emitted, recording)
        if late is not None:
            yield late
        yield from waiting

    def around(self, source: Source) -> SideInputSource:
        """Combine the words and frames with another form of the recording, such as its frames."""
        sources = copy(self)
        sources.source = source
        return sources

    def _due(self, low: int, high: int, recording: int) -> Iterator[Words | Tracks]:
        if self.words is not None:
            is_due = (self.words.known > low) & (self.words.known <= high)
            if is_due.any():
                yield replace(select_words(self.words, is_due), recording=recording)
        tracks = {}
        for name, track in self._tracks.items():
            due = track.within(low, high)
            if due.ticks.size or due.early is not None:
                tracks[name] = due
        if tracks:
            yield Tracks(tracks, recording)

    def _late(self, end: int, recording: int) -> Words | None:
        if self.words is None:
            return None
        is_late = (self.words.known > end) & (self.words.ends <= end)
        late = select_words(self.words, is_late)
        known_at = np.full(len(late.texts), end)
        return replace(late, known=known_at, recording=recording) if late.texts else None


class _Clock:
    """Counts passed ticks as the monitor does."""

    def __init__(self) -> None:
        self._before = self._samples = self._rate = 0

    def advance(self, item: Block | Frames) -> int:
        if isinstance(item, Frames):
            self._before += len(item.speech)
            return self._before
        if item.rate != self._rate:
            self._before, self._rate, self._samples = self._ticks(), item.rate, 0
        self._samples += len(item.samples)
        return self._ticks()

    def _ticks(self) -> int:
        if not self._rate:
            return self._before
        return self._before + -(-self._samples * TICKS_PER_SECOND // self._rate)


def with_words(
    source: Source,
    path: str | os.PathLike[str] | VirtualFile,
    choice: TranscriptChoice = SIDECAR,
    *,
    own_speaker: str | None = None,
    start_seconds: float = 0.0,
) -> SideInputSource:
    """Combine a recording with its transcript, such as ``talk.vtt`` beside ``talk.flac``.

    ``own_speaker`` is the speaker's name elsewhere (`TranscriptChoice.read`). The source begins at
    ``start_seconds`` of the file.
    """
    transcript = choice.read(readable(path), own_speaker=own_speaker)
    return SideInputSource(source, words=transcript, start_seconds=start_seconds)


def _moved_words(words: Words, first: int) -> Words:
    remaining = select_words(words, words.begins >= first)
    return replace(
        remaining,
        begins=remaining.begins - first,
        ends=remaining.ends - first,
        known=remaining.known - first,
    )


def select_words(words: Words, is_selected: AnyArray) -> Words:
    """Select some of the words."""
    return Words(
        tuple(compress(words.texts, is_selected.tolist())),
        words.begins[is_selected],
        words.ends[is_selected],
        words.known[is_selected],
        words.recording,
    )


def _moved_track(track: Track, first: int) -> Track:
    """Cut a track to begin at a tick, without frames that include earlier audio."""
    begins = track.ticks - 1 if track.spans is None else track.spans[:, 0]
    return track.select(begins >= first).shifted(-first)


_ENDED_TICKS = TICKS_PER_SECOND  # of audio after the last word, before their end is reported


class LiveWords(WrappedLiveSource):
    """Live source that adds words as they arrive, each before the audio in which it counts.

    Times of words refer to the received audio, from its first sample on. A late word counts from
    its arrival. A word that arrives after the audio counts at its end. If the words end and the
    audio continues for a second, the stream has one gap ``"words ended"``. ``speaker`` is the
    chosen speaker of the words, if any.
    """

    transcripts: tuple[TranscriptNote, ...] = ()

    def __init__(self, source: LiveSource, pipe: WordPipe, speaker: str | None = None) -> None:
        super().__init__(source)
        self.stream_info = replace(source.stream_info, words=True)
        self._pipe = pipe
        self.transcripts = (TranscriptNote(pipe.label, speaker=speaker),)
        self._ticks = self._first = self._recording = 0

    def __enter__(self) -> Self:
        entered = super().__enter__()
        self._pipe.__enter__()
        return entered

    def close(self) -> None:
        """Close both."""
        self._pipe.close()
        super().close()

    def items(self) -> Iterator[Item]:
        """Yield the audio, with the words that have arrived."""
        self._ticks = self._first = self._recording = 0
        samples = 0
        ended: int | None = None  # tick at which the words had ended
        is_reported = False
        for item in self.source:
            if isinstance(item, Block):
                if item.recording != self._recording:
                    self._recording, self._first, samples = item.recording, self._ticks, 0
                samples += len(item.samples)
                self._ticks = self._first + -(-samples * TICKS_PER_SECOND // item.rate)
                yield from self._words()
                if ended is None and self._pipe.over:
                    ended = self._ticks
                if ended is not None and not is_reported and self._ticks - ended >= _ENDED_TICKS:
                    is_reported = True
                    since = clock_time(ended / TICKS_PER_SECOND)
                    line = f"no more words arrive, so style does not change after {since}"
                    yield Gap("words ended", None, self._recording, line)
            yield item
        yield from self._words()
        self._pipe.report_lost()

    def _words(self) -> Iterator[Words]:
        """Yield the words since the last call, on the clock of the recording."""
        waiting = round(self.source.waiting_seconds * TICKS_PER_SECOND)
        words = self._pipe.collect(self._ticks, self._recording, self._ticks + waiting)
        if words is not None:
            begins = np.maximum(words.begins - self._first, 0)
            ends = np.maximum(words.ends - self._first, begins + 1)
            known_at = np.maximum(np.maximum(words.known - self._first, ends), 1)
            order = np.argsort(known_at, kind="stable")
            texts = tuple(words.texts[index] for index in order.tolist())
            yield Words(texts, begins[order], ends[order], known_at[order], self._recording)
