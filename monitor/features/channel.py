"""Features of the recording, not of the voice: channel, conditions, landmarks."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided
from scipy.fft import rfft

from monitor.features.framing import AudioFeature, Framer
from monitor.kinds import HISTOGRAM, LEVELS, FeatureSpec, Sensitivity
from monitor.maths.condition import ROW, describe_seconds
from monitor.maths.landmarks import FRAME_TICKS, FRAMES_PER_SECOND, NAME, PITCHES, STEPS_PER_OCTAVE
from monitor.types import TICKS_PER_SECOND, BoolArray, FloatArray, IntArray, Track

BANDS_HZ = (60, 150, 300, 500, 800, 1300, 2100, 3400, 4600, 6000, 7600)  # edges
SECONDS = 3  # long enough for most readers to pause in it
QUIET, LOUD = 0.1, 0.9  # quantiles: the level between words, and at their peaks
LEAST_RANGE = 1.0  # bels from quiet to loud: less is silence, or noise, and not speech

_RATE = 16000
_LENGTH, _HOP = 512, 1280  # one look every 80 ms is as good as one every 20
_AT_ONCE = 8  # stays in the cache (benchmarks/runs.py)
_SILENCE = np.float32(1e-9)  # 90 dB below full scale, above the steps of 16 bits
_WINDOW = np.hanning(_LENGTH).astype(np.float32)
_EDGES = np.searchsorted(np.fft.rfftfreq(_LENGTH, 1 / _RATE), BANDS_HZ)
_WIDTHS = np.diff(_EDGES).astype(np.float32)


class Channel(AudioFeature):
    """Levels of what a voice comes through, for each three seconds with speech, in bels.

    The quiet and the loud level of ten bands. Another microphone, room, line or gain moves some of
    them and leaves them there. In no template: the change detector follows it.
    """

    spec = FeatureSpec("channel", LEVELS, 2 * len(_WIDTHS), float(SECONDS), _RATE)
    # benchmarks/change.py chose it
    follow = Sensitivity(1, 4, 3.0, 0.5, back_units=4, held_units=1, min_units=3, least_drop=0.4)

    def process(self, samples: FloatArray) -> Track:
        """Return the levels of every three seconds that further samples, shape (n,), complete."""
        pieces = self._framer.push(samples)
        ticks = (self._count + 1 + np.arange(len(pieces))) * SECONDS * TICKS_PER_SECOND
        self._count += len(pieces)
        is_wanted = ticks > self._skip
        if not is_wanted.any():
            return self.spec.no_frames()
        pieces = pieces[np.argmax(is_wanted) :]
        batches = [pieces[start : start + _AT_ONCE] for start in range(0, len(pieces), _AT_ONCE)]
        levels, speech = (
            np.concatenate(arrays) for arrays in zip(*map(_levels, batches), strict=True)
        )
        return Track(ticks[is_wanted][speech], levels[speech])

    def reset(self) -> None:
        """Reset: the next sample is the first of a recording."""
        super().reset()
        self._framer = Framer(SECONDS * _RATE, SECONDS * _RATE)
        self._count = 0


def _levels(pieces: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Compute levels, (n, 20), of shape (n, samples), and where there is speech, (n,)."""
    looks = np.lib.stride_tricks.sliding_window_view(pieces, _LENGTH, axis=1)[:, ::_HOP]
    spectrum = rfft(looks * _WINDOW)
    power = spectrum.real**2 + spectrum.imag**2
    bands = np.add.reduceat(power[..., : _EDGES[-1]], _EDGES[:-1], axis=-1) / (_WIDTHS * _LENGTH)
    every = np.concatenate((bands, bands.sum(axis=-1, keepdims=True)), axis=-1)
    levels = np.sort(np.log10(every + _SILENCE), axis=1).astype(np.float64)
    count = levels.shape[1] - 1
    quiet, loud = levels[:, round(QUIET * count)], levels[:, round(LOUD * count)]
    speech = loud[:, -1] - quiet[:, -1] > LEAST_RANGE
    return np.concatenate((quiet[:, :-1], loud[:, :-1]), axis=1), speech


