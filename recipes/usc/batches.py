"""Batches of 4 s segments, which depend only on the seed and the step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.errors import CorpusError
from monitor.networks.layers import BANDS, FLOOR
from monitor.networks.usc import DECODER_BANDS as FINE
from monitor.types import FloatArray, IntArray
from recipes.usc.prepare import Cache
from recipes.voice.corpus import Piece

LATENTS = 100
"""Latents per segment: 4 s."""
_LESS = {"speechocean762": 0.4}
"""Relative probability of a voice of a corpus. Half of this one is pauses."""
_LOUDER = 0.7  # standard deviation of random gains, nepers of energy
_SILENCE = np.log(FLOOR)


@dataclass(frozen=True, slots=True)
class Batch:
    """Segments.

    Attributes:
        bands, centred: shape (b, 4 n, 40), log mel bands, without and with subtraction of their
            running mean.
        fine: shape (b, 4 n, 80), log mel bands for the decoder.
        hidden: shape (b, n, 384), output of the recogniser's layer.
        who: shape (b,), indices of voices.
    """

    bands: FloatArray
    centred: FloatArray
    fine: FloatArray
    hidden: FloatArray
    who: IntArray


class Batches:
    """Training batches that sample voices in proportion to the square root of their duration.

    Args:
        cache: prepared corpus.
        seed: random seed. Only it and the number of a step determine the step's batch.

    Attributes:
        voices: names of the training voices.

    Raises:
        CorpusError: there are no training recordings of at least 4 s.
    """

    def __init__(self, cache: Cache, seed: int) -> None:
        self._cache, self._seed = cache, seed
        self._listed = [each for each in cache.of("train") if each.length >= LATENTS]
        if not self._listed:
            raise CorpusError(f"{cache.folder}: no training recordings of at least 4 s")
        self.voices = sorted({each.voice for each in self._listed})
        whole = dict.fromkeys(self.voices, 0)
        for each in self._listed:
            whole[each.voice] += each.length
        shares = [
            _LESS.get(each.corpus, 1.0) * each.length / np.sqrt(whole[each.voice])
            for each in self._listed
        ]
        self._shares = np.array(shares) / sum(shares)

    def create_batch(self, step: int, count: int) -> Batch:
        """Return the batch of a step, with this many segments."""
        generator = np.random.default_rng([self._seed, step])
        indices = generator.choice(len(self._listed), count, p=self._shares)
        chosen = [self._listed[int(i)] for i in indices]
        first = [each.start + int(generator.integers(each.length - LATENTS + 1)) for each in chosen]
        batch = read_batch(self._cache, chosen, first)
        louder = _LOUDER * generator.standard_normal((count, 1, 1)).astype(np.float32)
        for rows in (batch.bands, batch.fine):
            np.maximum(rows + louder, np.float32(_SILENCE), out=rows)
        batch.who[:] = [self.voices.index(each.voice) for each in chosen]
        return batch


def read_batch(cache: Cache, whose: list[Piece], first: list[int], latents: int = LATENTS) -> Batch:
    """Return unchanged segments of recordings, each from its first latent in the cache."""
    rows = np.array(first)[:, None] + np.arange(latents)

    def part(name: str, width: int) -> FloatArray:
        return cache.parts[name][rows].astype(np.float32).reshape(len(whose), -1, width)

    return Batch(
        part("bands", BANDS),
        part("centred", BANDS),
        part("fine", FINE),
        part("hidden", 384),
        np.zeros(len(whose), np.int64),
    )
