"""Model of a report for all renderers: figures, tables, texts and pictures.

A `Document` has sections, and a `Section` has blocks. All text is plain, and renderers escape it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from monitor.types import FloatArray

_MOST_SHOWN = 60


class OneLine:
    """Base of data classes with a ``repr`` of one line, which shortens arrays and long values.

    Example:
        >>> @dataclass(repr=False)
        ... class Made(OneLine):
        ...     name: str
        ...     scores: object
        >>> Made("a", list(range(99)))
        Made(name='a', scores=<list of 99>)
    """

    def __repr__(self) -> str:
        attributes = (
            f"{attribute.name}={_shorten(getattr(self, attribute.name))}"
            for attribute in fields(self)  # type: ignore[arg-type]
        )
        return f"{type(self).__name__}({', '.join(attributes)})"


def _shorten(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"<array {value.shape}>"
    if isinstance(value, Collection) and not isinstance(value, str) and len(value) > 3:
        return f"<{type(value).__name__} of {len(value)}>"
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 3]}..."


@dataclass(frozen=True, repr=False)
class Figure:
    """One number of a report, with its interval, ceiling, floor and notes.

    Attributes:
        key: stable name in JSON, with the family first: ``"srd.mean_bits"``.
        label: name in tables, such as ``"MeanD"``.
        value: the figure on all trials; None if it is missing, with the reason in `note`.
        unit: ``"bits"``, ``"nats"``, ``"share"`` (0 to 1), ``"rank"``, ``"log10"``, ``"count"`` or
            ``""``.
        replicates: the figure on each bootstrap replicate of speakers, shape (B,), NaN if missing
            there. None without resampling.
        ceiling: maximum for this many trials and speakers, or None.
        floor: value without evidence, or None.
        ties: treatment of equal scores, such as ``"spread"``, ``"optimistic"``, ``"pooled"`` or
            ``"strict"``; empty if ties do not matter.
        note: one plain sentence if the figure is misleading or missing.
        low, high: limits of the 95 % interval; None if missing, with the reason in `note`.
        text: replacement for a value that is not a number, such as ZEBRA's tag.
        left_out: the figure without each speaker or group of speakers, shape (J,).
    """

    key: str
    label: str
    value: float | None
    unit: str
    replicates: FloatArray | None = None
    ceiling: float | None = None
    floor: float | None = None
    ties: str = ""
    note: str = ""
    low: float | None = None
    high: float | None = None
    text: str = ""
    left_out: FloatArray | None = None

    def __repr__(self) -> str:
        limits = format_limits(self)
        unit = f" {self.shown_unit}" if self.shown_unit else ""
        return f"<Figure {self.key}: {self.shown}{unit}{f' ({limits})' if limits else ''}>"

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """Lower and upper limit of the 95 % interval, None if missing."""
        return self.low, self.high

    @property
    def significant(self) -> bool:
        """True if the interval of a difference excludes zero."""
        return None not in self.limits and not self.low <= 0.0 <= self.high  # type: ignore[operator]

    @property
    def shown(self) -> str:
        """Value formatted for its unit, or its replacement."""
        return format_value(self.value, self.unit, self.text)

    @property
    def shown_unit(self) -> str:
        """Unit, or empty if the formatted value includes it."""
        return "" if self.unit in ("share", "count") else self.unit


_LONG = 1e6  # minimum bits and nats in scientific notation, such as Cllr of uncalibrated scores


def format_value(value: float | None, unit: str, text: str = "") -> str:
    """Format a number for its unit, or return ``text`` if it is not empty.

    Example:
        >>> format_value(2.3456, "bits"), format_value(0.279, "share"), format_value(28.94, "rank")
        ('2.346', '27.9 %', '28.9')
        >>> [format_value(value, "nats") for value in (None, float("inf"), 1e9)]
        ['-', 'inf', '1e+09']
        >>> [format_value(value, "") for value in (0.671, 0.82, 0)]
        ['0.671', '0.820', '0']
        >>> [format_value(value, "share") for value in (0.000557, 2.7e-34)]
        ['0.056 %', '0.0 %']
    """
    if text:
        return text
    if value is None or math.isnan(value):
        return "-"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if unit == "share":
        percent = 100 * value
        return f"{percent:.2g} %" if 5e-4 <= abs(percent) < 0.1 else f"{percent:.1f} %"
    if unit == "rank":
        return f"{value:,.1f}"
    if unit == "count":
        return f"{value:,.0f}"
    if unit in ("bits", "nats", "log10"):
        written = f"{value:.3f}" if abs(value) < _LONG else f"{value:.0e}"  # room for its limits
        return written.removeprefix("-") if float(written) == 0 else written
    # with the same digits as its limits
    return f"{value:#.3g}" if 1e-3 <= abs(value) < 100 else f"{value:.3g}"


def format_limits(figure: Figure) -> str:
    """Format the 95 % interval, or return an empty string.

    Example:
        >>> format_limits(Figure("a.b", "B", 0.5, "share", low=0.1, high=0.7))
        '10.0 to 70.0 %'
    """
    low, high = (format_value(limit, figure.unit) for limit in figure.limits)
    if "-" in (low, high):
        return ""
    return f"{low.removesuffix(' %') if high.endswith(' %') else low} to {high}"


Cell: TypeAlias = str | float | int | Figure | None
"""A cell of a table; the second line of a text is small print, such as an interval or a note."""


def format_cell(cell: Cell) -> str:
    r"""Format a cell, with the interval of a figure in a second line, and None as a dash.

    Example:
        >>> format_cell(Figure("a.b", "B", 0.5, "share", low=0.1, high=0.7)), format_cell(12345)
        ('50.0 %\n10.0 to 70.0 %', '12,345')
    """
    match cell:
        case Figure():
            return "\n".join(filter(None, (cell.shown, format_limits(cell))))
        case None:
            return "-"
        case str():
            return cell
        case int():
            return f"{cell:,}"
        case _:
            return format_value(cell, "")


@dataclass(frozen=True)
class Heading:
    """A column of a table; ``swatch`` is the number of its colour in pictures, from 1, or 0."""

    title: str
    kind: Literal["text", "number", "note"] = "text"
    swatch: int = 0


@dataclass(frozen=True)
class Table:
    """A table."""

    columns: Sequence[Heading]
    rows: Sequence[Sequence[Cell]]  # one cell per column in each row
    title: str = ""  # above the table; may be empty
    notes: Sequence[str] = ()  # sentences below the table
    names: int = 1  # number of columns that name the row
    # marks of cells by row and column, from 0: ``*`` for a significant difference, ``°`` for the
    # value nearest to no evidence
    marks: Mapping[tuple[int, int], str] = field(default_factory=dict)
    wide: bool = False  # whether the table is folded on paper and small screens

    @classmethod
    def from_numbers(
        cls,
        head: Iterable[str],
        rows: Iterable[Sequence[Cell]],
        names: int = 1,
        *,
        title: str = "",
        notes: Sequence[str] = (),
        marks: Mapping[tuple[int, int], str] | None = None,
        wide: bool = False,
    ) -> Table:
        """Make a table of numbers, with the first ``names`` columns as text."""
        columns = [Heading(text, "text" if i < names else "number") for i, text in enumerate(head)]
        return cls(columns, list(rows), title, notes, names, marks or {}, wide)

    def select(self, columns: Sequence[int]) -> Table:
        """Select columns in this order, with the names first."""
        return replace(
            self,
            columns=[self.columns[j] for j in columns],
            rows=[[row[j] for j in columns] for row in self.rows],
            marks={(i, columns.index(j)): m for (i, j), m in self.marks.items() if j in columns},
        )


@dataclass(frozen=True)
class Paragraphs:
    """Paragraphs of text; ``muted`` ones explain the block above."""

    texts: Sequence[str]
    muted: bool = False


@dataclass(frozen=True)
class Bullets:
    """A list of plain items, notes or code."""

    items: Sequence[str]
    kind: Literal["plain", "notes", "code"] = "plain"


@dataclass(frozen=True)
class Definitions:
    """Names with definitions; an empty definition leaves room for handwriting."""

    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Picture:
    """A trusted ``<svg>`` element with title, caption and names by colour.

    A ``wide`` picture takes the full width.
    """

    title: str
    svg: str
    caption: str = ""
    legend: Sequence[str] = ()
    wide: bool = False


@dataclass(frozen=True)
class Section:
    """Blocks under a heading, which is smaller in nested sections.

    A page shows only the heading of a ``folded`` section, until it is opened or printed.
    """

    title: str
    blocks: Sequence[Block]
    folded: bool = False


class Tile(NamedTuple):
    """A formatted headline figure, with its label and its meaning."""

    value: str
    label: str
    note: str = ""


@dataclass(frozen=True)
class Tiles:
    """Headline figures at the top of a page."""

    tiles: Sequence[Tile]


@dataclass(frozen=True)
class Columns:
    """Blocks side by side if there is room."""

    blocks: Sequence[Section | Picture]


Block: TypeAlias = Table | Paragraphs | Bullets | Definitions | Picture | Section | Columns | Tiles


@dataclass(frozen=True)
class Document:
    """A report."""

    title: str
    facts: Sequence[str]  # lines on its subject
    # sections in order; those without blocks are skipped
    sections: Sequence[Section | Picture | Columns | Tiles]
    warnings: Sequence[str] = ()  # warnings at the top
    foot: str = ""  # sentences at the end
    headline: str = ""  # the finding, one sentence
