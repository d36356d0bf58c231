"""A rule that says beforehand that another one will be raised."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from monitor.alerts.fields import check_stream, figures
from monitor.alerts.forecast import Forecast
from monitor.alerts.rules import Recordable, Threshold, alert_record
from monitor.errors import UsageError

__all__ = ["EarlyWarning"]


class EarlyWarning:
    """Warns while a threshold is still ahead: "3 bits in about 20 s".

    Raised at the first reading below the threshold that is forecast to reach it within
    ``warn_seconds``. Cleared when the figure has stayed below the threshold, by its rule's margin,
    with no forecast within twice that time, for the rule's hold. It is a warning: it gives no exit
    status and stops no stream.

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
        self.watched = rule
        self.warn_seconds = float(warn_seconds)
        self.raised = False
        self._since: float | None = None  # first reading of the run that would clear it
        self._forecast = Forecast(rule.bits, rule.field, lower=True)

    @property
    def rule(self) -> str:
        """What it warns of, as text."""
        return f"{self.watched.field}>{self.watched.bits:g} within {self.warn_seconds:g} s"

    @property
    def seconds_left(self) -> float | None:
        """The forecast as of the last reading; None where there is none."""
        return self._forecast.seconds_left

    def update(self, record: Mapping[str, Any] | Recordable) -> list[dict[str, Any]]:
        """The alert records, of level ``warning``, that this record gives rise to."""
        if not isinstance(record, Mapping):
            record = record.record()
        if record.get("type") == "start":
            check_stream(self.watched.field, record)
        if record.get("type", "reading") != "reading":
            return []
        self._forecast.update(record)
        value, low = figures(self.watched.field, record)
        if value is None:
            self._since = None
            return []
        left, bits = self._forecast.seconds_left, self.watched.bits
        if not self.raised:
            soon = left is not None and left <= self.warn_seconds
            flips = soon and (value if low is None else low) < bits
        else:
            flips = self._over(record["seconds"], value, left)
        if not flips:
            return []
        self.raised, self._since = not self.raised, None
        made = alert_record(self, self.watched.field, bits, record, value)
        return [{**made, "seconds_left": left}]

    def note(self, start: Mapping[str, Any]) -> str | None:  # noqa: ARG002
        """Nothing that the rule itself does not say."""
        return None

    def state(self) -> dict[str, Any]:
        """What a checkpoint must keep; JSON-able."""
        return {
            "rule": self.rule,
            "raised": self.raised,
            "since": self._since,
            "points": self._forecast.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where ``state`` was taken.

        Raises:
            UsageError: the state belongs to another rule.
        """
        if state.get("rule") != self.rule:
            raise UsageError(
                f"the checkpoint was made with {state.get('rule')!r}, not {self.rule!r}: "
                "resume with the same rule"
            )
        self.raised, self._since = bool(state["raised"]), state["since"]
        self._forecast.restore(state["points"])

    def _over(self, seconds: float, value: float, left: float | None) -> bool:
        below = value < self.watched.bits - self.watched.clear_margin_bits
        if not below or (left is not None and left <= 2 * self.warn_seconds):
            self._since = None
            return False
        self._since = seconds if self._since is None else self._since
        return seconds - self._since >= self.watched.hold_seconds - 1e-6
