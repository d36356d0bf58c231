"""A forecast of the time until a threshold is reached, while one can still stop talking."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from monitor.alerts.fields import check_field, figure, most_bits
from monitor.errors import UsageError

__all__ = ["Forecast"]

WINDOW_SECONDS = 20.0
MIN_SPAN_SECONDS = 3.0
SPACING_SECONDS = 0.5  # finer readings only cost time
HORIZON_SECONDS = 600.0  # a line through 20 s says nothing of the next hour
GROWTH: tuple[Callable[[float], float], Callable[[float], float]] = (math.sqrt, lambda x: x * x)
"""What bits are a line on, and its inverse."""


class Forecast:
    """Carries a figure of the last 20 s of stream on to a threshold.

    From the latest reading on, along the slope of the least-squares line of the figure on the
    square root of speech seconds: bits grow about as advanced composition does
    (docs/method.md section 6), and on real readers this came nearer than log seconds or seconds
    (benchmarks/forecast.py). The share of speech in the same window turns speech into stream
    seconds. A rough guide for people,
    with no limits of its own.

    Args:
        threshold_bits: the bits to reach.
        field: the figure, as for an alert.

    Raises:
        UsageError: an unknown field, or a threshold that is no number.

    Examples:
        >>> from math import sqrt
        >>> forecast = Forecast(threshold_bits=5.0)
        >>> for t in range(1, 17):
        ...     forecast.update({"type": "reading", "seconds": t, "speech": t, "bits": sqrt(t)})
        >>> round(forecast.seconds_left, 3)  # 16 s give 4 bits, 25 s will give 5
        9.0
    """

    def __init__(self, threshold_bits: float, field: str = "bits") -> None:
        if not math.isfinite(threshold_bits):
            raise UsageError(f"threshold_bits={threshold_bits} must be finite")
        check_field(field)
        self.threshold_bits = float(threshold_bits)
        self.field = field
        self._most = math.inf
        self._points: deque[tuple[float, float, float]] = deque()  # seconds, speech, bits

    def update(self, record: Mapping[str, Any]) -> None:
        """Take a reading; other records, and readings without bits or speech, are ignored.

        With a change of speaker or channel it begins afresh, and waits while one is open. A
        ``start`` says how many bits there can be.
        """
        if record.get("type") == "start":
            most, _ = most_bits(self.field, record)
            self._most = math.inf if most is None else most
            return
        if record.get("type") == "change" or "change" in record:
            self._points.clear()
            return
        if record.get("type", "reading") != "reading" or not record.get("speech"):
            return
        bits = figure(self.field, record)
        if bits is None or not math.isfinite(bits):
            return
        points, point = self._points, (record["seconds"], record["speech"], bits)
        if points and point[1] < points[-1][1]:  # the evidence began afresh
            points.clear()
        if len(points) > 1 and point[0] - points[-2][0] < SPACING_SECONDS:
            points[-1] = point
        else:
            points.append(point)
        while points[0][0] < point[0] - WINDOW_SECONDS:
            points.popleft()

    @property
    def beyond_reach(self) -> bool:
        """Whether the figure can never get there in this stream."""
        return self.threshold_bits > self._most

    @property
    def seconds_left(self) -> float | None:
        """Stream seconds until the threshold at this rate; 0 where it is met already.

        None where the figure is not rising, where less than 3 s were heard, where the threshold
        lies more than 10 minutes ahead, or where the figure can never get there.
        """
        if not self._points or self.beyond_reach:
            return None
        seconds, speech, bits = self._points[-1]
        if bits >= self.threshold_bits:
            return 0.0
        heard = seconds - self._points[0][0]
        spoken = speech - self._points[0][1]
        if heard < MIN_SPAN_SECONDS or spoken <= 0:
            return None
        grown, seconds_of = GROWTH
        slope = _slope([grown(point[1]) for point in self._points], [p[2] for p in self._points])
        if slope <= 1e-9:
            return None
        end = seconds_of(grown(speech) + (self.threshold_bits - bits) / slope)
        left = (end - speech) * heard / spoken
        return max(0.0, left) if left <= HORIZON_SECONDS else None

    def state(self) -> list[list[float]]:
        """What a checkpoint must keep; JSON-able."""
        return [list(point) for point in self._points]

    def restore(self, state: list[list[float]]) -> None:
        """Go on where ``state`` was taken."""
        self._points = deque((seconds, speech, bits) for seconds, speech, bits in state)


def _slope(x: list[float], y: list[float]) -> float:
    """Of the least-squares line; 0 where there is none."""
    mean_x, mean_y = math.fsum(x) / len(x), math.fsum(y) / len(y)
    spread = math.fsum((a - mean_x) ** 2 for a in x)
    if spread <= 0:
        return 0.0
    return math.fsum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread
