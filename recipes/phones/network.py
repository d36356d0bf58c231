"""The recogniser: separable convolutions, causal but for a stated look-ahead, and CTC.

Frames come at 50 a second; most of the work is done at 25 and brought back to 50 (as in a U-net;
Ronneberger et al., MICCAI 2015), where the hidden units are that `monitor.networks.phones` counts.
Nothing is normalised over time but by batch norms, so that nothing waits for an end.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from monitor.networks.mel import BANDS
from monitor.types import AnyArray
from recipes.folding import norm, separable

__all__ = ["CLASSES", "LAYERS", "LAYOUT", "NARROW", "WIDE", "Recogniser", "folded", "rounded"]

CLASSES = 40
"""39 phones after the blank."""
NARROW, WIDE = 192, 384
LAYOUT = {
    "early": ((3, 1), (3, 1), (4, 0)),
    "middle": ((6, 1), (7, 1), (8, 0), (6, 1), (8, 0), (8, 0), (7, 1), (8, 0)),
    "late": ((3, 1), (4, 0)),
}
"""Frames that each block hears before its own and after it: at 50, at 25 and at 50 a second."""
LAYERS = ("early.0", "early.1", "early.2", "up", "late.0", "late.1")
"""At 50 frames a second: whose codes may be units."""
_STEM = (2, 2)  # of mel frames
_SILENCE = float(np.log(1e-6))  # of a band: what is beyond the start, as zero


def conv(ins: int, outs: int, taps: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(ins, outs, (1, taps), stride=(1, stride), bias=False)


def padded(x: Tensor, before: int, after: int) -> Tensor:
    return nn.functional.pad(x, (before, after))


class Block(nn.Module):  # type: ignore[misc]  # torch is not looked at
    """Depthwise, pointwise, around a shortcut."""

    def __init__(self, channels: int, before: int, after: int) -> None:
        super().__init__()
        self.reach = before, after
        self.depthwise = nn.Conv2d(
            channels, channels, (1, before + 1 + after), groups=channels, bias=False
        )
        self.first = nn.BatchNorm2d(channels)
        self.pointwise = conv(channels, channels, 1)
        self.second = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.first(self.depthwise(padded(x, *self.reach))))
        return torch.relu(x + self.second(self.pointwise(y)))


class Recogniser(nn.Module):  # type: ignore[misc]
    """Log mel bands, shape (b, t, 40), to logits of phones, shape (b, t // 4 * 2, 40).

    Time is the second axis of a picture one row high, channels last: torch trains that half again
    as fast on a processor as it does sequences.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stem = conv(BANDS, NARROW, sum(_STEM) + 1, 2)
        self.stem_norm = nn.BatchNorm2d(NARROW)
        self.early = nn.ModuleList(Block(NARROW, *each) for each in LAYOUT["early"])
        self.down = conv(NARROW, WIDE, 2, 2)
        self.down_norm = nn.BatchNorm2d(WIDE)
        self.middle = nn.ModuleList(Block(WIDE, *each) for each in LAYOUT["middle"])
        self.up = conv(WIDE, 2 * NARROW, 1)
        self.up_norm = nn.BatchNorm2d(NARROW)
        self.late = nn.ModuleList(Block(NARROW, *each) for each in LAYOUT["late"])
        self.head = nn.Conv2d(NARROW, CLASSES, 1)
        self.frames = nn.Conv2d(NARROW, CLASSES, 1)  # in training alone: what is said when

    def forward(self, bands: Tensor) -> Tensor:
        return self.layers(bands)["logits"]

    def layers(self, bands: Tensor) -> dict[str, Tensor]:
        """What each layer says, by name, shape (b, frames, channels)."""
        found: dict[str, Tensor] = {}
        whole = bands.shape[1] // 4 * 4
        x = (bands[:, :whole, None] - _SILENCE).permute(0, 3, 2, 1)  # channels last
        x = torch.relu(self.stem_norm(self.stem(padded(x, *_STEM))))[..., : whole // 2]
        for i, block in enumerate(self.early):
            x = found[f"early.{i}"] = block(x)
        early = x
        x = torch.relu(self.down_norm(self.down(x)))
        for i, block in enumerate(self.middle):
            x = found[f"middle.{i}"] = block(x)
        y = self.up(x)
        b, _, _, t = y.shape
        y = y.permute(0, 2, 3, 1).reshape(b, 1, 2 * t, NARROW).permute(0, 3, 1, 2)
        x = torch.relu(self.up_norm(y) + early)
        found["up"], found["frames"] = x, self.frames(x)
        for i, block in enumerate(self.late):
            x = found[f"late.{i}"] = block(x)
        found["logits"] = self.head(x)
        return {name: each[:, :, 0].transpose(1, 2) for name, each in found.items()}


def folded(network: Recogniser) -> dict[str, AnyArray]:
    """Its weights as `monitor.networks.phones` wants them: each norm folded into its neighbour.

    Returns:
        arrays by name, float32; matrices as (out, in), kernels as (out, in, taps); how far the
        blocks reach, int64. The codebook is not among them.
    """
    state = {name: each.detach().double().numpy() for name, each in network.state_dict().items()}

    found: dict[str, AnyArray] = {}
    for name in ("stem", "down", "up"):
        kernel = state[f"{name}.weight"][:, :, 0]
        scale, shift = (np.resize(each, len(kernel)) for each in norm(state, f"{name}_norm"))
        found[name], found[f"{name}.bias"] = kernel * scale[:, None, None], shift
    found["head"], found["head.bias"] = state["head.weight"][:, :, 0, 0], state["head.bias"]
    for part, blocks in LAYOUT.items():
        for i in range(len(blocks)):
            at = f"{part}.{i}"
            found |= separable(state, at, at)
    made = {name: np.asarray(each, np.float32) for name, each in found.items()}
    return made | {f"{part}.reach": np.array(blocks) for part, blocks in LAYOUT.items()}


def rounded(network: Recogniser) -> dict[str, AnyArray]:
    """What ships: the folded weights in half precision."""
    return {
        name: each if name.endswith("reach") else each.astype(np.float16)
        for name, each in folded(network).items()
    }
