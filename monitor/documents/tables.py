"""Tables and lists of a document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["bullet_list", "table"]


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], names: int = 1, *, wide: bool = False
) -> str:
    r"""A table of plain text; what lies right of the names is set as numbers.

    A cell of two lines has its limits, or a note, in the second: they are set small.

    Args:
        head: of each column.
        rows: as long as the head.
        names: how many columns, from the left, name what the row is of.
        wide: of many columns: set closer, and on a narrow screen or paper each row is a block, in
            which every number has its name, so that nothing is cut off.

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
