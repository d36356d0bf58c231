"""Every name that the guides mention is there: in the code, in the records, on the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from monitor.events.schema import SCHEMA
from tests.pages import unfenced

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "benchmarks" / "results").glob("*.md")),
    *(ROOT / "README.md", ROOT / "SECURITY.md"),
]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")


def keys_of(schema: Any) -> Iterator[str]:
    """Keys of records, nested ones too."""
    if isinstance(schema, dict):
        if isinstance(properties := schema.get("properties"), dict):
            yield from properties
        for each in schema.values():
            yield from keys_of(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from keys_of(each)


def is_there(dotted: str) -> bool:
    """Whether ``monitor.room.file.Name`` can be imported or looked up."""
    parts = dotted.split(".")
    for split in range(len(parts), 0, -1):
        try:
            found: Any = import_module(".".join(parts[:split]))
        except ModuleNotFoundError as error:
            if not str(error.name).startswith("monitor"):
                raise  # an extra is missing, not the module
            continue
        for part in parts[split:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_names_in_the_code_are_there(path):
    text = unfenced(path.read_text("utf-8"))
    names = set(re.findall(r"`(monitor(?:\.\w+)+)[`(]", text))
    files = {name for name in names if re.search(r"\.(?:py|json|css|js|npz)$", name)}
    assert [name for name in sorted(names - files) if not is_there(name)] == []


def test_values_that_flow_are_where_the_architecture_says():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[A-Z].*?) \|.*\| (.*?) \|$", page, flags=re.MULTILINE)
    assert len(rows) > 4
    for names, place in rows:
        (module,) = re.findall(r"`(monitor[\w.]*)`", place)
        assert [n for n in re.findall(r"\w+", names) if not is_there(f"{module}.{n}")] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_files_that_are_mentioned_are_there(path):
    text = path.read_text("utf-8")
    names = re.findall(r"\b((?:monitor|tests|benchmarks|recipes|examples)/[\w/]+\.\w+)", text)
    # a part in capitals stands for any
    assert [n for n in names if not any(ROOT.glob(re.sub(r"\b[A-Z]+\b", "*", n)))] == []
    modules = re.findall(r"python -m ((?:benchmarks|recipes)(?:\.\w+)+)", text)
    assert [name for name in modules if not is_file(name)] == []


def is_file(module: str) -> bool:
    return (ROOT / (module.replace(".", "/") + ".py")).exists()


def rows() -> list[list[str]]:
    """The cells of every row of the glossary."""
    lines = [line for line in GLOSSARY.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[0] not in ("term", "---")]


def test_every_term_has_one_meaning():
    terms = [term.strip() for row in rows() for term in re.split(r",|\(", row[0])]
    assert len(terms) > 50
    assert len(set(terms)) == len(terms)
    assert all(row[1] for row in rows())


def test_keys_of_the_glossary_are_those_of_records():
    known = set(keys_of(SCHEMA)) | {"type"}
    named = {key for row in rows() for key in re.findall(r"`(\w+)`", row[2])}
    assert len(named) > 20
    assert named <= known


def test_the_finder_of_names_can_find():
    assert is_there("monitor.maths.scores.Histogram.learn_many")
    assert is_there("monitor.Monitor")
    assert not is_there("monitor.maths.nowhere")
    assert not is_there("monitor.maths.scores.Nothing")
    assert not is_file("benchmarks.nothing")
