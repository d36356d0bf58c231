"""Several people in one recording: each heard as if alone, on the clock of the recording."""

from __future__ import annotations

import time
import tracemalloc
from types import SimpleNamespace
from typing import Any

import jsonschema
import numpy as np
import pytest
import soundfile

from monitor import Monitor, Population, measure
from monitor.alerts import Threshold
from monitor.errors import UsageError
from monitor.events.schema import SCHEMA
from monitor.features.f0 import F0
from monitor.run import LogFile, MeasurementSettings, Run, RunSettings, status_of
from monitor.sources import Diarised, PerChannel, Samples
from monitor.sources.base import Stretch
from monitor.stream.accumulator import FeatureTotals
from monitor.stream.people import _ALL_STRETCHES, _MOST_PIECES, SideBySide, _Voice
from monitor.transcripts import Turn
from monitor.types import Block
from tests.contracts import voice
from tests.records import read_records
from tests.stream.streams import RATE, WATCHED, Listed, audio, reference

VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
ANN, BOB = voice(24.0, seed=1), voice(24.0, seed=2)
CALL = np.stack([ANN, BOB], axis=1)


def heard(source, monitor=None, **options):
    """All records of a run, and the run."""
    monitor = Monitor(reference(), on_change="note") if monitor is None else monitor
    with Run(source, monitor, **options) as run:
        found = [event.record() for event in run]
    for record in found:
        VALIDATOR.validate(record)
    return found, run


def of(records, label, kind="reading"):
    """What was said of a label, without saying so."""
    return [
        {key: value for key, value in record.items() if key != "label"}
        for record in records
        if record["type"] == kind and record.get("label") == label
    ]


def meeting(turns):
    """Two voices in turn, and the turns: each says all of its own, one after the other."""
    places, own, found, at = {"ann": 0, "bob": 0}, {"ann": ANN, "bob": BOB}, [], 0.0
    sound = []
    for label, seconds in turns:
        size = round(seconds * RATE)
        part = own[label][places[label] : places[label] + size]
        places[label] += size
        found.append(Turn(at, at + seconds, label))
        at += seconds
        sound.append(part)
    return np.concatenate(sound), found, places


TURNS = [("ann", 3.0), ("bob", 5.5), ("ann", 4.25), ("bob", 2.0), ("ann", 6.0), ("bob", 7.0)]


@pytest.mark.slow
def test_a_call_of_two_is_two_runs_of_one_to_the_last_bit():
    records, _ = heard(PerChannel(Samples(CALL, RATE)))
    for label, samples in (("channel 1", ANN), ("channel 2", BOB)):
        alone, _ = heard(Samples(samples, RATE))
        assert of(records, label) == [r for r in alone if r["type"] == "reading"]
        assert len(of(records, label)) == 24


def test_in_turns_each_is_heard_as_its_own_stretches_joined():
    samples, turns, places = meeting(TURNS)
    records, _ = heard(Diarised(Samples(samples, RATE), turns))
    for label, own in (("ann", ANN), ("bob", BOB)):
        alone, _ = heard(Samples(own[: places[label]], RATE))
        expected = [r for r in alone if r["type"] == "reading"]
        found = of(records, label)
        same = [key for key in expected[0] if key != "seconds"]
        assert [{k: r[k] for k in same} for r in found] == [
            {k: r[k] for k in same} for r in expected
        ]


def test_times_are_those_of_the_recording():
    samples, turns, _ = meeting(TURNS)
    records, _ = heard(Diarised(Samples(samples, RATE), turns))
    seconds = [r["seconds"] for r in of(records, "ann")]
    # its seconds 1 to 3 are the first turn, the fourth ends a second into the next, at 8.5
    assert seconds == [1, 2, 3, 9.5, 10.5, 11.5, 12.5, 15.5, 16.5, 17.5, 18.5, 19.5, 20.5, 20.75]
    for reading in (r for r in records if r["type"] == "reading"):
        inside = [
            t.label for t in turns if t.start_seconds < reading["seconds"] <= t.end_seconds + 0.005
        ]
        assert inside == [reading["label"]]


@pytest.mark.parametrize("step", [1600, 5000, 48_000])
def test_cutting_the_recording_otherwise_changes_nothing(step):
    samples, turns, _ = meeting(TURNS)
    whole, _ = heard(Diarised(Samples(samples, RATE), turns))
    cuts = range(step, samples.size, step)
    listed = Listed(audio(samples, cuts), ("samples",))
    listed.label = "samples"
    cut, _ = heard(Diarised(listed, turns))
    for label in ("ann", "bob"):
        for kind in ("reading", "change", "notice"):
            assert of(cut, label, kind) == of(whole, label, kind)
    assert cut[-1]["people"] == whole[-1]["people"]


