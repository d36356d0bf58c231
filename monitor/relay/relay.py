"""`Relay` sends a microphone's sound through a gate to an output."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from monitor.alerts.budgets import check_reach
from monitor.alerts.rules import BaseRule
from monitor.anonymisers.recording import ProtectedBlocks
from monitor.anonymisers.registry import attacked_bits
from monitor.errors import UsageError
from monitor.events.declaration import Event
from monitor.events.reading import Reading
from monitor.events.run import Alert, RunStart
from monitor.features.framing import columns_of
from monitor.population.population import Population
from monitor.protocols import CLEAR, MUTED, AudioDevice, LiveSource
from monitor.relay.capture import CaptureWatch
from monitor.relay.gate import MARGIN_BITS, Charge, Gate, RelayPath
from monitor.relay.outlet import OutputDevice
from monitor.sources.base import WrappedLiveSource
from monitor.sources.microphone import InputSystem, open_input
from monitor.stream.monitor import Monitor
from monitor.types import Block, FloatArray, Item, Record

MUTE, PROTECTED = "mute", "protected"
DELAY_SECONDS = 0.56
BEYOND_STEP_SECONDS = 0.16
"""Extra seconds for measuring a step, and for the devices."""
LEAST_DELAY_SECONDS = 0.36
PERMIT_SECONDS = 1.5
"""Seconds after a reading in which sound is sent at once. A monitor that stops therefore mutes."""
INPUT_LATENCY_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class RelaySettings:
    """Settings of a relay."""

    budget_bits: float | None = None  # bits that no attacker may exceed; None sends everything
    then: str = MUTE  # action when the budget is spent, ``"mute"`` or an anonymiser's name
    # delay of sound, so that speech over the budget is never sent. With 0, sound is sent at once
    # and muted one reading late.
    delay_seconds: float = DELAY_SECONDS
    # population of the attacker who knows the anonymiser
    protected_population: Population | None = None
    seed: int | None = None  # seed of the anonymiser's random draws
    closes_on_alert: bool = False  # whether every alert has the effect of a spent budget
    protected: str = ""  # anonymiser of all sound from the beginning; empty without one

    def __post_init__(self) -> None:
        if self.delay_seconds and self.delay_seconds < LEAST_DELAY_SECONDS:
            raise UsageError(
                f"invalid delay {self.delay_seconds:g} s: use {LEAST_DELAY_SECONDS:g} or more, or "
                "0 to send at once and mute one reading late"
            )
        if self.budget_bits is not None and self.protected and not self.delay_seconds:
            raise UsageError("protected sound waits until it is measured: leave out --delay 0")

    @property
    def holds(self) -> bool:
        """True if sound waits until it is measured."""
        return self.budget_bits is not None and self.delay_seconds > 0

    @property
    def passes_on(self) -> bool:
        """True if clear sound is sent while it is measured."""
        return not self.holds and not self.protected

    @property
    def step_seconds(self) -> float:
        """Seconds of sound that are measured at once."""
        return round((self.delay_seconds or DELAY_SECONDS) - BEYOND_STEP_SECONDS, 2)


class Relay(BaseRule):
    """Relay of a microphone's sound to an output, until a budget is spent.

    It is a rule of a run, which raises an alert when a way is closed. It is also an action, which
    closes a way if another rule raises an alert.
    """

    def __init__(self, outlet: OutputDevice, settings: RelaySettings) -> None:
        self.outlet, self.settings = outlet, settings
        self.gate: Gate | None = None  # the gate; None before `begin`, and without a budget
        # whether the relay is muted for now, by a person or because the input was moved
        self.muted = False
        # called at once with a line of text when the input is moved, in another thread
        self.report: Callable[[str], object] = lambda _line: None
        self._closed = False
        self._told = 0
        self._moved = ""
        self._capture = CaptureWatch(self._mute_moved)

    @property
    def protects(self) -> bool:
        """True if sound is protected once the budget is spent."""
        return self.settings.then != MUTE

    @property
    def way(self) -> str:
        """Open way: ``"clear"``, ``"protected"``, an anonymiser's name, or ``"muted"``."""
        if self.muted or self._closed:
            return MUTED
        if self.gate is not None:
            return self.gate.way
        return PROTECTED if self.settings.protected else CLEAR

    @property
    def budget_bits(self) -> float | None:
        """Budget in bits; None without a budget."""
        return self.settings.budget_bits

    @property
    def left_bits(self) -> float | None:
        """Remaining bits of the budget, including ``kept_bits``; None without a budget."""
        return self.budget_bits if self.gate is None else self.gate.left_bits

    @property
    def sent_bits(self) -> float:
        """Maximum bits of any modelled attacker, from the sound sent; 0 without a budget."""
        return 0.0 if self.gate is None else self.gate.bits

    @property
    def kept_bits(self) -> float:
        """Bits of the budget that are kept back, since other recordings may disclose more."""
        return MARGIN_BITS

    @property
    def held_bits(self) -> float:
        """Maximum bits had the refused sound been sent; 0 until the budget is spent."""
        return 0.0 if self.gate is None else self.gate.held_bits

    @property
    def system(self) -> InputSystem:
        """Access to inputs that are watched, and send sound at once unless it is held."""

        def opens(wanted: str | int | None, channels: int | None) -> AudioDevice:
            device = open_input(wanted, channels, INPUT_LATENCY_SECONDS)
            outlet = self.outlet if self.settings.passes_on else None
            return _RelayedAudio(device, outlet, self._capture)

        return InputSystem(opens)

    def _mute_moved(self, source: str) -> None:
        """Mute, because the sound server records another source by now."""
        self.muted = True
        self.outlet.permit(0.0)
        if self.gate is not None:
            self.gate.muted = True
        self._moved = (
            f"the microphone is lost, and the sound server records {source} instead: muted. "
            "Start again with the right microphone"
        )
        self.report(self._moved)

    def source(self, microphone: LiveSource) -> LiveSource:
        """Return the sent sound as a source, so that a run measures what others receive."""
        return _Relayed(microphone, self)

    def begin(
        self,
        monitor: Monitor,
        attackers: Mapping[str, Monitor] | None = None,
        *,
        charge: Charge | None = None,
    ) -> None:
        """Open the gate before the run's first block, with monitors like the run's.

        ``attackers`` process protected sound, if it is protected from the beginning. ``charge`` is
        as in `Gate`.
        """
        settings = self.settings
        if settings.budget_bits is not None:
            attacker, bits = monitor.attacker, settings.budget_bits
            check_reach(bits, monitor.headline, attacker.support_bits, attacker.ceiling)
            fresh = partial(monitor.fresh, step_seconds=settings.step_seconds)
            ways = [RelayPath(CLEAR, [fresh()])]
            if attackers is not None:
                hearers = [m.fresh(step_seconds=settings.step_seconds) for m in attackers.values()]
                ways = [RelayPath(PROTECTED, hearers)]
            if self.protects:
                ways.append(self._protected_way(monitor, fresh))
            self.gate = Gate(
                settings.budget_bits,
                ways,
                settings.step_seconds,
                hold=settings.holds,
                charge=charge,
            )
        self.outlet.start()

    def _protected_way(self, monitor: Monitor, fresh: Callable[..., Monitor]) -> RelayPath:
        settings = self.settings
        protect = ProtectedBlocks(
            settings.then, ("live",), speaker=monitor.watch, seed=settings.seed
        )
        if protect.latency_seconds is None:
            raise UsageError(
                f"invalid method {settings.then}: it needs the whole recording. Use one that works "
                "live, such as mcadams:random, or mute"
            )
        alone = [fresh()]
        if settings.protected_population is not None:
            alone.append(fresh(settings.protected_population))
        return RelayPath(settings.then, [fresh()], alone, protect)

    def send(self, block: Block) -> list[Block]:
        """Send the sound that is due; return it as one channel, in total as long as the input."""
        passed_on = self.settings.passes_on and self.way == CLEAR
        if self.gate is None:
            sent = [replace(block, samples=columns_of(block, None).mean(axis=1))]
            if self.way == MUTED:
                sent = [replace(piece, samples=np.zeros_like(piece.samples)) for piece in sent]
        else:
            self.gate.muted = self.muted
            sent = self.gate.take(block)
        self.outlet.permit(PERMIT_SECONDS if self.way == CLEAR else 0.0)
        if not passed_on:
            for piece in sent:
                self.outlet.write(piece.samples, int(piece.rate))
        return sent

    def send_protected(self, block: Block) -> Block:
        """Send protected sound, when called by `monitor.run.Protection`; return the sound sent."""
        sent = [piece.samples for piece in self.send(block)]
        return replace(block, samples=np.concatenate([np.empty(0, np.float32), *sent]))

    @property
    def rule(self) -> str:
        """Name of the rule."""
        bits = self.settings.budget_bits
        return f"budget of {bits or 0:g} bits spent"

    def update(self, event: Event) -> list[Alert]:
        """Return an alert for each way that was closed since the previous reading."""
        if self.gate is None or not isinstance(event, Reading):
            return []
        closed = self.gate.closings[self._told :]
        self._told += len(closed)
        return [
            Alert(
                kind="budget",
                seconds=closing.seconds,
                speech=None,
                rule=f"{self.rule}: {closing.way}",
                field="bits",
                threshold=self.gate.budget_bits,
                state="raised",
                value=closing.spent_bits,
                spent_bits=closing.spent_bits,
                requested_bits=closing.requested_bits,
                left_bits=closing.left_bits,
                way=closing.way,
            )
            for closing in closed
            if closing.is_spent
        ]

    def note(self, start: RunStart) -> str | None:  # noqa: ARG002
        """Explain which sound is sent, how long, and what the figures measure."""
        settings = self.settings
        late = f"{1000 * settings.delay_seconds:.0f} ms late" if settings.holds else "at once"
        text = f"your voice is sent to {self.outlet.name}, {late}"
        if settings.budget_bits is not None:
            then = "muted" if settings.then == MUTE else f"protected by {settings.then}"
            promise = (
                f"Speech that would exceed them is not sent. {MARGIN_BITS:g} bits are kept back"
                if settings.holds
                else "One reading is sent before that, and may exceed the budget"
            )
            text += (
                f", until it discloses {settings.budget_bits:g} bits. Then it is {then}. "
                f"{promise}. The figures describe what was sent"
            )
        return text + self._describe_attacked()

    def _describe_attacked(self) -> str:
        """Format what an attacker who knows the anonymiser learns; empty without one."""
        method = self.settings.then if self.protects else self.settings.protected
        if not method:
            return ""
        if (bits := attacked_bits(method)) is None:
            return ". No attack on the method was measured: an attacker may learn as much as before"
        return (
            f". An attacker who knows the method knows up to {bits[0]:.1f} of {bits[1]:.1f} bits "
            "after 10 s of protected speech (among 16 readers)"
        )

    def write(self, event: Event) -> None:
        """Close the current way if another rule raised an alert."""
        if not self.settings.closes_on_alert or not isinstance(event, Alert):
            return
        if event.code == "alert.raised" and not event.rule.startswith(self.rule):
            if self.gate is None:
                self._closed = True
            else:
                self.gate.close_way()

    def drain(self) -> Sequence[str]:
        """Report dropped sound."""
        lines = [self._moved] if self._moved else []
        if lost := self.outlet.lost_seconds:
            lines.append(
                f"{lost:.1f} s of sound came too late for {self.outlet.name} and was dropped. The "
                "figures include it"
            )
        if self.gate is not None and (silent := self.gate.uncharged_seconds):
            lines.append(f"{silent:.1f} s were muted because the ledger could not be written")
        return lines

    def state(self) -> Record:
        """Return an empty state, since live streams cannot be resumed."""
        return {}

    def restore(self, state: Record) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Release the output, which is then silent."""
        self.outlet.close()


class _Relayed(WrappedLiveSource):
    """Live source of the sound that a relay sends."""

    def __init__(self, microphone: LiveSource, relay: Relay) -> None:
        super().__init__(microphone)
        self._relay = relay

    def items(self) -> Iterator[Item]:
        for item in self.source:
            if isinstance(item, Block):
                yield from self._relay.send(item)
            else:
                yield item


class _RelayedAudio:
    """A watched input, which also sends its sound to an outlet at once, if there is one."""

    def __init__(
        self, device: AudioDevice, outlet: OutputDevice | None, capture: CaptureWatch
    ) -> None:
        self._device, self._outlet, self._capture = device, outlet, capture
        self.name, self.rate, self.channels = device.name, device.rate, device.channels

    def close(self) -> None:
        self._capture.close()
        self._device.close()

    def start(self, hear: Callable[[FloatArray, bool], None], ended: Callable[[], None]) -> None:
        """Begin to record."""

        def both(samples: FloatArray, overflow: bool) -> None:
            if self._outlet is not None:
                self._outlet.pass_on(samples, self.rate)
            hear(samples, overflow)

        self._device.start(both, ended)
        self._capture.start()
