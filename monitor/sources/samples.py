"""Samples that a program holds already, as a source."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from monitor.audio_limits import MOST_CHANNELS
from monitor.errors import UsageError
from monitor.managed import Managed
from monitor.protocols import StreamInfo
from monitor.types import AnyArray, Block


class Samples(Managed):
    """An array of samples, in blocks of a second.

    Nothing is known of where they come from: audio that was enrolled is not recognised in them.

    Args:
        samples: shape (n,) or (n, channels): floats in [-1, 1], or signed integers at full scale.
        rate: samples per second.
        label: what to call them in front of a person.

    Raises:
        UsageError: the array is of another shape or type.

    Example:
        >>> [block.samples.max() for block in Samples(np.array([0, 16384], np.int16), 16_000)]
        [np.float32(0.5)]
    """

    def __init__(self, samples: AnyArray, rate: int, label: str = "samples") -> None:
        shape = samples.shape
        if samples.ndim == 2 and shape[0] <= MOST_CHANNELS < shape[1]:
            raise UsageError(
                f"samples of shape {shape} have their channels first: give samples.T, (n, channels)"
            )
        if samples.ndim not in (1, 2) or (samples.ndim == 2 and not 1 <= shape[1] <= MOST_CHANNELS):
            raise UsageError(
                f"samples of shape {shape} must be (n,) or (n, channels), with at most "
                f"{MOST_CHANNELS} channels"
            )
        if samples.dtype.kind not in "fi":
            raise UsageError(
                f"samples are {samples.dtype}: give floats from -1 to 1, or signed integers"
            )
        self._samples, self._rate, self.label = samples, rate, label
        self.seconds = shape[0] / rate if rate > 0 else None  # a rate that is none is refused later
        self.stream_info = StreamInfo(channels=1 if samples.ndim == 1 else shape[1])

    def __iter__(self) -> Iterator[Block]:
        samples = self._samples
        scale = 1.0 if samples.dtype.kind == "f" else -float(np.iinfo(samples.dtype).min)
        for start in range(0, len(samples), max(int(self._rate), 1)):
            part = samples[start : start + max(int(self._rate), 1)]
            yield Block(part if scale == 1.0 else (part / scale).astype(np.float32), self._rate)
