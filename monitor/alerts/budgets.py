"""A budget for what a voice may disclose over all its sessions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from monitor.alerts.fields import figure
from monitor.alerts.rules import Threshold
from monitor.errors import UsageError

__all__ = ["Budget", "budget"]

NEAR_BITS = 1.0
"""One bit is a factor of two in the people an attacker has to consider."""


class Budget(Threshold):
    """A threshold that calls itself a budget: nearly spent, or spent.

    It counts what its field counts: over all sessions where a ledger carries them on. That is the
    figure of one stream of all that was heard, its length T that of all sessions together: what
    an attacker has who kept everything. Sums of sessions' own bits would be no better: those of one
    voice under one template do not stand on their own, and a small one takes nothing back. It
    stands on the headline, ``bits``, never on its peak (docs/method.md sections 5 and 10).

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
    def undecided(self) -> str:
        """Never: what a session leaves open the next one goes on with."""
        return ""

    def begin(self, reading: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The alerts of what earlier sessions spent, before this one is heard.

        Args:
            reading: what they come to, as a record.
        """
        value = figure(self.field, reading)
        return [] if value is None or value < self.bits else [self._flip(reading, value)]

    @property
    def rule(self) -> str:
        """What it says, as text."""
        nearly = "nearly " if self.level == "warning" else ""
        return f"budget of {self.budget_bits:g} bits {nearly}spent"


def budget(bits: float) -> list[Threshold]:
    """The rules of a budget: a warning one bit before it is spent (a quarter of a small one).

    Args:
        bits: the budget.

    Examples:
        >>> [(each.rule, each.bits, each.level) for each in budget(8.0)]  # doctest: +ELLIPSIS
        [('budget of 8 bits nearly spent', 7.0, 'warning'), ('budget of 8 bits spent', 8.0, ...)]
    """
    return [Budget(bits, min(NEAR_BITS, bits / 4)), Budget(bits)]
