"""What the page holds of a run, and what it tells of it in metrics."""

from __future__ import annotations

import asyncio
import json
import re
import threading

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from monitor.alerts.early_warnings import Forecast
from monitor.web.hub import MOST, MOST_BYTES, NEWEST, RECENT, Hub, NumberedRecord, Wakeup, thinned
from monitor.web.metrics import exposition
from monitor.web.page import since_of
from tests.records import as_records, events
from tests.web import records
from tests.web.records import give


def second_of(second: int, **more: object) -> dict[str, object]:
    return {"type": "reading", "seconds": second, **more}


def test_ids_count_from_one_and_nothing_is_lost():
    hub = Hub()
    give(hub, *records.run(20), second_of(21, bits=float("nan")))
    entries = hub.records_since(0)
    assert [entry.id for entry in entries] == list(range(1, 24))
    shown = [json.loads(entry.data) for entry in entries]
    assert shown[:-1] == as_records(events(records.run(20)))
    assert shown[-1]["bits"] is None
    assert [entry.id for entry in hub.records_since(20)] == [21, 22, 23]
    assert hub.records_since(23) == hub.records_since(999) == []
    assert hub.last == 23


@given(count=st.integers(0, 700), most=st.integers(1, 300))
def test_a_reader_that_is_behind_gets_a_choice_with_the_newest(count, most):
    hub = Hub()
    give(hub, records.start(), *(second_of(second) for second in range(1, count + 1)))
    give(hub, {"type": "gap", "seconds": count, "lost_seconds": 1.0}, second_of(count + 1))
    found = hub.records_since(0, most)
    ids = [entry.id for entry in found]
    assert ids == sorted(set(ids))
    assert ids[-1] == hub.last
    assert {"start", "gap"} <= {entry.kind for entry in found}
    assert len(found) <= most + 3
    if count + 3 <= most:
        assert len(found) == count + 3


def test_a_long_run_is_kept_within_bounds():
    hub = Hub()
    give(hub, records.start())
    for second in range(1, 20_001):
        give(hub, second_of(second))
        if second % 10 == 0:
            give(hub, {"type": "gap", "seconds": second})
    entries = hub.records_since(0)
    assert RECENT < len(entries) <= MOST
    assert entries[0].kind == "start"
    ids = [entry.id for entry in entries]
    assert ids == sorted(set(ids))
    assert ids[-RECENT:] == list(range(hub.last - RECENT + 1, hub.last + 1))
    seconds = np.array([entry.seconds for entry in entries if entry.kind == "reading"])
    # the curve has no hole on a log axis
    assert (seconds[1:] / seconds[:-1])[seconds[1:] > 10].max() < 1.2


def test_the_newest_reading_of_everybody_is_kept_however_long_the_others_talk():
    data = orjson.dumps({})
    entries = [NumberedRecord(1, "reading", 1.0, data, b"{}", ("S0", ""))]
    entries += [
        NumberedRecord(k, "reading", float(k), data, b"{}", ("S1", "")) for k in range(2, 9000)
    ]
    kept = thinned(entries)
    assert kept[0].whose == ("S0", "")
    assert [entry.id for entry in kept] == sorted({entry.id for entry in kept})
    assert len(kept) < 4000


def test_large_records_take_no_more_memory_for_being_many():
    hub = Hub()
    give(hub, records.start())
    for second in range(400):
        give(hub, second_of(second, speech=second, withheld="x" * 500_000))
    kept = hub.records_since(0)
    assert sum(len(entry.data) for entry in kept) <= MOST_BYTES
    assert kept[0].kind == "start"
    assert [entry.id for entry in kept[-NEWEST:]] == list(range(402 - NEWEST, 402))


def test_one_writes_while_many_read():
    hub, rung = Hub(), threading.Event()
    seen: list[list[int]] = [[] for _ in range(4)]
    hub.subscribe(rung.set)

    def read(mine: list[int]) -> None:
        while not mine or mine[-1] < 1000:
            mine.extend(entry.id for entry in hub.records_since(mine[-1] if mine else 0))

    readers = [threading.Thread(target=read, args=(mine,)) for mine in seen]
    for reader in readers:
        reader.start()
    give(hub, *(second_of(second) for second in range(1000)))
    for reader in readers:
        reader.join()
    assert all(mine == list(range(1, 1001)) for mine in seen)
    assert rung.is_set()


