"""The waveform of a narrow band, by which repeated audio in a stream is recognised.

It has a tenth of the bandwidth and 8 bits, stays in memory, and is dropped after ten minutes.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from monitor.kinds import EMBEDDING, FeatureSpec
from monitor.maths.repeats import NAME, RATE, SAMPLES_PER_TICK
from monitor.types import TICKS_PER_SECOND, FloatArray, IntArray, Track

_RATE = 8000  # the rate of voice activity
_LOW_BAND_HZ = 150.0, 950.0
_EVERY = _RATE // RATE  # samples
_TAPS = np.arange(-64, 65)
_LEVELLED = 30  # samples on either side, 15 ms each, over which the level is measured
_FAINTEST = 2e-3  # the loudest half second of speech has 0.05
_BATCH_TICKS = 20  # one size of batch, so that any division gives the same last bits
_BATCH = _BATCH_TICKS * SAMPLES_PER_TICK
_AHEAD = _EVERY * _LEVELLED + _TAPS[-1]  # samples beyond those of a batch, on both sides
_QUANTA = 32


def _band_pass() -> FloatArray:
    low, high = (2 * frequency / _RATE for frequency in _LOW_BAND_HZ)
    ideal = high * np.sinc(high * _TAPS) - low * np.sinc(low * _TAPS)
    return np.asarray(ideal * np.hamming(_TAPS.size), np.float32)


_BAND_PASS = _band_pass()


class Waveform:
    """The waveform of a narrow band at one level: for each tick 20 samples of 8 bits."""

    spec = FeatureSpec(NAME, EMBEDDING, SAMPLES_PER_TICK, 1 / TICKS_PER_SECOND, _RATE)
    follow = None

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin a recording with the next sample."""
        self._sound: FloatArray = np.zeros(_AHEAD, np.float32)
        self._ticks = 0  # ticks returned
        self._samples = 0  # samples received

    def process(self, samples: FloatArray) -> Track:
        """Return the ticks of every fifth of a second that further samples, (n,), complete."""
        self._samples += samples.size
        self._sound = np.concatenate((self._sound, samples), dtype=np.float32)
        step = _BATCH * _EVERY
        count = max(0, (self._sound.size - 2 * _AHEAD) // step)
        rows = _compute_waveform(self._sound, count)
        self._sound = self._sound[count * step :].copy()
        return self._track(rows, count * _BATCH_TICKS)

    def flush(self) -> Track:
        """Return the rest of the recording, as if silence followed."""
        count = -(-self._samples * TICKS_PER_SECOND // _RATE) - self._ticks
        if count <= 0:
            return self.spec.no_frames()
        track = self.process(np.zeros(_BATCH * _EVERY + 2 * _AHEAD, np.float32))
        return track.select(slice(count))

    def snapshot_attributes(self) -> dict[str, object]:
        """Return the attributes that a snapshot keeps, with silence for the samples."""
        return {**vars(self), "_sound": np.zeros_like(self._sound)}

    def skip_to(self, tick: int) -> None:
        """Skip nothing: audio before a stop is compared with audio after it."""

    def _track(self, rows: IntArray, count: int) -> Track:
        if not count:
            return self.spec.no_frames()
        begins = self._ticks + np.arange(count)
        self._ticks += count
        spans = np.stack((begins, begins + 1), axis=1)
        return Track(np.full(count, self._ticks), rows, spans)


def _compute_waveform(sound: FloatArray, count: int) -> IntArray:
    """Compute the waveform of b batches of ticks, (20 b, 20), from their samples and a margin."""
    step, size = sound.itemsize, _BATCH + 2 * _LEVELLED
    strides = _BATCH * _EVERY * step, _EVERY * step, step
    pieces = as_strided(sound, (count, size, _TAPS.size), strides, writeable=False)
    band = pieces @ _BAND_PASS
    sums = np.zeros((count, size + 1))
    np.cumsum(band.astype(np.float64) ** 2, axis=1, out=sums[:, 1:])
    width = 2 * _LEVELLED + 1
    power = (sums[:, width:] - sums[:, :-width]) / width
    level = band[:, _LEVELLED : _LEVELLED + _BATCH] / np.sqrt(power + _FAINTEST**2)
    quantised = np.clip(np.rint(level * _QUANTA), -127, 127).astype(np.int8)
    return np.asarray(quantised.reshape(-1, SAMPLES_PER_TICK))
