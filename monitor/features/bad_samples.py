"""Samples that are no numbers: found, silenced and reported, a second of a recording at a time."""

from __future__ import annotations

import numpy as np

from monitor.types import TICKS_PER_SECOND, FloatArray, Gap

__all__ = ["BadSamples"]

_LARGEST = 1e12
"""Larger samples come from broken memory, and their squares would leave float32."""


class BadSamples:
    """Watches one recording.

    Args:
        rate: samples per second.
        recording: which recording of the stream it is.
        first_tick: ticks of the stream before it.

    Example:
        >>> import numpy as np
        >>> bad = BadSamples(rate=8000, recording=0, first_tick=0)
        >>> bad.silence(np.array([[0.5], [np.nan], [np.inf]])).ravel()
        array([0.5, 0. , 0. ], dtype=float32)
        >>> bad.report(ticks=100)
        ((1, Gap(reason='not finite', lost_seconds=0.00025, recording=0, detail='2 samples')),)
    """

    def __init__(self, rate: int, recording: int, first_tick: int) -> None:
        self._rate = rate
        self._recording = recording
        self._first_tick = first_tick
        self._heard = 0
        self._pending: dict[int, tuple[int, int]] = {}  # second: first tick, samples

    def silence(self, samples: FloatArray) -> FloatArray:
        """Shape (n, channels), float32, with zeros where there was no number."""
        samples = np.asarray(samples, np.float32)
        # what is no number spoils the extremes, too: two passes that need no memory
        if samples.size and not -_LARGEST <= samples.min() <= samples.max() <= _LARGEST:
            sound = np.abs(samples) <= _LARGEST
            samples = np.where(sound, samples, np.float32(0))
            self._note(self._heard + np.flatnonzero(~sound.all(axis=1)))
        self._heard += len(samples)
        return samples

    def report(self, ticks: int) -> tuple[tuple[int, Gap], ...]:
        """The losses of the seconds complete after so many ticks of it, as (tick, Gap)."""
        due = [second for second in self._pending if (second + 1) * TICKS_PER_SECOND <= ticks]
        return tuple(self._gap(*self._pending.pop(second)) for second in sorted(due))

    def finish(self) -> tuple[tuple[int, Gap], ...]:
        """What has not been reported, at the end of the recording."""
        return self.report(self._heard * TICKS_PER_SECOND + TICKS_PER_SECOND)

    def _note(self, lost: np.ndarray) -> None:
        ticks = lost * TICKS_PER_SECOND // self._rate
        for second in np.unique(ticks // TICKS_PER_SECOND).tolist():
            inside = ticks[ticks // TICKS_PER_SECOND == second]
            first, count = self._pending.get(second, (int(inside[0]) + 1, 0))
            self._pending[second] = first, count + inside.size

    def _gap(self, tick: int, count: int) -> tuple[int, Gap]:
        detail = "1 sample" if count == 1 else f"{count} samples"
        return self._first_tick + tick, Gap(
            "not finite", count / self._rate, self._recording, detail
        )
