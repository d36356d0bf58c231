"""A picture with bits upwards and speech across, and labels that find a free place."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from monitor.plots.canvas import BLACK, GREY, format_seconds
from monitor.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.text import Text

DOTS_PER_INCH = 100  # positions are in dots, from the lower left corner of the picture
WIDTH = 840
LINE, HATCH = "#E3E6EA", "#C9CED4"
BOX = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
_TICKS = (
    *(1, 10, 60, 600, 3600, 36000, 86400, 3, 30, 180, 1800, 10800, 864000, 259200, 0.1, 0.01),
    *(5, 2, 20, 120, 300, 0.3, 0.03, 0.5),
)
"""Lengths in seconds, the most useful ticks first."""
_MARGIN = 12
_NARROW = 600


class Spot(NamedTuple):
    """A point, and the part of a label at it: 0 for the left or lower edge, 1 for the opposite."""

    x: float
    y: float
    part_x: float
    part_y: float


@dataclass(frozen=True)
class Frame:
    """Texts and limits around the curves."""

    title: str
    notes: str  # statements below the picture, one per line before wrapping
    marks: Mapping[float, str]  # text at the right edge by bits
    marked: str  # heading of these texts
    across: str  # label of the lower axis
    # Limits in seconds and in bits. Above these there is room for labels.
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    width: int = WIDTH  # in dots; small text below 600

    @property
    def is_narrow(self) -> bool:
        """True if the picture is for a phone."""
        return self.width < _NARROW

    @property
    def size(self) -> int:
        """Height of small text in dots."""
        return 11 if self.is_narrow else 13

    @property
    def title_size(self) -> int:
        """Height of the title's text in dots."""
        return 15 if self.is_narrow else 19

    @property
    def title_lines(self) -> list[str]:
        """The title, wrapped to the picture."""
        return textwrap.wrap(
            self.title, int((self.width - 2 * _MARGIN) / (0.57 * self.title_size))
        ) or [""]

    @property
    def note_lines(self) -> list[str]:
        """The notes, wrapped to the picture."""
        columns = int((self.width - 2 * _MARGIN) / (0.54 * (self.size - 1)))
        lines = self.notes.split("\n")
        return [w for line in lines for w in textwrap.wrap(line, columns, break_on_hyphens=False)]

    @property
    def head(self) -> float:
        """Dots above the axes."""
        return 14 + 1.25 * self.title_size * len(self.title_lines) + 2.1 * self.size

    @property
    def foot(self) -> float:
        """Dots below the axes."""
        return 14 + 1.3 * (self.size - 1) * len(self.note_lines) + 3.6 * self.size

    @property
    def inches(self) -> tuple[float, float]:
        """Width and height, enough for all lines of text."""
        plot = 330 + 70 * (self.y_range[0] < -2)
        return self.width / DOTS_PER_INCH, (self.head + plot + self.foot) / DOTS_PER_INCH


