"""Augmentation of clips: simulated rooms, noise, microphones, telephones and codecs.

Rooms are boxes by the image method (J. B. Allen and D. A. Berkley, 1979), 0.5 to 4 m from the
microphone. Noise comes from a folder (ESC-10: rain, sea, clocks, dogs ...), is babble, or is
coloured noise. Lines are telephone bands, low-pass filters and codecs of libsndfile.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import numpy as np
import scipy.fft
import soundfile
import soxr

from monitor.errors import CorpusError
from monitor.networks.layers import RATE
from monitor.types import AnyArray, FloatArray
from recipes.sounds import noisy, room

_ROOM, _NOISE, _EQUALISED, _CLIPPED, _LINE = 0.4, 0.65, 0.5, 0.1, 0.6
"""Probability of each effect in a view."""
_LEAST = 1e-9


class Conditions:
    """Random conditions of clips.

    Args:
        noise: recordings, shape (n,) each, at 16 kHz.
        rooms: impulse responses, shape (n,) each.
        voices: returns a random clip, for babble.
    """

    def __init__(
        self,
        noise: Sequence[FloatArray],
        rooms: Sequence[FloatArray],
        voices: Callable[[np.random.Generator], FloatArray],
    ) -> None:
        self.noise, self.rooms, self._voices = noise, rooms, voices

    @classmethod
    def simulated(
        cls,
        noise: Path,
        voices: Callable[[np.random.Generator], FloatArray],
        rooms: int,
        seed: int = 1,
    ) -> Self:
        """Read a folder of recordings of noise, of any sampling rate, and simulate ``rooms`` rooms.

        Raises:
            CorpusError: the folder has no noise.
        """
        recorded = [_recorded(path) for path in sorted(noise.iterdir())]
        if not recorded:
            raise CorpusError(f"{noise}: no recordings of noise")
        rng = np.random.default_rng(seed)
        made = [
            np.asarray(
                room(rng.uniform(0.15, 1.0), rng.choice([0.5, 1, 1.5, 2, 3, 4]), number), np.float32
            )
            for number in range(rooms)
        ]
        return cls(recorded, made, voices)

    def view(self, sound: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return a clip, shape (n,), under a random condition: float32, peak about 1 or less."""
        if rng.random() < _ROOM:
            sound = self._in_room(sound, rng)
        if rng.random() < _NOISE:
            noise = self._drawn_noise(len(sound), rng)
            sound = noisy(sound, rng.uniform(0, 30), noise)
        if rng.random() < _EQUALISED:
            sound = _equalised(sound, rng)
        if rng.random() < _CLIPPED:
            top = np.float32(np.abs(sound).max() * 10 ** (-rng.uniform(3, 18) / 20))
            sound = np.clip(sound, -top, top)
        sound = _levelled(sound, rng)
        if rng.random() < _LINE:
            sound = _line(sound, rng)
        return np.asarray(sound, np.float32)

    def _in_room(self, sound: FloatArray, rng: np.random.Generator) -> FloatArray:
        return _convolved(sound, self.rooms[int(rng.integers(len(self.rooms)))])[: len(sound)]

    def _drawn_noise(self, samples: int, rng: np.random.Generator) -> FloatArray:
        uniform = rng.random()
        if uniform < 0.35:  # babble: one voice, or a crowd
            total = np.zeros(samples, np.float32)
            for _ in range(rng.choice([1, 3, 4, 6, 8])):
                voice = np.roll(self._voices(rng), rng.integers(samples))
                total += np.resize(voice / np.sqrt(np.mean(voice**2) + _LEAST), samples)
            return total
        if uniform < 0.75:
            noise = self.noise[int(rng.integers(len(self.noise)))]
            return np.resize(np.roll(noise, rng.integers(len(noise))), samples)
        spectrum = scipy.fft.rfft(rng.standard_normal(samples, np.float32))
        tilt = np.float32(-rng.uniform(0, 1.2))
        spectrum *= np.arange(1, len(spectrum) + 1, dtype=np.float32) ** tilt
        return np.asarray(scipy.fft.irfft(spectrum, samples), np.float32)


def telephone(sound: FloatArray) -> FloatArray:
    """Limit a sound to 300 to 3400 Hz, code it in mu-law at 8 kHz, and return it at 16 kHz."""
    return _back(_companded(_banded(soxr.resample(sound, RATE, 8000), 8000, 300, 3400)), len(sound))


def _recorded(path: Path) -> FloatArray:
    sound, rate = soundfile.read(path, dtype="float32", always_2d=True)
    mono = soxr.resample(sound.mean(axis=1), rate, RATE)
    return np.asarray(mono + 1e-5 * np.random.default_rng(0).standard_normal(len(mono)), np.float32)


