"""Who hears along in training: one guesses the speaker from C0, the other asks for content."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from recipes.phones.network import Block
from recipes.usc.quantiser import DIMENSIONS

__all__ = ["MARGIN", "SCALE", "Content", "Reversed", "Speakers"]

MARGIN, SCALE = 0.4, 30.0
"""Of AM-softmax (Wang et al., IEEE Signal Processing Letters 2018), as USC has them."""
_CHANNELS = 128


class Reversed(torch.autograd.Function):  # type: ignore[misc]  # torch is not looked at
    """What it is, with the gradient turned round (Ganin and Lempitsky, ICML 2015)."""

    @staticmethod
    def forward(context: Any, x: Tensor, weight: float) -> Tensor:
        """As it is."""
        context.weight = weight
        return x.view_as(x)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """Turned round."""
        return -context.weight * gradient, None


class Speakers(nn.Module):  # type: ignore[misc]
    """Guesses who speaks from the codes of C0 over some seconds; AM-softmax of the known ones."""

    def __init__(self, people: int) -> None:
        super().__init__()
        self.enter = nn.Conv2d(DIMENSIONS, _CHANNELS, 1)
        self.blocks = nn.Sequential(*(Block(_CHANNELS, 2, 2) for _ in range(3)))
        self.heed = nn.Conv2d(_CHANNELS, _CHANNELS, 1)
        self.embed = nn.Linear(2 * _CHANNELS, _CHANNELS)
        self.people = nn.Parameter(torch.randn(people, _CHANNELS))

    def forward(self, numbers: Tensor, who: Tensor) -> tuple[Tensor, Tensor]:
        """The loss, and the share of guesses that were right.

        Args:
            numbers: shape (b, n, d).
            who: shape (b,).
        """
        x = self.blocks(torch.relu(self.enter(numbers[:, :, None].permute(0, 3, 2, 1))))
        heed = torch.softmax(self.heed(x).float(), dim=-1)
        mean = (heed * x).sum(dim=-1)
        spread = ((heed * x.square()).sum(dim=-1) - mean.square()).clamp_min(1e-5).sqrt()
        voice = normalize(self.embed(torch.cat([mean, spread], dim=1)[:, :, 0]).float(), dim=1)
        cosines = voice @ normalize(self.people, dim=1).T
        margin = MARGIN * nn.functional.one_hot(who, len(self.people))
        right = (cosines.argmax(dim=1) == who).float().mean()
        return cross_entropy(SCALE * (cosines - margin), who), right


class Content(nn.Module):  # type: ignore[misc]
    """Asks that what C0 says holds what the recogniser hears (Chang et al., ICASSP 2022).

    Args:
        mean, deviation: shape (384,), of the recogniser's layer.
        channels: of what C0 says.
    """

    def __init__(self, mean: Tensor, deviation: Tensor, channels: int) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("deviation", deviation)
        self.told = nn.Sequential(
            nn.Linear(channels, len(mean)), nn.ReLU(), nn.Linear(len(mean), len(mean))
        )

    def forward(self, said: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """The loss, L1 and the logistic of the cosine; and the mean cosine."""
        wanted = (hidden - self.mean) / self.deviation
        told = self.told(said)
        cosine = nn.functional.cosine_similarity(told, wanted, dim=-1)
        loss = (told - wanted).abs().mean() - nn.functional.logsigmoid(cosine).mean()
        return loss, cosine.mean()
