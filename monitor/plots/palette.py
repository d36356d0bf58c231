"""Colours and style of pictures: those of a page, which knows light and dark, and of print."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from monitor.plots.canvas import BLACK, BLUE, GREEN, GREY, LIGHT_BLUE, ORANGE, PURPLE, RED, STYLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PAGE", "PRINT", "Palette", "styled"]


@dataclass(frozen=True)
class Palette:
    """What a picture is drawn in.

    Attributes:
        ink: of letters.
        muted: of axes and what stands behind.
        line: of the grid.
        colours: of what is told apart.
    """

    ink: str
    muted: str
    line: str
    colours: tuple[str, ...]


PAGE = Palette("#010101", "#020202", "#030303", tuple(f"#0a0b0{i}" for i in range(1, 7)))
"""Stand-ins, exchanged for ``var(--ink)``, ``--muted``, ``--line`` and ``--s1`` to ``--s6``."""
PRINT = Palette(BLACK, GREY, "#E2E2E2", (BLUE, RED, GREEN, PURPLE, ORANGE, LIGHT_BLUE))
"""On white, told apart with any colour vision."""


@contextmanager
def styled(palette: Palette, inches: tuple[float, float], dpi: float = 72) -> Iterator[Figure]:
    """A blank figure without pyplot or a screen; what is drawn on it within is of one style."""
    import matplotlib.style
    from matplotlib.figure import Figure

    style: dict[str, Any] = {
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
    with warnings.catch_warnings(), matplotlib.style.context(["default", style]):
        # a name in another script is drawn as boxes; that is no reason to complain
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield Figure(figsize=inches, dpi=dpi, layout="constrained")
