"""Losses of the codec. Each part of USC can be disabled, to measure its effect."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, cross_entropy, normalize

from recipes.phones.network import Block
from recipes.usc.batches import Batch
from recipes.usc.network import BOOKS, Codec
from recipes.usc.quantiser import DIMENSIONS

PARTS = ("reversal", "distillation", "dropout", "stopping", "noise")
"""Parts of the method: speaker reversal (section 2.2), semantic distillation (2.3), quantiser
dropout, stopped gradients of C0 alone (both 2.4), and Laplace noise (2.5)."""
EPSILON = 15.0
"""Epsilon of the noise in training, nats per latent, as in USC."""
_WEIGHTS = {"spectra": 1.0, "pull": 1.0, "content": 10.0, "speakers": 0.3}
_SCALES = (1, 2, 4, 8)  # frames and bands per mean
_DROPPED = 0.5  # fraction of segments without all books
_ALONE = 0.5  # fraction of these with only C0
_NOISY = 0.5  # fraction of segments with noise


@dataclass(frozen=True, slots=True)
class Losses:
    """The codec and its auxiliary networks.

    Attributes:
        codec: codec to train.
        speakers: classifies the speaker from C0.
        content: predicts the recogniser's layer from C0.
        without: disabled `PARTS`.
    """

    codec: Codec
    speakers: Speakers
    content: Content
    without: Collection[str] = ()

    @property
    def parts(self) -> nn.ModuleList:
        """All trained networks."""
        return nn.ModuleList([self.codec, self.speakers, self.content])

    def __call__(
        self, batch: Batch, reversal: float, half: bool = False
    ) -> tuple[Tensor, dict[str, float]]:
        """Return the loss of a batch, and its parts by name.

        Args:
            batch: segments.
            reversal: weight of the classifier's reversed gradient in the codec.
            half: whether to compute products in bfloat16.
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
        decoder_input = (coded.outputs * kept).sum(dim=0)
        if "stopping" not in self.without:
            decoder_input = torch.where((books == 1)[:, None, None], coded.alone, decoder_input)
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            made = self.codec.decode(decoder_input)
            turned = Reversed.apply(coded.numbers, reversal)
            guessed, right = self.speakers(turned, who)
        found = {
            "spectra": compute_spectral_loss(made.float(), fine),
            "pull": coded.pull,
            "speakers": guessed,
        }
        cosine = torch.zeros(())
        if "distillation" not in self.without:
            found["content"], cosine = self.content(coded.outputs[0], hidden)
        loss = sum((_WEIGHTS[name] * each for name, each in found.items()), torch.zeros(()))
        values = {name: each.item() for name, each in found.items()}
        return loss, values | {"right": right.item(), "cosine": cosine.item()}

    def decoding(self, batch: Batch, half: bool = False) -> tuple[Tensor, dict[str, float]]:
        """Return the loss of the decoder alone, on codes without noise.

        Half of the segments have only C0, and the others have books by dropout.
        """
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
            decoder_input = (coded.outputs * kept).sum(dim=0)
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            made = self.codec.decode(decoder_input)
        loss = compute_spectral_loss(made.float(), fine)
        return loss, {"spectra": loss.item()}

    def _books(self, count: int) -> Tensor:
        """Sample the number of books of each segment."""
        books = torch.full((count,), BOOKS)
        if "dropout" in self.without:
            return books
        fewer = torch.where(
            torch.rand(count) < _ALONE, torch.ones(count), torch.randint(2, BOOKS, (count,))
        )
        return torch.where(torch.rand(count) < _DROPPED, fewer, books).long()

    def _noise(self, count: int, latents: int) -> Tensor | None:
        """Sample noise of scale 2 / epsilon, which is 0 in some segments."""
        if "noise" in self.without:
            return None
        noise = torch.distributions.Laplace(0.0, 2 / EPSILON).sample((count, latents, DIMENSIONS))
        return noise * (torch.rand(count) < _NOISY)[:, None, None]


def compute_spectral_loss(made: Tensor, target: Tensor) -> Tensor:
    """Return the mean L1 between log mel spectra, (b, t, bands), over `_SCALES`, in nepers.

    Each scale averages the difference over that number of frames and of bands.
    """
    apart = (made - target)[:, None]
    return sum(
        (avg_pool2d(apart, scale, ceil_mode=True).abs().mean() for scale in _SCALES),
        torch.zeros(()),
    ) / len(_SCALES)


# --- Auxiliary networks: one classifies the speaker from C0, the other predicts content.

MARGIN, SCALE = 0.4, 30.0
"""Parameters of AM-softmax (Wang et al., IEEE Signal Processing Letters 2018), as in USC."""
_CHANNELS = 128


class Reversed(torch.autograd.Function):  # type: ignore[misc]  # torch is not type-checked
    """Identity with a reversed gradient (Ganin and Lempitsky, ICML 2015)."""

    @staticmethod
    def forward(context: Any, x: Tensor, weight: float) -> Tensor:
        """Return a view of x."""
        context.weight = weight
        return x.view_as(x)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """Return the reversed gradient, weighted."""
        return -context.weight * gradient, None


class Speakers(nn.Module):  # type: ignore[misc]
    """Classifier of training speakers by C0's codes over some seconds, with AM-softmax."""

    def __init__(self, people: int) -> None:
        super().__init__()
        self.enter = nn.Conv2d(DIMENSIONS, _CHANNELS, 1)
        self.blocks = nn.Sequential(*(Block(_CHANNELS, 2, 2) for _ in range(3)))
        self.heed = nn.Conv2d(_CHANNELS, _CHANNELS, 1)
        self.embed = nn.Linear(2 * _CHANNELS, _CHANNELS)
        self.people = nn.Parameter(torch.randn(people, _CHANNELS))

    def forward(self, numbers: Tensor, who: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss and the accuracy.

        Args:
            numbers: shape (b, n, d), C0's codes.
            who: shape (b,), indices of speakers.
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
    """Predictor of the recogniser's layer from C0's output (Chang et al., ICASSP 2022).

    Args:
        mean, deviation: shape (384,), statistics of the recogniser's layer.
        channels: channels of C0's output.
    """

    def __init__(self, mean: Tensor, deviation: Tensor, channels: int) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("deviation", deviation)
        self.told = nn.Sequential(
            nn.Linear(channels, len(mean)), nn.ReLU(), nn.Linear(len(mean), len(mean))
        )

    def forward(self, output: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss (L1 plus logistic loss of the cosine) and the mean cosine."""
        wanted = (hidden - self.mean) / self.deviation
        predicted = self.told(output)
        cosine = nn.functional.cosine_similarity(predicted, wanted, dim=-1)
        loss = (predicted - wanted).abs().mean() - nn.functional.logsigmoid(cosine).mean()
        return loss, cosine.mean()
