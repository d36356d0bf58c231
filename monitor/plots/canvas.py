"""Blank figures without pyplot, in the colours of a page or of print; saved atomically."""

from __future__ import annotations

import html
import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import IO, TYPE_CHECKING

import numpy as np

from monitor.errors import StoreError, UsageError
from monitor.files import atomic_write, write_text, writing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


def legend_above(axes: Axes, columns: int = 4) -> None:
    """Put the legend above the axes, so that it covers no points."""
    axes.legend(
        loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns, borderaxespad=0.2,
        borderpad=0.2, handlelength=1.6, columnspacing=1.2, frameon=False,
    )  # fmt: skip


def percents(axis: Axis) -> None:
    """Format an axis as percentages."""

    def percent(value: float) -> str:
        return f"{np.format_float_positional(100 * value, 3, trim='-', fractional=False)} %"

    _write(axis, percent)


def numbers(axis: Axis) -> None:
    """Format an axis as numbers with thousands separators."""
    _write(axis, lambda value: f"{value:,g}")


def _write(axis: Axis, text: Callable[[float], str]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    if axis.get_scale() == "log":
        axis.set_major_locator(LogLocator(numticks=7))
        axis.set_minor_formatter(NullFormatter())


# Okabe and Ito's palette, distinguishable with any colour vision.
BLUE, GREEN, ORANGE, RED, PURPLE = "#0072B2", "#00795A", "#B26F00", "#C44E00", "#AA5A8C"
LIGHT_BLUE = "#3D86B8"
BLACK, GREY = "#222222", "#6B6B6B"

_DARK_THEME = (
    "@media screen and (prefers-color-scheme:dark){svg{filter:invert(.93) hue-rotate(180deg)}}"
)
SUFFIXES = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
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
    """Return a supported suffix in lower case; raise UsageError for any other."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(f"invalid picture name {path.name!r}: use .png, .svg or .pdf")
    return suffix


def check_drawing() -> None:
    """Raise StoreError if matplotlib cannot be used."""
    try:
        import matplotlib.style  # noqa: F401
    except OSError:
        raise StoreError(
            "pictures need a folder for matplotlib's cache: set MPLCONFIGDIR to a writable folder"
        ) from None


def draw(path: Path, paint: Callable[[Figure], None], inches: tuple[float, float]) -> None:
    """Paint a figure and write it as PNG (200 dots per inch), SVG or PDF, by suffix; mode 0600.

    The same input gives the same bytes, and an interrupted call leaves no half file.
    """
    suffix = check_suffix(path)
    figure = make_figure(paint, inches)
    with writing(path), atomic_write(path) as file:
        write_figure(figure, file, suffix)


def make_figure(paint: Callable[[Figure], None], inches: tuple[float, float]) -> Figure:
    """Paint a figure of 100 dots per inch, in the style of all pictures of a run."""
    check_drawing()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with _in_style():
        figure = Figure(figsize=inches, dpi=100)
        FigureCanvasAgg(figure)
        paint(figure)
    return figure


def write_figure(figure: Figure, file: IO[bytes], suffix: str) -> None:
    """Write a figure to an open file in the format of ``suffix``, always with the same bytes."""
    with _in_style():
        if suffix != ".svg":
            figure.savefig(file, format=suffix[1:], dpi=200, metadata=SUFFIXES[suffix])
            return
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata=SUFFIXES[suffix])
        file.write(with_dark_theme(text.getvalue()).encode())


def with_dark_theme(svg: str) -> str:
    """Let a browser with a dark theme show an SVG file in light colours of the same hue."""
    return re.sub(r"(<svg[^>]*>)", rf"\1<style>{_DARK_THEME}</style>", svg, count=1)


_STYLE_LOCK = RLock()  # matplotlib's style and the warning filters are global to the process


@contextmanager
def _in_style(style: Mapping[str, object] = STYLE) -> Iterator[None]:
    import matplotlib.style

    style_context = matplotlib.style.context(["default", {**style}])
    with _STYLE_LOCK, warnings.catch_warnings(), style_context:
        # Names in other scripts may be drawn as boxes, which needs no warning.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def format_seconds(seconds: float) -> str:
    """Format a duration."""
    if seconds < 10:
        return f"{round(seconds, 2 if seconds < 0.1 else 1):g} s"
    if seconds < 600:
        total = round(seconds)
        return f"{total // 60} min" if total % 60 == 0 else f"{total} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    return f"{round(seconds / 3600, 1):g} h"


def nice_seconds(low: float, high: float) -> list[float]:
    """Return round lengths within [low, high], for ticks of a log axis; never empty."""
    inside = [tick for tick in NICE_SECONDS if low <= tick <= high]
    if len(inside) < 2:
        return [low, high] if low < high else [low]
    # With more than 8 ticks, every other one is enough.
    return inside if len(inside) <= 8 else inside[::2]


def scale_seconds(axes: Axes, low: float, high: float) -> None:
    """Scale the lower axis by the logarithm of seconds, with round ticks within [low, high]."""
    axes.set_xscale("log")
    ticks = nice_seconds(low, high)
    axes.set_xticks(ticks, [format_seconds(tick) for tick in ticks])
    axes.set_xticks([], minor=True)


def spread_apart(targets: list[float], size: float, low: float, high: float) -> list[float]:
    """Place centres near ``targets`` (ascending) so that labels of this size do not touch.

    Labels that would touch form one group, centred on the mean of its members' targets.

    Examples:
        >>> spread_apart([0.0, 0.5, 3.0], 1.0, -5.0, 5.0)
        [-0.25, 0.75, 3.0]
        >>> spread_apart([4.9, 5.0], 1.0, -5.0, 5.0)
        [3.5, 4.5]
    """
    from scipy.optimize import isotonic_regression

    if not targets:
        return []
    stacked = (np.arange(len(targets)) + 0.5) * size  # centres without gaps, from 0
    shifts = isotonic_regression(np.array(targets) - stacked).x
    centres: list[float] = (np.clip(shifts, low, high - len(targets) * size) + stacked).tolist()
    return centres


@dataclass(frozen=True)
class Palette:
    """Colours of a picture."""

    ink: str
    muted: str
    line: str
    colours: tuple[str, ...]


PAGE = Palette("#010101", "#020202", "#030303", tuple(f"#0a0b0{i}" for i in range(1, 7)))
"""Placeholders for ``var(--ink)``, ``--muted``, ``--line`` and ``--s1`` to ``--s6``."""
PRINT = Palette(BLACK, GREY, "#E2E2E2", (BLUE, RED, GREEN, PURPLE, ORANGE, LIGHT_BLUE))
"""For a white background, distinguishable with any colour vision."""


@contextmanager
def style_figure(
    palette: Palette, inches: tuple[float, float], dpi: float = 72
) -> Iterator[Figure]:
    """Yield a blank figure without pyplot or a screen, in the style of all pictures."""
    from matplotlib.figure import Figure

    style = {
        **STYLE,
        "svg.fonttype": "none",
        "font.size": 9,
        "axes.edgecolor": palette.muted,
        "axes.labelcolor": palette.ink,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": palette.line,
        "grid.linewidth": 0.6,
        "text.color": palette.ink,
        "xtick.color": palette.muted,
        "ytick.color": palette.muted,
        "xtick.labelcolor": palette.ink,
        "ytick.labelcolor": palette.ink,
        "legend.frameon": False,
        "legend.fontsize": 8,
        "lines.linewidth": 1.6,
    }
    with _in_style(style):
        yield Figure(figsize=inches, dpi=dpi, layout="constrained")


# The pictures of a page use its style, so each takes only kilobytes and embeds no font.

INK, MUTED, LINE, COLOURS = PAGE.ink, PAGE.muted, PAGE.line, PAGE.colours
_VARIABLES = {INK: "ink", MUTED: "muted", LINE: "line"} | {
    colour: f"s{i}" for i, colour in enumerate(COLOURS, start=1)
}
_INCHES = (4.6, 3.1)  # narrow enough for legible text on a phone


def inline_svg(paint: Callable[[Axes], object], name: str, description: str) -> str:
    """Paint one pair of axes and return an ``<svg>`` element to put into a page."""

    def alone(figure: Figure) -> None:
        paint(figure.add_subplot())

    return inline_figure(alone, name, description, _INCHES)


def inline_figure(
    paint: Callable[[Figure], object], name: str, description: str, inches: tuple[float, float]
) -> str:
    """Draw a figure with several pairs of axes and return an ``<svg>`` element for a page."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    with style_figure(PAGE, inches) as figure:
        FigureCanvasSVG(figure)
        figure.patch.set_visible(False)
        paint(figure)
        for axes in figure.axes:
            axes.patch.set_visible(False)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    return _tidy(text.getvalue(), name, description)


def standalone_svg(inline: str) -> str:
    """Turn a picture of `inline_figure` into an SVG file on white, in the colours of print."""
    colours = (PRINT.ink, PRINT.muted, PRINT.line, *PRINT.colours)
    for stand_in, colour in zip(_VARIABLES, colours, strict=True):
        inline = inline.replace(f"var(--{_VARIABLES[stand_in]})", colour)
    head, body = inline.split(">", 1)
    (box,) = re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', head)
    return with_dark_theme(
        f'{head} xmlns="http://www.w3.org/2000/svg" width="{box[0]}" height="{box[1]}" '
        'font-family="DejaVu Sans, sans-serif"><rect width="100%" height="100%" fill="#fff"/>'
        f"{body}"
    )


def _tidy(text: str, name: str, description: str) -> str:
    head, body = re.split(r"<svg[^>]*>", text, maxsplit=1)
    del head  # XML declaration and document type
    (box,) = re.findall(r'viewBox="([^"]*)"', text)
    litter = r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->|<defs>\s*</defs>"
    body = re.sub(litter, "", body, flags=re.DOTALL)
    used = set(re.findall(r"#([\w-]+)[\")]", body))
    body = re.sub(r' id="([^"]*)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", body)
    body = re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", body)
    body = body.replace("xlink:href", "href")
    # keep only the size of the font shorthand: the page has its own font
    body = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", body)
    for colour, variable in _VARIABLES.items():
        body = body.replace(colour, f"var(--{variable})")
    body = re.sub(r'"[^"]*"', lambda m: re.sub(r"(\.\d\d)\d+", r"\1", m[0]), body)
    body = re.sub(r"\n\s*", "\n", body)
    label = html.escape(description, quote=True)
    return f'<svg viewBox="{box}" role="img" aria-label="{label}">{body.strip()}\n'


def save_picture(
    paint: Callable[[Figure, Palette], None],
    stem: Path,
    description: str,
    inches: tuple[float, float],
) -> str:
    """Write ``STEM.svg`` and ``STEM.png`` (mode 0600) and return the picture for a page."""
    check_drawing()
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    inline = inline_figure(lambda figure: paint(figure, PAGE), stem.name, description, inches)
    write_text(standalone_svg(inline), stem.with_name(f"{stem.name}.svg"))
    path = stem.with_name(f"{stem.name}.png")
    with style_figure(PRINT, inches, dpi=200) as figure:
        FigureCanvasAgg(figure)
        paint(figure, PRINT)
        with writing(path), atomic_write(path) as file:
            figure.savefig(file, format="png", metadata={"Software": None})
    return inline
