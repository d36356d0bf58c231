"""The units: k-means of what a hidden layer says of the speakers who trained it."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from monitor.types import FloatArray, IntArray
from recipes.phones.network import Recogniser, listened
from recipes.phones.prepare import Spoken, Utterance

__all__ = ["codebook", "coded", "heard", "hidden"]

_UTTERANCES = 400
_FRAMES = 100  # of an utterance
_ROUNDS = 25


def hidden(network: Recogniser, sound: FloatArray) -> dict[str, FloatArray]:
    """What each layer says of a sound, by name, shape (frames, channels).

    The end is heard before silence, as a stream that ends is.
    """
    frames = len(sound) // 320
    return {
        name: each.numpy()[: frames // 2 if name.startswith("middle") else frames]
        for name, each in listened(network, sound).items()
    }


def codebook(frames: FloatArray, units: int, seed: int = 1) -> FloatArray:
    """Codes of rows, shape (n, channels), by Lloyd's algorithm: shape (units, channels), float32.

    It begins with rows drawn at random; a code that is nearest to no row becomes one again.
    Source: S. Lloyd, "Least squares quantization in PCM", IEEE Trans. Inf. Theory 28, 1982.
    """
    generator = np.random.default_rng(seed)
    rows: FloatArray = np.asarray(frames, np.float32)
    codes: FloatArray = rows[generator.choice(len(rows), units, replace=False)]
    for _ in range(_ROUNDS):
        nearest = coded(rows, codes)
        one, shape = np.ones(len(rows), np.float32), (units, len(rows))
        member = csr_array((one, (nearest, np.arange(len(rows)))), shape=shape)
        counts = np.bincount(nearest, minlength=units)
        codes = np.asarray(member @ rows) / np.maximum(counts, 1)[:, None]
        empty = np.flatnonzero(counts == 0)
        codes[empty] = rows[generator.choice(len(rows), len(empty), replace=False)]
    return np.asarray(codes, np.float32)


def coded(rows: FloatArray, codes: FloatArray) -> IntArray:
    """The nearest code of each row."""
    lengths = (codes * codes).sum(axis=1)
    return np.concatenate(
        [
            (lengths - 2 * (part @ codes.T)).argmin(axis=1)
            for part in np.split(rows, range(4096, len(rows), 4096))
        ]
    )


def drawn(spoken: Spoken, seed: int = 1) -> list[Utterance]:
    """Some utterances of every kind of speaker who trained."""
    generator = np.random.default_rng(seed)
    listed = spoken.of("train")
    chosen = generator.permutation(len(listed))[:_UTTERANCES]
    return [listed[i] for i in np.sort(chosen)]


def heard(network: Recogniser, spoken: Spoken, layers: list[str]) -> dict[str, FloatArray]:
    """Frames of training speakers in which something is said, for the codebooks of some layers."""
    generator = np.random.default_rng(2)
    found: dict[str, list[FloatArray]] = {layer: [] for layer in layers}
    for utterance in drawn(spoken):
        by_layer = hidden(network, spoken.sound(utterance))
        count = min(len(each) for each in by_layer.values())
        at = np.sort(generator.permutation(count)[:_FRAMES])
        for layer in layers:
            scale = len(by_layer[layer]) // count
            found[layer].append(by_layer[layer][at * scale])
    return {layer: np.concatenate(parts) for layer, parts in found.items()}
