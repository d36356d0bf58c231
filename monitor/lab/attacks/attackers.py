"""The attackers of an anonymiser test, the weakest first."""

from __future__ import annotations

from monitor.errors import UsageError
from monitor.lab.attacks.context import ThreatModel
from monitor.lab.attacks.semi_informed import choose_features

ATTACKERS: dict[str, ThreatModel] = {
    attacker.name: attacker
    for attacker in (
        ThreatModel(
            "ignorant",
            "knows of no protection: templates and rank models of clear speech",
            protects=False,
        ),
        ThreatModel(
            "lazy-informed",
            "knows the method, not its draws: enrolled speech is protected too, and so is what "
            "rank models are learnt on",
            protects=True,
        ),
        ThreatModel(
            "semi-informed",
            "knows the method and has speech of other readers: trains the voice network on it, "
            "protected, beside what lazy-informed does",
            protects=True,
            needs_background=True,
            trains=True,
            features=choose_features,
        ),
    )
}
"""Every attacker, the weakest first."""


def get_attacker(name: str) -> ThreatModel:
    """Return the attacker of that name.

    Example:
        >>> get_attacker("lazy-informed").protects
        True
    """
    if name not in ATTACKERS:
        raise UsageError(f"no attacker is called {name!r}; there are {', '.join(ATTACKERS)}")
    return ATTACKERS[name]
