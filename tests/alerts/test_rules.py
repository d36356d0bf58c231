"""When a threshold is raised and cleared, by a slow reference; what it refuses and foretells."""

import json
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from monitor import Monitor, Population
from monitor.alerts import Threshold
from monitor.alerts.budgets import Budget
from monitor.alerts.figures import figure
from monitor.alerts.rules import AdjustableThreshold
from monitor.errors import UsageError
from monitor.events.reading import Reading
from monitor.events.run import RunStart
from monitor.population import demo_frames
from monitor.sources import FramesFile
from tests.records import event


def reading(seconds: float, value: float | None, low: float | None = None) -> dict[str, Any]:
    record = {"type": "reading", "seconds": seconds, "speech": seconds * 0.8, "bits": value}
    return record if low is None else {**record, "bits_low": low}


def states(rule: Threshold, records: list[dict[str, Any]]) -> list[tuple[str, float]]:
    return [(a.state, a.seconds) for r in records for a in rule.update(event(r))]


def slow(
    records: list[dict[str, Any]], theta: float, hold: float, margin: float
) -> list[tuple[str, float]]:
    """For every reading, look back over the whole history for a run that is long enough."""

    def qualifies(record: dict[str, Any], raised: bool) -> bool:
        if record["type"] != "reading" or record["bits"] is None or "change" in record:
            return False
        return bool(record["bits"] < theta - margin if raised else record["bits"] >= theta)

    out: list[tuple[str, float]] = []
    flipped = -1  # a run cannot begin before the last change of state
    for i, record in enumerate(records):
        raised = len(out) % 2 == 1
        if record["type"] != "reading":
            continue
        if "change" in record or records[i - 1]["type"] == "change":
            if raised:
                out.append(("cleared", record["seconds"]))
            flipped = i
            continue
        for j in range(flipped + 1, i + 1):
            run = records[j : i + 1]
            if not raised and run[0]["type"] == "reading":  # a gap delays no alert
                run = [r for r in run if r["type"] != "gap"]
            long_enough = round(100 * (run[-1]["seconds"] - run[0]["seconds"])) >= 100 * hold
            if long_enough and all(qualifies(r, raised) for r in run):
                out.append(("cleared" if raised else "raised", records[i]["seconds"]))
                flipped = i
                break
    return out


OPEN = {"change": {"since_seconds": 0.5, "features": ["f0"]}}
FIGURE = st.one_of(st.none(), st.sampled_from([2.0, 2.74, 2.75, 2.9, 3.0, 3.1, 4.0]))


@st.composite
def runs(draw: st.DrawFn) -> list[dict[str, Any]]:
    ticks, opened = 0, False
    records: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(0, 60))):
        ticks += draw(st.sampled_from([10, 10, 30, 100]))
        if draw(st.integers(0, 14)) == 0:
            records.append({"type": "gap", "seconds": ticks / 100})
        if draw(st.integers(0, 14)) == 0:
            action = draw(st.sampled_from(["note", "reset", "split"]))
            change = {"type": "change", "seconds": ticks / 100, "action": action, **OPEN["change"]}
            records.append(change)
            opened = action == "note"
        opened = opened and draw(st.integers(0, 9)) > 0
        value = draw(FIGURE)
        below = draw(st.sampled_from([None, 0.0, 0.1, 1.0]))
        low = None if below is None or value is None else value - below
        records.append(reading(ticks / 100, value, low) | (OPEN if opened else {}))
    return records


@pytest.mark.slow
@given(runs(), st.sampled_from([0.0, 0.3, 1.0, 2.0]), st.sampled_from([0.0, 0.25]))
@example([reading(t / 10, 3.0) for t in range(1, 5)], 0.3, 0.25)  # 0.4 - 0.1 < 0.3 in floats
def test_equals_the_slow_reference(
    records: list[dict[str, Any]], hold: float, margin: float
) -> None:
    rule = Threshold("bits", 3.0, hold_seconds=hold, hysteresis_bits=margin)
    assert states(rule, records) == slow(records, 3.0, hold, margin)


