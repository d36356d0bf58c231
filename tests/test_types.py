"""The values of a run, their codes, and the reasons of gaps: every part keeps to one list."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from monitor.events.declaration import record_of
from monitor.events.run import (
    Alert,
    Change,
    GapEvent,
    LevelReached,
    NoticeEvent,
    RunEnd,
    RunStart,
)
from monitor.kinds import EMBEDDING, HISTOGRAM, LEVELS
from monitor.run.run import RunEvent
from monitor.types import GAP_REASONS, Gap, Notice

PACKAGE = Path(__file__).resolve().parents[1] / "monitor"


def reasons(code: str) -> Iterator[str]:
    """What each ``Gap(...)`` that is made in this code gives as its reason, as it is written."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "Gap":
            named = [word.value for word in node.keywords if word.arg == "reason"]
            yield ast.unparse([*node.args, *named][0])


@pytest.mark.slow
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
    (key,) = [key for key in record_of(GapEvent).keys if key.name == "reason"]
    missing = [r for r, why in GAP_REASONS.items() if f'`"{r}"` ({why})' not in key.meaning]
    assert missing == []


def test_every_event_has_a_code_and_the_type_of_its_record():
    changed = Change(9.0, 7.0, ("f0",), 0.1, -0.2)
    alert = Alert(4.0, 3.0, "bits>3 for 5 s", "bits", 3.0, "raised", 3.2)
    events: list[RunEvent] = [
        RunStart.from_record({"schema": 2}),
        GapEvent.of(2.0, Gap("device lost", None)),
        NoticeEvent.of(2.0, Notice("channels differ", "they do")),
        changed,
        replace(changed, action="split"),
        replace(changed, back=True),
        alert,
        replace(alert, level="warning", state="cleared"),
        LevelReached(4.0, 1.0, "protected", 3.0, None),
        RunEnd.from_record({"readings": 3}),
    ]
    assert [event.code for event in events] == [
        "start",
        "gap.device-lost",
        "notice.channels-differ",
        "change.note",
        "change.split",
        "change.back",
        "alert.raised",
        "warning.cleared",
        "crossing.protected",
        "end",
    ]
    assert all(event.record()["type"] == event.type for event in events)
