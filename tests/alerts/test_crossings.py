"""When each side of a run reaches a level, and by how much the anonymiser delays it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from monitor.alerts.crossings import Crossings
from monitor.events.run import DelayRow
from monitor.maths.statistics import Crossing
from tests.records import event

START = {
    "type": "start",
    "watch": "ann",
    "headline": "closed-set",
    "ceiling": 5.64,
    "support_bits": 9.0,
}


def reading(second: float, clear: float, protected: float, **more: Any) -> dict[str, Any]:
    both = {"bits": clear, "protected": {"bits": protected}}
    return {"type": "reading", "seconds": float(second), **both, **more}


def watched(records: list[dict[str, Any]], level: float = 2.0) -> tuple[list[Any], DelayRow]:
    watch = Crossings(event({**START, "support_bits": None}), [level])
    told = [each for record in records for each in watch.update(event(record))]
    (row,) = watch.table
    return [(t.side, t.since_seconds, t.delay_seconds) for t in told], row


def test_both_cross():
    told, row = watched([reading(t, t, t / 4) for t in range(1, 20)])
    assert told == [("clear", 2, None), ("protected", 8, 6)]
    assert row == DelayRow(2.0, Crossing(2, True), Crossing(8, True), 6, at_least=False)


def test_the_protected_side_may_come_first():
    told, row = watched([reading(t, t / 4, t) for t in range(1, 20)])
    assert told == [("protected", 2, None), ("clear", 8, -6)]
    assert row.delay_seconds == -6


@pytest.mark.parametrize(
    ("clear", "protected", "disclosure_delay", "at_least"),
    [(3.0, 1.0, 19.0, True), (1.0, 3.0, None, False), (1.0, 1.0, None, False)],
)
def test_what_a_recording_does_not_show_is_not_claimed(
    clear, protected, disclosure_delay, at_least
):
    _, row = watched([reading(t, clear, protected) for t in range(1, 21)])
    assert (row.delay_seconds, row.at_least) == (disclosure_delay, at_least)


def test_only_levels_that_can_be_reached_are_watched():
    def levels(**start: Any) -> list[float]:
        return [row.bits for row in Crossings(event({**START, **start})).table]

    assert levels() == levels(headline="evidence") == [1.0, 2.0, 3.0]
    assert levels(headline="evidence", support_bits=12.0) == [1.0, 2.0, 3.0, 10.0]
    assert levels(support_bits=12.0, ceiling=2.5) == [1.0, 2.0]
    assert levels(watch=None) == []


def test_evidence_that_was_cut_below_a_level_may_be_above_it():
    watch = Crossings(event({**START, "headline": "evidence"}), [3.0])
    for t in range(1, 20):
        record = reading(t, 4.0, 2.5, at_least=True)
        record["protected"] |= {"at_least": t > 4}
        watch.update(event(record))
    row = watch.table[-1]
    assert row.clear == (1, True)
    assert row.protected == (5, False)
    assert (row.delay_seconds, row.at_least) == (4, True)


@pytest.mark.parametrize("kind", ["gap", "change", "open"])
def test_what_interrupts_an_alert_interrupts_a_crossing(kind):
    records = [reading(t, 3, 3) for t in range(1, 13)]
    if kind == "open":
        records[3]["change"] = {"since_seconds": 3.0, "features": ["f0"]}
    else:
        records.insert(4, {"type": kind, "seconds": 4.0, "action": "note"})
    told, _ = watched(records)
    assert [each[1] for each in told] == [5, 5]


@pytest.mark.parametrize("action", ["reset", "split"])
def test_another_voice_crosses_nothing_for_the_first(action):
    change = {"type": "change", "seconds": 3.0, "action": action}
    told, row = watched([*(reading(t, 3, 3) for t in (1, 2)), change,
                         *(reading(t, 3, 3) for t in range(3, 20))])  # fmt: skip
    assert told == []
    assert row.clear == (2, False)


def test_stopped_and_resumed_it_is_as_never_stopped():
    records = [reading(t, t / 3, t / 9 if t != 18 else 0) for t in range(1, 40)]
    whole = Crossings(event(START))
    expected = [each for record in records for each in whole.update(event(record))]
    for cut in range(0, 40, 3):
        first, second = Crossings(event(START)), Crossings(event(START))
        told = [each for record in records[:cut] for each in first.update(event(record))]
        second.restore(json.loads(json.dumps(first.state())))
        told += [each for record in records[cut:] for each in second.update(event(record))]
        assert told == expected
        assert second.table == whole.table
