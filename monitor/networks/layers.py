"""Streaming layers of the shipped networks in NumPy; dividing the input changes no output."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view
from scipy.fft import rfft

from monitor.errors import StoreError, UsageError
from monitor.npz import read_arrays
from monitor.types import AnyArray, FloatArray

_MOST_BYTES = 16 << 20
_SCALE = ".scale"


def shipped_weights(name: str, sha256: str) -> tuple[dict[str, AnyArray], str]:
    """Read a shipped file of weights like ``read_weights``; StoreError if its sha256 differs."""
    weights, digest = read_weights(Path(__file__).with_name(name))
    if digest != sha256:
        raise StoreError(f"{name} in the package is not the one that belongs to it: install again")
    return weights, digest


def read_weights(path: Path) -> tuple[dict[str, AnyArray], str]:
    """Read the arrays of a file, int8 as float32, and its sha256; or a StoreError."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ValueError("larger than 16 MiB")
        return weights_of(content)
    except Exception as error:  # zipfile and numpy raise many types on a broken file
        raise StoreError(
            f"cannot read weights from {path.name} ({type(error).__name__}: {error})"
        ) from None


def weights_of(content: bytes) -> tuple[dict[str, AnyArray], str]:
    """Parse a file's content like ``read_weights``, but leave errors as they are."""
    return restored(read_arrays(BytesIO(content))), hashlib.sha256(content).hexdigest()


