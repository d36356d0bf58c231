"""Fundamental frequency, as in SRD, and for voices with moved formants."""

from __future__ import annotations

from threading import local

import numpy as np
from scipy.fft import dct, rfft

from monitor.features.framing import AudioFeature, Framer
from monitor.kinds import HISTOGRAM, FeatureSpec, Sensitivity
from monitor.types import FloatArray, IntArray, Track

RATE = 8000
HOP = RATE // 100
FRAME = 2 * (RATE // 65)  # two periods of the deepest voice, 65 Hz: 246 samples
_SEARCH_FROM = RATE // 450 + 1
LOWEST_LAG = _SEARCH_FROM + 1  # 19 samples, 421 Hz; a dip at the first lag counts as unvoiced
HIGHEST_LAG = FRAME // 2 - 1  # 122 samples, 65.6 Hz
THRESHOLD = 0.1
_FLOOR = np.float32(1e-5)
_ROUNDING = np.float32(3e-4)  # fraction of the energy up to which differences are rounding

_POINTS = 384  # >= 246 + 122: the circular correlation is the linear one at every lag used
_CHUNK = 240  # frames at a time: they stay in the second-level cache (benchmarks/speed.py)
_SCALE = np.float32(-2 / _POINTS)
_SEARCHED = slice(_SEARCH_FROM - 1, HIGHEST_LAG)  # of rows that start at lag 1
_LAGS = np.arange(_SEARCH_FROM, HIGHEST_LAG + 1, dtype=np.float32)[:, None]
_PRIORITY = np.arange(HIGHEST_LAG - _SEARCH_FROM + 1, 0, -1, dtype=np.uint8)[:, None]


class F0(AudioFeature):
    """Histogram feature of fundamental frequency: the YIN lags of voiced frames every 10 ms.

    Source: de Cheveigné and Kawahara, "YIN, a fundamental frequency estimator for speech and
    music", JASA 111 (2002). It uses equations (6) to (8) and the absolute threshold of section
    II.D, without the parabolic interpolation. Bins are 104 lags, from the lowest up.

    Example:
        >>> import numpy as np
        >>> track = F0().process(np.sin(2 * np.pi * 100 * np.arange(400) / 8000))
        >>> track.ticks, track.values + LOWEST_LAG
        (array([4, 5]), array([80, 80]))
    """

    spec = FeatureSpec("f0", HISTOGRAM, HIGHEST_LAG - LOWEST_LAG + 1, HOP / RATE, RATE)
    # benchmarks/change.py chose it
    follow = Sensitivity(50, 200, 10.0, 0.01, back_units=20, held_units=4, min_units=3)
    # a whisper has up to 0.01, speech in noise 0.03 and more (benchmarks/results/world.md)
    least_share = 0.02

    def process(self, samples: FloatArray) -> Track:
        """Return the voiced frames that these further samples, shape (n,), complete."""
        frames = self._framer.push(samples)
        start = self._frames
        self._frames += len(frames)
        skipped = min(max(0, self._skip - _tick(start) + 1), len(frames))
        if not hasattr(_PER_THREAD, "yin"):
            _PER_THREAD.yin = _Yin()
        yin: _Yin = _PER_THREAD.yin
        lags = yin.lags(frames[skipped:])
        voiced = np.flatnonzero(lags)
        return Track(voiced + _tick(start + skipped), lags[voiced] - LOWEST_LAG)

    def reset(self) -> None:
        """Reset: the next sample is the first of a recording."""
        super().reset()
        self._framer = Framer(FRAME, HOP)
        self._frames = 0


def _tick(frame: int) -> int:
    """Return the tick that contains the last sample of a frame."""
    return -(-(HOP * frame + FRAME) // HOP)


class _Yin:
    """The steps of YIN over a chunk of frames, in memory that is kept from chunk to chunk.

    Transforms run along rows, one frame each; all that follows has a row for each lag and a column
    for each frame. Nothing in a frame's result depends on the others of its chunk.
    """

    def __init__(self) -> None:
        self._padded = np.zeros((_CHUNK, _POINTS), np.float32)
        self._power = np.empty((_CHUNK, _POINTS // 2 + 1), np.float32)
        self._columns = np.empty((2, HIGHEST_LAG * _CHUNK), np.float32)

    def lags(self, frames: FloatArray) -> IntArray:
        """Find lags of frames, (n, 246), shape (n,); 0 where a frame is not periodic."""
        lags = np.zeros(len(frames), np.intp)
        for start in range(0, len(frames), _CHUNK):
            chunk = frames[start : start + _CHUNK]
            lags[start : start + len(chunk)] = _search(self._normalised(chunk))[: len(chunk)]
        return lags

    def _normalised(self, frames: FloatArray) -> FloatArray:
        """Compute equation (8) at lags 18 to 122: shape (105, n), or (105, n + 1) for odd n."""
        even = len(frames) + len(frames) % 2  # for the running sums
        correlation = self._correlation(frames, even)
        energy = correlation[0] * np.float32(1 / _POINTS)
        rows, sums = self._columns[:, : HIGHEST_LAG * even].reshape(2, HIGHEST_LAG, even)

        # Equation (6): a longer lag leaves out one more sample at either end of the frame.
        ends, others = rows[:, : len(frames)], sums[:, : len(frames)]
        rows[:, len(frames) :] = 0
        np.square(frames.T[:HIGHEST_LAG], out=ends)
        np.square(frames.T[: -HIGHEST_LAG - 1 : -1], out=others)
        ends += others
        rows[0] -= 2 * energy
        _running_sum(rows, out=sums)
        difference = np.multiply(correlation[1 : HIGHEST_LAG + 1], _SCALE, out=rows)
        difference -= sums

        _running_sum(difference, out=sums)
        normalised, total = difference[_SEARCHED], sums[_SEARCHED]
        np.maximum(total, np.maximum(_FLOOR, _ROUNDING * energy), out=total)
        normalised *= _LAGS
        normalised /= total
        return normalised

    def _correlation(self, frames: FloatArray, even: int) -> FloatArray:
        """Compute 384 times the autocorrelation, (lags, even); columns beyond frames are stale."""
        padded, power = self._padded[:even], self._power[:even]
        padded[: len(frames), :FRAME] = frames
        parts = rfft(padded).view(np.float32)
        np.square(parts, out=parts)
        np.add(parts[:, ::2], parts[:, 1::2], out=power)
        # The spectrum is real and even, so that its inverse transform is a cosine transform.
        correlation: FloatArray = dct(power, type=1, overwrite_x=True).T
        return correlation


_PER_THREAD = local()


def _search(normalised: FloatArray) -> IntArray:
    """Section II.D: the lowest point of the first dip below the threshold."""
    # Priorities fall with the lag: the largest one that is left belongs to the first lag.
    below = (normalised < THRESHOLD).view(np.uint8)
    below *= _PRIORITY
    first = below.max(axis=0)
    rises = (normalised[1:] >= normalised[:-1]).view(np.uint8)
    rises *= _PRIORITY[:-1]
    # Rises before the first lag below the threshold wrap round to large numbers, so the minimum
    # belongs to the first rise after it.
    np.subtract(first, rises, out=rises)
    bottom = np.maximum(first - rises.min(axis=0), 1)  # the longest lag ends any dip
    lags = HIGHEST_LAG + 1 - bottom.astype(np.intp)
    return np.where((first > 0) & (first < len(_PRIORITY)), lags, 0)


def _running_sum(rows: FloatArray, out: FloatArray) -> None:
    """Sum down the rows, two columns at a time as the parts of a complex number.

    Each addition waits for the previous one, so two columns take hardly longer than one.
    """
    np.cumsum(rows.view(np.complex64), axis=0, out=out.view(np.complex64))


LOWPASS_HERTZ = 350
ORDER = 4


class RobustF0(F0):
    """Histogram feature like `F0`, for voices with formants that an anonymiser has moved.

    An anonymiser that filters every 20 ms disturbs the harmonics, but keeps the pitch. `F0`
    considers most such frames unvoiced, so its bits understate the pitch's disclosure
    (benchmarks/results/attack.md). This feature uses the sound below 350 Hz, which is mostly the
    fundamental.
    """

    spec = FeatureSpec("f0_robust", F0.spec.kind, F0.spec.size, F0.spec.frame_seconds, RATE)
    _state: FloatArray

    def process(self, samples: FloatArray) -> Track:
        """Return the voiced frames that these further samples, shape (n,), complete."""
        from scipy.signal import sosfilt  # slow to import

        if not len(samples):  # scipy refuses to filter nothing
            return super().process(samples)
        low, self._state = sosfilt(self._filter, samples, zi=self._state)
        return super().process(low.astype(np.float32))

    def reset(self) -> None:
        """Reset: the next sample is the first of a recording."""
        from scipy.signal import butter

        super().reset()
        self._filter = butter(ORDER, LOWPASS_HERTZ, fs=RATE, output="sos")
        self._state = np.zeros((len(self._filter), 2))
