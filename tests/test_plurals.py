"""Nobody reads of "1 speakers": a count and its noun are said together by `plural`."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import monitor

ROOT = Path(monitor.__file__).parent
FILES = sorted(path for path in ROOT.rglob("*.py") if path.parent.name != "maths")
"""What a person may read; `maths` speaks to programmers."""
NOUNS = (
    "speakers trials sessions systems gaps files others labels columns folds resamples "
    "embeddings recordings channels inputs cores alerts minutes lines pairs"
)
MORE_THAN_ONE = re.compile(
    r"^(FEWEST|MOST|LEAST|_FEWEST|_MOST)|FEWEST|replicates|attacker|start.get"
)
"""Constants and settings that are never one."""


def bare(tree: ast.AST) -> list[str]:
    """Counts that an f-string sets before a noun in the plural, whatever they are."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr):
            continue
        for before, count, after in zip(
            [None, *node.values], node.values, node.values[1:], strict=False
        ):
            if not isinstance(count, ast.FormattedValue) or not isinstance(after, ast.Constant):
                continue
            noun = re.match(r" (?:earlier |more |other )?([a-z]+)\b", str(after.value))
            part_of = isinstance(before, ast.Constant) and re.search(
                r"\b(of|to|all|first|than|its) $", str(before.value)
            )
            name = ast.unparse(count.value)
            if noun and noun[1] in NOUNS.split() and not part_of and not MORE_THAN_ONE.search(name):
                found.append(f"line {count.lineno}: {name} {noun[1]}")
    return found


@pytest.mark.slow
def test_one_is_said_in_the_singular():
    found = {
        str(path.relative_to(ROOT)): bare(ast.parse(path.read_text("utf-8"))) for path in FILES
    }
    assert {path: counts for path, counts in found.items() if counts} == {}


def test_the_finder_can_find():
    assert bare(ast.parse('f"{n} speakers"')) == ["line 1: n speakers"]
    assert bare(ast.parse('f"{x}: {len(n)} earlier sessions of"')) == ["line 1: len(n) sessions"]
    assert bare(ast.parse("""f"{k} of {n} speakers, {plural(m, 'trial')}" """)) == []
