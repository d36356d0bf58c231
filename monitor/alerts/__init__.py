"""When to warn, from the records of a run."""

from __future__ import annotations

from monitor.alerts.budgets import budget
from monitor.alerts.conformal import Conformal
from monitor.alerts.forecast import Forecast
from monitor.alerts.rules import Threshold
from monitor.alerts.warning import EarlyWarning

__all__ = ["Conformal", "EarlyWarning", "Forecast", "Threshold", "budget"]
