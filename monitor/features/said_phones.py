"""What was said, not how: the phones of a recording, for words and for measures of utility.

The feature `phones` does not count these: the better they are recognised, the less they tell of who
said them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from monitor.errors import UsageError
from monitor.features.resampling import Resampler
from monitor.networks.mel import RATE
from monitor.networks.phones import shipped
from monitor.types import FloatArray

__all__ = ["SaidPhone", "said_phones"]


class SaidPhone(NamedTuple):
    """A phone, and when it was recognised.

    Attributes:
        phone: one of 39, ARPAbet without stress.
        begin, end: seconds. CTC recognises a phone somewhere within it, and says nothing of where
            it begins and ends.
    """

    phone: str
    begin: float
    end: float


def said_phones(samples: FloatArray, rate: int = RATE) -> list[SaidPhone]:
    """The phones of a recording, in order, by the package's own recogniser of English.

    Args:
        samples: shape (n,), mono, in -1 to 1.
        rate: samples a second.

    Raises:
        UsageError: another shape, or not finite.
        StoreError: the weights in the package are damaged.

    Example:
        >>> said_phones(np.zeros(16000))
        []
    """
    samples = np.asarray(samples, np.float32)
    if samples.ndim != 1 or not np.isfinite(samples).all():
        raise UsageError("samples must be finite numbers of shape (n,): one channel")
    resampler, network = Resampler(rate, RATE), shipped()
    stream = network.stream()
    parts = [resampler.process(samples), resampler.flush()]
    heard = np.concatenate([*map(stream.push, parts), stream.flush()])
    every = network.frame_seconds
    return [
        SaidPhone(phone, first * every, (last + 1) * every)
        for phone, first, last in network.spoken(heard)
    ]
