"""Alert rules at the start of a run: refused where they do not fit it, explained where they do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from monitor.alerts.actions.courier import Courier
from monitor.alerts.actions.registry import ACTION_OPTIONS
from monitor.protocols import AlertAction, AlertRule

__all__ = ["fit_rules"]


def fit_rules(
    rules: Sequence[AlertRule], actions: Sequence[AlertAction], start: dict[str, Any]
) -> None:
    """Show the rules the ``start`` record, and write into it what a person should know of them.

    Args:
        rules: a rule may have a ``record`` (what was worked out for it) and a ``note``.
        actions: what alerts do.
        start: gets ``alarms``, where something was worked out, and further ``notices``.

    Raises:
        UsageError: a rule does not fit the stream.
    """
    if worked_out := [rule.record() for rule in rules if hasattr(rule, "record")]:
        start["alarms"] = worked_out
    for rule in rules:
        rule.update(start)
    for rule in rules:
        note = rule.note(start) if hasattr(rule, "note") else ""
        if note:
            start["notices"].append(note)
    if not rules and any(isinstance(action, Courier) for action in actions):
        told = " and ".join(each.name for each in ACTION_OPTIONS if each.environment)
        start["notices"].append(f"no --alert is set: nothing is sent to {told}")