def test_the_time_left_is_known_for_every_threshold():
    readings = [records.reading(t, bits=float(np.log2(t))) for t in range(1, 17)]
    hub = Hub([("bits", 4.0)])
    give(hub, *readings)
    (only,) = hub.state().forecast
    assert (only.threshold, only.seconds_left) == (4.0, 0.0)
    hub, forecast = Hub([("bits", 5.0)]), Forecast(5.0)
    give(hub, *readings)
    for each in events(readings):
        forecast.update(each)
    assert forecast.seconds_left is not None
    assert hub.state().forecast[0].seconds_left == pytest.approx(forecast.seconds_left)
    give(hub, records.alert(17, threshold=3.0))
    assert [each.threshold for each in hub.state().forecast] == [3.0, 5.0]
    give(hub, {"type": "change", "seconds": 18.0, "action": "reset"})
    assert [each.seconds_left for each in hub.state().forecast] == [None, None]


def test_ids_of_another_run_mean_nothing():
    hub = Hub()
    assert since_of(hub, f"{hub.run}-12") == 12
    for text in (None, "", "x", "-", "-5", "1e3", "0" * 7 + "-12", "²", "9" * 40):
        assert since_of(hub, text) == 0, text


def metrics(hub: Hub) -> dict[tuple[str, str | None], float]:
    return {
        (sample.name.removeprefix("monitor_"), sample.labels.get("feature")): sample.value
        for family in text_string_to_metric_families(exposition(hub).decode())
        for sample in family.samples
    }


def test_metrics():
    hub = Hub()
    assert exposition(hub)  # before anything is known
    gap = {"type": "gap", "seconds": 10.0, "reason": "overflow", "lost_seconds": 0.5}
    give(hub, records.start(), records.reading(10, bits=2.5, lag=0.3))
    give(hub, gap, {**gap, "lost_seconds": None}, records.alert(12), records.reading(12, bits=None))
    assert ("disclosure_bits", None) not in metrics(hub)  # withheld
    give(hub, records.reading(13, bits=3.5), records.reading(14, bits=2.5, lag=0.3))
    found = metrics(hub)
    whole = {
        "disclosure_bits": 2.5, "ceiling_bits": records.CEILING, "lag_seconds": 0.3,
        "lost_seconds_total": 0.5, "gaps_total": 2, "readings_total": 4, "alerts_total": 1,
        "alert_raised": 1, "change_open": 0, "ended": 0,
    }  # fmt: skip
    assert {name: found[name, None] for name in whole} == whole
    of_phones = {"local_bits": 2.5, "peak_bits": 3.5, "ceiling_bits": records.CEILING}
    assert {name: found[f"feature_{name}", "phones"] for name in of_phones} == of_phones
    assert 0 <= found["reading_age_seconds", None] < 600
    text = exposition(hub)
    assert b'"ann"' not in text  # who speaks is no metric
    assert b"monitor_protected_disclosure_bits{" not in text
    opened = {"change": {"since_seconds": 1.0, "features": []}}
    give(hub, records.reading(15, bits=2.0, **records.protected(0.5, also=1.5), **opened))
    assert metrics(hub)["change_open", None] == 1
    side = re.findall(rb'protected_disclosure_bits\{attacker="(.*)",stream="1"\} (.*)\n',
                      exposition(hub))  # fmt: skip
    assert sorted(side) == [(b"ignorant", b"0.5"), (b"lazy-informed", b"1.5")]


def test_metrics_are_of_each_person_and_nothing_is_forecast_of_all_together():
    hub = Hub(thresholds=[("bits", 3.0)])
    give(hub, *records.people(["S0", "S1"], watched=("ann", "bob")))
    text = exposition(hub).decode()
    for label, watch, bits in (("S0", "ann", 0.40), ("S1", "bob", 1.79)):
        assert f'monitor_disclosure_bits{{label="{label}",watch="{watch}"}} {bits:g}' in text
    assert 'monitor_alert_raised{rule="S0: bits>1"} 1.0' in text
    assert hub.state().forecast[0].seconds_left is None
    assert "bits{stream" not in text


@pytest.mark.parametrize("steps", range(6))
def test_who_waits_can_be_cancelled_at_any_moment(steps):
    async def wait() -> bool:
        wakeup = Wakeup()
        waiting = asyncio.create_task(wakeup.wait(60.0))
        await asyncio.sleep(0.01)
        wakeup.wake()
        for _ in range(steps):
            await asyncio.sleep(0)
        if not waiting.cancel():
            return True  # it had returned
        await asyncio.gather(waiting, return_exceptions=True)
        return waiting.cancelled()

    assert asyncio.run(wait())
