"""The codec as far as no anonymiser offers it: more codebooks, another file of weights.

``codec:BOOKS`` decodes from so many codebooks, C0 first; ``codec:1:EPSILON`` from C0 with noise;
``...@FILE`` by other weights, such as those of an ablation. ``vocoder`` makes a voice of the very
spectra, without a codec: what the vocoder alone takes from a voice is no merit of the codes.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.anonymity.changed import Changed
from monitor.anonymisers.filters import Utterance
from monitor.anonymisers.usc import GriffinLim, Usc
from monitor.errors import UsageError
from monitor.networks.layers import HOP, WIDTH, log_mel
from monitor.networks.usc import FRAME, UscNetwork
from monitor.types import FloatArray, IntArray

__all__ = ["CODEC", "VOCODER", "again", "bits_of", "codes_of", "decoded", "network_of", "spoken"]

CODEC, VOCODER = "codec", "vocoder"
_BANDS = 80


def decoded(setting: str, sound: FloatArray, utterance: Utterance) -> Changed:
    """A voice through the codec.

    Args:
        setting: ``BOOKS``, ``1:EPSILON``, either with ``@FILE`` behind it.
        sound: shape (n,) at 16 kHz.
        utterance: what noise is drawn by.

    Raises:
        UsageError: the setting makes no sense.
        StoreError: the file cannot be read.
    """
    coding, _, file = setting.partition("@")
    books, _, epsilon = coding.partition(":")
    network = network_of(file)
    if not books.isdigit() or (epsilon and books != "1"):
        raise UsageError(f"{coding!r} is no setting such as codec:6, or codec:1:15 with noise")
    if books == "1":
        anonymiser = Usc(float(epsilon) if epsilon else None, utterance, network)
        made = np.concatenate([anonymiser.process(sound), anonymiser.flush()])
    else:
        bands = network.decoder.stream()
        said = network.books.latents(codes_of(network, sound, int(books)))
        made = spoken(np.concatenate([bands.push(said), bands.flush()]), len(sound))
    return Changed(made, bits_of(network, int(books), len(sound)))


def codes_of(network: UscNetwork, sound: FloatArray, books: int) -> IntArray:
    """What so many codebooks say of a sound, without noise: shape (k, books)."""
    hears = network.encoder.stream()
    latents = np.concatenate([hears.push(sound), hears.flush()])
    return network.books.codes(latents, books)


def bits_of(network: UscNetwork, books: int, samples: int) -> float:
    """What the codes of so many samples take, each written by itself."""
    return float(books * np.log2(network.books.size) * samples / FRAME)


def spoken(bands: FloatArray, samples: int) -> FloatArray:
    """Sound of log mel frames, so many samples of it."""
    vocoder = GriffinLim(bands.shape[1])
    made = np.concatenate([vocoder.push(bands), vocoder.flush()])[:samples]
    return np.asarray(np.pad(made, (0, samples - len(made))), np.float32)


def again(sound: FloatArray) -> Changed:
    """A voice from its own spectra."""
    padded = np.pad(sound, (0, WIDTH + (-len(sound)) % HOP))
    return Changed(spoken(log_mel(padded, _BANDS), len(sound)))


@cache
def network_of(file: str) -> UscNetwork:
    """The network of a file; the one that ships where none is named."""
    if file:
        return UscNetwork.load(Path(file))
    from monitor.networks.usc import shipped_codec

    return shipped_codec()