def test_overlap_counts_for_nobody_and_is_said():
    samples, turns, _ = meeting(TURNS)
    turns.append(Turn(1.0, 2.5, "bob"))  # while ann speaks
    records, run = heard(Diarised(Samples(samples, RATE), turns))
    end = records[-1]
    assert end["overlap_seconds"] == 1.5
    ann, bob = end["people"]
    assert (ann["overlap_seconds"], ann["seconds"]) == (1.5, 11.75)
    assert (bob["overlap_seconds"], bob["seconds"]) == (1.5, 14.5)
    assert "1.5 s of overlapping speech excluded" in map(str, run.notices)


def test_the_end_has_a_row_a_person_and_the_start_says_who_comes():
    samples, turns, _ = meeting(TURNS)
    turns.append(Turn(27.75, 27.76, "eve"))
    samples = np.concatenate([samples, np.zeros(RATE, np.float32)])
    records, run = heard(Diarised(Samples(samples, RATE), turns), settings=RunSettings(jobs=None))
    assert [each["label"] for each in records[0]["people"]] == ["ann", "bob", "eve"]
    end = records[-1]
    assert [row["label"] for row in end["people"]] == ["ann", "bob", "eve"]
    ann, bob, eve = end["people"]
    assert ann["speech"] == of(records, "ann")[-1]["speech"]
    assert end["speech"] == pytest.approx(ann["speech"] + bob["speech"])
    assert end["bits"] == max(ann["bits"], bob["bits"])
    assert (eve["bits"], eve["speech"], eve["person"]) == (None, 0.0, None)
    assert any("1 label with less than 1 s alone" in str(n) and "eve" in str(n)
               for n in run.notices)  # fmt: skip
    assert len(run.people) == 3
    named = [row["person"] for row in end["people"] if row["person"] is not None]
    assert len({*named}) == len(named)
    assert status_of(run) == 0


def test_an_alert_is_asked_of_each_by_themselves():
    samples, turns, _ = meeting(TURNS)
    rule = Threshold("closed_set_bits", 0.05, hold_seconds=0.0)
    records, run = heard(Diarised(Samples(samples, RATE), turns), rules=[rule])
    alerts = [r for r in records if r["type"] == "alert" and r["state"] == "raised"]
    assert {alert["label"] for alert in alerts} == {"ann", "bob"}
    for row in records[-1]["people"]:
        mine = [alert["seconds"] for alert in alerts if alert["label"] == row["label"]]
        assert (row["alerts"], row["first_alert_seconds"]) == (len(mine), mine[0])
        over = [r for r in of(records, row["label"]) if r["closed_set_bits"] > 0.05]
        assert mine[0] == over[0]["seconds"]
    assert run.totals.alerts == len(alerts)


def test_alerts_may_be_asked_of_named_labels_alone():
    samples, turns, _ = meeting(TURNS)
    rule = Threshold("closed_set_bits", 0.05, hold_seconds=0.0)
    source = Diarised(Samples(samples, RATE), turns)
    records, _ = heard(source, rules=[rule], settings=RunSettings(alert_labels=["bob"]))
    assert {r["label"] for r in records if r["type"] == "alert"} == {"bob"}
    assert [row["alerts"] > 0 for row in records[-1]["people"]] == [False, True]
    with pytest.raises(UsageError, match="nobody is called bop by the turns; did you mean 'bob'"):
        heard(Diarised(Samples(samples, RATE), turns), settings=RunSettings(alert_labels=["bop"]))


def test_several_are_watched_and_each_is_said_of_everybody():
    samples, turns, places = meeting(TURNS)
    names = reference().names[:2]
    monitors = [Monitor(reference(), watch=name) for name in names]
    rule = Threshold("evidence_bits", -30.0, hold_seconds=0.0)
    records, run = heard(Diarised(Samples(samples, RATE), turns), monitors, rules=[rule])
    assert not run.totals.undecided
    raised = {(r["label"], r["watch"]) for r in records if r["type"] == "alert"}
    assert raised == {(label, name) for label in ("ann", "bob") for name in names}
    assert records[0]["watched"] == list(names)
    alone, _ = heard(Samples(ANN[: places["ann"]], RATE), Monitor(reference(), watch=names[1]))
    mine = [r for r in of(records, "ann") if r["watch"] == names[1]]
    assert [r["bits"] for r in mine] == [r["bits"] for r in alone if r["type"] == "reading"]
    for row in records[-1]["people"]:
        lasts = {r["watch"]: r["bits"] for r in of(records, row["label"])}
        expected = row["person"] if row["person"] in names else max(lasts, key=lasts.__getitem__)
        assert row["watch"] == expected
        assert row["bits"] == lasts[expected]


