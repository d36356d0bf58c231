"""Total epsilon over several trials: basic, advanced and optimal bounds.

Measures nothing. It composes the epsilon declared for one trial, in nats. Never pass bits: bits of
disclosure are an average, and an epsilon bounds the worst case.

Source: Dwork, Rothblum and Vadhan (advanced composition), and Kairouz, Oh and Viswanath (optimal),
as in `monitor.maths.composition`. USC section 2 has a mechanism that declares an epsilon.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.errors import UsageError
from monitor.lab.evaluation.family import EvaluationContext, Family, FamilyResult, FigureEntry
from monitor.maths.composition import DELTA, PrivacySpent, advanced, basic, optimal
from monitor.phrases import plural


@dataclass(frozen=True, slots=True)
class Accounting:
    """Epsilon after 1, 2, 5, 10, ... trials, in nats."""

    epsilon_nats: float
    delta: float
    rows: tuple[PrivacySpent, ...]
    advanced_from: int | None

    @property
    def note(self) -> str:
        """Explanation of the table, in plain words."""
        gain = (
            "Advanced composition never beats basic composition if epsilon is at least ln 2."
            if self.advanced_from is None
            else "Advanced composition beats basic composition from "
            f"{plural(self.advanced_from, 'trial')} on."
        )
        return (
            "A guarantee that follows from the declared epsilon if it holds for the mechanism at "
            f"every trial. {gain} Bits of disclosure are not an epsilon, so do not declare them "
            "as one."
        )


def account(epsilon: float, delta: float = DELTA, trials: int = 1000) -> Accounting:
    """Compose a per-trial epsilon over 1, 2, 5, 10, ... trials.

    Args:
        epsilon: epsilon declared for one trial, nats, with delta 0.
        delta: total delta of all trials, in (0, 1).
        trials: number of trials in the last row, at least 1.

    Example:
        >>> found = account(0.1, delta=1e-4, trials=50)
        >>> [row.trials for row in found.rows], found.advanced_from
        ([1, 2, 5, 10, 20, 50], 24)
        >>> round(found.rows[-1].optimal_nats, 3), round(found.rows[-1].basic_nats, 3)
        (2.479, 5.0)
    """
    if trials < 1:
        raise UsageError("invalid number of trials: use at least 1")
    steps = (digit * 10**power for power in range(len(str(trials))) for digit in (1, 2, 5))
    counts = sorted({*(step for step in steps if step < trials), trials})
    rows = tuple(
        PrivacySpent(k, basic(epsilon, k), advanced(epsilon, k, delta), optimal(epsilon, k, delta))
        for k in counts
    )
    # the first k with sqrt(2 k ln(1 / delta)) < k (2 - exp(epsilon))
    with np.errstate(over="ignore"):
        room = 1 - float(np.expm1(epsilon))
    gains = room > 0 and epsilon != 0
    first = int(np.floor(-2 * np.log(delta) / room**2)) + 1 if gains else None
    return Accounting(epsilon, delta, rows, first)


_TRIALS = (1, 10, 100, 1000)  # trials that a declared epsilon is accounted for
_RULES = ("basic", "advanced", "optimal")


def _compute(context: EvaluationContext) -> FamilyResult:
    settings = context.settings
    assert settings.epsilon is not None
    accounting = account(settings.epsilon, settings.delta, max(_TRIALS))
    note, rows = accounting.note, [row for row in accounting.rows if row.trials in _TRIALS]
    figures = (
        FAMILY.figure(f"{rule}_nats_{row.trials}", getattr(row, f"{rule}_nats"), note=note)
        for row in rows
        for rule in _RULES
    )
    return FamilyResult(tuple(figures))


FAMILY = Family(
    key="accounting",
    position=100,
    title="Accounting for a declared epsilon",
    caveat="The guides beside the curve show a scale and guarantee nothing, because bits of "
           "MeanD are not an epsilon. The accounting holds only if the declared epsilon does.",
    needs=("epsilon",),
    figures=tuple(
        FigureEntry(
            f"{rule}_{count}", f"accounting.{rule}_nats_{count}",
            f"total epsilon of {count} trial{'s' * (count > 1)} by {rule} composition",
            label=f"{count:,} trial{'s' * (count > 1)}: {rule}", unit="nats", floor=0.0,
        )
        for count in _TRIALS
        for rule in _RULES
    ),
    compute=_compute,
)  # fmt: skip
