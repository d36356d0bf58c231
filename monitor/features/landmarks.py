"""Landmarks of a stream: peaks of its spectrogram, by which audio that was heard before is known.

Not a feature that tells speakers apart, and in no sketch: the same words said again by the same
voice have other landmarks. What they are compared by is in `monitor.maths.landmarks`.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.maths.landmarks import FRAME_TICKS, FRAMES_PER_SECOND, NAME, PITCHES, STEPS_PER_OCTAVE
from monitor.maths.spectra import rfft
from monitor.types import TICKS_PER_SECOND, BoolArray, FloatArray, IntArray, Track

PER_BLOCK = 6
"""Peaks that are kept of half a second, the strongest."""
FAINT = 3e-4
"""Of the power of the strongest peak lately: what is fainter is no landmark."""
_RATE = 8000  # as voice activity hears it
_LENGTH, _HOP = 768, _RATE // FRAMES_PER_SECOND
_BLOCK = FRAMES_PER_SECOND // 2  # frames from which the strongest peaks are taken
_BESIDE = 2  # frames on both sides that a peak must exceed (in twos)
_AROUND = 5  # bins on both sides
_LOW_HZ = 200.0
_BINS = slice(round(_LOW_HZ * _LENGTH / _RATE), round(3600 * _LENGTH / _RATE))
_HERTZ = (np.arange(_LENGTH // 2 + 1) * (_RATE / _LENGTH)).astype(np.float32)[_BINS]
_TILT = _HERTZ / 1000  # 3 dB an octave: high peaks count as much
_WINDOW = np.hanning(_LENGTH).astype(np.float32)
_SILENCE = np.float32(1e-9)
_TOGETHER = 8 * _BLOCK  # frames: what is made of them stays in the cache of a core
_INNER = _TILT.size - 2 * _AROUND  # bins that have all others around them
_NEIGHBOURS = np.arange(-1, 2)
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
        self._waiting.append(np.asarray(samples, np.float32))
        self._samples += len(samples)
        ready = len(self._power) + self._spectra - 2 * _BESIDE
        if ready < _BLOCK:  # small blocks cost nothing until a half second is full
            self._waiting[-1] = self._waiting[-1].copy()
            return self.spec.no_frames()
        return self._due(ready // _BLOCK * _BLOCK)

    def flush(self) -> Track:
        """Those of the rest of the recording."""
        return self._due(len(self._power) + self._spectra - _BESIDE)

    def skip_to(self, tick: int) -> None:
        """Nothing is skipped: what was heard before a stop is wanted after it."""

    def reset(self) -> None:
        """Forget everything heard: the next sample is the first of a recording."""
        self._waiting: list[FloatArray] = []  # of which no spectra were made
        self._samples = 0  # of those
        self._power = np.zeros((_BESIDE, _TILT.size), np.float32)
        self._frames = 0  # that were looked at
        self._loudest = _SILENCE

    @property
    def _spectra(self) -> int:
        """How many can be made of the samples that wait."""
        return max(0, (self._samples - _LENGTH) // _HOP + 1)

    def _due(self, count: int) -> Track:
        if count <= 0:
            return self.spec.no_frames()
        times, pitches = self._strongest(*self._peaks(count), count)
        first = self._frames
        self._frames += count
        # known once the half second is over
        blocks = times // _BLOCK
        ends = np.minimum((blocks + 1) * _BLOCK, count)
        ticks = (first + ends + _BESIDE) * FRAME_TICKS + _LENGTH * TICKS_PER_SECOND // _RATE
        begins = (first + times) * FRAME_TICKS
        spans = np.stack([begins, begins + FRAME_TICKS], axis=1)
        return Track(ticks, pitches, spans)

    def _peaks(self, count: int) -> tuple[IntArray, IntArray, FloatArray]:
        """Frames and bins of all peaks of further frames, and power there and in the bins beside.

        After the end of a recording there is silence.
        """
        sound, taken = np.concatenate(self._waiting), 0
        found = []
        for first in range(0, count, _TOGETHER):
            some = min(_TOGETHER, count - first)
            before = len(self._power)
            power = np.zeros((some + 2 * _BESIDE, _TILT.size), np.float32)
            power[:before] = self._power
            more = min(len(power) - before, (sound.size - taken - _LENGTH) // _HOP + 1)
            if more > 0:
                power[before : before + more] = _spectrum(sound[taken:], more)
                taken += more * _HOP
            self._power = power[some:].copy()
            place = np.flatnonzero(_exceeding(power))
            times, bins = place // _INNER, place % _INNER + _AROUND
            beside = power[times[:, None] + _BESIDE, bins[:, None] + _NEIGHBOURS]
            found.append((times + first, bins, beside))
        self._waiting = [sound[taken:].copy()]
        self._samples = sound.size - taken
        frames, pitches, powers = zip(*found, strict=True)
        return np.concatenate(frames), np.concatenate(pitches), np.concatenate(powers)

    def _strongest(
        self, times: IntArray, bins: IntArray, beside: FloatArray, count: int
    ) -> tuple[IntArray, IntArray]:
        """Frames and pitches of the strongest peaks of each half second, in order."""
        heights = beside[:, 1]
        blocks = times // _BLOCK
        loudest = np.zeros(-(-count // _BLOCK), np.float32)
        np.maximum.at(loudest, blocks, heights)
        for number, height in enumerate(loudest.tolist()):
            self._loudest = np.float32(max(float(self._loudest * _FADING), height, float(_SILENCE)))
            loudest[number] = self._loudest
        some = np.flatnonzero(heights > (loudest * np.float32(FAINT))[blocks])
        some = some[np.lexsort((-heights[some], blocks[some]))]
        rank = np.arange(some.size) - np.searchsorted(blocks[some], blocks[some])
        some = np.sort(some[rank < PER_BLOCK])
        left, here, right = np.log(beside[some] + _SILENCE).T
        bend = left - 2 * here + right
        shift = np.where(bend < 0, 0.5 * (left - right) / np.where(bend < 0, bend, -1), 0.0)
        hertz = _HERTZ[bins[some]] + np.clip(shift, -0.5, 0.5) * (_RATE / _LENGTH)
        steps = np.floor(STEPS_PER_OCTAVE * np.log2(hertz / _LOW_HZ)).astype(np.intp)
        # of one frame in order of pitch, as the bins are
        return times[some], np.clip(steps, 0, PITCHES - 1)


def _spectrum(sound: FloatArray, count: int) -> FloatArray:
    """Power in the bins that are looked at, of so many frames from the first sample on."""
    step = sound.itemsize
    frames = as_strided(sound, (count, _LENGTH), (_HOP * step, step), writeable=False)
    spectrum = rfft(frames * _WINDOW)[:, _BINS]
    return np.asarray((spectrum.real**2 + spectrum.imag**2) * _TILT)


def _exceeding(power: FloatArray) -> BoolArray:
    """Which bins of the inner frames exceed all around them; of equals the first one does."""
    wide, width = power, 1
    while width < 2 * _AROUND + 1:  # the largest of so many bins, from there on
        step = min(width, 2 * _AROUND + 1 - width)
        wide, width = np.maximum(wide[:, :-step], wide[:, step:]), width + step
    inner = slice(_BESIDE, len(power) - _BESIDE)
    two = np.maximum(wide[:-1], wide[1:])  # of two frames
    here = power[inner, _AROUND:-_AROUND]
    found = here >= np.maximum(wide[inner], two[_BESIDE + 1 :])
    found &= here > two[: len(here)]
    return np.asarray(found)