def test_a_sample_that_is_no_number_is_a_gap_of_whose_turn_it_is():
    samples, turns, _ = meeting(TURNS)
    samples = samples.copy()
    samples[round(4.0 * RATE)] = np.nan
    records, run = heard(Diarised(Samples(samples, RATE), turns))
    (gap,) = [record for record in records if record["type"] == "gap"]
    assert gap["label"] == "bob"
    assert 4.0 <= gap["seconds"] <= 5.0
    assert run.incomplete


def test_a_recording_in_which_nobody_speaks_is_incomplete():
    silence = np.zeros(4 * RATE, np.float32)
    _, run = heard(Diarised(Samples(silence, RATE), [Turn(0.0, 2.0, "ann"), Turn(2.0, 4.0, "bob")]))
    assert run.totals.silent
    assert status_of(run) == 4
    quiet = np.concatenate([ANN[: 8 * RATE], silence])
    found = Diarised(Samples(quiet, RATE), [Turn(0.0, 8.0, "ann"), Turn(8.0, 12.0, "bob")])
    records, run = heard(found)
    assert not run.totals.silent
    assert "bob: no speech in its turns" in records[-1]["notices"]


def test_what_does_not_go_together_is_refused(tmp_path):
    call = PerChannel(Samples(CALL, RATE))
    monitor = Monitor(reference(), watch=WATCHED)
    with pytest.raises(UsageError, match="a ledger goes with one voice"):
        Run(call, monitor, ledger=tmp_path / "l.db").__enter__()
    with pytest.raises(UsageError, match="an anonymiser goes with one voice"):
        Run(call, monitor, settings=RunSettings(protect="mcadams:0.8")).__enter__()
    with pytest.raises(UsageError, match="watch each person once"):
        Run(call, [monitor, Monitor(reference(), watch=WATCHED)]).__enter__()
    with pytest.raises(UsageError, match="several are watched where"):
        Run(Samples(ANN, RATE), [monitor, Monitor(reference())]).__enter__()
    with pytest.raises(UsageError, match="features of one's own hear one voice"):
        Run(call, Monitor(reference(), [F0()])).__enter__()
    log = tmp_path / "a.jsonl"
    heard(call, monitor, log=log)
    with pytest.raises(UsageError, match="in one go"):
        Run(PerChannel(Samples(CALL, RATE)), Monitor(reference()), log=LogFile(log, resume=True)
            ).__enter__()  # fmt: skip


def test_the_log_holds_everybody_and_nothing_to_resume_from(tmp_path):
    log = tmp_path / "a.jsonl"
    records, _ = heard(PerChannel(Samples(CALL, RATE)), log=log)
    assert [r["type"] for r in read_records(log)] == [r["type"] for r in records]
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


