"""What an attack found, on a terminal: the headline, and one line for each attacker and feature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from monitor.cli.console import made_console

if TYPE_CHECKING:
    from rich.table import Table

    from monitor.attacks.results import AttackResults, AttackRow

__all__ = ["print_attacks"]

_WIDE = 100
_COLUMNS = ("method", "attacker", "feature", "bits", "limits", "first", "EER", "N", "trials")


def print_attacks(results: AttackResults) -> None:
    """Print to stdout."""
    from rich.text import Text

    from monitor.attacks.tables import told_attributes
    from monitor.attacks.wording import caveats, headline

    console = made_console(_WIDE)
    for line in headline(results):
        console.print(Text(line, style="bold"))
    console.print()
    main = [_cells(row) for method in results.settings.methods for row in results.main(method)]
    console.print(_table(_COLUMNS, main, names=3))
    console.print()
    for name, rows in results.attributes.items():
        head, lines = told_attributes(rows)
        console.print(Text(f"Told of a reader: {name}", style="bold"))
        console.print(_table(head, lines, names=5))
        console.print(Text("*: too few readers or excerpts to tell of that rate\n", style="dim"))
    settings = results.settings
    told = f"Templates of {settings.template_seconds:g} s of speech, trials of "
    told += f"{settings.seconds:g} s, bits (MeanD) with 95 % limits. All figures: the page."
    console.print(Text(told))
    for line in caveats(results):
        console.print(Text(line, style="dim"))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], names: int) -> Table:
    """Columns of names to the left, of numbers to the right."""
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, header_style="dim", pad_edge=False)
    for i, name in enumerate(head):
        made.add_column(name, justify="left" if i < names else "right")
    for row in rows:
        made.add_row(*map(Text, row))
    return made


def _cells(row: AttackRow) -> list[str]:
    from monitor.attacks.results import BITS
    from monitor.attacks.wording import method_name
    from monitor.evaluation.report.wording import format_value

    low, high = row.figures[BITS].limits
    rates = [row.figures.get(key) for key in ("srd.idr", "verification.eer_rocch")]
    return [
        method_name(row.method),
        row.attacker,
        row.feature,
        f"{row.bits:.2f}",
        "" if low is None or high is None else f"{low:.2f} to {high:.2f}",
        *("-" if each is None else format_value(each.value, each.unit) for each in rates),
        str(row.speakers),
        str(row.trials),
    ]
