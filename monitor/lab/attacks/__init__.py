"""Attacks on protected speech, to measure how well informed attackers recognise voices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.lab.attacks.attackers import ATTACKERS, AttackContext, Background, ThreatModel
    from monitor.lab.attacks.attacking import AttackConfig, attack, prepare, try_methods
    from monitor.lab.attacks.results import AttackResults, AttackRow

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
    "attackers": "ATTACKERS AttackContext Background ThreatModel",
    "attacking": "AttackConfig attack prepare try_methods",
    "results": "AttackResults AttackRow",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
