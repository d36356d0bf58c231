"""Refuses audio whose header states a sample rate or number of channels that cannot be true."""

from __future__ import annotations

from monitor.audio_limits import LEAST_RATE, MOST_CHANNELS, MOST_RATE
from monitor.errors import SourceError
from monitor.phrases import plural

__all__ = ["check_format"]


def check_format(label: str, rate: int, channels: int) -> None:
    """Refuse a format that no recording has.

    Raises:
        SourceError: it has too many channels, or an absurd rate.

    Example:
        >>> check_format("a.wav", 16_000, 2)
    """
    if not 1 <= channels <= MOST_CHANNELS:
        raise SourceError(
            f"{label} has {plural(channels, 'channel')} by its header: at most {MOST_CHANNELS} can "
            "be heard; is it damaged?"
        )
    if not LEAST_RATE <= rate <= MOST_RATE:
        raise SourceError(
            f"{label} has {rate} samples a second by its header: {LEAST_RATE} to {MOST_RATE} can "
            "be heard; is it damaged?"
        )