@pytest.mark.slow
@given(runs(), st.integers(0, 60))
def test_stop_and_resume_equals_never_stopped(records: list[dict[str, Any]], cut: int) -> None:
    whole, first, second = (Threshold("bits", 3.0, hold_seconds=1.0) for _ in range(3))
    expected = [a for r in records for a in whole.update(event(r))]
    found = [a for r in records[:cut] for a in first.update(event(r))]
    second.restore(json.loads(json.dumps(first.state())))
    found += [a for r in records[cut:] for a in second.update(event(r))]
    assert found == expected
    assert second.state() == whole.state()


def test_golden_run() -> None:
    values = [1, 3.2, 3.2, 3.2, 3.2, 2.8, 2.8, 2.8, 2.7, 2.7, 2.7, 2.7, 3.5]
    rule = Threshold("bits", 3.0, hold_seconds=3.0)
    alerts = [a for t, v in enumerate(values) for a in rule.update(event(reading(t, v)))]
    assert alerts[0].record() == {
        "type": "alert",
        "seconds": 4,
        "speech": 3.2,
        "rule": "bits>3 for 3 s",
        "field": "bits",
        "threshold": 3.0,
        "level": "alert",
        "state": "raised",
        "value": 3.2,
    }
    assert [(a.state, a.seconds) for a in alerts] == [("raised", 4), ("cleared", 11)]
    assert rule.raised is False


def test_the_field_is_taken_at_its_word() -> None:
    """Bits far above the threshold raise it, however low their lower limit is."""
    records = [reading(t, 2.0, 1.0) for t in range(60)]
    assert states(Threshold.parse("bits>1.5"), records) == [("raised", 5)]
    assert states(Threshold.parse("bits_low>1.5"), records) == []
    assert states(Threshold.parse("bits_low>1 for 9 s"), records) == [("raised", 9)]
    rule = Threshold("bits_low", 3.0, hold_seconds=0.0)
    (alert,) = rule.update(event(reading(1, 4.0, 3.0)))
    assert (alert.field, alert.value) == ("bits_low", 3.0)
    assert states(rule, [reading(2, 4.0, 2.75), reading(3, 4.0, 2.74)]) == [("cleared", 3)]


@pytest.mark.parametrize("action", ["note", "reset", "split"])
def test_a_change_restarts_the_hold_and_clears_what_stands(action: str) -> None:
    change = {"type": "change", "seconds": 8.0, "since_seconds": 6.0, "action": action}
    calm = [reading(t, 4.0) for t in range(20)]
    assert states(Threshold("bits", 3.0), [*calm[:3], change, *calm[3:]]) == [("raised", 9)]
    late = [*calm[:8], change, *calm[8:]]
    assert states(Threshold("bits", 3.0), late)[:2] == [("raised", 5), ("cleared", 8)]


def test_nothing_stands_on_what_may_be_said_by_somebody_else() -> None:
    rule = Threshold("bits", 3.0)
    records = [reading(t, 4.0) for t in range(8)]
    records += [reading(t, 4.0) | OPEN for t in range(8, 30)]
    found = [alert for record in records for alert in rule.update(event(record))]
    assert [(a.state, a.seconds) for a in found] == [("raised", 5), ("cleared", 8)]
    assert found[1].record()["change"] == OPEN["change"]
    assert states(rule, [reading(t, 4.0) for t in range(30, 40)]) == [("raised", 35)]


@pytest.mark.parametrize("middle", [reading(2.5, None), reading(2.5, np.nan)])
def test_withheld_figures_restart_the_hold(middle: dict[str, Any]) -> None:
    records = [reading(t, 4.0) for t in range(10)]
    assert states(Threshold("bits", 3.0), records) == [("raised", 5)]
    broken = [*records[:3], middle, *records[3:]]
    assert states(Threshold("bits", 3.0), broken) == [("raised", 8)]


