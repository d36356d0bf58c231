"""The figures of an evaluation as a table, for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from monitor.cli.console import made_console

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from monitor.evaluation.figure import Figure
    from monitor.evaluation.report.comparing import Comparison, Row
    from monitor.evaluation.report.grouping import Grouped
    from monitor.evaluation.report.pairwise import Pair
    from monitor.evaluation.report.report import Report

__all__ = ["print_catalogue", "print_comparison", "print_groups", "print_pairs", "print_report"]

_WIDE = 80  # where nobody looks at a terminal and COLUMNS does not say
_NARROW = 60  # no room for the column of ceilings
_LIMITS_FOR = 3  # systems side by side: more have no room for limits
_CELL = 9


def print_report(report: Report, shown: Sequence[str] | None = None, every: bool = False) -> None:
    """Print figures of one system to stdout.

    Args:
        report: of the system.
        shown: keys of the figures of the first table; those that matter by default.
        every: whether all others follow, a table for each family.
    """
    from monitor.evaluation.report.wording import facts, meaning

    console = made_console(_WIDE)
    console.print(f"{report.name}: {facts(report)}", style="bold")
    _warn(console, report)
    for title, keys in _tables(report.figures, shown, every):
        figures = [report.figures[key] for key in keys]
        _print_figures(console, title, figures)
        if title in (_FIRST, _CHOSEN):
            console.print()
            notes = report.notes if shown is None else report.notes_on(shown)
            for paragraph in (*(meaning(report) if title == _FIRST else ()), *notes):
                console.print(paragraph)
    _print_more(console, len(report.figures), shown, every)


def _warn(console: Console, report: Report) -> None:
    for text in report.warnings:
        console.print(f"WARNING: {text}", style="bold red")


def _print_figures(console: Console, title: str, figures: Sequence[Figure]) -> None:
    from monitor.evaluation.report.wording import format_limits, format_value, tie_rules

    notes = _Notes()
    columns = [("value", 9), ("95 % limits", 17), ("ceiling", 7)]
    if console.width < _NARROW:
        del columns[2]
    table = _table(title, console.width - 10 - sum(width + 1 for _, width in columns))
    for name, width in columns:
        table.add_column(name, justify="right", min_width=width, no_wrap=True, header_style="dim")
    _end(table)
    for figure in figures:
        ceiling = "" if figure.ceiling is None else format_value(figure.ceiling, figure.unit)
        value = format_value(figure.value, figure.unit, figure.text)
        cells = (value, format_limits(figure), ceiling)[: len(columns)]
        table.add_row(figure.label, *cells, _unit(figure), notes.number(_sentence(figure.note)))
    console.print()
    console.print(table)
    notes.print(console, tie_rules(figures))


def print_comparison(
    comparison: Comparison, shown: Sequence[str] | None = None, every: bool = False
) -> None:
    """Print figures of several systems to stdout, a column for each.

    Args:
        comparison: of the systems.
        shown: as `print_report`.
        every: likewise.
    """
    from monitor.evaluation.report.wording import facts, meaning

    console = made_console(_WIDE)
    for report in comparison.reports:
        console.print(f"{report.name}: {facts(report)}", style="bold")
        _warn(console, report)
    rows = {row.key: row for row in comparison.rows}
    for title, keys in _tables(rows, shown, every):
        _print_rows(console, title, comparison, [rows[key] for key in keys])
        if title not in (_FIRST, _CHOSEN):
            continue
        console.print("\n\N{DEGREE SIGN} nearest to no evidence")
        for note in comparison.notes:
            console.print(note)
        console.print()
        for report in comparison.reports:
            for paragraph in meaning(report)[: title == _FIRST]:
                console.print(f"{report.name}: {paragraph}")
        said = Counter(
            note
            for report in comparison.reports
            for note in (report.notes if shown is None else report.notes_on(shown))
        )
        for note, count in said.items():
            names = ", ".join(each.name for each in comparison.reports if note in each.notes)
            console.print(note if count == len(comparison.names) else f"{names}: {note}")
    _print_more(console, len(rows), shown, every)


def _print_rows(console: Console, title: str, comparison: Comparison, rows: Sequence[Row]) -> None:
    """As many systems side by side as there is room for, then the others."""
    from monitor.evaluation.report.wording import tie_rules

    names = comparison.names
    room = console.width - 34
    most = max(1, room // (_CELL + 1))
    wide = len(names) <= min(_LIMITS_FOR, room // (_CELL + 5))
    notes = _Notes()
    for first in range(0, len(names), most):
        part = range(first, min(first + most, len(names)))
        table = _table(title, max(20, console.width - 11 - len(part) * (_CELL + 1)), 24)
        for i in part:
            width = min(18, room // len(names) - 1) if wide else _CELL
            table.add_column(
                names[i], justify="right", width=width, overflow="fold", header_style="dim"
            )
        _end(table)
        for row in rows:
            table.add_row(
                row.first.label,
                *(_cell(row, i, wide) for i in part),
                _unit(row.first),
                notes.number(_said(row, names)),
            )
        console.print()
        console.print(table)
    notes.print(console, tie_rules([row.first for row in rows]))


def _cell(row: Row, index: int, limits: bool) -> str:
    from monitor.evaluation.report.wording import format_limits, format_value

    figure = row.figures[index]
    if figure is None:
        return "-"
    text = format_value(figure.value, figure.unit, figure.text) + _marks(row, index)
    between = format_limits(figure) if limits else ""
    return f"{text}\n{between}" if between else text


def print_groups(
    parts: Sequence[Grouped], shown: Sequence[str] | None = None, every: bool = False
) -> None:
    """Print the groups of each system to stdout, a column for each and one for their average.

    Args:
        parts: a system each.
        shown: as `print_report`.
        every: likewise.
    """
    console = made_console(_WIDE)
    for part in parts:
        console.print(f"\n{part.name}, group by group", style="bold")
        for note in part.notes:
            console.print(note)
        rows = {row.key: row for row in part.comparison.rows}
        for title, keys in _tables(rows, shown, every):
            _print_rows(console, title, part.comparison, [rows[key] for key in keys])
        first = part.comparison.names[0]
        console.print(f"\n* differs from {first} · \N{DEGREE SIGN} nearest to no evidence")


def print_pairs(pairs: Sequence[Pair], reports: Sequence[Report]) -> None:
    """Print the differences of pairs of systems to stdout, a line each."""
    from monitor.evaluation.figure import Figure
    from monitor.evaluation.report.pairwise import p_text, said_of
    from monitor.evaluation.report.wording import format_limits, format_value

    if not pairs:
        return
    console = made_console(_WIDE)
    replicates = min(report.replicates for report in reports)
    least = len(pairs) / max(replicates, 1)
    first = {key: figure for report in reports for key, figure in report.figures.items()}
    for key in pairs[0].differences:
        if all(pair.differences[key].low is None for pair in pairs):
            continue
        unit = first[key].unit
        table = _table(first[key].label, console.width - 48)
        for name, width in (("difference", 10), ("limits", 20), ("p", 7), ("", 1)):
            table.add_column(name, justify="right", min_width=width, header_style="dim")
        for pair in pairs:
            each = pair.differences[key]
            between = format_limits(Figure("", "", each.value, unit, low=each.low, high=each.high))
            table.add_row(
                f"{pair.other} \N{MINUS SIGN} {pair.first}",
                format_value(each.value, unit),
                between,
                p_text(pair.p[key], least),
                "*" if each.significant else "",
            )
        console.print()
        console.print(table)
    console.print()
    for note in said_of(pairs, replicates):
        console.print(note)


def print_catalogue() -> None:
    """Print the name of every figure to stdout, with what it says."""
    from rich.table import Table

    from monitor.evaluation.report.catalogue import entries, optional_entries

    table = Table.grid(padding=(0, 1, 0, 0))
    for entry in entries():
        table.add_row(entry.name, entry.says)
    for option, entry in optional_entries():
        table.add_row(entry.name, f"with {option}: {entry.says}")
    made_console(_WIDE).print(table)


class _Notes:
    """Sentences under a table, each once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, note: str) -> str:
        return str(self._numbers.setdefault(note, len(self._numbers) + 1)) if note else ""

    def print(self, console: Console, ties: str) -> None:
        from rich.table import Table

        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_column(justify="right", min_width=3, style="dim")
        grid.add_column(style="dim")
        for note, number in self._numbers.items():
            grid.add_row(str(number), note)
        if ties:
            grid.add_row("", ties)
        console.print(grid)


