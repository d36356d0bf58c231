"""Differences between cells of the same people, with limits: what lengths do to MeanD."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np

from monitor.experiment.cells.making import MeasuredCell
from monitor.experiment.cells.measuring import MEAN
from monitor.experiment.panels import Panel
from monitor.maths.estimate import Estimate
from monitor.maths.intervals import TAIL
from monitor.types import FloatArray

__all__ = ["Contrast", "Surface", "surfaces"]

NEAR = 0.95
"""Share of log2 N from which on a mean says no more than that N is small."""


@dataclass(frozen=True)
class Contrast:
    """A difference with its limits.

    Attributes:
        value: the difference.
        low, high: 95 % limits, or wider ones where it is one of several.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Surface:
    """MeanD of one system over T and D, of one panel: every cell is of the same people.

    Attributes:
        system: a feature, or the joint.
        panel: who takes part.
        lengths: T, ascending, where the system has trials at every D.
        template_lengths: D, ascending.
        found: by T and D what `monitor.experiment.cells.measuring.measure` says.
    """

    system: str
    panel: Panel
    lengths: tuple[float, ...]
    template_lengths: tuple[float, ...]
    found: Mapping[tuple[float, float], dict[str, Any]]

    @property
    def any(self) -> dict[str, Any]:
        """One of its cells, for what they share."""
        return next(iter(self.found.values()))

    @property
    def ceiling(self) -> float:
        """log2 N, bits."""
        return float(np.log2(self.any["speakers"]))

    def bits(self, test: float, template: float) -> float:
        """MeanD of the fitted law."""
        return float(self.found[test, template]["figures"][MEAN]["value"])

    def is_full(self, test: float, template: float) -> bool:
        """Whether MeanD is as good as log2 N: longer speech could not show in it."""
        return self.bits(test, template) >= NEAR * self.ceiling

    def tells(self, test: float, template: float) -> bool:
        """Whether the ranks are told from those of no evidence."""
        chance = self.found[test, template]["figures"].get("srd.null_chance", {}).get("value")
        return chance is not None and chance <= 0.05

    def telling(self, places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
        """The last of these cells, as many as tell without a gap: before, figures are of nothing.

        A feature of long windows has nothing yet of short speech; and one cell of many that tell
        nothing seems to tell something by chance.
        """
        tell = takewhile(lambda place: self.tells(*place), reversed(places))
        return list(tell)[::-1]

    def contrast(
        self, terms: Mapping[tuple[float, float], float], among: int = 1, log: bool = False
    ) -> Contrast | None:
        """A weighted sum of MeanD over cells, or of its binary logarithm.

        Args:
            terms: by T and D its weight.
            among: how many such contrasts are looked at together: limits hold for all of them
                (Bonferroni).
            log: of logarithms.

        Returns:
            None where the speakers are too few to be resampled.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = [
                weight * (np.log2(values) if log else values)
                for (test, template), weight in terms.items()
                for values in [self._values(test, template)]
            ]
            value, replicates, left_out = _split(np.sum(parts, axis=0), self._resamples)
        replicates, left_out = (x[np.isfinite(x)] for x in (replicates, left_out))
        shared = self.any
        found = Estimate(value, replicates, left_out, shared["tested"], shared["trials"])
        if not np.isfinite(value) or replicates.size < self._resamples / 2 or not found.exists:
            return None
        reach = found.reach(TAIL / among)
        return Contrast(value, value - reach, value + reach)

    @property
    def _resamples(self) -> int:
        return len(self.any["resampled"])

    def _values(self, test: float, template: float) -> FloatArray:
        """The figure, its replicates, and those with speakers left out, in one array."""
        cell = self.found[test, template]
        parts = [self.bits(test, template), *cell["resampled"], *cell["left_out"]]
        return np.array([np.nan if each is None else each for each in parts])


def _split(values: FloatArray, resamples: int) -> tuple[float, FloatArray, FloatArray]:
    return float(values[0]), values[1 : 1 + resamples], values[1 + resamples :]


def surfaces(cells: Sequence[MeasuredCell]) -> list[Surface]:
    """Of every sweep and system."""
    made = []
    for panel in dict.fromkeys(cell.panel for cell in cells if cell.panel.purpose == "sweep"):
        mine = [cell for cell in cells if cell.panel == panel]
        for system in dict.fromkeys(name for cell in mine for name in cell.systems):
            found = {
                (cell.test_seconds, cell.template_seconds): cell.systems[system]
                for cell in mine
                if system in cell.systems
            }
            templates = tuple(d for d in panel.template_lengths if any(d == at for _, at in found))
            lengths = tuple(t for t in panel.lengths if all((t, d) in found for d in templates))
            if lengths:
                made.append(Surface(system, panel, lengths, templates, found))
    return made
