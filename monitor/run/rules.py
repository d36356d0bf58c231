"""Alert rules at the start of a run: refused where they do not fit it, explained where they do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from monitor.alerts.actions.courier import Courier
from monitor.alerts.actions.registry import ACTION_OPTIONS
from monitor.alerts.rules import Threshold
from monitor.alerts.warning import EarlyWarning
from monitor.protocols import AlertAction, AlertRule
from monitor.stream.monitor import Monitor
from monitor.types import Notice

__all__ = ["fit_rules"]


SOON_SECONDS = 8.0
"""Of speech: who reaches a threshold sooner can hardly be warned of it (benchmarks/forecast.py)."""
_GROWING = ("bits", "closed_set_bits", "evidence_bits", "gain_bits", "expected_bits")


def fit_rules(
    rules: Sequence[AlertRule],
    actions: Sequence[AlertAction],
    start: dict[str, Any],
    monitor: Monitor,
) -> list[Notice]:
    """Show the rules the ``start`` record, and write into it what was worked out for them.

    Args:
        rules: a rule may have a ``record`` (what was worked out for it) and a ``note``.
        actions: what alerts do.
        monitor: fresh.
        start: gets ``alerts``, where there are rules with a threshold, and ``alarms``, where
            something was worked out.

    Returns:
        what a person should know of them.

    Raises:
        UsageError: a rule does not fit the stream.
    """
    if asked := [rule.terms() for rule in rules if isinstance(rule, Threshold)]:
        start["alerts"] = asked
    if worked_out := [rule.record() for rule in rules if hasattr(rule, "record")]:
        start["alarms"] = worked_out
    for rule in rules:
        rule.update(start)
    said = [rule.note(start) for rule in rules if hasattr(rule, "note")]
    notices = [Notice("rule", note) for note in said if note]
    for rule in rules:
        if isinstance(rule, EarlyWarning) and (note := _too_late(rule, monitor)):
            notices.append(Notice("late warning", note))
    if not rules and any(isinstance(action, Courier) for action in actions):
        told = " and ".join(each.name for each in ACTION_OPTIONS if each.environment)
        notices.append(Notice("nothing sent", f"no --alert is set: nothing is sent to {told}"))
    return notices


def _too_late(rule: EarlyWarning, monitor: Monitor) -> str:
    """That an average voice is over a threshold before anybody could be warned; mostly empty.

    By the average of the closed-set figure, which the evidence of the watched exceeds.
    """
    if rule.field.removesuffix("_low").removesuffix("_high") not in _GROWING:
        return ""
    expected = monitor.attacker.joint.expected
    lengths = [0.5 * k for k in range(1, round(2 * SOON_SECONDS) + 1)]
    reached = next((t for t in lengths if expected.at(t).value >= rule.bits), None)
    if reached is None:
        return ""
    return (
        f"{rule.rule}: an average voice is at {rule.bits:g} bits after {reached:g} s of speech, "
        "before a forecast can be made and heeded: no warning comes in time; set a higher "
        "threshold, or take the alert itself for the moment to stop"
    )
