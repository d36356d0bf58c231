"""The pictures of SRD: the histogram of ranks, and the laws fitted to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from monitor.maths.fitting import RankFit
from monitor.plots.axes import legend_above, numbers, percents
from monitor.plots.evaluation import POINTS, Drawing, Line, Systems
from monitor.plots.inline import MUTED
from monitor.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["DRAWINGS", "binned_ranks", "law_line"]

_LAW_DASHES = {"LL": "-", "MS": "--", "WMS": "-.", "RWMS": ":", "CLL": (0, (6, 1, 1, 1, 1, 1))}
_SINGLE = 20
"""Ranks up to here are drawn one by one, further ones in bins."""


def binned_ranks(histogram: FloatArray) -> Line:
    """Share of the trials by rank; from rank 20 on the mean of widening bins.

    Args:
        histogram: shape (N,), index 0 is rank 1.

    Example:
        >>> line = binned_ranks(np.ones(1000))
        >>> line.x[:3].tolist(), len(line.x) < 80, bool(np.allclose(line.y, 1e-3))
        ([1.0, 2.0, 3.0], True, True)
    """
    count = len(histogram)
    edges = np.arange(min(_SINGLE, count) + 1.0)
    if count > _SINGLE:
        wide = np.unique(np.rint(np.geomspace(_SINGLE, count, 60)))
        edges = np.concatenate([edges, wide[1:]])
    first, last = edges[:-1].astype(np.intp), edges[1:]
    share = np.add.reduceat(histogram, first) / (last - first) / histogram.sum()
    return Line(np.sqrt((first + 1) * last), share)


def law_line(law: RankFit, speakers: int) -> Line:
    """Probability by rank, at ranks spread evenly over their logarithm."""
    ranks = np.unique(np.rint(np.geomspace(1, speakers, POINTS)))
    return Line(ranks, np.exp(law.log_pmf(speakers))[ranks.astype(np.intp) - 1])


def _paint_ranks(axes: Axes, systems: Systems) -> None:
    """Share of the trials at each rank, and the fitted laws."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    alone = len(systems) == 1
    lowest = 1.0
    for colour, each in systems:
        assert each.ranks is not None
        seen = each.ranks.y > 0
        axes.plot(
            each.ranks.x[seen], each.ranks.y[seen], "o", color=colour, markersize=3, alpha=0.55,
            markeredgewidth=0, label="seen" if alone else None,
        )  # fmt: skip
        lowest = min(lowest, float(each.ranks.y[seen].min()), 1 / each.speakers)
        for loss, law in each.laws.items() if alone else list(each.laws.items())[:1]:
            first, dashes = loss == "LL", _LAW_DASHES.get(loss, "-")
            axes.plot(
                law.x, law.y, color=colour if first else MUTED, linestyle=dashes,
                linewidth=1.6 if first else 0.9, label=f"law, {loss}" if alone else None,
            )  # fmt: skip
    count = systems[0][1].speakers
    axes.axhline(1 / count, color=MUTED, linewidth=0.8, linestyle=(0, (1, 2)), label="chance")
    axes.set_ylim(lowest / 3, 1.5)
    numbers(axes.xaxis)
    percents(axes.yaxis)
    legend_above(axes)
    axes.set_xlabel("rank of the speaker")
    axes.set_ylabel("share of trials")


def _paint_speakers(axes: Axes, systems: Systems) -> None:
    """How many speakers disclose how much."""
    found = np.concatenate([each.speaker_bits for _, each in systems if _has(each.speaker_bits)])
    edges = np.linspace(min(0.0, found.min()), max(found.max(), 0.1), 25)
    for colour, each in systems:
        bits = each.speaker_bits
        assert bits is not None
        share = np.histogram(bits, edges)[0] / bits.size
        axes.stairs(share, edges, fill=True, color=colour, alpha=0.22)
        axes.stairs(share, edges, color=colour, linewidth=1.4)
        axes.axvline(float(bits.mean()), color=colour, linewidth=1, linestyle="--")
    percents(axes.yaxis)
    axes.set_xlabel("bits that a speaker discloses on average (dashed: the mean)")
    axes.set_ylabel("share of speakers")


def _has(values: FloatArray | None) -> bool:
    return values is not None and bool(values.size)


DRAWINGS = (
    Drawing(
        "ranks",
        "How far up the attacker's list the speaker stands",
        "Share of trials at each rank, and the fitted rank law; wide ranks are averaged. Flat at "
        "chance: nothing is disclosed.",
        _paint_ranks,
    ),
    Drawing(
        "speaker_bits",
        "Not everybody discloses the same",
        "Mean disclosure of each tested speaker.",
        _paint_speakers,
    ),
)
