"""Batches of utterances of similar length, augmented with speeds, channels, noise and masks."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path

import numpy as np
import scipy.fft

from monitor.errors import CorpusError
from monitor.files import atomic_write
from monitor.networks.layers import BANDS, HOP, RATE, WIDTH, log_mel
from monitor.types import AnyArray, FloatArray, IntArray
from recipes.phones.network import LAYOUTS, normalise_bands
from recipes.phones.prepare import Spoken, Utterance

UNKNOWN = -100
SPEEDS = (1.0, 0.9, 1.1)
"""Factors on the speed and pitch of utterances (Ko et al., Interspeech 2015)."""
_STEP = 990  # samples: multiples of it have whole lengths at speeds 0.9 and 1.1
_AS_IT_IS = 0.4  # fraction of utterances at their original speed
_NEAR = 200  # a batch is sampled from this many utterances of similar length
_LESS = {"speechocean762": 0.5}
"""Relative probability of a second of a corpus. Half of this one is pauses, and none of its
speakers has the role ``choose`` or ``report``."""
_COLOURED, _NOISY = 0.5, 0.2
_MASKS = {"time": (0.2, 15), "band": (1, 5)}
"""Number of masks (in time: per second), and maximum width in frames or bands (SpecAugment; Park et
al., Interspeech 2019)."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Utterances, padded to the longest.

    Attributes:
        bands: shape (b, t, 40), log mel bands as input of the network.
        frames: shape (b,), number of frames of each utterance, 50 per second.
        phones: shape (n,), concatenated phones of all utterances, 1 to 39.
        counts: shape (b,), number of phones of each utterance.
        frame_classes: shape (b, t // 4 * 2), class of each frame, 0 in silence; `UNKNOWN` if
            the utterance is not aligned, and after its end.
    """

    bands: FloatArray
    frames: IntArray
    phones: IntArray
    counts: IntArray
    frame_classes: IntArray


class Batches:
    """Training batches in which all seconds of a corpus are equally likely.

    Args:
        spoken: prepared corpus.
        seed: random seed. Only it and the number of a step determine the step's batch.
        layout: layout of the network, one of `LAYOUTS`.

    Attributes:
        usual: shape (40,), mean of each band over at most 200 utterances.

    Raises:
        CorpusError: there are no training utterances.
    """

    def __init__(self, spoken: Spoken, seed: int, layout: str = "phones") -> None:
        self._spoken, self._seed, self._layout = spoken, seed, LAYOUTS[layout]
        self._aligned = spoken.aligned()
        self._listed = sorted(
            (i for i, each in enumerate(spoken.utterances) if spoken.piece(each).role == "train"),
            key=lambda i: spoken.utterances[i].samples,
        )
        if not self._listed:
            raise CorpusError(f"{spoken.cache.folder}: no training utterances")
        self._bands = {speed: Bands(spoken, self._listed, speed) for speed in SPEEDS}
        self._lengths = np.array([spoken.utterances[i].samples for i in self._listed])
        self._share = self._lengths * [
            _LESS.get(spoken.piece(spoken.utterances[i]).corpus, 1.0) for i in self._listed
        ]
        self.utterances, self.aligned = len(self._listed), len(self._aligned)
        some = np.random.default_rng(seed).permutation(self._listed)[:200]
        rows = np.concatenate([self._bands[1.0][int(i)] for i in some])
        self.usual: FloatArray = rows.mean(axis=0)

    def create_batch(self, step: int, seconds: float) -> Batch:
        """Return the batch of a step: at least one utterance, at most ``seconds`` at speed 1."""
        generator = np.random.default_rng([self._seed, step])
        anchor = generator.choice(self.utterances, p=self._share / self._share.sum())
        first = max(0, min(anchor - _NEAR // 2, self.utterances - _NEAR))
        near = np.arange(first, min(first + _NEAR, self.utterances))
        longest = self._lengths[near[-1]] / RATE
        count = min(len(near), max(1, int(seconds / longest)))
        weights = self._share[near] / self._lengths[near]
        chosen = generator.choice(near, count, replace=False, p=weights / weights.sum())
        indices = [self._listed[int(i)] for i in chosen]
        utterances = [self._spoken.utterances[each] for each in indices]
        others = (1 - _AS_IT_IS) / (len(SPEEDS) - 1)
        speeds = generator.choice(SPEEDS, count, p=[_AS_IT_IS] + [others] * (len(SPEEDS) - 1))
        sounds = [self._bands[speed][i] for speed, i in zip(speeds, indices, strict=True)]
        frames = [len(each) // 4 * 2 for each in sounds]
        longest_frames = max(frames)
        bands = np.zeros((count, 2 * longest_frames, BANDS), np.float32)
        frame_classes = np.full((count, longest_frames), UNKNOWN)
        for row, each in enumerate(sounds):
            changed = _add_noise(_colour(each, generator), sounds, generator)
            length = min(len(each), bands.shape[1])
            bands[row, :length] = normalise_bands(changed, self._layout, self.usual)[:length]
            _mask(bands[row, :length], generator)
            if indices[row] in self._aligned:
                times = self._aligned[indices[row]] / speeds[row]
                frame_classes[row, : frames[row]] = _frames(
                    times, utterances[row].phones, frames[row]
                )
        return Batch(
            bands=bands,
            frames=np.array(frames),
            phones=np.array([phone for each in utterances for phone in each.phones]),
            counts=np.array([len(each.phones) for each in utterances]),
            frame_classes=frame_classes,
        )


class Bands:
    """Log mel bands of utterances, stored on disk.

    Args:
        spoken: prepared corpus. Its folder also stores the bands (float16, mode 0600). They are
            augmented directly, so that a step needs no Fourier transform.
        indices: indices of the utterances, in the order in which they are stored.
        speed: one of `SPEEDS`.
    """

    def __init__(self, spoken: Spoken, indices: list[int], speed: float) -> None:
        self._spoken, self._indices, self._speed = spoken, indices, speed
        sizes = [self._samples(spoken.utterances[i]) for i in indices]
        counts = [max(0, 1 + (size - WIDTH) // HOP) for size in sizes]
        self._begins = dict(zip(indices, [0, *accumulate(counts)][:-1], strict=True))
        self._counts = dict(zip(indices, counts, strict=True))

    def __getitem__(self, index: int) -> FloatArray:
        """Return the bands of an utterance, shape (t, 40), float32."""
        begin = self._begins[index]
        return np.asarray(self._stored[begin : begin + self._counts[index]], np.float32)

    @cached_property
    def _stored(self) -> AnyArray:
        shape = sum(self._counts.values()), BANDS
        path = self._spoken.cache.folder / f"bands-{self._speed}.f16"
        if not path.exists() or path.stat().st_size != 2 * shape[0] * shape[1]:
            self._write(path)
        return np.memmap(path, np.float16, "r", shape=shape)

    def _write(self, path: Path) -> None:
        with atomic_write(path) as file:
            for done, index in enumerate(self._indices, 1):
                file.write(log_mel(self._sound(index)).astype(np.float16).tobytes())
                if done % 50 == 0:
                    print(
                        f"\r{path.name}: {done / len(self._indices):.0%}", end="", file=sys.stderr
                    )
        print(file=sys.stderr)

    def _samples(self, utterance: Utterance) -> int:
        return round(utterance.samples / self._speed)

    def _sound(self, index: int) -> FloatArray:
        utterance = self._spoken.utterances[index]
        sound = self._spoken.sound(utterance)
        if self._speed == 1:
            return sound
        steps = scipy.fft.next_fast_len(-(-len(sound) // _STEP), real=True)
        padded = np.pad(sound, (0, steps * _STEP - len(sound)))
        return change_speed(padded, round(len(padded) / self._speed))[: self._samples(utterance)]


def change_speed(sound: FloatArray, samples: int) -> FloatArray:
    """Resample a sound to another number of samples, which changes only its speed and pitch.

    Args:
        sound: shape (n,), float32.
        samples: number of samples of the result.

    Returns:
        shape (samples,), float32.
    """
    if samples == len(sound):
        return sound
    spectrum = scipy.fft.rfft(sound)
    resized = np.zeros(samples // 2 + 1, np.complex64)
    resized[: len(spectrum)] = spectrum[: len(resized)] * np.float32(samples / len(sound))
    return np.asarray(scipy.fft.irfft(resized, samples), np.float32)


def _colour(bands: FloatArray, generator: np.random.Generator) -> FloatArray:
    """Add the smooth response of a random microphone to the bands of some utterances."""
    if generator.random() > _COLOURED:
        return bands
    place = np.linspace(0, np.pi, BANDS, dtype=np.float32)
    curve = sum(generator.normal(0, 0.6) * np.cos(k * place) for k in range(1, 5))
    return np.asarray(bands + curve, np.float32)


def _add_noise(
    bands: FloatArray, others: list[FloatArray], generator: np.random.Generator
) -> FloatArray:
    """Add coloured noise or another voice, 5 to 30 dB below, to the energies of some utterances."""
    if generator.random() > _NOISY:
        return bands
    if generator.random() < 0.3:
        noise = np.resize(others[generator.integers(len(others))], bands.shape)
    else:
        flicker = generator.gamma(3.0, 1 / 3, bands.shape).astype(np.float32)
        noise = np.log(flicker + 1e-3) + np.linspace(0, generator.uniform(-6, 2), BANDS)
    lower = generator.uniform(5, 30) * np.log(10) / 10
    loud, quiet = (np.log(np.exp(each).sum(axis=1).mean()) for each in (bands, noise))
    return np.asarray(np.logaddexp(bands, noise - quiet + loud - lower), np.float32)


def _frames(times: FloatArray, phones: list[int], count: int) -> IntArray:
    """Return the class of each frame of 20 ms from the phones' times in frames of 10 ms."""
    middles = 2 * np.arange(count) + 1
    at = np.searchsorted(times[:, 0], middles, side="right") - 1
    inside = (at >= 0) & (middles < times[at, 1])
    return np.asarray(np.where(inside, np.array(phones)[at], 0))


def _mask(bands: FloatArray, generator: np.random.Generator) -> None:
    """Replace random stretches of time and of bands with the mean, in place."""
    mean = bands.mean()
    rate, widest = _MASKS["time"]
    for _ in range(generator.poisson(rate * len(bands) * HOP / RATE)):
        begin = generator.integers(len(bands))
        bands[begin : begin + generator.integers(int(widest) + 1)] = mean
    many, widest = _MASKS["band"]
    for _ in range(int(many)):
        begin = generator.integers(bands.shape[1])
        bands[:, begin : begin + generator.integers(int(widest) + 1)] = mean
