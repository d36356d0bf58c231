"""A budget for what a voice may disclose over all its sessions."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Protocol

from monitor.alerts.figures import figure
from monitor.alerts.rules import Threshold
from monitor.errors import UsageError
from monitor.events.reading import Reading
from monitor.events.run import Alert

NEAR_BITS = 1.0  # one bit is a factor of two in the people an attacker has to consider


class Budget(Threshold):
    """A threshold named as a budget: nearly spent, or spent.

    It covers all sessions if a ledger continues them. The figure treats all speech so far as one
    stream, and its length T is that of all sessions together. This is the disclosure to an attacker
    who kept everything. A sum of the sessions' bits would not be better. Sessions of one voice
    under one template are not independent, and a small figure does not lower earlier disclosure.
    The budget uses the headline, ``bits``, never its peak (docs/method.md sections 5 and 10).

    Args:
        budget_bits: the budget.
        left_bits: remaining bits when the rule is raised; 0 if it is spent.
    """

    kind = "budget"

    def __init__(self, budget_bits: float, left_bits: float = 0.0) -> None:
        if not (math.isfinite(budget_bits) and budget_bits > 0):
            raise UsageError(f"budget_bits={budget_bits:g} must be a positive number of bits")
        super().__init__("bits", budget_bits - left_bits)
        self.budget_bits = budget_bits
        self.level = "warning" if left_bits else "alert"

    @property
    def inconclusive_reason(self) -> str:
        """Always empty, because the next session continues an undecided budget."""
        return ""

    def begin(self, reading: Reading) -> list[Alert]:
        """Return the alerts of what earlier sessions spent, before this one begins."""
        value = figure(self.field, reading)
        return [] if value is None or value < self.bits else [self._flip(reading, value)]

    def _complete(self, alert: Alert) -> Alert:
        spent = alert.value or 0.0
        return replace(alert, spent_bits=spent, left_bits=max(0.0, self.budget_bits - spent))

    @property
    def rule(self) -> str:
        """Name, as text."""
        nearly = "nearly " if self.level == "warning" else ""
        return f"budget of {self.budget_bits:g} bits {nearly}spent"


def budget(bits: float) -> list[Threshold]:
    """Make the rules of a budget: a warning one bit before it is spent (a quarter of a small one).

    Examples:
        >>> [(each.rule, each.bits, each.level) for each in budget(8.0)]  # doctest: +ELLIPSIS
        [('budget of 8 bits nearly spent', 7.0, 'warning'), ('budget of 8 bits spent', 8.0, ...)]
    """
    return [Budget(bits, min(NEAR_BITS, bits / 4)), Budget(bits)]


class SupportsBudget(Protocol):
    """Figures of an attacker that show if a budget can be judged."""

    @property
    def support_bits(self) -> float | None:
        """The most evidence that calibration supports."""

    @property
    def ceiling(self) -> float:
        """The most bits of the closed-set figure, log2 N."""


def check_reach(budget_bits: float, headline: str, attacker: SupportsBudget) -> None:
    """Refuse a budget that cannot be seen to be exceeded (UsageError)."""
    support = attacker.support_bits
    if headline == "evidence" and support is not None and budget_bits >= support:
        raise UsageError(
            f"invalid budget {budget_bits:g} bits: use at most {support:.1f}, the maximum that "
            "this population's calibration supports"
        )
    if headline != "evidence" and budget_bits >= attacker.ceiling:
        raise UsageError(
            f"invalid budget {budget_bits:g} bits: without a rank model of evidence, bits are "
            f"capped at log2 N = {attacker.ceiling:.1f}. Calibrate with a cohort, or use a smaller "
            "budget"
        )
