"""Calibrating: voices in, rank models and a table out, of a known truth."""

import json
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from monitor import calibrate
from monitor.errors import CalibrationError, UsageError
from monitor.kinds import EMBEDDING, HISTOGRAM, FeatureSpec
from monitor.maths.rank_models import mean_disclosure_bits
from monitor.population.population import load_rank_models, save_rank_models
from monitor.training import CalibrationSettings, calibrating
from monitor.training.prior import held_out_nats
from monitor.training.voices import SessionFrames, SpeakerSpeech
from tests.population.rank_models import population

F0 = {"f0": FeatureSpec("f0", HISTOGRAM, 104, 0.01)}
VOICE = FeatureSpec("voice", EMBEDDING, 4, 3.0)
pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture(scope="module")
def voices(simulated):
    return simulated(12, 2, 30.0)


def small(voices, specs=F0, **options):
    given: dict[str, Any] = {"lengths": [1.0, 3.0], "template_lengths": [6.0]}
    given |= {"replicates": 20, "trials": 3, "prior": None, "cohort": None} | options
    progress = given.pop("progress", lambda _done, _all: None)
    return calibrate(voices, specs, CalibrationSettings(**given), progress=progress)


@pytest.mark.slow
def test_rows_and_rank_models(voices, simulated):
    made = small(voices, lengths=[3, 1, 1.0], template_lengths=[6.0, 4.0])
    cells = [(row["session"], row["D"], row["T"]) for row in made.rows]
    assert cells == [(s, d, t) for s in ("same", "cross") for d in (4.0, 6.0) for t in (1.0, 3.0)]
    json.dumps(made.rows, allow_nan=False)
    assert len(made.rank_models) == 2
    for rank_model in made.rank_models:
        assert rank_model.features == ("f0",)
        assert rank_model.lengths.tolist() == [1.0, 3.0]
        assert rank_model.template_lengths.tolist() == [4.0, 6.0]
        assert (rank_model.speakers, rank_model.candidates) == (12, 12)
        for row in rank_model.rows:
            place = 0, int(row["T"] == 3.0), int(row["D"] == 6.0)
            assert rank_model.alpha[place] == row["alpha"]
            assert rank_model.floor[place] == row["floor"]
            assert (row["trials"], row["ties"]) == (36, "spread")
    # all cells compare at one number of candidates
    made = small(voices + simulated(15, 2, 12.0)[12:], template_lengths=[4.0, 6.0, 9.0])
    assert len({row["candidates"] for row in made.rows}) > 1
    (common,) = {row["common_candidates"] for row in made.rows}
    assert common == max(row["candidates"] for row in made.rows)
    for row in made.rows:
        assert row["common_bits_low"] < row["common_bits"] < row["common_bits_high"]
        same = row["candidates"] == common
        assert (row["common_bits"] == pytest.approx(row["mean_bits_model"])) == same


@pytest.mark.slow
def test_deterministic_for_a_seed(voices):
    seen = []
    one, two, other = (
        small(voices, seed=seed, progress=lambda *each: seen.append(each)) for seed in (0, 0, 1)
    )
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)] * 3
    assert one.rows == two.rows
    for a, b, c in zip(one.rank_models, two.rank_models, other.rank_models, strict=True):
        assert_array_equal(a.alpha, b.alpha)
        assert_array_equal(a.weights, b.weights)
        assert (a.alpha[0] == c.alpha[0]).all()  # the rank model itself has no chance in it
        assert (a.alpha[1:] != c.alpha[1:]).any()


def test_lengths_nobody_reaches_are_dropped_and_cells_out_of_reach_are_nan(voices, simulated):
    made = small(voices, lengths=[1.0, 3.0, 300.0], template_lengths=[6.0, 120.0])
    assert {(row["T"], row["D"]) for row in made.rows} == {(1.0, 6.0), (3.0, 6.0)}
    assert all(rank_model.lengths.tolist() == [1.0, 3.0] for rank_model in made.rank_models)
    shortest = min(v.length(i) for v in voices for i in range(2)) / 10
    made = small(voices, lengths=[1.0, 12.0], template_lengths=[4.0, np.floor(shortest - 1.5)])
    same = made.rank_models.find(("f0",), "same")
    assert np.isfinite(same.alpha).all(axis=0).tolist() == [[True, True], [True, False]]
    assert made.rank_models.find(("f0",), "cross").alpha.shape == (21, 2, 2)
    # from one session each there is no rank model across sessions
    assert small(simulated(12, 1, 30.0)).rank_models.kinds == [(("f0",), "same")]


