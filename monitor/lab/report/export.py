"""Reports in other formats: CSV, JSON, Markdown and LaTeX."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path

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

# --------------------------------------------------------------------------------------- CSV, JSON


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

    Returns:
        the paths of the CSV and JSON files.

    Raises:
        StoreError: if a file cannot be written.
    """
    paths = get_figure_paths(path)
    as_json = json.dumps(plain, allow_nan=False, indent=1) + "\n"
    for file, content in zip((*paths, path), (csv, as_json, page), strict=True):
        write_text(content, file)
    return paths


# ---------------------------------------------------------------------------------------- Markdown


def render_markdown(document: Document) -> str:
    r"""Render a part of a page in Markdown, without pictures.

    Example:
        >>> from monitor.lab.report.model import Section
        >>> table = Table.of(["name", "bits"], [["a|b", 0.125]])
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


# ------------------------------------------------------------------------------------------- LaTeX

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
