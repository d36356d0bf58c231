"""One voice among crowds of several sizes: bits against seconds of speech, one line per crowd."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from monitor.crowds import LEVELS, crowd_of, people, rounded
from monitor.errors import UsageError
from monitor.events.declaration import Event
from monitor.events.reading import Reading
from monitor.plots.canvas import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, draw
from monitor.plots.columns import curve_points, read_columns
from monitor.plots.sheet import Frame, Sheet, Spot
from monitor.plots.wording import meaning
from monitor.safe_text import short_name
from monitor.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, RED, BLACK)


def plot_crowds(
    events: Sequence[Event], path: Path, among: Sequence[int], *, title: str | None = None
) -> None:
    """Draw the bits of the watched speaker among each crowd; each line stays below its ceiling.

    Raises UsageError if the run has no evidence, or a crowd is smaller than N.
    """
    run = read_columns(events)
    has_speech = run.columns["speech"] > 0
    lines = [(m, bits_in(events, m)[has_speech]) for m in among]
    if not any(np.isfinite(bits).any() for _, bits in lines):
        raise UsageError(
            "this run has no evidence to draw: use a watched speaker (--watch) and a population "
            "calibrated with a cohort"
        )
    if among[0] < run.speakers:
        raise UsageError(
            f"invalid crowd of {people(among[0])} people: use at least {run.speakers}, the number "
            "enrolled"
        )
    x = run.columns["speech"][has_speech]
    figures = np.concatenate([bits[np.isfinite(bits)] for _, bits in lines])
    low, high = min(-0.5, float(figures.min()) - 0.5), max(float(figures.max()), 1.0)
    default = f"The same voice discloses more in a larger crowd: bits of {run.watch}"
    clipped = "at least " if run.last.at_least else ""
    frame = Frame(
        short_name(default if title is None else title, 200),
        "Each line ends at or below log2 of its crowd: no more bits are needed to name one person.",
        {float(bits): meaning(run, bits) for bits in LEVELS if low < bits < high},
        "people who match", "speech (log scale)",
        (max(float(x[0]), float(x[-1]) / 3000), float(x[-1])), (low, high),
    )  # fmt: skip

    def paint(figure: Figure) -> None:
        sheet = Sheet(figure, frame)
        coloured = list(enumerate(zip(lines, cycle(_COLOURS), strict=False)))
        for i, ((_, y), colour) in coloured:
            keep = curve_points(x, y)
            # curves of large crowds coincide far below their ceilings: draw the larger one wider
            front = 2 + len(lines) - i
            sheet.line(x[keep], y[keep], colour, 1.8 + 1.6 * i, zorder=front)
        for _, ((m, y), colour) in reversed(coloured):
            last = float(y[np.isfinite(y)][-1])
            matches = m * 2.0**-last
            means = f"about {rounded(matches)} people match"
            means = means if matches >= 1.5 else "few others match"
            figure_of = f"{clipped if m > run.speakers else ''}{last:.1f} of {np.log2(m):.1f} bits"
            text = f"{crowd_of(m, run.speakers)}: {figure_of}, {means}"
            px, py = sheet.place_of(float(x[-1]), last)
            offsets = sorted(range(-200, 200, 4), key=abs)
            spots = [Spot(px - 6, py + d, 1, float(d < 0)) for d in offsets if abs(d) > 6]
            sheet.label(text, spots, colour, weight="bold")
        sheet.place_labels()

    draw(path, paint, frame.inches)


def bits_in(events: Sequence[Event], crowd: float) -> FloatArray:
    """Compute ``log2(M p)`` of the watched speaker among M people at each reading, or NaN.

    A reading's own crowd and evidence give D, the evidence of all enrolled speakers against the
    watched one: ``M1 p1 = M1 LR / (D + M1)``. D then gives the bits for every other M.
    """
    return np.array([_bits(event, crowd) for event in events if isinstance(event, Reading)])


def _bits(reading: Reading, size: float) -> float:
    evidence = reading.evidence_bits
    crowds = [crowd for crowd in reading.among or () if crowd.bits is not None]
    if evidence is None or not crowds:
        return float("nan")
    # rounding of the recorded digits matters least for the smallest crowd
    smallest = min(crowds, key=lambda crowd: crowd.people)
    others = smallest.people * (2.0 ** (evidence - smallest.bits) - 1.0)
    return float(np.log2(size) + evidence - np.log2(max(others + size, 1e-300)))
