"""Training windows: three seconds of a clip, clean or under a random condition."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Generator, Iterator
from functools import cached_property
from pathlib import Path
from queue import Empty
from typing import Any

import numpy as np

from monitor.errors import CorpusError
from monitor.networks.voice import mel_decibels
from monitor.types import FloatArray, IntArray
from recipes.voice.clips import Clips
from recipes.voice.conditions import Conditions

WINDOW = 48_000
"""Samples, as in the feature ``voice``."""
_SHORTER = ((1.0, 0.8), (2 / 3, 0.92), (1 / 3, 1.0))
"""Fraction of the window that a batch uses, and its cumulative probability."""
_ROOMS = 150
_QUIET, _LOUD = 0.08, 0.16
"""Cumulative probabilities of rounding a view as if too quiet, and of clipping it."""
_PEAK = 0.95


class Windows:
    """One window of every clip, and views of it.

    Args:
        clips: training clips.
        noise: a folder of recordings of noise.
        seed: random seed of views and batches.
    """

    def __init__(self, clips: Clips, noise: Path, seed: int) -> None:
        self._clips, self._noise, self.rng = clips, noise, np.random.default_rng(seed)
        begins = np.random.default_rng(0).random(len(clips))
        self._begins = (begins * np.maximum(clips.samples - WINDOW + 1, 1)).astype(int)

    @cached_property
    def _conditions(self) -> Conditions:
        clips = self._clips
        return Conditions.simulated(
            self._noise, lambda rng: clips.sound(int(rng.integers(len(clips)))), rooms=_ROOMS
        )

    def __len__(self) -> int:
        return len(self._clips)

    def clean(self, clip: int) -> FloatArray:
        """Return the window of a clip, (48000,); a shorter clip is repeated."""
        sound = self._clips.sound(clip)
        begin = self._begins[clip]
        return np.resize(sound[begin : begin + WINDOW], WINDOW)

    def view(self, clip: int) -> FloatArray:
        """Return the window of a clip under a random condition, (48000,)."""
        sound, uniform = self._conditions.view(self.clean(clip), self.rng), self.rng.random()
        if uniform < _QUIET:
            steps = 32768 * 10 ** (-self.rng.uniform(20, 45) / 20)
            sound = np.round(_normalise_level(sound) * steps) / np.float32(steps)
        elif uniform < _LOUD:
            level = 10 ** (-self.rng.uniform(6, 16) / 20)
            sound = np.clip(sound * level / np.sqrt(np.mean(sound**2) + 1e-9), -1, 1)
        return np.asarray(sound, np.float32)

    def batches(self, size: int, clean: float) -> Iterator[tuple[FloatArray, IntArray]]:
        """Yield bands, (size, t, 80), and their clips, (size,), endlessly.

        ``clean`` is the fraction of clean windows. All windows of a batch have three, two or one
        seconds.
        """
        while True:
            order = self.rng.permutation(len(self._clips))
            for first in range(0, len(order) - size + 1, size):
                clips, uniform = order[first : first + size], self.rng.random()
                share = next(share for share, most in _SHORTER if uniform < most)
                begin = self.rng.integers(WINDOW - round(share * WINDOW) + 1)
                part = slice(begin, begin + round(share * WINDOW))
                sounds = [
                    self.clean(clip) if self.rng.random() < clean else self.view(clip)
                    for clip in clips.tolist()
                ]
                yield bands_of(sounds, part), clips


def bands_of(sounds: list[FloatArray], part: slice = slice(None)) -> FloatArray:
    """Compute the bands of sounds of equal length, rounded to 16 bits: shape (b, t, 80)."""
    return np.stack([mel_decibels(_normalise_level(sound)[part]) for sound in sounds])


def _normalise_level(sound: FloatArray) -> FloatArray:
    loudest = np.float32(_PEAK / (float(np.abs(sound).max()) + 1e-9))
    return np.asarray(np.round(sound * loudest * 32767) / 32767, np.float32)


def generate_in_parallel(
    folder: Path, noise: Path, seed: int, size: int, clean: float
) -> Generator[tuple[FloatArray, IntArray], None, None]:
    """Yield batches of `Windows.batches`, which another process prepares in parallel.

    Raises:
        CorpusError: the process has ended.
    """
    queue: Any = multiprocessing.Queue(12)
    arguments = (queue, folder, noise, seed, size, clean)
    process = multiprocessing.Process(target=_fill_queue, args=arguments, daemon=True)
    process.start()
    try:
        while True:
            try:
                batch = queue.get(timeout=1)
            except Empty:
                if not process.is_alive():
                    raise CorpusError(f"{folder}: the process that makes batches ended") from None
                continue
            yield batch
    finally:
        process.terminate()
        process.join()


def _fill_queue(queue: Any, folder: Path, noise: Path, seed: int, size: int, clean: float) -> None:
    os.nice(3)
    for batch in Windows(Clips(folder), noise, seed).batches(size, clean):
        queue.put(batch)
