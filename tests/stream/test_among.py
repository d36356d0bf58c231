"""What a reading says in crowds, by definition and along streams cut anywhere."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from monitor import Monitor, MonitorSettings
from monitor.errors import UsageError
from monitor.events.reading import Bits
from monitor.events.schema import SCHEMA
from monitor.population.population import Population
from monitor.population.rank_model import RankModels
from monitor.stream.posterior import choose_crowds, compute_crowds
from monitor.stream.records import start_event
from monitor.types import Frames, Track
from tests.records import read_records
from tests.stream.streams import (
    Listed,
    cuts,
    frames,
    fresh,
    hear,
    heard_by_both,
    readings,
    told,
    two_features,
    with_evidence,
)

some = settings(max_examples=25)
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
        ([20], "no room for the 50 enrolled; ask for 50 or more"),
        ([1e4, 0], "0 is no size of a crowd"),
        ([1e11], "1e\\+11 is no size of a crowd"),
        ([50.5], "50.5 is no size of a crowd"),
        ([float("nan")], "nan is no size of a crowd"),
        ([], "name at least one"),
    ]
    for asked, words in refused:
        with pytest.raises(UsageError, match=words):
            choose_crowds(asked, 50)
    for prior in (0.0, 1.0, -1.0, float("nan")):
        with pytest.raises(UsageError, match="between 0 and 1"):
            MonitorSettings(enrolled_prior=prior)
    with pytest.raises(UsageError, match="no room for the 6 enrolled"):
        fresh(with_evidence(), among=[5])


@pytest.mark.parametrize("watch", [None, "s2"])
def test_before_anything_is_heard_there_is_no_evidence(watch):
    silent = Frames(np.ones(200, bool), {})
    for reading in readings(
        hear([silent], population=with_evidence(), watch=watch, among=[6, 1e4])
    ):
        assert [reading[f"evidence_bits{end}"] for end in ("", "_low", "_high")] == (
            [None] * 3 if watch is None else [0.0] * 3
        )
        assert (reading["support_bits"], reading["at_least"], reading["enrolled"]) == (
            0,
            False,
            None,
        )
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
    def odds(prior: float, population: Population) -> list[float]:
        made = hear([heard_by_both()], population=population, enrolled_prior=prior)
        found = [reading["enrolled"] for reading in readings(made)]
        return [p / (1 - p) for p in found if p is not None]

    rank_models = with_evidence().rank_models
    sure = [replace(one, evidence=replace(one.evidence, area=np.full((3, 1), 0.9)))
            for one in rank_models
            if one.evidence]  # fmt: skip
    known = with_evidence()
    told = Population(known.speakers, known.offsets, known.features, RankModels(sure),
                      cohort=known.cohort)  # fmt: skip
    even, seldom = odds(0.5, told), odds(0.1, told)
    assert len(even) == 9
    assert_allclose(seldom, np.array(even) / 9, rtol=1e-9)
    rows = tuple({"T": t, "D": 10.0, "open_set_area": 0.9} for t in (0.3, 1.0, 10.0))
    plain = [replace(rank_model, rows=rows) for rank_model in two_features().rank_models]
    old = Population(known.speakers, known.offsets, known.features, RankModels(plain))
    assert len(odds(0.5, old)) == 9
    assert_allclose(odds(0.1, old), np.array(odds(0.5, old)) / 9, rtol=1e-9)
    # where they did not tell impostors in calibration nothing is said
    assert 0 < len(odds(0.5, with_evidence())) < 9
    why = readings(hear([heard_by_both()], population=with_evidence()))[0]["enrolled_withheld"]
    assert why.startswith("f0 cannot tell impostors")


def test_a_population_without_evidence_says_why_once():
    record = start_event(Monitor(two_features(), watch="s1"), ["a.flac"]).record()
    (notice,) = [n for n in record["notices"] if n.startswith("nothing can be said beyond the 6")]
    assert "calibrate" in notice
    assert record["support_bits"] is None
    told_of = start_event(
        fresh(with_evidence(), watch="s1", enrolled_prior=0.2), ["a.flac"]
    ).record()
    assert not [n for n in told_of["notices"] if "beyond" in n]
    assert told_of["among"] == [6, 1_000_000]
    assert told_of["enrolled_prior"] == 0.2
    assert told_of["support_bits"] > 6
    assert told_of["fingerprint"]["rank_model"] != record["fingerprint"]["rank_model"]


def test_evidence_is_as_withheld_as_the_bits():
    short = Population(
        with_evidence().speakers, np.array([0, 2, 4, 6, 8, 10, 11]),
        {n: replace(t, slices=t.slices[:11]) for n, t in with_evidence().features.items()},
        with_evidence().rank_models, cohort=with_evidence().cohort,
    )  # fmt: skip
    made = readings(hear([heard_by_both()], population=short, watch="s5", template_seconds=10))
    for reading in made:
        assert reading["bits"] is reading["evidence_bits"] is reading["among"] is None


@pytest.mark.slow
@some
@given(data=st.data())
def test_any_cutting_gives_the_same_evidence(data):
    options = {
        "population": with_evidence(),
        "step_seconds": data.draw(st.sampled_from([0.5, 1.0, 3.0])),
        "watch": data.draw(st.sampled_from([None, "s2"])),
    }
    whole = hear([heard_by_both()], **options)
    assert hear(frames(heard_by_both(), data.draw(cuts(900))), **options) == whole
    assert whole[-1]["among"] is not None


def test_stop_and_resume_give_the_same_evidence():
    expected = hear([heard_by_both()], population=with_evidence(), watch="s2")
    for stop in (1, 4, 8):
        first = Monitor(with_evidence(), watch="s2")
        made = []
        for event in first.events(Listed([heard_by_both()])):
            made.append(event)
            if len(made) == stop:
                break
        plain, arrays = first.state()
        second = Monitor(with_evidence(), watch="s2")
        second.restore(json.loads(json.dumps(plain)), arrays)
        assert told(made) + told(second.events(Listed([heard_by_both()]))) == expected


def test_runs_from_before_there_was_evidence_are_read(tmp_path):
    old = [{"type": "start", "schema": 2}, {"type": "reading", "seconds": 1.0, "speech": 1.0}]
    new = [
        {**old[0], "among": [50], "support_bits": None, "enrolled_prior": 0.5},
        {**old[1], "among": None, "evidence_bits": None, "at_least": None},
    ]
    for records in (old, new):
        path = tmp_path / "run.jsonl"
        path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
        assert read_records(path) == records


def test_all_enrolled_have_a_ratio_at_every_reading():
    track = Track(np.arange(1, 201), np.arange(200) % 4)
    monitor = Monitor(with_evidence(), ["f0"], watch="s2")
    *_, reading = monitor.stream(Listed([Frames(np.ones(200, bool), {"f0": track})]))
    assert reading.ratios is not None
    assert reading.ratios.shape == (6,)
    assert reading.evidence_bits is not None
    assert reading.ratios[2] == pytest.approx(reading.evidence_bits)
    assert reading.among is not None
    total = np.exp2(reading.ratios).sum() + 1_000_000 - 6
    assert reading.among[-1].probability == pytest.approx(np.exp2(reading.ratios[2]) / total)


def test_the_most_that_evidence_and_crowds_can_read():
    attacker = Monitor(with_evidence(), watch="s2").attacker
    assert attacker.most_bits("evidence_bits") == attacker.support_bits
    assert attacker.most_bits("among.1e6.bits") == np.inf
    assert Monitor(two_features()).attacker.most_bits("evidence_bits") == np.inf


@pytest.mark.parametrize("place", [None, 7])
def test_a_moment_does_not_depend_on_the_others_to_the_last_bit(place):
    bits = np.random.default_rng(0).normal(-3, 6, (32, 50))
    own = [None if place is None else Bits(b, b - 1, b + 1) for b in bits[:, place or 0].tolist()]
    names = [str(j) for j in range(50)]
    whole = compute_crowds(bits, own, place, [50, 1_000_000], names)
    for r in range(32):
        alone = compute_crowds(bits[[r]], own[r : r + 1], place, [50, 1_000_000], names)
        assert alone == [whole[r]]
