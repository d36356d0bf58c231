"""Degradation of sound by known amounts: rooms, noise, telephones, clipping, codecs, loudspeakers.

Rooms use the image method (J. B. Allen, D. A. Berkley, 1979), and the decay of each impulse
response is adjusted to the exact RT60. MP3 and Opus need ffmpeg, GSM and AMR need SoX. AMR-WB is
encoded by libvo-amrwbenc (Debian's `libvo-amrwbenc0`) and decoded by ffmpeg.
"""

from __future__ import annotations

import ctypes
import subprocess
from functools import lru_cache
from pathlib import Path

import numpy as np
import soundfile
import soxr
from scipy.signal import butter, fftconvolve, sosfilt

from monitor.features.channel import ConditionRows
from monitor.maths.condition import Condition, condition_of

RATE = 16000

SECONDS = 30.0

SPEED_OF_SOUND = 343.0


def cut(path: Path, start: float = 5.0, seconds: float = SECONDS) -> np.ndarray:
    """Read a section of a recording, which must have 16 kHz."""
    with soundfile.SoundFile(path) as file:
        samples = file.read(round((start + seconds) * RATE), dtype="float64")
    return np.asarray(samples[round(start * RATE) :])


def measure_condition(samples: np.ndarray, rate: int = RATE) -> Condition:
    """Measure the conditions of a recording."""
    sound = samples.astype(np.float32)
    rows = ConditionRows(rate).process(sound[:, None], sound).values
    return condition_of(rows.sum(axis=0, dtype=np.int64))


@lru_cache(maxsize=64)
def room(rt60: float, metres: float, seed: int) -> np.ndarray:
    """Simulate the impulse response ``metres`` from a source in a box of 50 to 170 m3."""
    rng = np.random.default_rng(seed)
    size = np.array([rng.uniform(5, 8), rng.uniform(4, 6), rng.uniform(2.5, 3.5)])
    volume = size.prod()
    surface = 2 * (size[0] * size[1] + size[0] * size[2] + size[1] * size[2])
    reflection = np.exp(-0.161 * volume / (surface * rt60) / 2)  # Eyring
    source = microphone = np.zeros(3)
    while min(source.min(), (size - source).min()) < 0.3:
        microphone = rng.uniform(0.5, size - 0.5)
        direction = rng.standard_normal(3) * (1, 1, 0.2)
        source = microphone + metres * direction / np.linalg.norm(direction)
    count = round(1.1 * rt60 * RATE)
    axes = []
    for place, ear, length in zip(source, microphone, size, strict=True):
        reach = int(np.ceil(SPEED_OF_SOUND * count / RATE / (2 * length)))
        images = np.arange(-reach, reach + 1)
        offsets = [sign * place + 2 * images * length - ear for sign in (1, -1)]
        bounces = [np.abs(images - p) + np.abs(images) for p in (0, 1)]
        axes.append((np.concatenate(offsets), np.concatenate(bounces)))
    (x, nx), (y, ny), (z, nz) = axes
    response = np.zeros(count)
    for along, bounced in zip(x, nx, strict=True):
        distance = np.sqrt(along**2 + (y**2)[:, None] + z**2)
        sample = distance / SPEED_OF_SOUND * RATE
        near = sample < count - 2
        size_of = reflection ** (bounced + ny[:, None] + nz)[near] / np.maximum(distance[near], 0.1)
        whole = sample[near].astype(int)
        part = sample[near] - whole
        response += np.bincount(whole, size_of * (1 - part), count)[:count]
        response += np.bincount(whole + 1, size_of * part, count)[:count]
    response = sosfilt(butter(2, 60, "high", fs=RATE, output="sos"), response)
    decay = 10 * np.log10(np.cumsum(response[::-1] ** 2)[::-1] / np.sum(response**2) + 1e-12)
    measured_rt60 = 2 * (np.argmax(decay < -35) - np.argmax(decay < -5)) / RATE
    seconds = np.arange(count) / RATE
    return np.asarray(response * np.exp(-np.log(1e3) * seconds * (1 / rt60 - 1 / measured_rt60)))


def in_room(sound: np.ndarray, rt60: float, metres: float, seed: int) -> np.ndarray:
    """Return a voice in a room, at its original power."""
    reverberant = fftconvolve(sound, room(rt60, metres, seed))[: sound.size]
    return np.asarray(reverberant * np.sqrt(np.mean(sound**2) / np.mean(reverberant**2)))


def loudspeaker(sound: np.ndarray, seed: int) -> np.ndarray:
    """Return a voice played by a small loudspeaker, recorded 1 m away in a room of RT60 0.4 s.

    A band-pass filter of 24 dB per octave keeps 600 Hz to 7.5 kHz, the lower end of low-quality
    loudspeakers in ASVspoof 2019 (X. Wang and others, Computer Speech and Language 64, 2020). Then
    tanh adds 7 % of harmonics to a sine of the voice's peak amplitude. The room comes last.
    """
    played = sosfilt(butter(4, [600, 7500], "band", fs=RATE, output="sos"), sound)
    return in_room(np.tanh(played / np.abs(played).max()), 0.4, 1.0, seed)


