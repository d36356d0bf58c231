"""A recording, and what somebody else timed in it, as one stream on the recording's clock."""

from __future__ import annotations

import os
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np

from monitor.errors import UsageError
from monitor.managed import Managed
from monitor.protocols import Source
from monitor.sources.frames import FramesFile, read_frames
from monitor.sources.provenance import Provenance, stated_provenance
from monitor.sources.transcript_note import TranscriptNote, note_of
from monitor.transcripts.choice import LIES_BESIDE, TranscriptChoice
from monitor.transcripts.transcript import Transcript
from monitor.types import TICKS_PER_SECOND, AnyArray, Block, Frames, Gap, Track, Tracks, Words

__all__ = ["Beside", "with_words"]


class Beside(Managed):
    """Gives words and ready-made frames in time: each before the audio in which it counts.

    So it does not matter how the recording is cut into blocks. What was timed after the end of the
    recording is not heard; a word that ended within it and was known later counts at its end (of a
    live source it is too late then).

    Args:
        recording: one recording, of audio or of frames.
        words: timed words, or a transcript, as of `monitor.transcripts.read_transcript`.
        frames: a file of ready-made frames; its decisions on speech are not used.
        start_seconds: where the recording begins on the clock of the other two, as the
            ``start_seconds`` of a `File`.

    Attributes:
        label, seconds: of the recording.
        recording (Source): the recording.
        transcripts: notes on where the words are from, where that is known.

    Raises:
        UsageError: there is nothing to lie beside it, or it brings the same itself.
        SourceError: the file of frames cannot be read; or a transcript lies after the end of the
            recording.

    Example:
        >>> import io
        >>> from monitor.sources import Pipe
        >>> said = Words(("yes",), np.array([5]), np.array([9]), np.array([15]))
        >>> pipe = Pipe(io.BytesIO(bytes(6400)), raw=(16000, 1, "s16le"))
        >>> [type(item).__name__ for item in Beside(pipe, words=said)]
        ['Words', 'Block']
    """

    def __init__(
        self,
        recording: Source,
        *,
        words: Words | Transcript | None = None,
        frames: str | os.PathLike[str] | None = None,
        start_seconds: float = 0.0,
    ) -> None:
        own = recording.brings
        timed = None if frames is None else FramesFile(frames).brings
        tracks = {} if timed is None else timed.tracks
        if words is None and not tracks:
            raise UsageError(f"nothing lies beside {recording.label}: give words or frames")
        if (own.words and words is not None) or own.tracks.keys() & tracks.keys():
            raise UsageError(f"{recording.label} brings the same itself; leave it out beside it")
        self.label, self.recording = recording.label, recording
        self.brings = replace(
            own,
            words=own.words or words is not None,
            tracks={**own.tracks, **tracks},
            noise=own.noise or (timed.noise if timed is not None else ""),
        )
        first = round(start_seconds * TICKS_PER_SECOND)
        self.transcripts: tuple[TranscriptNote, ...] = ()
        if isinstance(words, Transcript):
            cut = getattr(recording, "end_seconds", None) is not None  # before its end
            end = None if cut or recording.seconds is None else start_seconds + recording.seconds
            self.transcripts, words = (note_of(words, end),), words.words()
        self._words = None if words is None else _moved_words(words, first)
        whole = {} if frames is None else read_frames(frames).tracks
        self._tracks = {name: _moved_track(track, first) for name, track in whole.items()}

    @property
    def seconds(self) -> float | None:
        """Audio seconds promised by the recording."""
        return self.recording.seconds

    @property
    def provenance(self) -> tuple[Provenance, ...] | None:
        """Of the recording, where it says so."""
        return stated_provenance(self.recording)

    @property
    def words(self) -> Words | None:
        """All of them, on the clock of the recording."""
        return self._words

    def __iter__(self) -> Iterator[Block | Frames | Gap | Words | Tracks]:
        clock, given, recording = _Clock(), 0, 0
        held: list[Block | Frames | Gap | Words | Tracks] = []  # it may be the last
        for item in self.recording:
            if isinstance(item, Block | Frames):
                if item.recording != recording and given:
                    raise UsageError("put each recording's words beside it, and then chain them")
                yield from held
                held.clear()
                recording = item.recording
                ticks = clock.after(item)
                yield from self._due(given, ticks, recording)
                given = ticks
            held.append(item)
            if self.brings.live:  # nobody may wait
                yield held.pop()
        late = self._late(given, recording)
        if late is not None:
            yield late
        yield from held

    def around(self, recording: Source) -> Beside:
        """The same words and frames beside another form of the recording, such as its frames."""
        made = copy(self)
        made.recording = recording
        return made

    def _due(self, low: int, high: int, recording: int) -> Iterator[Words | Tracks]:
        """What counts after one tick and up to another."""
        if self._words is not None:
            some = (self._words.known > low) & (self._words.known <= high)
            if some.any():
                yield replace(_some_words(self._words, some), recording=recording)
        tracks = {}
        for name, track in self._tracks.items():
            a, b = np.searchsorted(track.ticks, [low, high], side="right")
            if b > a:
                tracks[name] = _some(track, slice(a, b))
        if tracks:
            yield Tracks(tracks, recording)

    def _late(self, end: int, recording: int) -> Words | None:
        """Words of the recording that were known when it was over."""
        if self._words is None:
            return None
        some = (self._words.known > end) & (self._words.ends <= end)
        late = _some_words(self._words, some)
        known = np.full(len(late.texts), end)
        return replace(late, known=known, recording=recording) if late.texts else None

    def close(self) -> None:
        """Close the recording."""
        self.recording.__exit__(None, None, None)


class _Clock:
    """How many ticks have gone by, as the monitor counts them."""

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
) -> Beside:
    """A recording with its words: of ``talk.vtt`` beside ``talk.flac``, or as was chosen.

    Args:
        source: the recording, opened.
        path: its file.
        choice: which transcript, and whose words in it.
        own: what the speaker is called elsewhere, as of `TranscriptChoice.read`.
        start_seconds: where the source begins in the file.

    Raises:
        SourceError: there is no transcript, or it cannot be used.
    """
    transcript = choice.read(Path(path), own=own)
    return Beside(source, words=transcript, start_seconds=start_seconds)


def _moved_words(words: Words, first: int) -> Words:
    some = words.begins >= first
    kept = _some_words(words, some)
    return replace(
        kept, begins=kept.begins - first, ends=kept.ends - first, known=kept.known - first
    )


def _some_words(words: Words, some: AnyArray) -> Words:
    texts = tuple(text for text, own in zip(words.texts, some.tolist(), strict=True) if own)
    return Words(texts, words.begins[some], words.ends[some], words.known[some], words.recording)


def _moved_track(track: Track, first: int) -> Track:
    """From a tick on; a frame that was made of what lay before it is left out."""
    begins = track.ticks - 1 if track.spans is None else track.spans[:, 0]
    kept = _some(track, begins >= first)
    spans = None if kept.spans is None else kept.spans - first
    return Track(kept.ticks - first, kept.values, spans)


def _some(track: Track, which: AnyArray | slice) -> Track:
    spans = None if track.spans is None else track.spans[which]
    return Track(track.ticks[which], track.values[which], spans)
