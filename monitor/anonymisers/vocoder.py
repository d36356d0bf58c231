"""WORLD analysis of a voice, and resynthesis with new pitch, new formants or as a whisper."""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any

import numpy as np
from scipy.signal import resample_poly

from monitor.anonymisers.filters import Utterance, check_samples
from monitor.errors import UsageError
from monitor.lazy import once
from monitor.types import FloatArray

# Morise, Yokomori and Ozawa, WORLD: a vocoder-based high-quality speech synthesis system for
# real-time applications, IEICE Transactions E99-D, 2016.

_LEAST_RATE = 16_000  # D4C always analyses up to 7.9 kHz, so slower audio is resampled for it
_DIO_RATE = 12_000
_LEAST_PEAK = 1e-30


@dataclass(frozen=True, slots=True)
class Analysis:
    """Pitch, envelope and noise of a voice, in frames."""

    f0: FloatArray  # Hz, 0 if unvoiced, (frames + 1,): includes the next frame
    envelope: FloatArray  # power spectrum with a mean of 1 over the circle, (frames, fft / 2 + 1)
    noise: FloatArray  # noise as a fraction of the amplitude, 0 to 1, (frames, fft / 2 + 1)


@once
def pyworld() -> Any:
    """Load pyworld's compiled module; its package only looks up its version, and warns."""
    package = find_spec("pyworld")
    spec = package and PathFinder.find_spec("pyworld.pyworld", package.submodule_search_locations)
    if spec is None or spec.loader is None:
        raise UsageError(
            "pitch, formant, voice and whisper need pyworld: "
            "pip install 'speaker-disclosure-monitor[vocoder]'"
        )
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def analyse(samples: FloatArray, rate: int, step: int, first: int, frames: int) -> Analysis:
    """Analyse a voice with DIO, StoneMask, CheapTrick and D4C and their defaults.

    Frame i is centred at sample ``i * step``. The result covers ``frames`` frames, beginning with
    ``first``. The samples around them help find their pitch.
    """
    world = pyworld()
    finer = 2 ** max(0, math.ceil(math.log2(_LEAST_RATE / rate)))
    size = world.get_cheaptrick_fft_size(rate * finer)
    bins = size // finer // 2 + 1
    peak = float(np.abs(samples).max(initial=0.0))
    if peak < _LEAST_PEAK:
        flat = np.ones((frames, bins))
        return Analysis(np.zeros(frames + 1), flat, flat)
    samples = samples / peak
    if finer > 1:
        samples = resample_poly(samples, finer, 1)
    rate *= finer
    speed = min(12, max(1, rate // _DIO_RATE))
    f0, times = world.dio(samples, rate, frame_period=1000 * step * finer / rate, speed=speed)
    near = slice(first, first + frames + 1)
    f0, times = f0[near].copy(), times[near].copy()
    f0 = world.stonemask(samples, f0, times, rate)
    arguments = (samples, f0[:-1].copy(), times[:-1].copy(), rate)
    envelope = world.cheaptrick(*arguments, fft_size=size)[:, :bins]
    noise = world.d4c(*arguments, fft_size=size)[:, :bins]
    return Analysis(f0, normalise(envelope), noise)


def normalise(envelope: FloatArray) -> FloatArray:
    """Scale power spectra of half the circle, shape (frames, bins), to a mean of 1."""
    ends = envelope[:, :1] + envelope[:, -1:]
    mean = (2 * envelope.sum(axis=1, keepdims=True) - ends) / (2 * envelope.shape[1] - 2)
    return np.asarray(envelope / mean)


_UNVOICED_HERTZ = 100.0  # inaudible start value before the first voiced frame


class Pulses:
    """A train of band-limited pulses of unit power, with a pitch that glides from frame to frame.

    All harmonics below half the rate are equally strong. The phase continues across pauses.
    """

    def __init__(self, rate: int, step: int) -> None:
        self._rate, self._step = rate, step
        self._phase, self._last = 0.0, _UNVOICED_HERTZ

    def next(self, f0: FloatArray) -> FloatArray:
        """Return the next samples, shape (steps * step,).

        ``f0`` is Hz at the ends of each step, 0 if unvoiced, shape (steps + 1,).
        """
        begin = np.where(f0[:-1] > 0, f0[:-1], f0[1:])
        end = np.where(f0[1:] > 0, f0[1:], f0[:-1])
        for i in np.flatnonzero(begin == 0):
            begin[i] = end[i] = end[i - 1] if i else self._last
        self._last = float(end[-1])
        along = np.arange(self._step) / self._step
        hertz = begin[:, None] + (end - begin)[:, None] * along
        phase = self._phase + np.cumsum(hertz.ravel() / self._rate)
        self._phase = float(phase[-1] % 1.0)
        count = np.maximum(1, (0.499 * self._rate / np.maximum(begin, end)).astype(int))
        harmonics = np.repeat(count, self._step)
        fraction = phase - np.round(phase)
        below = np.sin(np.pi * fraction)
        peak = np.abs(below) < 1e-9
        ratio = np.sin((2 * harmonics + 1) * np.pi * fraction) / np.where(peak, 1.0, below)
        kernel = np.where(peak, 2.0 * harmonics + 1, ratio)
        return np.asarray((kernel - 1) / np.sqrt(2 * harmonics))


def minimum_phase(power: FloatArray) -> FloatArray:
    """Compute the minimum-phase responses of power spectra, by the cepstrum.

    ``power`` is above 0, shape (n, fft / 2 + 1). The complex responses have the same shape.
    """
    cepstrum = np.fft.irfft(np.log(power) / 2, axis=1)
    half = cepstrum.shape[1] // 2
    cepstrum[:, 1:half] *= 2
    cepstrum[:, half + 1 :] = 0
    return np.asarray(np.exp(np.fft.rfft(cepstrum, axis=1)))


DRAWN_SEMITONES = (2.0, 6.0)  # range of random pitch shifts, up or down
DRAWN_RATIOS = (1.08, 1.25)  # range of random formant ratios or their inverses
MOST_SEMITONES = 24.0
LEAST_RATIO, MOST_RATIO = 0.5, 2.0
STEP_SECONDS = 0.005
BLOCK_STEPS = 20
AROUND_STEPS = 20  # context on both sides of a block, to find its pitch
_LOUDNESS_STEPS = 4
_FLOOR = 1e-10  # relative to the peak of an envelope; avoids the logarithm of zero


class Vocoder:
    """Anonymiser that shifts the pitch, scales the formants, or makes a whisper.

    WORLD (extra ``vocoder``) analyses blocks of 100 ms with 100 ms of context on both sides. It
    gives pitch, spectral envelope and noise fraction in frames of 5 ms. Filters with the scaled
    envelope then shape pulses at the new pitch and white noise. Each frame keeps its loudness.
    The pitch shifts by ``semitones``, -24 to 24, or None for a whisper. Formants are multiplied by
    ``ratio``, 0.5 to 2.
    """

    def __init__(self, semitones: float | None, ratio: float, utterance: Utterance) -> None:
        if semitones is not None and not abs(semitones) <= MOST_SEMITONES:
            raise UsageError(f"invalid pitch shift {semitones:g}: use -24 to 24 semitones")
        if not LEAST_RATIO <= ratio <= MOST_RATIO:
            raise UsageError(f"invalid formant ratio {ratio:g}: use 0.5 to 2")
        pyworld()
        self.semitones, self.ratio, self.rate = semitones, ratio, utterance.rate
        self._utterance = utterance
        self._step = max(1, round(self.rate * STEP_SECONDS))
        self._block = BLOCK_STEPS * self._step
        self._around = AROUND_STEPS * self._step
        self.latency_samples = self._block + self._around + self._step - 1
        rise = np.sin(np.pi * np.arange(2 * self._step) / (2 * self._step)) ** 2
        self._window: FloatArray = rise
        loud = np.hanning(_LOUDNESS_STEPS * self._step + 1)[:-1]
        self._loudness: FloatArray = loud / loud.sum()
        self.reset()

    def reset(self) -> None:
        """Restart, with the same noise."""
        utterance = self._utterance
        self._random = utterance.random("vocoder", utterance.name, utterance.channel)
        self._pulses = Pulses(self.rate, self._step)
        self._waiting: FloatArray = np.zeros(self._around)
        self._excited: FloatArray = np.zeros((2, self._step))
        self._begun: FloatArray = np.empty(0)
        self._taken = self._given = 0

    def process(self, samples: FloatArray) -> FloatArray:
        """Return the output that these samples complete."""
        sound = np.concatenate((self._waiting, check_samples(samples)))
        self._taken += len(samples)
        size = self._block + 2 * self._around
        starts = range(0, sound.size - size + 1, self._block)
        parts = [self._synthesise(sound[start : start + size]) for start in starts]
        self._waiting = sound[len(starts) * self._block :].copy()
        output = np.concatenate([np.empty(0), *parts]).astype(np.float32)
        if parts and not self._given:  # the first step precedes the recording
            output = output[self._step :]
        self._given += output.size
        return output

    def flush(self) -> FloatArray:
        """Return the remaining output, as if silence followed."""
        missing = self._taken - self._given
        parts = []
        while missing > 0:
            parts.append(self.process(np.zeros(self._block))[:missing])
            missing -= parts[-1].size
        return np.concatenate([np.empty(0, np.float32), *parts])

    def _synthesise(self, samples: FloatArray) -> FloatArray:
        """Synthesise one block, from one step before its start to one step before its end."""
        step, frames = self._step, BLOCK_STEPS
        voice = analyse(samples, self.rate, step, AROUND_STEPS, frames)
        envelope = np.maximum(voice.envelope, _FLOOR * voice.envelope.max(axis=1, keepdims=True))
        envelope = normalise(scale_formants(envelope, self.ratio))
        half = self._loudness.size // 2
        begins = self._around - half + self._step * np.arange(BLOCK_STEPS)
        around = samples[begins[:, None] + np.arange(self._loudness.size)]
        filters = np.sqrt(np.asarray(around**2 @ self._loudness))[:, None] * minimum_phase(envelope)
        excited = np.stack([self._random.standard_normal(self._block), np.zeros(self._block)])
        if self.semitones is None:
            breath, tone = filters, np.zeros_like(filters)
        else:
            f0 = voice.f0 * 2 ** (self.semitones / 12)
            excited[1] = self._pulses.next(f0)
            fraction = np.clip(voice.noise, 1e-5, 1.0) ** 2
            tones = np.maximum(1 - fraction, 1e-10)
            filters /= np.sqrt(_predict_power(envelope, tones, f0[:-1], self.rate))[:, None]
            breath = filters * minimum_phase(fraction)
            tone = np.where(f0[:-1, None] > 0, filters * minimum_phase(tones), 0)
        excited = np.concatenate((self._excited, excited), axis=1)
        self._excited = excited[:, -step:]
        places = step * np.arange(frames)[:, None] + np.arange(2 * step)
        size = 2 * (envelope.shape[1] - 1)
        noise, pulses = np.fft.rfft(self._window * excited[:, places], size, axis=2)
        sounds = np.fft.irfft(breath * noise + tone * pulses, axis=1)
        out = np.zeros((frames - 1) * step + size)
        out[: self._begun.size] = self._begun
        for frame, sound in enumerate(sounds):
            out[frame * step : frame * step + size] += sound
        self._begun = out[self._block :]
        return out[: self._block]


def _predict_power(
    envelope: FloatArray, tones: FloatArray, f0: FloatArray, rate: int
) -> FloatArray:
    """Predict the power of each frame, given that its tone consists of harmonics only."""
    power = np.ones(len(f0))
    hertz = np.linspace(0, rate / 2, envelope.shape[1])
    for i in np.flatnonzero(f0 > 0):
        harmonics = np.arange(f0[i], rate / 2, f0[i])
        if harmonics.size:
            spectrum, tone = envelope[i], envelope[i] * tones[i]
            fraction = float(tone.sum() / spectrum.sum())
            power[i] = 1 - fraction + np.interp(harmonics, hertz, tone).mean()
    return power


def scale_formants(envelope: FloatArray, ratio: float) -> FloatArray:
    """Return spectra stretched in frequency, so that f moves to ratio times f.

    Frequencies beyond the last bin have its value. ``envelope`` is above 0, shape (frames, bins).
    """
    if ratio == 1:
        return envelope
    last = envelope.shape[1] - 1
    position = np.minimum(np.arange(last + 1) / ratio, last)
    below = np.minimum(position.astype(int), last - 1)
    fraction = position - below
    logs = np.log(envelope)
    return np.asarray(np.exp((1 - fraction) * logs[:, below] + fraction * logs[:, below + 1]))