def restored(weights: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Convert arrays of `int8` back to float32; leave the rest."""
    arrays = {name: array for name, array in weights.items() if not name.endswith(_SCALE)}
    for name, scale in weights.items():
        if name.endswith(_SCALE):
            steps = arrays[name.removesuffix(_SCALE)].astype(np.float32)
            rows = steps.reshape(len(scale), -1) * scale.astype(np.float32)[:, None]
            arrays[name.removesuffix(_SCALE)] = rows.reshape(steps.shape)
    return arrays


class BlockStream:
    """Stream through a network in blocks of one size.

    The output does not depend, to the last bit, on how the input is divided. A subclass resets its
    state in `_begin`. It computes the output of a block in `_block`, or of several in `_through`.
    ``silence`` is a silent block, and ``none`` is an empty output. ``ratio`` has a number of input
    rows and the number of output rows that they give.
    """

    def __init__(self, silence: FloatArray, none: AnyArray, ratio: tuple[int, int]) -> None:
        self._silence, self._none, self._ratio = silence, none, ratio
        self.reset()

    def reset(self) -> None:
        """Reset: the next sample is the first."""
        self._waiting = self._silence[:0]
        self._taken = self._emitted = 0
        self._unborn = self._begin()

    def _begin(self) -> int:
        """Reset; return the number of output rows that precede the first sample."""
        raise NotImplementedError

    def _through(self, blocks: FloatArray) -> AnyArray:
        """Compute the output of whole blocks, shape (b, *block)."""
        return np.concatenate([self._block(block) for block in blocks])

    def _block(self, block: FloatArray) -> AnyArray:
        """Compute the output of a block, delayed as the network is."""
        raise NotImplementedError

    def push(self, samples: FloatArray) -> AnyArray:
        """Process further samples, or rows of numbers; return the new output."""
        if samples.shape[1:] != self._silence.shape[1:] or not samples.ndim:
            if self._silence.ndim == 1:
                raise UsageError("a stream of samples has one axis")
            raise UsageError(f"rows have the shape (k, {self._silence.shape[1]})")
        self._taken += len(samples)
        waiting = np.concatenate([self._waiting, samples], dtype=np.float32)
        complete = len(waiting) // len(self._silence) * len(self._silence)
        self._waiting = waiting[complete:].copy()
        if not complete:
            return self._none
        output = self._through(waiting[:complete].reshape(-1, *self._silence.shape))
        first = min(self._unborn, len(output))
        self._unborn -= first
        self._emitted += len(output) - first
        return output[first:]

    def flush(self) -> AnyArray:
        """Return the output still due, as if silence followed; then `reset`."""
        inputs, outputs = self._ratio
        missing = self._taken // inputs * outputs - self._emitted
        output = self._none
        while len(output) < missing:
            output = np.concatenate([output, self.push(self._silence)])
        self.reset()
        return output[:missing]


@dataclass(frozen=True, slots=True)
class Separable:
    """A separable convolution with a residual connection, over rows in blocks.

    It convolves each channel over time, then mixes the channels of each row and adds the input row.
    """

    taps: FloatArray  # (before + 1 + after, channels)
    before: int  # input rows before the output's row
    after: int  # input rows after it
    shift: FloatArray  # (channels,), bias of the convolution over time
    mix: FloatArray  # (channels, channels), in to out
    bias: FloatArray  # (channels,), bias of the mixing

    @classmethod
    def named(cls, weights: Mapping[str, AnyArray], name: str, reach: AnyArray) -> Self:
        """Read a block by name; KeyError or ValueError if it is missing or invalid."""
        before, after = (int(rows) for rows in reach)
        taps = np.ascontiguousarray(np.asarray(weights[f"{name}.depthwise"], np.float32).T)
        mix, bias = dense(weights, f"{name}.pointwise")
        if min(before, after) < 0 or taps.shape != (before + 1 + after, len(mix)):
            raise ValueError(f"{name} does not fit")
        shift = np.asarray(weights[f"{name}.depthwise.bias"], np.float32)
        return cls(taps, before, after, shift, mix, bias)

    @classmethod
    def each_of(cls, weights: Mapping[str, AnyArray], name: str) -> list[Self]:
        """Read the blocks of a part, in order."""
        reaches = enumerate(weights[f"{name}.reach"])
        return [cls.named(weights, f"{name}.{i}", reach) for i, reach in reaches]

    @property
    def held(self) -> int:
        """Number of earlier rows that it needs with each block of rows."""
        return self.before + self.after

    @property
    def channels(self) -> int:
        """Numbers in a row."""
        return len(self.mix)

    def __call__(self, rows: FloatArray, together: int | None = None) -> FloatArray:
        """Convolve n rows after the held ones, (held + n, channels), to (n, channels).

        Output i is that of row i + before, so it is ``after`` rows late. ``together`` is the batch
        of `product`.
        """
        y = over_time(rows, self.taps)
        y += self.shift
        y = product(relu(y), self.mix, together)
        y += self.bias
        y += rows[self.before : self.before + len(y)]
        return relu(y)


def dense(weights: Mapping[str, AnyArray], name: str) -> tuple[FloatArray, FloatArray]:
    """Read a matrix, in to out, and its bias; kernels over time are laid out tap by tap."""
    kernel = np.asarray(weights[name], np.float32)
    outs = len(kernel)
    matrix = kernel.reshape(outs, -1) if kernel.ndim == 2 else kernel.transpose(0, 2, 1)
    flat = np.ascontiguousarray(matrix.reshape(outs, -1).T)
    return flat, np.asarray(weights[f"{name}.bias"], np.float32)


def linear(x: FloatArray, weights: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Apply the matrix and bias of `dense` to rows."""
    y = x @ weights[0]
    y += weights[1]
    return np.asarray(y)


def over_time(rows: FloatArray, taps: FloatArray) -> FloatArray:
    """Convolve each channel over time with its own taps, (k, channels).

    Rows, (n + k - 1, channels), include those beyond both ends. The result has n rows.
    """
    k, (row, channel) = len(taps), rows.strides
    shape = k, len(rows) - (k - 1), rows.shape[1]
    windows = as_strided(rows, shape, (row, row, channel), writeable=False)
    # one pass over memory per tap; a product and a sum need two
    return np.asarray(np.einsum("ktc,kc->tc", windows, taps))


def product(rows: FloatArray, matrix: FloatArray, together: int | None = None) -> FloatArray:
    """Multiply rows by a matrix in batches of a fixed number of rows.

    Sums of floats depend on the shapes of the factors. With batches of one size, a row's result
    does not depend on the number of rows.
    """
    if together is None:
        return np.asarray(rows @ matrix)
    parts = rows.reshape(-1, together, rows.shape[1])
    return np.asarray((parts @ matrix).reshape(len(rows), matrix.shape[1]))


def relu(x: FloatArray) -> FloatArray:
    """Set negative values to zero, in place."""
    return np.maximum(x, _zeros(x.shape[-1]), out=x)


@cache
def _zeros(count: int) -> FloatArray:
    return np.zeros(count, np.float32)  # numpy compares with one number far more slowly


# scipy.special has these two, and takes as long to import as numpy (benchmarks/runs.py).


def sigmoid(x: FloatArray) -> FloatArray:
    """Compute 1 / (1 + exp(-x)), to the precision of x."""
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-x.astype(np.float64))), x.dtype)


