"""The sample rates, numbers of channels and sizes of a block of audio that are accepted."""

from __future__ import annotations

from monitor.errors import SourceError
from monitor.phrases import plural

LEAST_RATE = 1_000
MOST_RATE = 768_000  # samples a second: twice the highest rate that sound cards have
MOST_CHANNELS = 64
MOST_SAMPLES = 1 << 22  # of all channels, at one go: 16 MB. 30 s in stereo at 48 kHz fit


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
