"""Renders reports as HTML, terminal text, Markdown, LaTeX, CSV and JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from monitor.files import csv_number, csv_text, finite, write_text
from monitor.lab.report.model import (
    Block,
    Bullets,
    Cell,
    Columns,
    Definitions,
    Document,
    Figure,
    Paragraphs,
    Section,
    Table,
    format_cell,
    format_limits,
)
from monitor.types import FloatArray
from monitor.version import __version__

if TYPE_CHECKING:
    from rich.console import Console


def render_csv(table: Table) -> str:
    """Render CSV, with all digits of numbers, values of figures, and empty missing values."""
    rows = (map(_csv_cell, row) for row in table.rows)
    return csv_text([column.title for column in table.columns], rows)


def _csv_cell(cell: Cell) -> str:
    match cell:
        case Figure():
            return csv_number(cell.value)
        case float() | None:
            return csv_number(cell)
        case _:
            return str(cell)


def figure_json(figure: Figure) -> dict[str, str | float | None]:
    """Encode a figure without its replicates, and an infinite value as ``text``."""
    infinite = figure.value is not None and math.isinf(figure.value)
    return {
        "label": figure.label,
        "value": finite(figure.value),
        "text": str(figure.value) if infinite and not figure.text else figure.text,
        "low": finite(figure.low),
        "high": finite(figure.high),
        "unit": figure.unit,
        "ceiling": finite(figure.ceiling),
        "floor": finite(figure.floor),
        "ties": figure.ties,
        "note": figure.note,
    }


def curve_json(values: FloatArray) -> list[float | None]:
    """Encode points to draw, with six digits each."""
    return [finite(float(f"{value:.6g}")) for value in values.tolist()]


def get_figure_paths(path: Path) -> tuple[Path, Path]:
    """Return the paths of a document's CSV and JSON files."""
    return path.with_suffix(".csv"), path.with_suffix(".json")


def save_with_figures(page: str, csv: str, plain: object, path: Path) -> tuple[Path, Path]:
    """Write a document, with a CSV and a JSON file of the same name beside it, mode 0600.

    Return the paths of CSV and JSON.
    """
    paths = get_figure_paths(path)
    as_json = json.dumps(plain, allow_nan=False, indent=1) + "\n"
    for file, content in zip((*paths, path), (csv, as_json, page), strict=True):
        write_text(content, file)
    return paths


def render_markdown(document: Document) -> str:
    r"""Render a part of a page in Markdown, without pictures.

    Example:
        >>> from monitor.lab.report.model import Section
        >>> table = Table.from_numbers(["name", "bits"], [["a|b", 0.125]])
        >>> text = render_markdown(Document("Voices", [], [Section("Bits", [table])]))
        >>> print(text.partition("Made")[0].replace("\n\n", "\n"), end="")
        ## Voices
        ### Bits
        | name | bits |
        | --- | --- |
        | a\|b | 0.125 |
    """
    lines = [f"## {_escape(document.title)}", ""]
    for text in (*document.warnings, *document.facts):
        lines += [_escape(text), ""]
    for section in document.sections:
        lines += _markdown_lines(section, "###")
    return "\n".join([*lines, f"Made by monitor {__version__}. {document.foot}".strip()]) + "\n"


def _markdown_lines(block: Block, mark: str) -> Iterator[str]:
    match block:
        case Section(title, blocks) if blocks:
            yield from (f"{mark} {_escape(title)}", "")
            for child in blocks:
                yield from _markdown_lines(child, f"{mark}#")
        case Columns(blocks):
            for child in blocks:
                yield from _markdown_lines(child, mark)
        case Paragraphs(texts):
            for text in texts:
                yield from (_escape(text), "")
        case Bullets(items):
            yield from (*(f"- {_escape(item)}" for item in items), "")
        case Definitions(pairs):
            yield from (*(f"- **{_escape(name)}**: {_escape(text)}" for name, text in pairs), "")
        case Table():
            if block.title:
                yield from (f"{mark} {_escape(block.title)}", "")
            head = [_escape(column.title) for column in block.columns]
            for row in (head, ["---"] * len(head), *(map(_markdown_cell, r) for r in block.rows)):
                yield f"| {' | '.join(row)} |"
            yield ""
            yield from _markdown_lines(Paragraphs(block.notes), mark)


def _markdown_cell(cell: Cell) -> str:
    value, _, small = format_cell(cell).partition("\n")
    return _escape(f"{value} ({small})" if small else value)


