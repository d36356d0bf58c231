"""Documents to read: one HTML file each, without scripts, fonts or anything to fetch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from monitor.files import write_text
from monitor.version import __version__

__all__ = [
    "PRINTED",
    "bullet_list",
    "document",
    "get_figure_paths",
    "paragraphs",
    "picture",
    "save_with_figures",
    "section",
    "table",
    "warning",
]


PRINTED = (
    "<style>@media print{@page{margin:14mm}html{font-size:12px}body{font-size:1rem}"
    "main,header,footer{max-width:none;padding:0}main{display:block}"
    ".card{border:0;border-radius:0;padding:0;margin:0 0 14px}.scroll{overflow:visible}"
    "th,td{padding-top:2.5px;padding-bottom:2.5px}tbody th,td.note{min-width:0}"
    ".long{break-inside:auto}tr{break-inside:avoid}h2,h3{break-after:avoid}}</style>"
)
"""Style of documents that are handed over on paper: first among the parts of a `document`."""


# --- Tables and lists of a document.


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], names: int = 1, *, wide: bool = False
) -> str:
    r"""Render a table of plain text; what lies right of the names is set as numbers.

    A cell of two lines has its limits, or a note, in the second: they are set small.

    Example:
        >>> made = table(["feature", "bits"], [["f0", "1.0\n0.9 to 1.1"]])
        >>> "<small>0.9 to 1.1</small>" in made
        True
    """
    heads = "".join(
        f"<th>{escape(text)}</th>" if i < names else f'<th class="number">{escape(text)}</th>'
        for i, text in enumerate(head)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<th scope="row">{escape(text)}</th>'
            if i < names
            else _render_number(text, head[i] if wide else "")
            for i, text in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll"><table{" class=wide" if wide else ""}><thead><tr>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _render_number(text: str, name: str) -> str:
    value, _, small = text.partition("\n")
    if name:  # limits may fall into two lines, after "to"
        small = small.replace(" to ", "\N{NO-BREAK SPACE}to ").replace(" %", "\N{NO-BREAK SPACE}%")
    below = f"<small>{escape(small)}</small>" if small else ""
    data = f' data-name="{escape(name)}"' if name else ""
    return f'<td class="number"{data}>{escape(value)}{below}</td>'


def bullet_list(items: Iterable[str], name: str = "notes") -> str:
    """Render a list of plain texts, of a class of the style; nothing where there are none."""
    lines = "".join(f"<li>{escape(item)}</li>" for item in items)
    return f'<ul class="{name}">{lines}</ul>' if lines else ""


# --- The frame of a document: head, style, sections with text, tables and pictures, and a foot.


def document(title: str, facts: Iterable[str], parts: Iterable[str], foot: str = "") -> str:
    """Render a whole page.

    Example:
        >>> text = document("a < b", ["of 12 speakers"], [section("Methods", paragraphs("As is."))])
        >>> "<title>a &lt; b</title>" in text, "http" in text
        (True, False)
    """
    style = (Path(__file__).parent / "page.css").read_text(encoding="utf-8").replace("\n", "")
    footer = escape(f"Made by monitor {__version__}. {foot}".strip())
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(title)}</title><style>{style}</style></head><body>",
            f"<header><h1>{escape(title)}</h1>{paragraphs(*facts)}</header><main>",
            *parts,
            f"</main><footer>{footer}</footer>",
            "</body></html>\n",
        ]
    )


def get_figure_paths(path: Path) -> tuple[Path, Path]:
    """Return the paths of a document's CSV and JSON."""
    return path.with_suffix(".csv"), path.with_suffix(".json")


def save_with_figures(text: str, table: str, plain: object, path: Path) -> tuple[Path, Path]:
    """Write a document, and a CSV and a JSON of its name beside it, mode 0600.

    Returns:
        the CSV and the JSON file.

    Raises:
        StoreError: one of them cannot be written.
    """
    paths = get_figure_paths(path)
    as_json = json.dumps(plain, allow_nan=False, indent=1) + "\n"
    for file, content in zip((*paths, path), (table, as_json, text), strict=True):
        write_text(content, file)
    return paths


def section(heading: str, *parts: str) -> str:
    """Render a card: a heading (plain text) over some markup."""
    return f'<section class="card"><h2>{escape(heading)}</h2>{"".join(parts)}</section>'


def warning(text: str) -> str:
    """Render plain text that has to be read first."""
    return f'<p class="card warning" role="alert">{escape(text)}</p>'


def paragraphs(*texts: str) -> str:
    """Render plain text, a paragraph each; a number is not torn from its per cent sign."""
    texts_escaped = (escape(text).replace(" %", "\N{NO-BREAK SPACE}%") for text in texts)
    return "".join(f"<p>{text}</p>" for text in texts_escaped)


def picture(title: str, svg: str, caption: str) -> str:
    """Render a figure: an ``<svg>`` element between a title and a caption (plain text)."""
    return (
        f'<figure class="card"><h2>{escape(title)}</h2>{svg}'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )
