"""Utterances of about one length, as they might have come over other channels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.errors import CorpusError
from monitor.networks.layers import BANDS, HOP, RATE
from monitor.types import FloatArray, IntArray
from recipes.phones.bands import SPEEDS, Bands
from recipes.phones.network import LAYOUTS, heard
from recipes.phones.prepare import Spoken

__all__ = ["UNKNOWN", "Batch", "Batches"]

UNKNOWN = -100

_AS_IT_IS = 0.4
"""Share of utterances said at their own speed."""
_NEAR = 200
"""Utterances of a batch are drawn from so many of about one length."""
_LESS = {"speechocean762": 0.5}
"""Half of it is pauses, and those who judge are not of it: how likely a second is."""
_COLOURED, _NOISY = 0.5, 0.2
_MASKS = {"time": (0.2, 15), "band": (1, 5)}
"""How many (in time: a second), how wide at most (SpecAugment; Park et al., Interspeech 2019)."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Utterances, the longest giving the length.

    Attributes:
        bands: shape (b, t, 40), log mel bands as the network hears them.
        frames: shape (b,), 50 a second: how many are of the utterance.
        phones: shape (n,), of all utterances in a row, 1 to 39.
        counts: shape (b,), phones of each.
        said: shape (b, t // 4 * 2), the class of each frame, 0 in silence; `UNKNOWN` where it was
            not aligned, and beyond the utterance.
    """

    bands: FloatArray
    frames: IntArray
    phones: IntArray
    counts: IntArray
    said: IntArray


class Batches:
    """Every second of a corpus as likely as the other.

    Args:
        spoken: prepared.
        seed: with the number of a step it gives that step's batch, whatever came before.
        layout: of the network, one of `LAYOUTS`.

    Attributes:
        usual: shape (40,), the mean of all bands.

    Raises:
        CorpusError: nobody to train on.
    """

    def __init__(self, spoken: Spoken, seed: int, layout: str = "phones") -> None:
        self._spoken, self._seed, self._layout = spoken, seed, LAYOUTS[layout]
        self._aligned = spoken.aligned()
        self._listed = sorted(
            (i for i, each in enumerate(spoken.utterances) if spoken.piece(each).role == "train"),
            key=lambda i: spoken.utterances[i].samples,
        )
        if not self._listed:
            raise CorpusError(f"{spoken.cache.folder}: nobody to train on")
        self._bands = {speed: Bands(spoken, self._listed, speed) for speed in SPEEDS}
        self._lengths = np.array([spoken.utterances[i].samples for i in self._listed])
        self._share = self._lengths * [
            _LESS.get(spoken.piece(spoken.utterances[i]).corpus, 1.0) for i in self._listed
        ]
        self.utterances, self.aligned = len(self._listed), len(self._aligned)
        some = np.random.default_rng(seed).permutation(self._listed)[:200]
        rows = np.concatenate([self._bands[1.0][int(i)] for i in some])
        self.usual: FloatArray = rows.mean(axis=0)

    def at(self, step: int, seconds: float) -> Batch:
        """The batch of a step, of at most so many seconds (but one utterance at least)."""
        generator = np.random.default_rng([self._seed, step])
        anchor = generator.choice(self.utterances, p=self._share / self._share.sum())
        first = max(0, min(anchor - _NEAR // 2, self.utterances - _NEAR))
        near = np.arange(first, min(first + _NEAR, self.utterances))
        longest = self._lengths[near[-1]] / RATE
        count = min(len(near), max(1, int(seconds / longest)))
        weights = self._share[near] / self._lengths[near]
        chosen = generator.choice(near, count, replace=False, p=weights / weights.sum())
        drawn = [self._listed[int(i)] for i in chosen]
        utterances = [self._spoken.utterances[each] for each in drawn]
        others = (1 - _AS_IT_IS) / (len(SPEEDS) - 1)
        speeds = generator.choice(SPEEDS, count, p=[_AS_IT_IS] + [others] * (len(SPEEDS) - 1))
        sounds = [self._bands[speed][i] for speed, i in zip(speeds, drawn, strict=True)]
        frames = [len(each) // 4 * 2 for each in sounds]
        longest_frames = max(frames)
        bands = np.zeros((count, 2 * longest_frames, BANDS), np.float32)
        said = np.full((count, longest_frames), UNKNOWN)
        for row, each in enumerate(sounds):
            changed = _noisy(_coloured(each, generator), sounds, generator)
            length = min(len(each), bands.shape[1])
            bands[row, :length] = heard(changed, self._layout, self.usual)[:length]
            _mask(bands[row, :length], generator)
            if drawn[row] in self._aligned:
                times = self._aligned[drawn[row]] / speeds[row]
                said[row, : frames[row]] = _frames(times, utterances[row].phones, frames[row])
        return Batch(
            bands=bands,
            frames=np.array(frames),
            phones=np.array([phone for each in utterances for phone in each.phones]),
            counts=np.array([len(each.phones) for each in utterances]),
            said=said,
        )


def _coloured(bands: FloatArray, generator: np.random.Generator) -> FloatArray:
    """Another microphone: a smooth curve over the bands, at times a telephone's edges."""
    if generator.random() > _COLOURED:
        return bands
    place = np.linspace(0, np.pi, BANDS, dtype=np.float32)
    curve = sum(generator.normal(0, 0.6) * np.cos(k * place) for k in range(1, 5))
    return np.asarray(bands + curve, np.float32)


def _noisy(
    bands: FloatArray, others: list[FloatArray], generator: np.random.Generator
) -> FloatArray:
    """Some get noise 5 to 30 dB below: coloured, or another's voice; energies add."""
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