def test_refusals(voices, simulated):
    brief = simulated(12, 2, 4.0)
    few = brief[:9] + simulated(12, 2, 30.0)[9:]  # three of twelve are long enough
    wrong: list[Any] = [
        (CalibrationError, r"too few speakers \(9\) .* at least 10", voices[:9], {}),
        (CalibrationError, r"a test of 1 s and a template of 6 s.* shorter", brief, {}),
        (CalibrationError, "fewer than 10 speakers", few, {}),
        *(
            (UsageError, r"positive multiple of 0\.1 s", voices, {name: [1.0, length]})
            for name in ("lengths", "template_lengths")
            for length in (0.0, -1.0, 0.25, float("nan"), float("inf"))
        ),
        (UsageError, "at least one", voices, {"lengths": []}),
        (UsageError, "no similarity for 'fo'", voices, {"similarities": {"fo": "log-likelihood"}}),
        (UsageError, "not one of", voices, {"similarities": {"f0": "embedding-cosine"}}),
    ]
    for error, words, given, options in wrong:
        with pytest.raises(error, match=words):
            small(given, **options)
    assert small(voices[:10], similarities={"f0": "log-likelihood"}).rows[0]["speakers"] == 10
    with pytest.raises(UsageError, match="specs"):
        calibrate([])
    with pytest.raises(UsageError, match="specs"):
        calibrate([], {}, features=["f0"])


def test_speakers_who_are_all_alike_read_nothing(simulated):
    """Zero information: every voice is a recording of the same person."""
    (person,) = simulated(1, 60, 25.0)
    voices = [SpeakerSpeech(f"{j:02d}", person.sessions[3 * j : 3 * j + 3]) for j in range(20)]
    for row in small(voices, lengths=[2.0], trials=6, replicates=40).rows:
        if row["session"] == "cross":  # within a session even one person is easier to know again
            assert row["null_low"] <= row["mean_bits_model"] <= row["null_high"]
            assert row["null_raw_low"] <= row["mean_bits_raw"] <= row["null_raw_high"]
            assert row["mean_bits_model"] < 0.2
            assert row["held_out_local_bits"] < 0.1


@pytest.mark.slow
def test_the_rank_model_of_forty_predicts_the_bits_among_four_hundred(simulated):
    everybody = simulated(400, 2, 25.0, 7)
    grid = {"lengths": [3.0], "template_lengths": [12.0]}
    large = small(everybody, **grid)
    for session in ("same", "cross"):
        measured = next(r for r in large.rows if r["session"] == session)
        assert measured["candidates"] == 400
        predicted, among_forty = [], []
        for first in range(0, 400, 80):
            forty = small(everybody[first : first + 40], **grid).rank_models[("f0",), session]
            parameters = forty.alpha[0], forty.beta[0]
            predicted.append(mean_disclosure_bits(*parameters, 400).item())
            among_forty.append(mean_disclosure_bits(*parameters, 40).item())
        assert np.mean(predicted) == pytest.approx(measured["mean_bits_raw"], abs=0.3)
        assert max(abs(p - measured["mean_bits_raw"]) for p in predicted) < 0.8
        # N matters: it is the parameters that carry over, not the bits
        assert np.mean(predicted) > np.mean(among_forty) + 0.1


@pytest.mark.slow
def test_a_prior_keeps_few_speakers_from_claiming_too_much(simulated):
    """Session by session of a dozen: without a prior their model is of one session, and favours."""
    everybody = simulated(80, 2, 25.0, 3)
    learnt = small(everybody[12:62]).rank_models
    elsewhere = population(features=("f0",), size=104).with_rank_models(learnt)
    single = [SpeakerSpeech(voice.name, voice.sessions[:1]) for voice in everybody[:12]]
    made = small(single, prior=elsewhere)
    assert small(single).rank_models.kinds == [(("f0",), "same")]
    own, stand_in = (made.rank_models.find(("f0",), session) for session in ("same", "cross"))
    assert (stand_in.origin, stand_in.prior_share) == ("shipped", 1.0)
    assert_array_equal(stand_in.alpha, elsewhere.rank_models[("f0",), "cross"].alpha)
    assert own.origin == "own"
    assert own.prior_share == own.prior_speakers / (12 + own.prior_speakers) > 0.5
    assert all(row["prior_speakers"] == own.prior_speakers for row in made.rows)
    assert made.several_sessions == 0
    # two sessions each: a rank model of their own, with the prior
    both = small(everybody[:12], prior=elsewhere)
    assert both.several_sessions == 12
    assert {rank_model.origin for rank_model in both.rank_models} == {"own"}
    assert both.rank_models.find(("f0",), "cross").prior_speakers > 0
    # frames of another kind have none
    other = small(single, {"f0": FeatureSpec("f0", HISTOGRAM, 104, 0.02)}, prior=elsewhere)
    assert {rank_model.prior_speakers for rank_model in other.rank_models} == {0.0}


