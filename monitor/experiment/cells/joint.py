"""The joint score of several features, weighed as the other speakers of the corpus teach.

The weights are those of the conditional logit (docs/method.md section 5), learnt in each cell on
other people than those whom they are used on: nobody's tests weigh the features for themselves.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.maths import logit
from monitor.maths.posterior import weighted_evidence
from monitor.maths.ranks import score_gaps
from monitor.types import BoolArray, FloatArray

__all__ = ["FEWEST_SPEAKERS", "joint_of"]

FEWEST_SPEAKERS = 10
"""With fewer to learn from there is no joint score, as there is no law."""
_FOLDS = 8
_MOST_SCORES = 1_000_000


def joint_of(matrices: Mapping[str, ScoreMatrix]) -> ScoreMatrix | None:
    """Scores of all features together.

    Args:
        matrices: by feature, of the same trials and speakers.

    Returns:
        None of fewer than two features that have a score, or of fewer than ten tested speakers.
    """
    shared = next(iter(matrices.values()))
    if len(matrices) < 2 or len(shared.tested) < FEWEST_SPEAKERS:
        return None
    scores = np.stack([np.asarray(m.scores, np.float64) for m in matrices.values()], axis=1)
    heard = (scores != scores[..., :1]).any(axis=(0, 2))  # a test too short for a window has none
    if heard.sum() == 0:
        return None
    scores = scores[:, heard]
    fold = np.arange(len(shared.tested)) % _FOLDS
    place = fold[shared.owner]
    joint = np.empty(shared.scores.shape)
    for each in range(_FOLDS):
        weights = _learnt(scores, shared, place != each)
        mine = place == each
        joint[mine] = weighted_evidence(scores[mine], np.tile(weights, (int(mine.sum()), 1)))
    return ScoreMatrix(joint, shared.target, shared.speakers, "joint", shared.trial_names)


def _learnt(scores: FloatArray, matrix: ScoreMatrix, rows: BoolArray) -> FloatArray:
    """Lambda of each feature from some of the trials, an even part of them where they are many."""
    some = np.flatnonzero(rows)
    some = some[:: -(-some.size * scores[0].size // _MOST_SCORES)]
    target = np.broadcast_to(matrix.target[some, None], (some.size, scores.shape[1]))
    _, speaker = np.unique(matrix.owner[some], return_inverse=True)
    trials = logit.Trials(score_gaps(scores[some], target), speaker)
    return logit.fit(trials, logit.prior_of(trials)).weights
