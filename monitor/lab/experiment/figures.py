"""SRD's figures 4 to 8 of a corpus, each as SVG, PNG and CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from monitor.features.f0 import HIGHEST_LAG, LOWEST_LAG, RATE
from monitor.files import csv_text, write_text
from monitor.lab.evaluation.srd import binned_ranks, rank_model_line
from monitor.lab.experiment.cells import MEAN, MeasuredCell
from monitor.lab.experiment.findings import GUIDES, Surface, guide_start
from monitor.maths.rank_models import RankFit
from monitor.phrases import plural
from monitor.plots.canvas import (
    Palette,
    format_seconds,
    legend_above,
    nice_seconds,
    numbers,
    percents,
    save_picture,
)
from monitor.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Drawn:
    """A figure to be drawn, with the columns and rows of its data; width and height in inches."""

    name: str
    title: str
    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Any]]
    paint: Callable[[Figure, Palette], None]
    inches: tuple[float, float]


def draw_all(figures: Iterable[Drawn], folder: Path) -> dict[str, str]:
    """Write each as SVG, PNG and CSV; returns the pictures for a page, by name.

    Raises:
        StoreError: the folder cannot be written.
    """
    made = {}
    for each in figures:
        save_csv(folder / f"{each.name}.csv", each.head, each.rows)
        made[each.name] = save_picture(each.paint, folder / each.name, each.title, each.inches)
    return made


def save_csv(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table, mode 0600; None is an empty cell, numbers have seven digits.

    Raises:
        StoreError: the place cannot be written.
    """
    plain = ([f"{x:.7g}" if isinstance(x, float) else x for x in row] for row in rows)
    write_text(csv_text(head, plain), path)


def colour_of(palette: Palette, system: str, systems: Sequence[str]) -> str:
    """The colour of a system: the same in every figure."""
    return palette.colours[list(systems).index(system) % len(palette.colours)]


# ------------------------------------------------------------------------------------------ frames
# SRD fig. 4: how often each value of a counted feature was heard of everybody together.


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
        "figure4", "What was heard of everybody together",
        f"Histograms of the frames of {speakers} speakers: {heard}. Embeddings have none.",
        ("feature", "bin", "hertz", "frames", "share"), rows, paint, (9.0, 2.8),
    )  # fmt: skip


def _values(name: str, bins: int) -> tuple[FloatArray, str]:
    if name == "f0" and bins == HIGHEST_LAG - LOWEST_LAG + 1:
        return RATE / (np.arange(bins) + LOWEST_LAG), "fundamental frequency, Hz"
    return np.arange(bins, dtype=np.float64), "bin"


# ----------------------------------------------------------------------------------------- lengths
# SRD fig. 8: disclosure against the length of the test, for each length of the templates.

COLUMNS = {
    "meand": MEAN, "meand_counted": "srd.mean_bits",
    "meand_corrected": "srd.mean_bits_miller_madow", "meand_nothing": "srd.null_model_bits",
    "idr": "srd.idr", "stdd": "srd.stdd_bits", "maxd": "srd.maxd_bits", "spread": "srd.spread",
}  # fmt: skip
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
        "MeanD of the fitted rank model against the speech heard, a line for each length D of the "
        f"templates; bars: 95 % interval over speakers ({sizes}, the same people at all lengths). "
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


# ------------------------------------------------------------------------------------- one speaker
# SRD fig. 7: the ranks of one speaker, too few for a histogram, and the rank models fitted to them.


