"""The reasons of gaps: one list, and every part of the package keeps to it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from monitor.kinds import EMBEDDING, HISTOGRAM, LEVELS
from monitor.records.schema import GAP
from monitor.types import GAP_REASONS

PACKAGE = Path(__file__).resolve().parents[1] / "monitor"


def reasons(code: str) -> Iterator[str]:
    """What each ``Gap(...)`` that is made in this code gives as its reason, as it is written."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "Gap":
            named = [word.value for word in node.keywords if word.arg == "reason"]
            yield ast.unparse([*node.args, *named][0])


def test_every_gap_has_a_reason_of_the_list_and_every_reason_a_gap():
    made = {
        reason
        for path in PACKAGE.rglob("*.py")
        for reason in reasons(path.read_text(encoding="utf-8"))
    }
    made.remove("spec.kind.unusable")
    made |= {repr(kind.unusable) for kind in (HISTOGRAM, EMBEDDING, LEVELS)}
    assert made == {repr(reason) for reason in GAP_REASONS}


def test_the_finder_of_reasons_can_find():
    code = "yield 3, Gap('cable', None)\ntypes.Gap(lost_seconds=1, reason=why)"
    assert sorted(reasons(code)) == ["'cable'", "why"]


def test_the_records_list_every_reason():
    (key,) = [key for key in GAP.keys if key.name == "reason"]
    missing = [r for r, why in GAP_REASONS.items() if f'`"{r}"` ({why})' not in key.meaning]
    assert missing == []