CONDITION = "sound-condition"  # name of its track; no feature has a hyphen in its own


_MOST_SAMPLES = 1 << 20
_TOGETHER = 8  # seconds that are described together: they stay in a processor's cache


class ConditionRows:
    """One recording, as rows of counts that `monitor.maths.condition` adds up.

    Not a feature: it uses the samples as decoded, since clipping and a narrow band leave their
    traces there. Clipping is looked for in the first channels, of which a second has
    `_MOST_SAMPLES` at most: in 21 of them at 48 kHz.
    """

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._waiting: list[tuple[FloatArray, FloatArray]] = []  # samples of an unfinished second
        self._samples, self._seconds, self._skip = 0, 0, 0

    def process(self, columns: FloatArray, mono: FloatArray) -> Track:
        """Return rows of the seconds that samples, (n, channels), and their mean complete."""
        rate, batches = self._rate, list[IntArray]()
        columns = columns[:, : max(1, _MOST_SAMPLES // rate)]
        count = (self._samples + mono.size) // rate
        if count and self._samples:
            columns, mono = map(np.concatenate, zip(*self._waiting, (columns, mono), strict=True))
        if count:
            self._waiting, self._samples = [], 0
        before = min(max(self._skip // TICKS_PER_SECOND - self._seconds, 0), count)
        for start in range(before, count, _TOGETHER):
            batch = slice(start * rate, min(start + _TOGETHER, count) * rate)
            seconds = columns[batch].reshape(-1, rate, columns.shape[1])
            batches.append(describe_seconds(seconds, mono[batch].reshape(-1, rate), rate))
        if mono.size > count * rate:  # copies, so that a long block is not kept by its last samples
            self._waiting.append((columns[count * rate :].copy(), mono[count * rate :].copy()))
            self._samples += mono.size - count * rate
        rows = np.concatenate(batches) if batches else np.empty((0, ROW), np.int32)
        ticks = (self._seconds + before + 1 + np.arange(len(rows))) * TICKS_PER_SECOND
        self._seconds += count
        return Track(ticks, rows)

    def skip_to(self, tick: int) -> None:
        """Rows complete by ``tick`` of the recording are not computed."""
        self._skip = tick


# ------------------------------------------------------------------------------------- landmarks
# Peaks of the spectrogram, by which repeated audio is recognised. They do not distinguish speakers,
# and are in no sketch. The same words repeated by the same voice have others.
# `monitor.maths.landmarks` compares them.

_PER_BLOCK = 6  # peaks that are kept of half a second, the strongest
_FAINT = 3e-4  # of the power of the strongest peak lately: what is fainter is no landmark
_PEAK_RATE = 8000  # the input of voice activity detection
_SIZE, _STEP = 768, _PEAK_RATE // FRAMES_PER_SECOND
_BLOCK = FRAMES_PER_SECOND // 2  # frames from which the strongest peaks are taken
_BESIDE = 2  # frames on both sides that a peak must exceed (in twos)
_AROUND = 5  # bins on both sides
_LOW_HZ = 200.0
_BINS = slice(round(_LOW_HZ * _SIZE / _PEAK_RATE), round(3600 * _SIZE / _PEAK_RATE))
_HERTZ = (np.arange(_SIZE // 2 + 1) * (_PEAK_RATE / _SIZE)).astype(np.float32)[_BINS]
_TILT = _HERTZ / 1000  # 3 dB an octave: high peaks count as much
_PEAK_WINDOW = np.hanning(_SIZE).astype(np.float32)
_PEAK_TOGETHER = 8 * _BLOCK  # frames: what is made of them stays in the cache of a core
_INNER = _TILT.size - 2 * _AROUND  # bins that have all others around them
_NEIGHBOURS = np.arange(-1, 2)
_FADING = np.float32(0.4)  # of power, each half second


class Landmarks:
    """The strongest peaks of every half second: pitches in 1/60 octaves, and where they lie."""

    spec = FeatureSpec(NAME, HISTOGRAM, PITCHES, 1 / FRAMES_PER_SECOND, _PEAK_RATE)
    follow = None

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Reset: the next sample is the first of a recording."""
        self._sound: FloatArray = np.empty(0, np.float32)  # of which no spectra were made
        self._power = np.zeros((_BESIDE, _TILT.size), np.float32)
        self._frames = 0  # that were looked at
        self._loudest = _SILENCE

    def process(self, samples: FloatArray) -> Track:
        """Return landmarks of every half second that further samples, shape (n,), complete."""
        self._sound = np.concatenate((self._sound, samples), dtype=np.float32)
        return self._due((len(self._power) + self._spectra - 2 * _BESIDE) // _BLOCK * _BLOCK)

    def flush(self) -> Track:
        """Return the landmarks of the rest of the recording."""
        return self._due(len(self._power) + self._spectra - _BESIDE)

    def skip_to(self, tick: int) -> None:
        """Skip nothing, since audio before a stop is needed after it."""

    @property
    def _spectra(self) -> int:
        """Count of spectra that can be made of the samples that wait."""
        return max(0, (self._sound.size - _SIZE) // _STEP + 1)

    def _due(self, count: int) -> Track:
        if count <= 0:
            return self.spec.no_frames()
        times, pitches = self._strongest(*self._peaks(count), count)
        first = self._frames
        self._frames += count
        # known once the half second is over
        blocks = times // _BLOCK
        ends = np.minimum((blocks + 1) * _BLOCK, count)
        ticks = (first + ends + _BESIDE) * FRAME_TICKS + _SIZE * TICKS_PER_SECOND // _PEAK_RATE
        begins = (first + times) * FRAME_TICKS
        spans = np.stack([begins, begins + FRAME_TICKS], axis=1)
        return Track(ticks, pitches, spans)

    def _peaks(self, count: int) -> tuple[IntArray, IntArray, FloatArray]:
        """Find frames and bins of all peaks of further frames, and power there and beside."""
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
            self._loudest = np.float32(max(float(self._loudest * _FADING), height, float(_SILENCE)))
            loudest[number] = self._loudest
        rows = np.flatnonzero(heights > (loudest * np.float32(_FAINT))[blocks])
        rows = rows[np.lexsort((-heights[rows], blocks[rows]))]
        rank = np.arange(rows.size) - np.searchsorted(blocks[rows], blocks[rows])
        rows = np.sort(rows[rank < _PER_BLOCK])
        left, here, right = np.log(neighbours[rows] + _SILENCE).T
        curvature = left - 2 * here + right
        shift = np.where(
            curvature < 0, 0.5 * (left - right) / np.where(curvature < 0, curvature, -1), 0.0
        )
        hertz = _HERTZ[bins[rows]] + np.clip(shift, -0.5, 0.5) * (_PEAK_RATE / _SIZE)
        steps = np.floor(STEPS_PER_OCTAVE * np.log2(hertz / _LOW_HZ)).astype(np.intp)
        # of one frame in order of pitch, as the bins are
        return times[rows], np.clip(steps, 0, PITCHES - 1)


def _spectrum(sound: FloatArray, count: int) -> FloatArray:
    """Power in the relevant bins, for this many frames from the first sample."""
    step = sound.itemsize
    frames = as_strided(sound, (count, _SIZE), (_STEP * step, step), writeable=False)
    spectrum = rfft(frames * _PEAK_WINDOW)[:, _BINS]
    return np.asarray((spectrum.real**2 + spectrum.imag**2) * _TILT)


def _mark_peaks(power: FloatArray) -> BoolArray:
    """Mark bins of the inner frames that exceed all around them; of equals the first one."""
    maxima, width = power, 1
    while width < 2 * _AROUND + 1:  # the largest of this many bins, from there
        step = min(width, 2 * _AROUND + 1 - width)
        maxima, width = np.maximum(maxima[:, :-step], maxima[:, step:]), width + step
    inner = slice(_BESIDE, len(power) - _BESIDE)
    two = np.maximum(maxima[:-1], maxima[1:])  # of two frames
    here = power[inner, _AROUND:-_AROUND]
    is_peak = here >= np.maximum(maxima[inner], two[_BESIDE + 1 :])
    is_peak &= here > two[: len(here)]
    return np.asarray(is_peak)
