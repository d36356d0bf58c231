"""The figures of an evaluation as a table, for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.console import Console

    from monitor.evaluation.comparing import Comparison, Row
    from monitor.evaluation.figure import Figure
    from monitor.evaluation.report import Report

_Item = TypeVar("_Item")

__all__ = ["print_comparison", "print_report"]

_WIDE = 100  # where nobody looks at a terminal
_LIMITS_FOR = 3  # systems side by side: more have no room for limits


def print_report(report: Report) -> None:
    """Print every figure of one system to stdout, a table for each family."""
    from rich.table import Table

    from monitor.evaluation.wording import format_limits, format_value, meaning, tie_rules

    console = _console()
    _say(console, f"{report.name}: {_facts(report)}", style="bold")
    for paragraph in (*meaning(report), *report.notes):
        _say(console, paragraph)
    for title, figures in _grouped(report.figures.values(), lambda figure: figure.key):
        notes = _Notes()
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column(title, width=34, overflow="fold", header_style="bold")
        for name, width in (("value", 10), ("95 % limits", 20), ("ceiling", 9)):
            table.add_column(name, justify="right", width=width, header_style="dim")
        table.add_column("unit", width=5, header_style="dim")
        table.add_column("note", justify="right", no_wrap=True, header_style="dim")
        for figure in figures:
            ceiling = None if figure.ceiling is None else format_value(figure.ceiling, figure.unit)
            table.add_row(
                figure.label,
                format_value(figure.value, figure.unit, figure.text),
                format_limits(figure),
                ceiling or "",
                _unit(figure),
                notes.number(_sentence(figure.note)),
            )
        console.print()
        console.print(table)
        notes.print(console, tie_rules(figures))


def print_comparison(comparison: Comparison) -> None:
    """Print every figure of several systems to stdout, a column for each."""
    from rich.table import Table

    from monitor.evaluation.wording import format_limits, format_value, meaning, tie_rules

    console = _console()
    for report in comparison.reports:
        _say(console, f"{report.name}: {_facts(report)}", style="bold")
        for paragraph in meaning(report)[:1]:
            _say(console, paragraph)
    for note, count in Counter(n for report in comparison.reports for n in report.notes).items():
        names = ", ".join(report.name for report in comparison.reports if note in report.notes)
        _say(console, note if count == len(comparison.names) else f"{names}: {note}")
    limits = len(comparison.names) <= _LIMITS_FOR
    for title, rows in _grouped(comparison.rows, lambda row: row.key):
        notes = _Notes()
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column(title, width=30, overflow="fold", header_style="bold")
        width = max(8, min(20, 54 // len(comparison.names) - 2))
        for name in comparison.names:
            table.add_column(
                name, justify="right", width=width, overflow="fold", header_style="dim"
            )
        table.add_column("unit", width=5, header_style="dim")
        table.add_column("note", justify="right", no_wrap=True, header_style="dim")
        for row in rows:
            cells = []
            for i, figure in enumerate(row.figures):
                if figure is None:
                    cells.append("-")
                    continue
                text = format_value(figure.value, figure.unit, figure.text) + _marks(row, i)
                between = format_limits(figure) if limits else ""
                cells.append(f"{text}\n{between}" if between else text)
            first = row.first
            table.add_row(
                first.label,
                *cells,
                _unit(first),
                notes.number(_said(row, comparison.names)),
            )
        console.print()
        console.print(table)
        notes.print(console, tie_rules([row.first for row in rows]))
    console.print()
    _say(console, "\N{DEGREE SIGN} nearest to no evidence")
    for note in comparison.notes:
        _say(console, note)


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


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = _WIDE
    return console


def _say(console: Console, text: str, style: str = "") -> None:
    console.print(text, style=style)


def _facts(report: Report) -> str:
    limits = f"{report.draws} resamples" if report.draws else "no limits"
    return (
        f"{report.trials:,} trials of {len(report.tested):,} speakers, N = {report.speakers:,}, "
        f"ceiling {report.ceiling_bits:.2f} bits, {limits}"
    )


def _grouped(
    items: Iterable[_Item], key_of: Callable[[_Item], str]
) -> Iterable[tuple[str, list[_Item]]]:
    from monitor.evaluation.wording import TITLES, families

    by_key = {key_of(item): item for item in items}
    for family, keys in families(by_key).items():
        yield TITLES.get(family, family), [by_key[key] for key in keys]


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
