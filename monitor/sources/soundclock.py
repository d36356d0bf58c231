"""Estimates when each second of a live stream was recorded, from blocks that may come late."""

from __future__ import annotations

__all__ = ["SoundClock"]

DRIFT = 1e-3
"""Seconds a second by which the two clocks may drift apart: ten times what bad crystals do."""


class SoundClock:
    """Knows when each second of a live stream was heard.

    No block comes before its last sample was spoken: so the block that came soonest, counted from
    the length of what had come till then, tells the time of all others. The sound card's clock and
    the wall's drift apart, slowly; so what was soonest is slowly forgotten.

    Example:
        >>> clock = SoundClock()
        >>> clock.heard(1.0, now=11.0)
        >>> clock.heard(2.0, now=12.8)  # 0.8 s late
        >>> clock.wall(2.0)
        12.001
    """

    def __init__(self) -> None:
        self._offset: float | None = None
        self._heard = 0.0

    def heard(self, seconds: float, now: float) -> None:
        """So many seconds of the stream had come when the wall clock showed ``now``."""
        offset = now - seconds
        if self._offset is not None:
            offset = min(offset, self._offset + DRIFT * (seconds - self._heard))
        self._offset, self._heard = offset, seconds

    def lost(self) -> None:
        """Audio was lost: what came before tells nothing of what comes now."""
        self._offset = None

    def wall(self, seconds: float) -> float | None:
        """The wall clock when that second of the stream was over; None before anything came."""
        return None if self._offset is None else self._offset + seconds
