"""Landmarks: peaks of the spectrogram, by which repeated audio is recognised.

They do not distinguish speakers, and are in no sketch. The same words spoken again by the same
voice have other landmarks. `monitor.maths.landmarks` compares them.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided
from scipy.fft import rfft

from monitor.features.channel import SILENCE
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.maths.landmarks import FRAME_TICKS, FRAMES_PER_SECOND, NAME, PITCHES, STEPS_PER_OCTAVE
from monitor.types import TICKS_PER_SECOND, BoolArray, FloatArray, IntArray, Track

_PER_BLOCK = 6  # strongest peaks kept per half second
_FAINT = 3e-4  # minimum power of a landmark relative to the strongest recent peak
_PEAK_RATE = 8000  # the input of voice activity detection
_SIZE, _STEP = 768, _PEAK_RATE // FRAMES_PER_SECOND
_BLOCK = FRAMES_PER_SECOND // 2  # frames from which the strongest peaks are taken
_BESIDE = 2  # frames on either side that a peak must exceed
_AROUND = 5  # bins on either side that a peak must exceed
_LOW_HZ = 200.0
_BINS = slice(round(_LOW_HZ * _SIZE / _PEAK_RATE), round(3600 * _SIZE / _PEAK_RATE))
_HERTZ = (np.arange(_SIZE // 2 + 1) * (_PEAK_RATE / _SIZE)).astype(np.float32)[_BINS]
_TILT = _HERTZ / 1000  # 3 dB per octave, so that high peaks count as much
_PEAK_WINDOW = np.hanning(_SIZE).astype(np.float32)
_PEAK_TOGETHER = 8 * _BLOCK  # frames per batch, which stays in the cache
_INNER = _TILT.size - 2 * _AROUND  # bins with all their neighbours
_NEIGHBOURS = np.arange(-1, 2)
_FADING = np.float32(0.4)  # decay of the strongest power per half second


class Landmarks:
    """The strongest peaks of every half second: pitches in 1/60 octaves, and their times."""

    spec = FeatureSpec(NAME, HISTOGRAM, PITCHES, 1 / FRAMES_PER_SECOND, _PEAK_RATE)
    follow = None

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Reset: the next sample is the first of a recording."""
        self._sound: FloatArray = np.empty(0, np.float32)  # samples without spectra so far
        self._power = np.zeros((_BESIDE, _TILT.size), np.float32)
        self._frames = 0  # frames searched so far
        self._loudest = SILENCE

    def process(self, samples: FloatArray) -> Track:
        """Return landmarks of every half second that further samples, shape (n,), complete."""
        self._sound = np.concatenate((self._sound, samples), dtype=np.float32)
        return self._due((len(self._power) + self._spectra - 2 * _BESIDE) // _BLOCK * _BLOCK)

    def flush(self) -> Track:
        """Return the landmarks of the rest of the recording."""
        return self._due(len(self._power) + self._spectra - _BESIDE)

    def skip_to(self, tick: int) -> None:
        """Skip nothing, since later audio is compared with earlier landmarks."""

    def snapshot_attributes(self) -> dict[str, object]:
        """Return the attributes that a snapshot keeps: spectra in place of their samples."""
        count = self._spectra
        power = np.concatenate((self._power, _spectrum(self._sound, count)))
        return {**vars(self), "_power": power, "_sound": self._sound[count * _STEP :]}

    @property
    def _spectra(self) -> int:
        """Number of spectra that the waiting samples complete."""
        return max(0, (self._sound.size - _SIZE) // _STEP + 1)

    def _due(self, count: int) -> Track:
        if count <= 0:
            return self.spec.no_frames()
        times, pitches = self._strongest(*self._peaks(count), count)
        first = self._frames
        self._frames += count
        # available at the end of the half second
        blocks = times // _BLOCK
        ends = np.minimum((blocks + 1) * _BLOCK, count)
        ticks = (first + ends + _BESIDE) * FRAME_TICKS + _SIZE * TICKS_PER_SECOND // _PEAK_RATE
        begins = (first + times) * FRAME_TICKS
        spans = np.stack([begins, begins + FRAME_TICKS], axis=1)
        return Track(ticks, pitches, spans)

    def _peaks(self, count: int) -> tuple[IntArray, IntArray, FloatArray]:
        """Find frame and bin of all peaks of further frames, and power in three bins, (k, 3)."""
        sound, position = self._sound, 0
        peaks = []
        for first in range(0, count, _PEAK_TOGETHER):
            size = min(_PEAK_TOGETHER, count - first)
            before = len(self._power)
            power = np.zeros((size + 2 * _BESIDE, _TILT.size), np.float32)
            power[:before] = self._power
            count_in = min(len(power) - before, (sound.size - position - _SIZE) // _STEP + 1)
            if count_in > 0:
                power[before : before + count_in] = _spectrum(sound[position:], count_in)
                position += count_in * _STEP
            self._power = power[size:].copy()
            indices = np.flatnonzero(_mark_peaks(power))
            times, bins = indices // _INNER, indices % _INNER + _AROUND
            neighbours = power[times[:, None] + _BESIDE, bins[:, None] + _NEIGHBOURS]
            peaks.append((times + first, bins, neighbours))
        self._sound = sound[position:].copy()
        frames, pitches, powers = zip(*peaks, strict=True)
        return np.concatenate(frames), np.concatenate(pitches), np.concatenate(powers)

    def _strongest(
        self, times: IntArray, bins: IntArray, neighbours: FloatArray, count: int
    ) -> tuple[IntArray, IntArray]:
        """Return frames and pitches of the strongest peaks of each half second, in order."""
        heights = neighbours[:, 1]
        blocks = times // _BLOCK
        loudest = np.zeros(-(-count // _BLOCK), np.float32)
        np.maximum.at(loudest, blocks, heights)
        for number, height in enumerate(loudest.tolist()):
            self._loudest = np.float32(max(float(self._loudest * _FADING), height, float(SILENCE)))
            loudest[number] = self._loudest
        rows = np.flatnonzero(heights > (loudest * np.float32(_FAINT))[blocks])
        rows = rows[np.lexsort((-heights[rows], blocks[rows]))]
        rank = np.arange(rows.size) - np.searchsorted(blocks[rows], blocks[rows])
        rows = np.sort(rows[rank < _PER_BLOCK])
        below, here, above = np.log(neighbours[rows] + SILENCE).T
        curvature = below - 2 * here + above
        shift = np.where(
            curvature < 0, 0.5 * (below - above) / np.where(curvature < 0, curvature, -1), 0.0
        )
        hertz = _HERTZ[bins[rows]] + np.clip(shift, -0.5, 0.5) * (_PEAK_RATE / _SIZE)
        steps = np.floor(STEPS_PER_OCTAVE * np.log2(hertz / _LOW_HZ)).astype(np.intp)
        # peaks of one frame are in order of pitch, as the bins are
        return times[rows], np.clip(steps, 0, PITCHES - 1)


def _spectrum(sound: FloatArray, count: int) -> FloatArray:
    """Compute the power in the relevant bins of ``count`` frames from the first sample."""
    step = sound.itemsize
    frames = as_strided(sound, (count, _SIZE), (_STEP * step, step), writeable=False)
    spectrum = rfft(frames * _PEAK_WINDOW)[:, _BINS]
    return np.asarray((spectrum.real**2 + spectrum.imag**2) * _TILT)


def _mark_peaks(power: FloatArray) -> BoolArray:
    """Mark bins of the inner frames that exceed all neighbours; only the first of equal ones."""
    maxima, width = power, 1
    while width < 2 * _AROUND + 1:  # maxima over ``width`` bins from each bin
        step = min(width, 2 * _AROUND + 1 - width)
        maxima, width = np.maximum(maxima[:, :-step], maxima[:, step:]), width + step
    inner = slice(_BESIDE, len(power) - _BESIDE)
    two = np.maximum(maxima[:-1], maxima[1:])  # maxima over two frames
    here = power[inner, _AROUND:-_AROUND]
    is_peak = here >= np.maximum(maxima[inner], two[_BESIDE + 1 :])
    is_peak &= here > two[: len(here)]
    return np.asarray(is_peak)
