"""Embeddings turned so that what changes within a voice counts less: nothing is trained.

Within-class covariance normalisation (A. Hatch, S. Kajarekar and A. Stolcke, Interspeech 2006),
with the mean over speakers taken away: both are linear, and go into the last layer of a network.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from monitor.types import FloatArray, IntArray

__all__ = ["turned", "within"]

_RIDGE = 0.3


def within(
    embeddings: FloatArray, voices: IntArray, corpora: IntArray
) -> tuple[FloatArray, FloatArray]:
    """What embeddings are to be multiplied by once their centre is taken away.

    Args:
        embeddings: shape (n, m): of crops, of each voice several.
        voices: shape (n,), whose each is.
        corpora: shape (v,), of each voice: the centre is the mean of the corpora's means, however
            large they are.

    Returns:
        shape (m, m), of which W = (turn turn^T)^-1 is the covariance within voices with a ridge,
        scaled to leave lengths about as they are; shape (m,), the centre.
    """
    counts = np.bincount(voices, minlength=len(corpora))
    sums = np.zeros((len(corpora), embeddings.shape[1]))
    np.add.at(sums, voices, embeddings)
    means = sums / counts.clip(min=1)[:, None]
    apart = embeddings - means[voices]
    spread = apart.T @ apart / max(1, len(apart) - np.count_nonzero(counts))
    level = np.trace(spread) / len(spread)
    turn = np.linalg.cholesky(np.linalg.inv(spread / level + _RIDGE * np.eye(len(spread))))
    there = counts > 0
    of_corpus = [
        means[there & (corpora == each)].mean(axis=0) for each in np.unique(corpora[there])
    ]
    return turn, np.mean(of_corpus, axis=0)


def turned(
    weights: Mapping[str, FloatArray], turn: FloatArray, centre: FloatArray
) -> dict[str, FloatArray]:
    """The folded weights of the voice network with its last layer turned.

    Args:
        weights: as `monitor.adapting.network.folded` gives them.
        turn: from `within`.
        centre: likewise.
    """
    made = dict(weights)
    for name, each in (("embed", made["embed"]), ("embed.bias", made["embed.bias"] - centre)):
        made[name] = np.asarray(turn.T @ each, np.float32)
    return made
