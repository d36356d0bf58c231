"""Alert rules, which decide when to warn. `monitor.alerts.actions` has the responses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.alerts.budgets import budget
    from monitor.alerts.early_warnings import EarlyWarning, Forecast
    from monitor.alerts.rules import BaseRule, Conformal, Threshold

__all__ = ["BaseRule", "Conformal", "EarlyWarning", "Forecast", "Threshold", "budget"]

# a command's help needs only the options of actions
__getattr__, __dir__ = lazily(__name__, rooms=("actions",))
