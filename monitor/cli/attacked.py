"""What an attack found, on a terminal: the headline, and one line for each attacker and feature."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.cli.console import made_console

if TYPE_CHECKING:
    from monitor.attacks.results import AttackResults, AttackRow

__all__ = ["print_attacks"]

_WIDE = 100
_COLUMNS = ("method", "attacker", "feature", "bits", "limits", "first", "EER", "N", "trials")


def print_attacks(results: AttackResults) -> None:
    """Print to stdout."""
    from rich.table import Table
    from rich.text import Text

    from monitor.attacks.tables import told_attributes
    from monitor.attacks.wording import caveats, headline

    console = made_console(_WIDE)
    for line in headline(results):
        console.print(Text(line, style="bold"))
    console.print()
    made = Table(box=None, header_style="dim", pad_edge=False)
    for name in _COLUMNS:
        made.add_column(name, justify="left" if name in _COLUMNS[:3] else "right")
    for method in results.settings.methods:
        for row in results.main(method):
            made.add_row(*map(Text, _cells(row)))
    console.print(made)
    console.print()
    for name, rows in results.attributes.items():
        console.print(Text(f"Attribute: {name}", style="bold"))
        for line in told_attributes(rows):
            console.print(Text(line))
        console.print()
    settings = results.settings
    told = f"Templates of {settings.template_seconds:g} s of speech, trials of "
    told += f"{settings.seconds:g} s, bits (MeanD) with 95 % limits. All figures: the page."
    console.print(Text(told))
    for line in caveats(results):
        console.print(Text(line, style="dim"))


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