def test_feature_fields() -> None:
    rule = Threshold.parse("f0.rank_bits_low>1 for 0 s")
    low = {"rank_bits": 1.5, "rank_bits_low": 0.9}
    assert rule.update(event({"type": "reading", "seconds": 1, "features": {"f0": low}})) == []
    high = {"rank_bits": 1.5, "rank_bits_low": 1.0}
    (alert,) = rule.update(event({"type": "reading", "seconds": 2, "features": {"f0": high}}))
    assert (alert.field, alert.value) == ("f0.rank_bits_low", 1.0)
    plain = Threshold.parse("f0.rank_bits>1 for 0 s")
    (alert,) = plain.update(event({"type": "reading", "seconds": 1, "features": {"f0": low}}))
    assert alert.value == 1.5


@pytest.mark.parametrize(
    ("text", "field", "bits", "hold", "least"),
    [
        ("bits>3", "bits", 3.0, 5.0, 0.0),
        ("bits>=3", "bits", 3.0, 5.0, 0.0),
        (" bits > 2.5  for 10s ", "bits", 2.5, 10.0, 0.0),
        ("bits>3 for 2 s", "bits", 3.0, 2.0, 0.0),
        ("bits>3 bits for 0.5 seconds", "bits", 3.0, 0.5, 0.0),
        ("f0.local_bits>=-1", "f0.local_bits", -1.0, 5.0, 0.0),
        ("sum_bits>.5 for 0", "sum_bits", 0.5, 0.0, 0.0),
        ("bits>3 after 4s", "bits", 3.0, 5.0, 4.0),
        ("bits>3 for 0 s after 0.5 seconds", "bits", 3.0, 0.0, 0.5),
        ("bits>3 for 1 after 0", "bits", 3.0, 1.0, 0.0),
    ],
)
def test_parse(text: str, field: str, bits: float, hold: float, least: float) -> None:
    rule = Threshold.parse(text)
    assert (rule.field, rule.bits) == (field, bits)
    assert (rule.hold_seconds, rule.least_speech_seconds) == (hold, least)
    again = Threshold.parse(rule.rule)
    assert (again.rule, again.terms()) == (rule.rule, rule.terms())


def test_early_readings_do_not_count_and_the_hold_begins_after_them() -> None:
    high = [reading(t, 6.4) for t in range(1, 30)]  # 0.8 s of speech a second
    rule = Threshold("bits", 3.0, hold_seconds=5.0, least_speech_seconds=8.0)
    (alert,) = (a for r in high for a in rule.update(event(r)))
    assert (alert.seconds, alert.speech, alert.least_speech_seconds) == (15, 12.0, 8.0)
    falling = [reading(t, 6.4 if t < 6 else -10.1) for t in range(1, 30)]
    assert states(Threshold("bits", 3.0, 0.0), falling)[0] == ("raised", 1)
    assert not states(Threshold("bits", 3.0, 0.0, least_speech_seconds=8.0), falling)


def test_a_threshold_of_the_page_is_lowered_to_what_can_be_reached() -> None:
    rule = AdjustableThreshold("bits", 6.0, 0.0)
    rule.adjust(8.0)  # before the run has begun
    rule.limit(5.0)
    assert rule.bits == 5.0
    assert states(rule, [reading(1, 5.2)]) == [("raised", 1)]
    assert (rule.adjust(7.0), rule.adjust(4.0)) == (5.0, 4.0)