def _table(title: str, width: int, most: int = 34) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(title, width=min(most, max(12, width)), overflow="fold", header_style="bold")
    return table


def _end(table: Table) -> None:
    """The last two columns of every table."""
    table.add_column("unit", width=5, header_style="dim")
    table.add_column("", justify="right", min_width=2, no_wrap=True, header_style="dim")


_FIRST, _CHOSEN = "The figures that matter", "Figure"


def _tables(
    keys: Iterable[str], shown: Sequence[str] | None, every: bool
) -> Iterable[tuple[str, list[str]]]:
    """Title and keys of each table."""
    from monitor.evaluation.families import family_of
    from monitor.evaluation.report.catalogue import by_family, main_keys, title_of

    have = list(keys)
    if shown is not None:
        yield _CHOSEN, [key for key in shown if key in have]
        return
    yield _FIRST, main_keys(have)
    for key, members in by_family(have).items():
        family = family_of(key)
        if every or (family is not None and family.option):
            yield title_of(key), members


def _print_more(console: Console, count: int, shown: Sequence[str] | None, every: bool) -> None:
    if shown is None and not every:
        console.print(f"\nAll {count} figures: --all. What each one says: --figures help.")


def _marks(row: Row, index: int) -> str:
    private = "\N{DEGREE SIGN}" if row.most_private == index else ""
    return private + ("*" if row.differs[index] else "")


def _unit(figure: Figure) -> str:
    return "" if figure.unit in ("share", "count") else figure.unit


def _said(row: Row, names: Sequence[str]) -> str:
    """As a sentence, unless it begins with the name of a system."""
    note = row.note(names)
    return _sentence(note) if note == row.first.note else note


def _sentence(note: str) -> str:
    note = note.strip()
    return note[:1].upper() + note[1:] + ("" if note.endswith(".") or not note else ".")
