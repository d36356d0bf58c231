"""What calibration brings a population: laws, and what these cannot do without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from monitor.population.cohort import Cohort
from monitor.population.law import Laws

__all__ = ["Calibration"]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Laws, and the rows of the table that explain them.

    Attributes:
        laws: of every set of features and kind of session; a cross-session law that could not be
            learnt is the prior's, its ``origin`` "shipped".
        rows: one a cell that was fitted.
        several_sessions: speakers with two sessions or more.
        cohort: background speakers that scores were set against; None without.
    """

    laws: Laws
    rows: tuple[Mapping[str, Any], ...]
    several_sessions: int = 0
    cohort: Cohort | None = None
