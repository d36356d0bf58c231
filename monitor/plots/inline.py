"""Pictures inside a page: SVG in the page's own colours, with text that stays text.

The pictures of a page share its style, so that one of them takes kilobytes and no font.
"""

from __future__ import annotations

import html
import io
import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

from monitor.plots.canvas import STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLOURS", "INK", "LINE", "MUTED", "inline_svg"]

INK, MUTED, LINE = "#010101", "#020202", "#030303"
"""Stand-ins, exchanged for ``var(--ink)``, ``var(--muted)`` and ``var(--line)``."""

COLOURS = tuple(f"#0a0b0{i}" for i in range(1, 7))
"""Stand-ins for ``var(--s1)`` to ``var(--s6)``, the colours of the systems."""

_VARIABLES = {INK: "ink", MUTED: "muted", LINE: "line"} | {
    colour: f"s{i}" for i, colour in enumerate(COLOURS, start=1)
}
_INCHES = (4.6, 3.1)  # so wide that its letters can be read on a phone


def inline_svg(paint: Callable[[Axes], object], name: str, description: str) -> str:
    """Paint one pair of axes and return an ``<svg>`` element to put into a page.

    Args:
        paint: draws on the axes, with the colours of this module.
        name: of the picture, unique in its page: letters only.
        description: what it shows, for those who do not see it.

    Returns:
        markup without ids, fonts, scripts or addresses of its own; the same for the same input.

    Example:
        >>> picture = inline_svg(lambda axes: axes.plot([0, 1], color=INK), "a", "a <line>")
        >>> "var(--ink)" in picture, 'aria-label="a &lt;line&gt;"' in picture
        (True, True)
    """
    import matplotlib.style
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    style = {
        **STYLE,
        "svg.fonttype": "none",
        "font.size": 9,
        "axes.edgecolor": MUTED,
        "axes.labelcolor": INK,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": LINE,
        "grid.linewidth": 0.6,
        "text.color": INK,
        "xtick.color": MUTED,
        "ytick.color": MUTED,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
        "legend.frameon": False,
        "legend.fontsize": 8,
        "lines.linewidth": 1.6,
    }
    with warnings.catch_warnings(), matplotlib.style.context(["default", style]):
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure = Figure(figsize=_INCHES, dpi=72, layout="constrained")
        FigureCanvasSVG(figure)
        figure.patch.set_visible(False)
        axes = figure.add_subplot()
        axes.patch.set_visible(False)
        paint(axes)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    return _tidy(text.getvalue(), name, description)


def _tidy(text: str, name: str, description: str) -> str:
    head, body = re.split(r"<svg[^>]*>", text, maxsplit=1)
    del head  # an XML declaration and the address of a document type
    (box,) = re.findall(r'viewBox="([^"]*)"', text)
    litter = r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->|<defs>\s*</defs>"
    body = re.sub(litter, "", body, flags=re.DOTALL)
    used = set(re.findall(r"#([\w-]+)[\")]", body))
    body = re.sub(r' id="([^"]*)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", body)
    body = re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", body)
    body = body.replace("xlink:href", "href")
    # the page's font: what stays of the shorthand is the size
    body = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", body)
    for colour, variable in _VARIABLES.items():
        body = body.replace(colour, f"var(--{variable})")
    body = re.sub(r'"[^"]*"', lambda m: re.sub(r"(\.\d\d)\d+", r"\1", m[0]), body)
    body = re.sub(r"\n\s*", "\n", body)
    label = html.escape(description, quote=True)
    return f'<svg viewBox="{box}" role="img" aria-label="{label}">{body.strip()}\n'
