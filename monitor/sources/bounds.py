"""What a header may ask for: beyond that it is hostile or damaged, and could take all memory."""

from __future__ import annotations

from monitor.errors import SourceError

__all__ = ["MOST_SAMPLES", "check_format"]

LEAST_RATE = 1_000
MOST_RATE = 768_000
"""Twice the highest rate that sound cards have."""
MOST_CHANNELS = 64
MOST_SAMPLES = 1 << 22
"""Of all channels, read at one go: 16 MB. A block of 30 s in stereo at 48 kHz fits."""


def check_format(label: str, rate: int, channels: int) -> None:
    """Refuse a format that no recording has.

    Raises:
        SourceError: it has too many channels, or an absurd rate.

    Example:
        >>> check_format("a.wav", 16_000, 2)
    """
    if not 1 <= channels <= MOST_CHANNELS:
        raise SourceError(
            f"{label} has {channels} channels by its header; at most {MOST_CHANNELS} can be heard: "
            "is it damaged?"
        )
    if not LEAST_RATE <= rate <= MOST_RATE:
        raise SourceError(
            f"{label} has {rate} samples a second by its header; {LEAST_RATE} to {MOST_RATE} can "
            "be heard: is it damaged?"
        )
