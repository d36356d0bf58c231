"""The sample rates, numbers of channels and sizes of a block of audio that the program accepts."""

from __future__ import annotations

__all__ = ["LEAST_RATE", "MOST_CHANNELS", "MOST_RATE", "MOST_SAMPLES"]

LEAST_RATE = 1_000
MOST_RATE = 768_000
"""Samples a second: twice the highest rate that sound cards have."""
MOST_CHANNELS = 64
MOST_SAMPLES = 1 << 22
"""Of all channels, read at one go: 16 MB. A block of 30 s in stereo at 48 kHz fits."""
