"""The streaming monitor: audio or frames in, readings out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from monitor.errors import StoreError, UsageError
from monitor.features.tracks import join_tracks
from monitor.maths.composition import guides
from monitor.maths.sketch import AnySketch, make_sketch
from monitor.population.law import Laws
from monitor.population.population import Population
from monitor.protocols import Source
from monitor.stream.losses import GapEvent, Losses
from monitor.stream.reading import Reading
from monitor.stream.recogniser import Recogniser
from monitor.types import TICKS_PER_SECOND, AnyArray, Block, BoolArray, Frames, Gap, Track

if TYPE_CHECKING:
    from monitor.stream.hearing import Hearing

__all__ = ["GapEvent", "Monitor"]


class Monitor:
    """Follows one voice and says, second by second, how many bits of identity it has disclosed.

    Args:
        population: the N enrolled speakers, with rank laws.
        features: names; None takes every feature that the population has a law for, together.
        watch: the enrolled speaker to follow. Without one the headline is the attacker's
            confidence, which assumes that the speaker is enrolled.
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
        step = round(step_seconds * TICKS_PER_SECOND) if math.isfinite(step_seconds) else 0
        if step < 1 or abs(step_seconds * TICKS_PER_SECOND - step) > 1e-6:
            raise UsageError(f"step_seconds={step_seconds:g} must be a positive multiple of 0.01")
        if channel is not None and channel < 1:
            raise UsageError(f"channel={channel} must be 1 or more: channels are counted from 1")
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
        self.session = session
        self.borrowed = population.borrowed or laws is not None
        self.features = self.recogniser.features
        self.step_seconds = step / TICKS_PER_SECOND
        self._step = step
        self._channel = channel
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
        self._ahead: BoolArray = np.empty(0, np.bool_)  # decisions on the ticks between the two
        self._early: dict[str, Track] = {}  # frames that came before their tick
        self._speech = 0
        self._read = 0  # tick of the last reading
        self._peak = 0.0
        self._losses = Losses()
        self._hearing: Hearing | None = None

    def stream(self, source: Source) -> Iterator[Reading]:
        """Hear a source to its end.

        Yields:
            a reading every ``step_seconds`` of audio, and one at the end for the rest.
        """
        for event in self.events(source):
            if isinstance(event, Reading):
                yield event

    def events(self, source: Source) -> Iterator[Reading | GapEvent]:
        """As ``stream``, with the losses between the readings.

        Raises:
            UsageError: the source brings frames, and not those of the population.
        """
        self.check(source)
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

    def check(self, source: Source) -> None:
        """See to it that ready-made frames are those that the templates were made of.

        Raises:
            UsageError: they are not.
        """
        given: Mapping[str, tuple[int, str, float]] = getattr(source, "features", {})
        for name in self.features if given else ():
            if name not in given:
                raise UsageError(
                    f"{source.label} holds no frames of {name}, only of {', '.join(given)}; "
                    "choose others (--features)"
                )
            size, kind, _ = given[name]
            own = self.population.features[name]
            if kind != own.kind or size > own.size:
                raise UsageError(
                    f"{source.label}: {name} comes as {kind} of size {size}, the population has it "
                    f"as {own.kind} of size {own.size}; make both with the same program"
                )

    def _take(self, block: Block | Frames | Gap) -> Iterator[Reading | GapEvent]:
        if isinstance(block, Gap):
            self._losses.add(self._arrived if self._hearing is None else self._hearing.ticks, block)
            yield from self._losses.due(self._tick)
        elif isinstance(block, Frames):
            if self._hearing is not None:
                raise UsageError("a stream is of audio or of ready-made frames, not of both")
            yield from self._advance(block)
        else:
            yield from self._advance(self._hear().process(block))

    def _hear(self) -> Hearing:
        if self._hearing is None:
            if self._arrived:
                raise UsageError("a stream is of audio or of ready-made frames, not of both")
            # resampling and voice activity need libraries that ready-made frames do not
            from monitor.stream.hearing import Hearing

            self._hearing = Hearing(self.features, self._channel, self._tick)
        return self._hearing

    def _end(self) -> Iterator[Reading | GapEvent]:
        if self._hearing is not None:
            yield from self._advance(self._hearing.flush())
        yield from self._losses.due(self._tick, last=True)
        if self._tick > self._read:
            for name, track in self._early.items():  # what came after its tick, at the very end
                self._sketches[name].learn_many(track.values)
            self._early = {}
            yield self._reading()

    def _advance(self, frames: Frames) -> Iterator[Reading | GapEvent]:
        start = self._arrived
        self._arrived += frames.speech.shape[0]
        unheard = frames.speech[max(self._tick - start, 0) :]  # all, unless resumed further on
        self._ahead = np.concatenate((self._ahead, unheard))
        for name, track in frames.tracks.items():
            if name in self._sketches:
                # features run ahead of the clock, or come after it at a recording's end
                fresh = Track(np.maximum(track.ticks, start + 1), track.values)
                early = self._early.get(name)
                self._early[name] = fresh if early is None else join_tracks(early, fresh)
        for tick, gap in frames.gaps:
            self._losses.add(max(tick, start + 1), gap)
        yield from self._losses.due(self._tick)
        while self._ahead.size:
            due = self._read + self._step
            count = min(due - self._tick, self._ahead.size)
            self._learn(self._tick + count)
            yield from self._losses.due(self._tick)
            if self._tick == due:
                yield self._reading()
        self._tidy()

    def _learn(self, tick: int) -> None:
        """Learn everything up to a tick."""
        for name, track in self._early.items():
            first, last = np.searchsorted(track.ticks, [self._tick, tick], side="right")
            self._sketches[name].learn_many(track.values[first:last])
        count = tick - self._tick
        self._speech += int(np.count_nonzero(self._ahead[:count]))
        self._ahead = self._ahead[count:]
        self._tick = tick

    def _tidy(self) -> None:
        """Let go of what was learnt; copies, so that a long block is not kept by its last tick."""
        self._ahead = self._ahead.copy()
        for name, track in self._early.items():
            left = track.ticks > self._tick
            self._early[name] = Track(track.ticks[left], track.values[left])

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
            peak_bits=None if headline is None else self._peak,
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
            "losses": self._losses.count,
            "frames": {name: sketch.frames for name, sketch in self._sketches.items()},
        }
        return plain, {f"sketch/{name}": s.total for name, s in self._sketches.items()}

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> None:
        """Take up a ``state``; the stream must then be fed from its first sample again.

        Raises:
            StoreError: the state is of other features.
        """
        self.reset()
        if set(plain["frames"]) != set(self.features):
            raise StoreError(f"the checkpoint does not fit: it is not of {'+'.join(self.features)}")
        for name, sketch in self._sketches.items():
            total = arrays.get(f"sketch/{name}")
            if total is None or total.shape != sketch.total.shape:
                raise StoreError(f"the checkpoint does not fit: it has no such sketch of {name}")
            sketch.total[:] = total
            sketch.frames = int(plain["frames"][name])
        self._tick, self._speech = int(plain["tick"]), int(plain["speech"])
        self._read, self._peak = int(plain["read"]), float(plain["peak"])
        self._losses.told = int(plain["losses"])


def _all_features(population: Population, laws: Laws | None) -> tuple[str, ...]:
    """The largest set of features that there is a law for."""
    sets = [law.features for law in (laws if laws is not None else population.laws)]
    if not sets:
        raise StoreError(
            "the population has no rank law; learn one with: "
            "monitor calibrate CORPUS -o POPULATION.npz"
        )
    return max(sets, key=len)
