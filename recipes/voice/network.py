"""The student: five separable convolution blocks with squeeze-excitation, attentive statistics.

After B. Desplanques, J. Thienpondt and K. Demuynck, "ECAPA-TDNN", Interspeech 2020 (squeeze and
excitation, attentive statistics of channels), with separable convolutions for its Res2 blocks and
at 50 frames a second. `monitor.networks.voice` runs what `folded` gives, without torch.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from monitor.networks.mel import BANDS
from monitor.networks.weights import int8
from monitor.types import AnyArray, FloatArray
from recipes.folding import norm, separable

__all__ = ["CHANNELS", "DILATIONS", "EMBEDDING", "WIDE", "Student", "folded", "rounded"]

CHANNELS = 256
WIDE = 512
EMBEDDING = 192
DILATIONS = (1, 2, 3, 4, 5)
_KERNEL = 5
_SQUEEZED = 64
_LEAST_VARIANCE = 1e-5


class Block(nn.Module):  # type: ignore[misc]  # torch is not looked at
    """Depthwise, pointwise, squeeze and excitation, around a shortcut."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(
            channels,
            channels,
            (1, _KERNEL),
            padding=(0, dilation * (_KERNEL // 2)),
            dilation=(1, dilation),
            groups=channels,
            bias=False,
        )
        self.first = nn.BatchNorm2d(channels)
        self.pointwise = nn.Conv2d(channels, channels, 1, bias=False)
        self.second = nn.BatchNorm2d(channels)
        self.squeeze = nn.Linear(channels, _SQUEEZED)
        self.excite = nn.Linear(_SQUEEZED, channels)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.first(self.depthwise(x)))
        y = self.second(self.pointwise(y))
        gate = torch.sigmoid(self.excite(torch.relu(self.squeeze(y.mean(dim=(2, 3))))))
        return torch.relu(x + y * gate[:, :, None, None])


class Student(nn.Module):  # type: ignore[misc]
    """Log mel bands, shape (b, t, 40), to embeddings, shape (b, 192), not yet of length 1.

    Time is the second axis of a picture one row high, channels last: torch trains that half again
    as fast on a processor as it does sequences.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(
            BANDS, CHANNELS, (1, _KERNEL), stride=(1, 2), padding=(0, _KERNEL // 2), bias=False
        )
        self.stem_norm = nn.BatchNorm2d(CHANNELS)
        self.blocks = nn.ModuleList(Block(CHANNELS, dilation) for dilation in DILATIONS)
        self.widen = nn.Conv2d(CHANNELS, WIDE, 1, bias=False)
        self.widen_norm = nn.BatchNorm2d(WIDE)
        self.attend = nn.Conv2d(WIDE, _SQUEEZED, 1)
        self.weigh = nn.Conv2d(_SQUEEZED, WIDE, 1)
        self.pooled_norm = nn.BatchNorm1d(2 * WIDE)
        self.embed = nn.Linear(2 * WIDE, EMBEDDING)

    def forward(self, bands: Tensor) -> Tensor:
        x = (bands - bands.mean(dim=1, keepdim=True))[:, None].permute(0, 3, 1, 2)  # channels last
        x = torch.relu(self.stem_norm(self.stem(x)))
        for block in self.blocks:
            x = block(x)
        x = torch.relu(self.widen_norm(self.widen(x)))
        weights = torch.softmax(self.weigh(torch.tanh(self.attend(x))), dim=3)
        mean = (weights * x).sum(dim=(2, 3))
        variance = (weights * x * x).sum(dim=(2, 3)) - mean * mean
        pooled = torch.cat([mean, variance.clamp(min=_LEAST_VARIANCE).sqrt()], dim=1)
        return self.embed(self.pooled_norm(pooled))


def folded(student: Student) -> dict[str, FloatArray]:
    """Its weights as `monitor.networks.voice` wants them: each norm folded into its neighbour.

    Returns:
        arrays by name, float32; matrices as (out, in), kernels as (out, in, taps).
    """
    state = {name: each.detach().double().numpy() for name, each in student.state_dict().items()}

    found: dict[str, FloatArray] = {}
    scale, shift = norm(state, "stem_norm")
    found["stem"], found["stem.bias"] = state["stem.weight"][:, :, 0] * scale[:, None, None], shift
    for i in range(len(DILATIONS)):
        at = f"blocks.{i}"
        found |= separable(state, at, str(i))
        for part in ("squeeze", "excite"):
            found[f"{i}.{part}"] = state[f"{at}.{part}.weight"]
            found[f"{i}.{part}.bias"] = state[f"{at}.{part}.bias"]
    scale, shift = norm(state, "widen_norm")
    found["widen"] = state["widen.weight"][:, :, 0, 0] * scale[:, None]
    found["widen.bias"] = shift
    for part in ("attend", "weigh"):
        found[part] = state[f"{part}.weight"][:, :, 0, 0]
        found[f"{part}.bias"] = state[f"{part}.bias"]
    scale, shift = norm(state, "pooled_norm")
    found["embed"] = state["embed.weight"] * scale
    found["embed.bias"] = state["embed.bias"] + state["embed.weight"] @ shift
    return {name: np.asarray(each, np.float32) for name, each in found.items()}


def rounded(weights: dict[str, FloatArray]) -> dict[str, AnyArray]:
    """What ships: int8 with a scale a row, the rest in half precision."""
    return int8({name: each.astype(np.float16) for name, each in weights.items()})
