"""Log mel bands of every utterance that trains, at several speeds, computed once.

Augmentation is done on bands from then on: a step needs no Fourier transform.
"""

from __future__ import annotations

import sys
from functools import cached_property
from itertools import accumulate
from pathlib import Path

import numpy as np
import scipy.fft

from monitor.files import atomic_write
from monitor.networks.layers import BANDS, HOP, WIDTH, log_mel
from monitor.types import AnyArray, FloatArray
from recipes.phones.prepare import Spoken, Utterance

__all__ = ["SPEEDS", "Bands"]

SPEEDS = (1.0, 0.9, 1.1)
"""How fast (and how high) an utterance may be said (Ko et al., Interspeech 2015)."""
_STEP = 990  # samples: a multiple of it can be made 0.9 and 1.1 times as fast exactly


class Bands:
    """Utterances as bands.

    Args:
        spoken: prepared; its folder keeps the bands as well (float16, mode 0600).
        indices: of the utterances, in the order in which they are kept.
        speed: of `SPEEDS`.
    """

    def __init__(self, spoken: Spoken, indices: list[int], speed: float) -> None:
        self._spoken, self._indices, self._speed = spoken, indices, speed
        sizes = [self._samples(spoken.utterances[i]) for i in indices]
        counts = [max(0, 1 + (size - WIDTH) // HOP) for size in sizes]
        self._begins = dict(zip(indices, [0, *accumulate(counts)][:-1], strict=True))
        self._counts = dict(zip(indices, counts, strict=True))

    def __getitem__(self, index: int) -> FloatArray:
        """Shape (t, 40), float32."""
        begin = self._begins[index]
        return np.asarray(self._held[begin : begin + self._counts[index]], np.float32)

    @cached_property
    def _held(self) -> AnyArray:
        shape = sum(self._counts.values()), BANDS
        path = self._spoken.cache.folder / f"bands-{self._speed}.f16"
        if not path.exists() or path.stat().st_size != 2 * shape[0] * shape[1]:
            self._write(path)
        return np.memmap(path, np.float16, "r", shape=shape)

    def _write(self, path: Path) -> None:
        with atomic_write(path) as file:
            for done, index in enumerate(self._indices, 1):
                file.write(log_mel(self._sound(index)).astype(np.float16).tobytes())
                if done % 50 == 0:
                    print(
                        f"\r{path.name}: {done / len(self._indices):.0%}", end="", file=sys.stderr
                    )
        print(file=sys.stderr)

    def _samples(self, utterance: Utterance) -> int:
        return round(utterance.samples / self._speed)

    def _sound(self, index: int) -> FloatArray:
        utterance = self._spoken.utterances[index]
        sound = self._spoken.sound(utterance)
        if self._speed == 1:
            return sound
        steps = scipy.fft.next_fast_len(-(-len(sound) // _STEP), real=True)
        padded = np.pad(sound, (0, steps * _STEP - len(sound)))
        return stretched(padded, round(len(padded) / self._speed))[: self._samples(utterance)]


def stretched(sound: FloatArray, samples: int) -> FloatArray:
    """A sound of another number of samples: another speed and pitch, nothing else.

    Args:
        sound: shape (n,), float32.
        samples: of the result.

    Returns:
        shape (samples,), float32.
    """
    if samples == len(sound):
        return sound
    spectrum = scipy.fft.rfft(sound)
    kept = np.zeros(samples // 2 + 1, np.complex64)
    kept[: len(spectrum)] = spectrum[: len(kept)] * np.float32(samples / len(sound))
    return np.asarray(scipy.fft.irfft(kept, samples), np.float32)
