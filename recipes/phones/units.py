"""Units, which are k-means codes of a hidden layer, and other features counted in a sound."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from scipy.sparse import csr_array

from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.training.voices import UNITS_PER_SECOND, SessionFrames
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray
from recipes.phones.network import Recogniser, compute_layers
from recipes.phones.prepare import Spoken

_UTTERANCES = 400
_FRAMES = 100  # per utterance
_ROUNDS = 25
TOKENS, POSTERIORS, PEER = "tokens", "posteriors summed", "pocketsphinx tokens"
_TICKS = 100 // UNITS_PER_SECOND

Books = Mapping[str, FloatArray]
"""Codebooks by name: the layer, a space, and the number of codes."""


def compute_hidden(network: Recogniser, sound: FloatArray) -> dict[str, FloatArray]:
    """Return the output of each layer for a sound, by name, shape (frames, channels).

    Silence follows the sound, as at the end of a stream.
    """
    frames = len(sound) // 320
    return {
        name: each.numpy()[: frames // 2 if name.startswith("middle") else frames]
        for name, each in compute_layers(network, sound).items()
    }


def fit_codebook(frames: FloatArray, units: int) -> FloatArray:
    """Fit codes to rows, (n, channels), by Lloyd's algorithm: shape (units, channels), float32.

    Initial codes are random rows. A code that is nearest to no row is replaced by a random row.
    Source: S. Lloyd, "Least squares quantization in PCM", IEEE Trans. Inf. Theory 28, 1982.
    """
    generator = np.random.default_rng(1)
    rows: FloatArray = np.asarray(frames, np.float32)
    codes: FloatArray = rows[generator.choice(len(rows), units, replace=False)]
    for _ in range(_ROUNDS):
        nearest = assign_codes(rows, codes)
        one, shape = np.ones(len(rows), np.float32), (units, len(rows))
        member = csr_array((one, (nearest, np.arange(len(rows)))), shape=shape)
        counts = np.bincount(nearest, minlength=units)
        codes = np.asarray(member @ rows) / np.maximum(counts, 1)[:, None]
        empty = np.flatnonzero(counts == 0)
        codes[empty] = rows[generator.choice(len(rows), len(empty), replace=False)]
    return np.asarray(codes, np.float32)


def assign_codes(rows: FloatArray, codes: FloatArray) -> IntArray:
    """Return the index of the nearest code of each row."""
    lengths = (codes * codes).sum(axis=1)
    return np.concatenate(
        [
            (lengths - 2 * (part @ codes.T)).argmin(axis=1)
            for part in np.split(rows, range(4096, len(rows), 4096))
        ]
    )


def sample_frames(network: Recogniser, spoken: Spoken, layers: list[str]) -> dict[str, FloatArray]:
    """Sample frames of training utterances, for the codebooks of these layers."""
    listed, generator = spoken.of("train"), np.random.default_rng(2)
    chosen = np.random.default_rng(1).permutation(len(listed))[:_UTTERANCES]
    found: dict[str, list[FloatArray]] = {layer: [] for layer in layers}
    for utterance in (listed[i] for i in np.sort(chosen)):
        by_layer = compute_hidden(network, spoken.sound(utterance))
        count = min(len(each) for each in by_layer.values())
        at = np.sort(generator.permutation(count)[:_FRAMES])
        for layer in layers:
            scale = len(by_layer[layer]) // count
            found[layer].append(by_layer[layer][at * scale])
    return {layer: np.concatenate(parts) for layer, parts in found.items()}


def count_features(
    network: Recogniser,
    sound: FloatArray,
    speech: BoolArray,
    books: Books,
    peer: IntArray | None = None,
) -> dict[str, SessionFrames]:
    """Return the features that are counted in a sound, by name, on its clock of speech.

    Args:
        network: recogniser.
        sound: shape (n,) at 16 kHz.
        speech: shape (ticks,), voice activity.
        books: codebooks.
        peer: pocketsphinx's tokens, shape (k, 3): class from 1, begin and end in ticks.
    """
    layers = compute_hidden(network, sound)
    logits = torch.log_softmax(torch.from_numpy(layers["logits"]), dim=1).numpy()
    speech = speech[: 2 * len(logits)]
    clock: IntArray = np.cumsum(speech)
    made: dict[str, SessionFrames] = {}
    for name, codes in books.items():
        values = assign_codes(layers[name.split()[0]], codes)
        made[f"units, {name}"] = _place_frames(values, 2, speech, clock, len(codes))
        if len(codes) == 256:
            made[f"units, {name}, every second"] = _place_frames(
                values[::2], 4, speech, clock, len(codes)
            )
            made[f"units, {name}, in pauses alone"] = _place_frames(
                values, 2, ~speech, clock, len(codes)
            )
    made[POSTERIORS] = _place_frames(np.exp(logits[:, 1:]), 2, speech, clock, 39)
    best = logits.argmax(axis=1)
    best[1:][best[1:] == best[:-1]] = 0
    at = np.flatnonzero(best)
    at = at[2 * at + 1 < len(speech)]
    made[TOKENS] = _place_at_ends(best[at] - 1, 2 * at + 1, speech, clock, 39)
    if peer is not None:
        peer = peer[peer[:, 2] <= len(speech)]
        made[PEER] = _place_at_ends(peer[:, 0] - 1, peer[:, 2] - 1, speech, clock, 39)
    return made


def _place_frames(
    values: AnyArray, ticks: int, speech: BoolArray, clock: IntArray, size: int
) -> SessionFrames:
    """Place consecutive frames of this many ticks each."""
    ends = np.arange(1, len(values) + 1) * ticks - 1
    inside = ends < len(speech)
    return _place_at_ends(values[inside], ends[inside], speech, clock, size)


def _place_at_ends(
    values: AnyArray, ends: IntArray, speech: BoolArray, clock: IntArray, size: int
) -> SessionFrames:
    """Place the frames that end in speech by the amount of speech until then."""
    inside = speech[ends]
    units = np.maximum(clock[ends[inside]] - 1, 0) // _TICKS
    length = int(clock[-1]) // _TICKS
    inside_length = units < length
    spec = FeatureSpec("units", HISTOGRAM, size, 0.02)
    return SessionFrames(values[inside][inside_length], units[inside_length], length, spec)
