"""Landmarks of a stream: peaks of its spectrogram, by which audio that was heard before is known.

Not a feature that tells speakers apart, and in no sketch: the same words said again by the same
voice have other landmarks. What they are compared by is in `monitor.maths.landmarks`.
"""

from __future__ import annotations

import numpy as np

from monitor.features.framing import Framer
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.maths.landmarks import (
    FRAME_TICKS,
    FRAMES_PER_SECOND,
    NAME,
    PITCHES,
    STEPS_PER_OCTAVE,
)
from monitor.maths.spectra import fft
from monitor.types import TICKS_PER_SECOND, FloatArray, IntArray, Track

__all__ = ["Landmarks"]

PER_BLOCK = 6
"""Peaks that are kept of half a second, the strongest."""
FAINT = 3e-4
"""Of the power of the strongest peak lately: what is fainter is no landmark."""
_RATE = 8000  # as voice activity hears it
_LENGTH, _HOP = 768, _RATE // FRAMES_PER_SECOND
_BLOCK = FRAMES_PER_SECOND // 2  # frames from which the strongest peaks are taken
_BESIDE = 2  # frames on both sides that a peak must exceed
_AROUND = 5  # bins on both sides
_LOW_HZ = 200.0
_BINS = slice(round(_LOW_HZ * _LENGTH / _RATE), round(3600 * _LENGTH / _RATE))
_HERTZ = (np.arange(_LENGTH // 2 + 1) * (_RATE / _LENGTH)).astype(np.float32)[_BINS]
_TILT = _HERTZ / 1000  # 3 dB an octave: high peaks count as much
_WINDOW = np.hanning(_LENGTH).astype(np.float32)
_SILENCE = np.float32(1e-9)
_FADING = np.float32(0.4)  # of power, each half second


class Landmarks:
    """The strongest peaks of every half second: pitches in 1/60 octaves, and where they lie.

    Example:
        >>> noise = np.random.default_rng(0).standard_normal(16000)
        >>> one, other = Landmarks(), Landmarks()
        >>> track, half = one.process(noise), other.process(noise / 2)
        >>> track.values.size, np.array_equal(track.values, half.values)
        (18, True)
    """

    spec = FeatureSpec(NAME, HISTOGRAM, PITCHES, 1 / FRAMES_PER_SECOND, _RATE)
    follow = None

    def __init__(self) -> None:
        self.reset()

    def process(self, samples: FloatArray) -> Track:
        """The landmarks of every half second that these further samples, shape (n,), complete."""
        self._add(_spectrum(self._framer.push(samples)))
        blocks = (len(self._power) - 2 * _BESIDE) // _BLOCK
        return self._due(max(0, blocks) * _BLOCK)

    def flush(self) -> Track:
        """Those of the rest of the recording."""
        self._add(np.zeros((_BESIDE, _TILT.size), np.float32))
        return self._due(max(0, len(self._power) - 2 * _BESIDE))

    def skip_to(self, tick: int) -> None:
        """Nothing is skipped: what was heard before a stop is wanted after it."""

    def reset(self) -> None:
        """Forget everything heard: the next sample is the first of a recording."""
        self._framer = Framer(_LENGTH, _HOP)
        self._power = np.zeros((_BESIDE, _TILT.size), np.float32)
        self._frames = 0  # that were looked at
        self._loudest = _SILENCE

    def _add(self, power: FloatArray) -> None:
        if len(power):
            self._power = np.concatenate((self._power, power))

    def _due(self, count: int) -> Track:
        """The landmarks of so many further frames."""
        if count <= 0:
            return self.spec.no_frames()
        power = self._power[: count + 2 * _BESIDE]
        self._power = self._power[count:].copy()
        times, pitches = self._strongest(power, count)
        first = self._frames
        self._frames += count
        # known once the half second is over
        blocks = times // _BLOCK
        ends = np.minimum((blocks + 1) * _BLOCK, count)
        ticks = (first + ends + _BESIDE) * FRAME_TICKS + _LENGTH * TICKS_PER_SECOND // _RATE
        begins = (first + times) * FRAME_TICKS
        spans = np.stack([begins, begins + FRAME_TICKS], axis=1)
        return Track(ticks, pitches, spans)

    def _strongest(self, power: FloatArray, count: int) -> tuple[IntArray, IntArray]:
        """Frames and pitches of the strongest peaks of each half second, in order."""
        times, bins = _peaks(power)
        heights = power[times + _BESIDE, bins]
        blocks = times // _BLOCK
        order = np.lexsort((-heights, blocks))
        times, bins, heights, blocks = times[order], bins[order], heights[order], blocks[order]
        rank = np.arange(times.size) - np.searchsorted(blocks, blocks)
        loudest = np.zeros(-(-count // _BLOCK), np.float32)
        np.maximum.at(loudest, blocks, heights)
        for number, height in enumerate(loudest.tolist()):
            self._loudest = np.float32(max(float(self._loudest * _FADING), height, float(_SILENCE)))
            loudest[number] = self._loudest
        kept = (rank < PER_BLOCK) & (heights > loudest[blocks] * np.float32(FAINT))
        times, bins = times[kept], bins[kept]
        rows = power[times + _BESIDE]
        left, here, right = (
            np.log(rows[np.arange(times.size), bins + d] + _SILENCE) for d in (-1, 0, 1)
        )
        bend = left - 2 * here + right
        shift = np.where(bend < 0, 0.5 * (left - right) / np.where(bend < 0, bend, -1), 0.0)
        hertz = _HERTZ[bins] + np.clip(shift, -0.5, 0.5) * (_RATE / _LENGTH)
        steps = np.floor(STEPS_PER_OCTAVE * np.log2(hertz / _LOW_HZ)).astype(np.intp)
        order = np.lexsort((steps, times))
        return times[order], np.clip(steps[order], 0, PITCHES - 1)


def _spectrum(frames: FloatArray) -> FloatArray:
    """Shape (n, samples) to power in the bins that are looked at."""
    if not len(frames):
        return np.empty((0, _TILT.size), np.float32)
    spectrum = fft.rfft(frames * _WINDOW)[:, _BINS]
    return np.asarray((spectrum.real**2 + spectrum.imag**2) * _TILT)


def _peaks(power: FloatArray) -> tuple[IntArray, IntArray]:
    """Frames (those beside left out) and bins that exceed all around them."""
    wide, width = power, 1
    while width < 2 * _AROUND + 1:  # the largest of so many bins, from there on
        step = min(width, 2 * _AROUND + 1 - width)
        wide, width = np.maximum(wide[:, :-step], wide[:, step:]), width + step
    power = power[:, _AROUND:-_AROUND]
    inner = slice(_BESIDE, len(power) - _BESIDE)
    found = power[inner] >= wide[inner]
    for step in range(1, _BESIDE + 1):
        found &= power[inner] > wide[_BESIDE - step : len(power) - _BESIDE - step]
        found &= power[inner] >= wide[_BESIDE + step : len(power) - _BESIDE + step]
    times, bins = np.nonzero(found)
    return times, bins + _AROUND
