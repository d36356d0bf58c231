"""Crops of training speakers, at any speed, and of pseudo-speakers; every step draws its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.fft import next_fast_len

from monitor.adapting.fine_tuning import floored, masked
from monitor.errors import CorpusError
from monitor.networks.layers import RATE, log_mel
from monitor.types import FloatArray, IntArray
from recipes.voice.augment import SPEEDS, add_noise, changed
from recipes.voice.cache import Cache

__all__ = ["Batch", "Batches"]

_AS_IT_IS = 0.4
"""Share of crops at their own speed."""
_PSEUDO = 0.65
"""Share of crops of pseudo-speakers, where some were made."""
_SHORTEST, _LONGEST, _STEP = 1.5, 3.0, 0.25
_CROP_SECONDS = np.arange(_SHORTEST, _LONGEST + _STEP, _STEP)


@dataclass(frozen=True, slots=True)
class Batch:
    """Crops of one length.

    Attributes:
        bands: shape (b, t, 40), log mel bands.
        teacher: shape (b, 192): the teacher's centroid of the voice, less that of its corpus.
        corpora: shape (b,), numbers.
    """

    bands: FloatArray
    teacher: FloatArray
    corpora: IntArray


class Batches:
    """Every speaker as likely as the other, every pseudo-speaker too.

    Args:
        cache: prepared.
        seed: with the number of a step it gives that step's batch, whatever came before.

    Attributes:
        speakers: how many.
        corpora: shape (speakers,), the number of each one's corpus.
        anchors: shape (a, 192), of length 1: what the teacher says of everybody at every speed it
            heard, and of every pseudo-speaker.
        corpus_of_anchor: shape (a,).

    Raises:
        CorpusError: nobody to train on, or the teacher has not heard everybody.
    """

    def __init__(self, cache: Cache, seed: int) -> None:
        self._cache, self._seed = cache, seed
        pieces = cache.of("train")
        names = sorted({piece.voice for piece in pieces})
        teacher = cache.teacher()
        if not pieces or not set(names) <= teacher.keys():
            raise CorpusError(f"{cache.folder}: not all prepared: python -m recipes.voice.prepare")
        self.speakers = len(names)
        self._pieces = [[piece for piece in pieces if piece.voice == name] for name in names]
        numbers = {each: number for number, each in enumerate(sorted({p.corpus for p in pieces}))}
        self.corpora: IntArray = np.array([numbers[own[0].corpus] for own in self._pieces])
        self._pseudo = cache.pseudo()
        made_of = [names.index(name) for name in self._pseudo.voices]
        self._pseudo_corpora = self.corpora[np.array(made_of, dtype=int)]
        said = np.stack([teacher[name] for name in names])  # (speakers, speeds, 192)
        common = np.stack(  # what all of a corpus have in common is a room, not a voice
            [said[self.corpora == number].mean(axis=(0, 1)) for number in numbers.values()]
        )
        self._said = _normed(said - common[self.corpora, None])
        self._pseudo_said = _normed(self._pseudo.teacher - common[self._pseudo_corpora])
        self.anchors = np.concatenate([self._said.reshape(-1, said.shape[2]), self._pseudo_said])
        self.corpus_of_anchor = np.concatenate(
            [np.repeat(self.corpora, len(SPEEDS)), self._pseudo_corpora]
        )

    def at(self, step: int, size: int) -> Batch:
        """The batch of a step."""
        generator = np.random.default_rng([self._seed, step])
        samples = round(generator.choice(_CROP_SECONDS) * RATE)
        speakers = generator.integers(self.speakers, size=size)
        speeds = np.exp(generator.uniform(np.log(min(SPEEDS)), np.log(max(SPEEDS)), size))
        speeds[generator.random(size) < _AS_IT_IS] = 1.0
        teacher, corpora = self._between(speakers, speeds), self.corpora[speakers]
        pseudo = generator.random(size) < (_PSEUDO if len(self._pseudo_said) else 0)
        which = generator.integers(max(1, len(self._pseudo_said)), size=size)
        teacher[pseudo] = self._pseudo_said[which[pseudo]]
        corpora[pseudo] = self._pseudo_corpora[which[pseudo]]
        crops = (
            self._pseudo_crop(other, samples, generator)
            if made
            else self._crop(speaker, samples, speed, generator)
            for made, other, speaker, speed in zip(pseudo, which, speakers, speeds, strict=True)
        )
        sounds = np.stack([changed(crop, samples, generator) for crop in crops])
        bands = floored(log_mel(add_noise(sounds, generator)), generator)
        return Batch(bands=masked(bands, generator), teacher=teacher, corpora=corpora)

    def of_one(
        self, speaker: int, speed: float, count: int, generator: np.random.Generator
    ) -> FloatArray:
        """Some crops of one voice, each on a way of its own: bands, shape (count, t, 40)."""
        samples = round(_LONGEST * RATE)
        crops = (self._crop(speaker, samples, speed, generator) for _ in range(count))
        sounds = np.stack([changed(crop, samples, generator) for crop in crops])
        return floored(log_mel(add_noise(sounds, generator)), generator)

    def _pseudo_crop(self, which: int, samples: int, generator: np.random.Generator) -> FloatArray:
        """A stretch of a pseudo-speaker."""
        sound = self._pseudo.sounds[which]
        start = generator.integers(len(sound) - samples + 1)
        return np.asarray(sound[start : start + samples], np.float32) / 32768

    def _between(self, speakers: IntArray, speeds: FloatArray) -> FloatArray:
        """What the teacher would say of them, from what it said at the speeds beside."""
        order = np.argsort(SPEEDS)
        known = np.asarray(SPEEDS)[order]
        above = np.clip(np.searchsorted(known, speeds), 1, len(known) - 1)
        share = (speeds - known[above - 1]) / (known[above] - known[above - 1])
        low, high = (self._said[speakers, order[at]] for at in (above - 1, above))
        found = (1 - share)[:, None] * low + share[:, None] * high
        return _normed(found)

    def _crop(
        self, speaker: int, samples: int, speed: float, generator: np.random.Generator
    ) -> FloatArray:
        """A stretch that has so many samples at a speed; a recording too short is repeated."""
        long = next_fast_len(round(samples * speed))
        pieces = self._pieces[speaker]
        lengths = np.array([piece.samples for piece in pieces], dtype=np.float64)
        piece = pieces[generator.choice(len(pieces), p=lengths / lengths.sum())]
        start = generator.integers(max(1, piece.samples - long))
        return np.resize(self._cache.sound(piece, start / RATE, long / RATE)[:long], long)


def _normed(x: FloatArray) -> FloatArray:
    return np.asarray(x / np.linalg.norm(x, axis=-1, keepdims=True), np.float32)
