"""A module imports only lower layers: there is no circle of rooms, and the monitor needs no lab.

Rooms on one layer do not import one another; imports in functions and for types count.
"""

from __future__ import annotations

import ast
from pathlib import Path

import monitor

ROOT = Path(monitor.__file__).parent
LAYERS = [
    {"errors", "lazy", "safe_text", "types", "version"},
    {"phrases"},
    {"crowds", "files", "jobs", "maths", "programs"},
    {"events", "kinds"},
    {"cluster", "networks", "protocols"},
    {"transcripts"},
    {"features", "population", "sources", "sinks", "plots", "tables"},
    {"corpus", "stream", "alerts"},
    {"ledger", "anonymisers", "training", "web"},
    {"relay"},
    {"run"},
    {"serve"},
    {"cli"},
    {"lab/report", "lab/result_cache"},
    {"lab/plots"},
    {"lab/adapting", "lab/evaluation"},
    {"lab/scoring", "lab/utility"},
    {"lab/attacks", "lab/experiment"},
    {"lab/audit"},
    {"lab/cli"},
]
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
FILES = sorted(ROOT.rglob("*.py"))
MODULES = {
    ".".join(("monitor", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for path in FILES
}


def room_of(module: str) -> str:
    """The room of a module: the first part of its name, two in the laboratory."""
    parts = module.split(".")[1:]
    return "/".join(parts[:2] if parts[:1] == ["lab"] else parts[:1])


def imported(tree: ast.AST) -> set[str]:
    """Dotted names of this package that a file imports anywhere, functions and types included."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            module = node.module or ""
            names |= {f"monitor.{a.name}" for a in node.names} if module == "monitor" else {module}
    return {name for name in names if name.split(".")[0] == "monitor"}


def violations(room: str, tree: ast.AST) -> list[str]:
    """Rooms that a file of a room imports and may not."""
    others = {room_of(name) for name in imported(tree)} - {room, ""}
    return sorted(other for other in others if LEVEL.get(other, 99) >= LEVEL[room])


def test_imports_go_down():
    wrong = {}
    for module, path in MODULES.items():
        room = room_of(module)
        if room and not room.startswith("__") and room != "lab":
            wrong[module] = violations(room, ast.parse(path.read_text()))
    assert len(wrong) > 100
    assert {module: rooms for module, rooms in wrong.items() if rooms} == {}
