"""Warnings before an alert, budgets, stated false alarms, and when each side reaches a level."""

import json
import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.alerts import Conformal, EarlyWarning, Forecast, Threshold, budget
from monitor.alerts.crossings import Crossings
from monitor.errors import UsageError
from monitor.events.run import Alert, DelayRow, FalseAlarmTerms
from monitor.maths.statistics import Crossing
from monitor.population.false_alarms import FalseAlarms
from tests.records import event


def reading(t: float, bits: float | None, low: float | None = None) -> dict[str, Any]:
    return {"type": "reading", "seconds": t, "speech": t, "bits": bits, "bits_low": low}


def updates(rule: Any, records: Iterable[dict[str, Any]]) -> list[Any]:
    """All that a rule says of these records."""
    return [each for record in records for each in rule.update(event(record))]


def fed(rule: EarlyWarning | Threshold, values: Iterable[float | None]) -> list[Alert]:
    return updates(rule, [reading(float(t), v) for t, v in enumerate(values, 1)])


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
    found = updates(warning, [reading(t, 5.0, np.sqrt(t) / 2) for t in range(1, 60)])
    assert [a.seconds for a in found] == at


def test_a_change_ends_it_and_its_hold():
    warning = EarlyWarning(Threshold("bits", 3.0), 10.0)
    change = {"type": "change", "seconds": 30.0, "since_seconds": 28.0, "action": "note"}
    readings = [reading(t, np.sqrt(t) / 2) for t in range(1, 36)]
    found = updates(warning, [*readings[:30], change, *readings[30:]])
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
    # where it is met at once there is nothing to warn of
    assert fed(EarlyWarning(Threshold("bits", 3.0), 30.0), [5.0] * 50) == []


