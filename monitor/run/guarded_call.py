"""`GuardedCall` passes audio unchanged until an alert, then anonymised or muted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from monitor.alerts.rules import Threshold
from monitor.anonymisers.recording import ProtectedBlocks
from monitor.errors import UsageError
from monitor.types import Block, FloatArray, Record, round_to_16_bits

if TYPE_CHECKING:
    from monitor.run.far_pool import FarPool
    from monitor.run.pool import Pool


class GuardedCall:
    """Audio path of a call: unchanged until its first alert, then anonymised or muted.

    The audio that raises the alert has already been returned unchanged. Leave a margin in ``bits``.

    Args:
        pool: the pool in which to open the stream ``key``.
        bits: budget, a threshold on the ``bits`` of a watched speaker. Without ``watch``, it is a
            threshold on ``expected_bits``, the average disclosure of this amount of speech.
        method: anonymiser for the audio after an alert (`monitor.anonymisers`); None for silence.
        log: receives the record of every event (docs/records.md).
        options: as in `Pool.open`. Alerts of these ``rules`` start protection, too.

    Attributes:
        is_protected: whether an alert was raised.

    Example:
        >>> from monitor import Pool, Population
        >>> with Pool(Population.reference(), ["f0"]) as pool:
        ...     call = GuardedCall(pool, "call 7", bits=3.0)
        ...     call.process(bytes(640), rate=16_000) == bytes(640)
        True
    """

    def __init__(
        self,
        pool: Pool | FarPool,
        key: Any,
        bits: float,
        method: str | None = None,
        *,
        log: Callable[[Record], object] = lambda _: None,
        **options: Any,
    ) -> None:
        field = "expected_bits" if options.get("watch") is None else "bits"
        rules = Threshold(field, bits, hold_seconds=0.0), *options.pop("rules", ())
        self._pool, self._key, self._log = pool, key, log
        self.is_protected = False
        self._protect = None if method is None else ProtectedBlocks(method, ("live",))
        if self._protect is not None and self._protect.latency_seconds is None:
            raise UsageError(f"{method} protects whole recordings: use a method for live audio")
        self._form: tuple[int, int] | None = None  # rate and channels
        self._block: Block | None = None
        self._blocks: Iterator[Block] = iter(())
        self._ready = np.empty((0, 0), np.float32)  # protected samples that are not due yet
        pool.open(key, rules=rules, **options)

    def process(self, audio: bytes | bytearray | memoryview, rate: int, channels: int = 1) -> bytes:
        """Push 16-bit samples with interleaved channels; return as many samples to send.

        Raises the errors of `Pool.push` and `Pool.poll`. Do not send audio after an error.
        """
        samples = np.frombuffer(audio, "<i2").reshape(-1, channels)
        self._block = Block(samples / np.float32(32768), rate)
        self._pool.push(self._key, self._block)
        protected = self._make_protected(self._block)  # from the start, before any alert
        for event in self._pool.poll(self._key):
            self.is_protected |= event.code == "alert.raised"
            self._log(event.record())
        if not self.is_protected:
            return samples.tobytes()
        return round_to_16_bits(protected).tobytes()

    def close(self) -> None:
        """Forget the stream."""
        self._pool.forget(self._key)

    def _make_protected(self, block: Block) -> FloatArray:
        """Return as many protected samples as the block has, delayed by silence at the start."""
        silence = np.zeros_like(block.samples)
        if self._protect is None:
            return silence
        if self._form != (form := (block.rate, silence.shape[1])):
            self._form, self._ready = form, silence[:0]
            self._blocks = self._protect(iter(lambda: self._block, None))
        ready = np.concatenate((self._ready, next(self._blocks).samples))
        ready = np.concatenate((silence[: max(len(silence) - len(ready), 0)], ready))
        self._ready = ready[len(silence) :]
        return ready[: len(silence)]
