"""`MonitorPair` measures one voice twice, clear and through an anonymiser."""

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
from monitor.stream.speaker_changes import CopiedChanges
from monitor.stream.stream import Event, StreamState, select_arrays
from monitor.types import TICKS_PER_SECOND, AnyArray, Block, Frames, Item, Words

IGNORANT = "ignorant"
"""Attacker with templates and rank models of clear speech, unaware of the anonymiser."""
INFORMED = "lazy-informed"
"""Attacker with templates of protected speech, and rank models calibrated on it."""

_ONE_KIND = (
    "the clear or the protected population has no rank model of evidence. Both sides show the "
    "closed-set figure, so that they are comparable (calibrate with a cohort)"
)
ProtectAudio: TypeAlias = Callable[[Iterable[Item]], Iterator[Block]]


def create_twin(
    clear: Monitor, population: Population | None = None
) -> tuple[Monitor, CopiedChanges]:
    """Create a monitor of the protected voice, and the object that copies changes to it."""
    changes = CopiedChanges(clear.on_change)
    return Monitor(replace(clear.plan.again(population), copied_changes=changes)), changes


class PairState(StreamState):
    """Plain values of a `MonitorPair`, in a checkpoint."""

    protected: dict[str, StreamState]


class MonitorPair:
    """Monitors of the clear and the protected side of one stream, with joint readings.

    The source is read once. Gaps and changes of speaker are detected on the clear side and apply to
    both. Readings wait for the anonymiser, so its latency adds to the lag.

    Args:
        clear: unused monitor of the clear voice, after `Monitor.fit_to` with the source.
        protect: function that converts blocks of audio to protected blocks of the same length.
        population: templates and rank models of the same people's protected speech, for an attacker
            who knows the anonymiser. Without it, the figures understate what such attackers learn.

    Raises:
        UsageError: the population has other people or lacks a feature, or features are custom
            objects.
    """

    def __init__(
        self, clear: Monitor, protect: ProtectAudio, population: Population | None = None
    ) -> None:
        if not clear.front_end.by_name:
            raise UsageError("custom features support one stream only: name built-in features")
        self.clear, self._protect = clear, protect
        self.notices: list[str] = []
        twins = {IGNORANT: create_twin(clear)}
        if population is not None:
            # bits among different people cannot be compared
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
                twins[INFORMED] = create_twin(clear, population)
            except UsageError as error:
                raise UsageError(f"the protected population does not fit: {error}") from None
        # monitors of the protected side, by attacker
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
        """Features of the protected side."""
        return self._features

    def use(self, features: Sequence[Feature]) -> None:
        """Replace the features of the protected side, before the first block."""
        self._features = features

    def fit_to(self, source: Source, *, allow_overlap: bool = False) -> None:
        """Check that a source can be protected and was not enrolled; otherwise raise an error."""
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
        """Choose the same kind of headline for both sides, so that they can be compared."""
        monitors = (self.clear, *self.attackers.values())
        if len({monitor.headline for monitor in monitors}) > 1:
            self.notices = [_ONE_KIND]
            for monitor in monitors:
                monitor.prefer_closed_set()

    def listen(self, source: Iterable[Item]) -> Iterator[Event]:
        """Yield the events of the clear side. Its readings include the protected ones."""
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

        Words are the same, since anonymisers change only sound.
        """
        reader = BlocksToTicks(
            self._features,
            None,  # only the monitored channel is protected
            next(iter(self.attackers.values())).core.skipped_ticks,
            levels=self.clear.on_change != "ignore",  # the same rates keep the same clock
            conditions=True,  # an anonymiser's own sound, such as a telephone's, counts too
            landmarks=True,  # a repetition that sounds different is new to an attacker
        )
        recording = 0
        waiting: deque[Words] = deque()

        def due() -> Iterator[Words]:
            """Yield the waiting words, up to the current recording."""
            while waiting and waiting[0].recording <= recording:
                yield waiting.popleft()

        def set_aside() -> Iterator[Item]:
            """Yield the items; queue words among them for the protected audio."""
            for item in items:
                if isinstance(item, Words):
                    waiting.append(item)
                yield item

        for block in self._protect(set_aside()):
            *ended, frames = reader.process(block)
            for final in ended:
                yield replace(final, recording=recording, gaps=(), notices=())
            recording = block.recording
            yield from due()
            yield replace(frames, recording=recording, gaps=(), notices=())
        if reader.ticks:
            yield from due()
            yield replace(reader.flush(), recording=recording, gaps=(), notices=())

    def state(self) -> tuple[PairState, dict[str, AnyArray]]:
        """Return the state of all monitors after the last reading."""
        plain, arrays = self.clear.state()
        protected: dict[str, StreamState] = {}
        for name, monitor in self.attackers.items():
            protected[name], more = monitor.state()
            arrays |= {f"protected/{name}/{key}": array for key, array in more.items()}
        return {**plain, "protected": protected}, arrays

    def restore(self, plain: PairState, arrays: Mapping[str, AnyArray]) -> None:
        """Restore a ``state``. Then process the stream again, from its first sample."""
        self.clear.restore(plain, arrays)
        for name, monitor in self.attackers.items():
            monitor.restore(plain["protected"][name], select_arrays(f"protected/{name}/", arrays))
