"""Early warnings, before a threshold is reached and while you can still stop talking.

Source: docs/method.md section 7.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from monitor.alerts.figures import check_field, figure, most_bits
from monitor.alerts.rules import HoldRule, Threshold
from monitor.errors import UsageError
from monitor.events.declaration import Event
from monitor.events.reading import OpenChange, Reading
from monitor.events.run import Alert, Change, RunStart
from monitor.types import Record

WINDOW_SECONDS = 20.0
MIN_SPAN_SECONDS = 3.0
SPACING_SECONDS = 0.5  # finer readings only cost time
HORIZON_SECONDS = 600.0  # a line through 20 s cannot predict the next hour
GROWTH: tuple[Callable[[float], float], Callable[[float], float]] = (math.sqrt, lambda x: x * x)
"""Transformation of speech seconds on which bits grow linearly, and its inverse."""


class Forecast:
    """Forecast the time at which a figure reaches a threshold, from the last 20 s of stream.

    The forecast extrapolates from the latest reading. It uses the least-squares slope of the figure
    against the square root of speech seconds, since bits grow roughly like advanced composition
    (docs/method.md section 6). On real speakers, this was closer than seconds or their logarithm.
    The fraction of speech in the last 20 s converts speech to stream seconds. The forecast is rough
    and has no confidence interval.

    Args:
        threshold_bits: the threshold in bits.
        field: the figure, as for an alert rule.

    Raises:
        UsageError: an unknown field, or a threshold that is not a number.

    Examples:
        >>> from math import sqrt
        >>> forecast = Forecast(threshold_bits=5.0)
        >>> for t in range(1, 17):
        ...     reading = {"seconds": t, "speech": t, "bits": sqrt(t)}
        ...     forecast.update(Reading.from_record(reading))
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

    def update(self, event: Event) -> None:
        """Process an event. Readings without bits or speech are ignored.

        A change of speaker or channel restarts the forecast. It waits while a change is open. The
        start of a run sets the maximum bits.
        """
        match event:
            case RunStart():
                maximum, _ = most_bits(self.field, event)
                self._most = math.inf if maximum is None else maximum
            case Change() | Reading(change=OpenChange()):
                self._points.clear()
            case Reading():
                bits = figure(self.field, event)
                if event.speech and bits is not None and math.isfinite(bits):
                    self._take(event.seconds, event.speech, bits)

    def _take(self, seconds: float, speech: float, bits: float) -> None:
        points, point = self._points, (seconds, speech, bits)
        if points and point[1] < points[-1][1]:  # the evidence restarted
            points.clear()
        if len(points) > 1 and point[0] - points[-2][0] < SPACING_SECONDS:
            points[-1] = point
        else:
            points.append(point)
        while points[0][0] < point[0] - WINDOW_SECONDS:
            points.popleft()

    @property
    def beyond_reach(self) -> bool:
        """True if the figure can never reach the threshold in this stream."""
        return self.threshold_bits > self._most

    @property
    def seconds_left(self) -> float | None:
        """Stream seconds until the threshold at this rate; 0 if it is already reached.

        None if the figure is not rising or can never reach the threshold. Also None during the
        first 3 s, and if the threshold is more than 10 minutes ahead.
        """
        if not self._points or self.beyond_reach:
            return None
        seconds, speech, bits = self._points[-1]
        if bits >= self.threshold_bits:
            return 0.0
        elapsed = seconds - self._points[0][0]
        spoken = speech - self._points[0][1]
        if elapsed < MIN_SPAN_SECONDS or spoken <= 0:
            return None
        from statistics import linear_regression  # slow to import

        grown, seconds_of = GROWTH
        slope, _ = linear_regression(
            [grown(point[1]) for point in self._points], [point[2] for point in self._points]
        )
        if slope <= 1e-9:
            return None
        end = seconds_of(grown(speech) + (self.threshold_bits - bits) / slope)
        remaining = (end - speech) * elapsed / spoken
        return max(0.0, remaining) if remaining <= HORIZON_SECONDS else None

    def state(self) -> list[list[float]]:
        """Return the state for a checkpoint, as JSON values."""
        return [list(point) for point in self._points]

    def restore(self, state: list[list[float]]) -> None:
        """Continue from a ``state``."""
        self._points = deque((seconds, speech, bits) for seconds, speech, bits in state)


class EarlyWarning(HoldRule):
    """Warn while a threshold is still ahead: "3 bits in about 20 s".

    The warning is raised while the figure is below the threshold and is forecast to reach it within
    ``warn_seconds``. It is cleared when, for the rule's hold, the figure stays below the threshold
    minus the rule's margin, and no forecast is within twice ``warn_seconds``. A change of speaker
    or channel also clears it. A warning sets no exit status and stops no stream.

    Examples:
        >>> from math import sqrt
        >>> warning = EarlyWarning(Threshold("bits", 3.0), 5.0)
        >>> for t in range(1, 9):
        ...     reading = {"seconds": t, "speech": t, "bits": sqrt(t)}
        ...     for alert in warning.update(Reading.from_record(reading)):
        ...         print(alert.seconds, alert.rule, round(alert.seconds_left, 2))
        4 bits>3 within 5 s 5.0
    """

    level = "warning"
    kind = "forecast"

    def __init__(self, rule: Threshold, warn_seconds: float) -> None:
        if not (math.isfinite(warn_seconds) and warn_seconds > 0):
            raise UsageError(f"warn_seconds={warn_seconds:g} must be a positive number of seconds")
        super().__init__(rule.field, rule.bits)
        self.watched = rule
        self.warn_seconds = float(warn_seconds)
        self._forecast = Forecast(rule.bits, rule.field)

    @property
    def rule(self) -> str:
        """Rule as text."""
        return f"{self.field}>{self.bits:g} within {self.warn_seconds:g} s"

    @property
    def seconds_left(self) -> float | None:
        """Forecast at the last reading, or None."""
        return self._forecast.seconds_left

    def _observe(self, event: Event) -> None:
        self._forecast.update(event)

    def _would_flip(self, value: float) -> bool:
        remaining = self.seconds_left
        if self.raised:
            far = remaining is None or remaining > 2 * self.warn_seconds
            return far and self.watched.is_over(value)
        return value < self.bits and remaining is not None and remaining <= self.warn_seconds

    def _hold(self) -> float:
        return self.watched.hold_seconds if self.raised else 0.0

    def _complete(self, alert: Alert) -> Alert:
        return replace(alert, seconds_left=self.seconds_left)

    def state(self) -> Record:
        """Return the state for a checkpoint, as JSON values."""
        return {**super().state(), "points": self._forecast.state()}

    def restore(self, state: Record) -> None:
        """Continue from a ``state``."""
        super().restore(state)
        self._forecast.restore(state["points"])
