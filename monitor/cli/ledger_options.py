"""Options for the ledger, shared by the commands that hear a stream."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from monitor.cli.options import NumberOfBits, Seconds, grouped
from monitor.errors import UsageError

if TYPE_CHECKING:
    from monitor.alerts import Threshold
    from monitor.run import LedgerFile

__all__ = ["LedgerOptions", "ledger_options"]


_OPTIONS = (
    click.option(
        "--ledger",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE.db",
        help="Add this session to a ledger, and go on from the earlier ones of the watched "
        "speaker. It holds counts and readings, never audio.",
    ),
    click.option(
        "--ledger-every",
        type=Seconds(),
        default="10",
        show_default=True,
        help="Stream seconds between the readings that the ledger keeps.",
    ),
    click.option(
        "--budget",
        type=NumberOfBits(),
        metavar="BITS",
        help="Warn one bit before all sessions in the ledger together have disclosed so much, "
        "and raise an alert when they have.",
    ),
)


@dataclass(frozen=True, slots=True)
class LedgerOptions:
    """What was asked for; a command gets it as ``of_ledger``.

    Attributes:
        ledger: the file, or None.
        ledger_every: stream seconds from one kept reading to the next.
        budget: bits, or None.

    Raises:
        UsageError: a budget without a ledger.
    """

    ledger: Path | None
    ledger_every: float
    budget: float | None

    def __post_init__(self) -> None:
        if self.budget is not None and self.ledger is None:
            raise UsageError(
                "--budget counts over all sessions: it needs --ledger FILE.db; for this one "
                f"alone use --alert 'bits>{self.budget:g}'"
            )

    def rules(self) -> list[Threshold]:
        """Those of the budget, if there is one."""
        from monitor.alerts import budget

        return [] if self.budget is None else budget(self.budget)

    def file(self) -> LedgerFile | None:
        """For a `Run`."""
        from monitor.run import LedgerFile

        return None if self.ledger is None else LedgerFile(self.ledger, self.ledger_every)


ledger_options = grouped("of_ledger", LedgerOptions, _OPTIONS)
"""The options, given to the command as one argument ``of_ledger``."""