def log_softmax(x: FloatArray) -> FloatArray:
    """Compute log probabilities of the classes of each frame, shape (frames, classes)."""
    x = x - x.max(axis=1, keepdims=True)
    return np.asarray(x - np.log(np.exp(x).sum(axis=1, keepdims=True)))


class FrameBuffer:
    """Buffer that prepends the last ``retained`` output rows of a layer to its next ones.

    The first ``late`` rows precede the first sample, and are set to 0.
    """

    def __init__(self, retained: int, channels: int, late: int) -> None:
        self._rows, self._late = np.zeros((retained, channels), np.float32), late

    def __call__(self, x: FloatArray) -> FloatArray:
        """Prepend the earlier rows to a block's, (n, channels): (retained + n, channels)."""
        if self._late:
            x[: self._late] = 0
            self._late = max(0, self._late - len(x))
        rows = np.concatenate([self._rows, x])
        self._rows = rows[len(x) :].copy()  # a view would keep the whole block
        return rows


class Tapes:
    """Consecutive blocks over one stream, with output that is ``late`` rows late."""

    def __init__(self, blocks: list[Separable], late: int) -> None:
        self._blocks, self._tapes = blocks, []
        for block in blocks:
            self._tapes.append(FrameBuffer(block.held, block.channels, late))
            late += block.after
        self.late = late

    def __call__(self, x: FloatArray) -> FloatArray:
        """Pass further rows, shape (n, channels), through all blocks: same shape."""
        for block, tape in zip(self._blocks, self._tapes, strict=True):
            x = block(tape(x))
        return x


RATE = 16_000
BANDS = 40
WIDTH = 400  # samples per frame: 25 ms
HOP = 160  # samples from frame to frame: 10 ms
FFT = 512
_LOWEST_HZ, _HIGHEST_HZ = 20.0, 7600.0
FLOOR = 1e-6  # energy of a band in silence, above the rounding of 16 bits


def log_mel(sound: FloatArray, bands: int = BANDS, floor: float = FLOOR) -> FloatArray:
    """Compute the natural logarithm of the energy in mel bands, 20 to 7600 Hz, without padding.

    A frame depends on its own 400 samples; UsageError if there are fewer. Samples, (..., n), are in
    -1 to 1 at 16 kHz. The result has shape (..., 1 + (n - 400) // 160, bands), float32. ``floor``
    is added to every energy, so that fainter sound makes no difference.
    """
    if sound.shape[-1] < WIDTH:
        raise UsageError(f"a frame has {WIDTH} samples, not {sound.shape[-1]}")
    frames = sliding_window_view(np.asarray(sound, np.float32), WIDTH, axis=-1)[..., ::HOP, :]
    padded = np.zeros((*frames.shape[:-1], FFT), np.float32)
    np.multiply(frames, window(), out=padded[..., :WIDTH])
    parts = rfft(padded).view(np.float32)
    parts *= parts
    energy = (parts[..., ::2] + parts[..., 1::2]) @ filters(bands)
    energy += np.float32(floor)
    return np.asarray(np.log(energy, out=energy), np.float32)


@cache
def window() -> FloatArray:
    """Return Hann's window over a frame: shape (400,)."""
    angle = 2 * np.pi * np.arange(WIDTH) / WIDTH
    return np.asarray(0.5 - 0.5 * np.cos(angle), np.float32)


