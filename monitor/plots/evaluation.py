"""The pictures of an evaluation, one system or several in each, for a page of its own.

Which there are, with title and caption, each family of metrics declares as a `Drawing`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from monitor.plots.axes import legend_above, numbers, percents
from monitor.plots.crowd import CrowdRates
from monitor.plots.inline import COLOURS, MUTED, inline_svg
from monitor.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "POINTS",
    "Curves",
    "Drawing",
    "Line",
    "Picture",
    "Systems",
    "paint_det",
    "paint_ece",
    "paint_heard",
    "paint_linkage",
    "paint_local",
    "paint_ranks",
    "paint_roc",
    "paint_speakers",
    "pictures",
]

POINTS = 240
"""Of a curve: an eye tells no more apart."""

_NOT_DRAWN = ("name", "speakers", "non_mated", "more")
_LAW_DASHES = {"LL": "-", "MS": "--", "WMS": "-.", "RWMS": ":", "CLL": (0, (6, 1, 1, 1, 1, 1))}


@dataclass(frozen=True)
class Line:
    """Points of a curve, and its 95 % limits where it has them; shape (K,) each."""

    x: FloatArray
    y: FloatArray
    low: FloatArray | None = None
    high: FloatArray | None = None


@dataclass(frozen=True)
class Curves:
    """What is drawn of one system; what is None is left out.

    Attributes:
        name: of the system.
        speakers: N.
        non_mated: how many non-mated scores there are; below one in so many, no rate is known.
        ranks: share of the trials against rank.
        laws: probability against rank, for each loss.
        speaker_bits: shape (S,), MeanD of each tested speaker.
        local_bits: share of the trials that disclose at least so many bits, against bits.
        ece: empirical cross-entropy after ideal calibration, bits, against prior log-odds
            (base 10).
        ece_nothing: the same of scores that carry nothing.
        roc: true against false positive rate.
        det: miss rate against false alarm rate.
        heard: bits against the number of trials heard.
        guides: its linear and square-root guide, by name.
        linkage: chance to link against the size of the population.
        crowd: chance to come first among more people than were scored, by several forms.
        more: what other families draw, by the name of the `Drawing`.
    """

    name: str
    speakers: int
    non_mated: int
    ranks: Line | None = None
    laws: Mapping[str, Line] = field(default_factory=dict)
    speaker_bits: FloatArray | None = None
    local_bits: Line | None = None
    ece: Line | None = None
    ece_nothing: Line | None = None
    roc: Line | None = None
    det: Line | None = None
    heard: Line | None = None
    guides: Mapping[str, Line] = field(default_factory=dict)
    linkage: Line | None = None
    crowd: CrowdRates | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, speakers: int, non_mated: int, drawn: Mapping[str, Any]) -> Curves:
        """Curves by name, those that are no attributes in `more`."""
        known = {key: drawn[key] for key in drawn if key in cls.__dataclass_fields__}
        return cls(
            name,
            speakers,
            non_mated,
            **known,
            more={key: value for key, value in drawn.items() if key not in known},
        )

    def drawn(self) -> dict[str, Any]:
        """Everything there is to draw, by name."""
        own = {key: value for key, value in vars(self).items() if key not in _NOT_DRAWN}
        return {**own, **self.more}

    @property
    def ceiling_bits(self) -> float:
        """``log2 N``."""
        return float(np.log2(self.speakers))


@dataclass(frozen=True)
class Picture:
    """One picture of the page.

    Attributes:
        title: what it shows.
        caption: how it is read.
        svg: an ``<svg>`` element.
    """

    title: str
    caption: str
    svg: str


Systems: TypeAlias = Sequence[tuple[str, Curves]]
"""With the colour of each."""


@dataclass(frozen=True)
class Drawing:
    """How a curve is drawn.

    Attributes:
        name: of what is drawn: an attribute of `Curves`, or a key of `Curves.more`.
        title: what the picture shows.
        caption: how it is read.
        paint: draws those systems that have it: takes axes and `Systems`.
    """

    name: str
    title: str
    caption: str
    paint: Callable[..., None]


def pictures(systems: Sequence[Curves], drawings: Sequence[Drawing]) -> tuple[Picture, ...]:
    """Draw everything that at least one of the systems has.

    Args:
        systems: one or several; they are told apart by colour, in the order given.
        drawings: what to draw, and how.

    Returns:
        the pictures, in the order of the page.
    """
    coloured = [(COLOURS[i % len(COLOURS)], each) for i, each in enumerate(systems)]
    return tuple(
        Picture(each.title, each.caption,
                inline_svg(partial(each.paint, systems=have), each.name, each.title))
        for each in drawings
        if (have := [(c, s) for c, s in coloured if s.drawn().get(each.name) is not None])
    )  # fmt: skip


def paint_ranks(axes: Axes, systems: Systems) -> None:
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


def paint_speakers(axes: Axes, systems: Systems) -> None:
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


def paint_local(axes: Axes, systems: Systems) -> None:
    """How many trials disclose at least so many bits."""
    lines = [each.local_bits for _, each in systems if each.local_bits is not None]
    left = min(float(line.x[0]) for line in lines) - 0.3
    for (colour, each), line in zip(systems, lines, strict=True):
        axes.step([left, *line.x], [1.0, *line.y], where="pre", color=colour)
        _wall(axes, each.ceiling_bits)
    axes.axvline(0.0, color=MUTED, linewidth=0.8)
    axes.set_xlim(left=left)
    axes.set_ylim(0, 1.02)
    percents(axes.yaxis)
    axes.set_xlabel("local disclosure of a trial, bits (left of 0: misled)")
    axes.set_ylabel("share of trials with at least that")


def paint_ece(axes: Axes, systems: Systems) -> None:
    """Empirical cross-entropy against the prior."""
    alone, nothing = len(systems) == 1, systems[0][1].ece_nothing
    if nothing is not None:
        axes.plot(nothing.x, nothing.y, color=MUTED, linestyle=":", label="no evidence")
    for colour, each in systems:
        line = each.ece
        assert line is not None
        if alone and nothing is not None:
            axes.fill_between(line.x, line.y, nothing.y, color=colour, alpha=0.13, linewidth=0)
        axes.plot(line.x, line.y, color=colour, label="after these scores" if alone else None)
    axes.set_ylim(0, 1.3)
    legend_above(axes)
    axes.set_xlabel("what the attacker believed before: log10 of the odds")
    axes.set_ylabel("remaining uncertainty, bits")


def paint_roc(axes: Axes, systems: Systems) -> None:
    """True against false positive rate, the latter as its logarithm."""
    resolved = min(1 / each.non_mated for _, each in systems)
    left = max(min(0.3 * resolved, 3e-4), 1e-6)
    axes.set_xscale("log")
    for colour, each in systems:
        assert each.roc is not None
        axes.step(np.maximum(each.roc.x, left), each.roc.y, where="post", color=colour)
    x = np.geomspace(left, 1, 100)
    axes.plot(x, x, color=MUTED, linestyle=":", linewidth=1)
    axes.axvspan(left, max(left, resolved), color=MUTED, alpha=0.15, linewidth=0)
    axes.set_xlim(left, 1)
    axes.set_ylim(0, 1.02)
    percents(axes.xaxis)
    percents(axes.yaxis)
    shaded = " (shaded: fewer than one score)" if resolved > left else ""
    axes.set_xlabel(f"false positive rate{shaded}")
    axes.set_ylabel("true positive rate")


def paint_det(axes: Axes, systems: Systems) -> None:
    """Miss rate against false alarm rate, on normal deviates."""
    from scipy.special import ndtri

    ticks = np.array([0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99])
    edge = 5e-4
    for colour, each in systems:
        assert each.det is not None
        x, y = (np.clip(v, edge / 10, 1 - edge / 10) for v in (each.det.x, each.det.y))
        axes.plot(ndtri(x), ndtri(y), color=colour)
    axes.plot(ndtri([edge, 1 - edge]), ndtri([1 - edge, edge]), color=MUTED, linestyle=":")
    axes.plot(ndtri([edge, 1 - edge]), ndtri([edge, 1 - edge]), color=MUTED, linewidth=0.6)
    for axis, limits in ((axes.xaxis, axes.set_xlim), (axes.yaxis, axes.set_ylim)):
        axis.set_ticks(ndtri(ticks).tolist(), [f"{100 * tick:g} %" for tick in ticks])
        limits(ndtri(edge), ndtri(1 - edge))
    axes.set_xlabel("false alarms")
    axes.set_ylabel("misses")


def paint_heard(axes: Axes, systems: Systems) -> None:
    """Bits against the number of trials of a speaker, beside the guides."""
    alone = len(systems) == 1
    for colour, each in systems:
        line = each.heard
        assert line is not None
        if line.low is not None and line.high is not None:
            axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.16, linewidth=0)
        axes.plot(
            line.x, line.y, "o-", color=colour, markersize=3.5, label="measured" if alone else None
        )
        for (name, guide), dashes in zip(each.guides.items(), ("--", ":"), strict=False):
            axes.plot(
                guide.x, guide.y, color=colour, linestyle=dashes, linewidth=1, alpha=0.8,
                label=name if alone else None,
            )  # fmt: skip
        axes.axhline(each.ceiling_bits, color=MUTED, linewidth=0.8, linestyle=(0, (1, 2)))
    most = max(each.ceiling_bits for _, each in systems)
    lowest = min(float(np.nanmin(each.heard.y)) for _, each in systems if each.heard is not None)
    axes.set_ylim(min(0.0, 1.1 * lowest), 1.09 * most)
    axes.annotate(
        "ceiling", (0.99, most), xycoords=("axes fraction", "data"), ha="right", va="bottom",
        color=MUTED, fontsize=8,
    )  # fmt: skip
    axes.locator_params(axis="x", integer=True)
    if alone:
        legend_above(axes)
    axes.set_xlabel("trials of one speaker heard")
    axes.set_ylabel("bits disclosed, mean over speakers")


def paint_linkage(axes: Axes, systems: Systems) -> None:
    """Chance to link against the number of people to choose from."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    for colour, each in systems:
        assert each.linkage is not None
        axes.plot(each.linkage.x, each.linkage.y, color=colour)
    sizes = np.geomspace(2, max(each.speakers for _, each in systems), 50)
    axes.plot(sizes, 1 / sizes, color=MUTED, linestyle=":", label="by chance")
    legend_above(axes)
    numbers(axes.xaxis)
    percents(axes.yaxis)
    axes.set_xlabel("people to choose from")
    axes.set_ylabel("chance to pick the right one")


def _has(values: FloatArray | None) -> bool:
    return values is not None and bool(values.size)


def _wall(axes: Axes, bits: float) -> None:
    axes.axvline(bits, color=MUTED, linewidth=0.8, linestyle=(0, (1, 2)))