@given(
    st.lists(st.one_of(st.none(), st.floats(-5, 6)), min_size=1, max_size=50), st.integers(0, 49)
)
def test_stopped_and_resumed_equals_never_stopped(values, cut):
    rule = Threshold("bits", 3.0, 2.0)
    whole = fed(EarlyWarning(rule, 20.0), values)
    records = [reading(float(t), value) for t, value in enumerate(values, 1)]
    first, second = EarlyWarning(rule, 20.0), EarlyWarning(rule, 20.0)
    found = updates(first, records[:cut])
    second.restore(json.loads(json.dumps(first.state())))
    assert found + updates(second, records[cut:]) == whole
    states = [a.state for a in whole]
    assert states == ["raised", "cleared"] * (len(states) // 2) + ["raised"] * (len(states) % 2)


def test_a_warning_that_makes_no_sense_is_refused():
    rule = Threshold("bits", 3.0)
    with pytest.raises(UsageError, match="resume with the same rule"):
        EarlyWarning(rule, 30.0).restore(EarlyWarning(rule, 20.0).state())
    for seconds in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(UsageError):
            EarlyWarning(rule, seconds)
    with pytest.raises(UsageError, match="needs a watched speaker"):
        EarlyWarning(Threshold("f0.rank_bits", 3.0), 5.0).update(
            event({"type": "start", "features": ["f0"], "watch": None})
        )
    with pytest.raises(UsageError):
        Forecast(float("nan"))


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
    # it stands on the bits that are shown
    (shown,) = updates(budget(8.0)[0], [reading(t, 7.5, 6.5) for t in range(20)])
    assert shown.value == 7.5
    start = {"type": "start", "ceiling": 5.64, "speakers": 50}
    assert "budget of 8 bits spent can never" in spent.idle_reason(event(start))


def feed(forecast: Forecast, bits_of: object, seconds: range, share: float = 1.0) -> None:
    assert callable(bits_of)
    for t in seconds:
        said = {**reading(t, bits_of(share * t)), "speech": share * t}
        forecast.update(event(said))


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_straight_line_on_the_root_of_speech_is_continued_exactly(share: float) -> None:
    forecast = Forecast(3.0)
    feed(forecast, lambda speech: math.sqrt(speech) - 1, range(2, 11), share)
    assert forecast.seconds_left == pytest.approx(16 / share - 10)


def test_only_the_last_twenty_seconds_of_the_same_evidence_count() -> None:
    forecast = Forecast(11.0)
    feed(forecast, lambda speech: -math.sqrt(speech), range(1, 40))
    feed(forecast, math.sqrt, range(40, 101))
    assert forecast.seconds_left == pytest.approx(21)
    jump = Forecast(8.0)
    feed(jump, lambda speech: math.sqrt(speech) - (speech < 16), range(9, 17))
    assert 0 < (jump.seconds_left or 0) < 48  # it makes it sooner, by more than the slope
    jump.update(event({"type": "reading", "seconds": 17, "speech": 0.5, "bits": 0.1}))
    assert jump.seconds_left is None  # it forgets with the evidence


def test_the_field_is_taken_at_its_word() -> None:
    low, plain = Forecast(5.0, "f0.local_bits_low"), Forecast(5.0, "f0.local_bits")
    for t in range(1, 17):
        f0 = {"local_bits": math.sqrt(t) + 2, "local_bits_low": math.sqrt(t)}
        for each in (low, plain):
            each.update(
                event({"type": "reading", "seconds": t, "speech": t, "features": {"f0": f0}})
            )
    assert low.seconds_left == pytest.approx(9)
    assert plain.seconds_left == 0


def test_it_waits_while_a_change_is_open() -> None:
    forecast = Forecast(5.0)
    feed(forecast, math.sqrt, range(1, 17))
    forecast.update(event({"type": "change", "seconds": 17.0, "action": "note"}))
    assert forecast.seconds_left is None
    opened = {"since_seconds": 14.0, "features": ["f0"]}
    reading = {"type": "reading", "seconds": 17, "speech": 17, "bits": 6.0}
    forecast.update(event({**reading, "change": opened}))
    assert forecast.seconds_left is None
    forecast.update(event(reading))
    assert forecast.seconds_left == 0


def test_state_does_not_grow_with_the_rate_of_readings() -> None:
    forecast, again = Forecast(100.0), Forecast(100.0)
    for t in range(1, 5000):
        forecast.update(event(reading(t / 100, t / 1e4)))
    assert len(forecast.state()) <= 42
    again.restore(forecast.state())
    assert again.seconds_left == forecast.seconds_left


def test_falling_flat_short_and_far_say_nothing_and_reached_is_zero() -> None:
    for bits_of in (lambda s: -s, lambda s: 0 * s, lambda s: 1e-4 * math.log(s)):
        forecast = Forecast(3.0)
        feed(forecast, bits_of, range(1, 30))
        assert forecast.seconds_left is None
    short = Forecast(3.0)
    assert short.seconds_left is None
    for record in ({"type": "gap", "seconds": 1.0}, reading(0.0, 0.0), reading(0.5, None)):
        short.update(event(record))
    assert short.seconds_left is None
    feed(short, math.log2, range(1, 4))
    assert short.seconds_left is None
    feed(short, math.log2, range(4, 10))
    assert short.seconds_left == 0.0


def test_nothing_is_forecast_that_can_never_come() -> None:
    start = {"type": "start", "headline": "evidence", "support_bits": 8.7, "ceiling": 5.64}
    never, late = Forecast(9.0), Forecast(8.5)
    for forecast in (never, late):
        forecast.update(event(start))
        feed(forecast, math.sqrt, range(1, 65))
    assert never.beyond_reach
    assert never.seconds_left is None
    assert not late.beyond_reach
    assert late.seconds_left


@given(st.lists(st.tuples(st.floats(0, 1), st.one_of(st.none(), st.floats(-50, 50))), max_size=60))
def test_never_fails_and_never_negative(steps: list[tuple[float, float | None]]) -> None:
    forecast = Forecast(3.0)
    speech = 0.0
    for t, (spoken, bits) in enumerate(steps):
        speech += spoken
        forecast.update(event({"type": "reading", "seconds": t, "speech": speech, "bits": bits}))
        left = forecast.seconds_left
        assert left is None or 0 <= left <= 600


QUOTE = FalseAlarms("bits", 8.5, 0.05, 60.0, 22, 3, "cross", 100.0, most_bits=12.0)


def test_only_more_than_others_reached_raises_it():
    """What stops at the same bound as others' streams is no evidence."""
    rule = Conformal(QUOTE)
    assert fed(rule, [8.5, 8.5, 8.5]) == []
    (raised,) = rule.update(event(reading(4.0, 8.51)))
    assert (raised.state, raised.threshold, raised.value) == ("raised", 8.5, 8.51)
    again = Conformal(QUOTE)  # goes on where it was
    again.restore(rule.state())
    assert again.raised
    with pytest.raises(UsageError, match="resume with the same rule"):
        Conformal(replace(QUOTE, bits=8.0)).restore(rule.state())


def test_an_alert_quotes_what_it_rests_on() -> None:
    for start, beyond in ((60.0, False), (61.0, True)):  # the horizon is a minute
        raised, cleared = updates(
            Conformal(QUOTE), [reading(start + i, v) for i, v in enumerate((9.0, 8.3, 8.2))]
        )
        assert raised.false_alarms == FalseAlarmTerms(0.05, 60.0, 22, 3, "cross", beyond=beyond)
        assert (raised.state, cleared.state) == ("raised", "cleared")
        assert cleared.false_alarms == replace(raised.false_alarms, beyond=True)
        assert raised.rule == "bits>8.5 (5 % false alarms in 1 minute)"
    rule = Conformal(QUOTE, hold_seconds=2.0)
    (raised,) = fed(rule, [9.0, 9.0, 8.5, 9.0, 9.0, 9.0])
    assert raised.seconds == 6.0
    assert rule.rule == "bits>8.5 for 2 s (5 % false alarms in 1 minute)"
    (soon, *_) = fed(EarlyWarning(Conformal(QUOTE), 30.0), [0.9 * t for t in range(8)])
    assert (soon.level, soon.threshold) == ("warning", 8.5)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("bits", ("bits", 0.0, None)),
        (" f0.local_bits for 2.5 s ", ("f0.local_bits", 2.5, None)),
        ("bits for 3", ("bits", 3.0, None)),
        ("bits for 3 s after 10 s", ("bits", 3.0, 10.0)),
        ("bits after 2", ("bits", 0.0, 2.0)),
        ("bits>3", None),
        ("bits > 3 for 5 s", None),
        ("", None),
    ],
)
def test_a_rule_without_a_threshold(text, found):
    assert Conformal.parse_field(text) == found