@cache
def filters(bands: int = BANDS) -> FloatArray:
    """Return triangles evenly spaced in mel (O'Shaughnessy, 1987), of height 1: (257, bands)."""
    lowest, highest = 2595 * np.log10(1 + np.array([_LOWEST_HZ, _HIGHEST_HZ]) / 700)
    edges = 700 * (10 ** (np.linspace(lowest, highest, bands + 2) / 2595) - 1)
    return triangles(np.arange(FFT // 2 + 1) * (RATE / FFT), edges).astype(np.float32)


def triangles(at: FloatArray, edges: FloatArray) -> FloatArray:
    """Evaluate m triangles of height 1, each over three consecutive edges.

    Positions (n,), and ascending edges (m + 2,) in the same unit, give shape (n, m).
    """
    left, centre, right = edges[:-2], edges[1:-1], edges[2:]
    rising = (at[:, None] - left) / (centre - left)
    falling = (right - at[:, None]) / (right - centre)
    return np.asarray(np.maximum(np.minimum(rising, falling), 0.0))


_KEPT = 1 - 1 / 500  # decay of the mean per frame of 10 ms: a time constant of 5 s
_PRIOR = 50.0  # initial weight of the mean of many voices, in frames


class Centre:
    """Subtracts a running mean with exponential forgetting from each frame, without delay.

    ``usual``, shape (40,), is the initial mean of the bands.
    """

    def __init__(self, usual: FloatArray) -> None:
        self._usual = np.asarray(usual, np.float64)
        self.reset()

    def reset(self) -> None:
        """Start from the usual mean."""
        self._sum = (_KEPT * _PRIOR * self._usual)[None]
        self._weight = _PRIOR

    def __call__(self, bands: FloatArray) -> FloatArray:
        """Centre further frames, shape (t, 40); float32."""
        if not len(bands):
            return np.asarray(bands, np.float32)
        from scipy.signal import lfilter  # slow to import

        sums, self._sum = lfilter([1.0], [1.0, -_KEPT], bands, axis=0, zi=self._sum)
        fading = _KEPT ** np.arange(1, len(bands) + 1)
        weights = fading * self._weight + (1 - fading) / (1 - _KEPT)
        self._weight = float(weights[-1])
        return np.asarray(bands - sums / weights[:, None], np.float32)


STEM = 5  # mel frames from which the stem makes a frame of 20 ms
STEM_LATE = 2  # frames by which the stem's output is late
BLOCK = 3200  # samples, 0.2 s, computed at once for any division of a stream: sums round equally
ROWS = BLOCK // (2 * HOP)  # frames of 20 ms in a block
_SOUND = 2 * HOP  # samples before a block in which its first two mel frames begin


class SoundStream(BlockStream):
    """A `BlockStream` of samples at 16 kHz, through log mel bands minus their running mean.

    ``usual``, shape (40,), is the initial mean of the bands. The stem takes ``channels`` numbers
    per mel frame. An output row has ``size`` numbers.
    """

    def __init__(self, usual: FloatArray, channels: int, size: int, ratio: tuple[int, int]) -> None:
        self._usual, self._channels = usual, channels
        super().__init__(np.zeros(BLOCK, np.float32), np.empty((0, size), np.float32), ratio)

    def _begin(self) -> int:
        self._centre, self._begun = Centre(self._usual), False
        self._sound, self._rows = (
            FrameBuffer(_SOUND, 1, 0),
            FrameBuffer(STEM - 1, self._channels, STEM_LATE),
        )
        return 0

    def _bands(self, samples: FloatArray) -> tuple[FloatArray, FloatArray]:
        bands = log_mel(self._sound(samples[:, None])[:, 0])
        before = 0 if self._begun else STEM_LATE  # frames that begin before the stream
        self._begun = True
        centred = bands.copy()
        centred[before:] = self._centre(bands[before:])
        return bands, centred

    def _stem(self, frames: FloatArray, weights: tuple[FloatArray, FloatArray]) -> FloatArray:
        """Apply the stem to `STEM` mel frames around every second one: one row per 20 ms."""
        rows = self._rows(frames).reshape(-1)
        windows = sliding_window_view(rows, STEM * self._channels)[:: 2 * self._channels]
        return relu(linear(windows[:ROWS], weights))


class StoredNetwork(ABC):
    """Network from weights as its recipe writes them; StoreError for those of another network.

    ``sha256`` identifies the file of weights, because outputs of two networks are not comparable.
    """

    of: ClassVar[str]

    def __init__(self, weights: Mapping[str, AnyArray], sha256: str = "") -> None:
        self.sha256 = sha256
        try:
            self._fit(weights)
        except (KeyError, ValueError, IndexError, TypeError, AttributeError) as error:
            raise StoreError(f"weights of another network than {self.of} ({error})") from None

    @abstractmethod
    def _fit(self, weights: Mapping[str, AnyArray]) -> None:
        """Convert the weights, and run the network once."""

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file of weights; StoreError if it is unreadable or has other contents."""
        return cls(*read_weights(path))
