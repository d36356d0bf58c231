"""The report on one system: all figures with their limits, and the curves behind them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from monitor.evaluation.figure import Figure
from monitor.evaluation.report.catalogue import by_family, needs_ranks, short_name
from monitor.evaluation.scores.comparisons import Usage
from monitor.plots.evaluation import Curves, Line
from monitor.plots.identification import CrowdRates

__all__ = ["Report", "figure_json"]


@dataclass(frozen=True)
class Report:
    """All figures of one system.

    Attributes:
        name: of the system.
        speakers: N.
        trials: how many there are.
        tested: names of the speakers that have trials, sorted.
        replicates: B, the resamples of speakers behind the limits; 0 where there are none.
        seed: of the resamples.
        notes: what was done differently from what one might expect, one sentence each.
        figures: by key, families together.
        curves: for the pictures.
        warnings: what makes all figures doubtful, one sentence each: it comes first.
        usage: which comparisons there are, and which ranks stand on.
        heard: speaker and name of each trial that ranks stand on, where trials have names.
        about: the family of figures that a note is about, where it is about one.
    """

    name: str
    speakers: int
    trials: int
    tested: tuple[str, ...]
    replicates: int
    seed: int
    notes: tuple[str, ...]
    figures: Mapping[str, Figure]
    curves: Curves
    warnings: tuple[str, ...] = ()
    usage: Usage | None = None
    heard: frozenset[tuple[str, str]] = frozenset()
    about: Mapping[str, str] = field(default_factory=dict)

    def notes_on(self, keys: Iterable[str]) -> list[str]:
        """The notes that are about one of these figures, or about all."""
        asked = {"", *by_family(keys)}
        return [note for note in self.notes if self.about.get(note, "") in asked]

    @property
    def ceiling_bits(self) -> float:
        """``log2 N``."""
        return float(np.log2(self.speakers))

    def __getitem__(self, key: str) -> Figure:
        return self.figures[key]

    def trials_of(self, key: str) -> int:
        """How many trials a figure stands on."""
        ranked = self.usage is not None and needs_ranks(key)
        return self.usage.ranked_trials if ranked and self.usage else self.trials

    def to_json(self, shown: Collection[str] | None = None) -> dict[str, Any]:
        """Everything but the replicates, ready for ``json.dumps(..., allow_nan=False)``.

        Args:
            shown: keys of figures, where not all are wanted.
        """
        drawn = {"non_mated": self.curves.non_mated, **self.curves.drawn()}
        return {
            "schema": 1,
            "name": self.name,
            "speakers": self.speakers,
            "trials": self.trials,
            "comparisons": None if self.usage is None else asdict(self.usage),
            "tested_speakers": len(self.tested),
            "ceiling_bits": self.ceiling_bits,
            "draws": self.replicates,
            "seed": self.seed,
            "warnings": list(self.warnings),
            "notes": list(self.notes),
            "figures": {
                key: {
                    "name": short_name(key),
                    **figure_json(figure),
                    "speakers": self.speakers,
                    "trials": self.trials_of(key),
                }
                for key, figure in self.figures.items()
                if shown is None or key in shown
            },
            "curves": {
                name: made
                for name, value in drawn.items()
                if (made := _curve_json(value)) is not None
            },
        }


def figure_json(figure: Figure) -> dict[str, Any]:
    """A figure without its replicates; what is infinite stands in ``text``."""
    low, high = figure.limits
    infinite = figure.value is not None and math.isinf(figure.value)
    return {
        "label": figure.label,
        "value": _finite(figure.value),
        "text": str(figure.value) if infinite and not figure.text else figure.text,
        "low": _finite(low),
        "high": _finite(high),
        "unit": figure.unit,
        "ceiling": _finite(figure.ceiling),
        "floor": _finite(figure.floor),
        "ties": figure.ties,
        "note": figure.note,
    }


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def _curve_json(value: Any) -> Any:
    if isinstance(value, Line | CrowdRates):
        return {key: _curve_json(part) for key, part in vars(value).items() if part is not None}
    if isinstance(value, np.ndarray):
        return [_finite(float(f"{number:.6g}")) for number in value.tolist()]
    if isinstance(value, Mapping):
        return {key: _curve_json(part) for key, part in value.items()}
    return value