@pytest.mark.slow
def test_memory_does_not_grow_with_the_turns():
    """Ten thousand turns: what is kept of a voice has a bound."""
    made = _Voice("ann", "a.wav", [Monitor(reference())])
    for k in range(5000):
        made.take([Stretch(0, 2.0 * k, Block(ANN[: RATE // 10], RATE))])
    assert len(made._pieces) == _MOST_PIECES
    assert made._at(499.0) == pytest.approx(2.0 * 4989 + 0.1)


def test_memory_does_not_grow_with_the_hours_of_many_labels():
    """Fifty who speak all the time: what is kept to judge a label has a bound for all together."""
    turns = [Turn(2.0 * k, 2.0 * k + 2.0, f"s{k}") for k in range(50)]
    people = SideBySide(Diarised(Samples(np.zeros(800_000), 8000), turns), [Monitor(reference())])
    voices = [people._voice(place) for place in range(50)]
    more = FeatureTotals(500, {"f0": np.ones(104, np.int64)}, {"f0": 500}, {"f0": 500})
    heard, sizes = more - more, []
    tracemalloc.start()
    for minutes in (10, 30):  # further ones
        for _ in range(12 * minutes):
            heard = heard + more
            for each in voices:
                each.stretches.advance(SimpleNamespace(all_totals=heard))  # type: ignore[arg-type]
        sizes.append(tracemalloc.get_traced_memory()[0])
        assert sum(len(each.stretches) for each in voices) <= _ALL_STRETCHES
    tracemalloc.stop()
    assert sizes[1] < 1.1 * sizes[0]
    for each in voices:  # no speech is left out, or counted twice
        assert sum(half.speech for half in each.stretches.halves()) == each.stretches.latest.speech


@pytest.mark.slow
def test_measure_gives_a_result_a_person(tmp_path):
    samples, turns, places = meeting(TURNS)
    soundfile.write(tmp_path / "m.wav", samples, RATE, subtype="FLOAT")
    lines = (
        f"SPEAKER m 1 {t.start_seconds} {t.seconds} <NA> <NA> {t.label} <NA> <NA>\n" for t in turns
    )
    (tmp_path / "m.rttm").write_text("".join(lines))
    people = Population.reference()
    how: dict[str, Any] = {"features": ["f0"], "population": people}
    found = measure(tmp_path / "m.wav", turns=tmp_path / "m.rttm", **how)
    assert [each.label for each in found.people] == ["ann", "bob"]
    alone = measure(Samples(ANN[: places["ann"]], RATE), **how)
    ann = found.people[0]
    assert (ann.bits, ann.speech) == (alone.bits, alone.speech)
    assert len(ann.readings) == len(alone.readings)
    assert len(found.plot().axes) == 2  # curves, and who speaks when
    assert len(ann.plot().axes) == len(alone.plot().axes)
    assert found.bits is None
    assert found.seconds == pytest.approx(27.75)
    first, second = str(found).splitlines()
    assert first.startswith("ann")
    assert second.startswith("bob")
    soundfile.write(tmp_path / "call.wav", CALL, RATE, subtype="FLOAT")
    by_channel = measure(
        tmp_path / "call.wav", settings=MeasurementSettings(per_channel=True), **how
    )
    assert [each.label for each in by_channel.people] == ["channel 1", "channel 2"]
    with pytest.raises(UsageError, match="by turns or by channel"):
        measure(
            tmp_path / "call.wav",
            settings=MeasurementSettings(per_channel=True),
            turns=turns,
            **how,
        )


@pytest.mark.speech
def test_real_readers_in_a_meeting_are_named_and_told_apart(shared, tmp_path):
    """Two readers in turn: who they are is found, and a label that mixes both is not pure."""
    chapters = [
        next((shared / "speech" / "dev-clean" / reader).glob("*.opus"))
        for reader in ("1272", "1462")
    ]
    a, b = (soundfile.read(path, frames=60 * RATE, dtype="float32")[0] for path in chapters)
    size = 6 * RATE
    sound = np.concatenate([x[k : k + size] for k in range(0, 60 * RATE, size) for x in (a, b)])
    true = [Turn(6.0 * k, 6.0 * k + 6.0, "AB"[k % 2]) for k in range(20)]
    mixed = [Turn(t.start_seconds, t.end_seconds, t.label if k % 5 else "BA"[k % 2])
             for k, t in enumerate(true)]  # fmt: skip
    population = Population.reference()
    how: dict[str, Any] = {
        "population": population,
        "features": ["f0", "phones", "voice"],
        "settings": MeasurementSettings(allow_overlap=True),
    }
    pure, impure = (measure(Samples(sound, RATE), turns=turns, **how) for turns in (true, mixed))
    assert [each.person for each in pure.people] == ["1272", "1462"]
    assert all((each.probability or 0.0) > 0.8 for each in pure.people)
    assert all(each.purity == 1.0 for each in pure.people)
    assert all((each.purity or 0.0) < 0.95 for each in impure.people)


@pytest.mark.speech
def test_a_label_of_two_readers_one_after_the_other_is_said(shared):
    found = []
    for reader in ("1272", "1462"):
        path = next((shared / "speech" / "dev-clean" / reader).glob("*.opus"))
        found.append(soundfile.read(path, frames=50 * RATE, dtype="float32")[0])
    sound = np.concatenate(found)
    how: dict[str, Any] = {
        "features": ["f0", "phones", "voice"],
        "settings": MeasurementSettings(allow_overlap=True),
    }
    one = measure(Samples(sound, RATE), turns=[Turn(0.0, 100.0, "S0")], **how)
    two = measure(
        Samples(sound, RATE), turns=[Turn(0.0, 50.0, "S0"), Turn(50.0, 100.0, "S1")], **how
    )
    said = "S0: its first half and its second sound like two people"
    assert said in map(str, one.notices)
    assert not any("two people" in str(notice) for notice in two.notices)
    assert one.people[0].purity is None  # there is no other label


@pytest.mark.slow
def test_very_many_turns_are_processed_at_one_go():
    """Two hundred thousand, as a broken diariser writes them: a block at a time, not a turn."""
    count, seconds = 200_000, 24.0
    step = seconds / count
    turns = [Turn(k * step, (k + 1) * step, f"s{k % 8}") for k in range(count)]
    began = time.process_time()
    records, _ = heard(Diarised(Samples(ANN, RATE), turns))
    assert time.process_time() - began < 12
    readings = [record for record in records if record["type"] == "reading"]
    assert {record["label"] for record in readings} == {f"s{k}" for k in range(8)}
