"""What the monitor does when somebody else takes over."""

from __future__ import annotations

from functools import cache
from typing import Any

import jsonschema
import numpy as np
import pytest

from monitor.alerts.rules import Threshold
from monitor.errors import UsageError
from monitor.events.reading import Reading
from monitor.events.run import Change
from monitor.events.schema import SCHEMA
from monitor.kinds import adwin
from monitor.sinks.jsonl import RunBuffer
from monitor.sources import Chain, FramesFile, write_frames
from monitor.sources.frames import Header
from monitor.stream.monitor import Monitor
from monitor.stream.records import placed, start_event
from monitor.types import Frames, Track
from tests.records import as_records, event
from tests.stream.streams import Listed, reference, run_through

FIRST, SECOND = "19", "1088"
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
TURN = 90  # seconds


@cache
def conversation(*turns: str) -> Frames:
    """Readers' pitch, one after the other, drawn from their templates."""
    population, generator = reference(), np.random.default_rng(4)
    templates = population.templates("f0", population.scoring())
    bins = []
    for name in turns:
        shares = templates[population.index(name)] / templates[population.index(name)].sum()
        bins.append(generator.choice(shares.size, 100 * TURN // 2, p=shares))
    ticks = np.arange(1, len(turns) * TURN * 100 + 1, 2)
    return Frames(
        np.ones(len(turns) * TURN * 100, bool), {"f0": Track(ticks, np.concatenate(bins))}
    )


def cut(every: int, *turns: str) -> Listed:
    whole = conversation(*(turns or (FIRST, SECOND)))
    track = whole.tracks["f0"]
    runs = []
    for start in range(0, whole.speech.size, every):
        low, high = np.searchsorted(track.ticks, [start, start + every], side="right")
        part = Track(track.ticks[low:high], track.values[low:high])
        runs.append(Frames(whole.speech[start : start + every], {"f0": part}))
    return Listed(runs)


def events(on_change: str, every: int = 1000) -> list[Any]:
    return list(Monitor(reference(), watch=SECOND, on_change=on_change).events(cut(every)))


@pytest.mark.parametrize("noise", ["", "laplace:30"])
def test_in_frames_with_noise_no_change_is_looked_for_and_that_is_said(tmp_path, noise):
    whole = conversation(FIRST, SECOND)
    path = tmp_path / "a.npz"
    write_frames(
        path, whole.speech, whole.tracks, {"f0": 104}, {"f0": 0.01}, header=Header(noise=noise)
    )
    source = Chain([FramesFile(path)])
    one = Monitor(reference(), watch=SECOND, on_change="note")
    one.fit_to(source)
    told = " ".join(start_event(one, ["a"]).record()["notices"])
    assert ("these frames have noise (laplace:30)" in told) == bool(noise)
    assert any(isinstance(event, Change) for event in one.listen(source)) == (not noise)
    one.restore(*one.state())  # rests there as well


def readings(found: list[Any]) -> list[Reading]:
    return [event for event in found if isinstance(event, Reading)]


def changes(found: list[Any]) -> list[Change]:
    return [event for event in found if isinstance(event, Change)]


def test_nothing_is_looked_for_unless_asked():
    assert not changes(events("ignore"))
    with pytest.raises(UsageError, match="on_change='stop' must be one of ignore, note"):
        Monitor(reference(), on_change="stop")


def test_a_note_leaves_all_as_it_was_until_then():
    ignored, noted = events("ignore"), events("note")
    [change] = changes(noted)
    assert TURN < change.seconds < TURN + 20
    assert abs(change.since_seconds - TURN) < 10
    assert change.features == ("f0",)
    assert change.margin_after < change.margin_before
    told = [r.record() for r in readings(noted)]
    opened = [(r["seconds"], r.pop("change")) for r in told if "change" in r]
    before = [r for r in told if r["seconds"] < change.seconds]
    assert before == [r.record() for r in readings(ignored)][: len(before)]
    assert all("excluded_seconds" in r for r in told[len(before) :])
    # from the reading on with which it was noticed
    assert opened[0][0] == change.seconds
    assert len(opened) == 2 * TURN - change.seconds + 1
    since = {"since_seconds": change.since_seconds, "features": ["f0"]}
    assert all(each == since for _, each in opened)


@pytest.mark.parametrize("on_change", ["reset", "split"])
def test_fresh_evidence_is_of_one_voice(on_change):
    assert all(reading.change is None for reading in readings(events(on_change)))


@pytest.mark.parametrize("on_change", ["note", "reset", "split"])
def test_an_alert_does_not_stand_on_what_somebody_else_says(on_change):
    """The first reader is watched: with the second one what stands is over, whatever the bits."""
    kept, rule = RunBuffer(), Threshold("bits", 1.0)
    monitor = Monitor(reference(), watch=FIRST, on_change=on_change)
    run_through(cut(1000), monitor, sinks=[kept], rules=[rule])
    (change,) = [r for r in as_records(kept.events) if r["type"] == "change"]
    raised, cleared, *later = [r for r in as_records(kept.events) if r["type"] == "alert"]
    assert on_change != "note" or not later  # fresh evidence may well raise it anew
    assert (raised["state"], raised["seconds"] < TURN) == ("raised", True)
    assert (cleared["state"], cleared["seconds"]) == ("cleared", change["seconds"])
    assert cleared["change"] == {key: change[key] for key in ("since_seconds", "features")}
    assert cleared["value"] > 1.0  # it is over because of the change alone


def test_reset_begins_the_evidence_afresh_and_keeps_the_peak():
    found = events("reset")
    [change] = changes(found)
    at = found.index(change)
    before, after = found[at + 1], found[at + 2]
    assert before.seconds == change.seconds
    assert before.speech == change.seconds
    assert after.speech == pytest.approx(1.0)
    assert after.peak_bits == before.peak_bits or after.bits > before.peak_bits
    assert {reading.stream for reading in readings(found)} == {1}
    carried_on = readings(events("ignore"))[-1]
    # the second reader is watched: with the first one's evidence gone there is more of hers
    now, then = readings(found)[-1].closed_set_bits, carried_on.closed_set_bits
    assert (now or 0.0) > (then or 0.0) + 0.5
    assert readings(found)[-1].speech == pytest.approx(2 * TURN - change.seconds)


def test_split_begins_another_stream_with_its_own_peak():
    found = events("split")
    [change] = changes(found)
    streams = [reading.stream for reading in readings(found)]
    assert streams == sorted(streams)
    assert set(streams) == {1, 2}
    first = next(reading for reading in readings(found) if reading.stream == 2)
    assert first.peak_bits == max(first.bits or 0.0, 0.0)
    assert first.seconds == pytest.approx(change.seconds + 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("on_change", ["note", "reset", "split"])
def test_any_cutting_gives_the_same(on_change):
    whole = [
        placed(event, ["a"], on_change).record() for event in events(on_change, 2 * TURN * 100)
    ]
    for every in (37, 250):
        parts = [placed(event, ["a"], on_change).record() for event in events(on_change, every)]
        assert parts == whole


@pytest.mark.slow
def test_alerts_go_on_when_the_first_voice_is_back():
    turns, kept, rule = (FIRST, SECOND, FIRST), RunBuffer(), Threshold("bits", 0.5)
    monitor = Monitor(reference(), watch=FIRST, on_change="note")
    run_through(cut(1000, *turns), monitor, sinks=[kept], rules=[rule])
    changes = [r for r in as_records(kept.events) if r["type"] == "change"]
    (back,) = [change for change in changes if "back" in change]
    assert (changes[0].get("back"), changes[-1]["back"]) == (None, True)
    assert 2 * TURN < back["seconds"] < 2 * TURN + 30
    for record in as_records(kept.events):
        VALIDATOR.validate(record)
        if record["type"] == "reading":
            opened = changes[0]["seconds"] <= record["seconds"] < back["seconds"]
            assert ("change" in record) == opened
    alerts = [r for r in as_records(kept.events) if r["type"] == "alert"]
    assert [alert["state"] for alert in alerts[:2]] == ["raised", "cleared"]
    assert [alert["state"] for alert in alerts[2:]] in (["raised"], [])
    assert all(alert["seconds"] > back["seconds"] + 5 for alert in alerts[2:])
    # stopped in the middle of it and resumed
    for stop in (changes[0]["seconds"] + 3, back["seconds"] - 2):
        one, again = (Monitor(reference(), watch=FIRST, on_change="note") for _ in range(2))
        done = []
        for each in one.events(cut(1000, *turns)):
            done.append(placed(each, ["call"], "note").record())
            if done[-1]["type"] == "reading" and done[-1]["seconds"] >= stop:
                break
        again.restore(*one.state())
        done += [
            placed(event, ["call"], "note").record() for event in again.events(cut(1000, *turns))
        ]
        assert done == [r for r in as_records(kept.events) if r["type"] in ("reading", "change")]


@pytest.mark.slow
@pytest.mark.parametrize("on_change", ["note", "split"])
@pytest.mark.parametrize("stop", [60, 95, 120])
def test_stopped_and_resumed_equals_never_stopped(on_change, stop):
    never = [placed(event, ["a"], on_change).record() for event in events(on_change)]
    monitor = Monitor(reference(), watch=SECOND, on_change=on_change)
    done = []
    for each in monitor.events(cut(1000)):
        done.append(placed(each, ["a"], on_change).record())
        if done[-1]["type"] == "reading" and done[-1]["seconds"] >= stop:
            break
    plain, arrays = monitor.state()
    again = Monitor(reference(), watch=SECOND, on_change=on_change)
    again.restore(plain, {name: array.copy() for name, array in arrays.items()})
    done += [placed(event, ["a"], on_change).record() for event in again.events(cut(1000))]
    assert done == never


def test_an_alert_waits_for_the_new_voice():
    rule = Threshold("bits", 1.0, hold_seconds=5.0)
    reading = {"type": "reading", "seconds": 1.0, "speech": 1.0, "bits": 3.0}
    change = {"type": "change", "action": "reset"}
    for second in range(1, 5):
        assert rule.update(event({**reading, "seconds": float(second)})) == []
    rule.update(event(change))
    assert rule.update(event({**reading, "seconds": 5.5})) == []  # the last one on the old evidence
    assert rule.update(event({**reading, "seconds": 6.5})) == []
    assert rule.update(event({**reading, "seconds": 11.0})) == []
    assert rule.update(event({**reading, "seconds": 11.5}))[0].state == "raised"


def test_the_detector_that_comes_alone_is_the_one_of_rivers_package():
    from river.drift import ADWIN

    alone, packaged = adwin()(delta=0.05), ADWIN(delta=0.05)
    found = []
    for value in np.random.default_rng(0).normal(np.repeat([0.8, 0.3], 200), 0.1).tolist():
        alone.update(value), packaged.update(value)
        found.append((alone.drift_detected, alone.estimation, alone.width))
        assert found[-1] == (packaged.drift_detected, packaged.estimation, packaged.width)
    assert any(drift for drift, *_ in found)
