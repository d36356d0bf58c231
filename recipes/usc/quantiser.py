"""Residual codebooks of `monitor.networks.usc` in torch, with straight-through gradients.

Codes are directions in few dimensions (Yu et al., "Vector-quantized image modeling with improved
VQGAN", ICLR 2022). They are running means of the projections assigned to them (van den Oord et al.,
"Neural discrete representation learning", NeurIPS 2017), and need no gradient.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

DIMENSIONS = 8
_MEMORY = 0.97  # decay of running means per step
_LENGTH = 6.0
"""Factor on the default initial output weights of a book, so that it encodes enough of a latent."""
_UNUSED = 0.05  # use of a code, relative to even use, below which it is replaced


@dataclass(frozen=True, slots=True)
class Coded:
    """Quantised latents.

    Attributes:
        outputs: shape (books, b, n, channels), output of each book.
        alone: shape (b, n, channels), C0's output, with gradients that stop before the encoder.
        numbers: shape (b, n, d), C0's codes as directions.
        codes: shape (books, b, n), indices of codes.
        pull: commitment loss, which moves projections to their codes.
    """

    outputs: Tensor
    alone: Tensor
    numbers: Tensor
    codes: Tensor
    pull: Tensor


class Books(nn.Module):  # type: ignore[misc]  # torch is not type-checked
    """Residual codebooks; the first is C0."""

    def __init__(self, count: int, size: int, channels: int) -> None:
        super().__init__()
        self.ins = nn.ModuleList(nn.Linear(channels, DIMENSIONS) for _ in range(count))
        self.outs = nn.ModuleList(nn.Linear(DIMENSIONS, channels) for _ in range(count))
        with torch.no_grad():
            for out in self.outs:
                out.weight.mul_(_LENGTH)
        self.register_buffer("sums", normalize(torch.randn(count, size, DIMENSIONS), dim=-1))
        self.register_buffer("used", torch.full((count, size), 1.0))
        self.register_buffer("clip", torch.tensor(DIMENSIONS**0.5))

    @property
    def codes(self) -> Tensor:
        """Directions, shape (books, size, d)."""
        return normalize(self.sums, dim=-1)

    def forward(self, latents: Tensor, noise: Tensor | None = None) -> Coded:
        """Quantise latents, shape (b, n, channels).

        ``noise``, shape (b, n, d), is Laplace noise of scale ``2 / epsilon``; rows of 0 disable it.
        """
        outputs, codes, pull = [], [], latents.new_zeros(())
        residual, alone, numbers = latents, latents, latents
        for book, (into, out) in enumerate(zip(self.ins, self.outs, strict=True)):
            directions = self.codes[book]
            projected = normalize(into(residual), dim=-1)
            chosen = (projected.detach() @ directions.T).argmax(dim=-1)
            pull = pull + (projected - directions[chosen]).square().sum(dim=-1).mean()
            if self.training:
                self._count(book, chosen, projected.detach())
            blurred = projected
            if book == 0 and noise is not None:
                blurred = self._add_noise(projected, noise)
                chosen = (blurred.detach() @ directions.T).argmax(dim=-1)
            code = directions[chosen]
            straight = blurred + (code - blurred).detach()
            if book == 0:
                numbers = straight
                kept = normalize(into(latents.detach()), dim=-1)
                alone = out(kept + (code - kept).detach())
            outputs.append(out(straight))
            codes.append(chosen)
            residual = residual - outputs[-1]
        return Coded(torch.stack(outputs), alone, numbers, torch.stack(codes), pull / len(outputs))

    def _add_noise(self, projected: Tensor, noise: Tensor) -> Tensor:
        """Clip to an L1 norm of C and add noise, in rows with noise."""
        clip = self.clip.clone()  # training changes it in place
        length = projected.abs().sum(dim=-1, keepdim=True)
        clipped = projected * (clip / length).clamp_max(1.0)
        noisy = (noise != 0).any(dim=-1, keepdim=True)
        return torch.where(noisy, clipped + clip * noise, projected)

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def _count(self, book: int, chosen: Tensor, projected: Tensor) -> None:
        """Update running means: the codes, their use and C, the mean L1 norm."""
        rows, where = projected.reshape(-1, DIMENSIONS), chosen.flatten()
        self.sums[book] *= _MEMORY
        self.sums[book].index_add_(0, where, rows, alpha=1 - _MEMORY)
        often = torch.bincount(where, minlength=self.sums.shape[1]).float()
        self.used[book].lerp_(often * self.sums.shape[1] / len(where), 1 - _MEMORY)
        if book == 0:
            self.clip.lerp_(rows.abs().sum(dim=-1).mean(), 1 - _MEMORY)

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def revive(self, latents: Tensor) -> int:
        """Replace hardly used codes by projections of latents; return their number."""
        residual, count = latents.reshape(-1, latents.shape[-1]), 0
        for book, (into, out) in enumerate(zip(self.ins, self.outs, strict=True)):
            projected = normalize(into(residual), dim=-1)
            directions = self.codes[book]
            residual = residual - out(directions[(projected @ directions.T).argmax(dim=-1)])
            unused = (self.used[book] < _UNUSED).nonzero().flatten()
            self.sums[book, unused] = projected[torch.randint(len(projected), (len(unused),))]
            self.used[book, unused] = 1.0
            count += len(unused)
        return count
