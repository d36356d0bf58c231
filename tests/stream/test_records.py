"""What the records of a run say of its population, its rank model and its end."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jsonschema
import numpy as np

from monitor import Monitor, Population
from monitor.events.reading import Reading
from monitor.events.run import SCHEMA_VERSION, GapEvent
from monitor.events.schema import RECORDS, SCHEMA
from monitor.population.cohort import FeatureTemplates
from monitor.population.rank_model import RankModels
from monitor.stream.notices import setup_notices
from monitor.stream.records import RunTotals, placed, start_event
from monitor.types import Frames, Gap
from monitor.version import __version__
from tests.records import event
from tests.stream.streams import (
    WATCHED,
    fresh,
    rank_model,
    reference,
    simulated,
    two_features,
    with_speakers,
)

BEYOND = "bits apply only among the "
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
DECLARED = {record.title: record for record in RECORDS}


def start(population: Population, *arguments: Any, **options: Any) -> dict[str, Any]:
    """Without the notice that these models, or these templates' cohort, say nothing of crowds."""
    record = start_event(fresh(population, *arguments, **options), ["a.flac"]).record()
    VALIDATOR.validate(record)
    told = [notice for notice in record["notices"] if not notice.startswith(BEYOND)]
    return {**record, "notices": told}


def test_nothing_is_written_that_is_not_declared():
    monitor = Monitor(reference(), watch=WATCHED)
    totals = RunTotals()
    (reading,) = [each for each in monitor.push(simulated(1.0)) if isinstance(each, Reading)]
    totals.count(reading)
    written = [
        start_event(monitor, ["a.flac"]).record(),
        reading.record(),
        placed(GapEvent.from_gap(1.0, Gap("dropped", 1.0)), ["a.flac"]).record(),
        totals.end_event(monitor, ["a.flac"], complete=True).record(),
    ]
    for record in written:
        keys = DECLARED[record["type"]].schema["properties"]
        assert record.keys() <= keys.keys()
    assert list(reading.record()) == [
        key for key in DECLARED["reading"].schema["properties"] if key in reading.record()
    ]


def test_the_start_record_says_what_a_reader_needs():
    record = start(reference(), watch=WATCHED, step_seconds=0.5)
    assert next(iter(record)) == "type"
    used = reference().rank_models.find(("f0",), "cross")
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", record.pop("time"))
    assert all(re.fullmatch("[0-9a-f]{16}", value) for value in record["fingerprint"].values())
    assert 0 < record.pop("plateau") < record["ceiling"]
    record.pop("support_bits")
    assert 5.5 < record.pop("reachable_bits") < record["ceiling"]
    assert record == {
        "type": "start",
        "schema": SCHEMA_VERSION,
        "version": __version__,
        "features": ["f0"],
        "speakers": 50,
        "ceiling": np.log2(50),
        "watch": WATCHED,
        "headline": "evidence",
        "assumes_enrolled": False,
        "step_seconds": 0.5,
        "template_seconds": record["template_seconds"],
        "similarity": {"f0": "log-likelihood"},
        "ties": "spread",
        "rank_model": "own",
        "rank_model_prior": 0.0,
        "rank_model_session": "cross",
        "rank_model_speakers": used.speakers,
        "rank_model_candidates": 50,
        "among": [50, 1_000_000],
        "enrolled_prior": 0.5,
        "on_change": "ignore",
        "conditions": reference().condition(WATCHED).record(),
        "recordings": ["a.flac"],
        "fingerprint": record["fingerprint"],
        "notices": [],
    }


def test_a_mismatched_rank_model_is_marked_and_told_once():
    record = start(with_speakers(reference(), me=()))
    assert (record["watch"], record["headline"]) == (None, "closed-set")
    assert (record["assumes_enrolled"], record["rank_model"]) == (True, "mismatched")
    assert (record["speakers"], record["ceiling"]) == (51, np.log2(51))
    (notice,) = record["notices"]
    assert "1 to 2 too high" in notice
    assert ". " not in notice  # every log of a build has it
    # of everybody who enrols a minute beside the shipped readers
    few = shortened(reference(), WATCHED, 12)
    few = Population(
        few.speakers, few.offsets, few.features, few.rank_models, mismatched=True,
        cohort=reference().cohort,
    )  # fmt: skip
    (told,) = [
        each
        for each in setup_notices(Monitor(few, watch=WATCHED))
        if each.kind in ("template length", "mismatched rank model")
    ]
    assert (told.kind, told.fields) == ("mismatched rank model", {"template_seconds": 60.0})
    first, second = told.text.split(". Enrolled speakers are not calibrated: ")
    assert first.startswith(f"{WATCHED}'s template has 60 s; others have 100 s. All are compared")
    assert first.endswith("Enrol more: monitor enrol --add")
    assert second.endswith("(monitor calibrate)")


