from __future__ import annotations

import json
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.alerts.rules import Forecast
from monitor.web import hub as hub_module
from monitor.web.hub import (
    MOST,
    MOST_BYTES,
    MOST_OTHERS,
    NEWEST,
    RECENT,
    Hub,
    NumberedRecord,
    thinned,
)
from monitor.web.page import exposition, since_of
from tests.records import event
from tests.web import records


def filled(seconds: int) -> Hub:
    hub = Hub()
    for record in records.run(seconds):
        hub.write(event(record))
    return hub


def test_ids_count_from_one_and_nothing_is_lost():
    hub = filled(20)
    entries = hub.after(0)
    assert [entry.id for entry in entries] == list(range(1, 23))
    assert [json.loads(entry.data) for entry in entries] == [
        json.loads(json.dumps(event(record).record())) for record in records.run(20)
    ]
    assert [entry.id for entry in hub.after(20)] == [21, 22]
    assert hub.after(22) == hub.after(999) == []
    assert hub.last == 22


def test_figures_that_are_no_numbers_become_null():
    hub = Hub()
    hub.write(event({"type": "reading", "seconds": np.float64(1), "bits": float("nan")}))
    record = json.loads(hub.after(0)[0].data)
    assert (record["seconds"], record["bits"]) == (1.0, None)


@given(count=st.integers(0, 700), most=st.integers(1, 300))
def test_a_reader_that_is_behind_gets_a_choice_with_the_newest(count, most):
    hub = Hub()
    hub.write(event(records.start()))
    for second in range(1, count + 1):
        hub.write(event({"type": "reading", "seconds": second}))
    hub.write(event({"type": "gap", "seconds": count, "lost_seconds": 1.0}))
    hub.write(event({"type": "reading", "seconds": count + 1}))
    found = hub.after(0, most)
    ids = [entry.id for entry in found]
    assert ids == sorted(set(ids))
    assert ids[-1] == hub.last
    assert {"start", "gap"} <= {entry.kind for entry in found}
    assert len(found) <= most + 3
    if count + 3 <= most:
        assert len(found) == count + 3


def test_a_long_run_is_kept_within_bounds():
    hub = Hub()
    hub.write(event(records.start()))
    for second in range(1, 20_001):
        hub.write(event({"type": "reading", "seconds": second}))
        if second % 10 == 0:
            hub.write(event({"type": "gap", "seconds": second}))
    entries = hub.after(0)
    assert RECENT < len(entries) <= MOST
    assert entries[0].kind == "start"
    ids = [entry.id for entry in entries]
    assert ids == sorted(set(ids))
    assert ids[-RECENT:] == list(range(hub.last - RECENT + 1, hub.last + 1))
    seconds = np.array([entry.seconds for entry in entries if entry.kind == "reading"])
    # the curve has no hole on a log axis
    assert (seconds[1:] / seconds[:-1])[seconds[1:] > 10].max() < 1.2


@pytest.mark.slow
def test_memory_is_bounded_for_steps_of_any_length():
    entries = [NumberedRecord(i, "reading", i / 100, b"") for i in range(30_000)]
    assert len(thinned(entries)) <= RECENT + hub_module.MOST_READINGS
    entries = [NumberedRecord(i, "gap", 1.0, b"") for i in range(30_000)]
    kept = thinned(entries)
    assert len(kept) == RECENT + MOST_OTHERS
    assert kept[-1].id == 29_999


def test_one_writes_while_many_read():
    hub, rung = Hub(), threading.Event()
    seen: list[list[int]] = [[] for _ in range(4)]
    hub.listen(rung.set)

    def read(mine: list[int]) -> None:
        while not mine or mine[-1] < 1000:
            mine.extend(entry.id for entry in hub.after(mine[-1] if mine else 0))

    readers = [threading.Thread(target=read, args=(mine,)) for mine in seen]
    for reader in readers:
        reader.start()
    for second in range(1000):
        hub.write(event({"type": "reading", "seconds": second}))
    for reader in readers:
        reader.join()
    assert all(mine == list(range(1, 1001)) for mine in seen)
    assert rung.is_set()


def test_the_time_left_is_known_for_every_threshold():
    hub = Hub([("bits", 4.0)])
    for second in range(1, 17):
        hub.write(event(records.reading(second, bits=float(np.log2(second)))))
    (only,) = hub.state().forecast
    assert only.threshold == 4.0
    assert only.seconds_left == 0.0
    hub, forecast = Hub([("bits", 5.0)]), Forecast(5.0)
    for second in range(1, 17):
        hub.write(event(records.reading(second, bits=float(np.log2(second)))))
        forecast.update(event(records.reading(second, bits=float(np.log2(second)))))
    assert forecast.seconds_left is not None
    assert hub.state().forecast[0].seconds_left == pytest.approx(forecast.seconds_left)
    hub.write(event(records.alert(17, threshold=3.0)))
    assert [each.threshold for each in hub.state().forecast] == [3.0, 5.0]
    hub.write(event({"type": "change", "seconds": 18.0, "action": "reset"}))
    assert [each.seconds_left for each in hub.state().forecast] == [None, None]


def test_ids_of_another_run_mean_nothing():
    hub = Hub()
    assert since_of(hub, f"{hub.run}-12") == 12
    for text in (None, "", "x", "-", "-5", "1e3", "0" * 7 + "-12", "²", "9" * 40):
        assert since_of(hub, text) == 0, text


def test_each_attacker_of_a_protected_side_is_a_metric():
    hub = Hub()
    hub.write(event(records.reading(3, bits=2.0)))
    assert b"monitor_protected_disclosure_bits{" not in exposition(hub)
    hub.write(event(records.reading(4, bits=2.0, **records.protected(0.5, also=1.5))))
    shown = exposition(hub)
    for who, bits in ((b"ignorant", b"0.5"), (b"lazy-informed", b"1.5")):
        line = b'monitor_protected_disclosure_bits{attacker="%s",stream="1"} %s\n'
        assert line % (who, bits) in shown


def test_an_open_change_is_a_metric():
    hub = Hub()
    open_one: dict[str, Any] = {"change": {"since_seconds": 1.0, "features": []}}
    for more, shown in (({}, b"0.0"), (open_one, b"1.0")):
        hub.write(event(records.reading(2, **more)))
        assert b"monitor_change_open " + shown in exposition(hub)


def test_large_records_take_no_more_memory_for_being_many():
    hub = Hub()
    hub.write(event(records.start()))
    for second in range(400):
        hub.write(
            event(
                {"type": "reading", "seconds": second, "speech": second, "withheld": "x" * 500_000}
            )
        )
    kept = hub.after(0)
    assert sum(len(entry.data) for entry in kept) <= MOST_BYTES
    assert kept[0].kind == "start"
    assert [entry.id for entry in kept[-NEWEST:]] == list(range(402 - NEWEST, 402))
