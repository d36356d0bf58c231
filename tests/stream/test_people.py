"""Several people in one recording: each heard as if alone, on the clock of the recording."""

import itertools
import time
import tracemalloc
from dataclasses import replace
from typing import Any

import jsonschema
import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from monitor import Monitor, Population, measure
from monitor.alerts import Threshold
from monitor.errors import UsageError
from monitor.events.schema import SCHEMA
from monitor.features.f0 import F0
from monitor.maths.posterior import one_to_one
from monitor.run import LogFile, MeasurementSettings, Run, RunSettings, status_of
from monitor.sources import Diarised, PerChannel, Samples
from monitor.sources.base import Stretch
from monitor.stream.people import _ALL_STRETCHES, _MOST_PIECES, MultiSpeakerMonitor, _Voice
from monitor.stream.totals import FeatureTotals
from monitor.transcripts import Turn
from monitor.types import Block, FloatArray
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
        sound.append(own[label][places[label] : places[label] + size])
        places[label] += size
        found.append(Turn(at, at + seconds, label))
        at += seconds
    return np.concatenate(sound), found, places


SOUND, _TURNS, PLACES = meeting(
    [("ann", 3.0), ("bob", 5.5), ("ann", 4.25), ("bob", 2.0), ("ann", 6.0), ("bob", 7.0)]
)


def diarised(*more: Turn, sound: FloatArray = SOUND) -> Diarised:
    """Ann and Bob in turn, and further turns."""
    return Diarised(Samples(sound, RATE), [*_TURNS, *more])


@pytest.mark.slow
def test_a_call_of_two_is_two_runs_of_one_to_the_last_bit(tmp_path):
    log = tmp_path / "a.jsonl"
    records, _ = heard(PerChannel(Samples(CALL, RATE)), log=log)
    for label, samples in (("channel 1", ANN), ("channel 2", BOB)):
        alone, _ = heard(Samples(samples, RATE))
        assert of(records, label) == [r for r in alone if r["type"] == "reading"]
        assert len(of(records, label)) == 24
    # the log holds everybody, and there is nothing to resume from
    assert [r["type"] for r in read_records(log)] == [r["type"] for r in records]
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_in_turns_each_is_heard_as_its_own_stretches_joined():
    records, _ = heard(diarised())
    for label, own in (("ann", ANN), ("bob", BOB)):
        alone, _ = heard(Samples(own[: PLACES[label]], RATE))
        expected = [r for r in alone if r["type"] == "reading"]
        same = [key for key in expected[0] if key != "seconds"]
        found, expected = (
            [{key: r[key] for key in same} for r in each] for each in (of(records, label), expected)
        )
        assert found == expected
    seconds = [r["seconds"] for r in of(records, "ann")]
    # its seconds 1 to 3 are the first turn, the fourth ends a second into the next, at 8.5
    assert seconds == [1, 2, 3, 9.5, 10.5, 11.5, 12.5, 15.5, 16.5, 17.5, 18.5, 19.5, 20.5, 20.75]
    for reading in (r for r in records if r["type"] == "reading"):
        at = reading["seconds"]
        inside = [t.label for t in _TURNS if t.start_seconds < at <= t.end_seconds + 0.005]
        assert inside == [reading["label"]]


def test_cutting_the_recording_otherwise_changes_nothing():
    whole, _ = heard(diarised())
    for step in (1600, 5000, 48_000):
        listed = Listed(audio(SOUND, range(step, SOUND.size, step)), ("samples",))
        listed.label = "samples"
        cut, _ = heard(Diarised(listed, _TURNS))
        for label in ("ann", "bob"):
            for kind in ("reading", "change", "notice"):
                assert of(cut, label, kind) == of(whole, label, kind)
        assert cut[-1]["people"] == whole[-1]["people"]


