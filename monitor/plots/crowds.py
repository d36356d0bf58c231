"""One voice among crowds of several sizes: bits against seconds of speech, a line for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from monitor.crowds import crowd_of, people, rounded
from monitor.errors import UsageError
from monitor.plots.canvas import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    draw,
    format_seconds,
    nice_seconds,
    spread_apart,
)
from monitor.plots.curve import RunColumns, curve_points, run_of, short_name
from monitor.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["bits_in", "plot_crowds"]

_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, RED, BLACK)
_LABEL_HEIGHT = 0.115


def plot_crowds(
    records: Sequence[Mapping[str, Any]],
    path: Path,
    among: Sequence[int],
    *,
    title: str | None = None,
) -> None:
    """Draw the bits of the watched speaker among each crowd; each line bends below its own ceiling.

    Args:
        records: the records of one run, with evidence.
        path: where to write; .png, .svg or .pdf.
        among: sizes of crowds, at least N each.
        title: replaces the one that says what is seen.

    Raises:
        UsageError: the run has no evidence, or a crowd is smaller than N.
    """
    run = run_of(records)
    lines = [(m, bits_in(records, m)) for m in among]
    if not any(np.isfinite(bits).any() for _, bits in lines):
        raise UsageError(
            "this run has no evidence to draw among other people: it takes a watched speaker "
            "(--watch) and a population calibrated with a cohort"
        )
    if among[0] < run.speakers:
        raise UsageError(
            f"among {people(among[0])} people there is no room for the {run.speakers} enrolled; "
            f"draw {run.speakers} or more"
        )
    told = f"What the voice of {run.watch} was worth among more and more people"
    heading = short_name(told if title is None else title, 90)

    def paint(figure: Figure) -> None:
        axes = figure.add_axes((0.08, 0.12, 0.62, 0.76))
        _paint(axes, run, lines)
        figure.text(0.08, 0.935, heading, fontsize=14, weight="bold", color=BLACK)

    draw(path, paint, (9, 5))


def bits_in(records: Sequence[Mapping[str, Any]], crowd: float) -> FloatArray:
    """``log2(M p)`` of the watched speaker among M people at each reading, NaN where not known.

    What all enrolled speakers together hold against the watched one is in the reading's own crowd
    and evidence: ``M1 p1 = M1 LR / (D + M1)`` gives D, and D gives every other M.

    Args:
        records: of a run.
        crowd: M.

    Example:
        >>> reading = {"type": "reading", "evidence_bits": 10.0,
        ...            "among": [{"people": 1000, "bits": 9.0, "bits_low": 8.0}]}
        >>> bits_in([reading], 1e6).round(3), bits_in([reading], 1000)
        (array([9.999]), array([9.]))
    """
    return np.array([_bits(each, crowd) for each in records if each.get("type") == "reading"])


def _bits(reading: Mapping[str, Any], crowd: float) -> float:
    evidence = reading.get("evidence_bits")
    known = [each for each in reading.get("among") or () if each.get("bits") is not None]
    if evidence is None or not known:
        return float("nan")
    # of the smallest crowd the digits that were written down say most
    least = min(known, key=lambda each: float(each["people"]))
    others = least["people"] * (2.0 ** (evidence - least["bits"]) - 1.0)
    return float(np.log2(crowd) + evidence - np.log2(max(others + crowd, 1e-300)))


def _paint(axes: Axes, run: RunColumns, lines: Sequence[tuple[int, FloatArray]]) -> None:
    heard = run.columns["speech"] > 0
    x = run.columns["speech"][heard]
    bottom = min(0.0, *(float(np.nanmin(bits[heard])) for _, bits in lines))
    top = max(float(np.nanmax(bits[heard])) for _, bits in lines)
    axes.set_xscale("log")
    axes.set_xlim(max(float(x[0]), float(x[-1]) / 3000), float(x[-1]))
    axes.set_ylim(bottom - 0.3, top * 1.12)
    ticks = nice_seconds(*axes.get_xlim())
    axes.set_xticks(ticks, [format_seconds(tick) for tick in ticks])
    axes.set_xticks([], minor=True)
    step = max(1, round((top - bottom) / 7))
    axes.set_yticks(range(int(np.ceil(bottom / step)) * step, int(top * 1.12) + 1, step))
    axes.grid(axis="y", color="#E6E6E6", linewidth=0.8)
    axes.set_xlabel("speech heard (log scale)", color=BLACK)
    axes.set_ylabel("bits", color=BLACK)
    labels = []
    for i, ((m, bits), colour) in enumerate(zip(lines, _cycle(len(lines)), strict=True)):
        y = bits[heard]
        keep = curve_points(x, y)
        # far below their ceilings large crowds say the same: the larger shows beside the smaller
        wide = 1.8 + 1.6 * i
        axes.plot(x[keep], y[keep], color=colour, linewidth=wide, zorder=2 + len(lines) - i)
        last = float(y[np.isfinite(y)][-1])
        name = crowd_of(m, run.speakers)
        left = m * 2.0**-last
        means = f"1 of about {rounded(left)} left" if left >= 1.5 else "hardly anybody else left"
        clipped = "at least " if run.last.get("at_least") and m > run.speakers else ""
        label = f"{name}:\n{clipped}{last:.1f} of {np.log2(m):.1f} bits,\n{means}"
        labels.append((last, label, colour))
    labels.sort(key=lambda each: each[0])
    low, high = axes.get_ylim()
    wanted = [(y - low) / (high - low) for y, _, _ in labels]
    places = spread_apart(wanted, [_LABEL_HEIGHT * 1.3] * len(labels), 0.0, 1.0)
    for at, place, (_, text, colour) in zip(wanted, places, labels, strict=True):
        axes.plot(
            [1.005, 1.02, 1.03], [at, place, place], transform=axes.transAxes, color=colour,
            linewidth=0.8, clip_on=False,
        )  # fmt: skip
        axes.text(1.04, place, text, transform=axes.transAxes, va="center", color=colour,
                  fontsize=10)  # fmt: skip
    axes.text(
        0.01, 0.98, "the more people there could be, the more the same voice tells",
        transform=axes.transAxes, va="top", color=GREY, fontsize=9.5,
    )  # fmt: skip


def _cycle(count: int) -> list[str]:
    return [_COLOURS[i % len(_COLOURS)] for i in range(count)]