def _escape(text: str) -> str:
    """Escape Markdown, because the name of a folder may contain any character."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", text)


_SYMBOLS = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "_": r"\_", "%": r"\%", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
    "ε": r"$\varepsilon$", "δ": r"$\delta$", "≤": r"$\leq$", "′": r"$'$", "°": r"\textdegree{}",
    "\N{MINUS SIGN}": "$-$",
}  # fmt: skip


def escape_latex(text: str) -> str:
    r"""Escape text for LaTeX.

    Example:
        >>> print(escape_latex("D_sys of 50 % & ε̂ \\x"))
        D\_sys of 50 \% \& $\hat{\varepsilon}$ \textbackslash{}x
    """
    latex = "".join(_SYMBOLS.get(letter, letter) for letter in text.replace("ε\u0302", "\0"))
    return latex.replace("\0", r"$\hat{\varepsilon}$")


def render_latex(table: Table, caption: str) -> str:
    """Render a table for a paper (``booktabs``), without notes.

    Intervals are in brackets, significant differences have a star, and the figure nearest to no
    evidence is bold.
    """
    indices = [j for j, column in enumerate(table.columns) if column.kind != "note"]
    marks = "".join(table.marks.values())
    numbers = [table.columns[j].title for j in indices if table.columns[j].kind == "number"]
    legend = [
        "In brackets: 95\\,\\% intervals over resampled speakers.",
        f"$^*$: differs from {escape_latex(numbers[0])}." if "*" in marks else "",
        "Bold: nearest to no evidence." if "\N{DEGREE SIGN}" in marks else "",
    ]
    rows = [[escape_latex(table.columns[j].title) for j in indices]]
    rows += [
        [_latex_cell(row[j], j < table.names, table.marks.get((i, j), "")) for j in indices]
        for i, row in enumerate(table.rows)
    ]
    head, *body = (" & ".join(row) + " \\\\" for row in rows)
    align = "".join("r" if table.columns[j].kind == "number" else "l" for j in indices)
    lines = [
        "\\begin{table}",
        "\\centering",
        f"\\caption{{{escape_latex(caption.removesuffix('.'))}. {' '.join(filter(None, legend))}}}",
        f"\\begin{{tabular}}{{{align}}}",
        "\\toprule",
        head,
        "\\midrule",
        *body,
        "\\bottomrule",
        "\\end{tabular}",
        "\\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex_cell(cell: Cell, is_name: bool, mark: str) -> str:
    if is_name or isinstance(cell, str):
        return escape_latex(format_cell(cell))
    if not isinstance(cell, Figure):
        return _math(format_cell(cell))
    value = _math(cell.shown)
    value = f"\\textbf{{{value}}}" if "\N{DEGREE SIGN}" in mark else value
    limits = format_limits(cell)
    between = f" {{\\small [{_math(limits)}]}}" if limits else ""
    return value + ("$^*$" if "*" in mark else "") + between


def _math(text: str) -> str:
    """Use minus signs, ranges as ``a, b``, and thin spaces before percent signs."""
    if text == "-":
        return "--"
    latex = escape_latex(text.replace(" to ", ", ").replace("-", "\N{MINUS SIGN}"))
    return latex.replace(" \\%", "\\,\\%")


_MARKS = {"*": "differs", "\N{DEGREE SIGN}": "private"}
_SPACE = "\N{NO-BREAK SPACE}"


def render_html(document: Document) -> str:
    """Render a whole printable page."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    pages = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    pages.filters |= {
        "kind": lambda block: type(block).__name__,
        "lines": _split,
        "percents": lambda text: text.replace(" %", f"{_SPACE}%"),
    }
    page = pages.get_template("page.html.jinja")
    return page.render(document=document, version=__version__, marks=_MARKS, zip=zip).lstrip()


def _split(cell: Cell) -> tuple[str, str]:
    """Split a cell into value and small print, which may break before "to"."""
    value, _, small = format_cell(cell).partition("\n")
    small = small.replace(" to ", f"{_SPACE}to ").replace(" %", f"{_SPACE}%")
    return _with_minus(value), _with_minus(small)


def _with_minus(text: str) -> str:
    """Use a minus sign in numbers, and a dash for missing ones."""
    if text == "-":
        return "\N{EN DASH}"
    is_number = not text.strip(f"-0123456789., %{_SPACE}tonif")
    return text.replace("-", "\N{MINUS SIGN}") if is_number else text


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
            print_table(Table.from_numbers(("", ""), pairs, names=2), console)
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
    for number, subtable in enumerate(_split_table(table, console.width)):
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


def _split_table(table: Table, room: int) -> Iterator[Table]:
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
