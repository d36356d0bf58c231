"""Who attacks: what each attacker knows of the protector, and does about it.

The hierarchy is that of the VoicePrivacy challenges, as in LID section 3.2.3, USC and VoxGuard.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from monitor.errors import UsageError
from monitor.protocols import Feature

if TYPE_CHECKING:
    from monitor.attacks.bench import Bench

__all__ = ["ATTACKERS", "ThreatModel", "attacker_named"]


@dataclass(frozen=True, slots=True)
class ThreatModel:
    """What one attacker knows and does; what a trial is does not depend on it.

    Attributes:
        name: how it is called everywhere.
        knows: in a sentence, for people.
        protects: whether enrolled speech, and the background that laws are learnt on, are protected
            by the method too, with draws of the attacker's own.
        needs_background: whether it cannot work without speech of other readers.
        trains: whether it trains on a part of that speech; laws are then learnt on the rest alone.
        features: from the bench and the method to what it hears with, by the name under which it is
            shown; None: with the features that were asked for.
    """

    name: str
    knows: str
    protects: bool
    needs_background: bool = False
    trains: bool = False
    features: Callable[[Bench, str], Mapping[str, str | Feature]] | None = None


def _semi_informed(bench: Bench, method: str) -> Mapping[str, str | Feature]:
    from monitor.attacks.semi_informed import semi_informed  # it needs what is defined here

    return semi_informed(bench, method)


ATTACKERS: dict[str, ThreatModel] = {
    each.name: each
    for each in (
        ThreatModel(
            "ignorant",
            "knows of no protection: templates and laws of clear speech",
            protects=False,
        ),
        ThreatModel(
            "lazy-informed",
            "knows the method, not its draws: enrolled speech is protected too, and so is what "
            "laws are learnt on",
            protects=True,
        ),
        ThreatModel(
            "semi-informed",
            "knows the method and has speech of other readers: trains the voice network on it, "
            "protected, beside what lazy-informed does",
            protects=True,
            needs_background=True,
            trains=True,
            features=_semi_informed,
        ),
    )
}
"""Every attacker, the weakest first."""


def attacker_named(name: str) -> ThreatModel:
    """The attacker of that name.

    Raises:
        UsageError: there is none.

    Example:
        >>> attacker_named("lazy-informed").protects
        True
    """
    if name not in ATTACKERS:
        raise UsageError(f"no attacker is called {name!r}; there are {', '.join(ATTACKERS)}")
    return ATTACKERS[name]
