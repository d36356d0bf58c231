"""What the pictures of an evaluation share: how axes are written, and where a legend lies."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

__all__ = ["legend_above", "numbers", "percents"]


def legend_above(axes: Axes, columns: int = 4) -> None:
    """Above the axes: inside, some system's points would lie under it."""
    axes.legend(
        loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns, borderaxespad=0.2,
        borderpad=0.2, handlelength=1.6, columnspacing=1.2,
    )  # fmt: skip


def percents(axis: Axis) -> None:
    """Shares as per cent."""

    def percent(value: float) -> str:
        return f"{np.format_float_positional(100 * value, 3, trim='-', fractional=False)} %"

    _write(axis, percent)


def numbers(axis: Axis) -> None:
    """Numbers as they are said."""
    _write(axis, lambda value: f"{value:,g}")


def _write(axis: Axis, text: Callable[[float], str]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    if axis.get_scale() == "log":
        axis.set_major_locator(LogLocator(numticks=7))
        axis.set_minor_formatter(NullFormatter())
