"""A module imports only lower layers; rooms on one layer do not import one another.

``python tests/test_layers.py`` writes the list of rooms in docs/architecture.md anew.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import monitor

ROOT = Path(monitor.__file__).parent
ARCHITECTURE = Path(__file__).resolve().parents[1] / "docs" / "architecture.md"
LAYERS = [
    {"errors", "lazy", "managed", "phrases", "safe_text", "types", "version"},
    {"audio_limits", "crowds", "files", "jobs", "maths", "programs", "records"},
    {"kinds"},
    {"cluster", "networks", "protocols"},
    {"documents", "result_cache", "transcripts"},
    {"features", "population", "sources", "sinks", "plots", "tables"},
    {"corpus", "stream", "alerts", "evaluation"},
    {"adapting", "attributes", "ledger", "anonymisers", "training", "utility", "web"},
    {"attacks", "experiment", "run"},
    {"audit", "serve"},
    {"cli"},
]
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
FILES = sorted(ROOT.rglob("*.py"))


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


def rooms() -> str:
    """The table of docs/architecture.md: each room with what its docstring says first."""
    rows = ["| layer | room | what is in it |", "| --- | --- | --- |"]
    for level, layer in enumerate(LAYERS, 1):
        for room in sorted(layer):
            path = ROOT / f"{room}.py"
            tree = ast.parse((path if path.exists() else ROOT / room / "__init__.py").read_text())
            says = (ast.get_docstring(tree) or "").splitlines()[0].rstrip(".").replace("``", "`")
            rows.append(f"| {level} | `{room}` | {says} |")
    return "\n".join(rows)


def with_rooms(page: str) -> str:
    """The page with that table in the place of the one that it has."""
    return re.sub(r"\| layer \| room \|.*?(?=\n\n)", lambda _: rooms(), page, flags=re.DOTALL)


@pytest.mark.slow
def test_the_architecture_lists_every_room():
    page = ARCHITECTURE.read_text(encoding="utf-8")
    assert with_rooms(page) == page, "python tests/test_layers.py writes it anew"
    assert rooms() in page


def violations(room: str, tree: ast.AST) -> list[str]:
    """What a file of a room imports and may not."""
    others = {name.split(".")[1] for name in imported(tree) if "." in name} - {room}
    return sorted(other for other in others if LEVEL.get(other, 99) >= LEVEL[room])


@pytest.mark.slow
def test_imports_go_down():
    wrong = {}
    for path in FILES:
        room = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if not room.startswith("__"):  # the package itself and python -m stand above everything
            wrong[str(path.relative_to(ROOT))] = violations(room, ast.parse(path.read_text()))
    assert len(wrong) > 100
    assert {path: found for path, found in wrong.items() if found} == {}


def test_every_room_has_a_layer():
    rooms = {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in FILES}
    assert {room for room in rooms if not room.startswith("__")} <= LEVEL.keys()


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
    ],
)
def test_the_test_can_fail(room, line, found):
    assert violations(room, ast.parse(line)) == found


if __name__ == "__main__":
    ARCHITECTURE.write_text(with_rooms(ARCHITECTURE.read_text("utf-8")), encoding="utf-8")
