"""Network of ``voice``: ECAPA-TDNN, compressed, by numpy alone.

B. Desplanques, J. Thienpondt and K. Demuynck, "ECAPA-TDNN: emphasized channel attention,
propagation and aggregation in TDNN based speaker verification", Interspeech 2020. `recipes.voice`
compresses SpeechBrain's weights (Apache 2.0): the wide layers are products of two factors, and all
after the first runs at 50 frames a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.fft import rfft

from monitor.errors import UsageError
from monitor.lazy import once
from monitor.networks.layers import StoredNetwork, relu, shipped_weights, sigmoid
from monitor.types import AnyArray, FloatArray

SHA256 = "8c94d103c5722cfe6f17d60cc01fbb7ef5367fdba429551b94dd0706881acf6f"  # of voice.npz
SIZE = 192  # numbers in an embedding

# --------------------------------------------------------------------------------------- front end
# SpeechBrain's Fbank: Hamming's window, 400 points, 80 triangles from 0 to 8000 Hz, decibels that
# end 80 below the loudest, each band less its mean over the window.

_RATE, POINTS, HOP = 16_000, 400, 160
BANDS = 80
_LEAST_ENERGY, _RANGE_DB = np.float32(1e-10), np.float32(80.0)
SHORTEST = 2 * POINTS  # samples of the shortest window


def mel_decibels(sound: FloatArray) -> FloatArray:
    """Compute the energies of a window, (n,), in mel bands, each band less its mean.

    Equal to SpeechBrain's ``Fbank`` and its normalisation to 1e-3 dB: shape (1 + n // 160, 80),
    decibels, float32.
    """
    padded = np.pad(np.asarray(sound, np.float32), POINTS // 2)
    spectra = rfft(sliding_window_view(padded, POINTS)[::HOP] * _window())
    energy = (spectra.real**2 + spectra.imag**2) @ _triangles()
    decibels = 10 * np.log10(np.maximum(energy, _LEAST_ENERGY))
    np.maximum(decibels, decibels.max() - _RANGE_DB, out=decibels)
    decibels -= decibels.mean(axis=0)
    return np.asarray(decibels, np.float32)


@cache
def _window() -> FloatArray:
    """Return Hamming's window, shape (400,)."""
    return np.asarray(0.54 - 0.46 * np.cos(2 * np.pi * np.arange(POINTS) / POINTS), np.float32)