@pytest.mark.slow
def test_a_feature_that_no_test_is_long_enough_for_has_no_say(simulated, tmp_path):
    def heard(session):
        f0 = session["f0"]
        ends = np.arange(29, f0.length, 30)  # an embedding every three seconds
        values = np.random.default_rng(0).normal(size=(ends.size, 4))
        return {"f0": f0, "voice": SessionFrames(values, ends, f0.length, VOICE, ends - 29, 30)}

    voices = [SpeakerSpeech(v.name, tuple(map(heard, v.sessions))) for v in simulated(12, 2, 30.0)]
    made = small(voices, F0 | {"voice": VOICE}, lengths=[0.3, 1.0])
    assert {rank_model.features for rank_model in made.rank_models} == {("f0",), ("f0", "voice")}
    save_rank_models(tmp_path / "rank_model.npz", made.rank_models)
    rank_model = load_rank_models(tmp_path / "rank_model.npz")[0].find(("f0", "voice"), "same")
    assert (rank_model.weights[..., 0] > 0).all()
    assert (rank_model.weights[..., 1] == 0).all()


# a network knows whom it was trained on: here it tells those apart by one bin each
KNOWING = F0 | {"net": FeatureSpec("net", HISTOGRAM, 104, 0.01)}
TRAINERS = tuple(f"{i:03d}" for i in range(14))


@pytest.fixture(scope="module")
def known(simulated):
    def heard(name, f0):
        values = np.full_like(f0.values, 5 * int(name)) if name in TRAINERS else f0.values
        return {"f0": f0, "net": SessionFrames(values, f0.units, f0.length, KNOWING["net"])}

    return [
        SpeakerSpeech(voice.name, tuple(heard(voice.name, each["f0"]) for each in voice.sessions))
        for voice in simulated(26, 2, 30.0)
    ]


@pytest.mark.slow
def test_tests_of_who_trained_a_network_teach_no_rank_model_of_its_feature(known):
    naive = small(known, KNOWING)
    made = small(known, KNOWING, trained={"net": {*TRAINERS, "nobody"}})
    for rank_model in made.rank_models:
        apart = "net" in rank_model.features
        assert rank_model.left_out == (TRAINERS if apart else ())
        assert rank_model.speakers == (12 if apart else 26)
        before = naive.rank_models.find(rank_model.features, rank_model.session)
        assert (before.left_out, before.speakers) == ((), 26)
        assert rank_model.candidates == before.candidates == 26
        for row, other in zip(rank_model.rows, before.rows, strict=True):
            assert (row == other) is not apart
            assert row["trials"] == 3 * rank_model.speakers
            if apart:  # they biased upwards the attacker
                assert row["held_out_local_bits"] < other["held_out_local_bits"] - 0.1


@pytest.mark.slow
def test_nor_do_they_weigh_a_prior(known, monkeypatch):
    heard: set[int] = set()

    def weighed(cell, *rest, **more):
        heard.update(cell.speaker.tolist(), cell.gap_speaker.tolist())
        return held_out_nats(cell, *rest, **more)

    monkeypatch.setattr(calibrating, "held_out_nats", weighed)
    rank_models = list(small(known[14:], KNOWING).rank_models)
    prior = population(features=("f0", "net"), rank_models=rank_models, size=104)
    made = small(known, KNOWING, prior=prior, trained={"net": TRAINERS}, sets=[["net"]])
    assert all(rank_model.prior_speakers > 0 for rank_model in made.rank_models)
    assert heard == set(range(14, 26))


def test_enough_must_be_left_for_the_sets_that_are_wanted(known):
    complaint = "only 9 of 23 speakers are not in the training data of"
    with pytest.raises(CalibrationError, match=complaint):
        small(known[:23], KNOWING, trained={"net": TRAINERS})
    with pytest.raises(UsageError, match="no rank model of 'voice': use f0, net"):
        small(known, KNOWING, sets=[("voice",)])
    few = {"lengths": [1.0], "trained": {"net": TRAINERS}}
    assert small(known[:23], KNOWING, sets=[["f0"]], **few).rank_models.kinds[0][0] == ("f0",)
    made = small(known[:12], KNOWING, sets=[("net", "f0"), ("net",), ["f0", "net"]], lengths=[1.0])
    assert {features for features, _ in made.rank_models.kinds} == {("f0", "net"), ("net",)}
