"""Structural types have one home, and what ships fits them."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import monitor.protocols
from monitor.alerts import Conformal, EarlyWarning, Forecast, Threshold
from monitor.alerts.actions.receivers import Bell, Command, Webhook
from monitor.alerts.actions.registry import BackgroundDelivery
from monitor.anonymisers import McAdams, Noise, Program, Unchanged
from monitor.features import Style
from monitor.lab.attacks.attackers import BothNetworks
from monitor.lab.evaluation import Comparisons
from monitor.networks.phones import UnitStream
from monitor.networks.usc import TokenStream
from monitor.networks.voice import VoiceNetwork
from monitor.protocols import (
    AlertAction,
    AlertReceiver,
    AlertRule,
    Anonymiser,
    AudioDevice,
    CodeStream,
    Embedder,
    ExplainedRule,
    LiveSource,
    MarkedEmbedder,
    ScoredComparisons,
    Stateful,
    ThresholdForecast,
    WordFeature,
)
from monitor.run.pace import LoadShedding
from monitor.sources import AudioQueue, Microphone
from monitor.sources.microphone import OpenedInput

FITS: list[tuple[type, type]] = [
    (AlertAction, Bell),
    (AlertReceiver, Command),
    (AlertAction, BackgroundDelivery),
    (AlertReceiver, Webhook),
    (AlertRule, Conformal),
    (AlertRule, EarlyWarning),
    (AlertRule, Threshold),
    (AudioDevice, OpenedInput),
    (CodeStream, TokenStream),
    (CodeStream, UnitStream),
    (Embedder, VoiceNetwork),
    (MarkedEmbedder, VoiceNetwork),
    (MarkedEmbedder, BothNetworks),
    (ExplainedRule, EarlyWarning),
    (LiveSource, AudioQueue),
    (LiveSource, LoadShedding),
    (LiveSource, Microphone),
    (Anonymiser, McAdams),
    (Anonymiser, Noise),
    (Anonymiser, Program),
    (Anonymiser, Unchanged),
    (ScoredComparisons, Comparisons),
    (Stateful, Threshold),
    (ThresholdForecast, Forecast),
    (WordFeature, Style),
]


@pytest.mark.parametrize(("role", "implementation"), FITS)
def test_what_ships_fits(role, implementation):
    # that types agree as well is mypy's part: functions ask for the role and are given these
    asked = {
        name: inspect.signature(each)
        for base in role.__mro__
        if base.__module__.startswith("monitor.")
        for name, each in vars(base).items()
        if inspect.isfunction(each) and name not in ("__init__", "__subclasshook__")
    }
    assert asked
    for name, signature in asked.items():
        offered = inspect.signature(getattr(implementation, name))
        assert list(offered.parameters)[: len(signature.parameters)] == list(signature.parameters)
        needed = list(offered.parameters.values())[len(signature.parameters) :]
        assert all(each.default is not each.empty for each in needed)


def test_every_role_is_listed_and_tested():
    # the first four by tests/test_contracts.py; the shape of a feature is attributes only
    elsewhere = {"Feature", "Sketch", "Source", "Sink"}
    assert {role.__name__ for role, _ in FITS} | elsewhere == set(monitor.protocols.__all__)


def protocols(path: Path) -> list[str]:
    """Classes of a file that are structural types."""
    return [
        node.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        and any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases)
    ]


@pytest.mark.slow
def test_there_are_none_elsewhere():
    home = Path(str(monitor.protocols.__file__))
    here = {path: protocols(path) for path in sorted(home.parent.rglob("*.py"))}
    assert set(here[home]) == set(monitor.protocols.__all__)
    others = {path.name: names for path, names in here.items() if names and path != home}
    # nobody implements these: each spares two files an import circle
    assert {name: set(names) for name, names in others.items()} == {
        "notices.py": {"NoticedMonitor"},
    }
