"""When to warn, from the records of a run."""

from __future__ import annotations

from monitor.alerts.forecast import Forecast
from monitor.alerts.rules import Threshold

__all__ = ["Forecast", "Threshold"]
