"""The last layer turned so that what changes within a voice counts less: nothing is trained.

Within-class covariance normalisation (A. Hatch, S. Kajarekar and A. Stolcke, Interspeech 2006),
with the mean over training speakers taken away: both are linear and cost nothing in use.
"""

from __future__ import annotations

import numpy as np
import torch

from monitor.adapting.adapted import turned, within
from monitor.adapting.fine_tuning import Student, folded
from monitor.types import FloatArray
from recipes.voice.batches import Batches
from recipes.voice.cache import Cache

__all__ = ["finished"]

_SPEEDS = (1.0, 0.9, 1.1)
_CROPS = 4
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
    crops = np.concatenate([each.double().numpy() for each in embeddings])
    turn, centre = within(crops, np.repeat(np.arange(len(embeddings)), _CROPS), corpora)
    return turned(folded(student), turn, centre)
