"""What may happen to a voice on its way: other speeds, rooms, telephones, noise, levels.

Everything linear is done in one Fourier transform of the crop: the change of speed (which changes
the pitch as well and makes another, a pseudo-speaker; Yamamoto et al., Interspeech 2019), a
telephone's band and a room.
"""

from __future__ import annotations

import numpy as np
import scipy.fft

from monitor.networks.layers import RATE
from monitor.types import AnyArray, FloatArray

__all__ = ["SPEEDS", "add_noise", "changed", "stretched", "telephone"]

SPEEDS = (1.0, 0.8, 0.9, 1.1, 1.25)
_TELEPHONE = 0.15
_CODEC = 0.15
_ROOM = 0.2
_NOISE = 0.35
_LEAST_POWER = 1e-9


def changed(sound: FloatArray, samples: int, generator: np.random.Generator) -> FloatArray:
    """A crop stretched to a number of samples, at times through a telephone or in a room.

    Args:
        sound: shape (n,), float32.
        samples: of the result: n where the speed stays.
        generator: draws what happens.

    Returns:
        shape (samples,), float32.
    """
    spectrum = scipy.fft.rfft(sound)
    bins = samples // 2 + 1
    kept = np.zeros(bins, np.complex64)
    kept[: len(spectrum)] = spectrum[:bins] * np.float32(samples / len(sound))
    drawn = generator.random()
    if drawn < _TELEPHONE:
        _band(kept, samples, generator.uniform(200, 400), generator.uniform(3000, 3800))
    elif drawn < _TELEPHONE + _CODEC:  # a codec of few bits keeps no treble
        _band(kept, samples, 0, generator.uniform(3800, 7500))
    if generator.random() < _ROOM:
        kept *= scipy.fft.rfft(_room(generator), samples)
    return np.asarray(scipy.fft.irfft(kept, samples), np.float32)


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


def telephone(sound: FloatArray) -> FloatArray:
    """300 to 3400 Hz alone."""
    spectrum = scipy.fft.rfft(sound)
    _band(spectrum, len(sound), 300, 3400)
    return np.asarray(scipy.fft.irfft(spectrum, len(sound)), np.float32)


def _band(spectrum: AnyArray, samples: int, lowest: float, highest: float) -> None:
    spectrum[: round(lowest * samples / RATE)] = 0
    spectrum[round(highest * samples / RATE) :] = 0


def _room(generator: np.random.Generator) -> FloatArray:
    """An impulse response: the direct sound and noise that dies away (60 dB in 0.1 to 0.6 s)."""
    seconds = generator.uniform(0.1, 0.6)
    time = np.arange(round(seconds * RATE), dtype=np.float32)
    tail = _white(len(time), generator)
    tail *= np.exp(np.float32(-6.9 / (seconds * RATE)) * time)
    tail *= np.float32(10 ** (generator.uniform(-12, 0) / 20)) / np.linalg.norm(tail)
    tail[0] = 1
    return np.asarray(tail)


def add_noise(sounds: FloatArray, generator: np.random.Generator) -> FloatArray:
    """Some crops get noise, 5 to 30 dB below: coloured, or the others' voices; all a level.

    Args:
        sounds: shape (b, n).
        generator: draws what happens.

    Returns:
        shape (b, n), float32.
    """
    made = sounds.copy()
    count, samples = sounds.shape
    for row in np.flatnonzero(generator.random(count) < _NOISE):
        if generator.random() < 0.3:
            noise: AnyArray = sounds[generator.choice(count, 3)].sum(axis=0)
        else:
            spectrum = scipy.fft.rfft(_white(samples, generator))
            tilt = np.float32(-generator.uniform(0, 1))
            spectrum *= np.arange(1, len(spectrum) + 1, dtype=np.float32) ** tilt
            noise = scipy.fft.irfft(spectrum, samples)
        made[row] += at_snr(sounds[row], noise, generator.uniform(5, 30))
    levels: FloatArray = np.power(10.0, generator.uniform(-1, 0, (count, 1)))
    return np.asarray(made * levels, np.float32)


def _white(samples: int, generator: np.random.Generator) -> FloatArray:
    return np.asarray(generator.standard_normal(samples, np.float32))


def at_snr(sound: FloatArray, noise: FloatArray, decibels: float) -> FloatArray:
    """The noise, so many dB below the sound."""
    power = np.mean(sound**2) + _LEAST_POWER
    scale = np.sqrt(power / (np.mean(noise**2) + _LEAST_POWER)) * 10 ** (-decibels / 20)
    return np.asarray(noise * np.float32(scale), np.float32)