class Sheet:
    """Axes with texts at their edges. Labels cover neither lines nor each other, if possible."""

    def __init__(self, figure: Figure, frame: Frame) -> None:
        self.figure, self.frame, self.size = figure, frame, frame.size
        self.width, self.height = np.array(frame.inches) * DOTS_PER_INCH
        self._lines: list[FloatArray] = []
        self._labels: list[tuple[str, Sequence[Spot], dict[str, Any]]] = []
        self._taken: list[tuple[float, float, float, float]] = []
        widest = max((self.extent(text)[0] for text in frame.marks.values()), default=0.0)
        self.left, right = (28.0 if frame.is_narrow else 38.0), 16 + max(widest, 2 * self.size)
        self.right, self.bottom = self.width - right, frame.foot
        self.top = self.height - frame.head
        low, high = frame.y_range
        room = (3.4 if frame.is_narrow else 2.0) * self.size
        self.highest = high + (high - low) * room / (self.top - self.bottom - room)
        box = (self.left, self.bottom, self.right - self.left, self.top - self.bottom)
        self.axes = figure.add_axes(
            tuple(np.array(box) / (self.width, self.height, self.width, self.height)),
            xscale="log", xlim=frame.x_range, ylim=(low, self.highest),
        )  # fmt: skip
        self.axes.set_axis_off()
        self._surround()

    def write(self, x: float, y: float, text: str, **style: Any) -> Text:
        """Write text at a position in dots."""
        plain = {"va": "center", "color": BLACK, "fontsize": self.size, "linespacing": 1.2}
        style = {**plain, **style}
        style["fontsize"] *= 72 / DOTS_PER_INCH
        return self.figure.text(x / self.width, y / self.height, text, **style)

    def extent(self, text: str, **style: Any) -> FloatArray:
        """Measure the width and height of a text in dots."""
        written = self.write(0, 0, text, **{**style, "bbox": None})
        size = np.array(written.get_window_extent().size)
        written.remove()
        return size

    def at(self, x: Iterable[float], y: Iterable[float]) -> FloatArray:
        """Return positions in dots, shape (n, 2), of seconds and bits."""
        return np.asarray(self.axes.transData.transform(np.column_stack([[*x], [*y]])))

    def place_of(self, x: float, y: float) -> tuple[float, float]:
        """Return the position in dots of one point."""
        ((px, py),) = self.at([x], [y])
        return float(px), float(py)

    def line(self, x: FloatArray, y: FloatArray, colour: str, width: float, **style: Any) -> None:
        """Draw a line that labels avoid, without its NaN values."""
        self.axes.plot(x, y, color=colour, linewidth=width, **style)
        points = self.at(x, y)[np.isfinite(y)]
        if len(points):
            steps = np.append(0, np.cumsum(np.hypot(*np.diff(points, axis=0).T)))
            dense = np.arange(0, steps[-1] + 1, 1.5)
            self._lines.append(np.column_stack([np.interp(dense, steps, p) for p in points.T]))

    def label(self, text: str, spots: Sequence[Spot], colour: str, **style: Any) -> None:
        """Add a label for `place_labels`, which uses the spot with the lowest cost."""
        self._labels.append((text, spots, {"color": colour, **style}))

    def place_labels(self) -> None:
        """Write the labels in the order in which they were added."""
        for text, spots, style in self._labels:
            size = self.extent(text, **style)
            _, x, y, anchor_x = min(
                (self._place(spot, size) for spot in spots), key=lambda placed: placed[0]
            )
            width, height = size
            self._taken.append((x - 3, y - 2, x + width + 3, y + height + 2))
            centre = (x + width / 2, y + height / 2)
            lines = "right" if anchor_x == 1 else "left"
            self.write(*centre, text, ha="center", multialignment=lines, zorder=20, **style)

    def _place(self, spot: Spot, size: FloatArray) -> tuple[float, float, float, float]:
        """Return a spot's cost, the label's lower left corner, and the spot's ``part_x``."""
        (width, height), lowest = size, self.bottom + 2
        x = min(max(spot.x - spot.part_x * width, self.left + 2), self.right - width - 2)
        y = min(max(spot.y - spot.part_y * height, lowest), self.top - height - 2)
        moved = abs(x - spot.x + spot.part_x * width) + abs(y - spot.y + spot.part_y * height)
        cost = 0.01 * moved * (moved > 40)
        for points in self._lines:
            inside = (points > (x - 4, y - 3)) & (points < (x + width + 4, y + height + 3))
            cost += inside.all(axis=1).sum()
        for left, bottom, right, top in self._taken:
            cost += 1000 * (x < right and left < x + width and y < top and bottom < y + height)
        return cost, x, y, spot.part_x

    def _surround(self) -> None:
        frame, size = self.frame, self.size
        title = {"va": "top", "weight": "bold", "linespacing": 1.1}
        self._write_across(self.height - 10, frame.title_lines, frame.title_size, **title)
        self._write_across(10, frame.note_lines, size - 1, va="bottom", color=GREY)
        self.write(_MARGIN, self.top + 8, "bits", va="bottom", color=GREY)
        end = self.width - _MARGIN
        self.write(end, self.top + 8, frame.marked, va="bottom", ha="right", color=GREY)
        middle = (self.left + self.right) / 2
        low = self.bottom - 1.6 * size - 6
        self.write(middle, low, frame.across, ha="center", va="top", color=GREY)
        self._write_lengths()
        shown: list[float] = []
        for bits, text in frame.marks.items():
            y = self.place_of(frame.x_range[0], bits)[1]
            if all(abs(y - other) > 1.25 * size for other in shown):
                shown.append(y)
                colour = GREY if bits == 0 else LINE
                self.axes.axhline(bits, color=colour, linewidth=0.8, zorder=0)
                number = f"{round(bits, 1):g}".replace("-", "\N{MINUS SIGN}")
                self.write(self.left - 6, y, number, ha="right")
                self.write(self.right + 8, y, text)

    def _write_across(self, y: float, lines: Sequence[str], size: float, **style: Any) -> None:
        """Write lines from margin to margin, smaller if their letters are wide."""
        text, room = "\n".join(lines), self.width - 2 * _MARGIN
        while self.extent(text, fontsize=size, **style)[0] > room:
            size *= 0.97
        self.write(_MARGIN, y, text, fontsize=size, **style)

    def _write_lengths(self) -> None:
        """Write round lengths below the axis, as many as fit."""
        begin, end = self.frame.x_range
        ticks = [tick for tick in _TICKS if begin <= tick <= end]
        shown: list[float] = []
        for tick in ticks if len(ticks) > 1 else (begin, end):
            x = self.place_of(tick, 0.0)[0]
            if all(abs(x - other) > 4.2 * self.size for other in shown):
                shown.append(x)
                name = format_seconds(tick)
                self.write(x, self.bottom - 5, name, ha="center", va="top")
