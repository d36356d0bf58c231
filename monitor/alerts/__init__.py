"""When to warn, from the events of a run; what then happens is for `monitor.alerts.actions`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.alerts.budgets import Conformal, budget
    from monitor.alerts.rules import BaseRule, EarlyWarning, Forecast, Threshold

__all__ = ["BaseRule", "Conformal", "EarlyWarning", "Forecast", "Threshold", "budget"]

_HOMES = {
    "budgets": "Conformal budget",
    "rules": "BaseRule EarlyWarning Forecast Threshold",
}

# help of a command needs the options of actions alone
__getattr__, __dir__ = lazily(__name__, _HOMES, ("actions",))
