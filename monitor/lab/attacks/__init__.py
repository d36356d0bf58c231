"""Attacks on protected speech: what is left of a voice for those who know what was done to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.lab.attacks.attackers import ATTACKERS
    from monitor.lab.attacks.context import AttackContext, Background, ThreatModel
    from monitor.lab.attacks.results import AttackResults, AttackRow
    from monitor.lab.attacks.trying import AttackConfig, attack, prepare, try_methods

__all__ = [
    "ATTACKERS",
    "AttackConfig",
    "AttackContext",
    "AttackResults",
    "AttackRow",
    "Background",
    "ThreatModel",
    "attack",
    "prepare",
    "try_methods",
]

_HOMES = {
    "attackers": "ATTACKERS",
    "context": "AttackContext Background ThreatModel",
    "results": "AttackResults AttackRow",
    "trying": "AttackConfig attack prepare try_methods",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
