"""Sources combined: several in a row, paced, or with words and frames from another file."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from monitor.errors import SourceError, UsageError
from monitor.kinds import FeatureSpec
from monitor.phrases import clock_time
from monitor.protocols import LiveSource, Provenance, Source, TranscriptNote
from monitor.sources.base import BaseSource, WrappedLiveSource, WrappedSource
from monitor.sources.frames import FramesFile, read_frames
from monitor.transcripts.formats import LIES_BESIDE, TranscriptChoice, words_mark
from monitor.transcripts.transcript import Transcript
from monitor.types import (
    TICK_SECONDS,
    TICKS_PER_SECOND,
    AnyArray,
    Block,
    Frames,
    Gap,
    Item,
    Track,
    Tracks,
    Words,
)

if TYPE_CHECKING:
    from monitor.transcripts.live import WordPipe


def cut_frames(frames: Frames, first: int, most: int) -> Iterator[Frames]:
    """Cut frames into runs of at most ``most`` ticks; ``first`` ticks lie before this run.

    Example:
        >>> import numpy as np
        >>> from monitor.types import Track
        >>> track = Track(np.array([1, 2, 4]), np.array([7, 8, 9]))
        >>> runs = cut_frames(Frames(np.ones(4, bool), {"f0": track}), 0, 3)
        >>> [(len(run.speech), run.tracks["f0"].values.tolist()) for run in runs]
        [(3, [7, 8]), (1, [9])]
    """
    for start in range(0, len(frames.speech), most):
        speech = frames.speech[start : start + most]
        low, high = first + start, first + start + len(speech)
        tracks = {name: track.within(low, high) for name, track in frames.tracks.items()}
        gaps = tuple((tick, gap) for tick, gap in frames.gaps if low < tick <= high)
        notices = tuple((tick, notice) for tick, notice in frames.notices if low < tick <= high)
        yield Frames(speech, tracks, gaps, frames.recording, notices)


PIECE_SECONDS = 0.1  # of the clock: what a live view is given at a time
LONGEST_SECONDS = 10.0  # of audio
SLOWEST = 0.01
"""Times real time: an hour then takes four days."""


class Paced(WrappedSource):
    """Source played no faster than ``speed`` times real time, in small pieces.

    A piece comes when its last sample would have been heard. Time that the listener loses is
    caught up, as with a microphone that queues.
    """

    def __init__(
        self,
        source: Source,
        speed: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        if not SLOWEST <= speed < math.inf:
            raise UsageError(f"speed={speed} must be {SLOWEST} or more: 1 is real time")
        super().__init__(source)
        self._speed, self._clock, self._sleep = speed, clock, sleep

    def items(self) -> Iterator[Item]:
        """Yield the pieces, each in time."""
        began = self._clock()
        passed = 0.0
        for item, seconds in self._pieces():
            passed += seconds
            wait = began + passed / self._speed - self._clock()
            if wait > 0:
                self._sleep(wait)
            yield item

    def _pieces(self) -> Iterator[tuple[Item, float]]:
        """Cut the source into small pieces, with the audio seconds of each."""
        piece_seconds = min(PIECE_SECONDS * self._speed, LONGEST_SECONDS)
        ticks = 0
        for item in self.source:
            if isinstance(item, Block):
                longest = max(1, round(piece_seconds * item.rate))
                for start in range(0, len(item.samples), longest):
                    samples = item.samples[start : start + longest]
                    yield Block(samples, item.rate, item.recording), len(samples) / item.rate
            elif isinstance(item, Frames):
                for run in cut_frames(item, ticks, max(1, round(piece_seconds * TICKS_PER_SECOND))):
                    yield run, len(run.speech) * TICK_SECONDS
                ticks += len(item.speech)
            else:
                yield item, 0.0


class Chain(BaseSource[Item]):
    """Several sources as one stream; items are numbered by source.

    A source that breaks loses only its own rest. Ticks of ready-made frames go on counting.
    ``Gap.recording`` is an index into ``labels``. UsageError where sources do not go together.

    Example:
        >>> import io
        >>> from monitor.sources import Pipe
        >>> pipes = [Pipe(io.BytesIO(bytes(320)), raw=(16000, 1, "s16le")) for _ in range(2)]
        >>> [(block.recording, len(block.samples)) for block in Chain(pipes)]
        [(0, 160), (1, 160)]
    """

    labels: tuple[str, ...] = ()

    def __init__(self, sources: Sequence[Source]) -> None:
        if not sources:
            raise UsageError("a chain needs at least one source")
        self.sources = tuple(sources)
        self.labels = tuple(source.label for source in sources)
        more = len(sources) - 1
        channels = [source.stream_info.channels for source in sources]
        self.stream_info = replace(
            sources[0].stream_info,
            tracks=_common_features(sources),
            channels=None if None in channels else min(count or 0 for count in channels),
            noise=next(filter(None, (source.stream_info.noise for source in sources)), ""),
            protected=tuple(how for source in sources for how in source.stream_info.protected),
        )
        self.label = f"{self.labels[0]} and {more} more" if more else self.labels[0]

    @property
    def seconds(self) -> float | None:
        """Audio seconds promised by all; None where one of them does not know."""
        lengths = [source.seconds for source in self.sources]
        return None if None in lengths else sum(length or 0.0 for length in lengths)

    @property
    def transcripts(self) -> tuple[TranscriptNote, ...]:
        """Notes on the words of its recordings, in order."""
        return tuple(note for source in self.sources for note in source.transcripts)

    def provenance(self) -> tuple[Provenance, ...] | None:
        """Return the recordings of all sources; None where a source does not know."""
        parts: list[Provenance] = []
        for source in self.sources:
            provenance = source.provenance()
            if provenance is None:
                return None
            parts += provenance
        return tuple(parts)

    def items(self) -> Iterator[Item]:
        """Yield the items of each source, one after the other."""
        ticks = 0
        for recording, source in enumerate(self.sources):
            before = ticks
            try:
                with source:
                    for item in source:
                        if isinstance(item, Frames):
                            ticks += len(item.speech)
                            yield _moved(item, before, recording)
                        else:
                            yield replace(item, recording=recording)
            except SourceError as error:
                yield Gap("broken file", None, recording, str(error))

    def close(self) -> None:
        """Close every source."""
        super().close()
        for source in self.sources:
            source.__exit__(None, None, None)


def _common_features(sources: Sequence[Source]) -> dict[str, FeatureSpec]:
    """Combine features of ready-made frames; a histogram is as long as the longest."""
    first, *others = sources
    common: Mapping[str, FeatureSpec] = first.stream_info.tracks
    for source in others:
        features: Mapping[str, FeatureSpec] = source.stream_info.tracks
        joined = {}
        for name, spec in features.items() if features.keys() == common.keys() else ():
            larger = max(spec, common[name], key=lambda feature: feature.size)
            if spec.kind.counted and spec.kind is larger.kind:
                spec = replace(spec, size=larger.size)
            if spec.like(larger):
                joined[name] = spec
        is_compatible = (source.stream_info.audio, source.stream_info.words) == (
            first.stream_info.audio,
            first.stream_info.words,
        )
        if joined.keys() != features.keys() or len(joined) != len(common) or not is_compatible:
            raise UsageError(
                f"{source.label} does not hold the same features as {first.label}; "
                "chain recordings of one kind"
            )
        if any(spec.network != common[name].network for name, spec in joined.items()):
            raise UsageError(
                f"{source.label} and {first.label} were heard by different networks; hear "
                "both again with this version"
            )
        common = joined
    return dict(common)


def _moved(frames: Frames, ticks: int, recording: int) -> Frames:
    """Shift frames by that many ticks."""
    tracks = {name: track.shifted(ticks) for name, track in frames.tracks.items()}
    gaps = tuple((tick + ticks, replace(gap, recording=recording)) for tick, gap in frames.gaps)
    notices = tuple((tick + ticks, notice) for tick, notice in frames.notices)
    return Frames(frames.speech, tracks, gaps, recording, notices)


def note_of(transcript: Transcript, seconds: float | None = None) -> TranscriptNote:
    """Make the note of a transcript; ``seconds``: the recording's end, None where unknown."""
    named = transcript.speakers
    late = "" if seconds is None else transcript.beyond(seconds)
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
    """Source that adds words and ready-made frames before the audio in which they count.

    So it does not matter how the recording is cut into blocks. What was timed after the end of the
    recording is dropped; a word that ended within it and was known later counts at its end (of a
    live source it is too late then).

    Args:
        source: one recording, of audio or of frames.
        words: timed words, or a transcript, as of `monitor.transcripts.read_transcript`.
        frames: a file of ready-made frames; its decisions on speech are not used.
        start_seconds: where the recording begins on the clock of the other two.

    Raises:
        UsageError: there is nothing to lie beside it, or it brings the same itself.
        SourceError: the frames cannot be read; or a transcript lies after the end of the recording.

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
        frames_info = None if frames is None else FramesFile(frames).stream_info
        tracks = {} if frames_info is None else frames_info.tracks
        if words is None and not tracks:
            raise UsageError(f"nothing lies beside {source.label}: give words or frames")
        if (info.words and words is not None) or info.tracks.keys() & tracks.keys():
            raise UsageError(f"{source.label} brings the same itself; leave it out beside it")
        self.stream_info = replace(
            info,
            words=info.words or words is not None,
            tracks={**info.tracks, **tracks},
            noise=info.noise or (frames_info.noise if frames_info is not None else ""),
        )
        first = round(start_seconds * TICKS_PER_SECOND)
        if isinstance(words, Transcript):
            end = None
            if source.seconds is not None and not info.cut:
                end = start_seconds + source.seconds
            self.transcripts, words = (note_of(words, end),), words.words()
        self.words = None if words is None else _moved_words(words, first)
        file_tracks = {} if frames is None else read_frames(frames).tracks
        self._tracks = {name: _moved_track(track, first) for name, track in file_tracks.items()}

    def items(self) -> Iterator[Item]:
        """Yield the recording, with the words and frames that belong to it."""
        clock, emitted, recording = _Clock(), 0, 0
        waiting: list[Item] = []  # it may be the last
        for item in self.source:
            if isinstance(item, Block | Frames):
                if item.recording != recording and emitted:
                    raise UsageError("put each recording's words beside it, and then chain them")
                yield from waiting
                waiting.clear()
                recording = item.recording
                ticks = clock.after(item)
                yield from self._due(emitted, ticks, recording)
                emitted = ticks
            waiting.append(item)
            if self.stream_info.live:  # nobody may wait
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
                yield replace(_select_words(self.words, is_due), recording=recording)
        tracks = {}
        for name, track in self._tracks.items():
            due = track.within(low, high)
            if due.ticks.size or due.early is not None:
                tracks[name] = due
        if tracks:
            yield Tracks(tracks, recording)

    def _late(self, end: int, recording: int) -> Words | None:
        """Words of the recording that were known when it was over."""
        if self.words is None:
            return None
        is_late = (self.words.known > end) & (self.words.ends <= end)
        late = _select_words(self.words, is_late)
        known_at = np.full(len(late.texts), end)
        return replace(late, known=known_at, recording=recording) if late.texts else None


class _Clock:
    """Count of ticks gone by, as the monitor counts them."""

    def __init__(self) -> None:
        self._before = self._samples = self._rate = 0

    def after(self, item: Block | Frames) -> int:
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
    path: str | os.PathLike[str],
    choice: TranscriptChoice = LIES_BESIDE,
    *,
    own: str | None = None,
    start_seconds: float = 0.0,
) -> SideInputSource:
    """Combine a recording with its words: of ``talk.vtt`` beside ``talk.flac``, or as chosen.

    ``own`` is what the speaker is called elsewhere, as of `TranscriptChoice.read`; the source
    begins at ``start_seconds`` of the file.
    """
    transcript = choice.read(Path(path), own=own)
    return SideInputSource(source, words=transcript, start_seconds=start_seconds)


def _moved_words(words: Words, first: int) -> Words:
    remaining = _select_words(words, words.begins >= first)
    return replace(
        remaining,
        begins=remaining.begins - first,
        ends=remaining.ends - first,
        known=remaining.known - first,
    )


def _select_words(words: Words, is_selected: AnyArray) -> Words:
    texts = tuple(
        text for text, keep in zip(words.texts, is_selected.tolist(), strict=True) if keep
    )
    return Words(
        texts,
        words.begins[is_selected],
        words.ends[is_selected],
        words.known[is_selected],
        words.recording,
    )


def _moved_track(track: Track, first: int) -> Track:
    """Cut a track to begin at a tick; a frame made of earlier audio is left out."""
    begins = track.ticks - 1 if track.spans is None else track.spans[:, 0]
    return track.some(begins >= first).shifted(-first)


_ENDED_TICKS = TICKS_PER_SECOND  # by which the audio goes on: not both were stopped at once


class LiveWords(WrappedLiveSource):
    """Live source that adds words as they come, each before the audio in which it counts.

    Times of words are those of the received audio, from its first sample on. A word that comes late
    counts from when it comes; one that comes when the audio is over counts at its end. Where the
    words end, and the audio goes on for a second, the stream has a gap ``"words ended"``, once.
    ``speaker`` is whose words these are, where one is chosen.
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
        """Yield the audio, with the words that have come."""
        self._ticks = self._first = self._recording = 0
        samples = 0
        ended: int | None = None  # when the last word had come
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
                    line = f"no more words come: style stands still from {since}"
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