def noisy(sound: np.ndarray, decibels: float, noise: np.ndarray) -> np.ndarray:
    """Add noise at an SNR in decibels, relative to the louder half of the voice's frames."""
    powers = np.sort(np.mean(sound[: sound.size // 320 * 320].reshape(-1, 320) ** 2, axis=1))
    speech = powers[powers.size // 2 :].mean()
    return np.asarray(sound + noise * np.sqrt(speech / 10 ** (decibels / 10) / np.mean(noise**2)))


def white(size: int, seed: int) -> np.ndarray:
    """Return Gaussian noise."""
    return np.random.default_rng(seed).standard_normal(size)


@lru_cache(maxsize=8)
def babble(speech: Path, size: int, seed: int) -> np.ndarray:
    """Sum the voices of eight readers of the background set, at equal power."""
    rng = np.random.default_rng(seed)
    files = sorted((speech / "background").glob("*/*.opus"))
    total = np.zeros(size)
    for number in rng.choice(len(files), 8, replace=False):
        voice, _ = soundfile.read(files[number])
        turned = np.roll(voice, rng.integers(voice.size))
        total += np.resize(turned / np.sqrt(np.mean(voice**2)), size)
    return total


def clipped(sound: np.ndarray, decibels: float) -> np.ndarray:
    """Clip a sound this many decibels below its largest sample."""
    top = np.abs(sound).max() / 10 ** (decibels / 20)
    return np.asarray(np.clip(sound, -top, top))


def measure_clipped_fraction(sound: np.ndarray, decibels: float) -> float:
    """Return the fraction of samples that `clipped` clips."""
    top = np.abs(sound).max() / 10 ** (decibels / 20)
    return float(np.mean(np.abs(sound) >= top))


def telephone(sound: np.ndarray) -> np.ndarray:
    """Return a sound as over a telephone: 300 to 3400 Hz in mu-law, at 8 kHz."""
    narrow = soxr.resample(sound, RATE, 8000)
    narrow = sosfilt(butter(4, [300, 3400], "band", fs=8000, output="sos"), narrow)
    narrow = narrow / np.abs(narrow).max()
    code = np.round(127 * np.sign(narrow) * np.log1p(255 * np.abs(narrow)) / np.log(256)) / 127
    return np.asarray(np.sign(code) * (256 ** np.abs(code) - 1) / 255 / 2)


def coded(sound: np.ndarray, codec: str, kilobits: int) -> np.ndarray:
    """Encode and decode a sound with MP3 or Opus."""
    formats = {"mp3": ("libmp3lame", "mp3"), "opus": ("libopus", "ogg")}[codec]
    plain = ("-f", "f32le", "-ar", str(RATE), "-ac", "1")
    encoded = _ffmpeg(sound.astype("<f4").tobytes(), *plain, "-i", "-", "-c:a", formats[0],
                      "-b:a", f"{kilobits}k", "-f", formats[1], "-")  # fmt: skip
    decoded = _ffmpeg(encoded, "-i", "-", *plain, "-")
    return np.frombuffer(decoded, "<f4").astype(np.float64)


def apply_telephone_codec(sound: np.ndarray, codec: str, *options: str) -> np.ndarray:
    """Encode and decode a sound with a telephone codec at 8 kHz, by SoX's name; return 16 kHz."""
    plain = ("-t", "f32", "-r", "8000", "-c", "1", "-")
    narrow = soxr.resample(sound, RATE, 8000)
    encoded = _run(narrow.astype("<f4").tobytes(), "sox", "-D", *plain, "-t", codec, *options, "-")
    decoded = np.frombuffer(_run(encoded, "sox", "-t", codec, "-", *plain), "<f4")
    return np.asarray(soxr.resample(decoded.astype(np.float64), 8000, RATE))


_WIDEBAND_MODE = 2  # 12.65 kb/s


def apply_amr_wb(sound: np.ndarray) -> np.ndarray:
    """Encode and decode a sound with AMR-WB at 12.65 kb/s."""
    encoder = ctypes.CDLL("libvo-amrwbenc.so.0")
    encoder.E_IF_init.restype = ctypes.c_void_p
    state, packet = ctypes.c_void_p(encoder.E_IF_init()), ctypes.create_string_buffer(64)
    whole = np.clip(np.rint(sound * 32768), -32768, 32767).astype(np.int16)
    encoded = [b"#!AMR-WB\n"]
    for frame in np.pad(whole, (0, -whole.size % 320)).reshape(-1, 320):
        samples = ctypes.c_void_p(frame.ctypes.data)
        size = encoder.E_IF_encode(state, _WIDEBAND_MODE, samples, packet, 0)
        encoded.append(packet.raw[:size])
    encoder.E_IF_exit(state)
    plain = ("-f", "f32le", "-ar", str(RATE), "-ac", "1", "-")
    return np.frombuffer(_ffmpeg(b"".join(encoded), "-i", "-", *plain), "<f4").astype(np.float64)


def _ffmpeg(sound: bytes, *options: str) -> bytes:
    return _run(sound, "ffmpeg", "-v", "error", *options)


def _run(sound: bytes, *command: str) -> bytes:
    return subprocess.run(command, input=sound, stdout=subprocess.PIPE, check=True).stdout
