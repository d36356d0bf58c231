"""SRD fig. 4: how often each value of a counted feature was heard of everybody together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from monitor.experiment.figures.drawn import Drawn
from monitor.features.f0 import HIGHEST_LAG, LOWEST_LAG, RATE
from monitor.plots.palette import Palette
from monitor.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["frames_figure"]


def frames_figure(counts: Mapping[str, Sequence[int]], speakers: int) -> Drawn | None:
    """A pair of axes for each feature that is counted; None where there is none."""
    some = {name: each for name, each in counts.items() if sum(each)}
    if not some:
        return None

    def paint(figure: Figure, palette: Palette) -> None:
        panels = figure.subplots(1, len(some), squeeze=False)[0]
        for i, (axes, (name, each)) in enumerate(zip(panels, some.items(), strict=True)):
            values, label = _values(name, len(each))
            share = np.array(each) / sum(each)
            order = np.argsort(values)
            colour = palette.colours[i % len(palette.colours)]
            axes.fill_between(values[order], share[order], step="mid", color=colour, alpha=0.3)
            axes.step(values[order], share[order], where="mid", color=colour, linewidth=1.0)
            axes.set_ylim(bottom=0.0)
            axes.set_xlabel(label)
            axes.set_title(name, loc="left", weight="bold", fontsize=10)
        panels[0].set_ylabel("share of frames")

    rows = [
        (name, i, value if name == "f0" else None, count, count / sum(each))
        for name, each in some.items()
        for i, (value, count) in enumerate(
            zip(_values(name, len(each))[0].tolist(), each, strict=True)
        )
    ]
    heard = ", ".join(f"{sum(each):,} of {name}" for name, each in some.items())
    return Drawn(
        "figure4",
        "What was heard of everybody together",
        f"Histograms of the frames of {speakers} speakers: {heard}. Embeddings have none.",
        ("feature", "bin", "hertz", "frames", "share"),
        rows,
        paint,
        (9.0, 2.8),
    )


def _values(name: str, bins: int) -> tuple[FloatArray, str]:
    if name == "f0" and bins == HIGHEST_LAG - LOWEST_LAG + 1:
        return RATE / (np.arange(bins) + LOWEST_LAG), "fundamental frequency, Hz"
    return np.arange(bins, dtype=np.float64), "bin"
