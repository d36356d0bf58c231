"""Budgets for the disclosure of one voice over all its sessions."""

from __future__ import annotations

import math
from dataclasses import replace

from monitor.alerts.figures import figure
from monitor.alerts.rules import Threshold
from monitor.errors import UsageError
from monitor.events.reading import Reading
from monitor.events.run import Alert

NEAR_BITS = 1.0  # one bit is a factor of two in the people an attacker has to consider


class Budget(Threshold):
    """Rule that is raised when a budget is nearly spent, or spent.

    With a ledger, the budget covers all sessions. The figure treats all speech so far as one
    stream, with the length T of all sessions together. This is the disclosure to an attacker who
    kept all audio. Adding up the sessions' bits would be wrong, since sessions of one voice are not
    independent. The budget uses the headline, ``bits``, and not its peak (docs/method.md sections 5
    and 10).

    Args:
        budget_bits: the budget in bits.
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
        """Reason if the budget is spent at the end, too late for the alert; otherwise empty.

        A short session is no reason, because the next one continues it.
        """
        return super().inconclusive_reason if self._over else ""

    def begin(self, reading: Reading) -> list[Alert]:
        """Return alerts about the bits that earlier sessions spent, before this session begins."""
        value = figure(self.field, reading)
        return [] if value is None or value < self.bits else [self._flip(reading, value)]

    def _complete(self, alert: Alert) -> Alert:
        spent = alert.value or 0.0
        return replace(alert, spent_bits=spent, left_bits=max(0.0, self.budget_bits - spent))

    @property
    def rule(self) -> str:
        """Name of the rule."""
        nearly = "nearly " if self.level == "warning" else ""
        return f"budget of {self.budget_bits:g} bits {nearly}spent"


def budget(bits: float) -> list[Threshold]:
    """Make the two rules of a budget: a warning before it is spent, and an alert when it is.

    The warning comes one bit before, or at three quarters of a small budget.

    Examples:
        >>> [(each.rule, each.bits, each.level) for each in budget(8.0)]  # doctest: +ELLIPSIS
        [('budget of 8 bits nearly spent', 7.0, 'warning'), ('budget of 8 bits spent', 8.0, ...)]
    """
    return [Budget(bits, min(NEAR_BITS, bits / 4)), Budget(bits)]


def check_reach(
    budget_bits: float, headline: str, support_bits: float | None, ceiling: float
) -> None:
    """Raise UsageError for a budget at or above the largest measurable figure.

    That is the calibration's support for evidence, and log2 N for the closed-set figure.
    """
    if headline == "evidence" and support_bits is not None and budget_bits >= support_bits:
        raise UsageError(
            f"invalid budget {budget_bits:g} bits: use less than {support_bits:.1f}, the maximum "
            "that this population's calibration supports"
        )
    if headline != "evidence" and budget_bits >= ceiling:
        raise UsageError(
            f"invalid budget {budget_bits:g} bits: without a rank model of evidence, bits are "
            f"capped at log2 N = {ceiling:.1f}. Calibrate with a cohort, or use a smaller "
            "budget"
        )
