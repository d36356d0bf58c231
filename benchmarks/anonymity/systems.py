"""What changes a voice: the monitor's protectors, a codec at a low rate, and nothing at all."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import soundfile

from benchmarks.opus import coded
from monitor.networks.mel import RATE
from monitor.protectors.registry import make
from monitor.protectors.utterance import Utterance
from monitor.result_cache import code_mark
from monitor.types import FloatArray

__all__ = ["OPUS", "RECORDINGS", "Changed", "change", "mark_of"]

RECORDINGS, OPUS = "recordings", "opus"
SEED = 0


@dataclass(frozen=True, slots=True)
class Changed:
    """An excerpt as it is published.

    Attributes:
        sound: shape (n,), at 16 kHz.
        bits: that were sent; None where nothing is coded.
    """

    sound: FloatArray
    bits: float | None = None


def change(system: str, sound: FloatArray, name: str, speaker: str) -> Changed:
    """An excerpt through a system; draws go by its name.

    Raises:
        UsageError: there is no such system.
    """
    if system == RECORDINGS:
        return Changed(sound)
    if system == OPUS:
        return Changed(*coded(sound, RATE))
    protector = make(system, Utterance(RATE, name, speaker, 0, SEED))
    made = np.concatenate([protector.process(sound), protector.flush()])
    return Changed(np.asarray(made, np.float32))


@cache
def mark_of(system: str) -> list[Any]:
    """What the work of a system depends on, for a cache."""
    if system == RECORDINGS:
        return []
    if system == OPUS:
        return [soundfile.__libsndfile_version__]
    return [SEED, code_mark("monitor.protectors", "monitor.networks")]
