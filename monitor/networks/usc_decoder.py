"""The codec's decoder: log mel frames, four of each latent, as the latents come."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from monitor.errors import UsageError
from monitor.networks.blocks import WholeBlocks
from monitor.networks.separable import Separable, dense, relu
from monitor.networks.tape import Tapes
from monitor.types import AnyArray, FloatArray

__all__ = ["BANDS", "UscDecoder", "UscDecoderStream"]

BANDS = 80
"""Mel bands of a decoded frame."""
_ROWS = 5  # latents that are computed at once
_FRAMES = 4  # of a latent


class UscDecoder:
    """The decoder's weights: separable convolutions at 25, at 50 and at 100 frames a second.

    Args:
        weights: by name, as `recipes.usc.export` writes them.

    Attributes:
        channels: numbers in a latent.
        late: frames of 10 ms that one comes after its own time; besides, a stream waits for
            five latents together.

    Raises:
        KeyError, ValueError: they do not fit.
    """

    def __init__(self, weights: Mapping[str, AnyArray]) -> None:
        self.up, self.again, self.head = (dense(weights, name) for name in ("up", "again", "head"))
        self.deep, self.late_blocks, self.last = (
            [
                Separable.named(weights, f"{part}.{i}", reach)
                for i, reach in enumerate(weights[f"{part}.reach"])
            ]
            for part in ("deep", "late", "last")
        )
        deep, late, last = (
            sum(each.after for each in part) for part in (self.deep, self.late_blocks, self.last)
        )
        self.late = 4 * deep + 2 * late + last
        self.channels = self.deep[0].channels
        if len(self.head[1]) != BANDS:
            raise ValueError("other bands")

    def stream(self) -> UscDecoderStream:
        """Begin to speak."""
        return UscDecoderStream(self)


class UscDecoderStream:
    """One stream of latents through a decoder.

    How the latents are cut into pushes changes nothing, to the last bit.
    """

    def __init__(self, decoder: UscDecoder) -> None:
        self._decoder = decoder
        self.reset()

    def reset(self) -> None:
        """Forget all that was said: the next latent is the first."""
        decoder = self._decoder
        self._deep = Tapes(decoder.deep, 0)
        self._late = Tapes(decoder.late_blocks, 2 * self._deep.late)
        self._last = Tapes(decoder.last, 2 * self._late.late)
        nothing = np.zeros((_ROWS, decoder.channels), np.float32)
        self._blocks = WholeBlocks(self._said, nothing, BANDS, unborn=decoder.late)

    def push(self, latents: FloatArray) -> FloatArray:
        """Say more.

        Args:
            latents: shape (k, channels).

        Returns:
            shape (n, 80), float32, as `monitor.networks.mel.log_mel` has them in 80 bands: the
            frames that are known now, and were not before.

        Raises:
            UsageError: another shape.
        """
        if latents.ndim != 2 or latents.shape[1] != self._decoder.channels:
            raise UsageError(f"latents have the shape (k, {self._decoder.channels})")
        return self._blocks.push(latents)

    def flush(self) -> FloatArray:
        """The frames that are still due, as if nothing followed; then forget all."""
        rest = self._blocks.flush(due=_FRAMES * self._blocks.taken)
        self.reset()
        return rest

    def _said(self, x: FloatArray) -> FloatArray:
        """Five latents' worth of frames, as late as they are."""
        decoder = self._decoder
        x = self._deep(x.copy())
        x = self._late(relu(x @ decoder.up[0] + decoder.up[1]).reshape(2 * _ROWS, -1))
        x = self._last(relu(x @ decoder.again[0] + decoder.again[1]).reshape(4 * _ROWS, -1))
        return np.asarray(x @ decoder.head[0] + decoder.head[1])
