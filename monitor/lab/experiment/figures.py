"""SRD's figures 4 to 8 for a corpus, each as SVG, PNG and CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from monitor.features.f0 import HIGHEST_LAG, LOWEST_LAG, RATE
from monitor.files import write_text
from monitor.lab.evaluation.srd import binned_ranks, rank_model_line
from monitor.lab.experiment.cells import MEAN, MeasuredCell, SystemRecord
from monitor.lab.experiment.findings import GUIDES, Surface, find_guide_start
from monitor.lab.report.model import Cell, Picture, Table
from monitor.lab.report.renderers import render_csv
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
class FigureSpec:
    """A figure to draw, with the columns and rows of its data; size in inches."""

    name: str
    title: str
    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    paint: Callable[[Figure, Palette], None]
    inches: tuple[float, float]


def save_figures(figures: Iterable[FigureSpec], folder: Path) -> list[Picture]:
    """Write each as SVG, PNG and CSV; return the pictures for a page."""
    pictures = []
    for figure in figures:
        table = render_csv(Table.from_numbers(figure.head, figure.rows))
        write_text(table, folder / f"{figure.name}.csv")
        svg = save_picture(figure.paint, folder / figure.name, figure.title, figure.inches)
        title = f"{figure.name.replace('figure', 'Figure ')}. {figure.title}"
        pictures.append(Picture(title, svg, figure.caption, wide=True))
    return pictures


# SRD fig. 4: how often each value of a counted feature occurs, over all speakers.
def plot_frames(counts: Mapping[str, Sequence[int]], speakers: int) -> FigureSpec | None:
    """Plot a pair of axes for each counted feature; None without such features."""
    counted = {name: bins for name, bins in counts.items() if sum(bins)}
    if not counted:
        return None

    def paint(figure: Figure, palette: Palette) -> None:
        panels = figure.subplots(1, len(counted), squeeze=False)[0]
        for i, (axes, (name, bins)) in enumerate(zip(panels, counted.items(), strict=True)):
            values, label = _get_bin_values(name, len(bins))
            fraction = (np.array(bins) / sum(bins))[np.argsort(values)]
            x = np.sort(values)
            colour = palette.colours[i % len(palette.colours)]
            axes.fill_between(x, fraction, step="mid", color=colour, alpha=0.3)
            axes.step(x, fraction, where="mid", color=colour, linewidth=1.0)
            axes.set_ylim(bottom=0.0)
            axes.set_xlabel(label)
            axes.set_title(name, loc="left", weight="bold", fontsize=10)
        panels[0].set_ylabel("fraction of frames")

    rows = [
        (name, i, value if name == "f0" else None, count, count / sum(bins))
        for name, bins in counted.items()
        for i, (value, count) in enumerate(
            zip(_get_bin_values(name, len(bins))[0].tolist(), bins, strict=True)
        )
    ]
    frames = ", ".join(f"{sum(bins):,} of {name}" for name, bins in counted.items())
    return FigureSpec(
        "figure4", "Frames of all speakers together",
        f"Histograms of the frames of {speakers} speakers: {frames}. Embeddings have no histogram.",
        ("feature", "bin", "hertz", "frames", "share"), rows, paint, (9.0, 2.8),
    )  # fmt: skip


def _get_bin_values(name: str, bins: int) -> tuple[FloatArray, str]:
    if name == "f0" and bins == HIGHEST_LAG - LOWEST_LAG + 1:
        return RATE / (np.arange(bins) + LOWEST_LAG), "fundamental frequency, Hz"
    return np.arange(bins, dtype=np.float64), "bin"


# SRD fig. 8: disclosure against the length of the test, for each length of the templates.
COLUMNS = {
    "meand": MEAN, "meand_counted": "srd.mean_bits",
    "meand_corrected": "srd.mean_bits_miller_madow", "meand_nothing": "srd.null_model_bits",
    "idr": "srd.idr", "stdd": "srd.stdd_bits", "maxd": "srd.maxd_bits", "spread": "srd.spread",
}  # fmt: skip
"""Figures of the sweep, by the name of their column."""
_LEAST_BITS = 0.05
_MOST_COLUMNS = 3


def compute_guide(surface: Surface, template: float, test: float, power: float) -> float | None:
    """Compute a guide at T, starting from the first T with evidence; None before that T."""
    first = find_guide_start(surface, template)
    if first is None or test < first:
        return None
    return surface.bits(first, template) * float((test / first) ** power)


def plot_lengths(surfaces: Sequence[Surface]) -> FigureSpec | None:
    """Plot one row of axes per system and one column per session; None without a sweep."""
    swept = [candidate for candidate in surfaces if len(candidate.lengths) > 1]
    if not swept:
        return None
    systems = list(dict.fromkeys(candidate.system for candidate in swept))
    templates = sorted({d for surface in swept for d in surface.template_lengths})
    columns = min(len(templates), _MOST_COLUMNS)
    rows = -(-len(templates) // columns)  # of each system

    def paint(figure: Figure, palette: Palette) -> None:
        panels = figure.subplots(
            rows * len(systems), columns, squeeze=False, sharex=True, sharey=True
        )
        for i, system in enumerate(systems):
            of_system = [surface for surface in swept if surface.system == system]
            system_panels = list(panels[rows * i : rows * (i + 1)].flat)
            for axes, template in zip(system_panels, templates, strict=False):
                _plot_panel(axes, of_system, template, palette, names=axes is system_panels[0])
                axes.set_title(f"{system}, templates of {format_seconds(template)}", loc="left",
                               fontsize=10)  # fmt: skip
            for axes in system_panels[len(templates) :]:
                axes.set_axis_off()
        bits = [s.bits(*cell) for s in swept for cell in s.cells]
        minimum = min((value for value in bits if value >= _LEAST_BITS), default=_LEAST_BITS)
        panels[0, 0].set_ylim(0.7 * minimum, 2.5 * max(surface.ceiling for surface in swept))
        # axes are shared, so their limits must cover all panels
        first = min(surface.lengths[0] for surface in swept)
        last = max(surface.lengths[-1] for surface in swept)
        panels[0, 0].set_xlim(first / 1.3, last * 1.3)
        ticks = nice_seconds(first, last)[::2]
        for axes in panels.flat:
            axes.set_xticks(ticks, [format_seconds(tick) for tick in ticks])
            axes.set_xticks([], minor=True)
        figure.supxlabel("speech length T", fontsize=10)
        figure.supylabel("MeanD, bits", fontsize=10)

    sizes = "; ".join(
        f"{session} session: N = {len(panel.speakers)}, at most {len(panel.tested)} tested"
        for session, panel in dict.fromkeys((s.panel.session, s.panel) for s in swept)
    )
    return FigureSpec(
        "figure8",
        "Disclosure by length of speech",
        "MeanD of the fitted rank model against the length of speech, with one panel per length D "
        f"of the templates. Bands: 95 % interval over speakers ({sizes}, the same people at all "
        "lengths). Dashed and dotted: bounds by composition, T and sqrt T, from the first length "
        "with evidence, at the longest D. Grey: the ceiling, log2 N. Values under "
        f"{_LEAST_BITS:g} bits are not drawn.",
        ("session", "system", "T", "D", "speakers", "tested", "trials",
         *(f"{name}{end}" for name in COLUMNS for end in ("", "_low", "_high")),
         *(f"guide_{name}" for name in GUIDES)),
        list(_list_rows(surfaces)),
        paint,
        (6.4, 1.9 * rows * len(systems) + 0.6),
    )  # fmt: skip


def _plot_panel(
    axes: Axes, surfaces: Sequence[Surface], template: float, palette: Palette, *, names: bool
) -> None:
    """Plot one system's lines at one length of the templates; ``names`` labels the lines."""
    axes.set(xscale="log", yscale="log")
    for surface, colour, above in zip(surfaces, palette.colours, (-1, 1), strict=False):
        points = []
        for t in surface.lengths if template in surface.template_lengths else ():
            bits, figure = surface.bits(t, template), surface.cells[t, template]["figures"][MEAN]
            low, high = (bits if figure[end] is None else figure[end] for end in ("low", "high"))
            if bits >= _LEAST_BITS:
                points.append((t, bits, max(low, _LEAST_BITS / 2), high))
        if not points:
            continue
        x, y, low, high = np.array(points).T
        axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.plot(x, y, color=colour)
        axes.axhline(surface.ceiling, color=palette.muted, linewidth=0.8, linestyle=(0, (1, 3)))
        if names:
            axes.annotate(
                f"{surface.panel.session} session",
                (x[-1], y[-1]),
                (0, 12 * above),
                textcoords="offset points",
                ha="right",
                va="center",
                color=colour,
            )
    is_longest = template == surfaces[0].template_lengths[-1]
    lengths = surfaces[0].lengths if is_longest else ()
    for power, dashes, name in zip(GUIDES.values(), ((0, (5, 3)), ":"), ("T", "√T"), strict=True):
        line = [(t, compute_guide(surfaces[0], template, t, power)) for t in lengths]
        seen = np.array([(t, bits) for t, bits in line if bits is not None], float)
        if seen.size:
            axes.plot(*seen.T, linestyle=dashes, color=palette.ink, linewidth=0.9)
            top = seen[seen[:, 1] <= surfaces[0].ceiling][-1]
            axes.annotate(name, top, (-3, 3), textcoords="offset points", ha="right")
    numbers(axes.yaxis)


