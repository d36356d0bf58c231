"""The network of the feature ``phones``: which of 256 codes each 20 ms of a voice falls to.

The first block of a phone recogniser that `recipes.phones` trained, and codes (k-means) of what it
says, as the units of HuBERT are (Hsu et al., TASLP 2021). Nothing of the recogniser is needed for
them, so that they come at once; `monitor.networks.phones` says which phones were said.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from monitor.errors import StoreError, UsageError
from monitor.networks.mel import BANDS, FLOOR, HOP, RATE, WIDTH, log_mel
from monitor.networks.separable import Separable, dense, product, relu
from monitor.networks.weights import read_weights, shipped_weights
from monitor.types import AnyArray, FloatArray, IntArray

__all__ = ["BLOCK", "SHA256", "UnitNetwork", "UnitStream", "shipped"]

SHA256 = "1e89f192490800e5f6da9a445a57c71eee4e969c2a0c23601467cad7efb734d0"
"""Of units.npz beside this file; it marks its units in templates and frames."""
BLOCK = 640
"""Samples, 0.04 s, whose sums are taken together however a stream is cut: sums of floats depend on
the shapes of what is summed."""
_FRAME = 2 * HOP
_ROWS = BLOCK // _FRAME
_BEFORE = _FRAME  # samples before a block that its first two mel frames begin in
_STEM = 5  # mel frames that a frame is made of
_STEM_LATE = 2  # frames
_SILENCE = np.float32(np.log(FLOOR))


class UnitNetwork:
    """The weights; a stream of its own for each voice that is heard.

    Args:
        weights: arrays by name, as `recipes.phones.export` writes them.
        mark: the sha256 of the file.

    Attributes:
        size: codes there are.
        frame_seconds: from frame to frame; frame i covers samples [320 i, 320 (i + 1)).
        look_ahead: seconds of audio after its own that a frame depends on.
        late: whole frames that a frame comes after its own, at the next end of a block.
        memory: samples, whole blocks: what a stream heard longer ago changes nothing of what comes
            out, to the last bit, where blocks begin at the same samples.
        mark: units of two networks cannot be compared; this tells them apart.

    Raises:
        StoreError: they are of another network.
    """

    frame_seconds = _FRAME / RATE

    def __init__(self, weights: Mapping[str, AnyArray], mark: str = "") -> None:
        self.mark = mark
        try:
            self.stem = dense(weights, "stem")
            self.layer = Separable.named(weights, "layer", weights["reach"])
            codes = np.asarray(weights["codebook"], np.float32)
            self.size = len(codes)
            self._codes, self._lengths = np.ascontiguousarray(codes.T), (codes * codes).sum(axis=1)
            ahead = (self.layer.after - 1) * _FRAME + _STEM // 2 * HOP + WIDTH
            self.look_ahead = ahead / RATE
            self.late = self.layer.after + _STEM_LATE
            held = self.layer.held * _FRAME + _BEFORE + _STEM * HOP + _FRAME
            self.memory = (-(-held // BLOCK) + 1) * BLOCK
            if not self.stream().push(np.zeros(8 * BLOCK, np.float32)).size:
                raise ValueError("no units")
        except (KeyError, ValueError, IndexError, TypeError, AttributeError) as error:
            raise StoreError(f"weights of another network than units' ({error})") from None

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file of weights.

        Raises:
            StoreError: it cannot be read, or holds something else.
        """
        return cls(*read_weights(path))

    def stream(self) -> UnitStream:
        """Begin to listen."""
        return UnitStream(self)

    def code(self, hidden: FloatArray) -> IntArray:
        """The nearest codes of rows of the layer."""
        distances = self._lengths - 2 * product(hidden, self._codes, _ROWS)
        return np.asarray(distances.argmin(axis=1), np.int64)


@cache
def shipped() -> UnitNetwork:
    """The network that ships with the package, loaded once.

    Raises:
        StoreError: its file is missing or damaged.
    """
    return UnitNetwork(*shipped_weights(Path(__file__).with_suffix(".npz"), SHA256))


class UnitStream:
    """One stream of samples through a network.

    How the samples are cut into pushes changes nothing, to the last bit.
    """

    def __init__(self, network: UnitNetwork) -> None:
        self._network = network
        self.reset()

    def reset(self) -> None:
        """Forget all that was heard: the next sample is the first."""
        layer = self._network.layer
        self._waiting = np.zeros(_BEFORE, np.float32)
        self._bands = np.zeros((_STEM - 1, BANDS), np.float32)
        self._rows = np.zeros((layer.held, layer.channels), np.float32)
        self._begun = False
        self._unborn = self._network.late  # frames to come that are of before the first sample
        self._samples = self._given = 0

    def push(self, samples: FloatArray) -> IntArray:
        """Hear more.

        Args:
            samples: shape (n,), mono at 16 kHz in -1 to 1.

        Returns:
            shape (k,), int64, codes from 0: of the frames that are known now, and were not before.

        Raises:
            UsageError: another shape.
        """
        if samples.ndim != 1:
            raise UsageError("a stream of samples has one axis")
        self._samples += len(samples)
        waiting = np.concatenate([self._waiting, samples], dtype=np.float32)
        blocks = (len(waiting) - _BEFORE) // BLOCK
        self._waiting = waiting[blocks * BLOCK :].copy()
        found = self._heard(waiting, blocks) if blocks else np.empty(0, np.int64)
        first = min(self._unborn, len(found))
        self._unborn -= first
        self._given += len(found) - first
        return found[first:]

    def flush(self) -> IntArray:
        """The frames that are still due, as if silence followed; then forget all."""
        due = self._samples // _FRAME - self._given
        rest = self.push(np.zeros((self._unborn + due + 2 * _ROWS) * _FRAME, np.float32))
        self.reset()
        return rest[:due]

    def _heard(self, sound: FloatArray, blocks: int) -> IntArray:
        """Whole blocks' frames, as late as they are."""
        network = self._network
        windows = sliding_window_view(sound, _BEFORE + BLOCK)[::BLOCK][:blocks]
        bands = (log_mel(windows) - _SILENCE).reshape(-1, BANDS)
        if not self._begun:
            bands[: _BEFORE // HOP] = 0
        bands = np.concatenate([self._bands, bands])
        self._bands = bands[-(_STEM - 1) :]
        mels = sliding_window_view(bands.reshape(-1), _STEM * BANDS)[:: 2 * BANDS]
        x = product(mels[: blocks * _ROWS], network.stem[0], _ROWS)
        x = relu(np.add(x, network.stem[1], out=x))
        if not self._begun:
            x[:_STEM_LATE] = 0
        self._begun = True
        rows = np.concatenate([self._rows, x])
        self._rows = rows[len(x) :]
        return network.code(network.layer(rows, _ROWS))
