"""A report for readers and programs: one HTML file, CSV, LaTeX."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path

from monitor.documents import bullet_list, document, paragraphs, picture, warning
from monitor.errors import UsageError
from monitor.files import csv_number, csv_text, write_text
from monitor.lab.evaluation.family import families, family_of
from monitor.lab.evaluation.report.comparing import (
    Comparison,
    Grouped,
    Pair,
    Row,
    explain_pairs,
    p_text,
)
from monitor.lab.evaluation.report.report import (
    Report,
    by_family,
    fact_list,
    facts,
    main_figures,
    main_keys,
    meaning,
    short_name,
    tie_rules,
    title_of,
)
from monitor.lab.plots.evaluation import pictures
from monitor.lab.report.export import escape_latex
from monitor.lab.report.model import Figure, format_limits, format_value

_HEAD = (
    "system", "group", "figure", "key", "label", "value", "text", "low", "high", "unit", "ceiling",
    "floor", "speakers", "trials", "ties", "note",
)  # fmt: skip


def figures_csv(
    reports: Sequence[Report], parts: Sequence[Grouped] = (), shown: Sequence[str] | None = None
) -> str:
    """Format one line a figure, those shown or all, systems and their groups below one another.

    Shares are 0 to 1, numbers have all of their digits, what does not exist is empty, what is
    infinite reads ``inf``.
    """
    rows: list[Sequence[str]] = []
    for report in reports:
        rows += _lines(report, report.name, "", shown)
        for part in parts:
            if part.name == report.name:
                for report_of_group in part.comparison.reports:
                    rows += _lines(report_of_group, part.name, report_of_group.name, shown)
    return csv_text(_HEAD, rows)


def _lines(
    report: Report, system: str, group: str, shown: Sequence[str] | None
) -> Iterator[list[str]]:
    for key in report.figures if shown is None else shown:
        if key in report.figures:
            figure = report.figures[key]
            low, high = figure.limits
            yield [
                system, group, short_name(key), key, figure.label, csv_number(figure.value),
                figure.text, csv_number(low), csv_number(high), figure.unit,
                csv_number(figure.ceiling), csv_number(figure.floor), str(report.speakers),
                str(report.trials_of(key)), figure.ties, figure.note,
            ]  # fmt: skip


def pairs_csv(pairs: Sequence[Pair]) -> str:
    """Format one line a pair of systems and figure."""
    head = ("system", "minus", "figure", "difference", "low", "high", "p", "paired")
    rows = (
        (pair.other, pair.first, short_name(key), csv_number(difference.value),
         csv_number(difference.low), csv_number(difference.high), csv_number(pair.p[key]),
         "yes" if pair.paired else "no")
        for pair in pairs
        for key, difference in pair.differences.items()
    )  # fmt: skip
    return csv_text(head, rows)


def latex_table(
    reports: Sequence[Report],
    comparison: Comparison | None = None,
    parts: Sequence[Grouped] = (),
    shown: Sequence[str] | None = None,
) -> str:
    r"""Format a table for a paper, and one for the groups of each system (``booktabs``).

    A comparison is of the same systems, where there are several. The figures are those shown, or
    those that matter.
    """
    keys = main_keys(reports[0].figures) if shown is None else shown
    tables = []
    if comparison is None:
        (report,) = reports
        rows = [Row(key, (figure,), (None,), None) for key, figure in report.figures.items()]
        tables.append(_table([report.name], rows, keys, facts(report)))
    else:
        caption = "; ".join(f"{report.name}: {facts(report)}" for report in reports)
        tables.append(_table(comparison.names, comparison.rows, keys, caption))
    for part in parts:
        caption = f"{part.name}, group by group. {part.notes[0]}"
        tables.append(_table(part.comparison.names, part.comparison.rows, keys, caption))
    return "% needs \\usepackage{booktabs}\n" + "\n".join(tables)


def _table(names: Sequence[str], rows: Iterable[Row], keys: Sequence[str], caption: str) -> str:
    by_key = {row.key: row for row in rows}
    have = [by_key[key] for key in keys if key in by_key]
    starred = any(any(row.differs) for row in have)
    best = any(row.most_private is not None for row in have)
    legend = [
        "In brackets: 95\\,\\% limits over resampled speakers.",
        f"$^*$: differs from {escape_latex(names[0])}." if starred else "",
        "Bold: nearest to no evidence." if best else "",
    ]
    table = [["Figure", *map(escape_latex, names)]]
    for row in have:
        unit = row.first.unit
        label = escape_latex(row.first.label) + (f" ({unit})" if unit in ("bits", "nats") else "")
        cells = enumerate(zip(row.figures, row.differs, strict=True))
        table.append([label, *(_cell(*pair, i == row.most_private) for i, pair in cells)])
    head, *body = (" & ".join(row) + " \\\\" for row in table)
    lines = [
        "\\begin{table}",
        "\\centering",
        f"\\caption{{{escape_latex(caption.removesuffix('.'))}. {' '.join(filter(None, legend))}}}",
        f"\\begin{{tabular}}{{l{'r' * len(names)}}}",
        "\\toprule",
        head,
        "\\midrule",
        *body,
        "\\bottomrule",
        "\\end{tabular}",
        "\\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _cell(figure: Figure | None, differs: bool, private: bool) -> str:
    if figure is None:
        return "--"
    value = _math(format_value(figure.value, figure.unit, figure.text))
    value = f"\\textbf{{{value}}}" if private else value
    limits = format_limits(figure)
    between = f" {{\\small [{_math(limits)}]}}" if limits else ""
    return value + ("$^*$" if differs else "") + between


def _math(text: str) -> str:
    """With real minus signs; a range as ``a, b``; thin spaces before percent signs."""
    if text == "-":
        return "--"
    latex = escape_latex(text.replace(" to ", ", ").replace("-", "\N{MINUS SIGN}"))
    return latex.replace(" \\%", "\\,\\%")


# ------------------------------------------------------------------------------------- page tables


def figures_table(figures: Sequence[Figure]) -> str:
    """Format a table of one system: value, limits, ceiling and note of each figure."""
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
        '<th class="number">Value</th><th>95 % interval</th><th>Ceiling</th><th>Note</th></tr>'
        f"</thead><tbody>{rows}</tbody></table></div>"
    )


def comparison_table(comparison: Comparison, keys: Sequence[str], swatches: bool = True) -> str:
    """Format a table of several systems, a column for each; a swatch tells their colours."""
    heads = "".join(
        f'<th class="number">{swatch(i) if swatches else ""}{escape(name)}</th>'
        for i, name in enumerate(comparison.names, start=1)
    )
    by_key = {row.key: row for row in comparison.rows}
    rows = []
    for row in map(by_key.__getitem__, keys):
        cells = "".join(
            _page_cell(figure, differs, i == row.most_private)
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


def _page_cell(figure: Figure | None, differs: bool, private: bool) -> str:
    if figure is None:
        return '<td class="number">–</td>'
    marks = '<b class="private" title="nearest to no evidence">°</b>' if private else ""
    if differs:
        marks += '<b class="differs" title="differs from the first system">*</b>'
    limits = with_minus(format_limits(figure))
    return f'<td class="number">{value_text(figure)}{marks}<small>{limits}</small></td>'


def swatch(index: int) -> str:
    """Format a patch of the colour of the n-th system, from 1."""
    return f'<i class="swatch" style="background:var(--s{(index - 1) % 6 + 1})"></i>'


def value_text(figure: Figure) -> str:
    """Format the value of a figure, escaped."""
    return with_minus(format_value(figure.value, figure.unit, figure.text))


def _ceiling(figure: Figure) -> str:
    value = figure.ceiling
    return "" if value is None else with_minus(format_value(value, figure.unit))


def with_minus(text: str) -> str:
    """Escaped text; a number with a real minus sign."""
    html = escape(text)
    return html.replace("-", "\N{MINUS SIGN}") if text.strip("-0123456789., %tonif") == "" else html


def unit_text(figure: Figure) -> str:
    """Format the unit of a figure, where it is not a share or a count."""
    return "" if figure.unit in ("share", "count") else figure.unit


# -------------------------------------------------------------------------------------------- page
# The HTML page of an evaluation: one file without scripts, fonts or anything to fetch.

_FOOT = (
    "Limits are 95 %, over resampled speakers. This page holds no voice and no score; notes may "
    "name a trial or a speaker."
)


def save_page(
    reports: Sequence[Report],
    path: Path,
    comparison: Comparison | None = None,
    groups: Sequence[Grouped] = (),
    pairs: Sequence[Pair] = (),
) -> None:
    """Write `page` to a file (mode 0600), at once or not at all.

    Raises:
        UsageError: as `page`.
        StoreError: the place cannot be written.
    """
    write_text(page(reports, comparison, groups, pairs), path)


def page(
    reports: Sequence[Report],
    comparison: Comparison | None = None,
    groups: Sequence[Grouped] = (),
    pairs: Sequence[Pair] = (),
) -> str:
    """Format the page: what it means, pictures, all figures, and where each misleads.

    It holds figures and names of systems, escaped, and no scores; notes may name a trial or a
    speaker. Several systems need their comparison.

    Raises:
        UsageError: no report, or several without a comparison.
    """
    if not reports or (len(reports) > 1) != (comparison is not None):
        raise UsageError("a page needs one report, or several and their comparison")
    names = [report.name for report in reports]
    title = f"Disclosure of {names[0]}" if len(names) == 1 else " · ".join(names)
    parts = [
        "".join(warning(text) for report in reports for text in report.warnings),
        _meaning(reports),
        _main(reports, comparison),
        _pairs(reports, pairs),
        *map(_groups, groups),
        _pictures(reports),
        _tables(reports, comparison),
        _caveats(reports),
    ]
    lines = [" · ".join(fact_list(report)) for report in reports]
    named = [f"{name}: {line}" for name, line in zip(names, lines, strict=True)]
    return document(title, lines[:1] if len(set(lines)) == 1 else named, parts, _FOOT)


def _meaning(reports: Sequence[Report]) -> str:
    blocks = []
    shared = [note for note in reports[0].notes if all(note in r.notes for r in reports)]
    for index, report in enumerate(reports, start=1):
        text = paragraphs(*meaning(report))
        own = [note for note in report.notes if note not in shared]
        head = f"<h3>{swatch(index)}{escape(report.name)}</h3>" if len(reports) > 1 else ""
        blocks.append(f"<div>{head}{text}{bullet_list(own, 'notes')}</div>")
    return (
        '<section class="card"><h2>What it means</h2>'
        f'<div class="columns">{"".join(blocks)}</div>{bullet_list(shared, "notes")}</section>'
    )


def _pictures(reports: Sequence[Report]) -> str:
    legend = ""
    if len(reports) > 1:
        named = enumerate(reports, start=1)
        items = "".join(f"<li>{swatch(i)}{escape(r.name)}</li>" for i, r in named)
        legend = f'<ul class="legend">{items}</ul>'
    curves = [report.curves for report in reports]
    drawings = [drawing for family in families() for drawing in family.drawings]
    figures = "".join(
        picture(drawing.title, legend + drawing.svg, drawing.caption)
        for drawing in pictures(curves, drawings)
    )
    return f'<div class="pictures">{figures}</div>'


def _main(reports: Sequence[Report], comparison: Comparison | None) -> str:
    """Format the few to look at first."""
    have = main_keys(dict.fromkeys(key for report in reports for key in report.figures))
    if not have:
        return ""
    parts = ['<section class="card"><h2>The figures that matter</h2>']
    if comparison is not None:
        parts.append(bullet_list(comparison.notes, "notes"))
        parts.append(
            '<p class="key"><b class="differs">*</b> differs from the first system · '
            '<b class="private">°</b> nearest to no evidence</p>'
        )
    return "".join([*parts, _figures(reports, comparison, have), "</section>"])


def _pairs(reports: Sequence[Report], pairs: Sequence[Pair]) -> str:
    """Format differences of all pairs, of the figures that matter."""
    if not pairs:
        return ""
    labels = {key: figure for report in reports for key, figure in report.figures.items()}
    replicates = min(report.replicates for report in reports)
    smallest = len(pairs) / max(replicates, 1)
    rows = []
    for key in main_figures():
        for pair in pairs:
            difference = pair.differences.get(key)
            if difference is None or difference.low is None:
                continue
            figure = replace(
                labels[key],
                value=difference.value,
                low=difference.low,
                high=difference.high,
                replicates=None,
            )
            star = '<b class="differs">*</b>' if difference.significant else ""
            rows.append(
                f'<tr><th scope="row">{escape(figure.label)}</th>'
                f"<td>{escape(pair.other)} \N{MINUS SIGN} {escape(pair.first)}</td>"
                f'<td class="number">{value_text(figure)}{star}</td>'
                f"<td>{escape(unit_text(figure))}</td>"
                f'<td class="limits">{with_minus(format_limits(figure))}</td>'
                f'<td class="number">{p_text(pair.p[key], smallest)}</td></tr>'
            )
    explanations = explain_pairs(pairs, replicates)
    return (
        f'<section class="card"><h2>Differences of all pairs</h2>'
        f"{bullet_list(explanations, 'notes')}"
        '<div class="scroll"><table><thead><tr><th>Figure</th><th>Pair</th>'
        '<th class="number">Difference</th><th>Unit</th><th>Limits</th><th class="number">p</th>'
        f"</tr></thead><tbody>{''.join(rows)}</tbody></table></div></section>"
    )


def _groups(part: Grouped) -> str:
    """Format one system, group by group."""
    keys = main_keys(row.key for row in part.comparison.rows)
    return (
        f'<section class="card"><h2>{escape(part.name)}, group by group</h2>'
        f"{bullet_list(part.notes, 'notes')}"
        '<p class="key"><b class="differs">*</b> differs from the first group · '
        '<b class="private">°</b> nearest to no evidence</p>'
        f"{comparison_table(part.comparison, keys, swatches=False)}</section>"
    )


def _figures(reports: Sequence[Report], comparison: Comparison | None, keys: Sequence[str]) -> str:
    if comparison is None:
        return figures_table([reports[0].figures[key] for key in keys])
    return comparison_table(comparison, keys)


def _tables(reports: Sequence[Report], comparison: Comparison | None) -> str:
    parts = ['<section class="card"><h2>All figures</h2>']
    keys = dict.fromkeys(key for report in reports for key in report.figures)
    for family, members in by_family(keys).items():
        parts.append(f"<h3>{escape(title_of(family))}</h3>")
        parts.append(_figures(reports, comparison, members))
        firsts = (next(r.figures[key] for r in reports if key in r.figures) for key in members)
        parts.append(f'<p class="key">{escape(tie_rules(list(firsts)))}</p>')
    return "".join([*parts, "</section>"])


def _caveats(reports: Sequence[Report]) -> str:
    shown = by_family(dict.fromkeys(key for report in reports for key in report.figures))
    items = "".join(
        f"<dt>{escape(family.title)}</dt><dd>{escape(family.caveat)}</dd>"
        for family in map(family_of, shown)
        if family is not None
    )
    return f'<section class="card"><h2>Where each metric misleads</h2><dl>{items}</dl></section>'
