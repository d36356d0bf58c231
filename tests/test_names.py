"""The names that people import, and what importing them costs."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

import monitor
import monitor.alerts
import monitor.sources
from monitor.cli import COMMANDS
from tests.pages import fenced

PUBLIC = (
    "monitor",
    "monitor.lab.attacks",
    "monitor.alerts",
    "monitor.alerts.actions",
    "monitor.corpus",
    "monitor.errors",
    "monitor.lab.evaluation",
    "monitor.features",
    "monitor.features.phones",
    "monitor.kinds",
    "monitor.ledger",
    "monitor.population",
    "monitor.anonymisers",
    "monitor.protocols",
    "monitor.lab.experiment",
    "monitor.events",
    "monitor.run",
    "monitor.sinks",
    "monitor.sources",
    "monitor.training",
    "monitor.transcripts",
    "monitor.types",
)
"""Modules whose names people may import."""
TASKS = (
    "Measure a recording",
    "Attach a microphone",
    "Enrol your people",
    "Calibrate",
    "Evaluate an anonymiser",
    "Alert",
    "Tables",
    "Write a feature",
)
MODULES = [
    module.name
    for module in pkgutil.walk_packages(monitor.__path__, "monitor.")
    if not module.name.endswith(".__main__")
]

WITH_TORCH = {"monitor.lab.adapting.fine_tuning"}
"""They cannot be imported without; what imports them does so when it is asked to train."""


@pytest.mark.slow
def test_no_two_public_classes_share_a_name():
    places: dict[str, list[str]] = {}
    for path in sorted(Path(monitor.__file__).parent.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(path.name)
    assert len(places) > 100
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_every_module_says_what_is_in_it_and_every_room_what_it_exports():
    for name in ("monitor", *MODULES):
        if name in WITH_TORCH and find_spec("torch") is None:
            continue
        module = import_module(name)
        assert module.__doc__, name
        names = getattr(module, "__all__", None)
        if names is None:
            assert name not in PUBLIC
            continue
        # as ruff sorts them: constants, classes, functions
        assert names == sorted(names, key=_order), name
        assert len(set(names)) == len(names), name
        assert [each for each in names if not hasattr(module, each)] == [], name


def shown() -> list[str]:
    """The code that people are shown: examples, and the blocks of the guides."""
    root = Path(__file__).resolve().parents[1]
    guides = [*root.glob("*.md"), *root.glob("docs/*.md")]
    blocks = [code for page in guides for code in fenced(page.read_text("utf-8"), "python")]
    return [path.read_text("utf-8") for path in root.glob("examples/*.py")] + blocks


def test_the_code_that_people_are_shown_imports_public_names_alone():
    found = {
        f"{node.module}.{name.name}"
        for code in shown()
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("monitor")
        for name in node.names
    }
    public = {f"{room}.{name}" for room in PUBLIC for name in import_module(room).__all__}
    assert len(found) > 20
    assert found - public == set()


def test_no_exported_name_is_that_of_a_file_beside_it():
    """Which of the two one gets would depend on what was imported before."""
    hidden = set()
    for name in PUBLIC:
        module = import_module(name)
        files = {each.name for each in pkgutil.iter_modules(getattr(module, "__path__", ()))}
        both = files & set(module.__all__)
        hidden |= {(name, e) for e in both if not isinstance(getattr(module, e), ModuleType)}
    assert hidden == set()


def test_every_exported_name_says_what_it_is():
    modules = map(import_module, PUBLIC)
    assert [(m.__name__, name) for m in modules for name in m.__all__ if not _said(m, name)] == []


def _said(module: ModuleType, name: str) -> bool:
    """Whether a class, a function or a room has a docstring; a value has one below it."""
    value = getattr(module, name)
    if isinstance(value, str):  # the version
        return True
    if isinstance(value, type | FunctionType | ModuleType):
        text = value.__doc__ or ""
        return bool(text) and not text.startswith(f"{value.__name__}(")  # a dataclass's own
    home = next(m for m in [module, *_below(module)] if _assigned(m, name))
    return _assigned(home, name) == "said"


def _below(module: ModuleType) -> list[ModuleType]:
    return [import_module(each) for each in MODULES if each.startswith(f"{module.__name__}.")]


def _assigned(module: ModuleType, name: str) -> str:
    """Whether a module assigns a name, and says below it what it is."""
    body = ast.parse(inspect.getsource(module)).body
    for statement, after in zip_longest(body, body[1:]):
        targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
        if any(isinstance(each, ast.Name) and each.id == name for each in targets):
            told = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            return "said" if told else "bare"
    return ""


def test_the_package_teaches_by_task():
    text = monitor.__doc__ or ""
    tasks = re.findall(r"^([A-Z][\w ]*)(?:.+\n)+\n>>> ", text, flags=re.MULTILINE)
    assert tuple(task.strip() for task in tasks) == TASKS


def _order(name: str) -> tuple[int, str]:
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return kind, name


def test_a_star_import_gives_them_all():
    space: dict[str, object] = {}
    exec("from monitor import *", space)
    assert set(monitor.__all__) <= space.keys()
    assert set(monitor.__all__) <= set(dir(monitor))
    with pytest.raises(AttributeError, match="no attribute 'Monitors'"):
        _ = monitor.Monitors  # type: ignore[attr-defined]


def loaded(*arguments: str) -> set[str]:
    """The modules that a fresh interpreter has loaded in the end."""
    made = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], capture_output=True, text=True, check=True
    )
    lines = [line for line in made.stderr.splitlines() if line.startswith("import time:")]
    return {line.rsplit("|", 1)[1].strip() for line in lines}


HEAVY = {"torch", "river", "matplotlib", "rich", "scipy", "soundfile", "soxr", "_webrtcvad"}


def heavy(modules: set[str]) -> set[str]:
    return {module for module in modules if module.split(".")[0] in HEAVY}


def test_import_is_light():
    assert heavy(loaded("-c", "import monitor")) == set()
    assert "numpy" not in loaded("-c", "import monitor")


def test_help_is_light():
    modules = loaded("-m", "monitor", "--help")
    assert "click" in modules
    assert heavy(modules) == set()


@pytest.mark.slow
def test_help_of_a_command_is_light():
    found = {each: heavy(loaded("-m", "monitor", each, "--help")) for each in COMMANDS}
    assert {command: modules for command, modules in found.items() if modules} == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["Monitor", "Population", "Reading", "alerts", "sources", "corpus", "errors"]
)
def test_names_load_no_more_than_they_need(name):
    modules = heavy(loaded("-c", f"from monitor import {name}"))
    assert not any(module.startswith("scipy.stats") for module in modules)
    assert {module.split(".")[0] for module in modules} <= {"scipy"}


@pytest.mark.slow
def test_the_finder_of_heavy_modules_can_find():
    assert "scipy.special" in heavy(loaded("-c", "import scipy.special"))
