"""A picture as three things: in a page, as SVG and as PNG, drawn by one function."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from monitor.atomic import atomic_write, not_written
from monitor.plots.canvas import check_drawing
from monitor.plots.inline import inline_figure, standalone_svg
from monitor.plots.palette import PAGE, PRINT, Palette, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["save_picture"]


def save_picture(
    paint: Callable[[Figure, Palette], None],
    stem: Path,
    description: str,
    inches: tuple[float, float],
) -> str:
    """Write ``STEM.svg`` and ``STEM.png`` (mode 0600) and return the picture for a page.

    Args:
        paint: draws on a figure in the colours of a palette.
        stem: the files without their suffix; its name is that of the picture, letters and digits.
        description: what it shows, for those who do not see it.
        inches: width and height.

    Raises:
        StoreError: the place cannot be written.
    """
    check_drawing()
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    inline = inline_figure(lambda figure: paint(figure, PAGE), stem.name, description, inches)
    path = stem.with_name(f"{stem.name}.svg")
    try:
        with atomic_write(path) as file:
            file.write(standalone_svg(inline, PRINT).encode())
        path = stem.with_name(f"{stem.name}.png")
        with styled(PRINT, inches, dpi=200) as figure:
            FigureCanvasAgg(figure)
            paint(figure, PRINT)
            with atomic_write(path) as file:
                figure.savefig(file, format="png", metadata={"Software": None})
    except OSError as error:
        raise not_written(path, error) from error
    return inline
