"""What stretches of speech disclose: as a run reads them, and as the truth of a simulation is."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.errors import CorpusError, StoreError
from monitor.events.reading import Reading
from monitor.features.registry import make
from monitor.lab.audit.exposure import (
    Exposures,
    _cut_session,
    enrol_part,
    find_retention,
    measure_corpus,
    measure_runs,
    summarise_lengths,
)
from monitor.population.population import Population
from monitor.sources.frames import FramesFile
from monitor.stream.monitor import Monitor
from monitor.training.voices import SessionFrames, SpeakerSpeech
from monitor.types import EarlyFrames
from tests.records import events

LENGTHS = tuple(np.arange(1.0, 10.5, 0.5).tolist())


def exposures(bits, seconds, owner=None, clipped=None, kind="evidence"):
    bits = np.asarray(bits, float)
    owner = np.arange(bits.size) if owner is None else np.asarray(owner)
    clipped = np.zeros(bits.size, bool) if clipped is None else np.asarray(clipped)
    names = tuple(f"s{i}" for i in range(owner.max() + 1))
    return Exposures(names, owner, np.asarray(seconds, float), bits, bits - 1, bits + 1, clipped,
                     bits > 0, kind, 20, "cross")  # fmt: skip


@pytest.mark.slow
def test_a_stretch_reads_what_a_run_reads(crowd, heard):
    """The first stretch of a session is what `monitor replay --watch` says at that length."""
    reference = Population.reference()
    part = enrol_part(heard.voices, heard.specs, 20.0)
    found = measure_corpus(part, reference.rank_models, reference.cohort, LENGTHS, trials=1)
    assert (found.kind, part.session, found.candidates) == ("evidence", "cross", 8)
    for voice in part.remaining:  # a template and what is heard are never of one session
        whole = next(each for each in heard.voices if each.name == voice.name)
        assert len(voice.sessions) == len(whole.sessions) - 1
    assert part.population.template_seconds.tolist() == [20.0] * 8
    people = part.population.with_rank_models(reference.rank_models, reference.cohort)
    checked = 0
    for place, voice in enumerate(part.remaining):
        monitor = Monitor(people, ("f0",), voice.name, step_seconds=0.1)
        path = crowd / voice.name.removeprefix("spk-") / f"{voice.session_name(0)}.npz"
        readings: dict[float, Reading] = {}
        for item in FramesFile(path):
            for reading in monitor.push(item):
                readings.setdefault(round(reading.speech, 2), reading)
        for seconds in LENGTHS:
            mine = found.select_length(seconds)
            if seconds in readings:
                (bits,) = mine.bits[mine.owner == place]
                assert bits == pytest.approx(readings[seconds].evidence_bits, abs=1e-9)
                checked += 1
    assert checked > 8


def test_one_session_is_split_behind_the_template(heard):
    alone = [
        SpeakerSpeech(v.name, v.sessions[:1], session_names=v.session_names[:1])
        for v in heard.voices
    ]
    part = enrol_part(alone, heard.specs, 20.0)
    assert part.session == "same"
    (voice,) = [each for each in part.remaining if each.name == alone[0].name]
    whole, rest = alone[0].sessions[0]["f0"], voice.sessions[0]["f0"]
    assert rest.length == whole.length - 200
    assert np.array_equal(rest.total(30, 50), whole.total(230, 50))
    with pytest.raises(CorpusError, match="fewer than 5 speakers have 300 s"):
        enrol_part(alone, heard.specs, 300.0)


def test_what_began_in_the_template_is_not_heard_behind_it():
    (feature,) = make(["voice"])
    early = EarlyFrames(np.array([29, 215, 239]), np.eye(3), np.full(3, 2))
    frames = SessionFrames(np.zeros((0, 3)), np.zeros(0, int), 400, feature.spec, None, 30, early)
    cut = _cut_session(SpeakerSpeech("a", ({"voice": frames},)), 0, 210)
    found: Any = cut.sessions[0]["voice"].early
    assert (found.ticks.tolist(), found.values.tolist()) == ([29], [[0.0, 0.0, 1.0]])


def test_the_mean_is_within_its_limits_over_speakers():
    """Known truth: of so many draws the limits hold the mean of all speakers."""
    generator = np.random.default_rng(0)
    held = []
    for _ in range(60):
        level = generator.normal(5.0, 2.0, 15)
        owner = np.repeat(np.arange(15), 4)
        some = exposures(level[owner] + generator.normal(0, 1, 60), np.full(60, 10.0), owner)
        row: Any = summarise_lengths(some, 6.0)[0]
        held.append(row.mean_bits.low <= 5.0 <= row.mean_bits.high)
    assert np.mean(held) > 0.85


@given(st.lists(st.lists(st.tuples(st.floats(-5, 14), st.booleans()), min_size=1, max_size=6),
                min_size=1, max_size=6), st.floats(0.5, 13))  # fmt: skip
def test_no_length_counts_as_kept_that_may_have_reached_the_budget(lengths, budget):
    seconds = [float(i + 1) for i, part in enumerate(lengths) for _ in part]
    flat = [each for part in lengths for each in part]
    some = exposures([b for b, _ in flat], seconds, clipped=[c for _, c in flat])
    found = find_retention(summarise_lengths(some, budget, replicates=0), budget)
    for length, (bits, clipped) in zip(seconds, flat, strict=True):
        if bits >= budget or clipped:
            assert found.reached is not None
            assert found.reached <= length
            assert found.under is None or found.under < length
    if found.reached is None:
        assert found.under == len(lengths)


def record(speech, bits, **more):
    return {"type": "reading", "seconds": speech, "speech": speech, "bits": bits,
            "bits_low": bits - 1, "bits_high": bits + 1, "headline": "evidence",
            "session": "cross", "top": [["me", 0.9]], **more}  # fmt: skip


START = {"type": "start", "speakers": 50, "watch": "me", "features": ["f0"], "headline": "evidence"}


def test_a_run_is_read_at_its_first_reading_with_as_much_speech():
    records = [START, record(0.5, 0.1), record(3.2, 4.0), record(5.0, 5.0, at_least=True)]
    found = measure_runs([("a", events(records))], (3.0, 5.0, 10.0))
    assert found.lengths == (3.0, 5.0)
    assert found.bits.tolist() == [4.0, 5.0]
    assert found.at_least.tolist() == [False, True]
    (first, _) = summarise_lengths(found, 6.0)
    assert first.mean_bits.limits == (3.0, 5.0)  # of calibration, where one voice was heard
    # of a run that goes on from earlier sessions nothing is said of shorter lengths
    start = START | {"carried": {"sessions": 1, "speech": 20.0, "history": []}}
    more = events([start, record(21.0, 9.0), record(31.0, 9.5)])
    assert measure_runs([("a", more)], (3.0, 10.0, 30.0)).lengths == (30.0,)


def change(since, seconds, **more):
    return {"type": "change", "since_seconds": since, "seconds": seconds, **more}


@pytest.mark.parametrize(
    ("records", "bits"),
    [
        # until it is noticed the other's speech counts; then it is left out
        ([record(4.0, 5.0), record(9.0, 3.0), change(5.0, 11.0, action="note"),
          record(11.0, 5.2, excluded_seconds=6.0), record(18.0, 6.0, excluded_seconds=6.0)],
         {3.0: 5.0, 10.0: 6.0}),
        # the evidence begins afresh: it is that of the other
        ([record(4.0, 5.0), change(5.0, 11.0, action="reset"), record(11.0, 2.0),
          record(12.0, 0.0), record(30.0, -4.0)], {3.0: 5.0}),
        ([record(4.0, 5.0), change(5.0, 6.0, back=True, action="note"), record(10.0, 6.0)],
         {3.0: 5.0, 10.0: 6.0}),
    ],
)  # fmt: skip
def test_what_another_voice_says_does_not_count_as_the_speakers(records, bits):
    found = measure_runs([("a", events([START, *records]))], (3.0, 10.0, 25.0))
    assert dict(zip(found.seconds.tolist(), found.bits.tolist(), strict=True)) == bits


@pytest.mark.parametrize(
    ("records", "what"),
    [
        ([START | {"watch": None}, record(5, 1.0)], "no watched speaker"),
        ([START, record(0.5, 1.0)], "no run has a reading"),
        ([START | {"people": [{"label": "S0", "seconds": 1.0}]}, record(5, 1.0)], "several people"),
        (
            [START, record(3, 1.0), record(5, 1.0, headline="closed-set")],
            "only some runs have evidence",
        ),
    ],
)
def test_runs_that_cannot_be_audited_are_refused_in_a_line(records, what):
    with pytest.raises(StoreError, match=what):
        measure_runs([("a", events(records))], (3.0, 5.0))
