"""The protected side of a run: an anonymiser in the stream, and attackers who hear it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from monitor.errors import UsageError
from monitor.population.population import Population
from monitor.protocols import LiveSource, Source
from monitor.stream.monitor import Monitor
from monitor.stream.records import fingerprint
from monitor.types import Block, Notice

if TYPE_CHECKING:
    from monitor.anonymisers.blocks import ProtectedBlocks
    from monitor.stream.pair import MonitorPair


@dataclass(frozen=True, slots=True)
class Protection:
    """Anonymiser to hear the voice through as well.

    Attributes:
        method: of `monitor.anonymisers.registry`, such as ``"mcadams:0.8"``.
        population: templates of the same people made of speech that was protected by this method,
            and rank models learnt on such speech. Without it the attacker of the protected side has
            not enrolled protected speech: others learn more.
        seed: of what the method draws at random; None for new draws.
        speaker: who speaks, for what is drawn by speaker; None for the watched one.
        on_block: called with each block of protected sound; must not wait. Returns the sound as it
            goes out (rounded, say), which is what is measured.

    Example:
        >>> from monitor import Monitor
        >>> from monitor.run import Run, RunSettings
        >>> from monitor.sources import Pipe
        >>> import io
        >>> pipe = Pipe(io.BytesIO(bytes(2 * 48_000)), raw=(16_000, 1, "s16le"))
        >>> monitor = Monitor(Population.reference(), ["f0"], watch="19")
        >>> settings = RunSettings(protect=Protection("noise:10", seed=1))
        >>> with Run(pipe, monitor, settings=settings) as run:
        ...     readings = [event for event in run if event.type == "reading"]
        >>> [reading.protected.by for reading in readings]
        ['ignorant', 'ignorant', 'ignorant']
    """

    method: str
    population: Population | None = None
    seed: int | None = field(default=None, repr=False)
    speaker: str | None = None
    on_block: Callable[[Block], Block] | None = field(default=None, repr=False, compare=False)

    def side(self, monitor: Monitor, source: Source, *, allow_overlap: bool) -> ProtectedSide:
        """Create the protected side of a stream, whose clear side is the monitor, fresh.

        Raises:
            MonitorError: the method makes no sense, cannot be heard live, or does not go with the
                source or the populations.
        """
        from monitor.anonymisers.blocks import ProtectedBlocks
        from monitor.stream.pair import MonitorPair

        live = isinstance(source, LiveSource)
        labels = ("live",) if live else source.labels
        anonymiser = ProtectedBlocks(
            self.method,
            labels,
            speaker=self.speaker or monitor.watch,
            channel=monitor.settings.channel,
            seed=self.seed,
        )
        if anonymiser.latency_seconds is None and live:
            raise UsageError(
                f"{self.name} gives nothing before a recording is over, and cannot be heard live; "
                "record, and replay that"
            )
        pair = MonitorPair(monitor, partial(self._protected, anonymiser), self.population)
        pair.fit_to(source, allow_overlap=allow_overlap)
        return ProtectedSide(self.name, anonymiser, pair)

    def _protected(self, anonymiser: ProtectedBlocks, items: Iterable[object]) -> Iterator[Block]:
        for block in anonymiser(items):
            yield block if self.on_block is None else self.on_block(block)

    @property
    def name(self) -> str:
        """The method for records; of a command, which may name private files, "command"."""
        return "command" if self.method.startswith("command:") else self.method


@dataclass(frozen=True, slots=True)
class ProtectedSide:
    """Protected side of a run: the anonymiser, and both monitors."""

    name: str
    anonymiser: ProtectedBlocks
    pair: MonitorPair

    def record(self) -> dict[str, object]:
        """Return its part of the ``start`` record."""
        attackers = {
            name: {
                "support_bits": monitor.attacker.support_bits,
                "fingerprint": fingerprint(monitor),
            }
            for name, monitor in self.pair.attackers.items()
        }
        return {
            "method": self.name,
            "latency_seconds": self.anonymiser.latency_seconds,
            "attackers": attackers,
        }

    def notices(self) -> list[Notice]:
        """Return notices for people before it is heard."""
        from monitor.stream.pair import INFORMED

        sentences = []
        if INFORMED not in self.pair.attackers:
            sentences.append(
                f"protected by {self.name}, for an attacker who does not know the anonymiser: no "
                "measure of protection, one who does learns more (--protected-population)"
            )
        else:
            sentences.append(
                f"protected by {self.name}, for the stronger of an attacker who has enrolled "
                "protected speech and one who does not know the anonymiser; one who also trained "
                "on it may learn more"
            )
        sentences += self.pair.notices
        informed = self.pair.attackers.get(INFORMED)
        if informed is not None and informed.attacker.rank_model.prior_share:
            sentences.append(
                "the protected population's rank model rests on clear speech in part or whole: an "
                "attacker whose rank model is of protected speech alone may learn more (monitor "
                "calibrate --no-prior)"
            )
        if self.pair.clear.watch is None:
            sentences.append(
                "nobody is watched: both sides are an attacker's confidence, right or wrong, which "
                "an anonymiser may well raise; what it buys is told of a watched speaker alone"
            )
        if self.pair.clear.front_end.audio_features != self.pair.clear.features:
            sentences.append(
                "what is said is the same on both sides: no anonymiser of sound changes words"
            )
        if self.anonymiser.latency_seconds is None:
            sentences.append(f"{self.name} gives nothing before a recording is over: readings wait")
        return [Notice("protected", sentence) for sentence in sentences]