def _convolved(sound: FloatArray, response: FloatArray) -> FloatArray:
    size = scipy.fft.next_fast_len(len(sound) + len(response), real=True)
    both = scipy.fft.rfft(sound, size) * scipy.fft.rfft(response, size)
    return np.asarray(scipy.fft.irfft(both, size), np.float32)


def _equalised(sound: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Apply a random smooth frequency response, as of a microphone, sometimes without bass."""
    spectrum = scipy.fft.rfft(sound)
    hertz = np.linspace(0, RATE / 2, len(spectrum))
    knots = np.array([0, 150, 400, 1000, 2000, 3500, 5500, 8000.0])
    gains = rng.normal(0, rng.uniform(1, 5), len(knots))
    if rng.random() < 0.3:
        gains[0] -= rng.uniform(5, 30)
    spectrum *= (10 ** (np.interp(hertz, knots, gains) / 20)).astype(np.float32)
    return np.asarray(scipy.fft.irfft(spectrum, len(sound)), np.float32)


def _levelled(sound: FloatArray, rng: np.random.Generator) -> FloatArray:
    loudest = float(np.abs(sound).max()) + 1e-6
    return np.asarray(sound * np.float32(10 ** (-rng.uniform(0.5, 25) / 20) / loudest), np.float32)


def _line(sound: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Apply a telephone, a codec, or a low-pass filter."""
    uniform, samples = rng.random(), len(sound)
    if uniform < 0.65:
        narrow = soxr.resample(sound, RATE, 8000, quality="LQ")
        narrow = _banded(narrow, 8000, rng.uniform(150, 400), rng.uniform(2900, 3800))
        kind = rng.random()
        if kind < 0.35:
            narrow = _companded(narrow)
        elif kind < 0.7:
            narrow = _coded(narrow, 8000, "WAV", "GSM610")
        elif kind < 0.8:
            narrow = _coded(narrow, 8000, "WAV", "G721_32")
        return _back(narrow, samples)
    if uniform < 0.9:
        return _wide(sound, uniform < 0.8, rng)
    return np.resize(_banded(sound, RATE, 0, rng.uniform(3500, 7500)), samples)


def _wide(sound: FloatArray, mp3: bool, rng: np.random.Generator) -> FloatArray:
    """Encode and decode a sound with MP3 or Opus."""
    if mp3:
        kept = _coded(sound, RATE, "MP3", "MPEG_LAYER_III", rng.uniform(0.5, 0.98))
        return np.resize(kept, len(sound))
    rate = int(rng.choice([8000, 16000]))
    low = soxr.resample(sound, RATE, rate, quality="LQ") if rate != RATE else sound
    kept = _coded(low, rate, "OGG", "OPUS", rng.uniform(0.9, 0.99))
    kept = soxr.resample(kept, rate, RATE, quality="LQ") if rate != RATE else kept
    return np.resize(kept, len(sound))


def _coded(
    sound: FloatArray, rate: int, form: str, codec: str, level: float | None = None
) -> FloatArray:
    """Encode and decode a sound with a codec of libsndfile."""
    held = io.BytesIO()
    how = {} if level is None else {"compression_level": level}
    if codec == "MPEG_LAYER_III":
        how["bitrate_mode"] = "CONSTANT"  # type: ignore[assignment]
    with soundfile.SoundFile(held, "w", rate, 1, format=form, subtype=codec, **how) as file:
        file.write(sound)
    held.seek(0)
    heard, heard_rate = soundfile.read(held, dtype="float32")
    if heard_rate != rate:
        heard = soxr.resample(heard, heard_rate, rate, quality="LQ")
    return np.asarray(heard, np.float32)


def _companded(sound: FloatArray) -> FloatArray:
    """Encode and decode a sound in 8-bit mu-law."""
    code = np.sign(sound) * np.log1p(255 * np.minimum(np.abs(sound), 1)) / np.log(256)
    code = np.round(127 * code) / 127
    return np.asarray(np.sign(code) * (256 ** np.abs(code) - 1) / 255, np.float32)


def _banded(sound: AnyArray, rate: int, lowest: float, highest: float) -> FloatArray:
    spectrum = scipy.fft.rfft(np.asarray(sound, np.float32))
    hertz = np.linspace(0, rate / 2, len(spectrum))
    slope = np.clip((hertz - lowest) / 60, 0, 1) if lowest else 1.0
    spectrum *= (slope * np.clip((highest - hertz) / 150, 0, 1)).astype(np.float32)
    return np.asarray(scipy.fft.irfft(spectrum, len(sound)), np.float32)


def _back(narrow: FloatArray, samples: int) -> FloatArray:
    wide = np.asarray(soxr.resample(narrow, 8000, RATE, quality="LQ"), np.float32)
    return np.resize(wide, samples)
