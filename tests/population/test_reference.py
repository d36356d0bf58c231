"""The shipped population keeps what docs/features.md says of it."""

from pathlib import Path

import numpy as np
import pytest

from monitor import Monitor
from monitor.features.registry import make
from monitor.population import demo_frames
from monitor.population.interpolation import GOOD_AREA, EnrolledProbability
from monitor.population.population import Population
from monitor.sources.frames import FramesFile
from recipes.reference import FEATURES, SETS

PEOPLE = Population.reference()
ROWS = [row for rank_model in PEOPLE.rank_models for row in rank_model.rows]


def test_every_set_that_people_can_have_has_a_rank_model_for_both_kinds_of_session():
    assert len(SETS) == 7
    for names in SETS:
        for session in ("same", "cross"):
            rank_model = PEOPLE.rank_models.find(names, session)
            assert rank_model is not None
            assert {3.0, 10.0, 30.0, 60.0, 120.0} <= set(rank_model.lengths)


@pytest.mark.parametrize("name", FEATURES)
def test_templates_frames_and_rank_models_are_by_the_networks_of_this_package(name):
    (own,) = make([name])
    mark = own.spec.network
    assert PEOPLE.specs[name].network == mark
    assert PEOPLE.cohort is not None
    assert PEOPLE.cohort.specs[name].network == mark
    assert FramesFile(demo_frames()).stream_info.tracks[name].network == mark
    models = [each for each in PEOPLE.rank_models if name in each.features]
    assert {each.network(name) for each in models} == {mark}


def test_who_trained_the_network_of_phones_teaches_no_rank_model_of_it():
    for rank_model in PEOPLE.rank_models:
        if "phones" not in rank_model.features:
            assert rank_model.left_out == ()
            assert rank_model.speakers == (50 if rank_model.session == "same" else 19)
            continue
        assert len(set(rank_model.left_out)) == 28
        assert set(rank_model.left_out) < set(PEOPLE.names)
        assert rank_model.speakers == (22 if rank_model.session == "same" else 18)
        assert rank_model.candidates == 50


def test_it_holds_a_cohort_of_others():
    cohort = PEOPLE.cohort
    assert cohort is not None
    assert len(cohort) == 219
    assert cohort.features.keys() == PEOPLE.features.keys()
    assert all(each.slices.any(axis=1).all() for each in cohort.features.values())
    assert 8 < np.median(cohort.seconds) < 16
    files = Path(demo_frames()).parent
    assert (files / "population.npz").stat().st_size < 6e6


def test_a_joint_of_features_discloses_hardly_less_than_the_best_of_them():
    """Where both were learnt from the same readers."""
    bits = {
        (r["feature"], r["session"], r["T"], r["D"]): (r["held_out_local_bits"], r["speakers"])
        for r in ROWS
        if 3 <= r["T"] <= 120
    }
    compared = 0
    for (feature, *place), (joint, speakers) in bits.items():
        alone = [bits[each, *place] for each in feature.split("+") if (each, *place) in bits]
        best = max((b for b, readers in alone if readers == speakers), default=-np.inf)
        compared += "+" in feature and bool(np.isfinite(best))
        assert joint > best - 0.1  # what two features cost on a score of readers
    assert compared > 200


def test_the_best_guess_is_calibrated():
    for rank_model in PEOPLE.rank_models:
        if "voice" in rank_model.features:
            assert all(row["calibration_error"] < 0.08 for row in rank_model.rows if row["T"] >= 3)


def test_how_high_others_get_is_known_under_every_rank_model():
    """So that a rule may ask for 5 % false alarms in streams of ten minutes, as the docs do."""
    for rank_model in PEOPLE.rank_models:
        assert rank_model.maxima is not None
        assert not set(rank_model.maxima.speakers) & set(rank_model.left_out)
        assert rank_model.maxima.template_seconds == PEOPLE.scoring().seconds
    monitor = Monitor(PEOPLE, ("f0", "phones", "voice"), watch=PEOPLE.names[0])
    for field in ("evidence_bits", "bits", "f0.local_bits"):
        quote = monitor.false_alarms(field, 0.05, 600.0)
        assert 0 < quote.bits < quote.most_bits
        assert 19 <= quote.speakers <= len(PEOPLE)


def test_those_with_an_embedding_can_tell_who_is_enrolled_and_pitch_cannot():
    for each in PEOPLE.rank_models:
        able = EnrolledProbability(each, 100.0).area(np.array([3.0, 10.0, 120.0])) >= GOOD_AREA
        if "voice" in each.features:
            assert able[1:].all(), each.features
        elif each.features == ("f0",):
            assert not able.any()
