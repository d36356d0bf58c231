"""Documents and tables on a terminal, with rich."""

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
"""Maximum width of the first column, and its minimum widths on narrow and other terminals."""
_NARROW = 60
_HEAD = 13  # maximum width of a heading before it is folded


def print_document(document: Document, console: Console) -> None:
    """Print a document without its pictures."""
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
            for child in blocks:
                print_block(child, console)
        case Columns(blocks):
            for child in blocks:
                print_block(child, console)
        case _:
            pass


def print_table(table: Table, console: Console) -> None:
    """Print a table, with the numbered notes of its rows below, each once.

    Columns of numbers that do not fit the terminal are printed in further tables.
    """
    from rich.table import Table as Grid
    from rich.text import Text

    if table.title and table.names != 1:
        console.print(Text(table.title, style="bold"))
    numbers: dict[str, str] = {}
    heads = any(column.title for column in table.columns)
    for number, subtable in enumerate(_split(table, console.width)):
        if number > 0:
            console.print()
        grid = Grid(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
        grid.show_header = heads
        widths = [_width(subtable, j) for j in range(len(subtable.columns))]
        for j, column in enumerate(subtable.columns):
            is_name = j == 0 and subtable.names == 1
            room = console.width - sum(widths[1:]) - len(widths)
            grid.add_column(
                Text(subtable.title or column.title, style="bold") if is_name else
                "" if column.kind == "note" else column.title,
                justify="left" if column.kind == "text" else "right",
                overflow="fold",
                min_width=min(_NAMES, max(room, 1)) if is_name else None,
                max_width=_NAMES if is_name else None,
                width=widths[j] if column.kind == "number" else None,
                no_wrap=column.kind == "note",
            )  # fmt: skip
        for i in range(len(subtable.rows)):
            cells = []
            for j, column in enumerate(subtable.columns):
                text = _format(subtable, i, j)
                if column.kind == "note" and text:
                    text = numbers.setdefault(text, str(len(numbers) + 1))
                cells.append(Text(text))
            grid.add_row(*cells)
        console.print(grid)
    notes = Grid.grid(padding=(0, 1, 0, 0))
    notes.add_column(justify="right", min_width=3, style="dim")
    notes.add_column(style="dim")
    for note, label in numbers.items():
        notes.add_row(label, Text(note))
    for note in table.notes:
        notes.add_row("", Text(note))
    if notes.row_count:
        console.print(notes)


def _split(table: Table, room: int) -> Iterator[Table]:
    """Split the columns of numbers into as many tables as the width requires."""
    numbers = [j for j, column in enumerate(table.columns) if column.kind == "number"]
    widths = [_width(table, j) + 1 for j in range(len(table.columns))]
    widths[:1] = [min(width, _LEAST_NAMES[room >= _NARROW] + 1) for width in widths[:1]]
    room -= sum(width for j, width in enumerate(widths) if j not in numbers)
    groups: list[list[int]] = [[]]
    for j in numbers:
        if groups[-1] and sum(widths[i] for i in groups[-1]) + widths[j] > room:
            groups.append([])
        groups[-1].append(j)
    for group in groups:
        yield table.select([j for j in range(len(table.columns)) if j in group or j not in numbers])


def _width(table: Table, j: int) -> int:
    """Return the width of a column, given that its heading may fold."""
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
