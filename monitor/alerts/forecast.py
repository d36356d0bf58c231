"""How long until a threshold is reached, while there is still time to stop talking."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

from monitor.errors import UsageError

__all__ = ["Forecast"]

WINDOW_SECONDS = 30.0
MIN_SPAN_SECONDS = 5.0
HORIZON_SECONDS = 600.0  # a line through 30 s says nothing of the next hour


class Forecast:
    """Extrapolates the headline of the last 30 s of stream.

    A least-squares line of bits on log speech seconds gives the speech length at which the
    threshold is met; the share of speech in the same window turns it into stream seconds. A rough
    guide for people, with no limits of its own.

    Args:
        threshold_bits: the bits to reach.

    Examples:
        >>> from math import log2
        >>> forecast = Forecast(threshold_bits=5.0)
        >>> for t in range(1, 17):
        ...     forecast.update({"type": "reading", "seconds": t, "speech": t, "bits": log2(t)})
        >>> round(forecast.seconds_left, 3)  # 16 s give 4 bits, 32 s will give 5
        16.0
    """

    def __init__(self, threshold_bits: float) -> None:
        if not math.isfinite(threshold_bits):
            raise UsageError(f"threshold_bits={threshold_bits} must be finite")
        self.threshold_bits = float(threshold_bits)
        self._points: deque[tuple[float, float, float]] = deque()

    def update(self, record: Mapping[str, Any]) -> None:
        """Take a reading; other records, and readings without bits or speech, are ignored."""
        bits, speech = record.get("bits"), record.get("speech")
        if record.get("type", "reading") != "reading" or bits is None or not speech:
            return
        if not math.isfinite(bits):
            return
        self._points.append((record["seconds"], speech, bits))
        while self._points[0][0] < record["seconds"] - WINDOW_SECONDS:
            self._points.popleft()

    @property
    def seconds_left(self) -> float | None:
        """Stream seconds until the threshold at this rate; 0 where it is met already.

        None where the headline is not rising, where less than 5 s were heard, or where the
        threshold lies more than 10 minutes ahead.
        """
        if not self._points:
            return None
        seconds, speech, bits = self._points[-1]
        if bits >= self.threshold_bits:
            return 0.0
        heard = seconds - self._points[0][0]
        spoken = speech - self._points[0][1]
        if heard < MIN_SPAN_SECONDS or spoken <= 0:
            return None
        logs = [math.log(point[1]) for point in self._points]
        mean_log = math.fsum(logs) / len(logs)
        mean_bits = math.fsum(point[2] for point in self._points) / len(logs)
        spread = math.fsum((x - mean_log) ** 2 for x in logs)
        if spread <= 0:
            return None
        slope = (
            math.fsum(
                (x - mean_log) * (point[2] - mean_bits)
                for x, point in zip(logs, self._points, strict=True)
            )
            / spread
        )
        # A slope this flat meets no threshold within the horizon, and would overflow exp.
        if slope <= 1e-6:
            return None
        log_factor = mean_log + (self.threshold_bits - mean_bits) / slope - math.log(speech)
        if log_factor > 50:
            return None
        left = max(0.0, math.expm1(log_factor) * speech * heard / spoken)
        return left if left <= HORIZON_SECONDS else None
