"""The recogniser: separable convolutions, causal except for a stated look-ahead, and CTC.

There are 50 frames per second. Most layers run at 25 and are upsampled to 50 (as in a U-net;
Ronneberger et al., MICCAI 2015). Only batch norms and a running mean normalise over time, so that
outputs do not wait for the end of the sound. The layout ``phones`` recognises phones. The layout
``units`` provides units, the codes of an early layer. It has a shorter look-ahead, and its input
keeps the level and the microphone's response.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from monitor.networks.layers import BANDS, FLOOR, RATE, Centre, log_mel
from monitor.networks.phones import UNITS_FLOOR
from monitor.types import AnyArray, FloatArray
from recipes import folding

CLASSES = 40
"""The blank, then 39 phones."""
NARROW, WIDE = 192, 384


@dataclass(frozen=True, slots=True)
class Layout:
    """Receptive fields of a network's blocks.

    Attributes:
        early, middle, late: frames before and after the current one in each block's input. The
            frames are at 50, 25 and 50 per second.
        centred: whether the bands' running mean is subtracted.
    """

    early: tuple[tuple[int, int], ...]
    middle: tuple[tuple[int, int], ...]
    late: tuple[tuple[int, int], ...]
    centred: bool

    @property
    def layers(self) -> tuple[str, ...]:
        """Layers at 50 frames per second, whose codes may be units."""
        early, late = (
            tuple(f"{part}.{i}" for i in range(len(blocks)))
            for part, blocks in (("early", self.early), ("late", self.late))
        )
        return (*early, "up", *late)


LAYOUTS = {
    "units": Layout(
        early=((3, 1), (3, 1), (4, 0)),
        middle=((6, 1), (7, 1), (8, 0), (6, 1), (8, 0), (8, 0), (7, 1), (8, 0)),
        late=((3, 1), (4, 0)),
        centred=False,
    ),
    "phones": Layout(
        early=((2, 2), (2, 2)),
        middle=(
            *((3, 2), (4, 1), (3, 2), (4, 1), (4, 1)),
            *((5, 1), (4, 1), (5, 1), (4, 1), (6, 0)),
        ),
        late=((2, 1), (2, 1)),
        centred=True,
    ),
}
_STEM = (2, 2)  # mel frames before and after the current one
_DROPPED = 0.1  # fraction of channels, in training
_SILENCE = np.log(FLOOR)


def conv(ins: int, outs: int, taps: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(ins, outs, (1, taps), stride=(1, stride), bias=False)


def padded(x: Tensor, before: int, after: int) -> Tensor:
    return nn.functional.pad(x, (before, after))


def twice(y: Tensor) -> Tensor:
    """Upsample by 2: (b, 2 c, 1, t) to (b, c, 1, 2 t)."""
    b, channels, _, t = y.shape
    y = y.permute(0, 2, 3, 1).reshape(b, 1, 2 * t, channels // 2)
    return y.permute(0, 3, 1, 2)


class Block(nn.Module):  # type: ignore[misc]  # torch is not type-checked
    """Depthwise and pointwise convolutions with a shortcut."""

    def __init__(self, channels: int, before: int, after: int, dropped: float = 0.0) -> None:
        super().__init__()
        self.reach = before, after
        self.depthwise = nn.Conv2d(
            channels, channels, (1, before + 1 + after), groups=channels, bias=False
        )
        self.first = nn.BatchNorm2d(channels)
        self.pointwise = conv(channels, channels, 1)
        self.second = nn.BatchNorm2d(channels)
        self.dropout = nn.Dropout2d(dropped)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.first(self.depthwise(padded(x, *self.reach))))
        return torch.relu(x + self.dropout(self.second(self.pointwise(y))))


class Recogniser(nn.Module):  # type: ignore[misc]
    """Network from log mel bands, shape (b, t, 40), to logits, shape (b, t // 4 * 2, 40).

    `normalise_bands` prepares the bands.

    Time is the second axis of an image one row high, channels last. On a CPU, torch trains this 1.5
    times as fast as sequences.
    """

    def __init__(self, layout: str = "phones") -> None:
        super().__init__()
        self.layout = LAYOUTS[layout]
        self.register_buffer("usual", torch.zeros(BANDS))  # mean of each band
        self.stem = conv(BANDS, NARROW, sum(_STEM) + 1, 2)
        self.stem_norm = nn.BatchNorm2d(NARROW)
        self.early = nn.ModuleList(Block(NARROW, *each) for each in self.layout.early)
        self.down = conv(NARROW, WIDE, 2, 2)
        self.down_norm = nn.BatchNorm2d(WIDE)
        self.middle = nn.ModuleList(Block(WIDE, *each, _DROPPED) for each in self.layout.middle)
        self.up = conv(WIDE, 2 * NARROW, 1)
        self.up_norm = nn.BatchNorm2d(NARROW)
        self.late = nn.ModuleList(Block(NARROW, *each) for each in self.layout.late)
        self.head = nn.Conv2d(NARROW, CLASSES, 1)
        self.frames = nn.Conv2d(NARROW, CLASSES, 1)  # class of each frame; not exported

    def forward(self, bands: Tensor) -> Tensor:
        return self.layers(bands)["logits"]

    def layers(self, bands: Tensor) -> dict[str, Tensor]:
        """Return the output of each layer by name, shape (b, frames, channels)."""
        found: dict[str, Tensor] = {}
        whole = bands.shape[1] // 4 * 4
        x = bands[:, :whole, None].permute(0, 3, 2, 1)  # channels last
        x = torch.relu(self.stem_norm(self.stem(padded(x, *_STEM))))[..., : whole // 2]
        for i, block in enumerate(self.early):
            x = found[f"early.{i}"] = block(x)
        early = x
        x = torch.relu(self.down_norm(self.down(x)))
        for i, block in enumerate(self.middle):
            x = found[f"middle.{i}"] = block(x)
        x = torch.relu(self.up_norm(twice(self.up(x))) + early)
        found["up"], found["frames"] = x, self.frames(x)
        for i, block in enumerate(self.late):
            x = found[f"late.{i}"] = block(x)
        found["logits"] = self.head(x)
        return {name: each[:, :, 0].transpose(1, 2) for name, each in found.items()}


def normalise_bands(bands: FloatArray, layout: Layout, usual: FloatArray) -> FloatArray:
    """Return log mel bands, shape (t, 40), as input of a network with this layout."""
    return Centre(usual)(bands) if layout.centred else bands - np.float32(_SILENCE)


def compute_layers(network: Recogniser, sound: FloatArray) -> dict[str, Tensor]:
    """Return each layer's output for a sound and silence after it, by name: (frames, channels)."""
    floor = FLOOR if network.layout.centred else UNITS_FLOOR
    energies = log_mel(np.pad(sound, (0, RATE)), floor=floor)
    bands = normalise_bands(energies, network.layout, network.usual.numpy())
    with torch.inference_mode():
        return {
            name: each[0] for name, each in network.layers(torch.from_numpy(bands[None])).items()
        }


def fold_norms(network: Recogniser) -> dict[str, AnyArray]:
    """Return the weights for `monitor.networks.phones`, with batch norms folded in.

    Returns:
        arrays by name, float32: matrices as (out, in), kernels as (out, in, taps). Receptive fields
        of blocks are int64. The trigram is not included.
    """
    state = folding.state_of(network)
    found: dict[str, AnyArray] = {}
    for name in ("stem", "down", "up"):
        found |= folding.conv(state, name)
    found["head"], found["head.bias"] = state["head.weight"][:, :, 0, 0], state["head.bias"]
    found["usual"] = state["usual"]
    parts = {part: getattr(network.layout, part) for part in ("early", "middle", "late")}
    for part, blocks in parts.items():
        for i in range(len(blocks)):
            found |= folding.separable(state, f"{part}.{i}", f"{part}.{i}")
    made = {name: np.asarray(each, np.float32) for name, each in found.items()}
    return made | {f"{part}.reach": np.array(blocks) for part, blocks in parts.items()}


def layer(network: Recogniser) -> dict[str, AnyArray]:
    """Return the weights of the stem and first block for `monitor.networks.phones`, float32."""
    found = fold_norms(network)
    made = {name: found[name] for name in ("stem", "stem.bias")}
    made |= {
        name.replace("early.0", "layer"): each
        for name, each in found.items()
        if name.startswith("early.0.")
    }
    return made | {"reach": found["early.reach"][0]}
