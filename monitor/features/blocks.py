"""What a block of audio must be; checked before anything of a stream changes."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from monitor.audio_limits import LEAST_RATE, MOST_CHANNELS, MOST_RATE
from monitor.errors import SourceError
from monitor.types import Block, FloatArray

__all__ = ["columns_of"]


def columns_of(block: Block, channel: int | None) -> FloatArray:
    """The channels of a block that are in use.

    Args:
        block: of a source, or of a program of one's own.
        channel: counted from 0; None for all.

    Returns:
        Shape (n, channels).

    Raises:
        SourceError: samples, rate or channel make no sense.

    Example:
        >>> columns_of(Block(np.zeros((160, 2)), 16_000), None).shape
        (160, 2)
    """
    if not (isinstance(block.rate, Integral) and LEAST_RATE <= block.rate <= MOST_RATE):
        raise SourceError(
            f"a rate of {block.rate!r} cannot be heard: give samples a second, {LEAST_RATE} to "
            f"{MOST_RATE}"
        )
    samples = np.asarray(block.samples)
    if samples.dtype.kind != "f":
        hint = "; divide by 32768" if samples.dtype == np.int16 else ""
        raise SourceError(f"samples are {samples.dtype}: give floats from -1 to 1{hint}")
    columns = samples[:, None] if samples.ndim == 1 else samples
    if columns.ndim != 2 or not 1 <= columns.shape[1] <= MOST_CHANNELS:
        raise SourceError(
            f"samples of shape {samples.shape} must be (n,) or (n, channels), with at most "
            f"{MOST_CHANNELS} channels"
        )
    if channel is None:
        return columns
    count = columns.shape[1]
    if not 0 <= channel < count:
        raise SourceError(
            f"no channel {channel}: this recording has {count}, counted from 0;"
            " choose one of them or the mean of all"
        )
    return columns[:, channel : channel + 1]
