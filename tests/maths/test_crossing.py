"""When a level is reached, and how much longer it takes: known truth, and what censoring hides."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.alerts import Threshold
from monitor.errors import UsageError
from monitor.maths.statistics import (
    Crossing,
    FirstCrossing,
    disclosure_delay,
    median_seconds,
    share_crossed,
)
from tests.records import event

TIMES = st.lists(st.integers(1, 40).map(float), min_size=1, max_size=25)


def crossing(values, level=2.0, hold_seconds=3.0, **cut):
    found = FirstCrossing(level, hold_seconds)
    for second, value in enumerate(values, 1):
        found.update(float(second), value, cut=second in cut.get("cut", ()))
    return found.so_far()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0, 1, 2, 2, 2, 2], (3, True)),
        ([0, 5, 1, 2, 3, 2, 2.5, 2], (4, True)),  # one noisy reading is none
        ([0, 2, None, 2, 2, 2], (4, False)),  # a withheld figure interrupts
        ([0, 1, 1], (3, False)),
        ([0, 1, 2, 2], (3, False)),  # it may have been reached at 3 s: nobody knows
        ([None, None], (2, False)),
        ([], (0, False)),
    ],
)
def test_a_level_is_reached_where_the_figure_stays(values, expected):
    assert crossing(values) == Crossing(*expected)


def test_a_figure_that_was_cut_below_the_level_says_nothing_from_there_on():
    assert crossing([1, 1.5, 1.5, 3, 3, 3, 3], cut=(3,)) == Crossing(3.0, False)
    assert crossing([1, 2, 2, 2, 2], cut=(2, 3, 4, 5)) == Crossing(2.0, True)  # at least the level


def test_a_gap_begins_the_stretch_anew():
    found = FirstCrossing(2.0, 2.0)
    for second in (1.0, 2.0):
        found.update(second, 2.5)
    found.broken()
    for second in (3.0, 4.0, 5.0):
        found.update(second, 2.5)
    assert found.known == Crossing(3.0, True)


@given(
    st.lists(st.one_of(st.none(), st.floats(0, 4)), max_size=40),
    st.sampled_from([0.0, 1.0, 2.5, 5.0]),
)
def test_it_is_found_where_an_alert_is_raised(values, hold):
    rule = Threshold("bits", 2.0, hold)
    raised = [
        alert.seconds
        for second, bits in enumerate(values, 1)
        for alert in rule.update(event({"seconds": float(second), "bits": bits}))
        if alert.state == "raised"
    ]
    found = crossing(values, hold_seconds=hold)
    assert found.crossed == bool(raised)
    if raised:
        assert found.seconds == raised[0] - np.ceil(hold)


@given(TIMES, st.integers(1, 60).map(float))
def test_without_censoring_it_is_the_plain_mean_and_share(times, horizon):
    heard = [Crossing(t, True) for t in times]
    assert disclosure_delay(heard, heard, horizon).clear_seconds == pytest.approx(
        np.mean(np.minimum(times, horizon))
    )
    assert share_crossed(heard, horizon) == pytest.approx(np.mean(np.array(times) <= horizon))
    middle = sorted(times)[(len(times) - 1) // 2]
    assert median_seconds(heard) == middle


def test_kaplan_and_meier_by_hand():
    """Six times, two of them censored: the product of what stays at each crossing."""
    heard = [Crossing(*each) for each in
             [(1, True), (2, False), (3, True), (3, True), (5, False), (6, True)]]  # fmt: skip
    steps = {0.5: 0.0, 1: 1 / 6, 2.9: 1 / 6, 3: 1 - 5 / 6 * 2 / 4, 5.5: 1 - 5 / 12, 6: 1.0}
    for seconds, share in steps.items():
        assert share_crossed(heard, seconds) == pytest.approx(share)
    assert disclosure_delay(heard, heard, 6.0).clear_seconds == pytest.approx(
        1 + 2 * 5 / 6 + 3 * 5 / 12
    )
    assert median_seconds(heard) == 3


def test_censored_streams_give_the_truth_back():
    """Exponential times of 10 and 25 s, streams of 15 to 40 s: means of the first 15 s known."""
    generator = np.random.default_rng(3)
    ends = generator.uniform(15, 40, 1000)
    sides = []
    for mean in (10.0, 25.0):
        times = generator.exponential(mean, ends.size)
        sides.append([Crossing(min(t, e), bool(t <= e)) for t, e in zip(times, ends, strict=True)])
    delay = disclosure_delay(sides[0], sides[1], 30.0)

    def truth(mean):
        return mean * (1 - np.exp(-30.0 / mean))

    assert delay.clear_seconds == pytest.approx(truth(10.0), abs=0.6)
    assert delay.protected_seconds == pytest.approx(truth(25.0), abs=0.8)
    assert delay.low < truth(25.0) - truth(10.0) < delay.high
    assert delay.clear_median == pytest.approx(10 * np.log(2), abs=0.6)
    # the plain mean of what was seen would say less
    assert np.mean([c.seconds for c in sides[1]]) < delay.protected_seconds - 1


@pytest.mark.slow
def test_limits_hold_the_truth_as_often_as_they_say():
    held = 0
    for seed in range(100):
        generator = np.random.default_rng(seed)
        ends = generator.uniform(10, 30, 24)
        sides = [
            [Crossing(min(t, e), bool(t <= e)) for t, e in zip(times, ends, strict=True)]
            for times in (generator.exponential(6.0, 24), generator.exponential(12.0, 24))
        ]
        delay = disclosure_delay(sides[0], sides[1], 10.0)
        truth = 12 * (1 - np.exp(-10 / 12)) - 6 * (1 - np.exp(-10 / 6))
        held += delay.low <= truth <= delay.high
    assert 0.89 <= held / 100 <= 0.99


def test_streams_of_one_speaker_count_as_one():
    clear = [Crossing(float(t), True) for t in (2, 3, 4, 5)]
    safe = [Crossing(float(t), True) for t in (5, 9, 6, 12)]
    alone = disclosure_delay(clear, safe, 20.0)
    assert alone.low is not None
    repeated = disclosure_delay(clear * 9, safe * 9, 20.0, groups=["a", "b", "c", "d"] * 9)
    assert (repeated.low, repeated.high) == pytest.approx((alone.low, alone.high))
    assert disclosure_delay(clear[:2], safe[:2], 20.0).low is None


@settings(max_examples=20)
@given(TIMES)
def test_the_anonymiser_that_does_nothing_buys_nothing(times):
    heard = [Crossing(t, True) for t in times]
    delay = disclosure_delay(heard, heard, 30.0)
    assert delay.seconds == 0
    assert delay.low in (None, 0.0)


def test_what_makes_no_sense_is_refused():
    heard = [Crossing(3.0, False)]
    for wrong in (
        lambda: disclosure_delay([], [], 1.0),
        lambda: disclosure_delay(heard, heard, 0.0),
        lambda: disclosure_delay(heard, heard, float("nan")),
        lambda: disclosure_delay(heard, heard, 4.0),  # nobody was followed for so long
        lambda: disclosure_delay(heard, [], 1.0),
        lambda: share_crossed([], 1.0),
    ):
        with pytest.raises(UsageError):
            wrong()
