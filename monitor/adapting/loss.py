"""What the student has to say of a crop: what the teacher says of the voice.

The cosine to the teacher's embedding, and where that lies among those of everybody in training:
the softmax of cosines to these anchors is to be the teacher's (relational distillation; W. Park et
al., CVPR 2019). The student has no centres of its own, by which it would learn the names of a few
hundred speakers by heart. Only anchors of the crop's own corpus compete: a corpus that could be
told by its room and its codec would make the task easy and teach nothing of voices.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["TeacherLoss"]

_SCALE = 15.0
_DISTILLED = 10.0
_NEVER = -1e4


class TeacherLoss:
    """The student's distance to the teacher.

    Args:
        anchors: shape (a, 192), of length 1: what the teacher says of everybody.
        corpus_of_anchor: shape (a,), which of them compete.
    """

    def __init__(self, anchors: Tensor, corpus_of_anchor: Tensor) -> None:
        self._anchors, self._corpus = anchors, corpus_of_anchor

    def __call__(self, found: Tensor, teacher: Tensor, corpora: Tensor) -> tuple[Tensor, Tensor]:
        """The loss, and the mean cosine to the teacher.

        Args:
            found: shape (b, 192), the student's.
            teacher: shape (b, 192), of length 1.
            corpora: shape (b,).
        """
        found = nn.functional.normalize(found)
        elsewhere = corpora[:, None] != self._corpus[None, :]
        said, meant = (
            (_SCALE * each @ self._anchors.T).masked_fill(elsewhere, _NEVER)
            for each in (found, teacher)
        )
        among = nn.functional.kl_div(
            torch.log_softmax(said, dim=1),
            torch.log_softmax(meant, dim=1),
            log_target=True,
            reduction="batchmean",
        )
        like_teacher = (found * teacher).sum(dim=1).mean()
        return among + _DISTILLED * (1 - like_teacher), like_teacher.detach()
