"""What is done for speed names the benchmark that shows it, and that benchmark exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import monitor

PACKAGE = Path(monitor.__file__).parent
NAMED = re.compile(r"benchmarks[/.](?!results/)(\w+)(?:\.py\b)?")
TRICKS = [
    "features/channel.py",
    "features/f0.py",
    "features/extractor.py",
    "features/embeddings.py",
    "lazy.py",
    "maths/rank_models.py",
    "maths/posterior.py",
    "maths/statistics.py",
    "maths/spectra.py",
    "sinks/jsonl.py",
    "stream/attacker.py",
    "stream/posterior.py",
    "stream/reading_builder.py",
]


@pytest.mark.parametrize("file", TRICKS)
def test_a_trick_names_its_benchmark(file):
    assert NAMED.search((PACKAGE / file).read_text())


def test_named_benchmarks_exist():
    names = {name for path in PACKAGE.rglob("*.py") for name in NAMED.findall(path.read_text())}
    assert len(names) > 5
    folder = PACKAGE.parent / "benchmarks"
    assert {name for name in names if not (folder / f"{name}.py").exists()} == set()