def shortened(population: Population, name: str, slices: int) -> Population:
    """The population, where one speaker's template has only so many slices left."""
    place, counts = population.index(name), np.diff(population.offsets)
    first, last = population.offsets[place] + slices, population.offsets[place + 1]
    keep = np.ones(population.offsets[-1], bool)
    keep[first:last] = False
    counts[place] = slices
    features = {
        key: FeatureTemplates(t.spec, t.slices[keep]) for key, t in population.features.items()
    }
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return Population(population.speakers, offsets, features, population.rank_models)


def bits_now_and_then(cut: str, ceiling: float) -> None:
    """What is read at this length, and would be read at the others', grow below the ceiling."""
    now, then = map(float, re.findall(r"(\d\.\d)(?: bits on average|\. Enrol)", cut))
    assert 0 < now < then < ceiling


def test_a_template_much_shorter_than_the_others_is_left_out_and_told():
    population = shortened(reference(), WATCHED, 2)
    record = start(population)
    assert (record["speakers"], record["template_seconds"]) == (49, 100)
    (notice,) = record["notices"]
    assert notice.startswith(f"{WATCHED} is not among the 49 compared: 10 s ")
    assert "--add" in notice
    record = start(population, watch=WATCHED)
    assert (record["speakers"], record["template_seconds"]) == (50, 10)
    (cut,) = record["notices"]
    assert cut.startswith(
        f"{WATCHED}'s template has 10 s; others have 100 s. All are compared at 10 s: 30 s of "
    )
    assert cut.endswith(". Enrol more: monitor enrol --add")
    bits_now_and_then(cut, record["ceiling"])
    assert start(population, watch=WATCHED, template_seconds=10)["notices"] == []
    # somebody else is not held to that length
    assert start(population, watch="1088")["template_seconds"] == 100


def test_a_shorter_template_that_is_useful_is_compared_by_everybody_being_cut():
    """A minute at the microphone among the shipped readers: its owner is a candidate, unwatched."""
    population = shortened(reference(), WATCHED, 12)
    record = start(population)
    assert (record["speakers"], record["template_seconds"]) == (50, 60)
    (cut,) = record["notices"]
    assert cut.startswith(
        f"{WATCHED}'s template has 60 s; others have 100 s. All are compared at 60"
    )
    bits_now_and_then(cut, record["ceiling"])
    assert "template-seconds = 100" in cut
    # asked for more, who has less is left out, and that is the first thing that is said
    record = start(population, template_seconds=100)
    assert record["speakers"] == 49
    assert record["notices"][0].startswith(f"{WATCHED} is not among the 49 compared")


def test_a_rank_model_that_was_not_learnt_at_the_length_is_told():
    population = shortened(reference(), WATCHED, 9)
    (cut,) = start(population, watch=WATCHED)["notices"]
    assert "compared at 45 s (interpolated" in cut
    assert "interpolated between templates of 30 and 60 s" in cut
    short = start(population, rank_models=learnt_at(10, 100), template_seconds=5)["notices"][0]
    assert "nothing shorter than 10 s is calibrated: bits read too high" in short
    (long,) = start(reference(), rank_models=learnt_at(5, 60))["notices"][:1]
    assert "nothing longer than 60 s is calibrated: bits read too low" in long


def learnt_at(shortest: float, longest: float) -> RankModels:
    """The shipped rank models, as if learnt at no shorter and no longer templates."""
    names, made = ("alpha", "beta", "binomial", "weights", "floor"), []
    for each in reference().rank_models:
        lengths = each.template_lengths
        kept = (lengths >= shortest) & (lengths <= longest)
        cells = {name: getattr(each, name)[:, :, kept] for name in names}
        cells |= {"template_lengths": lengths[kept], "open_set": each.open_set[:, kept]}
        made.append(replace(each, evidence=None, **cells))  # evidence is of the whole grid
    return RankModels(made)


def test_what_is_withheld_is_null_and_says_why():
    models, population = learnt_at(10, 100), shortened(reference(), WATCHED, 1)
    record = start(population, rank_models=models, watch=WATCHED)
    assert record["notices"][0] == (
        f"template_mismatch: {WATCHED} has 5 s of enrolled speech, but the rank model covers "
        f"no templates under 10 s. Enrol more"
    )
    assert (record["speakers"], record["template_seconds"]) == (49, 100)
    longer = start(shortened(reference(), WATCHED, 2), watch=WATCHED, template_seconds=30)
    assert longer["notices"][0].startswith(
        f"template_mismatch: {WATCHED} has 10 s of enrolled speech, not the requested 30 s"
    )
    monitor = fresh(population, rank_models=models, watch=WATCHED)
    for reading in monitor.push(simulated(5.0)):
        record = reading.record()
        VALIDATOR.validate(record)
        names = ("bits", "bits_low", "bits_high", "sum_bits")
        assert [record[name] for name in names] == [None] * 4
        feature = record["features"]["f0"]
        assert (feature["rank"], feature["rank_bits"], feature["local_bits"]) == (None,) * 3
        assert record["withheld"].startswith("template_mismatch")
        assert (record["gain_bits"] or 0.0) > 0


