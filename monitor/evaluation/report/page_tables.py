"""The tables of the HTML page, and how they write values and limits."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from monitor.evaluation.figure import Figure
from monitor.evaluation.report.comparing import Comparison
from monitor.evaluation.report.wording import (
    format_limits,
    format_value,
)

__all__ = [
    "comparison_table",
    "figures_table",
    "swatch",
    "unit_text",
    "value_text",
    "with_minus",
]


def figures_table(figures: Sequence[Figure]) -> str:
    """A table of one system: value, limits, ceiling and note of each figure."""
    rows = "".join(
        f'<tr><th scope="row">{escape(figure.label)}</th>'
        f'<td class="number">{value_text(figure)} <small>{escape(unit_text(figure))}</small></td>'
        f'<td class="limits" data-name="95 %:">{with_minus(format_limits(figure))}</td>'
        f'<td class="limits" data-name="ceiling">{_ceiling(figure)}</td>'
        f'<td class="note">{escape(figure.note)}</td></tr>'
        for figure in figures
    )
    return (
        '<div class="scroll"><table class="single"><thead><tr><th>Figure</th>'
        '<th class="number">Value</th><th>95 % limits</th><th>Ceiling</th><th>Note</th></tr>'
        f"</thead><tbody>{rows}</tbody></table></div>"
    )


def comparison_table(comparison: Comparison, keys: Sequence[str], swatches: bool = True) -> str:
    """A table of several systems, a column for each; a swatch tells their colours."""
    heads = "".join(
        f'<th class="number">{swatch(i) if swatches else ""}{escape(name)}</th>'
        for i, name in enumerate(comparison.names, start=1)
    )
    by_key = {row.key: row for row in comparison.rows}
    rows = []
    for row in map(by_key.__getitem__, keys):
        cells = "".join(
            _cell(figure, differs, i == row.most_private)
            for i, (figure, differs) in enumerate(zip(row.figures, row.differs, strict=True))
        )
        rows.append(
            f'<tr><th scope="row">{escape(row.first.label)}</th>{cells}'
            f"<td>{escape(unit_text(row.first))}</td>"
            f'<td class="note">{escape(row.note(comparison.names))}</td></tr>'
        )
    return (
        f'<div class="scroll"><table><thead><tr><th>Figure</th>{heads}<th>Unit</th><th>Note</th>'
        f"</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(figure: Figure | None, differs: bool, private: bool) -> str:
    if figure is None:
        return '<td class="number">–</td>'
    marks = '<b class="private" title="nearest to no evidence">°</b>' if private else ""
    if differs:
        marks += '<b class="differs" title="differs from the first system">*</b>'
    limits = with_minus(format_limits(figure))
    return f'<td class="number">{value_text(figure)}{marks}<small>{limits}</small></td>'


def swatch(index: int) -> str:
    """A patch of the colour of the n-th system, from 1."""
    return f'<i class="swatch" style="background:var(--s{(index - 1) % 6 + 1})"></i>'


def value_text(figure: Figure) -> str:
    """The value of a figure, escaped."""
    return with_minus(format_value(figure.value, figure.unit, figure.text))


def _ceiling(figure: Figure) -> str:
    value = figure.ceiling
    return "" if value is None else with_minus(format_value(value, figure.unit))


def with_minus(text: str) -> str:
    """Escaped text; a number with a real minus sign."""
    made = escape(text)
    return made.replace("-", "\N{MINUS SIGN}") if text.strip("-0123456789., %tonif") == "" else made


def unit_text(figure: Figure) -> str:
    """The unit of a figure, where it is not a share or a count."""
    return "" if figure.unit in ("share", "count") else figure.unit
