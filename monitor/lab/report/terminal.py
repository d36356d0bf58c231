"""Documents and tables on a terminal, by rich."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from monitor.lab.report.model import (
    Block,
    Bullets,
    Columns,
    Definitions,
    Document,
    Paragraphs,
    Section,
    Table,
    format_cell,
)

if TYPE_CHECKING:
    from rich.console import Console

_NAMES, _LEAST_NAMES = 34, (12, 20)
"""Widths of the first column: the most that it takes, and the least, in narrow and other places."""
_NARROW = 60
_HEAD = 13  # of a heading, what is not folded


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
            console.print()
            print_table(block, console)
        case Paragraphs(texts):
            for text in texts:
                console.print(Text(text, style="dim" * block.muted))
        case Bullets(items):
            for item in items:
                console.print(Text(item))
        case Definitions(pairs):
            print_table(Table.of(("", ""), pairs, names=2), console)
        case Section(title, [first, *_] as blocks):
            if title or not isinstance(first, Table):
                console.print()
            if title:
                console.print(Text(title, style="bold"))
            for part in blocks:
                print_block(part, console)
        case Columns(blocks):
            for part in blocks:
                print_block(part, console)
        case _:
            pass


def print_table(table: Table, console: Console) -> None:
    """Print a table; notes of its rows stand below, each once, by number.

    A table has as many columns of numbers as there is room for, then the others.
    """
    from rich.table import Table as Grid
    from rich.text import Text

    if table.title and table.names != 1:
        console.print(Text(table.title, style="bold"))
    numbers: dict[str, str] = {}
    heads = any(column.title for column in table.columns)
    for number, part in enumerate(_split(table, console.width)):
        if number > 0:
            console.print()
        grid = Grid(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
        grid.show_header = heads
        widths = [_width(part, j) for j in range(len(part.columns))]
        for j, column in enumerate(part.columns):
            is_name = j == 0 and part.names == 1
            room = console.width - sum(widths[1:]) - len(widths)
            grid.add_column(
                Text(part.title or column.title, style="bold") if is_name else
                "" if column.kind == "note" else column.title,
                justify="left" if column.kind == "text" else "right",
                overflow="fold",
                min_width=min(_NAMES, max(room, 1)) if is_name else None,
                max_width=_NAMES if is_name else None,
                width=widths[j] if column.kind == "number" else None,
                no_wrap=column.kind == "note",
            )  # fmt: skip
        for i in range(len(part.rows)):
            cells = []
            for j, column in enumerate(part.columns):
                text = _format(part, i, j)
                if column.kind == "note" and text:
                    text = numbers.setdefault(text, str(len(numbers) + 1))
                cells.append(Text(text))
            grid.add_row(*cells)
        console.print(grid)
    notes = Grid.grid(padding=(0, 1, 0, 0))
    notes.add_column(justify="right", min_width=3, style="dim")
    notes.add_column(style="dim")
    for note, place in numbers.items():
        notes.add_row(place, Text(note))
    for note in table.notes:
        notes.add_row("", Text(note))
    if notes.row_count:
        console.print(notes)


def _split(table: Table, room: int) -> Iterator[Table]:
    """Split the columns of numbers into as many tables as there is need of."""
    places = [j for j, column in enumerate(table.columns) if column.kind == "number"]
    widths = [_width(table, j) + 1 for j in range(len(table.columns))]
    widths[:1] = [min(width, _LEAST_NAMES[room >= _NARROW] + 1) for width in widths[:1]]
    room -= sum(width for j, width in enumerate(widths) if j not in places)
    parts: list[list[int]] = [[]]
    for j in places:
        if parts[-1] and sum(widths[i] for i in parts[-1]) + widths[j] > room:
            parts.append([])
        parts[-1].append(j)
    for part in parts:
        yield table.select([j for j in range(len(table.columns)) if j in part or j not in places])


def _width(table: Table, j: int) -> int:
    """Width of a column whose head may fold."""
    column = table.columns[j]
    if column.kind == "note":
        return 2
    texts = (_format(table, i, j) for i in range(len(table.rows)))
    words = [column.title] if len(column.title) <= _HEAD else column.title.split()
    widths = [min(len(word), _HEAD) for word in words]
    return max([*widths, *(len(line) for text in texts for line in text.split("\n"))], default=0)


def _format(table: Table, i: int, j: int) -> str:
    value, *small = format_cell(table.rows[i][j]).split("\n")
    return "\n".join((value + table.marks.get((i, j), ""), *small))
