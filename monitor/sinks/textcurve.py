"""A curve drawn with braille dots, two by four to a character."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence

from monitor.crowds import SCALE, with_article

__all__ = [
    "CEILING", "CHANCE", "CROWD_COLUMNS", "EMPTY", "LINEAR", "PLATEAU", "PROTECTED", "ROOT",
    "THRESHOLD",
    "TextCurve", "crowd_legend", "crowd_rows", "draw_curve", "legend", "row_of",
]  # fmt: skip

CROWD_COLUMNS = 1 + max(len(crowd.name) for crowd in SCALE)

BINS_PER_DECADE = 64
EMPTY, CEILING, CHANCE, THRESHOLD = " ", "━", "·", "┄"
PLATEAU, LINEAR, ROOT = "╌", "/", "\\"
PROTECTED = "o"
_MEANING = {
    "⣀": "bits",
    PROTECTED: "protected",
    CEILING: "ceiling",
    PLATEAU: "plateau",
    THRESHOLD: "threshold",
    LINEAR: "linear",
    ROOT: "root guide",
    CHANCE: "chance",
}
# Bit of the dot in column 0 or 1, row 0 (top) to 3, after U+2800.
DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))


class TextCurve:
    """Points on a log axis, the latest of each bin: memory grows with the decades only.

    Examples:
        >>> curve = TextCurve()
        >>> for second in range(1, 10_000):
        ...     curve.add(second, 2.0)
        >>> len(curve.points) < 260
        True
    """

    def __init__(self) -> None:
        self._bins: dict[int, tuple[float, float]] = {}
        self._fresh: set[int] = set()

    def add(self, seconds: float, bits: float, *, fresh: bool = False) -> None:
        """Add a point; one without length or figure is left out.

        Args:
            seconds: along the axis.
            bits: the figure.
            fresh: the evidence began afresh: the line does not come here from the point before.
        """
        if seconds > 0 and math.isfinite(seconds) and math.isfinite(bits):
            place = math.floor(math.log10(seconds) * BINS_PER_DECADE)
            self._bins[place] = (seconds, bits)
            if fresh:
                self._fresh.add(place)

    @property
    def points(self) -> list[tuple[float, float]]:
        """(seconds, bits) in order of seconds."""
        return [self._bins[key] for key in sorted(self._bins)]

    @property
    def breaks(self) -> frozenset[float]:
        """Seconds of the points at which the line begins anew."""
        return frozenset(self._bins[key][0] for key in self._fresh)


def legend(drawn: Sequence[str]) -> str:
    """The marks of a drawing, each with its meaning.

    Examples:
        >>> legend(["━━━━", " ⣀⣠⠤", "⠤⠊  "])
        '⣀ bits  ━ ceiling'
    """
    there = set("".join(drawn))
    if any("\u2800" < mark <= "\u28ff" for mark in there):
        there.add("⣀")
    return "  ".join(f"{mark} {words}" for mark, words in _MEANING.items() if mark in there)


def row_of(bits: float, height: int, y_range: tuple[float, float]) -> int:
    """The line, of ``height``, on which these bits are drawn; 0 is the top one.

    Examples:
        >>> row_of(0.0, 10, (0.0, 5.0)), row_of(5.0, 10, (0.0, 5.0))
        (9, 0)
    """
    bottom, top = y_range
    return _dot(bits, height, y_range) // 4 if top > bottom else 0


def crowd_rows(height: int, y_range: tuple[float, float]) -> dict[int, str]:
    """Beside which lines of a drawing a crowd is named: so many bits leave one person of it.

    Examples:
        >>> crowd_rows(10, (0.0, 14.0))
        {8: 'household', 5: 'office', 2: 'village', 0: 'town'}
    """
    rows: dict[int, str] = {}
    for crowd in SCALE:
        if y_range[0] <= crowd.bits <= y_range[1]:
            rows.setdefault(row_of(crowd.bits, height, y_range), crowd.name)
    return rows


def crowd_legend(rows: Mapping[int, str]) -> str:
    """What the names beside the lines mean.

    Examples:
        >>> crowd_legend({5: "office", 0: "town"}), crowd_legend({})
        ('  right: one left of a town', '')
    """
    return f"  right: one left of {with_article(rows[min(rows)])}" if rows else ""


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
    """The curve as ``height`` lines of ``width`` characters, the top one first.

    Args:
        points: (seconds, bits), ascending; seconds > 0.
        width: characters.
        height: lines.
        x_range: seconds at the left and right edge, on a log scale.
        y_range: bits at the bottom and top edge.
        levels: (bits, character) of horizontal lines drawn behind the curve.
        breaks: seconds of points to which no line is drawn from the one before.

    Examples:
        >>> draw_curve([(1, 0.0), (10, 2.0)], width=4, height=2, x_range=(1, 10), y_range=(0, 2))
        ['  ⡠⠊', '⡠⠊  ']
    """
    columns = 2 * width
    (left, right), (bottom, top) = x_range, y_range
    per_log = (columns - 1) / max(math.log(right / left), 1e-9)

    def place(seconds: float, bits: float) -> tuple[int, int]:
        x = round(math.log(seconds / left) * per_log)
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
    behind = {row_of(b, height, y_range): mark for b, mark in levels if bottom <= b <= top}
    return [
        "".join(chr(0x2800 + dots) if dots else behind.get(row, EMPTY) for dots in line)
        for row, line in enumerate(cells)
    ]
