"""Plans of streams, and what monitors of one plan share."""

from dataclasses import replace

import pytest

from monitor import Monitor
from monitor.stream.pair import create_twin
from monitor.stream.plan import Plan
from tests.stream.streams import WATCHED, frames, reference, simulated, told

WHOLE = simulated(9.0)


def started() -> Monitor:
    """A monitor in the middle of a stream."""
    monitor = Monitor(reference(), ["f0"], WATCHED, on_change="note")
    monitor.push(frames(WHOLE, [450])[0])
    return monitor


def test_a_plan_is_all_that_a_monitor_needs():
    one = Monitor(reference(), ["f0"], WATCHED, step_seconds=0.5)
    other = Monitor(one.plan)
    assert told(one.push(WHOLE)) == told(other.push(WHOLE))
    again = Monitor(replace(one.plan, step_seconds=3.0)).push(WHOLE)
    assert [reading.seconds for reading in again] == [3.0, 6.0, 9.0]


def test_other_streams_of_a_plan_share_what_was_prepared_of_the_population():
    monitor = Monitor(reference(), ["f0"], WATCHED)
    twin, _ = create_twin(monitor)
    another_voice = Monitor(monitor.plan.for_another_voice())
    for other in (monitor.fresh(), monitor.fresh(step_seconds=0.5), twin, another_voice):
        assert other.attacker is monitor.attacker
    before = monitor.attacker
    monitor.resume_from(started().totals)
    monitor.prefer_closed_set()
    assert monitor.attacker is before
    assert monitor.headline == "closed-set"
    assert monitor.totals.speech == started().totals.speech


def test_a_plan_that_makes_no_sense_is_refused():
    with pytest.raises(Exception, match="positive multiple"):
        Monitor(replace(Monitor(reference(), ["f0"]).plan, step_seconds=0.015))
    assert isinstance(Monitor(reference(), ["f0"]).plan, Plan)
