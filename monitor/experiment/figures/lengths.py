"""SRD fig. 8: disclosure against the length of the test, for each length of the templates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from monitor.experiment.cells.measuring import MEAN
from monitor.experiment.figures.drawn import Drawn
from monitor.experiment.findings.contrasts import Surface
from monitor.experiment.findings.guides import GUIDES, guide_start
from monitor.plots.axes import numbers
from monitor.plots.canvas import format_seconds, nice_seconds
from monitor.plots.palette import Palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLUMNS", "guide_bits", "lengths_figure"]

COLUMNS = {
    "meand": MEAN,
    "meand_counted": "srd.mean_bits",
    "meand_corrected": "srd.mean_bits_miller_madow",
    "meand_nothing": "srd.null_model_bits",
    "idr": "srd.idr",
    "stdd": "srd.stdd_bits",
    "maxd": "srd.maxd_bits",
    "spread": "srd.spread",
}
"""Figures of the sweep, by the name of their column."""
_LEAST_BITS = 0.05
_MARKERS = "os^Dvph*<>"


def guide_bits(surface: Surface, template: float, test: float, power: float) -> float | None:
    """A guide at T from the first T that tells anything; None before it."""
    first = guide_start(surface, template)
    if first is None or test < first:
        return None
    return surface.bits(first, template) * float((test / first) ** power)


def lengths_figure(surfaces: Sequence[Surface]) -> Drawn | None:
    """A row of axes for each system, a column for each kind of session; None without a sweep."""
    some = [each for each in surfaces if len(each.lengths) > 1]
    if not some:
        return None
    systems = list(dict.fromkeys(each.system for each in some))
    sessions = list(dict.fromkeys(each.panel.session for each in some))
    # a row of each system; of one kind of session, two systems in a row
    rows = len(systems) if len(sessions) > 1 else -(-len(systems) // 2)

    def place(surface: Surface) -> int:
        system = systems.index(surface.system)
        return system * len(sessions) + sessions.index(surface.panel.session)

    def paint(figure: Figure, palette: Palette) -> None:
        panels = figure.subplots(rows, 2, squeeze=False, sharex=True, sharey=True)
        for surface in some:
            axes = panels.flat[place(surface)]
            _panel(axes, surface, palette)
            axes.set_title(f"{surface.system}, {surface.panel.session} session", loc="left",
                           weight="bold", fontsize=10)  # fmt: skip
        for axes in panels.flat[len(systems) * len(sessions) :]:
            axes.set_visible(False)
        least = min(each for surface in some for each in _bits(surface))
        panels[0, 0].set_ylim(0.7 * least, 5.0 * max(surface.ceiling for surface in some))
        # axes are shared: the last to be set would cut what others have
        first = min(surface.lengths[0] for surface in some)
        last = max(surface.lengths[-1] for surface in some)
        panels[0, 0].set_xlim(first / 1.3, last * 1.3)
        ticks = nice_seconds(first, last)
        for axes in panels.flat:
            axes.set_xticks(ticks, [format_seconds(tick) for tick in ticks])
            axes.set_xticks([], minor=True)
        for axes in panels[:, 0]:
            axes.set_ylabel("MeanD, bits")
        for axes in panels[-1]:
            axes.set_xlabel("speech heard, T")
        handles: dict[str, Any] = {}
        for axes in panels.flat[: len(systems) * len(sessions)]:
            for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
                handles.setdefault(name, handle)
        figure.legend(handles.values(), handles.keys(), loc="outside upper left", ncols=6)

    sizes = "; ".join(
        f"{session} session: N = {len(panel.speakers)}, at most {len(panel.tested)} tested"
        for session, panel in dict.fromkeys((s.panel.session, s.panel) for s in some)
    )
    return Drawn(
        "figure8",
        "What longer speech adds",
        "MeanD of the fitted law against the speech heard, a line for each length D of the "
        f"templates; bars: 95 % limits over speakers ({sizes}, the same people at all lengths). "
        "Dashed and dash-dotted: what composition allows from the first length on that tells "
        "anything, T and sqrt T, at the longest D. Grey dots: the ceiling, log2 N. What is under "
        f"{_LEAST_BITS:g} bits is not drawn.",
        ("session", "system", "T", "D", "speakers", "tested", "trials",
         *(f"{name}{end}" for name in COLUMNS for end in ("", "_low", "_high")),
         *(f"guide_{name}" for name in GUIDES)),
        list(_rows(surfaces)),
        paint,
        (9.0, 2.3 * rows + 0.8),
    )  # fmt: skip


def _panel(axes: Axes, surface: Surface, palette: Palette) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    left, right = surface.lengths[0], surface.lengths[-1]
    count = len(surface.template_lengths)
    for i, template in enumerate(surface.template_lengths):
        points = [
            (t, surface.bits(t, template), *_ends(surface, t, template))
            for t in surface.lengths
            if surface.bits(t, template) >= _LEAST_BITS
        ]
        if not points:
            continue
        x, y, low, high = np.array(points).T
        x = x * np.exp(0.012 * np.log(right / left) * (i - (count - 1) / 2))
        axes.errorbar(
            x, y, [y - np.maximum(low, _LEAST_BITS / 2), high - y], elinewidth=0.8, linewidth=1.2,
            color=palette.colours[i % len(palette.colours)], markersize=3.2,
            marker=_MARKERS[i % len(_MARKERS)], label=f"D = {format_seconds(template)}",
        )  # fmt: skip
    template = surface.template_lengths[-1]
    styles = zip(GUIDES.values(), ("--", "-."), ("T", "sqrt T"), strict=True)
    for power, dashes, name in styles:
        line = [(t, guide_bits(surface, template, t, power)) for t in surface.lengths]
        seen = [(t, bits) for t, bits in line if bits is not None]
        if seen:
            axes.plot(*zip(*seen, strict=True), linestyle=dashes, color=palette.muted,
                      linewidth=1.0, label=f"guide {name}")  # fmt: skip
    axes.axhline(surface.ceiling, color=palette.muted, linestyle=(0, (1, 2)), linewidth=1.0)
    numbers(axes.yaxis)


def _bits(surface: Surface) -> list[float]:
    """What is drawn of it."""
    bits = (surface.bits(*place) for place in surface.found)
    return [each for each in bits if each >= _LEAST_BITS] or [_LEAST_BITS]


def _ends(surface: Surface, test: float, template: float) -> tuple[float, float]:
    value = surface.found[test, template]["figures"][MEAN]
    ends = value["low"], value["high"]
    low, high = (value["value"] if end is None else end for end in ends)
    return low, high


def _rows(surfaces: Sequence[Surface]) -> Iterator[tuple[Any, ...]]:
    for surface in surfaces:
        for (test, template), found in surface.found.items():
            figures = found["figures"]
            yield (
                surface.panel.session, surface.system, test, template, found["speakers"],
                found["tested"], found["trials"],
                *(
                    figures.get(key, {}).get(end)
                    for key in COLUMNS.values()
                    for end in ("value", "low", "high")
                ),
                *(guide_bits(surface, template, test, power) for power in GUIDES.values()),
            )  # fmt: skip
