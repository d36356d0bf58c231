"""A start within a session: the frames of one feature that a live stream has from there."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from monitor.kinds import FeatureSpec
from monitor.stream.accumulator import FrameAccumulator
from monitor.types import TICKS_PER_SECOND, AnyArray, Frames, IntArray


@dataclass(frozen=True, slots=True)
class HeardStart:
    """Frames of one feature in a stream that begins within a session.

    Attributes:
        frames: of that stream, one track.
        spec: of the feature.
        spoken: shape (n,), ticks of speech by each of their ticks.
        resumes: ticks of speech of the session, from the start to ``end``.
        covered: ticks of speech that the whole frames here stand for.
        end: tick of the stream after which frames of the session follow.
    """

    frames: Frames
    spec: FeatureSpec
    spoken: IntArray
    resumes: int
    covered: int
    end: int
    _totals: dict[int, AnyArray] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def of(cls, frames: Frames, spec: FeatureSpec, clock: IntArray, is_long: bool) -> HeardStart:
        """Take the frames of a start.

        Args:
            frames: of the start, of all features.
            spec: of the one.
            clock: ticks of speech of the session, at the start and after each further tick.
            is_long: a frame takes seconds: the session supplies one that is not complete.
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
        own = Frames(frames.speech, {spec.name: track})
        return cls(own, spec, spoken, resumes, covered, end)

    @property
    def length(self) -> int:
        """Ticks of speech in the stream."""
        return int(self.spoken[-1]) if self.spoken.size else 0

    def total(self, spoken: int) -> AnyArray:
        """Compute the total when the clock reads ``spoken`` ticks, with any early frame.

        Frames that are complete later, however little, do not count.
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
    """Return the first tick at which a clock of speech reads ``ticks``."""
    return int(np.searchsorted(spoken, ticks)) + 1
