"""A module imports only lower layers, no file takes part in a circle, and the monitor needs no lab.

Rooms on one layer do not import one another; imports in functions and for types count.
"""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import monitor

ROOT = Path(monitor.__file__).parent
LAYERS = [
    {"contents", "errors", "lazy", "safe_text", "types", "version"},
    {"arrays", "log_lines", "npz", "phrases", "virtual_files"},
    {"crowds", "files", "jobs", "maths", "programs"},
    {"events", "how_much", "kinds"},
    {"cluster", "networks", "protocols"},
    {"transcripts"},
    {"features", "population", "sources", "sinks", "plots", "tables"},
    {"datasets"},
    {"corpus", "stream", "alerts"},
    {"ledger", "anonymisers", "training", "web"},
    {"relay"},
    {"run"},
    {"serve"},
    {"cli"},
    {"lab/normalisation", "lab/report", "lab/result_cache"},
    {"lab/adapting", "lab/evaluation"},
    {"lab/durations", "lab/scoring", "lab/utility"},
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


@pytest.mark.slow
def test_imports_go_down():
    wrong = {}
    for module, path in MODULES.items():
        room = room_of(module)
        if room and not room.startswith("__") and room != "lab":
            wrong[module] = violations(room, ast.parse(path.read_text()))
    assert len(wrong) > 100
    assert {module: rooms for module, rooms in wrong.items() if rooms} == {}


@pytest.mark.slow
def test_the_monitor_works_without_the_laboratory(tmp_path):
    shutil.copytree(ROOT, tmp_path / "monitor", ignore=shutil.ignore_patterns("lab", "__pycache__"))
    code = "from monitor.cli import main; main()"
    for arguments in (["--help"], ["demo", "--speed", "1000000", "-o", str(tmp_path)]):
        done = subprocess.run([sys.executable, "-P", "-c", code, *arguments], cwd=tmp_path,
                              env={**os.environ, "PYTHONPATH": str(tmp_path)},
                              capture_output=True, text=True, check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "evaluate" not in done.stdout.split("Commands:")[-1]
    done = subprocess.run([sys.executable, "-P", "-c", code, "evaluate"], cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": str(tmp_path)},
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 2
    assert "No such command" in done.stderr


def imported_files(module: str) -> set[str]:
    """Modules whose files a file imports anywhere, functions and types included."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                found.add(name if name in MODULES else str(node.module))
    return found & MODULES.keys()


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import one another, directly or through others."""
    names = sorted(graph)
    edges = [(names.index(a), names.index(b)) for a in names for b in graph[a]]
    rows, columns = zip(*edges, strict=True)
    size = (len(names), len(names))
    matrix = coo_array((np.ones(len(edges)), (rows, columns)), shape=size)
    _, group = connected_components(matrix, connection="strong")
    groups = [[names[i] for i in np.flatnonzero(group == k)] for k in range(group.max() + 1)]
    return [members for members in groups if len(members) > 1]


@pytest.mark.slow
def test_no_file_takes_part_in_an_import_circle():
    # the package itself offers names of every room, and none of them imports it back
    rooms = [module for module in MODULES if module != "monitor"]
    assert circles({module: imported_files(module) - {"monitor"} for module in rooms}) == []
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == [["b", "c"]]


def test_every_room_has_a_layer():
    rooms = {room_of(module) for module in MODULES}
    assert {room for room in rooms if room and not room.startswith("__")} <= {*LEVEL, "lab"}


@pytest.mark.parametrize(
    ("room", "line", "found"),
    [
        ("maths", "from monitor.types import Block", []),
        ("sources", "from monitor.sources.file import File", []),
        ("sources", "from monitor.sinks.jsonl import JsonLines", ["sinks"]),
        ("sinks", "def f():\n    import monitor.stream.monitor", ["stream"]),
        ("maths", "if TYPE_CHECKING:\n    from monitor import sources", ["sources"]),
        ("errors", "import monitor.types", ["types"]),
        ("training", "import monitor.nowhere", ["nowhere"]),
        ("run", "def f():\n    import monitor.lab.audit.audit", ["lab/audit"]),
    ],
)
def test_the_test_can_fail(room, line, found):
    assert violations(room, ast.parse(line)) == found
