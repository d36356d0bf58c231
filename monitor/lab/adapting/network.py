"""The voice network in torch, to be trained: the same weights, the same steps, in batches."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import linear, relu

from monitor.errors import StoreError
from monitor.networks.voice import BANDS, GROUPS, LEAST_VARIANCE
from monitor.types import AnyArray, FloatArray

_FIXED = (".gain", ".shift")
"""What was a batch norm's stays as it is."""


class TrainableVoice(nn.Module):  # type: ignore[misc]  # torch is not looked at
    """Bands of windows to embeddings, as `monitor.networks.voice.VoiceNetwork` runs it.

    Args:
        weights: arrays by name, as of that; a copy is trained.

    Raises:
        StoreError: the weights are of another network.
    """

    def __init__(self, weights: Mapping[str, AnyArray]) -> None:
        super().__init__()
        try:
            self.taps = np.reshape(weights["taps"], (-1, 2)).astype(int).tolist()
            self.stride = int(weights["stride"])
            for name, array in weights.items():
                value = torch.tensor(np.asarray(array, np.float32))
                if name in ("taps", "stride", "attention") or name.endswith(_FIXED):
                    self.register_buffer(_key(name), value)
                else:
                    self.register_parameter(_key(name), nn.Parameter(value))
            self.names = tuple(weights)
            with torch.no_grad():
                self(torch.zeros(1, 51, BANDS))
        except (KeyError, AttributeError, RuntimeError, TypeError, ValueError) as error:
            raise StoreError(f"weights of another network than voice's ({error})") from None

    def plain(self) -> dict[str, FloatArray]:
        """Return the weights by name, as `VoiceNetwork` takes them; float32."""
        return {name: self._of(name).detach().numpy().copy() for name in self.names}

    def forward(self, bands: Tensor) -> Tensor:
        """Embed windows, shape (b, t, 80): shape (b, 192), of no certain length."""
        rows = self.frames(bands - bands.mean(dim=1, keepdim=True))
        attention = torch.softmax(self.logits(rows).float(), dim=1)
        rows = rows.float()
        mean = (attention * rows).sum(dim=1)
        deviation = _deviation((attention * rows * rows).sum(dim=1), mean)
        return linear(mean, self._of("embed.mean"), self._of("embed.bias")) + linear(
            deviation, self._of("embed.deviation")
        )

    def frames(self, bands: Tensor) -> Tensor:
        """All that is pooled: shape (b, t / stride, 3072)."""
        width = self._of("stem").shape[1] // BANDS
        rows = self._activated(self._dense(_stack_taps(bands, width, 1), "stem"), "stem")
        rows = rows[:, :: self.stride]
        outputs = []
        for block in range(len(self.taps)):
            rows = self._block(rows, block)
            outputs.append(rows)
        return relu(self._dense(torch.cat(outputs, dim=2), "widen"))

    def logits(self, rows: Tensor) -> Tensor:
        """The logarithm of the attention of each frame and channel, of no certain sum."""
        mean = rows.mean(dim=1, dtype=torch.float32)
        square = (rows * rows).mean(dim=1, dtype=torch.float32)
        context = linear(mean, self._of("attend.mean"), self._of("attend.bias")) + linear(
            _deviation(square, mean), self._of("attend.deviation")
        )
        attended = linear(rows, self._of("attend")) + context[:, None]
        return self._dense(torch.tanh(self._activated(attended, "attend")), "weigh")

    def _block(self, x: Tensor, block: int) -> Tensor:
        taps, dilation = self.taps[block]
        first, *parts = self._activated(self._dense(x, f"{block}.one"), f"{block}.one").chunk(
            GROUPS, dim=2
        )
        groups, last = [first], None
        for group, part in enumerate(parts, 1):
            name = f"{block}.group{group}"
            convolved = _stack_taps(part if last is None else part + last, taps, dilation)
            last = self._activated(self._dense(convolved, name), name)
            groups.append(last)
        y = self._activated(self._dense(torch.cat(groups, dim=2), f"{block}.two"), f"{block}.two")
        squeezed = relu(self._dense(y.mean(dim=1, keepdim=True), f"{block}.squeeze"))
        return y * torch.sigmoid(self._dense(squeezed, f"{block}.excite")) + x

    def _dense(self, x: Tensor, name: str) -> Tensor:
        if name in self.names:
            return linear(x, self._of(name), self._of(f"{name}.bias"))
        inner = linear(x, self._of(f"{name}.in"))
        return linear(inner, self._of(f"{name}.out"), self._of(f"{name}.bias"))

    def _activated(self, x: Tensor, name: str) -> Tensor:
        scale, shift = (self._of(name + suffix).to(x.dtype) for suffix in _FIXED)
        return torch.addcmul(shift, relu(x), scale)

    def _of(self, name: str) -> Tensor:
        return getattr(self, _key(name))


def _key(name: str) -> str:
    """A name without dots, which torch keeps for modules within modules."""
    return "w_" + name.replace(".", "_")


def _stack_taps(rows: Tensor, taps: int, dilation: int) -> Tensor:
    """Each row beside those around it, tap by tap; a mirror at both ends."""
    reach = taps // 2 * dilation
    if reach:
        before, after = rows[:, 1 : reach + 1].flip(1), rows[:, -reach - 1 : -1].flip(1)
        rows = torch.cat([before, rows, after], dim=1)
    count = rows.shape[1] - 2 * reach
    return torch.cat(
        [rows[:, at : at + count] for at in range(0, taps * dilation, dilation)], dim=2
    )


def _deviation(square: Tensor, mean: Tensor) -> Tensor:
    return (square - mean * mean).clamp(min=LEAST_VARIANCE).sqrt()
