"""What the codec is trained by; each part of USC can be left out, which shows what it does."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d

from recipes.usc.batches import Batch
from recipes.usc.listener import Content, Reversed, Speakers
from recipes.usc.network import BOOKS, Codec
from recipes.usc.quantiser import DIMENSIONS

__all__ = ["PARTS", "Losses", "spectral"]

PARTS = ("reversal", "distillation", "dropout", "stopping", "noise")
"""Of the method: speaker reversal (section 2.2), semantic distillation (2.3), quantiser dropout and
the end of gradients where C0 is alone (2.4), Laplace noise (2.5)."""
EPSILON = 15.0
"""Of the noise in training, nats a latent, as USC has it."""
_WEIGHTS = {"spectra": 1.0, "pull": 1.0, "content": 10.0, "speakers": 0.3}
_SCALES = (1, 2, 4, 8)  # frames and bands taken together
_DROPPED = 0.5  # share of stretches that do not have all books
_ALONE = 0.5  # share of these that have C0 alone
_NOISY = 0.5  # share of stretches with noise


@dataclass(frozen=True, slots=True)
class Losses:
    """The codec and those who hear along.

    Attributes:
        codec: is trained.
        speakers: guesses who speaks from C0.
        content: asks C0 for content.
        without: of `PARTS`.
    """

    codec: Codec
    speakers: Speakers
    content: Content
    without: Collection[str] = ()

    @property
    def parts(self) -> nn.ModuleList:
        """All that is trained."""
        return nn.ModuleList([self.codec, self.speakers, self.content])

    def __call__(
        self, batch: Batch, reversal: float, half: bool = False
    ) -> tuple[Tensor, dict[str, float]]:
        """The loss of a batch, and its parts by name.

        Args:
            batch: of stretches.
            reversal: how much of the guesser's gradient comes to the codec, turned round.
            half: products in bfloat16.
        """
        bands, centred, fine, hidden, who = (
            torch.from_numpy(each)
            for each in (batch.bands, batch.centred, batch.fine, batch.hidden, batch.who)
        )
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            latents = self.codec.encode(bands, centred)
        coded = self.codec.books(latents.float(), self._noise(len(who), latents.shape[1]))
        books = self._books(len(who))
        kept = (torch.arange(BOOKS)[:, None] < books).float()[:, :, None, None]
        told = (coded.said * kept).sum(dim=0)
        if "stopping" not in self.without:
            told = torch.where((books == 1)[:, None, None], coded.alone, told)
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            made = self.codec.decode(told)
            turned = Reversed.apply(coded.numbers, reversal)
            guessed, right = self.speakers(turned, who)
        found = {
            "spectra": spectral(made.float(), fine),
            "pull": coded.pull,
            "speakers": guessed,
        }
        cosine = torch.zeros(())
        if "distillation" not in self.without:
            found["content"], cosine = self.content(coded.said[0], hidden)
        loss = sum((_WEIGHTS[name] * each for name, each in found.items()), torch.zeros(()))
        told_of = {name: each.item() for name, each in found.items()}
        return loss, told_of | {"right": right.item(), "cosine": cosine.item()}

    def decoding(self, batch: Batch, half: bool = False) -> tuple[Tensor, dict[str, float]]:
        """The loss of the decoder alone, on codes without noise: half of the time C0's alone."""
        bands, centred, fine = (
            torch.from_numpy(each) for each in (batch.bands, batch.centred, batch.fine)
        )
        count = len(bands)
        with torch.no_grad():
            with torch.autocast("cpu", torch.bfloat16, enabled=half):
                latents = self.codec.encode(bands, centred)
            coded = self.codec.books(latents.float())
            books = torch.where(torch.rand(count) < _ALONE, torch.ones(count), self._books(count))
            kept = (torch.arange(BOOKS)[:, None] < books).float()[:, :, None, None]
            told = (coded.said * kept).sum(dim=0)
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            made = self.codec.decode(told)
        loss = spectral(made.float(), fine)
        return loss, {"spectra": loss.item()}

    def _books(self, count: int) -> Tensor:
        """How many books each stretch has."""
        books = torch.full((count,), BOOKS)
        if "dropout" in self.without:
            return books
        fewer = torch.where(
            torch.rand(count) < _ALONE, torch.ones(count), torch.randint(2, BOOKS, (count,))
        )
        return torch.where(torch.rand(count) < _DROPPED, fewer, books).long()

    def _noise(self, count: int, latents: int) -> Tensor | None:
        """Of scale 2 / epsilon; none in some stretches."""
        if "noise" in self.without:
            return None
        drawn = torch.distributions.Laplace(0.0, 2 / EPSILON).sample((count, latents, DIMENSIONS))
        return drawn * (torch.rand(count) < _NOISY)[:, None, None]


def spectral(made: Tensor, asked: Tensor) -> Tensor:
    """L1 between log mel spectra, shape (b, t, bands), as they are and ever coarser; nepers.

    What is coarser is a mean over so many frames and so many bands.
    """
    apart = (made - asked)[:, None]
    return sum(
        (avg_pool2d(apart, scale, ceil_mode=True).abs().mean() for scale in _SCALES),
        torch.zeros(()),
    ) / len(_SCALES)
