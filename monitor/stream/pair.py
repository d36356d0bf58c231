"""One voice measured twice, as it is and through an anonymiser, with the same settings."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from monitor.errors import UsageError
from monitor.events.reading import ProtectedReading, Reading
from monitor.events.run import Change
from monitor.features.registry import make
from monitor.population.population import Population
from monitor.protocols import Feature, Source
from monitor.stream.clocks import BlocksToTicks
from monitor.stream.monitor import Monitor
from monitor.stream.observers import select_arrays
from monitor.stream.stream import Event, StreamState
from monitor.types import TICKS_PER_SECOND, AnyArray, Block, Frames, Item, Words

IGNORANT = "ignorant"
"""Knows clear speech alone: templates and rank models of the clear side."""
INFORMED = "lazy-informed"
"""Has enrolled protected speech, and has rank models calibrated on it."""

_ONE_KIND = (
    "the clear or the protected population has no rank model of evidence. Both sides show the "
    "closed-set figure, so that they compare (calibrate with a cohort)"
)
ProtectAudio: TypeAlias = Callable[[Iterable[Item]], Iterator[Block]]


class PairState(StreamState):
    """Plain values of a `MonitorPair`, in a checkpoint."""

    protected: dict[str, StreamState]


class MonitorPair:
    """Two sides of one stream on one clock: the readings of both appear together.

    The source is read once. Losses and changes of speaker are those of the clear side and hold for
    both. The protected side waits for the anonymiser: its latency comes on top of the lag.

    Args:
        clear: monitor of the clear voice; fresh, and asked about the source (`Monitor.fit_to`).
        protect: blocks of audio to blocks of as much audio, protected.
        population: templates and rank models of protected speech of the same people: of an attacker
            who knows the anonymiser. None understates what others learn.

    Attributes:
        attackers: by what they know, the monitors of the protected side.

    Raises:
        UsageError: the population is of other people, or lacks a feature; features are objects of
            one's own.
    """

    def __init__(
        self, clear: Monitor, protect: ProtectAudio, population: Population | None = None
    ) -> None:
        if not clear.front_end.by_name:
            raise UsageError("custom features support one stream only: name built-in features")
        self.clear, self._protect = clear, protect
        self.notices: list[str] = []
        twins = {IGNORANT: clear.twin()}
        if population is not None:
            # bits among others are no comparison
            names, protected = (
                {speaker.name for speaker in people.speakers}
                for people in (clear.population, population)
            )
            if apart := sorted(names ^ protected):
                more = f" and {len(apart) - 1} more" if len(apart) > 1 else ""
                raise UsageError(
                    "the protected population has other people than the clear one "
                    f"({apart[0]}{more}): enrol the same voices, protected"
                )
            try:
                twins[INFORMED] = clear.twin(population)
            except UsageError as error:
                raise UsageError(f"the protected population does not fit: {error}") from None
        self.attackers: Mapping[str, Monitor] = {
            name: monitor for name, (monitor, _) in twins.items()
        }
        self._copied_changes = [changes for _, changes in twins.values()]
        self._features: Sequence[Feature] = make(
            clear.front_end.audio_features, clear.front_end.setup
        )
        self._agree()

    @property
    def features(self) -> Sequence[Feature]:
        """The features of the protected side."""
        return self._features

    def use(self, features: Sequence[Feature]) -> None:
        """Compute them with these objects instead, before the first block."""
        self._features = features

    def fit_to(self, source: Source, *, allow_overlap: bool = False) -> None:
        """Refuse what cannot be protected (UsageError), and protected audio that was enrolled."""
        stream_info = source.stream_info
        if not stream_info.audio or stream_info.tracks:
            raise UsageError(
                f"{source.label} contains more than audio, and frames cannot be protected"
                if stream_info.audio
                else f"{source.label} contains frames, not audio that could be protected"
            )
        for monitor in self.attackers.values():
            monitor.fit_to(source, allow_overlap=allow_overlap)
        self._agree()

    def _agree(self) -> None:
        """Choose one headline for both sides: figures of two kinds are no difference."""
        monitors = (self.clear, *self.attackers.values())
        if len({monitor.headline for monitor in monitors}) > 1:
            self.notices = [_ONE_KIND]
            for monitor in monitors:
                monitor.prefer_closed_set()

    def listen(self, source: Iterable[Item]) -> Iterator[Event]:
        """Yield the events of the clear side, its readings with the protected ones."""
        items, copied = itertools.tee(source)
        parts = itertools.tee(self._frames(copied), len(self.attackers))
        sides = {
            name: monitor.listen(side)
            for (name, monitor), side in zip(self.attackers.items(), parts, strict=True)
        }
        last: dict[str, Reading] = {}
        change: Change | None = None
        for event in self.clear.listen(items):
            if isinstance(event, Change):
                change = event
            if not isinstance(event, Reading):
                yield event
                continue
            if change is not None:
                for changes in self._copied_changes:
                    changes.set_change(round(event.seconds * TICKS_PER_SECOND), change)
                change = None
            for name, events in sides.items():
                reading = next(
                    (candidate for candidate in events if isinstance(candidate, Reading)), None
                )
                if reading is not None:
                    last[name] = reading
            yield replace(event, protected=ProtectedReading.from_readings(last, event.headline))

    def _frames(self, items: Iterable[Item]) -> Iterator[Frames | Words]:
        """Compute frames of the protected audio; losses are reported on the clear side.

        Words stay as they are: an anonymiser of sound does not change them.
        """
        hearing = BlocksToTicks(
            self._features,
            None,  # only the monitored channel is protected
            next(iter(self.attackers.values())).skipped_ticks,
            levels=self.clear.on_change != "ignore",  # the same rates keep the same clock
            conditions=True,  # an anonymiser may sound like a telephone: that is its own sound
            landmarks=True,  # what sounds different when it repeats is new to an attacker
        )
        recording = 0
        waiting: deque[Words] = deque()

        def due() -> Iterator[Words]:
            """Yield words that are not of a recording to come."""
            while waiting and waiting[0].recording <= recording:
                yield waiting.popleft()

        def set_aside() -> Iterator[Item]:
            """Yield the items; queue words among them for the protected audio."""
            for item in items:
                if isinstance(item, Words):
                    waiting.append(item)
                yield item

        for block in self._protect(set_aside()):
            *ended, frames = hearing.process(block)
            for final in ended:
                yield replace(final, recording=recording, gaps=(), notices=())
            recording = block.recording
            yield from due()
            yield replace(frames, recording=recording, gaps=(), notices=())
        if hearing.ticks:
            yield from due()
            yield replace(hearing.flush(), recording=recording, gaps=(), notices=())

    def state(self) -> tuple[PairState, dict[str, AnyArray]]:
        """Return what all monitors need to resume after the last reading."""
        plain, arrays = self.clear.state()
        protected: dict[str, StreamState] = {}
        for name, monitor in self.attackers.items():
            protected[name], more = monitor.state()
            arrays |= {f"protected/{name}/{key}": array for key, array in more.items()}
        return {**plain, "protected": protected}, arrays

    def restore(self, plain: PairState, arrays: Mapping[str, AnyArray]) -> None:
        """Restore a ``state``; the stream must then be fed from its first sample again."""
        self.clear.restore(plain, arrays)
        for name, monitor in self.attackers.items():
            monitor.restore(plain["protected"][name], select_arrays(f"protected/{name}/", arrays))
