"""Bootstrap over speakers: the trials of a speaker count as often as the speaker is drawn."""

from __future__ import annotations

from monitor.evaluation.matrix import ScoreMatrix
from monitor.maths.bootstrap import DRAWS, speaker_weights
from monitor.types import FloatArray

__all__ = ["resamples"]


def resamples(matrix: ScoreMatrix, draws: int = DRAWS, seed: int = 0) -> FloatArray:
    """How often each tested speaker counts in each resample.

    Trials of one speaker are alike, so speakers are drawn and not trials; the enrolled speakers,
    the columns, stay as they are (METHOD section 5). The weight of a trial is
    ``weights[:, matrix.owner]``, and a row's non-mated scores weigh as much as its mated one.

    Args:
        matrix: S of its speakers have trials.
        draws: B.
        seed: equal seeds draw equal speakers, so that systems tested on the same speakers compare
            pairwise.

    Returns:
        shape (B, S), whole numbers as float64; each row sums to S.

    Example:
        >>> import numpy as np
        >>> matrix = ScoreMatrix(np.eye(3), np.arange(3))
        >>> resamples(matrix, draws=2).sum(axis=1).tolist()
        [3.0, 3.0]
    """
    return speaker_weights(len(matrix.tested), draws, seed)
