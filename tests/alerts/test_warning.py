from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.alerts import EarlyWarning, Threshold, budget
from monitor.errors import UsageError
from monitor.events.run import Alert
from tests.records import event


def reading(t: float, bits: float | None, low: float | None = None) -> dict[str, Any]:
    return {"type": "reading", "seconds": t, "speech": t, "bits": bits, "bits_low": low}


def fed(rule: EarlyWarning | Threshold, values: Iterable[float | None]) -> list[Alert]:
    return [a for t, v in enumerate(values, 1) for a in rule.update(event(reading(float(t), v)))]


def test_it_warns_before_the_alert_and_not_after():
    roots = np.sqrt(np.arange(1, 60)) / 2
    warnings = fed(EarlyWarning(Threshold("bits", 3.0), 10.0), roots)
    assert [each.record() for each in warnings] == [
        {
            "type": "alert",
            "seconds": 26.0,
            "speech": 26.0,
            "rule": "bits>3 within 10 s",
            "field": "bits",
            "threshold": 3.0,
            "level": "warning",
            "state": "raised",
            "value": roots[25],
            "seconds_left": pytest.approx(10.0),
        }
    ]
    assert fed(Threshold("bits", 3.0, 0.0), roots)[0].seconds == 36.0


@pytest.mark.parametrize(("field", "at"), [("bits_low", [26.0]), ("bits", [])])
def test_it_looks_at_the_field_that_the_alert_stands_on(field, at):
    warning = EarlyWarning(Threshold(field, 3.0), 10.0)
    found = []
    for t in range(1, 60):
        found += warning.update(event(reading(t, 5.0, np.sqrt(t) / 2)))
    assert [a.seconds for a in found] == at


def test_a_change_ends_it_and_its_hold():
    warning = EarlyWarning(Threshold("bits", 3.0), 10.0)
    change = {"type": "change", "seconds": 30.0, "since_seconds": 28.0, "action": "note"}
    readings = [reading(t, np.sqrt(t) / 2) for t in range(1, 36)]
    found = [a for r in [*readings[:30], change, *readings[30:]] for a in warning.update(event(r))]
    assert [(a.seconds, a.state, a.seconds_left) for a in found] == [
        (26, "raised", pytest.approx(10.0)),
        (31, "cleared", None),
        (34, "raised", pytest.approx(2.0)),
    ]


def test_it_is_over_when_the_figure_stays_low_and_raised_again():
    values = [*(np.sqrt(np.arange(1, 34)) / 2), *np.full(60, 1.0), *(1 + np.arange(30) / 12)]
    found = fed(EarlyWarning(Threshold("bits", 3.0, 4.0), 10.0), values)
    assert [(a.seconds, a.state) for a in found][:2] == [(26, "raised"), (38, "cleared")]
    assert [a.state for a in found] == ["raised", "cleared", "raised"]


def test_where_it_is_met_at_once_there_is_nothing_to_warn_of():
    assert fed(EarlyWarning(Threshold("bits", 3.0), 30.0), [5.0] * 50) == []


@given(
    st.lists(st.one_of(st.none(), st.floats(-5, 6)), min_size=1, max_size=50),
    st.integers(0, 49),
)
def test_stopped_and_resumed_equals_never_stopped(values, cut):
    rule = Threshold("bits", 3.0, 2.0)
    whole = fed(EarlyWarning(rule, 20.0), values)
    first, second = EarlyWarning(rule, 20.0), EarlyWarning(rule, 20.0)
    found = fed(first, values[:cut])
    second.restore(json.loads(json.dumps(first.state())))
    for t, value in enumerate(values[cut:], min(cut, len(values)) + 1):
        found += second.update(event(reading(float(t), value)))
    assert found == whole
    states = [a.state for a in whole]
    assert states == ["raised", "cleared"] * (len(states) // 2) + ["raised"] * (len(states) % 2)


def test_a_state_of_another_rule_is_refused():
    state = EarlyWarning(Threshold("bits", 3.0), 20.0).state()
    with pytest.raises(UsageError, match="resume with the same rule"):
        EarlyWarning(Threshold("bits", 3.0), 30.0).restore(state)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_no_time_to_warn_in(seconds):
    with pytest.raises(UsageError):
        EarlyWarning(Threshold("bits", 3.0), seconds)


def test_a_field_that_the_stream_will_not_have():
    with pytest.raises(UsageError, match="needs a watched speaker"):
        EarlyWarning(Threshold("f0.rank_bits", 3.0), 5.0).update(
            event({"type": "start", "features": ["f0"], "watch": None})
        )


def test_a_budget_warns_one_bit_before_and_then_alerts():
    near, spent = budget(8.0)
    values = [6.9] * 9 + [7.1] * 9 + [8.2] * 9
    (warning,), (alert,) = fed(near, values), fed(spent, values)
    assert (warning.seconds, warning.level) == (15.0, "warning")
    assert warning.rule == "budget of 8 bits nearly spent"
    assert (alert.seconds, alert.level) == (24.0, "alert")
    assert (warning.threshold, alert.threshold) == (7.0, 8.0)
    again = budget(8.0)[0]
    again.restore(near.state())
    with pytest.raises(UsageError):
        again.restore(spent.state())
    assert [rule.bits for rule in budget(2.0)] == [1.5, 2.0]
    for bits in (0.0, -1.0, float("nan")):
        with pytest.raises(UsageError):
            budget(bits)


def test_a_budget_stands_on_the_bits_that_are_shown():
    near, _ = budget(8.0)
    (warning,) = [a for t in range(20) for a in near.update(event(reading(t, 7.5, 6.5)))]
    assert warning.value == 7.5


def test_what_can_never_be_raised_is_told():
    start = {"type": "start", "ceiling": 5.64, "speakers": 50}
    assert Threshold("bits", 6.0).note(event(start)) == (
        "bits>6 for 5 s: can never be raised: among 50 speakers a voice can reach 5.64 bits at most"
    )
    assert Threshold("bits", 5.0).note(event(start)) is None
    assert Threshold("sum_bits", 9.0).note(event(start)) is None
    assert "budget of 8 bits spent: can never" in (budget(8.0)[1].note(event(start)) or "")
