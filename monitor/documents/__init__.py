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
    "beside_of",
    "bullet_list",
    "document",
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
    r"""A table of plain text; what lies right of the names is set as numbers.

    A cell of two lines has its limits, or a note, in the second: they are set small.

    Example:
        >>> made = table(["feature", "bits"], [["f0", "1.0\n0.9 to 1.1"]])
        >>> "<small>0.9 to 1.1</small>" in made
        True
    """
    heads = "".join(
        f"<th>{escape(each)}</th>" if i < names else f'<th class="number">{escape(each)}</th>'
        for i, each in enumerate(head)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<th scope="row">{escape(each)}</th>'
            if i < names
            else _number(each, head[i] if wide else "")
            for i, each in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll"><table{" class=wide" if wide else ""}><thead><tr>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _number(text: str, name: str) -> str:
    value, _, small = text.partition("\n")
    if name:  # limits may fall into two lines, after "to"
        small = small.replace(" to ", "\N{NO-BREAK SPACE}to ").replace(" %", "\N{NO-BREAK SPACE}%")
    below = f"<small>{escape(small)}</small>" if small else ""
    data = f' data-name="{escape(name)}"' if name else ""
    return f'<td class="number"{data}>{escape(value)}{below}</td>'


def bullet_list(items: Iterable[str], name: str = "notes") -> str:
    """An unordered list of plain texts, of a class of the style; nothing where there are none."""
    made = "".join(f"<li>{escape(item)}</li>" for item in items)
    return f'<ul class="{name}">{made}</ul>' if made else ""


# --- The frame of a document: head, style, sections with text, tables and pictures, and a foot.


def document(title: str, facts: Iterable[str], parts: Iterable[str], foot: str = "") -> str:
    """A whole page as HTML.

    Example:
        >>> text = document("a < b", ["of 12 speakers"], [section("Methods", paragraphs("As is."))])
        >>> "<title>a &lt; b</title>" in text, "http" in text
        (True, False)
    """
    style = (Path(__file__).parent / "page.css").read_text(encoding="utf-8").replace("\n", "")
    said = escape(f"Made by monitor {__version__}. {foot}".strip())
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(title)}</title><style>{style}</style></head><body>",
            f"<header><h1>{escape(title)}</h1>{paragraphs(*facts)}</header><main>",
            *parts,
            f"</main><footer>{said}</footer>",
            "</body></html>\n",
        ]
    )


def beside_of(path: Path) -> tuple[Path, Path]:
    """Where the CSV and the JSON of a document go."""
    return path.with_suffix(".csv"), path.with_suffix(".json")


def save_with_figures(text: str, table: str, plain: object, path: Path) -> tuple[Path, Path]:
    """Write a document, and a CSV and a JSON of its name beside it, mode 0600.

    Returns:
        the CSV and the JSON file.

    Raises:
        StoreError: one of them cannot be written.
    """
    beside = beside_of(path)
    as_json = json.dumps(plain, allow_nan=False, indent=1) + "\n"
    for file, each in zip((*beside, path), (table, as_json, text), strict=True):
        write_text(each, file)
    return beside


def section(heading: str, *parts: str) -> str:
    """A card of the document: a heading (plain text) over some markup."""
    return f'<section class="card"><h2>{escape(heading)}</h2>{"".join(parts)}</section>'


def warning(text: str) -> str:
    """Plain text that has to be read first."""
    return f'<p class="card warning" role="alert">{escape(text)}</p>'


def paragraphs(*texts: str) -> str:
    """Plain text, a paragraph each; a number is not torn from its per cent sign."""
    said = (escape(text).replace(" %", "\N{NO-BREAK SPACE}%") for text in texts)
    return "".join(f"<p>{text}</p>" for text in said)


def picture(title: str, svg: str, caption: str) -> str:
    """A figure: a title and a caption (plain text), and an ``<svg>`` element between them."""
    return (
        f'<figure class="card"><h2>{escape(title)}</h2>{svg}'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )
