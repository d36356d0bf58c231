"""Documents as self-contained HTML files, without scripts or fonts."""

from __future__ import annotations

from pathlib import Path

from monitor.lab.report.model import Cell, Document, format_cell
from monitor.version import __version__

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
