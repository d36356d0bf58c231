"""What the sound of a recording is like, second by second, as it was decoded."""

from __future__ import annotations

import numpy as np

from monitor.maths.condition import ROW, describe_second
from monitor.types import TICKS_PER_SECOND, FloatArray, Track

__all__ = ["CONDITION", "ConditionRows"]

CONDITION = "sound-condition"
"""Name of its track among those of the features; none of them may have a hyphen in its name."""


class ConditionRows:
    """One recording, as rows of counts that `monitor.maths.condition` adds up.

    Not a feature: it hears the samples as they were decoded, since clipping and a narrow band leave
    their traces there, and it tells no speakers apart.

    Args:
        rate: samples per second.

    Example:
        >>> rows = ConditionRows(8000)
        >>> tone = np.sin(np.arange(12000, dtype=np.float32))
        >>> rows.process(tone[:, None], tone).ticks, rows.process(tone[:, None], tone).ticks
        (array([100]), array([200, 300]))
    """

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._waiting: list[tuple[FloatArray, FloatArray]] = []  # samples of an unfinished second
        self._samples, self._seconds, self._skip = 0, 0, 0

    def process(self, columns: FloatArray, mono: FloatArray) -> Track:
        """The rows of the seconds that these further samples complete.

        Args:
            columns: shape (n, channels).
            mono: shape (n,), their mean.
        """
        first, rows, begin = self._seconds, [], 0
        while mono.size - begin >= self._rate - self._samples:
            end = begin + self._rate - self._samples
            self._waiting.append((columns[begin:end], mono[begin:end]))
            self._seconds += 1
            if self._seconds * TICKS_PER_SECOND > self._skip:
                whole, mean = map(np.concatenate, zip(*self._waiting, strict=True))
                rows.append(describe_second(whole, mean, self._rate))
            else:
                first = self._seconds
            self._waiting, self._samples, begin = [], 0, end
        if begin < mono.size:  # copies, so that a long block is not kept by its last samples
            self._waiting.append((columns[begin:].copy(), mono[begin:].copy()))
            self._samples += mono.size - begin
        ticks = (first + 1 + np.arange(len(rows))) * TICKS_PER_SECOND
        return Track(ticks, np.array(rows, np.int32).reshape(-1, ROW))

    def skip_to(self, tick: int) -> None:
        """Rows complete by ``tick`` of the recording are not computed."""
        self._skip = tick
