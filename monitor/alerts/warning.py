"""An early-warning rule: an alert that another rule is about to raise one.

Source: docs/method.md section 7.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from monitor.alerts.forecast import Forecast
from monitor.alerts.holding import Holding
from monitor.alerts.rules import Threshold
from monitor.errors import UsageError

__all__ = ["EarlyWarning"]


class EarlyWarning(Holding):
    """Warns while a threshold is still ahead: "3 bits in about 20 s".

    Raised at the first reading below the threshold that is forecast to reach it within
    ``warn_seconds``. Cleared when the figure has stayed below the threshold, by its rule's margin,
    with no forecast within twice that time, for the rule's hold; or with a change of speaker or
    channel. It is a warning: it gives no exit status and stops no stream.

    Args:
        rule: the rule to speak for.
        warn_seconds: how long before, in stream seconds.

    Raises:
        UsageError: no positive number of seconds.

    Examples:
        >>> from math import sqrt
        >>> warning = EarlyWarning(Threshold("bits", 3.0), 5.0)
        >>> for t in range(1, 9):
        ...     reading = {"type": "reading", "seconds": t, "speech": t, "bits": sqrt(t)}
        ...     for record in warning.update(reading):
        ...         print(record["seconds"], record["rule"], round(record["seconds_left"], 2))
        4 bits>3 within 5 s 5.0
    """

    level = "warning"

    def __init__(self, rule: Threshold, warn_seconds: float) -> None:
        if not (math.isfinite(warn_seconds) and warn_seconds > 0):
            raise UsageError(f"warn_seconds={warn_seconds:g} must be a positive number of seconds")
        super().__init__(rule.field, rule.bits)
        self.watched = rule
        self.warn_seconds = float(warn_seconds)
        self._forecast = Forecast(rule.bits, rule.field)

    @property
    def rule(self) -> str:
        """What it warns of, as text."""
        return f"{self.field}>{self.bits:g} within {self.warn_seconds:g} s"

    @property
    def seconds_left(self) -> float | None:
        """The forecast as of the last reading; None where there is none."""
        return self._forecast.seconds_left

    def _take(self, record: Mapping[str, Any]) -> None:
        self._forecast.update(record)

    def _counts(self, value: float) -> bool:
        left = self.seconds_left
        if self.raised:
            far = left is None or left > 2 * self.warn_seconds
            return far and self.watched.is_over(value)
        return value < self.bits and left is not None and left <= self.warn_seconds

    def _hold(self) -> float:
        return self.watched.hold_seconds if self.raised else 0.0

    def _more(self) -> dict[str, Any]:
        return {"seconds_left": self.seconds_left}

    def state(self) -> dict[str, Any]:
        """What a checkpoint must keep; JSON-able."""
        return {**super().state(), "points": self._forecast.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where ``state`` was taken.

        Raises:
            UsageError: the state belongs to another rule.
        """
        super().restore(state)
        self._forecast.restore(state["points"])
