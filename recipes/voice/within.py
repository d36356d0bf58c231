"""The last layer turned so that what changes within a voice counts less: nothing is trained.

Within-class covariance normalisation (A. Hatch, S. Kajarekar and A. Stolcke, Interspeech 2006),
with the mean over training speakers taken away: both are linear and cost nothing in use.
"""

from __future__ import annotations

import numpy as np
import torch

from monitor.types import FloatArray, IntArray
from recipes.voice.batches import Batches
from recipes.voice.cache import Cache
from recipes.voice.network import Student, folded

__all__ = ["finished", "within"]

_SPEEDS = (1.0, 0.9, 1.1)
_CROPS = 4
_RIDGE = 0.3
_SEED = 0


def finished(cache: Cache, student: Student) -> dict[str, FloatArray]:
    """The folded weights of a trained student, its last layer turned."""
    batches, generator = Batches(cache, _SEED), np.random.default_rng(_SEED)
    with torch.inference_mode():
        embeddings = [
            student(torch.from_numpy(batches.of_one(speaker, speed, _CROPS, generator)))
            for speaker in range(batches.speakers)
            for speed in _SPEEDS
        ]
    corpora = np.repeat(batches.corpora, len(_SPEEDS))
    turn, centre = within(np.stack([each.double().numpy() for each in embeddings]), corpora)
    weights = folded(student)
    weights["embed"], weights["embed.bias"] = (
        np.asarray(turn.T @ each, np.float32)
        for each in (weights["embed"], weights["embed.bias"] - centre)
    )
    return weights


def within(embeddings: FloatArray, corpora: IntArray) -> tuple[FloatArray, FloatArray]:
    """What embeddings are to be multiplied by once their centre is taken away.

    Args:
        embeddings: shape (v, c, m): of c crops of each of v voices.
        corpora: shape (v,): the centre is the mean of the corpora's means, however large they are.

    Returns:
        shape (m, m), of which W = (turn turn^T)^-1 is the covariance within voices with a ridge,
        scaled to leave lengths about as they are; shape (m,), the centre.
    """
    means = embeddings.mean(axis=1)
    apart = (embeddings - means[:, None]).reshape(-1, embeddings.shape[2])
    spread = apart.T @ apart / (len(apart) - len(means))
    level = np.trace(spread) / len(spread)
    turn = np.linalg.cholesky(np.linalg.inv(spread / level + _RIDGE * np.eye(len(spread))))
    centre = np.mean([means[corpora == each].mean(axis=0) for each in np.unique(corpora)], axis=0)
    return turn, centre
