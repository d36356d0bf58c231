"""Losses and notices stand in order among the readings, each once, also after a stop."""

from __future__ import annotations

from dataclasses import replace

import jsonschema
import pytest

from monitor import Monitor, Run
from monitor.events.schema import SCHEMA
from monitor.stream.notices import MOST_NOTICES, EventOrder
from monitor.types import Gap, Notice
from tests.records import read_records
from tests.stream.streams import Listed, frames, hear, reference, simulated, told

NOTICE = Notice("channels differ", "use --channel 1")


def noticing(seconds: float = 10.0, *, tick: int = 450):
    """Frames in which something was noticed."""
    run = simulated(seconds)
    gap = (tick, Gap("not finite", 0.01))
    return replace(run, gaps=(gap,), notices=((tick, NOTICE),))


def cut(whole, *cuts):
    runs = frames(replace(whole, notices=()), cuts)
    edges = [0, *cuts, len(whole.speech)]
    return [
        replace(run, notices=tuple(n for n in whole.notices if low < n[0] <= high))
        for run, low, high in zip(runs, edges, edges[1:], strict=False)
    ]


@pytest.mark.parametrize("cuts", [(), (100, 449), (450,), tuple(range(7, 1000, 13))])
def test_a_notice_stands_between_the_same_readings_for_any_cutting(cuts):
    records = hear(cut(noticing(), *cuts))
    place = [record["type"] for record in records].index("notice")
    assert records[place - 1]["type"] == "gap"
    assert (records[place - 2]["seconds"], records[place + 1]["seconds"]) == (4.0, 5.0)
    assert records[place]["seconds"] == 4.5
    assert records[place]["text"] == NOTICE.text
    assert records == hear([noticing()])


@pytest.mark.parametrize("after", [3, 6, 8])
def test_a_notice_is_not_repeated_after_a_stop(after):
    first = Monitor(reference())
    events = first.events(Listed(cut(noticing(), 500)))
    seen = [next(events) for _ in range(after)]
    again = Monitor(reference())
    again.restore(*first.state())
    rest = list(again.events(Listed(cut(noticing(), 500))))
    assert told([*seen, *rest]) == hear([noticing()])


@pytest.mark.slow
def test_a_notice_reaches_the_log_and_the_end(tmp_path):
    path = tmp_path / "run.jsonl"
    source = Listed([noticing(), replace(noticing(), recording=1)], ["a.wav", "b.wav"])
    with Run(source, Monitor(reference()), log=path) as run:
        run.to_end()
    records = read_records(path)
    for record in records:
        jsonschema.validate(record, SCHEMA)
    notices = [record for record in records if record["type"] == "notice"]
    assert [(each["recording"], each["kind"]) for each in notices] == [
        ("a.wav", NOTICE.kind),
        ("b.wav", NOTICE.kind),
    ]
    assert records[-1]["notices"] == [f"a.wav: {NOTICE.text}", f"b.wav: {NOTICE.text}"]


def test_notices_without_end_are_not_kept():
    order = EventOrder()
    for tick in range(2 * MOST_NOTICES):
        order.add(tick, NOTICE)
    assert len(list(order.pop_due(tick, last=True))) == MOST_NOTICES


def test_what_would_not_come_again_is_not_counted():
    order = EventOrder()
    order.add(1, NOTICE, again=False)
    order.add(2, Gap("not finite", 0.01))
    assert len(list(order.pop_due(2))) == 2
    assert order.count == 1
