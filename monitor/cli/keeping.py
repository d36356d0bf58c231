"""Options for the ledger, shared by the commands that hear a stream."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from monitor.cli.options import Bits, Seconds, with_options

if TYPE_CHECKING:
    from monitor.alerts import Threshold
    from monitor.ledger import LedgerSession
    from monitor.ledger.ledger import HeardPart
    from monitor.stream.monitor import Monitor

__all__ = ["Keeping", "ledger_options"]

_Command = TypeVar("_Command", bound=Callable[..., Any])


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
        type=Bits(),
        metavar="BITS",
        help="Warn one bit before all sessions in the ledger together have disclosed so much, "
        "and raise an alert when they have.",
    ),
    click.option(
        "--evidence-budget",
        type=Bits(),
        metavar="BITS",
        help="The same in bits of evidence, which the number of people enrolled puts no end to.",
    ),
)


@dataclass(frozen=True, slots=True)
class Keeping:
    """What was asked for; a command gets it as ``keeping``.

    Attributes:
        path: of the ledger, or None.
        every: stream seconds from one kept reading to the next.
        budget_bits: ``--budget``, or None.
        evidence_bits: ``--evidence-budget``, or None.
    """

    path: Path | None
    every: float
    budget_bits: float | None
    evidence_bits: float | None = None

    def rules(self) -> list[Threshold]:
        """Those of the budget, if there is one."""
        from monitor.alerts import budget

        both = {"bits": self.budget_bits, "evidence_bits": self.evidence_bits}
        return [
            rule for name, bits in both.items() if bits is not None for rule in budget(bits, name)
        ]

    def session(
        self, monitor: Monitor, heard: Iterable[HeardPart] = (), *, resume: bool = False
    ) -> LedgerSession | None:
        """Open the ledger, and make a fresh monitor go on from what it holds; None without one.

        Give what comes back to ``run``, among the ``actions`` and, with a checkpoint, in
        ``stateful``; and give ``run`` the start record that its ``begin`` makes. No file is made
        where one must be there (``resume``), or where the monitor does not go with a ledger.
        """
        if self.path is None:
            return None
        from monitor.ledger import Ledger, LedgerSession
        from monitor.ledger.session import check

        check(monitor)
        ledger = Ledger(self.path, create=not resume)
        try:
            return LedgerSession(ledger, monitor, reading_seconds=self.every, heard=heard)
        except BaseException:
            ledger.close()
            raise


def ledger_options(command: _Command) -> _Command:
    """The options, given to the command as one argument ``keeping``."""

    @functools.wraps(command)
    def wrapped(*args: Any, **given: Any) -> Any:
        from monitor.errors import UsageError

        names = ("ledger", "ledger_every", "budget", "evidence_budget")
        path, every, *budgets = (given.pop(name) for name in names)
        for option, field, bits in zip(
            ("--budget", "--evidence-budget"), ("bits", "evidence_bits"), budgets, strict=True
        ):
            if bits is not None and path is None:
                raise UsageError(
                    f"{option} counts over all sessions: it needs --ledger FILE.db; for this one "
                    f"alone use --alert '{field}>{bits:g}'"
                )
        return command(*args, keeping=Keeping(path, every, *budgets), **given)

    return with_options(wrapped, _OPTIONS)  # type: ignore[no-any-return]
