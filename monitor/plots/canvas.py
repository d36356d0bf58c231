"""Blank figures without pyplot or a screen, and saving them atomically."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from monitor.atomic import atomic_write, not_written
from monitor.errors import StoreError, UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "BLACK",
    "BLUE",
    "GREEN",
    "GREY",
    "LIGHT_BLUE",
    "ORANGE",
    "PURPLE",
    "RED",
    "check_drawing",
    "check_suffix",
    "draw",
    "format_seconds",
    "nice_seconds",
    "spread_apart",
]

# Okabe and Ito's palette: told apart with any colour vision.
BLUE, GREEN, ORANGE, RED, PURPLE = "#0072B2", "#00795A", "#B26F00", "#C44E00", "#AA5A8C"
LIGHT_BLUE = "#3D86B8"
BLACK, GREY = "#222222", "#6B6B6B"

SUFFIXES = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
STYLE = {
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "svg.hashsalt": "monitor",
    "text.parse_math": False,  # a speaker may be called $x$
}
SECOND_TICKS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30)
NICE_SECONDS = (*SECOND_TICKS, 60, 180, 600, 1800, 3600, 10800, 36000, 86400, 259200, 864000)


def check_suffix(path: Path) -> str:
    """The suffix of a picture that can be drawn, in lower case; UsageError for any other."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(f"cannot draw into {path.name!r}: let the name end in .png, .svg or .pdf")
    return suffix


def check_drawing() -> None:
    """Find out whether anything can be drawn here.

    Raises:
        StoreError: matplotlib has no place for its cache.
    """
    try:
        import matplotlib.style  # noqa: F401
    except OSError:
        raise StoreError(
            "pictures need a folder for matplotlib's cache: set MPLCONFIGDIR to one that may be "
            "written"
        ) from None


def draw(path: Path, paint: Callable[[Figure], None], inches: tuple[float, float]) -> None:
    """Paint a figure of 100 dots per inch and write it as PNG, SVG or PDF, by suffix; mode 0600.

    The same input gives the same bytes, and an interrupted call leaves no half file.

    Raises:
        UsageError: another suffix.
        StoreError: the place cannot be written.
    """
    suffix = check_suffix(path)
    check_drawing()
    import matplotlib.style
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with warnings.catch_warnings(), matplotlib.style.context(["default", STYLE]):
        # A speaker's name in another script is drawn as boxes; that is no reason to complain.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure = Figure(figsize=inches, dpi=100)
        FigureCanvasAgg(figure)
        paint(figure)
        try:
            with atomic_write(path) as file:
                figure.savefig(file, format=suffix[1:], dpi=100, metadata=SUFFIXES[suffix])
        except OSError as error:
            raise not_written(path, error) from error


def format_seconds(seconds: float) -> str:
    """A length for people.

    Examples:
        >>> [format_seconds(s) for s in (0.3, 12.34, 60, 100, 600, 5400, 36000)]
        ['0.3 s', '12 s', '1 min', '100 s', '10 min', '1.5 h', '10 h']
    """
    if seconds < 10:
        return f"{round(seconds, 2 if seconds < 0.1 else 1):g} s"
    if seconds < 600:
        whole = round(seconds)
        return f"{whole // 60} min" if whole % 60 == 0 else f"{whole} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    return f"{round(seconds / 3600, 1):g} h"


def nice_seconds(low: float, high: float) -> list[float]:
    """Round lengths within [low, high], for ticks of a log axis; never empty.

    Examples:
        >>> nice_seconds(0.5, 70)
        [1, 3, 10, 30, 60]
    """
    inside = [tick for tick in NICE_SECONDS if low <= tick <= high]
    if len(inside) < 2:
        return [low, high] if low < high else [low]
    # Next to 30 s and 3 min, 1 min is one tick too many only when there are many of them.
    return inside if len(inside) <= 8 else inside[::2]


def spread_apart(wanted: list[float], sizes: list[float], low: float, high: float) -> list[float]:
    """Centres near ``wanted`` (ascending) so that labels of these sizes do not touch.

    Labels that would touch form one group, centred on the mean of what its members wanted.

    Examples:
        >>> spread_apart([0.0, 0.5, 3.0], [1.0, 1.0, 1.0], -5.0, 5.0)
        [-0.25, 0.75, 3.0]
        >>> spread_apart([4.9, 5.0], [1.0, 1.0], -5.0, 5.0)
        [3.5, 4.5]
    """
    groups: list[tuple[list[int], float, float]] = []  # members, centre, size
    for i, (centre, size) in enumerate(zip(wanted, sizes, strict=True)):
        groups.append(([i], min(max(centre, low + size / 2), high - size / 2), size))
        while len(groups) > 1:
            (before, at, breadth), (after, beside, other) = groups[-2:]
            if beside - at >= (breadth + other) / 2:
                break
            members, total = before + after, breadth + other
            offsets, reached = [], 0.0
            for member in members:
                offsets.append(reached + sizes[member] / 2 - total / 2)
                reached += sizes[member]
            mean = sum(
                wanted[m] - offset for m, offset in zip(members, offsets, strict=True)
            ) / len(members)
            middle = min(max(mean, low + total / 2), high - total / 2)
            groups[-2:] = [(members, middle, total)]
    centres = [0.0] * len(wanted)
    for members, middle, total in groups:
        reached = middle - total / 2
        for member in members:
            centres[member] = reached + sizes[member] / 2
            reached += sizes[member]
    return centres