def test_the_session_of_the_rank_model_and_too_few_candidates_are_told():
    def of_session(session: str) -> Population:
        own = (each for each in reference().rank_models if each.session == session)
        return reference().with_rank_models(RankModels(own))

    biased = r"read too high \(among 50 of the shipped readers by \d\.\d bits at 10 s"
    for population, asked, used, words in (
        (of_session("same"), "cross", "same", biased),
        (reference(), "same", "same", "also enrolled"),
        (of_session("cross"), "same", "cross", "there is no same-session calibration"),
        (of_session("cross"), "cross", "cross", None),
    ):
        record = start(population, session=asked)
        assert record["rank_model_session"] == used
        assert len(record["notices"]) == (words is not None)
        assert words is None or re.search(words, record["notices"][0])
    few = RankModels([replace(rank_model(("f0",), ["histogram"]), candidates=5)])
    population = reference().with_rank_models(few)
    for there, told in ((population, 0), (with_speakers(population, me=()), 1)):
        said = [n for n in start(there)["notices"] if "more than ten times the 5" in n]
        assert len(said) == told


def test_fingerprints_tell_populations_and_rank_models_apart():
    plain = start(reference())["fingerprint"]
    assert start(reference(), watch=WATCHED, step_seconds=9.0)["fingerprint"] == plain
    more = start(with_speakers(reference(), me=()))["fingerprint"]
    assert more["population"] != plain["population"]
    assert more["rank_model"] == plain["rank_model"]
    used = reference().rank_models.find(("f0",), "cross")
    assert used is not None
    for name in ("alpha", "beta", "weights", "floor", "lengths", "template_lengths"):
        other = replace(used, **{name: getattr(used, name) * 1.01})
        found = start(reference(), rank_models=RankModels([other]))["fingerprint"]
        assert found["rank_model"] != plain["rank_model"], name
        assert found["population"] == plain["population"]
    assert start(reference(), session="same")["fingerprint"]["rank_model"] != plain["rank_model"]


def test_a_gap_names_its_recording():
    event = GapEvent.from_gap(12.0, Gap("broken file", None, 1, "b.flac: broke"))
    record = placed(event, ["a.flac", "b.flac"]).record()
    VALIDATOR.validate(record)
    assert record == {
        "type": "gap",
        "seconds": 12.0,
        "reason": "broken file",
        "lost_seconds": None,
        "recording": "b.flac",
        "detail": "b.flac: broke",
    }
    assert placed(event, ["a.flac"]).record()["recording"] == ""


def tallied(*records: Mapping[str, Any]) -> RunTotals:
    tally = RunTotals()
    for record in records:
        tally.count(event(record))
    return tally


GAPS: list[dict[str, Any]] = [
    {"type": "gap", "reason": "overflow", "lost_seconds": lost} for lost in (0.25, None, 0.5)
]
ALERTS: list[dict[str, Any]] = [
    {"type": "alert", "state": state} for state in ("raised", "cleared", "raised")
]
WARNING = {"type": "alert", "level": "warning", "state": "raised"}


def test_the_tally_counts_for_the_end_record_also_after_a_checkpoint():
    monitor = Monitor(two_features(), watch="s1")
    made = [reading.record() for reading in monitor.push(simulated_small())]
    records = [{"type": "start"}, *made, *GAPS, {"type": "change"}, *ALERTS, WARNING]
    first, tally, whole = tallied(*records[:5]), RunTotals(), tallied(*records)
    tally.restore(first.state())
    for record in records[5:]:
        tally.count(event(record))
    assert vars(tally) == vars(whole)
    assert tally.state() == whole.state()
    end = tally.end_event(monitor, ["a.flac"], complete=False).record()
    VALIDATOR.validate(end)
    assert end.pop("time").endswith("Z")
    assert end == {
        "type": "end",
        "conditions": None,
        "differs": [],
        "seconds": 3.0,
        **{key: made[-1][key] for key in ("speech", "bits", "peak_bits", "top")},
        "readings": 3,
        "gaps": 3,
        "changes": 1,
        "lost_seconds": 0.75,
        "alerts": 2,
        "warnings": 1,
        "failures": [],
        "undecided": [],
        "stopped": None,
        "complete": False,
        "watch": "s1",
        "recordings": ["a.flac"],
        "notices": [],
        "incomplete": [],
    }
    nothing = RunTotals().end_event(Monitor(reference()), complete=True).record()
    VALIDATOR.validate(nothing)
    keys = ("seconds", "readings", "bits", "top")
    assert [nothing[key] for key in keys] == [0.0, 0, 0.0, []]


def simulated_small() -> Frames:
    """Three seconds that a small population understands."""
    whole = simulated(3.0)
    track = whole.tracks["f0"]
    return Frames(whole.speech, {"f0": replace(track, values=track.values % 10)})
