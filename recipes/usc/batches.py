"""Stretches of voices, four seconds each; a batch depends on the seed and the step alone."""

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
"""Of a stretch: 4 s."""
_LESS = {"speechocean762": 0.4}
"""Half of it is pauses: how likely one of its voices is, beside the others."""
_LOUDER = 0.7  # standard deviation of the level, nepers of energy
_SILENCE = np.log(FLOOR)


@dataclass(frozen=True, slots=True)
class Batch:
    """Stretches.

    Attributes:
        bands, centred: shape (b, 4 n, 40), log mel bands and the same less their running mean.
        fine: shape (b, 4 n, 80).
        hidden: shape (b, n, 384), what the recogniser makes of it.
        who: shape (b,), numbers of voices.
    """

    bands: FloatArray
    centred: FloatArray
    fine: FloatArray
    hidden: FloatArray
    who: IntArray


class Batches:
    """A voice as likely as the square root of what there is of it.

    Args:
        cache: prepared.
        seed: with the number of a step it gives that step's batch, whatever came before.

    Attributes:
        voices: names of those who train.

    Raises:
        CorpusError: nobody to train on.
    """

    def __init__(self, cache: Cache, seed: int) -> None:
        self._cache, self._seed = cache, seed
        self._listed = [each for each in cache.of("train") if each.length >= LATENTS]
        if not self._listed:
            raise CorpusError(f"{cache.folder}: nobody to train on")
        self.voices = sorted({each.voice for each in self._listed})
        whole = dict.fromkeys(self.voices, 0)
        for each in self._listed:
            whole[each.voice] += each.length
        shares = [
            _LESS.get(each.corpus, 1.0) * each.length / np.sqrt(whole[each.voice])
            for each in self._listed
        ]
        self._shares = np.array(shares) / sum(shares)

    def at(self, step: int, count: int) -> Batch:
        """The batch of a step: so many stretches."""
        generator = np.random.default_rng([self._seed, step])
        drawn = generator.choice(len(self._listed), count, p=self._shares)
        chosen = [self._listed[int(i)] for i in drawn]
        first = [each.start + int(generator.integers(each.length - LATENTS + 1)) for each in chosen]
        batch = taken(self._cache, chosen, first)
        louder = _LOUDER * generator.standard_normal((count, 1, 1)).astype(np.float32)
        for rows in (batch.bands, batch.fine):
            np.maximum(rows + louder, np.float32(_SILENCE), out=rows)
        batch.who[:] = [self.voices.index(each.voice) for each in chosen]
        return batch


def taken(cache: Cache, whose: list[Piece], first: list[int], latents: int = LATENTS) -> Batch:
    """Stretches of recordings as they are, each from a latent of the cache on."""
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
