"""What changes a voice: the monitor's anonymisers, a codec at a low rate, and nothing at all."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import soundfile

from benchmarks.anonymity.changed import Changed
from benchmarks.anonymity.codec import CODEC, VOCODER, again, bits_of, decoded, network_of
from benchmarks.opus import coded
from monitor.anonymisers.filters import Utterance
from monitor.anonymisers.registry import make
from monitor.networks.layers import RATE
from monitor.types import FloatArray

__all__ = ["OPUS", "RECORDINGS", "change", "mark_of"]

RECORDINGS, OPUS, USC = "recordings", "opus", "usc"
SEED = 0
_VERSION = 1  # of anonymisers and networks: raise it when results change


def change(system: str, sound: FloatArray, name: str, speaker: str) -> Changed:
    """An excerpt through a system; draws go by its name.

    Raises:
        UsageError: there is no such system.
    """
    if system == RECORDINGS:
        return Changed(sound)
    if system == OPUS:
        return Changed(*coded(sound, RATE))
    if system == VOCODER:
        return again(sound)
    utterance = Utterance(RATE, name, speaker, 0, SEED)
    if system.startswith(f"{CODEC}:"):
        return decoded(system.removeprefix(f"{CODEC}:"), sound, utterance)
    anonymiser = make(system, utterance)
    made = np.concatenate([anonymiser.process(sound), anonymiser.flush()])
    kind = system.partition(":")[0]
    bits = bits_of(network_of(""), 1, len(sound)) if kind == USC else None
    return Changed(np.asarray(made, np.float32), bits)


@cache
def mark_of(system: str) -> list[Any]:
    """What the work of a system depends on, for a cache."""
    if system == RECORDINGS:
        return []
    if system == OPUS:
        return [soundfile.__libsndfile_version__]
    codec = system.partition(":")[0] in (CODEC, USC)
    weights = [network_of(system.partition("@")[2]).sha256] if codec else []
    return [SEED, _VERSION, *weights]