def test_what_it_promises_is_said_beforehand():
    start = {"type": "start", "template_seconds": 100.0, "ceiling": 5.6}
    said = Conformal(QUOTE).note(event(start))
    assert said == (
        "bits > 8.50 bits: at most 5 of a hundred other people's streams of 1 minute raise it, "
        "according to 22 speakers (3 with less speech, which was repeated)"
    )
    shorter = Conformal(QUOTE).note(event({**start, "template_seconds": 60.0}))
    assert shorter.endswith("calibrated with templates of 100 s, but these are cut to 60 s")


def test_what_nothing_can_exceed_is_said_beforehand():
    """Others reach the bound: nobody's stream, the speaker's own neither, exceeds it."""
    start = {"type": "start", "template_seconds": 100.0}
    rule = Conformal(replace(QUOTE, most_bits=8.49))
    said = rule.idle_reason(event(start))
    assert "can never be raised: bits stops at 8.49 bits" in said
    assert not Conformal(QUOTE).idle_reason(event(start))
    assert Conformal(QUOTE).idle_reason(event(start), 8.4)
    assert Conformal(QUOTE).idle_reason(event({**start, "ceiling": 5.64}))
    assert fed(rule, [8.49, 8.49]) == []
    with pytest.raises(UsageError, match="did you mean bits"):
        Conformal.parse_field("bots")


START = {
    "type": "start",
    "watch": "ann",
    "headline": "closed-set",
    "ceiling": 5.64,
    "support_bits": 9.0,
}


def both_sides(second: float, clear: float, protected: float, **more: Any) -> dict[str, Any]:
    both = {"bits": clear, "protected": {"bits": protected}}
    return {"type": "reading", "seconds": float(second), **both, **more}


def watched(records: list[dict[str, Any]], level: float = 2.0) -> tuple[list[Any], DelayRow]:
    watch = Crossings(event({**START, "support_bits": None}), [level])
    told = updates(watch, records)
    (row,) = watch.table
    return [(t.side, t.since_seconds, t.delay_seconds) for t in told], row


def test_both_cross_and_the_protected_side_may_come_first():
    told, row = watched([both_sides(t, t, t / 4) for t in range(1, 20)])
    assert told == [("clear", 2, None), ("protected", 8, 6)]
    assert row == DelayRow(2.0, Crossing(2, True), Crossing(8, True), 6, at_least=False)
    told, row = watched([both_sides(t, t / 4, t) for t in range(1, 20)])
    assert told == [("protected", 2, None), ("clear", 8, -6)]
    assert row.delay_seconds == -6


@pytest.mark.parametrize(
    ("clear", "protected", "disclosure_delay", "at_least"),
    [(3.0, 1.0, 19.0, True), (1.0, 3.0, None, False), (1.0, 1.0, None, False)],
)
def test_what_a_recording_does_not_show_is_not_claimed(
    clear, protected, disclosure_delay, at_least
):
    _, row = watched([both_sides(t, clear, protected) for t in range(1, 21)])
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
        record = both_sides(t, 4.0, 2.5, at_least=True)
        record["protected"] |= {"at_least": t > 4}
        watch.update(event(record))
    row = watch.table[-1]
    assert row.clear == (1, True)
    assert row.protected == (5, False)
    assert (row.delay_seconds, row.at_least) == (4, True)


@pytest.mark.parametrize("kind", ["gap", "change", "open"])
def test_what_interrupts_an_alert_interrupts_a_crossing(kind):
    records = [both_sides(t, 3, 3) for t in range(1, 13)]
    if kind == "open":
        records[3]["change"] = {"since_seconds": 3.0, "features": ["f0"]}
    else:
        records.insert(4, {"type": kind, "seconds": 4.0, "action": "note"})
    told, _ = watched(records)
    assert [each[1] for each in told] == ([1, 1] if kind == "gap" else [5, 5])
    for action in ("reset", "split"):  # another voice crosses nothing for the first
        records = [both_sides(t, 3, 3) for t in range(1, 20)]
        records.insert(2, {"type": "change", "seconds": 3.0, "action": action})
        told, row = watched(records)
        assert (told, row.clear) == ([], (2, False))


def test_stopped_and_resumed_crossings_are_as_never_stopped():
    records = [both_sides(t, t / 3, t / 9 if t != 18 else 0) for t in range(1, 40)]
    whole = Crossings(event(START))
    expected = updates(whole, records)
    for cut in range(0, 40, 3):
        first, second = Crossings(event(START)), Crossings(event(START))
        told = updates(first, records[:cut])
        second.restore(json.loads(json.dumps(first.state())))
        assert told + updates(second, records[cut:]) == expected
        assert second.table == whole.table
