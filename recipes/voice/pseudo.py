"""Pseudo-speakers made of the same recordings, each heard by the teacher.

    python -m recipes.voice.pseudo CACHE --count 14000

The teacher's function has to be learnt, not its answers about a few hundred people; so it is asked
about many more voices than there are. The speed moves the pitch, a warped envelope the formants
(the envelope: the first coefficients of the cepstrum; A. V. Oppenheim, JASA 45, 1969). A run that
is stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import scipy.fft
from numpy.lib.stride_tricks import sliding_window_view

from monitor.features.ecapa import exported_encoder, resolve
from monitor.networks.layers import RATE
from monitor.types import FloatArray
from recipes.voice.augment import stretched
from recipes.voice.cache import PSEUDO_SAMPLES, Cache, Piece
from recipes.voice.trials import Embed

__all__ = ["another", "make", "warped"]

_WIDTH, _HOP = 512, 128
_QUEFRENCIES = 36
_KNOTS = np.array([0, 700, 1500, 2700, 4200, 8000]) / 8000
_PITCHES, _FORMANTS = (0.78, 1.28), (0.84, 1.19)
_LOCAL = 0.05
_LOUDEST_CHANGE = 3.0  # nepers
_OFTENER = "background"
"""The corpus with 12 s a reader, where an utterance could be learnt by heart."""
_SEED = 7


def main() -> None:
    parser = argparse.ArgumentParser(description="Make pseudo-speakers, heard by the teacher.")
    parser.add_argument("cache", type=Path)
    parser.add_argument("--count", type=int, default=14_000, help="of them (default 14000)")
    parser.add_argument("--ecapa", help="the teacher's folder (default: MONITOR_ECAPA, the hub)")
    given = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    make(Cache(given.cache), given.count, exported_encoder(resolve(given.ecapa)).embed)


def make(cache: Cache, count: int, teacher: Embed, together: int = 250) -> None:
    """Make what is missing of so many, and keep each lot: three of four from the `_OFTENER`.

    Args:
        cache: prepared; it gets them.
        count: of pseudo-speakers, rounded up to whole lots.
        teacher: hears them.
        together: how many are a lot.
    """
    by_corpus: dict[str, dict[str, list[Piece]]] = defaultdict(lambda: defaultdict(list))
    for piece in cache.of("train"):
        by_corpus[piece.corpus][piece.voice].append(piece)
    corpora = sorted(by_corpus)
    often = np.array([3.0 if name == _OFTENER else 1.0 for name in corpora])
    began, first = time.monotonic(), len(cache.pseudo().voices)
    for start in range(first, count, together):
        generator = np.random.default_rng([_SEED, start])
        voices, sounds = [], []
        for _ in range(together):
            corpus = by_corpus[generator.choice(corpora, p=often / often.sum())]
            voice = generator.choice(sorted(corpus))
            voices.append(voice)
            sounds.append(another(cache, corpus[voice], generator))
        kept = np.clip(np.stack(sounds) * 32768, -32768, 32767).astype(np.int16)
        cache.add_pseudo(voices, kept, teacher(kept.astype(np.float32) / 32768))
        done = start + together
        left = (time.monotonic() - began) / (done - first) * max(0, count - done) / 60
        print(f"\r{done} of {count}, {left:.1f} min left", end="\x1b[K", file=sys.stderr)
    print(file=sys.stderr)


def another(cache: Cache, pieces: list[Piece], generator: np.random.Generator) -> FloatArray:
    """3 s of a recording of somebody, in another voice.

    Returns:
        shape (48000,), float32.
    """
    lengths = np.array([piece.samples for piece in pieces], np.float64)
    piece = pieces[generator.choice(len(pieces), p=lengths / lengths.sum())]
    pitch, formants = (
        float(np.exp(generator.uniform(*np.log(each)))) for each in (_PITCHES, _FORMANTS)
    )
    samples = round(PSEUDO_SAMPLES * pitch)
    start = generator.integers(max(1, piece.samples - samples))
    sound = np.resize(cache.sound(piece, start / RATE, samples / RATE)[:samples], samples)
    local = generator.normal(0, _LOCAL, len(_KNOTS))
    return warped(stretched(sound, PSEUDO_SAMPLES), formants / pitch * np.exp(local))


def warped(sound: FloatArray, factors: FloatArray) -> FloatArray:
    """A sound whose formants lie elsewhere; the pitch stays.

    Args:
        sound: shape (n,), at 16 kHz.
        factors: at 0, 700, 1500, 2700, 4200 and 8000 Hz: how many times as high a formant is to be.

    Returns:
        shape (n,), float32.
    """
    padded = np.pad(np.asarray(sound, np.float32), (_WIDTH, 2 * _WIDTH))
    window = np.hanning(_WIDTH + 1)[:-1].astype(np.float32)
    frames = sliding_window_view(padded, _WIDTH)[::_HOP] * window
    spectrum = scipy.fft.rfft(frames)
    level = np.log(np.abs(spectrum) + 1e-4).astype(np.float32)
    cepstrum = scipy.fft.irfft(level, _WIDTH)
    cepstrum[:, _QUEFRENCIES : _WIDTH - _QUEFRENCIES + 1] = 0
    envelope = scipy.fft.rfft(cepstrum).real
    bins = envelope.shape[1]
    at = np.arange(bins) / (bins - 1)
    source = np.minimum(at / np.interp(at, _KNOTS, factors), 1) * (bins - 1)
    below = np.minimum(source.astype(int), bins - 2)
    share = (source - below).astype(np.float32)
    moved = envelope[:, below] * (1 - share) + envelope[:, below + 1] * share
    spectrum *= np.exp(np.clip(moved - envelope, -_LOUDEST_CHANGE, _LOUDEST_CHANGE))
    made = np.zeros(len(padded), np.float32)
    back = scipy.fft.irfft(spectrum, _WIDTH) * window
    for offset in range(_WIDTH // _HOP):  # frames that do not overlap, together
        some = back[offset :: _WIDTH // _HOP]
        begin = offset * _HOP
        made[begin : begin + some.size] += some.ravel()
    found = made[_WIDTH : _WIDTH + len(sound)] / 1.5  # what four squared windows of Hann add up to
    loudest = float(np.abs(found).max(initial=0.0))
    return np.asarray(found / max(1.0, loudest), np.float32)


if __name__ == "__main__":
    main()
