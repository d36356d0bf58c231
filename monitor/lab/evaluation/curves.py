"""The pictures of an evaluation, one system or several in each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from monitor.lab.report.model import OneLine, Picture
from monitor.plots.canvas import COLOURS, MUTED, inline_svg, legend_above, percents, spread_apart
from monitor.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DASHES: tuple[Literal["-", "--", "-.", ":"], ...] = ("-", "--", "-.", ":")


@dataclass(frozen=True, repr=False)
class CrowdRates(OneLine):
    """IdR against the number of people."""

    measured: Line
    forms: Mapping[str, Line]
    bracket: Line
    speakers: float
    supported: float


def paint_crowd(axes: Axes, systems: Sequence[tuple[str, Curves]]) -> None:
    """Draw one system with all forms by name, or several with their brackets."""
    axes.set_xscale("log")
    alone = len(systems) == 1
    for colour, curves in systems:
        crowd = curves.crowd
        assert crowd is not None
        _bracket(axes, crowd, colour)
        for dashes, (label, line) in zip(_DASHES, crowd.forms.items(), strict=False):
            axes.plot(
                line.x, line.y, color=colour, linestyle=dashes, linewidth=1.1,
                label=label if alone else None, alpha=1.0 if alone else 0.6,
            )  # fmt: skip
        dots = crowd.measured
        if dots.low is not None and dots.high is not None:
            axes.fill_between(dots.x, dots.low, dots.high, color=colour, alpha=0.25, linewidth=0)
        axes.plot(dots.x, dots.y, "o", color=colour, markersize=3.2, markeredgewidth=0)
        if crowd.supported < crowd.bracket.x[-1]:
            axes.axvline(crowd.supported, color=colour, linewidth=0.9, linestyle=(0, (1, 2)))
            if alone:
                _mark(axes, crowd)
    axes.set_ylim(0, 1.02)
    if alone:
        legend_above(axes, columns=2)
    _decades(axes)
    percents(axes.yaxis)
    axes.set(xlabel="people in the crowd", ylabel="trials with the correct person first")


def _mark(axes: Axes, crowd: CrowdRates) -> None:
    """Label the supported crowd, on the side of the line with more room."""
    first, last = crowd.measured.x[0], crowd.bracket.x[-1]
    before, after = np.log([crowd.supported / first, last / crowd.supported])
    side, gap = ("left", 3) if after > before / 2 else ("right", -3)
    axes.annotate(
        f"supported\nup to {crowd.supported:,.0f}", (crowd.supported, 0.985),
        xycoords=("data", "axes fraction"), xytext=(gap, 0), textcoords="offset points",
        ha=side, va="top", color=MUTED, fontsize=8,
    )  # fmt: skip


def _bracket(axes: Axes, crowd: CrowdRates, colour: str) -> None:
    """Draw the bracket, paler beyond the crowd that N people support."""
    line = crowd.bracket
    assert line.low is not None
    assert line.high is not None
    near = np.append(line.x[line.x < crowd.supported], min(crowd.supported, line.x[-1]))
    far = np.append(near[-1], line.x[line.x > near[-1]])
    for x, alpha in ((near, 0.25), (far, 0.1)):
        low, high = (np.interp(np.log(x), np.log(line.x), end) for end in (line.low, line.high))
        axes.fill_between(x, low, high, color=colour, alpha=alpha, linewidth=0)


def _decades(axes: Axes) -> None:
    """Abbreviate thousands and millions, because their zeros would not fit."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    def written(value: float, _: object) -> str:
        for unit, letter in ((1e9, "bn"), (1e6, "M"), (1e3, "k")):
            if value >= unit:
                return f"{value / unit:g}{letter}"
        return f"{value:g}"

    axes.xaxis.set_major_formatter(FuncFormatter(written))
    axes.xaxis.set_minor_formatter(NullFormatter())


# Each family of metrics declares its pictures, with title and caption, as `Drawing`.
POINTS = 240  # points per curve; more would not be visible


@dataclass(frozen=True, repr=False)
class Line(OneLine):
    """Points of a curve, and its 95 % interval if it has one; shape (K,) each."""

    x: FloatArray
    y: FloatArray
    low: FloatArray | None = None
    high: FloatArray | None = None


@dataclass(frozen=True, repr=False)
class Curves(OneLine):
    """Lines to draw for one system; a line that is None is not drawn."""

    name: str
    speakers: int
    non_mated: int
    ranks: Line | None = None
    rank_models: Mapping[str, Line] = field(default_factory=dict)
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

    def drawn(self) -> dict[str, object]:
        """Return all curves by name."""
        about = ("name", "speakers", "non_mated")
        return {key: value for key, value in vars(self).items() if key not in about}

    @property
    def ceiling_bits(self) -> float:
        """``log2 N``."""
        return float(np.log2(self.speakers))


Systems: TypeAlias = Sequence[tuple[str, Curves]]  # colour and curves of each system


@dataclass(frozen=True)
class Drawing:
    """Drawing of a curve."""

    name: str
    title: str
    caption: str
    paint: Callable[..., None]


_LABELLED, _LETTERS = 4, 12  # maximum systems with labels at their lines, and letters of a label


def _paint_apart(paint: Callable[..., None], systems: Systems, several: int, axes: Axes) -> None:
    """Paint systems with the dashes of the page's legend, and a label where each line ends."""
    from matplotlib.colors import to_hex

    paint(axes, systems=systems)
    if not several:
        return
    ends: list[tuple[float, str, str]] = []
    for colour, curves in systems:
        dashes = _DASHES[COLOURS.index(colour) % len(_DASHES)]
        own = [line for line in axes.lines if line.get_color() == colour]
        solid = [line for line in own if line.get_linestyle() == "-"]
        for line in solid:
            line.set_linestyle(dashes)
        for outline in axes.patches:
            if to_hex(outline.get_edgecolor()) == colour and not outline.get_fill():
                outline.set_linestyle(dashes)
        points = np.array([np.asarray(line.get_xydata())[-1] for line in solid[:1]])
        if np.isfinite(points).all() and points.size:
            at = axes.transAxes.inverted().transform(axes.transData.transform(points))
            ends.append((float(np.clip(at[0, 1], 0, 1)), curves.name, colour))
    ends.sort()
    if len(systems) <= _LABELLED:
        places = spread_apart([end for end, *_ in ends], 0.06, 0.0, 1.0)
        for y, (_, name, colour) in zip(places, ends, strict=True):
            short = name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…"
            axes.text(
                1.01, y, short, color=colour, fontsize=8, va="center", transform=axes.transAxes,
                parse_math=False,
            )  # fmt: skip


def pictures(systems: Sequence[Curves], drawings: Sequence[Drawing]) -> tuple[Picture, ...]:
    """Draw every picture for which at least one system has data."""
    legend = [system.name for system in systems] if len(systems) > 1 else []
    coloured = [(COLOURS[i % len(COLOURS)], entry) for i, entry in enumerate(systems)]
    results = []
    for entry in drawings:
        have = [(c, s) for c, s in coloured if s.drawn().get(entry.name) is not None]
        if have:
            paint = partial(_paint_apart, entry.paint, have, len(legend))
            svg = inline_svg(paint, entry.name, entry.title)
            results.append(Picture(entry.title, svg, entry.caption, legend))
    return tuple(results)
