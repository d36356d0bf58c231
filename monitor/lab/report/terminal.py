"""Documents and tables on a terminal, by rich."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from monitor.lab.report.model import (
    Block,
    Bullets,
    Cell,
    Columns,
    Definitions,
    Document,
    Paragraphs,
    Picture,
    Section,
    Table,
    format_cell,
)

if TYPE_CHECKING:
    from rich.console import Console

_NAMES, _LEAST_NAMES = 34, 20
"""Widths of the first column: the most that it takes, and the least that folding leaves it."""


def print_document(document: Document, console: Console) -> None:
    """Print everything but pictures."""
    from rich.text import Text

    for fact in filter(None, (document.title, *document.facts)):
        console.print(Text(fact, style="bold"))
    for warning in document.warnings:
        console.print(Text(f"WARNING: {warning}", style="bold red"))
    for section in document.sections:
        print_block(section, console)
    if document.foot:
        console.print(Text(f"\n{document.foot}"))


def print_block(block: Block, console: Console) -> None:
    """Print a block of a document."""
    from rich.text import Text

    match block:
        case Table():
            print_table(block, console)
        case Paragraphs(texts):
            for text in texts:
                console.print(Text(text, style="dim" * block.muted))
        case Bullets(items):
            for item in items:
                console.print(Text(item))
        case Definitions(pairs):
            print_table(Table.of(("", ""), pairs, names=2), console)
        case Section(title, blocks):
            if title:
                console.print(Text(f"\n{title}", style="bold"))
            for part in blocks:
                print_block(part, console)
        case Columns(blocks):
            for part in blocks:
                print_block(part, console)
        case Picture():
            pass


def print_table(table: Table, console: Console) -> None:
    """Print a table; notes of its rows stand below, each once, by number.

    A wide table has as many columns of numbers as there is room for, then the others.
    """
    from rich.table import Table as Grid
    from rich.text import Text

    if table.title and table.names != 1:
        console.print(Text(f"\n{table.title}", style="bold"))
    numbers: dict[str, str] = {}
    heads = any(column.title for column in table.columns)
    for part in _split(table, console.width):
        grid = Grid(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
        grid.show_header = heads
        for j, column in enumerate(part.columns):
            is_name = j == 0 and part.names == 1
            grid.add_column(
                Text(part.title or column.title, style="bold") if is_name else
                "" if column.kind == "note" else column.title,
                justify="left" if column.kind == "text" else "right",
                overflow="fold",
                max_width=_NAMES if is_name else None,
                no_wrap=column.kind == "note",
            )  # fmt: skip
        for i, row in enumerate(part.rows):
            cells = []
            for j, (column, cell) in enumerate(zip(part.columns, row, strict=True)):
                text = format_cell(cell)
                if column.kind == "note" and text:
                    text = numbers.setdefault(_sentence(text), str(len(numbers) + 1))
                cells.append(Text(_marked(text, part.marks.get((i, j), ""))))
            grid.add_row(*cells)
        console.print()
        console.print(grid)
    notes = Grid.grid(padding=(0, 1, 0, 0))
    notes.add_column(justify="right", min_width=3, style="dim")
    notes.add_column(style="dim")
    for note, number in numbers.items():
        notes.add_row(number, Text(note))
    for note in table.notes:
        notes.add_row("", Text(note))
    console.print(notes)


def _split(table: Table, room: int) -> Iterator[Table]:
    """Split the columns of numbers of a wide table into as many tables as have room."""
    if not table.wide:
        yield table
        return
    places = [j for j, column in enumerate(table.columns) if column.kind == "number"]
    widths = [_width(table, j) + 1 for j in range(len(table.columns))]
    widths[0] = min(widths[0], _LEAST_NAMES + 1)
    room -= sum(width for j, width in enumerate(widths) if j not in places)
    most = max(1, room // max(widths[j] for j in places))
    for first in range(0, len(places), most):
        left_out = {*places[:first], *places[first + most :]}
        kept = [j for j in range(len(table.columns)) if j not in left_out]
        yield replace(
            table,
            columns=[table.columns[j] for j in kept],
            rows=[[row[j] for j in kept] for row in table.rows],
            marks={(i, kept.index(j)): m for (i, j), m in table.marks.items() if j in kept},
        )


def _width(table: Table, j: int) -> int:
    """Width of a column whose head may wrap between words."""
    if table.columns[j].kind == "note":
        return 2
    cells: Sequence[Cell] = [row[j] for row in table.rows]
    lines = [line for cell in cells for line in format_cell(cell).split("\n")]
    return max(map(len, (*lines, *table.columns[j].title.split())), default=0)


def _marked(text: str, mark: str) -> str:
    value, *small = text.split("\n")
    return "\n".join((value + mark, *small))


def _sentence(note: str) -> str:
    note = note.strip()
    return note[:1].upper() + note[1:] + ("" if note.endswith(".") or not note else ".")
