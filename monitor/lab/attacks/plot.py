"""Plot of the bits that each attacker gets through each method of protection, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from monitor.plots.canvas import (
    BLACK,
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    LINE,
    MUTED,
    ORANGE,
    PURPLE,
    draw,
    inline_svg,
    legend_above,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PAPER = (ORANGE, BLUE, GREEN, PURPLE)
_MARKS = ("o", "s", "D", "^")
_ROW_INCHES, _FOOT_INCHES = 0.55, 1.2


@dataclass(frozen=True, slots=True)
class MethodBits:
    """Bits that each attacker gets through one method."""

    name: str
    bits: Sequence[tuple[float, float | None, float | None] | None]


def plot_attacks(
    path: Path, methods: Sequence[MethodBits], attackers: Sequence[str], ceiling: float
) -> None:
    """Write the picture as .png, .svg or .pdf."""
    inches = (7.6, _FOOT_INCHES + _ROW_INCHES * len(methods))

    def paint(figure: Figure) -> None:
        figure.set_layout_engine("constrained")
        _paint(figure.add_subplot(), methods, attackers, ceiling, _PAPER, GREY, BLACK)

    draw(path, paint, inches)


def attacks_svg(methods: Sequence[MethodBits], attackers: Sequence[str], ceiling: float) -> str:
    """Format the picture as an ``<svg>`` element for a page."""

    def paint(axes: Axes) -> None:
        _paint(axes, methods, attackers, ceiling, COLOURS, MUTED, LINE)

    return inline_svg(paint, "attacks", "bits by method of protection and attacker")


def _paint(
    axes: Axes,
    methods: Sequence[MethodBits],
    attackers: Sequence[str],
    ceiling: float,
    colours: Sequence[str],
    muted: str,
    line: str,
) -> None:
    step = 0.8 / max(len(attackers), 1)
    for index, attacker in enumerate(attackers):
        colour, shift = colours[index % len(colours)], (index - (len(attackers) - 1) / 2) * step
        method_bits = [(y, m.bits[index]) for y, m in enumerate(methods)]
        points = [(y + shift, bits) for y, bits in method_bits if bits is not None]
        axes.plot(
            [value for _, (value, _, _) in points],
            [y for y, _ in points],
            _MARKS[index % len(_MARKS)],
            color=colour,
            markersize=5,
            label=attacker,
            zorder=3,
        )
        for y, (_, low, high) in points:
            if low is not None and high is not None:
                axes.plot([low, high], [y, y], color=colour, linewidth=1.6)
    axes.axvline(ceiling, color=muted, linewidth=1, linestyle="--")
    axes.annotate(
        f"log2 N = {ceiling:.1f}", (ceiling, -0.62), (-5, 0), textcoords="offset points",
        ha="right", va="center", color=muted, fontsize=8,
    )  # fmt: skip
    axes.set_yticks(range(len(methods)), [method.name for method in methods])
    axes.tick_params(axis="y", length=0)
    axes.set(ylim=(len(methods) - 0.5, -0.85), xlim=(0, ceiling * 1.03))
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", color=line if line != BLACK else "#E6E6E6", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("bits of identity disclosed (mean), 95 % interval")
    legend_above(axes)