def test_overlap_counts_for_nobody_and_is_said():
    records, run = heard(diarised(Turn(1.0, 2.5, "bob")))  # while ann speaks
    end = records[-1]
    assert end["overlap_seconds"] == 1.5
    ann, bob = end["people"]
    assert (ann["overlap_seconds"], ann["seconds"]) == (1.5, 11.75)
    assert (bob["overlap_seconds"], bob["seconds"]) == (1.5, 14.5)
    assert "1.5 s of overlapping speech excluded" in map(str, run.notices)


def test_the_end_has_a_row_a_person_and_the_start_says_who_comes():
    sound = np.concatenate([SOUND, np.zeros(RATE, np.float32)])
    source = diarised(Turn(27.75, 27.76, "eve"), sound=sound)
    records, run = heard(source, settings=RunSettings(jobs=None))
    end = records[-1]
    for rows in (records[0]["people"], end["people"]):
        assert [row["label"] for row in rows] == ["ann", "bob", "eve"]
    ann, bob, eve = end["people"]
    assert ann["speech"] == of(records, "ann")[-1]["speech"]
    assert end["speech"] == pytest.approx(ann["speech"] + bob["speech"])
    assert end["bits"] == max(ann["bits"], bob["bits"])
    assert (eve["bits"], eve["speech"], eve["person"]) == (None, 0.0, None)
    (said,) = [str(n) for n in run.notices if "1 label " in str(n)]
    assert "eve" in said
    assert len(run.people) == 3
    named = [row["person"] for row in end["people"] if row["person"] is not None]
    assert len({*named}) == len(named)
    assert status_of(run) == 0


@pytest.mark.parametrize("labels", [None, ["bob"]])
def test_an_alert_is_asked_of_each_by_themselves_or_of_named_labels_alone(labels):
    rule = Threshold("closed_set_bits", 0.05, hold_seconds=0.0)
    records, run = heard(diarised(), rules=[rule], settings=RunSettings(alert_labels=labels or ()))
    alerts = [r for r in records if r["type"] == "alert" and r["state"] == "raised"]
    assert {alert["label"] for alert in alerts} == {*(labels or ("ann", "bob"))}
    for row in records[-1]["people"]:
        mine = [alert["seconds"] for alert in alerts if alert["label"] == row["label"]]
        assert row["alerts"] == len(mine)
        if mine:
            over = [r for r in of(records, row["label"]) if r["closed_set_bits"] > 0.05]
            assert row["first_alert_seconds"] == mine[0] == over[0]["seconds"]
    assert run.totals.alerts == len(alerts)


def test_several_are_watched_and_each_is_said_of_everybody():
    names = reference().names[:2]
    monitors = [Monitor(reference(), watch=name) for name in names]
    rule = Threshold("evidence_bits", -30.0, hold_seconds=0.0)
    records, run = heard(diarised(), monitors, rules=[rule])
    assert not run.totals.undecided
    raised = {(r["label"], r["watch"]) for r in records if r["type"] == "alert"}
    assert raised == {(label, name) for label in ("ann", "bob") for name in names}
    assert records[0]["watched"] == list(names)
    alone, _ = heard(Samples(ANN[: PLACES["ann"]], RATE), Monitor(reference(), watch=names[1]))
    mine = [r for r in of(records, "ann") if r["watch"] == names[1]]
    assert [r["bits"] for r in mine] == [r["bits"] for r in alone if r["type"] == "reading"]
    for row in records[-1]["people"]:
        lasts = {r["watch"]: r["bits"] for r in of(records, row["label"])}
        expected = row["person"] if row["person"] in names else max(lasts, key=lasts.__getitem__)
        assert (row["watch"], row["bits"]) == (expected, lasts[expected])