@cache
def _triangles() -> FloatArray:
    """Compute weights of the bins, shape (201, 80): in Hz each triangle is symmetric."""
    mels = np.linspace(0, 2595 * np.log10(1 + _RATE / 2 / 700), BANDS + 2)
    edges = 700 * (10 ** (mels / 2595) - 1)
    centres, widths = edges[1:-1], np.diff(edges)[:-1]
    hertz = np.linspace(0, _RATE / 2, POINTS // 2 + 1)[:, None]
    return np.asarray(np.maximum(1 - np.abs(hertz - centres) / widths, 0), np.float32)


# ----------------------------------------------------------------------------------------- network

GROUPS = 8  # parts that the channels of a block are split into; all but the first are convolved
LEAST_VARIANCE = 1e-6


class VoiceNetwork(StoredNetwork):
    """Network from windows of speech to embeddings of so many numbers, its size.

    Its weights are arrays by name, as `TrainableVoice.plain` gives them; matrices are (out, in).
    """

    of = "voice's"

    def _fit(self, weights: Mapping[str, AnyArray]) -> None:
        self.weights = {name: np.asarray(array, np.float32) for name, array in weights.items()}
        # in to out, as products with frames in rows want them
        self._matrices = {
            name: np.ascontiguousarray(array.T)
            for name, array in self.weights.items()
            if array.ndim == 2
        }
        taps = self.weights["taps"].reshape(-1, 2).astype(int).tolist()
        self._blocks = [(count, dilation) for count, dilation in taps]
        self._stride = int(self.weights["stride"])
        self.size = len(self.weights["embed.bias"])
        with np.errstate(all="ignore"):
            embedding = self.embed(np.zeros((1, SHORTEST), np.float32))
        if not self._blocks or embedding.shape != (1, self.size):
            raise ValueError("no blocks")

    def embed(self, windows: FloatArray) -> FloatArray:
        """Embed windows of one length, (b, n), each by itself: shape (b, size), float32.

        Only the direction tells voices apart; the length is how much a second of the window counts
        beside others, 1 on average: the attention that its frames drew. UsageError where n is under
        800.
        """
        if windows.ndim != 2 or windows.shape[1] < SHORTEST:
            raise UsageError(f"windows have the shape (b, n), n at least {SHORTEST} samples")
        if not len(windows):
            return np.empty((0, self.size), np.float32)
        return self.embed_bands([mel_decibels(window) for window in windows])

    def embed_bands(self, windows: list[FloatArray]) -> FloatArray:
        """Embed windows by their bands, shape (t, 80) each: shape (b, size), as `embed`.

        Layer after layer, all windows through each while its weights are at hand.
        """
        rows = [self._stem(bands) for bands in windows]
        outputs = []
        for block in range(len(self._blocks)):
            rows = [self._block(x, block) for x in rows]
            outputs.append(rows)
        windows_rows = zip(*outputs, strict=True)
        return np.stack([self._pool(np.concatenate(parts, axis=1)) for parts in windows_rows])

    def _stem(self, bands: FloatArray) -> FloatArray:
        """Compute frames of five rows of bands, at 50 a second."""
        taps = self.weights["stem"].shape[1] // BANDS
        padded = _mirrored(bands, taps // 2)
        rows = sliding_window_view(padded, taps, axis=0)[:: self._stride]
        rows = np.ascontiguousarray(rows.swapaxes(1, 2)).reshape(len(rows), -1)
        return self._activated(self._dense(rows, "stem"), "stem")

    def _block(self, x: FloatArray, block: int) -> FloatArray:
        """Mix channels, convolve their groups one on top of the other, mix, gate; add x."""
        taps, dilation = self._blocks[block]
        y = self._activated(self._dense(x, f"{block}.one"), f"{block}.one")
        width = y.shape[1] // GROUPS
        last: FloatArray | None = None
        for group in range(1, GROUPS):
            channels = y[:, group * width : (group + 1) * width]
            if last is not None:
                channels += last
            name = f"{block}.group{group}"
            last = self._activated(self._dense(_over_time(channels, taps, dilation), name), name)
            channels[:] = last
        y = self._activated(self._dense(y, f"{block}.two"), f"{block}.two")
        squeezed = relu(self._dense(y.mean(axis=0), f"{block}.squeeze"))
        y *= sigmoid(self._dense(squeezed, f"{block}.excite"))
        y += x
        return y

    def _pool(self, x: FloatArray) -> FloatArray:
        """Pool mean and deviation over time, as attention weighs frames, to an embedding."""
        x = relu(self._dense(x, "widen"))
        mean = x.mean(axis=0)
        square = np.einsum("tc,tc->c", x, x) / np.float32(len(x))
        context = self._product(mean, "attend.mean") + self._product(
            _deviation(square, mean), "attend.deviation"
        )
        attended = self._product(x, "attend")
        attended += context + self.weights["attend.bias"]
        attended = self._activated(attended, "attend")
        attention = self._dense(np.tanh(attended, out=attended), "weigh")
        np.exp(attention, out=attention)
        total = attention.sum(axis=0)
        attention *= x
        mean = attention.sum(axis=0) / total
        attention *= x
        deviation = _deviation(attention.sum(axis=0) / total, mean)
        embedding = self._product(mean, "embed.mean") + self._product(deviation, "embed.deviation")
        embedding += self.weights["embed.bias"]
        attention_weight = (
            np.exp(np.log(total / np.float32(len(x))).mean()) / self.weights["attention"]
        )
        return np.asarray(attention_weight * embedding / np.linalg.norm(embedding), np.float32)

    def _product(self, x: FloatArray, name: str) -> FloatArray:
        return np.asarray(x @ self._matrices[name])

    def _dense(self, x: FloatArray, name: str) -> FloatArray:
        """Pass rows through a matrix, or through two factors, plus a bias."""
        if name in self._matrices:
            y = self._product(x, name)
        else:
            y = self._product(self._product(x, f"{name}.in"), f"{name}.out")
        y += self.weights[f"{name}.bias"]
        return y

    def _activated(self, x: FloatArray, name: str) -> FloatArray:
        """Rectify, then scale and shift as a batch norm does; in place."""
        x = relu(x)
        x *= self.weights[f"{name}.gain"]
        x += self.weights[f"{name}.shift"]
        return x


def _mirrored(rows: FloatArray, count: int) -> FloatArray:
    """Extend rows beyond both ends by their mirror image."""
    return np.concatenate([rows[count:0:-1], rows, rows[-2 : -count - 2 : -1]])


def _over_time(rows: FloatArray, taps: int, dilation: int) -> FloatArray:
    """Place each row beside those around it, tap by tap: shape (t, taps x channels)."""
    padded = _mirrored(rows, taps // 2 * dilation)
    count = len(rows)
    return np.concatenate(
        [padded[at : at + count] for at in range(0, taps * dilation, dilation)], axis=1
    )


def _deviation(square: FloatArray, mean: FloatArray) -> FloatArray:
    return np.sqrt(np.maximum(square - mean * mean, LEAST_VARIANCE))


@once
def shipped() -> VoiceNetwork:
    """Load the network that ships with the package, once; StoreError where it is damaged."""
    return VoiceNetwork(*shipped_weights("voice.npz", SHA256))
