"""Starts within a recording: each is extracted as a stream that begins there."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np

from monitor.features.extractor import Extractor
from monitor.features.framing import join_runs
from monitor.kinds import FeatureSpec
from monitor.protocols import Feature
from monitor.stream.accumulator import FrameAccumulator
from monitor.types import TICKS_PER_SECOND, AnyArray, Block, BoolArray, Frames, IntArray, Starts

START_SECONDS = 5  # speech extracted from each start; later frames are those of the recording
EVERY_SECONDS = 20
"""Speech between two starts in the first 80 s; later a quarter of the speech so far."""
_GROWTH = 4
_LEAD_TICKS = 50  # longest pause before the first word of a start
_PATIENCE_TICKS = 500  # of speech without a pause, after which a start cuts into a word


class StartListener:
    """Extractor of streams that begin within a recording, beside its own extraction.

    The first start is the recording's own, with its frames. Each other start precedes a word that
    follows a pause.

    Args:
        features: features of audio, which are copied.
        channel: counted from 0; None for the mean of all channels.
    """

    def __init__(self, features: Sequence[Feature], channel: int | None = None) -> None:
        self._features, self._channel = deepcopy(list(features)), channel
        self._sound: AnyArray | None = None  # the latest samples
        self._first = 0  # index of the first of them in the recording
        self._key = (0, 0)
        self._speech: BoolArray = np.empty(0, np.bool_)
        self._next = EVERY_SECONDS * TICKS_PER_SECOND  # ticks of speech before the next start
        self._first_head = self._head_at(0, 0)
        self._head: _Head | None = None
        self._heads: list[_Head] = []

    def push(self, block: Block, run: Frames) -> None:
        """Process the next block of the recording, with its frames."""
        self.keep(run)
        samples = np.asarray(block.samples)
        if self._sound is None:
            self._key, self._sound = (block.recording, block.rate), samples[:0]
        if self._key != (block.recording, block.rate):
            return
        self._sound = np.concatenate((self._sound, samples))
        self._speech = np.concatenate((self._speech, run.speech))
        while self._advance():
            pass
        if self._head is None:
            self._drop_before(self._sample_at(max(0, self._speech.size - 2 * _LEAD_TICKS)))
        else:
            self._drop_before(self._head.next_sample)

    def keep(self, run: Frames) -> None:
        """Keep frames of the recording as those of its own start."""
        if not self._first_head.is_complete:
            tracks = {f.spec.name: run.tracks[f.spec.name] for f in self._features}
            self._first_head.keep(Frames(run.speech, tracks))

    def finish(self) -> Starts:
        """End the recording; return its starts."""
        if self._head is not None:
            self._head.end()
            self._heads.append(self._head)
        heads = [head for head in (self._first_head, *self._heads) if head.has_frames]
        frames = [head.frames() for head in heads]
        ends = np.cumsum([start.speech.size for start in frames], dtype=np.int64)
        tracks = {feature.spec.name: feature.spec.no_frames() for feature in self._features}
        if frames:
            begins = [0, *ends[:-1].tolist()]
            moved = [start.shifted(begin) for start, begin in zip(frames, begins, strict=True)]
            joined = join_runs(moved)
        else:
            joined = Frames(np.empty(0, np.bool_), tracks)
        return Starts(np.array([head.tick for head in heads], np.int64), ends, joined)

    def _advance(self) -> bool:
        """Extract the current start, or the next, as far as possible; True if it is complete."""
        assert self._sound is not None
        if self._head is None:
            tick = self._find_next()
            if tick is None:
                return False
            self._head = self._head_at(tick, self._sample_at(tick))
        head, rate = self._head, self._key[1]
        while not head.is_complete:
            begin = head.next_sample - self._first
            # the number of missing samples if all of them are speech
            minimum = head.missing_ticks * rate // TICKS_PER_SECOND
            samples = self._sound[begin : begin + max(minimum, rate // 2)]
            if not len(samples):
                return False
            head.push(Block(samples, rate, self._key[0]))
        self._heads.append(head)
        self._head = None
        spoken = int(self._speech[: head.tick].sum())
        self._next = spoken + max(EVERY_SECONDS * TICKS_PER_SECOND, spoken // _GROWTH)
        return True

    def _find_next(self) -> int | None:
        """Find the tick of the next start; None if it is not known yet."""
        before: IntArray = np.cumsum(self._speech) - self._speech
        begins = self._speech & ~np.concatenate(([True], self._speech[:-1]))
        places = np.flatnonzero(
            (begins & (before >= self._next)) | (before >= self._next + _PATIENCE_TICKS)
        )
        if not places.size:
            return None
        word = int(places[0])
        spoken = np.flatnonzero(self._speech[:word])
        return max(word - _LEAD_TICKS, int(spoken[-1]) + 1)

    def _head_at(self, tick: int, sample: int) -> _Head:
        return _Head(Extractor(self._features, self._channel), tick, sample)

    def _sample_at(self, tick: int) -> int:
        return round(tick * self._key[1] / TICKS_PER_SECOND)

    def _drop_before(self, sample: int) -> None:
        assert self._sound is not None
        count = min(max(0, sample - self._first), len(self._sound))
        self._sound = self._sound[count:].copy()
        self._first += count


class _Head:
    """One start, extracted as a separate stream."""

    def __init__(self, extractor: Extractor, tick: int, sample: int) -> None:
        self.tick, self.next_sample = tick, sample
        self._extractor = extractor
        self._runs: list[Frames] = []
        self._speech = 0

    @property
    def missing_ticks(self) -> int:
        return START_SECONDS * TICKS_PER_SECOND - self._speech

    @property
    def is_complete(self) -> bool:
        return self.missing_ticks <= 0

    def push(self, block: Block) -> None:
        self.next_sample += len(block.samples)
        self.keep(self._extractor.process(block))

    def end(self) -> None:
        self.keep(self._extractor.flush())

    @property
    def has_frames(self) -> bool:
        return any(run.speech.size for run in self._runs)

    def keep(self, run: Frames) -> None:
        self._runs.append(run)
        self._speech += int(run.speech.sum())

    def frames(self) -> Frames:
        """Return the frames that are complete after `START_SECONDS` of speech."""
        joined = join_runs(self._runs)
        spoken: IntArray = np.cumsum(joined.speech)
        end = int(np.searchsorted(spoken, START_SECONDS * TICKS_PER_SECOND)) + 1
        return joined.between(0, min(end, spoken.size))


@dataclass(frozen=True, slots=True)
class HeardStart:
    """Frames of one feature in a stream that begins within a session."""

    frames: Frames  # of the stream, with one track
    spec: FeatureSpec  # of the feature
    spoken: IntArray  # shape (n,), ticks of speech until each tick of the frames
    resumes: int  # ticks of speech of the session, from the start to ``end``
    covered: int  # ticks of speech in whole frames
    end: int  # tick of the stream after which frames of the session follow
    _totals: dict[int, AnyArray] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def from_frames(
        cls, frames: Frames, spec: FeatureSpec, clock: IntArray, is_long: bool
    ) -> HeardStart:
        """Take the frames of a start.

        Args:
            frames: frames of the start, of all features.
            spec: spec of this feature.
            clock: ticks of speech of the session, at the start and after each further tick.
            is_long: whether frames take seconds. The session then continues an incomplete one.
        """
        spoken: IntArray = np.cumsum(frames.speech)
        covered = end = int(spoken[-1]) if spoken.size else 0
        if end:
            end = _tick_of(spoken, end)
        track = frames.tracks[spec.name]
        if is_long:
            ends = track.ticks[track.ticks <= end]
            covered = round(len(ends) * spec.frame_seconds * TICKS_PER_SECOND)
            end = int(ends[-1]) if len(ends) else 0
        resumes = int(clock[min(end, clock.size - 1)] - clock[0])
        feature_frames = Frames(frames.speech, {spec.name: track})
        return cls(feature_frames, spec, spoken, resumes, covered, end)

    @property
    def length(self) -> int:
        """Ticks of speech in the stream."""
        return int(self.spoken[-1]) if self.spoken.size else 0

    def total(self, spoken: int) -> AnyArray:
        """Compute the total after ``spoken`` ticks of speech, with any early frame.

        Frames that are complete later do not count.
        """
        if spoken not in self._totals:
            stream = FrameAccumulator({self.spec.name: self.spec})
            stream.add(self.frames)
            running = stream.moments([_tick_of(self.spoken, spoken)]).totals[self.spec.name]
            early = 0 if running.early is None else running.early[0]
            self._totals[spoken] = np.asarray(running.totals[0] + early)
        return self._totals[spoken]

    def whole(self) -> AnyArray:
        """Compute the total of the whole frames that are complete by ``end``."""
        if 0 not in self._totals:
            track, kind = self.frames.tracks[self.spec.name], self.spec.kind
            addends = kind.addends(track.values[track.ticks <= self.end])
            self._totals[0] = kind.added(addends, self.spec.size)
        return self._totals[0]


def _tick_of(spoken: IntArray, ticks: int) -> int:
    """Return the first tick after which there are ``ticks`` of speech."""
    return int(np.searchsorted(spoken, ticks)) + 1
