"""Two teachers: the embedding of a large network, and the names of the speakers.

A margin softmax (J. Deng et al., "ArcFace", CVPR 2019) over speakers and their speed-changed
doubles. Only classes of the crop's own corpus compete: a corpus that could be told by its room and
its codec would make the task easy and teach nothing of voices.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from recipes.voice.network import EMBEDDING

__all__ = ["Loss"]

_SCALE = 30.0
_DISTILLED = 20.0
_NEVER = -1e4


class Loss(nn.Module):  # type: ignore[misc]  # torch is not looked at
    """Args: corpus_of_class: shape (classes,), which classes compete."""

    def __init__(self, corpus_of_class: Tensor) -> None:
        super().__init__()
        self.centres = nn.Parameter(torch.randn(len(corpus_of_class), EMBEDDING) * 0.1)
        self.register_buffer("corpus_of_class", corpus_of_class, persistent=False)

    def forward(
        self, found: Tensor, classes: Tensor, teacher: Tensor, margin: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The loss; the mean cosine to the teacher; the share of crops named rightly."""
        found = nn.functional.normalize(found)
        cosines = found @ nn.functional.normalize(self.centres).T
        rows = torch.arange(len(classes))
        own = cosines[rows, classes].clamp(-1 + 1e-6, 1 - 1e-6)
        apart = torch.cos(torch.acos(own) + margin)
        # ArcFace's fall-back keeps the loss falling where the angle and the margin pass pi
        with_margin = torch.where(
            own > -torch.cos(torch.tensor(margin)),
            apart,
            own - margin * torch.sin(torch.tensor(margin)),
        )
        logits = _SCALE * cosines.scatter(1, classes[:, None], with_margin[:, None])
        elsewhere = self.corpus_of_class[classes][:, None] != self.corpus_of_class[None, :]
        softmax = nn.functional.cross_entropy(logits.masked_fill(elsewhere, _NEVER), classes)
        like_teacher = (found * teacher).sum(dim=1).mean()
        named = (cosines.masked_fill(elsewhere, _NEVER).argmax(dim=1) == classes).float().mean()
        return softmax + _DISTILLED * (1 - like_teacher), like_teacher.detach(), named