def test_too_little_speech_decides_nothing() -> None:
    plain = Threshold.parse("bits>3")
    rule = Threshold("bits", 3.0, least_speech_seconds=10.0)
    assert "0.0 of the 10 s of speech" in rule.inconclusive_reason  # nothing was heard
    for each in (plain, rule):  # who waits for no speech decides after ten seconds as well
        assert not states(each, [reading(t, 0.1) for t in range(1, 12)])
        assert each.inconclusive_reason == (
            "alert bits>3: not decided, with 8.8 of the 10 s of speech that it needs"
        )
    at_once = Threshold.parse("bits>3 for 0 s after 0 s")
    at_once.update(event({"type": "reading", "seconds": 1.0, "speech": 1.0, "bits": None}))
    assert at_once.inconclusive_reason == "alert bits>3: not decided, no reading has bits"
    at_once.update(event(reading(2, 0.1)))
    assert not at_once.inconclusive_reason
    rule.update(event(reading(13, 0.1)))
    assert rule.inconclusive_reason == (
        "alert bits>3: not decided, its readings cover only 0.0 s of the 5 s for which it must hold"
    )
    rule.update(event(reading(18, 0.1)))
    assert not rule.inconclusive_reason
    assert not states(rule, [reading(t, 3.4) for t in range(19, 22)])
    reason = "alert bits>3: not decided, over its threshold for 2.0 of 5 s when the stream ended"
    copy = Threshold("bits", 3.0, least_speech_seconds=10.0)
    copy.restore(json.loads(json.dumps(rule.state())))
    assert copy.inconclusive_reason == rule.inconclusive_reason == reason
    states(rule, [reading(t, 3.4 if t < 27 else 0.0) for t in range(22, 40)])
    assert not rule.raised
    assert not rule.inconclusive_reason  # it was raised, and cleared again
    budget = Budget(3.0)
    assert not states(budget, [reading(1, 5.0)])
    assert budget.inconclusive_reason == (
        "alert bits>3: not decided, over its threshold for 0.0 of 5 s when the stream ended"
    )
    assert not states(budget, [reading(2, 2.0)])
    assert not budget.inconclusive_reason  # the next session goes on


@pytest.mark.parametrize("hold", [0.0, 20.0])
def test_a_figure_over_the_threshold_under_an_open_change_is_undecided(hold: float) -> None:
    rule, copy = Threshold("bits", 3.0, hold), Threshold("bits", 3.0, hold)
    before = 20 if hold else 10
    records = [reading(t, 5.0 if t > 10 else 1.0) for t in range(before)]
    assert not states(rule, [*records, *(reading(t, 5.0) | OPEN for t in range(before, 60))])
    copy.restore(json.loads(json.dumps(rule.state())))
    for each in (rule, copy):
        assert each.inconclusive_reason.endswith("when the stream ended after a change")
    assert not states(rule, [reading(t, 1.0) for t in range(60, 90)])
    assert not rule.inconclusive_reason


def test_gaps_delay_no_alert_but_its_end() -> None:
    def often_cut(value: float, seconds: range) -> list[dict[str, Any]]:
        return [r for t in seconds for r in (reading(t, value), {"type": "gap", "seconds": t})]

    rule = Threshold("bits", 3.0, 5.0)
    records = [*often_cut(5.0, range(20)), *often_cut(1.0, range(20, 40))]
    assert states(rule, [*records, *(reading(t, 1.0) for t in range(40, 50))]) == [
        ("raised", 5), ("cleared", 45)
    ]  # fmt: skip


