"""What a reading says in crowds, of bystanders and of an average voice, by definition."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from monitor import Monitor, MonitorSettings, Population
from monitor.errors import UsageError
from monitor.events.reading import Bits, Reading
from monitor.events.schema import SCHEMA
from monitor.maths.rank_models import mean_disclosure_bits
from monitor.maths.statistics import limits
from monitor.population import DEMO_SPEAKER, demo_frames
from monitor.population.interpolation import at_template
from monitor.population.rank_model import RankModels
from monitor.sources.frames import FramesFile
from monitor.stream.posterior import ZERO, Bystanders, ExpectedBits, choose_crowds, compute_crowds
from monitor.stream.records import RunTotals, placed, start_event
from monitor.types import Frames
from tests.population.rank_models import LENGTHS, some_rank_model
from tests.records import event
from tests.stream.streams import (
    Listed,
    fresh,
    hear,
    heard_by_both,
    readings,
    run_reporter,
    two_features,
    with_evidence,
)

NAMES = ("ann", "ben", "cyd")


@given(
    st.lists(st.floats(-30, 20), min_size=3, max_size=3),
    st.integers(3, 10**7),
    st.floats(0, 4),
    st.floats(0, 4),
)
def test_among_so_many_people_by_definition(bits, people, below, above):
    own = Bits(bits[1], bits[1] - below, bits[1] + above)
    (((found,)),) = compute_crowds(np.array([bits]), [own], 1, [people], NAMES)

    def by_hand(evidence: float) -> float:
        others = 2.0 ** bits[0] + 2.0 ** bits[2] + people - 3
        return float(np.log2(people * 2.0**evidence / (2.0**evidence + others)))

    for value, evidence in zip((found.bits, found.bits_low, found.bits_high), own, strict=True):
        assert value == pytest.approx(by_hand(evidence), abs=1e-6)
    assert found.probability is not None
    assert found.probability == pytest.approx(2.0**found.bits / people)
    assert found.one_in == pytest.approx(2.0**found.bits)
    assert found.fitting == pytest.approx(min(1 / found.probability, 1e15))


def test_where_nobody_is_watched_the_best_match_is_no_evidence():
    bits = np.array([[11.0, -2.0, -9.0], [0.0, 0.0, 0.0]])
    first, then = compute_crowds(bits, [None, None], None, [3, 1_000_000], NAMES)
    closed, city = first
    for crowd, share in ((closed, 0.99988), (city, 2048 / (2048 + 1e6))):
        assert crowd.favourite is not None
        assert crowd.favourite[0] == "ann"
        assert crowd.favourite[1] == pytest.approx(share, rel=1e-3)
    assert city.bits < 0.02  # where eleven are the watched speaker's
    assert (city.bits_low, city.bits_high, city.probability) == (None, None, None)
    assert [each.bits for each in then] == pytest.approx([0.0, 0.0], abs=1e-9)


def test_crowds_that_make_no_sense():
    assert choose_crowds(None, 6) == (6, 1_000_000)
    assert choose_crowds(None, 2_000_000) == (2_000_000,)
    refused: list[tuple[list[float], str]] = [
        ([20], "smaller than the 50 enrolled: use 50 or more"),
        ([1e4, 0], "0 is not a size of a crowd"),
        ([1e11], "1e\\+11 is not a size of a crowd"),
        ([50.5], "50.5 is not a size of a crowd"),
        ([float("nan")], "nan is not a size of a crowd"),
        ([], "give at least one"),
    ]
    for asked, words in refused:
        with pytest.raises(UsageError, match=words):
            choose_crowds(asked, 50)
    for prior in (0.0, 1.0, -1.0, float("nan")):
        with pytest.raises(UsageError, match="between 0 and 1"):
            MonitorSettings(enrolled_prior=prior)
    with pytest.raises(UsageError, match="smaller than the 6 enrolled"):
        fresh(with_evidence(), among=[5])


@pytest.mark.parametrize("watch", [None, "s2"])
def test_before_anything_is_heard_there_is_no_evidence(watch):
    silent = Frames(np.ones(200, bool), {})
    options: dict[str, Any] = {"watch": watch, "among": [6, 1e4]}
    for reading in readings(hear([silent], population=with_evidence(), **options)):
        nothing = [None] * 3 if watch is None else [0.0] * 3
        assert [reading[f"evidence_bits{end}"] for end in ("", "_low", "_high")] == nothing
        assert (reading["support_bits"], reading["at_least"]) == (0, False)
        assert reading["enrolled"] is None
        for crowd, m in zip(reading["among"], (6, 10_000), strict=True):
            assert (crowd["people"], crowd["fitting"], crowd["one_in"]) == (m, m, 1)
            assert str(crowd["bits"]) == "0.0"
            if watch is None:
                assert crowd["favourite"] == ["s0", pytest.approx(1 / m)]
            else:
                assert crowd["probability"] == pytest.approx(1 / m)


_HEADLINE = ("headline", "bits", "bits_low", "bits_high", "peak_bits")
"""What is another figure where there is evidence."""


def test_a_reading_tells_of_evidence_and_old_figures_stay():
    options: dict[str, Any] = {"watch": "s2", "among": [6, 1e6]}
    told_of = readings(hear([heard_by_both()], population=with_evidence(), **options))
    plain = readings(hear([heard_by_both()], population=two_features(), watch="s2"))
    validator = jsonschema.Draft202012Validator(SCHEMA)
    added = {"support_bits", "at_least", "among", *_HEADLINE}
    added |= {f"evidence_bits{end}" for end in ("", "_low", "_high")}
    for reading, other in zip(told_of, plain, strict=True):
        validator.validate({key: v for key, v in reading.items() if key != "posterior"})
        changed = {key for key in other if reading.get(key) != other[key]}
        assert changed <= added | {"enrolled", "enrolled_withheld"}
        assert other["headline"] == "closed-set"
        assert other["bits"] == reading["closed_set_bits"]
        assert all(other[key] is None for key in added if key not in _HEADLINE)
        assert reading["evidence_bits_low"] <= reading["evidence_bits"] <= reading["support_bits"]
        closed, city = reading["among"]
        assert closed["bits"] <= np.log2(6)
        assert city["bits"] == pytest.approx(reading["evidence_bits"], abs=0.01)
        assert city["bits_low"] <= city["bits"] <= city["bits_high"]
    # pitch alone has a rank model of its own, and so has its evidence
    alone = readings(
        hear([heard_by_both()], population=with_evidence(), features=["f0"], **options)
    )
    assert told_of[0]["among"] == alone[0]["among"]
    assert told_of[-1]["among"] != alone[-1]["among"]


def test_the_prior_moves_the_odds_of_being_enrolled():
    known, plain = with_evidence(), two_features()

    def odds(prior: float, population: Population) -> list[float]:
        made = hear([heard_by_both()], population=population, enrolled_prior=prior)
        found = [reading["enrolled"] for reading in readings(made)]
        return [p / (1 - p) for p in found if p is not None]

    sure = [
        replace(one, evidence=replace(one.evidence, area=np.full((3, 1), 0.9)))
        for one in known.rank_models
        if one.evidence
    ]
    rows = tuple({"T": t, "D": 10.0, "open_set_area": 0.9} for t in (0.3, 1.0, 10.0))
    old = [replace(rank_model, rows=rows) for rank_model in plain.rank_models]
    for population, rank_models in ((known, sure), (plain, old)):
        able = population.with_rank_models(RankModels(rank_models))
        even = odds(0.5, able)
        assert len(even) == 9
        assert_allclose(odds(0.1, able), np.array(even) / 9, rtol=1e-9)
    # where they did not tell impostors in calibration nothing is said
    assert 0 < len(odds(0.5, known)) < 9
    why = readings(hear([heard_by_both()], population=known))[0]["enrolled_withheld"]
    assert why.startswith("f0 ")
    assert "area under the ROC curve" in why


def test_a_population_without_evidence_says_why_once():
    record = start_event(Monitor(two_features(), watch="s1"), ["a.flac"]).record()
    (notice,) = [n for n in record["notices"] if "the 6 enrolled" in n]
    assert "calibrate" in notice
    assert record["support_bits"] is None
    monitor = fresh(with_evidence(), watch="s1", enrolled_prior=0.2)
    told_of = start_event(monitor, ["a.flac"]).record()
    assert not [n for n in told_of["notices"] if "beyond" in n]
    assert (told_of["among"], told_of["enrolled_prior"]) == ([6, 1_000_000], 0.2)
    assert told_of["support_bits"] > 6
    assert told_of["fingerprint"]["rank_model"] != record["fingerprint"]["rank_model"]
    # the most that can be read of each
    attacker, without = monitor.attacker, Monitor(two_features()).attacker
    assert attacker.most_bits("evidence_bits") == attacker.support_bits
    assert attacker.most_bits("among.1e6.bits") == np.inf
    assert without.most_bits("evidence_bits") == np.inf


def test_evidence_is_as_withheld_as_the_bits():
    short = Population(
        with_evidence().speakers, np.array([0, 2, 4, 6, 8, 10, 11]),
        {n: replace(t, slices=t.slices[:11]) for n, t in with_evidence().features.items()},
        with_evidence().rank_models, cohort=with_evidence().cohort,
    )  # fmt: skip
    made = readings(hear([heard_by_both()], population=short, watch="s5", template_seconds=10))
    for reading in made:
        assert reading["bits"] is reading["evidence_bits"] is reading["among"] is None


@pytest.mark.parametrize("place", [None, 7])
def test_a_moment_does_not_depend_on_the_others_to_the_last_bit(place):
    bits = np.random.default_rng(0).normal(-3, 6, (32, 50))
    own = [None if place is None else Bits(b, b - 1, b + 1) for b in bits[:, place or 0].tolist()]
    names = [str(j) for j in range(50)]
    whole = compute_crowds(bits, own, place, [50, 1_000_000], names)
    for r in range(32):
        alone = compute_crowds(bits[[r]], own[r : r + 1], place, [50, 1_000_000], names)
        assert alone == [whole[r]]


FOUR = ("ann", "ben", "cyd", "dee")


@given(
    st.lists(st.lists(st.floats(-30, 20), min_size=4, max_size=4), min_size=1, max_size=5),
    st.sampled_from([None, *FOUR]),
    st.integers(100, 10**7),
    st.floats(0.011, 0.9),
)
def test_bystanders_by_definition(bits, watched, people, level):
    found = Bystanders(FOUR, watched, people, level).find([np.array(row) for row in bits])
    for row, others in zip(bits, found, strict=True):
        ratios = 2.0 ** np.array(row)
        share = ratios / (ratios.sum() + people - 4)
        assert others is not None
        wanted = {
            n: p for n, p in zip(FOUR, share, strict=True) if n != watched and p > level + 1e-9
        }
        near = {n for n, p in zip(FOUR, share, strict=True) if abs(p - level) <= 1e-9}
        told = {each.name: each.probability for each in others}
        assert set(wanted) <= set(told) <= set(wanted) | near
        assert [told[name] for name in wanted] == pytest.approx(list(wanted.values()))
        assert list(told.values()) == sorted(told.values(), reverse=True)
        assert watched not in told
        assert {each.people for each in others} <= {people}


def test_bystanders_that_cannot_be_told():
    found = Bystanders(FOUR, None, 100, 0.1).find([None, np.array([20.0, 0.0, 0.0, 0.0]), None])
    assert [None if each is None else [b.name for b in each] for each in found] == [
        *(None, ["ann"], None)
    ]
    for level in (0.0, 0.01, 1.0, np.nan):
        with pytest.raises(UsageError, match="over 1 in 100"):
            Bystanders(FOUR, None, 100, level)
    with pytest.raises(UsageError, match=r"bystanders .*calibrate again"):
        Monitor(two_features(), ["f0"], "s0", settings=MonitorSettings(bystanders=0.01))


def heard(watch: str | None = "s0", level: float = 0.04, among=(30,)):
    settings = MonitorSettings(among=list(among), bystanders=level)
    monitor = Monitor(run_reporter(), ["f0", "timbre"], watch, settings=settings)
    tally = RunTotals()
    records: list[Mapping[str, Any]] = [start_event(monitor, ["a"]).record()]
    records += [placed(e, ["a"]).record() for e in monitor.events(Listed([heard_by_both()]))]
    for record in records:
        tally.count(event(record))
    again = RunTotals()
    again.restore(tally.state())
    return monitor, [*records, again.end_event(monitor, ["a"], complete=True).record()]


def test_along_a_stream_they_are_those_of_the_readings_ratios():
    settings = MonitorSettings(among=[6, 30], bystanders=0.04)
    monitor = Monitor(run_reporter(), ["f0", "timbre"], "s0", settings=settings)
    seen = set()
    for reading in monitor.push(heard_by_both()):
        assert reading.ratios is not None
        ratios = 2.0**reading.ratios
        share = ratios / (ratios.sum() + 30 - 6)
        wanted = {n for n, p in zip(reading.names, share, strict=True) if p > 0.04} - {"s0"}
        assert {each.name for each in reading.bystanders or ()} == wanted
        seen |= wanted
    assert seen


@pytest.mark.slow
def test_records_name_them_and_the_end_their_peaks():
    _, (start, *readings, end) = heard()
    for record in (start, *readings, end):
        jsonschema.validate(record, SCHEMA)
    assert start["bystanders"] == {"above": 0.04, "people": 30}
    peaks: dict[str, float] = {}
    for record in readings:
        for each in record["bystanders"]:
            assert each["people"] == 30
            peaks[each["name"]] = max(each["probability"], peaks.get(each["name"], 0.0))
    assert peaks
    assert {each["name"]: each["probability"] for each in end["bystanders"]} == peaks
    told = [each["probability"] for each in end["bystanders"]]
    assert told == sorted(told, reverse=True)


def test_unless_asked_for_nobody_is_named():
    monitor = Monitor(with_evidence(), ["f0", "timbre"], "s0")
    assert "bystanders" not in start_event(monitor, ["a"]).record()
    (*_, last) = monitor.push(heard_by_both())
    assert last.bystanders is None
    assert "bystanders" not in last.record()
    assert "bystanders" not in RunTotals().end_event(monitor, ["a"], complete=True).record()


def test_where_calibration_supports_too_little_it_is_said_beforehand():
    monitor, (start, *_) = heard(level=0.5, among=(6, 1_000_000))
    assert monitor.attacker.support_bits is not None
    (said,) = [notice for notice in start["notices"] if "bystander" in notice]
    assert "1 in 2 among a million" in said
    enough = float(said.partition("--among ")[2].partition(")")[0])
    _, (start, *_) = heard(level=0.5, among=(max(6.0, enough),))
    assert not [notice for notice in start["notices"] if "bystander" in notice]


def of_the_demo(watch):
    with FramesFile(demo_frames()) as source:
        monitor = Monitor(Population.reference(), ["f0", "phones"], watch)
        events = monitor.listen(source)
        made = list(islice((each for each in events if isinstance(each, Reading)), 40))
    return monitor.attacker, made


def test_guides_begin_with_mean_evidence_and_end_at_what_is_supported():
    attacker, made = of_the_demo(DEMO_SPEAKER)
    seconds, bits = attacker.first_evidence
    cells = [row for row in attacker.evidence_model.rows if row.get("evidence_bits") is not None]
    assert seconds == min(row["T"] for row in cells)
    assert bits in {row["evidence_bits"] for row in cells if row["T"] == seconds}
    assert attacker.support_bits is not None
    for reading in made:
        if reading.headline != "evidence":
            assert reading.evidence_guides is None
            continue
        ratio = reading.speech / seconds
        grown = np.minimum([bits * ratio, bits * np.sqrt(ratio)], attacker.support_bits)
        assert reading.evidence_guides == pytest.approx(grown)
        linear, root = reading.evidence_guides
        assert reading.record()["evidence_guides"] == {"linear": linear, "sqrt": root}
    assert sum(reading.headline == "evidence" for reading in made) > 20
    _, made = of_the_demo(None)
    assert all(reading.evidence_guides is None for reading in made)
    assert made[-1].record()["evidence_guides"] is None
    assert 0 < made[-1].guides[1] <= made[-1].guides[0]


ADDITIVE = np.array([True])


def grown(kind="plain"):
    made = some_rank_model(replicates=200, lengths=(0.3, 1, 5, 20, 120))
    if kind == "falls at the end":
        made.beta[:, -1] = made.beta[:, 1]
    elif kind == "perfect at the end":
        made.alpha[:, -1], made.beta[:, -1], made.binomial[:, -1] = 0.0, 1.0, True
    elif kind == "degenerate replicates":
        made.alpha[5:60, 2:], made.beta[5:60, 2:], made.binomial[5:60, 2:] = 0.02, 0.98, True
    return at_template(made, 10.0, ADDITIVE)


def direct(made, seconds, speakers):
    """Every draw, at this very length."""
    point = made.evaluate_at(seconds)
    value = point.expected_bits(speakers, slice(0, 1))[0]
    return (value, *limits(point.expected_bits(speakers, slice(1, None))))


@pytest.mark.parametrize("speakers", [10, 50, 3000])
@pytest.mark.parametrize(
    "kind", ["plain", "falls at the end", "perfect at the end", "degenerate replicates"]
)
@pytest.mark.slow
def test_against_the_direct_evaluation(kind, speakers):
    made = grown(kind)
    expected = ExpectedBits(made, speakers)
    generator = np.random.default_rng(speakers)
    lengths = np.exp(generator.uniform(np.log(0.3), np.log(120), 25))
    for seconds in (*lengths, 0.01, 0.15, 0.29, 0.3, 1.0, 20.0, 119.999, 120.0):
        bits = expected.evaluate_at(float(seconds))
        value, low, high = direct(made, float(seconds), speakers)
        assert bits.value == pytest.approx(value, abs=1e-10)
        assert bits.low == pytest.approx(low, abs=0.05)
        assert bits.high == pytest.approx(high, abs=0.05)
        assert 0 <= bits.low <= bits.value <= bits.high <= np.log2(speakers)


def test_expected_bits_are_exact_on_the_grid_and_grow_where_the_rank_model_does():
    made = grown()
    expected = ExpectedBits(made, 50)
    for seconds in made.lengths:
        assert_allclose(
            expected.evaluate_at(float(seconds)), direct(made, float(seconds), 50), atol=1e-12
        )
    curve = np.array(
        [expected.evaluate_at(float(seconds)) for seconds in np.geomspace(0.01, 200, 400)]
    )
    assert (np.diff(curve, axis=0) >= 0).all()
    assert np.diff(curve, axis=0).max() < 0.1


def test_zero_before_anything_is_heard_and_constant_beyond_the_grid():
    expected = ExpectedBits(grown(), 50)
    assert expected.evaluate_at(0.0) == expected.evaluate_at(-1.0) == ZERO
    assert expected.evaluate_at(1e-9).high < 1e-6
    for seconds in (120.001, 500.0, 1e9):
        assert expected.evaluate_at(seconds) == expected.evaluate_at(120.0)
    single = ExpectedBits(at_template(some_rank_model(lengths=(5.0,)), 10.0, ADDITIVE), 30)
    assert single.evaluate_at(0.0) == ZERO
    assert 0 < single.evaluate_at(2.0).value < single.evaluate_at(5.0).value
    assert single.evaluate_at(5.0) == single.evaluate_at(50.0)


def test_the_plateau_is_the_most_even_where_bits_fall_at_long_lengths():
    falling = ExpectedBits(grown("falls at the end"), 50)
    assert falling.evaluate_at(120.0).value < falling.evaluate_at(20.0).value
    assert falling.plateau_bits == falling.evaluate_at(20.0).value
    made = some_rank_model()
    expected = ExpectedBits(at_template(made, 10.0, ADDITIVE), 30)
    bits = mean_disclosure_bits(made.alpha[0, :, 0], made.beta[0, :, 0], 30)
    assert expected.first_bits == pytest.approx(bits[0])
    assert expected.plateau_bits == pytest.approx(bits.max())
    assert len(LENGTHS) == bits.size
