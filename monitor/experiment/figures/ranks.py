"""SRD fig. 5: how often the speaker has each rank, and the laws fitted to that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from monitor.evaluation.srd.curves import binned_ranks, law_line
from monitor.experiment.cells.making import MeasuredCell
from monitor.experiment.figures.drawn import Drawn, colour_of
from monitor.maths.fitting import RankFit
from monitor.plots.axes import legend_above, numbers, percents
from monitor.plots.palette import Palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["laws_of", "ranks_figure"]

_DRAWN = {"CLL": "--", "LL": ":"}


def laws_of(found: dict[str, Any]) -> dict[str, RankFit]:
    """The fitted laws by loss; CLL only where it makes sense."""
    return {
        row["loss"]: RankFit(row["alpha"], row["beta"], row["binomial"], row["fitted"], np.nan)
        for row in found["losses"]
        if row["fitted"] == row["loss"]
    }


def ranks_figure(cells: Sequence[MeasuredCell], systems: Sequence[str]) -> Drawn:
    """A pair of axes for each kind of session.

    Args:
        cells: those of the tables.
        systems: all there are, in the order of their colours.
    """

    def paint(figure: Figure, palette: Palette) -> None:
        panels = figure.subplots(1, len(cells), squeeze=False, sharey=True)[0]
        for axes, cell in zip(panels, cells, strict=True):
            _panel(axes, cell, palette, systems)
        panels[0].set_ylabel("share of trials")
        legend_above(panels[0])

    sizes = "; ".join(
        f"{cell.panel.session} session: N = {len(cell.panel.speakers)}, T = "
        f"{cell.test_seconds:g} s, D = {cell.template_seconds:g} s"
        for cell in cells
    )
    return Drawn(
        "figure5",
        "How far up the list the speaker stands",
        f"Share of trials at each similarity rank ({sizes}); from rank 20 on the mean of widening "
        "bins. Dashed: the beta-binomial law by CLL, where it makes sense; dotted: by LL; grey "
        "dots: equal probability, no disclosure.",
        ("session", "system", "rank", "share", "law_ll", "law_cll"),
        list(_rows(cells)),
        paint,
        (9.0, 3.6),
    )


def _panel(axes: Axes, cell: MeasuredCell, palette: Palette, systems: Sequence[str]) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    lowest = 1.0 / len(cell.panel.speakers)
    for system, found in cell.systems.items():
        colour = colour_of(palette, system, systems)
        line = binned_ranks(np.array(found["histogram"]))
        seen = line.y > 0
        lowest = min(lowest, float(line.y[seen].min()))
        axes.plot(line.x[seen], line.y[seen], "o-", color=colour, markersize=2.5, linewidth=0.9,
                  label=system)  # fmt: skip
        for loss, law in laws_of(found).items():
            if loss in _DRAWN:
                fitted = law_line(law, found["speakers"])
                axes.plot(fitted.x, fitted.y, color=colour, linestyle=_DRAWN[loss], linewidth=1.1)
    axes.axhline(1.0 / len(cell.panel.speakers), color=palette.muted, linestyle=(0, (1, 2)),
                 linewidth=0.9)  # fmt: skip
    axes.set_ylim(lowest / 3, 1.6)
    numbers(axes.xaxis)
    percents(axes.yaxis)
    axes.set_xlabel(f"similarity rank, {cell.panel.session} session")


def _rows(cells: Sequence[MeasuredCell]) -> Iterator[tuple[Any, ...]]:
    for cell in cells:
        for system, found in cell.systems.items():
            share = np.array(found["histogram"]) / sum(found["histogram"])
            laws = {loss: np.exp(law.log_pmf(share.size)) for loss, law in laws_of(found).items()}
            for k, each in enumerate(share.tolist()):
                fitted = [float(laws[loss][k]) if loss in laws else None for loss in ("LL", "CLL")]
                yield cell.panel.session, system, k + 1, each, *fitted
