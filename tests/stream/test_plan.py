"""Plans of streams, and forks of one in its middle."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from monitor import Monitor
from monitor.stream.plan import Plan
from monitor.types import Block, Frames
from tests.stream.streams import RATE, WATCHED, frames, reference, simulated, sounds, told

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
    twin, _ = monitor.twin()
    for other in (monitor.fresh(), monitor.fresh(step_seconds=0.5), twin, monitor.create_sibling()):
        assert other.attacker is monitor.attacker
    before = monitor.attacker
    monitor.begin_with(started().totals)
    monitor.prefer_closed_set()
    assert monitor.attacker is before
    assert monitor.headline == "closed-set"
    assert monitor.totals.speech == started().totals.speech


def test_a_plan_that_makes_no_sense_is_refused():
    with pytest.raises(Exception, match="positive multiple"):
        Monitor(replace(Monitor(reference(), ["f0"]).plan, step_seconds=0.015))
    assert isinstance(Monitor(reference(), ["f0"]).plan, Plan)


def test_a_fork_goes_on_apart():
    stream, same = started()._stream, started()._stream
    fork = stream.fork()
    assert fork.builder._attacker is stream.builder._attacker
    before = json.dumps(stream.state()[0])
    ahead = told(fork.push(frames(WHOLE, [450])[1]))
    assert json.dumps(stream.state()[0]) == before != json.dumps(fork.state()[0])
    assert ahead == told(same.push(frames(WHOLE, [450])[1])) != []
    assert told(stream.push(frames(WHOLE, [450])[1])) == ahead


AUDIO = [Block(sounds(2.6)[:30_000], RATE), Block(sounds(2.6)[30_000:], RATE)]


@pytest.mark.parametrize("items", [AUDIO, frames(WHOLE, [450])], ids=["sound", "frames"])
def test_an_end_that_is_foreseen_changes_nothing(items):
    is_sound = isinstance(items[0], Block)
    rest = Block(np.zeros(4000, np.float32), RATE) if is_sound else Frames(np.zeros(10, bool), {})
    one, other = (Monitor(reference(), ["f0"], WATCHED, on_change="note") for _ in range(2))
    made = [told(monitor.push(items[0])) for monitor in (one, other)]
    foreseen = told(one.foresee_end(rest))
    assert foreseen[0]["seconds"] < foreseen[-1]["seconds"]
    made[0] += told([*one.push(items[1]), *one.finish()])
    (cut,) = told(other.finish())
    if is_sound:  # voice activity goes on with its last decision
        assert cut["speech"] <= foreseen[0]["speech"] <= cut["speech"] + 0.05
    else:
        assert cut == foreseen[0]
    whole = Monitor(one.plan)
    assert made[0] == told([*whole.push(items[0]), *whole.push(items[1]), *whole.finish()])