def _list_rows(surfaces: Sequence[Surface]) -> Iterator[list[Cell]]:
    for surface in surfaces:
        for (test, template), measured in surface.cells.items():
            figures = [measured["figures"].get(key, {}) for key in COLUMNS.values()]
            yield [
                surface.panel.session, surface.system, f"{test:g}", f"{template:g}",
                measured["speakers"], measured["tested"], measured["trials"],
                *(figure.get(end) for figure in figures for end in ("value", "low", "high")),
                *(compute_guide(surface, template, test, power) for power in GUIDES.values()),
            ]  # fmt: skip


# SRD fig. 7: the ranks of one speaker, too few for a histogram, and their fitted rank models.
def plot_speaker(cells: Sequence[MeasuredCell]) -> FigureSpec | None:
    """Plot the median speaker of the tables' first system; None if no speaker has two trials."""
    system, measured = next(iter(cells[0].systems.items()))
    speaker = measured["one_speaker"]
    if speaker is None:
        return None
    counts = np.array(speaker["histogram"])
    ranks = np.arange(1, counts.size + 1)
    rank_models = {loss: np.array(model) for loss, model in speaker["rank_models"].items()}

    def paint(figure: Figure, palette: Palette) -> None:
        density, cumulative = figure.subplots(1, 2)
        density.vlines(ranks, 0.0, counts / counts.max(), color=palette.muted, linewidth=1.4,
                       label="counted")  # fmt: skip
        cumulative.step(ranks, np.cumsum(counts) / counts.sum(), where="post",
                        color=palette.muted, label="counted")  # fmt: skip
        for colour, (loss, rank_model) in zip(palette.colours, rank_models.items(), strict=False):
            density.plot(ranks, rank_model / rank_model.max(), color=colour, label=loss)
            cumulative.plot(ranks, np.cumsum(rank_model), color=colour, label=loss)
        density.set_ylabel("relative to the maximum")
        cumulative.set_ylabel("cumulative probability")
        for axes in (density, cumulative):
            axes.set(ylim=(0.0, 1.03), xlabel="similarity rank")
        cumulative.legend(loc="lower right")

    refused = " CLL is not possible (rank 1 never occurs, or fewer trials than ranks)."
    return FigureSpec(
        "figure7",
        "One speaker has too few trials for a histogram",
        f"Ranks of the median speaker by {system}, {cells[0].panel.session} session: MeanD "
        f"{speaker['mean_bits']:.2f} bits by LL, {plural(speaker['trials'], 'trial')} "
        f"among N = {counts.size}.{'' if 'CLL' in rank_models else refused}",
        ("rank", "trials", *(f"rank_model_{loss.lower()}" for loss in rank_models)),
        list(zip(ranks.tolist(), speaker["histogram"], *speaker["rank_models"].values(),
                 strict=True)),
        paint, (9.0, 3.0),
    )  # fmt: skip


