"""Cuts a stream into overlapping frames, whatever the size of the blocks it arrives in."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from monitor.errors import UsageError
from monitor.types import FloatArray

__all__ = ["Framer"]


class Framer:
    """Frame i holds the samples [hop * i, hop * i + length) of the stream.

    Args:
        length: samples in a frame.
        hop: samples between the starts of two frames, at most ``length``.

    Raises:
        UsageError: unless 1 <= hop <= length.

    Example:
        >>> import numpy as np
        >>> framer = Framer(length=4, hop=2)
        >>> framer.push(np.arange(3.0))
        array([], shape=(0, 4), dtype=float32)
        >>> framer.push(np.arange(3.0, 7.0))
        array([[0., 1., 2., 3.],
               [2., 3., 4., 5.]], dtype=float32)
    """

    def __init__(self, length: int, hop: int) -> None:
        if not 1 <= hop <= length:
            raise UsageError(f"hop={hop} must lie between 1 and the frame length, {length}")
        self.length = length
        self.hop = hop
        self._rest: FloatArray = np.empty(0, np.float32)

    def push(self, samples: FloatArray) -> FloatArray:
        """The frames that these further samples, shape (n,), complete.

        Returns:
            Shape (frames, length), float32; a read-only view in which frames share samples.
        """
        heard = np.concatenate((self._rest, samples), dtype=np.float32)
        count = max(0, (heard.size - self.length) // self.hop + 1)
        # A copy, so that an hour pushed at once is not kept alive by its last few samples.
        self._rest = heard[count * self.hop :].copy() if count else heard
        if not count:
            return np.empty((0, self.length), np.float32)
        step = heard.itemsize
        return as_strided(heard, (count, self.length), (self.hop * step, step), writeable=False)

    def reset(self) -> None:
        """Forget what was pushed: the next sample is the first of a stream."""
        self._rest = np.empty(0, np.float32)