def test_a_sample_that_is_no_number_is_a_gap_of_whose_turn_it_is():
    samples = SOUND.copy()
    samples[round(4.0 * RATE)] = np.nan
    records, run = heard(diarised(sound=samples))
    (gap,) = [record for record in records if record["type"] == "gap"]
    assert gap["label"] == "bob"
    assert 4.0 <= gap["seconds"] <= 5.0
    assert run.shortfalls


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
    call, log = PerChannel(Samples(CALL, RATE)), tmp_path / "a.jsonl"
    monitor, again = (Monitor(reference(), watch=WATCHED) for _ in range(2))
    one, nobody = Samples(ANN, RATE), Monitor(reference())
    heard(call, Monitor(reference()), log=log)
    refused: list[tuple[Any, Any, dict[str, Any], str]] = [
        (call, monitor, {"ledger": tmp_path / "l.db"}, "a ledger needs a single voice"),
        (call, monitor, {"settings": RunSettings(protect="mcadams:0.8")}, "anonymiser needs a"),
        (call, [monitor, again], {}, "watch each person once"),
        (one, [monitor, nobody], {}, "several speakers can be watched only"),
        (call, Monitor(reference(), [F0()]), {}, "built-in features"),
        (call, nobody, {"log": LogFile(log, resume=True)}, "resume=True"),
        (
            diarised(),
            nobody,
            {
                "settings": RunSettings(alert_labels=["bop"]),
                "rules": [Threshold("closed_set_bits", 0.05)],
            },
            "bop.*did you mean 'bob'",
        ),
    ]
    for source, monitors, options, words in refused:
        with pytest.raises(UsageError, match=words):
            Run(source, monitors, **options).__enter__()


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
    people = MultiSpeakerMonitor(
        Diarised(Samples(np.zeros(800_000), 8000), turns), [Monitor(reference())]
    )
    voices = [people._voice(place) for place in range(50)]
    more = FeatureTotals(500, {"f0": np.ones(104, np.int64)}, {"f0": 500}, {"f0": 500})
    heard, sizes = more - more, []
    tracemalloc.start()
    for minutes in (10, 30):  # further ones
        for _ in range(12 * minutes):
            heard = heard + more
            for each in voices:
                each.stretches.advance(heard)
        sizes.append(tracemalloc.get_traced_memory()[0])
        assert sum(len(each.stretches) for each in voices) <= _ALL_STRETCHES
    tracemalloc.stop()
    assert sizes[1] < 1.1 * sizes[0]
    for each in voices:  # no speech is left out, or counted twice
        assert sum(half.speech for half in each.stretches.halves()) == each.stretches.latest.speech


@pytest.mark.slow
def test_measure_gives_a_result_a_person(tmp_path):
    soundfile.write(tmp_path / "m.wav", SOUND, RATE, subtype="FLOAT")
    lines = (
        f"SPEAKER m 1 {t.start_seconds} {t.seconds} <NA> <NA> {t.label} <NA> <NA>\n" for t in _TURNS
    )
    (tmp_path / "m.rttm").write_text("".join(lines))
    how: dict[str, Any] = {"features": ["f0"], "population": Population.reference()}
    found = measure(tmp_path / "m.wav", turns=tmp_path / "m.rttm", **how)
    assert [each.label for each in found.people] == ["ann", "bob"]
    alone, ann = measure(Samples(ANN[: PLACES["ann"]], RATE), **how), found.people[0]
    assert (ann.bits, ann.speech) == (alone.bits, alone.speech)
    assert len(ann.readings) == len(alone.readings)
    assert len(found.plot().axes) == 2  # curves, and who speaks when
    assert len(ann.plot().axes) == len(alone.plot().axes)
    assert found.bits is None
    assert found.seconds == pytest.approx(27.75)
    assert [line.split()[0].strip(":,") for line in str(found).splitlines()] == ["ann", "bob"]
    soundfile.write(tmp_path / "call.wav", CALL, RATE, subtype="FLOAT")
    how["settings"] = MeasurementSettings(per_channel=True)
    by_channel = measure(tmp_path / "call.wav", **how)
    assert [each.label for each in by_channel.people] == ["channel 1", "channel 2"]
    with pytest.raises(UsageError, match="both separate people"):
        measure(tmp_path / "call.wav", turns=_TURNS, **how)


