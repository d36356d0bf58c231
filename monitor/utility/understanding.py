"""What a listener gets out of a recording: the phones, the pitch and how loud it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.errors import UsageError
from monitor.features.f0 import LOWEST_LAG, RATE
from monitor.features.f0_robust import RobustF0
from monitor.features.resampling import Resampler
from monitor.features.said_phones import said_phones
from monitor.types import TICKS_PER_SECOND, FloatArray, IntArray

__all__ = ["Understood", "pitch_of", "understand"]


@dataclass(frozen=True, eq=False)
class Understood:
    """A recording as it is understood.

    Attributes:
        seconds: its length.
        power: mean of the squared samples.
        phones: what the package's recogniser of English hears, in order, ARPAbet without stress.
        pitch_hertz: shape (ticks,), every 10 ms, by the feature ``f0_robust``; 0 where it is not
            voiced.
    """

    seconds: float
    power: float
    phones: tuple[str, ...]
    pitch_hertz: FloatArray


def understand(samples: FloatArray, rate: int) -> Understood:
    """Listen to one channel of a recording.

    Args:
        samples: shape (n,), in -1 to 1.
        rate: samples a second.

    Raises:
        UsageError: another shape, none, or not finite.

    Example:
        >>> tone = np.sin(2 * np.pi * 100 * np.arange(16000) / 16000)
        >>> heard = understand(tone, 16000)
        >>> heard.seconds, round(heard.power, 3), float(heard.pitch_hertz[50])
        (1.0, 0.5, 100.0)
    """
    samples = np.asarray(samples, np.float32)
    if not samples.size:
        raise UsageError("a recording without samples says nothing")
    phones = tuple(each.phone for each in said_phones(samples, rate))
    power = float(np.mean(np.square(samples, dtype=np.float64)))
    return Understood(samples.size / rate, power, phones, pitch_of(samples, rate))


def pitch_of(samples: FloatArray, rate: int) -> FloatArray:
    """The pitch of one channel of a recording, in hertz, as `Understood` has it: shape (ticks,).

    Example:
        >>> pitch_of(np.sin(2 * np.pi * 100 * np.arange(8000) / 16000), 16000)[20:23].tolist()
        [100.0, 100.0, 100.0]
    """
    resampler = Resampler(rate, RATE)
    samples = np.asarray(samples, np.float32)
    heard = np.concatenate([resampler.process(samples), resampler.flush()])
    track = RobustF0().process(heard)
    pitch = np.zeros(max(-(-heard.size * TICKS_PER_SECOND // RATE), 1 + _last(track.ticks)))
    pitch[track.ticks] = RATE / (track.values + LOWEST_LAG)
    return pitch


def _last(ticks: IntArray) -> int:
    return int(ticks[-1]) if ticks.size else -1
