"""The streaming monitor: audio or frames in, readings out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from monitor.errors import StoreError, UsageError
from monitor.maths.composition import guides
from monitor.maths.sketch import AnySketch, make_sketch
from monitor.population.law import Laws
from monitor.population.population import Population
from monitor.protocols import Source
from monitor.stream.reading import Reading
from monitor.stream.recogniser import Recogniser
from monitor.types import TICKS_PER_SECOND, AnyArray, Block, Frames, Gap

if TYPE_CHECKING:
    from monitor.features.extractor import Extractor

__all__ = ["GapEvent", "Monitor"]


@dataclass(frozen=True, slots=True)
class GapEvent:
    """A loss, placed on the stream: ``seconds`` is where it was noticed."""

    seconds: float
    gap: Gap


class Monitor:
    """Follows one voice and says, second by second, how many bits of identity it has disclosed.

    Args:
        population: the N enrolled speakers, with rank laws.
        features: names; None takes every feature that the population has a law for, together.
        watch: the enrolled speaker to follow. Without one the headline is the attacker's confidence,
            which assumes that the speaker is enrolled.
        step_seconds: audio seconds from one reading to the next, a multiple of 0.01.
        session: ``"cross"``, or ``"same"`` where the templates come from this very recording.
        laws: laws to use instead of the population's own.
        template_seconds: D to cut all templates to; None for their common length.
        channel: the channel to hear, counted from 1; None mixes all of them.

    Example:
        >>> from monitor import Monitor, Population
        >>> from monitor.types import Frames, Track
        >>> monitor = Monitor(Population.reference())
        >>> voice = Track(np.arange(1, 101), np.full(100, 40))  # one second, one steady pitch
        >>> reading, = monitor.push(Frames(np.ones(100, dtype=bool), {"f0": voice}))
        >>> reading.seconds, reading.speech, 0 <= reading.bits <= reading.ceiling
        (1.0, 1.0, True)
    """

    def __init__(
        self,
        population: Population,
        features: Sequence[str] | None = None,
        watch: str | None = None,
        *,
        step_seconds: float = 1.0,
        session: str = "cross",
        laws: Laws | None = None,
        template_seconds: float | None = None,
        channel: int | None = None,
    ) -> None:
        step = round(step_seconds * TICKS_PER_SECOND)
        if step < 1 or abs(step_seconds * TICKS_PER_SECOND - step) > 1e-6:
            raise UsageError(f"step_seconds={step_seconds:g} must be a positive multiple of 0.01")
        self.population = population
        self.recogniser = Recogniser(
            population,
            features if features is not None else _all_features(population, laws),
            watch,
            session=session,
            laws=laws,
            template_seconds=template_seconds,
        )
        self.watch = watch
        self.features = self.recogniser.features
        self.step_seconds = step / TICKS_PER_SECOND
        self._step = step
        self._channel = channel
        self._extractor: Extractor | None = None
        self._sketches: dict[str, AnySketch] = {}
        self.reset()

    def reset(self) -> None:
        """Forget the stream; the next block starts a new one."""
        self._sketches = {
            name: make_sketch(
                self.population.features[name].kind, self.population.features[name].size
            )
            for name in self.features
        }
        self._arrived = 0  # ticks that came in
        self._tick = 0  # ticks that were learnt
        self._speech = 0
        self._read = 0  # tick of the last reading
        self._peak = 0.0
        self._extractor = None

    def stream(self, source: Source) -> Iterator[Reading]:
        """Hear a source to its end.

        Yields:
            a reading every ``step_seconds`` of audio, and one at the end for the rest.
        """
        for event in self.events(source):
            if isinstance(event, Reading):
                yield event

    def events(self, source: Source) -> Iterator[Reading | GapEvent]:
        """As ``stream``, with the losses between the readings."""
        for block in source:
            yield from self._take(block)
        yield from self._end()

    def push(self, block: Block | Frames) -> list[Reading]:
        """Hear one more block, of any length.

        Returns:
            the readings that fell due: none, one or many.
        """
        return [event for event in self._take(block) if isinstance(event, Reading)]

    def finish(self) -> list[Reading]:
        """The stream is over: the reading for what came after the last one, if anything did."""
        return [event for event in self._end() if isinstance(event, Reading)]

    def _take(self, block: Block | Frames | Gap) -> Iterator[Reading | GapEvent]:
        if isinstance(block, Gap):
            # what a resumed run told already is not told twice
            if self._arrived >= self._tick:
                yield GapEvent(self._arrived / TICKS_PER_SECOND, block)
        elif isinstance(block, Frames):
            yield from self._advance(block)
        else:
            yield from self._advance(self._hear().process(block))

    def _end(self) -> Iterator[Reading | GapEvent]:
        if self._extractor is not None:
            yield from self._advance(self._extractor.flush())
        if self._tick > self._read:
            yield self._reading()

    def _hear(self) -> Extractor:
        if self._extractor is None:
            # resampling and voice activity need libraries that ready-made frames do not
            from monitor.features.extractor import Extractor
            from monitor.features.registry import make

            self._extractor = Extractor(
                make(self.features), None if self._channel is None else self._channel - 1
            )
            self._extractor.skip_to(self._tick)
        return self._extractor

    def _advance(self, frames: Frames) -> Iterator[Reading | GapEvent]:
        start, end = self._arrived, self._arrived + frames.speech.shape[0]
        self._arrived = end
        clock = np.concatenate([[0], np.cumsum(frames.speech)])
        gaps = [(tick, gap) for tick, gap in frames.gaps if tick > self._tick]
        known = {
            name: int(np.searchsorted(track.ticks, self._tick, side="right"))
            for name, track in frames.tracks.items()
            if name in self._sketches
        }
        while self._tick < end:
            stop = min(end, self._read + self._step)
            for name, place in known.items():
                track = frames.tracks[name]
                until = int(np.searchsorted(track.ticks, stop, side="right"))
                self._sketches[name].learn_many(track.values[place:until])
                known[name] = until
            self._speech += int(clock[stop - start] - clock[max(self._tick - start, 0)])
            self._tick = stop
            while gaps and gaps[0][0] <= stop:
                tick, gap = gaps.pop(0)
                yield GapEvent(tick / TICKS_PER_SECOND, gap)
            if stop == self._read + self._step:
                yield self._reading()

    def _reading(self) -> Reading:
        self._read = self._tick
        recogniser = self.recogniser
        speech = self._speech / TICKS_PER_SECOND
        made = recogniser.assess(self._sketches, speech)
        heard = any(sketch.frames for sketch in self._sketches.values())
        expected = recogniser.joint.expected
        linear, root = guides(
            speech if heard else 0.0,
            float(recogniser.joint.law.lengths[0]),
            expected.first_bits,
            recogniser.ceiling,
        )
        headline = made.local if self.watch is not None else made.gain
        if self.watch is not None:
            parts = [feature.local for feature in made.features.values()]
        else:
            parts = [feature.gain for feature in made.features.values()]
        total = None if any(p is None for p in parts) else sum(p.value for p in parts if p)
        if headline is not None:
            self._peak = max(self._peak, headline.value)
        value, low, high = headline if headline is not None else (None, None, None)
        return Reading(
            seconds=self._tick / TICKS_PER_SECOND,
            speech=speech,
            bits=value,
            bits_low=low,
            bits_high=high,
            gain=made.gain,
            local=made.local,
            expected=made.expected,
            sum_bits=total,
            peak_bits=self._peak,
            ceiling=recogniser.ceiling,
            plateau=expected.plateau_bits,
            guides=(float(linear), float(root)),
            session=recogniser.session,
            assumes_enrolled=self.watch is None,
            beyond_grid=made.beyond_grid,
            features=made.features,
            names=recogniser.names,
            posterior=made.posterior,
            withheld=recogniser.withheld,
        )

    def state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """Everything needed to go on after the last reading: plain values and arrays."""
        plain = {
            "tick": self._tick,
            "speech": self._speech,
            "read": self._read,
            "peak": self._peak,
            "frames": {name: sketch.frames for name, sketch in self._sketches.items()},
        }
        return plain, {f"sketch/{name}": s.total for name, s in self._sketches.items()}

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> None:
        """Take up a ``state``; the stream must then be fed from its first sample again.

        Raises:
            StoreError: the state is of other features.
        """
        self.reset()
        for name, sketch in self._sketches.items():
            total = arrays.get(f"sketch/{name}")
            if total is None or total.shape != sketch.total.shape:
                raise StoreError(f"the checkpoint does not fit: it has no sketch of {name!r}")
            sketch.total[:] = total
            sketch.frames = int(plain["frames"][name])
        self._tick, self._speech = int(plain["tick"]), int(plain["speech"])
        self._read, self._peak = int(plain["read"]), float(plain["peak"])


def _all_features(population: Population, laws: Laws | None) -> tuple[str, ...]:
    """The largest set of features that there is a law for."""
    sets = [law.features for law in (laws if laws is not None else population.laws)]
    if not sets:
        raise StoreError(
            "the population has no rank law; learn one with: "
            "monitor calibrate CORPUS -o POPULATION.npz"
        )
    return max(sets, key=len)
