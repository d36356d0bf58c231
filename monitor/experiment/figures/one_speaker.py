"""SRD fig. 7: the ranks of one speaker, too few for a histogram, and the laws fitted to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from monitor.experiment.cells.making import MeasuredCell
from monitor.experiment.figures.drawn import Drawn
from monitor.phrases import plural
from monitor.plots.palette import Palette

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["one_speaker_figure"]


def one_speaker_figure(cells: Sequence[MeasuredCell]) -> Drawn | None:
    """The median speaker of the first system; None where nobody has a second trial.

    Args:
        cells: those of the tables; the first is taken.
    """
    cell = cells[0]
    system, found = next(iter(cell.systems.items()))
    one = found["one_speaker"]
    if one is None:
        return None
    counts = np.array(one["histogram"])
    ranks = np.arange(1, counts.size + 1)
    laws = {loss: np.array(law) for loss, law in one["laws"].items()}

    def paint(figure: Figure, palette: Palette) -> None:
        left, right = figure.subplots(1, 2)
        left.vlines(ranks, 0.0, counts / counts.max(), color=palette.muted, linewidth=1.4,
                    label="counted")  # fmt: skip
        right.step(ranks, np.cumsum(counts) / counts.sum(), where="post", color=palette.muted,
                   label="counted")  # fmt: skip
        for colour, (loss, law) in zip(palette.colours, laws.items(), strict=False):
            left.plot(ranks, law / law.max(), color=colour, label=loss)
            right.plot(ranks, np.cumsum(law), color=colour, label=loss)
        left.set_ylabel("of the largest")
        right.set_ylabel("cumulative probability")
        for axes in (left, right):
            axes.set_ylim(0.0, 1.03)
            axes.set_xlabel("similarity rank")
        right.legend(loc="lower right")

    refused = " CLL is refused: rank 1 never seen, or fewer trials than ranks."
    return Drawn(
        "figure7",
        "One speaker has too few trials for a histogram",
        f"Ranks of the median speaker by {system}, {cell.panel.session} session: MeanD "
        f"{one['mean_bits']:.2f} bits by LL, {plural(one['trials'], 'trial')} "
        f"among N = {counts.size}."
        f"{'' if 'CLL' in laws else refused}",
        ("rank", "trials", *(f"law_{loss.lower()}" for loss in laws)),
        [
            (int(k), float(n), *(float(law[k - 1]) for law in laws.values()))
            for k, n in zip(ranks, counts, strict=True)
        ],
        paint,
        (9.0, 3.0),
    )
