"""Network of ``voice``: ECAPA-TDNN, compressed, by numpy alone.

B. Desplanques, J. Thienpondt and K. Demuynck, "ECAPA-TDNN: emphasized channel attention,
propagation and aggregation in TDNN based speaker verification", Interspeech 2020. `recipes.voice`
compresses SpeechBrain's weights (Apache 2.0): wide layers are products of two factors, and all
layers after the first run at 50 frames per second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.fft import rfft

from monitor.errors import UsageError
from monitor.lazy import once
from monitor.networks.layers import StoredNetwork, relu, shipped_weights, sigmoid
from monitor.types import AnyArray, FloatArray, IntArray, list_runs

SHA256 = "8c94d103c5722cfe6f17d60cc01fbb7ef5367fdba429551b94dd0706881acf6f"  # of voice.npz
SIZE = 192  # numbers in an embedding

# SpeechBrain's Fbank: Hamming's window, 400 points, and 80 triangles from 0 to 8000 Hz. Levels are
# kept within 80 dB of the loudest one, and each band's mean over the window is subtracted.

_RATE, POINTS, HOP = 16_000, 400, 160
BANDS = 80
_LEAST_ENERGY, _RANGE_DB = np.float32(1e-10), np.float32(80.0)
SHORTEST = 2 * POINTS  # samples of the shortest window


def mel_decibels(sound: FloatArray) -> FloatArray:
    """Compute the energies of a window, (n,), in mel bands, minus the mean of each band.

    They equal SpeechBrain's ``Fbank`` with its normalisation to 0.01 dB: shape (1 + n // 160, 80),
    decibels, float32.
    """
    decibels = 10 * np.log10(np.maximum(_energies(sound), _LEAST_ENERGY))
    np.maximum(decibels, decibels.max() - _RANGE_DB, out=decibels)
    decibels -= decibels.mean(axis=0)
    return np.asarray(decibels, np.float32)


def _energies(sound: FloatArray) -> FloatArray:
    """Compute the energies of a window, (n,), in mel bands: shape (1 + n // 160, 80)."""
    padded = np.pad(np.asarray(sound, np.float32), POINTS // 2)
    ticks = padded[POINTS // 2 :][: sound.size // HOP * HOP].reshape(-1, HOP)
    hidden = np.flatnonzero(ticks.min(axis=1, initial=np.inf) > _LEAST_HIDDEN)
    known = ticks[hidden] / _HIDDEN
    ticks[hidden] = 0
    spectra = rfft(sliding_window_view(padded, POINTS)[::HOP] * _window())
    energy: FloatArray = (spectra.real**2 + spectra.imag**2) @ _triangles()
    energy[hidden] = known[:, :BANDS]
    inside = hidden + 2 < len(energy)
    energy[hidden[inside] + 2] = known[inside, BANDS:]
    return energy


_HIDDEN, _LEAST_HIDDEN = np.float32(2.0**100), 1e18
_HEARD_TICKS = 3  # last ticks, which have samples of frames to come


def hide_sound(sound: FloatArray) -> FloatArray:
    """Replace the samples of a window so far, except the last 30 ms, by energies in mel bands.

    Samples and result have shape (n,), a whole number of ticks. A tick gets the energies of two
    frames, scaled beyond all samples so that `mel_decibels` recognises them.
    """
    hidden = np.array(sound, np.float32)
    count = len(sound) // HOP - _HEARD_TICKS
    if count < _HEARD_TICKS:  # the beginning of a window
        return hidden
    energy = np.maximum(_energies(sound), _LEAST_ENERGY / 10) * _HIDDEN
    hidden[: count * HOP] = np.concatenate((energy[:count], energy[2 : count + 2]), 1).ravel()
    return hidden


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


GROUPS = 8  # groups of channels in a block; all but the first are convolved
LEAST_VARIANCE = 1e-6
_TOGETHER = 12
"""Rows that OpenBLAS processes at a time with AVX2; it sums a remainder differently."""


class VoiceNetwork(StoredNetwork):
    """Network from windows of speech to embeddings of length ``size``.

    Its weights are arrays by name, as `TrainableVoice.plain` gives them; matrices are (out, in).
    """

    of = "voice's"

    def _fit(self, weights: Mapping[str, AnyArray]) -> None:
        self.weights = {name: np.asarray(array, np.float32) for name, array in weights.items()}
        # in to out, for products with frames in rows
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

        Only the direction distinguishes voices. The length is the attention to the window's frames,
        1 on average. It is the weight of the window per second relative to others. UsageError if n
        is below 800.
        """
        if windows.ndim != 2 or windows.shape[1] < SHORTEST:
            raise UsageError(f"windows have the shape (b, n), n at least {SHORTEST} samples")
        if not len(windows):
            return np.empty((0, self.size), np.float32)
        return self.embed_bands([mel_decibels(window) for window in windows])

    def embed_bands(self, windows: list[FloatArray], *, exact: bool = True) -> FloatArray:
        """Embed windows by their bands, shape (t, 80) each: shape (b, size), as `embed`.

        Windows of any lengths share matrix products. Other windows change an embedding at most by
        rounding. On one thread (`monitor.jobs.one_thread`) and if ``exact``, they do not change an
        embedding of at least half a second at all. This makes several windows of a second a seventh
        slower.
        """
        attended = self._attend(windows, _TOGETHER if exact else 1)
        return np.stack([self._weigh(*layers) for layers in attended])

    def embed_runs(self, windows: FloatArray, slots: int) -> tuple[FloatArray, FloatArray]:
        """Embed windows as `embed`, and runs of their equal slots, in the order of `list_runs`.

        A run reuses the frames of its window and costs almost nothing. The shapes are (b, size) and
        (b, r, size).
        """
        attended = self._attend([mel_decibels(window) for window in windows])
        values, runs = zip(*(self._weigh_runs(*layers, slots) for layers in attended), strict=True)
        return np.stack(values), np.stack(runs)

    def _attend(
        self, windows: list[FloatArray], together: int = _TOGETHER
    ) -> list[tuple[FloatArray, FloatArray]]:
        """Compute log attention to the frames of each window, and the frames."""
        rows = [self._rows(bands) for bands in windows]
        frames = _Stack(tuple(map(len, rows)), together)
        x = self._layer(frames.stack(rows), "stem")
        outputs = []
        for block in range(len(self._blocks)):
            x = self._block(x, block, frames)
            outputs.append(x)
        return self._pool(np.concatenate(outputs, axis=1), frames)

    def _rows(self, bands: FloatArray) -> FloatArray:
        """Place five rows of bands side by side, at 50 frames per second."""
        taps = self.weights["stem"].shape[1] // BANDS
        padded = _mirrored(bands, taps // 2)
        rows = sliding_window_view(padded, taps, axis=0)[:: self._stride]
        return rows.swapaxes(1, 2).reshape(len(rows), -1)

    def _block(self, x: FloatArray, block: int, frames: _Stack) -> FloatArray:
        """Apply a block: mix channels, convolve their groups in turn, mix, gate, and add x."""
        places = frames.around(*self._blocks[block])
        y = self._layer(x, f"{block}.one")
        width = y.shape[1] // GROUPS
        last: FloatArray | None = None
        for group in range(1, GROUPS):
            channels = y[:, group * width : (group + 1) * width]
            stacked = channels.copy() if last is None else channels + last
            name = f"{block}.group{group}"
            stacked = stacked.take(places, axis=0).reshape(len(y), -1)
            last = self._layer(stacked, name)
            channels[:] = last
        y = self._layer(y, f"{block}.two")
        for window in frames.windows:
            rows = y[window]
            squeezed = relu(self._dense(rows.mean(axis=0), f"{block}.squeeze"))
            rows *= sigmoid(self._dense(squeezed, f"{block}.excite"))
            rows += x[window]
        return y

    def _pool(self, x: FloatArray, frames: _Stack) -> list[tuple[FloatArray, FloatArray]]:
        """Widen frames and compute log attention to them, (t, channels) each, per window."""
        x = relu(self._dense(x, "widen"))
        attended = self._product(x, "attend")
        for window in frames.windows:
            bias = self._context(x[window]) + self.weights["attend.bias"]
            self._activate(attended[window], "attend", bias)
        attention = self._dense(np.tanh(attended, out=attended), "weigh")
        return [(attention[window], x[window]) for window in frames.windows]

    def _context(self, x: FloatArray) -> FloatArray:
        """Compute the attention's bias from the mean and deviation of a window's frames."""
        mean = x.mean(axis=0)
        square = np.einsum("tc,tc->c", x, x) / np.float32(len(x))
        return self._product(mean, "attend.mean") + self._product(
            _deviation(square, mean), "attend.deviation"
        )

    def _weigh(self, attention: FloatArray, x: FloatArray) -> FloatArray:
        """Embed a window from log attention to its frames, which is overwritten."""
        (sums,) = _moments(attention, x, [(0, len(x))])
        return self._embed_sums(sums, len(x))

    def _embed_sums(self, sums: FloatArray, count: int) -> FloatArray:
        """Embed the frames with these `_moments`, (3, channels)."""
        total, first, second = sums
        mean = first / total
        deviation = _deviation(second / total, mean)
        embedding = self._product(mean, "embed.mean") + self._product(deviation, "embed.deviation")
        embedding += self.weights["embed.bias"]
        attention_weight = (
            np.exp(np.log(total / np.float32(count)).mean()) / self.weights["attention"]
        )
        return np.asarray(attention_weight * embedding / np.linalg.norm(embedding), np.float32)

    def _weigh_runs(
        self, attention: FloatArray, x: FloatArray, slots: int
    ) -> tuple[FloatArray, FloatArray]:
        """Embed a window, and runs of its slots, as `_weigh`: shape (size,) and (r, size)."""
        edges = np.linspace(0, len(x), slots + 1).astype(int).tolist()
        whole, *parts = _moments(attention, x, [(0, len(x)), *pairwise(edges)])
        value = self._embed_sums(whole, len(x))
        # a product of few rows takes longer than as many products of one row
        runs = [
            self._embed_sums(np.sum(parts[begin:end], axis=0), edges[end] - edges[begin])
            if end - begin < slots
            else value
            for begin, end in list_runs(slots)
        ]
        return value, np.stack(runs)

    def _product(self, x: FloatArray, name: str) -> FloatArray:
        return np.asarray(x @ self._matrices[name])

    def _dense(self, x: FloatArray, name: str) -> FloatArray:
        """Pass rows through a matrix, or through two factors, plus a bias."""
        y = self._factors(x, name)
        y += self.weights[f"{name}.bias"]
        return y

    def _factors(self, x: FloatArray, name: str) -> FloatArray:
        if name in self._matrices:
            return self._product(x, name)
        return self._product(self._product(x, f"{name}.in"), f"{name}.out")

    def _layer(self, x: FloatArray, name: str) -> FloatArray:
        """Pass rows through `_dense`; rectify, and scale and shift as a batch norm does."""
        return self._activate(self._factors(x, name), name, self.weights[f"{name}.bias"])

    def _activate(self, y: FloatArray, name: str, bias: FloatArray) -> FloatArray:
        """Add a bias and rectify, then scale and shift as a batch norm does; in place."""
        # gain * max(y + bias, 0) + shift
        gain = self.weights[f"{name}.gain"]
        np.maximum(y, -bias, out=y)
        y *= gain
        y += gain * bias + self.weights[f"{name}.shift"]
        return y


class _Stack:
    """Rows of several windows' frames in one matrix.

    Each window begins at a multiple of ``together`` rows. With `_TOGETHER`, a product treats rows
    alike at any position.
    """

    def __init__(self, counts: tuple[int, ...], together: int) -> None:
        sizes = [-(-count // together) * together for count in counts]
        begins = np.cumsum([0, *sizes]).tolist()
        self._rows = begins[-1]
        self.windows = [
            slice(begin, begin + count) for begin, count in zip(begins, counts, strict=False)
        ]

    def stack(self, rows: list[FloatArray]) -> FloatArray:
        """Stack the frames of windows, shape (t, channels) each, in one matrix."""
        stacked = np.zeros((self._rows, rows[0].shape[1]), np.float32)
        for window, frames in zip(self.windows, rows, strict=True):
            stacked[window] = frames
        return stacked

    def around(self, taps: int, dilation: int) -> IntArray:
        """Find the rows around each frame, mirrored at both ends of a window: (rows, taps)."""
        places = np.zeros((self._rows, taps), np.intp)
        steps = dilation * (np.arange(taps) - taps // 2)
        for window in self.windows:
            last = window.stop - window.start - 1
            places[window] = window.start + last - np.abs(last - np.abs(
                np.arange(last + 1)[:, None] + steps
            ))  # fmt: skip
        return places


def _moments(attention: FloatArray, x: FloatArray, parts: Sequence[tuple[int, int]]) -> FloatArray:
    """Sum the attention's exponential, and its products with x and its square, over parts.

    The shape is (parts, 3, channels). The attention is overwritten.
    """
    weights = np.exp(attention, out=attention)
    frames = [slice(*part) for part in parts]
    totals = [weights[rows].sum(axis=0) for rows in frames]
    weights *= x
    first = [weights[rows].sum(axis=0) for rows in frames]
    second = [np.einsum("tc,tc->c", weights[rows], x[rows]) for rows in frames]
    return np.stack([totals, first, second], axis=1)


def _mirrored(rows: FloatArray, count: int) -> FloatArray:
    """Extend rows beyond both ends by their mirror image."""
    return np.concatenate([rows[count:0:-1], rows, rows[-2 : -count - 2 : -1]])


def _deviation(square: FloatArray, mean: FloatArray) -> FloatArray:
    return np.sqrt(np.maximum(square - mean * mean, LEAST_VARIANCE))


@once
def shipped() -> VoiceNetwork:
    """Load the network that ships with the package, once; StoreError if it is damaged."""
    return VoiceNetwork(*shipped_weights("voice.npz", SHA256))
