"""Load shedding: where the machine is too slow for a live source, a feature skips audio."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from monitor.features.registry import make
from monitor.managed import Managed
from monitor.protocols import Feature, LiveSource
from monitor.types import TICKS_PER_SECOND, Block, FloatArray, Frames, Gap, Track, Tracks, Words

__all__ = ["LoadShedding", "OnBothSides", "Timed", "timed"]

LATE_SECONDS = 2.0
"""Audio that may wait before a feature is thinned."""
PATIENCE_SECONDS = 3.0
"""Wall seconds in which a machine that merely stood still would have caught up."""
LEAST_SECONDS = 4.0
"""Of audio that a thinned feature does not hear."""
BUSY = 0.7
"""Wall seconds for a second of audio that leave no time to catch up in."""
TOO_LATE_SECONDS = 10.0
"""Whatever the features cost, this is too much."""
_MEMORY = 0.98  # a second: what a feature costs is remembered for some 50 s of audio


class Timed:
    """A feature that knows what it costs, and can be told to leave out some audio.

    Frames are those of the feature itself, as long as it is not thinned.

    Args:
        feature: any feature.
        clock: wall seconds.
    """

    def __init__(self, feature: Feature, clock: Callable[[], float] = time.perf_counter) -> None:
        self.spec, self.follow = feature.spec, feature.follow
        self._rate = feature.spec.rate or 1
        self._feature, self._clock = feature, clock
        self._spent = self._heard = 0.0  # wall and audio seconds, fading
        self._samples = 0  # since the last reset
        self._until = 0.0  # audio seconds since then to which it is thinned

    @property
    def cost(self) -> float:
        """Wall seconds for a second of audio, lately and when not thinned."""
        return self._spent / self._heard if self._heard else 0.0

    @property
    def thinned(self) -> bool:
        """Whether it leaves out what comes next."""
        return self._samples / self._rate < self._until

    def thin(self, seconds: float) -> None:
        """Leave out the frames that the next seconds of audio complete."""
        self._until = self._samples / self._rate + seconds
        self._feature.skip_to(round(self._until * TICKS_PER_SECOND))

    def process(self, samples: FloatArray) -> Track:
        """As of the feature."""
        thinned, began = self.thinned, self._clock()
        track = self._feature.process(samples)
        seconds = samples.size / self._rate
        self._samples += samples.size
        if not thinned:
            fading = _MEMORY**seconds
            self._spent = fading * self._spent + self._clock() - began
            self._heard = fading * self._heard + seconds
        return track

    def flush(self) -> Track:
        """As of the feature."""
        return self._feature.flush()

    def skip_to(self, tick: int) -> None:
        """As of the feature."""
        self._feature.skip_to(tick)

    def reset(self) -> None:
        """As of the feature; it is not thinned any more."""
        self._samples, self._until = 0, 0.0
        self._feature.reset()


class OnBothSides:
    """A feature that hears two sides of one stream, and leaves out the same of both.

    Args:
        clear, protected: the feature of each side.
    """

    def __init__(self, clear: Timed, protected: Timed) -> None:
        self.spec, self._sides = clear.spec, (clear, protected)

    @property
    def cost(self) -> float:
        """Wall seconds for a second of audio, of both."""
        return sum(side.cost for side in self._sides)

    @property
    def thinned(self) -> bool:
        """Whether either leaves out what comes next."""
        return any(side.thinned for side in self._sides)

    def thin(self, seconds: float) -> None:
        """Leave out the frames that the next seconds of audio complete."""
        for side in self._sides:
            side.thin(seconds)


class LoadShedding(Managed):
    """A live source; when the listener falls behind, the slowest feature is thinned.

    More than two seconds of audio that waits, for three seconds on end, are too much: the feature
    that costs most leaves out all that waits, at least four seconds. Where the others alone are too
    slow as well, the next of them follows at four seconds that wait, else at ten. Each time the
    stream has a gap ``"thinned"`` with the seconds left out. A machine that stood still for a
    while, asleep or busy, and then catches up, thins nothing.

    Args:
        source: a live source.
        features: what hears it.
        clock: wall seconds.
    """

    def __init__(
        self,
        source: LiveSource,
        features: Sequence[Timed | OnBothSides],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source, self._features, self._clock = source, tuple(features), clock
        self._late_since: float | None = None
        self.label, self.brings = source.label, source.brings

    @property
    def seconds(self) -> float | None:
        """Audio seconds promised."""
        return self._source.seconds

    @property
    def waiting_seconds(self) -> float:
        """Audio that was heard and not yet taken."""
        return self._source.waiting_seconds

    def behind_seconds(self, seconds: float) -> float:
        """Wall seconds since that second of the stream was heard."""
        return self._source.behind_seconds(seconds)

    def stop(self) -> None:
        """End the stream after what was heard so far."""
        self._source.stop()

    def __iter__(self) -> Iterator[Block | Frames | Gap | Words | Tracks]:
        for item in self._source:
            gap = self._thin(self._source.waiting_seconds)
            if gap is not None:
                yield gap
            yield item

    def _thin(self, waiting: float) -> Gap | None:
        able = [feature for feature in self._features if not feature.thinned]
        if not able or waiting <= self._most(able):
            self._late_since = None
            return None
        now = self._clock()
        if self._late_since is None:
            self._late_since = now
        if now - self._late_since < PATIENCE_SECONDS:
            return None
        self._late_since = None
        slowest = max(able, key=lambda feature: feature.cost)
        seconds = max(LEAST_SECONDS, waiting)
        slowest.thin(seconds)
        return Gap(
            "thinned",
            seconds,
            detail=f"{slowest.spec.name} leaves out {seconds:.1f} s: this machine cannot keep up",
        )

    def _most(self, able: Sequence[Timed | OnBothSides]) -> float:
        """How much audio may wait before one more feature is thinned."""
        if len(able) == len(self._features):
            return LATE_SECONDS
        # without those thinned already it will catch up, unless the others cost too much as well
        return (
            TOO_LATE_SECONDS if sum(feature.cost for feature in able) < BUSY else 2 * LATE_SECONDS
        )

    def close(self) -> None:
        """Close the source."""
        self._source.__exit__(None, None, None)


def timed(names: Iterable[str]) -> list[Timed]:
    """The features of these names, for live use."""
    return [Timed(feature) for feature in make(names)]
