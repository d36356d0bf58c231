"""When to warn, from the records of a run; what then happens is for `monitor.alerts.actions`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.alerts.budgets import budget
    from monitor.alerts.conformal import Conformal
    from monitor.alerts.forecast import Forecast
    from monitor.alerts.rules import Threshold
    from monitor.alerts.warning import EarlyWarning

__all__ = ["Conformal", "EarlyWarning", "Forecast", "Threshold", "budget"]

_HOMES = {
    "Conformal": "conformal",
    "EarlyWarning": "warning",
    "Forecast": "forecast",
    "Threshold": "rules",
    "budget": "budgets",
}

# help of a command needs the options of actions alone
__getattr__, __dir__ = lazily(__name__, _HOMES)
