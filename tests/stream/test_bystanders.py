"""Who else became more probable, by definition and along a stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor import Monitor, MonitorSettings
from monitor.errors import UsageError
from monitor.events.schema import SCHEMA
from monitor.stream.posterior import Bystanders
from monitor.stream.records import RunTotals, placed, start_event
from tests.records import event
from tests.stream.streams import Listed, heard_by_both, run_reporter, two_features, with_evidence

NAMES = ("ann", "ben", "cyd", "dee")


@given(
    st.lists(st.lists(st.floats(-30, 20), min_size=4, max_size=4), min_size=1, max_size=5),
    st.sampled_from([None, *NAMES]),
    st.integers(100, 10**7),
    st.floats(0.011, 0.9),
)
def test_by_definition(bits, watched, people, level):
    found = Bystanders(NAMES, watched, people, level).find([np.array(row) for row in bits])
    for row, others in zip(bits, found, strict=True):
        ratios = 2.0 ** np.array(row)
        share = ratios / (ratios.sum() + people - 4)
        assert others is not None
        wanted = {
            n: p for n, p in zip(NAMES, share, strict=True) if n != watched and p > level + 1e-9
        }
        near = {n for n, p in zip(NAMES, share, strict=True) if abs(p - level) <= 1e-9}
        told = {each.name: each.probability for each in others}
        assert set(wanted) <= set(told) <= set(wanted) | near
        assert [told[name] for name in wanted] == pytest.approx(list(wanted.values()))
        assert list(told.values()) == sorted(told.values(), reverse=True)
        assert watched not in told
        assert {each.people for each in others} <= {people}


def test_moments_without_evidence_name_nobody():
    found = Bystanders(NAMES, None, 100, 0.1).find([None, np.array([20.0, 0.0, 0.0, 0.0]), None])
    assert [None if each is None else [b.name for b in each] for each in found] == [
        None,
        ["ann"],
        None,
    ]


@pytest.mark.parametrize("level", [0.0, 0.01, 1.0, np.nan])
def test_a_level_that_makes_no_sense(level):
    with pytest.raises(UsageError, match="over 1 in 100, which everybody begins with"):
        Bystanders(NAMES, None, 100, level)


def heard(watch: str | None = "s0", level: float = 0.04, among=(30,)):
    settings = MonitorSettings(among=list(among), bystanders=level)
    monitor = Monitor(run_reporter(), ["f0", "timbre"], watch, settings=settings)
    tally = RunTotals()
    records: list[Mapping[str, Any]] = [start_event(monitor, ["a"]).record()]
    records += [placed(e, ["a"]).record() for e in monitor.events(Listed([heard_by_both()]))]
    for record in records:
        tally.count(event(record))
    return monitor, [*records, tally.end_event(monitor, ["a"], complete=True).record()]


def test_along_a_stream_they_are_those_of_the_readings_ratios():
    settings = MonitorSettings(among=[6, 30], bystanders=0.04)
    monitor = Monitor(run_reporter(), ["f0", "timbre"], "s0", settings=settings)
    seen = set()
    for reading in monitor.push(heard_by_both()):
        assert reading.ratios is not None
        ratios = 2.0**reading.ratios
        share = ratios / (ratios.sum() + 30 - 6)
        wanted = {n for n, p in zip(reading.names, share, strict=True) if p > 0.04} - {"s0"}
        assert {each.name for each in reading.bystanders or ()} == wanted
        seen |= wanted
    assert seen


@pytest.mark.slow
def test_records_name_them_and_the_end_their_peaks():
    _, (start, *readings, end) = heard()
    for record in (start, *readings, end):
        jsonschema.validate(record, SCHEMA)
    assert start["bystanders"] == {"above": 0.04, "people": 30}
    peaks: dict[str, float] = {}
    for record in readings:
        for each in record["bystanders"]:
            assert each["people"] == 30
            peaks[each["name"]] = max(each["probability"], peaks.get(each["name"], 0.0))
    assert peaks
    assert {each["name"]: each["probability"] for each in end["bystanders"]} == peaks
    told = [each["probability"] for each in end["bystanders"]]
    assert told == sorted(told, reverse=True)


def test_peaks_survive_a_checkpoint():
    _, records = heard()
    tally, again = RunTotals(), RunTotals()
    for record in records[1:-1]:
        tally.count(event(record))
    again.restore(tally.state())
    assert again.bystanders == tally.bystanders != {}


def test_unless_asked_for_nobody_is_named():
    monitor = Monitor(with_evidence(), ["f0", "timbre"], "s0")
    assert "bystanders" not in start_event(monitor, ["a"]).record()
    (*_, last) = monitor.push(heard_by_both())
    assert last.bystanders is None
    assert "bystanders" not in last.record()
    assert "bystanders" not in RunTotals().end_event(monitor, ["a"], complete=True).record()


def test_where_calibration_supports_too_little_it_is_said_beforehand():
    monitor, (start, *_) = heard(level=0.5, among=(6, 1_000_000))
    assert monitor.attacker.support_bits is not None
    (said,) = [notice for notice in start["notices"] if "bystander" in notice]
    assert "no bystander can come to a probability of 1 in 2 among a million" in said
    enough = float(said.partition("--among ")[2].partition(")")[0])
    _, (start, *_) = heard(level=0.5, among=(max(6.0, enough),))
    assert not [notice for notice in start["notices"] if "bystander" in notice]


def test_without_evidence_it_is_refused():
    with pytest.raises(UsageError, match=r"bystanders cannot be told: .*calibrate again"):
        Monitor(two_features(), ["f0"], "s0", settings=MonitorSettings(bystanders=0.01))
