from __future__ import annotations

from dataclasses import replace

import pytest

from monitor.alerts import Conformal, EarlyWarning
from monitor.errors import UsageError
from monitor.events.run import FalseAlarmTerms
from monitor.population.false_alarms import FalseAlarms
from tests.records import event

QUOTE = FalseAlarms("bits", 8.5, 0.05, 60.0, 22, 3, "cross", 100.0, most_bits=12.0)


def readings(*values, start=1.0):
    return [
        {"type": "reading", "seconds": start + i, "speech": 1.0, "bits": value}
        for i, value in enumerate(values)
    ]


def alerts(rule, records):
    return [alert for record in records for alert in rule.update(event(record))]


def test_only_more_than_others_reached_raises_it():
    """What stops at the same bound as others' streams is no evidence."""
    rule = Conformal(QUOTE)
    assert alerts(rule, readings(8.5, 8.5, 8.5)) == []
    (raised,) = alerts(rule, readings(8.51))
    assert (raised.state, raised.threshold, raised.value) == ("raised", 8.5, 8.51)


def test_an_alert_quotes_what_it_rests_on():
    (raised, cleared) = alerts(Conformal(QUOTE), readings(9.0, 8.3, 8.2))
    for alert in (raised, cleared):
        assert alert.false_alarms == FalseAlarmTerms(0.05, 60.0, 22, 3, "cross", beyond=False)
    assert cleared.state == "cleared"
    assert raised.rule == "bits>8.5 (5 % false alarms in 1 minute)"


def test_beyond_the_horizon_it_says_so():
    rule = Conformal(QUOTE)
    (at,) = alerts(rule, readings(9.0, start=60.0))
    rule = Conformal(QUOTE)
    (after,) = alerts(rule, readings(9.0, start=61.0))
    assert (at.false_alarms.beyond, after.false_alarms.beyond) == (False, True)


def test_a_hold_is_optional():
    rule = Conformal(QUOTE, hold_seconds=2.0)
    (raised,) = alerts(rule, readings(9.0, 9.0, 8.5, 9.0, 9.0, 9.0))
    assert raised.seconds == 6.0
    assert rule.rule == "bits>8.5 for 2 s (5 % false alarms in 1 minute)"


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


def test_an_unknown_field_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match="did you mean bits"):
        Conformal.parse_field("bots")


def test_what_it_promises_is_said_beforehand():
    start = {"type": "start", "template_seconds": 100.0, "ceiling": 5.6}
    said = Conformal(QUOTE).note(event(start))
    assert said == (
        "bits > 8.50 bits: of a hundred other people's streams of 1 minute at most 5 set "
        "it off, by 22 speakers (3 of whom said less and were heard again)"
    )
    shorter = Conformal(QUOTE).note(event({**start, "template_seconds": 60.0}))
    assert shorter.endswith("that was with templates of 100 s, these are cut to 60 s")


def test_what_nothing_can_exceed_is_said_beforehand():
    """Others reach the bound: nobody's stream, the speaker's own neither, exceeds it."""
    start = {"type": "start", "template_seconds": 100.0}
    rule = Conformal(replace(QUOTE, most_bits=8.49))
    assert "it can never be raised: bits stops at 8.49 bits" in rule.note(event(start))
    assert "never" not in Conformal(QUOTE).note(event(start))
    assert alerts(rule, readings(8.49, 8.49)) == []


def test_a_warning_speaks_for_it():
    rule = Conformal(QUOTE)
    warning = EarlyWarning(rule, 30.0)
    records = [{"type": "reading", "seconds": t, "speech": t, "bits": 0.9 * t} for t in range(8)]
    (soon, *_) = alerts(warning, records)
    assert (soon.level, soon.threshold) == ("warning", 8.5)


def test_it_goes_on_where_it_was():
    rule = Conformal(QUOTE)
    alerts(rule, readings(9.0))
    again = Conformal(QUOTE)
    again.restore(rule.state())
    assert again.raised
    with pytest.raises(UsageError, match="resume with the same rule"):
        Conformal(replace(QUOTE, bits=8.0)).restore(rule.state())