# SRD fig. 5: how often the speaker has each rank, and the fitted rank models.
_LINE_STYLES = {"CLL": "--", "LL": ":"}


def _get_rank_models(measured: SystemRecord) -> dict[str, RankFit]:
    """Return the fitted rank models by loss, with CLL only if possible."""
    return {
        row["loss"]: RankFit(row["alpha"], row["beta"], row["binomial"], row["fitted"], np.nan)
        for row in measured["losses"]
        if row["fitted"] == row["loss"] and row["loss"] in _LINE_STYLES
    }


def plot_ranks(cells: Sequence[MeasuredCell], systems: Sequence[str]) -> FigureSpec:
    """Plot a pair of axes per session in the tables, with one colour per system."""

    def paint(figure: Figure, palette: Palette) -> None:
        panels = figure.subplots(1, len(cells), squeeze=False, sharey=True)[0]
        for axes, cell in zip(panels, cells, strict=True):
            axes.set(xscale="log", yscale="log")
            chance = lowest = 1.0 / len(cell.panel.speakers)
            for system, measured in cell.systems.items():
                colour = palette.colours[systems.index(system) % len(palette.colours)]
                line = binned_ranks(np.array(measured["histogram"]))
                seen = line.y > 0
                lowest = min(lowest, float(line.y[seen].min()))
                axes.plot(line.x[seen], line.y[seen], "o-", color=colour, markersize=2.5,
                          linewidth=0.9, label=system)  # fmt: skip
                for loss, rank_model in _get_rank_models(measured).items():
                    fitted = rank_model_line(rank_model, measured["speakers"])
                    axes.plot(fitted.x, fitted.y, color=colour, linestyle=_LINE_STYLES[loss],
                              linewidth=1.1)  # fmt: skip
            axes.axhline(chance, color=palette.muted, linestyle=(0, (1, 2)), linewidth=0.9)
            axes.set_ylim(lowest / 3, 1.6)
            numbers(axes.xaxis)
            percents(axes.yaxis)
            axes.set_xlabel(f"similarity rank, {cell.panel.session} session")
        panels[0].set_ylabel("fraction of trials")
        legend_above(panels[0])

    sizes = "; ".join(
        f"{cell.panel.session} session: N = {len(cell.panel.speakers)}, T = "
        f"{cell.test_seconds:g} s, D = {cell.template_seconds:g} s"
        for cell in cells
    )
    return FigureSpec(
        "figure5",
        "Similarity rank of the speaker",
        f"Fraction of trials at each similarity rank ({sizes}). From rank 20 on it is the mean of "
        "widening bins. Dashed: the beta-binomial rank model by CLL, if possible. Dotted: by LL. "
        "Grey dots: equal probability, no disclosure.",
        ("session", "system", "rank", "share", "rank_model_ll", "rank_model_cll"),
        list(_list_rank_rows(cells)), paint, (9.0, 3.6),
    )  # fmt: skip


