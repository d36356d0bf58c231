"""What a stream of codes tells by itself, before anybody decodes it, to who trains for it.

A stretch of codes becomes numbers: how often each code of C0 is said, and mean and spread of what
the codebooks say together. Readers apart teach how these vary within a voice (within-class
covariance normalisation, `monitor.lab.adapting.training`); then cosines are compared. The order of
codes is not looked at: who models it knows more.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.anonymity.codec import codes_of, network_of
from benchmarks.anonymity.excerpts import Excerpt
from benchmarks.anonymity.systems import SEED
from monitor.files import read_arrays
from monitor.jobs import one_thread
from monitor.lab.adapting.training import fit_normalisation
from monitor.lab.result_cache import ResultCache, result_key
from monitor.networks.layers import log_mel
from monitor.networks.usc import TokenStream
from monitor.sources.base import file_hash
from monitor.types import AnyArray, FloatArray, IntArray

__all__ = ["SPECTRA", "Stream", "Turn", "features", "heard", "learnt"]

SPECTRA = "spectra"
"""In place of codes: the mel spectra of the recording, for comparison."""
_DIMENSIONS = 100
_FEWEST_BITS = 1e-12
_VERSION = 1  # of networks and their features: raise it when results change


@dataclass(frozen=True, slots=True)
class Stream:
    """What is published of a voice.

    Attributes:
        books: how many codebooks, C0 first; 0 for the spectra.
        epsilon: of Laplace noise on C0 alone; None for none.
        file: of weights; empty for the network that ships.
    """

    books: int
    epsilon: float | None = None
    file: str = ""


def heard(
    stream: Stream,
    chosen: Sequence[Excerpt],
    cache: ResultCache,
    progress: Callable[[str, float], object] = lambda *_: None,
) -> list[AnyArray]:
    """Codes of each excerpt, shape (k, books), or its spectra, (t, bands); kept in a cache."""
    found = []
    for each in chosen:
        key = _key(stream, each)
        kept = cache.read(key)
        if kept is None:
            with one_thread():
                made = _listened(stream, each)
            file = io.BytesIO()
            np.savez_compressed(file, made=made)
            cache.write(key, file.getvalue())
        else:
            made = read_arrays(io.BytesIO(kept))["made"]
        found.append(made[:, : stream.books] if stream.books else made)
        progress(each.name, each.seconds)
    return found


def features(stream: Stream, listened: AnyArray) -> FloatArray:
    """An excerpt in numbers, for `learnt`."""
    if not stream.books:
        return np.concatenate([listened.mean(axis=0), listened.std(axis=0)])
    books = network_of(stream.file).books
    said = books.latents(listened).astype(float)
    counts = np.bincount(listened[:, 0], minlength=books.size) / len(listened)
    return np.concatenate([said.mean(axis=0), said.std(axis=0), np.sqrt(counts)])


@dataclass(frozen=True, slots=True)
class Turn:
    """What background speakers have taught: centre, scale, the directions kept, and the turn."""

    centre: FloatArray
    scale: FloatArray
    axes: FloatArray
    turn: FloatArray
    middle: FloatArray

    def __call__(self, numbers: FloatArray) -> FloatArray:
        """Embeddings of length 1, of shape (n, m)."""
        made = (((numbers - self.centre) / self.scale) @ self.axes - self.middle) @ self.turn
        lengths = np.linalg.norm(made, axis=1, keepdims=True)
        return np.asarray(made / np.maximum(lengths, _FEWEST_BITS))


def learnt(numbers: FloatArray, voices: Sequence[str]) -> Turn:
    """From excerpts of background speakers, shape (n, m), and whose each is.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> centres, whose = generator.normal(size=(9, 4)), np.repeat(np.arange(9), 20)
        >>> drawn = centres[whose] + generator.normal(size=(180, 4)) * [0.01, 0.01, 5, 5]
        >>> made = learnt(drawn, [str(each) for each in whose])(drawn)
        >>> bool(np.mean(made[0] @ made[1:20].T) > 0.7)
        True
    """
    centre, scale = numbers.mean(axis=0), numbers.std(axis=0) + _FEWEST_BITS
    standard = (numbers - centre) / scale
    with one_thread():
        _, _, axes = np.linalg.svd(standard, full_matrices=False)
    kept = axes[:_DIMENSIONS].T
    _, whose = np.unique(voices, return_inverse=True)
    rows = standard @ kept
    turn, middle = fit_normalisation(rows, whose, np.zeros(whose.max() + 1, int))
    return Turn(centre, scale, kept, turn, middle)


def _listened(stream: Stream, each: Excerpt) -> AnyArray:
    sound = each.sound()
    if not stream.books:
        return log_mel(sound, 40)
    network = network_of(stream.file)
    if stream.epsilon is None:
        return codes_of(network, sound, len(network.books))
    tokens = TokenStream(network, stream.epsilon, SEED, each.name)
    made: IntArray = np.concatenate([tokens.push(sound), tokens.flush()])
    return made[:, None]


def _key(stream: Stream, each: Excerpt) -> str:
    weights = [network_of(stream.file).sha256] if stream.books else []
    return result_key(
        {
            "stream": [stream.books > 0, stream.epsilon, _VERSION, *weights],
            "recording": file_hash(each.path),
            "excerpt": [each.name, each.start, each.seconds],
        }
    )
