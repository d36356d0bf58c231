"""SRD fig. 6: not everybody discloses the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from monitor.experiment.cells.making import MeasuredCell
from monitor.experiment.figures.drawn import Drawn, colour_of
from monitor.plots.axes import percents
from monitor.plots.palette import Palette

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["speakers_figure"]


def speakers_figure(cells: Sequence[MeasuredCell], systems: Sequence[str]) -> Drawn | None:
    """A pair of axes for each kind of session; None where nobody has a second trial.

    Args:
        cells: those of the tables.
        systems: all there are, in the order of their colours.
    """
    rows = [
        (cell.panel.session, system, bits)
        for cell in cells
        for system, found in cell.systems.items()
        for bits in found["speaker_bits"]
    ]
    if not rows:
        return None

    def paint(figure: Figure, palette: Palette) -> None:
        panels = figure.subplots(1, len(cells), squeeze=False, sharey=True)[0]
        for axes, cell in zip(panels, cells, strict=True):
            edges = np.linspace(0.0, np.log2(len(cell.panel.speakers)), 25)
            for system, found in cell.systems.items():
                bits = np.array(found["speaker_bits"])
                if not bits.size:
                    continue
                share = np.histogram(np.clip(bits, 0.0, edges[-1]), edges)[0] / bits.size
                colour = colour_of(palette, system, systems)
                axes.stairs(share, edges, fill=True, color=colour, alpha=0.18)
                axes.stairs(
                    share, edges, color=colour, linewidth=1.4,
                    label=f"{system}: max {bits.max():.2f}, mean {bits.mean():.2f}, std "
                    f"{bits.std():.2f}",
                )  # fmt: skip
            percents(axes.yaxis)
            axes.set_xlabel(f"MeanD of a speaker, bits, {cell.panel.session} session")
            axes.legend(loc="upper left")
        panels[0].set_ylabel("share of speakers")

    return Drawn(
        "figure6",
        "Not everybody discloses the same",
        "MeanD of each tested speaker, by the law that LL fits to the speaker's own trials; the "
        "axis ends at log2 N.",
        ("session", "system", "mean_bits"),
        rows,
        paint,
        (9.0, 3.4),
    )