def _list_rank_rows(cells: Sequence[MeasuredCell]) -> Iterator[list[Cell]]:
    for cell in cells:
        for system, measured in cell.systems.items():
            fraction = np.array(measured["histogram"]) / sum(measured["histogram"])
            models, empty = _get_rank_models(measured), [None] * fraction.size
            fitted = (
                np.exp(models[loss].log_pmf(fraction.size)).tolist() if loss in models else empty
                for loss in ("LL", "CLL")
            )
            for k, fractions in enumerate(zip(fraction.tolist(), *fitted, strict=True)):
                yield [cell.panel.session, system, k + 1, *fractions]


# SRD fig. 6: speakers differ in disclosure.
def plot_speakers(cells: Sequence[MeasuredCell], systems: Sequence[str]) -> FigureSpec | None:
    """Plot axes for each session in the tables; None if no speaker has two trials."""
    rows = [
        (cell.panel.session, system, bits)
        for cell in cells
        for system, measured in cell.systems.items()
        for bits in measured["speaker_bits"]
    ]
    if not rows:
        return None

    def paint(figure: Figure, palette: Palette) -> None:
        panels = figure.subplots(1, len(cells), squeeze=False, sharey=True)[0]
        for axes, cell in zip(panels, cells, strict=True):
            edges = np.linspace(0.0, np.log2(len(cell.panel.speakers)), 25)
            for system, measured in cell.systems.items():
                bits = np.array(measured["speaker_bits"])
                if not bits.size:
                    continue
                fraction = np.histogram(np.clip(bits, 0.0, edges[-1]), edges)[0] / bits.size
                colour = palette.colours[systems.index(system) % len(palette.colours)]
                axes.stairs(fraction, edges, fill=True, color=colour, alpha=0.18)
                axes.stairs(
                    fraction, edges, color=colour, linewidth=1.4,
                    label=f"{system}: max {bits.max():.2f}, mean {bits.mean():.2f}, std "
                    f"{bits.std():.2f}",
                )  # fmt: skip
            percents(axes.yaxis)
            axes.set_xlabel(f"MeanD of a speaker, bits, {cell.panel.session} session")
            axes.legend(loc="upper left")
        panels[0].set_ylabel("fraction of speakers")

    return FigureSpec(
        "figure6",
        "Disclosure by speaker",
        "MeanD of each tested speaker, by an LL rank model of the speaker's own trials. The axis "
        "ends at log2 N.",
        ("session", "system", "mean_bits"), rows, paint, (9.0, 3.4),
    )  # fmt: skip
