"""Rows of before that a layer hears again, where a stream comes a block at a time."""

from __future__ import annotations

import numpy as np

from monitor.networks.separable import Separable
from monitor.types import FloatArray

__all__ = ["Tape", "Tapes"]


class Tape:
    """What a layer says, with rows of before that the next layer hears again.

    Args:
        held: how many.
        channels: numbers in a row.
        late: rows at the beginning that are of before the first sample: silence.

    Example:
        >>> tape = Tape(held=1, channels=1, late=1)
        >>> tape(np.array([[5.0], [6.0]])).ravel().tolist()
        [0.0, 0.0, 6.0]
    """

    def __init__(self, held: int, channels: int, late: int) -> None:
        self._rows, self._late = np.zeros((held, channels), np.float32), late

    def __call__(self, x: FloatArray) -> FloatArray:
        """Rows of a block, shape (n, channels), with those before them: (held + n, channels)."""
        if self._late:
            x[: self._late] = 0
            self._late = max(0, self._late - len(x))
        rows = np.concatenate([self._rows, x])
        self._rows = rows[len(x) :]
        return rows


class Tapes:
    """Blocks one after the other, over one stream.

    Args:
        blocks: as the network has them.
        late: rows that the first one's input comes after its own time.

    Attributes:
        late: rows that the last one's output comes after its own time.
    """

    def __init__(self, blocks: list[Separable], late: int) -> None:
        self._blocks, self._tapes = blocks, []
        for block in blocks:
            self._tapes.append(Tape(block.held, block.channels, late))
            late += block.after
        self.late = late

    def __call__(self, x: FloatArray) -> FloatArray:
        """Further rows through all of them, shape (n, channels); as many come out."""
        for block, tape in zip(self._blocks, self._tapes, strict=True):
            x = block(tape(x))
        return x
