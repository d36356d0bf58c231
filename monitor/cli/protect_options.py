"""Options to hear a voice through a protector as well, for commands that hear a stream."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import click

from monitor.cli.monitor_options import mark_of
from monitor.cli.options import grouped
from monitor.errors import UsageError

if TYPE_CHECKING:
    from monitor.population.population import Population
    from monitor.run import Protection

__all__ = ["Protecting", "protecting_options"]


@dataclass(frozen=True, slots=True)
class Protecting:
    """What was asked for; a command gets it as ``protecting``.

    Attributes:
        protect: the method, or None.
        protected_population: name of a file, or None.
        protect_seed: a number, or None.
    """

    protect: str | None
    protected_population: str | None
    protect_seed: int | None

    @property
    def files(self) -> list[str]:
        """What is read."""
        return [self.protected_population] if self.protected_population else []

    def protection(self, ledger: Path | None) -> Protection | None:
        """For a `Run`; None where no protector was asked for.

        Args:
            ledger: the file of ``--ledger``, which does not go with a protector.

        Raises:
            MonitorError: options do not go together, or the population cannot be read.
        """
        from monitor.run import Protection

        if self.protect is None:
            for option, given in (
                ("--protected-population", self.protected_population),
                ("--protect-seed", self.protect_seed),
            ):
                if given is not None:
                    raise UsageError(f"{option} goes with --protect METHOD")
            return None
        if ledger is not None:
            raise UsageError(
                "--ledger goes on from earlier sessions of the clear voice, and would begin it "
                "ahead of the protected one: leave out --ledger or --protect"
            )
        name = self.protected_population
        known = None if name is None else _once(name, mark_of(name))
        return Protection(self.protect, known, self.protect_seed)


@lru_cache(maxsize=1)
def _once(name: str, _mark: object) -> Population:
    """A population, read once for many recordings."""
    from monitor.population.population import Population

    return Population.load(name)


protecting_options = grouped(
    "protecting",
    Protecting,
    (
        click.option(
            "--protect",
            metavar="METHOD",
            help="Hear the voice through a protector as well (mcadams:0.8, noise:10, ... of "
            "`monitor protect`; command:CMD in a replay), and tell the bits of both, and how many "
            "seconds it buys before 1, 2, 3 and 10 bits are out (of a watched speaker), by one "
            "process a recording. Nothing protected is stored or played. An --alert stands on the "
            "clear voice (bits>3), which no weak attacker makes look safe, unless it names the "
            "protected one, that which you send (protected.bits>3).",
        ),
        click.option(
            "--protected-population",
            metavar="FILE",
            help="The same people enrolled from speech protected by METHOD, and calibrated on such "
            "speech: what an attacker has who knows the protector. The stronger attacker of the "
            "two is shown. [default: one who does not know the anonymiser: no measure of "
            "protection]",
        ),
        click.option(
            "--protect-seed",
            type=click.IntRange(min=0),
            metavar="N",
            help="The same draws as with this number before, of a METHOD that draws. [default: new "
            "draws]",
        ),
    ),
)
"""Adds ``--protect`` and what goes with it, as the argument ``protecting``."""
