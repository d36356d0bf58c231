"""A budget for what a voice may disclose over all its sessions."""

from __future__ import annotations

import math

from monitor.alerts.rules import Threshold
from monitor.errors import UsageError

__all__ = ["Budget", "budget"]

NEAR_BITS = 1.0
"""One bit is a factor of two in the people an attacker has to consider."""


class Budget(Threshold):
    """A threshold on ``bits`` that calls itself a budget: nearly spent, or spent.

    It counts what the headline counts: over all sessions where a ledger carries the evidence on.
    It stands on ``bits``, never on the peak (METHOD section 5).

    Args:
        budget_bits: the budget.
        left_bits: what is left of it when the rule is raised; 0 where it is spent.
    """

    def __init__(self, budget_bits: float, left_bits: float = 0.0) -> None:
        if not (math.isfinite(budget_bits) and budget_bits > 0):
            raise UsageError(f"budget_bits={budget_bits:g} must be a positive number of bits")
        super().__init__("bits", budget_bits - left_bits)
        self.budget_bits = budget_bits
        self.level = "warning" if left_bits else "alert"

    @property
    def rule(self) -> str:
        """What it says, as text."""
        nearly = "nearly " if self.level == "warning" else ""
        return f"budget of {self.budget_bits:g} bits {nearly}spent"


def budget(bits: float) -> list[Threshold]:
    """The rules of a budget: a warning one bit before it is spent (a quarter of a small one).

    Examples:
        >>> [(each.rule, each.bits, each.level) for each in budget(8.0)]  # doctest: +ELLIPSIS
        [('budget of 8 bits nearly spent', 7.0, 'warning'), ('budget of 8 bits spent', 8.0, ...)]
    """
    return [Budget(bits, min(NEAR_BITS, bits / 4)), Budget(bits)]
