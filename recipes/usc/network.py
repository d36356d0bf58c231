"""The codec in torch: an encoder and a decoder of separable convolutions, with codebooks between.

After Tura-Vecino et al. (USC), section 2.1. `monitor.networks.usc` runs `fold_norms`'s weights.
Time is the second axis of an image one row high, as in `recipes.phones.network`.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from monitor.networks.layers import BANDS, FLOOR
from monitor.networks.usc import DECODER_BANDS as FINE
from monitor.types import AnyArray, FloatArray
from recipes import folding
from recipes.phones.network import Block, conv, padded, twice
from recipes.usc.quantiser import Books

BOOKS, SIZE = 6, 1024
_NARROW, _WIDE = 128, 256
_REACHES = {
    "early": (_NARROW, ((2, 1), (2, 1))),
    "middle": (_WIDE, ((5, 1), (5, 1), (5, 1), (5, 1), (6, 0), (6, 0))),
    "deep": (_WIDE, ((4, 1), (4, 1), (4, 1), (4, 0), (4, 0))),
    "late": (_NARROW, ((2, 1), (2, 1))),
    "last": (_NARROW, ((2, 1),)),
}
"""Channels, and frames before and after the current one in each block's input. They are at 50, 25,
25, 50 and 100 per second."""
_STEM = (2, 2)  # mel frames before and after the current one
_SILENCE = float(np.log(FLOOR))


class Codec(nn.Module):  # type: ignore[misc]  # torch is not type-checked
    """Codec from log mel bands to latents, from latents to codes, and from codes to finer bands.

    Args:
        usual: shape (40,), mean of each band.
        level: shape (80,), mean of each finer band.
    """

    def __init__(self, usual: FloatArray, level: FloatArray) -> None:
        super().__init__()
        self.register_buffer("usual", torch.from_numpy(np.asarray(usual, np.float32)))
        self.stem = conv(2 * BANDS, _NARROW, sum(_STEM) + 1, 2)
        self.stem_norm = nn.BatchNorm2d(_NARROW)
        self.down = conv(_NARROW, _WIDE, 2, 2)
        self.down_norm = nn.BatchNorm2d(_WIDE)
        for part, (channels, reaches) in _REACHES.items():
            setattr(self, part, nn.ModuleList(Block(channels, *each) for each in reaches))
        self.books = Books(BOOKS, SIZE, _WIDE)
        self.up = conv(_WIDE, 2 * _NARROW, 1)
        self.up_norm = nn.BatchNorm2d(_NARROW)
        self.again = conv(_NARROW, 2 * _NARROW, 1)
        self.again_norm = nn.BatchNorm2d(_NARROW)
        self.head = nn.Conv2d(_NARROW, FINE, 1)
        with torch.no_grad():
            self.head.bias.copy_(torch.from_numpy(np.asarray(level, np.float32)))

    def encode(self, bands: Tensor, centred: Tensor) -> Tensor:
        """Encode bands, and bands minus their running mean, (b, 4 n, 40), to (b, n, 256)."""
        x = torch.cat([bands - _SILENCE, centred], dim=-1)[:, :, None].permute(0, 3, 2, 1)
        x = torch.relu(self.stem_norm(self.stem(padded(x, *_STEM))))
        x = self._through("early", x)
        x = torch.relu(self.down_norm(self.down(x)))
        return self._through("middle", x)[:, :, 0].transpose(1, 2)

    def decode(self, latents: Tensor) -> Tensor:
        """Decode quantised latents, shape (b, n, 256), to finer bands, shape (b, 4 n, 80)."""
        x = self._through("deep", latents[:, :, None].permute(0, 3, 2, 1))
        x = torch.relu(self.up_norm(twice(self.up(x))))
        x = self._through("late", x)
        x = torch.relu(self.again_norm(twice(self.again(x))))
        x = self._through("last", x)
        return self.head(x)[:, :, 0].transpose(1, 2)

    @property
    def decoder(self) -> nn.ModuleList:
        """Modules that `decode` uses."""
        names = ("deep", "up", "up_norm", "late", "again", "again_norm", "last", "head")
        return nn.ModuleList(getattr(self, name) for name in names)

    def _through(self, part: str, x: Tensor) -> Tensor:
        for block in getattr(self, part):
            x = block(x)
        return x


def fold_norms(network: Codec) -> dict[str, AnyArray]:
    """Return the weights for `monitor.networks.usc`, with batch norms folded in.

    Returns:
        arrays by name, float32: matrices as (out, in), kernels as (out, in, taps). Receptive fields
        of blocks are int64.
    """
    state = folding.state_of(network)
    found: dict[str, AnyArray] = {"usual": state["usual"], "clip": state["books.clip"]}
    for name in ("stem", "down", "up", "again"):
        found |= folding.conv(state, name)
    for name in ("up", "again"):
        found[name] = found[name][:, :, 0]
    found["head"], found["head.bias"] = state["head.weight"][:, :, 0, 0], state["head.bias"]
    for part, (_, reaches) in _REACHES.items():
        for i in range(len(reaches)):
            found |= folding.separable(state, f"{part}.{i}", f"{part}.{i}")
    for i in range(BOOKS):
        for name in ("in", "out"):
            found[f"book.{i}.{name}"] = state[f"books.{name}s.{i}.weight"]
            found[f"book.{i}.{name}.bias"] = state[f"books.{name}s.{i}.bias"]
        found[f"book.{i}.codes"] = network.books.codes[i].numpy()
    made = {name: np.asarray(each, np.float32) for name, each in found.items()}
    return made | {f"{part}.reach": np.array(blocks) for part, (_, blocks) in _REACHES.items()}