def one_speaker_figure(cells: Sequence[MeasuredCell]) -> Drawn | None:
    """The median speaker of the first system of the tables; None where nobody has two trials."""
    cell = cells[0]
    system, found = next(iter(cell.systems.items()))
    one = found["one_speaker"]
    if one is None:
        return None
    counts = np.array(one["histogram"])
    ranks = np.arange(1, counts.size + 1)
    rank_models = {loss: np.array(rank_model) for loss, rank_model in one["rank_models"].items()}

    def paint(figure: Figure, palette: Palette) -> None:
        left, right = figure.subplots(1, 2)
        left.vlines(ranks, 0.0, counts / counts.max(), color=palette.muted, linewidth=1.4,
                    label="counted")  # fmt: skip
        right.step(ranks, np.cumsum(counts) / counts.sum(), where="post", color=palette.muted,
                   label="counted")  # fmt: skip
        for colour, (loss, rank_model) in zip(palette.colours, rank_models.items(), strict=False):
            left.plot(ranks, rank_model / rank_model.max(), color=colour, label=loss)
            right.plot(ranks, np.cumsum(rank_model), color=colour, label=loss)
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
        f"among N = {counts.size}.{'' if 'CLL' in rank_models else refused}",
        ("rank", "trials", *(f"rank_model_{loss.lower()}" for loss in rank_models)),
        list(zip(ranks.tolist(), counts.tolist(), *(each.tolist() for each in rank_models.values()),
                 strict=True)),
        paint, (9.0, 3.0),
    )  # fmt: skip


# ------------------------------------------------------------------------------------------- ranks
# SRD fig. 5: how often the speaker has each rank, and the rank models fitted to that.

_DRAWN = {"CLL": "--", "LL": ":"}


def rank_models_of(found: dict[str, Any]) -> dict[str, RankFit]:
    """The fitted rank models by loss; CLL only where it makes sense."""
    return {
        row["loss"]: RankFit(row["alpha"], row["beta"], row["binomial"], row["fitted"], np.nan)
        for row in found["losses"]
        if row["fitted"] == row["loss"]
    }


def ranks_figure(cells: Sequence[MeasuredCell], systems: Sequence[str]) -> Drawn:
    """A pair of axes for each kind of session of the tables; systems go by colour."""

    def paint(figure: Figure, palette: Palette) -> None:
        panels = figure.subplots(1, len(cells), squeeze=False, sharey=True)[0]
        for axes, cell in zip(panels, cells, strict=True):
            _ranks_panel(axes, cell, palette, systems)
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
        "bins. Dashed: the beta-binomial rank model by CLL, where it makes sense; dotted: by LL; "
        "grey dots: equal probability, no disclosure.",
        ("session", "system", "rank", "share", "rank_model_ll", "rank_model_cll"),
        list(_ranks_rows(cells)), paint, (9.0, 3.6),
    )  # fmt: skip


def _ranks_panel(axes: Axes, cell: MeasuredCell, palette: Palette, systems: Sequence[str]) -> None:
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
        for loss, rank_model in rank_models_of(found).items():
            if loss in _DRAWN:
                fitted = rank_model_line(rank_model, found["speakers"])
                axes.plot(fitted.x, fitted.y, color=colour, linestyle=_DRAWN[loss], linewidth=1.1)
    axes.axhline(1.0 / len(cell.panel.speakers), color=palette.muted, linestyle=(0, (1, 2)),
                 linewidth=0.9)  # fmt: skip
    axes.set_ylim(lowest / 3, 1.6)
    numbers(axes.xaxis)
    percents(axes.yaxis)
    axes.set_xlabel(f"similarity rank, {cell.panel.session} session")


def _ranks_rows(cells: Sequence[MeasuredCell]) -> Iterator[tuple[Any, ...]]:
    for cell in cells:
        for system, found in cell.systems.items():
            share = np.array(found["histogram"]) / sum(found["histogram"])
            models, none = rank_models_of(found), [None] * share.size
            fitted = (
                np.exp(models[loss].log_pmf(share.size)).tolist() if loss in models else none
                for loss in ("LL", "CLL")
            )
            for k, each in enumerate(zip(share.tolist(), *fitted, strict=True)):
                yield cell.panel.session, system, k + 1, *each


# ---------------------------------------------------------------------------------------- speakers
# SRD fig. 6: not everybody discloses the same.


def speakers_figure(cells: Sequence[MeasuredCell], systems: Sequence[str]) -> Drawn | None:
    """A pair of axes for each kind of session of the tables; None where nobody has two trials."""
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
        "MeanD of each tested speaker, by the rank model that LL fits to the speaker's own "
        "trials; the axis ends at log2 N.",
        ("session", "system", "mean_bits"), rows, paint, (9.0, 3.4),
    )  # fmt: skip