def test_an_alert_does_not_stand_on_a_speaker_who_is_probably_not_enrolled() -> None:
    def heard(enrolled: float | None, *, watched: bool = False) -> list[dict[str, Any]]:
        more = {"assumes_enrolled": not watched, "enrolled": enrolled}
        return [{**reading(t, 5.0), **more} for t in range(20)]

    for enrolled in (0.5, None):  # as likely as not; nobody can know
        assert states(Threshold("bits", 3.0), heard(enrolled)) == [("raised", 5)]
    assert states(Threshold("bits", 3.0), heard(0.1, watched=True)) == [("raised", 5)]
    rule = Threshold("bits", 3.0)
    assert not states(rule, heard(0.1))
    assert rule.inconclusive_reason == (
        "alert bits>3: not decided, over its threshold, but the speaker is probably not enrolled: "
        "watch the speaker, or enrol them"
    )
    copy = Threshold("bits", 3.0)
    copy.restore(json.loads(json.dumps(rule.state())))
    assert copy.inconclusive_reason == rule.inconclusive_reason
    enrolled_after_all = {**reading(20, 5.0), "assumes_enrolled": True, "enrolled": 0.3}
    assert states(copy, [enrolled_after_all]) == [("raised", 20)]
    assert not copy.inconclusive_reason
    of_crowd = {"among": [{"people": 1e6, "bits": 9.0}], "assumes_enrolled": True, "enrolled": 0.1}
    crowd = [{**reading(t, 5.0), **of_crowd} for t in range(20)]
    assert states(Threshold("among.1e6.bits", 3.0), crowd) == [("raised", 5)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        *((text, "bits>6 for 5 s") for text in ("", "bits", "bits<3", "bits>three")),
        ("bits>3 for 5 m", "bits>6 for 5 s"),
        ("bits>3 for -1 s", "not negative"),
        ("bits>3 after -1 s", "not negative"),
        ("bits>3 after 5 s for 1 s", "bits>6 for 5 s"),
        ("bit>3", "did you mean bits?"),
        ("gainbits>3", "did you mean gain_bits?"),
        ("f0.rankbits>3", "did you mean f0.rank_bits?"),
        ("f0.usable>3", "a feature has expected_bits"),
        ("sum_bits_low>3", "did you mean sum_bits?"),
        ("bitslow>3", "did you mean bits_low?"),
        ("f0.local_low>3", "did you mean f0.local_bits_low?"),
        (
            "xyzzy>3",
            "bits, evidence_bits, closed_set_bits, gain_bits, expected_bits (each also with",
        ),
        (".rank_bits>3", "unknown alert field"),
        ("peak_bits>3", "use bits"),
        ("evidence>3", "did you mean evidence_bits?"),
        ("among.bits>3", "write it as among.1e6.bits"),
        ("among.1e6>3", "write it as among.1e6.bits"),
        ("among.city.bits>3", "'city' is not a number of people; write it as among.1e6.bits"),
        ("among.inf.bits>3", "is not a number of people"),
        ("among.1e6.fitting>3", "with bits_low or bits_high"),
        ("a\x7f.1e6.bits>3", ""),
    ],
)
def test_parse_errors_say_what_to_do(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        Threshold.parse(text)
    assert says in str(caught.value)
    assert str(caught.value).isprintable()  # in one line


def test_numbers_and_the_state_of_another_rule_are_checked() -> None:
    for numbers in (
        (float("nan"), 5.0, 0.25), (3.0, float("inf"), 0.25), (3.0, 5.0, -0.1),
        (3.0, 86_401.0, 0.25), (3.0, 5.0, 0.25, 86_401.0), (3.0, 5.0, float("inf")),
    ):  # fmt: skip
        with pytest.raises(UsageError):
            Threshold("bits", *numbers)
    with pytest.raises(UsageError, match="same rule"):
        Threshold("bits", 3.0).restore(Threshold("bits", 2.0).state())


EVIDENCE = {"type": "start", "watch": "ann", "among": [50, 1_000_000], "support_bits": 14.2}
NOBODY = {"type": "start", "features": ["f0"], "watch": None}


@pytest.mark.parametrize(
    ("rule", "first", "says"),
    [
        ("fo.rank_bits>1", {**NOBODY, "watch": "a"}, "did you mean f0"),
        ("fo.rank_bits>1", {"type": "reading", "seconds": 1, "features": {"f0": {}}}, "mean f0"),
        ("f0.rank_bits>1", NOBODY, "watched speaker"),
        ("f0.local_bits_low>1", NOBODY, "watched speaker"),
        ("evidence_bits>10", {**EVIDENCE, "watch": None}, "needs a watched speaker: name one"),
        ("evidence_bits>10", {**EVIDENCE, "support_bits": None}, "calibrate again"),
        ("among.1e6.bits>10", {**EVIDENCE, "support_bits": None}, "calibrate again"),
        ("among.1e5.bits>10", EVIDENCE, "add among=100000"),
        ("f0.rank_bits>1", {**NOBODY, "watch": "a"}, ""),
        ("f0.rank_bits>1", {"type": "end"}, ""),
    ],
)
def test_a_rule_that_could_never_fire_is_refused(rule: str, first: Any, says: str) -> None:
    if says:
        with pytest.raises(UsageError, match=says):
            Threshold.parse(rule).update(event(first))
    else:
        assert Threshold.parse(rule).update(event(first)) == []


def test_evidence_and_bits_in_a_crowd_are_figures_like_others() -> None:
    evidence = Threshold.parse("evidence_bits_low>10 for 0 s")
    city = Threshold.parse("among.1e6.bits>10 for 0 s")
    for rule in (evidence, city):
        assert rule.update(event(EVIDENCE)) == []
        assert not rule.idle_reason(event(EVIDENCE))
    crowds = [{"people": 50, "bits": 5.6}, {"people": 1_000_000, "bits": 10.7}]
    first = {"type": "reading", "seconds": 1.0, "speech": 1.0, "among": crowds}
    below, over = (event({**first, "evidence_bits_low": low}) for low in (9.9, 10.0))
    assert [r.value for r in city.update(below)] == [10.7]
    assert evidence.update(below) == []
    assert evidence.update(over)[0].field == "evidence_bits_low"


SUPPORTED = "calibration can support at most 14.20 bits"
CLOSED = {**EVIDENCE, "ceiling": 5.64, "speakers": 50, "headline": "closed-set"}
PROTECTED = {
    **EVIDENCE,
    "headline": "evidence",
    "ceiling": 5.64,
    "protected": {
        "attackers": {"ignorant": {"support_bits": 9.0}, "lazy-informed": {"support_bits": 12.0}}
    },
}


@pytest.mark.parametrize(
    ("rule", "start", "says"),
    [
        ("evidence_bits>15", EVIDENCE, SUPPORTED),
        ("among.1e6.bits>15", EVIDENCE, SUPPORTED),
        ("among.1e6.bits>14", EVIDENCE, ""),
        ("among.50.bits>6", {**EVIDENCE, "among": [50]}, "among 50 people there are at most 5.64"),
        # the protected side is in the unit of the headline, of the attacker who is told most
        ("protected.bits>11", PROTECTED, ""),
        ("protected.bits>13", PROTECTED, "can support at most 12.00 bits"),
        # the headline is held to what its kind is held to
        ("bits>8", {**CLOSED, "headline": "evidence"}, ""),
        ("bits>15", {**CLOSED, "headline": "evidence"}, SUPPORTED),
        ("bits>8", CLOSED, "can never be raised: among 50 speakers a voice can reach at most 5.64"),
        ("bits>5", CLOSED, ""),
        ("bits>5.64", {**CLOSED, "ceiling": 5.6399996}, "can reach at most 5.63 bits"),  # float32
        ("bits_low>5.5", {**CLOSED, "reachable_bits": 5.4}, "can reach at most 5.40 bits"),
        ("bits_high>5.5", {**CLOSED, "reachable_bits": 5.4}, ""),  # a replicate's floor is less
        ("sum_bits>9", CLOSED, ""),
        ("sum_bits>11", {**CLOSED, "features": ["f0", "voice"]}, ""),
        ("sum_bits>12", {**CLOSED, "features": ["f0", "voice"]}, "2 features can add up to at"),
        ("closed_set_bits>8", {**CLOSED, "headline": "evidence"}, "among 50 speakers"),
        # those among the N are not the limit of any crowd
        ("evidence_bits>10", {**EVIDENCE, "ceiling": 5.64}, ""),
    ],
)
def test_more_than_the_data_can_support_can_never_be_raised(rule: str, start: Any, says: str):
    said = Threshold.parse(rule).idle_reason(event(start))
    assert says in said if said else not says


@pytest.mark.parametrize("watch", [None, "4406"])
def test_no_reading_exceeds_what_the_rank_models_allow(watch: str | None) -> None:
    monitor = Monitor(Population.reference(), ["f0", "voice"], watch=watch)
    events = (each for each in monitor.listen(FramesFile(demo_frames())) if each.type == "reading")
    readings = [each for each in islice(events, 60) if isinstance(each, Reading)]
    for name in ("expected_bits", "f0.expected_bits", "f0.gain_bits", "f0.local_bits",
                 "f0.rank_bits"):  # fmt: skip
        most = monitor.most_bits(name)
        assert monitor.most_bits(f"{name}_low") == most <= monitor.attacker.ceiling
        values = [value for each in readings if (value := figure(name, each)) is not None]
        assert max(values, default=0.0) <= most
        start = RunStart.from_record({})
        assert Threshold(name, most + 0.01).idle_reason(start, most)
        assert not Threshold(name, most).idle_reason(start, most)
