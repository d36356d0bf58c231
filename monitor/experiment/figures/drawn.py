"""What a figure of an experiment leaves: files, and what the page says of it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monitor.atomic import atomic_write, not_written
from monitor.plots.files import save_picture
from monitor.plots.palette import Palette

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Drawn", "colour_of", "draw_all", "save_csv"]


@dataclass(frozen=True)
class Drawn:
    """A figure to be drawn.

    Attributes:
        name: of its files.
        title: what it shows.
        caption: how it is read.
        head: of the columns of its data.
        rows: its data.
        paint: draws it on a figure, in the colours of a palette.
        inches: width and height.
    """

    name: str
    title: str
    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Any]]
    paint: Callable[[Figure, Palette], None]
    inches: tuple[float, float]


def draw_all(figures: Iterable[Drawn], folder: Path) -> dict[str, str]:
    """Write each as SVG, PNG and CSV; returns the pictures for a page, by name.

    Raises:
        StoreError: the folder cannot be written.
    """
    made = {}
    for each in figures:
        save_csv(folder / f"{each.name}.csv", each.head, each.rows)
        made[each.name] = save_picture(each.paint, folder / each.name, each.title, each.inches)
    return made


def save_csv(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table, mode 0600; None is an empty cell, numbers have seven digits.

    Raises:
        StoreError: the place cannot be written.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    for row in rows:
        writer.writerow([f"{x:.7g}" if isinstance(x, float) else x for x in row])
    try:
        with atomic_write(path) as file:
            file.write(text.getvalue().encode())
    except OSError as error:
        raise not_written(path, error) from error


def colour_of(palette: Palette, system: str, systems: Sequence[str]) -> str:
    """The colour of a system: the same in every figure."""
    return palette.colours[list(systems).index(system) % len(palette.colours)]
