"""Pictures inside a page: SVG in the page's own colours, with text that stays text.

The pictures of a page share its style, so that one of them takes kilobytes and no font.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from monitor.plots.palette import PAGE, Palette, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "INK", "LINE", "MUTED", "inline_figure", "inline_svg", "standalone_svg"]

INK, MUTED, LINE, COLOURS = PAGE.ink, PAGE.muted, PAGE.line, PAGE.colours
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

    def alone(figure: Figure) -> None:
        paint(figure.add_subplot())

    return inline_figure(alone, name, description, _INCHES)


def inline_figure(
    paint: Callable[[Figure], object], name: str, description: str, inches: tuple[float, float]
) -> str:
    """As `inline_svg`, of a figure of several pairs of axes.

    Args:
        paint: draws on the figure, with the colours of this module.
        name: of the picture, unique in its page: letters only.
        description: what it shows, for those who do not see it.
        inches: width and height, at 72 dots an inch.
    """
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    with styled(PAGE, inches) as figure:
        FigureCanvasSVG(figure)
        figure.patch.set_visible(False)
        paint(figure)
        for axes in figure.axes:
            axes.patch.set_visible(False)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    return _tidy(text.getvalue(), name, description)


def standalone_svg(inline: str, palette: Palette) -> str:
    """A picture of `inline_figure` as a file of its own, on white, in the colours of a palette.

    Example:
        >>> from monitor.plots.palette import PRINT
        >>> picture = inline_svg(lambda axes: axes.plot([0, 1], color=INK), "a", "a line")
        >>> "var(" in standalone_svg(picture, PRINT)
        False
    """
    for stand_in, colour in zip(_stand_ins(PAGE), _stand_ins(palette), strict=True):
        inline = inline.replace(f"var(--{_VARIABLES[stand_in]})", colour)
    head, body = inline.split(">", 1)
    (box,) = re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', head)
    return (
        f'{head} xmlns="http://www.w3.org/2000/svg" width="{box[0]}" height="{box[1]}" '
        'font-family="DejaVu Sans, sans-serif"><rect width="100%" height="100%" fill="#fff"/>'
        f"{body}"
    )


def _stand_ins(palette: Palette) -> tuple[str, ...]:
    return (palette.ink, palette.muted, palette.line, *palette.colours)


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
