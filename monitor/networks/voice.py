"""The network behind ``voice``, alone or beside that of ``phones``."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import Self

import numpy as np

from monitor.errors import StoreError, UsageError
from monitor.networks.layers import (
    WIDTH,
    linear,
    log_bands,
    over_time,
    power,
    read_weights,
    relu,
    shipped_weights,
    sigmoid,
    softmax_over_time,
)
from monitor.types import FloatArray

# ------------------------------------------------------------------------------------------- voice
# The voice network: embeddings of a speaker's voice, by numpy alone.
#
# What `recipes.voice` trained and folded: separable convolution blocks with squeeze and excitation
# (ECAPA-TDNN's; Desplanques et al., Interspeech 2020) at 50 frames a second, attentive statistics.

SHA256 = "1b31dda06dc4cc4564df1d434f8e8e317f647005d82cb37ff0787fef56d66022"
"""Of voice.npz beside this file."""
WARPED_SHA256 = "5de1dab40eeed386cece4c459091c0d13e2283f1002ab045c25338828b963a7a"
"""Of voice_warped.npz, trained on after it, on voices of other formants as well."""
SMALL_SHA256 = "c8cbe13d1874cf80f53e83974e851046f4bab12068f0b74074451a61fb7275f6"
"""Of voice_small.npz, trained before both on fewer people and clean speech."""

_STRIDE = 2
_LEAST_VARIANCE = np.float32(1e-5)


class VoiceNetwork:
    """Windows of sound to embeddings.

    Args:
        weights: arrays by name, as `monitor.adapting.fine_tuning.folded` gives them.
        sha256: of the file that they come from.

    Attributes:
        size: numbers in an embedding.
        bands: mel bands that it hears.
        sha256: embeddings of two networks cannot be compared; this tells them apart.
        weights: arrays by name, float32.

    Raises:
        StoreError: they are of another network.
    """

    def __init__(self, weights: dict[str, FloatArray], sha256: str = "") -> None:
        self.sha256 = sha256
        # matrices in to out, as products with frames in rows want them
        self.weights = {
            name: np.asarray(each, np.float32, order="F" if np.ndim(each) == 2 else "K")
            for name, each in weights.items()
        }
        try:
            self._blocks = next(i for i in count() if f"{i}.depthwise" not in weights)
            self.size, self.bands = len(self.weights["embed.bias"]), self.weights["stem"].shape[1]
            with np.errstate(all="ignore"):
                found = self.embed(np.zeros((1, 2 * WIDTH), np.float32))
            if self._blocks == 0 or found.shape != (1, self.size):
                raise ValueError("no blocks")
        except (KeyError, ValueError, IndexError, TypeError) as error:
            raise StoreError(f"weights of another network than voice's ({error})") from None

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file of weights.

        Raises:
            StoreError: it cannot be read, or holds something else.
        """
        return cls(*read_weights(path))

    def embed(self, windows: FloatArray) -> FloatArray:
        """Embed windows of one length, each by itself.

        Args:
            windows: shape (b, n), mono at 16 kHz in -1 to 1, n of 800 or more.

        Returns:
            shape (b, size), float32, each of length 1. What else is in a batch changes nothing.

        Raises:
            UsageError: another shape, or windows too short.
        """
        if windows.ndim != 2 or windows.shape[1] < 2 * WIDTH:
            raise UsageError(f"windows have the shape (b, n), n at least {2 * WIDTH} samples")
        return self.of_power([power(window) for window in windows])

    def of_power(self, powers: Sequence[FloatArray]) -> FloatArray:
        """As ``embed``, of each window's power spectra (`monitor.networks.layers.power`)."""
        return self.embedded([log_bands(each, self.bands) for each in powers])

    def embedded(self, windows: Sequence[FloatArray]) -> FloatArray:
        """The bands of windows, shape (t, bands) each, to shape (b, size). Frames are rows.

        Layer after layer, all windows through each while its weights are at hand.
        """
        if not windows:
            return np.empty((0, self.size), np.float32)
        found = [self._stem(bands - bands.mean(axis=0)) for bands in windows]
        for block in range(self._blocks):
            found = [self._mixed(x, block) for x in found]
        return np.stack([self._pooled(x) for x in found])

    def _mixed(self, x: FloatArray, block: int) -> FloatArray:
        """Each channel over time, then all channels of a frame; gated, on top of what came in."""
        y = self._depthwise(x, f"{block}.depthwise", dilation=block + 1)
        y = self._linear(y, f"{block}.pointwise")
        gate = relu(self._linear(y.mean(axis=0), f"{block}.squeeze"))
        y *= sigmoid(self._linear(gate, f"{block}.excite"))
        y += x
        return relu(y)

    def _pooled(self, x: FloatArray) -> FloatArray:
        """Mean and deviation over time, as attention weighs frames, to an embedding."""
        x = relu(self._linear(x, "widen"))
        attended = self._linear(x, "attend")
        attention = softmax_over_time(self._linear(np.tanh(attended, out=attended), "weigh"))
        mean = np.einsum("tc,tc->c", attention, x)
        attention *= x
        variance = np.einsum("tc,tc->c", attention, x) - mean * mean
        deviation = np.sqrt(np.maximum(variance, _LEAST_VARIANCE))
        found = self._linear(np.concatenate([mean, deviation]), "embed")
        return np.asarray(found / np.linalg.norm(found), np.float32)

    def _linear(self, x: FloatArray, name: str) -> FloatArray:
        return linear(x, (self.weights[name].T, self.weights[f"{name}.bias"]))

    def _stem(self, bands: FloatArray) -> FloatArray:
        """Every second frame, of five."""
        kernel = self.weights["stem"]
        taps = kernel.shape[2]
        padded = _between_zeros(bands, taps // 2)
        rows = np.lib.stride_tricks.sliding_window_view(padded, taps, axis=0)[::_STRIDE]
        flat = rows.reshape(len(rows), -1)
        matrix = kernel.reshape(len(kernel), -1).T
        return relu(linear(flat, (matrix, self.weights["stem.bias"])))

    def _depthwise(self, x: FloatArray, name: str, dilation: int) -> FloatArray:
        """Each channel with taps of its own; zeros beyond both ends."""
        taps = self.weights[name].T
        y = over_time(_between_zeros(x, dilation * (len(taps) // 2)), taps, dilation)
        y += self.weights[f"{name}.bias"]
        return relu(y)


def _between_zeros(rows: FloatArray, count: int) -> FloatArray:
    """As many before as behind, in a third of the time of ``np.pad``."""
    made = np.zeros((len(rows) + 2 * count, rows.shape[1]), rows.dtype)
    made[count : count + len(rows)] = rows
    return made


@cache
def shipped() -> VoiceNetwork:
    """The network that `monitor.adapting` trains further, one of three that ship; loaded once.

    Raises:
        StoreError: its file is missing or damaged.
    """
    return VoiceNetwork(*shipped_weights(Path(__file__).with_suffix(".npz"), SHA256))


@cache
def shipped_together() -> JoinedNetworks:
    """The three networks that ship, heard as one: what ``voice`` is made by.

    They err at different people: side by side they tell more than any (benchmarks/voice.py).

    Raises:
        StoreError: a file is missing or damaged.
    """
    small, warped = (
        VoiceNetwork(*shipped_weights(Path(__file__).with_name(name), sha256))
        for name, sha256 in (
            ("voice_small.npz", SMALL_SHA256),
            ("voice_warped.npz", WARPED_SHA256),
        )
    )
    return JoinedNetworks(small, shipped(), warped)


# ----------------------------------------------------------------------------------- side by side
# Networks heard as one: their embeddings side by side.


class JoinedNetworks:
    """Embeddings of several networks side by side: cosines are the mean of the networks' cosines.

    Args:
        networks: two or more; what is itself side by side counts as one.

    Attributes:
        size: numbers in an embedding.
        sha256: marks what these together make.

    Example:
        >>> from monitor.networks.voice import shipped
        >>> both = JoinedNetworks(shipped(), shipped())
        >>> both.embed(np.zeros((1, 16000), np.float32)).shape
        (1, 384)
    """

    def __init__(self, *networks: VoiceNetwork | JoinedNetworks) -> None:
        self._networks = networks
        self.size: int = sum(each.size for each in networks)
        self.sha256: str = mark_of(*(each.sha256 for each in networks))

    def embed(self, windows: FloatArray) -> FloatArray:
        """Embed windows of one length, shape (b, n): shape (b, size), each of length 1."""
        return self.of_power([power(window) for window in windows])

    def of_power(self, powers: Sequence[FloatArray]) -> FloatArray:
        """As ``embed``, of each window's power spectra (`monitor.networks.layers.power`)."""
        found = [each.of_power(powers) for each in self._networks]
        return np.concatenate(found, axis=1) / np.float32(np.sqrt(len(found)))


def mark_of(*marks: str) -> str:
    """What marks embeddings of networks side by side, of their marks."""
    return hashlib.sha256(" ".join(marks).encode()).hexdigest()


MARK = mark_of(SMALL_SHA256, SHA256, WARPED_SHA256)
"""Of what ``voice`` is made by (`shipped_together`), without loading it."""
