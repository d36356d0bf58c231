"""Crops of training speakers and their speed-changed doubles; every step draws its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.errors import CorpusError
from monitor.networks.mel import RATE, log_mel
from monitor.types import FloatArray, IntArray
from recipes.voice.augment import SPEEDS, add_noise, changed, masked
from recipes.voice.cache import Cache, Piece

__all__ = ["Batch", "Batches"]

_AS_IT_IS = 0.4
"""Share of crops at their own speed."""
_SHORTEST, _LONGEST, _STEP = 1.0, 3.0, 0.25
_CROP_SECONDS = np.arange(_SHORTEST, _LONGEST + _STEP, _STEP)


@dataclass(frozen=True, slots=True)
class Batch:
    """Crops of one length.

    Attributes:
        bands: shape (b, t, 40), log mel bands.
        classes: shape (b,): speaker, or speaker at another speed.
        teacher: shape (b, 192): the teacher's centroid of the class, less that of its corpus.
    """

    bands: FloatArray
    classes: IntArray
    teacher: FloatArray


class Batches:
    """Every speaker as likely as the other.

    Args:
        cache: prepared.
        seed: with the number of a step it gives that step's batch, whatever came before.

    Attributes:
        corpus_of_class: shape (classes,), numbers: classes of one corpus are told from each other.

    Raises:
        CorpusError: nobody to train on, or the teacher has not heard everybody.
    """

    def __init__(self, cache: Cache, seed: int) -> None:
        self._cache, self._seed = cache, seed
        pieces = cache.of("train")
        self._speakers = sorted({piece.voice for piece in pieces})
        teacher = cache.teacher()
        if not pieces or not set(self._speakers) <= teacher.keys():
            raise CorpusError(f"{cache.folder}: not all prepared: python -m recipes.voice.prepare")
        self._pieces: dict[str, list[Piece]] = {name: [] for name in self._speakers}
        for piece in pieces:
            self._pieces[piece.voice].append(piece)
        corpora = sorted({piece.corpus for piece in pieces})
        whose = [corpora.index(self._pieces[name][0].corpus) for name in self._speakers]
        self._teacher = np.stack([teacher[name] for name in self._speakers])  # (s, speeds, 192)
        for corpus in range(len(corpora)):  # what all have in common is a room, not a voice
            among = np.equal(whose, corpus)
            self._teacher[among] -= self._teacher[among].mean(axis=(0, 1))
        self._teacher /= np.linalg.norm(self._teacher, axis=2, keepdims=True)
        self.corpus_of_class = np.repeat(whose, len(SPEEDS))
        self.speakers = len(self._speakers)

    def at(self, step: int, size: int) -> Batch:
        """The batch of a step."""
        generator = np.random.default_rng([self._seed, step])
        samples = round(generator.choice(_CROP_SECONDS) * RATE)
        speakers = generator.integers(self.speakers, size=size)
        others = (1 - _AS_IT_IS) / (len(SPEEDS) - 1)
        speeds = generator.choice(len(SPEEDS), size, p=[_AS_IT_IS, *[others] * (len(SPEEDS) - 1)])
        sounds = np.stack(
            [
                changed(
                    self._crop(speaker, round(samples * SPEEDS[speed]), generator),
                    samples,
                    generator,
                )
                for speaker, speed in zip(speakers, speeds, strict=True)
            ]
        )
        return Batch(
            bands=masked(log_mel(add_noise(sounds, generator)), generator),
            classes=speakers * len(SPEEDS) + speeds,
            teacher=self._teacher[speakers, speeds],
        )

    def _crop(self, speaker: int, samples: int, generator: np.random.Generator) -> FloatArray:
        """A stretch of a speaker; one that is too short is repeated."""
        pieces = self._pieces[self._speakers[speaker]]
        lengths = np.array([piece.samples for piece in pieces], dtype=np.float64)
        piece = pieces[generator.choice(len(pieces), p=lengths / lengths.sum())]
        start = generator.integers(max(1, piece.samples - samples))
        sound = self._cache.sound(piece, start / RATE, samples / RATE)[:samples]
        return np.resize(sound, samples) if len(sound) < samples else sound
