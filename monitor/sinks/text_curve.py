"""A curve drawn with braille dots, two by four to a character."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from itertools import pairwise

BINS_PER_DECADE = 64
EMPTY, CEILING, CHANCE, THRESHOLD = " ", "━", "·", "┄"
PROTECTED = "o"
_MEANING = {
    "⣀": "bits",
    PROTECTED: "protected",
    CEILING: "maximum",
    THRESHOLD: "threshold",
    CHANCE: "chance",
}
# Bit of the dot in column 0 or 1, row 0 (top) to 3, after U+2800.
DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))


class TextCurve:
    """Points on a log axis, only the latest of each bin, so that memory grows with the decades."""

    def __init__(self) -> None:
        self._bins: dict[int, tuple[float, float]] = {}
        self._fresh: set[int] = set()

    def add(self, seconds: float, bits: float, *, fresh: bool = False) -> None:
        """Add a point; ignore it if the seconds are not positive or a value is not finite."""
        if seconds > 0 and math.isfinite(seconds) and math.isfinite(bits):
            bin_index = math.floor(math.log10(seconds) * BINS_PER_DECADE)
            self._bins[bin_index] = (seconds, bits)
            if fresh:
                self._fresh.add(bin_index)

    @property
    def points(self) -> list[tuple[float, float]]:
        """(seconds, bits) in order of seconds."""
        return [self._bins[key] for key in sorted(self._bins)]

    @property
    def breaks(self) -> frozenset[float]:
        """Seconds of the points at which a new line starts."""
        return frozenset(self._bins[key][0] for key in self._fresh)


def legend(lines: Sequence[str]) -> str:
    """Format the marks of a drawing, each with its meaning."""
    marks = set("".join(lines))
    if any("\u2800" < mark <= "\u28ff" for mark in marks):
        marks.add("⣀")
    return "  ".join(f"{mark} {words}" for mark, words in _MEANING.items() if mark in marks)


def row_of(bits: float, height: int, y_range: tuple[float, float]) -> int:
    """Return the line among ``height`` on which these bits are drawn; 0 is the top line."""
    bottom, top = y_range
    return _dot(bits, height, y_range) // 4 if top > bottom else 0


def _dot(bits: float, height: int, y_range: tuple[float, float]) -> int:
    bottom, top = y_range
    down = round((top - bits) * (4 * height - 1) / max(top - bottom, 1e-9))
    return min(max(down, 0), 4 * height - 1)


def draw_curve(
    points: Sequence[tuple[float, float]],
    *,
    width: int,
    height: int,
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    levels: Sequence[tuple[float, str]] = (),
    breaks: Container[float] = (),
) -> list[str]:
    """Draw the curve as ``height`` lines of ``width`` characters, from the top."""
    columns = 2 * width
    (first, last), (bottom, top) = x_range, y_range
    per_log = (columns - 1) / max(math.log(last / first), 1e-9)

    def place(seconds: float, bits: float) -> tuple[int, int]:
        x = round(math.log(seconds / first) * per_log)
        return min(max(x, 0), columns - 1), _dot(bits, height, y_range)

    cells = [[0] * width for _ in range(height)]
    before: tuple[int, int] | None = None
    for seconds, bits in points:
        x1, y1 = place(seconds, bits)
        x0, y0 = (x1, y1) if before is None or seconds in breaks else before
        steps = max(abs(x1 - x0), abs(y1 - y0), 1)
        for i in range(steps + 1):
            x, y = x0 + round((x1 - x0) * i / steps), y0 + round((y1 - y0) * i / steps)
            cells[y // 4][x // 2] |= DOTS[x % 2][y % 4]
        before = (x1, y1)
    level_marks = {row_of(b, height, y_range): mark for b, mark in levels if bottom <= b <= top}
    return [
        "".join(chr(0x2800 + dots) if dots else level_marks.get(row, EMPTY) for dots in line)
        for row, line in enumerate(cells)
    ]


def draw_behind(
    drawing: list[str], curve: TextCurve, x_range: tuple[float, float], y_range: tuple[float, float]
) -> list[str]:
    """Add the protected side's curve to the empty places of a drawing."""
    lines = [list(line) for line in drawing]
    (begin, end), columns = x_range, len(lines[0])
    for (x0, y0), (x1, y1) in pairwise(curve.points):
        if x1 in curve.breaks:
            continue
        first, last = (
            round(math.log(x / begin) / math.log(end / begin) * (columns - 1)) for x in (x0, x1)
        )
        for column in range(max(first, 0), min(last, columns - 1) + 1):
            bits = y0 + (y1 - y0) * (column - first) / max(last - first, 1)
            row = row_of(bits, len(drawing), y_range)
            if y_range[0] <= bits < y_range[1] and lines[row][column] == " ":
                lines[row][column] = PROTECTED
    return ["".join(line) for line in lines]


TICKS = (0.1, 0.3, 1, 3, 10, 30, 60, 180, 600, 1800, 3600, 10800, 36000, 86400)


def axis(first: float, last: float, width: int) -> str:
    """Format the log axis of lengths, with round values at their places."""
    text = ""
    for tick in TICKS:
        name = f"{tick:g} s" if tick < 60 else f"{tick // 60:g} min"
        name = name if tick < 3600 else f"{tick // 3600:g} h"
        if first <= tick <= last:
            across = math.log(tick / first) / math.log(last / first)
            at = round(across * (width - 1)) - len(name) // 2
            if at >= len(text) + (2 if text else 0) and at + len(name) <= width - 10:
                text = f"{text:<{at}}{name}"
    return f"{text:<{width - 9}}of speech"
