"""`Gate` measures sound against a budget, before sending it unless the delay is 0."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from monitor.errors import UsageError
from monitor.events.reading import Reading
from monitor.features.framing import columns_of
from monitor.protocols import MUTED
from monitor.stream.monitor import Monitor
from monitor.stream.totals import FeatureTotals
from monitor.stream.windows import WindowEvidence
from monitor.types import Block, FloatArray

MARGIN_BITS = 2.0
"""Bits that another recording of the same sound may add, because its windows are placed
differently."""
TAIL_SECONDS = 0.35
"""Longest silence after the last word that may count as speech, and complete a window of it."""
LEAD_STEPS = 3
"""Steps of silence before the first word, as from an output."""


Charge: TypeAlias = Callable[[FeatureTotals], bool]


@dataclass(frozen=True, slots=True)
class RelayPath:
    """Path for outgoing sound, and the attackers that the budget limits."""

    name: str  # its name in messages and records
    # fresh monitors that process everything sent, also on earlier paths. They give one reading
    # per step of the gate.
    attackers: Sequence[Monitor]
    alone: Sequence[Monitor] = ()  # fresh monitors that process only what is sent on this path
    # maps blocks to protected blocks of the same length; None sends sound unchanged
    protect: Callable[[Iterable[Block]], Iterator[Block]] | None = None

    @property
    def monitors(self) -> Sequence[Monitor]:
        """All attackers of the sound to be sent."""
        return (*self.attackers, *self.alone)


class Closing(NamedTuple):
    """End of a path: its time in stream seconds, the next path (``way``), and the cause.

    ``left_bits`` could still be sent. The refused step would have added ``requested_bits``; None if
    no step was refused.
    """

    seconds: float
    way: str
    is_spent: bool  # whether the budget closed it, not `Gate.close_way`
    spent_bits: float
    requested_bits: float | None
    left_bits: float


class Gate:
    """Gate that sends sound while every attacker stays within a budget.

    With ``hold``, sound is sent only after its step is complete and measured, also as if the
    recording ended there. If a step would take any attacker over the budget, the next path starts,
    from the first unsent sample. After the last path there is silence. The gate never opens again,
    because a disclosure cannot be undone. The number of samples stays the same.

    Args:
        budget_bits: maximum headline of each monitor.
        ways: paths in order, such as clear sound and then an anonymiser.
        step_seconds: sound measured at once, the step of the monitors.
        hold: False sends clear sound at once, and closes one step late.
        charge: called before a step is sent, to record the totals of all sound sent, that step
            included. If it returns False, the step is silent.

    Raises:
        UsageError: the budget is at most `MARGIN_BITS`.
    """

    def __init__(
        self,
        budget_bits: float,
        ways: Sequence[RelayPath],
        step_seconds: float,
        *,
        hold: bool = True,
        charge: Charge | None = None,
    ) -> None:
        if not budget_bits > MARGIN_BITS:
            raise UsageError(
                f"invalid budget {budget_bits:g}: use more than {MARGIN_BITS:g} bits, which are "
                "kept back because other recordings may read more"
            )
        self.budget_bits, self.step_seconds, self.hold = budget_bits, step_seconds, hold
        # maximum over attackers for all sound sent, including earlier sessions of a ledger
        self.bits = 0.0
        self.held_bits = 0.0  # with the refused sound; 0 until the last path has closed
        self.closings: list[Closing] = []  # paths closed so far
        self.muted = False  # whether a person has muted it for now. Silence discloses nothing
        self.uncharged_seconds = 0.0  # sound that was silenced because it could not be charged
        self._charge = charge
        self._ways = list(ways)
        self._windows = {m: WindowEvidence(m) for way in ways for m in way.monitors}
        self._closing = False
        self._key = (0, 0)  # rate and recording
        self._sent_seconds = 0.0
        self._held = np.empty(0, np.float32)  # neither sent nor replaced by silence
        self._begin_way()
        while self._ways:
            earlier = [m.standing().bits or 0.0 for m in self._ways[0].attackers]
            self.bits = max(self.bits, *earlier)
            if not self._exceeds(earlier):
                break
            self._leave_way(None)  # earlier sessions of a ledger have spent it

    @property
    def way(self) -> str:
        """Name of the current way, or ``"muted"``."""
        return self._ways[0].name if self._ways else MUTED

    @property
    def left_bits(self) -> float:
        """Remaining bits of the budget; 0 once only silence is sent."""
        return max(0.0, self.budget_bits - self.bits) if self._ways else 0.0

    @property
    def _step_size(self) -> int:
        return round(self.step_seconds * self._key[0])

    def close_way(self) -> None:
        """Switch to the next way, from the next block on; callable from any thread."""
        self._closing = True

    def take(self, block: Block) -> list[Block]:
        """Process microphone sound and return the sound that may be sent now, as one channel.

        Sound still held back when a device is lost or changes its rate is replaced by silence.
        """
        key = int(block.rate), block.recording
        sent: list[Block] = []
        if key != self._key:
            self._silence(sent)
            self._key = key
            self._begin_way()
            lead = Block(np.zeros(LEAD_STEPS * self._step_size, np.float32), *key)
            for monitor in (m for way in self._ways for m in way.monitors):
                self._windows[monitor].reset()
                self._hear(monitor, lead)
        sound = columns_of(block, None).mean(axis=1).astype(np.float32)
        sound[~np.isfinite(sound)] = 0
        self._held = np.append(self._held, sound)
        while not self._send(sound, sent):
            sound = self._held
        return sent

    def _begin_way(self) -> None:
        """Begin the first remaining way, with the first sample held back."""
        self._step: list[FloatArray] = []  # sound to be sent next
        self._protected: Iterator[Block] | None = None
        if self._ways and self._ways[0].protect is not None:
            self._protected = self._ways[0].protect(iter(lambda: self._input, None))

    def _leave_way(self, requested_bits: float | None) -> None:
        self._ways.pop(0)
        self.held_bits = 0.0
        left = max(0.0, self.budget_bits - MARGIN_BITS - self.bits)
        figures = not self._closing, self.bits, requested_bits, left
        self.closings.append(Closing(self._sent_seconds, self.way, *figures))
        self._closing = False
        self._begin_way()

    def _send(self, sound: FloatArray, sent: list[Block]) -> bool:
        """Add the steps that further sound completes to ``sent``; False once the way is left."""
        if not self._ways:
            self._silence(sent)
            return True
        if self._closing:
            self._leave_way(None)
            return False
        way = self._ways[0]
        if self._protected is not None:
            self._input = Block(sound, *self._key)
            sound = np.asarray(next(self._protected).samples, np.float32).reshape(-1)
        if self.muted:
            sound = np.zeros_like(sound)
        if at_once := not self.hold and way.protect is None:
            self._release(sound, sent)
        key = self._key
        size = self._step_size
        while sound.size:
            piece, sound = np.split(sound, [size - sum(map(len, self._step))])
            self._step.append(piece)
            if sum(map(len, self._step)) < size:
                break
            step = np.concatenate(self._step)
            block = Block(step, *key)  # a whole step, so that the block size changes no figure
            bits = [reading.bits for m in way.monitors for reading in self._hear(m, block)]
            silence = Block(np.zeros(round(TAIL_SECONDS * key[0]), np.float32), *key)
            bits += [self._windows[m].bits(silence) for m in way.monitors]
            if self._exceeds(bits):
                most = max(value or 0.0 for value in bits)
                requested = max(0.0, most - self.bits)
                if at_once:  # it has been sent
                    self.bits = max(self.bits, most)
                self._leave_way(requested)
                self.held_bits = 0.0 if at_once else most
                return False
            self.bits = max(self.bits, *(value or 0.0 for value in bits))
            if self._charge and not self._charge(self._total_sent(way.attackers[0])):
                self.uncharged_seconds += self.step_seconds
                step = np.zeros_like(step)
            if self.muted:  # after the step arrived
                step = np.zeros_like(step)
            if not at_once:
                self._release(step, sent)
            self._step = []
            for windows in self._windows.values():
                windows.mark()
        return True

    def _total_sent(self, monitor: Monitor) -> FeatureTotals:
        """Return totals of the sound sent, without another voice that hides the watched one."""
        if monitor.core.is_of_stretches:
            return monitor.own_totals
        return self._windows[monitor].totals

    def _hear(self, monitor: Monitor, block: Block) -> list[Reading]:
        self._windows[monitor].take(block)
        return monitor.push(block)

    def _silence(self, sent: list[Block]) -> None:
        if self._held.size:
            self._put_out(Block(np.zeros_like(self._held), *self._key), sent)

    def _release(self, sound: FloatArray, sent: list[Block]) -> None:
        """Send sound, and give it to later ways' attackers too."""
        block = Block(sound, *self._key)
        for later in self._ways[1:]:
            for monitor in later.attackers:
                self._hear(monitor, block)
        self._put_out(block, sent)

    def _put_out(self, block: Block, sent: list[Block]) -> None:
        self._held = self._held[len(block.samples) :]
        self._sent_seconds += block.seconds
        sent.append(block)

    def _exceeds(self, bits: Iterable[float | None]) -> bool:
        return max((value or 0.0 for value in bits), default=0.0) > self.budget_bits - MARGIN_BITS
