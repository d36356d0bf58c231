"""A separable convolution around a shortcut, over rows that come a block at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from monitor.types import AnyArray, FloatArray

__all__ = ["Separable", "dense", "product", "relu"]


@dataclass(frozen=True, slots=True)
class Separable:
    """Each channel over time by itself, then all channels of a row together; plus the row itself.

    Attributes:
        taps: shape (before + 1 + after, channels).
        before, after: rows that an output hears before its own and after it.
        shift: shape (channels,), of the first half.
        mix: shape (channels, channels), in to out.
        bias: shape (channels,), of the second half.
    """

    taps: FloatArray
    before: int
    after: int
    shift: FloatArray
    mix: FloatArray
    bias: FloatArray

    @classmethod
    def named(cls, weights: Mapping[str, AnyArray], name: str, reach: AnyArray) -> Self:
        """The block of a file of weights.

        Raises:
            KeyError, ValueError: it is not there, or does not fit.
        """
        before, after = (int(each) for each in reach)
        taps = np.ascontiguousarray(np.asarray(weights[f"{name}.depthwise"], np.float32).T)
        mix, bias = dense(weights, f"{name}.pointwise")
        if min(before, after) < 0 or taps.shape != (before + 1 + after, len(mix)):
            raise ValueError(f"{name} does not fit")
        shift = np.asarray(weights[f"{name}.depthwise.bias"], np.float32)
        return cls(taps, before, after, shift, mix, bias)

    @property
    def held(self) -> int:
        """Rows before a block that it needs again."""
        return self.before + self.after

    @property
    def channels(self) -> int:
        """Numbers in a row."""
        return len(self.mix)

    def __call__(self, rows: FloatArray, together: int | None = None) -> FloatArray:
        """Rows with those held before them, shape (held + n, channels), to shape (n, channels).

        Output i is that of row i + before: ``after`` rows late. So many rows are mixed
        ``together``, all of them by default: see `product`.
        """
        n = len(rows) - self.held
        y = rows[:n] * self.taps[0]
        y += self.shift
        scaled = np.empty_like(y)
        for tap in range(1, len(self.taps)):
            y += np.multiply(rows[tap : tap + n], self.taps[tap], out=scaled)
        y = product(relu(y), self.mix, together)
        y += self.bias
        y += rows[self.before : self.before + n]
        return relu(y)


def dense(weights: Mapping[str, AnyArray], name: str) -> tuple[FloatArray, FloatArray]:
    """A matrix, in to out, and its bias; kernels over time are laid out tap by tap."""
    kernel = np.asarray(weights[name], np.float32)
    outs = len(kernel)
    matrix = kernel.reshape(outs, -1) if kernel.ndim == 2 else kernel.transpose(0, 2, 1)
    flat = np.ascontiguousarray(matrix.reshape(outs, -1).T)
    return flat, np.asarray(weights[f"{name}.bias"], np.float32)


def product(rows: FloatArray, matrix: FloatArray, together: int | None = None) -> FloatArray:
    """Rows times a matrix, so many rows at a time: a whole number of times in all.

    Sums of floats depend on the shapes of what is multiplied; a row's are the same among many as
    among few, to the last bit, where as many are taken together.
    """
    if together is None:
        return np.asarray(rows @ matrix)
    parts = rows.reshape(-1, together, rows.shape[1])
    return np.asarray((parts @ matrix).reshape(len(rows), matrix.shape[1]))


def relu(x: FloatArray) -> FloatArray:
    """Negative values to zero, in place."""
    return np.maximum(x, 0, out=x)
