"""Utterances of about one length, as they might have come over other channels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.fft

from monitor.errors import CorpusError
from monitor.networks.mel import HOP, RATE, WIDTH, frames_of, log_mel
from monitor.types import FloatArray, IntArray
from recipes.phones.prepare import Spoken, Utterance
from recipes.voice.augment import SPEEDS, add_noise, changed

__all__ = ["UNKNOWN", "Batch", "Batches"]

UNKNOWN = -100

_AS_IT_IS = 0.5
"""Share of utterances that neither speed nor room nor telephone changes."""
_NEAR = 200
"""Utterances of a batch are drawn from so many of about one length."""
_STEP = 990  # samples: a multiple of it can be made 0.9 and 1.1 times as fast exactly
_MASKS = {"time": (0.5, 25), "band": (2, 8)}
"""How many (in time: a second), how wide at most (SpecAugment; Park et al., Interspeech 2019)."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Utterances, the longest giving the length.

    Attributes:
        bands: shape (b, t, 40), log mel bands.
        frames: shape (b,), 50 a second: how many are of the utterance.
        phones: shape (n,), of all utterances in a row, 1 to 39.
        counts: shape (b,), phones of each.
        said: shape (b, t // 4 * 2), the class of each frame, 0 in silence; `UNKNOWN` where it was
            not aligned.
    """

    bands: FloatArray
    frames: IntArray
    phones: IntArray
    counts: IntArray
    said: IntArray


class Batches:
    """Every second of speech as likely as the other.

    Args:
        spoken: prepared.
        seed: with the number of a step it gives that step's batch, whatever came before.

    Raises:
        CorpusError: nobody to train on.
    """

    def __init__(self, spoken: Spoken, seed: int) -> None:
        self._spoken, self._seed = spoken, seed
        self._aligned = spoken.aligned()
        self._listed = sorted(
            (i for i, each in enumerate(spoken.utterances) if spoken.piece(each).role == "train"),
            key=lambda i: spoken.utterances[i].samples,
        )
        if not self._listed:
            raise CorpusError(f"{spoken.cache.folder}: nobody to train on")
        self._lengths = np.array([spoken.utterances[i].samples for i in self._listed])
        self._share = self._lengths / self._lengths.sum()
        self.utterances, self.aligned = len(self._listed), len(self._aligned)

    def at(self, step: int, seconds: float) -> Batch:
        """The batch of a step, of at most so many seconds (but one utterance at least)."""
        generator = np.random.default_rng([self._seed, step])
        anchor = generator.choice(self.utterances, p=self._share)
        first = max(0, min(anchor - _NEAR // 2, self.utterances - _NEAR))
        near = np.arange(first, min(first + _NEAR, self.utterances))
        longest = self._lengths[near[-1]] / RATE
        count = min(len(near), max(1, int(seconds / longest)))
        drawn = [self._listed[int(i)] for i in generator.choice(near, count, replace=False)]
        utterances = [self._spoken.utterances[each] for each in drawn]
        sounds = [self._heard(each, generator) for each in utterances]
        lengths = [len(each) for each in sounds]
        together = np.zeros((count, scipy.fft.next_fast_len(max(lengths), real=True)), np.float32)
        for row, sound in zip(together, sounds, strict=True):
            row[: len(sound)] = sound
        bands = log_mel(add_noise(together, generator))
        for row, length in zip(bands, lengths, strict=True):
            _mask(row[: frames_of(length)], generator)
        said = np.full((count, bands.shape[1] // 4 * 2), UNKNOWN)
        for row, index, utterance, length in zip(said, drawn, utterances, lengths, strict=True):
            if index in self._aligned:
                times = self._aligned[index] * length / utterance.samples
                row[:] = _frames(times, utterance.phones, len(row))
        return Batch(
            bands=bands,
            frames=np.array([frames_of(length) // 4 * 2 for length in lengths]),
            phones=np.array([phone for each in utterances for phone in each.phones]),
            counts=np.array([len(each.phones) for each in utterances]),
            said=said,
        )

    def _heard(self, utterance: Utterance, generator: np.random.Generator) -> FloatArray:
        sound = self._spoken.sound(utterance)
        if generator.random() < _AS_IT_IS:
            return sound
        steps = scipy.fft.next_fast_len(-(-len(sound) // _STEP), real=True)
        speed = generator.choice(SPEEDS)
        padded = np.pad(sound, (0, steps * _STEP - len(sound)))
        made = changed(padded, round(len(padded) / speed), generator)
        return made[: max(round(len(sound) / speed), WIDTH + 3 * HOP)]


def _frames(times: FloatArray, phones: list[int], count: int) -> IntArray:
    """The class of each frame of 20 ms by the phones' times in frames of 10 ms."""
    middles = 2 * np.arange(count) + 1
    at = np.searchsorted(times[:, 0], middles, side="right") - 1
    inside = (at >= 0) & (middles < times[at, 1])
    return np.asarray(np.where(inside, np.array(phones)[at], 0))


def _mask(bands: FloatArray, generator: np.random.Generator) -> None:
    """Hide stretches of time and of bands behind the mean, in place."""
    mean = bands.mean()
    rate, widest = _MASKS["time"]
    for _ in range(generator.poisson(rate * len(bands) * HOP / RATE)):
        begin = generator.integers(len(bands))
        bands[begin : begin + generator.integers(int(widest) + 1)] = mean
    many, widest = _MASKS["band"]
    for _ in range(int(many)):
        begin = generator.integers(bands.shape[1])
        bands[:, begin : begin + generator.integers(int(widest) + 1)] = mean