WITH_VOICE: dict[str, Any] = {
    "features": ["f0", "phones", "voice"],
    "settings": MeasurementSettings(allow_overlap=True),
}


def two_readers(shared, seconds: int) -> list[FloatArray]:
    folders = [shared / "speech" / "dev-clean" / reader for reader in ("1272", "1462")]
    paths = [next(folder.glob("*.opus")) for folder in folders]
    return [soundfile.read(each, frames=seconds * RATE, dtype="float32")[0] for each in paths]


@pytest.mark.speech
def test_real_readers_in_a_meeting_are_named_and_told_apart(shared):
    """Two readers in turn: who they are is found, and a label that mixes both is not pure."""
    a, b = two_readers(shared, 60)
    size = 6 * RATE
    sound = np.concatenate([x[k : k + size] for k in range(0, 60 * RATE, size) for x in (a, b)])
    true = [Turn(6.0 * k, 6.0 * k + 6.0, "AB"[k % 2]) for k in range(20)]
    mixed = [replace(t, label=t.label if k % 5 else "BA"[k % 2]) for k, t in enumerate(true)]
    pure, impure = (
        measure(Samples(sound, RATE), turns=turns, **WITH_VOICE) for turns in (true, mixed)
    )
    assert [each.person for each in pure.people] == ["1272", "1462"]
    assert all((each.probability or 0.0) > 0.8 for each in pure.people)
    assert all(each.purity == 1.0 for each in pure.people)
    assert all((each.purity or 0.0) < 0.95 for each in impure.people)


@pytest.mark.speech
def test_a_label_of_two_readers_one_after_the_other_is_said(shared):
    sound = Samples(np.concatenate(two_readers(shared, 50)), RATE)
    one = measure(sound, turns=[Turn(0.0, 100.0, "S0")], **WITH_VOICE)
    turns = [Turn(0.0, 50.0, "S0"), Turn(50.0, 100.0, "S1")]
    two = measure(sound, turns=turns, **WITH_VOICE)
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
    assert time.process_time() - began < 60  # turn by turn it would be many minutes
    readings = [record for record in records if record["type"] == "reading"]
    assert {record["label"] for record in readings} == {f"s{k}" for k in range(8)}


SHARES = st.tuples(st.integers(1, 4), st.integers(1, 4)).flatmap(
    lambda shape: arrays(float, shape, elements=st.floats(0.001, 1.0)).map(
        lambda rows: rows / (rows.sum(axis=1, keepdims=True) + 0.3)
    )
)


def likelihood(shares, match):
    nobody = 1 - shares.sum(axis=1)
    return np.prod([nobody[v] if p is None else shares[v, p] for v, p in enumerate(match)])


@given(SHARES)
def test_no_other_match_is_likelier(shares):
    voices, people = shares.shape
    found = one_to_one(shares)
    match = [person for person, _ in found]
    named = [person for person in match if person is not None]
    assert len({*named}) == len(named)
    best = max(
        likelihood(shares, match)
        for match in itertools.product([None, *range(people)], repeat=voices)
        if len({*match} - {None}) == sum(person is not None for person in match)
    )
    assert likelihood(shares, match) == pytest.approx(best)
    # over what the others leave
    for row, (person, probability) in enumerate(found):
        others = {other for k, other in enumerate(match) if k != row} - {None}
        free = [j for j in range(people) if j not in others]
        total = shares[row, free].sum() + 1 - shares[row].sum()
        own = 1 - shares[row].sum() if person is None else shares[row, person]
        assert probability == pytest.approx(own / total)


def test_a_voice_that_is_certainly_nobody_and_two_that_are_certainly_one():
    assert one_to_one(np.zeros((1, 3)))[0] == (None, 1.0)
    both = one_to_one(np.array([[1.0, 0.0], [1.0, 0.0]]))
    assert {person for person, _ in both} in ({0, None}, {0, 1})
    assert min(probability for _, probability in both) == 0.0  # one of the two is a contradiction
