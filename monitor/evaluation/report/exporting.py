r"""Figures as CSV for other programs, and as a LaTeX table for a paper."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Sequence

from monitor.evaluation.family import Figure
from monitor.evaluation.report.comparing import Comparison, Grouped, Pair, Row
from monitor.evaluation.report.report import (
    Report,
    facts,
    format_limits,
    format_value,
    main_keys,
    short_name,
)

__all__ = ["escaped", "figures_csv", "latex_table", "pairs_csv"]

_HEAD = (
    "system", "group", "figure", "key", "label", "value", "text", "low", "high", "unit", "ceiling",
    "floor", "speakers", "trials", "ties", "note",
)  # fmt: skip
_SYMBOLS = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "_": r"\_", "%": r"\%", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
    "ε": r"$\varepsilon$", "δ": r"$\delta$", "≤": r"$\leq$", "′": r"$'$", "°": r"\textdegree{}",
    "\N{MINUS SIGN}": "$-$",
}  # fmt: skip


def figures_csv(
    reports: Sequence[Report], parts: Sequence[Grouped] = (), shown: Sequence[str] | None = None
) -> str:
    """One line a figure, all systems and groups below one another.

    Args:
        reports: of the systems.
        parts: their groups.
        shown: keys of the figures; all by default.

    Returns:
        CSV with a header. Shares are 0 to 1, numbers have all of their digits, what does not exist
        is empty, what is infinite reads ``inf``.
    """
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(_HEAD)
    for report in reports:
        table.writerows(_lines(report, report.name, "", shown))
        for part in parts:
            if part.name == report.name:
                for each in part.comparison.reports:
                    table.writerows(_lines(each, part.name, each.name, shown))
    return text.getvalue()


def _lines(
    report: Report, system: str, group: str, shown: Sequence[str] | None
) -> Iterator[list[str]]:
    for key in report.figures if shown is None else shown:
        if key in report.figures:
            figure = report.figures[key]
            low, high = figure.limits
            yield [
                system, group, short_name(key), key, figure.label, _number(figure.value),
                figure.text, _number(low), _number(high), figure.unit, _number(figure.ceiling),
                _number(figure.floor), str(report.speakers), str(report.trials_of(key)),
                figure.ties, figure.note,
            ]  # fmt: skip


def pairs_csv(pairs: Sequence[Pair]) -> str:
    """One line a pair of systems and figure."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(("system", "minus", "figure", "difference", "low", "high", "p", "paired"))
    for pair in pairs:
        for key, each in pair.differences.items():
            table.writerow(
                (pair.other, pair.first, short_name(key), _number(each.value), _number(each.low),
                 _number(each.high), _number(pair.p[key]), "yes" if pair.paired else "no")
            )  # fmt: skip
    return text.getvalue()


def _number(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else repr(float(value))


def escaped(text: str) -> str:
    r"""Text that LaTeX prints as it stands.

    Example:
        >>> print(escaped("D_sys of 50 % & ε̂ \\x"))
        D\_sys of 50 \% \& $\hat{\varepsilon}$ \textbackslash{}x
    """
    made = "".join(_SYMBOLS.get(letter, letter) for letter in text.replace("ε\u0302", "\0"))
    return made.replace("\0", r"$\hat{\varepsilon}$")


def latex_table(
    reports: Sequence[Report],
    comparison: Comparison | None = None,
    parts: Sequence[Grouped] = (),
    shown: Sequence[str] | None = None,
) -> str:
    r"""A table for a paper, and one more for the groups of each system; needs ``booktabs``.

    Args:
        reports: of the systems.
        comparison: of the same systems, where there are several.
        parts: their groups.
        shown: keys of the figures; those that matter by default.
    """
    wanted = main_keys(reports[0].figures) if shown is None else shown
    tables = []
    if comparison is None:
        (report,) = reports
        rows = [Row(key, (figure,), (None,), None) for key, figure in report.figures.items()]
        tables.append(_table([report.name], rows, wanted, facts(report)))
    else:
        said = "; ".join(f"{report.name}: {facts(report)}" for report in reports)
        tables.append(_table(comparison.names, comparison.rows, wanted, said))
    for part in parts:
        said = f"{part.name}, group by group. {part.notes[0]}"
        tables.append(_table(part.comparison.names, part.comparison.rows, wanted, said))
    return "% needs \\usepackage{booktabs}\n" + "\n".join(tables)


def _table(names: Sequence[str], rows: Iterable[Row], keys: Sequence[str], caption: str) -> str:
    by_key = {row.key: row for row in rows}
    have = [by_key[key] for key in keys if key in by_key]
    starred = any(any(row.differs) for row in have)
    best = any(row.most_private is not None for row in have)
    legend = [
        "In brackets: 95\\,\\% limits over resampled speakers.",
        f"$^*$: differs from {escaped(names[0])}." if starred else "",
        "Bold: nearest to no evidence." if best else "",
    ]
    lines = [
        "\\begin{table}",
        "\\centering",
        f"\\caption{{{escaped(caption)}. {' '.join(filter(None, legend))}}}",
        f"\\begin{{tabular}}{{l{'r' * len(names)}}}",
        "\\toprule",
        " & ".join(["Figure", *map(escaped, names)]) + " \\\\",
        "\\midrule",
        *(_row(row) for row in have),
        "\\bottomrule",
        "\\end{tabular}",
        "\\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _row(row: Row) -> str:
    unit = row.first.unit
    label = escaped(row.first.label) + (f" ({unit})" if unit in ("bits", "nats") else "")
    cells = [
        _cell(figure, differs, i == row.most_private)
        for i, (figure, differs) in enumerate(zip(row.figures, row.differs, strict=True))
    ]
    return " & ".join([label, *cells]) + " \\\\"


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
    made = escaped(text.replace(" to ", ", ").replace("-", "\N{MINUS SIGN}"))
    return made.replace(" \\%", "\\,\\%")
